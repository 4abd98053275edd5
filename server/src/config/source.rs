//! The source of a setting.

/// The source of a setting, which determines its permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// The user's own config.toml, which may set every key to any value.
    User,
    /// The workspace's consort.toml, which an agent or a third party may have written
    /// ([`FromWorkspace`](super::keys::FromWorkspace)).
    Workspace,
    /// An editor's settings, which may come with the workspace (`.dir-locals.el`,
    /// `.helix/languages.toml`). They cannot disable confinement, and can only lower limits.
    #[default]
    Client,
    /// The settings of VS Code with the extension, whose values of approval and limits are only the
    /// user's own. They cannot disable confinement.
    OwnClient,
}
