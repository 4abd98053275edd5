//! Files of the workspace, read and written for an agent. Links are resolved, and files outside
//! are rejected. A write is atomic, and never bypasses an editor with unsaved changes (contracts:
//! "Hot reload").

mod in_editors;
mod read_only;
mod replacing;

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};
use tokio::sync::mpsc;

use self::in_editors::{any_is_of, documents_of, unsaved_texts};
use self::read_only::ReadOnly;
use self::replacing::write;
use super::event::Event;
use super::file_identity::real_path;
use super::unsaved_marks::Holder;
use super::{ClientId, Feedback, Session};
use crate::fault::{self, Call};
use crate::text::{Span, decode_as_edited, encoding};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The time limit for an editor to apply an edit.
const APPLY_TIMEOUT: Duration = Duration::from_secs(20);
/// The flags for opening directories on the path: search permission may be granted without read
/// permission.
#[cfg(target_os = "linux")]
const PATH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PATH_ONLY: OFlags = OFlags::RDONLY;

/// The reason why a file was not read or not written: a stable kind, and a message with the next
/// step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileError {
    /// The kind: `not-found`, `outside-workspace`, `not-a-file`, `too-large`, `file-changed`,
    /// `not-written`, `encoding` or `editor`.
    pub kind: &'static str,
    /// The message for an agent or a person.
    pub message: String,
}

fn error(kind: &'static str, message: impl Into<String>) -> FileError {
    FileError { kind, message: message.into() }
}

/// A source file in its current state, with the editor's text if an editor has unsaved changes,
/// else with the file's text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The file's path, links resolved.
    pub path: PathBuf,
    /// The path relative to the workspace.
    pub relative: String,
    /// The text, without a byte order mark.
    pub text: String,
    /// The editor whose unsaved text this is.
    pub editor: Option<Unsaved>,
    /// The editor that has unsaved changes of the file and is not connected. The text is then the
    /// one on disk.
    pub held_by: Option<Holder>,
    /// The reason why the file may not be written.
    read_only: Option<ReadOnly>,
    bytes: Vec<u8>,
    /// The file's identity; `None`: the file does not exist, only an editor's text of it.
    identity: Option<Identity>,
}

/// An editor's unsaved text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsaved {
    client: ClientId,
    uri: String,
    revision: u64,
}

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl SourceFile {
    /// Fails for a file that may not be written. The unsaved text of a connected editor may be
    /// edited even if its file is read-only.
    ///
    /// # Errors
    ///
    /// The file is read-only, or an editor that is not connected has unsaved changes of it.
    pub fn writable(&self) -> Result<(), FileError> {
        if let Some(holder) = &self.held_by {
            return Err(error("editor", format!("{} Nothing was changed.", self.owner_in_words(holder))));
        }
        match self.read_only {
            Some(why) if self.editor.is_none() => Err(error("not-written", why.message(&self.relative))),
            _ => Ok(()),
        }
    }

    /// Describes an editor that has unsaved changes of the file and is not connected.
    pub fn owner_in_words(&self, holder: &Holder) -> String {
        let file = &self.relative;
        match holder {
            Holder::Editor(process) => format!(
                "{file} had unsaved changes in an editor (process {process}) that is not connected to this host. \
                 To have the file edited, save it there, or open it there with Consort connected (restart its language server)."
            ),
            Holder::Unknown(why) => format!(
                "{file} may have unsaved changes in an editor: Consort's marks of unsaved texts cannot be read ({why}). \
                 To have the file edited, make them readable, or open it in an editor with Consort connected."
            ),
        }
    }

    /// Returns the error for a file that an editor has open with a text that the session does not
    /// know.
    fn unknown(&self) -> FileError {
        let message = format!(
            "{} has changes in an editor that Consort could not follow. \
             Have the file closed and opened again there.",
            self.relative
        );
        error("editor", message)
    }

    /// Returns the bytes of another text in this file's encoding, with its byte order mark.
    fn encoded(&self, text: &str) -> Result<Vec<u8>, FileError> {
        encoding::encode_like(&self.bytes, text)
            .map_err(|why| error("encoding", format!("{} {why}. Nothing was changed.", self.relative)))
    }
}

impl Session {
    /// Returns the editor, on any host, whose mark
    /// ([`UnsavedMarks`](super::unsaved_marks::UnsavedMarks)) says that it has unsaved changes of a
    /// file.
    async fn holder(&self, file: &Path) -> Option<Holder> {
        let (marks, file) = (self.inner.marks.clone()?, file.to_owned());
        let holder = tokio::task::spawn_blocking(move || marks.holder(&file)).await;
        holder.unwrap_or_else(|error| Some(Holder::Unknown(error.to_string())))
    }

