//! The same evaluation over either front end, for tests of behaviour that both must have.

use serde_json::{Value, json};

use crate::patience::AMPLE;
use crate::wire::Rpc;

/// A client of one front end.
pub enum Frontend {
    /// `consort lsp`.
    Lsp(Rpc),
    /// `consort mcp`.
    Mcp(Rpc),
}

/// An answer, in terms that both front ends share.
#[derive(Debug)]
pub struct Answer {
    /// True if the evaluation failed.
    pub failed: bool,
    /// All text that a person or an agent reads: the tool's text, or the command's result, or the
    /// error's message.
    pub text: String,
    /// The values, printed.
    pub values: Vec<String>,
}

impl Frontend {
    /// The front end's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Frontend::Lsp(_) => "LSP",
            Frontend::Mcp(_) => "MCP",
        }
    }

    /// The client of the protocol.
    pub fn rpc(&mut self) -> &mut Rpc {
        match self {
            Frontend::Lsp(rpc) | Frontend::Mcp(rpc) => rpc,
        }
    }

    /// Requests an evaluation, without waiting.
    pub fn begin(&mut self, code: &str, timeout: f64) -> u64 {
        match self {
            Frontend::Lsp(rpc) => rpc.begin(
                "workspace/executeCommand",
                json!({"command": "consort.eval", "arguments": [{"code": code, "timeout": timeout}]}),
            ),
            Frontend::Mcp(rpc) => rpc
                .begin("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": code, "timeout": timeout}})),
        }
    }

    /// Cancels a request, in the protocol's own way.
    pub fn cancel(&mut self, id: u64) {
        match self {
            Frontend::Lsp(rpc) => rpc.notify("$/cancelRequest", json!({"id": id})),
            Frontend::Mcp(rpc) => rpc.notify("notifications/cancelled", json!({"requestId": id, "reason": "test"})),
        }
    }

    /// Waits for an evaluation.
    pub fn wait(&mut self, id: u64) -> Answer {
        let lsp = matches!(self, Frontend::Lsp(_));
        let answer = self.rpc().wait(id);
        if lsp { lsp_answer(&answer) } else { mcp_answer(&answer) }
    }

    /// Evaluates.
    pub fn eval(&mut self, code: &str, timeout: f64) -> Answer {
        let id = self.begin(code, timeout);
        self.wait(id)
    }

    /// Evaluates code that cannot fail, and returns its first value.
    pub fn value(&mut self, code: &str) -> String {
        let answer = self.eval(code, AMPLE);
        assert!(!answer.failed, "{} {code}: {answer:?}", self.name());
        answer.values.into_iter().next().unwrap_or_default()
    }
}

fn lsp_answer(answer: &Value) -> Answer {
    let result = &answer["result"];
    let values = texts(&result["values"]);
    let failed = answer.get("error").is_some() || result["status"] != "ok";
    Answer { failed, text: if failed { answer.to_string() } else { result.to_string() }, values }
}

fn mcp_answer(answer: &Value) -> Answer {
    let result = &answer["result"];
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(answer.get("error").is_some() || blocks.len() == 1, "one text block a result: {answer}");
    let text =
        blocks.first().and_then(|block| block["text"].as_str()).map_or_else(|| answer.to_string(), str::to_owned);
    Answer {
        failed: answer.get("error").is_some() || result["isError"] == true,
        text,
        values: texts(&result["structuredContent"]["values"]),
    }
}

fn texts(values: &Value) -> Vec<String> {
    values
        .as_array()
        .map(|values| {
            values.iter().filter_map(|v| v.as_str().or_else(|| v["text"].as_str())).map(str::to_owned).collect()
        })
        .unwrap_or_default()
}
