#![allow(clippy::unwrap_used)]

use lsp_types::*;
use tokio::io::{DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::Notify;

use super::*;

/// The number of bytes that may wait for a client.
const QUEUED: usize = 1 << 20;
/// The length of the answer to the command `big`.
const BIG: usize = 1 << 16;

/// A record of the calls of the mock's handlers.
#[derive(Debug, Default)]
struct Seen {
    edits: Mutex<Vec<i32>>,
    started: Notify,
    dropped: Notify,
}

struct Mock {
    seen: Arc<Seen>,
}

struct OnDrop(Arc<Seen>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Mock {
    async fn initialize(&self, _: InitializeParams) -> Result<InitializeResult> {
        Ok(InitializeResult::default())
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        self.seen.edits.lock().unwrap().push(params.text_document.version);
        tokio::task::yield_now().await;
    }

    async fn hover(&self, _: HoverParams) -> Result<Option<Hover>> {
        let _guard = OnDrop(self.seen.clone());
        self.seen.started.notify_one();
        std::future::pending().await
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        match params.command.as_str() {
            "panic" => panic!("as the test asked"),
            "late panic" => {
                tokio::task::yield_now().await;
                panic!("as the test asked")
            }
            "refuse" => Err(Error::invalid_params(params.arguments[0].as_str().unwrap().to_owned())),
            "big" => Ok(Some(Value::String("x".repeat(BIG)))),
            command => Ok(Some(Value::String(command.into()))),
        }
    }
}

struct Client {
    read: Frames<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    seen: Arc<Seen>,
    peer: Peer,
    server: tokio::task::JoinHandle<Ended>,
}

impl Client {
    async fn start() -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let seen = Arc::new(Seen::default());
        let (service, _) = LspService::new(|_| Mock { seen: seen.clone() });
        let (peer, out) = Peer::new(QUEUED);
        let (read, write) = split(theirs);
        let server = tokio::spawn(run(service, peer.clone(), out, read, write));
        let (read, write) = split(ours);
        let mut client = Client { read: Frames::new(read), write, seen, peer, server };
        client.send(json!({"id": 0, "method": "initialize", "params": {"capabilities": {}}})).await;
        assert_eq!(client.receive().await["id"], 0);
        client
    }

    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.send_raw(&message.to_string()).await;
    }

    async fn send_raw(&mut self, body: &str) {
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.write.write_all(frame.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        match self.read.next().await.unwrap() {
            Some(Frame::Message(message)) => message,
            other => panic!("expected a message, got {other:?}"),
        }
    }

    async fn hover(&mut self, id: i64) {
        let params = json!({"textDocument": {"uri": "file:///a.lisp"}, "position": {"line": 0, "character": 0}});
        self.send(json!({"id": id, "method": "textDocument/hover", "params": params})).await;
    }

    async fn command(&mut self, id: i64, command: &str) -> Value {
        self.send(json!({"id": id, "method": "workspace/executeCommand", "params": {"command": command}})).await;
        self.receive().await
    }
}

#[tokio::test]
async fn exit_ends_the_connection_while_the_client_keeps_its_end_open() {
    let mut client = Client::start().await;
    client.send(json!({"id": 1, "method": "shutdown", "params": null})).await;
    assert_eq!(client.receive().await, json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    client.send(json!({"method": "exit", "params": null})).await;
    assert_eq!(client.server.await.unwrap(), Ended::Exit { clean: true });
    drop(client.write);
}

#[tokio::test]
async fn exit_without_shutdown_is_told_apart() {
    let mut client = Client::start().await;
    client.send(json!({"method": "exit"})).await;
    assert_eq!(client.server.await.unwrap(), Ended::Exit { clean: false });
}

#[tokio::test]
async fn a_cancellation_and_other_requests_do_not_wait_behind_slow_ones() {
    let mut client = Client::start().await;
    for id in 1..=100 {
        client.hover(id).await;
    }
    assert_eq!(client.command(200, "quick").await["result"], "quick");
    client.send(json!({"method": "$/cancelRequest", "params": {"id": 77}})).await;
    let answer = client.receive().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(77), &json!(-32800)));
    client.seen.dropped.notified().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_arrive_in_the_order_they_were_sent() {
    let mut client = Client::start().await;
    for version in 1..=2000 {
        let params = json!({"textDocument": {"uri": "file:///a.lisp", "version": version}, "contentChanges": []});
        client.send(json!({"method": "textDocument/didChange", "params": params})).await;
    }
    assert_eq!(client.command(1, "after").await["result"], "after");
    assert_eq!(*client.seen.edits.lock().unwrap(), (1..=2000).collect::<Vec<i32>>());
}

#[tokio::test]
async fn a_client_that_vanishes_cancels_its_requests() {
    let mut client = Client::start().await;
    client.hover(1).await;
    client.seen.started.notified().await;
    let Client { read, write, seen, server, .. } = client;
    drop((read, write));
    assert_eq!(server.await.unwrap(), Ended::Disconnected);
    seen.dropped.notified().await;
}

#[tokio::test]
async fn a_client_that_never_reads_is_given_up() {
    let mut client = Client::start().await;
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "workspace/executeCommand", "params": {"command": "big"}})
            .to_string();
    let frame = format!("Content-Length: {}\r\n\r\n{request}", request.len());
    // The server stops reading when it closes the connection, so that a write may fail before all
    // requests are sent.
    for _ in 0..QUEUED / BIG + 2 {
        if client.write.write_all(frame.as_bytes()).await.is_err() {
            break;
        }
    }
    assert_eq!(client.server.await.unwrap(), Ended::Disconnected);
}

