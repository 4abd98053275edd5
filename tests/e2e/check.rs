//! `consort check` for people and scripts: text, JSON lines, exit codes; and whole systems, which
//! are never loaded into the image itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Instant;

use consort_tests::installation::Installation;
use consort_tests::patience::found;
use consort_tests::registry::LIBRARIES;
use serde_json::{Value, json};

/// Runs `consort check ARGS`, with a long time limit for slow machines.
fn check(world: &Installation, args: &[&str]) -> Output {
    world.run(&[&["check", "--timeout", "900"], args].concat())
}

/// Creates a workspace with a copy of a directory of this repository at its top.
fn with_copy(of: &str) -> Installation {
    let world = Installation::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of);
    for entry in fs::read_dir(source).expect("the directory is there") {
        let path = entry.expect("it can be read").path();
        let file = path.file_name().and_then(|file| file.to_str()).expect("a name");
        world.write(file, &fs::read_to_string(&path).expect("a text"));
    }
    world
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("it was killed: {output:?}"))
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints UTF-8")
}

/// `file:line code` of each JSON line.
fn told(output: &Output) -> Vec<String> {
    stdout(output)
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let row = line["range"]["start"]["line"].as_u64().expect("a line") + 1;
            format!("{}:{row} {}", line["file"].as_str().expect("a file"), line["code"].as_str().expect("a code"))
        })
        .collect()
}

/// The systems that the image has.
fn loaded(world: &Installation) -> Vec<String> {
    // The status does not wait for an image that is busy.
    found("the image's systems in the status", || {
        serde_json::from_value(world.status()["image"]["facts"]["systems"].clone()).ok()
    })
}

#[test]
fn lint_rules_hold_in_a_system_that_is_not_loaded() {
    let world = Installation::new();
    world.write("consort.toml", "[lint]\nrules = [\"negated-when\"]\n");
    world.write("s.asd", "(asdf:defsystem \"s\" :components ((:file \"a\")))\n");
    world.write("a.lisp", "(defpackage :s (:use :cl)) (in-package :s)\n(defun f (x) (when (not x) 1))\n");
    for args in [["--json", "a.lisp"], ["--json", "s.asd"]] {
        let output = check(&world, &args);
        assert_eq!(told(&output), ["a.lisp:2 lint-negated-when"], "{output:?}");
    }
    world.finish();
}

#[test]
fn a_check_that_waits_says_for_whom() {
    let world = Installation::new();
    world.write("a.lisp", "(defun f () 1)\n");
    let go = world.path("go");
    let code = format!(
        "(let ((held (sb-thread:make-semaphore)))
           (sb-thread:make-thread (lambda ()
                                    (sb-kernel::with-world-lock ()
                                      (sb-thread:signal-semaphore held)
                                      (loop until (probe-file {go:?}) do (sleep 0.01))))
                                  :name \"holder\")
           (sb-thread:wait-on-semaphore held))"
    );
    let output = world.run(&["eval", &code]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut command = world.consort(&["check", "--timeout", "900", "a.lisp"]);
    let mut check = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let stderr = check.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("the thread \"holder\"")), "it says which thread it waits for");
    fs::write(&go, "").expect("a file");
    let output = check.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    world.finish();
}

#[test]
fn a_system_is_checked_whole_and_never_loaded() {
    let world = with_copy("tests/fixtures/shop");
    let output = check(&world, &["shop.asd"]);
    assert_eq!(code(&output), 1, "{output:?}");
    insta::assert_snapshot!(stdout(&output));
    let output = check(&world, &["--json", "shop.asd"]);
    assert_eq!(code(&output), 1, "{output:?}");
    insta::assert_snapshot!(told(&output).join("\n"));
    assert!(!loaded(&world).contains(&"shop".to_owned()), "the image itself was changed");
    world.finish();
}

#[test]
fn a_clean_system_says_so() {
    let world = with_copy("examples/telegraph");
    let output = check(&world, &["telegraph.asd"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, "no problems in 4 files\n"), "{output:?}");
    world.finish();
}

