//! Tests with copies that misbehave in ways that a real copy never would. A thread simulates the
//! image. Another process of this test program simulates a copy.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::*;
use crate::config::{Config, InitFile, LispConfig};
use crate::image::api::CheckParams;
use crate::image::frames::{Features, Ready};
use crate::image::instance::Instance;
use crate::image::link::Link;
use crate::image::pipes::Pipes;
use crate::image::runtime::{Phase, Runtime};
use crate::locked::lock;
use crate::model::check::{CheckEnd, CheckMode, CheckReport};
use crate::patience::{AMPLE, PATIENCE, comes, soon};
use crate::steady::timeout;

/// Simulates a copy with the behaviour that `CONSORT_TEST_SCRIPT` names. Started by
/// [`SimulatedImage`] only.
#[test]
#[ignore = "this is the copy of the other tests, not a test"]
fn act_as_copy() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let script = variable("CONSORT_TEST_SCRIPT");
    let forever = || std::thread::sleep(Duration::from_secs(3600));
    if script == "mute" {
        forever();
    }
    let mut stream = StdUnixStream::connect(variable("CONSORT_TEST_SOCKET")).unwrap();
    let mut say = |line: Value| writeln!(stream, "{line}");
    let token = if script == "liar" { "wrong".into() } else { variable("CONSORT_TEST_TOKEN") };
    say(json!({"token": token, "pid": std::process::id()})).unwrap();
    match script.as_str() {
        "idle" => forever(),
        "locked out" => {
            say(json!({"locked": "a lock of theirs"})).unwrap();
            std::process::exit(71);
        }
        _ => {}
    }
    say(json!({"at": [0, 3]})).unwrap();
    if !script.starts_with("forged") {
        say(json!({"diagnostic": {"span": [1, 2], "severity": "warning", "code": "found", "message": "m"}})).unwrap();
        say(json!({"at": [4, 9]})).unwrap();
    }
    match script.as_str() {
        "good" => say(json!({"done": {"forms": 2, "read": 2}})).unwrap(),
        "forged early" => say(json!({"done": {"forms": 2, "read": 2}})).unwrap(),
        "forged last" => {
            say(json!({"at": [0, 9]})).unwrap();
            say(json!({"done": {"forms": 2, "read": 2}})).unwrap();
        }
        "forged and gone on" => {
            say(json!({"at": [4, 9]})).unwrap();
            say(json!({"done": {"forms": 2, "read": 2}})).unwrap();
            say(json!({"diagnostic": {"span": [5, 6], "severity": "error", "code": "late", "message": "m"}})).unwrap();
        }
        "forged exit" => {
            say(json!({"at": [4, 9]})).unwrap();
            say(json!({"done": {"forms": 2, "read": 2}})).unwrap();
            std::process::exit(70);
        }
        "forged hang" => {
            say(json!({"at": [4, 9]})).unwrap();
            say(json!({"done": {"forms": 2, "read": 2}})).unwrap();
            forever();
        }
        "hang" => forever(),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(70),
        "flood" => while say(json!({"nonsense": "x".repeat(100_000)})).is_ok() {},
        "long line" => {
            let _ = stream.write_all(&vec![b'x'; LINE_LIMIT + 100_000]); // the host closes it midway
            forever();
        }
        "hoard" => {
            let scratch = std::path::PathBuf::from(variable("CONSORT_TEST_SOCKET")).with_file_name("hoard");
            std::fs::create_dir(&scratch).unwrap();
            for number in 0_u64.. {
                // The host kills this process before it removes the directory, so no write fails.
                std::fs::write(scratch.join(number.to_string()), "").unwrap();
            }
        }
        "hog" => {
            let held = vec![1_u8; 256 << 20];
            forever();
            drop(held);
        }
        other => panic!("{other}"),
    }
    std::process::exit(0);
}

