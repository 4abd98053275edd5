//! `consort eval`, `check`, `status`: what is printed where, and the exit code.

use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Fixture, signal};

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn eval_prints_output_values_and_errors_where_they_belong() {
    let fixture = Fixture::new();
    let output = fixture.run(&["eval", "(progn (princ \"out\") (princ \"err\" *error-output*) (values 1 \"λ\"))"]);
    assert_eq!(
        (output.status.code(), out(&output).as_str(), err(&output).as_str()),
        (Some(0), "out\n=> 1\n=> \"λ\"\n", "err\n")
    );
    assert_eq!(out(&fixture.run(&["eval", "(values)"])), "; no values\n");
    assert_eq!(
        out(&fixture.run(&["eval", "--package", "keyword", "(cl:package-name cl:*package*)"])),
        "=> \"KEYWORD\"\n"
    );

    let failed = fixture.run(&["eval", "(car 3)"]);
    assert_eq!((failed.status.code(), out(&failed).as_str()), (Some(1), ""));
    assert!(err(&failed).starts_with("TYPE-ERROR: The value"), "{}", err(&failed));
    let late = fixture.run(&["eval", "--timeout", "0.3", "(loop)"]);
    assert_eq!(late.status.code(), Some(1));
    assert!(err(&late).contains("0.3"), "{}", err(&late));

    // The output that is not shown is counted.
    let long = fixture.run(&["eval", "(progn (princ (make-string 300000 :initial-element #\\a)) nil)"]);
    assert_eq!(out(&long), format!("{}\n=> NIL\n", "a".repeat(100_000)));
    assert_eq!(err(&long), "; the output was too long: about 200000 characters are not shown\n");

    // Output for a program is the values alone.
    assert_eq!(out(&fixture.run(&["eval", "--raw", "(values \"a \\\"b\\\"\" 42)"])), "a \"b\"\n42\n");
    let many = fixture.run(&["eval", "--raw", "(loop for i below 200 collect i)"]);
    assert_eq!(out(&many), format!("({})\n", (0..200).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")));
    let long = fixture.run(&[
        "eval",
        "--raw",
        "(concatenate 'string (make-string 300000 :initial-element #\\a) (string (code-char 27)))",
    ]);
    assert_eq!(out(&long), format!("{}\u{1b}\n", "a".repeat(300_000)));
    let missing = fixture.run(&["eval", "(list (cl-usr:f))"]);
    assert!(err(&missing).contains("Package CL-USR does not exist; did you mean cl-user?"), "{}", err(&missing));
    assert!(err(&missing).contains(" --> the code:1:8"), "{}", err(&missing));
    // Code that cannot be read is shown as by `consort check`.
    let unread = fixture.run(&["eval", "(+ 1"]);
    assert_eq!(unread.status.code(), Some(1));
    assert!(err(&unread).contains("This list is never closed"), "{}", err(&unread));
    assert!(err(&unread).contains(" --> the code:1:1"), "{}", err(&unread));
    let near = fixture.run(&["eval", "-p", "cl-usr", "1"]);
    assert!(err(&near).ends_with("; did you mean cl-user?\n"), "{}", err(&near));

    // Code that reads gets the lines of standard input.
    let reads = fixture.run_with_input(&["eval", "(list (read-line) (read) (read-line nil nil))"], "a line\n42\n");
    assert_eq!(out(&reads), "=> (\"a line\" 42 NIL)\n", "{}", err(&reads));
    let ended = fixture.run_with_input(&["eval", "(read-line)"], "");
    assert!(err(&ended).contains("standard input has ended"), "{}", err(&ended));

    for wrong in [
        &["eval"][..],
        &["eval", "1", "--timeout", "-1"],
        &["eval", "1", "--workspace", "/no/such"],
        &["eval", "1", "-p", "no-such"],
    ] {
        let output = fixture.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
        assert!(!err(&output).is_empty());
    }
}

#[test]
fn check_shows_carets_and_tells_by_its_exit_code() {
    let fixture = Fixture::new();
    fixture.file("clean.lisp", "(defun f (x) x)\n");
    fixture.file("src/bad.lisp", "(defun g (x)\n  \"𝄞\" (undefined-thing x))\n");
    let clean = fixture.run(&["check", "clean.lisp"]);
    assert_eq!((clean.status.code(), out(&clean).as_str()), (Some(0), "no problems in 1 file\n"), "{clean:?}");

    let bad = fixture.run(&["check", "."]);
    assert_eq!(bad.status.code(), Some(1));
    insta::assert_snapshot!(out(&bad), @r#"
    warning[undefined-function]: Undefined function: UNDEFINED-THING
     --> ./src/bad.lisp:2:8
      |
    2 |   "𝄞" (undefined-thing x))
      |        ^^^^^^^^^^^^^^^

    1 warning in 2 files
    "#);
    let json = fixture.run(&["check", "--json", "src/bad.lisp"]);
    assert_eq!(json.status.code(), Some(1));
    let lines: Vec<Value> = out(&json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    insta::assert_snapshot!(lines[0], @r#"{"code":"undefined-function","file":"src/bad.lisp","message":"Undefined function: UNDEFINED-THING","range":{"end":{"character":23,"line":1},"start":{"character":8,"line":1}},"severity":2}"#);
    assert_eq!(lines.len(), 1);

    // A name that is nearly a known one, of the image or of the text.
    fixture.file("meant.lisp", "(defun quantity (x)\n  (list x (LENGHT \"a\") (quantiti 1)))\n");
    let near = out(&fixture.run(&["check", "meant.lisp"]));
    assert!(near.contains("(LENGHT \"a\")"), "{near}");
    assert!(near.contains(" = help: did you mean LENGTH?\n"), "{near}");
    assert!(near.contains(" = help: did you mean quantity?\n"), "{near}");

    for wrong in ["missing.lisp", "/dev/null/x"] {
        let output = fixture.run(&["check", wrong]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(err(&output).contains(wrong));
    }
    // The next step, and no number of the operating system.
    fixture.file("shop.asd", "(defsystem \"shop\")\n");
    for (wrong, wanted) in [
        ("missing.lisp", "consort check: missing.lisp: No such file or directory\n"),
        ("shop", "shop: No such file or directory; did you mean shop.asd?\n"),
        ("./shpo.asd", "./shpo.asd: No such file or directory; did you mean ./shop.asd?\n"),
        ("other", "to check a system, name its file, as in `consort check other.asd`\n"),
        ("-", "`consort check` does not read standard input: write the code into a file\n"),
    ] {
        let output = fixture.run(&["check", wrong]);
        assert!(err(&output).ends_with(wanted), "{}", err(&output));
    }
    std::fs::write(fixture.workspace().join("latin.lisp"), b"; \xe9\n").unwrap();
    let latin = fixture.run(&["check", "latin.lisp", "clean.lisp"]);
    assert_eq!(latin.status.code(), Some(2));
    assert!(err(&latin).contains("line 1 is not UTF-8"), "{}", err(&latin));
    assert!(out(&latin).contains("no problems in 1 file"), "the rest is checked all the same");
}

#[test]
fn a_check_names_the_problems_in_the_settings() {
    let fixture = Fixture::new();
    fixture.file("a.lisp", "(defun a () 1)\n");
    for (settings, problem) in [("x = [", "not valid TOML"), ("[lint]\nrules = 3\n", "lint.rules must be")] {
        fixture.file("consort.toml", settings);
        let check = fixture.run(&["check", "a.lisp"]);
        assert_eq!(check.status.code(), Some(0), "{check:?}");
        assert!(err(&check).contains("consort.toml") && err(&check).contains(problem), "{check:?}");
    }
}

#[test]
fn what_a_check_has_found_is_shown_before_it_ends_and_kept_when_it_is_interrupted() {
    let fixture = Fixture::new();
    fixture.file("a-bad.lisp", "(defun g (x)\n  (undefined-thing x))\n");
    fixture.file("b-slow.lisp", "(eval-when (:compile-toplevel) (loop (sleep 1)))\n");
    let mut command = fixture.command(&["check", "--timeout", "86400", "a-bad.lisp", "b-slow.lisp"]);
    let mut check = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut shown = BufReader::new(check.stdout.take().unwrap());
    let mut text = String::new();
    // The second file's check does not end by itself.
    while !text.contains("a-bad.lisp:2:4") {
        assert_ne!(shown.read_line(&mut text).unwrap(), 0, "{text}");
    }
    // As Ctrl-C, which is ignored by what is started in the background.
    signal(check.id().try_into().unwrap(), rustix::process::Signal::TERM);
    let ended = check.wait().unwrap();
    assert!(!ended.success());
    shown.read_to_string(&mut text).unwrap();
    assert!(text.contains("Undefined function: UNDEFINED-THING"), "{text}");
}

#[test]
fn a_system_that_is_not_loaded_is_loaded_in_the_copy_only() {
    let fixture = Fixture::new();
    fixture.file(
        "toy.asd",
        "(defsystem \"toy\" :serial t :components ((:file \"package\") (:file \"macros\") (:file \"main\")))\n",
    );
    fixture.file("package.lisp", "(defpackage :toy (:use :cl))\n");
    fixture.file("macros.lisp", "(in-package :toy)\n(defmacro twice (form) `(progn ,form ,form))\n");
    fixture.file("main.lisp", "(in-package :toy)\n(defun main () (twice (print (oops))))\n");
    let expected = |name: &str| format!("{name}:2:31");
    for (arguments, name, files) in
        [(["toy.asd"], "main.lisp", 4), (["main.lisp"], "main.lisp", 1), (["."], "./main.lisp", 4)]
    {
        let output = fixture.run(&[&["check"][..], &arguments].concat());
        let said = out(&output);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said.contains("Undefined function: TOY::OOPS") || said.contains("Undefined function: OOPS"), "{said}");
        assert!(said.contains(&expected(name)), "{said}");
        assert!(said.ends_with(&format!("1 warning in {files} file{}\n", if files == 1 { "" } else { "s" })), "{said}");
    }
    assert_eq!(out(&fixture.run(&["eval", "(find-package :toy)"])), "=> NIL\n", "the image knows nothing of it");
    let fasls: Vec<_> = std::fs::read_dir(fixture.workspace())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "fasl"))
        .collect();
    assert!(fasls.is_empty(), "{fasls:?}");

    let broken = fixture
        .file("broken.asd", "(defsystem \"broken\" :depends-on (\"no-such-system\") :components ((:file \"b\")))\n");
    fixture.file("b.lisp", "(defun b () 1)\n");
    let output = fixture.run(&["check", "broken.asd"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(out(&output).contains("no-such-system"), "{} {output:?}", broken.display());
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let fixture = Fixture::new();
    fixture.file("many.lisp", &"(no-such-function)\n".repeat(200));
    let mut child = fixture
        .command(&["check", "--json", "many.lisp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(141), ""));
}

#[test]
fn status_says_that_none_runs() {
    let fixture = Fixture::new();
    let output = fixture.run(&["status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).starts_with("No host runs for"), "{output:?}");
    let json: Value = serde_json::from_slice(&fixture.run(&["status", "--json"]).stdout).unwrap();
    assert_eq!(json["running"], false);
}

#[test]
fn a_wrong_argument_starts_nothing() {
    let fixture = Fixture::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, why) in [
        (&["serve", "--http", "1.2.3.4:80"][..], "only loopback addresses are served"),
        (&["serve", "--http", &taken], "another `consort serve --http`"),
        (&["check", ".", "--timeout=-1"], "expected a number of seconds"),
        (&["check", ".", "--timeout=nan"], "expected a number of seconds"),
        (&["eval", "1", "--package", ""], "a value is required for '--package"),
        (&["repl", "--package", ""], "a value is required for '--package"),
    ] {
        let output = fixture.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(err(&output).contains(why) && !err(&output).contains("the host starts"), "{arguments:?}: {output:?}");
        assert!(fixture.status().is_none(), "{arguments:?}");
    }
}

#[test]
fn help_teaches() {
    let fixture = Fixture::new();
    for command in ["lsp", "mcp", "serve", "status", "stop", "eval", "repl", "check", "doctor", "trust"] {
        let output = fixture.run(&[command, "--help"]);
        assert!(output.status.success());
        assert!(out(&output).len() > 300, "{command}: {}", out(&output));
    }
    assert!(out(&fixture.run(&["--help"])).contains("\n  consort check src/\n"));
    assert_eq!(out(&fixture.run(&["--version"])), format!("consort {}\n", consort::host::VERSION));
    assert_eq!(fixture.run(&[]).status.code(), Some(2));
}

/// A program named `sbcl` that comes first on PATH.
fn with_sbcl(fixture: &Fixture, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let sbcl = fixture.file("bin/sbcl", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&sbcl, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", sbcl.parent().unwrap().display(), std::env::var("PATH").unwrap())
}

fn answers_version(otherwise: &str) -> String {
    format!("case \"$*\" in *--version) echo SBCL 2.2.9; exit 0;; esac; {otherwise}")
}

#[test]
fn an_sbcl_that_hangs_or_prints_rubbish_is_told_of_and_its_bytes_are_not_shown() {
    for (script, told) in [
        ("exec sleep 1000", "did not end within"),
        ("exec cat /dev/urandom", "printed without end"),
        ("printf '\\033[31m\\007\\033]0;title\\007'; exit 3", "exited with code 3"),
        // It answers `--version`, and hangs or prints when it is to build the image.
        (&answers_version("exec sleep 1000"), "hangs: it did nothing for"),
        (&answers_version("while :; do sleep 3; done"), "hangs: it did nothing for"),
        (&answers_version("exec yes"), "printed without end"),
        (&answers_version("sleep 1000 & exit 0"), "wrote nothing"),
    ] {
        let fixture = Fixture::new();
        let path = with_sbcl(&fixture, script);
        // The second one meets the host of the first, which tries no other time.
        for arguments in [&["eval", "1"][..], &["doctor"]] {
            let output =
                fixture.command(arguments).env("PATH", &path).stdin(std::process::Stdio::null()).output().unwrap();
            assert!(!output.status.success(), "{script}: {output:?}");
            let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
            let text = String::from_utf8(said).expect("no bytes that are no text");
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{script}: {text:?}");
            assert!(text.len() < 8000, "{script}: {text}");
            // `doctor` tells what the program answers; how it ended is seen when an image is built
            // by it.
            assert!(text.contains(told) || text.contains("--version` failed"), "{script}, {arguments:?}: {text}");
            assert!(text.contains("lisp.command") || told.starts_with("exited"), "{script}, {arguments:?}: {text}");
        }
    }
}

#[test]
fn a_heap_that_cannot_be_had_is_named() {
    let fixture = Fixture::new();
    fixture.file("consort.toml", "[host]\nlinger_s = 60\n[lisp]\nheap = \"2000000GB\"\n");
    assert_eq!(fixture.run(&["trust", "--yes"]).status.code(), Some(0));
    let output = fixture.run(&["eval", "1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(err(&output).contains("`lisp.heap`"), "{output:?}");
    let status = fixture.status().unwrap();
    assert_eq!((&status["image"]["state"], &status["image"]["final"]), (&json!("dead"), &json!(true)), "{status}");
}
