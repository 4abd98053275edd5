//! Tests of the transport, under a server with a tool that never ends.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequestParams, ElicitationSchema,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::mcp::elicitation::elicit;
use crate::patience::{self, soon};

/// A server with three tools. `echo` answers with a text of the requested length. `forever` ends
/// only when its client disconnects or cancels. `ask` answers with the user's answer to a form.
struct Server {
    gone: CancellationToken,
    stopped: Arc<Notify>,
    calls: Arc<AtomicUsize>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if request.name == "forever" {
            tokio::select! {
                () = context.ct.cancelled() => {}
                () = self.gone.cancelled() => {}
            }
            self.stopped.notify_one();
        }
        if request.name == "ask" {
            let form = ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: "Line?".into(),
                requested_schema: ElicitationSchema::new(Default::default()),
            };
            let answer = tokio::select! {
                answer = elicit(&context.peer, form, None) => format!("{:?}", answer.unwrap().action),
                () = context.ct.cancelled() => "cancelled".to_owned(),
            };
            return Ok(CallToolResult::success(vec![ContentBlock::text(answer)]).into());
        }
        let length = request.arguments.as_ref().and_then(|arguments| arguments["length"].as_u64()).unwrap_or(1);
        let text = "x".repeat(usize::try_from(length).unwrap());
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// The number of bytes that a pipe between client and server holds.
const PIPE: usize = 64 << 10;

struct Client {
    read: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    stopped: Arc<Notify>,
    calls: Arc<AtomicUsize>,
    /// The transport's state.
    transport: Arc<Shared>,
    served: tokio::task::JoinHandle<()>,
}

impl Client {
    fn new(limits: Limits, output_closed: impl Future<Output = ()> + Send + 'static) -> Client {
        let (here, there) = tokio::io::duplex(PIPE);
        let (stopped, gone) = (Arc::new(Notify::new()), CancellationToken::new());
        let calls = Arc::new(AtomicUsize::new(0));
        let server = Server { gone: gone.clone(), stopped: stopped.clone(), calls: calls.clone() };
        let (read, write) = tokio::io::split(there);
        let served = Ndjson::new(read, write, limits, gone, output_closed);
        let transport = served.shared.clone();
        let served = tokio::spawn(async move {
            if let Ok(running) = rmcp::serve_server(server, served).await {
                running.waiting().await.unwrap();
            }
        });
        let (read, write) = tokio::io::split(here);
        Client { read: BufReader::new(read).lines(), write, stopped, calls, transport, served }
    }

    async fn started() -> Client {
        Client::started_with(Limits::default()).await
    }

    async fn started_with(limits: Limits) -> Client {
        let mut client = Client::new(limits, std::future::pending());
        client.handshake().await;
        client
    }

    async fn handshake(&mut self) {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.request(0, "initialize", params).await;
        assert_eq!(self.answer().await["result"]["protocolVersion"], "2025-11-25");
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
    }

    async fn line(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    async fn request(&mut self, id: i64, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
    }

    async fn answer(&mut self) -> Value {
        let line = soon(self.read.next_line()).await.unwrap();
        serde_json::from_str(&line.expect("the connection is open")).unwrap()
    }

    /// Waits until more than `bytes` bytes wait to be written. Returns their number.
    async fn waiting_more_than(&self, bytes: usize) -> usize {
        patience::comes("more waits to be written", async || {
            Some(self.transport.unread.load(Ordering::Relaxed)).filter(|unread| *unread > bytes)
        })
        .await
    }

    async fn is_alive(&mut self) {
        self.request(4711, "ping", json!({})).await;
        assert_eq!(self.answer().await, json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
    }
}

#[tokio::test]
async fn a_line_that_is_not_json_is_answered_and_the_connection_lives() {
    let mut client = Client::started().await;
    for bad in
        ["{not json", "}", &"[".repeat(200_000), "\u{0}", "{\"jsonrpc\": \"2.0\", \"method\": \"ping\", \"id\": "]
    {
        client.line(bad).await;
        let answer = client.answer().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null), "{bad:.40}");
    }
    client.is_alive().await;
}

#[tokio::test]
async fn bad_lines_before_the_first_request_are_answered_too() {
    let mut client = Client::new(Limits::default(), std::future::pending());
    client.line("nonsense").await;
    assert_eq!(client.answer().await["error"]["code"], -32700);
    client.line(r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#).await;
    client
        .line(r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}"#)
        .await;
    let answer = client.answer().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(1)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("capabilities"), "{answer}");
    client.handshake().await;
    client.is_alive().await;
}

#[tokio::test]
async fn an_unusable_request_is_answered_under_its_id() {
    let mut client = Client::started().await;
    client.line(r#"{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "echo", "arguments": {"code": "\ud800"}}}"#).await;
    assert_eq!(client.answer().await["id"], 5);
    client
        .line(&format!(
            r#"{{"params": {{"name": "{}"}}, "jsonrpc": "2.0", "id": "big", "method": "tools/call"}}"#,
            "x".repeat(20 << 20)
        ))
        .await;
    let answer = client.answer().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("big")));
    assert!(answer["error"]["message"].as_str().unwrap().contains("bytes"));
    client.request(6, "tools/call", json!({"arguments": {}})).await;
    let answer = client.answer().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(6)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("name"), "{answer}");
    client.line(r#"{"id": 7, "something": "else"}"#).await;
    assert_eq!(client.answer().await["error"]["code"], -32600);
    client.line("[]").await;
    assert_eq!(client.answer().await["error"]["code"], -32600);
    client.request(8, "no/such/method", json!({})).await;
    assert_eq!(client.answer().await["error"]["code"], -32601);
    client.is_alive().await;
}

