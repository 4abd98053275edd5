//! Code under check has no effect outside its copy: each attempt, from a macro, from `eval-when`
//! and from a reader macro, is refused by the system, and nothing outside has changed.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use consort::checker::{Chain, ChainAnswer, ChainEdit, ChainEnd};
use consort::config::Copies;
use consort::model::check::CheckReport;
use consort::model::diagnostic::Diagnostic;
use consort::text::Span;
use consort_tests::lone_image::LoneImage;

/// Three ways in which text under check runs code at compile time. Each reports the outcome of
/// `ATTEMPT` in a warning.
fn programs(attempt: &str) -> [(&'static str, String); 3] {
    let told = format!(
        "(warn \"attempt: ~a\" (handler-case (let ((value {attempt})) (format nil \"SUCCEEDED with ~s\" value)) (error (c) (format nil \"refused: ~a\" c))))"
    );
    [
        ("macro", format!("(defmacro try-it () {told} nil)\n(try-it)\n")),
        ("eval-when", format!("(eval-when (:compile-toplevel) {told})\n")),
        (
            "reader macro",
            format!(
                "(eval-when (:compile-toplevel)\n  (set-macro-character #\\! (lambda (stream char) (declare (ignore stream char)) {told} nil)))\n(print '!)\n"
            ),
        ),
    ]
}

fn told(report: &CheckReport) -> Vec<&str> {
    report.diagnostics.iter().filter_map(|d| d.message.split("attempt: ").nth(1)).collect()
}

/// Makes each attempt in each way; all must be refused with an error of the system.
async fn all_refused(lone: &LoneImage, attempts: &[(&str, String)]) {
    for (what, attempt) in attempts {
        for (way, program) in programs(attempt) {
            let report = lone.check(&program).await;
            let outcomes = told(&report);
            assert!(!outcomes.is_empty(), "{what} in a {way}: nothing told: {report:?}");
            for outcome in outcomes {
                assert!(outcome.starts_with("refused"), "{what} in a {way}: {outcome}");
            }
        }
    }
}

/// A call of the C library that must fail. A result of 0 or more (a process id, an exit status of
/// 0) is success; any other is an error with the errno.
fn c_call(name: &str, argument: &str) -> String {
    let parameter = if argument.is_empty() { "" } else { "sb-alien:c-string" };
    format!(
        "(let ((value (sb-alien:alien-funcall (sb-alien:extern-alien {name:?} (function sb-alien:int {parameter})) {argument}))) \
         (if (or (minusp value) (plusp (ash value -8))) (error \"{name} gave ~d, errno ~d\" value (sb-alien:get-errno)) value))"
    )
}

fn lisp_path(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_are_untouchable() {
    files_outside_are_untouchable_there(Copies::Fork).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_are_untouchable_in_a_second_process() {
    files_outside_are_untouchable_there(Copies::Process).await;
}

async fn files_outside_are_untouchable_there(copies: Copies) {
    let lone = LoneImage::with(copies).await;
    let dir = lone.workspace();
    let victim = dir.join("victim.txt");
    std::fs::write(&victim, "precious").expect("a file");
    let fresh = dir.join("fresh.txt");
    let (v, f, d) = (lisp_path(&victim), lisp_path(&fresh), lisp_path(&dir));
    all_refused(
        &lone,
        &[
            ("delete", format!("(delete-file {v})")),
            ("overwrite", format!("(with-open-file (s {v} :direction :output :if-exists :supersede) (print 1 s))")),
            ("append", format!("(with-open-file (s {v} :direction :output :if-exists :append) (print 1 s))")),
            ("create", format!("(with-open-file (s {f} :direction :output) (print 1 s))")),
            ("rename", format!("(rename-file {v} {f})")),
            ("truncate", format!("(sb-posix:truncate {v} 0)")),
            ("chmod", format!("(sb-posix:chmod {v} 0)")),
            ("chown", format!("(sb-posix:chown {v} 1 1)")),
            ("utime", format!("(sb-posix:utime {v} 1 1)")),
            ("link", format!("(sb-posix:link {v} {f})")),
            ("symlink", format!("(sb-posix:symlink {v} {f})")),
            ("mkdir", format!("(sb-posix:mkdir (concatenate 'string {d} \"/new\") #o700)")),
            ("mkfifo", format!("(sb-posix:mkfifo {f} #o600)")),
        ],
    )
    .await;
    assert_eq!(std::fs::read_to_string(&victim).expect("it is still there"), "precious");
    assert_eq!(std::fs::metadata(&fresh).expect_err("never made").kind(), ErrorKind::NotFound);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workspace_is_read_and_nothing_beside_it() {
    the_workspace_is_read_and_nothing_beside_it_there(Copies::Fork).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workspace_is_read_and_nothing_beside_it_in_a_second_process() {
    the_workspace_is_read_and_nothing_beside_it_there(Copies::Process).await;
}

async fn the_workspace_is_read_and_nothing_beside_it_there(copies: Copies) {
    let lone = LoneImage::with(copies).await;
    let inside = lone.workspace().join("inside.txt");
    let beside = tempfile::NamedTempFile::new().expect("a file");
    for file in [&inside, beside.path()] {
        std::fs::write(file, "text").expect("a file");
    }
    let read = |file: &Path| format!("(with-open-file (in {}) (read-line in))", lisp_path(file));
    all_refused(&lone, &[("read", read(beside.path()))]).await;
    for (way, program) in programs(&read(&inside)) {
        let report = lone.check(&program).await;
        assert!(told(&report).iter().all(|outcome| outcome.starts_with("SUCCEEDED")), "{way}: {report:?}");
        assert!(!told(&report).is_empty(), "{way}: {report:?}");
    }
    // Code that ignores the error: the diagnostic names the file and the setting.
    let report = lone.check(&format!("(eval-when (:compile-toplevel) {})\n", read(beside.path()))).await;
    let [found] = report.diagnostics.as_slice() else { panic!("{report:?}") };
    assert_eq!(found.code, "confined");
    let name = beside.path().display().to_string();
    assert!(found.message.contains("check.read") && found.message.contains(&name), "{found:?}");
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_thread_or_process_starts() {
    no_program_thread_or_process_starts_there(Copies::Fork).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_program_thread_or_process_starts_in_a_second_process() {
    no_program_thread_or_process_starts_there(Copies::Process).await;
}

async fn no_program_thread_or_process_starts_there(copies: Copies) {
    let lone = LoneImage::with(copies).await;
    let mark = lisp_path(&lone.workspace().join("mark"));
    all_refused(
        &lone,
        &[
            ("run-program", format!("(sb-ext:run-program \"/usr/bin/touch\" (list {mark}))")),
            ("run-program by path", format!("(sb-ext:run-program \"touch\" (list {mark}) :search t)")),
            ("fork", c_call("fork", "")),
            ("vfork", c_call("vfork", "")),
            ("system(3)", c_call("system", &format!("(concatenate 'string \"touch \" {mark})"))),
            ("thread", "(sb-thread:make-thread (lambda () (loop)))".into()),
        ],
    )
    .await;
    assert!(!lone.workspace().join("mark").exists());
    lone.finish().await;
}

/// The findings of a new chain's answer to an edit at the end of its text.
async fn answered(lone: &LoneImage, text: &str, insert: &str) -> Result<Vec<Diagnostic>, ChainEnd> {
    let mut params = lone.params(text, Some(&lone.workspace().join("checked.lisp")));
    // The time limit of an answer is a quarter of this.
    params.deadline = 240.0;
    let mut chain = lone.checker.chain(params).await?;
    let found = findings(&mut chain, text, insert).await;
    chain.end().await;
    found
}

async fn findings(chain: &mut Chain, text: &str, insert: &str) -> Result<Vec<Diagnostic>, ChainEnd> {
    let end = text.chars().count();
    let edit = ChainEdit {
        number: 1,
        span: Span { start: end, end },
        insert: insert.into(),
        withheld: Vec::new(),
        length: end + insert.chars().count(),
    };
    if !chain.edit(&edit).await? {
        return Err(ChainEnd::Changed);
    }
    loop {
        match chain.answer().await? {
            ChainAnswer::Findings { diagnostics, last: true, .. } => return Ok(diagnostics),
            ChainAnswer::Findings { .. } => {}
            ChainAnswer::Whole { why, .. } => panic!("{why}"),
        }
    }
}

/// The processes of a chain may fork, by a key that code under check does not have, neither when
/// the chain is made nor when an edit is compiled.
#[tokio::test(flavor = "multi_thread")]
async fn code_in_a_chain_starts_no_process_and_writes_nothing() {
    let lone = LoneImage::start().await;
    let victim = lone.workspace().join("victim.txt");
    std::fs::write(&victim, "precious").expect("a file");
    let (v, mark) = (lisp_path(&victim), lisp_path(&lone.workspace().join("mark")));
    // clone(2) with the flags of fork, as the chain itself calls it, and keys that are guessed.
    let number = if cfg!(target_arch = "x86_64") { 56 } else { 220 };
    let clone = |key: &str| {
        format!(
            "(let ((value (sb-alien:alien-funcall (sb-alien:extern-alien \"syscall\" (function sb-alien:long sb-alien:long sb-alien:unsigned-long sb-alien:long sb-alien:unsigned-long sb-alien:long sb-alien:long)) {number} sb-posix:sigchld 0 {key} 0 0))) \
             (when (eql value 0) (sb-ext:exit :code 0 :abort t)) (if (minusp value) (error \"errno ~d\" (sb-alien:get-errno)) value))"
        )
    };
    for (what, attempt) in [
        ("run-program", format!("(sb-ext:run-program \"/usr/bin/touch\" (list {mark}))")),
        ("fork", c_call("fork", "")),
        ("vfork", c_call("vfork", "")),
        ("clone without a key", clone("0")),
        ("clone with a key", clone("(random (ash 1 62))")),
        ("thread", "(sb-thread:make-thread (lambda () (loop)))".into()),
        ("overwrite", format!("(with-open-file (s {v} :direction :output :if-exists :supersede) (print 1 s))")),
        ("signal to the group", "(sb-posix:killpg 0 sb-posix:sigkill)".into()),
        ("signal to the parent", "(sb-posix:kill (sb-posix:getppid) sb-posix:sigterm)".into()),
    ] {
        let programs = programs(&attempt);
        let [(_, in_macro), ..] = &programs;
        // In the chain's own text, and in an edit of a plain text.
        for (base, insert) in
            [(format!("{in_macro}(defun f () 1)\n"), "; end\n"), ("(defun f () 1)\n".into(), in_macro.as_str())]
        {
            // A chain that ended because the image changed is begun anew, as for an editor.
            let found = loop {
                match answered(&lone, &base, insert).await {
                    Ok(found) => break found,
                    Err(ChainEnd::Changed) => {}
                    Err(end) => panic!("{what}: {end}"),
                }
            };
            let told: Vec<_> = found.iter().filter_map(|found| found.message.split("attempt: ").nth(1)).collect();
            assert!(!told.is_empty(), "{what}: nothing told: {found:?}");
            assert!(told.iter().all(|outcome| outcome.starts_with("refused")), "{what}: {told:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&victim).expect("it is still there"), "precious");
    assert!(!lone.workspace().join("mark").exists());
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_reached_or_signalled() {
    nobody_is_reached_or_signalled_there(Copies::Fork).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_reached_or_signalled_in_a_second_process() {
    nobody_is_reached_or_signalled_there(Copies::Process).await;
}

async fn nobody_is_reached_or_signalled_there(copies: Copies) {
    let lone = LoneImage::with(copies).await;
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = tcp.local_addr().expect("it is bound").port();
    let socket = lone.workspace().join("socket");
    let unix = UnixListener::bind(&socket).expect("a socket");
    let me = std::process::id();
    let socket = lisp_path(&socket);
    all_refused(
        &lone,
        &[
            ("TCP connect", format!("(progn (require :sb-bsd-sockets) (funcall (intern \"SOCKET-CONNECT\" :sb-bsd-sockets) (make-instance (intern \"INET-SOCKET\" :sb-bsd-sockets) :type :stream :protocol :tcp) #(127 0 0 1) {port}))")),
            ("Unix connect", format!("(progn (require :sb-bsd-sockets) (funcall (intern \"SOCKET-CONNECT\" :sb-bsd-sockets) (make-instance (intern \"LOCAL-SOCKET\" :sb-bsd-sockets) :type :stream) {socket}))")),
            ("signal 0 to the host", format!("(sb-posix:kill {me} 0)")),
            ("signal to the parent", "(sb-posix:kill (sb-posix:getppid) sb-posix:sigterm)".into()),
            ("signal to the group", "(sb-posix:killpg (sb-posix:getpgrp) sb-posix:sigterm)".into()),
            ("signal to all", "(sb-posix:kill -1 0)".into()),
        ],
    )
    .await;
    tcp.set_nonblocking(true).expect("it can be");
    unix.set_nonblocking(true).expect("it can be");
    assert_eq!(tcp.accept().expect_err("nobody came").kind(), ErrorKind::WouldBlock);
    assert_eq!(unix.accept().expect_err("nobody came").kind(), ErrorKind::WouldBlock);
    assert_eq!(lone.eval("(+ 1 2)").await.values[0].text, "3");
    lone.finish().await;
}

/// Code that never ends, or takes all memory, gives a diagnostic at its form, and the form before
/// is still checked.
#[tokio::test(flavor = "multi_thread")]
async fn limits_end_the_copy_alone() {
    limits_end_the_copy_alone_there(Copies::Fork).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_end_the_copy_alone_in_a_second_process() {
    limits_end_the_copy_alone_there(Copies::Process).await;
}

async fn limits_end_the_copy_alone_there(copies: Copies) {
    let lone = LoneImage::with(copies).await;
    let before = "(defun before () (undefined-before))\n";
    // A copy that the host has to kill cannot report undefined names; one that exits by itself can.
    for (runaway, killed) in [
        ("(defmacro runaway () (loop))", false),
        ("(defmacro runaway () (loop (ignore-errors (sb-posix:fork))))", false),
        ("(defmacro runaway () (let ((all '())) (loop (push (make-array 100000 :initial-element 1) all))))", true),
        ("(defmacro runaway () (labels ((f (x) (1+ (f x)))) (f 1)))", false),
        ("(defmacro runaway () (sb-sys:without-interrupts (loop)))", true),
    ] {
        let text = format!("{before}{runaway}\n(runaway)\n");
        let mut params = lone.params(&text, Some(&lone.workspace().join("checked.lisp")));
        params.deadline = 5.0;
        params.memory = 512 << 20;
        let report = lone.checker.check(params).await.expect("a check answers");
        let told = report.diagnostics.iter().any(|d| d.code == "undefined-function");
        assert!(told || killed, "{runaway}: {report:?}");
        let at = text.find("(runaway)").expect("it is there");
        let here: Vec<_> = report.diagnostics.iter().filter(|d| d.span.start == at).collect();
        assert!(!here.is_empty(), "{runaway}: nothing at the form it was at: {report:?}");
        assert_eq!(lone.eval("(+ 1 2)").await.values[0].text, "3");
    }
    lone.finish().await;
}
