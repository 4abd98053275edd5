//! One `Config`: defaults < the user's config.toml < the workspace's consort.toml < client settings < arguments.
