//! Attempts to bypass the approval of changes to running code, over the real front ends: the image
//! does not change.

use std::fs;
use std::os::unix::fs::symlink;

use consort_tests::patience::{AMPLE, until};
use consort_tests::wire::Rpc;
use serde_json::{Value, json};

use crate::loading::settled;
use crate::people::{People, begin, kind, result};

fn replacement(value: &str) -> Value {
    json!({"function": "cl-user::core", "new_code": format!("(defun core () {value})"), "package": "CL-USER"})
}

#[test]
fn code_that_does_not_compile_is_refused_without_a_question() {
    let mut people = People::open();
    people.eval("(defun cl-user::core () :old)");
    for (tool, arguments) in [
        ("code_compile_string", json!({"code": "(defun cl-user::core () (+ 1 unknwon-variable))"})),
        ("code_compile_string", json!({"code": "(defun cl-user::core () (list 1)"})),
        ("code_replace_function", replacement("(+ 1 unknwon-variable)")),
    ] {
        assert_eq!(kind(&people.unasked(tool, arguments.clone())), "COMPILATION_ERROR", "{tool} {arguments}");
    }
    assert_eq!(people.eval("(cl-user::core)"), ":OLD");
    people.end();
}

/// A function, and FASLs that would redefine it.
fn with_fasls() -> People {
    let mut people = People::open();
    for name in ["good", "bad"] {
        let path = people.world.write(&format!("{name}.lisp"), &format!("(defun cl-user::core () :{name})\n"));
        people.eval(&format!("(compile-file {:?})", path.display().to_string()));
    }
    people.eval("(defun cl-user::core () :old)");
    people
}

#[test]
fn a_fasl_that_was_exchanged_or_lies_outside_is_not_loaded() {
    let mut people = with_fasls();
    let [good, bad, kept, other] =
        ["good", "bad", "kept", "other"].map(|name| people.world.path(&format!("{name}.fasl")));
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
        assert_eq!(kind(&people.decided("code_load_fasl", load(), change, "Allow")), "REFUSED");
        assert_eq!(people.eval("(cl-user::core)"), ":OLD");
        decisions.extend(["code_load_fasl allowed", "code_load_fasl refused"]);
        people.audited(&decisions);
    }

    let outside = people.outside().join("outside.fasl");
    fs::copy(&bad, &outside).expect("copied");
    symlink(&outside, people.world.path("link.fasl")).expect("a link");
    for path in ["link.fasl", "../outside.fasl", &outside.display().to_string()] {
        assert_eq!(kind(&people.unasked("code_load_fasl", json!({"path": path}))), "OUTSIDE_WORKSPACE", "{path}");
        decisions.push("code_load_fasl refused");
        people.audited(&decisions);
    }
    assert_eq!(people.eval("(cl-user::core)"), ":OLD");

    fs::remove_file(&good).expect("removed");
    fs::copy(&kept, &good).expect("copied");
    people.denied("code_load_fasl", load());
    assert_eq!(people.eval("(cl-user::core)"), ":OLD");
    people.allowed("code_load_fasl", load(), "Allow");
    assert_eq!(people.eval("(cl-user::core)"), ":GOOD");
    people.end();
}

#[test]
fn a_function_is_replaced_and_put_back_only_when_a_person_says_so() {
    let mut people = People::open();
    let tool = "code_replace_function";
    people.eval("(defun cl-user::core () :old)");
    people.denied(tool, replacement(":new"));
    assert_eq!(people.eval("(cl-user::core)"), ":OLD");
    people.allowed(tool, replacement(":new"), "Allow");
    assert_eq!(people.eval("(cl-user::core)"), ":NEW");
    // `Allow` is for one call, also of the same arguments.
    people.denied(tool, replacement(":new"));
    people.denied(tool, replacement(":newer"));
    people.denied("code_undo", json!({}));
    assert_eq!(people.eval("(cl-user::core)"), ":NEW");

    people.allowed(tool, replacement(":newer"), "Allow for this session");
    assert_eq!(people.unasked(tool, replacement(":newest"))["isError"], false);
    assert_eq!(people.eval("(cl-user::core)"), ":NEWEST");
    // `Allow for this session` is for this tool, and not for another of its class.
    people.denied("code_undo", json!({}));
    people.denied("code_reload_package", json!({"package": "CL-USER"}));
    // Nor is it for another client of the same name.
    let mut other: Rpc = people.world.mcp();
    let call = begin(&mut other, tool, replacement(":others"));
    let question = people.question();
    people.press(&question, "Deny");
    assert_eq!(kind(&result(&mut other, call)), "REFUSED");
    assert_eq!(people.eval("(cl-user::core)"), ":NEWEST");
    let (yes, no) = ("code_replace_function allowed", "code_replace_function refused");
    let undo = "code_undo refused";
    people.audited(&[no, yes, no, no, undo, yes, yes, undo, "code_reload_package refused", no]);
    drop(other);
    people.end();
}

