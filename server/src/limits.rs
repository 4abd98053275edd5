//! Errors of system calls that a resource limit of the process has caused.

use std::io;

/// Returns the next step after an error that a limit of the process or of the user has caused.
/// Returns `None` for other errors.
pub fn step(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("Raise the limit of open files (`ulimit -n`), or close programs that it includes."),
        libc::ENFILE => Some("The whole system has too many open files; close programs."),
        libc::EFBIG => Some("Raise the limit of the size of a file (`ulimit -f`)."),
        libc::EAGAIN => Some("Raise the limit of processes (`ulimit -u`), or end programs."),
        libc::ENOMEM => Some("Raise the limit of memory (`ulimit -v`), or end programs."),
        _ => None,
    }
}

/// Returns the message of an error, followed by the next step if a limit has caused the error.
pub fn explained(error: &io::Error) -> String {
    step(error).map_or_else(|| error.to_string(), |step| format!("{error}. {step}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_a_limit_has_caused_names_the_limit() {
        let files = explained(&io::Error::from_raw_os_error(libc::EMFILE));
        assert!(files.starts_with("Too many open files") && files.contains("`ulimit -n`"), "{files}");
        let other = io::Error::from_raw_os_error(libc::ENOENT);
        assert_eq!(explained(&other), other.to_string());
        assert_eq!(step(&io::Error::other("of no system call")), None);
    }
}
