//! lisp-read-file and lisp-edit-form, over the real frontend.

use std::os::unix::fs::{PermissionsExt, symlink};

use consort_tests::installation::Installation;
use serde_json::{Value, json};

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn an_agent_reads_and_edits_forms_and_nothing_else() {
    let world = Installation::new();
    world.configure("[approval]\nedit-file = \"allow\"\n");
    let original = "\u{feff};;; é\r\n(in-package :a)\r\n\r\n(defun f (x)\r\n\t\"(\" #| ( |# x)\r\n(defmethod m ((x a)) 1)\r\n(defmethod m ((x b)) 2)\r\n";
    let path = world.write("src/a.lisp", original);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    let mut agent = world.mcp();
    let mut call =
        |name: &str, arguments: Value| agent.request("tools/call", json!({"name": name, "arguments": arguments}));

    let read = call("lisp-read-file", json!({"path": "src/a.lisp", "name_pattern": "^f$"}));
    assert!(text(&read).contains("L4-5 (defun f (x)\n\t\"(\" #| ( |# x)"), "{read}");
    assert_eq!(read["structuredContent"]["forms"][2]["form_name"], "m (a)");
    let whole = call("lisp-read-file", json!({"path": path, "collapsed": false, "offset": 3, "limit": 1}));
    assert_eq!(whole["structuredContent"]["text"], "(defun f (x)");

    let edit = |name: &str, content: &str, dry: bool| json!({"file_path": "src/a.lisp", "form_type": "defmethod", "form_name": name, "operation": "replace", "content": content, "dry_run": dry});
    let ambiguous = call("lisp-edit-form", edit("m", "(defmethod m ((x a)) 3)", false));
    assert_eq!(ambiguous["isError"], true);
    assert!(text(&ambiguous).contains("form_name m (b) (line 7)"), "{ambiguous}");
    assert_eq!(ambiguous["structuredContent"]["error"]["data"]["type"], "FORM_AMBIGUOUS");
    for broken in ["(defmethod m ((x a)) \"3", "(a) (b)", ""] {
        assert_eq!(call("lisp-edit-form", edit("m (a)", broken, false))["isError"], true, "{broken}");
    }
    for mended in ["(defmethod m ((x a)) 3", "(defmethod m ((x a)) 3))"] {
        let dry = call("lisp-edit-form", edit("m (a)", mended, true));
        assert!(text(&dry).contains("By:\n(defmethod m ((x a)) 3)") && text(&dry).contains("Mended: "), "{dry}");
    }
    let dry = call("lisp-edit-form", edit("m (a)", "(defmethod m ((x a))\n  3)", true));
    assert!(text(&dry).starts_with("Dry run"), "{dry}");
    assert_eq!(std::fs::read(&path).expect("the file"), original.as_bytes());
    let edited = call("lisp-edit-form", edit("m (a)", "(defmethod m ((x a))\n  3)", false));
    assert_eq!(
        edited["structuredContent"],
        json!({"path": "src/a.lisp", "changed": true, "unsaved": false, "line": 6, "end_line": 7})
    );
    let expected = original.replace("(defmethod m ((x a)) 1)", "(defmethod m ((x a))\r\n  3)");
    assert_eq!(std::fs::read(&path).expect("the file"), expected.as_bytes());
    assert_eq!(path.metadata().expect("the file").permissions().mode() & 0o777, 0o640);

    let outside = tempfile::tempdir().expect("a directory");
    std::fs::write(outside.path().join("b.lisp"), "(b)").expect("a file");
    symlink(outside.path(), world.path("out")).expect("a link");
    for path in ["out/b.lisp", "../run", "/etc/passwd", "none.lisp", "src"] {
        let refused = call("lisp-read-file", json!({"path": path}));
        assert_eq!(refused["isError"], true, "{path}: {refused}");
        let arguments =
            json!({"file_path": path, "form_type": "b", "form_name": "", "operation": "replace", "content": "(c)"});
        assert_eq!(call("lisp-edit-form", arguments)["isError"], true, "{path}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("b.lisp")).expect("the file"), "(b)");
    drop(agent);
    world.finish();
}
