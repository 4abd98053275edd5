//! Suggestions for the name of a package that does not exist.

use consort::host::control::{Request, ask};
use consort::host::election::Place;
use consort::host::hello::{Hello, Protocol};
use consort::ide::asd::AsdFiles;
use consort::model::evaluation::EvalOutcome;

/// The maximum edit distance of a suggestion.
const MAX_EDIT_DISTANCE: usize = 3;

/// The place where a person has named a package. It determines the command for loading a system
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptKind {
    /// A shell.
    InShell,
    /// A Lisp prompt.
    InLisp,
}

impl PromptKind {
    fn load(self, system: &str) -> String {
        match self {
            PromptKind::InShell => format!("consort eval '(asdf:load-system {system:?})'"),
            PromptKind::InLisp => format!("(asdf:load-system {system:?})"),
        }
    }
}

/// Returns a sentence for a person who named the package `wanted`. It suggests packages with
/// similar names or a system of the workspace with a similar name, or otherwise to load the
/// package's system. Returns `None` if the image has the package or does not answer.
pub(super) fn similar_names_hint(place: &Place, wanted: &str, asked: PromptKind) -> Option<String> {
    let connected = place.connect_or_start(&Hello::new(Protocol::Control)).ok()?;
    let code = "(format nil \"~{~A~^ ~}\" (loop for package in (list-all-packages) \
                append (cons (package-name package) (package-nicknames package))))";
    let request = Request::Eval { code: code.into(), package: None, timeout: None, input: false, whole: false };
    let outcome: EvalOutcome = serde_json::from_value(ask(connected, &request, |_, _| Ok(())).ok()?).ok()?;
    let names = outcome.values.first()?.text.trim_matches('"').to_owned();
    let files = AsdFiles::new(place.workspace.clone()).all();
    let systems: Vec<String> = files.iter().filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect();
    suggestion(wanted, &names.split(' ').collect::<Vec<_>>(), &systems, asked)
}

fn suggestion(wanted: &str, names: &[&str], systems: &[String], asked: PromptKind) -> Option<String> {
    let wanted = wanted.to_uppercase();
    if names.contains(&wanted.as_str()) {
        return None;
    }
    let distance = |name: &str| strsim::damerau_levenshtein(&wanted, name);
    let like = |name: &str| {
        distance(name) <= MAX_EDIT_DISTANCE.min((wanted.chars().count() / 3).max(1))
            || (wanted.len() > MAX_EDIT_DISTANCE && name.starts_with(&wanted))
    };
    let mut near: Vec<&str> = names.iter().filter(|name| like(name)).copied().collect();
    near.sort_by_key(|name| distance(name));
    near.truncate(3);
    let systems = systems.iter().map(|system| (distance(&system.to_uppercase()), system));
    let system = systems.filter(|(_, system)| like(&system.to_uppercase())).min();
    // A system is suggested if its name is nearer than that of every package.
    let nearest = near.first().map(|name| distance(name));
    Some(match system {
        Some((distance, system)) if nearest.is_none_or(|nearest| distance < nearest) => {
            format!("; is it of the system {system}? To load that: {}", asked.load(system))
        }
        _ if !near.is_empty() => format!("; did you mean {}?", near.join(" or ").to_lowercase()),
        _ => format!("; a package is there once its system is loaded: {}", asked.load("NAME")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_like_name_are_suggested() {
        let names = ["SHOP", "SHOP/TESTS", "CL-USER", "ALEXANDRIA"];
        let suggestion =
            |wanted: &str| suggestion(wanted, &names, &["telegraph".into(), "cl-ppcre".into()], PromptKind::InShell);
        assert_eq!(suggestion("shpo").as_deref(), Some("; did you mean shop?"));
        assert_eq!(suggestion("alex").as_deref(), Some("; did you mean alexandria?"));
        assert_eq!(suggestion("shop"), None);
        let unlike = suggestion("loop").unwrap_or_default();
        assert!(unlike.contains("once its system is loaded"), "{unlike}");
        let system = suggestion("telegrap").unwrap_or_default();
        assert!(system.ends_with("consort eval '(asdf:load-system \"telegraph\")'"), "{system}");
        let nearer = suggestion("cl-pcre").unwrap_or_default();
        assert!(nearer.contains("is it of the system cl-ppcre?"), "{nearer}");
        let other = suggestion("nothing-like-it").unwrap_or_default();
        assert!(other.contains("once its system is loaded"), "{other}");
        let at_a_prompt = super::suggestion("nothing-like-it", &names, &[], PromptKind::InLisp).unwrap_or_default();
        assert!(at_a_prompt.ends_with("is loaded: (asdf:load-system \"NAME\")"), "{at_a_prompt}");
    }
}
