//! The protocol's requests, answered from the table of tools.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InitializeRequestParams,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as Definition,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use super::progress::Reporter;
use super::tools::{self, Call};
use crate::session::{ClientId, ClientInfo, Door, Feedback, Level, Session};

/// What an agent reads first.
const INSTRUCTIONS: &str = "Consort is one live Common Lisp image that you share with the user's editor: what you define they see \
at once, and what they define you can use. Definitions, variables and the current package persist across calls.
Write code, check it with compile-form (it finds errors, warnings and unbalanced parentheses and changes nothing), correct it, then \
run it with evaluate-lisp. Evaluating changes the image only: also save what shall last to its file. A long or endless evaluation is \
interrupted at its `timeout` (30 s unless given) and keeps what it had defined.";

/// Who we are, for `initialize` and `server/discover`.
pub(crate) fn info() -> ServerConfig {
    let implementation = Implementation::new("consort", env!("CARGO_PKG_VERSION")).with_title("Consort");
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(implementation)
        .with_instructions(INSTRUCTIONS)
}

/// Negotiates and does nothing else: for an answer to `initialize` without a session.
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
    /// What a person would have been shown; the next answer tells it.
    notices: Arc<Mutex<VecDeque<String>>>,
}

/// Notices kept for a client that asks for nothing.
const NOTICES: usize = 4;

impl Client {
    fn attach(session: &Session, name: &str) -> Client {
        let (id, mut feedback) = session.attach(ClientInfo { door: Door::Mcp, name: name.to_owned() });
        let notices = Arc::new(Mutex::new(VecDeque::new()));
        let kept = notices.clone();
        // Ends when the session forgets the client.
        tokio::spawn(async move {
            while let Some(feedback) = feedback.recv().await {
                if let Feedback::Message { level: Level::Error | Level::Warning, text } = feedback {
                    let mut kept = lock(&kept);
                    if kept.len() == NOTICES {
                        kept.pop_front();
                    }
                    kept.push_back(text);
                }
            }
        });
        Client { session: session.clone(), id, notices }
    }

    fn take_notices(&self) -> Vec<String> {
        lock(&self.notices).drain(..).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.session.detach(self.id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clients of HTTP's stateless era, which has no connection to tell them by: one for each client name.
pub(crate) type Stateless = Arc<Mutex<HashMap<String, Arc<Client>>>>;

/// Client names that get a session of their own.
const STATELESS_LIMIT: usize = 32;

/// One connection's, or one HTTP session's, side of the protocol.
pub(crate) struct Handler {
    session: Session,
    client: OnceLock<Arc<Client>>,
    stateless: Option<Stateless>,
    /// The connection has ended: calls in progress end too.
    gone: CancellationToken,
}

impl Handler {
    /// For a connection of its own; `consort status` shows it from now on.
    pub(crate) fn for_connection(session: Session, gone: CancellationToken) -> Handler {
        let client = OnceLock::from(Arc::new(Client::attach(&session, "MCP client")));
        Handler { session, client, stateless: None, gone }
    }

    /// For HTTP, where this may become a session (`initialize` comes) or answer one request.
    pub(crate) fn for_http(session: Session, stateless: Stateless, gone: CancellationToken) -> Handler {
        Handler { session, client: OnceLock::new(), stateless: Some(stateless), gone }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        let Some(stateless) = &self.stateless else { return self.own() };
        if let Some(client) = self.client.get() {
            return client.clone();
        }
        let mut name = context.client_info().map_or_else(|| "MCP over HTTP".to_owned(), |info| full_name(&info));
        let mut clients = lock(stateless);
        if clients.len() >= STATELESS_LIMIT && !clients.contains_key(&name) {
            name = "MCP over HTTP".to_owned();
        }
        clients.entry(name).or_insert_with_key(|name| Arc::new(Client::attach(&self.session, name))).clone()
    }

    fn own(&self) -> Arc<Client> {
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
        self.session.rename(self.own().id, full_name(&request.client_info));
        let result = self.negotiate_initialize(&request);
        context.peer.set_peer_info(request);
        result
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().iter().map(|entry| entry.definition.clone()).collect()))
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
        if self.stateless.is_none()
            && context.peer.peer_info().is_none()
            && let Some(info) = context.client_info()
        {
            // Without a handshake each request says who asks.
            self.session.rename(client.id, full_name(&info));
        }
        let progress = Reporter::new(context.peer.clone(), context.meta.get_progress_token());
        let call = Call { session: self.session.clone(), client: client.id, progress };
        let work = entry.call(call, request.arguments.unwrap_or_default());
        // Leaving the `select!` drops the work, which interrupts it in the image and keeps the image's state.
        let result = tokio::select! {
            result = work => with_notices(result, client.take_notices()),
            () = context.ct.cancelled() => stopped("The client cancelled the call; what it had done so far is kept."),
            () = self.gone.cancelled() => stopped("The connection ended before the call did; it was interrupted."),
        };
        Ok(result.into())
    }
}

/// The answer of a call that nobody waits for any more.
fn stopped(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// Add what happened between this client's calls (the image died and was restarted) to an answer.
fn with_notices(mut result: CallToolResult, notices: Vec<String>) -> CallToolResult {
    let mut text =
        result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone()).unwrap_or_default();
    // A call that was told itself needs no second telling.
    for notice in
        notices.iter().filter(|notice| !text.contains(notice.as_str()) || text.is_empty()).cloned().collect::<Vec<_>>()
    {
        text.push_str("\n\n; Note: ");
        text.push_str(&notice.replace('\n', "\n; "));
    }
    if !notices.is_empty() {
        result.content = vec![ContentBlock::text(text)];
        if let Some(facts) = result.structured_content.as_mut().and_then(|facts| facts.as_object_mut()) {
            facts.insert("notices".into(), notices.into());
        }
    }
    result
}
