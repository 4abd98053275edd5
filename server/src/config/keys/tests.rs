use super::super::trust::TrustStore;
use super::*;
use serde_json::json;

#[test]
fn every_default_written_out_is_the_default() {
    for key in KEYS {
        let written: toml::Table = format!("value = {}", key.default).parse().unwrap();
        let value = serde_json::to_value(&written["value"]).unwrap();
        let mut config = Config::default();
        set(&mut config, key.name, &value, Source::User).unwrap();
        assert_eq!(config, Config::default(), "{}", key.name);
    }
}

#[test]
fn sizes() {
    assert_eq!(size(&json!("4GB")), Some(4 << 30));
    assert_eq!(size(&json!("512 MiB")), Some(512 << 20));
    assert_eq!(size(&json!("4 parsecs")), None);
    assert_eq!(size(&json!("99999999999999GB")), None);
    assert_eq!(size(&json!(-1)), None);
}

#[test]
fn only_the_user_lifts_confinement() {
    for source in [Source::Workspace, Source::Client] {
        let mut config = Config::default();
        assert!(set(&mut config, "check.confine", &json!(false), source).unwrap_err().contains("config.toml"));
        assert!(config.check.confine);
    }
    let mut config = Config::default();
    set(&mut config, "check.confine", &json!(false), Source::User).unwrap();
    assert!(!config.check.confine);
    set(&mut config, "check.confine", &json!(true), Source::Workspace).unwrap();
    assert!(config.check.confine, "a workspace may be stricter");
}

#[test]
fn what_needs_trust_is_not_taken_from_an_editors_settings() {
    for (name, value) in trusted_keys() {
        let mut config = Config::default();
        assert!(set(&mut config, name, &value, Source::Client).unwrap_err().contains("config.toml"), "{name}");
        assert_eq!(config, Config::default(), "{name}");
        set(&mut config, name, &value, Source::User).unwrap();
        assert_eq!(set(&mut config, name, &value, Source::Client), Ok(()), "{name}: the person's own has the same");
    }
    let mut config = Config::default();
    set(&mut config, "docs.hyperspec", &json!("/clhs"), Source::OwnClient).unwrap();
    assert_ne!(config, Config::default(), "an editor that sends the person's own settings alone");
}

#[test]
fn only_the_user_says_what_checks_read() {
    for source in [Source::Workspace, Source::Client] {
        let mut config = Config::default();
        assert!(set(&mut config, "check.read", &json!(["/"]), source).unwrap_err().contains("config.toml"));
        assert_eq!(config, Config::default());
    }
    let mut config = Config::default();
    set(&mut config, "check.read", &json!(["/data", "~/more"]), Source::User).unwrap();
    assert_eq!(config.lisp.read[0], std::path::Path::new("/data"));
    assert!(config.lisp.read[1].is_absolute() && config.lisp.read[1].ends_with("more"));
    for wrong in [json!("/data"), json!(["data"]), json!([1])] {
        assert!(set(&mut config, "check.read", &wrong, Source::User).is_err());
    }
}

#[test]
fn only_the_user_lets_copies_have_threads() {
    for source in [Source::Workspace, Source::Client] {
        let mut config = Config::default();
        assert!(set(&mut config, "eval.in_copy", &json!("threads"), source).unwrap_err().contains("config.toml"));
        assert!(!config.copy_threads);
        config.copy_threads = true;
        set(&mut config, "eval.in_copy", &json!("strict"), source).unwrap();
        assert!(!config.copy_threads, "others may be stricter");
    }
    let mut config = Config::default();
    set(&mut config, "eval.in_copy", &json!("threads"), Source::User).unwrap();
    assert!(config.copy_threads);
    assert!(set(&mut config, "eval.in_copy", &json!("loose"), Source::User).is_err());
}

