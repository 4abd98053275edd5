//! A form that the agent's client shows to the person. If nobody waits for the answer any more,
//! `notifications/cancelled` withdraws the form.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, RequestId,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};

/// Withdraws a form when it is dropped before the answer.
struct Open {
    peer: Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let withdrawn = CancelledNotificationParam::new(Some(id), Some("the answer is no longer needed".into()));
            if let Err(error) = peer.notify_cancelled(withdrawn).await {
                tracing::debug!(%error, "a form was not taken back: its client has left");
            }
        });
    }
}

/// Makes the client show a form, and returns the answer. The form is withdrawn if the future is
/// dropped, or at the time limit. A later answer is ignored.
pub(crate) async fn elicit(
    peer: &Peer<RoleServer>,
    form: ElicitRequestParams,
    timeout: Option<Duration>,
) -> Result<ElicitResult, ServiceError> {
    let mut options = PeerRequestOptions::no_options();
    options.timeout = timeout;
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let handle = peer.send_cancellable_request(request, options).await?;
    let mut open = Open { peer: peer.clone(), id: Some(handle.id.clone()) };
    let answer = handle.await_response().await;
    // The form was answered, or withdrawn at the time limit.
    open.id = None;
    match answer? {
        ClientResult::ElicitResult(result) => Ok(result),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}
