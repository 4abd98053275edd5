//! The failure of each open, write, connect, bind, start of a process and copy, one at a time: the
//! next request gets a good answer, the person is told the cause, and nothing is left. The host
//! makes the failures itself, in debug builds (`server/src/fault.rs`).
//!
//! The tests make some of them; `make faults` makes all, up to the first number that no call
//! reaches.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "a run of all failures says what it found")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use consort_tests::framing::Framing;
use consort_tests::installation::Installation;
use consort_tests::rpc::Client;
use serde_json::{Value, json};

/// The time limit for an answer, after which the host counts as hung. The host's own limits are
/// shorter.
const HANG: Duration = Duration::from_secs(240);
/// The attempts for a step: the failure may end the connection, and the next request may report it.
const ATTEMPTS: usize = 3;
/// The failures in `make test`: those of the first calls of each kind, and some later ones.
const SAMPLE: [(&str, &[u32]); 10] = [
    ("serve/open", &[1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 15, 19]),
    ("serve/write", &[1, 2, 4, 5, 8, 13, 15, 25, 34, 41, 43, 44, 46, 51, 60]),
    ("serve/bind", &[1, 2, 3]),
    ("serve/spawn", &[1]),
    ("serve/fork", &[1, 4]),
    ("lsp/connect", &[1]),
    ("lsp/spawn", &[1]),
    ("lsp/write", &[1, 3, 5]),
    ("mcp/write", &[2, 5]),
    ("stop/write", &[2]),
];
/// The processes and calls of the whole sweep.
const SWEPT: [(&str, &[&str]); 5] = [
    ("serve", &["open", "write", "bind", "connect", "spawn", "fork"]),
    ("lsp", &["open", "write", "connect", "spawn"]),
    ("mcp", &["open", "write", "connect", "spawn"]),
    ("check", &["write", "connect"]),
    ("stop", &["open", "write", "connect"]),
];
/// The system's message for each injected failure.
const CAUSES: [&str; 3] = ["Too many open files", "No space left on device", "Resource temporarily unavailable"];

const FILE: &str = "(defpackage :made (:use :cl) (:export :double))\n(in-package :made)\n\n(defun double (x)\n  (* 2 x))\n\n(defun broken ()\n  (no-such-function))\n";

/// A scenario with a failure in it.
struct Run {
    world: Installation,
    fault: String,
    fault_record: PathBuf,
    /// The standard error of all that was started.
    errors: PathBuf,
    editor: Option<Client>,
    agent: Option<Client>,
    /// The failure, as the person or the agent was told.
    failures: Vec<String>,
    slowest: Duration,
}

/// The outcome.
#[derive(Debug)]
struct Found {
    /// The call that failed; `None` if there are fewer calls.
    place: Option<String>,
    failures: Vec<String>,
    slowest: Duration,
}

impl Run {
    fn new(fault: &str) -> Run {
        let world = Installation::new();
        world.configure(
            "[approval]\nedit-file = \"allow\"\ncompile-file = \"allow\"\nmodify-running-code = \"allow\"\n",
        );
        world.write("made.asd", "(defsystem \"made\" :components ((:file \"made\")))\n");
        world.write("made.lisp", FILE);
        let home = world.workspace().parent().expect("it has a parent").join("home");
        let (fault_record, errors) = (home.join("told"), home.join("errors"));
        let (failures, slowest) = (Vec::new(), Duration::ZERO);
        Run { world, fault: fault.into(), fault_record, errors, editor: None, agent: None, failures, slowest }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.world.consort(arguments);
        let errors = File::options().create(true).append(true).open(&self.errors).expect("a file");
        command.env("CONSORT_FAULT", &self.fault).env("CONSORT_FAULT_RECORD", &self.fault_record).stderr(errors);
        command
    }

