//! The command line: one file for each subcommand.

mod abridged;
mod check;
mod dap;
mod doctor;
mod eval;
mod help;
mod logging;
mod mcp;
mod output;
mod packages;
mod repl;
mod serve;
mod status;
mod stop;
mod trust;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use output::Failure;

/// One live Common Lisp image, shared by your editor (LSP) and your coding agent (MCP).
#[derive(Debug, Parser)]
#[command(name = "consort", version, propagate_version = true, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Each workspace (a directory with .git, an .asd file or consort.toml) has one host, and the host has one SBCL image. Your editor starts \
`consort lsp`, your agent starts `consort mcp`; both meet in that image. The host starts with the first and leaves after the last.

Check the installation, and say what to do if something is missing:
  consort doctor
The compiler's diagnostics, as in the editor, in the terminal:
  consort check src/
Code in the image:
  consort eval '(lisp-implementation-version)'
A REPL in the image, with a debugger:
  consort repl
Who is connected, and what the image is doing:
  consort status
Give Claude Code the image (other agents: command `consort`, argument `mcp`):
  claude mcp add consort -- consort mcp

Configuration: consort.toml in the workspace, ~/.config/consort/config.toml for you; see docs/configuration.md.";

#[derive(Debug, Subcommand)]
enum Command {
    /// The language server; your editor starts it
    #[command(after_help = "\
Speaks LSP on standard input and output. The workspace is the root that the editor gives. Attaches to the workspace's host, and starts it if \
none runs.

Neovim 0.11:
  vim.lsp.config('consort', {
    cmd = { 'consort', 'lsp' },
    filetypes = { 'lisp' },
    root_markers = { '.git', '*.asd' },
  })
  vim.lsp.enable('consort')
Emacs (eglot):
  (add-to-list 'eglot-server-programs '(lisp-mode . (\"consort\" \"lsp\")))")]
    Lsp {
        /// Accepted because some editors add it; standard input and output are always used
        #[arg(long, hide = true)]
        stdio: bool,
    },
    /// The tools for a coding agent (MCP); your agent starts it
    #[command(after_help = "\
Speaks MCP on standard input and output. The workspace is DIR; without it, the agent's roots; without those, found from the current directory \
upwards. A host that already runs for a directory above in the same repository is preferred, so that the agent meets your editor's image.

  claude mcp add consort -- consort mcp
  or in a client's JSON:
  \"consort\": { \"command\": \"consort\", \"args\": [\"mcp\"] }")]
    Mcp(mcp::Args),
    /// The debugger; your editor starts it
    #[command(after_help = "\
Speaks the Debug Adapter Protocol on standard input and output. Evaluations that it begins stop at errors with the stack alive. The workspace is DIR; \
without it, found from the current directory upwards.

Neovim, with nvim-dap:
  require('consort.dap').setup()")]
    Dap(dap::Args),
    /// Run the workspace's host in this terminal, until Ctrl-C or `consort stop`
    #[command(after_help = "\
You need this only to watch the host's log, or for --http: editors and agents start a host by themselves. One started here does not leave by \
itself when its last client has gone.

  CONSORT_LOG=debug consort serve

MCP over HTTP too, for clients that cannot start a program:
  consort serve --http 127.0.0.1:7777")]
    Serve(serve::Args),
    /// Show the workspace's host: its image, memory, clients and what they are doing
    #[command(
        after_help = "Exit code: 0 a host runs, 1 none does, 2 the host gave no answer. The host answers while Lisp code loops."
    )]
    Status(status::Args),
    /// End the workspace's host and its image
    #[command(after_help = "\
Definitions that exist only in the image are lost; files are not touched. Returns when the host and the image have ended. An agent's next \
call, and most editors by themselves, start a new host. It is not an error if no host runs.")]
    Stop(stop::Args),
    /// Evaluate code in the workspace's image
    #[command(after_help = "\
What the code prints goes to standard output and error as it is printed; then each value of the last form, as `=> VALUE`.
With --raw a value is printed for a pipe: whole (up to 4,000,000 characters) and on its line, a string as its characters. Control characters \
are escaped only if the output goes to a terminal.
Exit code: 0 values came back, 1 an error, a timeout or an interrupt, 2 it could not run.

  consort eval '(expt 2 100)'
  consort eval --package my-app '(start :port 8080)'
  consort eval - < script.lisp
  consort eval --raw '(lisp-implementation-version)'")]
    Eval(eval::Args),
    /// A REPL in the workspace's image, with a debugger, in this terminal
    #[command(after_help = "\
An entry may have several lines: it ends with the form. At an error the program stops with its stack alive, and a prompt like `CL-USER [1]>` takes the \
number of a restart, commands (:help lists them) or code, which sees the variables of the frame. What the code prints is shown as it comes, and what it \
reads (read-line, y-or-n-p) is asked for here.

