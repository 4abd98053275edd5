//! The answer of `profile-code`: rows, a call tree and folded stacks made from sampled stacks, and
//! the contract's text.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::backtrace;
use super::clip::clip;
use super::evaluate::Evaluation;
use crate::image::api::profile::{Profile, ProfileOutcome, ProfileParams};
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus, EvalWarning};
use crate::model::profile::ProfileMode;

mod render;

pub use render::render;

/// The maximum number of rows in the table; one more row sums the rest. The data (`rows`) has up to
/// twice as many.
const TABLE_ROWS: usize = 25;
/// The maximum number of functions in the call tree. Those with fewer samples are summed in a
/// sibling `(Other functions)`, which does not count.
const TREE_NODES: usize = 300;
/// The maximum depth of the call tree.
const TREE_DEPTH: usize = 60;
/// The maximum number of folded stacks reported, the most frequent first.
const FOLDED: usize = 300;

/// The format of the text of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportFormat {
    /// A table.
    Flat,
    /// A tree.
    Graph,
}

/// The settings of a request that its report repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileSettings {
    /// The sampled quantity.
    pub mode: ProfileMode,
    /// Seconds between samples.
    pub interval: f64,
    /// The format of the text.
    pub report: ReportFormat,
}

impl ProfileSettings {
    /// Returns the operation that profiles code, given the name of the client's evaluation session.
    /// `timeout` is in seconds.
    pub fn operation(
        self,
        code: String,
        package: Option<String>,
        max_samples: u32,
        timeout: f64,
    ) -> impl FnOnce(String) -> ProfileParams + Send + 'static {
        let ProfileSettings { mode, interval, .. } = self;
        move |session| ProfileParams { session, code, package, mode, interval, max_samples, timeout }
    }
}

/// A row of the table: a function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The name of the function.
    pub function: String,
    /// The samples in the function itself, and in the compiler's arithmetic functions that it
    /// calls.
    pub samples: u64,
    /// The samples in the function itself, as in the call tree.
    #[serde(skip)]
    pub leaf_samples: u64,
    /// `samples` as a percentage.
    pub self_percent: f64,
    /// `self_percent` summed over this row and those before it.
    pub cumulative_percent: f64,
    /// The samples in the function and its callees, as a percentage.
    pub inclusive_percent: f64,
    /// The bytes that the function allocated, in mode `alloc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A node of the call tree: a function, called through the functions of its ancestors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Node {
    /// The name of the function.
    pub function: String,
    /// The samples in the function and its callees.
    pub samples: u64,
    /// `samples` as a percentage.
    pub percent: f64,
    /// The samples in the function itself; at the limit of depth, also those in its callees.
    pub own: u64,
    /// The callees, the most frequent first. The sum of their samples and `own` is `samples`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// The report of a profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProfileReport {
    /// The status of the evaluation.
    pub status: EvalStatus,
    /// The last form's values, printed.
    pub values: Vec<String>,
    /// `cpu`, `time` or `alloc`.
    pub mode: String,
    /// The number of all samples.
    pub samples: u64,
    /// The wall-clock time, in seconds.
    pub seconds: f64,
    /// The number of bytes allocated in all.
    pub bytes: u64,
    /// The functions by [`Row::samples`], the greatest number first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// The roots of the call tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<Node>,
    /// The folded stacks, `a;b;c N`, outermost frame first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folded: Vec<String>,
    /// The error, unless the status is `ok`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "backtrace::serialize")]
    pub error: Option<EvalError>,
    /// Standard output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Error and trace output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The warnings of the evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The number of samples below which the text warns that there are too few.
const MIN_SAMPLES: u64 = 10;

impl ProfileReport {
    /// Creates the report of code that did not run, or whose result is lost.
    pub fn failed(status: EvalStatus, kind: String, message: String) -> ProfileReport {
        ProfileReport {
            status,
            values: Vec::new(),
            mode: String::new(),
            samples: 0,
            seconds: 0.0,
            bytes: 0,
            rows: Vec::new(),
            tree: Vec::new(),
            folded: Vec::new(),
            error: Some(EvalError::new(kind, message)),
            stdout: String::new(),
            stderr: String::new(),
            warnings: Vec::new(),
        }
    }

    /// Builds the report from the image's answer and the request's settings.
    pub fn new(answer: ProfileOutcome, settings: &ProfileSettings) -> ProfileReport {
        let ProfileOutcome { outcome, profile } = answer;
        let EvalOutcome { status, values, stdout, stderr, warnings, error, .. } = Evaluation::from(outcome).outcome;
        let samples = profile.stacks.iter().map(|stack| stack.count).sum();
        let bytes = (settings.mode == ProfileMode::Alloc).then_some(profile.bytes);
        ProfileReport {
            status,
            values: values.into_iter().map(|value| value.text).collect(),
            mode: mode_name(settings.mode).into(),
            samples,
            seconds: (profile.milliseconds.max(0.0) / 10.0).round() / 100.0,
            bytes: profile.bytes,
            rows: rows(&profile, samples, bytes),
            tree: tree(&profile, samples),
            folded: folded(&profile),
            error,
            stdout: stdout.text,
            stderr: stderr.text,
            warnings: warnings.into_iter().map(|EvalWarning { kind, message }| format!("{kind}: {message}")).collect(),
        }
    }
}

