//! Loading a system is bound to the contents of the files that a person was asked about.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use consort_tests::agent::text;
use consort_tests::patience::until;
use serde_json::{Value, json};

use crate::people::{People, begin, kind, result};
use crate::support::Guarded;

const ASD: &str = "(asdf:defsystem \"sys\" :serial t :components ((:file \"package\") (:file \"code\")))\n";
const PACKAGE: &str = "(defpackage :sys (:use :cl) (:export #:core))\n";

fn write(people: &People, package: &str, value: &str) {
    people.world.write("sys/sys.asd", ASD);
    people.world.write("sys/package.lisp", package);
    people.world.write("sys/code.lisp", &code(value));
}

fn code(value: &str) -> String {
    format!("(in-package :sys)\n(defun core () {value})\n")
}

fn said(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("text").to_owned()
}

fn system() -> Value {
    json!({"system": "sys"})
}

#[test]
fn files_that_change_while_a_person_reads_are_not_loaded() {
    let mut people = People::open();
    write(&people, PACKAGE, ":seen");
    let [path, asd] = ["sys/code.lisp", "sys/sys.asd"].map(|name| people.world.path(name));
    let call = begin(&mut people.agent, "load-system", system());
    let question = people.question();
    let message = question["params"]["message"].as_str().expect("a message");
    assert!(message.contains("compile and load the system sys") && message.contains("code.lisp"), "{message}");
    fs::write(&path, code(":unseen")).expect("written");
    people.press(&question, "Allow");
    let refused = result(&mut people.agent, call);
    assert!(refused["isError"] == true && said(&refused).contains("code.lisp was changed"), "{refused}");
    assert_eq!(people.eval("(find-package :sys)"), "NIL");

    fs::write(&path, code(":seen")).expect("written");
    let define = || fs::write(&asd, ASD.replace("\"code\"", "\"code\") (:file \"more\"")).expect("written");
    let refused = people.decided("load-system", system(), define, "Allow");
    assert!(refused["isError"] == true && said(&refused).contains("sys.asd was changed"), "{refused}");
    assert_eq!(people.eval("(find-package :sys)"), "NIL");
    fs::write(&asd, ASD).expect("written");
    people.allowed("load-system", system(), "Allow");
    assert_eq!(people.eval("(sys:core)"), ":SEEN");
    let [yes, no] = ["load-system allowed", "load-system refused"];
    people.audited(&[yes, no, yes, no, yes]);
    people.end();
}

