//! Descriptions of names for a person, as Markdown for a hover.

use std::path::Path;

use super::context::RecordedDefinition;
use super::places::Defined;
use crate::image::api::symbols::{Facts, PackageFacts, SymbolAnswer};
use crate::shown;

/// The facts about a name that a description shows.
#[derive(Debug, Default)]
pub struct Described<'a> {
    /// The data of the image about the name.
    pub known: Option<&'a SymbolAnswer>,
    /// The locations of the name's definitions.
    pub defined: &'a [Defined],
    /// The definitions made through Consort, from [`super::context::Backend::latest_made`].
    pub made: &'a [RecordedDefinition],
    /// The directory to which the paths of files are relative.
    pub root: Option<&'a Path>,
    /// The file that the image names and that has no such definition any more.
    pub left: Option<&'a Path>,
}

/// Returns a call with its parameters, such as `(scan regex target-string &key start end)`.
pub fn signature(operator: &str, lambda_list: &[String]) -> String {
    let mut text = format!("({operator}");
    for parameter in lambda_list {
        text.push(' ');
        text.push_str(parameter);
    }
    text.push(')');
    text
}

/// Returns the description as Markdown, or `None` if nothing is known.
pub fn markdown(described: &Described<'_>) -> Option<String> {
    let known = described.known?;
    let mut parts = Vec::new();
    // A keyword is not described if a package has the same name. The package is described instead.
    let means = |facts: &&Facts| match facts.kinds.as_slice() {
        [] => false,
        [only] => only != "keyword" || known.package.is_none(),
        _ => true,
    };
    if let Some(facts) = known.facts.as_ref().filter(means) {
        parts.push(code(facts));
        parts.push(kinds_and_package(facts));
        for one in &facts.documentation {
            let heading = if facts.documentation.len() > 1 {
                format!("*{}*\n\n", shown::markdown(&one.kind))
            } else {
                String::new()
            };
            parts.push(format!("{heading}{}", shown::fenced("text", &one.text)));
        }
        if let Some(class) = &facts.class {
            parts.push(format!("Superclasses: {}. Slots: {}.", list(&class.supers), list(&class.slots)));
        }
    } else if let Some(package) = &known.package {
        parts.push(of_package(package));
    }
    if parts.is_empty() {
        return None;
    }
    if !described.defined.is_empty() {
        parts.push(places(described.defined));
    }
    if let Some(file) = described.left {
        let file = shown::markdown(&relative(file, described.root));
        parts.push(format!("Not in {file} any more: renamed or removed. The image still has it."));
    }
    parts.extend(made(described).iter().map(|made| shown::markdown(made)));
    Some(parts.join("\n\n"))
}

fn code(facts: &Facts) -> String {
    let mut lines = Vec::new();
    if let Some(lambda_list) = &facts.lambda_list {
        lines.push(signature(&facts.printed, lambda_list));
    } else {
        lines.push(facts.printed.clone());
    }
    if let Some(value) = &facts.value {
        lines.push(format!("{} => {value}", facts.printed));
    }
    if let Some(kind) = &facts.function_type {
        lines.push(kind.clone());
    }
    shown::fenced("lisp", &lines.join("\n"))
}

/// Returns the kinds and the package, such as `generic function · CL-PPCRE (exported)`.
pub fn kinds_and_package(facts: &Facts) -> String {
    let package = match (&facts.package, facts.external) {
        (Some(package), true) => format!(" · {} (exported)", shown::code_span(package)),
        (Some(package), false) => format!(" · {} (internal)", shown::code_span(package)),
        (None, _) => " · without a package".into(),
    };
    format!("{}{package}", facts.kinds.join(", "))
}

fn of_package(package: &PackageFacts) -> String {
    let nicknames =
        if package.nicknames.is_empty() { String::new() } else { format!(" (nicknames {})", list(&package.nicknames)) };
    let mut text = format!(
        "package {}{nicknames}: {} exported symbols. Uses {}; used by {}.",
        shown::code_span(&package.name),
        package.external,
        list(&package.uses),
        list(&package.used_by)
    );
    if let Some(documentation) = &package.documentation {
        text.push_str(&format!("\n\n{}", shown::fenced("text", documentation)));
    }
    text
}

fn list(names: &[String]) -> String {
    const MAX_SHOWN: usize = 12;
    match names {
        [] => "none".into(),
        _ if names.len() > MAX_SHOWN => format!("{} and {} more", ticked(&names[..MAX_SHOWN]), names.len() - MAX_SHOWN),
        _ => ticked(names),
    }
}

fn ticked(names: &[String]) -> String {
    names.iter().map(|name| shown::code_span(name)).collect::<Vec<_>>().join(", ")
}

/// Returns a URI for a Markdown link in angle brackets. Characters that would end the link are
/// encoded.
pub(super) fn target(uri: &str) -> String {
    uri.chars()
        .map(|char| match char {
            '<' | '>' | '\\' | '\n' | '\r' => format!("%{:02X}", char as u32),
            other => other.to_string(),
        })
        .collect()
}

/// Returns a path relative to `root`, or the path itself if it is not below `root`.
fn relative(path: &Path, root: Option<&Path>) -> String {
    let within = root.and_then(|root| path.strip_prefix(root).ok());
    within.unwrap_or(path).to_string_lossy().into_owned()
}

/// Returns sentences about the makers of the definitions, with the places that are not among the
/// shown ones. Kinds are named only if their makers differ.
fn made(described: &Described<'_>) -> Vec<String> {
    let is_shown = |one: &RecordedDefinition| {
        described.left.is_some_and(|left| one.file.as_deref() == Some(left))
            || described.defined.iter().any(|shown| {
                one.file.as_ref() == Some(&shown.file) && shown.start().is_none_or(|at| Some(at.line) == one.line)
            })
    };
    let ending = |one: &RecordedDefinition| {
        let place = match (&one.file, one.line) {
            (Some(file), Some(line)) if !is_shown(one) => {
                format!(", from {}:{line}", relative(file, described.root))
            }
            (Some(file), None) if !is_shown(one) => format!(", from {}", relative(file, described.root)),
            _ => String::new(),
        };
        format!("{}{place}.", one.maker)
    };
    let endings: Vec<(&str, String)> = described.made.iter().map(|one| (one.kind.as_str(), ending(one))).collect();
    match endings.as_slice() {
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => vec![format!("Defined {first}")],
        all => all.iter().map(|(kind, ending)| format!("Defined as {kind} {ending}")).collect(),
    }
}

/// Returns a sentence with links to the first locations, each with its file and line.
fn places(defined: &[Defined]) -> String {
    const MAX_SHOWN: usize = 4;
    let line = |one: &Defined| {
        let at = one.start().map_or(String::new(), |at| format!(":{}", at.line));
        let file =
            one.file.file_name().map_or_else(|| one.file.to_string_lossy(), |name| name.to_string_lossy()).into_owned();
        match one.text.as_ref() {
            Some(text) => {
                let line = one.start().map_or(1, |at| at.line);
                format!("[{}{at}](<{}#L{line}>)", shown::markdown(&file), target(&text.uri))
            }
            None => format!("{}{at}", shown::markdown(&file)),
        }
    };
    // One form may define several things of a name, as a structure's slot does with its accessor.
    let mut shown: Vec<String> = Vec::new();
    for place in defined.iter().map(line) {
        if !shown.contains(&place) {
            shown.push(place);
        }
    }
    let more = shown.len().saturating_sub(MAX_SHOWN);
    shown.truncate(MAX_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("Defined in {}{more}", shown.join(", "))
}
