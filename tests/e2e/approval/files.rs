//! The binding of an approval to a file: its path, its identity and its contents. Tested through
//! `Session::permit`, which every tool that names a file uses.

use std::os::unix::fs::symlink;
use std::path::Path;

use consort::config::Config;
use consort::session::approval::{ApprovalRequest, Class, Grant, Subject, Verdict};
use consort::session::{ClientId, ClientInfo, Frontend};
use serde_json::json;

use crate::support::Guarded;

fn edit(guarded: &Guarded, client: ClientId, file: &str) -> ApprovalRequest {
    let subject = Subject {
        what: "Edit a form".into(),
        file: Some(file.into()),
        code: Some("(defun f ())".into()),
        ..Subject::default()
    };
    let (workspace, arguments) = (guarded.world.session.workspace(), json!({"file_path": file}));
    ApprovalRequest::new(workspace, client, "lisp-edit-form", (Class::EditFile, subject), arguments, true)
}

async fn refusal(guarded: &Guarded, client: ClientId, file: &str) -> String {
    match guarded.world.session.permit(edit(guarded, client, file), None).await {
        Verdict::Refused(why) => why,
        other => panic!("{file}: {other:?}"),
    }
}

/// Allowed by a person, who was shown this path.
async fn allowed(guarded: &Guarded, client: ClientId, file: &str, shown: &Path) -> Grant {
    let mut editor = guarded.editor().await;
    let asked = tokio::spawn(guarded.world.session.permit(edit(guarded, client, file), None));
    let question = editor.press("Allow").await;
    let message = question["params"]["message"].as_str().expect("a message");
    let shown = format!("Filename: {}", shown.canonicalize().expect("it is there").display());
    // A long name is shown from its start.
    assert!(message.contains(&shown[..shown.len().min(80)]), "{message}");
    let permit = match asked.await {
        Ok(Verdict::Allowed(permit)) => permit,
        other => panic!("{other:?}"),
    };
    editor.leave().await;
    permit
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_outside_the_workspace_are_not_even_asked_about() {
    let guarded = Guarded::configured(Config::default()).await;
    let (client, _feedback) =
        guarded.world.session.attach(ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("secret.lisp"), "()").expect("a file");
    symlink(outside.path().join("secret.lisp"), guarded.world.path("link.lisp")).expect("a link");
    symlink(outside.path(), guarded.world.path("dir")).expect("a link");
    symlink(outside.path().join("nothing"), guarded.world.path("dangling.lisp")).expect("a link");
    let absolute = outside.path().join("secret.lisp").display().to_string();
    for file in [
        "link.lisp",
        "dir/secret.lisp",
        "dir/new.lisp",
        "../outside.lisp",
        "src/../../x.lisp",
        &absolute,
        "/etc/passwd",
    ] {
        let why = refusal(&guarded, client, file).await;
        assert!(why.contains("is not in the workspace") || why.contains("No such file"), "{file}: {why}");
    }
    assert!(refusal(&guarded, client, "dangling.lisp").await.contains("a link that leads to nothing"));
    let refused = guarded.audited(|entry| entry["arguments"].to_string().contains("dangling")).await;
    assert_eq!((&refused["decision"], &refused["by"]), (&json!("refused"), &json!("the path")));
    assert_eq!(guarded.audit().len(), 8);
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_not_the_one_that_was_allowed_is_not_used() {
    let guarded = Guarded::configured(Config::default()).await;
    let session = &guarded.world.session;
    let (client, _feedback) = session.attach(ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
    let core = guarded.world.path("core.lisp");
    let other = guarded.world.path("other.lisp");
    std::fs::write(&other, "(defun other ())\n").expect("a file");

    // Without a change the approval may be used, by the file's real name, more than once.
    let permit = allowed(&guarded, client, "./core.lisp", &core).await;
    for _ in 0..2 {
        assert_eq!(session.recheck(&permit).await, Ok(Some(core.canonicalize().expect("it is there"))));
    }
    // Another file under its name.
    std::fs::rename(&other, &core).expect("renamed");
    assert!(session.recheck(&permit).await.is_err_and(|why| why.contains("changed or replaced")));
    // Other contents of the same length, with the old modification time.
    let permit = allowed(&guarded, client, "core.lisp", &core).await;
    let time = std::fs::metadata(&core).and_then(|facts| facts.modified()).expect("a time");
    std::fs::write(&core, "(defun OTHER ())\n").expect("written");
    std::fs::File::options().write(true).open(&core).and_then(|file| file.set_modified(time)).expect("set");
    assert!(session.recheck(&permit).await.is_err_and(|why| why.contains("changed or replaced")));
    // A link in the file's place.
    let permit = allowed(&guarded, client, "core.lisp", &core).await;
    std::fs::write(&other, "()").expect("a file");
    std::fs::remove_file(&core).expect("removed");
    symlink(&other, &core).expect("a link");
    assert!(session.recheck(&permit).await.is_err_and(|why| why.contains("now leads to")));
    // A directory of the path that is a link now.
    std::fs::create_dir_all(guarded.world.path("src")).expect("a directory");
    std::fs::create_dir_all(guarded.world.path("elsewhere")).expect("a directory");
    let inner = guarded.world.path("src/a.lisp");
    std::fs::write(&inner, "()").expect("a file");
    let permit = allowed(&guarded, client, "src/a.lisp", &inner).await;
    std::fs::rename(guarded.world.path("src"), guarded.world.path("moved")).expect("renamed");
    std::fs::rename(guarded.world.path("moved/a.lisp"), guarded.world.path("elsewhere/a.lisp")).expect("renamed");
    symlink(guarded.world.path("elsewhere"), guarded.world.path("src")).expect("a link");
    assert!(session.recheck(&permit).await.is_err_and(|why| why.contains("now leads to")));
    // A file that was removed.
    std::fs::remove_file(guarded.world.path("src")).expect("removed");
    assert!(session.recheck(&permit).await.is_err());

    guarded.refused("now leads to").await;
    let refused = guarded.refused("changed or replaced").await;
    assert_eq!((&refused["by"], &refused["tool"]), (&json!("the file"), &json!("lisp-edit-form")));
    guarded.end().await;
}
