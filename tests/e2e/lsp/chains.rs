//! Edits that a chain answers: the findings that the editor gets, and the processes that are left
//! when the chain ends.

use std::time::Duration;

use consort::config::{Chains, Config, Copies};
use consort::model::image::ImageState;
use consort::session::ChainStatus;
use consort_tests::lsp::Editor;
use consort_tests::patience::{PATIENCE, comes};
use consort_tests::world::World;
use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
use serde_json::json;
use tokio::time::timeout;

/// A world with chains, as they are by default. `debounce`: the pause before a whole check.
async fn world(debounce: Duration) -> World {
    let mut config = Config::default();
    assert_eq!(config.check.chain, Chains::On);
    config.check.debounce = debounce;
    World::configured(&[], config).await
}

async fn status(world: &World) -> ChainStatus {
    world.session.status().await.chains.unwrap_or_default()
}

/// The children of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let pids: Vec<_> = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    pids.into_iter().filter_map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

/// The first processes of the chains of an image: they lead a group.
fn heads(image: u32) -> Vec<Pid> {
    let leads = |pid: &Pid| getpgid(Some(*pid)).is_ok_and(|group| group == *pid);
    children(Pid::from_raw(image.cast_signed()).unwrap()).into_iter().filter(leads).collect()
}

/// The processes of a chain.
fn processes(head: Pid) -> Vec<Pid> {
    let mut all = vec![head];
    let mut next = 0;
    while next < all.len() {
        all.extend(children(all[next]));
        next += 1;
    }
    all
}

fn lives(pid: Pid) -> bool {
    // A zombie, which has ended, does not count.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

async fn gone(all: &[Pid]) {
    comes("the end of a chain's processes", async || (!all.iter().any(|pid| lives(*pid))).then_some(())).await;
}

/// Has the document checked, by which a chain is made for it, until the chains are as wanted: one
/// that is being made ends when the image changes, or code runs in it.
pub(crate) async fn until_chains(
    world: &World,
    editor: &mut Editor,
    uri: &str,
    wanted: impl Fn(&ChainStatus) -> bool,
) -> ChainStatus {
    comes("a chain, or none", async || {
        if !wanted(&status(world).await) {
            editor.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}})).await;
            editor
                .request("textDocument/diagnostic", json!({"textDocument": {"uri": uri}}))
                .await
                .expect("diagnostics");
        }
        Some(status(world).await).filter(&wanted)
    })
    .await
}

/// Waits until there is a chain for the document; returns its processes.
async fn stands(world: &World, editor: &mut Editor, uri: &str, image: u32) -> Vec<Pid> {
    until_chains(world, editor, uri, |counts| counts.standing == 1).await;
    // A chain that was replaced may be ending.
    let head = comes("the first process of a chain", async || match heads(image).as_slice() {
        [head] => Some(*head),
        _ => None,
    });
    processes(head.await)
}

/// Changes the text as [`Editor::change`] does, and returns the wanted findings of it or of a later
/// version. The image of a busy machine may not say in time that it is at rest: then the chain does
/// not get the edit, and an empty change sends it again.
async fn changed(
    editor: &mut Editor,
    uri: &str,
    version: &mut i32,
    range: [u32; 4],
    text: &str,
    wanted: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let first = *version + 1;
    let (mut range, mut text) = (range, text);
    for _ in 0..PATIENCE.as_secs() {
        *version += 1;
        editor.change(uri, *version, range, text).await;
        let found = editor.diagnostics(uri, |version, lines| version >= i64::from(first) && wanted(lines));
        if let Ok((_, found)) = timeout(Duration::from_secs(1), found).await {
            return found;
        }
        (range, text) = ([0; 4], "");
    }
    panic!("no wanted findings of version {first} or later")
}