Tab completes, Ctrl-R searches the history, Ctrl-C interrupts an evaluation and not the program, Ctrl-D leaves.
When standard input is no terminal, its forms are evaluated one by one, errors are reported, and the exit code is 1 if there was one.

  consort repl --package my-app
  consort repl < session.lisp")]
    Repl(repl::Args),
    /// Compile files in a throw-away copy of the image and show the diagnostics
    #[command(after_help = "\
FILE: that file; if its system is not loaded, it and what it depends on are loaded in the copy first.
DIR: every .lisp, .lsp, .cl and .asd file below it, without hidden directories and build output.
SYSTEM.asd: every file of the system, in order.

Nothing is written, and nothing changes in the image your editor and agent use. What is found is shown as it is found; Ctrl-C keeps what came.
Exit code: 0 clean, 1 an error or a warning was found, 2 it could not run.

  consort check src/main.lisp

One JSON object a line (file, range (0-based, UTF-16), severity (1 to 4, as in LSP), message, code):
  consort check --json my-app.asd")]
    Check(check::Args),
    /// Trust a workspace with what its consort.toml wants to run, take that back, or list what is
    /// trusted
    #[command(after_help = "\
A workspace's consort.toml may name the program that starts Lisp (lisp.command), an init file (lisp.init_file), the heap (lisp.heap) and where \
checks work (check.copies). That runs programs and code of the workspace as you, so it counts only once you have trusted that directory with these \
very values. Until then Consort works with your own Lisp. When a value changes, you are asked again. A running host restarts its image.
Where your own lisp.command is Qlot, a workspace that has .qlot is asked about in the same way.
Exit code: 0 done, 1 there was nothing to do or the answer was no, 2 it could not be done.

Show what the workspace here wants, ask, and trust it; the same in a script; list what is trusted; take it back:
  consort trust
  consort trust --yes
  consort trust --list
  consort trust --revoke DIR")]
    Trust(trust::Args),
    /// Check that everything Consort needs is there, and say what to do if it is not
    #[command(after_help = "Exit code: 0 usable, 1 something has to be done first.")]
    Doctor(doctor::Args),
}

/// The option that names the workspace of a command.
#[derive(Debug, clap::Args)]
struct WorkspaceArg {
    /// The workspace's directory [default: found from the current directory upwards]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl WorkspaceArg {
    /// Returns the given directory itself, or the workspace that contains the current directory.
    fn find(&self) -> Result<PathBuf, Failure> {
        use consort::host::workspace;
        match &self.workspace {
            Some(dir) => checked_workspace(dir),
            None => workspace::find_running(std::path::Path::new(".")).map_err(here_unusable),
        }
    }
}

/// Returns the failure of a command in a directory that cannot be used.
fn here_unusable(error: std::io::Error) -> Failure {
    Failure::cannot(format!(
        "the current directory cannot be used: {error}; change to the project's directory, or name it by --workspace DIR"
    ))
}

fn checked_workspace(dir: &std::path::Path) -> Result<PathBuf, Failure> {
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::cannot(format!("--workspace {}: {why}; it names the directory of your project", dir.display()))
    };
    let found = dir.canonicalize().map_err(|error| unusable(&error))?;
    if found.is_dir() { Ok(found) } else { Err(unusable(&"not a directory")) }
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let parsed = help::prepared(Cli::command()).try_get_matches();
    let cli = match parsed.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        // Help and version.
        Err(asked) if !asked.use_stderr() => return output::print_requested(&asked),
        Err(error) => return output::wrong_arguments(&error),
    };
    let result = match cli.command {
        Command::Serve(args) => serve::run(&args),
        command => {
            logging::to_stderr();
            match command {
                Command::Lsp { .. } => consort::host::bridge::lsp::run().map_err(Failure::from),
                Command::Mcp(args) => mcp::run(&args),
                Command::Dap(args) => dap::run(&args),
                Command::Status(args) => status::run(&args),
                Command::Stop(args) => stop::run(&args),
                Command::Eval(args) => eval::run(&args),
                Command::Repl(args) => repl::run(&args),
                Command::Check(args) => check::run(&args),
                Command::Trust(args) => trust::run(&args),
                Command::Doctor(args) => doctor::run(&args),
                Command::Serve(args) => serve::run(&args),
            }
        }
    };
    result.unwrap_or_else(Failure::report)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paragraphs are wrapped at the terminal's width. Indented lines are printed as they are
    /// written.
    #[test]
    fn help_has_no_line_that_would_be_broken_in_its_middle() {
        const WIDTH: usize = 76;
        let mut command = Cli::command();
        command.build();
        let mut all = vec![command.clone()];
        all.extend(command.get_subcommands().cloned());
        assert!(all.len() > 8);
        for one in all {
            let help = one.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= WIDTH, "{}: {line}", one.get_name());
                assert!(
                    !line.trim_start().contains("   "),
                    "{}: a table breaks when it is narrow: {line}",
                    one.get_name()
                );
            }
        }
    }
}
