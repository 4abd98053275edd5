//! Edits that the server asks the client to make (LSP 3.17 `workspace/applyEdit`). A text that was
//! changed since its edit was computed is not edited: a client without `documentChanges` would make
//! the edit at the positions of the earlier text.

use std::time::Duration;

use lsp_types::WorkspaceEdit;
use ropey::Rope;
use serde_json::{Value, json};

use super::connection::Connection;
use super::transport::Peer;
use crate::ide::rename::FileChanges;
use crate::ide::texts::Texts;
use crate::session::{ClientId, Level, Session, path_of_uri};
use crate::shown;

/// The time limit for an editor to apply an edit that no person is asked about.
pub(super) const APPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// A text for which an edit was computed.
#[derive(Debug, Clone)]
pub(super) struct EditedText {
    /// The URI, as the client named it if the file is open.
    pub(super) uri: String,
    pub(super) text: Rope,
}

impl EditedText {
    /// Returns the texts that changes of files are for.
    pub(super) fn of_changes(files: &[FileChanges]) -> Vec<EditedText> {
        let of = |file: &FileChanges| EditedText { uri: file.uri.clone(), text: file.document.text().clone() };
        files.iter().filter(|file| !file.changes.is_empty()).map(of).collect()
    }

    /// Returns true if the file on the disk has this text.
    async fn is_on_disk(&self) -> bool {
        let Some(path) = path_of_uri(&self.uri) else { return false };
        Texts::of(Vec::new()).get(&path).await.is_some_and(|file| *file.document.text() == self.text)
    }

    /// Returns true if another editor has the file open with this text.
    async fn is_of_another(&self, session: &Session, client: ClientId) -> bool {
        let Some(path) = path_of_uri(&self.uri) else { return false };
        let open = session.open_documents().await;
        let mut others = open.iter().filter(|one| one.client != client && one.path.as_ref() == Some(&path));
        others.any(|one| *one.document.text() == self.text)
    }

    fn name(&self) -> String {
        shown::line(self.uri.rsplit('/').next().unwrap_or(&self.uri))
    }

    fn changed(&self) -> String {
        format!("the text of {} was changed meanwhile. Try again with the text as it is now.", self.name())
    }

    fn unsaved_in_another(&self) -> String {
        format!(
            "{} has unsaved changes in another editor. Save it there, or open it here too, then try again.",
            self.name()
        )
    }
}

/// Checks that texts are still those for which an edit was computed. A document of the client
/// counts before the file on the disk, whatever the text of another client is.
///
/// # Errors
/// The reason why the edit must not be made, with the next step.
pub(super) async fn check_unchanged(session: &Session, client: ClientId, texts: &[EditedText]) -> Result<(), String> {
    for edited in texts {
        if session.document(client, &edited.uri).await.is_none() && !edited.is_on_disk().await {
            let is_of_another = edited.is_of_another(session, client).await;
            return Err(if is_of_another { edited.unsaved_in_another() } else { edited.changed() });
        }
    }
    // Documents are compared last, because a person may type while files are read.
    for edited in texts {
        if let Some(now) = session.document(client, &edited.uri).await
            && *now.text() != edited.text
        {
            return Err(edited.changed());
        }
    }
    Ok(())
}

/// Asks the client to make an edit. `texts` are those for which the edit was computed. With a
/// `limit`, an answer that does not come within that time is not waited for.
///
/// # Errors
/// The reason why the client did not make the edit, or was not asked.
pub(super) async fn apply(
    (session, client): (&Session, ClientId),
    peer: &Peer,
    label: &str,
    edit: WorkspaceEdit,
    texts: &[EditedText],
    limit: Option<Duration>,
) -> Result<(), String> {
    check_unchanged(session, client, texts).await?;
    let asked = peer.request("workspace/applyEdit", json!({"label": label, "edit": edit}));
    match crate::steady::timeout(limit.unwrap_or(Duration::MAX), asked).await {
        Ok(Ok(answer)) if answer["applied"] == json!(true) => Ok(()),
        Ok(Ok(answer)) => Err(answer["failureReason"].as_str().unwrap_or("it refused the edit.").to_owned()),
        Ok(Err(error)) => Err(error.message.into_owned()),
        Err(_) => Err(format!("it did not answer within {} s.", limit.unwrap_or_default().as_secs())),
    }
}

