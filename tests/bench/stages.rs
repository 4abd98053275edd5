//! The stages of an evaluation's round trip, from the innermost outwards: each row has one stage
//! more than the row before.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use consort::image::api::package_contents::Homes;
use consort::session::{ClientInfo, EvalRequest, Frontend};
use consort_tests::clients::{Agent, Editor};
use consort_tests::lone_image::{LoneImage, evaluation};
use consort_tests::place::Place;
use consort_tests::world::World;
use serde_json::json;

use crate::report::{Aim, Report};
use crate::{MANY, WARM, in_milliseconds, milliseconds};

pub(crate) fn stages(report: &Report, place: &Place, editor: &mut Editor) -> Result<()> {
    let row = |what: &str, times: &[f64]| report.time(what, times, None, Aim::None, "");
    row("stage: a line to a process and back", &echo()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let lone = LoneImage::start().await;
        let nothing = Homes { symbols: Vec::new() };
        let mut times = Vec::new();
        for _ in 0..MANY + WARM {
            let begun = Instant::now();
            lone.image.query(&nothing).await?;
            times.push(milliseconds(begun));
        }
        row("stage: an operation of the image, without a host", &times[WARM..]);
        times.clear();
        for _ in 0..MANY + WARM {
            let begun = Instant::now();
            lone.image.eval(evaluation("bench", "(+ 1 2)"), None).await?;
            times.push(milliseconds(begun));
        }
        row("stage: eval by the image, without a host", &times[WARM..]);
        lone.finish().await;

        let world = World::ready(&[]).await;
        let info = ClientInfo { frontend: Frontend::Lsp, name: "the bench".into() };
        let (client, _feedback) = world.session.attach(info);
        times.clear();
        for _ in 0..MANY + WARM {
            let request = EvalRequest { code: "(+ 1 2)".into(), ..EvalRequest::default() };
            let begun = Instant::now();
            world.session.evaluate(client, request).await?;
            times.push(milliseconds(begun));
        }
        row("stage: eval by the session, without a client", &times[WARM..]);
        world.session.detach(client);
        world.end().await;
        anyhow::Ok(())
    })?;
    let mut agent = Agent::open(&mut place.command(&["mcp"]))?;
    let mut times = Vec::new();
    for _ in 0..MANY + WARM {
        times.push(in_milliseconds(agent.client.timed_request("ping", json!({}))?.1));
    }
    row("stage: ping through MCP, without the image", &times[WARM..]);
    agent.close()?;
    times.clear();
    let nothing = json!({"command": "consort.interrupt", "arguments": [{}]});
    for _ in 0..MANY + WARM {
        times.push(in_milliseconds(editor.client.timed_request("workspace/executeCommand", nothing.clone())?.1));
    }
    row("stage: an interrupt of nothing through LSP", &times[WARM..]);
    Ok(())
}

/// Times the round trip of a line to `cat`, through two pipes.
fn echo() -> Result<Vec<f64>> {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("a child without standard input")?;
    let mut stdout = BufReader::new(child.stdout.take().context("a child without standard output")?);
    let (mut times, mut line) = (Vec::new(), String::new());
    for _ in 0..MANY + WARM {
        line.clear();
        let begun = Instant::now();
        stdin.write_all(b"(+ 1 2)\n")?;
        stdout.read_line(&mut line)?;
        times.push(milliseconds(begun));
        ensure!(line == "(+ 1 2)\n", "{line}");
    }
    drop(stdin);
    child.wait()?;
    Ok(times.split_off(WARM))
}
