//! Random work of two editors and an agent on one host, with faults; the history is checked
//! afterwards.
//!
//! `make soak SECONDS= SEED=` runs it for a time, the tests for a number of steps from a fixed
//! seed. CONSORT_SOAK_HISTORY names the directory of the histories, which are written event by
//! event and removed when no error was found; CONSORT_SOAK_CHECK names a history to check again
//! without a host.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a run of hours says what it did")]

mod driver;
mod history;
mod record;
mod stops;
mod text;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use driver::Driver;
use history::{Event, faults_of};
use record::Record;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[test]
fn random_work_and_faults_leave_a_right_history() {
    if let Ok(file) = std::env::var("CONSORT_SOAK_CHECK") {
        let events = record::read(Path::new(&file));
        if !matches!(events.last(), Some(Event::Ended)) {
            println!(
                "The run did not come to its end; its last events are {:#?}",
                &events[events.len().saturating_sub(5)..]
            );
        }
        assert_eq!(faults_of(&events), [""; 0]);
        return;
    }
    let seed = number("CONSORT_SOAK_SEED").unwrap_or(1);
    let until = number("CONSORT_SOAK_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let steps = number("CONSORT_SOAK_STEPS").unwrap_or(if until.is_some() { u64::MAX } else { 250 });
    let directory = std::env::var_os("CONSORT_SOAK_HISTORY").map_or_else(std::env::temp_dir, PathBuf::from);
    println!("seed {seed}, history {}", directory.display());
    let mut driver = Driver::start(seed, Record::begin(&directory, seed));
    let mut done = 0;
    while done < steps && until.is_none_or(|until| Instant::now() < until) {
        driver.step(done);
        done += 1;
    }
    let (events, file) = driver.finish().end();
    let wrong = faults_of(&events);
    let faults = events.iter().filter(|event| matches!(event, Event::Fault { .. })).count();
    println!("seed {seed}: {done} steps, {faults} faults, {} events, {} wrong", events.len(), wrong.len());
    if wrong.is_empty() {
        std::fs::remove_file(&file).expect("the history");
        return;
    }
    panic!(
        "{}\nThe history is in {}. Again: CONSORT_SOAK_SEED={seed} CONSORT_SOAK_STEPS={done} cargo test --test soak",
        wrong.join("\n"),
        file.display()
    );
}

#[test]
fn a_person_and_an_agent_at_the_same_stops() {
    if std::env::var_os("CONSORT_SOAK_CHECK").is_some() {
        return;
    }
    let seed = number("CONSORT_SOAK_SEED").unwrap_or(1);
    let until = number("CONSORT_SOAK_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let rounds = number("CONSORT_SOAK_ROUNDS").unwrap_or(if until.is_some() { u64::MAX } else { 20 });
    stops::run(seed, |done| done >= rounds || until.is_some_and(|until| Instant::now() >= until));
}
