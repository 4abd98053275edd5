//! Frozen failures, for front ends: the backend for features that query one, and attempts at one.

use std::path::PathBuf;
use std::sync::Arc;

use super::{ClientId, Session};
use crate::ide::context::{Backend, Context, RecordedDefinition};
use crate::ide::index::Snapshot;
use crate::ide::name_index::NameIndex;
use crate::ide::texts::OpenText;
use crate::image::api::Operation;
use crate::model::action_outcome::AttemptOutcome;
use crate::model::frozen::Failure;
use crate::model::image::ImageError;

/// The number of the stop in a frozen failure.
pub const STOP: u64 = 0;

/// The backend that answers from a frozen failure in place of the image.
#[derive(Debug, Clone)]
pub struct AtFailure {
    session: Session,
    number: u64,
}

impl Backend for AtFailure {
    async fn query<O: Operation>(&self, operation: O) -> Result<O::Answer, ImageError> {
        self.session.inner.checker.ask_failure(self.number, &operation).await
    }

    fn names(&self) -> (Arc<NameIndex>, bool) {
        self.session.names()
    }

    fn definitions_on_record(&self, package: &str, name: &str) -> Vec<RecordedDefinition> {
        self.session.definitions_on_record(package, name)
    }

    fn files_on_record(&self, package: &str, name: &str) -> Vec<Option<PathBuf>> {
        self.session.files_on_record(package, name)
    }

    async fn index(&self, open: Vec<OpenText>) -> Snapshot {
        self.session.index(open).await
    }

    fn last_index(&self, open: &[OpenText]) -> Arc<Snapshot> {
        self.session.last_index(open)
    }
}

impl Session {
    /// Returns the frozen failures that are kept, oldest first.
    pub fn failures(&self) -> Vec<Failure> {
        self.inner.checker.failures()
    }

    /// Returns a frozen failure as a backend.
    pub fn at_failure(&self, number: u64) -> AtFailure {
        AtFailure { session: self.clone(), number }
    }

    /// Returns the snapshot for one request of a client about a frozen failure.
    pub fn context_at_failure(
        &self,
        client: ClientId,
        number: u64,
    ) -> impl Future<Output = Context<AtFailure>> + Send + use<> {
        self.context_with(client, self.at_failure(number))
    }

    /// Tries an operation on the stop of a frozen failure, in a process of its own. Dropping the
    /// future ends the attempt.
    ///
    /// # Errors
    /// The frozen failure is gone (`stale`), refuses the operation, or the attempt passed a limit.
    pub async fn try_at_failure<O: Operation>(&self, number: u64, operation: O) -> Result<AttemptOutcome, ImageError> {
        self.inner.checker.ask_failure(number, &operation).await
    }

    /// Ends a frozen failure. Returns false if there is none of this number.
    pub fn drop_failure(&self, number: u64) -> bool {
        self.inner.checker.drop_failure(number)
    }
}
