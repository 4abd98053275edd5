//! `make corpus`: Debian's Lisp systems, each checked whole and file by file, compared with what
//! plain SBCL says of it in a fresh process.
//!
//! `consort-corpus [--report FILE] [SYSTEM ...]` prints a table, and every condition that only one
//! side has and `exceptions` does not argue. With such a condition it ends with code 1.

#![allow(clippy::print_stdout, clippy::print_stderr)] // it is here to print

mod baseline;
mod compare;
mod corpus;
mod exceptions;
mod ours;
mod report;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use compare::{Difference, compare};
use corpus::Corpus;
use exceptions::Exceptions;
use ours::{Check, Host};
use report::{Row, Table};

fn main() -> Result<ExitCode> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let report = match args.iter().position(|arg| arg == "--report") {
        Some(at) => {
            let file = args.get(at + 1).context("--report needs a file")?.clone();
            args.drain(at..=at + 1);
            Some(file)
        }
        None => None,
    };
    let corpus = Corpus::new()?;
    let exceptions = Exceptions::read()?;
    let systems: Vec<String> =
        if args.is_empty() { corpus::systems().into_iter().map(str::to_owned).collect() } else { args };
    let mut table = Table::begin();
    let mut wrong = false;
    for system in &systems {
        match examine(&corpus, &exceptions, system) {
            Ok((row, mut unargued)) => {
                unargued.extend(row.too_slow());
                table.add(row);
                for line in &unargued {
                    println!("    {line}");
                }
                wrong |= !unargued.is_empty();
            }
            Err(error) => {
                println!("{system}: {error:#}");
                wrong = true;
            }
        }
    }
    table.end();
    if let Some(file) = report {
        std::fs::write(&file, table.page(&exceptions)).with_context(|| file.clone())?;
    }
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A system's row, and what is wrong with it and not argued.
fn examine(corpus: &Corpus, exceptions: &Exceptions, system: &str) -> Result<(Row, Vec<String>)> {
    let definition = corpus.definition(system)?;
    let plain = baseline::compile(corpus, system)?;
    let host = Host::new(corpus, &definition)?;
    let checked = check(&host, system, &definition, &plain);
    host.clear()?;
    let (whole, files) = checked?;
    let expected = compare::plain(&plain);
    let mut row = Row {
        system: system.to_owned(),
        files: plain.files.len(),
        forms: plain.files.values().map(Vec::len).sum(),
        conditions: expected.iter().filter(|key| key.severity != compare::NOTE).count(),
        false_ones: 0,
        missed: 0,
        argued: 0,
        compile: plain.seconds,
        whole: whole.seconds,
        by_file: files.seconds,
        compile_processor: plain.processor,
        whole_processor: whole.processor,
    };
    let mut unargued = Vec::new();
    for (how, check) in [("whole", &whole), ("file", &files)] {
        let Difference { false_ones, missed } = compare(&expected, &compare::ours(&check.findings, &plain.files));
        for (kind, keys, count) in [("false", false_ones, &mut row.false_ones), ("missed", missed, &mut row.missed)] {
            for key in keys {
                if exceptions.argue(system, how, kind, &key) {
                    row.argued += 1;
                } else {
                    *count += 1;
                    unargued.push(format!("{how} {kind} {key}"));
                }
            }
        }
    }
    Ok((row, unargued))
}

/// The processor's seconds of a check below which it is made three times, and the least counts.
const SMALL: f64 = 2.0;

/// The checks of a system whole, with what it depends on loaded, and of each of its files, with it
/// loaded.
fn check(host: &Host<'_>, system: &str, definition: &Path, plain: &baseline::Plain) -> Result<(Check, Check)> {
    // As baseline.lisp does it.
    host.evaluate(&format!(
        "(let* ((top (asdf:find-system {system:?})) (parts '()))
           (labels ((dependencies (system)
                      (loop for spec in (append (asdf:system-defsystem-depends-on system) (asdf:system-depends-on system))
                            for dependency = (asdf/find-component:resolve-dependency-spec system spec)
                            when dependency collect dependency))
                    (walk (system)
                      (unless (member system parts)
                        (push system parts)
                        (dolist (dependency (dependencies system))
                          (when (string= (asdf:primary-system-name dependency) (asdf:primary-system-name top))
                            (walk dependency))))))
             (walk top)
             (handler-bind ((warning #'muffle-warning))
               (dolist (part parts)
                 (dolist (dependency (dependencies part))
                   (unless (member dependency parts) (asdf:load-system dependency)))))))"
    ))?;
    let mut whole = host.check(&[definition])?;
    if whole.processor < SMALL {
        for _ in 0..2 {
            let again = host.check(&[definition])?;
            whole.seconds = whole.seconds.min(again.seconds);
            whole.processor = whole.processor.min(again.processor);
        }
    }
    host.evaluate(&format!("(handler-bind ((warning #'muffle-warning)) (asdf:load-system {system:?}))"))?;
    let paths: Vec<&Path> = plain.files.keys().map(std::path::PathBuf::as_path).collect();
    let files = host.check(&paths)?;
    Ok((whole, files))
}
