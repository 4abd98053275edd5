//! Lines of standard input, with a time limit for each.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::framing::{self, lines::BlockingLines};

/// A reader of lines from a descriptor.
#[derive(Debug)]
pub(super) struct Lines {
    /// The lines, whose length is not limited here. The host has a limit, and answers longer lines.
    lines: BlockingLines<File>,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, with its line break if any.
    Some(Vec<u8>),
    /// The end of the input.
    End,
    /// No line arrived in time.
    Late,
}

impl Lines {
    pub(super) fn new(file: File) -> Lines {
        Lines { lines: BlockingLines::new(file) }
    }

    /// Waits for bytes that are not blank. Returns those that have arrived, which are not taken, or
    /// none at the end of the input.
    pub(super) fn first_bytes(&mut self) -> io::Result<&[u8]> {
        while self.lines.pending().trim_ascii().is_empty() && self.lines.fill()? {}
        Ok(self.lines.pending().trim_ascii_start())
    }

    /// Returns the next line. With `wait`, returns [`Line::Late`] if there is none within that
    /// time.
    pub(super) fn next(&mut self, wait: Option<Duration>) -> io::Result<Line> {
        let deadline = wait.map(|wait| Instant::now() + wait);
        loop {
            if let Some(line) = self.lines.buffered() {
                return Ok(Line::Some(line));
            }
            if let Some(deadline) = deadline
                && !framing::is_readable_by(self.lines.get_ref(), deadline)?
            {
                return Ok(Line::Late);
            }
            if !self.lines.fill()? {
                let rest = self.lines.unfinished();
                return Ok(if rest.is_empty() { Line::End } else { Line::Some(rest) });
            }
        }
    }
}

/// Waits until `file` has no reader any more. Returns at once for a file that is not a pipe or
/// socket.
pub(super) fn wait_for_reader_to_leave(file: &File) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::empty())], None) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;

    use super::*;

    /// Creates a pipe that programs of other tests do not inherit.
    fn pipe() -> (File, File) {
        let (read, write) = io::pipe().unwrap();
        (OwnedFd::from(read).into(), OwnedFd::from(write).into())
    }

    #[test]
    fn lines_come_whole_late_or_not_at_all() {
        let (read, mut write) = pipe();
        let mut lines = Lines::new(read);
        assert_eq!(lines.next(Some(Duration::from_millis(1))).unwrap(), Line::Late);
        write.write_all(b"a\nb\nc").unwrap();
        assert_eq!(lines.next(None).unwrap(), Line::Some(b"a\n".to_vec()));
        assert_eq!(lines.next(Some(Duration::ZERO)).unwrap(), Line::Some(b"b\n".to_vec()));
        assert_eq!(lines.next(Some(Duration::from_millis(1))).unwrap(), Line::Late);
        write.write_all(b"d\n").unwrap();
        assert_eq!(lines.next(None).unwrap(), Line::Some(b"cd\n".to_vec()));
        write.write_all(b"e").unwrap();
        drop(write);
        assert_eq!(lines.next(None).unwrap(), Line::Some(b"e".to_vec()));
        assert_eq!(lines.next(None).unwrap(), Line::End);
    }

    #[test]
    fn the_first_bytes_are_told_and_stay() {
        let (read, mut write) = pipe();
        let mut lines = Lines::new(read);
        write.write_all(b" \n a").unwrap();
        assert_eq!(lines.first_bytes().unwrap(), b"a");
        write.write_all(b"b\n").unwrap();
        drop(write);
        assert_eq!(lines.next(None).unwrap(), Line::Some(b" \n".to_vec()));
        assert_eq!(lines.next(None).unwrap(), Line::Some(b" ab\n".to_vec()));
        assert_eq!(lines.first_bytes().unwrap(), b"");
    }

    #[test]
    fn a_reader_that_left_is_noticed() {
        let (read, write) = pipe();
        drop(read);
        wait_for_reader_to_leave(&write).unwrap();
    }
}
