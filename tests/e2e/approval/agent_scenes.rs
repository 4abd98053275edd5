//! The scenes of breakpoints and steps, by an agent.

use consort::config::Config;
use consort::config::Source;
use consort::config::approval::{Class, Setting};
use consort_tests::agent::text;
use consort_tests::scenes::{NAME, SCENES, TEXT, WAITING, place};
use serde_json::json;

use crate::support::Guarded;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_stops_and_steps_in_many_places() {
    let mut config = Config::default();
    config.approval.set(Class::ModifyRunningCode, Setting::Allow, Source::User).expect("a person may");
    let guarded = Guarded::configured(config).await;
    guarded.world.is_ready().await;
    let file = guarded.world.path(NAME);
    std::fs::write(&file, TEXT).expect("a file");
    let mut agent = guarded.agent("agent").await;
    let load = json!({"code": format!("(load {:?})", file.display().to_string())});
    assert_eq!(agent.call("evaluate-lisp", load).await["isError"], false);
    let lines: Vec<usize> = WAITING.iter().map(|(part, _)| place(part).0).collect();
    let refused = agent.call("set-breakpoints", json!({"file": NAME, "lines": lines})).await;
    for (line, (_, definer)) in lines.iter().zip(WAITING) {
        let wanted = format!("{NAME}:{line}: not set: Evaluate this {definer} form");
        assert!(text(&refused).to_uppercase().contains(&wanted.to_uppercase()), "no {wanted} in {}", text(&refused));
    }
    let at = |part: &str| {
        let (line, column) = place(part);
        format!("{NAME}:{line}:{column}")
    };
    for scene in SCENES {
        let set = agent.call("set-breakpoints", json!({"file": NAME, "lines": [place(scene.at).0]})).await;
        assert!(text(&set).ends_with(": set"), "{scene:?}: {set}");
        let mut stopped = agent.call("evaluate-lisp", json!({"code": scene.code})).await;
        agent.call("set-breakpoints", json!({"file": NAME, "lines": []})).await;
        for (how, begins) in [("", scene.at)].iter().chain(scene.steps) {
            let stop = &stopped["structuredContent"]["stop"];
            match *how {
                "" => (),
                "over" => stopped = agent.call("debug", json!({"action": "step", "stop": stop})).await,
                how => stopped = agent.call("debug", json!({"action": format!("step-{how}"), "stop": stop})).await,
            }
            assert!(text(&stopped).contains(&at(begins)), "no {} ({begins}) of {scene:?} in {stopped}", at(begins));
        }
        let stop = &stopped["structuredContent"]["stop"];
        let ended = agent.call("debug", json!({"action": "continue", "stop": stop})).await;
        assert!(text(&ended).eq_ignore_ascii_case(&format!("=> {}", scene.value)), "{scene:?}: {ended}");
    }
    guarded.end().await;
}