/// Returns each key that needs trust, with a value that is not its default.
fn trusted_keys() -> Vec<(&'static str, Value)> {
    let other = |key: &Key| match key.name {
        "lisp.command" => json!(["x"]),
        "lisp.heap" => json!("64GB"),
        "lisp.init_file" => json!("x"),
        "lisp.end_programs" => json!(false),
        "check.copies" => json!("process"),
        "docs.hyperspec" => json!("/srv/hyperspec"),
        new => panic!("say a value of {new} that is not its default"),
    };
    KEYS.iter().filter(|key| needs_trust(key.name)).map(|key| (key.name, other(key))).collect()
}

#[test]
fn each_key_that_needs_trust_is_asked_about_and_in_force_once_trusted() {
    for (name, value) in trusted_keys() {
        let dir = tempfile::tempdir().unwrap();
        let (table, entry) = name.split_once('.').unwrap();
        std::fs::write(dir.path().join("consort.toml"), format!("[{table}]\n{entry} = {value}\n")).unwrap();
        let store = TrustStore::within(dir.path().join("trust"));
        let mut config = Config::load_from(None, dir.path(), &store);
        let untrusted = config.untrusted.clone().unwrap_or_else(|| panic!("{name} is not asked about"));
        assert_eq!(untrusted.lines(), [format!("{name} = {value}")]);
        assert_eq!(Config { untrusted: None, ..config.clone() }, Config::default(), "{name}");
        store.trust(&untrusted).unwrap();
        let trusted = Config::load_from(None, dir.path(), &store);
        let mut wanted = Config::default();
        grant(&mut wanted, name, &value).unwrap();
        assert_eq!(trusted, wanted, "{name}");
        // A client is connected when the person trusts the workspace, and when the person revokes
        // the trust.
        let old = config.clone();
        config.take_trusted(&old, &trusted);
        assert_eq!(config, trusted, "{name}");
        config.take_trusted(&trusted, &old);
        assert_eq!(config, old, "{name}");
    }
}

/// Returns each key that is a limit for a workspace, with a stricter and a looser value.
fn limits() -> Vec<(&'static str, Value, Value)> {
    let values = |key: &Key| match key.name {
        "check.chain" => (json!(false), json!(true)),
        "check.deadline_s" => (json!(1), json!(3600)),
        "check.memory_mb" => (json!(64), json!(65_536)),
        "check.shadow_mb" => (json!(16), json!(65_536)),
        "check.workspace" => (json!(false), json!(true)),
        "debug.frozen" => (json!(0), json!(16)),
        "eval.timeout_s" => (json!(1), json!(86_400)),
        "host.linger_s" => (json!(0), json!(604_800)),
        new => panic!("say a stricter and a looser value of {new}"),
    };
    let limits = KEYS.iter().filter(|key| matches!(key.workspace, FromWorkspace::NotAbove(_)));
    let with_values = limits.map(|key| (key.name, values(key)));
    with_values.map(|(name, (stricter, looser))| (name, stricter, looser)).collect()
}

#[test]
fn a_workspace_lowers_limits_only_and_starts_nothing_by_itself() {
    for (name, stricter, looser) in limits() {
        let of_user = |value: &Value| {
            let mut config = Config::default();
            set(&mut config, name, value, Source::User).unwrap();
            config
        };
        let (strict, loose) = (of_user(&stricter), of_user(&looser));
        assert_ne!(strict, loose, "{name}");
        let mut config = strict.clone();
        let refused = set(&mut config, name, &looser, Source::Workspace).unwrap_err();
        assert!(refused.contains("config.toml") && config == strict, "{refused}");
        let mut config = loose;
        set(&mut config, name, &stricter, Source::Workspace).unwrap();
        assert_eq!(config, strict, "{name}");
    }
    for (name, value) in trusted_keys() {
        let mut config = Config::default();
        assert!(set(&mut config, name, &value, Source::Workspace).unwrap_err().contains("consort trust"));
        assert_eq!(config, Config::default());
        grant(&mut config, name, &value).unwrap();
        assert_ne!(config, Config::default());
    }
    // For a new key, a decision is needed about the values that a workspace may set.
    let any: Vec<&str> =
        KEYS.iter().filter(|key| matches!(key.workspace, FromWorkspace::Any)).map(|key| key.name).collect();
    assert_eq!(
        any,
        [
            "check.debounce_ms",
            "check.notes",
            "check.unreachable",
            "debug.on_error",
            "lenses.tests",
            "lenses.references",
            "hints.parameters",
            "completion.snippets",
            "lint.rules",
            "lint.rule",
            "format.indent"
        ]
    );
}

