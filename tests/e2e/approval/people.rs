//! The whole program: `consort mcp` for the agent, `consort lsp` for the editor that is asked, one
//! host, and its audit log.

use std::path::PathBuf;

use consort_tests::installation::Installation;
use consort_tests::patience::{AMPLE, until};
use consort_tests::wire::Rpc;
use serde_json::{Value, json};

const ASK: &str = "window/showMessageRequest";

/// A person's editor and their agent, with the settings of a new installation.
pub(crate) struct People {
    pub(crate) world: Installation,
    pub(crate) editor: Rpc,
    pub(crate) agent: Rpc,
}

/// Calls a tool; returns the request's id.
pub(crate) fn begin(agent: &mut Rpc, tool: &str, arguments: Value) -> u64 {
    agent.begin("tools/call", json!({"name": tool, "arguments": arguments}))
}

/// Returns a tool's result.
pub(crate) fn result(agent: &mut Rpc, call: u64) -> Value {
    let mut answer = agent.wait(call);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

/// `data.type` of the contract's error object of a tool that failed.
pub(crate) fn kind(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"]["data"]["type"].as_str().unwrap_or_default()
}

impl People {
    pub(crate) fn open() -> People {
        let world = Installation::new();
        world.write("core.lisp", CORE);
        let mut editor = world.lsp();
        // `initialized` has no answer, so a request behind it is waited for.
        editor.request("workspace/executeCommand", json!({"command": "consort.status", "arguments": [{}]}));
        let agent = world.mcp();
        People { world, editor, agent }
    }

    /// Waits for the next question.
    pub(crate) fn question(&mut self) -> Value {
        self.editor.until("a question", |rpc| {
            let at = rpc.requests.iter().position(|request| request["method"] == ASK)?;
            Some(rpc.requests.remove(at))
        })
    }

    pub(crate) fn press(&mut self, question: &Value, title: &str) {
        self.editor.answer(&question["id"], json!({"title": title}));
    }

    /// Calls a tool, runs `meanwhile` while the person reads, presses a button; returns the result.
    pub(crate) fn decided(&mut self, tool: &str, arguments: Value, meanwhile: impl FnOnce(), title: &str) -> Value {
        let call = begin(&mut self.agent, tool, arguments);
        let question = self.question();
        meanwhile();
        self.press(&question, title);
        result(&mut self.agent, call)
    }

    pub(crate) fn denied(&mut self, tool: &str, arguments: Value) {
        let refused = self.decided(tool, arguments, || (), "Deny");
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(refused["content"][0]["text"].to_string().contains("not allowed by the person"), "{refused}");
    }

    pub(crate) fn allowed(&mut self, tool: &str, arguments: Value, title: &str) {
        let done = self.decided(tool, arguments, || (), title);
        assert_eq!(done["isError"], false, "{done}");
    }

    /// Calls a tool about which nobody is asked.
    pub(crate) fn unasked(&mut self, tool: &str, arguments: Value) -> Value {
        let call = begin(&mut self.agent, tool, arguments);
        // A question would have come before the result, which would wait for its answer.
        let result = result(&mut self.agent, call);
        self.eval("1");
        assert!(!self.editor.requests.iter().any(|request| request["method"] == ASK), "{:?}", self.editor.requests);
        result
    }

    /// Returns the first value of an evaluation of the person.
    pub(crate) fn eval(&mut self, code: &str) -> String {
        let arguments = json!({"command": "consort.eval", "arguments": [{"code": code, "timeout": AMPLE}]});
        let outcome = self.editor.request("workspace/executeCommand", arguments);
        assert_eq!(outcome["status"], "ok", "{code}: {outcome}");
        outcome["values"][0].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn text_of(&self, name: &str) -> String {
        std::fs::read_to_string(self.world.path(name)).expect("the file")
    }

    /// Waits until the audit log has these decisions, as `tool decision`, and no others; those by a
    /// rule are left out. The last lines are written after the answer.
    pub(crate) fn audited(&self, expected: &[&str]) {
        until(&format!("{expected:#?} in the audit log"), || {
            let found = self.audit();
            assert!(found.len() <= expected.len(), "{found:#?} and not {expected:#?}");
            found == expected
        });
    }

    fn audit(&self) -> Vec<String> {
        let directory = self.outside().join("home/state/consort");
        let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let log = files.map(|file| file.path()).find(|path| path.display().to_string().ends_with(".audit.jsonl"));
        let text = log.and_then(|log| std::fs::read_to_string(log).ok()).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let entries = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        let decided = entries.filter(|entry| entry["class"] != "eval");
        let words = |entry: Value| [&entry["tool"], &entry["decision"]].map(|word| word.as_str().map(str::to_owned));
        decided.map(|entry| words(entry).map(Option::unwrap_or_default).join(" ")).collect()
    }

    /// The directory that contains the workspace.
    pub(crate) fn outside(&self) -> PathBuf {
        self.world.workspace().parent().expect("the installation").to_owned()
    }

    pub(crate) fn end(self) {
        let People { world, editor, agent } = self;
        drop((editor, agent));
        world.finish();
    }
}

/// The text of `core.lisp`.
pub(crate) const CORE: &str = "(defun core (x)\n  (* x 2))\n";
