//! What the demo stands on: a place of its own, what it prints, and the two clients.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use consort_tests::rpc::{Client, Framing};
use serde_json::{Value, json};

/// Where the demo plays, and what it looks like.
pub(crate) struct Stage {
    consort: PathBuf,
    example: PathBuf,
    runtime: tempfile::TempDir,
    colour: bool,
}

impl Stage {
    pub(crate) fn new(example: PathBuf) -> Result<Stage> {
        let consort = match std::env::var_os("CONSORT_BIN") {
            Some(path) => path.into(),
            None => std::env::current_exe()?.with_file_name("consort"),
        };
        ensure!(consort.exists(), "{} is missing: run me through `make demo`", consort.display());
        let runtime = tempfile::Builder::new().prefix("consort-demo").tempdir()?;
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Ok(Stage { consort, example, runtime, colour })
    }

    pub(crate) fn example(&self) -> &Path {
        &self.example
    }

    /// `consort ARGS`, in the example's directory and with the demo's own runtime directory.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.consort);
        command
            .args(args)
            .current_dir(&self.example)
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("TMPDIR", self.runtime.path());
        command
    }

    /// Run a command for the audience; its exit code.
    pub(crate) fn run(&self, args: &[&str]) -> Result<Option<i32>> {
        println!("\n{}\n", self.paint("1", &format!("$ consort {}", args.join(" "))));
        let status = self.command(args).status().context("cannot run consort")?;
        Ok(status.code())
    }

    /// Stop the host, and see that it and its image have gone.
    pub(crate) fn clear(&self) -> Result<()> {
        let status = self.command(&["status", "--json"]).output()?;
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        let pids: Vec<i32> = [&status["host_pid"], &status["image"]["pid"]]
            .iter()
            .filter_map(|pid| pid.as_i64().and_then(|pid| i32::try_from(pid).ok()))
            .collect();
        let stopped = self.command(&["stop"]).output()?;
        ensure!(stopped.status.success(), "consort stop failed: {}", String::from_utf8_lossy(&stopped.stderr));
        let deadline = Instant::now() + Duration::from_secs(10);
        for pid in pids {
            let pid = rustix::process::Pid::from_raw(pid).context("a process id of 0")?;
            while rustix::process::test_kill_process(pid).is_ok() {
                ensure!(
                    Instant::now() < deadline,
                    "process {} is still there after `consort stop`",
                    pid.as_raw_nonzero()
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn title(&self, text: &str) {
        println!("\n{}", self.paint("1;36", &format!("━━ {text}")));
    }

    pub(crate) fn note(&self, text: &str) {
        println!("{}", self.paint("2", &format!("   {text}")));
    }

    /// A client does something.
    pub(crate) fn says(&self, who: &str, what: &str) {
        let style = if who == "agent" { "1;35" } else { "1;34" };
        println!("\n{} {}", self.paint(style, &format!("{who:>6} ▸")), what.replace('\n', "\n         "));
    }

    /// What came back.
    pub(crate) fn answers(&self, what: &str) {
        println!("         {}", self.paint("32", &what.trim_end().replace('\n', "\n         ")));
    }

    /// Diagnostics, as an editor has them.
    pub(crate) fn diagnostics(&self, items: &[Value]) {
        for item in items {
            let start = &item["range"]["start"];
            let message = item["message"].as_str().unwrap_or_default();
            let place = format!("line {}, character {}", start["line"], start["character"]);
            println!("         {}", self.paint("33", &format!("{place}: {message}")));
        }
        if items.is_empty() {
            self.answers("no diagnostics");
        }
    }
}

/// A person's editor: an LSP client.
pub(crate) struct Editor {
    client: Client,
    version: i32,
}

impl Editor {
    pub(crate) fn open(stage: &Stage) -> Result<Editor> {
        let mut client = Client::spawn(&mut stage.command(&["lsp"]), Framing::Headers)?;
        // The first start on a machine builds the core.
        client.limit = Duration::from_secs(120);
        let root = uri(&stage.example);
        client.request(
            "initialize",
            json!({
                "processId": std::process::id(), "rootUri": root, "clientInfo": {"name": "the demo's editor"},
                "workspaceFolders": [{"uri": root, "name": "telegraph"}],
                "capabilities": {"textDocument": {"publishDiagnostics": {"versionSupport": true}}},
            }),
        )?;
        client.notify("initialized", json!({}))?;
        Ok(Editor { client, version: 0 })
    }

    pub(crate) fn load_system(&mut self, system: &str) -> Result<()> {
        self.command("consort.loadSystem", json!({"system": system}))?;
        Ok(())
    }

    /// Evaluate; the printed values.
    pub(crate) fn eval(&mut self, code: &str, package: &str) -> Result<String> {
        let answer = self.command("consort.eval", json!({"code": code, "package": package}))?;
        let values = answer["values"]
            .as_array()
            .with_context(|| format!("consort.eval did not answer with values: {answer}"))?;
        let printed: Vec<&str> = values.iter().filter_map(|value| value["text"].as_str().or(value.as_str())).collect();
        Ok(printed.iter().map(|value| format!("=> {value}")).collect::<Vec<_>>().join("\n"))
    }

    pub(crate) fn image(&mut self) -> Result<String> {
        self.eval(IMAGE, "CL-USER")
    }

    /// Open a document that is on no disk, and wait for what the server has to say of it.
    pub(crate) fn open_document(&mut self, file: &Path, text: &str) -> Result<Vec<Value>> {
        self.version = 1;
        let document = json!({"uri": uri(file), "languageId": "commonlisp", "version": self.version, "text": text});
        self.client.notify("textDocument/didOpen", json!({"textDocument": document}))?;
        self.published(file)
    }

    pub(crate) fn change_document(&mut self, file: &Path, text: &str) -> Result<Vec<Value>> {
        self.version += 1;
        let document = json!({"uri": uri(file), "version": self.version});
        self.client
            .notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [{"text": text}]}))?;
        self.published(file)
    }

    /// The complete diagnostics of the version that was sent last, by asking for them.
    fn published(&mut self, file: &Path) -> Result<Vec<Value>> {
        let mut report = self.client.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri(file)}}))?;
        match report["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("textDocument/diagnostic answered without items: {other}"),
        }
    }

    fn command(&mut self, command: &str, argument: Value) -> Result<Value> {
        self.client.request("workspace/executeCommand", json!({"command": command, "arguments": [argument]}))
    }

    pub(crate) fn close(mut self) -> Result<()> {
        self.client.request("shutdown", Value::Null)?;
        self.client.notify("exit", Value::Null)?;
        let status = self.client.close()?;
        ensure!(status.success(), "consort lsp left with {status}");
        Ok(())
    }
}

