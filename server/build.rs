//! The Lisp of `lisp/` is embedded in the binary: build again when it changes.

fn main() {
    println!("cargo:rerun-if-changed=../lisp");
}
