//! Reading a settings file: every entry keeps its line, so that a problem can name it.

use std::io;
use std::path::Path;

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Source};
use super::{Config, Problem};

/// Lay the file's settings over `config`; what cannot be used is added to `config.problems`.
pub(super) fn apply(config: &mut Config, path: &Path, source: Source) {
    let problem = |line, message| Problem { file: Some(path.into()), line, message };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
        Err(error) => {
            config.problems.push(problem(None, format!("cannot be read ({error}); the defaults are used")));
            return;
        }
    };
    let (document, errors) = DeTable::parse_recoverable(&text);
    if let Some(error) = errors.first() {
        let line = error.span().map(|span| line_of(&text, span.start));
        let message = format!("not valid TOML: {}; nothing of this file is used", error.message().trim());
        config.problems.push(problem(line, message));
        return;
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
            if let Err(message) = keys::set(config, &key, &to_json(value.get_ref()), source) {
                config.problems.push(problem(Some(line_of(&text, name.span().start)), message));
            }
        }
    }
    // A table's entries come in the order of their names; a person reads them in the order of the file.
    config.problems.sort_by(|a, b| if a.file == b.file { a.line.cmp(&b.line) } else { std::cmp::Ordering::Equal });
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// TOML's numbers, which it keeps as written, as JSON's; a number that JSON cannot hold becomes `null`, which no key takes.
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

    use super::*;

    fn load(user: &str, workspace: &str) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("config.toml"), dir.path().join("consort.toml"));
        std::fs::write(&a, user).unwrap();
        std::fs::write(&b, workspace).unwrap();
        Config::load_from(Some(&a), &b)
    }

    #[test]
    fn the_workspace_goes_over_the_user_and_the_user_over_the_defaults() {
        let config = load("[eval]\ntimeout_s = 5\n[check]\nnotes = true\n", "[eval]\ntimeout_s = 7.5\n");
        assert_eq!(config.problems, vec![]);
        assert_eq!(config.eval_timeout, Duration::from_millis(7500));
        assert!(config.check.notes);
        assert_eq!(config.linger, Duration::from_secs(60));
    }

    #[test]
    fn no_file_is_no_problem() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none.toml");
        assert_eq!(Config::load_from(Some(&missing), &missing), Config::default());
    }

    #[test]
    fn problems_name_file_line_and_key_in_the_order_of_the_file() {
        let config = load("", "\n[check]\nnotes = \"yes\"\nconfine = false\ncolour = 1\n[lisp]\nheap = \"4GB\"\n");
        let said: Vec<String> = config.problems.iter().map(Problem::to_string).collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].contains("consort.toml:3: check.notes must be true or false, not \"yes\""), "{}", said[0]);
        assert!(said[1].contains("consort.toml:4: check.confine"), "{}", said[1]);
        assert!(said[2].contains("consort.toml:5: unknown key check.colour"), "{}", said[2]);
        assert_eq!(config.check, Config::default().check);
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
