//! The settings `lint.rule`, rules about code as patterns of lists, and `lint.rules`, the names of
//! the rules that are checked.

use serde_json::{Map, Value};

use super::Config;
use crate::model::diagnostic_codes::CODES;
use crate::model::lint_rule::LintRule;
use crate::text::pattern::{Pattern, Template};

/// The maximum number of rules of all settings together.
const MAX_RULES: usize = 64;
/// The maximum length of a message, in characters.
const MAX_MESSAGE_CHARS: usize = 500;
/// The maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 60;
/// The maximum number of rules that a message names.
const MAX_SHOWN: usize = 10;
/// The maximum number of letters by which a suggested name may differ.
const MAX_DISTANCE: usize = 3;
/// The name of a rule without a name of its own.
const UNNAMED: &str = "own";

/// Sets the names of the rules that are checked. Returns `None` for a value that is no array of
/// strings.
pub(super) fn set_names(config: &mut Config, value: &Value) -> Option<()> {
    let names = value.as_array()?.iter().map(|name| name.as_str().map(String::from));
    names.collect::<Option<_>>().map(|names| config.lint_rules = names)
}

/// Returns a sentence about the names in `lint.rules` that no rule has. These names have no effect,
/// because they may belong to another version of Consort. A name behind `-` is not reported: it may
/// be that of the person's own rule, in settings that are read later.
pub(super) fn unknown_names(config: &Config) -> Option<String> {
    let known: Vec<&str> = CODES.iter().filter_map(|code| code.strip_prefix("lint-")).chain(["all"]).collect();
    let own = |name: &str| name.starts_with('-') || config.lint_own.iter().any(|rule| rule.name == name);
    let unknown = config.lint_rules.iter().filter(|name| !own(name) && !known.contains(&name.as_str()));
    let shown = unknown.map(|name| {
        let near = known.iter().map(|known| (strsim::levenshtein(known, name), known)).min();
        let near = near.filter(|(distance, _)| *distance <= MAX_DISTANCE);
        near.map_or_else(|| format!("{name:?}"), |(_, near)| format!("{name:?} (did you mean {near:?}?)"))
    });
    let mut shown: Vec<String> = shown.collect();
    let more = shown.len().saturating_sub(MAX_SHOWN);
    shown.truncate(MAX_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names = shown.join(", ");
    (!shown.is_empty()).then(|| {
        format!("lint.rules has names that no rule has: {names}{more}; the others count. docs/lint.md has the rules")
    })
}

/// Adds the valid rules of an array of tables to the rules of other settings.
///
/// # Errors
/// A sentence about the invalid rules.
pub(super) fn set(config: &mut Config, value: &Value) -> Result<(), String> {
    const EXPECTED: &str = "lint.rule must be an array of tables with pattern, message and perhaps name and rewrite, \
                            written [[lint.rule]] (docs/lint.md)";
    let Some(tables) = value.as_array() else {
        return Err(format!("{EXPECTED}; it is ignored"));
    };
    let mut wrong = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let rule = match table.as_object() {
            Some(table) => rule(table),
            None => Err("is no table".into()),
        };
        match rule {
            Ok(rule) if config.lint_own.contains(&rule) => {}
            Ok(_) if config.lint_own.len() >= MAX_RULES => {
                wrong.push(format!("rule {}: there are {MAX_RULES} already", index + 1))
            }
            Ok(rule) => config.lint_own.push(rule),
            Err(why) => wrong.push(format!("rule {} {why}", index + 1)),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let others = if wrong.len() < tables.len() { "; the other rules are used" } else { "" };
    let more = wrong.len().saturating_sub(MAX_SHOWN);
    wrong.truncate(MAX_SHOWN);
    let shown: String = wrong.join("; ").chars().take(1_000).collect();
    let shown = if more > 0 { format!("{shown}; and {more} more") } else { shown };
    Err(format!("{EXPECTED}; ignored: {shown}{others}"))
}

/// Returns the rule of a table, or the reason why it is invalid, as the rest of a sentence.
fn rule(table: &Map<String, Value>) -> Result<LintRule, String> {
    const KEYS: [&str; 4] = ["name", "pattern", "message", "rewrite"];
    if let Some(other) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("has {other}, which is none of {}", KEYS.join(", ")));
    }
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => Err(format!("has {key} = {other}, which must be a string")),
    };
    let name = text("name")?.unwrap_or(UNNAMED);
    let letters = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !letters(name) || name.starts_with('-') || name == "all" {
        return Err(format!(
            "has the name {name:?}: it is made of letters, digits and -, at most {MAX_NAME_BYTES}, and not all"
        ));
    }
    let Some(written) = text("pattern")? else { return Err("has no pattern".into()) };
    let Some(message) = text("message")?.filter(|message| !message.trim().is_empty()) else {
        return Err("has no message".into());
    };
    let length = message.chars().count();
    if length > MAX_MESSAGE_CHARS {
        return Err(format!("has a message of {length} characters, and may have {MAX_MESSAGE_CHARS}"));
    }
    let pattern = Pattern::read(written).map_err(|why| format!("has a pattern that {why}"))?;
    let rewrite = match text("rewrite")? {
        Some(written) => Some(Template::read(written, &pattern).map_err(|why| format!("has a rewrite that {why}"))?),
        None => None,
    };
    Ok(LintRule { name: name.to_owned(), pattern, message: message.to_owned(), rewrite })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_no_rule_has_are_told_and_the_others_count() {
        let mut config = Config::default();
        assert!(set_names(&mut config, &json!(["all", "-boolean-if", "nil-key", "-mine"])).is_some());
        assert_eq!(unknown_names(&config), None);
        assert!(set_names(&mut config, &json!(["boolean-iff", "x".repeat(20), "eq-literal"])).is_some());
        let message = unknown_names(&config).unwrap();
        assert!(message.contains("\"boolean-iff\" (did you mean \"boolean-if\"?), \"xxxx"), "{message}");
        assert!(!message.contains("eq-literal") && config.lint_rules.len() == 3, "{message}");
        assert!(set_names(&mut config, &json!(["eq-literal", 1])).is_none());
    }

    #[test]
    fn good_rules_count_and_wrong_ones_are_told() {
        let mut config = Config::default();
        let good = json!({"name": "no-first", "pattern": "(first ?x)", "message": "Say car.", "rewrite": "(car ?x)"});
        let long = "x".repeat(MAX_MESSAGE_CHARS + 1);
        for (wrong, why) in [
            (json!("(f)"), "rule 2 is no table"),
            (json!({"pattern": "(f)"}), "has no message"),
            (json!({"message": "m"}), "has no pattern"),
            (json!({"pattern": "(f", "message": "m"}), "has a pattern that does not balance"),
            (json!({"pattern": 1, "message": "m"}), "pattern = 1, which must be a string"),
            (json!({"pattern": "(f)", "message": "m", "rewrite": "?x"}), "has a rewrite that has ?x"),
            (json!({"pattern": "(f)", "message": "m", "level": "x"}), "has level, which is none of"),
            (json!({"pattern": "(f)", "message": "m", "name": "a b"}), "has the name \"a b\""),
            (json!({"pattern": "(f)", "message": long}), "501 characters"),
        ] {
            let message = set(&mut config, &json!([good, wrong])).unwrap_err();
            assert!(message.contains(why) && message.ends_with("the other rules are used"), "{message}");
        }
        // A rule that is present already is not added again.
        assert_eq!(config.lint_own.len(), 1);
        assert!(set(&mut config, &json!({})).unwrap_err().starts_with("lint.rule must be an array of tables"));
        let rules: Vec<Value> =
            (0..MAX_RULES + 20).map(|at| json!({"pattern": format!("(f{at})"), "message": "m"})).collect();
        let message = set(&mut config, &json!(rules)).unwrap_err();
        assert!(message.contains("there are 64 already") && message.contains("and 11 more"), "{message}");
        assert_eq!(config.lint_own.len(), MAX_RULES);
    }
}