/// A person's agent: an MCP client.
pub(crate) struct Agent {
    client: Client,
}

impl Agent {
    pub(crate) fn open(stage: &Stage) -> Result<Agent> {
        let mut client = Client::spawn(&mut stage.command(&["mcp"]), Framing::Lines)?;
        let us = json!({"name": "the demo's agent", "version": env!("CARGO_PKG_VERSION")});
        client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us}))?;
        client.notify("notifications/initialized", json!({}))?;
        Ok(Agent { client })
    }

    /// Evaluate; the answer's text.
    pub(crate) fn evaluate(&mut self, code: &str) -> Result<String> {
        let answer =
            self.client.request("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": code}}))?;
        let text = answer["content"][0]["text"]
            .as_str()
            .with_context(|| format!("evaluate-lisp answered without a text: {answer}"))?;
        ensure!(answer["isError"] != json!(true), "evaluate-lisp failed: {text}");
        Ok(text.to_owned())
    }

    pub(crate) fn image(&mut self) -> Result<String> {
        self.evaluate(IMAGE)
    }

    pub(crate) fn close(self) -> Result<()> {
        let status = self.client.close()?;
        ensure!(status.success(), "consort mcp left with {status}");
        Ok(())
    }
}

/// What tells an image from every other.
const IMAGE: &str = "(list (lisp-implementation-version) :process (sb-posix:getpid))";

fn uri(path: &Path) -> String {
    let escaped: String = path
        .to_string_lossy()
        .bytes()
        .map(|byte| match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("file://{escaped}")
}
