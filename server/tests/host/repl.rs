//! `consort repl` behind a pipe. In a terminal: tests/e2e/terminal.

use std::process::Output;

use crate::support::Fixture;

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn forms_of_a_pipe_are_evaluated_one_by_one() {
    let fixture = Fixture::new();
    let code = "(defun f (x)\n  (list x))\n(f 1) (princ \"out\")\n(list :read (read-line))\na (line\n(defpackage :own (:use :cl))\n(in-package :own)\n(list (packagep *) (package-name *package*))\n:quit\n(no-such-function)\n";
    let whole = fixture.run_with_input(&["repl"], code);
    assert_eq!(whole.status.code(), Some(0), "{}", err(&whole));
    let lines: Vec<String> = out(&whole).lines().map(str::to_owned).collect();
    let expected = [
        "=> F",
        "=> (1)",
        "out",
        "=> \"out\"",
        "=> (:READ \"a (line\")",
        "=> #<PACKAGE \"OWN\">",
        "=> #<PACKAGE \"OWN\">",
        "=> (T \"OWN\")",
    ];
    assert_eq!(lines, expected);

    // An error is reported with its frames, and what follows is evaluated all the same.
    let failed = fixture
        .run_with_input(&["repl", "--package", "keyword"], "(cl:car 3)\n(cl:package-name cl:*package*)\n(cl:list 1");
    assert_eq!((failed.status.code(), out(&failed).as_str()), (Some(1), "=> \"KEYWORD\"\n"));
    assert!(err(&failed).starts_with("TYPE-ERROR: "), "{}", err(&failed));
    assert!(err(&failed).contains("This list is never closed"), "{}", err(&failed));
    // Lines are counted in the file, also behind lines that the code itself has read.
    assert!(err(&failed).contains(" --> standard input:3:1\n"), "{}", err(&failed));
    let far = fixture.run_with_input(&["repl"], "(progn\n  (read-line))\na line\n\n'a (cl-usr:f)\n");
    assert!(err(&far).contains(" --> standard input:5:5\n"), "{}", err(&far));
    assert!(err(&far).contains("\n5 | 'a (cl-usr:f)\n"), "{}", err(&far));

    let long = fixture.run_with_input(&["repl"], "(progn (princ (make-string 300000 :initial-element #\\a)) nil)");
    assert_eq!(out(&long), format!("{}\n=> NIL\n", "a".repeat(100_000)));
    assert_eq!(err(&long), "; the output was too long: about 200000 characters are not shown\n");
    let nowhere = fixture.run_with_input(&["repl", "-p", "cl-usr"], "1");
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(err(&nowhere).ends_with("; did you mean cl-user?\n"), "{}", err(&nowhere));
    assert_eq!(fixture.run_with_input(&["repl"], "").status.code(), Some(0));
}
