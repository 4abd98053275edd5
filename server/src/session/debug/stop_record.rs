//! The record of the stops that one client was told of.

use std::collections::{BTreeSet, VecDeque};

use crate::model::stop::Stop;
use crate::session::own_sessions::is_session_of;

/// The stops of one client's evaluations, as far as events and the image have told of them.
#[derive(Debug, Default)]
pub(super) struct StopRecord {
    /// The name of the client's own evaluation session.
    name: String,
    /// The id of the image that has the stops. Another image numbers its stops anew.
    image: Option<String>,
    /// The stops that were reported and have not been left.
    reported: BTreeSet<u64>,
    /// The stops whose events were missed, to be reported.
    missed: VecDeque<Stop>,
    /// The stops of which the image has told when it was asked. Their events may still come.
    told: BTreeSet<u64>,
    /// True if events were missed and the image has not been asked since.
    has_missed_events: bool,
}

impl StopRecord {
    pub(super) fn new(name: String) -> StopRecord {
        StopRecord { name, ..StopRecord::default() }
    }

    /// Notes the current image. The stops of another one are over.
    pub(super) fn set_image(&mut self, image: Option<&str>) {
        if self.image.as_deref() != image {
            self.image = image.map(str::to_owned);
            self.reported.clear();
            self.missed.clear();
            self.told.clear();
        }
    }

    /// Notes that events were missed, so that the image must be asked for its stops.
    pub(super) fn note_missed_events(&mut self) {
        self.has_missed_events = true;
    }

    /// Returns true if events were missed and the image has not been asked since.
    pub(super) fn has_missed_events(&self) -> bool {
        self.has_missed_events
    }

    /// Handles the image's answer: all stops that it has.
    pub(super) fn answered(&mut self, stops: Vec<Stop>) {
        self.has_missed_events = false;
        self.reported.retain(|reported| stops.iter().any(|stop| stop.number == *reported));
        let new = |stop: &Stop| self.is_own(stop) && !self.reported.contains(&stop.number);
        self.missed = stops.into_iter().filter(new).collect();
        self.told = self.missed.iter().map(|stop| stop.number).collect();
    }

    /// Returns a stop that is to be reported because its event was missed.
    pub(super) fn next_missed(&mut self) -> Option<Stop> {
        let stop = self.missed.pop_front()?;
        self.reported.insert(stop.number);
        Some(stop)
    }

    /// Handles the event of a stop. Returns true if the stop is to be reported.
    pub(super) fn is_new(&mut self, stop: &Stop) -> bool {
        let is_new = self.is_own(stop) && !self.told.remove(&stop.number);
        if is_new {
            self.reported.insert(stop.number);
        }
        is_new
    }

    /// Handles the end of a stop.
    pub(super) fn left(&mut self, number: u64) {
        self.reported.remove(&number);
        self.told.remove(&number);
        self.missed.retain(|stop| stop.number != number);
    }

    /// Returns true for a stop of the client that is not on the stack of another.
    fn is_own(&self, stop: &Stop) -> bool {
        let session = stop.session.as_deref().or(stop.started_by.as_deref());
        stop.parent.is_none() && session.is_some_and(|session| is_session_of(&self.name, session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(number: u64) -> Stop {
        Stop::at_error(number, 7, Some("lsp-1"))
    }

    fn missed(record: &mut StopRecord) -> Vec<u64> {
        std::iter::from_fn(|| record.next_missed()).map(|stop| stop.number).collect()
    }

    #[test]
    fn each_stop_is_reported_once_also_if_events_were_missed() {
        let mut record = StopRecord::new("lsp-1".into());
        record.set_image(Some("a"));
        assert!(record.is_new(&stop(1)) && record.is_new(&stop(2)));
        record.note_missed_events();
        record.answered(vec![stop(2), stop(3), stop(4), stop(5)]);
        record.left(5);
        assert_eq!(missed(&mut record), [3, 4]);
        // The event of 3 was only late.
        assert!(!record.is_new(&stop(3)));
        record.note_missed_events();
        record.answered(vec![stop(2), stop(3), stop(6)]);
        assert_eq!(missed(&mut record), [6]);
    }

    #[test]
    fn missed_stops_are_reported_when_the_image_answers_later() {
        let mut record = StopRecord::new("lsp-1".into());
        record.set_image(Some("a"));
        assert!(record.is_new(&stop(1)));
        record.note_missed_events();
        // The image has not answered yet.
        assert!(record.has_missed_events() && missed(&mut record).is_empty());
        record.answered(vec![stop(1), stop(2)]);
        assert!(!record.has_missed_events());
        assert_eq!(missed(&mut record), [2]);
    }

    #[test]
    fn another_image_numbers_its_stops_anew() {
        let mut record = StopRecord::new("lsp-1".into());
        record.set_image(Some("a"));
        assert!(record.is_new(&stop(1)));
        record.set_image(Some("b"));
        record.note_missed_events();
        record.answered(vec![stop(1)]);
        assert_eq!(missed(&mut record), [1]);
    }
}