/// Makes the edit of a command, about which the editor may ask the person, and adds `applied` to
/// the command's result. A client that has no `workspace/applyEdit` gets the edit in the result. If
/// the edit was not made, the result has the `reason`, and a message begins with `failure`.
pub(super) async fn apply_or_return(
    connection: &Connection,
    (label, failure): (&str, &str),
    edit: WorkspaceEdit,
    texts: &[EditedText],
    result: &mut Value,
) {
    let (session, client) = (&connection.session, connection.client);
    let applies = connection.negotiated().apply_edit;
    let done = if applies {
        apply((session, client), &connection.peer, label, edit.clone(), texts, None).await
    } else {
        check_unchanged(session, client, texts).await
    };
    result["applied"] = (applies && done.is_ok()).into();
    match done {
        Ok(()) if applies => {}
        Ok(()) => result["edit"] = serde_json::to_value(edit).unwrap_or_default(),
        Err(reason) => {
            connection.show(Level::Warning, &format!("{failure}: {reason}"));
            result["reason"] = reason.into();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lsp_types::{Position, Range, TextEdit, Url};

    use super::*;
    use crate::lsp::to_proto;
    use crate::session::{ClientInfo, Frontend};
    use crate::text::document::{Document, Edit};

    const TEXT: &str = "(when a b)\n";

    /// A session with an editor.
    struct Place {
        directory: tempfile::TempDir,
        session: Session,
        client: ClientId,
    }

    impl Place {
        fn new() -> Place {
            let directory = tempfile::tempdir().unwrap();
            let session = Session::without_image(directory.path());
            let (client, _) = session.attach(ClientInfo { frontend: Frontend::Lsp, name: "an editor".into() });
            Place { directory, session, client }
        }

        fn uri(&self, name: &str) -> String {
            Url::from_file_path(self.directory.path().join(name)).unwrap().into()
        }

        fn edited(&self, name: &str) -> EditedText {
            EditedText { uri: self.uri(name), text: Document::new(TEXT, 1).text().clone() }
        }

        async fn check(&self, names: &[&str]) -> Result<(), String> {
            let texts: Vec<EditedText> = names.iter().map(|name| self.edited(name)).collect();
            check_unchanged(&self.session, self.client, &texts).await
        }
    }

    #[tokio::test]
    async fn a_document_that_was_changed_since_is_not_edited() {
        let place = Place::new();
        let uri = place.uri("a.lisp");
        place.session.open(place.client, uri.clone(), 1, TEXT.into());
        assert_eq!(place.check(&["a.lisp"]).await, Ok(()));
        // Some clients give each text the same version.
        let typed = Edit { range: None, text: format!("; typed\n{TEXT}") };
        place.session.change(place.client, &uri, 1, vec![typed]);
        let (peer, _outgoing) = Peer::new(1 << 20);
        let at = Position { line: 0, character: 0 };
        let change = TextEdit { range: Range { start: at, end: at }, new_text: "(if a b)".into() };
        let edit = to_proto::edit(&Url::parse(&uri).unwrap(), Some(1), false, vec![change]);
        let made = apply((&place.session, place.client), &peer, "Edit", edit, &[place.edited("a.lisp")], None).await;
        let reason = made.unwrap_err();
        assert!(reason.starts_with("the text of a.lisp was changed meanwhile."), "{reason}");
        place.session.close(place.client, &uri);
        assert!(place.check(&["a.lisp"]).await.is_err(), "neither open nor a file");
    }

    #[tokio::test]
    async fn the_text_of_the_client_counts_and_not_that_of_another_editor() {
        let place = Place::new();
        let (other, _) = place.session.attach(ClientInfo { frontend: Frontend::Lsp, name: "another editor".into() });
        let uri = place.uri("a.lisp");
        std::fs::write(place.directory.path().join("a.lisp"), "; saved").unwrap();
        place.session.open(other, uri.clone(), 7, TEXT.into());
        // The edit would be made at the positions of a text that this client does not have.
        let reason = place.check(&["a.lisp"]).await.unwrap_err();
        assert!(reason.starts_with("a.lisp has unsaved changes in another editor. Save it there"), "{reason}");
        place.session.open(place.client, uri.clone(), 1, TEXT.into());
        place.session.change(other, &uri, 8, vec![Edit { range: None, text: "; typed there".into() }]);
        assert_eq!(place.check(&["a.lisp"]).await, Ok(()));
        let context = place.session.context(place.client).await;
        let index = context.texts_index().await;
        let [file] = index.files.as_slice() else { panic!("{:?}", index.files) };
        assert_eq!(file.open.as_ref().map(|document| document.text().to_string()).as_deref(), Some(TEXT));
    }

    #[tokio::test]
    async fn a_file_that_was_written_or_opened_with_another_text_since_is_not_edited() {
        let place = Place::new();
        let path = place.directory.path().join("b.lisp");
        std::fs::write(&path, TEXT).unwrap();
        place.session.open(place.client, place.uri("a.lisp"), 1, TEXT.into());
        assert_eq!(place.check(&["a.lisp", "b.lisp"]).await, Ok(()));
        place.session.open(place.client, place.uri("b.lisp"), 1, "; typed".into());
        assert!(place.check(&["a.lisp", "b.lisp"]).await.is_err());
        place.session.close(place.client, &place.uri("b.lisp"));
        assert_eq!(place.check(&["a.lisp", "b.lisp"]).await, Ok(()));
        std::fs::write(&path, "; written").unwrap();
        assert!(place.check(&["a.lisp", "b.lisp"]).await.unwrap_err().contains("b.lisp"));
    }
}
