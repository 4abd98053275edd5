//! The actor that owns documents, jobs and the image handle.
