//! The handshake on a host's socket: one JSON line from the client, and one from the host, which
//! accepts or refuses the connection.

use std::io;
use std::path::PathBuf;

/// The maximum length of a hello, in bytes.
pub(super) const MAX_LINE: usize = 64 * 1024;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// An editor: LSP follows.
    Lsp,
    /// An agent: MCP follows.
    Mcp,
    /// A debugger of an editor: DAP follows.
    Dap,
    /// The command line: one request of [`super::control`] follows.
    Control,
}

/// The client's line of the handshake.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Hello {
    /// The protocol that follows.
    pub frontend: Protocol,
    /// The client's version.
    pub version: String,
    /// The client's current directory, for the log.
    #[serde(default)]
    pub cwd: PathBuf,
    /// The folder of an editor in which an agent works, if it is not the host's workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// True if every version understands the request that follows (`status`, `stop`).
    #[serde(default)]
    pub any_version: bool,
}

/// The host's line of the handshake.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ack {
    /// True when the connection is accepted.
    pub ok: bool,
    /// The host's version.
    pub version: String,
    /// The host's process id.
    pub host_pid: u32,
    /// The reason for the refusal and the remedy, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// True if the host is about to leave, because its version differs and it has no clients. The
    /// client then waits for the end of file, and starts a new host.
    #[serde(default)]
    pub leaving: bool,
}

impl Hello {
    /// Returns a hello of this process.
    pub fn new(frontend: Protocol) -> Hello {
        let cwd = std::env::current_dir().unwrap_or_default();
        Hello { frontend, version: super::VERSION.into(), cwd, folder: None, any_version: false }
    }
}

/// Returns a value as one line of JSON.
///
/// # Errors
/// Fails when the value cannot be serialised.
pub fn line(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
