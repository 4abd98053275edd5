//! Signals that would end the host, although nobody sends them to end it: those of timers and
//! profilers, those for a program's own use, and the one for a file beyond the limit of its size.

const SIGNALS: [libc::c_int; 6] =
    [libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGVTALRM, libc::SIGPROF, libc::SIGXFSZ];

/// Has these signals do nothing in this process. A write beyond the limit of a file's size then
/// fails with an error. Programs that this process starts have the default actions, because they
/// inherit ignored signals, but no handlers.
#[allow(unsafe_code)]
pub fn have_no_effect() {
    extern "C" fn nothing(_: libc::c_int) {}
    for signal in SIGNALS {
        // SAFETY: an action of zeros is valid, and its handler does nothing.
        let failed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if failed != 0 {
            tracing::warn!(signal, "a signal would still end the host: {}", std::io::Error::last_os_error());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_signal_does_not_end_the_process_and_a_program_does_not_inherit_that() {
        have_no_effect();
        let me = rustix::process::getpid();
        for signal in [rustix::process::Signal::USR2, rustix::process::Signal::ALARM] {
            rustix::process::kill_process(me, signal).unwrap();
        }
        let status = std::process::Command::new("sh").args(["-c", "kill -USR2 $$; exit 7"]).status().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGUSR2));
    }
}
