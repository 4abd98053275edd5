//! Breakpoints of agents outlive hosts that are killed, and connections that break.

use std::path::Path;

use serde_json::json;

use crate::support::{Fixture, Process, agent_params, kill, remove_at_once, wait_until, wait_until_gone};

/// Sets the person's rule for breakpoints, for hosts that start from now on.
fn rule(fixture: &Fixture, rule: &str) {
    let settings = format!("[approval]\nmodify-running-code = \"{rule}\"\n");
    fixture.file("home/consort/config.toml", &settings);
}

/// An agent that may set breakpoints without a question, and has one in `shop.lisp`, line 2.
fn agent_with_a_breakpoint(fixture: &Fixture) -> Process {
    agent_with_a_breakpoint_and(fixture, &[])
}

/// An agent with a breakpoint, whose bridge has further variables in its environment.
fn agent_with_a_breakpoint_and(fixture: &Fixture, variables: &[(&str, &str)]) -> Process {
    rule(fixture, "allow");
    fixture.file("shop.lisp", "(defun price (net)\n  (+ net 1))\n");
    let mut command = fixture.command(&["mcp"]);
    command.env("XDG_CONFIG_HOME", fixture.workspace().join("home")).envs(variables.iter().copied());
    let mut agent = Process::start(command);
    agent.request("initialize", agent_params(json!({})));
    agent.send(&json!({"method": "notifications/initialized"}));
    assert!(agent.eval("(load \"shop.lisp\")").starts_with("=> T"));
    let set = json!({"name": "set-breakpoints", "arguments": {"file": "shop.lisp", "lines": [2]}});
    let set = agent.request("tools/call", set);
    assert_eq!(set["result"]["content"][0]["text"], "shop.lisp:2: set", "{set}");
    agent
}

#[test]
fn breakpoints_of_an_agent_outlive_a_killed_host() {
    let fixture = Fixture::new();
    let mut agent = agent_with_a_breakpoint(&fixture);
    let record = fixture.place().breakpoints();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&record).expect("a record").permissions());
    assert_eq!(mode & 0o777, 0o600);
    // The record is there again when the directory was removed and made again.
    let base = fixture.place().path().parent().map(Path::to_owned).expect("a parent");
    remove_at_once(&base);
    wait_until("the record is written again", || record.exists());

    let host = fixture.host_pid();
    kill(host);
    wait_until_gone(host);
    let loaded = agent.eval_in_the_next("(load \"shop.lisp\")");
    let kept = "Your breakpoints were kept when the connection to the Consort host ended: shop.lisp, line 2.";
    assert!(loaded.contains(kept), "{loaded}");
    let stopped = agent.eval("(cl-user::price 1)");
    assert!(stopped.starts_with("[STOPPED] Stop ") && !stopped.contains("were kept"), "{stopped}");
    let (code, said) = agent.finish();
    assert_eq!(code, Some(0), "{said}");
    wait_until("the record of the agent that left is gone", || !record.exists());
}

#[test]
fn breakpoints_that_the_settings_deny_by_now_are_dropped() {
    let fixture = Fixture::new();
    let mut agent = agent_with_a_breakpoint(&fixture);
    let host = fixture.host_pid();
    kill(host);
    wait_until_gone(host);
    rule(&fixture, "deny");
    let loaded = agent.eval_in_the_next("(load \"shop.lisp\")");
    let dropped = "Some of your breakpoints were removed, because approval.modify-running-code is \"deny\" now: shop.lisp, line 2.";
    assert!(loaded.contains(dropped) && !loaded.contains("were kept"), "{loaded}");
    assert_eq!(agent.eval("(cl-user::price 1)"), "=> 2");
}

/// Debug builds alone make failures on request.
#[cfg(debug_assertions)]
#[test]
fn breakpoints_of_an_agent_outlive_a_connection_that_breaks() {
    let fixture = Fixture::new();
    let told = fixture.workspace().join("told");
    // Behind the hello, the handshake and two calls: the call below.
    let fault = [("CONSORT_FAULT", "mcp/write:6"), ("CONSORT_FAULT_RECORD", told.to_str().expect("a path"))];
    let mut agent = agent_with_a_breakpoint_and(&fixture, &fault);
    let host = fixture.host_pid();
    assert!(!told.exists(), "the connection has not broken yet");
    let stopped = agent.eval("(cl-user::price 1)");
    assert!(told.exists(), "the connection broke");
    assert_eq!(fixture.host_pid(), host, "the host lives");
    let kept = "Your breakpoints were kept when the connection to the Consort host ended: shop.lisp, line 2.";
    assert!(stopped.starts_with("[STOPPED] Stop ") && stopped.contains(kept), "{stopped}");
}
