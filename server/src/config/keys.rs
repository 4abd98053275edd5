//! The list of all configuration keys: name, accepted values and setter. docs/configuration.md
//! follows this list.

use std::time::Duration;

use serde_json::Value;

use super::approval::{Class, Setting};
use super::source::Source;
use super::{Chains, Config, Copies, InitFile, OnError};

/// The values of a key that a workspace's consort.toml may set.
#[derive(Debug, Clone, Copy)]
pub enum FromWorkspace {
    /// Any value, since the key affects only display and timing.
    Any,
    /// Any value, after the user has trusted the workspace, since the key starts programs, loads
    /// code, or changes how Lisp is started.
    Trusted,
    /// Values not above the current one, since the key is a limit.
    NotAbove(fn(&Config) -> u128),
    /// Values that a rule for this key in [`set`] permits.
    Own,
}

/// A configuration key.
#[derive(Debug)]
pub struct Key {
    /// The name, as `table.name`.
    pub name: &'static str,
    /// The accepted values, for the message about an unusable value.
    pub expected: &'static str,
    /// The default as written in the file.
    pub default: &'static str,
    /// The values that a workspace may set.
    pub workspace: FromWorkspace,
    set: fn(&mut Config, &Value) -> Option<()>,
}

/// The keys whose valid entries are used even if other entries are invalid.
const INDENT: &str = "format.indent";
const RULE: &str = "lint.rule";
const RULES: &str = "lint.rules";

