//! Tests of the breakpoints that an agent gets back from the next host or connection.

#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio::sync::oneshot;

use super::rules::MAX_NAMED_FILES;
use super::*;
use crate::config::Source;
use crate::mcp::breakpoint_records::{BreakpointRecords, BridgeKey};
use crate::patience::soon;
use crate::session::ClientInfo;
use crate::session::approval::Class;

const BRIDGE: BridgeKey = BridgeKey { process: 7, started: 70 };

/// A session whose image cannot run, with an agent's breakpoints.
struct Host {
    place: tempfile::TempDir,
    session: Session,
    client: ClientId,
    own: Arc<AgentBreakpoints>,
    shared: Arc<BreakpointRecords>,
}

impl Host {
    /// Creates the next host of an agent that had these breakpoints.
    async fn with(kept: KeptFiles) -> Host {
        let place = tempfile::tempdir().unwrap();
        let session = Session::without_image(place.path());
        let (client, _) = session.attach(ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
        let shared = BreakpointRecords::open(place.path().join("breakpoints.json"), |_| true);
        let host = Host { place, session, client, own: Arc::default(), shared };
        if !kept.is_empty() {
            host.shared.connect(BRIDGE).0.keep(kept).await.unwrap();
        }
        let (bridge_record, kept) = host.shared.connect(BRIDGE);
        host.own.keep_with(bridge_record, kept);
        host
    }

    /// Reads the record from the file.
    fn record(&self) -> Arc<BreakpointRecords> {
        BreakpointRecords::open(self.place.path().join("breakpoints.json"), |_| true)
    }

    async fn take_over(&self) -> Option<String> {
        self.own.take_over(&self.session, self.client).await
    }

    /// Checks that `taking_over`, which waits for the editors, stays pending while all other tasks
    /// run.
    async fn waits(&self, mut taking_over: Pin<&mut impl Future<Output = Option<String>>>) {
        for _ in 0..20 {
            let polled = poll_fn(|context| Poll::Ready(taking_over.as_mut().poll(context))).await;
            assert!(polled.is_pending(), "{polled:?}");
            self.session.setting(Class::Eval).await;
        }
    }

    /// Attaches an editor with a setting for evaluation.
    fn editor(&self, eval: &str) -> ClientId {
        let (editor, _) = self.session.attach(ClientInfo { frontend: Frontend::Lsp, name: "editor".into() });
        self.session.configure_first(editor, serde_json::json!({"approval": {"eval": eval}}), Source::OwnClient);
        editor
    }

    /// Changes an editor's settings.
    fn settings(&self, editor: ClientId, class: &str, setting: &str) {
        self.session.configure(editor, serde_json::json!({"approval": {class: setting}}), Source::OwnClient);
    }

    fn lines(&self, file: &str) -> Vec<usize> {
        let state = self.own.lock();
        state.files.get(Path::new(file)).into_iter().flatten().filter_map(|point| point.line).collect()
    }
}

/// Returns a breakpoint in line 2 of a file, and one with a condition in line 3.
fn kept() -> KeptFiles {
    let point = |line, condition: Option<&str>| KeptPoint { line, condition: condition.map(Into::into) };
    KeptFiles::from([("/w/a.lisp".into(), vec![point(2, None), point(3, Some("(> x 1)"))])])
}

#[tokio::test]
async fn a_condition_is_dropped_when_code_may_run_only_in_a_copy() {
    for (eval, lines) in [("allow", vec![2, 3]), ("ask", vec![2, 3]), ("copy", vec![2]), ("deny", vec![2])] {
        let host = Host::with(kept()).await;
        host.editor(eval);
        let notice = host.take_over().await.unwrap();
        assert_eq!(host.lines("/w/a.lisp"), lines, "{eval}");
        let dropped = format!("were removed, because approval.eval is {eval:?} now: /w/a.lisp, line 3.");
        assert_eq!(notice.contains(&dropped), lines == [2], "{notice}");
        let on_record = host.record().connect(BRIDGE).1;
        let on_record: Vec<usize> = on_record.values().flatten().map(|point| point.line).collect();
        assert_eq!(on_record, lines, "{eval}");
    }
}

#[tokio::test]
async fn the_settings_of_an_editor_that_comes_later_count() {
    let host = Host::with(kept()).await;
    let (is_back, back) = oneshot::channel::<()>();
    host.session.wait_for_documents(async move { drop(back.await) });
    let mut taking_over = pin!(host.take_over());
    host.waits(taking_over.as_mut()).await;
    host.editor("deny");
    is_back.send(()).unwrap();
    let notice = taking_over.await.unwrap();
    assert!(notice.contains("approval.eval is \"deny\" now"), "{notice}");
    assert_eq!(host.lines("/w/a.lisp"), [2]);
}

#[tokio::test]
async fn breakpoints_that_are_denied_later_are_withdrawn_and_the_agent_is_told() {
    let host = Host::with(kept()).await;
    let editor = host.editor("allow");
    assert!(host.take_over().await.unwrap().contains("were kept"));
    let told = async || {
        loop {
            if let Some(notice) = host.take_over().await {
                return notice;
            }
            tokio::task::yield_now().await;
        }
    };
    let on_record = |lines: &'static [usize]| {
        let path = host.place.path().join("breakpoints.json");
        let look = move || {
            let record = BreakpointRecords::open(path.clone(), |_| true).connect(BRIDGE).1;
            record.values().flatten().map(|point| point.line).collect::<Vec<_>>() == lines
        };
        tokio::task::spawn_blocking(move || crate::patience::until("the record is written", look))
    };
    // The editor answers `workspace/configuration`.
    host.settings(editor, "eval", "deny");
    let notice = soon(told()).await;
    assert!(notice.contains("approval.eval is \"deny\" now: /w/a.lisp, line 3."), "{notice}");
    assert_eq!(host.lines("/w/a.lisp"), [2]);
    on_record(&[2]).await.unwrap();
    host.settings(editor, "modify-running-code", "deny");
    let notice = soon(told()).await;
    assert!(notice.contains("approval.modify-running-code is \"deny\" now: /w/a.lisp, line 2."), "{notice}");
    assert_eq!(host.lines("/w/a.lisp"), Vec::<usize>::new());
    on_record(&[]).await.unwrap();
}

