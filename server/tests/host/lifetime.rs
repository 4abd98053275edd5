//! The election, the clients that are let in, and the time when the host leaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use consort::host::VERSION;
use consort::host::hello::{Ack, Hello, Protocol};
use serde_json::json;

use crate::support::{Fixture, Process, agent_params, kill, pids, wait_until, wait_until_gone};

#[test]
fn many_starters_meet_in_one_host() {
    let fixture = Fixture::new();
    let mut agents: Vec<Process> = (0..8).map(|_| Process::start(fixture.command(&["mcp"]))).collect();
    let ids: Vec<u64> = agents.iter_mut().map(|agent| agent.ask("initialize", agent_params(json!({})))).collect();
    for (agent, id) in agents.iter_mut().zip(ids) {
        assert_eq!(agent.answer(id)["result"]["serverInfo"]["name"], "consort");
    }
    // The status has no clients while the session is busy for long.
    wait_until("eight clients", || {
        let status = fixture.status().expect("a host");
        assert_eq!(status["workspace"], json!(fixture.workspace()));
        status["clients"].as_array().is_some_and(|clients| clients.len() == 8)
    });
}

#[test]
fn a_killed_hosts_leftovers_are_replaced() {
    let fixture = Fixture::new();
    drop(fixture.agent());
    let before = fixture.status().unwrap();
    kill(before["host_pid"].as_u64().unwrap());
    pids(&before).into_iter().for_each(wait_until_gone);
    assert!(fixture.place().socket().exists(), "a killed host cannot tidy up");
    assert!(fixture.status().is_none());
    let agent = fixture.agent();
    assert_ne!(fixture.host_pid(), before["host_pid"].as_u64().unwrap());
    drop(agent);
}

#[test]
fn a_stale_socket_is_replaced() {
    let fixture = Fixture::new();
    fixture.place().create().unwrap();
    drop(UnixListener::bind(fixture.place().socket()).unwrap());
    drop(fixture.agent());
}

#[test]
fn the_socket_is_private() {
    let fixture = Fixture::new();
    let _agent = fixture.agent();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(fixture.place().path()), 0o700);
    assert_eq!(mode(&fixture.place().socket()), 0o600);
    assert_eq!(mode(&fixture.place().work()), 0o700);
}

#[test]
fn the_host_leaves_after_its_last_client() {
    let fixture = Fixture::new();
    fixture.file("consort.toml", "[host]\nlinger_s = 0\n");
    let agent = fixture.agent();
    let status = fixture.status().unwrap();
    let second = fixture.agent();
    drop(agent);
    assert!(fixture.status().is_some(), "one is still there");
    drop(second);
    pids(&status).into_iter().for_each(wait_until_gone);
    assert!(!fixture.place().path().exists());
}

#[test]
fn a_signal_is_an_orderly_end() {
    let fixture = Fixture::new();
    let _agent = fixture.agent();
    let status = fixture.status().unwrap();
    let host = rustix::process::Pid::from_raw(status["host_pid"].as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(host, rustix::process::Signal::TERM).unwrap();
    pids(&status).into_iter().for_each(wait_until_gone);
    assert!(!fixture.place().path().exists());
}

#[test]
fn stop_returns_when_all_is_gone() {
    let fixture = Fixture::new();
    let _agent = fixture.agent();
    let status = fixture.status().unwrap();
    let said = fixture.run(&["stop"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("one client was connected"), "{said:?}");
    assert!(!fixture.place().path().exists());
    pids(&status).into_iter().for_each(wait_until_gone);
    let again = fixture.run(&["stop"]);
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stdout).starts_with("No host runs"), "{again:?}");
}

#[test]
fn another_version_is_refused_while_somebody_is_here_and_replaces_the_host_otherwise() {
    let fixture = Fixture::new();
    let agent = fixture.agent();
    let first = fixture.host_pid();
    let other = Hello { version: "999.0.0".into(), ..Hello::new(Protocol::Mcp) };
    let (ack, mut rest) = fixture.hello(&other);
    let error = ack.error.unwrap();
    assert!(!ack.ok && !ack.leaving);
    assert!(error.contains(VERSION) && error.contains("999.0.0") && error.contains("consort stop"), "{error}");
    assert_eq!(rest.read(&mut [0]).unwrap(), 0);

    drop(agent);
    // Counted out by the host a moment later: ask until it says that it leaves.
    let (ack, mut rest) = std::iter::from_fn(|| Some(fixture.hello(&other))).find(|(ack, _)| ack.leaving).unwrap();
    assert!(!ack.ok);
    assert_eq!(rest.read(&mut [0]).unwrap(), 0, "the end of file is the host's end");
    assert!(!fixture.place().path().exists());
    drop(fixture.agent());
    assert_ne!(fixture.host_pid(), first);
}

#[test]
fn a_hello_that_is_none_is_told_and_harms_nobody() {
    let fixture = Fixture::new();
    let agent = fixture.agent();
    let pid = fixture.host_pid();
    for nonsense in [
        "GET / HTTP/1.1\r\n\r\n".to_string(),
        "{}\n".into(),
        "\n".into(),
        "[".repeat(100_000),
        "{\"frontend\":\"back\"}\n".into(),
    ] {
        let mut stream = UnixStream::connect(fixture.place().socket()).unwrap();
        // The host may hang up before all is written.
        let _ = stream.write_all(nonsense.as_bytes());
        let mut answer = String::new();
        if stream.read_to_string(&mut answer).is_ok() && !answer.is_empty() {
            let ack: Ack = serde_json::from_str(&answer).unwrap();
            assert!(ack.error.unwrap().contains("consort lsp"));
        }
    }
    drop(UnixStream::connect(fixture.place().socket()).unwrap());
    assert_eq!(fixture.host_pid(), pid);
    drop(agent);
}

#[test]
fn a_second_serve_says_that_one_runs() {
    let fixture = Fixture::new();
    let _agent = fixture.agent();
    let second = fixture.run(&["serve"]);
    assert_eq!(second.status.code(), Some(2));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("a host runs for") && said.contains(&fixture.host_pid().to_string()), "{said}");
}

#[test]
fn wrong_settings_do_not_keep_it_from_starting() {
    let fixture = Fixture::new();
    fixture.file("consort.toml", "[check]\nnotes = \"perhaps\"\n");
    drop(fixture.agent());
    let doctor = fixture.run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("consort.toml:2: check.notes must be true or false"), "{said}");
}

#[test]
fn a_host_that_ends_by_itself_while_it_is_asked_to_stop_has_ended() {
    let fixture = Fixture::new();
    fixture.place().create().unwrap();
    let socket = fixture.place().socket();
    let listener = UnixListener::bind(&socket).unwrap();
    let host = std::thread::spawn(move || {
        // Whoever only looks whether somebody listens says nothing.
        let (stream, mut lines) = loop {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            if lines.next().is_some() {
                break (stream, lines);
            }
        };
        let ack = Ack { ok: true, version: VERSION.into(), host_pid: 1, error: None, leaving: false };
        (&stream).write_all(format!("{}\n", serde_json::to_string(&ack).unwrap()).as_bytes()).unwrap();
        let request = lines.next().unwrap().unwrap();
        std::fs::remove_file(socket).unwrap();
        request
    });
    let output = fixture.run(&["stop"]);
    assert!(host.join().unwrap().contains("stop"));
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("(process 1) and its image have ended."), "{output:?}");
}