    /// Delays the reading of files for agents until `back` resolves: until then an editor may have
    /// documents with unsaved changes that this session does not know.
    pub fn wait_for_documents(&self, back: impl Future<Output = ()> + Send + 'static) {
        self.inner.reopening.send_replace(true);
        let session = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            back.await;
            if let Some(session) = session.upgrade() {
                session.reopening.send_replace(false);
            }
        });
    }

    /// Waits until the documents of a killed host, and the settings of their editors, are known.
    pub async fn documents_are_known(&self) {
        // The sender lives as long as this session.
        let _ = self.inner.reopening.subscribe().wait_for(|waits| !waits).await;
    }

    /// Returns a file of the workspace, by its path, absolute or relative to the workspace's
    /// directory.
    ///
    /// # Errors
    ///
    /// The file does not exist, is not a file, is too large, or lies outside of the workspace
    /// when links are resolved.
    pub async fn source_file(&self, path: &str) -> Result<SourceFile, FileError> {
        self.documents_are_known().await;
        let (unknown, open) = (self.unknown_texts(), self.open_documents());
        let workspace = self.workspace().to_owned();
        let path = path.to_owned();
        let read = tokio::task::spawn_blocking(move || read_or_missing(&workspace, &path));
        let (open, file) = (open.await, read.await.map_err(|_| error("not-found", "The file could not be read."))?);
        let (mut file, missing) = file?;
        let documents = documents_of(open, &file.path).await;
        if documents.is_empty() {
            file.held_by = self.holder(&file.path).await;
        }
        let unsaved = unsaved_texts(documents).await;
        if unsaved.iter().any(|one| one.saved.is_text_unknown()) || any_is_of(unknown.await, &file.path).await {
            return Err(file.unknown());
        }
        match unsaved.as_slice() {
            [] => {
                if let Some(why) = missing {
                    return Err(why);
                }
            }
            [one] => {
                file.text = one.document.text().to_string();
                file.editor =
                    Some(Unsaved { client: one.client, uri: one.uri.clone(), revision: one.document.revision() });
            }
            _ => {
                return Err(error(
                    "editor",
                    format!(
                        "{} has unsaved changes in more than one editor. Save it in one of them first.",
                        file.relative
                    ),
                ));
            }
        }
        Ok(file)
    }

    /// Replaces a part (in bytes) of a file's text: through the editor with unsaved changes, or
    /// else on the disk. The edit is atomic. Nothing is changed if the file has changed since it
    /// was read.
    ///
    /// # Errors
    ///
    /// The reason why nothing was changed.
    pub async fn edit_source_file(
        &self,
        file: &SourceFile,
        range: std::ops::Range<usize>,
        by: &str,
    ) -> Result<(), FileError> {
        match &file.editor {
            Some(editor) => {
                let chars = |byte: usize| file.text[..byte].chars().count();
                let span = Span { start: chars(range.start), end: chars(range.end) };
                let edit = vec![(span, by.to_owned())];
                // The editor makes the edit even if the call ends meanwhile.
                super::calls::note_lasting_change();
                let applied = self.apply_edit(editor.client, &editor.uri, editor.revision, edit).await;
                if applied.is_ok() {
                    self.newer_text(editor.client, &editor.uri, editor.revision).await;
                }
                applied.map_err(|why| {
                    error("editor", format!("{} has unsaved changes in an editor, which did not apply the edit: {why} Nothing was changed.", file.relative))
                })
            }
            None => {
                file.writable()?;
                let text = [&file.text[..range.start], by, &file.text[range.end..]].concat();
                let bytes = file.encoded(&text)?;
                // Since the file was read, a person may have begun to edit it.
                if any_is_of(self.unknown_texts().await, &file.path).await {
                    return Err(file.unknown());
                }
                let documents = documents_of(self.open_documents().await, &file.path).await;
                if documents.is_empty()
                    && let Some(holder) = self.holder(&file.path).await
                {
                    return Err(error("editor", format!("{} Nothing was changed.", file.owner_in_words(&holder))));
                }
                if !unsaved_texts(documents).await.is_empty() {
                    let message = format!(
                        "{} has unsaved changes in an editor since it was read. Nothing was changed: read it again.",
                        file.relative
                    );
                    return Err(error("file-changed", message));
                }
                let (file, workspace) = (file.clone(), self.workspace().to_owned());
                let asd = file.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("asd"));
                // The file is written even if the call ends meanwhile.
                super::calls::note_lasting_change();
                let written = tokio::task::spawn_blocking(move || write(&workspace, &file, &bytes));
                written.await.map_err(|_| error("not-written", "The file could not be written."))??;
                if asd {
                    self.files_changed();
                }
                Ok(())
            }
        }
    }

    /// Asks an editor to edit one of its documents, which must be at this revision.
    ///
    /// # Errors
    ///
    /// The reason why the editor did not apply the edit.
    pub async fn apply_edit(
        &self,
        client: ClientId,
        uri: &str,
        revision: u64,
        edits: Vec<(Span, String)>,
    ) -> Result<(), String> {
        let (reply, mut answer) = mpsc::unbounded_channel();
        self.send(Event::ApplyEdit { client, uri: uri.to_owned(), revision, edits, reply });
        match crate::steady::timeout(APPLY_TIMEOUT, answer.recv()).await {
            Ok(answer) => answer.unwrap_or_else(|| Err("it went away.".into())),
            Err(_) => Err(format!("it did not answer within {} s.", APPLY_TIMEOUT.as_secs())),
        }
    }
}

