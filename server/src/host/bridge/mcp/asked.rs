//! The host's own requests to the client (`elicitation/create`) that the client has not answered.
//!
//! Each host counts its ids from zero, and the client outlives hosts. Therefore the bridge gives
//! each request an id that no other connection uses. An answer is passed on only to the connection
//! that sent the request. A form that a killed host left open thus never answers a question of the
//! next host.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::host::bridge::pending::Peek;

/// The unanswered requests, by the id that the client knows. The values are the number of the
/// connection and the id that the host knows.
#[derive(Debug, Default)]
pub(super) struct HostRequests(HashMap<String, (u64, Value)>);

impl HostRequests {
    /// Returns the line to send to the client in place of a line of the host. Returns `None` if the
    /// line itself is to be sent.
    pub(super) fn line_for_client(&mut self, number: u64, line: &[u8]) -> Option<Vec<u8>> {
        let peek = Peek::of(line)?;
        if let Some((id, _)) = peek.request() {
            let known = id_for_client(number, id);
            self.0.insert(known.clone(), (number, id.clone()));
            return changed(line, |message| message["id"] = known.into());
        }
        if peek.method.as_deref() != Some("notifications/cancelled") {
            return None;
        }
        changed(line, |message| {
            let id = &mut message["params"]["requestId"];
            let known = id_for_client(number, id);
            if self.0.remove(&known).is_some() {
                *id = known.into();
            }
        })
    }

    /// Returns the line to send to the host in place of the client's answer. Returns `None` if the
    /// connection `number` waits for no such answer.
    pub(super) fn line_for_host(&mut self, number: u64, id: &Value, line: &[u8]) -> Option<Vec<u8>> {
        let id = id.as_str()?;
        self.0.get(id).filter(|(asked, _)| *asked == number)?;
        let (_, own) = self.0.remove(id)?;
        changed(line, |message| message["id"] = own)
    }

    /// Removes the requests of a connection that has ended, and returns the notifications that
    /// cancel them at the client.
    pub(super) fn withdraw(&mut self, number: u64, why: &str) -> Vec<Vec<u8>> {
        let ids: Vec<String> = self.0.extract_if(|_, (asked, _)| *asked == number).map(|(known, _)| known).collect();
        let notification = |id| {
            let params = json!({"requestId": id, "reason": why});
            format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        };
        ids.into_iter().map(|id| notification(id).into_bytes()).collect()
    }
}

/// Returns the id by which the client knows a request of the host.
fn id_for_client(number: u64, id: &Value) -> String {
    format!("{number}-{id}")
}

fn changed(line: &[u8], change: impl FnOnce(&mut Value)) -> Option<Vec<u8>> {
    let mut message: Value = serde_json::from_slice(line).ok()?;
    change(&mut message);
    Some(format!("{message}\n").into_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn line(message: Value) -> Vec<u8> {
        format!("{message}\n").into_bytes()
    }

    fn read(line: &[u8]) -> Value {
        assert!(line.ends_with(b"\n"));
        serde_json::from_slice(line).unwrap()
    }

    fn question() -> Vec<u8> {
        line(json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {"message": "Line?"}}))
    }

    fn answer(id: &Value) -> Vec<u8> {
        line(json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}}))
    }

    #[test]
    fn an_answer_goes_to_the_host_that_asked_and_to_no_other() {
        let mut asked = HostRequests::default();
        let first = read(&asked.line_for_client(1, &question()).unwrap());
        assert_eq!(first["params"]["message"], "Line?");
        let taken_back = asked.withdraw(1, "it ended");
        assert_eq!(taken_back.len(), 1);
        let taken_back = read(&taken_back[0]);
        assert_eq!(taken_back["method"], "notifications/cancelled");
        assert_eq!(taken_back["params"], json!({"requestId": first["id"], "reason": "it ended"}));

        let second = read(&asked.line_for_client(2, &question()).unwrap());
        assert_ne!(first["id"], second["id"]);
        assert_eq!(
            asked.line_for_host(2, &first["id"], &answer(&first["id"])),
            None,
            "the question of the host that is gone"
        );
        assert_eq!(asked.line_for_host(2, &json!(0), &answer(&json!(0))), None, "an id that the client was never told");
        assert_eq!(
            asked.line_for_host(3, &second["id"], &answer(&second["id"])),
            None,
            "a connection that asked nothing"
        );
        let passed = asked.line_for_host(2, &second["id"], &answer(&second["id"])).unwrap();
        assert_eq!(read(&passed), json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept"}}));
        assert_eq!(asked.line_for_host(2, &second["id"], &answer(&second["id"])), None, "a second answer");
        assert_eq!(asked.withdraw(2, "it ended"), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_question_that_the_host_takes_back_is_named_as_the_client_knows_it() {
        let mut asked = HostRequests::default();
        let told = read(&asked.line_for_client(1, &question()).unwrap());
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0, "reason": "r"}});
        let passed = read(&asked.line_for_client(1, &line(cancelled)).unwrap());
        assert_eq!(passed["params"], json!({"requestId": told["id"], "reason": "r"}));
        assert_eq!(asked.line_for_host(1, &told["id"], &answer(&told["id"])), None);
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        let mut asked = HostRequests::default();
        for other in [
            line(json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
            line(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})),
            b"no JSON\n".to_vec(),
        ] {
            assert_eq!(asked.line_for_client(1, &other), None);
        }
    }
}