#[tokio::test]
async fn calls_at_the_same_time_wait_and_one_tells_of_the_files_that_were_put_back() {
    let host = Host::with(kept()).await;
    let (is_back, back) = oneshot::channel::<()>();
    host.session.wait_for_documents(async move { drop(back.await) });
    // The first call is cancelled.
    host.waits(pin!(host.take_over())).await;
    let mut first = pin!(host.take_over());
    let mut second = pin!(host.take_over());
    host.waits(first.as_mut()).await;
    host.waits(second.as_mut()).await;
    is_back.send(()).unwrap();
    let (first, second) = tokio::join!(first, second);
    assert!(first.unwrap().contains("/w/a.lisp, line 2, 3"));
    assert_eq!(second, None);
    assert_eq!(host.lines("/w/a.lisp"), [2, 3]);

    let other = Host::with(kept()).await;
    other
        .own
        .replace(Path::new("/w/a.lisp"), vec![RequestedBreakpoint { line: Some(9), ..RequestedBreakpoint::default() }]);
    assert_eq!(other.take_over().await, None, "the file has newer breakpoints");
    assert_eq!(other.lines("/w/a.lisp"), [9]);
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_breakpoints_are_recorded_records_them() {
    let host = Host::with(kept()).await;
    host.editor("deny");
    let recording = host.own.recording.lock().await;
    {
        let mut taking_over = pin!(host.take_over());
        while !host.own.lock().kept.is_empty() {
            let polled = poll_fn(|context| Poll::Ready(taking_over.as_mut().poll(context))).await;
            assert!(polled.is_pending(), "{polled:?}");
            tokio::task::yield_now().await;
        }
    }
    drop(recording);
    crate::patience::comes("the record without the refused breakpoint", async || {
        let record = host.record().connect(BRIDGE).1;
        let lines: Vec<usize> = record.values().flatten().map(|point| point.line).collect();
        (lines == [2]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_ends_leaves_the_record_to_the_next_of_its_bridge() {
    let host = Host::with(kept()).await;
    assert_eq!(host.own.end(), Vec::<PathBuf>::new(), "before the first call");
    // The bridge repeats its handshake.
    let (bridge_record, again) = host.shared.connect(BRIDGE);
    assert_eq!(again, kept());
    host.own.keep_with(bridge_record, again);
    host.take_over().await.unwrap();
    assert_eq!(host.own.end(), [PathBuf::from("/w/a.lisp")], "they are taken out of the image");
    let (bridge_record, again) = host.shared.connect(BRIDGE);
    assert_eq!(again, kept());
    host.own.keep_with(bridge_record, again);
    host.editor("deny");
    assert!(host.take_over().await.unwrap().contains("/w/a.lisp, line 3"), "with the rules of a new host");
    assert_eq!(host.lines("/w/a.lisp"), [2]);
}

#[tokio::test]
async fn breakpoints_that_are_not_in_force_yet_are_on_record() {
    let host = Host::with(KeptFiles::new()).await;
    let points = vec![RequestedBreakpoint { line: Some(2), ..RequestedBreakpoint::default() }];
    let (recorded, set) = host.own.set((&host.session, host.client), Path::new("/w/a.lisp"), points).await;
    recorded.unwrap();
    assert!(set.is_err(), "the image cannot run");
    let on_record = host.record().connect(BRIDGE).1;
    assert_eq!(on_record, KeptFiles::from([("/w/a.lisp".into(), vec![KeptPoint { line: 2, condition: None }])]));
}

#[tokio::test]
async fn the_notice_names_a_limited_number_of_files() {
    let file = |number| (PathBuf::from(format!("/w/{number:02}.lisp")), vec![KeptPoint { line: 1, condition: None }]);
    let host = Host::with((0..MAX_NAMED_FILES + 2).map(file).collect()).await;
    let notice = host.take_over().await.unwrap();
    assert!(notice.contains("/w/19.lisp, line 1; and in 2 more files. In a new image"), "{notice}");
    assert!(!notice.contains("/w/20.lisp"), "{notice}");
    assert_eq!(host.lines("/w/21.lisp"), [1]);
}

#[tokio::test]
async fn the_image_gets_the_last_breakpoints_last() {
    let host = Host::with(KeptFiles::new()).await;
    let (file, given) = (Path::new("/w/a.lisp"), Mutex::new(Vec::new()));
    let give = |points: Vec<RequestedBreakpoint>| lock(&given).push(points.len());
    host.own.replace(file, vec![RequestedBreakpoint { line: Some(2), ..RequestedBreakpoint::default() }]);
    let (is_read, read) = oneshot::channel::<()>();
    // The text of the file is being read.
    let mut restored = pin!(host.own.in_turn(file, async |points| {
        read.await.unwrap();
        give(points);
    }));
    assert!(poll_fn(|context| Poll::Ready(restored.as_mut().poll(context))).await.is_pending());
    host.own.replace(file, Vec::new());
    let removed = host.own.in_turn(file, async |points| give(points));
    let mut removed = pin!(removed);
    let _ = poll_fn(|context| Poll::Ready(removed.as_mut().poll(context))).await;
    is_read.send(()).unwrap();
    restored.await;
    if lock(&given).len() < 2 {
        removed.await;
    }
    assert_eq!(*lock(&given), [1, 0]);
}

fn stopped(stop: u64) -> NextEvent {
    NextEvent::Stopped(Stopped { stop, image: None, thread: 1, reason: "step".into(), text: "step".into() })
}

/// Returns an evaluation that waits in the stop 1, and the sender of its events.
fn waiting() -> (Arc<AgentBreakpoints>, mpsc::UnboundedSender<NextEvent>) {
    let own: Arc<AgentBreakpoints> = Arc::default();
    let (tell, events) = mpsc::unbounded_channel();
    own.lock().waiting = Some(Waiting { stop: 1, events, _task: Task(tokio::spawn(std::future::pending())) });
    (own, tell)
}

#[tokio::test]
async fn the_next_stop_is_for_the_call_that_resumed_the_evaluation() {
    let (own, tell) = waiting();
    let resuming = own.take_waiting(1).unwrap();
    tell.send(stopped(2)).unwrap();
    // Another call checks the state meanwhile.
    assert!(!own.waits_in(1) && !own.waits_in(2) && !own.may_stop());
    let next = soon(resuming.next(&Reporter::silent())).await;
    assert!(matches!(next, Some(NextEvent::Stopped(Stopped { stop: 2, .. }))), "{next:?}");
    assert!(own.waits_in(2));
}

#[tokio::test]
async fn an_evaluation_that_was_not_resumed_waits_on() {
    let (own, _tell) = waiting();
    assert!(own.take_waiting(2).is_none());
    drop(own.take_waiting(1));
    assert!(own.waits_in(1));
}
