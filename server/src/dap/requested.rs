//! The breakpoints that a DAP client requests. Each keeps its number while it is requested.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::protocol::SourceBreakpoint;
use crate::model::breakpoint::RequestedBreakpoint;

/// The requested breakpoints of a client. Each has the last DAP `Breakpoint` object that was sent
/// to the client for it, or `Null` if none was sent yet.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestedBreakpoints {
    /// The last number that was assigned.
    last: u64,
    /// The breakpoints by file. Function breakpoints are under the empty path.
    pub(super) files: BTreeMap<PathBuf, Vec<(RequestedBreakpoint, Value)>>,
}

impl RequestedBreakpoints {
    /// Replaces the requested breakpoints of a file, and returns the new ones with their numbers.
    /// A breakpoint that was also requested before, with the same position, conditions and log
    /// message, keeps its number.
    pub(super) fn replace(&mut self, file: &Path, requested: Vec<SourceBreakpoint>) -> Vec<RequestedBreakpoint> {
        let mut before = self.files.remove(file).unwrap_or_default();
        let mut points = Vec::new();
        for one in requested {
            let SourceBreakpoint { line, column, name, condition, hit_condition: hit, log_message: log } = one;
            let mut point = RequestedBreakpoint { id: 0, line, column, name, condition, hit, log };
            let known = before.iter().position(|(known, _)| RequestedBreakpoint { id: 0, ..known.clone() } == point);
            point.id = known.map_or_else(
                || {
                    self.last += 1;
                    self.last
                },
                |at| before.swap_remove(at).0.id,
            );
            points.push(point);
        }
        if !points.is_empty() {
            self.files.insert(file.to_owned(), points.iter().map(|point| (point.clone(), Value::Null)).collect());
        }
        points
    }

    /// Returns the files and lines of the breakpoints that have not been verified. Function
    /// breakpoints, which have no line, are left out.
    pub(super) fn waiting(&self) -> Vec<(PathBuf, usize)> {
        let in_files = self.files.iter().flat_map(|(file, points)| points.iter().map(move |one| (file, one)));
        let waiting = in_files.filter(|(_, (_, told))| told["verified"] != true);
        waiting.filter_map(|(file, (point, _))| Some((file.clone(), point.line?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, condition: Option<&str>) -> SourceBreakpoint {
        let condition = condition.map(str::to_owned);
        SourceBreakpoint {
            line: Some(line),
            column: None,
            name: None,
            condition,
            hit_condition: None,
            log_message: None,
        }
    }

    #[test]
    fn a_breakpoint_keeps_its_number() {
        let mut requested = RequestedBreakpoints::default();
        let file = Path::new("/a.lisp");
        let ids = |points: Vec<RequestedBreakpoint>| points.into_iter().map(|point| point.id).collect::<Vec<_>>();
        assert_eq!(ids(requested.replace(file, vec![at(3, None), at(5, None)])), [1, 2]);
        assert_eq!(ids(requested.replace(file, vec![at(4, None), at(5, None), at(3, Some("t"))])), [3, 2, 4]);
        assert_eq!(ids(requested.replace(file, Vec::new())), [0; 0]);
        assert!(requested.files.is_empty());
    }
}
