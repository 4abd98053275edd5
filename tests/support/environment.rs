//! The environment of the programs that tests start: made here, and not inherited. Also included by
//! the tests of `server`.

use std::process::Command;

/// The variables that are kept: where programs are, the marks of the tests, and the variables that
/// `scripts/isolated` sets for ASDF.
const KEPT_VARIABLES: [&str; 8] = [
    "PATH",
    "CONSORT_MEMORY_FACTS",
    "CONSORT_TEST_PLACE",
    "CONSORT_TEST_RUN",
    "CL_SOURCE_REGISTRY",
    "ASDF_OUTPUT_TRANSLATIONS",
    "RUST_BACKTRACE",
    "TMPDIR",
];

/// Removes all variables from the environment of `command` but those that a test's program may
/// have.
pub fn clear_environment(command: &mut Command) {
    command.env_clear();
    for name in KEPT_VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let locale = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };
    command.env("LANG", locale).env("TZ", "UTC").env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
}
