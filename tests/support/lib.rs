//! What every end-to-end test needs: a world of its own (directories, host, image), clients for both doors, and a check that
//! nothing is left behind.

pub mod doors;
pub mod lone_image;
pub mod rpc;
pub mod world;
