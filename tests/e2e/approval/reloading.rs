//! Ways round the approval of what changes the running code, over the real doors: the image keeps what it has.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use consort_tests::wire::Rpc;
use consort_tests::world::PATIENCE;
use serde_json::{Value, json};

use crate::doors::{Doors, begin, kind, result};

fn replacement(value: &str) -> Value {
    json!({"function": "cl-user::core", "new_code": format!("(defun core () {value})"), "package": "CL-USER"})
}

/// A function, and FASLs that would change it.
fn with_fasls() -> Doors {
    let mut doors = Doors::open();
    for name in ["good", "bad"] {
        let path = doors.house.write(&format!("{name}.lisp"), &format!("(defun cl-user::core () :{name})\n"));
        doors.eval(&format!("(compile-file {:?})", path.display().to_string()));
    }
    doors.eval("(defun cl-user::core () :old)");
    doors
}

#[test]
fn a_fasl_that_was_exchanged_or_lies_outside_is_not_loaded() {
    let mut doors = with_fasls();
    let [good, bad, kept, other] =
        ["good", "bad", "kept", "other"].map(|name| doors.house.path(&format!("{name}.fasl")));
    let load = || json!({"path": "good.fasl"});
    fs::copy(&good, &kept).expect("copied");
    let changes: [&dyn Fn(); 3] = [
        &|| fs::write(&good, fs::read(&bad).expect("a file")).expect("written"),
        &|| {
            fs::copy(&bad, &other).expect("copied");
            fs::rename(&other, &good).expect("renamed");
        },
        &|| {
            fs::remove_file(&good).expect("removed");
            symlink(&bad, &good).expect("a link");
        },
    ];
    let mut decisions = Vec::new();
    for change in changes {
        drop(fs::remove_file(&good));
        fs::copy(&kept, &good).expect("copied");
        assert_eq!(kind(&doors.decided("code_load_fasl", load(), change, "Allow")), "REFUSED");
        assert_eq!(doors.eval("(cl-user::core)"), ":OLD");
        decisions.extend(["code_load_fasl allowed", "code_load_fasl refused"]);
        doors.audited(&decisions);
    }

    let outside = doors.outside().join("outside.fasl");
    fs::copy(&bad, &outside).expect("copied");
    symlink(&outside, doors.house.path("link.fasl")).expect("a link");
    for path in ["link.fasl", "../outside.fasl", &outside.display().to_string()] {
        assert_eq!(kind(&doors.unasked("code_load_fasl", json!({"path": path}))), "OUTSIDE_WORKSPACE", "{path}");
        decisions.push("code_load_fasl refused");
        doors.audited(&decisions);
    }
    assert_eq!(doors.eval("(cl-user::core)"), ":OLD");

    fs::remove_file(&good).expect("removed");
    fs::copy(&kept, &good).expect("copied");
    doors.denied("code_load_fasl", load());
    assert_eq!(doors.eval("(cl-user::core)"), ":OLD");
    doors.allowed("code_load_fasl", load(), "Allow");
    assert_eq!(doors.eval("(cl-user::core)"), ":GOOD");
    doors.end();
}

#[test]
fn a_function_is_replaced_and_put_back_only_when_a_person_says_so() {
    let mut doors = Doors::open();
    let tool = "code_replace_function";
    doors.eval("(defun cl-user::core () :old)");
    doors.denied(tool, replacement(":new"));
    assert_eq!(doors.eval("(cl-user::core)"), ":OLD");
    doors.allowed(tool, replacement(":new"), "Allow");
    assert_eq!(doors.eval("(cl-user::core)"), ":NEW");
    // Once means once, also for the very same call.
    doors.denied(tool, replacement(":new"));
    doors.denied(tool, replacement(":newer"));
    doors.denied("code_undo", json!({}));
    assert_eq!(doors.eval("(cl-user::core)"), ":NEW");

    doors.allowed(tool, replacement(":newer"), "Allow for this session");
    assert_eq!(doors.unasked(tool, replacement(":newest"))["isError"], false);
    assert_eq!(doors.eval("(cl-user::core)"), ":NEWEST");
    // For this tool, and not for another of its class.
    doors.denied("code_undo", json!({}));
    doors.denied("code_reload_package", json!({"package": "CL-USER"}));
    // Nor for another client, of the same name.
    let mut other: Rpc = doors.house.mcp();
    let call = begin(&mut other, tool, replacement(":others"));
    let question = doors.question();
    doors.press(&question, "Deny");
    assert_eq!(kind(&result(&mut other, call)), "REFUSED");
    assert_eq!(doors.eval("(cl-user::core)"), ":NEWEST");
    let (yes, no) = ("code_replace_function allowed", "code_replace_function refused");
    let undo = "code_undo refused";
    doors.audited(&[no, yes, no, no, undo, yes, yes, undo, "code_reload_package refused", no]);
    drop(other);
    doors.end();
}

#[test]
fn an_image_that_may_not_be_restarted_keeps_what_it_has() {
    let mut doors = Doors::open();
    doors.eval("(defparameter cl-user::*state* (list 1 2))");
    let process = doors.eval("(sb-unix:unix-getpid)");
    doors.denied("image", json!({"action": "restart"}));
    assert_eq!(doors.eval("cl-user::*state*"), "(1 2)");
    assert_eq!(doors.eval("(sb-unix:unix-getpid)"), process);
    assert_eq!(doors.unasked("image", json!({"action": "status"}))["isError"], false);
    doors.audited(&["image refused"]);
    doors.allowed("image", json!({"action": "restart"}), "Allow");
    assert_eq!(doors.eval("(boundp 'cl-user::*state*)"), "NIL");
    doors.end();
}

/// A load waits while another reload takes place, whose code has time for this.
#[test]
fn a_fasl_that_is_exchanged_while_it_waits_is_not_loaded() {
    let mut doors = with_fasls();
    let [good, bad, held] = ["good.fasl", "bad.fasl", "held"].map(|name| doors.house.path(name).display().to_string());
    let code = format!(
        "(let ((lock consort::*reload-lock*))
           (flet ((waits-p (thread)
                    (let ((for (sb-thread::thread-waiting-for thread)))
                      (eq lock (if (consp for) (cdr for) for)))))
             (sb-thread:with-mutex (lock)
               (with-open-file (s {held:?} :direction :output))
               (loop until (some #'waits-p (sb-thread:list-all-threads)) do (sleep 0.01))
               (rename-file {bad:?} {good:?})
               :exchanged)))"
    );
    let arguments = json!({"command": "consort.eval", "arguments": [{"code": code}]});
    let other = doors.editor.begin("workspace/executeCommand", arguments);
    let until = Instant::now() + PATIENCE;
    while !doors.house.path("held").exists() {
        assert!(Instant::now() < until, "the lock is not held");
        std::thread::sleep(Duration::from_millis(10));
    }
    let refused = doors.decided("code_load_fasl", json!({"path": "good.fasl"}), || (), "Allow");
    assert_eq!(kind(&refused), "FILE_CHANGED");
    assert_eq!(doors.editor.wait(other)["result"]["values"], json!([":EXCHANGED"]));
    assert_eq!(doors.eval("(cl-user::core)"), ":OLD");
    doors.audited(&["code_load_fasl allowed"]);
    doors.end();
}
