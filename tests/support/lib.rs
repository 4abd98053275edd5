//! What every end-to-end test needs: a host of its own, clients for both doors, and a check that nothing is left behind.

pub mod clients;
pub mod doors;
pub mod lone_image;
pub mod place;
pub mod rpc;
pub mod wire;
pub mod world;