#[test]
fn a_file_of_a_system_below_is_checked_with_the_systems_of_the_root() {
    let world = Installation::new();
    world.write("liba/liba.asd", "(defsystem \"liba\" :depends-on (\"libb\") :components ((:file \"a\")))\n");
    world.write("liba/a.lisp", "(defun cl-user::a (x) (list (libb:b x) (no-such x)))\n");
    world.write("libb/libb.asd", "(defsystem \"libb\" :components ((:file \"b\")))\n");
    world.write("libb/b.lisp", "(defpackage :libb (:use :cl) (:export #:b))\n(in-package :libb)\n(defun b (x) x)\n");
    let output = check(&world, &["--json", "liba/a.lisp"]);
    assert_eq!(told(&output), ["liba/a.lisp:1 undefined-function"], "{output:?}");
    // It is the host of the other commands in this directory.
    assert_eq!(world.status()["workspace"], json!(world.workspace().canonicalize().expect("it is there")));
    let evaluated = world.run(&["eval", "(+ 1 2)"]);
    assert_eq!(stdout(&evaluated).trim(), "=> 3", "{evaluated:?}");
    assert_eq!(evaluated.stderr, b"", "{evaluated:?}");
    let abridged = world.run(&["eval", "(make-list 101)"]);
    assert_eq!(String::from_utf8_lossy(&abridged.stderr), "; abridged; `--raw` prints all of it\n", "{abridged:?}");
    let whole = world.run(&["eval", "--raw", "(make-list 101)"]);
    assert_eq!((stdout(&whole).matches("NIL").count(), whole.stderr.as_slice()), (101, &b""[..]), "{whole:?}");
    assert_eq!(world.processes().iter().filter(|process| process.contains(" serve")).count(), 1);
    world.finish();
}

#[test]
fn a_file_and_a_directory_of_systems_that_are_not_loaded() {
    let world = with_copy("examples/telegraph");
    let output = check(&world, &["--json", "timing.lisp"]);
    assert_eq!(code(&output), 1, "{output:?}");
    let of_file = told(&output);
    assert!(of_file.contains(&"timing.lisp:10 undefined-variable".to_owned()), "{of_file:?}");
    let output = check(&world, &["--json", "."]);
    assert_eq!(code(&output), 1, "{output:?}");
    let of_directory = told(&output);
    insta::assert_snapshot!(of_directory.join("\n"));
    let lost: Vec<_> = of_file.iter().filter(|line| !of_directory.contains(&format!("./{line}"))).collect();
    assert!(lost.is_empty(), "{lost:?} {of_directory:?}");
    assert!(!loaded(&world).iter().any(|system| system.starts_with("telegraph")));
    world.finish();
}

