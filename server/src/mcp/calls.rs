//! Tool calls that run code, noted as their lines are read: `rmcp` gives each call a task of its
//! own, in which they begin in any order.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{CallToolRequestParams, RequestId};

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
}

/// The part of a call that happens when it arrives.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// It can be interrupted.
    Runs(Running),
    /// It has interrupted the calls before it.
    Interrupts(Interrupt),
}

impl Calls {
    pub(crate) fn new(session: Session, client: ClientId) -> Calls {
        Calls { calls: calls::Calls::new(session, client), arrived: Mutex::default() }
    }

    /// Notes a call whose line was read.
    pub(crate) fn arrived(&self, id: &RequestId, call: &CallToolRequestParams) {
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
        let before = self.lock().remove(id);
        before.or_else(|| self.noted(call))
    }

    fn noted(&self, call: &CallToolRequestParams) -> Option<Arrived> {
        if RUN_CODE.contains(&&*call.name) {
            return Some(Arrived::Runs(self.calls.begin()));
        }
        let arguments = call.arguments.as_ref().filter(|_| call.name == "image")?;
        let interrupts = arguments.len() == 1 && arguments.get("action")? == "interrupt";
        interrupts.then(|| Arrived::Interrupts(self.calls.interrupt(false)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Arrived>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
