//! Programs that evaluated code starts: listed, and ended with the image unless the person wants
//! them to stay.

#![cfg(target_os = "linux")]

use consort_tests::frontends::Frontend;
use consort_tests::installation::Installation;
use consort_tests::patience::{AMPLE, found, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Programs of each kind: waited for by nobody, behind a shell, one that ignores SIGTERM, and a
/// daemon, whose parent has ended.
const PROGRAMS: &str = r#"(progn
  (sb-ext:run-program "/bin/sleep" '("91001") :wait nil)
  (uiop:launch-program "sleep 91002 & sleep 91002")
  (sb-ext:run-program "/bin/sh" '("-c" "trap '' TERM; while :; do sleep 91003; done") :wait nil)
  (sb-ext:run-program "/bin/sh" '("-c" "setsid sleep 91004 </dev/null >/dev/null 2>&1 &"))
  :started)"#;
const COUNT: usize = 7;

fn started(world: &Installation, frontend: &mut Frontend) -> Vec<u32> {
    assert_eq!(frontend.value(PROGRAMS), ":STARTED");
    found("the programs in the status", || {
        let status = world.status();
        let programs = status["programs"].as_array().expect("a list of programs");
        let sleep = |program: &&Value| program["command"].as_str().is_some_and(|line| line.contains("9100"));
        let pids: Vec<u32> =
            programs.iter().filter(sleep).filter_map(|one| one["pid"].as_u64()?.try_into().ok()).collect();
        (pids.len() == COUNT).then_some(pids)
    })
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).expect("a process id"), signal).expect("it is there");
}

#[test]
fn they_are_listed_and_end_with_the_host() {
    let world = Installation::new();
    let mut frontend = Frontend::Lsp(world.lsp());
    started(&world, &mut frontend);
    let page = String::from_utf8(world.run(&["status"]).stdout).expect("text");
    assert!(page.contains("programs") && page.contains("sleep 91004 (process"), "{page}");
    drop(frontend);
    assert!(world.run(&["stop"]).status.success());
    // A busy machine may take a while to end a process that was killed.
    until("the programs to end", || !world.processes().iter().any(|line| line.contains("9100")));
    world.finish();
}

#[test]
fn they_end_with_an_image_that_is_restarted_or_killed() {
    let world = Installation::new();
    let mut frontend = Frontend::Lsp(world.lsp());
    started(&world, &mut frontend);
    let restarted =
        frontend.rpc().call("workspace/executeCommand", json!({"command": "consort.restartImage", "arguments": []}));
    assert!(restarted.get("error").is_none(), "{restarted}");
    until("the programs of a restarted image to end", || world.status()["programs"] == json!([]));
    started(&world, &mut frontend);
    let image = world.status()["image"]["pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("an image");
    signal(image, Signal::KILL);
    until("the programs of a killed image to end", || world.status()["programs"] == json!([]));
    // The first answer may report that the image was lost.
    until("the next image", || !frontend.eval("(+ 1 2)", AMPLE).failed);
    drop(frontend);
    world.finish();
}

#[test]
fn they_end_when_the_host_is_killed() {
    let world = Installation::new();
    let mut frontend = Frontend::Mcp(world.mcp());
    started(&world, &mut frontend);
    let host = world.status()["host_pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("a host");
    signal(host, Signal::KILL);
    drop(frontend);
    // The image cannot know a daemon, whose parent has ended.
    let left = || world.processes().into_iter().filter(|line| line.contains("9100") && !line.contains("91004")).count();
    until("the programs of a killed host's image to end", || left() == 0);
    for line in world.processes().iter().filter(|line| line.contains("91004")) {
        signal(line.split(' ').next().and_then(|pid| pid.parse().ok()).expect("a process id"), Signal::KILL);
    }
    world.finish();
}

#[test]
fn they_stay_for_a_person_who_wants_it() {
    let world = Installation::new();
    world.configure("[lisp]\nend_programs = false\n");
    let mut frontend = Frontend::Lsp(world.lsp());
    let programs = started(&world, &mut frontend);
    drop(frontend);
    assert!(world.run(&["stop"]).status.success());
    let left: Vec<u32> = world.processes().iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
    for pid in &programs {
        assert!(left.contains(pid), "{pid} is not among {left:?}");
    }
    programs.iter().for_each(|pid| signal(*pid, Signal::KILL));
    world.finish();
}

#[test]
fn the_copies_of_a_chain_are_none() {
    let world = Installation::new();
    let mut frontend = Frontend::Lsp(world.lsp());
    let uri = format!("file://{}", world.workspace().join("a.lisp").display());
    let text = "(defun f (x) x)\n(defun g (x) (f x))\n";
    let document = json!({"uri": uri, "languageId": "commonlisp", "version": 1, "text": text});
    frontend.rpc().notify("textDocument/didOpen", json!({"textDocument": document}));
    let pull = json!({"textDocument": {"uri": uri}});
    frontend.rpc().call("textDocument/diagnostic", pull.clone());
    let change =
        json!([{"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}, "text": " "}]);
    frontend.rpc().notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": change}),
    );
    until("a chain", || {
        frontend.rpc().call("textDocument/diagnostic", pull.clone());
        world.status()["chains"]["standing"] == 1
    });
    assert_eq!(world.status()["programs"], json!([]));
    drop(frontend);
    world.finish();
}
