//! What every end-to-end test needs: a session over an image of its own, clients for both doors, and a check that nothing is left behind.

pub mod lsp;
pub mod world;
