//! The texts of questions to a person, and of refusals to an agent.

use std::time::Duration;

use serde_json::Value;

use super::request::ApprovalRequest;
use crate::config::approval::{Class, SettingSource};
use crate::shown::{first_names, line, lookalikes, notification, safe, without_gaps};

/// The maximum number of lines of code that a message box shows from the head of the code.
const HEAD: usize = 24;
/// The maximum number of lines of code that a message box shows from the tail of the code.
const TAIL: usize = 8;
/// The maximum number of characters of code.
const CODE: usize = 2_000;
/// The maximum number of named files.
const FILES: usize = 12;
/// The maximum number of named differences of a readtable.
const SYNTAX: usize = 12;
/// The maximum number of characters of the result of a trial.
const TRIED: usize = 400;
/// The maximum number of characters of a name.
const NAME: usize = 80;

/// Returns the question, as worded in the contract (hot-reload: "User Prompt").
pub fn message(request: &ApprovalRequest, deadline: Duration) -> String {
    let subject = &request.subject;
    let mut text =
        format!("AI agent {} wants to {}:\nTool: {}", name(&request.agent), uncapital(&subject.what), request.tool);
    if let Some(file) = &request.file {
        text.push_str(&format!("\nFilename: {}", line(&file.path.to_string_lossy())));
    }
    if !subject.sources.is_empty() {
        text.push_str(&format!("\nFiles: {}", files(subject.sources.paths())));
    }
    if let Some(changes) = &subject.changes {
        text.push_str(&format!("\nChanges: {}", block(changes)));
        if let Some(line) = lookalikes(changes) {
            text.push_str(&format!("\n{line}"));
        }
    }
    append_trial(request, &mut text);
    match &subject.code {
        Some(code) => {
            append_reading(request, &mut text);
            append_arguments(request, &mut text);
            text.push_str(&format!("\nCode: {}", block(code)));
            if let Some(line) = lookalikes(code) {
                text.push_str(&format!("\n{line}"));
            }
        }
        None => text.push_str(&format!("\nArguments: {}", block(&request.arguments.to_string()))),
    }
    text.push_str(&format!("\n\nAllow? Timeout: {}s", deadline.as_secs()));
    notification(&text)
}

/// Returns the names of the first files, and the number of the others.
fn files<'a>(paths: impl Iterator<Item = &'a std::path::Path>) -> String {
    let names: Vec<String> = paths.map(|path| name(&path.file_name().unwrap_or_default().to_string_lossy())).collect();
    first_names(&names, FILES)
}

/// Returns the complete code, for an editor that can show it. Invisible characters are spelled out.
/// Comment lines above the code contain further parts of the message.
pub fn complete_code(request: &ApprovalRequest) -> Option<String> {
    let subject = &request.subject;
    let code = subject.code.as_deref().or(subject.changes.as_deref())?;
    let mut notes = String::new();
    append_trial(request, &mut notes);
    append_reading(request, &mut notes);
    append_arguments(request, &mut notes);
    if let Some(line) = lookalikes(code) {
        notes.push_str(&format!("\n{line}"));
    }
    let notes: String = notes.lines().skip(1).map(|line| format!(";; {line}\n")).collect();
    Some(notes + &safe(code))
}

/// Appends the result of a trial in a copy of the image.
fn append_trial(request: &ApprovalRequest, text: &mut String) {
    if let Some(tried) = &request.subject.tried {
        let tried: String = line(tried).chars().take(TRIED).collect();
        text.push_str(&format!("\nTried in a copy of the image: {tried}"));
    }
}

/// Appends the package in which the code is read, and the differences from standard syntax.
fn append_reading(request: &ApprovalRequest, text: &mut String) {
    let Some(reading) = &request.subject.reading else { return };
    text.push_str(&format!("\nPackage: {}", name(&reading.package)));
    if !reading.syntax.is_empty() {
        let more = reading.syntax.len().saturating_sub(SYNTAX);
        let shown = reading.syntax.iter().take(SYNTAX).map(|one| name(one)).collect::<Vec<_>>().join(" ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!("\nTHE READTABLE IS NOT THE STANDARD ONE: {shown}{more}"));
    }
}

/// Appends the other arguments, because one such as the package can change the meaning of the code.
fn append_arguments(request: &ApprovalRequest, text: &mut String) {
    let subject = &request.subject;
    let shown = |value: &Value| {
        let value = value.as_str();
        value.is_some()
            && (value == subject.code.as_deref() || value == subject.file.as_deref().and_then(|file| file.to_str()))
    };
    for (argument, value) in request.arguments.as_object().into_iter().flatten() {
        let package = argument == "package" && subject.reading.is_some();
        // The question itself says that the image is meant.
        let image = argument == "in" && value == "image";
        if !value.is_null() && !shown(value) && !package && !image {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("\nWith {}: {}", name(argument), line(&value)));
        }
    }
}

