//! The task of one chain. The task makes the chain, sends it the newest edit, and passes its
//! answers on. When the channel of edits is closed, the task ends the chain.

use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{ChainEvent, EditRequest};
use crate::checker::{Chain, ChainAnswer, ChainEnd};
use crate::ide::undefined_variables;
use crate::session::requests::compute_all;
use crate::steady::sleep;
use crate::text::document::Document;

/// The maximum time for which a chain is kept without an edit.
const MAX_IDLE_TIME: Duration = Duration::from_secs(600);
/// The interval at which the memory of a chain is measured. The memory grows as the image writes to
/// pages that it shared with the chain.
const MEASURE_INTERVAL: Duration = Duration::from_secs(60);

/// Makes a chain and follows it until it ends or `requests` is closed. `cursor` is a place in the
/// chain's text at which the first edit may be.
pub(super) async fn follow(
    making: impl Future<Output = Result<Chain, ChainEnd>>,
    cursor: usize,
    mut requests: mpsc::UnboundedReceiver<EditRequest>,
    tell: impl Fn(ChainEvent),
) {
    let made = tokio::select! {
        made = making => made,
        // No edit is sent before the chain is ready.
        None = requests.recv() => return,
    };
    let mut chain = match made {
        Ok(chain) => chain,
        Err(end) => return tell(ChainEvent::Ended(end)),
    };
    tell(ChainEvent::Ready { taken: chain.memory_used() });
    if let Err(end) = chain.cursor(cursor).await {
        return tell(ChainEvent::Ended(end));
    }
    let mut edited = None;
    let mut idle = Box::pin(sleep(MAX_IDLE_TIME));
    let mut measured = Box::pin(wait_then(MEASURE_INTERVAL, chain.measured()));
    loop {
        let event = tokio::select! {
            biased;
            request = requests.recv() => {
                let Some(mut request) = request else { return chain.end().await };
                while let Ok(later) = requests.try_recv() {
                    request = later;
                }
                match chain.edit(&request.edit).await {
                    Ok(true) => {
                        edited = Some(request.document);
                        idle.set(sleep(MAX_IDLE_TIME));
                        continue;
                    }
                    Ok(false) => ChainEvent::Unanswered { number: request.edit.number },
                    Err(end) => ChainEvent::Ended(end),
                }
            }
            answer = chain.answer() => match answer {
                Ok(answer) => ChainEvent::Answer(marked(answer, edited.clone()).await),
                Err(end) => ChainEvent::Ended(end),
            },
            taken = &mut measured => {
                measured.set(wait_then(MEASURE_INTERVAL, chain.measured()));
                let Some(taken) = taken else { continue };
                ChainEvent::Takes(taken)
            }
            () = &mut idle => {
                tell(ChainEvent::Ended(ChainEnd::Changed));
                return chain.end().await;
            }
        };
        let ended = matches!(event, ChainEvent::Ended(_));
        tell(event);
        if ended {
            return;
        }
    }
}

/// Waits for `time`, and then resolves to the value of `future`.
async fn wait_then<T>(time: Duration, future: impl Future<Output = T>) -> T {
    tokio::time::sleep(time).await;
    future.await
}

/// Marks uses in the findings of an answer with [`undefined_variables::mark_uses`].
async fn marked(answer: ChainAnswer, document: Option<Document>) -> ChainAnswer {
    match (answer, document) {
        (ChainAnswer::Findings { number, mut diagnostics, last }, Some(document))
            if undefined_variables::are_among(&diagnostics) =>
        {
            compute_all(move || {
                undefined_variables::mark_uses(&document, &mut diagnostics);
                ChainAnswer::Findings { number, diagnostics, last }
            })
            .await
        }
        (answer, _) => answer,
    }
}
