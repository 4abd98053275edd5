//! Output on the image's descriptors 1 and 2. It comes from foreign code, from child processes, and
//! from the SBCL runtime itself.
//!
//! While exactly one evaluation runs, the output belongs to that evaluation. Otherwise it is
//! reported line by line. All buffers are bounded, so that a child that prints endlessly uses up
//! neither memory nor the session's time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::rate::Rate;
use crate::locked::lock;
use crate::model::evaluation::Clipped;
use crate::model::image::OutputChunk;

/// The number of bytes kept at each end of a captured text.
const MAX_BYTES_PER_END: usize = 50_000;
/// The maximum number of bytes of a line that is reported by itself.
const LINE: usize = 4096;
/// The number of last bytes kept to explain the end of the process.
const LAST_BYTES: usize = 4096;
/// The maximum number of lines that explain the end of the process.
const LAST_LINES: usize = 15;
/// The maximum age of output that explains the end of the process.
const MAX_OUTPUT_AGE: Duration = Duration::from_secs(5);
/// The maximum number of bytes of one evaluation's output that are passed on while it runs.
const MAX_STREAMED_BYTES: usize = 1 << 20;

/// The beginning and the end of a text of any length.
#[derive(Debug, Default)]
struct Clip {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: usize,
}

impl Clip {
    fn push(&mut self, mut bytes: &[u8]) {
        let room = MAX_BYTES_PER_END - self.head.len().min(MAX_BYTES_PER_END);
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        if rest.len() > MAX_BYTES_PER_END {
            self.omitted += self.tail.len() + rest.len() - MAX_BYTES_PER_END;
            self.tail.clear();
            bytes = &rest[rest.len() - MAX_BYTES_PER_END..];
        } else {
            bytes = rest;
        }
        self.tail.extend(bytes);
        let over = self.tail.len().saturating_sub(MAX_BYTES_PER_END);
        self.omitted += over;
        self.tail.drain(..over);
    }

    /// Returns the text. Bytes that are not UTF-8 become U+FFFD.
    fn finish(mut self) -> Clipped {
        let tail = self.tail.make_contiguous();
        if self.omitted == 0 {
            self.head.extend_from_slice(tail); // a character may extend across both
            return Clipped { text: String::from_utf8_lossy(&self.head).into_owned(), omitted: 0 };
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(tail));
        Clipped { text: format!("{head}\n[{} bytes left out]\n{tail}", self.omitted), omitted: self.omitted }
    }
}

/// The output of one descriptor that is captured for one evaluation.
struct Capture {
    id: u64,
    clip: Clip,
    stream: Option<mpsc::UnboundedSender<OutputChunk>>,
    streamed: usize,
    /// The first bytes of a character whose other bytes have not been read.
    partial: Vec<u8>,
}

impl Capture {
    /// Passes output on while the evaluation runs. A character whose bytes come in two reads is
    /// passed on whole.
    fn stream(&mut self, bytes: &[u8], stderr: bool) {
        let Some(stream) = self.stream.as_ref().filter(|_| self.streamed < MAX_STREAMED_BYTES) else { return };
        self.streamed += bytes.len();
        self.partial.extend_from_slice(bytes);
        let complete = self.partial.len() - partial_length(&self.partial);
        let partial = self.partial.split_off(complete);
        let bytes = std::mem::replace(&mut self.partial, partial);
        send(stream, &bytes, stderr);
    }

    /// Returns the captured text, at the end of the evaluation.
    fn finish(self, stderr: bool) -> Clipped {
        if let Some(stream) = &self.stream {
            send(stream, &self.partial, stderr);
        }
        self.clip.finish()
    }
}

fn send(stream: &mpsc::UnboundedSender<OutputChunk>, bytes: &[u8], stderr: bool) {
    if !bytes.is_empty() {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let _ = stream.send(OutputChunk { text, stderr }); // the listener may have left
    }
}

/// Returns the number of last bytes that begin a character and do not complete it.
fn partial_length(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let first = last.iter().rposition(|byte| !(0x80..0xc0).contains(byte));
    let Some(begun) = first.map(|first| &last[first..]) else { return 0 };
    match std::str::from_utf8(begun) {
        Err(error) if error.error_len().is_none() => begun.len(),
        _ => 0,
    }
}

/// The receiver of lines that belong to no evaluation. The arguments are the line, and true if it
/// came from descriptor 2.
pub(crate) type LineSink = Arc<dyn Fn(String, bool) + Send + Sync>;

/// The output of one descriptor, and its receivers.
struct Sink {
    stderr: bool,
    captures: Vec<Capture>,
    line: Vec<u8>,
    /// The number of bytes that are left out at the end of `line`.
    cut: usize,
    rate: Rate,
    sink: LineSink,
    /// The last bytes, whether or not they belong to an evaluation.
    last: VecDeque<u8>,
    /// The time at which the last bytes arrived.
    last_at: Option<Instant>,
}

