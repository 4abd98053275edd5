//! What is behind the doors of a real host: the session and its image.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::control;
use super::hello::DoorKind;
use super::runtime_dir::RuntimeDir;
use super::serve::{Connection, House, Lifetime};
use crate::config::Config;
use crate::image::Image;
use crate::session::Session;
use crate::{lsp, mcp};

/// The image is asked to end, and ended if it does not, within less than this.
const CLOSE_WAIT: Duration = Duration::from_secs(10);

/// A session with its image.
#[derive(Debug)]
pub struct SharedImage {
    session: Session,
    image: Image,
}

impl SharedImage {
    /// Start the image and the session. Must run within a Tokio runtime.
    pub fn start(config: Config, workspace: &Path, runtime: &RuntimeDir) -> SharedImage {
        let (image, events) = Image::start(config.lisp.clone(), workspace, runtime.work());
        let session = Session::start(config, workspace.to_path_buf(), image.clone(), events);
        SharedImage { session, image }
    }

    /// Open the HTTP door beside the socket.
    ///
    /// # Errors
    /// When the address is not a loopback one or cannot be had.
    pub async fn serve_http(&self, address: SocketAddr) -> io::Result<()> {
        Err(io::Error::other(format!("{address}: HTTP is not served yet")))
    }
}

impl House for SharedImage {
    fn open(&self, connection: Connection, lifetime: Arc<Lifetime>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let session = self.session.clone();
        match connection.hello.door {
            DoorKind::Lsp => {
                let (read, write) = connection.stream.into_split();
                Box::pin(async {
                    let ended = lsp::serve(session, read, write).await;
                    tracing::debug!(?ended, "an editor's connection ended");
                })
            }
            DoorKind::Mcp => Box::pin(mcp::serve_socket(session, connection.stream)),
            DoorKind::Control => Box::pin(control::serve(session, connection, lifetime)),
        }
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            if tokio::time::timeout(CLOSE_WAIT, self.image.shutdown()).await.is_err() {
                tracing::error!(
                    "the image did not end within {} s; it ends with its link to this process",
                    CLOSE_WAIT.as_secs()
                );
            }
        })
    }
}
