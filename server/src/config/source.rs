//! The source of a setting.

/// The source of a setting, which determines its permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// The user's own config.toml: may set every key to any value.
    User,
    /// The workspace's consort.toml, which an agent or a third party may have written: see
    /// [`FromWorkspace`](super::keys::FromWorkspace).
    Workspace,
    /// An editor's settings, which may come with the workspace (`.dir-locals.el`,
    /// `.helix/languages.toml`): these cannot disable confinement, and only lower limits.
    #[default]
    Client,
    /// The settings of an editor that sends the user's own values of approval and limits alone: VS
    /// Code with the extension. These cannot disable confinement.
    OwnClient,
}