impl Sink {
    fn take(&mut self, bytes: &[u8]) {
        self.last_at = Some(Instant::now());
        self.last.extend(&bytes[bytes.len().saturating_sub(LAST_BYTES)..]);
        self.last.drain(..self.last.len().saturating_sub(LAST_BYTES));
        let [capture] = self.captures.as_mut_slice() else { return self.pass_lines(bytes) };
        capture.clip.push(bytes);
        capture.stream(bytes, self.stderr);
    }

    fn pass_lines(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(&piece[..room]);
            let rest = &piece[room..];
            self.cut += rest.strip_suffix(b"\n").unwrap_or(rest).len();
            if piece.ends_with(b"\n") {
                self.pass_line();
            }
        }
    }

    fn pass_line(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let (mut bytes, mut cut) = (std::mem::take(&mut self.line), std::mem::take(&mut self.cut));
        if cut > 0 {
            let partial = partial_length(&bytes);
            bytes.truncate(bytes.len() - partial);
            cut += partial;
        }
        let mut line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if cut > 0 {
            line += &format!(" [{cut} bytes left out]");
        }
        match self.rate.take() {
            None => {}
            Some(dropped) => {
                if dropped > 0 {
                    (self.sink)(format!("[{dropped} lines left out]"), self.stderr);
                }
                (self.sink)(line, self.stderr);
            }
        }
    }
}

/// A pipe from which one output descriptor of the image is read.
struct Pipe {
    descriptor: Receiver,
    sink: Mutex<Sink>,
}

impl Pipe {
    fn open(descriptor: OwnedFd, stderr: bool, sink: LineSink, runtime: &Handle) -> io::Result<Arc<Pipe>> {
        let _entered = runtime.enter();
        let descriptor = Receiver::from_owned_fd(descriptor)?;
        let sink = Sink {
            stderr,
            captures: Vec::new(),
            line: Vec::new(),
            cut: 0,
            rate: Rate::new(),
            sink,
            last: VecDeque::new(),
            last_at: None,
        };
        let pipe = Arc::new(Pipe { descriptor, sink: Mutex::new(sink) });
        runtime.spawn(pipe.clone().read_all());
        Ok(pipe)
    }

