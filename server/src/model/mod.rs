//! Shapes that all layers share: plain data, without a protocol and without the image.

pub mod check;
pub mod diagnostic;
pub mod evaluation;
pub mod image;
