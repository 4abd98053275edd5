//! (see docs/architecture.md)

use tokio::io::{AsyncRead, AsyncWrite};

use crate::session::Session;

/// Serve one editor until it leaves.
pub async fn serve<R, W>(_session: Session, _read: R, _write: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    todo!()
}
