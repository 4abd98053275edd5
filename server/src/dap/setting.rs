//! `setVariable`: a local of a frame, or a part of a value.

use serde_json::{Value, json};

use super::answers::{Answer, MAX_PAGE, error_message, trouble};
use super::connection::Connection;
use super::protocol::SetVariable;
use super::variables::{Referent, part_name};
use crate::ide::context::Backend as _;
use crate::locked::lock;
use crate::model::action_outcome::ActionStatus;
use crate::session::debug::{DebugSet, Inspect, InspectSet};
use crate::shown;

/// Sets the variable or part that a client names by its name in a `variables` response.
pub(super) async fn set(connection: &Connection, wanted: SetVariable) -> Answer {
    let SetVariable { variables_reference, name, value: code } = wanted;
    let referent = lock(&connection.handles).get(variables_reference);
    let session = &connection.session;
    let done = match referent {
        Some(Referent::Locals { stop, frame }) => session.at_stop(DebugSet { stop, frame, name, code }).await,
        Some(Referent::Parts { reference, start }) => {
            let page = session
                .query(Inspect { reference, path: Vec::new(), start, count: MAX_PAGE })
                .await
                .map_err(error_message)?;
            let mut named = page.parts.iter().enumerate().filter(|(_, part)| shown::line(part_name(part)) == name);
            let part = match (named.next(), named.next()) {
                (Some((at, _)), None) => start + at,
                (Some(_), Some(_)) => return Err(format!("There are several parts {name}.")),
                (None, _) => return Err(format!("There is no part {name} any more.")),
            };
            session.at_stop(InspectSet { reference, part, code, timeout: None }).await
        }
        Some(Referent::Frame { .. } | Referent::Restarts { .. }) => return Err("That cannot be set.".into()),
        None => return Err("The value is no longer available.".into()),
    };
    let done = done.map_err(error_message)?;
    let Some(value) = done.values.first().filter(|_| done.status == ActionStatus::Ok) else {
        return Err(trouble(&done));
    };
    let inside = lock(&connection.handles).parts(value);
    Ok(
        json!({"value": value.text, "type": value.kind.clone().map_or(Value::Null, Value::from), "variablesReference": inside}),
    )
}
