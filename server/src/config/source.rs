//! Where a setting comes from.

/// The source of a setting, which determines its permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The user's own config.toml: may set every key to any value.
    User,
    /// The workspace's consort.toml, which an agent or a third party may have written: see
    /// [`FromWorkspace`](super::keys::FromWorkspace).
    Workspace,
    /// An editor's settings, which may come with the workspace (`.vscode/settings.json`): these
    /// cannot disable confinement.
    Client,
}
