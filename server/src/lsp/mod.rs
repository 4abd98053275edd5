//! Door 1: editors, over LSP. Translates between the protocol and the session; knows nothing of Lisp or of the image.

mod frames;
mod transport;

pub use transport::Ended;
