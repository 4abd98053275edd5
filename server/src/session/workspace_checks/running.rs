//! Checks that run at the same time, each with the file that it checks.

use std::collections::HashMap;
use std::future::Future;

use tokio::task::{Id, JoinError, JoinSet};

/// Tasks that run, each for an item. They are aborted when dropped.
#[derive(Debug)]
pub(super) struct Running<I, T> {
    tasks: JoinSet<T>,
    items: HashMap<Id, I>,
}

impl<I, T: Send + 'static> Running<I, T> {
    pub(super) fn new() -> Running<I, T> {
        Running { tasks: JoinSet::new(), items: HashMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn start(&mut self, item: I, work: impl Future<Output = T> + Send + 'static) {
        self.items.insert(self.tasks.spawn(work).id(), item);
    }

    /// Waits for the next task to end. Returns its item and its result, or the error of a task that
    /// panicked. Returns `None` if no task runs.
    pub(super) async fn next(&mut self) -> Option<(I, Result<T, JoinError>)> {
        let (id, result) = match self.tasks.join_next_with_id().await? {
            Ok((id, result)) => (id, Ok(result)),
            Err(error) => (error.id(), Err(error)),
        };
        Some((self.items.remove(&id)?, result))
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_ends_with_its_item() {
        let mut running = Running::new();
        running.start("a", async { panic!("a fault") });
        running.start("b", async { 1 });
        let mut ended = Vec::new();
        while let Some((item, result)) = running.next().await {
            ended.push((item, result.ok()));
        }
        ended.sort_unstable();
        assert_eq!(ended, [("a", None), ("b", Some(1))]);
        assert_eq!(running.len(), 0);
    }
}
