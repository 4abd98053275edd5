//! The record of the breakpoints that agents have set. After a host was killed, the next host
//! restores them from the record. A new connection of an agent takes over those of its earlier
//! connection. An agent is identified by its bridge, which outlives hosts and connections.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounded_file;
use crate::locked::lock;
use crate::private_file;

/// The limit of one agent's part of the file, in bytes.
const MAX_PART_BYTES: usize = 64 << 10;
/// The limit of the file, in bytes. The file has room for more agents than a host has.
const MAX_FILE_BYTES: usize = 256 * MAX_PART_BYTES;

/// The interval of the checks whether a bridge without a connection has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A bridge, identified by its process id and start time. A later process with the same id has
/// another start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BridgeKey {
    /// The process id.
    pub process: u32,
    /// The start time of the process, in the system's ticks.
    pub started: u64,
}

/// A breakpoint in the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptPoint {
    pub(crate) line: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
}

/// The breakpoints of one agent, by their files.
pub(crate) type KeptFiles = BTreeMap<PathBuf, Vec<KeptPoint>>;

/// The breakpoints of a bridge in the file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    bridge: BridgeKey,
    files: KeptFiles,
}

/// The record of one bridge in memory.
#[derive(Debug, Default)]
struct Known {
    /// The number of the bridge's last connection.
    generation: u64,
    files: KeptFiles,
}

#[derive(Debug, Default)]
struct Bridges {
    known: HashMap<BridgeKey, Known>,
    /// The number of connections so far.
    connections: u64,
}

/// The record of all agents of a host.
#[derive(Debug)]
pub struct BreakpointRecords {
    path: PathBuf,
    lives: fn(&BridgeKey) -> bool,
    bridges: Mutex<Bridges>,
    /// Held while the file is written. True once the host leaves and writes no more.
    closed: Mutex<bool>,
}