/// Returns a name given by an agent, as one line.
fn name(text: &str) -> String {
    let line: String = safe(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = line.chars().take(NAME).collect();
    if short.len() < line.len() { format!("{short}...") } else { short }
}

fn uncapital(what: &str) -> String {
    let what = line(what);
    let mut chars = what.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_else(|| "do something".into())
}

/// Returns code with its further lines indented, so that none of them looks like a line of the
/// question.
fn block(code: &str) -> String {
    shortened(code).replace('\n', "\n    ")
}

/// Returns the head and the tail of the code, and the number of characters not shown, so that an
/// agent cannot hide code unnoticed.
fn shortened(code: &str) -> String {
    let code = without_gaps(&safe(code));
    let lines: Vec<&str> = code.trim_end().lines().collect();
    let all = code.chars().count();
    if lines.len() <= HEAD + TAIL && all <= CODE {
        return lines.join("\n");
    }
    let take = |text: String, from_end: bool, most: usize| -> String {
        let count = text.chars().count();
        if from_end {
            text.chars().skip(count.saturating_sub(most)).collect()
        } else {
            text.chars().take(most).collect()
        }
    };
    let head = take(lines[..HEAD.min(lines.len())].join("\n"), false, CODE * 3 / 4);
    let rest = lines.len().saturating_sub(HEAD).min(TAIL);
    let tail = if rest > 0 { lines[lines.len() - rest..].join("\n") } else { code.trim_end().to_owned() };
    let room = (all - head.chars().count()).min(CODE / 4);
    let tail = take(tail, true, room);
    let hidden = all.saturating_sub(head.chars().count() + tail.chars().count());
    format!("{head}\n... {hidden} CHARACTERS ARE NOT SHOWN HERE ...\n{tail}")
}

fn how_to_allow(class: Class) -> String {
    format!(
        "A person can allow it: open the workspace in an editor that runs Consort and answer there, or set `{} = \"allow\"` in the table \
         [approval] of their own config.toml ({}) and restart the host (`consort stop`). No tool can.",
        class.key(),
        user_file()
    )
}

/// Returns the path of the person's own configuration.
fn user_file() -> String {
    crate::config::user_file().map_or_else(|| "see docs/configuration.md".into(), |file| file.display().to_string())
}

/// Returns the refusal of an evaluation in the image, if only a copy is permitted.
pub(super) fn only_in_copy(request: &ApprovalRequest, source: SettingSource) -> String {
    format!(
        "Refused: {} would run code in the image, and {} lets agents evaluate in a copy of it only: call evaluate-lisp, run-tests or profile-code with \
         \"in\": \"copy\", which asks nobody and keeps nothing.",
        request.tool,
        source.name()
    )
}

/// Returns the refusal by a rule.
pub(super) fn denied(request: &ApprovalRequest, source: SettingSource) -> String {
    let class = request.class;
    format!(
        "Refused: {} needs approval of the class `{}`, which {} denies. {}",
        request.tool,
        class.key(),
        source.name(),
        match source {
            SettingSource::User => how_to_allow(class),
            SettingSource::Workspace => "A person can change that file and restart the host (`consort stop`).".into(),
            SettingSource::Editor => format!("A person can change `consort.approval.{}` there.", class.key()),
        }
    )
}

/// Returns the refusal by a person.
pub(super) fn said_no(request: &ApprovalRequest, who: &str) -> String {
    format!(
        "Refused: {} was not allowed by the person who was asked ({who}). Do not try it again in another way: tell them what you need it for.",
        request.tool
    )
}

/// Returns the refusal if no answer came in time.
pub(super) fn too_late(request: &ApprovalRequest, deadline: Duration) -> String {
    let seconds = deadline.as_secs();
    format!(
        "Refused: nobody answered within {seconds} s whether {} may be used. Go on with something else, or ask the person to watch for the question \
         before you call again.",
        request.tool
    )
}

/// Returns the refusal if no person can be asked, with the options of the person and of the agent.
pub(super) fn nobody_to_ask(request: &ApprovalRequest) -> String {
    let command = command(request).map_or_else(String::new, |command| {
        format!("- run `{command}` in a terminal in the workspace, which does it once and asks nobody;\n")
    });
    format!(
        "Refused: {} needs a person's approval (class `{class}`), and nobody can be asked: no editor has this workspace open, and this client \
does not declare elicitation. Nothing was done.\n\
Tell the person what you need. They can do one of these:\n\
{command}\
- open the workspace in an editor that runs Consort and answer there when you call again;\n\
- use an MCP client that declares elicitation: it asks them;\n\
- set `{class} = \"allow\"` in the table [approval] of their own config.toml ({file}) and restart the host (`consort stop`).\n\
You need nobody for compile-form, diagnostics, describe-symbol, source_location, lisp-read-file and dry runs; evaluate-lisp, and run-tests of what \
is loaded, are of the class `eval`, which is allowed unless a person changed that. No tool can change the rules.",
        request.tool,
        class = request.class.key(),
        file = user_file(),
    )
}

/// Returns the shell command with which a person can do the same, if there is one.
fn command(request: &ApprovalRequest) -> Option<String> {
    let argument = |name: &str| request.arguments[name].as_str().map(str::to_owned);
    // The agent's text is quoted for the shell, and only plain names are shown in a command.
    let plain = |name: &String| {
        !name.is_empty()
            && name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '/' | '+'))
    };
    match request.tool {
        "load-system" | "code_reload_system" => {
            let system = argument("system").filter(plain)?;
            Some(format!("consort eval '(asdf:load-system \"{system}\")'"))
        }
        "image" => Some("consort stop".into()),
        _ => None,
    }
}

/// Returns the refusal if the audit log cannot be written.
pub(super) fn audit_unwritable(request: &ApprovalRequest, why: &str) -> String {
    format!(
        "Refused: {} needs approval, and the audit log, in which every approval has to be, cannot be written: {why}",
        request.tool
    )
}
