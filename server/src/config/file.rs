//! The reading of a settings file. Every entry keeps its line number, for messages about problems.

use std::io;
use std::path::Path;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::keys;
use super::own_command;
use super::ownership::LIMIT;
use super::source::Source;
use super::{Config, Problem};
use crate::bounded_file;

/// Applies the user's own file to `config`. Problems with unusable values are added to
/// `config.problems`.
pub(super) fn apply_own(config: &mut Config, path: &Path) {
    match bounded_file::read(path, LIMIT) {
        Ok(bytes) => {
            apply(config, path, bytes, Source::User);
            own_command::resolve(&mut config.lisp, path.parent().unwrap_or(Path::new("/")));
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
        Err(error) => {
            let message = format!("cannot be read ({error}); the defaults are used");
            config.problems.push(Problem { file: Some(path.into()), line: None, message });
        }
    }
}

/// Applies the contents of a settings file to `config`. Problems with unusable values are added to
/// `config.problems`. Keys that need trust are not applied, but returned.
pub(super) fn apply(config: &mut Config, path: &Path, bytes: Vec<u8>, source: Source) -> Vec<(String, Value)> {
    let mut wanted = Vec::new();
    let problem = |line, message| Problem { file: Some(path.into()), line, message };
    let Ok(text) = String::from_utf8(bytes) else {
        config.problems.push(problem(None, "is not UTF-8; nothing of this file is used".into()));
        return wanted;
    };
    let (document, errors) = DeTable::parse_recoverable(&text);
    if let Some(error) = errors.first() {
        let line = error.span().map(|span| line_of(&text, span.start));
        let message = format!("not valid TOML: {}; nothing of this file is used", error.message().trim());
        config.problems.push(problem(line, message));
        return wanted;
    }
    for (table, entries) in document.get_ref() {
        let line = Some(line_of(&text, table.span().start));
        let DeValue::Table(entries) = entries.get_ref() else {
            let message = format!("{} must be a table, written [{}]", table.get_ref(), table.get_ref());
            config.problems.push(problem(line, message));
            continue;
        };
        for (name, value) in entries {
            let key = format!("{}.{}", table.get_ref(), name.get_ref());
            let value = to_json(value.get_ref());
            let set = if source == Source::Workspace && keys::needs_trust(&key) {
                // An unusable value is reported even if the workspace is not trusted.
                let usable = keys::grant(&mut config.clone(), &key, &value);
                usable.map(|()| wanted.push((key, value)))
            } else {
                keys::set(config, &key, &value, source)
            };
            if let Err(message) = set {
                config.problems.push(problem(Some(line_of(&text, name.span().start)), message));
            }
        }
    }
    // The entries of a table are sorted by name. For display, the problems are sorted by line.
    config.problems.sort_by(|a, b| if a.file == b.file { a.line.cmp(&b.line) } else { std::cmp::Ordering::Equal });
    wanted
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// Converts TOML's numbers, which are kept as written, to JSON's. A number that JSON cannot
/// represent becomes `null`, which no key accepts.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).map(Value::from).unwrap_or(Value::Null)
        }
        DeValue::Float(float) => float.as_str().parse::<f64>().map(Value::from).unwrap_or(Value::Null),
        DeValue::Boolean(boolean) => Value::Bool(*boolean),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            table.iter().map(|(name, value)| (name.get_ref().to_string(), to_json(value.get_ref()))).collect()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::super::trust::TrustStore;
    use super::*;

    fn load(user: &str, workspace: &str) -> Config {
        load_trusting(user, workspace, false)
    }

    /// Loads the settings. If `trusted`, the person trusts them, and they are loaded again.
    fn load_trusting(user: &str, workspace: &str, trusted: bool) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("config.toml");
        std::fs::write(&own, user).unwrap();
        std::fs::write(dir.path().join("consort.toml"), workspace).unwrap();
        let store = TrustStore::within(dir.path().join("trust"));
        let config = Config::load_from(Some(&own), dir.path(), &store);
        let Some(untrusted) = config.untrusted.as_ref().filter(|_| trusted) else { return config };
        store.trust(untrusted).unwrap();
        Config::load_from(Some(&own), dir.path(), &store)
    }

    #[test]
    fn the_workspace_goes_over_the_user_and_the_user_over_the_defaults() {
        let config = load("[eval]\ntimeout_s = 5\n[check]\nnotes = true\n", "[eval]\ntimeout_s = 2.5\n");
        assert_eq!(config.problems, vec![]);
        assert_eq!(config.eval_timeout, Duration::from_millis(2500));
        assert!(config.check.notes);
        assert_eq!(config.linger, Duration::from_secs(60));
    }

    #[test]
    fn no_file_is_no_problem() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none.toml");
        let store = TrustStore::within(dir.path().join("trust"));
        assert_eq!(Config::load_from(Some(&missing), &missing, &store), Config::default());
    }

    #[test]
    fn problems_name_file_line_and_key_in_the_order_of_the_file() {
        let config = load("", "\n[check]\nnotes = \"yes\"\nconfine = false\ncolour = 1\n[lisp]\nheap = \"4GB\"\n");
        let said: Vec<String> = config.problems.iter().map(Problem::to_string).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].contains("consort.toml:3: check.notes must be true or false, not \"yes\""), "{}", said[0]);
        assert!(said[1].contains("consort.toml:4: check.confine"), "{}", said[1]);
        assert!(said[2].contains("consort.toml:5: unknown key check.colour"), "{}", said[2]);
        assert!(said[2].contains("; the table check has debounce_ms, ") && !said[2].contains("lisp"), "{}", said[2]);
        let other = load("", "[colours]\nred = 1\n").problems[0].to_string();
        assert!(other.contains("unknown key colours.red, which is ignored; the tables are lisp, check, "), "{other}");
        assert_eq!(config.check, Config::default().check);
    }

    #[test]
    fn what_starts_programs_counts_once_it_is_trusted_and_its_mistakes_are_told_before() {
        let text = "[lisp]\ncommand = [\"qlot\", \"exec\", \"sbcl\"]\ninit_file = 3\n[check]\nnotes = true\n";
        let config = load("", text);
        assert_eq!((&config.lisp, config.check.notes), (&Config::default().lisp, true));
        assert_eq!(config.untrusted.unwrap().lines(), [r#"lisp.command = ["qlot","exec","sbcl"]"#]);
        assert!(config.problems[0].message.contains("lisp.init_file must be"), "{:?}", config.problems);
        let config = load_trusting("", text, true);
        assert_eq!((config.lisp.command.len(), config.untrusted), (3, None));
        assert_eq!(load("[lisp]\ncommand = [\"x\"]\n", "[lisp]\ncommand = [\"x\"]\n").untrusted, None);
    }

    #[test]
    fn broken_toml_leaves_the_defaults_and_says_where() {
        let config = load("", "[lisp]\nheap = \"8GB\"\ncommand = [\n");
        assert_eq!(config.lisp, Config::default().lisp);
        assert_eq!(config.problems.len(), 1);
        assert!(config.problems[0].line.is_some());
        assert!(config.problems[0].message.starts_with("not valid TOML"), "{}", config.problems[0]);
        assert_eq!(load("", "lisp = 3\n").problems[0].message, "lisp must be a table, written [lisp]");
    }
}
