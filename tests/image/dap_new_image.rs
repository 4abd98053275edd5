//! A debugger whose evaluation starts an image, or waits for one.

use consort::config::{Config, InitFile, LispConfig};
use consort::image::Image;
use consort::model::image::ImageState;
use consort::session::Session;
use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};

use crate::dap::Client;
use crate::support::{cache, config, params, soon};

/// The image is started by the evaluation, and has the client's breakpoints when it begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_evaluation_in_an_image_stops_at_breakpoints() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("init.lisp");
    let text = "(in-package :cl-user)\n(defun price (n)\n  (list :price n))\n";
    // The next image starts once something is written into this FIFO, which the first one has not.
    let gate = place.path().join("gate");
    let init = format!(
        "(load {:?}) (when (probe-file {gate:?}) (with-open-file (gate {gate:?}) (read-line gate)))",
        place.path().join("shop.lisp")
    );
    std::fs::write(&file, init).unwrap();
    std::fs::write(place.path().join("shop.lisp"), text).unwrap();
    let config = LispConfig { init_file: InitFile::File(file), ..config() };
    let workspace = tempfile::tempdir().unwrap();
    let private = tempfile::tempdir().unwrap();
    let (image, events) = Image::prepare_with_cache(config, workspace.path(), private.path().to_owned(), cache());
    let session = Session::start(Config::default(), workspace.path().to_path_buf(), image.clone(), events);
    let mut client = Client::connect(&session, PATIENCE);
    client.ask("initialize", json!({"adapterID": "consort"})).await;
    client.event("initialized").await;
    client.ask("setFunctionBreakpoints", json!({"breakpoints": [{"name": "cl-user::price"}]})).await;
    client.ask("attach", json!({"code": "(price 4)"})).await;
    client.ask("configurationDone", Value::Null).await;
    let first = client.wait(|message| message["event"] == "stopped" || message["event"] == "terminated").await;
    assert_eq!((&first["event"], &first["body"]["reason"]), (&json!("stopped"), &json!("breakpoint")));
    client.ask("continue", json!({"threadId": first["body"]["threadId"]})).await;
    client.event("terminated").await;

    // An evaluation that waits for the next image is ended before it begins.
    soon(image.eval(params("other", "(defvar cl-user::*ran* nil)", 60.0), None)).await.unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let restarted = tokio::spawn({
        let image = image.clone();
        async move { image.restart().await }
    });
    let mut state = image.watch();
    soon(state.wait_for(|state| !matches!(state, ImageState::Ready { .. }))).await.unwrap();
    let waiting = client.send("evaluate", json!({"expression": "(defvar cl-user::*ran* t)"})).await;
    client.ask("terminate", json!({})).await;
    assert_eq!(client.answer(waiting).await["message"], "cancelled");
    let opened = tokio::task::spawn_blocking(move || std::fs::write(gate, "go\n"));
    soon(restarted).await.unwrap().unwrap();
    opened.await.unwrap().unwrap();
    let ran = soon(image.eval(params("other", "(boundp 'cl-user::*ran*)", 60.0), None)).await.unwrap();
    assert_eq!(ran.values[0].text, "NIL");
    client.leave().await;
    drop(session);
    soon(image.shutdown()).await;
}
