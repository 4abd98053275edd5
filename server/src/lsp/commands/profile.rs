//! The command `consort.profileForm`.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, at_place, seconds};
use crate::ide::profile::{ProfileReport, ProfileSettings, ReportFormat, render};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::profile::ProfileMode;
use crate::text::forms::toplevel_form;

/// The default time limit, in seconds. It is a day, because a user can interrupt the run.
const DEADLINE: f64 = 86_400.0;

/// Profiles code.
pub(super) struct ProfileForm;

/// The argument of `consort.profileForm`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    /// The code to run. If it is absent, the top-level form at `position` in `uri` is run.
    code: Option<String>,
    package: Option<String>,
    uri: Option<Url>,
    position: Option<Position>,
    mode: Option<ProfileMode>,
    report: Option<Kind>,
    sample_interval: Option<f64>,
    max_samples: Option<u32>,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Flat,
    Graph,
}

impl Command for ProfileForm {
    type Argument = Argument;
    const NAME: &'static str = "consort.profileForm";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"code": "...", "package"?: "...", "mode"?: "cpu" | "time" | "alloc", "report"?: "flat" | "graph", "sampleInterval"?: seconds, "maxSamples"?: number, "timeout"?: seconds}] or, for the top-level form at a place, "uri" and "position" instead of "code""#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let bar = connection.bars.begin(token, false, "Profiling", true);
        let timeout = seconds(ProfileForm::NAME, argument.timeout)?.unwrap_or(DEADLINE);
        let (code, package) = match (argument.code, argument.uri, argument.position) {
            (code, Some(uri), Some(position)) => {
                let place = at_place(connection, &uri, position).await?;
                let form = toplevel_form(&place.document, place.offset);
                let code = match (code, form) {
                    (Some(code), _) => code,
                    (None, Some(span)) => place.document.text().slice(span.start..span.end).to_string(),
                    (None, None) => return Err(Error::invalid_params("There is no form at that place.")),
                };
                (code, argument.package.or(place.package))
            }
            (Some(code), ..) => (code, argument.package),
            _ => return Err(Error::invalid_params(format!("Its `arguments` are {}.", ProfileForm::EXPECTS))),
        };
        let asked = ProfileSettings {
            mode: argument.mode.unwrap_or(ProfileMode::Cpu),
            interval: argument.sample_interval.unwrap_or(0.01),
            report: if matches!(argument.report, Some(Kind::Graph)) { ReportFormat::Graph } else { ReportFormat::Flat },
        };
        let operation = asked.operation(code, package, argument.max_samples.unwrap_or(1000), timeout);
        let within = std::time::Duration::from_secs_f64(timeout);
        let answer = connection.session.run(connection.client, "profiling".into(), operation, Some(within), None);
        let answer = tokio::select! {
            answer = answer => answer.map_err(|error| to_proto::error(&error))?,
            () = bar.cancelled.cancelled() => return Err(Error::request_cancelled()),
        };
        let facts = ProfileReport::new(answer, &asked);
        let text = render(&facts, &asked);
        Ok(json!({"text": text, "profile": facts}))
    }
}
