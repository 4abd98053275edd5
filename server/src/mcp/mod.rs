//! The front end for agents: MCP over the bridge's socket ([`serve`]) or over loopback HTTP
//! ([`http::serve_http`]).
//!
//! `rmcp` supports two generations of the protocol on one connection: the `initialize` handshake
//! (2024-11-05 to 2025-11-25) and self-contained requests (2026-07-28). The modules here add
//! framing that answers every invalid line ([`framing`]), a table of tools ([`tools`]), and calls
//! that end when their client disconnects ([`server`]).

pub mod http;

mod agent_breakpoints;
mod answer;
mod arguments;
mod breakpoint_records;
mod code_calls;
mod consent;
mod elicitation;
mod framing;
mod http_listener;
mod input;
mod lines;
mod notices;
mod partial_answers;
mod progress;
mod prompts;
mod resources;
mod server;
mod tools;

use std::future::Future;
use std::sync::Arc;

use rmcp::ServerHandler as _;
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

use crate::session::Session;

pub use breakpoint_records::{BreakpointRecords, BridgeKey};
pub use http::{HttpEntrance, HttpError, require_loopback, serve_http};

/// Serves one client until it disconnects. When `read` ends, calls in progress may finish, because
/// a script may pipe its requests in and read on. Prefer [`serve_socket`], which also detects that
/// nobody reads the output any more. It then interrupts the calls at once.
pub async fn serve<R, W>(session: Session, read: R, write: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_until(session, None, read, write, std::future::pending()).await;
}

/// Serves one client on a socket until it disconnects. Calls in progress are interrupted when the
/// other end is closed.
pub async fn serve_socket(session: Session, stream: UnixStream) {
    serve_bridge(session, stream, None).await;
}

/// Serves a bridge as [`serve_socket`] does. The breakpoints of the bridge's agent are on record.
pub async fn serve_bridge(session: Session, stream: UnixStream, bridge: Option<(Arc<BreakpointRecords>, BridgeKey)>) {
    let watch = stream.into_std().and_then(|std| Ok((std.try_clone()?, std)));
    match watch.and_then(|(copy, std)| Ok((UnixStream::from_std(copy)?, UnixStream::from_std(std)?))) {
        Ok((copy, stream)) => {
            let (read, write) = stream.into_split();
            serve_until(session, bridge, read, write, closed(copy)).await;
        }
        Err(error) => tracing::warn!(%error, "an MCP client could not be served"),
    }
}

/// Resolves when the other end of a socket no longer reads. The end of the input alone shows only
/// that the other end no longer writes.
async fn closed(socket: UnixStream) {
    loop {
        match socket.ready(Interest::WRITABLE).await {
            Ok(ready) if ready.is_write_closed() => return,
            // The socket is writable. The readiness is cleared, so that the next change of state
            // wakes the task again.
            Ok(_) => {
                let forget: std::io::Result<()> =
                    socket.try_io(Interest::WRITABLE, || Err(std::io::ErrorKind::WouldBlock.into()));
                debug_assert!(forget.is_err());
            }
            Err(_) => return,
        }
    }
}

async fn serve_until<R, W>(
    session: Session,
    bridge: Option<(Arc<BreakpointRecords>, BridgeKey)>,
    read: R,
    write: W,
    output_closed: impl Future<Output = ()> + Send + 'static,
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let gone = CancellationToken::new();
    // The end of this function, even by a panic or an abort, ends the calls in progress.
    let _guard = gone.clone().drop_guard();
    let handler = server::Handler::for_connection(session, gone.clone(), bridge);
    let transport = framing::Ndjson::new(read, write, framing::Limits::default(), gone, output_closed);
    let transport = transport.with_calls(handler.calls());
    match rmcp::serve_server(handler, transport).await {
        Ok(running) => match running.waiting().await {
            Ok(reason) => tracing::debug!(?reason, "an MCP client left"),
            Err(error) => tracing::warn!(%error, "an MCP connection ended badly"),
        },
        Err(error) => tracing::debug!(%error, "an MCP client left before it had begun"),
    }
}

/// Returns the exact answer of [`serve`] to `initialize` with these params, so that the bridge can
/// answer while the host starts.
pub fn initialize_result(params: &Value) -> Value {
    let version = params
        .get("protocolVersion")
        .cloned()
        .and_then(|version| serde_json::from_value(version).ok())
        .unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let request = InitializeRequestParams::new(ClientCapabilities::default(), Implementation::default())
        .with_protocol_version(version);
    let result = server::Greeting.negotiate_initialize(&request).unwrap_or_else(|_| server::info());
    serde_json::to_value(result).unwrap_or(Value::Null)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn initialize_echoes_a_version_that_has_a_handshake() {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let result = initialize_result(&serde_json::json!({"protocolVersion": version}));
            assert_eq!(result["protocolVersion"], version);
        }
    }

    #[test]
    fn initialize_answers_an_unknown_version_with_the_newest_that_has_a_handshake() {
        for params in [serde_json::json!({"protocolVersion": "1999-01-01"}), serde_json::json!({}), Value::Null] {
            let result = initialize_result(&params);
            assert_eq!(result["protocolVersion"], "2025-11-25");
            assert_eq!(result["serverInfo"]["name"], "consort");
            assert!(result["capabilities"]["tools"].is_object());
            assert!(result["instructions"].as_str().is_some_and(|text| text.contains("compile-form")));
        }
    }
}
