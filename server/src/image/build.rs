//! The process that builds the file from which an image starts.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::excerpt::{clock_advice, clock_fault, excerpt, heap_fault};
use super::hang::{Steps, hangs};
use super::process::{describe, kill_group, start_helper};
use super::program::Program;
use crate::locked::lock;

/// The time limit of a build, which normally takes seconds.
pub(super) const BUILD_TIMEOUT: Duration = Duration::from_secs(600);
/// The start of the lines with which lisp/boot.lisp reports each step.
const STEP: &[u8] = b"; consort build: ";
/// The maximum number of bytes that are kept of the output.
const MAX_KEPT_BYTES: usize = 64 << 10;
/// The maximum number of bytes that a build may print.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// The time limit for the rest of the output of a build that has ended.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// The failure of a build.
#[derive(Debug)]
pub(super) struct Failed {
    /// The end of the process, as a predicate after the program's name: `wrote nothing`.
    pub(super) how: String,
    /// The last lines that the process printed, and the advice.
    pub(super) last: String,
}

/// Runs lisp/boot.lisp, which writes the file that `CONSORT_OUTPUT` names. `say` receives the
/// progress, such as "12 of 170", at most once a second.
pub(super) async fn build(
    program: &Program,
    workspace: &Path,
    boot: &Path,
    output: &Path,
    mut say: impl FnMut(&str),
) -> Result<(), Failed> {
    // Both streams go into one pipe, so that the lines keep the order in which they were written.
    let (mut reader, mut child) = (|| {
        let (read, write) = io::pipe()?;
        let reader = tokio::net::unix::pipe::Receiver::from_owned_fd(read.into())?;
        let mut command = Command::new(&program.path);
        command
            .args(&program.arguments)
            .args(["--noinform", "--no-sysinit", "--no-userinit", "--non-interactive", "--load"])
            .arg(boot)
            .args(["--eval", "(consort:build)"])
            .current_dir(workspace)
            .env("CONSORT_OUTPUT", output)
            .stdout(Stdio::from(write.try_clone()?))
            .stderr(Stdio::from(write));
        Ok::<_, io::Error>((reader, start_helper(&mut command)?))
    })()
    .map_err(|error| Failed {
        how: format!("could not be started: {}", crate::limits::explained(&error)),
        last: String::new(),
    })?;
    let leader = child.id().unwrap_or_default();
    let (steps, printed) = (Steps::default(), Mutex::new(Printed::default()));
    let reads = async {
        let mut bytes = vec![0; 8192];
        loop {
            let count = reader.read(&mut bytes).await?;
            let mut printed = lock(&printed);
            printed.take(&bytes[..count], &steps);
            if count == 0 || printed.bytes > MAX_OUTPUT_BYTES {
                return Ok::<_, io::Error>(printed.bytes > MAX_OUTPUT_BYTES);
            }
        }
    };
    let ends = async {
        tokio::pin!(reads);
        tokio::select! {
            endless = &mut reads => if endless? { Ok(None) } else { child.wait().await.map(Some) },
            status = child.wait() => {
                // A process that the build started may keep the pipe open for longer.
                if crate::steady::timeout(LAST_OUTPUT_TIMEOUT, reads).await.is_err() {
                    end_group(leader);
                }
                status.map(Some)
            }
        }
    };
    let told = || {
        if let Some(step) = lock(&printed).step.take() {
            say(&step);
        }
    };
    let ended = tokio::select! {
        biased;
        ended = crate::steady::timeout(BUILD_TIMEOUT, ends) => Ok(ended),
        hang = hangs(leader, &steps, told) => Err(hang),
    };
    let printed = std::mem::take(&mut lock(&printed).kept);
    const ANOTHER: &str = "Set `lisp.command` to a program that runs SBCL, and restart the image.";
    let by_hand = format!("Run it by hand to see what it waits for. {ANOTHER}");
    let (how, advice) = match ended {
        Ok(Ok(Ok(Some(status)))) if status.success() && output.exists() => return Ok(()),
        Ok(Ok(Ok(Some(status)))) if status.success() => ("wrote nothing".to_owned(), ANOTHER),
        Ok(Ok(Ok(Some(status)))) => (describe(status), ""),
        Ok(Ok(Ok(None))) => ("printed without end".to_owned(), ANOTHER),
        Ok(Ok(Err(error))) => (format!("cannot be followed: {error}"), ANOTHER),
        Ok(Err(_)) => (format!("did not end within {} s", BUILD_TIMEOUT.as_secs()), by_hand.as_str()),
        Err(hang) => (hang, by_hand.as_str()),
    };
    // Dropping the child kills only the child, not its group.
    if child.id().is_some() {
        end_group(leader);
    }
    let mut last = excerpt(&printed);
    if clock_fault(&String::from_utf8_lossy(&printed)) {
        last = clock_advice();
    }
    if heap_fault(&last).is_some() {
        last.push_str(
            "\nSBCL cannot map its heap: raise the limit of this process's memory (`ulimit -v`), then restart the image.",
        );
    }
    if !advice.is_empty() {
        last = if last.is_empty() { advice.to_owned() } else { format!("It printed:\n{last}\n{advice}") };
    }
    Err(Failed { how, last })
}

fn end_group(leader: u32) {
    if let Some(group) = i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw) {
        kill_group(group);
    }
}

/// The output of a build.
#[derive(Debug, Default)]
struct Printed {
    /// The last bytes, without the lines about steps.
    kept: Vec<u8>,
    /// The number of all bytes.
    bytes: usize,
    /// The start of the last line, if the line has not ended.
    line: Vec<u8>,
    /// The newest step that has not been reported.
    step: Option<String>,
}

impl Printed {
    fn take(&mut self, bytes: &[u8], steps: &Steps) {
        self.bytes += bytes.len();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            let whole = self.line.ends_with(b"\n");
            if whole && let Some(step) = self.line.strip_prefix(STEP) {
                self.step = Some(String::from_utf8_lossy(step.trim_ascii()).chars().take(40).collect());
                steps.count();
                self.line.clear();
            } else if whole || !STEP.starts_with(&self.line[..self.line.len().min(STEP.len())]) {
                self.kept.append(&mut self.line);
            }
        }
        self.kept.drain(..self.kept.len().saturating_sub(MAX_KEPT_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_and_the_rest_is_kept() {
        let (mut printed, steps) = (Printed::default(), Steps::default());
        for piece in ["; cons", "ort build: 1 of 2\n; other\n; consort", " build: 2 of 2\nan end"] {
            printed.take(piece.as_bytes(), &steps);
        }
        assert_eq!(String::from_utf8_lossy(&printed.kept), "; other\nan end");
        assert_eq!(printed.step.as_deref(), Some("2 of 2"));
        printed.take(&b"x".repeat(3 * MAX_KEPT_BYTES), &steps);
        assert_eq!((printed.kept.len(), printed.bytes > 3 * MAX_KEPT_BYTES), (MAX_KEPT_BYTES, true));
    }
}
