//! Edits of texts, on real files of Debian's source packages: indentation never changes what SBCL's
//! reader reads, and is idempotent; each top-level form is replaced by itself, and others are put
//! beside it, with every other byte kept.

#![allow(clippy::print_stdout, reason = "the figures are for a person")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use consort::ide::edit_form::Operation;
use consort::ide::edit_forms::{FormEdit, edit_all};
use consort::ide::format::rules::Bodies;
use consort::ide::format::{IndentRange, Options, format};
use consort::ide::index::Snapshot;
use consort::ide::outline::{definitions, selectors};
use consort::text::decode;
use consort::text::document::Document;
use consort::text::scanner::Scanner;
use consort::text::toplevel::Scan;
use consort::text::tree::{Kind, Tree};
use consort_tests::real_files;
use consort_tests::registry::LIBRARIES;

/// The Lisp files of some libraries, with their texts.
fn texts(libraries: &[&str]) -> Result<BTreeMap<PathBuf, String>> {
    let mut files = Vec::new();
    for library in libraries {
        let own = real_files::below(&Path::new(LIBRARIES).join(library), &["lisp", "asd"]);
        ensure!(
            !own.is_empty(),
            "no sources of {library} below {LIBRARIES}: install Debian's package (`make test` does)"
        );
        files.extend(own);
    }
    files.into_iter().map(|file| Ok((file.clone(), decode(std::fs::read(file)?)))).collect()
}

fn formatted(text: &str, options: Options) -> String {
    let tree = Tree::parse(text);
    let wanted = IndentRange { lines: 0..usize::MAX, typing: false };
    let mut new = text.to_owned();
    for (range, by) in format(&tree, &wanted, &Bodies::of(&tree), options).into_iter().rev() {
        new.replace_range(range, &by);
    }
    new
}

fn tokens(text: &str) -> Vec<&str> {
    Scanner::new(text).map(|token| text[token.start..token.end].trim_end_matches('\r')).collect()
}

#[test]
fn indentation_never_changes_what_the_reader_reads_and_is_idempotent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut pairs = String::new();
    let mut count = 0;
    let mut changed = 0;
    for (file, text) in texts(&["cl-ppcre", "hunchentoot", "alexandria"])? {
        for options in [Options { tab_size: 8, tabs: false }, Options { tab_size: 4, tabs: true }] {
            let new = formatted(&text, options);
            ensure!(formatted(&new, options) == new, "{}: not idempotent", file.display());
            ensure!(tokens(&new) == tokens(&text), "{}: other tokens", file.display());
            changed += usize::from(new != text);
            let (before, after) =
                (directory.path().join(format!("{count}-a")), directory.path().join(format!("{count}-b")));
            std::fs::write(&before, &text)?;
            std::fs::write(&after, &new)?;
            pairs.push_str(&format!("{}\n{}\n", before.display(), after.display()));
            count += 1;
        }
    }
    ensure!(changed > 10, "only {changed} texts were indented anew");
    let answers = real_files::ask_sbcl("same-objects.lisp", pairs)?;
    ensure!(answers.len() == count, "SBCL answered for {} of {count} pairs", answers.len());
    let mut objects = 0;
    for (at, answer) in answers.iter().enumerate() {
        objects += answer.parse::<usize>().with_context(|| format!("pair {at}: {answer}"))?;
    }
    ensure!(objects > 10 * count, "only {objects} objects in {count} pairs");
    Ok(())
}

#[test]
fn every_form_is_replaced_by_itself_and_what_is_put_beside_it_can_be_taken_away() -> Result<()> {
    let files: Vec<(PathBuf, String)> = texts(&["cl-ppcre", "ironclad", "hunchentoot"])?.into_iter().collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<usize> {
        let mut forms = 0;
        while let Some((file, text)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            // A reader of the same bytes by another road: lines in CRLF.
            forms += edited(file, text, 1)?;
            forms += edited(file, &text.replace("\r\n", "\n").replace('\n', "\r\n"), 11)?;
        }
        Ok(forms)
    };
    let workers = std::thread::available_parallelism().map_or(1, |number| number.get());
    let forms = std::thread::scope(|scope| {
        let working: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        working.into_iter().map(|one| one.join().map_err(|_| anyhow::anyhow!("it panicked"))?).sum::<Result<usize>>()
    })?;
    ensure!(forms > 3000, "only {forms} forms");
    Ok(())
}

