//! `consort doctor`: checks every prerequisite and prints the result and the remedy.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use consort::config::{self, Config, InitFile};
use consort::host::control::{Reply, Request, ask};
use consort::host::election::Place;
use consort::host::hello::{Hello, Protocol};
use consort::host::host_location;
use consort::image::excerpt::excerpt;
use consort::image::probe::version as version_of;
use consort::shown;
use serde_json::Value;

use super::WorkspaceArg;
use super::output::{Failure, colour, print, print_as_it_is, print_error};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
}

/// The oldest SBCL version that Consort is tested with.
const OLDEST_SBCL: [u32; 3] = [2, 2, 9];
/// The time limit for the start of the image: long enough to build a core on a busy machine.
const STARTING: Duration = Duration::from_secs(300);
/// The interval at which the wait for the image is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Good,
    /// Optional, and absent.
    Missing,
    /// Required, and absent or broken.
    Bad,
}

/// Prints the findings, line by line.
struct Findings {
    colour: bool,
    bad: usize,
}

impl Findings {
    /// Prints one finding and the remedy.
    fn print(&mut self, mark: Mark, name: &str, found: &str, advice: &str) -> Result<(), Failure> {
        let (sign, code) = match mark {
            Mark::Good => ("ok", "32"),
            Mark::Missing => ("--", "33"),
            Mark::Bad => ("NO", "31"),
        };
        self.bad += usize::from(mark == Mark::Bad);
        let sign = if self.colour { format!("\u{1b}[{code}m{sign}\u{1b}[0m") } else { sign.into() };
        let advice = if advice.is_empty() { String::new() } else { format!("\n{:18}{advice}", "") };
        let text = shown::terminal(&format!("{name:<14} {found}{advice}"));
        Ok(print_as_it_is(&format!("{sign} {text}\n"))?)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut findings = Findings { colour: colour(&std::io::stdout()), bad: 0 };
    let workspace = args.workspace.find()?;
    findings.print(Mark::Good, "workspace", &workspace.display().to_string(), "")?;
    let settings = Config::load(&workspace);
    configuration(&mut findings, &settings, &workspace)?;
    let has_lisp = lisp(&mut findings, &settings, &workspace)?;
    runtime_directory(&mut findings, &workspace)?;
    if has_lisp {
        host(&mut findings, &workspace)?;
    }
    programs(&mut findings)?;
    if findings.bad == 0 {
        print("Consort is usable here.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    print("Consort is not usable here yet: see the lines marked NO.\n")?;
    Ok(ExitCode::FAILURE)
}

fn configuration(findings: &mut Findings, settings: &Config, workspace: &Path) -> Result<(), Failure> {
    let files: Vec<PathBuf> =
        config::user_file().into_iter().chain([workspace.join("consort.toml")]).filter(|file| file.exists()).collect();
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let found = if names.is_empty() { "defaults only".into() } else { names.join(", ") };
    if let Some(untrusted) = &settings.untrusted {
        findings.print(Mark::Missing, "trust", &untrusted.notice_to_person(), "")?;
    }
    if settings.problems.is_empty() {
        return findings.print(Mark::Good, "configuration", &found, "");
    }
    for problem in &settings.problems {
        findings.print(Mark::Missing, "configuration", &problem.to_string(), "")?;
    }
    Ok(())
}

/// Checks the Lisp program. Returns true if there is one to start.
fn lisp(findings: &mut Findings, settings: &Config, workspace: &Path) -> Result<bool, Failure> {
    let command = settings.lisp.command.join(" ");
    let advice = "install it (Debian: apt install sbcl; macOS: brew install sbcl) or set lisp.command in config.toml";
    let program = match consort::image::find_program(&settings.lisp.command, workspace) {
        Ok(program) => program,
        Err(why) => {
            let why = why.lines().next().unwrap_or_default();
            findings.print(Mark::Bad, "lisp", why, advice)?;
            return Ok(false);
        }
    };
    let asked = version_of(&program, &settings.lisp.command[1..], workspace);
    let output = match asked {
        Ok((printed, status)) if status.success() => excerpt(&printed),
        Ok((printed, _)) => {
            let error = excerpt(&printed);
            let error = if error.is_empty() { "no reason" } else { &error };
            findings.print(Mark::Bad, "lisp", &format!("`{command} --version` failed: {error}"), advice)?;
            return Ok(false);
        }
        Err(how) => {
            findings.print(Mark::Bad, "lisp", &format!("`{command} --version` {how}"), advice)?;
            return Ok(false);
        }
    };
    match version(&output) {
        Some(version) if version >= OLDEST_SBCL => {
            findings.print(Mark::Good, "lisp", &format!("{output} (`{command}`)"), "")?
        }
        Some(_) => findings.print(
            Mark::Missing,
            "lisp",
            &format!("{output} (`{command}`)"),
            "older than 2.2.9, the oldest that Consort is tested with; install a newer one",
        )?,
        None => {
            let says = format!("`{command} --version` says: {output}");
            findings.print(Mark::Bad, "lisp", &says, "Consort needs SBCL (https://www.sbcl.org)")?;
            // The command does not start SBCL; a host would wait for it in vain.
            return Ok(false);
        }
    }
    if let InitFile::File(file) = &settings.lisp.init_file
        && !file.is_file()
    {
        findings.print(
            Mark::Bad,
            "init file",
            &format!("{} is missing", file.display()),
            "create the file, or correct lisp.init_file",
        )?;
    }
    Ok(true)
}

/// Parses a version: "SBCL 2.2.9.debian" gives 2.2.9.
fn version(output: &str) -> Option<[u32; 3]> {
    let mut numbers =
        output.strip_prefix("SBCL ")?.split(|c: char| !c.is_ascii_digit()).map_while(|digits| digits.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)])
}

fn runtime_directory(findings: &mut Findings, workspace: &Path) -> Result<(), Failure> {
    let tried = host_location::of(workspace).and_then(|runtime| runtime.create().map(|()| runtime));
    match tried {
        Ok(runtime) => {
            let shown = runtime.path().display().to_string();
            if !runtime.is_live() {
                runtime.remove_if_empty();
            }
            findings.print(Mark::Good, "sockets", &shown, "")
        }
        Err(error) => {
            findings.print(Mark::Bad, "sockets", &error.to_string(), "see docs/configuration.md, XDG_RUNTIME_DIR")
        }
    }
}

/// Checks a host, its image, an evaluation and the check of a text, one after the other.
fn host(findings: &mut Findings, workspace: &Path) -> Result<(), Failure> {
    let place = Place::of(workspace)?;
    let ran = place.runtime.is_live();
    let began = Instant::now();
    let log = consort::host::log::path_for(workspace).map_or_else(String::new, |log| format!("see {}", log.display()));
    wait_while_starting(&place)?;
    let request = Request::Eval {
        code: "(list 'consort (+ 40 2))".into(),
        package: None,
        timeout: None,
        input: false,
        whole: false,
    };
    let answer = match answer(&place, &request) {
        Ok(answer) => answer,
        Err(message) => return findings.print(Mark::Bad, "image", &message, &log),
    };
    let value = answer["values"][0]["text"].as_str().unwrap_or_default();
    let took = format!("{} ms", began.elapsed().as_millis());
    if value == "(CONSORT 42)" {
        let how = if ran { "the running host answered" } else { "a host started, its image answered" };
        findings.print(Mark::Good, "image", &format!("{how} within {took}"), "")?;
    } else {
        findings.print(Mark::Bad, "image", &format!("it answered {answer} to (+ 40 2)"), &log)?;
    }
    if let Ok(status) = self::answer(&place, &Request::Status) {
        features(findings, &status["image"])?;
    }
    check(findings, &place, workspace)?;
    if !ran {
        self::answer(&place, &Request::Stop).map_err(Failure::cannot)?;
    }
    Ok(())
}

/// Waits while the image starts, and reports the progress every few seconds. The first start builds
/// the core, which on a slow machine takes longer than an evaluation waits for an image. The
/// evaluation that follows reports a failure of the start.
fn wait_while_starting(place: &Place) -> Result<(), Failure> {
    let began = Instant::now();
    let mut told = Duration::ZERO;
    while began.elapsed() < STARTING {
        let Some(what) = starting(place) else { break };
        if began.elapsed() >= told + REPORT_INTERVAL {
            told = began.elapsed();
            print_error(&format!("waiting for the image: {what}\n"))?;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Returns the current step of the image's start, or `None` if the image is not starting.
fn starting(place: &Place) -> Option<String> {
    let status = answer(place, &Request::Status).ok()?;
    let image = &status["image"];
    (image["state"] == "starting").then(|| image["what"].as_str().unwrap_or("starting").to_owned())
}

fn answer(place: &Place, request: &Request) -> Result<Value, String> {
    let connected = place.connect_or_start(&Hello::new(Protocol::Control)).map_err(|error| error.to_string())?;
    let tell = |reply, _: &UnixStream| match reply {
        Reply::Progress { message, .. } => print_error(&format!("{message}\n")),
        _ => Ok(()),
    };
    ask(connected, request, tell).map_err(|error| error.to_string())
}

fn features(findings: &mut Findings, image: &Value) -> Result<(), Failure> {
    let features = &image["facts"]["features"];
    let knows = "this process has your init file, the systems loaded through Consort and reloaded code, as their files are now; it lacks definitions that were only evaluated";
    match (image["copies"].as_str(), &features["fork"]) {
        (Some("process"), Value::Bool(true)) => {
            let advice = format!("{knows}. check.copies = \"fork\" has checks work in a copy of the live image");
            findings.print(Mark::Missing, "copies", "checks run in a second SBCL process (check.copies)", &advice)?;
        }
        (Some("process"), _) => {
            let found = "this image cannot be forked: checks run in a second SBCL process";
            findings.print(Mark::Missing, "copies", found, knows)?;
        }
        (Some(_), _) => findings.print(Mark::Good, "copies", "checks run in a copy of the live image", "")?,
        (None, _) => {}
    }
    match features["landlock"].as_u64() {
        Some(0) => findings.print(
            Mark::Missing,
            "landlock",
            "not in this kernel",
            "checks are confined by seccomp and limits alone and can read all of your files, and an agent's evaluation in a copy needs the same approval as one in the image; Linux 5.13 and later have Landlock",
        )?,
        Some(abi) => findings.print(
            Mark::Good,
            "landlock",
            &format!("ABI {abi}: checks cannot write outside their scratch directory"),
            "",
        )?,
        None => {}
    }
    match &features["seccomp"] {
        Value::Bool(true) => findings.print(Mark::Good, "seccomp", "checks cannot connect, signal or execute", ""),
        Value::Bool(false) => {
            let advice = "code cannot be confined here, so it is not compiled; check.confine = false in your own config.toml allows compiling it without confinement";
            findings.print(Mark::Missing, "seccomp", "not available on this system", advice)
        }
        _ => Ok(()),
    }
}

fn check(findings: &mut Findings, place: &Place, workspace: &Path) -> Result<(), Failure> {
    let text = "(defun f () (consort-doctor-undefined-function))".to_string();
    let request = Request::Check { text, path: workspace.join("consort-doctor.lisp"), timeout: None };
    match answer(place, &request) {
        Ok(report) if report["diagnostics"][0]["code"] == "undefined-function" => {
            findings.print(Mark::Good, "checks", "an undefined function was found", "")
        }
        Ok(report) => findings.print(
            Mark::Bad,
            "checks",
            &format!("the check did not report a call of an undefined function: {report}"),
            "please report this",
        ),
        Err(message) => findings.print(Mark::Bad, "checks", &message, ""),
    }
}

/// Prints the editors and agents on PATH that can use Consort. All are optional.
fn programs(findings: &mut Findings) -> Result<(), Failure> {
    let known = [
        ("nvim", "Neovim", "see docs/editors/neovim.md"),
        ("code", "VS Code", "install the Consort extension"),
        ("emacs", "Emacs", "see docs/editors/emacs.md"),
        ("hx", "Helix", "see docs/editors/helix.md"),
        ("claude", "Claude Code", "claude mcp add consort -- consort mcp"),
    ];
    for (program, name, advice) in known {
        if let Some(path) = on_path(program) {
            findings.print(Mark::Good, name, &path.display().to_string(), advice)?;
        }
    }
    Ok(())
}

fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_are_named_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut named = 0;
        for source in [include_str!("doctor.rs"), include_str!("mod.rs")] {
            for (at, _) in source.match_indices("docs/") {
                let end = source[at..].find(".md").map(|end| at + end + 3);
                let Some(path) = end.map(|end| &source[at..end]).filter(|path| !path.contains(char::is_whitespace))
                else {
                    continue;
                };
                assert!(root.join(path).is_file(), "{path} does not exist");
                named += 1;
            }
        }
        assert!(named >= 3, "{named}");
    }

    #[test]
    fn versions() {
        assert_eq!(version("SBCL 2.2.9.debian"), Some([2, 2, 9]));
        assert_eq!(version("SBCL 2.6"), Some([2, 6, 0]));
        assert_eq!(version("GNU CLISP 2.49"), None);
        assert!(version("SBCL 2.10.0") >= Some(OLDEST_SBCL));
    }
}
