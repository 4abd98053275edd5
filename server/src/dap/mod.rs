//! The front end for debuggers in editors: the Debug Adapter Protocol over the bridge's socket.
//!
//! A client evaluates code that stops at errors, and examines the stops of all clients. When it
//! disconnects, its running evaluation is interrupted. Its stops wait for a while and are then
//! aborted, with the error report of an evaluation that does not stop. After `terminate` or with
//! `terminateDebuggee`, they are aborted at once.

mod answers;
mod breakpoints;
pub mod client;
mod completions;
mod connection;
mod evaluating;
mod exceptions;
mod frozen;
mod handlers;
mod image_start;
mod input;
mod launching;
mod new_image;
mod outgoing;
mod protocol;
mod recorded_points;
mod recorded_values;
mod recording;
mod replay;
mod requested;
mod requests;
mod resuming;
mod serve;
mod setting;
mod shown_fields;
mod sources;
mod variables;

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::session::Session;

/// Serves one client until it disconnects and its evaluations have ended. `abandoned` is the time
/// that its stops wait after it has left.
pub async fn serve<R, W>(session: Session, read: R, write: W, abandoned: Duration)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve::serve(session, read, write, abandoned).await;
}
