//! A client that sends requests and never reads the answers.

use std::io::Write;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::framing::{Framing, framed};
use crate::installation::Installation;

/// The bridge of a client that never reads, and the number of requests that it has sent. End it
/// with [`NonReadingClient::end`].
pub struct NonReadingClient {
    bridge: Child,
    sent: Arc<AtomicUsize>,
}

impl NonReadingClient {
    /// Starts a client of LSP (`Framing::Headers`) or of MCP, which sends `requests` requests for
    /// `method` with `params`, as fast as it can.
    ///
    /// # Panics
    /// The bridge does not start.
    pub fn start(
        world: &Installation,
        framing: Framing,
        requests: usize,
        method: &'static str,
        params: Value,
    ) -> NonReadingClient {
        let name = if framing == Framing::Headers { "lsp" } else { "mcp" };
        let mut bridge =
            world.consort(&[name]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = bridge.stdin.take().expect("stdin is piped");
        let sent = Arc::new(AtomicUsize::new(0));
        let count = sent.clone();
        let root = format!("file://{}", world.workspace().display());
        // The thread ends with the bridge.
        std::thread::spawn(move || {
            let mut say = |message: Value| stdin.write_all(&framed(message.to_string(), framing));
            let (greeting, greeted) = match framing {
                Framing::Headers => (json!({"processId": null, "rootUri": root, "capabilities": {}}), "initialized"),
                Framing::Lines => (
                    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}),
                    "notifications/initialized",
                ),
            };
            let begun = say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": greeting}))
                .and_then(|()| say(json!({"jsonrpc": "2.0", "method": greeted, "params": {}})));
            for id in 1..=requests {
                let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
                if begun.is_err() || say(request).is_err() {
                    break;
                }
                count.store(id, Ordering::Relaxed);
            }
            std::thread::park(); // holds the bridge's input open
        });
        NonReadingClient { bridge, sent }
    }

    /// The number of requests that were sent.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// Kills the bridge.
    ///
    /// # Panics
    /// A process that cannot be killed.
    pub fn end(mut self) {
        self.bridge.kill().expect("it can be killed");
        self.bridge.wait().expect("it can be waited for");
    }
}