impl BreakpointRecords {
    /// Reads the records of running bridges from the file, which a killed host may have left.
    /// Blocks.
    pub fn open(path: PathBuf, lives: fn(&BridgeKey) -> bool) -> Arc<BreakpointRecords> {
        let read = match bounded_file::read(&path, MAX_FILE_BYTES as u64) {
            Ok(bytes) => serde_json::from_slice::<Vec<Record>>(&bytes).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        let records = read.unwrap_or_else(|error| {
            tracing::warn!(%error, path = %path.display(), "the record of agents' breakpoints cannot be read; they are not set again");
            Vec::new()
        });
        let living = records.into_iter().filter(|record| lives(&record.bridge));
        let known = living.map(|record| (record.bridge, Known { generation: 0, files: record.files })).collect();
        let bridges = Mutex::new(Bridges { known, connections: 0 });
        Arc::new(BreakpointRecords { path, lives, bridges, closed: Mutex::new(false) })
    }

    /// Replaces the file by the records of running bridges, atomically. Removes the file if they
    /// have no breakpoints. Blocks.
    ///
    /// # Errors
    /// An I/O error. The file is then unchanged.
    pub fn write(&self) -> io::Result<()> {
        let closed = lock(&self.closed);
        if *closed {
            return Ok(());
        }
        let bytes = {
            let mut bridges = lock(&self.bridges);
            bridges.known.retain(|bridge, _| (self.lives)(bridge));
            let with = bridges.known.iter().filter(|(_, known)| !known.files.is_empty());
            let records: Vec<Record> =
                with.map(|(bridge, known)| Record { bridge: *bridge, files: known.files.clone() }).collect();
            if records.is_empty() { None } else { Some(serde_json::to_vec(&records)?) }
        };
        let Some(bytes) = bytes else {
            return match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        if bytes.len() > MAX_FILE_BYTES {
            let message = format!("the breakpoints of all agents take more than {MAX_FILE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        private_file::replace(&self.path, &bytes)
    }

    /// Prevents further writes, because the host leaves and removes the file. Blocks.
    pub fn close(&self) {
        *lock(&self.closed) = true;
    }

    /// Begins a connection of a bridge. Returns the bridge's part of the record, and the
    /// breakpoints that its agent had.
    pub(crate) fn connect(self: &Arc<Self>, bridge: BridgeKey) -> (BridgeRecord, KeptFiles) {
        let mut bridges = lock(&self.bridges);
        bridges.connections += 1;
        let generation = bridges.connections;
        let known = bridges.known.entry(bridge).or_default();
        known.generation = generation;
        (BridgeRecord { record: self.clone(), bridge, generation }, known.files.clone())
    }
}

/// The access of one connection to its bridge's part of the record.
#[derive(Debug, Clone)]
pub(crate) struct BridgeRecord {
    record: Arc<BreakpointRecords>,
    bridge: BridgeKey,
    generation: u64,
}

impl BridgeRecord {
    /// Records the agent's breakpoints.
    ///
    /// # Errors
    /// There are too many breakpoints, and the record is unchanged. Or the file cannot be written.
    pub(crate) async fn keep(&self, files: KeptFiles) -> io::Result<()> {
        let part = Record { bridge: self.bridge, files };
        if serde_json::to_vec(&part)?.len() > MAX_PART_BYTES {
            let message = format!(
                "with their paths and conditions, the breakpoints of an agent may take {MAX_PART_BYTES} bytes, and these take more; the \
                 earlier ones stay on record"
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let files = part.files;
        match lock(&self.record.bridges).known.get_mut(&self.bridge) {
            Some(known) if known.generation == self.generation => known.files = files,
            // A newer connection of the bridge has the record now.
            _ => return Ok(()),
        }
        let record = self.record.clone();
        tokio::task::spawn_blocking(move || record.write()).await.map_err(io::Error::other)?
    }

    /// Ends the connection. The breakpoints stay on record for the bridge's next connection, until
    /// the bridge ends.
    pub(crate) fn leave(self) {
        let has_some = {
            let mut bridges = lock(&self.record.bridges);
            match bridges.known.get(&self.bridge) {
                Some(known) if known.generation == self.generation && known.files.is_empty() => {
                    bridges.known.remove(&self.bridge);
                    false
                }
                Some(known) => known.generation == self.generation,
                None => false,
            }
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if has_some {
            runtime.spawn(self.ended());
        }
    }

    /// Waits until the bridge has ended or has another connection. If it has ended, removes it from
    /// the record.
    async fn ended(self) {
        let (record, bridge) = (self.record, self.bridge);
        loop {
            let is_last = |known: &Known| known.generation == self.generation;
            if !lock(&record.bridges).known.get(&bridge).is_some_and(is_last) {
                return;
            }
            let shared = record.clone();
            let looked = tokio::task::spawn_blocking(move || {
                if (shared.lives)(&bridge) {
                    return true;
                }
                if let Err(error) = shared.write() {
                    tracing::warn!(%error, "the breakpoints of an agent that left are still on record");
                }
                false
            });
            // Fails when the host leaves.
            if !looked.await.unwrap_or(false) {
                return;
            }
            crate::steady::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::patience;

    const BRIDGE: BridgeKey = BridgeKey { process: 7, started: 70 };
    const OTHER: BridgeKey = BridgeKey { process: 7, started: 71 };

    fn files(line: usize) -> KeptFiles {
        KeptFiles::from([("/w/a.lisp".into(), vec![KeptPoint { line, condition: Some("(> x 1)".into()) }])])
    }

    fn opened(dir: &Path) -> Arc<BreakpointRecords> {
        BreakpointRecords::open(dir.join("breakpoints.json"), |_| true)
    }

    #[tokio::test]
    async fn the_next_host_has_the_breakpoints_of_each_bridge_that_lives() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("breakpoints.json");
        let record = opened(dir.path());
        let (one, had) = record.connect(BRIDGE);
        assert_eq!(had, KeptFiles::new());
        let (other, _) = record.connect(OTHER);
        one.keep(files(5)).await.unwrap();
        other.keep(files(6)).await.unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the temporary file became it");

        assert_eq!(opened(dir.path()).connect(BRIDGE).1, files(5));
        let next = BreakpointRecords::open(file.clone(), |bridge| *bridge == OTHER);
        assert_eq!((next.connect(BRIDGE).1, next.connect(OTHER).1), (KeptFiles::new(), files(6)));

        // The directory was removed and made again.
        std::fs::remove_file(&file).unwrap();
        record.write().unwrap();
        assert_eq!(opened(dir.path()).connect(OTHER).1, files(6));
        std::fs::write(&file, "{").unwrap();
        assert_eq!(opened(dir.path()).connect(OTHER).1, KeptFiles::new());
    }

    #[tokio::test]
    async fn who_ends_is_forgotten_and_an_older_connection_takes_nothing_from_a_newer() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("breakpoints.json");
        let record = BreakpointRecords::open(file.clone(), |_| !ENDED.load(Ordering::SeqCst));
        let (older, _) = record.connect(BRIDGE);
        older.keep(files(5)).await.unwrap();
        let (newer, had) = record.connect(BRIDGE);
        assert_eq!(had, files(5));
        older.keep(KeptFiles::new()).await.unwrap();
        older.leave();
        assert_eq!(opened(dir.path()).connect(BRIDGE).1, files(5));
        newer.leave();
        assert_eq!(record.connect(BRIDGE).1, files(5), "the connection broke, and the bridge lives");
        let (last, _) = record.connect(BRIDGE);
        last.leave();
        ENDED.store(true, Ordering::SeqCst);
        let gone = tokio::task::spawn_blocking(move || patience::until("the file is removed", || !file.exists()));
        gone.await.unwrap();
    }

    #[tokio::test]
    async fn an_agent_with_too_many_breakpoints_is_told_and_costs_the_others_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let record = opened(dir.path());
        let (one, _) = record.connect(BRIDGE);
        let (other, _) = record.connect(OTHER);
        one.keep(files(5)).await.unwrap();
        let condition = Some("x".repeat(MAX_PART_BYTES));
        let long = KeptFiles::from([("/w/b.lisp".into(), vec![KeptPoint { line: 1, condition }])]);
        let error = one.keep(long).await.unwrap_err();
        assert!(error.to_string().contains("may take 65536 bytes"), "{error}");
        other.keep(files(6)).await.unwrap();
        let next = opened(dir.path());
        assert_eq!((next.connect(BRIDGE).1, next.connect(OTHER).1), (files(5), files(6)));
    }

    #[tokio::test]
    async fn bridges_that_ended_are_left_out_when_the_file_is_written() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        let dir = tempfile::tempdir().unwrap();
        let lives = |bridge: &BridgeKey| *bridge == OTHER || !ENDED.load(Ordering::SeqCst);
        let record = BreakpointRecords::open(dir.path().join("breakpoints.json"), lives);
        record.connect(BRIDGE).0.keep(files(5)).await.unwrap();
        assert_eq!(opened(dir.path()).connect(BRIDGE).1, files(5));
        ENDED.store(true, Ordering::SeqCst);
        record.connect(OTHER).0.keep(files(6)).await.unwrap();
        let next = opened(dir.path());
        assert_eq!((next.connect(BRIDGE).1, next.connect(OTHER).1), (KeptFiles::new(), files(6)));
    }

    #[tokio::test]
    async fn a_host_that_leaves_writes_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let record = opened(dir.path());
        let (one, _) = record.connect(BRIDGE);
        record.close();
        one.keep(files(5)).await.unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_is_told_of() {
        let dir = tempfile::tempdir().unwrap();
        let record = BreakpointRecords::open(dir.path().join("missing/breakpoints.json"), |_| true);
        let (one, _) = record.connect(BRIDGE);
        assert_eq!(one.keep(files(5)).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
