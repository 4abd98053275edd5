//! `consort eval`.

use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use consort::host::control::{Reply, Request, ask};
use consort::host::election::Place;
use consort::host::hello::{Hello, Protocol};
use consort::model::evaluation::{EvalOutcome, EvalStatus};
use consort::shown;

use super::output::{Failure, print, print_error};
use super::{WorkspaceArg, trust};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code, any number of forms; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    code: String,
    /// The package to read and evaluate in [default: CL-USER]
    #[arg(long, short)]
    package: Option<String>,
    /// Seconds after which it is interrupted [default: eval.timeout_s, 30]
    #[arg(long, short, value_name = "S", value_parser = seconds)]
    timeout: Option<f64>,
    #[command(flatten)]
    workspace: WorkspaceArg,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("expected a number of seconds, more than 0 and at most 86400".into()),
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let code = match args.code.as_str() {
        "-" => {
            let mut code = String::new();
            io::stdin()
                .read_to_string(&mut code)
                .map_err(|error| Failure::cannot(format!("standard input: {error}")))?;
            code
        }
        code => code.into(),
    };
    let workspace = args.workspace.find()?;
    trust::say_if_untrusted(&workspace)?;
    let place = Place::of(&workspace)?;
    let connected = place.connect_or_start(&Hello::new(Protocol::Control))?;
    let request = Request::Eval { code, package: args.package.clone(), timeout: args.timeout };
    let mut terminal = Written::default();
    let mut failed = None;
    let answer = ask(connected, &request, |reply| {
        if let Reply::Output { text, stderr } = reply
            && let Err(error) = terminal.write(&text, stderr)
        {
            // Recorded apart from a failure of the connection.
            failed = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let answer = answer.map_err(|error| Failure::cannot(error.to_string()))?;
    let outcome: EvalOutcome =
        serde_json::from_value(answer).map_err(|error| Failure::cannot(format!("the host's answer: {error}")))?;
    // The output, unless it was streamed already.
    if !terminal.stdout.used {
        terminal.write(&outcome.stdout.text, false)?;
    }
    if !terminal.stderr.used {
        terminal.write(&outcome.stderr.text, true)?;
    }
    terminal.fresh_line()?;
    for warning in &outcome.warnings {
        print_error(&shown::terminal(&format!("{}: {}\n", warning.kind, warning.message)))?;
    }
    if outcome.status == EvalStatus::Ok {
        let values = values(&outcome);
        // The output to a program is not escaped.
        print(&if io::stdout().is_terminal() { shown::terminal(&values) } else { values })?;
        return Ok(ExitCode::SUCCESS);
    }
    print_error(&shown::terminal(&trouble(&outcome)))?;
    Ok(ExitCode::FAILURE)
}

/// The output of the evaluation so far.
#[derive(Default)]
struct Written {
    stdout: Stream,
    stderr: Stream,
}

/// An output stream. The order between pieces of different streams is unspecified.
#[derive(Default)]
struct Stream {
    used: bool,
    /// The last line has no line break yet.
    open: bool,
}

impl Written {
    fn write(&mut self, text: &str, stderr: bool) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let stream = if stderr { &mut self.stderr } else { &mut self.stdout };
        *stream = Stream { used: true, open: !text.ends_with('\n') };
        if stderr { print_error(text) } else { print(text) }
    }

    /// Ends unfinished lines, so that the next output starts on a line of its own.
    fn fresh_line(&mut self) -> io::Result<()> {
        for (open, stderr) in [(self.stdout.open, false), (self.stderr.open, true)] {
            if open {
                self.write("\n", stderr)?;
            }
        }
        Ok(())
    }
}

fn values(outcome: &EvalOutcome) -> String {
    if outcome.values.is_empty() {
        return "; no values\n".into();
    }
    outcome.values.iter().map(|value| format!("=> {}\n", value.text)).collect()
}

fn trouble(outcome: &EvalOutcome) -> String {
    let Some(error) = &outcome.error else {
        return match outcome.status {
            EvalStatus::Timeout => "stopped: it took longer than its timeout (--timeout S gives it more)\n".into(),
            _ => "interrupted\n".into(),
        };
    };
    let frames: String = error.backtrace.iter().map(|frame| format!("  {frame}\n")).collect();
    format!("{}: {}\n{frames}", error.kind, error.message)
}