#[test]
fn a_wrong_value_says_what_is_expected_and_changes_nothing() {
    for (name, value) in [
        ("lisp.command", json!("sbcl")),
        ("lisp.command", json!([])),
        ("lisp.heap", json!("1MB")),
        ("lisp.init_file", json!(3)),
        ("check.debounce_ms", json!(-1)),
        ("check.deadline_s", json!("soon")),
        ("check.memory_mb", json!(u64::MAX)),
        ("eval.timeout_s", json!(1e300)),
        ("format.indent", json!({"with-foo": "1"})),
        ("lint.rule", json!([{"pattern": "(f"}])),
        ("host.linger_s", json!(null)),
        ("approval.eval", json!("Allow")),
        ("approval.edit-file", json!(true)),
    ] {
        let mut config = Config::default();
        let message = set(&mut config, name, &value, Source::User).unwrap_err();
        assert!(message.starts_with(&format!("{name} must be ")), "{message}");
        assert_eq!(config, Config::default());
    }
}

#[test]
fn the_good_entries_of_a_table_count_beside_bad_ones() {
    let mut config = Config::default();
    let rules = json!({"With-Foo": 1, "with-bar": "2", "with-baz": 21, "def-it": 3});
    let message = set(&mut config, "format.indent", &rules, Source::Workspace).unwrap_err();
    assert!(message.contains("ignored: with-bar = \"2\", with-baz = 21; the other entries are used"), "{message}");
    let used: Vec<(&str, usize)> = config.format_indent.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(used, [("def-it", 3), ("with-foo", 1)]);
    let message = set(&mut config, "format.indent", &json!(3), Source::Workspace).unwrap_err();
    assert!(message.ends_with("not 3; it is ignored"), "{message}");
}

#[test]
fn a_misspelt_key_is_told_its_neighbour() {
    let mut config = Config::default();
    let message = set(&mut config, "check.debounce", &json!(1), Source::User).unwrap_err();
    assert!(message.contains("did you mean check.debounce_ms?"), "{message}");
    let message = set(&mut config, "zzz.y", &json!(1), Source::User).unwrap_err();
    assert!(message.contains("the tables are lisp, check, approval, "), "{message}");
}

#[test]
fn the_documentation_and_the_keys_agree() {
    let page = include_str!("../../../../docs/configuration.md");
    let documented: Vec<(String, String)> = page
        .lines()
        .skip_while(|line| !line.starts_with("| key |"))
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(|cell| cell.trim().trim_matches('`').to_string());
            Some((cells.next()?, cells.next()?))
        })
        .collect();
    let known: Vec<(String, String)> = KEYS.iter().map(|key| (key.name.into(), key.default.into())).collect();
    assert_eq!(documented, known);
}

/// The table "What a workspace may set" contains each key once, in the row of its rule.
#[test]
fn the_page_says_what_a_workspace_may_set() {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, section) = page.split_once("## What a workspace may set").unwrap();
    let rows: Vec<(&str, &str)> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.trim_end_matches(" |").split_once(" | ")).collect();
    for key in KEYS {
        let (table, _) = key.name.split_once('.').unwrap();
        let names = |row: &str| row.contains(&format!("{}`", key.name)) || row.contains(&format!("{table}.*`"));
        let found: Vec<&str> = rows.iter().filter(|(row, _)| names(row)).map(|(_, rule)| *rule).collect();
        let [rule] = found[..] else { panic!("{} stands in {} rows", key.name, found.len()) };
        let begins = match key.workspace {
            FromWorkspace::Any => "any value: ",
            FromWorkspace::Trusted => "any value, **once you trust",
            FromWorkspace::NotAbove(_) => "less than what is in force",
            FromWorkspace::Own => continue,
        };
        assert!(rule.starts_with(begins), "{}: {rule}", key.name);
    }
}