    async fn read_all(self: Arc<Self>) {
        let end = loop {
            if let Err(error) = self.descriptor.readable().await {
                break error;
            }
            let mut sink = lock(&self.sink);
            let mut bytes = [0; 8192];
            match self.descriptor.try_read(&mut bytes) {
                Ok(0) => break io::ErrorKind::UnexpectedEof.into(),
                Ok(count) => sink.take(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => break error,
            }
        };
        tracing::debug!(%end, "a descriptor of the image");
        lock(&self.sink).pass_line();
    }

    /// Reads the available output directly from the descriptor, because the async runtime may not
    /// have reported it yet.
    fn drain(&self, sink: &mut Sink) {
        let mut bytes = [0; 8192];
        // The number of reads is bounded, because a writer that never stops must not block the
        // caller.
        for _ in 0..64 {
            match rustix::io::read(self.descriptor.as_fd(), &mut bytes) {
                Ok(0) => return,
                Ok(count) => sink.take(&bytes[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return, // empty, or an error that the reading task meets too
            }
        }
    }

    fn begin(&self, id: u64, stream: Option<mpsc::UnboundedSender<OutputChunk>>) {
        let mut sink = lock(&self.sink);
        self.drain(&mut sink);
        sink.pass_line();
        sink.captures.push(Capture { id, clip: Clip::default(), stream, streamed: 0, partial: Vec::new() });
    }

    fn end(&self, id: u64) -> Clipped {
        let mut sink = lock(&self.sink);
        self.drain(&mut sink);
        let stderr = sink.stderr;
        match sink.captures.iter().position(|capture| capture.id == id) {
            Some(at) => sink.captures.swap_remove(at).finish(stderr),
            None => Clipped::default(),
        }
    }
}

/// The pipes of descriptors 1 and 2 of one image.
pub(crate) struct Pipes {
    out: Arc<Pipe>,
    err: Arc<Pipe>,
}

impl Pipes {
    /// Reads `out` and `err` until they end. Lines that belong to no evaluation go to `sink`.
    pub(crate) fn open(out: OwnedFd, err: OwnedFd, sink: LineSink, runtime: &Handle) -> io::Result<Pipes> {
        let out = Pipe::open(out, false, sink.clone(), runtime)?;
        Ok(Pipes { out, err: Pipe::open(err, true, sink, runtime)? })
    }

    /// Records the start of the evaluation `id`.
    pub(crate) fn begin(&self, id: u64, stream: Option<mpsc::UnboundedSender<OutputChunk>>) {
        self.out.begin(id, stream.clone());
        self.err.begin(id, stream);
    }

    /// Records the end of the evaluation `id`. Returns the output on descriptors 1 and 2 while it
    /// was the only evaluation.
    pub(crate) fn end(&self, id: u64) -> (Clipped, Clipped) {
        (self.out.end(id), self.err.end(id))
    }

    /// Returns the most recent output, to explain the end of the process. It is that on descriptor
    /// 2, or else that on 1.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        for pipe in [&self.err, &self.out] {
            let mut sink = lock(&pipe.sink);
            pipe.drain(&mut sink);
            sink.pass_line();
            if sink.last_at.is_none_or(|at| at.elapsed() > MAX_OUTPUT_AGE) {
                continue;
            }
            let text = String::from_utf8_lossy(sink.last.make_contiguous()).into_owned();
            let lines: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
            if !lines.is_empty() {
                return lines[lines.len().saturating_sub(LAST_LINES)..].to_vec();
            }
        }
        Vec::new()
    }
}

/// Appends the output of a descriptor to the output of the Lisp stream.
pub(crate) fn append(text: &mut Clipped, more: Clipped) {
    if more.text.is_empty() {
        return;
    }
    if !text.text.is_empty() && !text.text.ends_with('\n') {
        text.text.push('\n');
    }
    text.text.push_str(&more.text);
    text.omitted += more.omitted;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pipes(lines: &Arc<Mutex<Vec<String>>>) -> (std::io::PipeWriter, std::io::PipeWriter, Pipes) {
        let (out, out_writer) = std::io::pipe().unwrap();
        let (err, err_writer) = std::io::pipe().unwrap();
        let lines = lines.clone();
        let sink: LineSink = Arc::new(move |line, _| lock(&lines).push(line));
        (out_writer, err_writer, Pipes::open(out.into(), err.into(), sink, &Handle::current()).unwrap())
    }

    #[tokio::test]
    async fn what_is_printed_belongs_to_the_only_evaluation_and_to_nobody_when_there_are_two() {
        let lines = Arc::default();
        let (mut out, mut err, pipes) = pipes(&lines);
        out.write_all(b"before\n").unwrap();
        pipes.begin(1, None);
        out.write_all(b"alone").unwrap();
        err.write_all("gr\u{fc}n\n\u{ff}".as_bytes()).unwrap();
        pipes.out.drain(&mut lock(&pipes.out.sink));
        pipes.begin(2, None);
        out.write_all(b"whose?\n").unwrap();
        assert_eq!(pipes.end(2).0, Clipped::default());
        let (stdout, stderr) = pipes.end(1);
        assert_eq!((stdout.text.as_str(), stdout.omitted), ("alone", 0));
        assert_eq!(stderr.text, "gr\u{fc}n\n\u{ff}");
        assert_eq!(*lock(&lines), ["before", "whose?"]);
    }

    #[tokio::test]
    async fn a_character_of_two_reads_is_streamed_whole() {
        let (mut out, _err, pipes) = pipes(&Arc::default());
        let (stream, mut chunks) = mpsc::unbounded_channel();
        pipes.begin(1, Some(stream));
        for bytes in [&b"a\xe2"[..], b"\x82", b"\xac\xff\xf0\x9f", b"\x99\x82b\xc3"] {
            out.write_all(bytes).unwrap();
            pipes.out.drain(&mut lock(&pipes.out.sink));
        }
        let captured = pipes.end(1).0.text;
        let streamed: String = std::iter::from_fn(|| chunks.try_recv().ok()).map(|chunk| chunk.text).collect();
        assert_eq!(streamed, "a\u{20ac}\u{fffd}\u{1f642}b\u{fffd}");
        assert_eq!(captured, streamed);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_between_characters_and_says_so() {
        let lines = Arc::default();
        let (mut out, _err, pipes) = pipes(&lines);
        out.write_all(format!("{}\u{20ac}uro\nshort\n", "x".repeat(LINE - 1)).as_bytes()).unwrap();
        pipes.out.drain(&mut lock(&pipes.out.sink));
        assert_eq!(*lock(&lines), [format!("{} [6 bytes left out]", "x".repeat(LINE - 1)), "short".to_owned()]);
    }

    #[tokio::test]
    async fn a_flood_is_clipped_and_lines_are_rationed() {
        let lines = Arc::default();
        let (mut out, err, pipes) = pipes(&lines);
        pipes.begin(1, None);
        let flood = std::thread::spawn(move || {
            out.write_all(b"first ").unwrap();
            out.write_all(&vec![b'x'; 1_000_000]).unwrap();
            out.write_all(b" last").unwrap();
            out
        });
        while !flood.is_finished() {
            pipes.out.drain(&mut lock(&pipes.out.sink));
            tokio::task::yield_now().await;
        }
        let mut out = flood.join().unwrap();
        let (stdout, _) = pipes.end(1);
        assert!(stdout.text.starts_with("first xxx") && stdout.text.ends_with("xxx last"));
        assert_eq!(stdout.omitted, 1_000_011 - 2 * MAX_BYTES_PER_END);
        for _ in 0..200 {
            out.write_all(&b"line\n".repeat(100)).unwrap();
            pipes.out.drain(&mut lock(&pipes.out.sink));
        }
        let lines = lock(&lines).len();
        assert!((500..2000).contains(&lines), "{lines}");
        assert_eq!(pipes.last_lines().len(), LAST_LINES);
        drop(err);
    }
}
