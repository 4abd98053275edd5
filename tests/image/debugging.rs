//! Stopped programs, as the host sees them.

use consort::image::api::EvalParams;
use consort::image::api::debug::{
    DebugAbort, DebugContinue, DebugEval, DebugFrames, DebugLocals, DebugPause, DebugRestart, DebugStops, Inspect,
};
use consort::model::action_outcome::ActionStatus;
use consort::model::evaluation::EvalStatus;
use consort::model::image::ImageError;
use consort::model::stop::Stop;
use consort::model::stop::StopEvent;
use consort_tests::patience::AMPLE;
use consort_tests::stops::FAILS;
use tokio::sync::broadcast::Receiver;

use crate::support::{Fixture, params, soon};

fn debugged(code: &str, timeout: f64) -> EvalParams {
    EvalParams { debug: true, ..params("test", code, timeout) }
}

async fn stopped(events: &mut Receiver<StopEvent>) -> Stop {
    loop {
        if let StopEvent::Stopped(stop) = soon(events.recv()).await.unwrap() {
            return *stop;
        }
    }
}

async fn left(events: &mut Receiver<StopEvent>, number: u64) -> String {
    loop {
        if let StopEvent::Left(left) = soon(events.recv()).await.unwrap()
            && left.stop == number
        {
            return left.how;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_looked_at_and_left_by_a_restart() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    fixture.eval(FAILS).await;
    let mut events = fixture.image.stop_events();
    let work = fixture.image.eval(debugged("(let ((k (list 1 2 3))) (list (outer k 7) k))", AMPLE), None);
    let look = async {
        let stop = stopped(&mut events).await;
        assert_eq!(stop.condition.as_ref().unwrap().kind, "SIMPLE-ERROR");
        assert_eq!(stop.session.as_deref(), Some("test"));
        let number = stop.number;
        let frames =
            soon(fixture.image.query(&DebugFrames { stop: number, start: 0, count: 20 })).await.unwrap().frames;
        let names: Vec<_> = frames.iter().map(|frame| frame.name.as_str()).collect();
        assert_eq!(names, ["FAILS", "OUTER", "top-level form"]);
        let place = frames[2].place.clone().unwrap();
        assert_eq!(place.span, Some((30, 41)));
        assert_eq!(place.form.as_deref(), Some("(outer k 7)"));
        let locals =
            soon(fixture.image.query(&DebugLocals { stop: number, frame: 2, start: 0, count: 20 })).await.unwrap();
        let k = locals.locals.iter().find(|local| local.name == "K").unwrap().value.clone().unwrap();
        assert_eq!(k.text, "(1 2 3)");
        let inside =
            soon(fixture.image.query(&Inspect { reference: k.reference, path: Vec::new(), start: 1, count: 1 }))
                .await
                .unwrap();
        assert_eq!((inside.total, inside.parts[0].value.text.as_str()), (3, "2"));
        let code = DebugEval { stop: number, frame: 1, code: "(* 2 y)".into(), debug: false, warnings: false };
        assert_eq!(soon(fixture.image.at_stop(&code)).await.unwrap().values[0].text, "14");
        // Everybody else goes on.
        let other = soon(fixture.image.eval(params("other", "(+ 1 2)", AMPLE), None)).await.unwrap();
        assert_eq!(other.values[0].text, "3");
        let restart = DebugRestart {
            stop: number,
            index: 0,
            name: Some("USE-OTHER".into()),
            arguments: vec!["42".into()],
            input: None,
        };
        assert_eq!(soon(fixture.image.at_stop(&restart)).await.unwrap().status, ActionStatus::Sent);
        assert_eq!(left(&mut events, number).await, "restart");
        match soon(fixture.image.at_stop(&restart)).await {
            Err(ImageError::Refused { kind, .. }) => assert_eq!(kind, "stale"),
            other => panic!("{other:?}"),
        }
    };
    let (outcome, ()) = soon(async { tokio::join!(work, look) }).await;
    assert_eq!(outcome.unwrap().values[0].text, "(((:USED 42) 7) (1 2 3))");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_time_that_it_runs_counts_for_the_host_too() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let mut events = fixture.image.stop_events();
    // Far beyond the deadline and the host's grace.
    let work = fixture.image.eval(debugged("(progn (break \"here\") :went-on)", 2.0), None);
    let look = async {
        let stop = stopped(&mut events).await;
        soon(fixture.image.eval(params("other", "(sleep 8)", AMPLE), None)).await.unwrap();
        soon(fixture.image.at_stop(&DebugContinue { stop: stop.number })).await.unwrap();
    };
    let (outcome, ()) = soon(async { tokio::join!(work, look) }).await;
    assert_eq!(outcome.unwrap().values[0].text, ":WENT-ON");
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_paused_and_aborted() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let mut events = fixture.image.stop_events();
    let work = fixture.image.eval(debugged("(loop)", AMPLE), None);
    let look = async {
        fixture.runs(1).await;
        let running = soon(fixture.image.facts()).await.unwrap().running;
        let target = running[0]["id"].as_u64().unwrap();
        soon(fixture.image.at_stop(&DebugPause { target })).await.unwrap();
        let stop = stopped(&mut events).await;
        assert_eq!(stop.reason, "pause");
        assert_eq!(soon(fixture.image.query(&DebugStops {})).await.unwrap().stops.len(), 1);
        soon(fixture.image.at_stop(&DebugAbort { stop: stop.number })).await.unwrap();
    };
    let (outcome, ()) = soon(async { tokio::join!(work, look) }).await;
    assert_eq!(outcome.unwrap().status, EvalStatus::Interrupted);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_ends_its_stop() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let mut events = fixture.image.stop_events();
    let work = fixture.image.eval(debugged("(error \"boom\")", AMPLE), None);
    let number = tokio::select! {
        outcome = work => panic!("{outcome:?}"),
        stop = stopped(&mut events) => stop.number,
    };
    assert_eq!(left(&mut events, number).await, "stopped");
    assert_eq!(fixture.values("(+ 1 2)").await, ["3"]);
    fixture.close().await;
}
