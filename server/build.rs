//! Has the crate built again when the Lisp sources that it embeds have changed.
//!
//! `server/lisp` is a symbolic link to `lisp/`, so that `cargo package` takes the sources along;
//! in a published crate it is a directory.

fn main() {
    let checkout = "../lisp";
    let sources = if std::path::Path::new(checkout).is_dir() { checkout } else { "lisp" };
    println!("cargo:rerun-if-changed={sources}");
}