#[tokio::test]
async fn a_batch_is_answered_one_by_one() {
    let mut client = Client::started().await;
    client
        .line(r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]"#)
        .await;
    let mut ids = [client.answer().await["id"].clone(), client.answer().await["id"].clone()];
    ids.sort_by_key(|id| id.as_i64());
    assert_eq!(ids, [json!(1), json!(2)]);
}

#[tokio::test]
async fn other_requests_are_answered_while_a_call_runs_and_a_cancel_stops_it() {
    let mut client = Client::started().await;
    client.request(1, "tools/call", json!({"name": "forever"})).await;
    client.is_alive().await;
    client.request(1, "ping", json!({})).await;
    assert!(client.answer().await["error"]["message"].as_str().unwrap().contains("still in progress"));
    client.line(r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}"#).await;
    soon(client.stopped.notified()).await;
    // The id can be used again, and no answer to the cancelled request is sent.
    client.request(1, "tools/call", json!({"name": "echo"})).await;
    assert_eq!(client.answer().await["result"]["content"][0]["text"], "x");
}

#[tokio::test]
async fn too_many_requests_at_once_are_refused() {
    let mut client = Client::started().await;
    for id in 0..REQUEST_LIMIT as i64 {
        client.request(id, "tools/call", json!({"name": "forever"})).await;
    }
    client.request(9999, "ping", json!({})).await;
    let answer = client.answer().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(9999)));
}

#[tokio::test]
async fn a_client_that_vanishes_ends_its_calls() {
    let (hung_up, output_closed) = tokio::sync::oneshot::channel::<()>();
    let mut client = Client::new(Limits::default(), async move { assert!(output_closed.await.is_ok()) });
    client.handshake().await;
    client.request(1, "tools/call", json!({"name": "forever"})).await;
    client.is_alive().await;
    client.write.shutdown().await.unwrap();
    hung_up.send(()).unwrap();
    soon(client.stopped.notified()).await;
    soon(client.served).await.unwrap();
}

#[tokio::test]
async fn a_client_that_only_closed_its_input_still_gets_its_answers() {
    let mut client = Client::started().await;
    for id in 1..=3 {
        client.request(id, "tools/call", json!({"name": "echo", "arguments": {"length": 100_000}})).await;
    }
    client.write.shutdown().await.unwrap();
    for _ in 1..=3 {
        assert_eq!(client.answer().await["result"]["content"][0]["text"].as_str().map(str::len), Some(100_000));
    }
    soon(client.served).await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_is_read_no_further_and_loses_nothing() {
    const REQUESTS: usize = 600;
    const LENGTH: usize = 5000;
    let limits = Limits { unread: PIPE, ..Limits::default() };
    // The answers that wait in the server, and those that the pipe holds.
    let waiting = (limits.unread + PIPE) / LENGTH;
    let Client { mut read, mut write, calls, .. } = Client::started_with(limits).await;
    let flood = tokio::spawn(async move {
        for id in 0..REQUESTS {
            let arguments = json!({"length": LENGTH, "padding": " ".repeat(1000)});
            let params = json!({"name": "echo", "arguments": arguments});
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
            write.write_all(request.as_bytes()).await.unwrap();
            write.write_all(b"\n").await.unwrap();
        }
        write
    });
    while calls.load(Ordering::Relaxed) < waiting {
        tokio::task::yield_now().await;
    }
    // All tasks run in this thread. A server that keeps reading would be far ahead once no task can
    // proceed.
    let mut still = None;
    while still != Some(calls.load(Ordering::Relaxed)) {
        still = Some(calls.load(Ordering::Relaxed));
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    }
    for answered in 0..REQUESTS {
        let ahead = calls.load(Ordering::Relaxed) - answered;
        assert!(ahead <= waiting + REQUEST_LIMIT + 1, "{ahead} answers wait for a client that does not read");
        assert!(read.next_line().await.unwrap().is_some());
    }
    flood.await.unwrap();
}

/// Returns the notification that cancels the call with this id.
fn cancel(id: i64) -> String {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()
}

#[tokio::test]
async fn a_form_of_a_call_that_was_cancelled_is_taken_back_and_a_late_answer_is_dropped() {
    let mut client = Client::started().await;
    client.request(1, "tools/call", json!({"name": "ask"})).await;
    let first = client.answer().await;
    assert_eq!(first["method"], "elicitation/create", "{first}");
    client.line(&cancel(1)).await;
    let told = client.answer().await;
    assert_eq!((&told["method"], &told["params"]["requestId"]), (&json!("notifications/cancelled"), &first["id"]));

    client.request(2, "tools/call", json!({"name": "ask"})).await;
    let second = client.answer().await;
    for (question, action) in [(&first, "accept"), (&second, "decline")] {
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action}});
        client.line(&answer.to_string()).await;
    }
    let answer = client.answer().await;
    assert_eq!(answer["result"]["content"][0]["text"], "Decline", "{answer}");
    // A form that was answered is not withdrawn.
    client.is_alive().await;
}

#[tokio::test]
async fn a_form_is_taken_back_also_at_a_client_that_reads_late() {
    let mut client = Client::started_with(Limits { unread_notifications: 0, ..Limits::default() }).await;
    client.request(1, "tools/call", json!({"name": "ask"})).await;
    let question = client.answer().await;
    // More than the pipe holds waits to be read.
    client.request(2, "tools/call", json!({"name": "echo", "arguments": {"length": 3 * PIPE}})).await;
    let before = client.waiting_more_than(3 * PIPE).await;
    client.line(&cancel(1)).await;
    client.waiting_more_than(before).await;
    let told = [client.answer().await, client.answer().await];
    let back = told.iter().find(|message| message["method"] == "notifications/cancelled");
    assert_eq!(back.map(|back| &back["params"]["requestId"]), Some(&question["id"]));
}
