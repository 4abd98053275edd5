//! The cached core, and programs that are not there.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use consort::config::InitFile;
use consort::model::image::{ImageError, ImageState};

use consort_tests::patience::AMPLE;

use crate::support::{Fixture, cache, config, params, soon};

fn cores(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        // A command that is no plain sbcl has a fasl instead.
        .filter(|path| path.extension().is_some_and(|extension| extension == "core" || extension == "fasl"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_core_that_does_not_start_is_built_again() {
    let begun = SystemTime::now() - Duration::from_secs(1);
    Fixture::new().close_when_ready().await;
    let own = tempfile::tempdir().unwrap();
    // The one that it has just started from is marked as used; of others there may be many, and
    // somebody may make an old one go.
    let used = |core: &Path| fs::metadata(core).and_then(|facts| facts.modified()).ok().filter(|time| *time >= begun);
    for core in cores(&cache()).into_iter().filter(|core| used(core).is_some()) {
        let Ok(bytes) = fs::read(&core) else { continue };
        fs::write(own.path().join(core.file_name().unwrap()), &bytes[..bytes.len() / 3]).unwrap();
    }
    let mut fixture = Fixture::with(config(), own.path().to_owned());
    fixture.ready().await;
    assert_eq!(fixture.values("(+ 1 2)").await, ["3"]);
    fixture.close().await;
    let names: Vec<_> = fs::read_dir(own.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("build-")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_build_one_core() {
    let own = tempfile::tempdir().unwrap();
    let mut first = Fixture::with(config(), own.path().to_owned());
    let mut second = Fixture::with(config(), own.path().to_owned());
    first.ready().await;
    second.ready().await;
    assert_eq!(cores(own.path()).len(), 1);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_command_than_a_plain_sbcl_runs_the_same_image() {
    let mut config = config();
    config.command = vec!["env".into(), "CONSORT_TEST=through env".into(), "sbcl".into()];
    let mut fixture = Fixture::with(config, cache());
    fixture.ready().await;
    assert_eq!(fixture.values("(sb-posix:getenv \"CONSORT_TEST\")").await, ["\"through env\""]);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sbcl_is_said_with_what_to_do() {
    let mut config = config();
    config.command = vec!["/nowhere/sbcl".into()];
    let fixture = Fixture::with(config, cache());
    let mut watch = fixture.image.watch();
    let dead =
        soon(watch.wait_for(|state| matches!(state, ImageState::Dead { is_final: true, .. }))).await.unwrap().clone();
    let ImageState::Dead { reason, .. } = dead else { panic!("{dead:?}") };
    assert!(reason.contains("/nowhere/sbcl") && reason.contains("sudo apt install sbcl"), "{reason}");
    match soon(fixture.image.eval(params("test", "1", AMPLE), None)).await {
        Err(ImageError::Unavailable(why)) => assert_eq!(why, reason),
        other => panic!("{other:?}"),
    }
    assert!(matches!(soon(fixture.image.restart()).await, Err(ImageError::Unavailable(_))));
    soon(fixture.image.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_cannot_build_is_quoted() {
    let mut config = config();
    config.command = vec!["sh".into(), "-c".into(), "echo this is not Lisp >&2; exit 7".into()];
    let own = tempfile::tempdir().unwrap();
    let fixture = Fixture::with(config, own.path().to_owned());
    let mut watch = fixture.image.watch();
    let dead =
        soon(watch.wait_for(|state| matches!(state, ImageState::Dead { is_final: true, .. }))).await.unwrap().clone();
    let ImageState::Dead { reason, .. } = dead else { panic!("{dead:?}") };
    assert!(reason.contains("exited with code 7") && reason.contains("this is not Lisp"), "{reason}");
    soon(fixture.image.shutdown()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_init_file_is_loaded_first_and_its_error_is_told_and_not_fatal() {
    let directory = tempfile::tempdir().unwrap();
    let init = directory.path().join("init.lisp");
    fs::write(&init, "(defvar cl-user::*from-init* 42) (error \"a mistake in the init file\")").unwrap();
    let mut config = config();
    config.init_file = InitFile::File(init.clone());
    let mut fixture = Fixture::with(config, cache());
    fixture.ready().await;
    assert_eq!(fixture.values("*from-init*").await, ["42"]);
    let told = fixture
        .event(|event| match event {
            consort::model::image::ImageEvent::Printed { text, .. } if text.contains("init.lisp") => Some(text),
            _ => None,
        })
        .await;
    assert!(told.contains("a mistake in the init file"), "{told}");
    fixture.close().await;
}
