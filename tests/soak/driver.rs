//! The clients, their requests, and the faults that are done to the processes under them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use consort_tests::frontends::Frontend;
use consort_tests::installation::Installation;
use consort_tests::patience::{AMPLE, found, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::history::{Call, Event};
use crate::record::Record;
use crate::text::Text;

/// The most requests of a client that may be open at once.
const OPEN: usize = 8;
/// The time between two killed hosts: an editor gets no third new host in a minute.
const HOSTS: Duration = Duration::from_secs(30);
/// The steps between two comparisons of all texts and findings.
const ROUND: u64 = 80;

/// A client, and its open requests.
struct Client {
    frontend: Frontend,
    open: Vec<(u64, Call)>,
    /// The document; an agent has none.
    document: Option<Document>,
}

struct Document {
    path: PathBuf,
    uri: String,
    text: Text,
    version: u32,
}

/// An installation, two editors and an agent.
pub(crate) struct Driver {
    world: Installation,
    clients: Vec<Client>,
    random: fastrand::Rng,
    events: Record,
    descriptors: usize,
    killed: Option<Instant>,
}

impl Driver {
    /// Starts everything, and waits until each client has had an answer.
    pub(crate) fn start(seed: u64, events: Record) -> Driver {
        let world = Installation::new();
        let mut clients = Vec::new();
        for name in ["one.lisp", "two.lisp"] {
            let path = world.write(name, "");
            let document = Document { path, uri: world.uri(name), text: Text::default(), version: 1 };
            clients.push(Client { frontend: Frontend::Lsp(world.lsp()), open: Vec::new(), document: Some(document) });
        }
        clients.push(Client { frontend: Frontend::Mcp(world.mcp()), open: Vec::new(), document: None });
        let random = fastrand::Rng::with_seed(seed);
        let mut driver = Driver { world, clients, random, events, descriptors: 0, killed: None };
        for client in 0..driver.clients.len() {
            driver.open_document(client);
            driver.begin(client, Call::Read);
        }
        driver.collect_all();
        driver.descriptors = driver.host_descriptors().unwrap_or_default();
        driver
    }

    /// Does one random thing.
    pub(crate) fn step(&mut self, number: u64) {
        self.events.push(Event::Step { number });
        let client = self.random.usize(..self.clients.len());
        let editor = self.random.usize(..2);
        if self.clients[client].open.len() >= OPEN {
            self.collect(client);
        }
        match self.random.u8(..100) {
            0..45 => self.edit(editor),
            45..49 => self.save(editor),
            49..52 => self.reopen(editor),
            52..66 => self.begin(client, Call::Write),
            66..78 => self.begin(client, Call::Read),
            78..84 => self.begin(editor, Call::Endless),
            84..92 => self.cancel(editor),
            92 => self.compare_text(editor),
            93 => self.signal_image("SIGKILL of the image", Signal::KILL),
            94 => self.restart(editor),
            95 => self.kill_host(),
            96 => self.pause("image", client),
            97 => self.pause("host", client),
            98 => match self.random.u8(..3) {
                0 => self.kill_copy(),
                1 => self.pause("copy", client),
                _ => self.pause("bridge", client),
            },
            99 => self.replace_bridge(client),
            _ => self.collect(client),
        }
        if number % ROUND == ROUND - 1 {
            self.compare_all();
        }
    }

    /// Ends everything and returns the record.
    pub(crate) fn finish(mut self) -> Record {
        self.compare_all();
        let (before, world) = (self.descriptors, &self.world);
        // Copies that were kept ready, and connections of `consort check`, end by themselves after
        // a while.
        let (descriptors, memory) = found("the host's descriptors", || {
            Some((host_descriptors(world)?, world.status()["host_memory"].as_u64()?))
        });
        self.events.push(Event::Host { descriptors, memory, descriptors_before: before });
        for (client, one) in self.clients.iter_mut().enumerate() {
            self.events.push(Event::Surplus { client, ids: std::mem::take(&mut one.frontend.rpc().surplus) });
        }
        drop(self.clients);
        self.world.finish();
        self.events.push(Event::Ended);
        self.events
    }

    fn begin(&mut self, client: usize, call: Call) {
        if call == Call::Endless && self.clients[client].open.iter().any(|(_, open)| *open == Call::Endless) {
            return;
        }
        // An agent's calls run concurrently, so the earlier ones are waited for; an editor's run in
        // order.
        if self.clients[client].document.is_none() {
            self.collect(client);
        }
        let value = self.random.u64(1..1_000_000);
        let code = match call {
            Call::Write if self.random.u8(..5) == 0 => {
                format!("(progn (sb-ext:run-program \"/bin/sleep\" '(\"93000\") :wait nil) {value})")
            }
            Call::Write => value.to_string(),
            Call::Read => "*".into(),
            Call::Endless => "(loop (sleep 0.001))".into(),
        };
        let one = &mut self.clients[client];
        let id = one.frontend.begin(&code, AMPLE);
        one.open.push((id, call));
        self.events.push(Event::Begin { client, id, call, value });
    }

    fn cancel(&mut self, client: usize) {
        let one = &mut self.clients[client];
        if let Some((id, _)) = one.open.iter().find(|(_, call)| *call == Call::Endless) {
            self.events.push(Event::Cancel { client, id: *id });
            one.frontend.cancel(*id);
        }
    }

    /// Waits for all answers of a client.
    fn collect(&mut self, client: usize) {
        self.cancel(client);
        let one = &mut self.clients[client];
        for (id, _) in std::mem::take(&mut one.open) {
            let answer = one.frontend.wait(id);
            let text = if answer.failed { answer.text } else { answer.values.into_iter().next().unwrap_or_default() };
            self.events.push(Event::End { client, id, failed: answer.failed, text });
        }
    }

    fn collect_all(&mut self) {
        (0..self.clients.len()).for_each(|client| self.collect(client));
    }

    /// Repeats a request until it is answered without an error, because one answer may report that
    /// a host was killed.
    fn ask(&mut self, client: usize, method: &str, params: &Value) -> Value {
        let rpc = self.clients[client].frontend.rpc();
        found(method, || {
            let mut answer = rpc.call(method, params.clone());
            answer.get("error").is_none().then(|| answer["result"].take())
        })
    }

    // Documents.

    fn notify(&mut self, client: usize, method: &str, params: Value) {
        self.clients[client].frontend.rpc().notify(method, params);
    }

    fn open_document(&mut self, client: usize) {
        if let Some(document) = &self.clients[client].document {
            let item = json!({"uri": document.uri, "languageId": "commonlisp", "version": document.version, "text": document.text.whole()});
            self.notify(client, "textDocument/didOpen", json!({"textDocument": item}));
        }
    }

    fn edit(&mut self, client: usize) {
        let Some(document) = &mut self.clients[client].document else { return };
        document.version += 1;
        let count = self.random.usize(1..4);
        let changes: Vec<Value> = (0..count).map(|_| document.text.edit(&mut self.random)).collect();
        let params =
            json!({"textDocument": {"uri": document.uri, "version": document.version}, "contentChanges": changes});
        self.notify(client, "textDocument/didChange", params);
    }

    fn save(&mut self, client: usize) {
        let Some(document) = &self.clients[client].document else { return };
        std::fs::write(&document.path, document.text.whole()).expect("a file");
        let params = json!({"textDocument": {"uri": document.uri}});
        self.notify(client, "textDocument/didSave", params);
    }

    /// Closes the document, and opens it with the same text, which may be unsaved.
    fn reopen(&mut self, client: usize) {
        let Some(document) = &self.clients[client].document else { return };
        let params = json!({"textDocument": {"uri": document.uri}});
        self.notify(client, "textDocument/didClose", params);
        self.open_document(client);
    }

    /// Waits until the host has all that the editor sent.
    fn arrived(&mut self, client: usize) {
        self.ask(client, "workspace/executeCommand", &json!({"command": "consort.status", "arguments": []}));
    }

    fn compare_text(&mut self, client: usize) {
        self.arrived(client);
        let Some(document) = &self.clients[client].document else { return };
        let (ours, path) = (document.text.whole(), document.path.clone());
        let ours_unsaved = std::fs::read_to_string(&path).expect("a file") != ours;
        let arguments = json!({"path": path, "collapsed": false});
        let read = self.ask(2, "tools/call", &json!({"name": "lisp-read-file", "arguments": arguments}));
        let facts = &read["structuredContent"];
        let theirs =
            facts["text"].as_str().or_else(|| read["content"][0]["text"].as_str()).unwrap_or_default().to_owned();
        let theirs_unsaved = facts["unsaved"] == true;
        self.events.push(Event::Text { client, ours, theirs, ours_unsaved, theirs_unsaved });
    }

    /// Waits until an image is ready. Before that, pulled diagnostics have only those of the text
    /// alone.
    fn image_is_ready(&self) {
        // The image starts with the first request that needs it.
        self.world.run(&["eval", "1"]);
        until("an image that is ready", || self.world.status()["image"]["state"] == "ready");
    }

    /// Compares the texts and findings of all documents, when all requests are answered.
    fn compare_all(&mut self) {
        self.collect_all();
        self.image_is_ready();
        for client in 0..2 {
            self.compare_text(client);
            self.save(client);
            self.compare_text(client);
            let Some(document) = &self.clients[client].document else { continue };
            let (uri, path) = (document.uri.clone(), document.path.clone());
            let pulled = self.ask(client, "textDocument/diagnostic", &json!({"textDocument": {"uri": uri}}));
            let shown = findings(pulled["items"].as_array().into_iter().flatten());
            let output = self.world.run(&["check", "--json", &path.to_string_lossy()]);
            let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}: {output:?}")))
                .collect();
            self.events.push(Event::Findings { client, shown, checked: findings(lines.iter()) });
        }
    }

    // Faults.

    fn fault(&mut self, what: &str) {
        self.events.push(Event::Fault { what: what.into() });
    }

    fn signal_image(&mut self, what: &str, signal: Signal) {
        if let Some(pid) = process(&self.world.status()["image"]["pid"]) {
            let _ = kill_process(pid, signal); // it may have ended just now
            self.fault(what);
        }
    }

    fn restart(&mut self, client: usize) {
        self.collect(client);
        self.fault("restart of the image");
        self.ask(client, "workspace/executeCommand", &json!({"command": "consort.restartImage", "arguments": []}));
        // Requests that other clients had begun may have ended with the old image.
        self.fault("restarted");
    }

    fn kill_host(&mut self) {
        if self.killed.is_some_and(|at| at.elapsed() < HOSTS) {
            return;
        }
        // The host ends the programs of an image that has ended; that must be over before.
        self.collect_all();
        self.image_is_ready();
        if let Some(pid) = process(&self.world.status()["host_pid"]) {
            self.killed = Some(Instant::now());
            let image = self.world.status()["image"]["pid"].to_string();
            kill_process(pid, Signal::KILL).expect("the host runs");
            self.fault("SIGKILL of the host");
            let world = &self.world;
            until("the image to leave", || {
                !world.processes().iter().any(|line| line.starts_with(&format!("{image} ")))
            });
        }
    }

    /// Stops a process, makes a request, and has the process continue.
    fn pause(&mut self, which: &str, client: usize) {
        // No request of the client may wait for the stopped process.
        self.collect(client);
        let pid = match which {
            "copy" => self.copy(),
            "bridge" => i32::try_from(self.clients[client].frontend.rpc().pid()).ok().and_then(Pid::from_raw),
            "host" => process(&self.world.status()["host_pid"]),
            _ => process(&self.world.status()["image"]["pid"]),
        };
        let stopped = pid.filter(|pid| kill_process(*pid, Signal::STOP).is_ok());
        self.begin(client, Call::Write);
        self.edit(client);
        if let Some(pid) = stopped {
            // A copy may be ended while it is stopped.
            let went_on = kill_process(pid, Signal::CONT);
            assert!(went_on.is_ok() || which == "copy", "{which}: {went_on:?}");
        }
    }

    /// A copy of the image that there is now: a process with the image's own command line, and the
    /// image for its parent.
    fn copy(&self) -> Option<Pid> {
        let image = self.world.status()["image"]["pid"].as_u64()?;
        let line = std::fs::read(format!("/proc/{image}/cmdline")).ok()?;
        let entries = std::fs::read_dir("/proc").ok()?.flatten();
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_copy = |pid: &i32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.contains(&format!("\nPPid:\t{image}\n"))
                && std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|of| of == line)
        };
        pids.find(is_copy).and_then(Pid::from_raw)
    }

    /// Kills a copy, which no client may notice: its work is done in another copy.
    fn kill_copy(&mut self) {
        if let Some(pid) = self.copy() {
            let _ = kill_process(pid, Signal::KILL); // it may have ended just now
        }
    }

    /// Kills a client's bridge, and starts another as a client does.
    fn replace_bridge(&mut self, client: usize) {
        self.collect(client);
        let one = &mut self.clients[client];
        let ids = std::mem::take(&mut one.frontend.rpc().surplus);
        let editor = one.document.is_some();
        one.frontend = if editor { Frontend::Lsp(self.world.lsp()) } else { Frontend::Mcp(self.world.mcp()) };
        self.events.push(Event::Surplus { client, ids });
        // A new connection is a new session.
        self.fault("SIGKILL of a bridge");
        self.open_document(client);
    }

    fn host_descriptors(&self) -> Option<usize> {
        host_descriptors(&self.world)
    }
}

fn host_descriptors(world: &Installation) -> Option<usize> {
    let host = world.status()["host_pid"].as_u64()?;
    Some(std::fs::read_dir(format!("/proc/{host}/fd")).ok()?.count())
}

fn process(pid: &Value) -> Option<Pid> {
    pid.as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?))
}

/// Returns diagnostics as lines that can be compared.
fn findings<'a>(diagnostics: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut lines: Vec<String> = diagnostics
        .map(|one| {
            format!("{} {} {}", one["range"]["start"], one["code"].as_str().unwrap_or_default(), one["severity"])
        })
        .collect();
    lines.sort();
    lines
}
