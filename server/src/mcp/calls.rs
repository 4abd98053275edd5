//! Tool calls that run code, noted as their lines are read: `rmcp` gives each call a task of its
//! own, in which they begin in any order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use rmcp::model::{CallToolRequestParams, RequestId};

use super::tools;
use crate::locked::lock;
use crate::session::calls::{self, Interrupt, Running};
use crate::session::{ClientId, Session};

/// The tools that run code in the image or in a copy of it.
const RUN_CODE: [&str; 18] = [
    "evaluate-lisp",
    "repl_eval",
    "try-code",
    "record",
    "load-system",
    "run-tests",
    "profile-code",
    "code_compile_string",
    "code_load_fasl",
    "code_reload_package",
    "code_reload_system",
    "code_replace_function",
    "code_undo",
    "compile-form",
    "macroexpand-form",
    "diagnostics",
    "debug",
    "set-breakpoints",
];

/// A client's calls.
#[derive(Debug)]
pub(crate) struct Calls {
    calls: calls::Calls,
    /// Calls whose line was read and whose task has not begun.
    arrived: Mutex<HashMap<RequestId, Arrived>>,
    /// True on a connection of lines; over HTTP a call is noted when its task begins.
    by_lines: AtomicBool,
}

/// The part of a call that happens when it arrives.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// A call that can be interrupted.
    Runs(Running),
    /// An interrupt, which has ended the calls before it.
    Interrupts(Interrupt),
    /// The client has cancelled it: it does nothing any more.
    Cancelled,
}

impl Calls {
    pub(crate) fn new(session: Session, client: ClientId) -> Calls {
        Calls { calls: calls::Calls::new(session, client), arrived: Mutex::default(), by_lines: AtomicBool::new(false) }
    }

    /// Notes a call whose line was read.
    pub(crate) fn arrived(&self, id: &RequestId, call: &CallToolRequestParams) {
        self.by_lines.store(true, Ordering::Relaxed);
        if let Some(arrived) = self.noted(call) {
            self.lock().insert(id.clone(), arrived);
        }
    }

    /// Forgets a call that was answered or cancelled.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    /// Returns the record of a call whose task begins. A call over HTTP arrives only now.
    pub(crate) fn begins(&self, id: &RequestId, call: &CallToolRequestParams) -> Option<Arrived> {
        match self.lock().remove(id) {
            Some(arrived) => Some(arrived),
            // The call was forgotten meanwhile. A late interrupt would reach later calls.
            None if self.by_lines.load(Ordering::Relaxed) => is_noted(call).then_some(Arrived::Cancelled),
            None => self.noted(call),
        }
    }

    fn noted(&self, call: &CallToolRequestParams) -> Option<Arrived> {
        if RUN_CODE.contains(&&*call.name) {
            return Some(Arrived::Runs(self.calls.begin()));
        }
        is_interrupt(call).then(|| Arrived::Interrupts(self.calls.interrupt(false)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Arrived>> {
        lock(&self.arrived)
    }
}

fn is_noted(call: &CallToolRequestParams) -> bool {
    RUN_CODE.contains(&&*call.name) || is_interrupt(call)
}

fn is_interrupt(call: &CallToolRequestParams) -> bool {
    let arguments = call.arguments.as_ref().filter(|_| call.name == "image");
    arguments.is_some_and(|given| given.len() == 1 && given.get("action").is_some_and(|action| action == "interrupt"))
}

#[cfg(test)]
mod tests {
    use super::RUN_CODE;
    use crate::mcp::tools;

    #[test]
    fn every_tool_that_runs_code_exists_and_reloads_are_among_them() {
        for name in RUN_CODE {
            assert!(tools::find(name).is_some(), "{name}");
        }
        for entry in tools::all().iter().filter(|entry| entry.definition.name.starts_with("code_")) {
            assert!(RUN_CODE.contains(&&*entry.definition.name), "{}", entry.definition.name);
        }
    }
}