/// A simulated image. Each request for a check gets the next of the given reactions. The last one
/// is repeated.
struct SimulatedImage {
    runner: Arc<Runner>,
    seen: Arc<Observed>,
    _private: TempDir,
    /// The other ends of the image's descriptors 1 and 2.
    _printed: [std::io::PipeWriter; 2],
}

#[derive(Default)]
struct Observed {
    /// The number of copies that run now.
    now: AtomicUsize,
    /// The greatest number of copies that ran at once.
    most: AtomicUsize,
    /// The exit code or the signal with which each copy ended.
    ends: Mutex<Vec<(Option<i32>, Option<i32>)>>,
    asked: AtomicUsize,
}

/// The time limits for a copy to connect, at the first and at the second try, for tests in which
/// the first copy hangs before it connects.
const CONNECT: [Duration; 2] = [Duration::from_millis(200), PATIENCE];

impl SimulatedImage {
    fn new(scripts: &[&'static str]) -> SimulatedImage {
        SimulatedImage::waiting(scripts, [PATIENCE; 2])
    }

    fn waiting(scripts: &[&'static str], connect: [Duration; 2]) -> SimulatedImage {
        let private = tempfile::tempdir().unwrap();
        let config = LispConfig { command: Vec::new(), init_file: InitFile::None, ..Config::default().lisp };
        let (events, _) = mpsc::unbounded_channel();
        let directory = private.path().to_owned();
        let runtime = Runtime::new(config, directory.clone(), directory.clone(), directory, events);
        let waits = Waits { busy: Duration::from_millis(1), connect, begin: connect[0] };
        let runner = Arc::new(Runner::new(Arc::new(runtime), waits, 2));
        let (ours, theirs) = StdUnixStream::pair().unwrap();
        let link = Link::open(ours, &Handle::current(), |_| {}).unwrap();
        let ((out, out_writer), (err, err_writer)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        let pipes = Pipes::open(out.into(), err.into(), Arc::new(|_, _| {}), &Handle::current()).unwrap();
        let ready = Ready {
            protocol: 1,
            pid: std::process::id(),
            image: "double".into(),
            lisp: "none".into(),
            features: Features::default(),
        };
        runner.forker.runtime.phase.send_replace(Phase::Ready(Arc::new(Instance::new(1, link, pipes, ready))));
        let seen = Arc::new(Observed::default());
        let (scripts, seen_) = (scripts.to_vec(), seen.clone());
        std::thread::spawn(move || play(theirs, &scripts, &seen_));
        SimulatedImage { runner, seen, _private: private, _printed: [out_writer, err_writer] }
    }

    async fn check(&self, change: impl FnOnce(&mut CheckParams)) -> Result<CheckReport, ImageError> {
        self.check_as(CheckSeries::Single, change).await
    }

    async fn check_edited(&self) -> Result<CheckReport, ImageError> {
        self.check_as(CheckSeries::Edited, |_| {}).await
    }

    async fn check_as(
        &self,
        priority: CheckSeries,
        change: impl FnOnce(&mut CheckParams),
    ) -> Result<CheckReport, ImageError> {
        let mut params = CheckParams {
            text: "(a)\n(b c)\n".into(),
            path: None,
            expected: Expected::default(),
            mode: CheckMode::Form,
            package: None,
            withheld: Vec::new(),
            asd_files: Vec::new(),
            notes: false,
            unreachable: false,
            confine: true,
            deadline: AMPLE,
            memory: 1 << 30,
        };
        change(&mut params);
        soon(self.runner.check(params, priority)).await
    }

    /// Returns the ends of the copies, those by a signal first, because copies that end together
    /// are reaped in either order.
    fn ends(&self) -> Vec<(Option<i32>, Option<i32>)> {
        let mut ends = lock(&self.seen.ends).clone();
        ends.sort_unstable();
        ends
    }

    /// Waits until all copies and their directories are gone.
    async fn nothing_left(&self) {
        comes("the end of all copies and tasks", async || {
            (self.seen.now.load(Ordering::SeqCst) == 0 && self.runner.forker.runtime.tasks.is_empty()).then_some(())
        })
        .await;
        assert_eq!(std::fs::read_dir(&self.runner.forker.runtime.private).unwrap().count(), 0);
    }
}

fn play(stream: StdUnixStream, scripts: &[&'static str], seen: &Arc<Observed>) {
    let writer = Arc::new(Mutex::new(stream.try_clone().unwrap()));
    let mut scripts = scripts.iter();
    let mut script = *scripts.next().unwrap();
    for line in BufReader::new(stream).lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if request["op"] != "check" {
            let answer = json!({"id": request["id"], "error": {"kind": "unknown", "message": "only checks here"}});
            writeln!(lock(&writer), "{answer}").unwrap();
            continue;
        }
        if seen.asked.fetch_add(1, Ordering::SeqCst) > 0 {
            script = scripts.next().copied().unwrap_or(script);
        }
        let id = request["id"].clone();
        let write = |frame: Value| writeln!(lock(&writer), "{frame}").unwrap();
        match script {
            "busy" => write(json!({"id": id, "error": {"kind": "busy", "message": "compiling"}})),
            "cannot fork" => write(json!({"id": id, "error": {"kind": "cannot-fork", "message": "no fork here"}})),
            "die" => return lock(&writer).shutdown(std::net::Shutdown::Both).unwrap(),
            _ => {
                let child = start_copy(script, &request["params"]);
                seen.most.fetch_max(seen.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                write(json!({"event": "copy", "id": id, "pid": child.id()}));
                if script == "mute" {
                    impersonate(&request["params"]);
                }
                let (writer, seen) = (writer.clone(), seen.clone());
                std::thread::spawn(move || reap(child, &id, &writer, &seen));
            }
        }
    }
}

fn start_copy(script: &str, params: &Value) -> Child {
    let text = |name: &str| params[name].as_str().unwrap().to_owned();
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "checker::copy::tests::act_as_copy"])
        .env("CONSORT_TEST_SCRIPT", script)
        .env("CONSORT_TEST_SOCKET", text("socket"))
        .env("CONSORT_TEST_TOKEN", text("token"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Connects to the host as a process that knows the token, but is not the copy.
fn impersonate(params: &Value) {
    let mut stream = StdUnixStream::connect(params["socket"].as_str().unwrap()).unwrap();
    let _ = writeln!(stream, "{}\n{}", json!({"token": params["token"]}), json!({"done": {"forms": 9}})); // may be closed already
}

fn reap(mut child: Child, id: &Value, writer: &Mutex<StdUnixStream>, seen: &Observed) {
    let status = child.wait().unwrap();
    lock(&seen.ends).push((status.code(), status.signal()));
    seen.now.fetch_sub(1, Ordering::SeqCst);
    let answer = json!({"id": id, "result": {"pid": child.id(), "exit": status.code(), "signal": status.signal()}});
    let _ = writeln!(lock(writer), "{answer}"); // the host may have closed the link
}

fn codes(report: &CheckReport) -> Vec<&str> {
    report.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect()
}

fn reason(report: &CheckReport) -> &str {
    match &report.end {
        CheckEnd::Stopped { reason } => reason,
        CheckEnd::Complete => "complete",
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_copy_gives_its_findings_and_an_image_that_was_busy_is_asked_again() {
    let double = SimulatedImage::new(&["busy", "busy", "good"]);
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!((report.end.clone(), report.forms, codes(&report)), (CheckEnd::Complete, 2, vec!["found"]));
    double.nothing_left().await;
    let double = SimulatedImage::new(&["busy"]);
    assert!(matches!(double.check(|_| {}).await, Err(ImageError::Busy(message)) if message == "compiling"));
    double.nothing_left().await;
    // A check of an edited text fails at once, so that the user is told the reason.
    let double = SimulatedImage::new(&["busy", "good"]);
    assert!(matches!(double.check_edited().await, Err(ImageError::Busy(message)) if message == "compiling"));
    assert_eq!(double.check_edited().await.unwrap().end, CheckEnd::Complete);
    double.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_result_needs_more_than_the_word_of_the_copy() {
    for (script, why) in [
        ("forged early", "1 of the 2 forms"),
        ("forged last", "1 of the 2 forms"),
        ("forged exit", "code 70"),
        ("forged hang", "longer than"),
        ("forged and gone on", "after it had reported the end"),
    ] {
        let double = SimulatedImage::new(&[script]);
        let report = double
            .check(|params| {
                params.expected = Expected { plain: vec![0, 4], ..Expected::default() };
                params.deadline = 5.0;
            })
            .await
            .unwrap();
        assert!(reason(&report).contains(why), "{script}: {report:?}");
        assert!(!report.diagnostics.is_empty(), "{script}");
        double.nothing_left().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_of_edited_texts_overtake_others() {
    let double = Arc::new(SimulatedImage::new(&["hang", "hang", "good"]));
    let other = || {
        let double = double.clone();
        tokio::spawn(async move { double.check(|_| {}).await })
    };
    let others = [other(), other()];
    comes("the two checks", async || (double.seen.asked.load(Ordering::SeqCst) == others.len()).then_some(())).await;
    let report = double.check_edited().await.unwrap();
    assert_eq!(report.end, CheckEnd::Complete);
    others.iter().for_each(tokio::task::JoinHandle::abort);
    double.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_work_leaves_a_copy_for_checks() {
    let double = Arc::new(SimulatedImage::new(&["hang", "good"]));
    let work = || {
        let double = double.clone();
        tokio::spawn(async move {
            let job = CopyJob::warm(json!({"text": "", "confine": true}));
            let job = CopyJob { deadline: AMPLE, memory: 1 << 30, ..job };
            double.runner.run(&job, Queue::Work).await.map(|_| ())
        })
    };
    let works = [work(), work(), work()];
    comes("work in a copy", async || (double.seen.asked.load(Ordering::SeqCst) == 1).then_some(())).await;
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!((report.end, double.seen.asked.load(Ordering::SeqCst)), (CheckEnd::Complete, 2));
    works.iter().for_each(tokio::task::JoinHandle::abort);
    double.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_cannot_fork_is_not_asked_again_but_a_second_process() {
    let double = SimulatedImage::new(&["cannot fork"]);
    let refused = double.check(|_| {}).await;
    // The test has no program with which to start a second process.
    assert!(
        matches!(&refused, Err(ImageError::Unavailable(message)) if message.contains("no second SBCL process")),
        "{refused:?}"
    );
    assert_eq!(double.seen.asked.load(Ordering::SeqCst), 1);
    double.nothing_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_passes_a_limit_is_killed_and_told_at_the_form_it_was_at() {
    for (script, code, word) in [
        ("hang", "out-of-time", "longer than the 2 s"),
        ("hog", "out-of-memory", "more than the 64 MB"),
        ("hoard", "check-stopped", "more than 50000 files"),
        ("flood", "check-stopped", "more than 32 MB"),
        ("long line", "check-stopped", "a line of more than 1 MiB"),
        ("abort", "check-stopped", "signal 6 (ABRT)"),
        ("exit", "check-stopped", "code 70"),
    ] {
        let double = SimulatedImage::new(&[script]);
        let change = |params: &mut CheckParams| match script {
            "hang" => params.deadline = 2.0,
            "hog" => params.memory = 64 << 20,
            _ => {}
        };
        let report = double.check(change).await.unwrap();
        assert_eq!(codes(&report), ["found", code], "{script}");
        assert!(reason(&report).contains(word), "{script}: {}", reason(&report));
        assert_eq!(report.diagnostics[1].span, (4, 9).into(), "{script}");
        double.nothing_left().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_without_its_token_is_not_believed() {
    let double = SimulatedImage::new(&["liar"]);
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!(codes(&report), ["check-stopped"]);
    assert!(reason(&report).contains("token"), "{}", reason(&report));
    double.nothing_left().await;
    assert_eq!(double.seen.ends.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_hangs_before_it_connects_is_killed_and_made_once_more() {
    let double = SimulatedImage::waiting(&["mute", "good"], CONNECT);
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!((reason(&report), report.forms), ("complete", 2), "another process's words do not count");
    double.nothing_left().await;
    // The second copy may be killed too: the exit of a copy that is done is not awaited.
    assert_eq!((double.ends().len(), double.ends()[0]), (2, (None, Some(9))));
    let double = SimulatedImage::waiting(&["mute"], [CONNECT[0]; 2]);
    let report = double.check(|_| {}).await.unwrap();
    assert!(reason(&report).contains("did not begin"), "{}", reason(&report));
    double.nothing_left().await;
    assert_eq!(double.ends(), [(None, Some(9)), (None, Some(9))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_hangs_before_its_work_is_killed_and_made_once_more() {
    let double = SimulatedImage::waiting(&["idle", "good"], CONNECT);
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!((reason(&report), report.forms), ("complete", 2));
    double.nothing_left().await;
    assert_eq!(double.ends()[0], (None, Some(9)));
    // The second copy has the whole deadline of a check to begin.
    let double = SimulatedImage::waiting(&["idle"], CONNECT);
    let report = double.check(|params| params.deadline = 1.0).await.unwrap();
    assert_eq!(codes(&report), ["out-of-time"]);
    double.nothing_left().await;
    assert_eq!(double.ends(), [(None, Some(9)), (None, Some(9))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_inherited_a_held_lock_is_made_again_until_it_has_not() {
    let double = SimulatedImage::new(&["locked out", "locked out", "good"]);
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!((reason(&report), report.forms), ("complete", 2));
    double.nothing_left().await;
    let double = SimulatedImage::new(&["locked out"]);
    let report = double.check(|_| {}).await.unwrap();
    assert_eq!(codes(&report), ["check-stopped"]);
    assert!(reason(&report).contains("needs the lock \"a lock of theirs\""), "{}", reason(&report));
    double.nothing_left().await;
    let tries = usize::try_from(BUSY_TRIES).unwrap() + 1;
    assert_eq!(double.ends(), vec![(Some(71), None); tries]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_check_kills_its_copy_at_any_time() {
    for wait in [0, 1, 20, 500] {
        let double = SimulatedImage::new(&["hang"]);
        assert!(timeout(Duration::from_millis(wait), double.check(|_| {})).await.is_err());
        double.nothing_left().await;
        assert!(lock(&double.seen.ends).iter().all(|end| *end == (None, Some(9))), "{wait} ms");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_copies_run_at_once_and_no_more() {
    let double = SimulatedImage::new(&["hang"]);
    let short = |params: &mut CheckParams| params.deadline = 1.5;
    let (a, b, c, d) = tokio::join!(double.check(short), double.check(short), double.check(short), double.check(short));
    for report in [a, b, c, d] {
        assert_eq!(codes(&report.unwrap()), ["found", "out-of-time"]);
    }
    double.nothing_left().await;
    assert_eq!(double.seen.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_death_of_the_image_is_reported_after_one_retry() {
    let double = SimulatedImage::new(&["die"]);
    let failed = async {
        comes("the check", async || (double.seen.asked.load(Ordering::SeqCst) > 0).then_some(())).await;
        double.runner.forker.runtime.phase.send_replace(Phase::Dead("It fell over.".into(), true));
    };
    let (report, ()) = tokio::join!(double.check(|_| {}), failed);
    assert!(matches!(report, Err(ImageError::Unavailable(_) | ImageError::Lost { .. })), "{report:?}");
    double.nothing_left().await;
}
