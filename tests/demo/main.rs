//! `make demo`: Consort at work on examples/telegraph, through the same doors that editors and agents use.
//!
//! Everything shown is done for real: the commands are run, and the editor's and the agent's parts are played by two clients that speak
//! LSP and MCP to `consort lsp` and `consort mcp`. It has a runtime directory of its own, so that it neither uses nor ends a host of yours.

#![allow(clippy::print_stdout)] // it is here to print

mod stage;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use stage::{Agent, Editor, Stage};

/// What the person is writing: it calls a function that nobody has written yet.
const DRAFT: &str = "(in-package :telegraph)\n\n(defun distress ()\n  (sos \"here\"))\n";

fn main() -> Result<()> {
    let example: PathBuf = std::env::args_os().nth(1).map_or_else(|| "examples/telegraph".into(), PathBuf::from);
    let example = example.canonicalize().context("no examples/telegraph here; run me through `make demo`")?;
    let stage = Stage::new(example)?;
    let played = play(&stage);
    // Also after a failure: nothing stays behind.
    let left = stage.clear();
    played?;
    left?;
    epilogue(&stage);
    Ok(())
}

fn play(stage: &Stage) -> Result<()> {
    stage.title("An editor opens the workspace: one host and one SBCL image start, and your system is loaded");
    let mut editor = Editor::open(stage)?;
    editor.load_system("telegraph")?;
    stage.says("editor", "consort.loadSystem {\"system\": \"telegraph\"}");
    stage.answers("loaded; the macros and functions of telegraph are in the image now");

    stage.title("1. What the compiler thinks, where it thinks it");
    stage.note("Every check runs in a forked, confined, throw-away copy of that image: it knows what the image knows, and leaves no trace.");
    let code = stage.run(&["check", "."])?;
    ensure!(code == Some(1), "`consort check` found nothing in files that are wrong (exit code {code:?})");

    stage.title("2. You write a call of a function that does not exist yet; an agent defines it");
    let file = stage.example().join("distress.lisp");
    let before = editor.open_document(&file, DRAFT)?;
    stage.says("editor", "distress.lisp, unsaved: (defun distress () (sos \"here\"))");
    stage.diagnostics(&before);
    ensure!(
        before.iter().any(|item| mentions(item, "SOS")),
        "the editor was not told that SOS is undefined: {before:?}"
    );

    let mut agent = Agent::open(stage)?;
    let code = "(in-package :telegraph)\n(defun sos (where)\n  \"A call for help, in Morse code.\"\n  (encode (format nil \"sos ~A\" where)))";
    stage.says("agent", &format!("evaluate-lisp\n{code}"));
    stage.answers(&agent.evaluate(code)?);

    stage.title("3. The editor sees it at once");
    let value = editor.eval("(sos \"here\")", "TELEGRAPH")?;
    stage.says("editor", "consort.eval (sos \"here\")");
    stage.answers(&value);
    ensure!(value.contains("... --- ..."), "the agent's function did not answer through the editor's door: {value}");
    let after = editor.change_document(&file, &DRAFT.replace("distress ()", "distress ( )"))?;
    stage.says("editor", "distress.lisp, after a keystroke:");
    stage.diagnostics(&after);
    ensure!(after.is_empty(), "the agent's function is still unknown to the editor: {after:?}");

    stage.title("4. Two doors, one image");
    let (through_editor, through_agent) = (editor.image()?, agent.image()?);
    stage.says("editor", "which image is this?");
    stage.answers(&through_editor);
    stage.says("agent", "which image is this?");
    stage.answers(&through_agent);
    ensure!(
        through_editor == through_agent,
        "the doors lead to different images: {through_editor} and {through_agent}"
    );
    stage.run(&["status"])?;

    editor.close()?;
    agent.close()
}

fn mentions(diagnostic: &Value, word: &str) -> bool {
    diagnostic["message"].as_str().is_some_and(|message| message.to_uppercase().contains(word))
}

fn epilogue(stage: &Stage) {
    stage.title("The host and its image have been stopped. Now your own code");
    println!(
        "
  Put `consort` on your PATH:   make install     (then `consort doctor` tells whether all is well)

  Neovim 0.11   put editors/neovim on your runtimepath, and in init.lua:   vim.lsp.enable('consort')
  VS Code       any generic LSP client extension, with the command `consort lsp` for the language commonlisp;
                for its agent, .vscode/mcp.json:
                {vscode}
  Claude Code   claude mcp add consort -- consort mcp
  Other agents  (Cursor, Zed, Codex, ...) as an MCP server on stdio:
                {other}

  In the terminal   consort check FILE|DIR|SYSTEM.asd    consort eval CODE    consort status    consort --help
  All of it is in README.md and docs/.",
        vscode = json!({"servers": {"consort": {"type": "stdio", "command": "consort", "args": ["mcp"]}}}),
        other = json!({"mcpServers": {"consort": {"command": "consort", "args": ["mcp"]}}}),
    );
}