#[test]
fn an_image_that_may_not_be_restarted_keeps_what_it_has() {
    let mut people = People::open();
    people.eval("(defparameter cl-user::*state* (list 1 2))");
    let process = people.eval("(sb-unix:unix-getpid)");
    people.denied("image", json!({"action": "restart"}));
    assert_eq!(people.eval("cl-user::*state*"), "(1 2)");
    assert_eq!(people.eval("(sb-unix:unix-getpid)"), process);
    assert_eq!(people.unasked("image", json!({"action": "status"}))["isError"], false);
    people.audited(&["image refused"]);
    people.allowed("image", json!({"action": "restart"}), "Allow");
    assert_eq!(people.eval("(boundp 'cl-user::*state*)"), "NIL");
    people.end();
}

/// A load waits while another reload is in progress, whose code leaves time to exchange the file.
#[test]
fn a_fasl_that_is_exchanged_while_it_waits_is_not_loaded() {
    let mut people = with_fasls();
    let [good, bad, held] = ["good.fasl", "bad.fasl", "held"].map(|name| people.world.path(name).display().to_string());
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
    let arguments = json!({"command": "consort.eval", "arguments": [{"code": code, "timeout": AMPLE}]});
    let other = people.editor.begin("workspace/executeCommand", arguments);
    until("the lock to be held", || people.world.path("held").exists());
    let refused = people.decided("code_load_fasl", json!({"path": "good.fasl"}), || (), "Allow");
    assert_eq!(kind(&refused), "FILE_CHANGED");
    assert_eq!(people.editor.wait(other)["result"]["values"], json!([":EXCHANGED"]));
    assert_eq!(people.eval("(cl-user::core)"), ":OLD");
    people.audited(&["code_load_fasl allowed"]);
    people.end();
}

/// A loaded system of two files, which define a package.
fn with_system() -> People {
    let mut people = People::open();
    people.world.write(
        "sys/sys.asd",
        "(asdf:defsystem \"sys\" :serial t :components ((:file \"package\") (:file \"code\")))\n",
    );
    people.world.write("sys/package.lisp", "(defpackage :sys (:use :cl) (:export #:core))\n");
    people.world.write("sys/code.lisp", "(in-package :sys)\n(defun core () :old)\n");
    people.allowed("load-system", json!({"system": "sys"}), "Allow");
    people
}

fn code(people: &People, value: &str) {
    people.world.write("sys/code.lisp", &format!("(in-package :sys)\n(defun core () {value})\n"));
}

/// A person reads the lines that differ from what the image has, not the files.
#[test]
fn the_question_of_a_reload_has_what_changed_since_it_was_loaded() {
    let mut people = with_system();
    // Loaded again, so that the file is surely older than the load.
    settled(&people.world.path("sys/code.lisp"));
    people.allowed("code_reload_system", json!({"system": "sys", "force": true}), "Allow");
    code(&people, ":new");
    // With `force`, because ASDF compares times in seconds.
    let call = begin(&mut people.agent, "code_reload_system", json!({"system": "sys", "force": true}));
    let question = people.question();
    let message = question["params"]["message"].as_str().expect("a message");
    for words in ["1 of 2 files changed since they were loaded", "-(defun core () :old)", "+(defun core () :new)"] {
        assert!(message.contains(words), "no {words:?} in {message}");
    }
    assert!(!message.contains("defpackage"), "{message}");
    people.press(&question, "Allow");
    assert_eq!(result(&mut people.agent, call)["isError"], false);
    assert_eq!(people.eval("(sys:core)"), ":NEW");
    people.end();
}

