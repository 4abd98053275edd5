//! The exception filters of a client: stops where conditions are signalled, whether they are
//! handled or not.

use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::Answer;
use super::breakpoints::NOT_RUNNING;
use super::connection::Connection;
use crate::locked::lock;
use crate::model::image::ImageState;
use crate::session::debug::DebugBreakOn;

/// The arguments of `setExceptionBreakpoints`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Filters {
    #[serde(default)]
    filters: Vec<String>,
    #[serde(default)]
    filter_options: Vec<Chosen>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chosen {
    filter_id: String,
    condition: Option<String>,
}

/// Returns the condition type of a chosen filter. It is the filter's `condition`, or else its id,
/// which may be the name of any type.
fn type_of(filter: &str, condition: Option<&str>) -> String {
    condition.map(str::trim).filter(|condition| !condition.is_empty()).unwrap_or(filter).to_owned()
}

/// Handles `setExceptionBreakpoints`: sets the client's filters.
pub(super) async fn set(connection: &Connection, Filters { filters, filter_options }: Filters) -> Answer {
    let plain = filters.iter().map(|filter| type_of(filter, None));
    let chosen = filter_options.iter().map(|one| type_of(&one.filter_id, one.condition.as_deref()));
    let types: Vec<String> = plain.chain(chosen).collect();
    // The lock ensures that the image gets the newest filters last.
    let _turn = connection.setting.lock().await;
    lock(&connection.break_on).clone_from(&types);
    let count = types.len();
    if !matches!(connection.session.image_state(), ImageState::Ready { .. }) {
        return Ok(json!({"breakpoints": vec![json!({"verified": false, "message": NOT_RUNNING}); count]}));
    }
    let operation = DebugBreakOn { owner: connection.owner(), types };
    let shown: Vec<Value> = match connection.session.set_breakpoints(operation).await {
        Ok(answer) => answer
            .breakpoints
            .into_iter()
            .map(|one| json!({"verified": one.verified, "message": one.message}))
            .collect(),
        Err(error) => vec![json!({"verified": false, "message": error.to_string()}); count],
    };
    Ok(json!({ "breakpoints": shown }))
}

/// Sets the client's filters in a new image.
pub(super) async fn set_again(connection: &Connection) {
    let _turn = connection.setting.lock().await;
    let types = lock(&connection.break_on).clone();
    if types.is_empty() {
        return;
    }
    if let Err(error) = connection.session.set_breakpoints(DebugBreakOn { owner: connection.owner(), types }).await {
        tracing::debug!(%error, "exception filters were not set again");
    }
}

/// Removes the client's filters, also in the image.
pub(super) async fn clear(connection: &Connection) {
    let _turn = connection.setting.lock().await;
    let none = std::mem::take(&mut *lock(&connection.break_on)).is_empty();
    if none || !matches!(connection.session.image_state(), ImageState::Ready { .. }) {
        return;
    }
    let operation = DebugBreakOn { owner: connection.owner(), types: Vec::new() };
    if let Err(error) = connection.session.set_breakpoints(operation).await {
        tracing::debug!(%error, "exception filters of a debugger that left were not taken out");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_type() {
        assert_eq!(type_of("error", None), "error");
        assert_eq!(type_of("condition", Some(" shop::sold-out ")), "shop::sold-out");
        assert_eq!(type_of("condition", Some(" ")), "condition");
        // VS Code leaves out the options if there are none.
        let filters: Option<Filters> = serde_json::from_value(json!({"filters": ["error"]})).ok();
        assert!(filters.is_some_and(|filters| filters.filters == ["error"] && filters.filter_options.is_empty()));
    }
}
