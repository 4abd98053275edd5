//! The command `consort check`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use consort::bounded_file::{self, SOURCE_LIMIT};
use consort::host::control::{Reply, Request, ask};
use consort::host::election::Place;
use consort::host::hello::{Hello, Protocol};
use consort::host::workspace;
use consort::ide::fixes::meant;
use consort::ide::render::{Source, Summary, Terminal};
use consort::model::check::{CheckEnd, CheckReport};
use consort::model::diagnostic::Diagnostic;
use consort::session::{CheckSystemRequest, SystemReport};
use consort::shown;
use consort::text::Span;
use consort::text::position::{PositionEncoding, to_position};
use ropey::Rope;
use serde_json::{Value, json};

use super::eval::seconds;
use super::output::{self, Failure, ProgressLine, colour, print, print_as_it_is, print_error, width};
use super::trust;
use consort::ide::files;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files, directories and systems (SYSTEM.asd)
    #[arg(required = true, value_name = "FILE|DIR|SYSTEM.asd")]
    paths: Vec<PathBuf>,
    /// One JSON object a line for each diagnostic
    #[arg(long)]
    json: bool,
    /// Seconds for one file or system [default: check.deadline_s, 20; for a system 600]
    #[arg(long, short, value_name = "S", value_parser = seconds)]
    timeout: Option<f64>,
}

/// A checked file and its report.
struct Checked {
    /// The displayed name.
    name: String,
    /// The real path.
    path: PathBuf,
    text: Rope,
    report: CheckReport,
}

/// The state of one command. Reports are printed as they come, so that none is lost by an
/// interrupt.
struct Run {
    timeout: Option<f64>,
    json: bool,
    summary: Summary,
    /// True if a check was stopped before its end.
    stopped: bool,
    failures: Vec<String>,
    /// The workspaces whose notice of trust and problems in the settings have been printed.
    workspaces: BTreeSet<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut run = Run {
        timeout: args.timeout,
        json: args.json,
        summary: Summary::default(),
        stopped: false,
        failures: Vec::new(),
        workspaces: BTreeSet::new(),
    };
    for path in &args.paths {
        let checked = run.check(path);
        run.note(checked)?;
    }
    if !args.json && run.summary.files > 0 {
        print(&format!("{}\n", run.summary))?;
    }
    for failure in &run.failures {
        print_error(&format!("consort check: {}\n", output::without_numbers(failure)))?;
    }
    Ok(match () {
        () if !run.failures.is_empty() => ExitCode::from(2),
        () if !run.summary.is_clean() || run.stopped => ExitCode::FAILURE,
        () => ExitCode::SUCCESS,
    })
}

/// Returns a suggestion for the name of a file that does not exist.
fn suggestion(path: &Path) -> String {
    let file = path.with_extension("asd");
    match path.to_str() {
        Some("-") => "; `consort check` does not read standard input: write the code into a file".into(),
        _ if path.extension().is_none() && file.is_file() => format!("; did you mean {}?", shown::path(&file)),
        Some(name) if path.extension().is_none() && !name.contains('/') => {
            format!("; to check a system, name its file, as in `consort check {name}.asd`")
        }
        _ => near(path).map_or_else(String::new, |near| format!("; did you mean {}?", shown::path(&near))),
    }
}

/// Returns the entry of the directory whose name is nearly that of `path`.
fn near(path: &Path) -> Option<PathBuf> {
    let wanted = path.file_name()?.to_str()?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new("."))).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let like = names.filter_map(|name| {
        let distance = strsim::damerau_levenshtein(wanted, &name);
        // The distance 0 is left out: a link to a missing file has the wanted name itself.
        (1..=(wanted.chars().count() / 4).clamp(1, 3)).contains(&distance).then_some((distance, name))
    });
    like.min().map(|(_, name)| path.with_file_name(name))
}

impl Run {
    /// Keeps the message of a check that could not be made, or returns another failure.
    ///
    /// # Errors
    /// The output cannot be written, so that nothing more is checked.
    fn note(&mut self, checked: Result<(), Failure>) -> Result<(), Failure> {
        match checked {
            Err(Failure::Cannot(message)) => self.failures.push(message),
            other => other?,
        }
        Ok(())
    }

    /// Prints a report.
    fn print_report(&mut self, place: &Place, checked: &Checked) -> Result<(), Failure> {
        self.summary.files += 1;
        for diagnostic in &checked.report.diagnostics {
            self.summary.count(diagnostic);
        }
        self.stopped |= checked.report.end != CheckEnd::Complete;
        if self.json { print_json(checked) } else { print_text(place, checked) }
    }

