//! The operations on breakpoints: `debug-breakpoints`, `debug-function-breakpoints`,
//! `debug-break-on` and `debug-breakpoint-locations`.

use std::path::PathBuf;

use serde::Serialize;

use super::Operation;
use super::debug::operation;
use crate::model::breakpoint::{Breakpoints, RequestedBreakpoint};

operation!(
    /// `debug-breakpoints`: sets a client's breakpoints in a file.
    DebugBreakpoints {
        /// The client whose breakpoints are set.
        owner: String,
        /// The file.
        file: PathBuf,
        /// The current text of the file.
        text: String,
        /// All of the owner's breakpoints in the file.
        points: Vec<RequestedBreakpoint>,
    },
    "debug-breakpoints",
    Breakpoints
);
operation!(
    /// `debug-function-breakpoints`: sets a client's breakpoints at functions.
    DebugFunctionBreakpoints {
        /// The client whose breakpoints are set.
        owner: String,
        /// All of the owner's breakpoints at functions.
        points: Vec<RequestedBreakpoint>,
    },
    "debug-function-breakpoints",
    Breakpoints
);
operation!(
    /// `debug-break-on`: sets the types of conditions at which a client's evaluations stop.
    DebugBreakOn {
        /// The client for which the types of conditions are set.
        owner: String,
        /// All types of conditions at whose signalling evaluations stop for the owner.
        types: Vec<String>,
    },
    "debug-break-on",
    Breakpoints
);
operation!(
    /// `debug-breakpoint-locations`: the places in some lines of a file where breakpoints are
    /// possible.
    DebugBreakpointLocations {
        /// The file.
        file: PathBuf,
        /// The current text of the file.
        text: String,
        /// The first line, 1-based.
        line: usize,
        /// The last line.
        end_line: usize,
    },
    "debug-breakpoint-locations",
    Breakpoints
);
