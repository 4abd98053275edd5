#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::Value;

use super::*;

fn parse(arguments: Value) -> Result<(Source, ValueAction), Failure> {
    serde_json::from_value::<Input>(arguments).unwrap().parse()
}

#[test]
fn a_call_names_one_value() {
    let shown = ValueAction::Show(Show::Parts);
    for (arguments, source) in [
        (json!({}), Source::Variable("*".into())),
        (json!({"code": " shop::*cart* "}), Source::Variable("shop::*cart*".into())),
        (json!({"code": "(f)", "package": "shop"}), Source::Code("(f)".into())),
        (json!({"value": 3, "path": [1, 0]}), Source::Number(3)),
        (json!({"value": 3, "code": "(car *)"}), Source::On(3, "(car *)".into())),
        (json!({"stop": 1, "code": "x"}), Source::Frame(Stack::Stop(1), 0, "x".into())),
        (json!({"failure": 2, "frame": 4, "code": "(f x)"}), Source::Frame(Stack::Failure(2), 4, "(f x)".into())),
    ] {
        assert_eq!(parse(arguments.clone()).unwrap(), (source, shown.clone()), "{arguments}");
    }
    assert_eq!(parse(json!({"value": 3, "show": "table"})).unwrap().1, ValueAction::Show(Show::Table));
    assert_eq!(parse(json!({"value": 3, "path": [0], "new": "1"})).unwrap().1, ValueAction::Set("1".into()));
    assert_eq!(parse(json!({"value": 3, "other": 4})).unwrap().1, ValueAction::Compare(4));
    assert_eq!(parse(json!({"code": "shop::*cart*", "find": "tea"})).unwrap().1, ValueAction::Find("tea".into()));
}

#[test]
fn arguments_that_do_not_go_together_are_named() {
    for (arguments, words) in [
        (json!({"stop": 1, "failure": 1, "code": "x"}), "`stop` or `failure`"),
        (json!({"stop": 1, "value": 1}), "`value` or a `stop`"),
        (json!({"failure": 1}), "`code` is missing"),
        (json!({"frame": 1}), "`frame` needs"),
        (json!({"value": 1, "package": "p"}), "`package`"),
        (json!({"value": 1, "new": "1"}), "`path` is missing"),
        (json!({"value": 1, "other": 2, "show": "table"}), "one of `show`"),
        (json!({"value": 1, "find": "x", "new": "2", "path": [0]}), "one of `show`"),
        (json!({"stop": 1, "code": "x", "find": "y"}), "as `value`"),
        (json!({"code": "(f)", "show": "describe"}), "as `value`"),
        (json!({"show": "describe"}), "as `value`"),
        (json!({"failure": 1, "code": "x", "show": "table"}), "as `value`"),
        (json!({"code": "(f)", "path": [1], "new": "2"}), "as `value`"),
    ] {
        let failure = parse(arguments.clone()).unwrap_err();
        assert!(failure.kind == "bad-arguments" && failure.message.contains(words), "{arguments}: {failure:?}");
    }
}
