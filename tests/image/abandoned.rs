//! Requests to the image whose asker has left: they are interrupted, and hold nothing then.

use consort::image::Image;
use consort::image::api::breakpoints::{DebugBreakpoints, DebugFunctionBreakpoints};
use consort::image::api::debug::InspectSet;
use consort::image::api::package_contents::SystemFiles;
use consort::image::api::{EvalParams, Operation};
use consort::model::breakpoint::RequestedBreakpoint;
use consort_tests::patience::{AMPLE, comes};

use crate::support::{Fixture, params, soon};

/// Code that says that it has begun, and does not end.
const ENDLESS: &str = "(defvar *begun* nil) (defun endless () (setf *begun* t) (loop (sleep 0.01)))";

/// Sends a request, waits until its code runs, and leaves.
async fn leave<O: Operation>(fixture: &Fixture, operation: O) {
    let image: Image = fixture.image.clone();
    let asker = tokio::spawn(async move { image.at_stop(&operation).await.map(drop) });
    comes("the code of the request", async || (fixture.values("(shiftf *begun* nil)").await == ["T"]).then_some(()))
        .await;
    asker.abort();
    assert!(asker.await.unwrap_err().is_cancelled());
}

fn at_line(line: usize) -> Vec<RequestedBreakpoint> {
    vec![RequestedBreakpoint { id: 1, line: Some(line), ..RequestedBreakpoint::default() }]
}

fn at_function(name: &str) -> DebugFunctionBreakpoints {
    let points = vec![RequestedBreakpoint { id: 1, name: Some(name.into()), ..RequestedBreakpoint::default() }];
    DebugFunctionBreakpoints { owner: "other".into(), points }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn breakpoints_that_nobody_waits_for_hold_no_lock() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let text = "(defmacro m (x) x)\n(defun slow (x) (m (list x)))\n(defun quick (x) (list x))\n";
    let file = fixture.workspace.path().join("slow.lisp");
    std::fs::write(&file, text).unwrap();
    fixture.values(&format!("{ENDLESS} (load {:?})", file.to_str().unwrap())).await;
    fixture.values("(defvar *plain* #'slow) (defmacro m (x) (declare (ignore x)) (endless))").await;
    leave(
        &fixture,
        DebugBreakpoints { owner: "one".into(), file: file.clone(), text: text.into(), points: at_line(2) },
    )
    .await;
    let quick = soon(fixture.image.at_stop(&at_function("quick"))).await.unwrap().breakpoints;
    assert!(quick[0].verified, "{quick:?}");
    leave(&fixture, DebugFunctionBreakpoints { owner: "one".into(), ..at_function("slow") }).await;
    let nowhere = DebugBreakpoints { owner: "one".into(), file, text: String::new(), points: Vec::new() };
    soon(fixture.image.at_stop(&nowhere)).await.unwrap();
    comes("the plain definition", async || (fixture.values("(eq #'slow *plain*)").await == ["T"]).then_some(())).await;
    fixture.runs(0).await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_for_a_part_or_a_file_that_nobody_waits_for_is_ended() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    fixture.values(ENDLESS).await;
    let outcome = fixture.image.eval(EvalParams { refer: true, ..params("test", "(list 1 2)", AMPLE) }, None);
    let reference = soon(outcome).await.unwrap().references[0];
    leave(&fixture, InspectSet { reference, part: 0, code: "(endless)".into(), timeout: None }).await;
    fixture.runs(0).await;
    fixture
        .values(
            "(defun look (name) (when (equal name \"endless-system\") (endless)))
             (setf asdf:*system-definition-search-functions* (append asdf:*system-definition-search-functions* '(look)))",
        )
        .await;
    leave(&fixture, SystemFiles { system: "endless-system".into() }).await;
    comes("the end of the request's thread", async || {
        let threads =
            "(count \"consort system-files\" (sb-thread:list-all-threads) :key #'sb-thread:thread-name :test #'equal)";
        (fixture.values(threads).await == ["0"]).then_some(())
    })
    .await;
    fixture.close().await;
}
