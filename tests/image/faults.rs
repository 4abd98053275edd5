//! What a running image must survive.
