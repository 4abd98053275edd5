//! The scanner finds top-level forms where SBCL's reader does, in every Lisp file of the systems
//! that `tests/support/systems` names, and of SBCL itself.
//!
//! Compared are the objects that the reader returns: each must be one of the scanner's forms, less
//! its guards; and each form of the scanner that has no guard must be one of the reader's objects.
//! (A guard that is false makes no object.)

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use consort::text::decode;
use consort::text::scanner::{Scanner, TokenKind};
use consort::text::toplevel::Scan;
use consort_tests::{real_files, registry};

/// Debian's directory of the sources of SBCL.
const SBCL: &str = "/usr/share/sbcl-source";

/// Files on which the two may differ, by the end of their path, and why.
const EXCEPTIONS: [(&str, &str); 1] = [(
    "cl-cffi/src/cffi-abcl.lisp",
    "it is written for ABCL, whose `#\"method\"` SBCL's reader does not know: it takes the rest of the string for code; the scanner does not",
)];

#[test]
fn the_scanner_agrees_with_sbcl_s_reader_on_real_files() -> Result<()> {
    let sbcl = Path::new(SBCL);
    ensure!(sbcl.is_dir(), "{SBCL} is missing: install Debian's package sbcl-source (scripts/test-tools does)");
    let roots = registry::libraries().into_iter().chain([sbcl.to_owned()]);
    let files: Vec<PathBuf> = roots.flat_map(|root| real_files::below(&root, &["lisp"])).collect();
    let paths: Result<Vec<&str>> = files.iter().map(|file| file.to_str().context("a path that is not UTF-8")).collect();
    // A line of JSON for each file.
    let answers = real_files::ask_sbcl("read-forms.lisp", paths?.join("\n"))?;
    ensure!(answers.len() == files.len(), "SBCL answered for {} of {} files", answers.len(), files.len());

    let mut differences = Vec::new();
    let mut objects = 0;
    for (file, answer) in files.iter().zip(&answers) {
        let exception = EXCEPTIONS.iter().any(|(end, _)| file.ends_with(end));
        match compare(file, answer)? {
            Ok(count) => {
                objects += count;
                ensure!(!exception, "{} no longer needs its exception", file.display());
            }
            Err(difference) if !exception => differences.push(format!("{}: {difference}", file.display())),
            Err(_) => {}
        }
    }
    ensure!(
        differences.is_empty(),
        "{} of {} files differ:\n{}",
        differences.len(),
        files.len(),
        differences.join("\n")
    );
    ensure!(objects > 10 * files.len(), "only {objects} objects in {} files: SBCL did not read them", files.len());
    Ok(())
}

/// The number of objects, or how scanner and reader differ.
fn compare(file: &Path, answer: &str) -> Result<Result<usize, String>> {
    let answer: serde_json::Value =
        serde_json::from_str(answer).with_context(|| format!("SBCL's answer {answer:?}"))?;
    let text = decode(std::fs::read(file)?);
    let scan = Scan::of(&text);
    if let Some(refusal) = answer.as_str() {
        return Ok(if scan.broken().next().is_some() { Ok(0) } else { Err(format!("SBCL refuses it: {refusal}")) });
    }
    let read: Vec<(usize, usize)> = serde_json::from_value(answer)?;
    if let Some(broken) = scan.broken().next() {
        return Ok(Err(format!("the scanner finds {broken:?}, SBCL reads it")));
    }
    let chars: Vec<char> = text.chars().collect();
    let mut guarded = HashSet::new();
    let mut bare = HashSet::new();
    for form in scan.forms() {
        let starts = starts_behind_guards(&chars[form.span.start..form.span.end]);
        let spans = starts.iter().map(|start| (form.span.start + start, form.span.end));
        if starts.len() > 1 { guarded.extend(spans) } else { bare.extend(spans) }
    }
    if let Some((start, end)) = read.iter().find(|span| !guarded.contains(span) && !bare.contains(span)) {
        let object: String = chars[*start..*end].iter().take(80).collect();
        return Ok(Err(format!("SBCL reads {start}..{end}, which is no form of the scanner: {object}")));
    }
    let read_set: HashSet<_> = read.iter().copied().collect();
    if let Some((start, end)) = bare.iter().find(|span| !read_set.contains(span)) {
        let form: String = chars[*start..*end].iter().take(80).collect();
        return Ok(Err(format!("the scanner finds {start}..{end}, which SBCL does not read: {form}")));
    }
    Ok(Ok(read.len()))
}

/// The places where the object of a form may begin: at its start, and behind each guard (with its
/// feature) at its start.
fn starts_behind_guards(form: &[char]) -> Vec<usize> {
    let text: String = form.iter().collect();
    let offset = |byte: usize| text[..byte].chars().count();
    let mut starts = vec![0];
    let mut tokens =
        Scanner::new(&text).filter(|token| !matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment));
    let mut token = tokens.next();
    while token.is_some_and(|token| token.kind == TokenKind::FeatureConditional) {
        let mut depth = 0;
        for token in tokens.by_ref() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                TokenKind::Prefix => continue,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        token = tokens.next();
        starts.extend(token.map(|token| offset(token.start)));
    }
    starts
}