/// All keys.
pub const KEYS: &[Key] = &[
    Key {
        name: "lisp.command",
        expected: "an array of strings, the program first, such as [\"qlot\", \"exec\", \"sbcl\"]",
        default: "[\"sbcl\"]",
        workspace: FromWorkspace::Trusted,
        set: |config, value| {
            let words: Vec<String> =
                value.as_array()?.iter().map(|word| word.as_str().map(String::from)).collect::<Option<_>>()?;
            (!words.first()?.is_empty()).then(|| config.lisp.command = words)
        },
    },
    Key {
        name: "lisp.heap",
        expected: "a size of at least 256MB, such as \"4GB\" or \"512MB\"",
        default: "\"4GB\"",
        workspace: FromWorkspace::Trusted,
        set: |config, value| size(value).filter(|bytes| *bytes >= 256 << 20).map(|bytes| config.lisp.heap = bytes),
    },
    Key {
        name: "lisp.init_file",
        expected: "true (your usual init file), false (none) or a file name",
        default: "true",
        workspace: FromWorkspace::Trusted,
        set: |config, value| {
            config.lisp.init_file = match value {
                Value::Bool(true) => InitFile::Default,
                Value::Bool(false) => InitFile::None,
                Value::String(name) if !name.is_empty() => InitFile::File(expand_home(name)),
                _ => return None,
            };
            Some(())
        },
    },
    Key {
        name: "lisp.end_programs",
        expected: "true or false",
        default: "true",
        workspace: FromWorkspace::Trusted,
        set: |config, value| value.as_bool().map(|on| config.lisp.end_programs = on),
    },
    Key {
        name: "check.debounce_ms",
        expected: "a whole number of milliseconds from 0 to 60000",
        default: "200",
        workspace: FromWorkspace::Any,
        set: |config, value| {
            value.as_u64().filter(|ms| *ms <= 60_000).map(|ms| config.check.debounce = Duration::from_millis(ms))
        },
    },
    Key {
        name: "check.deadline_s",
        expected: "a number of seconds from 0.1 to 3600",
        default: "20",
        workspace: FromWorkspace::NotAbove(|config| config.check.deadline.as_nanos()),
        set: |config, value| seconds(value, 0.1, 3600.0).map(|time| config.check.deadline = time),
    },
    Key {
        name: "check.memory_mb",
        expected: "a whole number of megabytes, at least 64",
        default: "2048",
        workspace: FromWorkspace::NotAbove(|config| config.check.memory.into()),
        set: |config, value| {
            let bytes = value.as_u64().filter(|mb| *mb >= 64)?.checked_mul(1 << 20)?;
            config.check.memory = bytes;
            Some(())
        },
    },
    Key {
        name: "check.notes",
        expected: "true or false",
        default: "false",
        workspace: FromWorkspace::Any,
        set: |config, value| value.as_bool().map(|on| config.check.notes = on),
    },
    Key {
        name: "check.unreachable",
        expected: "true or false",
        default: "false",
        workspace: FromWorkspace::Any,
        set: |config, value| value.as_bool().map(|on| config.check.unreachable = on),
    },
    Key {
        name: "check.confine",
        expected: "true or false",
        default: "true",
        workspace: FromWorkspace::Own,
        set: |config, value| value.as_bool().map(|on| config.check.confine = on),
    },
    Key {
        name: "check.chain",
        expected: "true, false or \"log\"",
        default: "true",
        workspace: FromWorkspace::NotAbove(|config| config.check.chain as u128),
        set: |config, value| {
            config.check.chain = match value {
                Value::Bool(false) => Chains::Off,
                Value::Bool(true) => Chains::On,
                Value::String(word) if word == "log" => Chains::Log,
                _ => return None,
            };
            Some(())
        },
    },
    Key {
        name: "check.shadow_mb",
        expected: "a whole number of megabytes, at least 16",
        default: "1024",
        workspace: FromWorkspace::NotAbove(|config| config.check.chain_memory.into()),
        set: |config, value| {
            config.check.chain_memory = value.as_u64().filter(|mb| *mb >= 16)?.checked_mul(1 << 20)?;
            Some(())
        },
    },
    Key {
        name: "check.workspace",
        expected: "true or false",
        default: "false",
        workspace: FromWorkspace::NotAbove(|config| config.check.workspace.into()),
        set: |config, value| value.as_bool().map(|on| config.check.workspace = on),
    },
    Key {
        name: "check.read",
        expected: "an array of absolute names of directories or files, such as [\"~/data\"]",
        default: "[]",
        workspace: FromWorkspace::Own,
        set: |config, value| {
            let names = value.as_array()?.iter().map(|name| name.as_str().map(expand_home));
            let names: Vec<_> = names.collect::<Option<_>>()?;
            names.iter().all(|name| name.is_absolute()).then(|| config.lisp.read = names)
        },
    },
    Key {
        name: "check.copies",
        expected: "\"fork\" (a copy of the image, where it can be made) or \"process\" (a second SBCL process)",
        default: "\"fork\"",
        workspace: FromWorkspace::Trusted,
        set: |config, value| {
            config.lisp.copies = match value.as_str()? {
                "fork" => Copies::Fork,
                "process" => Copies::Process,
                _ => return None,
            };
            Some(())
        },
    },
    Key {
        name: "approval.eval",
        expected: "\"allow\", \"ask\", \"copy\" or \"deny\"",
        default: "\"allow\"",
        workspace: FromWorkspace::Own,
        set: |config, value| approval(config, Class::Eval, value),
    },
    Key {
        name: "approval.compile-file",
        expected: APPROVAL,
        default: "\"ask\"",
        workspace: FromWorkspace::Own,
        set: |config, value| approval(config, Class::CompileFile, value),
    },
    Key {
        name: "approval.modify-running-code",
        expected: APPROVAL,
        default: "\"ask\"",
        workspace: FromWorkspace::Own,
        set: |config, value| approval(config, Class::ModifyRunningCode, value),
    },
    Key {
        name: "approval.edit-file",
        expected: APPROVAL,
        default: "\"ask\"",
        workspace: FromWorkspace::Own,
        set: |config, value| approval(config, Class::EditFile, value),
    },
    Key {
        name: "approval.restart-image",
        expected: APPROVAL,
        default: "\"ask\"",
        workspace: FromWorkspace::Own,
        set: |config, value| approval(config, Class::RestartImage, value),
    },
    Key {
        name: "approval.debug",
        expected: APPROVAL,
        default: "\"ask\"",
        workspace: FromWorkspace::Own,
        set: |config, value| approval(config, Class::Debug, value),
    },
    Key {
        name: "eval.timeout_s",
        expected: "a number of seconds from 0.1 to 86400",
        default: "30",
        workspace: FromWorkspace::NotAbove(|config| config.eval_timeout.as_nanos()),
        set: |config, value| seconds(value, 0.1, 86_400.0).map(|time| config.eval_timeout = time),
    },
    Key {
        name: "eval.in_copy",
        expected: "\"strict\" or \"threads\" (threads, and sockets on a loopback interface of the copy's own)",
        default: "\"strict\"",
        workspace: FromWorkspace::Own,
        set: |config, value| {
            config.copy_threads = match value.as_str()? {
                "strict" => false,
                "threads" => true,
                _ => return None,
            };
            Some(())
        },
    },
    Key {
        name: "debug.on_error",
        expected: "\"ask\", \"stop\" or \"report\"",
        default: "\"ask\"",
        workspace: FromWorkspace::Any,
        set: |config, value| {
            config.on_error = match value.as_str()? {
                "ask" => OnError::Ask,
                "stop" => OnError::Stop,
                "report" => OnError::Report,
                _ => return None,
            };
            Some(())
        },
    },
    Key {
        name: "debug.frozen",
        expected: "a whole number from 0 to 16",
        default: "4",
        workspace: FromWorkspace::NotAbove(|config| config.frozen as u128),
        set: |config, value| {
            config.frozen = value.as_u64().filter(|count| *count <= 16)?.try_into().ok()?;
            Some(())
        },
    },
    Key {
        name: "lenses.tests",
        expected: "true or false",
        default: "true",
        workspace: FromWorkspace::Any,
        set: |config, value| value.as_bool().map(|on| config.lens_tests = on),
    },
    Key {
        name: "lenses.references",
        expected: "true or false",
        default: "false",
        workspace: FromWorkspace::Any,
        set: |config, value| value.as_bool().map(|on| config.lens_references = on),
    },
    Key {
        name: "hints.parameters",
        expected: "true or false",
        default: "false",
        workspace: FromWorkspace::Any,
        set: |config, value| value.as_bool().map(|on| config.hint_parameters = on),
    },
    Key {
        name: "completion.snippets",
        expected: "true or false",
        default: "false",
        workspace: FromWorkspace::Any,
        set: |config, value| value.as_bool().map(|on| config.completion_snippets = on),
    },
    Key {
        name: "docs.hyperspec",
        expected: "the absolute name of a directory that has the HyperSpec, its address, or \"\" for the usual one",
        default: "\"\"",
        workspace: FromWorkspace::Trusted,
        set: |config, value| {
            let name = value.as_str()?;
            let web = name.starts_with("http://") || name.starts_with("https://");
            config.hyperspec = match expand_home(name) {
                _ if web || name.is_empty() => name.to_owned(),
                directory => directory.to_str().filter(|_| directory.is_absolute())?.to_owned(),
            };
            Some(())
        },
    },
    Key {
        name: RULES,
        expected: "an array of names of rules, such as [\"all\", \"-boolean-if\"] (docs/diagnostics.md)",
        default: "[]",
        workspace: FromWorkspace::Any,
        // `set` reports unknown names.
        set: |config, value| super::lint_rules::set_names(config, value),
    },
    Key {
        name: RULE,
        expected: "an array of tables with pattern, message and perhaps name and rewrite (docs/lint.md)",
        default: "[]",
        workspace: FromWorkspace::Any,
        // `set` reports single entries.
        set: |config, value| super::lint_rules::set(config, value).ok(),
    },
    Key {
        name: INDENT,
        expected: "a table of operators with the number of arguments before their bodies, such as {with-foo = 1}",
        default: "{}",
        workspace: FromWorkspace::Any,
        set: |config, value| {
            // `set` reports single entries.
            super::indent::set(config, value).ok()
        },
    },
    Key {
        name: "host.linger_s",
        expected: "a number of seconds from 0 to 604800",
        default: "60",
        workspace: FromWorkspace::NotAbove(|config| config.linger.as_nanos()),
        set: |config, value| seconds(value, 0.0, 604_800.0).map(|time| config.linger = time),
    },
];

