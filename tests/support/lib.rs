//! What every end-to-end test needs: a host of its own, clients for both doors, and a check that nothing is left behind.

pub mod clients;
pub mod place;
pub mod rpc;
