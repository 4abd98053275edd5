//! The protocol's requests, answered from the table of tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    Tool as Definition, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::agent_breakpoints::{self, AgentBreakpoints};
use super::breakpoint_records::{BreakpointRecords, BridgeKey};
use super::code_calls::{CallKind, Calls};
use super::consent::Asker;
use super::input::InputForms;
use super::notices::{Notices, with_notices};
use super::partial_answers::Kept;
use super::progress::Reporter;
use super::tools::{self, Call};
use super::{prompts, resources};
use crate::locked::lock;
use crate::session::requests::{self, ClientQuota};
use crate::session::{ClientId, ClientInfo, Feedback, Frontend, Session};

/// The server's instructions, the first text an agent reads.
pub(crate) const INSTRUCTIONS: &str = "Consort is one live Common Lisp image that you share with the user's editor: what you define \
they see at once, and what they define you can use. Definitions, variables and the current package persist across calls.
Write code, check it with compile-form (it finds errors, warnings and unbalanced parentheses and changes nothing), correct it, then \
run it with evaluate-lisp. Evaluating changes the image only: also save what shall last to its file, with lisp-edit-form or your own \
tools. After editing files: diagnostics checks those that changed together, code_reload_system loads them, run-tests runs the tests. \
load-system loads a system first.
A person is asked before load-system, code_*, lisp-edit-form (not its dry_run), image restart and what \
debug does at a stop, in their editor or through your client. \
Refused: do not do it in another way; the answer says what a person can do, so tell them, and go on with what needs nobody (compile-form, \
diagnostics, evaluate-lisp, run-tests).
A long or endless evaluation is interrupted at its `timeout` (in seconds; 30 unless given) and keeps what it had defined. Answers show 4 kB; \
full-output has the rest.";

/// The server's name and capabilities, for `initialize` and `server/discover`.
pub(crate) fn info() -> ServerConfig {
    let implementation = Implementation::new("consort", env!("CARGO_PKG_VERSION")).with_title("Consort");
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_prompts()
        .build();
    ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(INSTRUCTIONS)
}

/// The handler for an answer to `initialize` without a session. It only negotiates.
pub(crate) struct Greeting;

impl ServerHandler for Greeting {
    fn get_info(&self) -> ServerConfig {
        info()
    }
}

/// A client of the session, from its first request until it is dropped.
pub(crate) struct Client {
    session: Session,
    id: ClientId,
    notices: Arc<Mutex<Notices>>,
    partial_answers: Arc<Mutex<Kept>>,
    breakpoints: Arc<AgentBreakpoints>,
    input_forms: Arc<InputForms>,
    quota: ClientQuota,
    calls: Arc<Calls>,
}

impl Client {
    fn attach(session: &Session, name: &str) -> Client {
        let (id, mut feedback) = session.attach(ClientInfo { frontend: Frontend::Mcp, name: name.to_owned() });
        let notices = Arc::new(Mutex::new(Notices::since(session.last_definition())));
        let input_forms = Arc::new(InputForms::default());
        let (task_notices, task_input, task_session) = (notices.clone(), input_forms.clone(), session.clone());
        // The task ends when the session drops the client.
        tokio::spawn(async move {
            while let Some(feedback) = feedback.recv().await {
                match feedback {
                    Feedback::Message { text, .. } => lock(&task_notices).add(text),
                    Feedback::ImageLost { text, .. } => lock(&task_notices).add_loss(text),
                    Feedback::Input(wanted) => task_input.ask(&task_session, &wanted),
                    Feedback::InputOver { question } => task_input.withdraw(question),
                    _ => {}
                }
            }
            task_input.withdraw(None);
        });
        let calls = Arc::new(Calls::new(session.clone(), id));
        Client {
            session: session.clone(),
            id,
            notices,
            partial_answers: Arc::default(),
            breakpoints: Arc::default(),
            input_forms,
            quota: ClientQuota::default(),
            calls,
        }
    }

    /// Sets the breakpoints that are on record from an earlier connection or host again. The next
    /// answer reports them.
    async fn take_over(&self) {
        let notice = self.breakpoints.take_over(&self.session, self.id).await;
        lock(&self.notices).add_breakpoint_notices(notice);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        agent_breakpoints::leave(&self.breakpoints, &self.session, self.id);
        self.session.detach(self.id);
    }
}

/// The clients of HTTP requests without a session, by the name that each request carries.
pub(crate) type StatelessClients = Arc<Mutex<HashMap<String, Arc<Client>>>>;

