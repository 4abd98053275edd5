//! Operations on a name, run for a client.

use std::pin::Pin;

use super::{ClientId, Session};
use crate::ide::name_tools::NameOperation;
use crate::image::api::name_operations::{Describe, Disassemble, Named, Trace, Untrace};
use crate::model::evaluation::EvalOutcome;
use crate::model::image::ImageError;

/// The future of an operation's outcome.
type Running = Pin<Box<dyn Future<Output = Result<EvalOutcome, ImageError>> + Send>>;

impl Session {
    /// Runs an operation on a name that is read in `package`. [`Named`] describes the meaning of
    /// `None`.
    pub fn run_on_name(
        &self,
        client: ClientId,
        operation: NameOperation,
        name: Option<String>,
        package: Option<String>,
    ) -> Running {
        let what = format!("{} {}", operation.name(), name.as_deref().unwrap_or("everything"));
        let named = move |session| Named { name, package, session };
        match operation {
            NameOperation::Describe => {
                Box::pin(self.run(client, what, move |session| Describe(named(session)), None, None))
            }
            NameOperation::Disassemble => {
                Box::pin(self.run(client, what, move |session| Disassemble(named(session)), None, None))
            }
            NameOperation::Trace => Box::pin(self.run(client, what, move |session| Trace(named(session)), None, None)),
            NameOperation::Untrace => {
                Box::pin(self.run(client, what, move |session| Untrace(named(session)), None, None))
            }
        }
    }
}
