//! `clhs`: the page of the HyperSpec or of SBCL's manual about a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compile_form::Refusal;
use crate::ide::manuals::Manuals;
use crate::ide::{manual_page, manual_text};
use crate::model::error_kind::ErrorKind;

/// The tool `clhs`.
pub(crate) struct Clhs;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// A symbol, ~A, #', sb-ext:name
    #[schemars(length(min = 1))]
    symbol: String,
}

/// The address of the page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ManualPage {
    #[serde(skip_serializing_if = "Option::is_none")]
    manual: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

impl Tool for Clhs {
    type Input = Input;
    type Output = ManualPage;

    const NAME: &'static str = "clhs";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str =
        "The address of a name's page in the HyperSpec or SBCL's manual; its text if the person has a copy.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    const NEEDS_IMAGE: bool = false;

    async fn call(call: Call, Input { symbol }: Input) -> Reply<ManualPage> {
        let manuals = Manuals::new(&call.session.settings(call.client).await.hyperspec);
        let Some(page) = manual_page::find(&call.session, &manuals, &symbol, None).await else {
            return Failure { kind: ErrorKind::NOT_FOUND, message: manual_page::no_page_message(&symbol) }.into();
        };
        let text = match page.file.clone() {
            Some(file) => tokio::task::spawn_blocking(move || manual_text::read(&file)).await.ok().flatten(),
            None => None,
        };
        let address = format!("{}: {}", page.manual, page.url);
        let text = text.map_or(address.clone(), |text| format!("{address}\n\n{text}"));
        let facts = ManualPage { manual: Some(page.manual), url: Some(page.url), error: None };
        Reply { text, facts, failed: false, full: None }
    }
}

impl FromFailure for ManualPage {
    fn from_failure(failure: Failure) -> Self {
        ManualPage { error: Some(failure.into()), ..ManualPage::default() }
    }
}
