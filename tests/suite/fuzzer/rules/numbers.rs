//! The numbers of a session's events have no gap, and events that come again are what they were.

use super::{super::record::Asked, Event, Line, Rule, result};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Events of a session in one run of the daemon.
#[derive(Default)]
struct Series {
    /// Number of the last event.
    last: u64,
    /// Events that come again: how many are left, and the number of the last event before them.
    again: usize,
    before: u64,
    seen: HashMap<u64, Value>,
}

#[derive(Default)]
pub struct Numbers {
    series: HashMap<(String, String), Series>,
    /// Sessions whose next event may follow others that were left out, as the client asked for or was told.
    left_out: HashSet<String>,
}

impl Series {
    fn take(&mut self, event: &Event<'_>, left_out: bool) -> Result<(), String> {
        if self.again > 0 {
            self.again -= 1;
            if event.seq <= self.before {
                return Err(format!("event {} came again after {}", event.seq, self.before));
            }
            self.before = event.seq;
            if self.seen.get(&event.seq).is_some_and(|seen| seen != event.params) {
                return Err(format!("event {} came again and is another one: {:.400}", event.seq, event.params));
            }
            return Ok(());
        }
        let expected = self.last + 1;
        if event.seq != expected && !(left_out && event.seq > expected) {
            return Err(format!("event {} ({}) of {} follows {}", event.seq, event.kind, event.session, self.last));
        }
        self.last = event.seq;
        self.seen.insert(event.seq, event.params.clone());
        Ok(())
    }
}

impl Rule for Numbers {
    fn name(&self) -> &'static str {
        "the numbers of events have no gap"
    }

    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String> {
        if let Some(event) = Event::of(line) {
            let series = self.series.entry((event.session.to_owned(), event.epoch.to_owned())).or_default();
            // Events that come again say nothing about those that are left out.
            let left_out = series.again == 0 && self.left_out.remove(event.session);
            return series.take(&event, left_out);
        }
        let session = of.map(Asked::session).unwrap_or_default();
        if result(line, of, &["session/unsubscribe"]).is_some() {
            self.left_out.insert(session.to_owned());
        }
        if let Some(answer) = result(line, of, &["session/subscribe"]) {
            let series = self.series.entry((session.to_owned(), text(&answer["epoch"]))).or_default();
            let now = answer["seq"].as_u64().unwrap_or_default();
            let left_out = self.left_out.remove(session);
            if now != series.last && !(left_out && now > series.last) {
                return Err(format!("the last event is {}, and the subscription says {now}", series.last));
            }
            series.last = now;
            series.again = answer["replayed"].as_u64().unwrap_or_default() as usize;
            series.before = of.and_then(|of| of.params["after"]["seq"].as_u64()).unwrap_or_default();
        }
        if let Line::Got(frame) = line
            && frame["method"] == "session/resync_required"
        {
            self.left_out.insert(text(&frame["params"]["sessionId"]));
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
