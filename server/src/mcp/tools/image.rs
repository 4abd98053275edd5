//! `image`: the image's state and running work; interrupt and restart.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::facts::Facts;
use super::{Call, Failure, Hints, Reply, Tool};
use crate::session::approval::{Class, Subject};
use crate::session::describe_image;

/// The tool `image`.
pub(crate) struct Image;

/// The action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Action {
    Status,
    Interrupt,
    Restart,
}

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// restart: loses what is not loaded from files
    action: Action,
}

impl Tool for Image {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "image";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str = "The Lisp image: status (what runs or is stopped, memory, systems), \
interrupt, restart (last resort).";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
    const NEEDS_IMAGE: bool = false;
    const HAS_QUOTA: bool = false;

    fn required_approval(input: &Input) -> Option<(Class, Subject)> {
        let what = "restart the Lisp image: definitions that were only evaluated are lost".into();
        (input.action == Action::Restart).then(|| (Class::RestartImage, Subject { what, ..Subject::default() }))
    }

    async fn call(call: Call, Input { action }: Input) -> Reply<Facts> {
        let Call { session, client, progress, interrupt, .. } = call;
        let done = |text: String, value: Value| Reply { text, facts: Facts::new(value), failed: false, full: None };
        match action {
            Action::Status => {
                let status = session.status().await;
                let work = if status.work.is_empty() { "Nothing runs.".into() } else { status.work.join("\n") };
                let image = &status.image;
                let text = format!(
                    "The image is {}.\n{}\n{work}{}",
                    image["state"].as_str().unwrap_or("unknown"),
                    serde_json::to_string(&image["facts"]).unwrap_or_default(),
                    status.untrusted.as_ref().map_or_else(String::new, |notice| format!("\n{notice}"))
                );
                let mut facts = json!({"image": status.image, "work": status.work});
                if let Some(notice) = status.untrusted {
                    facts["untrusted"] = notice.into();
                }
                done(text, facts)
            }
            Action::Interrupt => match match interrupt {
                Some(interrupt) => interrupt.count().await,
                None => session.interrupt(client, false).await,
            } {
                Ok(0) => done("Nothing of yours was running.".into(), json!({"interrupted": 0})),
                Ok(count) => done(format!("Interrupted: {count}."), json!({"interrupted": count})),
                Err(error) => Failure::of(error, None).into(),
            },
            Action::Restart => match progress.report_during(session.restart_image(client), None).await {
                Ok(()) => {
                    let state = describe_image(&session.image_state());
                    let what = "A new image is running. Definitions and values that were only evaluated are lost; systems that were loaded through \
                                Consort, and code that was compiled into the old image, were loaded again.";
                    done(what.into(), json!({"image": state}))
                }
                Err(error) => Failure::of(error, None).into(),
            },
        }
    }
}
