//! Changes that the user's code made to the image's process, after which copies of it cannot work.

/// Returns a message if the image's process has another user or another root directory than the
/// host.
pub(super) fn change_of(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let user = effective_user(&status)?;
    let ours = rustix::process::geteuid().as_raw();
    if user != ours {
        return Some(format!(
            "The image's process is of the user {user} since code in it called setuid, and not of {ours} any more, \
             so its copies have no directory to work in: restart the image."
        ));
    }
    let root = std::fs::read_link(format!("/proc/{pid}/root")).ok()?;
    let here = std::fs::read_link("/proc/self/root").ok()?;
    (root != here).then(|| {
        let root = root.display();
        format!("Code in the image has changed its root directory (chroot) to {root}, where its copies have no directory to work in: restart the image.")
    })
}

/// Returns the effective user in a process's `/proc/PID/status`.
fn effective_user(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_user_is_the_second_number() {
        assert_eq!(effective_user("Name:\tsbcl\nUid:\t0\t65534\t0\t65534\nGid:\t0\t0\t0\t0\n"), Some(65_534));
        assert_eq!(effective_user("Name:\tsbcl\n"), None);
    }

    #[test]
    fn a_process_that_is_as_this_one_has_no_change() {
        assert_eq!(change_of(std::process::id()), None);
    }
}