/// The approval is for the files' text at the time of the question.
#[test]
fn sources_that_change_while_a_person_reads_are_not_reloaded() {
    let mut people = with_system();
    let mut decisions = vec!["load-system allowed"];
    let system = || json!({"system": "sys", "force": true});
    let package = || json!({"package": "SYS"});
    let asd =
        "(asdf:defsystem \"sys\" :serial t :components ((:file \"package\") (:file \"code\") (:file \"more\")))\n";
    for (tool, arguments) in [("code_reload_system", system()), ("code_reload_package", package())] {
        code(&people, ":seen");
        let path = people.world.path("sys/code.lisp");
        let exchange = || fs::write(&path, "(in-package :sys)\n(defun core () :unseen)\n").expect("written");
        let refused = people.decided(tool, arguments.clone(), exchange, "Allow");
        assert_eq!(kind(&refused), "REFUSED");
        assert!(refused["content"][0]["text"].to_string().contains("code.lisp was changed"), "{refused}");
        assert_eq!(people.eval("(sys:core)"), ":OLD");
        decisions.extend(if tool == "code_reload_system" {
            ["code_reload_system allowed", "code_reload_system refused"]
        } else {
            ["code_reload_package allowed", "code_reload_package refused"]
        });
        people.audited(&decisions);
    }
    // The same for the file that defines the system, and for a file that is new in it.
    code(&people, ":old");
    let path = people.world.path("sys");
    let extend = || {
        fs::write(path.join("more.lisp"), "(in-package :sys)\n(defun core () :more)\n").expect("written");
        fs::write(path.join("sys.asd"), asd).expect("written");
    };
    assert_eq!(kind(&people.decided("code_reload_system", system(), extend, "Allow")), "REFUSED");
    assert_eq!(people.eval("(sys:core)"), ":OLD");
    // Files that were shown and not changed since are loaded, also the new one.
    people.allowed("code_reload_system", system(), "Allow");
    assert_eq!(people.eval("(sys:core)"), ":MORE");
    // A file that is written again with the same contents counts as unchanged.
    fs::write(path.join("more.lisp"), "(in-package :sys)\n(defun core () :again)\n").expect("written");
    let again = || fs::write(path.join("more.lisp"), "(in-package :sys)\n(defun core () :again)\n").expect("written");
    assert_eq!(people.decided("code_reload_package", package(), again, "Allow")["isError"], false);
    assert_eq!(people.eval("(sys:core)"), ":AGAIN");
    people.end();
}

/// The code of the first file runs before the second is read.
#[test]
fn sources_that_the_reload_itself_changes_are_not_loaded() {
    for (tool, arguments) in [
        ("code_reload_system", json!({"system": "sys", "force": true})),
        ("code_reload_package", json!({"package": "SYS"})),
    ] {
        let mut people = with_system();
        let path = people.world.path("sys/code.lisp").display().to_string();
        let package = format!(
            "(defpackage :sys (:use :cl) (:export #:core))
             (eval-when (:load-toplevel :execute)
               (with-open-file (s {path:?} :direction :output :if-exists :supersede)
                 (write-string \"(in-package :sys) (defun core () :unseen)\" s)))\n"
        );
        people.world.write("sys/package.lisp", &package);
        code(&people, ":seen");
        assert_eq!(kind(&people.decided(tool, arguments, || (), "Allow")), "FILE_CHANGED");
        assert_eq!(people.eval("(sys:core)"), ":OLD");
        people.end();
    }
}

#[test]
fn a_fasl_that_changed_is_not_loaded_again_into_a_new_image() {
    let mut people = with_fasls();
    let [good, bad, kept] = ["good", "bad", "kept"].map(|name| people.world.path(&format!("{name}.fasl")));
    people.allowed("code_load_fasl", json!({"path": "good.fasl"}), "Allow");
    people.allowed("image", json!({"action": "restart"}), "Allow");
    assert_eq!(people.eval("(cl-user::core)"), ":GOOD");
    fs::copy(&good, &kept).expect("copied");
    fs::copy(&bad, &good).expect("copied");
    let restarted = people.decided("image", json!({"action": "restart"}), || (), "Allow");
    assert_eq!(people.eval("(fboundp 'cl-user::core)"), "NIL");
    // The answer, or the next one, names files that were not loaded again.
    let status = people.unasked("image", json!({"action": "status"}));
    let told = format!("{restarted}{status}");
    assert!(told.contains("could not be loaded again") && told.contains("it was changed since"), "{told}");
    people.end();
}