/// The code of the first file runs before the second is compiled: it writes the second file, or
/// changes where a link leads.
#[test]
fn files_that_the_load_itself_exchanges_are_not_loaded() {
    for exchange in ["write", "link"] {
        let mut people = People::open();
        let outside = people.outside().join("outside.lisp");
        fs::write(&outside, code(":unseen")).expect("written");
        let [path, other] = ["sys/code.lisp", "sys/seen.lisp"].map(|name| people.world.path(name));
        let act = match exchange {
            "write" => format!(
                "(with-open-file (s {path:?} :direction :output :if-exists :supersede)
                   (write-string \"(in-package :sys) (defun core () :unseen)\" s))"
            ),
            _ => format!("(progn (delete-file {path:?}) (sb-posix:symlink {outside:?} {path:?}))"),
        };
        write(&people, &format!("{PACKAGE}(eval-when (:load-toplevel :execute) {act})\n"), ":seen");
        if exchange == "link" {
            fs::rename(&path, &other).expect("renamed");
            symlink(&other, &path).expect("a link");
        }
        let refused = people.decided("load-system", system(), || (), "Allow");
        assert!(refused["isError"] == true && said(&refused).contains("since"), "{exchange}: {refused}");
        assert_eq!(people.eval("(fboundp (find-symbol \"CORE\" \"SYS\"))"), "NIL", "{exchange}");
        people.end();
    }
}

/// Waits until the second of the clock in which a file was last changed is over.
pub(crate) fn settled(path: &Path) {
    let changed = fs::metadata(path).expect("a file").ctime().cast_unsigned();
    until("the second of the change to end", || {
        SystemTime::now().duration_since(UNIX_EPOCH).expect("later").as_secs() > changed + 1
    });
}

/// A system that the workspace's search for sources does not find, in a hidden directory.
#[test]
fn a_system_that_is_not_searched_for_is_loaded_as_it_was() {
    let mut people = People::open();
    people.world.write(".deps/third/third.asd", "(asdf:defsystem \"third\" :components ((:file \"third\")))\n");
    let code = |value: &str| format!("(defpackage :third (:use :cl))\n(in-package :third)\n(defun f () {value})\n");
    let source = people.world.write(".deps/third/third.lisp", &code(":old"));
    let directory = people.world.path(".deps/third/");
    people.eval(&format!("(push #p\"{}/\" asdf:*central-registry*)", directory.display()));
    settled(&source);
    let system = || json!({"system": "third"});
    let exchange = || {
        let other = doors_directory(&directory);
        fs::create_dir(&other).expect("a directory");
        for name in ["third.asd", "third.lisp"] {
            fs::copy(directory.join(name), other.join(name)).expect("copied");
        }
        fs::write(other.join("third.lisp"), code(":new")).expect("written");
        let away = directory.with_file_name("away");
        fs::rename(&directory, &away).expect("renamed");
        fs::rename(&other, &directory).expect("renamed");
    };
    let refused = people.decided("load-system", system(), exchange, "Allow");
    assert!(refused["isError"] == true && said(&refused).contains("since a person was asked"), "{refused}");
    settled(&source);
    settled(&directory);
    people.allowed("load-system", system(), "Allow");
    assert_eq!(people.eval("(third::f)"), ":NEW");
    people.end();
}

fn doors_directory(directory: &Path) -> std::path::PathBuf {
    directory.with_file_name("other")
}

/// Running a system's tests compiles and loads the files that are not loaded in their present
/// state.
#[test]
fn tests_of_a_system_that_is_not_loaded_are_a_load() {
    let mut people = People::open();
    let asd = "(asdf:defsystem \"sys\" :serial t :components ((:file \"package\") (:file \"code\"))
                 :perform (asdf:test-op (o c) (uiop:symbol-call :sys :core)))\n";
    write(&people, PACKAGE, ":old");
    people.world.write("sys/sys.asd", asd);
    people.denied("run-tests", system());
    assert_eq!(people.eval("(find-package :sys)"), "NIL");
    let path = people.world.path("sys/code.lisp");
    let refused =
        people.decided("run-tests", system(), || fs::write(&path, code(":unseen")).expect("written"), "Allow");
    assert!(said(&refused).contains("code.lisp was changed"), "{refused}");
    assert_eq!(people.eval("(find-package :sys)"), "NIL");
    // With time stamps of one second, a file that is as old as its load may have changed.
    for name in ["sys/sys.asd", "sys/package.lisp", "sys/code.lisp"] {
        settled(&people.world.path(name));
    }
    people.allowed("run-tests", system(), "Allow");
    assert_eq!(people.eval("(sys:core)"), ":UNSEEN");
    assert_eq!(people.unasked("run-tests", system())["isError"], false, "nothing is to be loaded");
    settled(&path);
    fs::write(&path, code(":newer")).expect("written");
    people.denied("run-tests", system());
    assert_eq!(people.eval("(sys:core)"), ":UNSEEN");
    assert_eq!(kind(&people.unasked("run-tests", json!({"test": "no-such-test"}))), "");
    let [yes, no] = ["run-tests allowed", "run-tests refused"];
    people.audited(&[no, yes, no, yes, no]);
    people.end();
}

/// The same text is other code in another package, or under another readtable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_told_the_package_and_a_readtable_of_ones_own() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let message = |question: &Value| question["params"]["message"].as_str().expect("a message").to_owned();
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(in-package :keyword)"})).await;
    let question = editor.press("Allow").await;
    assert!(message(&question).contains("\nPackage: COMMON-LISP-USER\n"), "{}", message(&question));
    assert!(!message(&question).contains("READTABLE"), "{}", message(&question));
    agent.result(call).await;
    let code =
        "(cl:progn (cl:set-macro-character #\\! #'cl:identity) (cl:setf (cl:readtable-case cl:*readtable*) :invert))";
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    let question = editor.press("Allow").await;
    assert!(message(&question).contains("\nPackage: KEYWORD\n"), "{}", message(&question));
    agent.result(call).await;

    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(cl:list 1)"})).await;
    let question = editor.question().await;
    let words = "\nTHE READTABLE IS NOT THE STANDARD ONE: readtable-case :INVERT !\n";
    assert!(message(&question).contains(words), "{}", message(&question));
    // Another call of the session changes the package while the person reads.
    let other = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(cl:in-package :cl-user)"})).await;
    let second = editor.question().await;
    editor.reply(&second, json!({"title": "Allow"})).await;
    agent.result(other).await;
    editor.reply(&question, json!({"title": "Allow"})).await;
    let refused = agent.result(call).await;
    assert!(text(&refused).contains("changed since it was allowed"), "{}", text(&refused));
    guarded.refused("package or the readtable").await;
    // Code that is loaded is read with the settings of the image, and not of the session.
    let call = agent.begin("code_compile_string", json!({"code": "(defun f () 1)"})).await;
    let question = editor.press("Deny").await;
    assert!(message(&question).contains("\nPackage: CL-USER\n"), "{}", message(&question));
    assert!(!message(&question).contains("READTABLE"), "{}", message(&question));
    agent.result(call).await;
    guarded.end().await;
}
