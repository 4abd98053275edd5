//! Names of packages that were meant, for one that does not exist.

use consort::host::control::{Request, ask};
use consort::host::election::Place;
use consort::host::hello::{Hello, Protocol};
use consort::model::evaluation::EvalOutcome;

/// The largest number of letters in which a suggestion differs.
const NEAR: usize = 3;

/// Returns a sentence that names the packages most like one that the image does not have; `None`
/// if it has the package, has none like it, or does not answer.
pub(super) fn near(place: &Place, wanted: &str) -> Option<String> {
    let connected = place.connect_or_start(&Hello::new(Protocol::Control)).ok()?;
    let code = "(format nil \"~{~A~^ ~}\" (loop for package in (list-all-packages) \
                append (cons (package-name package) (package-nicknames package))))";
    let request = Request::Eval { code: code.into(), package: None, timeout: None, input: false };
    let outcome: EvalOutcome = serde_json::from_value(ask(connected, &request, |_, _| Ok(())).ok()?).ok()?;
    let names = outcome.values.first()?.text.trim_matches('"').to_owned();
    suggestion(wanted, &names.split(' ').collect::<Vec<_>>())
}

fn suggestion(wanted: &str, names: &[&str]) -> Option<String> {
    let wanted = wanted.to_uppercase();
    if names.contains(&wanted.as_str()) {
        return None;
    }
    let like = |name: &&&str| {
        strsim::damerau_levenshtein(&wanted, name) <= NEAR.min(wanted.chars().count() / 2) || {
            wanted.len() > NEAR && name.starts_with(&wanted)
        }
    };
    let mut near: Vec<&str> = names.iter().filter(like).copied().collect();
    near.sort_by_key(|name| strsim::damerau_levenshtein(&wanted, name));
    near.truncate(3);
    (!near.is_empty()).then(|| format!("; did you mean {}?", near.join(" or ").to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_like_name_are_suggested() {
        let names = ["SHOP", "SHOP/TESTS", "CL-USER", "ALEXANDRIA"];
        assert_eq!(suggestion("shpo", &names).as_deref(), Some("; did you mean shop?"));
        assert_eq!(suggestion("alex", &names).as_deref(), Some("; did you mean alexandria?"));
        assert_eq!(suggestion("shop", &names), None);
        assert_eq!(suggestion("nothing-like-it", &names), None);
    }
}