/// The maximum number of client names that have a client of their own in the session. Further names
/// share one.
const MAX_STATELESS_CLIENTS: usize = 32;

/// The server side of one connection or of one HTTP session.
pub(crate) struct Handler {
    session: Session,
    client: OnceLock<Arc<Client>>,
    stateless: Option<StatelessClients>,
    /// Cancelled at the end of the connection, which ends the calls in progress, too.
    closed: CancellationToken,
    /// The resources to which the client is subscribed (protocol revisions with a handshake).
    subscriptions: Mutex<HashMap<String, AbortHandle>>,
}

/// The maximum number of subscriptions of one connection, or of one `listen` request.
const MAX_SUBSCRIPTIONS: usize = 64;

impl Drop for Handler {
    fn drop(&mut self) {
        lock(&self.subscriptions).values().for_each(AbortHandle::abort);
    }
}

impl Handler {
    /// Creates the handler of a socket connection, which `consort status` lists from now on.
    pub(crate) fn for_connection(
        session: Session,
        closed: CancellationToken,
        bridge: Option<(Arc<BreakpointRecords>, BridgeKey)>,
    ) -> Handler {
        let client = Client::attach(&session, "MCP client");
        if let Some((record, bridge)) = bridge {
            let (bridge_record, kept) = record.connect(bridge);
            client.breakpoints.keep_with(bridge_record, kept);
        }
        let client = OnceLock::from(Arc::new(client));
        Handler { session, client, stateless: None, closed, subscriptions: Mutex::default() }
    }

    /// Creates the handler of HTTP requests, for a session (after `initialize`) or for a single
    /// request.
    pub(crate) fn for_http(session: Session, stateless: StatelessClients, closed: CancellationToken) -> Handler {
        let subscriptions = Mutex::default();
        Handler { session, client: OnceLock::new(), stateless: Some(stateless), closed, subscriptions }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        let Some(stateless) = &self.stateless else { return self.connection_client() };
        if let Some(client) = self.client.get() {
            return client.clone();
        }
        let mut name = context.client_info().map_or_else(|| "MCP over HTTP".to_owned(), |info| full_name(&info));
        let mut clients = lock(stateless);
        if clients.len() >= MAX_STATELESS_CLIENTS && !clients.contains_key(&name) {
            name = "MCP over HTTP".to_owned();
        }
        clients.entry(name).or_insert_with_key(|name| Arc::new(Client::attach(&self.session, name))).clone()
    }

    /// Returns the record of this connection's calls.
    pub(crate) fn calls(&self) -> Arc<Calls> {
        self.connection_client().calls.clone()
    }

    fn connection_client(&self) -> Arc<Client> {
        self.client.get_or_init(|| Arc::new(Client::attach(&self.session, "MCP client"))).clone()
    }
}

