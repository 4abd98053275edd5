//! The connection to the host's debugger: requests, their answers, and other messages.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use consort::dap::client::Client;
use consort::host::election::Place;
use consort::host::hello::{Hello, Protocol};
use serde_json::{Value, json};

use super::super::output::Failure;
use super::interrupts;

/// A message of the host, or an interrupt.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message of the host.
    Message(Value),
    /// Ctrl-C.
    Interrupt,
}

/// An item in the channel of a link.
enum QueueItem {
    /// A message on the connection of this number. `None` is the end of the connection.
    Host(u64, Option<Value>),
    Interrupt,
}

/// The error that the connection has ended, because the host was stopped or killed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostEnded;

impl From<io::Error> for HostEnded {
    fn from(_: io::Error) -> HostEnded {
        HostEnded
    }
}

/// The connection to the host, made anew after a host has ended.
pub(super) struct Link {
    place: Place,
    client: Option<Client>,
    /// The number of the connection.
    number: u64,
    sender: Sender<QueueItem>,
    receiver: Receiver<QueueItem>,
    /// Items that arrived while an answer was awaited.
    waiting: VecDeque<Incoming>,
}

impl Link {
    /// Creates a link without a connection.
    pub(super) fn new(place: Place) -> Link {
        let (sender, receiver) = channel();
        Link { place, client: None, number: 0, sender, receiver, waiting: VecDeque::new() }
    }

    /// Makes Ctrl-C arrive as [`Incoming::Interrupt`] from now on, instead of ending the program.
    pub(super) fn catch_interrupts(&self) -> Result<(), Failure> {
        let interrupts = self.sender.clone();
        interrupts::catch(move || {
            // A failure is ignored: nobody receives once the program ends.
            let _ = interrupts.send(QueueItem::Interrupt);
        })?;
        Ok(())
    }

    /// Returns the place of the workspace's host.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns true if there is a connection that has not ended, as far as is known.
    pub(super) fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Connects to the host, and starts one if none runs.
    pub(super) fn connect(&mut self) -> Result<(), Failure> {
        let connected = self.place.connect_or_start(&Hello::new(Protocol::Dap))?;
        self.number += 1;
        self.waiting.clear();
        let (number, sender) = (self.number, self.sender.clone());
        self.client = Some(Client::new(connected.stream, move |message| {
            // A failure is ignored: nobody receives once the program ends.
            let _ = sender.send(QueueItem::Host(number, message));
        })?);
        let client = json!({
            "adapterID": "consort", "clientName": "consort repl", "linesStartAt1": true, "columnsStartAt1": true,
            "supportsConsortInput": true,
        });
        for (command, arguments) in [("initialize", client), ("attach", json!({})), ("configurationDone", json!({}))] {
            match self.ask(command, arguments) {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => return Err(Failure::cannot(why)),
                Err(HostEnded) => {
                    let why = "the host ended while it started; `consort doctor` says what is missing";
                    return Err(Failure::cannot(why));
                }
            }
        }
        Ok(())
    }

    /// Sends a request and returns its number.
    pub(super) fn send(&mut self, command: &str, arguments: Value) -> Result<u64, HostEnded> {
        let sent = self.client.as_mut().ok_or(HostEnded)?.send(command, arguments);
        if sent.is_err() {
            self.client = None;
        }
        Ok(sent?)
    }

    /// Waits for the next message or interrupt.
    pub(super) fn next(&mut self) -> Result<Incoming, HostEnded> {
        if let Some(arrived) = self.waiting.pop_front() {
            return Ok(arrived);
        }
        loop {
            let any = self.receiver.recv().map_err(|_| HostEnded)?;
            if let Some(arrived) = self.current(any)? {
                return Ok(arrived);
            }
        }
    }

    /// Returns the next message or interrupt, if one has arrived.
    pub(super) fn next_if_any(&mut self) -> Result<Option<Incoming>, HostEnded> {
        if let Some(arrived) = self.waiting.pop_front() {
            return Ok(Some(arrived));
        }
        while let Ok(any) = self.receiver.try_recv() {
            if let Some(arrived) = self.current(any)? {
                return Ok(Some(arrived));
            }
        }
        Ok(None)
    }

    /// Returns the message or interrupt of an item, or `None` for a message on an earlier
    /// connection.
    fn current(&mut self, any: QueueItem) -> Result<Option<Incoming>, HostEnded> {
        match any {
            QueueItem::Interrupt => Ok(Some(Incoming::Interrupt)),
            QueueItem::Host(number, _) if number != self.number => Ok(None),
            QueueItem::Host(_, Some(message)) => Ok(Some(Incoming::Message(message))),
            QueueItem::Host(_, None) => {
                self.client = None;
                Err(HostEnded)
            }
        }
    }

    /// Sends a request and waits for its answer. Other messages and interrupts are kept. The
    /// request must be one that the host answers by itself.
    pub(super) fn ask(&mut self, command: &str, arguments: Value) -> Result<Result<Value, String>, HostEnded> {
        let number = self.send(command, arguments)?;
        let mut others = VecDeque::new();
        loop {
            let arrived = self.next();
            match arrived {
                Ok(Incoming::Message(message)) if is_answer(&message, number) => {
                    others.append(&mut self.waiting);
                    self.waiting = others;
                    return Ok(answer(&message));
                }
                Ok(other) => others.push_back(other),
                Err(ended) => return Err(ended),
            }
        }
    }

    /// Sends a request as [`Link::ask`] does, but waits at most `limit`. Returns `None` if the
    /// request fails or is not answered in time.
    pub(super) fn ask_within(&mut self, command: &str, arguments: Value, limit: Duration) -> Option<Value> {
        let number = self.send(command, arguments).ok()?;
        let end = Instant::now() + limit;
        loop {
            let any = match self.receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(any) => any,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            };
            match self.current(any).ok()? {
                Some(Incoming::Message(message)) if is_answer(&message, number) => return answer(&message).ok(),
                Some(other) => self.waiting.push_back(other),
                None => {}
            }
        }
    }
}

/// Returns true if a message is the answer to the request of this number.
pub(super) fn is_answer(message: &Value, number: u64) -> bool {
    message["type"] == "response" && message["request_seq"] == number
}

/// Returns the body of an answer, or the message of a request that failed.
pub(super) fn answer(message: &Value) -> Result<Value, String> {
    if message["success"] == true {
        return Ok(message["body"].clone());
    }
    Err(message["message"].as_str().unwrap_or("the host gives no reason").to_owned())
}