const APPROVAL: &str = "\"allow\", \"ask\" or \"deny\"";

fn approval(config: &mut Config, class: Class, value: &Value) -> Option<()> {
    config.approval.set(class, Setting::of(value.as_str()?)?, Source::User).ok()
}

/// Sets one key.
///
/// # Errors
/// A sentence for a person. For an invalid value it names the accepted values.
pub fn set(config: &mut Config, name: &str, value: &Value, source: Source) -> Result<(), String> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else { return Err(unknown(name)) };
    if name == "check.confine" && source != Source::User && value == &Value::Bool(false) {
        return Err(
            "check.confine = false is not taken from here, since what comes with a workspace may not lift its own \
                    confinement; set it in your own config.toml if you trust everything you check"
                .into(),
        );
    }
    if name == "check.read" && source != Source::User {
        return Err(
            "check.read is not taken from here, since what comes with a workspace may not say what of your files its \
                    code reads; set it in your own config.toml"
                .into(),
        );
    }
    if name == "eval.in_copy" && source != Source::User && value == "threads" {
        return Err(
            "eval.in_copy = \"threads\" is not taken from here, since what comes with a workspace may not say what its \
                    code may do in a copy; set it in your own config.toml"
                .into(),
        );
    }
    // The permission to loosen approval depends on the source.
    if let Some((class, setting)) = Class::of_key(name).zip(value.as_str().and_then(Setting::of)) {
        return config.approval.set(class, setting, source);
    }
    match name {
        INDENT => return super::indent::set(config, value),
        RULE => return super::lint_rules::set(config, value),
        RULES => {
            apply(config, key, value)?;
            return super::lint_rules::unknown_names(config).map_or(Ok(()), Err);
        }
        _ => {}
    }
    let before = config.clone();
    apply(config, key, value)?;
    match (source, key.workspace) {
        (Source::Workspace, FromWorkspace::Trusted) => {
            *config = before;
            Err(format!("{name} counts only once the person has trusted this workspace (`consort trust`)"))
        }
        // A value that the person's own configuration also has is no change.
        (Source::Client, FromWorkspace::Trusted) if *config != before => {
            *config = before;
            Err(format!(
                "{name} is not taken from here, since an editor's settings may come with the workspace; set it in your own config.toml \
                 and restart the host (`consort stop`)"
            ))
        }
        (Source::Workspace | Source::Client, FromWorkspace::NotAbove(limit)) if limit(config) > limit(&before) => {
            *config = before;
            Err(format!(
                "{name} = {value} is not taken from here, since what comes with a workspace can only lower this limit; set it in your own \
                 config.toml"
            ))
        }
        _ => Ok(()),
    }
}

