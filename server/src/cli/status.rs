//! `consort status`.

use std::process::ExitCode;

use consort::config::Config;
use consort::host::control::{Request, ask};
use consort::host::election::{ConnectError, Place};
use consort::host::hello::{Hello, Protocol};
use consort::model::evaluation::without_stream;
use consort::shown::{self, megabytes};
use serde_json::{Value, json};

use super::WorkspaceArg;
use super::output::{Failure, print, print_json};

/// The maximum number of programs that are listed.
const PROGRAMS: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    workspace: WorkspaceArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let workspace = args.workspace.find()?;
    let place = Place::of(&workspace)?;
    let hello = Hello { any_version: true, ..Hello::new(Protocol::Control) };
    let connected = match place.connect(&hello) {
        Err(ConnectError::Absent) => {
            if args.json {
                print_json(&json!({"workspace": workspace, "running": false}))?;
            } else {
                print(&format!(
                    "No host runs for {}. Your editor or agent starts one, as does `consort eval`.\n",
                    shown::line(&workspace.to_string_lossy())
                ))?;
            }
            return Ok(ExitCode::FAILURE);
        }
        other => other?,
    };
    let mut status =
        ask(connected, &Request::Status, |_, _| Ok(())).map_err(|error| Failure::cannot(error.to_string()))?;
    if let Some(fields) = status.as_object_mut() {
        fields.insert("running".into(), true.into());
        fields.insert("log".into(), json!(place.runtime.read_host_file().and_then(|host| host.log)));
    }
    if args.json {
        print_json(&status)?
    } else {
        // The host's notice is worded for an agent.
        if status["untrusted"].is_string()
            && let Some(untrusted) = Config::load(&workspace).untrusted
        {
            status["untrusted"] = untrusted.notice_to_person().into();
        }
        print(&page(&status))?
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the status as text for a person.
fn page(status: &Value) -> String {
    let mut page = String::new();
    let mut row = |name: &str, value: String| page.push_str(&format!("{name:<10} {}\n", shown::long_line(&value)));
    row("workspace", text(&status["workspace"]));
    let memory = status["host_memory"].as_u64().map(megabytes).unwrap_or_default();
    row("host", format!("process {}, version {}, {memory}", status["host_pid"], text(&status["version"])));
    row("image", image(&status["image"]));
    let mut systems = words(&status["image"]["facts"]["systems"]);
    // The systems of SBCL and ASDF themselves are always loaded.
    systems
        .retain(|name| !name.starts_with("sb-") && !["asdf", "asdf-package-system", "uiop"].contains(&name.as_str()));
    if !systems.is_empty() {
        row("systems", systems.join(" "));
    }
    if status["image"]["copies"] == "process" {
        row(
            "checks",
            "in a second process: they know the systems loaded through Consort, but no definitions that were only evaluated".into(),
        );
    }
    let clients = status["clients"].as_array().map(Vec::as_slice).unwrap_or_default();
    if clients.is_empty() {
        row("clients", "none".into());
    }
    for (index, client) in clients.iter().enumerate() {
        row(
            if index == 0 { "clients" } else { "" },
            format!("{} ({})", text(&client["name"]), text(&client["frontend"])),
        );
    }
    for (index, work) in words(&status["work"]).into_iter().enumerate() {
        row(if index == 0 { "work" } else { "" }, work);
    }
    if let Some(chains) = status["chains"].as_object() {
        let count = |name: &str| chains.get(name).and_then(Value::as_u64).unwrap_or(0);
        row("chains", chains_line(chains.get("why").and_then(Value::as_str), count));
    }
    let stops = status["image"]["facts"]["stops"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, stop) in stops.iter().enumerate() {
        row(if index == 0 { "stops" } else { "" }, stopped(stop));
    }
    if !stops.is_empty() {
        row("", "to go there: `:Consort debugger` in Neovim, *Run and Debug* in VS Code".into());
    }
    let failures = status["failures"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, failure) in failures.iter().enumerate() {
        row(if index == 0 { "failures" } else { "" }, frozen(failure));
    }
    if let Some(last) = failures.last() {
        let number = &last["failure"];
        row(
            "",
            format!(
                "to look into it: `:Consort failure {number}` in Neovim, *Consort: Look into a Failure* in VS Code"
            ),
        );
    }
    let programs = status["programs"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, program) in programs.iter().take(PROGRAMS).enumerate() {
        let row_name = if index == 0 { "programs" } else { "" };
        row(row_name, format!("{} (process {})", text(&program["command"]), program["pid"]));
    }
    if programs.len() > PROGRAMS {
        row("", format!("and {} more", programs.len() - PROGRAMS));
    }
    for (index, note) in words(&status["notes"]).into_iter().enumerate() {
        row(if index == 0 { "notes" } else { "" }, note);
    }
    if let Some(notice) = status["untrusted"].as_str() {
        row("trust", notice.into());
    }
    if let Some(log) = status["log"].as_str() {
        row("log", log.into());
    }
    page
}

fn stopped(stop: &Value) -> String {
    let why = match stop["condition"]["type"].as_str() {
        Some(kind) => format!("{kind}: {}", text(&stop["condition"]["message"])),
        None => text(&stop["reason"]),
    };
    let whose = match (stop["session"].as_str(), stop["started_by"].as_str()) {
        (Some(session), _) => session.to_owned(),
        (None, Some(starter)) => format!("the thread {}, started by {starter}", text(&stop["thread"])),
        (None, None) => "no session".into(),
    };
    format!("{} of {whose} ({why})", stop["stop"])
}

fn frozen(failure: &Value) -> String {
    let message = failure["message"].as_str().unwrap_or_default();
    let why = format!("{}: {}", text(&failure["type"]), without_stream(message));
    let (number, session) = (&failure["failure"], text(&failure["session"]));
    format!("{number} of {session} ({why}), {} s ago, process {}", failure["seconds"], failure["pid"])
}

fn image(image: &Value) -> String {
    // The image may never have begun.
    let state = image["state"].as_str().map(|state| if state == "dead" { "not running" } else { state });
    let mut parts = vec![state.unwrap_or_default().to_owned()];
    for name in ["what", "reason", "lisp", "problem"] {
        // A reason may contain SBCL's last output after the first line. `--json` and the log show
        // it in full.
        if let Some(line) = image[name].as_str().and_then(|text| text.lines().next()) {
            parts.push(line.into());
        }
    }
    if let Some(pid) = image["pid"].as_u64() {
        parts.push(format!("process {pid}"));
    }
    let facts = &image["facts"];
    if let (Some(used), Some(size)) = (facts["dynamic_usage"].as_u64(), facts["dynamic_space_size"].as_u64()) {
        parts.push(format!("heap {} of {}", megabytes(used), megabytes(size)));
    }
    if let Some(uptime) = facts["uptime_ms"].as_u64() {
        parts.push(format!("up {}", duration(uptime / 1000)));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().map(|items| items.iter().map(text).collect()).unwrap_or_default()
}

fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// Returns the line about the chains of edited texts.
fn chains_line(why: Option<&str>, count: impl Fn(&str) -> u64) -> String {
    let (standing, failed) = (count("standing"), count("failed"));
    let now = match why {
        Some(why) if standing + failed == 0 => format!("none: {why}"),
        _ => format!("{standing} ({})", megabytes(count("memory"))),
    };
    let last = why.filter(|_| failed > 0).map_or_else(String::new, |why| format!(", at last because {why}"));
    format!(
        "{now}; edits answered {}, by a whole check {}; confirmed {}, differed {}; failed {failed}{last}",
        count("answered"),
        count("whole"),
        count("agreed"),
        count("differed"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_everything() {
        let status = json!({
            "workspace": "/w", "host_pid": 7, "version": "0.1.0", "host_memory": 12_582_912, "log": "/l",
            "image": {"state": "ready", "lisp": "SBCL 2.2.9", "pid": 8, "facts": {
                "dynamic_usage": 1_048_576, "dynamic_space_size": 4_294_967_296_u64, "uptime_ms": 3_700_000, "systems": ["a", "b"],
                "stops": [{"stop": 3, "session": "cli-2", "condition": {"type": "SIMPLE-ERROR", "message": "boom\u{202e}\nx"}},
                          {"stop": 4, "session": null, "reason": "pause", "condition": null},
                          {"stop": 5, "session": null, "started_by": "lsp-1", "thread": "worker\u{202e}", "reason": "break", "condition": null}]}},
            "clients": [{"frontend": "lsp", "name": "Neovim 0.11"}, {"frontend": "mcp", "name": "agent"}],
            "work": ["eval (loop)"],
            "chains": {"standing": 2, "memory": 41_943_040, "answered": 120, "whole": 3, "agreed": 40, "differed": 1, "failed": 1, "why": "it took too long\u{202e}"},
            "failures": [{"failure": 5, "pid": 12, "session": "mcp-3", "type": "SIMPLE-ERROR", "message": "x\u{202e}", "seconds": 7}],
            "programs": [{"pid": 9, "command": "redis-server --port 0"}, {"pid": 10, "command": "sh"}]
        });
        let mut second = status.clone();
        second["image"]["copies"] = "process".into();
        second["chains"] = json!({"standing": 0, "failed": 0, "why": "checks are made in a second process"});
        for row in [
            "checks     in a second process",
            "chains     none: checks are made in a second process; edits answered 0,",
        ] {
            assert!(page(&second).contains(row), "{}", page(&second));
        }
        insta::assert_snapshot!(page(&status), @r"
        workspace  /w
        host       process 7, version 0.1.0, 12.0 MB
        image      ready, SBCL 2.2.9, process 8, heap 1.0 MB of 4096.0 MB, up 1 h 1 min
        systems    a b
        clients    Neovim 0.11 (lsp)
                   agent (mcp)
        work       eval (loop)
        chains     2 (40.0 MB); edits answered 120, by a whole check 3; confirmed 40, differed 1; failed 1, at last because it took too long\u{202e}
        stops      3 of cli-2 (SIMPLE-ERROR: boom\u{202e} x)
                   4 of no session (pause)
                   5 of the thread worker\u{202e}, started by lsp-1 (break)
                   to go there: `:Consort debugger` in Neovim, *Run and Debug* in VS Code
        failures   5 of mcp-3 (SIMPLE-ERROR: x\u{202e}), 7 s ago, process 12
                   to look into it: `:Consort failure 5` in Neovim, *Consort: Look into a Failure* in VS Code
        programs   redis-server --port 0 (process 9)
                   sh (process 10)
        log        /l
        ");
    }
}