fn mode_name(mode: ProfileMode) -> &'static str {
    match mode {
        ProfileMode::Cpu => "cpu",
        ProfileMode::Time => "time",
        ProfileMode::Alloc => "alloc",
    }
}

/// Returns a percentage, rounded to one decimal place.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (1000.0 * part as f64 / whole as f64).round() / 10.0 }
}

fn name(profile: &Profile, index: usize) -> &str {
    profile.names.get(index).map_or("?", String::as_str)
}

/// Returns true for a function of SBCL's generic arithmetic, which compiled code calls for operands
/// of undeclared type. The table counts the function's time as the caller's own. The call tree and
/// the folded stacks list the function by name.
fn is_arithmetic(name: &str) -> bool {
    name.starts_with("SB-VM::GENERIC-") || name.starts_with("SB-KERNEL:TWO-ARG-")
}

fn rows(profile: &Profile, samples: u64, bytes: Option<u64>) -> Vec<Row> {
    let (mut attributed, mut leaf, mut inclusive): (HashMap<usize, u64>, HashMap<usize, u64>, HashMap<usize, u64>) =
        Default::default();
    for stack in &profile.stacks {
        let Some(last) = stack.frames.last() else { continue };
        *leaf.entry(*last).or_default() += stack.count;
        let caller = stack.frames.iter().rev().find(|frame| !is_arithmetic(name(profile, **frame)));
        *attributed.entry(*caller.unwrap_or(last)).or_default() += stack.count;
        // A recursive function counts once.
        for frame in stack.frames.iter().collect::<HashSet<_>>() {
            *inclusive.entry(*frame).or_default() += stack.count;
        }
    }
    let mut all: Vec<(usize, u64, u64)> =
        inclusive.iter().map(|(index, total)| (*index, attributed.get(index).copied().unwrap_or(0), *total)).collect();
    all.sort_by(|a, b| (b.1, b.2).cmp(&(a.1, a.2)).then_with(|| name(profile, a.0).cmp(name(profile, b.0))));
    let bytes_of = |part: u64| {
        let part = u128::from(part) * u128::from(bytes.unwrap_or(0)) / u128::from(samples.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    let mut sum = 0;
    all.into_iter()
        .map(|(index, count, total)| {
            sum += count;
            Row {
                function: name(profile, index).to_owned(),
                samples: count,
                leaf_samples: leaf.get(&index).copied().unwrap_or(0),
                self_percent: percent(count, samples),
                cumulative_percent: percent(sum, samples),
                inclusive_percent: percent(total, samples),
                bytes: bytes.map(|_| bytes_of(count)),
            }
        })
        .take(2 * TABLE_ROWS)
        .collect()
}

/// A node of the tree while the tree is built.
#[derive(Default)]
struct TreeBuilder {
    samples: u64,
    own: u64,
    children: BTreeMap<usize, TreeBuilder>,
}

fn tree(profile: &Profile, samples: u64) -> Vec<Node> {
    let mut root = TreeBuilder::default();
    for stack in &profile.stacks {
        let mut node = &mut root;
        node.samples += stack.count;
        let mut last = None;
        // A direct recursion adds no level.
        for frame in stack.frames.iter().filter(|frame| last.replace(**frame) != Some(**frame)).take(TREE_DEPTH) {
            node = node.children.entry(*frame).or_default();
            node.samples += stack.count;
        }
        node.own += stack.count;
    }
    let mut nodes = nodes_of(&root, profile, samples, min_samples(&root));
    nodes.truncate(TREE_NODES);
    nodes
}

/// Returns the number of samples that a node must have to be shown, so that at most [`TREE_NODES`]
/// nodes are shown.
fn min_samples(root: &TreeBuilder) -> u64 {
    fn gather(node: &TreeBuilder, all: &mut Vec<u64>) {
        for child in node.children.values() {
            all.push(child.samples);
            gather(child, all);
        }
    }
    let mut all = Vec::new();
    gather(root, &mut all);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.get(TREE_NODES).map_or(0, |largest_left_out| largest_left_out + 1)
}

fn nodes_of(node: &TreeBuilder, profile: &Profile, samples: u64, min_samples: u64) -> Vec<Node> {
    let mut children: Vec<Node> = node
        .children
        .iter()
        .filter(|(_, child)| child.samples >= min_samples)
        .map(|(index, child)| Node {
            function: name(profile, *index).to_owned(),
            samples: child.samples,
            percent: percent(child.samples, samples),
            own: child.own,
            children: nodes_of(child, profile, samples, min_samples),
        })
        .collect();
    children.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.function.cmp(&b.function)));
    let rest: u64 = node.children.values().map(|child| child.samples).filter(|samples| *samples < min_samples).sum();
    if rest > 0 {
        let function = "(Other functions)".into();
        children.push(Node {
            function,
            samples: rest,
            percent: percent(rest, samples),
            own: rest,
            children: Vec::new(),
        });
    }
    children
}

fn folded(profile: &Profile) -> Vec<String> {
    let line = |frames: &[usize], count: u64| {
        // Names must not contain the separators of the folded format.
        let names: Vec<String> = frames.iter().map(|frame| name(profile, *frame).replace([';', '\n'], ":")).collect();
        format!("{} {count}", names.join(";"))
    };
    profile.stacks.iter().take(FOLDED).map(|stack| line(&stack.frames, stack.count)).collect()
}

#[cfg(test)]
mod tests;
