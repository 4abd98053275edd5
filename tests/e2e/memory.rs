//! The host's memory with a client that sends requests and never reads: bounded while the client is
//! connected, and released when it has left.

#![cfg(target_os = "linux")]

use consort_tests::framing::Framing;
use consort_tests::frontends::Frontend;
use consort_tests::installation::Installation;
use consort_tests::non_reading_client::NonReadingClient;
use consort_tests::patience::until;
use serde_json::json;

/// The memory that the host may take for one client that does not read, beyond what it takes for
/// others: the 64 MB that it queues, and the answers that are being made.
const BOUND: u64 = 200 << 20;
/// The part of the bound that may stay when the client has left.
const MAX_KEPT: u64 = 32 << 20;

fn memory(world: &Installation) -> u64 {
    world.status()["host_memory"].as_u64().expect("the host's memory")
}

/// The highest resident memory so far, by proc(5).
fn peak(world: &Installation) -> u64 {
    let host = world.status()["host_pid"].as_u64().expect("a host");
    let status = std::fs::read_to_string(format!("/proc/{host}/status")).expect("the host runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("kilobytes") * 1024
}

/// Evaluates code that prints much, and code that ends in an error that all clients are told, for a
/// while.
fn others_work(frontend: &mut Frontend) {
    for _ in 0..10 {
        assert_eq!(frontend.value("(progn (sb-thread:join-thread (sb-thread:make-thread (lambda () (error \"told to all\"))) :default 1) 3)"), "3");
    }
}

fn clients(world: &Installation) -> usize {
    world.status()["clients"].as_array().map_or(0, Vec::len)
}

fn a_non_reading_client(framing: Framing, requests: usize) {
    let world = Installation::new();
    let mut hears = Frontend::Lsp(world.lsp());
    others_work(&mut hears);
    let before = memory(&world);
    let noisy = "(dotimes (i 9000) (write-line \"0123456789\"))";
    let (method, params) = match framing {
        Framing::Headers => {
            ("workspace/executeCommand", json!({"command": "consort.eval", "arguments": [{"code": noisy}]}))
        }
        Framing::Lines => ("tools/list", json!({})),
    };
    let client = NonReadingClient::start(&world, framing, requests, method, params);
    until("its requests", || client.sent() > 0);
    // Until the host has ended its connection, or reads no more of its requests.
    until("the host to give up", || {
        let sent = client.sent();
        others_work(&mut hears);
        clients(&world) == 1 || framing == Framing::Lines && client.sent() == sent
    });
    let highest = peak(&world).saturating_sub(before);
    let sent = client.sent();
    assert!(highest < BOUND, "{highest} bytes for a client that reads nothing, which sent {sent} requests");
    client.end();
    until("one client", || clients(&world) == 1);
    until("memory given back", || memory(&world).saturating_sub(before) < MAX_KEPT);
    drop(hears);
    world.finish();
}

#[test]
fn an_editor_that_never_reads_is_bounded() {
    a_non_reading_client(Framing::Headers, 10_000);
}

#[test]
fn an_agent_that_never_reads_is_bounded() {
    a_non_reading_client(Framing::Lines, 100_000);
}
