//! Random work of two editors and an agent on one host, with faults; the history is checked
//! afterwards.
//!
//! `make soak SECONDS= SEED=` runs it for a time, the tests for a number of steps from a fixed
//! seed. CONSORT_SOAK_HISTORY names the directory of the histories, CONSORT_SOAK_CHECK a history
//! that is checked again without a host.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a run of hours says what it did")]

mod driver;
mod history;
mod text;

use std::time::{Duration, Instant};

use driver::Driver;
use history::{Event, faults_of};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[test]
fn random_work_and_faults_leave_a_right_history() {
    if let Ok(file) = std::env::var("CONSORT_SOAK_CHECK") {
        let lines = std::fs::read_to_string(&file).expect("a history");
        let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        assert_eq!(faults_of(&events), [""; 0]);
        return;
    }
    let seed = number("CONSORT_SOAK_SEED").unwrap_or(1);
    let until = number("CONSORT_SOAK_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let steps = number("CONSORT_SOAK_STEPS").unwrap_or(if until.is_some() { u64::MAX } else { 250 });
    println!("seed {seed}");
    let mut driver = Driver::start(seed);
    let mut done = 0;
    while done < steps && until.is_none_or(|until| Instant::now() < until) {
        driver.step(done);
        done += 1;
    }
    let events = driver.finish();
    let wrong = faults_of(&events);
    let faults = events.iter().filter(|event| matches!(event, Event::Fault { .. })).count();
    println!("seed {seed}: {done} steps, {faults} faults, {} events, {} wrong", events.len(), wrong.len());
    if wrong.is_empty() {
        return;
    }
    let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
    let directory =
        std::env::var("CONSORT_SOAK_HISTORY").unwrap_or_else(|_| std::env::temp_dir().display().to_string());
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = format!("{directory}/soak-{seed}.jsonl");
    std::fs::write(&file, lines.join("\n")).expect("a file");
    panic!(
        "{}\nThe history is in {file}. Again: CONSORT_SOAK_SEED={seed} CONSORT_SOAK_STEPS={done} cargo test --test soak",
        wrong.join("\n")
    );
}
