//! The table.

use std::fmt::Write;
use std::process::Command;

use crate::exceptions::Exceptions;

/// A system.
pub(crate) struct Row {
    pub(crate) system: String,
    pub(crate) files: usize,
    pub(crate) forms: usize,
    pub(crate) conditions: usize,
    pub(crate) false_ones: usize,
    pub(crate) missed: usize,
    /// Differences that `exceptions` has.
    pub(crate) argued: usize,
    /// Seconds of `asdf:compile-system`.
    pub(crate) compile: f64,
    /// Seconds of `consort check SYSTEM.asd`.
    pub(crate) whole: f64,
    /// Seconds of `consort check FILE ...`.
    pub(crate) by_file: f64,
    /// The processor's time of `asdf:compile-system`, in seconds.
    pub(crate) compile_processor: f64,
    /// The processor's time of the copy in which `consort check SYSTEM.asd` worked, in seconds.
    pub(crate) whole_processor: f64,
}

/// The most that a check may take of what `asdf:compile-system` takes.
const MAX_RATIO: f64 = 1.3;
/// The processor's seconds that each check may take besides, whatever the system: for the fork, for
/// the pages that are copied when they are first written, and for giving them back.
const FIXED: f64 = 0.07;

impl Row {
    /// Returns what is said of a check that takes the processor too long; `None`: it does not.
    pub(crate) fn too_slow(&self) -> Option<String> {
        let most = MAX_RATIO * self.compile_processor + FIXED;
        (self.whole_processor > most).then(|| {
            format!(
                "the check takes {:.2} s of the processor; at most {most:.2} s are {MAX_RATIO} times the compilation and {FIXED} s",
                self.whole_processor
            )
        })
    }

    /// How much longer the check took the processor.
    fn ratio(&self) -> f64 {
        self.whole_processor / self.compile_processor.max(0.01)
    }

    /// The cells of the table.
    fn cells(&self) -> [String; 13] {
        let seconds = |seconds: f64| format!("{seconds:.2}");
        [
            self.system.clone(),
            self.files.to_string(),
            self.forms.to_string(),
            self.conditions.to_string(),
            self.false_ones.to_string(),
            self.missed.to_string(),
            self.argued.to_string(),
            seconds(self.compile),
            seconds(self.whole),
            seconds(self.by_file),
            seconds(self.compile_processor),
            seconds(self.whole_processor),
            seconds(self.ratio()),
        ]
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    /// Prints the head.
    pub(crate) fn begin() -> Table {
        println!(
            "{:<28} {:>5} {:>5} {:>5} {:>5} {:>6} {:>6} {:>9} {:>7} {:>8} {:>11} {:>9} {:>6}",
            "system",
            "files",
            "forms",
            "cond.",
            "false",
            "missed",
            "argued",
            "compile s",
            "whole s",
            "by file s",
            "compile cpu",
            "whole cpu",
            "ratio"
        );
        Table::default()
    }

    /// Prints a row.
    pub(crate) fn add(&mut self, row: Row) {
        let [system, files, forms, conditions, false_ones, missed, argued, rest @ ..] = row.cells();
        let [compile, whole, by_file, compile_processor, whole_processor, ratio] = rest;
        println!(
            "{system:<28} {files:>5} {forms:>5} {conditions:>5} {false_ones:>5} {missed:>6} {argued:>6} {compile:>9} \
             {whole:>7} {by_file:>8} {compile_processor:>11} {whole_processor:>9} {ratio:>6}"
        );
        self.0.push(row);
    }

    /// The sum of all rows.
    fn sum(&self) -> Row {
        let count = |of: fn(&Row) -> usize| self.0.iter().map(of).sum();
        let time = |of: fn(&Row) -> f64| self.0.iter().map(of).sum();
        Row {
            system: format!("{} systems", self.0.len()),
            files: count(|row| row.files),
            forms: count(|row| row.forms),
            conditions: count(|row| row.conditions),
            false_ones: count(|row| row.false_ones),
            missed: count(|row| row.missed),
            argued: count(|row| row.argued),
            compile: time(|row| row.compile),
            whole: time(|row| row.whole),
            by_file: time(|row| row.by_file),
            compile_processor: time(|row| row.compile_processor),
            whole_processor: time(|row| row.whole_processor),
        }
    }

    /// Prints the sums.
    pub(crate) fn end(&mut self) {
        let sum = self.sum();
        self.add(sum);
    }

    /// `docs/corpus.md`.
    pub(crate) fn page(&self, exceptions: &Exceptions) -> String {
        let mut page = include_str!("page.md")
            .replace("@DATE@", &said("date", &["-u", "+%Y-%m-%d"]))
            .replace("@MACHINE@", &machine())
            .replace("@SBCL@", &said("sbcl", &["--version"]))
            .replace("@LOAD@", &load());
        let mut rows = String::new();
        for row in &self.0 {
            let _ = writeln!(rows, "| {} |", row.cells().join(" | "));
        }
        page = page.replace("@ROWS@\n", &rows);
        let mut argued = String::new();
        for (count, what, reason) in exceptions.used() {
            let _ = writeln!(argued, "| {} | {count} | {} |", what.replace('|', "\\|"), reason.replace('|', "\\|"));
        }
        page.replace("@EXCEPTIONS@\n", &argued)
    }
}

/// The three load averages.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(", ")
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{} cores, {}", cores, said("uname", &["-srm"]))
}

/// The first line that a program prints.
fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

#[test]
fn a_check_that_is_slower_than_the_compilation_is_told() {
    let slow = |compile_processor, whole_processor| {
        let row = Row {
            system: "x".into(),
            files: 1,
            forms: 1,
            conditions: 0,
            false_ones: 0,
            missed: 0,
            argued: 0,
            compile: compile_processor,
            whole: whole_processor,
            by_file: whole_processor,
            compile_processor,
            whole_processor,
        };
        row.too_slow().is_some()
    };
    assert!(!slow(10.0, 13.0) && slow(10.0, 13.2));
    assert!(!slow(0.05, 0.13) && slow(0.07, 0.34), "a tiny system has the fixed time, and no more");
}