    /// Checks one argument.
    fn check(&mut self, path: &Path) -> Result<(), Failure> {
        let cannot = |error: io::Error| {
            let hint = if error.kind() == io::ErrorKind::NotFound { suggestion(path) } else { String::new() };
            Failure::cannot(format!("{}: {error}{hint}", shown::path(path)))
        };
        let real = path.canonicalize().map_err(cannot)?;
        let place = workspace::find_for_path(&real, Path::new("."))
            .and_then(|workspace| Place::of(&workspace))
            .map_err(cannot)?;
        if self.workspaces.insert(place.workspace.clone()) {
            trust::say_problems(&place.workspace)?;
        }
        if real.is_dir() {
            let (files, errors) = files::below(path);
            if files.is_empty() && errors.is_empty() {
                let message = format!("{}: no Lisp files are below it (.lisp, .lsp, .cl, .asd)", shown::path(path));
                return Err(Failure::Cannot(message));
            }
            self.failures.extend(errors);
            self.check_files(&place, &files)
        } else if real.extension().is_some_and(|extension| extension == "asd") {
            self.check_system(&place, None, Some(real), &[])
        } else {
            self.check_files(&place, &[path.to_path_buf()])
        }
    }

    /// Checks each file alone. Files of systems that are not loaded are checked again, with the
    /// system loaded in the copy.
    fn check_files(&mut self, place: &Place, files: &[PathBuf]) -> Result<(), Failure> {
        let mut unloaded: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        let timeout = self.timeout;
        in_order(
            files,
            |file, line| check_file(place, timeout, file, line),
            |file, checked| {
                match checked {
                    Ok(checked) => match &checked.report.unloaded_system {
                        Some(system) => unloaded.entry(system.clone()).or_default().push(file.clone()),
                        None => self.print_report(place, &checked)?,
                    },
                    Err(message) => self.failures.push(format!("{}: {message}", shown::path(file))),
                }
                Ok(())
            },
        )?;
        for (system, files) in unloaded {
            match self.check_system(place, Some(system.clone()), None, &files) {
                Err(Failure::Cannot(message)) => self.failures.push(format!("system {system}: {message}")),
                other => other?,
            }
        }
        Ok(())
    }

    /// Checks all files of a system, or some of them.
    fn check_system(
        &mut self,
        place: &Place,
        system: Option<String>,
        asd: Option<PathBuf>,
        only: &[PathBuf],
    ) -> Result<(), Failure> {
        // Displayed names of the files, by real path.
        let mut names = BTreeMap::new();
        for file in only {
            names.insert(
                file.canonicalize().map_err(|error| Failure::cannot(format!("{}: {error}", shown::path(file))))?,
                file.display().to_string(),
            );
        }
        let request = CheckSystemRequest {
            system,
            asd,
            only: names.keys().cloned().collect(),
            changed: None,
            texts: Vec::new(),
            timeout: self.timeout,
        };
        let report: SystemReport =
            answer(place, &Request::CheckSystem(request), &ProgressLine::new()).map_err(Failure::Cannot)?;
        for (path, report) in report.files {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            let name = names.remove(&real).unwrap_or_else(|| shown(&real));
            // A system definition may name missing files; the report contains an error for the
            // file.
            let text = files::source(&path, SOURCE_LIMIT).unwrap_or_default();
            self.print_report(place, &Checked { name, path: real, text: Rope::from_str(&text), report })?;
        }
        for name in names.into_values() {
            self.failures.push(format!("{name}: its system was checked, but this file was not compiled with it"));
        }
        Ok(())
    }
}