#[test]
fn what_is_wrong_with_a_definition_is_told_in_it() {
    let world = Installation::new();
    world.write("lost.asd", "(defsystem \"lost\" :depends-on (\"no-such-system\") :components ((:file \"a\")))\n");
    world.write("a.lisp", "(defun f () (g))\n");
    world.write("none.asd", ";; nothing\n");
    world.write("torn.asd", "(defsystem \"torn\"\n  :components ((:file \"a\"))\n");
    world.write("bare.asd", "(defsystem \"bare\" :components ((:file \"gone\")))\n");
    for (asd, words) in [
        ("lost.asd", "no-such-system"),
        ("none.asd", "No system is defined here."),
        ("torn.asd", "never closed"),
        ("bare.asd", "gone.lisp"),
    ] {
        let output = check(&world, &[asd]);
        assert_eq!(code(&output), 1, "{asd}: {output:?}");
        assert!(stdout(&output).contains(words), "{asd}: {}", stdout(&output));
    }
    let output = check(&world, &["no-such.asd"]);
    assert_eq!(code(&output), 2, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such.asd"), "{output:?}");
    world.finish();
}

#[test]
fn a_missing_parenthesis_costs_one_form_of_one_file() {
    let world = Installation::new();
    world.write("s.asd", "(defsystem \"s\" :serial t :components ((:file \"a\") (:file \"b\")))\n");
    world.write("a.lisp", "(defun f (x)\n  (list x)\n\n(defun g () 1)\n\n(defun h (unused) 2)\n");
    world.write("b.lisp", "(defun k () (list (h 1) (nowhere)))\n");
    let output = check(&world, &["--json", "s.asd"]);
    assert_eq!(code(&output), 1, "{output:?}");
    assert_eq!(
        told(&output),
        ["a.lisp:1 unbalanced-list", "a.lisp:6 unused-variable", "b.lisp:1 undefined-function"],
        "{output:?}"
    );
    world.finish();
}

#[test]
fn a_system_that_takes_too_long_is_stopped_in_the_file_it_was_at() {
    let world = Installation::new();
    world.write("s.asd", "(defsystem \"s\" :serial t :components ((:file \"a\") (:file \"b\")))\n");
    world.write("a.lisp", "(defun f () (g))\n");
    // The time that the same check takes on this machine without the loop.
    world.write("b.lisp", "(defvar *x* 1)\n(eval-when (:compile-toplevel) (list))\n");
    let began = Instant::now();
    let output = check(&world, &["--json", "s.asd"]);
    assert_eq!(told(&output), ["a.lisp:1 undefined-function"], "{output:?}");
    let limit = (2 * began.elapsed().as_secs() + 4).to_string();
    world.write("b.lisp", "(defvar *x* 1)\n(eval-when (:compile-toplevel) (loop))\n");
    let output = world.run(&["check", "--json", "--timeout", &limit, "s.asd"]);
    assert_eq!(code(&output), 1, "{output:?}");
    assert!(told(&output).contains(&"b.lisp:2 out-of-time".to_owned()), "{output:?}");
    world.finish();
}

#[test]
fn a_real_library_has_no_undefined_names() {
    let library = Path::new(LIBRARIES).join("cl-ppcre");
    assert!(library.is_dir(), "install cl-ppcre's source (scripts/test-tools does)");
    let world = Installation::new();
    let dir = world.workspace();
    for entry in fs::read_dir(&library).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_file() {
            fs::copy(&path, dir.join(path.file_name().expect("a name"))).expect("a copy");
        }
    }
    let output = check(&world, &["--json", "cl-ppcre.asd"]);
    assert_ne!(code(&output), 2, "{output:?}");
    let noise: Vec<_> =
        told(&output).into_iter().filter(|line| line.contains("undefined") || line.contains("failed")).collect();
    assert_eq!(noise, Vec::<String>::new());
    world.finish();
}

#[test]
fn a_second_process_finds_the_same_and_says_that_it_is_one() {
    let world = with_copy("tests/fixtures/shop");
    let output = check(&world, &["--json", "shop.asd"]);
    assert_eq!(code(&output), 1, "{output:?}");
    let forked = told(&output);
    assert_eq!(world.status()["image"]["copies"], "fork");
    let second = with_copy("tests/fixtures/shop");
    second.configure("[check]\ncopies = \"process\"\n");
    let output = check(&second, &["--json", "shop.asd"]);
    assert_eq!((code(&output), told(&output)), (1, forked), "{output:?}");
    assert!(!loaded(&second).contains(&"shop".to_owned()), "the image itself was changed");
    assert_eq!(second.status()["image"]["copies"], "process");
    let page = stdout(&second.run(&["status"]));
    assert!(page.contains("second process") && page.contains("no definitions that were only evaluated"), "{page}");
    let doctor = stdout(&second.run(&["doctor"]));
    assert!(doctor.contains("second SBCL process") && doctor.contains("an undefined function was found"), "{doctor}");
    world.finish();
    second.finish();
}