/// Replaces each of the `step`th forms of a text by itself, and edits some of these in the other
/// ways; returns how many they were.
fn edited(file: &Path, text: &str, step: usize) -> Result<usize> {
    let tree = Tree::parse(text);
    let all = definitions(&tree);
    let names = selectors(&all, &tree);
    let top = all.iter().filter(|definition| definition.depth == 0).count();
    let scanned = Scan::of(text).forms().len();
    ensure!(top == scanned, "{}: {top} top-level forms of {scanned}", file.display());
    let mut forms = 0;
    for (definition, name) in all.iter().zip(&names).step_by(step) {
        let at = || format!("{}: {} {name}", file.display(), definition.operator);
        let own = tree.text_of(definition.node);
        let edit = |operation, content: &str| -> Result<(std::ops::Range<usize>, String)> {
            let edit = FormEdit {
                form_type: definition.operator.clone(),
                form_name: name.to_string(),
                operation: Some(operation),
                content: Some(content.into()),
                ..FormEdit::default()
            };
            let done = edit_all(text, &[edit]).with_context(at)?;
            let one = &done.each[0];
            Ok((one.start..one.start + one.by.len(), done.text))
        };
        let (_, replaced) = edit(Operation::Replace, own)?;
        ensure!(replaced == text, "{}: replaced by itself, the text is another", at());
        let content = "(defun consort-was-here ()\n  \"(\" #\\))";
        // Each edit reads the whole text.
        for operation in [Operation::InsertBefore, Operation::InsertAfter].into_iter().filter(|_| forms % 3 == 0) {
            let (new, inserted) = edit(operation, content)?;
            ensure!(inserted[new.start..new.end].contains("consort-was-here"), "{}", at());
            let without = [&inserted[..new.start], &inserted[new.end..]].concat();
            ensure!(without == text, "{}: taken away again", at());
        }
        if forms % 7 == 0 {
            let (new, other) = edit(Operation::Replace, content)?;
            let back = [&other[..new.start], own, &other[new.end..]].concat();
            ensure!(back == text, "{}: put back", at());
        }
        forms += 1;
    }
    Ok(forms)
}

/// Prints what the rules beside the compiler tell of the libraries, to be looked at by a person.
#[test]
#[ignore = "prints findings for a person"]
fn findings_of_rules() -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let all = consort::ide::lint::EnabledRules { names: vec!["all".into()], own: Vec::new() };
    for file in real_files::below(Path::new(LIBRARIES), &["lisp"]) {
        let document = Document::new(&decode(std::fs::read(&file)?), 0);
        for one in consort::ide::lint::check(&document, None, &all, &Snapshot::default()) {
            let line = document.text().char_to_line(one.span.start);
            println!("{} {}:{}: {}", one.code, file.display(), line + 1, document.text().line(line).to_string().trim());
            *counts.entry(one.code).or_default() += 1;
        }
    }
    println!("{counts:?}");
    Ok(())
}

/// Compares indentation with that of Emacs, whose results tests/format/compare makes. Lines count
/// relative to the first line of their top-level form. Prints the share, and the operators of the
/// lists in which lines differ.
#[test]
#[ignore = "needs the results of Emacs: tests/format/compare"]
fn indentation_beside_emacs() -> Result<()> {
    let directory = std::env::var("EMACS_INDENTED").context("EMACS_INDENTED names no directory")?;
    let (mut all, mut same, mut comments) = (0usize, 0usize, 0usize);
    let mut differing: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for line in std::fs::read_to_string(Path::new(&directory).join("files"))?.lines() {
        let Some((original, output)) = line.split_once('\t') else { continue };
        let Ok(theirs) = std::fs::read(output) else { continue };
        // Emacs writes files with CRLF with LF.
        let (text, theirs) = (decode(std::fs::read(original)?).replace("\r\n", "\n"), decode(theirs));
        let ours = formatted(&text, Options { tab_size: 8, tabs: false });
        let (our_lines, their_lines): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), theirs.lines().collect());
        if our_lines.len() != their_lines.len() {
            continue;
        }
        let tree = Tree::parse(&ours);
        // Emacs leaves the tabs of a line that begins where it should.
        let column = |line: &str| {
            let blank = line.chars().take_while(|char| char.is_whitespace());
            blank.fold(0, |column, char| if char == '\t' { column / 8 * 8 + 8 } else { column + 1 })
        };
        let mut at = 0;
        for (number, (own, their)) in our_lines.iter().zip(&their_lines).enumerate() {
            let start = at + own.len() - own.trim_start().len();
            at += own.len() + 1;
            let path = tree.path(start, false);
            if own.trim().is_empty() || path.len() < 2 || own.trim() != their.trim() {
                continue;
            }
            // Emacs takes the text in a block comment for code.
            if path.last().is_some_and(|id| tree.node(*id).kind == Kind::BlockComment && tree.node(*id).start < start) {
                comments += 1;
                continue;
            }
            let first = ours[..tree.node(path[1]).start].matches('\n').count();
            let (Some(our_first), Some(their_first)) = (our_lines.get(first), their_lines.get(first)) else { continue };
            all += 1;
            if column(own) + column(their_first) == column(their) + column(our_first) {
                same += 1;
                continue;
            }
            let operator = path.iter().rev().find_map(|id| tree.operator(*id)).unwrap_or_default();
            let example = || {
                let from = number.saturating_sub(6).max(first);
                let shown: Vec<&str> = our_lines[from..=number].to_vec();
                format!(
                    "{original}:{}: ours {}, theirs {}\n{}",
                    number + 1,
                    column(own),
                    column(their),
                    shown.join("\n")
                )
            };
            let entry = differing.entry(operator).or_insert_with(|| (0, example()));
            entry.0 += 1;
        }
    }
    ensure!(all > 1000, "only {all} lines: Emacs indented nothing");
    let mut most: Vec<_> = differing.into_iter().collect();
    most.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    println!(
        "{same} of {all} lines as Emacs indents them: {:.2}%; {comments} lines of text in block comments aside",
        100.0 * same as f64 / all as f64
    );
    for (operator, (count, example)) in most.iter().take(60) {
        println!("---- {operator}: {count}\n{example}");
    }
    Ok(())
}
