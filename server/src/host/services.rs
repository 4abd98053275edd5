//! The services of a real host: the session and its image.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::control;
use super::folders;
use super::hello::Protocol;
use super::peer_process;
use super::reopening;
use super::runtime_dir::RuntimeDir;
use super::serve::{Connection, Lifetime, Services};
use crate::config::{ABANDONED_STOP_TIMEOUT, Config};
use crate::dap;
use crate::image::{Image, process_table, programs};
use crate::lsp;
use crate::mcp;
use crate::mcp::{BreakpointRecords, BridgeKey, HttpEntrance};
use crate::session::{OpenFolders, Session};

/// The time limit for the image's end. In less time, the image is asked to end, and is killed if it
/// does not.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// A session with its image.
#[derive(Debug)]
pub struct SharedImage {
    session: Session,
    image: Image,
    breakpoints: Arc<BreakpointRecords>,
    http: CancellationToken,
}

impl SharedImage {
    /// Starts the session. The image is started on first use. Must be called within a Tokio
    /// runtime.
    pub fn start(mut config: Config, workspace: &Path, runtime: &RuntimeDir) -> SharedImage {
        config.approval.audit = super::log::path_for(workspace).map(|log| log.with_extension("audit.jsonl"));
        programs::adopt_orphans();
        let (image, events) = Image::prepare(config.lisp.clone(), workspace, runtime.work());
        let session = Session::start(config, workspace.to_path_buf(), image.clone(), events);
        if let Some(retired) = reopening::retire(runtime) {
            session.wait_for_documents(retired.wait_until_reopened());
        }
        let lives = |bridge: &BridgeKey| process_table::started(bridge.process) == Some(bridge.started);
        let breakpoints = BreakpointRecords::open(runtime.breakpoints(), lives);
        SharedImage { session, image, breakpoints, http: CancellationToken::new() }
    }

    /// Serves HTTP in addition to the socket, until the host ends.
    ///
    /// # Errors
    /// The runtime cannot watch the entrance.
    pub fn serve_http(&self, entrance: HttpEntrance) -> io::Result<()> {
        mcp::serve_http(self.session.clone(), entrance, self.http.clone())
    }
}

/// Opens the HTTP entrance. The token is in the user's own state directory, so that a client's
/// settings stay valid over restarts.
///
/// # Errors
/// Fails when the address is not a loopback one or cannot be bound, or there is no directory for
/// the token.
pub fn open_http(address: SocketAddr, workspace: &Path) -> io::Result<HttpEntrance> {
    let no_home = || io::Error::other("no home directory is known, so there is no place for HTTP's token; set HOME");
    let token_file = super::log::path_for(workspace).ok_or_else(no_home)?.with_extension("token");
    HttpEntrance::open(address, &token_file).map_err(io::Error::other)
}

/// Returns the session for an agent that works in a folder of an editor, or `session` itself if no
/// editor has that folder open.
async fn in_folder(session: Session, folder: Option<PathBuf>) -> Session {
    let Some(folder) = folder else { return session };
    let (open, workspace) = (session.open_folders().now(), session.workspace().to_owned());
    let recorded = tokio::task::spawn_blocking(move || folders::to_record(open, &workspace));
    if recorded.await.is_ok_and(|recorded| recorded.contains(&folder)) { session.in_folder(&folder) } else { session }
}

impl Services for SharedImage {
    fn open(&self, connection: Connection, lifetime: Arc<Lifetime>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let session = self.session.clone();
        match connection.hello.frontend {
            Protocol::Lsp => {
                let (read, write) = connection.stream.into_split();
                let process =
                    connection.process.map(|process| (peer_process::describe(process), peer_process::editor(process)));
                Box::pin(async {
                    let ended = lsp::serve_process(session, read, write, process).await;
                    tracing::debug!(?ended, "an editor's connection ended");
                })
            }
            Protocol::Dap => {
                let (read, write) = connection.stream.into_split();
                Box::pin(dap::serve(session, read, write, ABANDONED_STOP_TIMEOUT))
            }
            Protocol::Mcp => {
                let record = self.breakpoints.clone();
                Box::pin(async move {
                    let session = in_folder(session, connection.hello.folder).await;
                    let key = |process| Some(BridgeKey { process, started: process_table::started(process)? });
                    let bridge = connection.process.and_then(key).map(|key| (record, key));
                    mcp::serve_bridge(session, connection.stream, bridge).await;
                })
            }
            Protocol::Control => Box::pin(control::serve(session, connection, lifetime)),
        }
    }

    fn directory(&self, trouble: Option<String>, restored: bool) {
        let text = match (trouble, restored) {
            (Some(trouble), _) => format!("Consort cannot be reached by new clients, and checks cannot run: {trouble}"),
            (None, true) => "The runtime directory was removed by somebody else; it was made again.".to_owned(),
            (None, false) => return,
        };
        self.session.note("runtime directory", Some(text));
        if restored {
            // Running checks have lost their files.
            self.session.files_changed();
            let record = self.breakpoints.clone();
            tokio::task::spawn_blocking(move || {
                if let Err(error) = record.write() {
                    tracing::warn!(%error, "agents' breakpoints are not on record: they go with this host if it is killed");
                }
            });
        }
    }

    fn open_folders(&self) -> OpenFolders {
        self.session.open_folders()
    }

    fn report_separate_folders(&self, message: Option<String>) {
        self.session.note("folders with a host of their own", message);
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            self.http.cancel();
            let record = self.breakpoints.clone();
            // Fails when the runtime ends, and all writes with it.
            let _ = tokio::task::spawn_blocking(move || record.close()).await;
            if crate::steady::timeout(CLOSE_WAIT, self.image.shutdown()).await.is_err() {
                tracing::error!(
                    "the image did not end within {} s; it ends with its link to this process",
                    CLOSE_WAIT.as_secs()
                );
            }
        })
    }
}
