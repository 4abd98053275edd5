//! The clients of the session: their numbers, names and front ends.

/// The front end of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Frontend {
    /// An editor.
    Lsp,
    /// An agent.
    Mcp,
    /// The command line.
    Cli,
}

impl Frontend {
    /// Returns the name of a client's evaluation session.
    pub fn session(self, client: ClientId) -> String {
        let frontend = match self {
            Frontend::Lsp => "lsp",
            Frontend::Mcp => "mcp",
            Frontend::Cli => "cli",
        };
        format!("{frontend}-{}", client.0)
    }
}

/// A connected client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct ClientId(pub u64);

/// A client's front end and name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ClientInfo {
    /// The front end.
    pub frontend: Frontend,
    /// The client's own name and version, such as "Visual Studio Code 1.106". If the client gave
    /// none, the name of the front end.
    pub name: String,
}
