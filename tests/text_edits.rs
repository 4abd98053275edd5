//! Edits of texts, on real files of Debian's source packages: indentation never changes what SBCL's
//! reader reads, and is idempotent; each top-level form is replaced by itself, and others are put
//! beside it, with every other byte kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use consort::ide::edit_form::{self, Operation};
use consort::ide::format::rules::Bodies;
use consort::ide::format::{Options, Wanted, format};
use consort::ide::outline::{definitions, selectors};
use consort::text::decode;
use consort::text::scanner::Scanner;
use consort::text::toplevel::Scan;
use consort::text::tree::Tree;
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
    let wanted = Wanted { lines: 0..usize::MAX, typing: false };
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

/// Edit each of the `step`th forms of a text, in every way; how many these were.
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
        let edit = |operation, content: &str| {
            edit_form::edit(text, &definition.operator, name, operation, content).with_context(at)
        };
        let replaced = edit(Operation::Replace, own)?;
        ensure!(replaced.text == text, "{}: replaced by itself, the text is another", at());
        let content = "(defun consort-was-here ()\n  \"(\" #\\))";
        for operation in [Operation::InsertBefore, Operation::InsertAfter] {
            let inserted = edit(operation, content)?;
            let end = inserted.start + inserted.by.len();
            ensure!(inserted.start == inserted.end && inserted.by.contains("consort-was-here"), "{}", at());
            let without = [&inserted.text[..inserted.start], &inserted.text[end..]].concat();
            ensure!(without == text, "{}: taken away again", at());
        }
        if forms % 7 == 0 {
            let other = edit(Operation::Replace, content)?;
            let back = [&other.text[..other.start], own, &other.text[other.start + other.by.len()..]].concat();
            ensure!(back == text, "{}: put back", at());
        }
        forms += 1;
    }
    Ok(forms)
}