fn full_name(info: &Implementation) -> String {
    format!("{} {}", info.title.as_ref().unwrap_or(&info.name), info.version).trim().to_owned()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.session.name_client(self.connection_client().id, full_name(&request.client_info));
        // Over HTTP, the server may have no stream on which it can send a request to its client.
        if self.stateless.is_none() {
            self.connection_client().input_forms.greet(
                &request,
                &context.peer,
                (&self.session, self.connection_client().id),
            );
        }
        let result = self.negotiate_initialize(&request);
        context.peer.set_peer_info(request);
        result
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(tools::list())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request).map(Into::into)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = resources::read(&self.session, &request.uri).await?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        let known = requested.resource_subscriptions.iter().flatten().filter(|uri| resources::exists(uri)).cloned();
        accepted.resource_subscriptions = Some(known.take(MAX_SUBSCRIPTIONS).collect());
        Some(accepted)
    }

    /// Runs until the client cancels the subscription or disconnects.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut watches = tokio::task::JoinSet::new();
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            let (session, sink, uri) = (self.session.clone(), context.sink().clone(), uri.clone());
            watches.spawn(async move {
                let mut last = None;
                loop {
                    resources::changed(&session, &uri, &mut last).await;
                    if sink.notify_resource_updated(uri.clone()).await.is_err() {
                        return;
                    }
                }
            });
        }
        tokio::select! {
            () = context.cancelled() => {}
            () = self.closed.cancelled() => {}
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Only an existing resource can be subscribed to. The error lists the existing ones.
        let now = resources::read(&self.session, &request.uri).await?;
        let mut subscriptions = lock(&self.subscriptions);
        if subscriptions.len() >= MAX_SUBSCRIPTIONS && !subscriptions.contains_key(&request.uri) {
            let message = format!("{MAX_SUBSCRIPTIONS} resources are subscribed to; unsubscribe from some");
            return Err(ErrorData::invalid_params(message, None));
        }
        let (session, peer, uri) = (self.session.clone(), context.peer.clone(), request.uri.clone());
        let watch = tokio::spawn(async move {
            let mut last = Some(now);
            loop {
                resources::changed(&session, &uri, &mut last).await;
                let updated = ResourceUpdatedNotificationParam::new(uri.clone());
                if peer.notify_resource_updated(updated).await.is_err() {
                    return;
                }
            }
        });
        if let Some(before) = subscriptions.insert(request.uri, watch.abort_handle()) {
            before.abort();
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Some(watch) = lock(&self.subscriptions).remove(&request.uri) {
            watch.abort();
        }
        Ok(())
    }

    // The capability for completion is not declared, so a request is refused rather than answered
    // with an empty list.

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    fn get_tool(&self, name: &str) -> Option<Definition> {
        tools::find(name).map(|entry| entry.definition.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(entry) = tools::find(&request.name) else {
            let names: Vec<&str> = tools::all().iter().map(|entry| &*entry.definition.name).collect();
            let message = format!("Unknown tool: {}. The tools are: {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let client = self.client(&context);
        let (running, interrupt) = match client.calls.take_arrived(&context.id, &request) {
            Some(CallKind::Runs(running)) => (Some(running), None),
            Some(CallKind::Interrupts(interrupt)) => (None, Some(interrupt)),
            Some(CallKind::Cancelled) => {
                return Ok(cancelled_result("The client cancelled the call before it began.").into());
            }
            None => (None, None),
        };
        if self.stateless.is_none()
            && context.peer.peer_info().is_none()
            && let Some(info) = context.client_info()
        {
            // Without a handshake each request names its client.
            self.session.name_client(client.id, full_name(&info));
        }
        let progress = Reporter::new(self.session.clone(), context.peer.clone(), context.meta.get_progress_token());
        // Without a session, HTTP has no connection. Clients of the same name then cannot be
        // distinguished, so no approval can last.
        let can_remember_approval = self.stateless.is_none() || self.client.get().is_some();
        let asker = Asker::new(&context, can_remember_approval, request.request_state, request.input_responses);
        let call = Call {
            session: self.session.clone(),
            client: client.id,
            progress,
            asker,
            partial_answers: client.partial_answers.clone(),
            breakpoints: client.breakpoints.clone(),
            permit: None,
            interrupt,
        };
        let (quota, session) = (client.quota.clone(), self.session.clone());
        let read_only = entry.definition.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true));
        let work = async move {
            if entry.needs_image() {
                session.image_started().await;
                if let Some(why) = session.still_suspended().await {
                    return cancelled_result(&format!("{why} Nothing was done: call again then.")).into();
                }
            }
            let work = entry.call(call, request.arguments.unwrap_or_default());
            if !read_only {
                return requests::limit_each_step(work)
                    .await
                    .unwrap_or_else(|why| cancelled_result(&why.to_string()).into());
            }
            requests::limit_total_time(work)
                .await
                .unwrap_or_else(|too_long| cancelled_result(&too_long.to_string()).into())
        };
        let work = async move {
            let Some(running) = running else { return work.await };
            running.work(work).await.unwrap_or_else(|interrupted| cancelled_result(interrupted).into())
        };
        let taking_over = client.clone();
        let work = async move {
            if !entry.has_quota() {
                return work.await;
            }
            taking_over.take_over().await;
            quota.scope(requests::run(work)).await
        };
        // Leaving the `select!` drops the work, which interrupts it in the image and keeps the
        // image's state.
        let result = tokio::select! {
            response = work => match response {
                CallToolResponse::Complete(result) => {
                    lock(&client.notices).add_definitions_of_others(&self.session, client.id);
                    lock(&client.notices).add_breakpoint_notices(client.breakpoints.notice());
                    with_notices(result, &client.notices)
                }
                question => return Ok(question),
            },
            () = context.ct.cancelled() => cancelled_result("The client cancelled the call, or the host ended; what it had done so far is kept while the image lives."),
            () = self.closed.cancelled() => cancelled_result("The connection ended before the call did; it was interrupted."),
        };
        Ok(result.into())
    }
}

/// Returns the answer of a cancelled call.
fn cancelled_result(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}
