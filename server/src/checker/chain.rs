//! Chains: the processes that a check of a text leaves behind (docs/wire.md, "A chain"). They
//! answer an edit of the text by compiling only what the edit changes. If a chain ends, the caller
//! checks the whole text instead, which only takes longer.

pub(super) mod memory;
mod protocol;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

pub use self::protocol::ChainAnswer;
use self::protocol::KeeperProtocol;
use super::copy::{BUSY_TRIES, Runner};
use super::ending::Failed;
use super::forked::ForkedCheck;
use super::job::CopyJob;
use super::report::LINE_LIMIT;
use super::scratch_use::Watch;
use super::turn::{Queue, Turn};
use super::warm::world;
use crate::image::api::CheckParams;
use crate::image::instance::Instance;
use crate::image::lines::Lines;
use crate::image::process;
use crate::model::image::ImageError;
use crate::steady::{sleep, timeout};
use crate::text::Span;
use crate::text::expected::Expected;

/// The divisor of a check's deadline that gives the time limit for the first process to connect,
/// and for an edit to be answered. A check of the whole text answers long before.
const DEADLINE_DIVISOR: u32 = 4;
/// The time limit for a chain to end when it is told to, and to accept an edit.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit of the wait for an image at rest when a chain is made.
const REST_TIMEOUT_NEW_CHAIN: Duration = Duration::from_secs(5);
/// The time limit of the wait for an image at rest when an edit comes.
const REST_TIMEOUT_EDIT: Duration = Duration::from_millis(60);
/// The interval at which the memory of a working chain is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which the memory of the machine is checked.
const SHORTAGE_INTERVAL: Duration = Duration::from_secs(5);
/// The time of compiling between two checkpoints, in milliseconds.
const CHECKPOINT_SPACING_MS: u32 = 15;
/// The same for texts of more bytes than `LARGE_TEXT_BYTES`.
const CHECKPOINT_SPACING_LARGE_MS: u32 = 40;
const LARGE_TEXT_BYTES: usize = 200_000;
/// The maximum number of checkpoints of one chain.
const MAX_CHECKPOINTS: u32 = 48;

/// The reason why there is no chain, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainEnd {
    /// The image has changed, or code of the user's runs in it.
    #[error("the image changed, or code, a thread or a timer of yours runs in it")]
    Changed,
    /// The chain failed, passed a limit, or could not be made.
    #[error("{0}")]
    Failed(String),
    /// There are no chains on this system, or with these settings.
    #[error("{0}")]
    Impossible(&'static str),
}

/// An edit: the difference between a text and the chain's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainEdit {
    /// The number of the edit, greater than those of earlier edits.
    pub number: u64,
    /// The span of the chain's text that is replaced.
    pub span: Span,
    /// The text in its place.
    pub insert: String,
    /// The spans of the new text that are read as white space.
    pub withheld: Vec<Span>,
    /// The length of the new text in characters.
    pub length: usize,
}

/// The parameters of a check that leaves a chain behind.
#[derive(Serialize)]
struct ChainParams {
    #[serde(flatten)]
    check: CheckParams,
    chain: CheckpointSettings,
}

#[derive(Serialize)]
struct CheckpointSettings {
    spacing_ms: u32,
    checkpoints: u32,
}

/// A message to the keeper.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum KeeperRequest<'a> {
    Edit { number: u64, start: usize, end: usize, insert: &'a str, withheld: &'a [Span] },
    Cursor(usize),
}

/// A line of the first process, before the chain is ready for edits.
#[derive(Deserialize)]
struct StartLine {
    token: Option<String>,
    /// `Some(None)` if there is no chain.
    #[serde(default, deserialize_with = "present")]
    chain: Option<Option<serde::de::IgnoredAny>>,
}

fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<serde::de::IgnoredAny>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// A chain. Dropping it kills its processes.
pub struct Chain {
    forked: ForkedCheck,
    lines: Lines<OwnedReadHalf>,
    orders: OwnedWriteHalf,
    head: Pid,
    image: Pid,
    protocol: KeeperProtocol,
    /// The state of the image at the fork.
    world: u64,
    package: Option<String>,
    /// The number of bytes that each process may have to itself.
    limit: u64,
    taken: u64,
    /// The time limit of an answer.
    answer_timeout: Duration,
    /// The deadline of the answer that is awaited.
    due: Option<Instant>,
    /// The files that code under check leaves in the directory.
    contents: Watch,
    watch: Interval,
    shortage: Interval,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Chain").field("head", &self.head).finish_non_exhaustive()
    }
}

fn failed(why: impl Into<String>) -> ChainEnd {
    ChainEnd::Failed(why.into())
}

/// Returns the reason for the end of a chain's processes. `alone` is true if the image did not end.
fn ended(alone: bool) -> ChainEnd {
    if alone { failed("its processes have ended") } else { ChainEnd::Changed }
}

fn of_image(error: &ImageError) -> ChainEnd {
    match error {
        ImageError::Busy(_) | ImageError::Lost { .. } => ChainEnd::Changed,
        error => failed(error.to_string()),
    }
}

