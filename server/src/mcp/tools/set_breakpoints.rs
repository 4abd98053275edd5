//! The tool `set-breakpoints`, which sets breakpoints of an agent. Evaluations of the agent and of
//! people stop at them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::facts::Facts;
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::files;
use crate::model::breakpoint::RequestedBreakpoint;
use crate::model::error_kind::ErrorKind;
use crate::session::approval::{Class, Subject};
use crate::session::real_path;
use crate::shown::line;

/// The maximum number of breakpoints in one file.
const MAX_BREAKPOINTS: usize = 100;

/// The tool `set-breakpoints`.
pub(crate) struct SetBreakpoints;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    file: String,
    /// Replace yours there
    lines: Vec<usize>,
    /// Lisp over variables
    #[serde(default)]
    condition: Option<String>,
}

/// Refuses lines that cannot be meant.
fn check_lines(lines: &[usize]) -> Result<(), Failure> {
    if lines.len() <= MAX_BREAKPOINTS && !lines.contains(&0) {
        return Ok(());
    }
    let message = format!("Bad arguments for set-breakpoints: `lines` are up to {MAX_BREAKPOINTS} numbers from 1 on.");
    Err(Failure { kind: ErrorKind::BAD_ARGUMENTS, message })
}

/// Returns the path of a file with links resolved, by which its breakpoints are kept. `given` is
/// absolute or relative to the workspace.
async fn kept_path(workspace: &Path, given: &str) -> PathBuf {
    let named = workspace.join(given);
    let resolved = tokio::task::spawn_blocking({
        let named = named.clone();
        move || real_path(&named)
    });
    // Fails only when the host leaves.
    resolved.await.unwrap_or(named)
}

/// Refuses a file that cannot have breakpoints, because messages about the breakpoints would reveal
/// its contents.
async fn source(path: &Path, given: &str) -> Result<(), Failure> {
    let real = tokio::fs::canonicalize(path).await.map_err(|error| Failure {
        kind: ErrorKind::NOT_FOUND,
        message: format!("File {} not found ({error}).", line(given)),
    })?;
    if files::is_lisp(&real) && real.is_file() {
        return Ok(());
    }
    let message = format!("{} is no file of Lisp (.lisp, .lsp, .cl, .asd).", line(&real.to_string_lossy()));
    Err(Failure { kind: ErrorKind::BAD_ARGUMENTS, message })
}

impl Tool for SetBreakpoints {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "set-breakpoints";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Your evaluations, and the user's, stop there; then use debug.";
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: true, open_world: false };

    async fn required_approval_async(_: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        // A person is not asked about a call that fails anyway.
        check_lines(&input.lines)?;
        if input.lines.is_empty() {
            return Ok(None);
        }
        let lines: Vec<String> = input.lines.iter().map(ToString::to_string).collect();
        let what = format!(
            "Set breakpoints in {}, line {}: the definitions there are compiled with probes, and evaluations stop there, yours too",
            line(&input.file),
            lines.join(", ")
        );
        // A condition is code, which runs each time the program reaches the breakpoint.
        let also = input.condition.is_some().then_some(Class::Eval);
        let code = input.condition.clone();
        let file = Some(PathBuf::from(&input.file));
        Ok(Some((Class::ModifyRunningCode, Subject { what, file, code, also, ..Subject::default() })))
    }

    async fn call(call: Call, Input { file, lines, condition }: Input) -> Reply<Facts> {
        let path = kept_path(call.session.workspace(), &file).await;
        if !lines.is_empty()
            && let Err(failure) = source(&path, &file).await
        {
            return failure.into();
        }
        let point = |line: &usize| RequestedBreakpoint {
            line: Some(*line),
            condition: condition.clone(),
            ..RequestedBreakpoint::default()
        };
        let points = lines.iter().map(point).collect();
        let (recorded, set) = call.breakpoints.set((&call.session, call.client), &path, points).await;
        let unrecorded = recorded.err().map_or_else(String::new, |error| {
            let why = line(&error.to_string());
            format!("\nThese breakpoints could not be recorded, so they are lost if the host is killed: {why}.")
        });
        let set = match set {
            Ok(set) => set.for_each_of(lines.len()),
            Err(error) => {
                let mut failure = Failure::of(error, None);
                failure.message += &unrecorded;
                return failure.into();
            }
        };
        let mut text = String::new();
        let mut facts = Vec::new();
        for (wanted, one) in lines.iter().zip(&set) {
            let at = one.place.position.map_or(*wanted, |position| position.0);
            match &one.message {
                None => {
                    let _ = writeln!(text, "{}:{at}: set", line(&file));
                }
                Some(why) => {
                    let _ = writeln!(text, "{}:{wanted}: not set: {}", line(&file), line(why));
                }
            }
            facts.push(json!({"line": at, "set": one.verified, "message": one.message}));
        }
        if lines.is_empty() {
            text = format!("There are no breakpoints of yours in {} now.", line(&file));
        }
        text += &unrecorded;
        let failed = !set.is_empty() && set.iter().all(|one| !one.verified);
        Reply::new(text.trim_end().into(), Facts::new(json!({"breakpoints": facts})), failed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_link_and_its_file_have_the_same_breakpoints() {
        let place = tempfile::tempdir().unwrap();
        let workspace = place.path().canonicalize().unwrap();
        let file = workspace.join("a.lisp");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, workspace.join("link.lisp")).unwrap();
        assert_eq!(kept_path(&workspace, "link.lisp").await, file);
        assert_eq!(kept_path(&workspace, "./a.lisp").await, file);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(kept_path(&workspace, "a.lisp").await, file, "to clear those of a removed file");
    }

    #[test]
    fn lines_that_cannot_be_meant_are_refused() {
        assert_eq!(check_lines(&[1, 2]), Ok(()));
        for lines in [vec![0], vec![1; MAX_BREAKPOINTS + 1]] {
            assert_eq!(check_lines(&lines).unwrap_err().kind, ErrorKind::BAD_ARGUMENTS);
        }
    }
}
