//! What every end-to-end test needs: a host or a session of its own, clients for both doors, and a check that nothing is left behind.

pub mod carets;
pub mod clients;
pub mod lsp;
pub mod place;
pub mod rpc;
pub mod world;