fn of_copy(why: Failed) -> ChainEnd {
    match why {
        Failed::Busy(_) | Failed::Locked(_) | Failed::Gone(_) => ChainEnd::Changed,
        Failed::Unforkable(why) | Failed::Unresponsive(why) => failed(why),
        Failed::Error(error) => of_image(&error),
    }
}

/// Returns the state of the image once it is at rest, or `None` if it is not at rest within
/// `limit`. An image that forks a copy for the next check is not at rest.
async fn at_rest(instance: &Instance, package: Option<&str>, limit: Duration) -> Option<u64> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        let now = world(instance, package).await;
        if now.is_some() || begun.elapsed() >= limit {
            return now;
        }
        sleep(pause).await;
        pause *= 2;
    }
}

/// Forks the first process of a chain, and waits until it connects.
async fn fork(
    runner: &Runner,
    job: &CopyJob<ChainParams>,
    permit: &Arc<Turn>,
    limit: Duration,
) -> Result<(ForkedCheck, UnixStream), Failed> {
    let mut forked = runner.forker.start(job, Some(permit.clone()), false).await?;
    let connection = forked.connection(limit).await?;
    Ok((forked, connection))
}

/// Makes a chain for a text; see [`super::Checker::chain`].
pub(super) async fn start(runner: &Runner, params: CheckParams) -> Result<Chain, ChainEnd> {
    let instance = runner.forker.runtime.instance().await.map_err(|error| of_image(&error))?;
    let features = &instance.ready.features;
    let impossible = [
        (runner.forker.workers.is_needed(&instance), "checks are made in a second process"),
        (!params.confine, "checks are not confined"),
        (!features.chain, "this SBCL lacks what they need"),
        (features.landlock == 0, "this system lacks Landlock"),
    ];
    if let Some((_, why)) = impossible.into_iter().find(|(is, _)| *is) {
        return Err(ChainEnd::Impossible(why));
    }
    let image = i32::try_from(instance.ready.pid).ok().and_then(Pid::from_raw).ok_or(ChainEnd::Changed)?;
    if let Some(why) = memory::shortage(image) {
        return Err(failed(why));
    }
    let spacing_ms =
        if params.text.len() > LARGE_TEXT_BYTES { CHECKPOINT_SPACING_LARGE_MS } else { CHECKPOINT_SPACING_MS };
    let job = CopyJob {
        op: "check",
        what: "a check",
        deadline: params.deadline,
        memory: params.memory,
        threads: false,
        first: (PathBuf::new(), 0),
        expected: Expected::default(),
        clean_needs_exit: false,
        files: None,
        params: ChainParams { check: params, chain: CheckpointSettings { spacing_ms, checkpoints: MAX_CHECKPOINTS } },
    };
    let within = job.time_limit().map_err(|error| of_image(&error))?;
    let package = job.params.check.package.as_deref();
    // The wait is made before the turn is taken, so that other copies need not wait, too. An image
    // is never at rest while a program runs in it.
    at_rest(&instance, package, REST_TIMEOUT_NEW_CHAIN).await.ok_or(ChainEnd::Changed)?;
    let permit = runner.turns.turn(Queue::Checks).await.map_err(|error| of_image(&error))?;
    let before = at_rest(&instance, package, REST_TIMEOUT_EDIT).await.ok_or(ChainEnd::Changed)?;
    let mut tries = 0;
    let (forked, connection) = loop {
        match fork(runner, &job, &permit, within / DEADLINE_DIVISOR).await {
            Err(Failed::Busy(_)) if tries < BUSY_TRIES => {
                sleep(runner.waits.busy * 2_u32.pow(tries)).await;
                tries += 1;
            }
            forked => break forked.map_err(of_copy)?,
        }
    };
    let (read, orders) = connection.into_split();
    let ChainParams { check: params, .. } = job.params;
    if !forked.is_of(&instance)
        || at_rest(&instance, params.package.as_deref(), REST_TIMEOUT_NEW_CHAIN).await != Some(before)
    {
        return Err(ChainEnd::Changed);
    }
    process::leads_group(forked.pid());
    let head = i32::try_from(forked.pid()).ok().and_then(Pid::from_raw).ok_or(ChainEnd::Changed)?;
    let ticks = |every| {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let mut chain = Chain {
        limit: params.memory.saturating_add(forked.baseline_memory()),
        contents: Watch::new(forked.scratch(), Some(head)),
        forked,
        lines: Lines::new(read, LINE_LIMIT),
        orders,
        head,
        image,
        protocol: KeeperProtocol::default(),
        world: before,
        package: params.package,
        taken: 0,
        answer_timeout: within / DEADLINE_DIVISOR,
        due: Some(Instant::now() + within),
        watch: ticks(POLL_INTERVAL),
        shortage: ticks(SHORTAGE_INTERVAL),
    };
    chain.wait_until_ready().await?;
    chain.forked.release();
    drop(permit);
    chain.taken = chain.measured().await.ok_or_else(|| failed("the host is leaving"))?;
    Ok(chain)
}

impl Chain {
    /// Waits until the text is checked and the processes wait for edits.
    async fn wait_until_ready(&mut self) -> Result<(), ChainEnd> {
        let token = self.forked.token().unwrap_or_default().to_owned();
        let mut trusted = false;
        loop {
            let line = self.line().await?;
            // Other lines of the check may have any form.
            let said = serde_json::from_slice(&line).unwrap_or(StartLine { token: None, chain: None });
            match said {
                StartLine { token: Some(said), .. } if said == token => trusted = true,
                _ if !trusted => return Err(failed("it did not send the token that it was given")),
                StartLine { chain: Some(Some(_)), .. } => {
                    self.due = None;
                    return Ok(());
                }
                StartLine { chain: Some(None), .. } => return Err(failed("the text cannot have a chain")),
                StartLine { .. } => {}
            }
        }
    }

    /// Returns an estimate of the memory that the chain took when it became ready, in bytes.
    pub fn memory_used(&self) -> u64 {
        self.taken
    }

    /// Returns a future that measures the memory that the chain takes, in bytes.
    pub fn measured(&self) -> impl Future<Output = Option<u64>> + Send + use<> {
        let (head, image) = (self.head, self.image);
        async move { tokio::task::spawn_blocking(move || memory::memory_beyond_image(head, image)).await.ok() }
    }

    /// Sends an edit, after which no earlier edit is answered. Returns false, and sends nothing, if
    /// the image is not at rest.
    ///
    /// # Errors
    /// The chain has ended or is of no use any more.
    pub async fn edit(&mut self, edit: &ChainEdit) -> Result<bool, ChainEnd> {
        match at_rest(self.forked.instance(), self.package.as_deref(), REST_TIMEOUT_EDIT).await {
            None => return Ok(false),
            Some(now) if now != self.world => return Err(ChainEnd::Changed),
            Some(_) => {}
        }
        let ChainEdit { number, span, insert, withheld, length } = edit;
        self.send(&KeeperRequest::Edit { number: *number, start: span.start, end: span.end, insert, withheld }).await?;
        self.protocol.sent(*number, *length);
        self.due = Some(Instant::now() + self.answer_timeout);
        Ok(true)
    }

    /// Tells the keeper the place in the chain's text at which the next edit may be.
    ///
    /// # Errors
    /// As [`Chain::edit`].
    pub async fn cursor(&mut self, at: usize) -> Result<(), ChainEnd> {
        self.send(&KeeperRequest::Cursor(at)).await
    }

    async fn send(&mut self, request: &KeeperRequest<'_>) -> Result<(), ChainEnd> {
        let mut line = serde_json::to_vec(request).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        match timeout(END_TIMEOUT, self.orders.write_all(&line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.lost().await), // nobody reads
            Err(_) => Err(failed("it does not take edits any more")),
        }
    }

    /// Returns the next answer to the last edit. May be dropped and called again.
    ///
    /// # Errors
    /// The chain has ended or is of no use any more.
    pub async fn answer(&mut self) -> Result<ChainAnswer, ChainEnd> {
        loop {
            let line = self.line().await?;
            if let Some(answer) = self.protocol.handle_line(&line).map_err(failed)? {
                if !self.protocol.awaits() {
                    self.due = None;
                }
                return Ok(answer);
            }
        }
    }

    /// Returns the next line, within the limits.
    async fn line(&mut self) -> Result<Vec<u8>, ChainEnd> {
        loop {
            let due = self.due;
            let late = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                line = self.lines.next() => return match line {
                    Ok(Some(line)) => Ok(line.to_vec()),
                    Ok(None) => Err(self.lost().await),
                    Err(error) => Err(failed(error.to_string())),
                },
                () = late => return Err(failed("it took too long")),
                _ = self.watch.tick(), if due.is_some() => {
                    if memory::one_exceeds(self.head, self.limit.saturating_sub(self.contents.memory())) {
                        return Err(failed("it took too much memory"));
                    }
                    if let Some(what) = self.contents.exceeded_limit().await {
                        return Err(failed(what));
                    }
                }
                _ = self.shortage.tick() => {
                    if let Some(why) = memory::shortage(self.image) {
                        return Err(failed(why));
                    }
                }
                alone = self.forked.ended() => return Err(ended(alone)),
            }
        }
    }

    /// Returns the reason for the end of the connection. When an image ends, all its copies end.
    async fn lost(&mut self) -> ChainEnd {
        ended(timeout(END_TIMEOUT, self.forked.ended()).await.unwrap_or(true))
    }

    /// Ends the processes in order, and kills those that are left after two seconds.
    pub async fn end(self) {
        let Chain { mut forked, orders, lines, .. } = self;
        drop((orders, lines));
        let _ = timeout(END_TIMEOUT, forked.ended()).await; // dropping `forked` kills what is left
    }
}