const TEXT: &str = "(defmacro twice (x) `(list ,x ,x))
(defun f (a) (no-such-function))
(defun g (b) (twice b))
(defun h () (f 1))
";

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_answered_by_the_chain_and_confirmed_by_a_whole_check() {
    // Whole checks do not come by themselves while the test runs.
    let world = world(Duration::from_secs(3600)).await;
    let image = world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    let (_, before) = editor.diagnostics(&uri, |_, lines| lines.len() == 2).await;
    assert_eq!(before, ["1:10-1:11 unused-variable", "1:14-1:30 undefined-function"]);
    editor.change(&uri, 2, [4, 0, 4, 0], "; edited\n").await;
    editor.diagnostics(&uri, |version, _| version == 2).await;
    let processes = stands(&world, &mut editor, &uri, image).await;

    let mut version = 2;
    // A call with too many arguments, in a form that mentions the edited one.
    let wanted = |lines: &[String]| lines.iter().any(|line| line.starts_with("3:"));
    let found = changed(&mut editor, &uri, &mut version, [1, 10, 1, 11], "a b", wanted).await;
    assert_eq!(found.iter().filter(|line| line.ends_with("unused-variable")).count(), 2, "{found:?}");
    // And back, with another macro.
    let found = changed(&mut editor, &uri, &mut version, [1, 10, 1, 13], "a", |lines| lines == before).await;
    assert_eq!(found, before);
    let found = changed(&mut editor, &uri, &mut version, [0, 20, 0, 33], "`(list 1)", |lines| lines.len() >= 4).await;
    assert!(found.iter().any(|line| line.starts_with("2:10-2:11 unused")), "{found:?}");

    // The whole check has the same findings.
    editor.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}})).await;
    let counts = comes("a comparison", async || Some(status(&world).await).filter(|counts| counts.agreed > 0)).await;
    assert_eq!((counts.differed, counts.whole, counts.failed), (0, 0, 0), "{counts:?}");
    assert!(counts.answered >= 3 && counts.memory > 0, "{counts:?}");

    // A change of the image ends the chain.
    editor.eval("(defun no-such-function ())").await;
    gone(&processes).await;
    // A document that is closed has no chain.
    editor.change(&uri, version + 1, [4, 0, 4, 0], "; again\n").await;
    let processes = stands(&world, &mut editor, &uri, image).await;
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    gone(&processes).await;
    comes("the removal of scratch directories", async || world.scratch_directories().is_empty().then_some(())).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_chain_is_killed_a_whole_check_answers() {
    let world = world(Duration::from_millis(200)).await;
    let image = world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    editor.change(&uri, 2, [4, 0, 4, 0], "; edited\n").await;
    let all = stands(&world, &mut editor, &uri, image).await;
    editor.diagnostics(&uri, |version, lines| version == 2 && lines.len() == 2).await;
    // An edit that is never answered.
    kill_process_group(all[0], Signal::STOP).expect("it is there");
    editor.change(&uri, 3, [1, 13, 1, 31], "(car 1 2)").await;
    // The keeper is one of them; the processes that wait for edits come and go.
    for pid in &all[1..] {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let (_, found) = editor.diagnostics(&uri, |version, lines| version == 3 && lines.len() == 2).await;
    assert!(!found.iter().any(|line| line.contains("undefined-function")), "{found:?}");
    gone(&all).await;
    let counts = status(&world).await;
    assert_eq!((counts.standing, counts.failed, counts.answered), (0, 1, 0), "{counts:?}");
    editor.leave().await;
    world.end().await;
}

/// An editor with these settings that has edited a text, and its findings.
async fn edited(world: &World, uri: &str, settings: serde_json::Value) -> Editor {
    let mut editor = Editor::connect(&world.session);
    editor.initialize(json!({"capabilities": {}, "initializationOptions": settings})).await;
    editor.open(uri, TEXT).await;
    editor.change(uri, 2, [4, 0, 4, 0], "; edited\n").await;
    editor.diagnostics(uri, |version, lines| version == 2 && lines.len() == 2).await;
    editor
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_of_the_editor_count() {
    let world = World::with(&[]).await;
    world.is_ready().await;
    let uri = world.uri("a.lisp");
    // The chain of so long a text takes more than the least that can be set.
    let more: String =
        (0..300).map(|n| format!("(defun h{n} (b) (loop for i in (twice b) collect (1+ i)))\n")).collect();
    let mut editor = edited(&world, &uri, json!({"check": {"shadow_mb": 16}})).await;
    editor.change(&uri, 3, [5, 0, 5, 0], &more).await;
    let counts = until_chains(&world, &mut editor, &uri, |counts| counts.failed > 0).await;
    assert_eq!(counts.why.as_deref(), Some("it takes more than check.shadow_mb, 16 MB"));
    editor.leave().await;
    let mut editor = edited(&world, &uri, json!({"check": {"chain": false}})).await;
    editor.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri}})).await.unwrap();
    let counts = status(&world).await;
    assert_eq!((counts.standing, counts.failed), (0, 1), "{counts:?}");
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_six_thousand_lines_has_a_chain() {
    let mut config = Config::default();
    // A busy machine has as much time as it needs.
    config.check.deadline = Duration::from_secs(3600);
    let world = World::configured(&[], config).await;
    world.is_ready().await;
    let uri = world.uri("a.lisp");
    let form = |n: u32| {
        format!(
            "(defun large-{n} (a b)\n  (let ((c (+ a b))\n        (d (- a b)))\n    (when (> c d)\n      (incf c {n}))\n    (list c d)))\n\n"
        )
    };
    let text: String = (0..870).map(form).collect();
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.open(&uri, &text).await;
    editor.change(&uri, 2, [0, 0, 0, 0], "; edited\n").await;
    let counts = until_chains(&world, &mut editor, &uri, |counts| counts.standing == 1 || counts.failed > 0).await;
    assert_eq!(counts.standing, 1, "{counts:?}");
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_can_be_no_chains_the_status_says_why() {
    let mut config = Config::default();
    config.lisp.copies = Copies::Process;
    let world = World::configured(&[], config).await;
    world.is_ready().await;
    let uri = world.uri("a.lisp");
    let mut editor = edited(&world, &uri, json!({})).await;
    let counts = until_chains(&world, &mut editor, &uri, |counts| counts.why.is_some()).await;
    assert_eq!((counts.why.as_deref(), counts.failed), (Some("checks are made in a second process"), 0));
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_image_is_no_failure_of_a_chain() {
    let world = world(Duration::from_millis(200)).await;
    let image = world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    editor.change(&uri, 2, [4, 0, 4, 0], "; edited\n").await;
    let all = stands(&world, &mut editor, &uri, image).await;
    kill_process(Pid::from_raw(image.cast_signed()).unwrap(), Signal::KILL).expect("it runs");
    gone(&all).await;
    let is_other = |state: &ImageState| matches!(state, ImageState::Ready { pid, .. } if *pid != image);
    world.image.watch().wait_for(is_other).await.unwrap();
    editor.change(&uri, 3, [1, 14, 1, 30], "(car 1 2)").await;
    let image = world.is_ready().await;
    stands(&world, &mut editor, &uri, image).await;
    assert_eq!(status(&world).await.failed, 0);
    editor.leave().await;
    world.end().await;
}
