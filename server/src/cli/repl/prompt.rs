//! The texts of prompts.

use consort::shown;

/// The prompt of a package.
pub(super) fn package(name: &str) -> String {
    format!("{}> ", short(name))
}

/// The prompt at a stop, with the number of the frame unless it is the innermost.
pub(super) fn at_stop(name: &str, level: u64, frame: usize) -> String {
    let frame = if frame == 0 { String::new() } else { format!(" frame {frame}") };
    format!("{} [{level}{frame}]> ", short(name))
}

fn short(name: &str) -> String {
    match name {
        "COMMON-LISP-USER" => "CL-USER".to_owned(),
        name => shown::line(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_name_package_stop_and_frame() {
        assert_eq!(package("COMMON-LISP-USER"), "CL-USER> ");
        assert_eq!(package("A\u{1b}[31m\nB"), "A\\u{1b}[31m B> ");
        assert_eq!(at_stop("SHOP", 1, 0), "SHOP [1]> ");
        assert_eq!(at_stop("SHOP", 2, 3), "SHOP [2 frame 3]> ");
    }
}
