//! The record of a run in a file, event by event, so that a run that hangs or is killed leaves it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::history::Event;

/// The record.
pub(crate) struct Record {
    events: Vec<Event>,
    file: File,
    path: PathBuf,
}

impl Record {
    /// Begins a record in a file of `directory`, which is created if needed.
    pub(crate) fn begin(directory: &Path, seed: u64) -> Record {
        std::fs::create_dir_all(directory).expect("a directory");
        let path = directory.join(format!("soak-{seed}.jsonl"));
        Record { events: Vec::new(), file: File::create(&path).expect("a file"), path }
    }

    /// Adds an event and writes it to the file at once.
    pub(crate) fn push(&mut self, event: Event) {
        let line = serde_json::to_string(&event).expect("JSON") + "\n";
        self.file.write_all(line.as_bytes()).expect("the history can be written");
        self.events.push(event);
    }

    /// Returns the events and the file.
    pub(crate) fn end(self) -> (Vec<Event>, PathBuf) {
        (self.events, self.path)
    }
}

/// Reads the events of a file. A run that was killed may have left an incomplete last line.
pub(crate) fn read(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).expect("a history");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

#[test]
fn a_run_that_is_killed_leaves_its_history() {
    let place = tempfile::tempdir().expect("a directory");
    let mut record = Record::begin(place.path(), 7);
    record.push(Event::Step { number: 1 });
    record.push(Event::Fault { what: "killed".into() });
    let path = place.path().join("soak-7.jsonl");
    record.file.write_all(b"{\"event\": \"st").expect("a part of a line");
    // The record was not ended.
    assert!(matches!(read(&path).as_slice(), [Event::Step { number: 1 }, Event::Fault { .. }]));
    std::fs::write(&path, "").expect("a file");
    assert!(read(&path).is_empty());
}