/// A form that writes a line to the host, as the copy itself does.
fn forged(line: &str) -> String {
    format!(
        "(eval-when (:compile-toplevel)
  (let ((line (sb-ext:string-to-octets (format nil \"~A~%\" {line:?}))))
    (sb-sys:with-pinned-objects (line) (sb-unix:unix-write 200 line 0 (length line)))))\n"
    )
}

#[test]
fn a_form_that_says_that_the_check_is_done_makes_nothing_clean() {
    let world = Installation::new();
    let done = forged(r#"{"done":{"forms":9}}"#);
    world.write("forged.lisp", &format!("(defun before () 1)\n{done}(defun after () (undefined-thing))\n"));
    let checked = world.run(&["check", "forged.lisp"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    // The copy also says that it has checked all of the text, or only the last form, and exits with
    // code 0.
    let leave = "(eval-when (:compile-toplevel) (sb-ext:exit :code 0 :abort t))\n";
    for places in [r#"{"at":[0,100000]}"#, r#"{"at":[0,300]}"#, r#"{"at":[280,281]}"#] {
        let lines = [places, r#"{"done":{"forms":5,"read":5}}"#].map(forged).concat();
        let text = format!("(defun before () 1)\n{lines}{leave}(defun after () (undefined-thing))\n");
        world.write("leaves.lisp", &text);
        let checked = world.run(&["check", "leaves.lisp"]);
        assert_eq!(checked.status.code(), Some(1), "{places}: {checked:?}");
    }
    // The error is in a form behind the last plain one, which is read under a feature only.
    let text =
        format!("{}{leave}#+sbcl (defun after () (undefined-thing))\n", forged(r#"{"done":{"forms":2,"read":2}}"#));
    world.write("guarded.lisp", &text);
    assert_eq!(world.run(&["check", "guarded.lisp"]).status.code(), Some(1));
    // An editor gets findings before the copy has ended; it must not be told that there are none.
    let mut editor = world.lsp();
    let text = std::fs::read_to_string(world.path("forged.lisp")).expect("it is there");
    let document = json!({"uri": world.uri("forged.lisp"), "languageId": "lisp", "version": 1, "text": text});
    editor.notify("textDocument/didOpen", json!({"textDocument": document}));
    editor.notification("textDocument/publishDiagnostics", |params| params["diagnostics"][0].is_object());
    drop(editor);
    world.finish();
}

#[test]
fn the_host_reads_nothing_but_lisp_for_what_code_reports() {
    let world = Installation::new();
    let place = |file: &str| format!(r#"{{"file":"{file}","span":[0,1],"message":"m"}}"#);
    let secret = world.write("secret.txt", "secret words");
    let related = ["/dev/zero".to_owned(), secret.display().to_string()].map(|file| place(&file)).join(",");
    let finding = format!(
        r#"{{"diagnostic":{{"span":[0,1],"severity":"error","code":"x","message":"m","related":[{related}]}}}}"#
    );
    world.write("forged.lisp", &forged(&finding));
    let checked = world.run(&["check", "forged.lisp"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert!(!String::from_utf8_lossy(&checked.stdout).contains("secret words"), "{checked:?}");
    world.finish();
}

#[test]
fn findings_are_about_files_of_the_check_alone() {
    let world = Installation::new();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let other = elsewhere.path().join("other.lisp");
    std::fs::write(&other, "(defun other () 1)\n").expect("a source");
    let begin = format!(r#"{{"file":"{}"}}"#, other.display());
    let finding = format!(
        r#"{{"file":"{}","diagnostic":{{"span":[0,1],"severity":"error","code":"x","message":"forged words","related":[]}}}}"#,
        other.display()
    );
    world.write("shop.asd", "(asdf:defsystem \"shop\" :components ((:file \"shop\")))\n");
    world.write("shop.lisp", &[begin, finding].map(|line| forged(&line)).concat());
    let checked = world.run(&["check", "shop.asd"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert!(!said.contains("forged words"), "{said}");
    assert!(said.contains("none of the files of this check"), "{said}");
    world.finish();
}