#[tokio::test]
async fn every_message_that_cannot_be_used_is_answered_and_the_next_is_served() {
    let mut client = Client::start().await;
    for (body, code) in [
        ("{\"jsonrpc\":", -32700),
        ("[]", -32600),
        ("17", -32600),
        (r#"{"jsonrpc":"1.0","id":5,"method":"shutdown"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":6,"method":"no/such"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"$/noSuch"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":8,"method":"textDocument/hover","params":{}}"#, -32602),
    ] {
        client.send_raw(body).await;
        let answer = client.receive().await;
        assert_eq!(answer["error"]["code"], code, "{body} was answered by {answer}");
    }
    client.send(json!({"method": "no/such/notification"})).await;
    assert_eq!(client.command(9, "fine").await["result"], "fine");
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_connection_goes_on() {
    let mut client = Client::start().await;
    for (id, command) in [(1, "panic"), (2, "late panic")] {
        let answer = client.command(id, command).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    }
    assert_eq!(client.command(3, "fine").await["result"], "fine");
}

#[tokio::test]
async fn our_own_requests_get_their_answers_and_end_with_the_connection() {
    let mut client = Client::start().await;
    let asking = tokio::spawn({
        let peer = client.peer.clone();
        async move { peer.request("workspace/configuration", json!({"items": []})).await }
    });
    let request = client.receive().await;
    assert_eq!(request["method"], "workspace/configuration");
    client.send(json!({"id": request["id"], "result": [1]})).await;
    assert_eq!(asking.await.unwrap(), Ok(json!([1])));

    let asking = tokio::spawn({
        let peer = client.peer.clone();
        async move { peer.request("window/workDoneProgress/create", json!({"token": 1})).await }
    });
    let request = client.receive().await;
    client.send(json!({"id": request["id"], "error": {"code": -32601, "message": "no"}})).await;
    assert_eq!(asking.await.unwrap().unwrap_err().message, "no");

    let asking = tokio::spawn({
        let peer = client.peer.clone();
        async move { peer.request("workspace/workspaceFolders", Value::Null).await }
    });
    client.receive().await;
    client.send(json!({"method": "exit"})).await;
    assert!(crate::patience::soon(asking).await.unwrap().is_err());
}

#[tokio::test]
async fn of_states_that_a_client_has_not_read_the_newest_is_kept() {
    let mut client = Client::start().await;
    let text = "x".repeat(BIG);
    // More than the maximum number of queued bytes.
    let last = 2 * QUEUED / BIG;
    for number in 0..=last {
        client.peer.notify_newest("state", "one", json!({"number": number, "text": text}));
        client.peer.notify_newest("state", "other", json!({"number": -(number as i64)}));
    }
    let mut seen = Vec::new();
    while seen.last() != Some(&json!(-(last as i64))) {
        seen.push(client.receive().await["params"]["number"].take());
    }
    assert!(seen.contains(&json!(last)) && seen.len() < 10, "{seen:?}");
    assert_eq!(client.command(1, "fine").await["result"], "fine");
}

#[tokio::test]
async fn an_error_that_an_editor_shows_is_only_text() {
    let mut client = Client::start().await;
    let nasty: Vec<String> = serde_json::from_str(include_str!("../../../../tests/fixtures/nasty.json")).unwrap();
    for (id, nasty) in (1..).zip(&nasty) {
        let params = json!({"command": "refuse", "arguments": [nasty]});
        client.send(json!({"id": id, "method": "workspace/executeCommand", "params": params})).await;
        let answer = client.receive().await;
        assert_eq!(answer["error"]["message"], shown::notification(nasty), "{answer}");
    }
}

#[test]
fn a_state_counts_before_a_newer_one_can_replace_it() {
    let (peer, _outgoing) = Peer::new(QUEUED);
    let latest = lock(&peer.inner.latest);
    let sender = std::thread::spawn({
        let peer = peer.clone();
        move || peer.notify_newest("state", "one", json!({}))
    });
    crate::patience::until("the notification counts", || peer.inner.backlog.load(Ordering::Relaxed) > 0);
    drop(latest);
    sender.join().unwrap();
}