/// Calls `work` for each item, on all processors, and `done` with each result, in the order of the
/// items. For several items, a progress line shows how many are done. For a single item, its `work`
/// has the progress line.
fn in_order<T: Send>(
    items: &[PathBuf],
    work: impl Fn(&Path, &ProgressLine) -> T + Sync,
    mut done: impl FnMut(&PathBuf, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let [item] = items {
        return done(item, work(item, &ProgressLine::new()));
    }
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (tell, work, next, over) = (tell.clone(), &work, &next, &over);
            scope.spawn(move || {
                let nowhere = ProgressLine::hidden();
                while !over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number) else { return };
                    if tell.send((number, work(item, &nowhere))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let line = ProgressLine::new();
        let result = each_in_order(items, &line, told, &mut done);
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// Calls `done` with each result, in the order of the items, as soon as those before it have come.
fn each_in_order<T>(
    items: &[PathBuf],
    line: &ProgressLine,
    told: mpsc::Receiver<(usize, T)>,
    done: &mut impl FnMut(&PathBuf, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut early, mut due) = (BTreeMap::new(), 0);
    line.show(&format!("0 of {} files", items.len()))?;
    for (count, (number, result)) in told.into_iter().enumerate() {
        early.insert(number, result);
        while let Some(result) = early.remove(&due) {
            line.clear()?;
            done(&items[due], result)?;
            due += 1;
        }
        line.show(&format!("{} of {} files, {}", count + 1, items.len(), shown::path(&items[number])))?;
    }
    line.clear()?;
    Ok(())
}

fn check_file(place: &Place, timeout: Option<f64>, file: &Path, line: &ProgressLine) -> Result<Checked, String> {
    let (text, path) = read(file)?;
    let request = Request::Check { text: text.clone(), path: path.clone(), timeout };
    let report = answer(place, &request, line)?;
    Ok(Checked { name: file.display().to_string(), path, text: Rope::from_str(&text), report })
}

fn answer<T: serde::de::DeserializeOwned>(place: &Place, request: &Request, line: &ProgressLine) -> Result<T, String> {
    let connected = place.connect_or_start(&Hello::new(Protocol::Control)).map_err(|error| error.to_string())?;
    let answer = ask(connected, request, |reply, _| match reply {
        Reply::Progress { message, .. } => line.show(&message),
        Reply::Waiting { why } => output::say_wait_once(line, "check", &why),
        _ => Ok(()),
    });
    line.clear().map_err(|error| error.to_string())?;
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::from_value(answer).map_err(|error| format!("the host's answer: {error}"))
}

/// Returns a file's text and real path.
fn read(file: &Path) -> Result<(String, PathBuf), String> {
    let path = file.canonicalize().map_err(|error| error.to_string())?;
    // Errors in a text are shown with its lines, so the file that is shown must be Lisp source.
    if files::is_lisp(file) && !files::is_lisp(&path) {
        return Err(format!("it is a link to {}, which is not a Lisp source file", shown::path(&path)));
    }
    let bytes = bounded_file::read(file, SOURCE_LIMIT).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is not UTF-8; convert the file (`iconv -f LATIN1 -t UTF-8`) to have it checked")
    })?;
    Ok((text, path))
}

/// Returns a path relative to the current directory where possible.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize());
    here.ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}

/// Prints the diagnostics of a file as JSON, one in a line.
fn print_json(Checked { name, text, report, .. }: &Checked) -> Result<(), Failure> {
    for diagnostic in &report.diagnostics {
        output::print_json(&line(name, text, diagnostic))?;
    }
    // Each line of the output is a diagnostic.
    if let Some(stopped) = stopped(name, &report.end) {
        print_error(&format!("consort check: {stopped}\n"))?;
    }
    Ok(())
}

/// Returns the reason why the check of a file did not reach its end, if it did not.
fn stopped(name: &str, end: &CheckEnd) -> Option<String> {
    match end {
        CheckEnd::Complete => None,
        CheckEnd::Stopped { reason } => {
            Some(format!("{}: the check was stopped: {}", shown::line(name), shown::line(reason)))
        }
    }
}

/// Returns a diagnostic as JSON.
fn line(name: &str, text: &Rope, diagnostic: &Diagnostic) -> Value {
    json!({
        "file": name,
        "range": range(text, diagnostic.span),
        "severity": diagnostic.severity.lsp(),
        "message": diagnostic.message,
        "code": diagnostic.code,
    })
}

/// Returns an LSP `Range`, in UTF-16.
fn range(text: &Rope, span: Span) -> Value {
    let [start, end] = [span.start, span.end].map(|offset| {
        let position = to_position(text, offset, PositionEncoding::Utf16);
        json!({"line": position.line, "character": position.column})
    });
    json!({"start": start, "end": end})
}

/// Returns a question for each diagnostic about an unknown name that resembles a known one.
fn suggestions(place: &Place, Checked { path, text, report, .. }: &Checked) -> Vec<Option<String>> {
    let items: Vec<Diagnostic> = report.diagnostics.iter().filter(|one| meant::is_about_name(one)).cloned().collect();
    let mut names = if items.is_empty() {
        Vec::new()
    } else {
        let request = Request::Meant { text: text.to_string(), path: path.clone(), items };
        // A diagnostic is shown without a suggestion if the host has ended since.
        answer::<Vec<Vec<String>>>(place, &request, &ProgressLine::hidden()).unwrap_or_default()
    }
    .into_iter();
    let mut suggestion = |one: &Diagnostic| {
        let meant = if meant::is_about_name(one) { names.next()? } else { Vec::new() };
        (!meant.is_empty()).then(|| format!("did you mean {}?", meant.join(" or ")))
    };
    report.diagnostics.iter().map(&mut suggestion).collect()
}

fn print_text(place: &Place, checked: &Checked) -> Result<(), Failure> {
    let Checked { name, text, report, .. } = checked;
    // Code under check can name any file, and the same file many times.
    let others: RefCell<(u64, HashMap<PathBuf, Option<Rope>>)> = RefCell::default();
    let read_other = |path: &Path| {
        let (read, others) = &mut *others.borrow_mut();
        let room = SOURCE_LIMIT.saturating_sub(*read);
        let text = others.entry(path.to_owned()).or_insert_with(|| {
            let text = Rope::from_str(&files::source(path, room)?);
            *read += text.len_bytes() as u64;
            Some(text)
        });
        text.clone()
    };
    let terminal = Terminal::new(colour(&io::stdout()), width(), &read_other);
    for (diagnostic, suggestion) in report.diagnostics.iter().zip(suggestions(place, checked)) {
        let mut diagnostic = diagnostic.clone();
        for file in diagnostic.related.iter_mut().filter_map(|related| related.file.as_mut()) {
            *file = shown(file).into();
        }
        let source = Source { name, text, lines_before: 0 };
        print_as_it_is(&format!("{}\n\n", terminal.render(&source, &diagnostic, suggestion.as_deref())))?;
    }
    if let Some(stopped) = stopped(name, &report.end) {
        print(&format!("{stopped}\n\n"))?;
    }
    Ok(())
}
