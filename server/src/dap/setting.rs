//! `setVariable`: a local of a frame, or a part of a value.

use serde_json::{Value, json};

use super::answers::{Answer, MAX_PAGE, error_message, trouble};
use super::connection::Connection;
use super::protocol::SetVariable;
use super::variables::{Referent, part_name};
use crate::ide::context::Backend as _;
use crate::locked::lock;
use crate::model::action_outcome::ActionStatus;
use crate::model::inspection::Inspected;
use crate::session::debug::{DebugSet, Inspect, InspectSet};
use crate::shown;

/// The maximum number of pages that are searched for a part.
const MAX_PAGES: usize = 100;

/// Returns the number of the part with this name in a `variables` response. Searches the pages from
/// the part `start` on. The name of an entry of a hash table is that of its key, so that further
/// pages may have the same name; other names are searched up to the first page that has them.
async fn find_part<F: Future<Output = Result<Inspected, String>>>(
    name: &str,
    start: usize,
    mut page: impl FnMut(usize) -> F,
) -> Result<usize, String> {
    let (mut next, mut found) = (start, None);
    for _ in 0..MAX_PAGES {
        let Inspected { parts, total, .. } = page(next).await?;
        let named = (next..).zip(&parts).filter(|(_, part)| shown::line(part_name(part)) == name);
        for (at, part) in named {
            if found.replace((at, part.key.is_some())).is_some() {
                return Err(format!("There are several parts {name}."));
            }
        }
        if let Some((at, false)) = found {
            return Ok(at);
        }
        next += parts.len();
        if parts.is_empty() || next >= total {
            return found.map(|(at, _)| at).ok_or_else(|| format!("There is no part {name} any more."));
        }
    }
    Err(format!("The part {name} is not among the {} parts from number {start} on.", next - start))
}

/// Sets the variable or part that a client names by its name in a `variables` response.
pub(super) async fn set(connection: &Connection, wanted: SetVariable) -> Answer {
    let SetVariable { variables_reference, name, value: code } = wanted;
    let referent = lock(&connection.handles).get(variables_reference);
    let session = &connection.session;
    let done = match referent {
        Some(Referent::Locals { stop, frame }) => session.at_stop(DebugSet { stop, frame, name, code }).await,
        Some(Referent::Parts { reference, start }) => {
            let page = |start| async move {
                let page = Inspect { reference, path: Vec::new(), start, count: MAX_PAGE };
                session.query(page).await.map_err(error_message)
            };
            let part = find_part(&name, start, page).await?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::inspection::Part;

    /// Searches the parts from 100 on, of which each second one has the same name.
    async fn find(name: &str, total: usize, asked: &mut Vec<usize>) -> Result<usize, String> {
        let value = json!({"text": "", "type": "T", "reference": 0});
        let part: Part = serde_json::from_value(json!({"label": "", "value": value, "missing": false})).unwrap();
        let inspected = json!({"value": value, "kind": "vector", "note": null, "total": total, "parts": []});
        let inspected: Inspected = serde_json::from_value(inspected).unwrap();
        let page = |start: usize| {
            asked.push(start);
            let label = |at: usize| if at % 2 == 1 { "odd".into() } else { at.to_string() };
            let parts = (start..total.min(start + MAX_PAGE)).map(|at| Part { label: label(at), ..part.clone() });
            std::future::ready(Ok(Inspected { parts: parts.collect(), ..inspected.clone() }))
        };
        find_part(name, 100, page).await
    }

    #[tokio::test]
    async fn a_part_is_found_beyond_the_first_page() {
        let mut asked = Vec::new();
        assert_eq!(find("2200", 2500, &mut asked).await, Ok(2200));
        assert_eq!(asked, [100, 1100, 2100]);
        assert!(find("odd", 2500, &mut asked).await.is_err_and(|why| why.contains("several")));
        assert!(find("2600", 2500, &mut asked).await.is_err_and(|why| why.contains("any more")));
        assert!(find("-", usize::MAX, &mut asked).await.is_err_and(|why| why.contains("100000 parts")));
    }
}
