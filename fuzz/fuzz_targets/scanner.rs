//! CONTRIBUTING.md, "Fuzzing", says how it is run.
#![no_main]

#[path = "../invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|data: &[u8]| invariants::check_bytes(data));
