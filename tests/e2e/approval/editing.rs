//! Attempts to bypass the approval of `lisp-edit-form`, over the real front ends: only the text
//! that was shown is written, and only to the file that was shown.

use std::fs;
use std::os::unix::fs::symlink;

use consort_tests::framing::Framing;
use consort_tests::wire::Rpc;
use serde_json::{Value, json};

use crate::people::{CORE, People, begin, kind, result};

const TOOL: &str = "lisp-edit-form";

fn edit(file: &str, content: &str) -> Value {
    json!({"file_path": file, "form_type": "defun", "form_name": "core", "operation": "replace", "content": content})
}

#[test]
fn links_and_dots_lead_nowhere() {
    let mut people = People::open();
    let elsewhere = people.outside().join("elsewhere.lisp");
    fs::write(&elsewhere, CORE).expect("a file");
    symlink(&elsewhere, people.world.path("link.lisp")).expect("a link");
    symlink(people.outside(), people.world.path("out")).expect("a link");
    people.world.write("src/a.lisp", CORE);
    let absolute = elsewhere.display().to_string();
    let ways = ["link.lisp", "out/elsewhere.lisp", "../elsewhere.lisp", "src/../../elsewhere.lisp", &absolute];
    for way in ways {
        assert_eq!(kind(&people.unasked(TOOL, edit(way, "(defun core () :bad)"))), "OUTSIDE_WORKSPACE", "{way}");
    }
    assert_eq!(fs::read_to_string(&elsewhere).expect("the file"), CORE);
    people.audited(&["lisp-edit-form refused"; 5]);

    // Paths that stay within the workspace are shown as the real path.
    symlink(people.world.path("core.lisp"), people.world.path("harmless.lisp")).expect("a link");
    for way in ["harmless.lisp", "src/../core.lisp"] {
        let call = begin(&mut people.agent, TOOL, edit(way, "(defun core () :bad)"));
        let question = people.question();
        let real = people.world.path("core.lisp").canonicalize().expect("the file").display().to_string();
        assert!(question["params"]["message"].to_string().contains(&format!("Filename: {real}")), "{question}");
        people.press(&question, "Deny");
        assert_eq!(kind(&result(&mut people.agent, call)), "REFUSED");
    }
    assert_eq!(people.text_of("core.lisp"), CORE);
    people.audited(&["lisp-edit-form refused"; 7]);
    people.end();
}

#[test]
fn a_file_that_is_another_by_the_time_it_is_allowed_stays_as_it_is() {
    let mut people = People::open();
    let (core, other) = (people.world.path("core.lisp"), people.world.path("other.lisp"));
    let changes: [(&str, &dyn Fn()); 4] = [
        ("written", &|| fs::write(&core, "(defun core (x)\n  (* x 3))\n").expect("a file")),
        ("exchanged", &|| {
            fs::write(&other, CORE).expect("a file");
            fs::rename(&other, &core).expect("renamed");
        }),
        ("a link", &|| {
            fs::rename(&core, &other).expect("renamed");
            symlink(&other, &core).expect("a link");
        }),
        ("renamed", &|| fs::rename(&core, &other).expect("renamed")),
    ];
    let mut decisions = Vec::new();
    for (what, change) in changes {
        drop((fs::remove_file(&core), fs::remove_file(&other)));
        fs::write(&core, CORE).expect("a file");
        let refused = people.decided(TOOL, edit("core.lisp", "(defun core () :bad)"), change, "Allow");
        assert_eq!(refused["isError"], true, "{what}: {refused}");
        for file in [&core, &other] {
            assert!(!fs::read_to_string(file).unwrap_or_default().contains(":bad"), "{what}");
        }
        decisions.extend(["lisp-edit-form allowed", "lisp-edit-form refused"]);
        people.audited(&decisions);
    }
    // The text that is in the file afterwards needs a new question.
    fs::write(&core, CORE).expect("a file");
    people.denied(TOOL, edit("core.lisp", "(defun core () :bad)"));
    assert_eq!(people.text_of("core.lisp"), CORE);
    people.end();
}