/// Returns true when a workspace may set this key only after the user has trusted it.
pub(super) fn needs_trust(name: &str) -> bool {
    KEYS.iter().any(|key| key.name == name && matches!(key.workspace, FromWorkspace::Trusted))
}

/// Sets a key that needs trust, as for a trusted workspace.
pub(super) fn grant(config: &mut Config, name: &str, value: &Value) -> Result<(), String> {
    let key = KEYS.iter().find(|key| key.name == name && needs_trust(name)).ok_or_else(|| unknown(name))?;
    apply(config, key, value)
}

fn apply(config: &mut Config, key: &Key, value: &Value) -> Result<(), String> {
    let wrong = || format!("{} must be {}, not {value}; {} is used", key.name, key.expected, in_force(key));
    (key.set)(config, value).ok_or_else(wrong)
}

fn in_force(key: &Key) -> String {
    format!("the value in force before (by default {})", key.default)
}

fn unknown(name: &str) -> String {
    let near = KEYS.iter().map(|key| (strsim::levenshtein(key.name, name), key.name)).min();
    match near {
        Some((distance, near)) if distance <= 3 => format!("unknown key {name}; did you mean {near}? It is ignored"),
        _ => {
            let table = name.split('.').next().unwrap_or(name);
            let keys = KEYS.iter().filter_map(|key| key.name.strip_prefix(table)?.strip_prefix('.'));
            let keys: Vec<&str> = keys.collect();
            if keys.is_empty() {
                let mut tables: Vec<&str> = KEYS.iter().filter_map(|key| Some(key.name.split_once('.')?.0)).collect();
                tables.dedup();
                format!("unknown key {name}, which is ignored; the tables are {}", tables.join(", "))
            } else {
                format!("unknown key {name}, which is ignored; the table {table} has {}", keys.join(", "))
            }
        }
    }
}

fn seconds(value: &Value, least: f64, most: f64) -> Option<Duration> {
    let seconds = value.as_f64().filter(|seconds| (least..=most).contains(seconds))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Parses "4GB", "512 MB", "2GiB", or a number of bytes. Units are powers of 1024, as in SBCL's
/// own `--dynamic-space-size`.
fn size(value: &Value) -> Option<u64> {
    if let Some(bytes) = value.as_u64() {
        return Some(bytes);
    }
    let text = value.as_str()?.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "kb" | "kib" | "k" => 10,
        "mb" | "mib" | "m" => 20,
        "gb" | "gib" | "g" => 30,
        "" | "b" => 0,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn expand_home(name: &str) -> std::path::PathBuf {
    match (name.strip_prefix("~/"), crate::search_paths::home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => name.into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
