//! The front end for editors, over LSP. It translates between the protocol and the session. It
//! contains no code that depends on Lisp or on the image.

mod actions;
mod approve;
mod capabilities;
mod commands;
mod completion;
mod connection;
mod definition;
mod edits;
mod ext;
mod feedback;
mod formatting;
mod from_proto;
mod hierarchies;
mod hover;
mod incoming;
mod inlay_hints;
mod input;
mod lenses;
mod linked_names;
mod links;
mod missing;
mod negotiated;
mod newer_capabilities;
mod notifier;
mod progress;
mod pull;
mod references;
mod rename;
mod requests;
mod signature;
mod stopping;
mod texts;
mod to_proto;
mod tokens;
mod tokens_delta;
mod transport;
mod trust;
mod type_definition;
mod workspace_checks;
mod workspace_symbols;

use tokio::io::{AsyncRead, AsyncWrite};
use tower_lsp::LspService;

pub use commands::names as commands;
pub use ext::NOTIFICATIONS;
pub use transport::Ended;

use crate::session::{ClientId, ClientInfo, EditorProcess, Frontend, Session};
use connection::Connection;
use transport::Peer;

/// Serves one editor until the editor sends `exit`, disconnects, or stops reading. Running requests
/// are then cancelled, and the editor's documents are closed.
pub async fn serve<R, W>(session: Session, read: R, write: W) -> Ended
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    serve_process(session, read, write, None).await
}

/// Serves one editor as [`serve`] does. If the editor's process is known, `process` has a text with
/// its program and process id, for a person, and the process itself if the system reports when it
/// started.
pub async fn serve_process<R, W>(
    session: Session,
    read: R,
    write: W,
    process: Option<(String, Option<EditorProcess>)>,
) -> Ended
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (client, feedback) = session.attach(ClientInfo { frontend: Frontend::Lsp, name: "an editor".into() });
    if let Some((words, process)) = process {
        session.note_program(client, words);
        process.into_iter().for_each(|process| session.marks_unsaved(client, process));
    }
    let _attached = Attached { session: session.clone(), client };
    let (peer, outgoing) = Peer::new(transport::MAX_QUEUED);
    let connection = Connection::new(session, client, peer.clone(), feedback);
    // The socket is for tower-lsp's own client, which waits until each message is written. `Peer`
    // does not wait.
    let (service, _socket) = LspService::build(|_| connection)
        .custom_method("window/workDoneProgress/cancel", Connection::cancel_progress)
        .custom_method(incoming::LOST, Connection::text_lost)
        .finish();
    transport::run(service, peer, outgoing, read, write).await
}

/// Detaches the client when the connection ends, for any reason.
struct Attached {
    session: Session,
    client: ClientId,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.session.detach(self.client);
    }
}
