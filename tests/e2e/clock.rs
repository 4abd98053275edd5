//! A host whose monotonic clock goes backward while it works.

#![cfg(target_os = "linux")]

use std::process::Command;

use consort_tests::frontends::Frontend;
use consort_tests::installation::Installation;
use consort_tests::patience::until;
use rustix::process::{Pid, Signal, kill_process};

/// A library that sets the monotonic clock of processes called `consort` back by an hour once the
/// file JUMPED exists. SBCL cannot work with such a clock, so its own is unchanged.
const FAKER: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, id, time);
    const char *jumped = getenv("JUMPED");
    if (result != 0 || (id != CLOCK_MONOTONIC && id != CLOCK_BOOTTIME) || strcmp(program_invocation_short_name, "consort") != 0)
        return (int)result;
    time->tv_sec += 1000000;
    if (jumped && access(jumped, F_OK) == 0)
        time->tv_sec -= 3600;
    return 0;
}
"#;

#[test]
fn an_image_is_kept_and_becomes_ready_when_the_clock_goes_back() {
    let world = Installation::new();
    let (source, library, jumped) = (world.path("faker.c"), world.path("faker.so"), world.path("jumped"));
    std::fs::write(&source, FAKER).expect("a file");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(compiled.expect("a C compiler, which Rust needs too").success());
    let mut first = world.consort(&["eval", "(+ 1 2)"]);
    assert!(first.env("LD_PRELOAD", &library).env("JUMPED", &jumped).status().expect("consort runs").success());
    let mut frontend = Frontend::Lsp(world.lsp());
    let image = frontend.value("(consort:image-id)");

    std::fs::write(&jumped, "").expect("a file");
    for _ in 0..3 {
        assert_eq!(frontend.value("(progn (sleep 0.2) (consort:image-id))"), image, "the image was given up");
    }
    assert!(frontend.eval("(loop)", 1.0).text.contains("deadline of 1"));
    assert_eq!(frontend.value("(consort:image-id)"), image, "the image was given up");
    let pid =
        world.status()["image"]["pid"].as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).expect("an image");
    kill_process(pid, Signal::KILL).expect("the image is there");
    until("the next image", || frontend.eval("(+ 1 2)", 60.0).values == ["3"]);
    assert_ne!(frontend.value("(consort:image-id)"), image);
    drop(frontend);
    world.finish();
}
