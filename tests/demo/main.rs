//! `make demo`: Consort at work on examples/telegraph, over the protocols that editors and agents
//! use.
//!
//! Everything shown is done for real: the commands are run, and the editor's and the agent's parts
//! are played by two clients that speak LSP and MCP to `consort lsp` and `consort mcp`.

#![allow(clippy::print_stdout)] // it is here to print

mod stage;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use consort_tests::clients::{Agent, Editor};
use consort_tests::place::Place;
use serde_json::{Value, json};
use stage::Stage;

/// The person's text: it calls a function that nobody has written yet.
const DRAFT: &str = "(in-package :telegraph)\n\n(defun distress ()\n  (sos \"here\"))\n";

/// The agent's text.
const SOS: &str = "(in-package :telegraph)\n(defun sos (place)\n  \"A call for help from PLACE.\"\n  (encode (format nil \"sos ~A\" place)))";

/// The code that returns an image's id.
const WHICH: &str = "(list :image consort::*image-id* :process (sb-posix:getpid))";

fn main() -> Result<()> {
    let example: PathBuf = std::env::args_os().nth(1).map_or_else(|| "examples/telegraph".into(), PathBuf::from);
    let place = Place::new(example.canonicalize().context("no examples/telegraph here; run me through `make demo`")?)?;
    let stage = Stage::new();
    let played = play(&stage, &place);
    // Also after a failure: nothing stays behind.
    let cleared = place.clear();
    played?;
    cleared?;
    stage.title("The host and its image have been stopped. Now for your own code");
    epilogue();
    Ok(())
}

fn play(stage: &Stage, place: &Place) -> Result<()> {
    stage.title("An editor opens the workspace: one host and one SBCL image start, and its system is loaded");
    stage.says("editor", "consort.loadSystem {\"system\": \"telegraph\"}");
    let mut editor = Editor::open(&mut place.command(&["lsp"]), place.workspace())?;
    let loaded = editor.command("consort.loadSystem", json!({"system": "telegraph"}))?;
    ensure!(loaded["loaded"] == json!(true), "the system telegraph did not load: {loaded}");
    stage.answers("loaded: its packages, macros and functions are in the image");

    stage.title("1. What the compiler thinks, where it thinks it");
    stage.note("Each check runs in a forked, confined, throw-away copy of that image:\nit knows what the image knows, and leaves no trace in it.");
    let code = stage.run(place, &["check", "."])?;
    ensure!(
        code == Some(1),
        "`consort check` should find something in files that are wrong; its exit code was {code:?}"
    );

    stage.title("2. You call a function that does not exist yet; an agent defines it");
    let file = place.workspace().join("distress.lisp");
    editor.open_document(&file, DRAFT)?;
    let before = editor.published(&file, |items| !items.is_empty())?;
    stage.says("editor", &format!("distress.lisp, not saved:\n{}", DRAFT.trim_end()));
    stage.diagnostics(&before);
    ensure!(
        before.iter().any(|item| mentions(item, "SOS")),
        "the editor was not told that SOS is undefined: {before:?}"
    );

    let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
    stage.says("agent", &format!("evaluate-lisp\n{SOS}"));
    stage.answers(&agent.evaluate(SOS)?);

    stage.title("3. The editor knows it at once");
    let after =
        editor.published(&file, <[Value]>::is_empty).context("the agent's function is still unknown to the editor")?;
    stage.says("editor", "distress.lisp, untouched:");
    stage.diagnostics(&after);
    stage.says("editor", "consort.eval (sos \"here\")");
    let value = editor.eval("(sos \"here\")", "TELEGRAPH")?;
    stage.answers(&value);
    ensure!(value.contains("... --- ..."), "the agent's function did not answer the editor: {value}");

    stage.title("4. Editor and agent share one image");
    let (through_editor, through_agent) = (editor.eval(WHICH, "CL-USER")?, agent.evaluate(WHICH)?);
    stage.says("editor", "which image is this?");
    stage.answers(&through_editor);
    stage.says("agent", "which image is this?");
    stage.answers(&through_agent);
    ensure!(
        through_editor == through_agent,
        "editor and agent reached different images: {through_editor} and {through_agent}"
    );
    stage.run(place, &["status"])?;

    editor.close()?;
    agent.close()
}

fn mentions(diagnostic: &Value, word: &str) -> bool {
    diagnostic["message"].as_str().is_some_and(|message| message.to_uppercase().contains(word))
}

fn epilogue() {
    let other = json!({"mcpServers": {"consort": {"command": "consort", "args": ["mcp"]}}});
    println!(
        "
  Put `consort` on your PATH: make install. `consort doctor` then checks the installation.

  Neovim 0.11    put editors/neovim on your runtimepath, and in init.lua: vim.lsp.enable('consort')
  VS Code        cd editors/vscode && npm ci && npm run package, and in that directory
                 code --install-extension consort.vsix; its agents find the tools by themselves
  Claude Code    claude mcp add consort -- consort mcp
  Other agents   Cursor, Zed, Codex and the rest, as an MCP server on standard input and output:
                 {other}
  A terminal     consort check FILE|DIR|SYSTEM.asd; consort eval CODE; consort status; consort --help

  README.md and docs/editors have the other editors."
    );
}