impl super::actor::Actor {
    pub(super) fn apply_edit(
        &mut self,
        client: ClientId,
        uri: String,
        revision: u64,
        edits: Vec<(Span, String)>,
        reply: mpsc::UnboundedSender<Result<(), String>>,
    ) {
        let answer = match self.open_document(&(client, uri.clone())) {
            Some((document, _)) if document.revision() == revision => {
                let (version, text) = (document.version(), document.text().clone());
                return self.notify(client, Feedback::ApplyEdit { uri, version, text, edits, reply });
            }
            Some(_) => "its text has changed meanwhile.",
            None => "it has been closed.",
        };
        drop(reply.send(Err(answer.into())));
    }
}

/// Reads a file. For a file that does not exist, returns its future location and the error.
fn read_or_missing(workspace: &Path, path: &str) -> Result<(SourceFile, Option<FileError>), FileError> {
    let why = match read(workspace, path) {
        Ok(file) => return Ok((file, None)),
        Err(why) if why.kind == "not-found" => why,
        Err(why) => return Err(why),
    };
    let Ok(root) = workspace.canonicalize() else { return Err(why) };
    let path = real_path(&root.join(path));
    let Ok(relative) = path.strip_prefix(&root).map(|relative| relative.display().to_string()) else { return Err(why) };
    if path.exists() || path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err(why);
    }
    let (text, bytes) = (String::new(), Vec::new());
    let file = SourceFile { path, relative, text, editor: None, held_by: None, read_only: None, bytes, identity: None };
    Ok((file, Some(why)))
}

fn resolve(workspace: &Path, path: &str) -> Result<(PathBuf, String), FileError> {
    let root =
        workspace.canonicalize().map_err(|why| error("not-found", format!("The workspace cannot be read: {why}")))?;
    let resolved = root.join(path).canonicalize().map_err(|why| {
        let hint = format!("Paths are absolute or start at the workspace, {}.", root.display());
        error("not-found", format!("{path} cannot be read: {why}. {hint}"))
    })?;
    let Ok(relative) = resolved.strip_prefix(&root) else {
        let message = format!(
            "{path} is {}, which lies outside of the workspace, {}. Only files within may be read or edited.",
            resolved.display(),
            root.display()
        );
        return Err(error("outside-workspace", message));
    };
    let relative = relative.display().to_string();
    Ok((resolved, relative))
}

/// Opens a directory by a path without links. The descriptor stays valid for that directory if
/// another one takes its place.
fn directory(path: &Path) -> Result<OwnedFd, rustix::io::Errno> {
    let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at = rustix::fs::open("/", flags, Mode::empty())?;
    for part in path.components() {
        if let std::path::Component::Normal(name) = part {
            at = rustix::fs::openat(at.as_fd(), name, flags, Mode::empty())?;
        }
    }
    Ok(at)
}

fn split(path: &Path) -> Result<(&Path, &std::ffi::OsStr), FileError> {
    path.parent().zip(path.file_name()).ok_or_else(|| error("not-a-file", format!("{} is no file.", path.display())))
}

fn read(workspace: &Path, path: &str) -> Result<SourceFile, FileError> {
    let (resolved, relative) = resolve(workspace, path)?;
    let cannot = |why: String| error("not-found", format!("{relative} cannot be read: {why}."));
    let (parent, name) = split(&resolved)?;
    let parent = directory(parent).map_err(|why| cannot(why.to_string()))?;
    // NONBLOCK: a pipe must not block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    fault::point(Call::Open).map_err(|why| cannot(why.to_string()))?;
    let file = rustix::fs::openat(parent.as_fd(), name, flags, Mode::empty()).map_err(|why| cannot(why.to_string()))?;
    let mut file = std::fs::File::from(file);
    let facts = file.metadata().map_err(|why| cannot(why.to_string()))?;
    if !facts.is_file() {
        let what = if relative.is_empty() { "The workspace itself" } else { &relative };
        return Err(error("not-a-file", format!("{what} is no regular file. `path` names one file.")));
    }
    if facts.len() > MAX_FILE_BYTES {
        let message =
            format!("{relative} has {} bytes; files of up to {} MB are read.", facts.len(), MAX_FILE_BYTES >> 20);
        return Err(error("too-large", message));
    }
    let mut bytes = Vec::new();
    Read::take(&mut file, MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|why| cannot(why.to_string()))?;
    let identity = identity(parent.as_fd(), name).map_err(|why| cannot(why.to_string()))?;
    let text = decode_as_edited(bytes.clone());
    let access = rustix::fs::accessat(parent.as_fd(), name, rustix::fs::Access::WRITE_OK, AtFlags::empty());
    let read_only = ReadOnly::of(access, &facts.permissions());
    Ok(SourceFile {
        path: resolved,
        relative,
        text,
        editor: None,
        held_by: None,
        read_only,
        bytes,
        identity: Some(identity),
    })
}

fn identity(directory: impl AsFd, name: &std::ffi::OsStr) -> Result<Identity, rustix::io::Errno> {
    let facts = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)] // their types differ between systems
    Ok(Identity { device: facts.st_dev as u64, inode: facts.st_ino as u64 })
}

#[cfg(test)]
mod tests;
