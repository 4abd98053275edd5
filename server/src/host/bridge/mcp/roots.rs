//! The choice of an agent's workspace if the command line names none: one of the client's roots if
//! there are any, otherwise the current directory.
//!
//! The roots can be requested only after the handshake, and the host can be chosen only after the
//! roots. So the bridge answers `initialize` itself, as the host would, and repeats the handshake
//! to the host afterwards.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Bridge;
use crate::host::bridge::lines::{Line, Lines};
use crate::host::workspace;

/// The id of the bridge's `roots/list` request.
pub(super) const REQUEST_ID: &str = "consort-roots";
/// The time limit for the client's roots. A client that is late is treated as having none.
const ROOTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Chooses the workspace, given the client's first line. Returns the lines to be passed on
/// afterwards.
pub(super) fn choose(bridge: &mut Bridge, lines: &mut Lines, first: Vec<u8>) -> io::Result<Vec<Vec<u8>>> {
    let message: Value = serde_json::from_slice(&first).unwrap_or_default();
    let has_roots = message["method"] == "initialize" && message["params"]["capabilities"]["roots"].is_object();
    if !has_roots || message["id"].is_null() {
        bridge.workspace = Some(current()?);
        return Ok(vec![first]);
    }
    let result = crate::mcp::initialize_result(&message["params"]);
    bridge.answer(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))?;
    bridge.handshake.initialize = Some(if first.ends_with(b"\n") { first } else { [first.as_slice(), b"\n"].concat() });
    let (roots, waiting) = ask(bridge, lines)?;
    bridge.workspace = Some(match pick(&roots) {
        Some(workspace) => workspace,
        None => current()?,
    });
    Ok(waiting)
}

/// Requests the roots after `notifications/initialized`. Returns them, and the lines that arrived
/// meanwhile.
fn ask(bridge: &mut Bridge, lines: &mut Lines) -> io::Result<(Vec<PathBuf>, Vec<Vec<u8>>)> {
    let mut waiting = Vec::new();
    let mut deadline: Option<Instant> = None;
    loop {
        let line = match lines.next(deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())))? {
            Line::Some(line) => line,
            Line::Late | Line::End => return Ok((Vec::new(), waiting)),
        };
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        let id = &message["id"];
        match message["method"].as_str() {
            Some("notifications/initialized") => {
                // Kept here and not in `waiting`, because it is repeated with the handshake.
                bridge.handshake.initialized =
                    Some(if line.ends_with(b"\n") { line } else { [line.as_slice(), b"\n"].concat() });
                bridge.answer(&json!({"jsonrpc": "2.0", "id": REQUEST_ID, "method": "roots/list"}))?;
                deadline = Some(Instant::now() + ROOTS_TIMEOUT);
            }
            Some("ping") if !id.is_null() => bridge.answer(&json!({"jsonrpc": "2.0", "id": id, "result": {}}))?,
            None if id == REQUEST_ID => {
                let roots = message["result"]["roots"].as_array().map(Vec::as_slice).unwrap_or_default();
                let paths = roots.iter().filter_map(|root| workspace::path_of_uri(root["uri"].as_str()?)).collect();
                return Ok((paths, waiting));
            }
            // A client that continues without `notifications/initialized` is served without further
            // waiting.
            Some(_) if !id.is_null() && deadline.is_none() => {
                waiting.push(line);
                return Ok((Vec::new(), waiting));
            }
            _ => waiting.push(line),
        }
    }
}

/// Returns the first root that has a host, otherwise the first that exists.
fn pick(roots: &[PathBuf]) -> Option<PathBuf> {
    let found: Vec<PathBuf> = roots.iter().filter_map(|root| workspace::find_folder(root).ok()).collect();
    let live = found.iter().find(|dir| crate::host::host_location::of(dir).is_ok_and(|runtime| runtime.is_live()));
    live.or(found.first()).cloned()
}

fn current() -> io::Result<PathBuf> {
    workspace::find_folder(Path::new("."))
}