    /// Runs `consort ARGUMENTS` to its end, within the limit.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).stdin(std::process::Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.code().is_some_and(|code| code < 2), "consort {}: {output:?}", arguments.join(" "));
        Ok(text)
    }

    /// Repeats `step` until it succeeds.
    fn step<T>(&mut self, what: &str, mut step: impl FnMut(&mut Run) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let errors_before = std::fs::read_to_string(&self.errors).unwrap_or_default().len();
        for attempt in 1..=ATTEMPTS {
            let failed = match step(self) {
                Ok(done) => {
                    self.slowest = self.slowest.max(begun.elapsed());
                    return Ok(done);
                }
                Err(error) => format!("{error:#}"),
            };
            let printed = std::fs::read_to_string(&self.errors).unwrap_or_default();
            let printed = printed.get(errors_before..).unwrap_or_default();
            self.failures.push(format!("{what}: {failed} [{}]", printed.trim()));
            if attempt == ATTEMPTS {
                bail!("{what}: no good answer in {ATTEMPTS} attempts: {:#?}", self.failures);
            }
        }
        unreachable!("the last attempt returns")
    }

    fn editor(&mut self) -> Result<&mut Client> {
        if self.editor.is_none() {
            let mut client = Client::spawn(&mut self.command(&["lsp"]), Framing::Headers)?;
            client.limit = HANG;
            let root = format!("file://{}", self.world.workspace().display());
            let capabilities = json!({"textDocument": {"publishDiagnostics": {"versionSupport": true}}});
            client.request(
                "initialize",
                json!({"processId": std::process::id(), "rootUri": root, "capabilities": capabilities}),
            )?;
            client.notify("initialized", json!({}))?;
            let item =
                json!({"uri": self.world.uri("made.lisp"), "languageId": "commonlisp", "version": 1, "text": FILE});
            client.notify("textDocument/didOpen", json!({"textDocument": item}))?;
            self.editor = Some(client);
        }
        self.editor.as_mut().context("it was just started")
    }

    fn agent(&mut self) -> Result<&mut Client> {
        if self.agent.is_none() {
            let mut client = Client::spawn(&mut self.command(&["mcp"]), Framing::Lines)?;
            client.limit = HANG;
            let info = json!({"name": "test", "version": "1"});
            client.request(
                "initialize",
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}),
            )?;
            client.notify("notifications/initialized", json!({}))?;
            self.agent = Some(client);
        }
        self.agent.as_mut().context("it was just started")
    }

    /// Sends a request of the editor; a connection that has ended is opened again at the next
    /// attempt, as an editor does.
    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let answer = self.editor()?.request(method, params);
        if answer.as_ref().is_err_and(|error| !format!("{error:#}").contains("answered with an error")) {
            self.editor = None;
        }
        answer
    }

    fn tool(&mut self, name: &str, arguments: Value) -> Result<String> {
        let answer = self.agent()?.request("tools/call", json!({"name": name, "arguments": arguments}));
        if answer.as_ref().is_err_and(|error| !format!("{error:#}").contains("answered with an error")) {
            self.agent = None;
        }
        let answer = answer?;
        let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        ensure!(answer["isError"] != true, "{name}: {text}");
        Ok(text)
    }
}

impl Run {
    /// Returns true if the failure is that of reading the person's settings.
    fn has_defaults(&self) -> bool {
        self.logged("the defaults are used")
    }

    /// Returns true if the host's log has these words.
    fn logged(&self, words: &str) -> bool {
        let state = self.fault_record.with_file_name("state/consort");
        let logs = std::fs::read_dir(state).into_iter().flatten().flatten();
        let texts = logs.filter_map(|log| std::fs::read_to_string(log.path()).ok());
        texts.into_iter().any(|text| text.contains(words))
    }

    /// Disconnects all clients, ends the host, and looks for processes and files that are left.
    fn end(mut self) -> Result<Found> {
        if let Some(editor) = self.editor.take() {
            editor.close().context("the editor leaves")?;
        }
        if let Some(agent) = self.agent.take() {
            agent.close().context("the agent leaves")?;
        }
        self.step("stop", |run| run.run(&["stop"]))?;
        ensure!(!self.logged("it is built again"), "a failure was taken for a damaged core");
        let place = std::fs::read_to_string(&self.fault_record).ok().map(|text| text.trim().to_owned());
        let Run { world, failures, slowest, .. } = self;
        let left = left_in(&world);
        ensure!(left.is_empty(), "files in the workspace: {left:?}");
        // Panics when a process, a socket or a file is left.
        world.finish();
        Ok(Found { place, failures, slowest })
    }
}

