//! A client of the Debug Adapter Protocol, for commands in a terminal.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::framing::content_length::{self, Frame, FrameBuffer};

/// The maximum length of a message, in bytes.
const MAX_BODY: usize = 128 << 20;
/// The size of one read, in bytes.
const READ_SIZE: usize = 1 << 16;

/// A connection to the debugger of a host.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    seq: u64,
}

impl Client {
    /// Creates a client and starts a thread that reads messages from `stream`. The thread calls
    /// `on_message` with the messages in order, and with `None` at the end of the connection.
    ///
    /// # Errors
    /// The stream could not be duplicated.
    pub fn new(stream: UnixStream, on_message: impl Fn(Option<Value>) + Send + 'static) -> io::Result<Client> {
        let mut read = stream.try_clone()?;
        std::thread::spawn(move || {
            // An error is not reported: `on_message` receives `None` in any case.
            let _ = read_messages(&mut read, &|message| on_message(Some(message)));
            on_message(None);
        });
        Ok(Client { stream, seq: 0 })
    }

    /// Sends a request and returns its sequence number.
    ///
    /// # Errors
    /// The request could not be written, as after the end of the connection.
    pub fn send(&mut self, command: &str, arguments: Value) -> io::Result<u64> {
        self.seq += 1;
        let request = json!({"seq": self.seq, "type": "request", "command": command, "arguments": arguments});
        self.stream.write_all(&content_length::framed(request.to_string().as_bytes()))?;
        Ok(self.seq)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The shutdown ends the reading thread. An error means that the connection has ended.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn read_messages(read: &mut impl Read, on_message: &dyn Fn(Value)) -> io::Result<()> {
    let mut buffer = FrameBuffer::new(MAX_BODY);
    let mut chunk = vec![0; READ_SIZE];
    loop {
        while let Some(frame) = buffer.next() {
            match frame {
                Frame::Body(body) => on_message(serde_json::from_slice(body)?),
                Frame::TooLong(length) => tracing::warn!(length, "a message of the host was skipped: it is too long"),
                Frame::Malformed(why) => tracing::warn!(why, "a message of the host was skipped"),
            }
        }
        match read.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => buffer.room().extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn messages_come_in_order_and_then_the_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (sender, messages) = channel();
        let mut client = Client::new(ours, move |message| sender.send(message).unwrap()).unwrap();
        let two = [content_length::framed(b"{\"a\":1}"), content_length::framed(b"{\"a\":2}")].concat();
        theirs.write_all(&two).unwrap();
        assert_eq!(client.send("threads", json!({})).unwrap(), 1);
        let mut sent = [0; 16];
        theirs.read_exact(&mut sent).unwrap();
        assert_eq!(&sent, b"Content-Length: ");
        drop(theirs);
        assert_eq!(messages.iter().take(3).collect::<Vec<_>>(), [Some(json!({"a": 1})), Some(json!({"a": 2})), None]);
    }
}