#[test]
fn what_was_allowed_for_one_content_is_not_for_another() {
    let mut people = People::open();
    let shown = edit("core.lisp", "(defun core () :shown)");
    let first = begin(&mut people.agent, TOOL, shown.clone());
    let question = people.question();
    let second = begin(&mut people.agent, TOOL, edit("core.lisp", "(defun core () :other)"));
    people.press(&question, "Allow");
    assert_eq!(result(&mut people.agent, first)["isError"], false);
    // The edit that came meanwhile is of the same file: it reads what the first has written, and
    // is asked about by itself.
    let about_other = people.question();
    assert!(about_other["params"]["message"].to_string().contains(":other"), "{about_other}");
    people.press(&about_other, "Deny");
    assert_eq!(kind(&result(&mut people.agent, second)), "REFUSED");
    assert_eq!(people.text_of("core.lisp"), "(defun core () :shown)\n");
    // The approval is for one call.
    people.denied(TOOL, edit("core.lisp", "(defun core () :again)"));
    // An edit that would not change the file is not asked about, and a dry run changes nothing.
    assert_eq!(people.unasked(TOOL, shown)["structuredContent"]["changed"], false);
    let mut dry = edit("core.lisp", "(defun core () :dry)");
    dry["dry_run"] = true.into();
    assert_eq!(people.unasked(TOOL, dry)["isError"], false);
    assert_eq!(people.text_of("core.lisp"), "(defun core () :shown)\n");
    let refused = "lisp-edit-form refused";
    people.audited(&["lisp-edit-form allowed", refused, refused]);
    people.end();
}

/// With `load` one answer is for both the file and the image, and so is a refusal.
#[test]
fn one_answer_is_for_the_file_and_the_image() {
    let mut people = People::open();
    people.eval("(defun cl-user::core (x) (* x 2))");
    let edit = |content: &str| {
        let mut edit = edit("core.lisp", content);
        edit["load"] = true.into();
        edit
    };
    people.denied(TOOL, edit("(defun core (x) (* x 3))"));
    assert_eq!((people.eval("(cl-user::core 1)").as_str(), people.text_of("core.lisp").as_str()), ("2", CORE));
    // A second question would keep the answer back.
    people.allowed(TOOL, edit("(defun core (x) (* x 4))"), "Allow");
    assert_eq!(people.eval("(cl-user::core 1)"), "4");
    assert_eq!(people.text_of("core.lisp"), "(defun core (x) (* x 4))\n");
    people.audited(&["lisp-edit-form refused", "lisp-edit-form allowed"]);
    people.end();
}

/// The agent's own client asks, by an input-required result (2026-07-28).
#[test]
fn nor_in_a_call_that_is_made_again() {
    let People { world, editor, agent } = People::open();
    assert!(editor.close().code().is_some());
    agent.close();
    let mut modern = Rpc::start(world.consort(&["mcp"]), Framing::Lines);
    let mut call = |arguments: Value, state: Option<&Value>| {
        let mut params = json!({"name": TOOL, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }});
        if let Some(state) = state {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({"approval": {"action": "accept", "content": {"decision": "allow"}}});
        }
        modern.request("tools/call", params)
    };
    let asked = call(edit("core.lisp", "(defun core () :shown)"), None);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let refused = call(edit("core.lisp", "(defun core () :other)"), Some(&asked["requestState"]));
    assert!(refused["content"][0]["text"].to_string().contains("the arguments are not those"), "{refused}");
    assert_eq!(fs::read_to_string(world.path("core.lisp")).expect("the file"), CORE);
    drop(modern);
    world.finish();
}

#[test]
fn settings_that_an_agent_writes_loosen_nothing() {
    let mut people = People::open();
    let settings = "[approval]\nedit-file = \"ask\"\n";
    people.world.write("consort.toml", settings);
    // The file has no forms of Lisp to replace.
    for form_type in ["[approval]", "edit-file", "defun"] {
        let mut arguments = edit("consort.toml", "(edit-file allow)");
        arguments["form_type"] = form_type.into();
        assert_eq!(people.unasked(TOOL, arguments)["isError"], true, "{form_type}");
    }
    assert_eq!(people.text_of("consort.toml"), settings);

    // Evaluation is allowed by default, and writes the workspace's settings and the person's own.
    let mine = people.outside().join("config/consort/config.toml");
    for file in [people.world.path("consort.toml"), mine] {
        let loose = "[approval]\nedit-file = \\\"allow\\\"\nmodify-running-code = \\\"allow\\\"\n";
        let code = format!(
            "(with-open-file (s {:?} :direction :output :if-exists :supersede) (write-string \"{loose}\" s) :done)",
            file.display().to_string()
        );
        assert!(
            people.unasked("evaluate-lisp", json!({"code": code}))["content"][0]["text"].to_string().contains(":DONE")
        );
        assert!(fs::read_to_string(&file).expect("the file").contains("\"allow\""));
        people.denied(TOOL, edit("core.lisp", "(defun core () :bad)"));
        people.denied("code_undo", json!({}));
    }
    assert_eq!(people.text_of("core.lisp"), CORE);
    people.audited(&["lisp-edit-form refused", "code_undo refused", "lisp-edit-form refused", "code_undo refused"]);
    people.end();
}