/// Runs the scenario with this failure.
fn scenario(fault: &str) -> Result<Found> {
    let mut run = Run::new(fault);
    let uri = run.world.uri("made.lisp");
    run.step("an evaluation", |run| {
        let answer = run
            .ask("workspace/executeCommand", json!({"command": "consort.eval", "arguments": [{"code": "(+ 1 2)"}]}))?;
        ensure!(answer["values"].to_string().contains('3'), "{answer}");
        Ok(())
    })?;
    if run.has_defaults() {
        // The person's settings could not be read, so an agent would have to ask; the person is
        // told.
        let told = |params: &Value| CAUSES.iter().any(|cause| params.to_string().contains(cause));
        run.editor()?.wait_for("window/showMessage", told)?;
        return run.end();
    }
    run.step("a load", |run| run.tool("load-system", json!({"system": "made"})))?;
    run.step("diagnostics", |run| {
        let pulled = run.ask("textDocument/diagnostic", json!({"textDocument": {"uri": uri}}))?;
        ensure!(pulled.to_string().contains("undefined-function"), "{pulled}");
        Ok(())
    })?;
    run.step("an agent's evaluation", |run| {
        let text = run.tool("evaluate-lisp", json!({"code": "(made:double 4)"}))?;
        ensure!(text.contains('8'), "{text}");
        Ok(())
    })?;
    run.step("an edit", |run| {
        let edit = json!({"path": "made.lisp", "form_type": "defun", "form_name": "double", "operation": "replace", "content": "(defun double (x)\n  (+ x x 1))"});
        run.tool("lisp-edit-form", edit)
    })?;
    let now = std::fs::read_to_string(run.world.path("made.lisp"))?;
    ensure!(now == FILE || now == FILE.replace("(* 2 x)", "(+ x x 1)"), "the file is damaged: {now}");
    run.step("a reload", |run| run.tool("code_reload_system", json!({"system": "made"})))?;
    run.step("the terminal's check", |run| {
        let text = run.run(&["check", "made.lisp"])?;
        ensure!(text.contains("NO-SUCH-FUNCTION"), "{text}");
        Ok(())
    })?;
    run.end()
}

/// The files of the workspace that the scenario did not make.
fn left_in(world: &Installation) -> Vec<String> {
    let names = |directory: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(directory).expect("a directory").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut left = names(&world.workspace());
    left.retain(|name| !["consort.toml", "made.asd", "made.lisp"].contains(&name.as_str()));
    left
}

/// Runs a scenario; an error names what went wrong, `None` means that the failure was not reached.
fn check_scenario(fault: &str) -> Result<Option<Found>, String> {
    let found = match std::panic::catch_unwind(|| scenario(fault)) {
        Ok(found) => found.map_err(|error| format!("{fault}: {error:#}"))?,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".into());
            return Err(format!("{fault}: {text}"));
        }
    };
    let Some(place) = &found.place else {
        return if found.failures.is_empty() {
            Ok(None)
        } else {
            Err(format!("{fault}: failed without it: {found:?}"))
        };
    };
    println!(
        "{:5.1} s  {place}{}",
        found.slowest.as_secs_f64(),
        found.failures.iter().map(|text| format!("\n         {text}")).collect::<String>()
    );
    // The other end of a broken connection cannot know the cause; every other failure names it.
    let broken = |text: &String| {
        text.contains("closed the connection")
            || text.contains("connection to the Consort host broke")
            || text.contains("or its connection broke")
    };
    let mute: Vec<&String> = found
        .failures
        .iter()
        .filter(|text| !broken(text) && !CAUSES.iter().any(|cause| text.contains(cause)))
        .collect();
    if mute.is_empty() { Ok(Some(found)) } else { Err(format!("{place}: the cause is not named: {mute:#?}")) }
}

#[test]
fn single_failures_cost_one_answer_at_most() {
    let lists =
        SAMPLE.iter().flat_map(|(kind, numbers)| numbers.iter().map(move |number| vec![format!("{kind}:{number}")]));
    let wrong = swept(lists.collect());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "hours of scenarios: `make faults`"]
fn every_failure_costs_one_answer_at_most() {
    let only = std::env::var("CONSORT_SOAK_FAULTS").unwrap_or_default();
    let all = SWEPT.iter().flat_map(|(process, calls)| calls.iter().map(move |call| format!("{process}/{call}")));
    let lists =
        all.filter(|kind| kind.contains(&only)).map(|kind| (1..500).map(|number| format!("{kind}:{number}")).collect());
    let wrong = swept(lists.collect());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Makes the failures of each list until one is not reached, four lists at a time. Returns the
/// errors.
fn swept(lists: Vec<Vec<String>>) -> Vec<String> {
    let lists = std::sync::Mutex::new(lists.into_iter().rev().collect::<Vec<_>>());
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(list) = lists.lock().expect("no panic holds it").pop() else { return };
                    for fault in list {
                        match check_scenario(&fault) {
                            Ok(Some(_)) => {}
                            Ok(None) => {
                                println!("         {fault} is not reached");
                                break;
                            }
                            Err(text) => {
                                println!("WRONG    {text}");
                                wrong.lock().expect("no panic holds it").push(text);
                            }
                        }
                    }
                }
            });
        }
    });
    wrong.into_inner().expect("no panic holds it")
}
