//! Tests of the link. The test simulates the image at the other end.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use super::*;

/// The image's end of the link.
struct Other {
    reader: BufReader<StdUnixStream>,
    writer: StdUnixStream,
}

impl Other {
    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn write(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).unwrap();
        self.writer.write_all(b"\n").unwrap();
    }

    fn answer(&mut self, to: &Value, result: Value) {
        self.write(&json!({"id": to["id"], "result": result}).to_string());
    }
}

fn open() -> (Arc<Link>, Other) {
    let (ours, theirs) = StdUnixStream::pair().unwrap();
    let link = Link::open(ours, &Handle::current(), |_| {}).unwrap();
    (link, Other { reader: BufReader::new(theirs.try_clone().unwrap()), writer: theirs })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_find_their_calls_in_any_order() {
    let (link, mut other) = open();
    let mut first = link.call("eval", &json!({"n": 1}), Some("a"), Listener::None).unwrap();
    let mut second = link.call("eval", &json!({"n": 2}), Some("b"), Listener::None).unwrap();
    assert_eq!(link.running(Some("b"), &["eval"]), [second.id()]);
    assert_eq!(link.running(None, &["eval"]).len(), 2);
    let (one, two) = (other.read(), other.read());
    assert_eq!((&one["op"], &one["params"]["n"]), (&json!("eval"), &json!(1)));
    other.answer(&two, json!("two"));
    other.write(
        &json!({"id": one["id"], "error": {"kind": "package-not-found", "message": "Package X not found"}}).to_string(),
    );
    assert_eq!(second.result::<String>().await.unwrap(), "two");
    match first.result::<String>().await {
        Err(CallError::Refused(ImageError::Refused { kind, message })) => {
            assert_eq!((kind.as_str(), message.as_str()), ("package-not-found", "Package X not found"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(first.result::<String>().await, Err(CallError::Gone)), "an answer comes once");
    assert!(link.running(None, &["eval"]).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_code_is_interrupted_on_drop_and_requests_to_a_stop_are_not() {
    let (link, mut other) = open();
    for op in ["debug-breakpoints", "debug-function-breakpoints", "debug-set", "inspect-set", "system-files", "new"] {
        drop(link.call(op, &json!({}), None, Listener::None).unwrap());
        let request = other.read();
        let interrupt = other.read();
        assert_eq!((&interrupt["op"], &interrupt["params"]["target"]), (&json!("interrupt"), &request["id"]), "{op}");
    }
    for op in ["debug-abort", "debug-continue", "debug-restart", "check-system"] {
        drop(link.call(op, &json!({}), None, Listener::None).unwrap());
        assert_eq!(other.read()["op"], op);
    }
    link.notify("close-session", &json!({"session": "s"}));
    assert_eq!(other.read()["op"], "close-session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_call_interrupts_and_its_late_answer_is_discarded() {
    let (link, mut other) = open();
    let call = link.call("eval", &json!({}), None, Listener::None).unwrap();
    let request = other.read();
    drop(call);
    let interrupt = other.read();
    assert_eq!(interrupt["op"], "interrupt");
    assert_eq!(interrupt["params"]["target"], request["id"]);
    other.answer(&request, json!(null));
    other.answer(&request, json!("again"));
    let mut next = link.call("status", &json!({}), None, Listener::None).unwrap();
    let request = other.read();
    other.answer(&request, json!(7));
    assert_eq!(next.result::<u8>().await.unwrap(), 7);
    drop(next); // answered, so nothing is sent
    link.notify("close-session", &json!({"session": "s"}));
    assert_eq!(other.read()["op"], "close-session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_go_to_their_call_and_endless_output_is_cut() {
    let (link, mut other) = open();
    let (sender, mut output) = mpsc::unbounded_channel();
    let mut call = link.call("eval", &json!({}), None, Listener::Output(sender, 0)).unwrap();
    let id = other.read()["id"].as_u64().unwrap();
    let event = json!({"event": "output", "id": id, "stream": "stderr", "text": "x".repeat(4096)}).to_string();
    other.write(&json!({"event": "output", "id": id + 99, "stream": "stdout", "text": "nobody's"}).to_string());
    for _ in 0..1000 {
        other.write(&event);
    }
    other.answer(&json!({"id": id}), json!("end"));
    assert_eq!(call.result::<String>().await.unwrap(), "end");
    drop(call);
    let mut text = String::new();
    while let Some(chunk) = output.recv().await {
        assert!(chunk.stderr);
        text += &chunk.text;
    }
    assert!(text.len() < MAX_STREAMED_BYTES + 8192, "{}", text.len());
    assert!(text.ends_with("[more output is not shown while it runs]\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_leaves_requests_unread_has_closed_its_link() {
    let (link, other) = open();
    let mut call = link.call("eval", &json!({}), None, Listener::None).unwrap();
    drop(other);
    assert!(call.result::<String>().await.is_err());
    assert_eq!(link.why_closed().as_deref(), Some(CLOSED_BY_IMAGE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_bad_frames_are_survived_and_many_close_the_link() {
    let (link, mut other) = open();
    let mut call = link.call("eval", &json!({}), None, Listener::None).unwrap();
    let request = other.read();
    for bad in ["", "nonsense", "[[[[", "{\"id\":", "{}", "{\"id\":1}", "\u{0}", "{\"event\":\"progress\"}"] {
        other.write(bad);
    }
    other.answer(&request, json!("fine"));
    assert_eq!(call.result::<String>().await.unwrap(), "fine");
    let mut call = link.call("eval", &json!({}), None, Listener::None).unwrap();
    for _ in 0..BAD_FRAMES {
        other.write("nonsense");
    }
    assert!(matches!(call.result::<String>().await, Err(CallError::Gone)));
    link.closed().await;
    assert!(link.why_closed().unwrap().contains("frames in a row"));
    let mut call = link.call("eval", &json!({}), None, Listener::None).unwrap();
    assert!(matches!(call.result::<String>().await, Err(CallError::Gone)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_larger_than_the_socket_takes_is_written_whole_and_in_order() {
    let (link, mut other) = open();
    let large = "y".repeat(3 << 20);
    let first = link.call("eval", &json!({ "code": large }), None, Listener::None).unwrap();
    let second = link.call("eval", &json!({"code": "small"}), None, Listener::None).unwrap();
    let (one, two) = tokio::task::spawn_blocking(move || (other.read(), other.read())).await.unwrap();
    assert_eq!(one["params"]["code"].as_str().map(str::len), Some(3 << 20));
    assert_eq!(two["params"]["code"], "small");
    drop((first, second));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_long_to_send_is_refused_and_an_image_that_does_not_read_is_busy() {
    let limit = 6 << 20;
    let (ours, other) = StdUnixStream::pair().unwrap();
    let link = Link::open_limited(ours, &Handle::current(), limit, |_| {}).unwrap();
    let too_long = link.call("eval", &json!({"code": "z".repeat(limit)}), None, Listener::None);
    assert!(matches!(too_long.err(), Some(ImageError::Refused { kind, .. }) if kind == "bad-arguments"));
    let half = json!({"code": "z".repeat(limit / 2)});
    let mut calls = Vec::new();
    let busy = loop {
        match link.call("eval", &half, None, Listener::None) {
            Ok(call) => calls.push(call),
            Err(error) => break error,
        }
        assert!(calls.len() < 10);
    };
    assert!(matches!(busy, ImageError::Busy(_)));
    drop(other);
    for mut call in calls {
        assert!(matches!(call.result::<Value>().await, Err(CallError::Gone)));
    }
}
