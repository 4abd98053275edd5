//! Tool calls that run code. They are noted as their lines are read, because `rmcp` runs each call
//! as a task of its own, and the tasks begin in any order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use rmcp::model::{CallToolRequestParams, RequestId};

use super::tools;
use crate::locked::lock;
use crate::session::calls::{self, Interrupt, Running};
use crate::session::{ClientId, Session};

/// A client's calls.
#[derive(Debug)]
pub(crate) struct Calls {
    calls: calls::Calls,
    /// The calls whose line was read and whose task has not begun.
    arrived: Mutex<HashMap<RequestId, CallKind>>,
    /// True on a connection of lines. Over HTTP, a call is noted when its task begins.
    by_lines: AtomicBool,
}

/// The record of a call when it arrives.
#[derive(Debug)]
pub(crate) enum CallKind {
    /// A call that can be interrupted.
    Runs(Running),
    /// An interrupt, which has ended the calls before it.
    Interrupts(Interrupt),
    /// A call that its client has cancelled, and that must do nothing.
    Cancelled,
}

impl Calls {
    pub(crate) fn new(session: Session, client: ClientId) -> Calls {
        Calls { calls: calls::Calls::new(session, client), arrived: Mutex::default(), by_lines: AtomicBool::new(false) }
    }

    /// Notes a call whose line was read.
    pub(crate) fn arrived(&self, id: &RequestId, call: &CallToolRequestParams) {
        self.by_lines.store(true, Ordering::Relaxed);
        if let Some(arrived) = self.begin_call(call) {
            self.lock().insert(id.clone(), arrived);
        }
    }

    /// Forgets a call that was answered or cancelled.
    pub(crate) fn forget(&self, id: &RequestId) {
        self.lock().remove(id);
    }

    /// Returns the record of a call whose task begins. A call over HTTP arrives only now.
    pub(crate) fn take_arrived(&self, id: &RequestId, call: &CallToolRequestParams) -> Option<CallKind> {
        match self.lock().remove(id) {
            Some(arrived) => Some(arrived),
            // The call was forgotten meanwhile. It must do nothing, because a late interrupt would
            // reach later calls.
            None if self.by_lines.load(Ordering::Relaxed) => is_noted(call).then_some(CallKind::Cancelled),
            None => self.begin_call(call),
        }
    }

    fn begin_call(&self, call: &CallToolRequestParams) -> Option<CallKind> {
        if runs_code(call) {
            return Some(CallKind::Runs(self.calls.begin()));
        }
        is_interrupt(call).then(|| CallKind::Interrupts(self.calls.interrupt(false)))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, CallKind>> {
        lock(&self.arrived)
    }
}

fn runs_code(call: &CallToolRequestParams) -> bool {
    tools::find(&call.name).is_some_and(tools::Entry::runs_code)
}

fn is_noted(call: &CallToolRequestParams) -> bool {
    runs_code(call) || is_interrupt(call)
}

fn is_interrupt(call: &CallToolRequestParams) -> bool {
    let arguments = call.arguments.as_ref().filter(|_| call.name == "image");
    arguments.is_some_and(|given| given.len() == 1 && given.get("action").is_some_and(|action| action == "interrupt"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(tool: &str) -> CallToolRequestParams {
        CallToolRequestParams::new(tool.to_owned())
    }

    #[test]
    fn an_interrupt_meets_a_call_of_every_tool_that_is_given_code() {
        for entry in tools::all() {
            let given = entry.definition.input_schema["properties"].as_object().unwrap();
            let code = ["code", "new_code", "form", "content", "candidates", "timeout"];
            let runs = code.iter().any(|name| given.contains_key(*name));
            let name = &*entry.definition.name;
            assert!(runs_code(&call(name)) || !(runs || name.starts_with("code_")), "{name} runs code");
        }
        for name in ["repl_eval", "rename-symbol", "lisp-edit-form", "debug", "set-breakpoints", "diagnostics"] {
            assert!(is_noted(&call(name)), "{name}");
        }
        for name in ["image", "clhs", "unknown"] {
            assert!(!is_noted(&call(name)), "{name}");
        }
    }
}
