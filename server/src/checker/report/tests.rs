//! Tests of the lines that a copy sends, and of the findings in them.

use super::text::{DIAGNOSTIC_OVERHEAD_BYTES, DIAGNOSTICS_LIMIT, MESSAGE_LIMIT, TEXT_LIMIT};
use super::*;

fn reported(lines: &[&str]) -> Findings {
    let mut findings = Findings::new(PathBuf::new(), 100, Expected::default());
    findings.handle_line(br#"{"token":"t","pid":1}"#, "t").unwrap();
    for line in lines {
        findings.handle_line(line.as_bytes(), "t").unwrap();
    }
    findings
}

fn of_length(length: usize) -> FileFacts {
    FileFacts { length, ..FileFacts::default() }
}

#[test]
fn a_copy_that_is_done_too_early_is_not_believed() {
    let plain = |plain: &[usize]| Expected { plain: plain.into(), ..Expected::default() };
    for (lines, stopped) in [
        (vec![r#"{"at":[0,5]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
        (vec![r#"{"done":{"forms":9,"read":9}}"#], true),
        (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,70]}"#, r#"{"done":{"forms":2,"read":2}}"#], false),
        (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,70]}"#, r#"{"done":{"forms":2}}"#], true),
        (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,70]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
        // Only the last form, all forms at once, and a place outside the text.
        (vec![r#"{"at":[60,70]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
        (vec![r#"{"at":[0,100]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
        (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,9000]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
        // A diagnostic accounts for text that could not be read.
        (
            vec![
                r#"{"diagnostic":{"span":[1,2],"severity":"error","code":"x","message":"m"}}"#,
                r#"{"done":{"forms":1}}"#,
            ],
            false,
        ),
    ] {
        let mut findings = Findings::new(PathBuf::new(), 100, plain(&[0, 60])).trusted();
        for line in &lines {
            findings.handle_line(line.as_bytes(), "t").unwrap();
        }
        let report = only(findings.complete());
        assert_eq!(report.end != CheckEnd::Complete, stopped, "{lines:?}");
        assert_eq!(report.diagnostics.iter().any(|d| d.code == "check-stopped"), stopped, "{lines:?}");
    }
    let mut findings = Findings::new("s.asd".into(), 10, Expected::default()).trusted();
    let facts = FileFacts { length: 50, expected: plain(&[40]), ..FileFacts::default() };
    findings.begin("a.lisp".into(), &facts, false).unwrap();
    findings.begin("b.lisp".into(), &facts, false).unwrap();
    findings.handle_line(br#"{"at":[40,50]}"#, "t").unwrap();
    findings.begin("c.lisp".into(), &facts, true).unwrap();
    findings.handle_line(br#"{"done":{"forms":2,"read":2}}"#, "t").unwrap();
    let reports = findings.complete();
    let stopped: Vec<_> =
        reports.iter().filter(|(_, report)| report.end != CheckEnd::Complete).map(|(path, _)| path.clone()).collect();
    assert_eq!(stopped, [PathBuf::from("a.lisp")]);
}

fn only(mut reports: Vec<(PathBuf, CheckReport)>) -> CheckReport {
    assert_eq!(reports.len(), 1);
    reports.remove(0).1
}

#[test]
fn lines_belong_to_their_files_and_a_stop_to_the_one_it_was_at() {
    let mut findings = Findings::new("s.asd".into(), 10, Expected::default());
    findings.handle_line(br#"{"token":"t"}"#, "t").unwrap();
    let taken = findings.handle_line(br#"{"file":"a.lisp","silent":true}"#, "t").unwrap();
    assert_eq!(taken, CheckEvent::File { path: "a.lisp".into(), silent: true });
    findings.begin("quiet.lisp".into(), &of_length(50), true).unwrap();
    findings.begin("a.lisp".into(), &of_length(50), false).unwrap();
    findings.handle_line(br#"{"at":[1,500]}"#, "t").unwrap();
    findings.begin("b.lisp".into(), &of_length(20), false).unwrap();
    findings.handle_line(br#"{"at":[2,500]}"#, "t").unwrap();
    for file in ["a.lisp", "s.asd", "never-begun.lisp"] {
        let line = format!(
            r#"{{"file":"{file}","diagnostic":{{"span":[3,500],"severity":"error","code":"x","message":"m"}}}}"#
        );
        assert_eq!(findings.handle_line(line.as_bytes(), "t").unwrap(), CheckEvent::Noted);
    }
    let reports = findings.stopped(Limit::Memory, "it is large.".into());
    let reported: Vec<_> = reports
        .iter()
        .map(|(path, report)| {
            let found: Vec<_> = report.diagnostics.iter().map(|d| (d.code.as_str(), d.span.end)).collect();
            (path.to_str().unwrap(), found, report.end == CheckEnd::Complete)
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("s.asd", vec![("x", 10)], true),
            ("a.lisp", vec![("x", 50)], true),
            ("b.lisp", vec![("out-of-memory", 20)], false),
        ]
    );
}

#[test]
fn an_answer_is_kept_and_taken_once() {
    let mut findings = reported(&[r#"{"answer":{"expanded":true}}"#, r#"{"done":{"forms":1}}"#]);
    assert!(findings.is_done());
    assert_eq!(findings.take_answer(), Some(serde_json::json!({"expanded": true})));
    assert_eq!(findings.take_answer(), None);
}

#[test]
fn a_stream_without_the_token_is_refused() {
    for line in ["", "{}", r#"{"token":"x","pid":1}"#, r#"{"done":{"forms":1}}"#] {
        assert!(
            Findings::new(PathBuf::new(), 1, Expected::default()).handle_line(line.as_bytes(), "t").is_err(),
            "{line}"
        );
    }
}

#[test]
fn spans_are_kept_inside_the_text_and_nonsense_is_ignored() {
    let findings = reported(&[
        r#"{"confined":{"landlock":3}}"#,
        r#"{"at":[90,95]}"#,
        "nonsense \u{0}",
        r#"{"diagnostic":{"span":[500,7],"severity":"error","code":"x","message":"m","toplevel":[90,1000]}}"#,
        r#"{"diagnostic":{"span":[-1,7],"severity":"error","code":"x","message":"m"}}"#,
        r#"{"done":{"forms":1,"unloaded_system":"sys"}}"#,
    ]);
    assert!(findings.is_done());
    let report = only(findings.complete());
    assert_eq!((report.forms, report.unloaded_system.as_deref(), report.diagnostics.len()), (1, Some("sys"), 1));
    assert_eq!(report.diagnostics[0].span, Span { start: 100, end: 100 });
    assert_eq!(report.diagnostics[0].toplevel, Some(Span { start: 90, end: 100 }));
}

#[test]
fn a_copy_that_was_stopped_leaves_its_findings_and_one_on_the_form_it_was_at() {
    let findings = reported(&[
        r#"{"at":[0,5]}"#,
        r#"{"diagnostic":{"span":[1,2],"severity":"warning","code":"x","message":"m"}}"#,
        r#"{"at":[6,20]}"#,
    ]);
    let report = only(findings.stopped(Limit::Time, "it took long.".into()));
    let codes: Vec<_> = report.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
    assert_eq!(codes, ["x", "out-of-time"]);
    assert_eq!(report.diagnostics[1].span, Span { start: 6, end: 20 });
    assert_eq!(report.end, CheckEnd::Stopped { reason: "it took long.".into() });
}

#[test]
fn few_other_files_are_referred_to() {
    let mut findings = reported(&[]);
    for number in 0..200 {
        let related = format!(r#"{{"file":"/usr/{number}","span":[0,1],"message":"m"}}"#);
        let line = format!(
            r#"{{"diagnostic":{{"span":[0,1],"severity":"note","code":"x","message":"m","related":[{related},{related}]}}}}"#
        );
        findings.handle_line(line.as_bytes(), "t").unwrap();
    }
    let report = only(findings.complete());
    let files = report.diagnostics.iter().flat_map(|one| &one.related).filter_map(|related| related.file.clone());
    assert_eq!(files.collect::<std::collections::BTreeSet<_>>().len(), 50);
    assert_eq!(report.diagnostics.len(), 200);
}

#[test]
fn a_flood_is_bounded() {
    let mut findings = reported(&[]);
    let long = "x".repeat(20_000);
    let line = format!(r#"{{"diagnostic":{{"span":[0,1],"severity":"note","code":"x","message":"{long}"}}}}"#);
    for _ in 0..1500 {
        findings.handle_line(line.as_bytes(), "t").unwrap();
    }
    assert!(findings.texts[0].bytes <= TEXT_LIMIT && !findings.texts[0].diagnostics.is_empty());
    assert!((0..1500).any(|_| findings.handle_line(line.as_bytes(), "t").is_err()));
    assert!(
        findings.texts[0].diagnostics.iter().all(|diagnostic| diagnostic.message.chars().count() == MESSAGE_LIMIT + 1)
    );
    let short = r#"{"diagnostic":{"span":[0,1],"severity":"note","code":"x","message":"m"}}"#;
    let mut findings = reported(&[]);
    for _ in 0..DIAGNOSTICS_LIMIT + 7 {
        findings.handle_line(short.as_bytes(), "t").unwrap();
    }
    let report = only(findings.complete());
    let kept = report.diagnostics.len() - 1;
    assert_eq!(kept, DIAGNOSTICS_LIMIT.min(TEXT_LIMIT / (short.len() + DIAGNOSTIC_OVERHEAD_BYTES)));
    let said: usize = report.diagnostics.iter().map(|one| serde_json::to_vec(one).unwrap().len()).sum();
    assert!(said <= TEXT_LIMIT, "{said}");
    let more = format!("{} more", DIAGNOSTICS_LIMIT + 7 - kept);
    assert!(report.diagnostics.iter().any(|diagnostic| diagnostic.message.starts_with(&more)));
}
