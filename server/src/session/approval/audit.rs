//! The audit log. It has one JSON line for each decision, is private to the user, and is never
//! shortened by Consort.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::SystemTime;

use serde_json::json;
use tokio::sync::oneshot;

use super::request::ApprovalRequest;
use crate::fault::{self, Call};
use crate::session::timestamp::timestamp;

/// Returns the entry for a decision. `by` is the person or rule that decided, and `why` is the
/// reason for a refusal.
fn entry(request: &ApprovalRequest, allowed: bool, by: &str, why: Option<&str>) -> String {
    let mut entry = json!({
        "time": timestamp(SystemTime::now()),
        "client": request.agent,
        "connection": request.client.0,
        "tool": request.tool,
        "class": request.class,
        "digest": request.digest,
        "arguments": request.written.0,
        "omitted": request.written.1.saturating_sub(request.written.0.chars().count()),
        "decision": if allowed { "allowed" } else { "refused" },
        "by": by,
    });
    if let Some(file) = request.file() {
        entry["file"] = file.to_string_lossy().into();
    }
    if let Some(why) = why {
        entry["why"] = why.into();
    }
    crate::shown::json(&entry.to_string())
}

type Line = (String, Option<oneshot::Sender<Result<(), String>>>);

/// The writer of the log, in the order of the decisions, on a separate thread. The thread ends when
/// the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct Audit(Option<Sender<Line>>);

impl Audit {
    pub(super) fn start(path: Option<PathBuf>) -> Audit {
        let Some(path) = path else { return Audit(None) };
        if let Some(directory) = path.parent()
            && let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(directory)
        {
            tracing::error!("the audit log's directory {} cannot be made: {error}", directory.display());
        }
        let (sender, lines) = channel();
        let started = std::thread::Builder::new().name("audit".into()).spawn(move || write_all(&path, &lines));
        if let Err(error) = &started {
            tracing::error!(%error, "the audit log's thread could not be started");
        }
        Audit(started.is_ok().then_some(sender))
    }

    /// Writes an entry for a decision that was made without a question and stands even if writing
    /// fails.
    pub(super) fn note(&self, request: &ApprovalRequest, allowed: bool, by: &str, why: Option<&str>) {
        if let Some(sender) = &self.0 {
            // Fails only when the thread has died, which is logged.
            let _ = sender.send((entry(request, allowed, by, why), None));
        }
    }

    /// Writes an entry and waits until it is written.
    pub(super) async fn write(
        &self,
        request: &ApprovalRequest,
        allowed: bool,
        by: &str,
        why: Option<&str>,
    ) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        match &self.0 {
            Some(sender) if sender.send((entry(request, allowed, by, why), Some(reply))).is_ok() => {}
            Some(_) => return Err("its writer has ended".into()),
            None => return Err("no directory is known for it; set HOME or XDG_STATE_HOME".into()),
        }
        answer.await.unwrap_or_else(|_| Err("its writer has ended".into()))
    }
}

fn write_all(path: &Path, lines: &Receiver<Line>) {
    while let Ok((line, reply)) = lines.recv() {
        let written = append(path, &line).map_err(|error| format!("{}: {error}", path.display()));
        if let Err(error) = &written {
            tracing::error!("the audit log cannot be written: {error}");
        }
        if let Some(reply) = reply {
            // The caller may have gone.
            let _ = reply.send(written);
        }
    }
}

/// Appends a line. The file is opened for each line, so that its removal or replacement by a link
/// is noticed. A missing directory is created again, but not its parents, which were removed
/// together with their other content.
fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
        DirBuilder::new().mode(0o700).create(directory)?;
    }
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    fault::point(Call::Open)?;
    let mut file = File::options().create(true).read(true).append(true).mode(0o600).custom_flags(no_link).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() || facts.mode() & 0o077 != 0 || facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(
            "it is not a file that is yours alone (mode 0600); remove it, and a new one is made",
        ));
    }
    // An entry may have been written in part, for example to a full disk. The next one begins on a
    // line of its own.
    let mut last = [b'\n'];
    if let Some(at) = facts.len().checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    let separator = if last == [b'\n'] { "" } else { "\n" };
    fault::point(Call::Write)?;
    file.write_all(format!("{separator}{line}\n").as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_private_appended_to_and_no_link() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/x.audit.jsonl");
        append(&path, "1").unwrap();
        append(&path, "2").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // The disk was full.
        File::options().append(true).open(&path).unwrap().write_all(b"{\"ti").unwrap();
        append(&path, "3").unwrap();
        append(&path, "4").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n{\"ti\n3\n4\n");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(append(&path, "3").unwrap_err().to_string().contains("yours alone"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(append(&path, "3").is_err());
    }
}
