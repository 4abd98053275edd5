//! (see docs/architecture.md)

use tokio::io::{AsyncRead, AsyncWrite};

use crate::session::Session;

/// Serve one agent until it leaves.
pub async fn serve<R, W>(_session: Session, _read: R, _write: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    todo!()
}

/// Serve one client on a socket until it leaves; what still runs for it is interrupted when the other end is closed.
pub async fn serve_socket(_session: Session, _stream: tokio::net::UnixStream) {
    todo!()
}

/// The `InitializeResult` for these parameters.
pub fn initialize_result(_params: &serde_json::Value) -> serde_json::Value {
    todo!()
}
