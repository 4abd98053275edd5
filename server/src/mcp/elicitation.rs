//! A form that the agent's client shows to the person. A form whose answer nobody waits for any
//! more is taken back by `notifications/cancelled`.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, RequestId,
    ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};

/// Takes a form back when it is dropped before its answer came.
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

/// Has the client show a form, and returns the answer. Dropping the future takes the form back, and
/// so does the time limit. An answer that comes later is dropped.
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
    // Answered, or taken back at the time limit.
    open.id = None;
    match answer? {
        ClientResult::ElicitResult(result) => Ok(result),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}
