//! The two clients of the demo and the benchmark: a person's editor over LSP, and that person's
//! agent over MCP.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::framing::Framing;
use crate::rpc::Client;

/// A file's URI.
pub fn uri(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// A person's editor: an LSP client that has initialized.
#[derive(Debug)]
pub struct Editor {
    /// The client's streams.
    pub client: Client,
    version: i32,
}

impl Editor {
    /// Starts `command` (`consort lsp`) for the workspace `root`.
    pub fn open(command: &mut Command, root: &Path) -> Result<Editor> {
        let mut client = Client::spawn(command, Framing::Headers)?;
        let root = uri(root);
        client.request(
            "initialize",
            json!({
                "processId": std::process::id(), "rootUri": root, "clientInfo": {"name": "an editor"},
                "workspaceFolders": [{"uri": root, "name": "workspace"}],
                "capabilities": {"textDocument": {"publishDiagnostics": {"versionSupport": true}}},
            }),
        )?;
        client.notify("initialized", json!({}))?;
        Ok(Editor { client, version: 0 })
    }

    /// Executes `workspace/executeCommand`.
    pub fn command(&mut self, command: &str, argument: Value) -> Result<Value> {
        self.client.request("workspace/executeCommand", json!({"command": command, "arguments": [argument]}))
    }

    /// Evaluates; returns the printed values, each on a line that begins with `=> `.
    pub fn eval(&mut self, code: &str, package: &str) -> Result<String> {
        let answer = self.command("consort.eval", json!({"code": code, "package": package}))?;
        let values = answer["values"]
            .as_array()
            .with_context(|| format!("consort.eval did not answer with values: {answer}"))?;
        let lines: Vec<String> = values.iter().filter_map(|value| Some(format!("=> {}", value.as_str()?))).collect();
        ensure!(!lines.is_empty(), "consort.eval answered without a value: {answer}");
        Ok(lines.join("\n"))
    }

    /// Opens a document.
    pub fn open_document(&mut self, file: &Path, text: &str) -> Result<()> {
        self.version += 1;
        let document = json!({"uri": uri(file), "languageId": "commonlisp", "version": self.version, "text": text});
        self.client.notify("textDocument/didOpen", json!({"textDocument": document}))
    }

    /// Changes a document by `changes`, LSP's `TextDocumentContentChangeEvent`s.
    pub fn change_document(&mut self, file: &Path, changes: Value) -> Result<()> {
        self.version += 1;
        let document = json!({"uri": uri(file), "version": self.version});
        self.client.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}))
    }

    /// Closes a document.
    pub fn close_document(&mut self, file: &Path) -> Result<()> {
        self.client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri(file)}}))
    }

    /// Requests the complete diagnostics of the text as it now is.
    pub fn diagnostics(&mut self, file: &Path) -> Result<Vec<Value>> {
        let mut report = self.client.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri(file)}}))?;
        match report["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("textDocument/diagnostic answered without items: {report}"),
        }
    }

    /// Waits for the next diagnostics that are published for `file` and `wanted`.
    pub fn published(&mut self, file: &Path, wanted: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>> {
        let uri = json!(uri(file));
        let accept = |params: &Value| {
            params["uri"] == uri && params["diagnostics"].as_array().is_some_and(|items| wanted(items))
        };
        let mut params = self.client.wait_for("textDocument/publishDiagnostics", accept)?;
        match params["diagnostics"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("publishDiagnostics without diagnostics"),
        }
    }

    /// Sends `shutdown` and `exit`, and waits for the end of `consort lsp`.
    pub fn close(mut self) -> Result<()> {
        self.client.request("shutdown", Value::Null)?;
        self.client.notify("exit", Value::Null)?;
        let status = self.client.close()?;
        ensure!(status.success(), "consort lsp left with {status}");
        Ok(())
    }
}

/// A person's agent: an MCP client that has initialized.
#[derive(Debug)]
pub struct Agent {
    /// The client's streams.
    pub client: Client,
}

impl Agent {
    /// Starts `command` (`consort mcp`).
    pub fn open(command: &mut Command) -> Result<Agent> {
        let mut client = Client::spawn(command, Framing::Lines)?;
        let us = json!({"name": "an agent", "version": env!("CARGO_PKG_VERSION")});
        client.request("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us}))?;
        client.notify("notifications/initialized", json!({}))?;
        Ok(Agent { client })
    }

    /// Calls `evaluate-lisp`; returns the answer's text.
    pub fn evaluate(&mut self, code: &str) -> Result<String> {
        let answer =
            self.client.request("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": code}}))?;
        let text = answer["content"][0]["text"]
            .as_str()
            .with_context(|| format!("evaluate-lisp answered without a text: {answer}"))?;
        ensure!(answer["isError"] != json!(true), "evaluate-lisp failed: {text}");
        Ok(text.trim_end().to_owned())
    }

    /// Calls a tool; returns its whole result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        self.client.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Ends `consort mcp`.
    pub fn close(self) -> Result<()> {
        let status = self.client.close()?;
        ensure!(status.success(), "consort mcp left with {status}");
        Ok(())
    }
}
