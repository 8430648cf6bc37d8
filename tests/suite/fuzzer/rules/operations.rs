//! Each start has one end, and a session that says that nothing runs has no start without its end.

use super::{super::record::Asked, Event, Line, Rule, result};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Kinds of events that come in pairs.
const PAIRS: [&str; 6] = ["compaction", "recovery", "idle", "branch_summary", "handoff", "hook"];

/// A start: its session, its kind, its operation and, for a hook, its name.
type Key = (String, &'static str, String, String);

#[derive(Default)]
pub struct Operations {
    open: BTreeSet<Key>,
    /// Starts that a kill left without an end.
    left: BTreeMap<Key, usize>,
    /// Sessions whose events the client does not see all.
    partial: HashSet<String>,
    /// The last event of each session and epoch: older ones come again.
    last: HashMap<(String, String), u64>,
    killed: bool,
}

impl Operations {
    fn none_is_open(&self, session: Option<&str>, when: &str) -> Result<(), String> {
        let open: Vec<&Key> = self.open.iter().filter(|(of, ..)| session.is_none_or(|session| session == of)).collect();
        if open.is_empty() { Ok(()) } else { Err(format!("{when}, and there is no end of {open:?}")) }
    }

    fn forget(&mut self, session: &str) {
        self.open.retain(|(of, ..)| of != session);
        self.partial.insert(session.to_owned());
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        let last = self.last.entry((event.session.to_owned(), event.epoch.to_owned())).or_default();
        if event.seq <= *last || self.partial.contains(event.session) {
            *last = event.seq.max(*last);
            return Ok(());
        }
        *last = event.seq;
        let about = |name: &str| event.params[name].as_str().unwrap_or_default().to_owned();
        let hook = event.params["event"]["hook"].as_str().unwrap_or_default().to_owned();
        let key = |kind| (event.session.to_owned(), kind, about("operationId"), hook.clone());
        for kind in PAIRS {
            if event.kind.strip_suffix("_start") == Some(kind) && !self.open.insert(key(kind)) {
                return Err(format!("a second start of {:?}", key(kind)));
            }
            if event.kind.strip_suffix("_end") == Some(kind) && !self.open.remove(&key(kind)) {
                // A hook has another word for it.
                let failed = ["failed", "error"].iter().any(|outcome| event.params["event"]["outcome"] == *outcome);
                let times = self.left.entry(key(kind)).or_default();
                *times += 1;
                if !self.killed || !failed || *times > 1 {
                    return Err(format!("an end without its start: {:?} {}", key(kind), event.params["event"]));
                }
            }
        }
        Ok(())
    }
}

impl Rule for Operations {
    fn name(&self) -> &'static str {
        "a start has one end"
    }

    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String> {
        if let Some(event) = Event::of(line) {
            return self.event(&event);
        }
        let session = of.map(Asked::session).unwrap_or_default();
        if let Some(answer) = result(line, of, &["session/status"])
            && answer["operations"].as_array().is_some_and(Vec::is_empty)
            && answer["session"]["status"]["type"] == "idle"
        {
            self.none_is_open(Some(session), "nothing runs")?;
        }
        if result(line, of, &["session/close", "session/delete"]).is_some() {
            self.none_is_open(Some(session), "the session is closed")?;
            self.partial.remove(session);
        }
        if result(line, of, &["session/unsubscribe"]).is_some() {
            self.forget(session);
        }
        match line {
            Line::Got(frame) if frame["method"] == "session/resync_required" => {
                self.forget(frame["params"]["sessionId"].as_str().unwrap_or_default());
            }
            Line::Killed => {
                *self = Self { killed: true, ..Self::default() };
            }
            Line::Ended => {
                self.none_is_open(None, "the daemon ended")?;
                *self = Self::default();
            }
            Line::Overdue => self.none_is_open(None, "nothing comes any more")?,
            _ => {}
        }
        Ok(())
    }
}
