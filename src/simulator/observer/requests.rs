//! Requests and their answers: each has one, and an answer about entries agrees with the file.

use super::{Rule, Verdict, Violation, broken, file::File, require};
use crate::{
    ids::EntryId,
    session::effects::{Sent, TicketNumber},
};
use memchr::memmem;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A request that was sent.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Its number.
    pub number: TicketNumber,
    /// Its method.
    pub method: &'static str,
    /// Its params.
    pub params: Value,
    /// How it was sent.
    pub sent: Sent,
}

impl Asked {
    /// Whether it is a request for a compaction that is answered at the end.
    pub fn waits_for_compaction(&self) -> bool {
        self.method == "session/compact" && self.params["wait"] == true && self.params["dryRun"] != true
    }

    /// Whether it is a request for a navigation that is answered at the end.
    pub fn waits_for_navigation(&self) -> bool {
        self.method == "session/navigate" && self.params["wait"] == true
    }

    /// Whether it is a request for a compaction after the turn.
    pub fn comes_later(&self) -> bool {
        self.method == "session/compact" && self.params["when"] == "after_turn" && self.params["dryRun"] != true
    }

    /// Whether it is a request for the context that is answered after the compaction that runs.
    pub fn waits_as_context(&self) -> bool {
        self.method == "session/context" && self.params["wait"] == true
    }

    /// Whether it is a request for a context that is refused where it is over the window.
    pub fn must_fit(&self) -> bool {
        let format = self.params["format"].as_str().is_some_and(|format| format != "messages");
        self.method == "session/context" && (self.params["wait"] == true || format)
    }
}

/// The requests of a life of a session.
#[derive(Debug, Default)]
pub struct Requests {
    /// Requests that the core is to answer.
    open: BTreeMap<TicketNumber, Asked>,
    /// Requests that the world is to answer.
    left: BTreeMap<TicketNumber, Asked>,
    /// Requests that were answered.
    done: BTreeSet<TicketNumber>,
    /// The newest append that was answered with entries, and the place of its last one.
    newest_append: Option<(TicketNumber, usize)>,
}

impl Requests {
    /// A request goes in.
    pub fn sent(&mut self, number: TicketNumber, method: &'static str, params: Value, sent: Sent) {
        self.open.insert(number, Asked { number, method, params, sent });
    }

    /// A request that the core is to answer.
    pub fn open(&self, number: TicketNumber) -> Option<&Asked> {
        self.open.get(&number)
    }

    /// The core answers a request.
    pub fn answered(&mut self, number: TicketNumber) -> Result<Asked, Violation> {
        let asked = self.open.remove(&number);
        self.done.insert(number);
        match asked {
            Some(asked) => Ok(asked),
            None => broken(Rule::AnsweredOnce, format!("request {number} is not open")),
        }
    }

    /// The core leaves a request to the world.
    pub fn left_to_world(&mut self, number: TicketNumber) -> Result<Asked, Violation> {
        match self.open.remove(&number) {
            Some(asked) => {
                self.left.insert(number, asked.clone());
                Ok(asked)
            }
            None => broken(Rule::AnsweredOnce, format!("request {number} is not open")),
        }
    }

    /// The world answers a request.
    pub fn answered_by_world(&mut self, number: TicketNumber) -> Result<Asked, Violation> {
        self.done.insert(number);
        // A cancel of a session that has ended is answered without the core.
        match self.left.remove(&number).or_else(|| self.open.remove(&number)) {
            Some(asked) => Ok(asked),
            None => broken(Rule::AnsweredOnce, format!("request {number} is not open")),
        }
    }

    /// Number of requests that the core holds.
    pub fn held_by_core(&self) -> usize {
        self.open.len()
    }

    /// Whether an append to another branch is open, whose entries follow any entry.
    pub fn branching(&self) -> bool {
        self.open.values().any(|asked| !asked.params["parentEntryId"].is_null())
    }

    /// An append that was sent before a request and is still open. One to another branch may wait for the index.
    pub fn append_before(&self, number: TicketNumber) -> Option<TicketNumber> {
        let mut before = self.open.range(..number).map(|(_, asked)| asked);
        before.find(|asked| asked.method == "session/append").map(|asked| asked.number)
    }

    /// The open requests for a compaction that were sent before a request.
    pub fn compactions_before(&self, number: TicketNumber) -> impl Iterator<Item = TicketNumber> {
        let before = self.open.range(..number).map(|(_, asked)| asked);
        let compactions = before.filter(|it| it.method == "session/compact" && it.params["dryRun"] != true);
        compactions.map(|asked| asked.number)
    }

    /// The requests for a compaction that are answered at its end, oldest first.
    pub fn waiting_for_compaction(&self) -> impl Iterator<Item = &Asked> {
        self.open.values().filter(|asked| asked.waits_for_compaction())
    }

    /// The requests for a navigation that are answered at its end, oldest first.
    pub fn waiting_for_navigation(&self) -> impl Iterator<Item = &Asked> {
        self.open.values().filter(|asked| asked.waits_for_navigation())
    }

    /// Whether a request for a navigation is not answered.
    pub fn for_navigation(&self) -> bool {
        self.open.values().any(|asked| asked.method == "session/navigate")
    }

    /// Whether a request for a context that is to fit waits. It starts the maintenance that is due.
    pub fn wait_for_context(&self) -> bool {
        let fits = |asked: &Asked| asked.params["wait"] == true || asked.params["format"].is_string();
        self.open.values().any(|asked| asked.method == "session/context" && fits(asked))
    }

    /// Whether a request for a compaction is not answered.
    pub fn for_compaction(&self) -> bool {
        self.open.values().any(|asked| asked.method == "session/compact")
    }

    /// An append was answered with its entries.
    pub fn appended(&mut self, asked: &Asked, result: &Value, file: &File) -> Verdict {
        let ids = result["entryIds"].as_array().map(Vec::as_slice).unwrap_or_default();
        let messages = asked.params["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        require(ids.len() == messages.len() && !ids.is_empty(), Rule::MessageKept, || {
            format!("{} messages became {} entries", messages.len(), ids.len())
        })?;
        let mut before: Option<(EntryId, usize)> = None;
        for (id, message) in ids.iter().zip(messages) {
            let id: EntryId = id.as_str().unwrap_or_default().into();
            let Some(place) = file.newest(&id) else {
                return broken(Rule::AnsweredIsDurable, format!("append {} names {id:?}", asked.number));
            };
            require(!file.is_announced(place), Rule::AnswerIntroduces, || {
                format!("{id:?} was announced before append {} was answered", asked.number)
            })?;
            file.results_stand_at_their_calls(place)?;
            // No result leaves the branch that the request names.
            if file.is_stray(place) && asked.params["parentEntryId"].is_null() {
                kept(file, place, message)?;
                continue;
            }
            if let Some((parent, above)) = &before {
                // A line about the request of an answer may stand after it.
                let before = file.first_above(place, |entry| !entry.tells_of_request());
                require(before.is_some_and(|it| it.id == *parent) && place > *above, Rule::Chained, || {
                    format!("{id:?} does not follow {parent:?}")
                })?;
            } else {
                self.in_order(asked, &id, place, file)?;
            }
            kept(file, place, message)?;
            before = Some((id, place));
        }
        if let Some((last, place)) = before {
            let leaf = result["leafEntryId"].as_str().map(EntryId::from);
            let leaf_place = leaf.as_ref().and_then(|leaf| file.newest(leaf));
            require(leaf_place.is_some_and(|leaf| leaf >= place), Rule::AnsweredIsDurable, || {
                format!("the leaf of append {} is {leaf:?}, which is before {last:?}", asked.number)
            })?;
            self.newest_append = self.newest_append.max(Some((asked.number, place)));
        }
        Ok(())
    }

    /// The first entry of an append follows those of the appends that were sent before it.
    fn in_order(&self, asked: &Asked, id: &EntryId, place: usize, file: &File) -> Verdict {
        if let Some((number, other)) = self.newest_append {
            require((asked.number > number) == (place > other), Rule::AppendOrder, || {
                format!("append {} is at line {place}, append {number} at line {other}", asked.number)
            })?;
        }
        let earlier = self.append_before(asked.number);
        require(earlier.is_none(), Rule::AppendOrder, || {
            format!("append {} is answered before append {earlier:?}", asked.number)
        })?;
        if let Some(parent) = asked.params["parentEntryId"].as_str() {
            // Lines for other programs that belong to the parent stand between.
            let above = file.first_above(place, |entry| entry.id.as_str() == parent || !entry.is_marker());
            let above = above.map(|entry| entry.id.clone());
            // The line of the parent may be damaged. Nothing stands between then.
            let named = file.parent(place).is_some_and(|it| it.as_str() == parent);
            // So may be a line between that belongs to the parent. Its text names the parent.
            let between = file.parent(place).filter(|it| file.newest(it).is_none());
            let belongs = between.is_some_and(|it| file.broken_line_with(it).is_some_and(|line| line.contains(parent)));
            require(named || belongs || above == Some(parent.into()), Rule::Chained, || {
                format!("{id:?} follows {above:?}, not {parent}")
            })?;
        } else if let Some(expected) = asked.params["expectedLeafId"].as_str().map(EntryId::from) {
            let changed = |entry: &crate::conversation::entry::Entry| {
                entry.id == expected || entry.in_context() || entry.rewrites()
            };
            let above = file.first_above(place, changed).map(|entry| entry.id.clone());
            require(above.as_ref() == Some(&expected), Rule::ExpectedLeaf, || {
                format!("{id:?} follows {above:?}, and {expected:?} was expected")
            })?;
        }
        Ok(())
    }

    /// A label or a pin was answered with its entry.
    pub fn edited(&self, asked: &Asked, result: &Value, file: &File) -> Verdict {
        let Some(id) = result["entryId"].as_str().map(EntryId::from) else { return Ok(()) };
        let Some(place) = file.newest(&id) else {
            // A pin may name an entry that stands after a piece of another one on the same line.
            let detail = || format!("{} {} names {id:?}", asked.method, asked.number);
            return require(file.is_on_broken_line(&id), Rule::AnsweredIsDurable, detail);
        };
        // A pin of an entry names that entry, which is older.
        let is_new = !asked.params["text"].is_null() || asked.method == "session/label";
        require(!is_new || !file.is_announced(place), Rule::AnswerIntroduces, || {
            format!("{id:?} was announced before {} {} was answered", asked.method, asked.number)
        })
    }

    /// A life begins. Requests that were sent to the one before are still answered.
    pub fn opens(&mut self) {
        self.newest_append = None;
    }

    /// The process dies: its requests are never answered.
    pub fn crashed(&mut self) {
        self.open.clear();
        self.left.clear();
    }

    /// Nothing is open.
    pub fn at_rest(&self) -> Verdict {
        let open: Vec<_> = self.open.values().chain(self.left.values()).map(|it| (it.number, it.method)).collect();
        require(open.is_empty(), Rule::Answered, || format!("{open:?}"))
    }
}

/// The line at a place has the content of the message.
fn kept(file: &File, place: usize, message: &Value) -> Verdict {
    let texts: Vec<&str> = match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => Vec::new(),
    };
    let line = file.line(place);
    let lost = texts.iter().find(|text| {
        let json = serde_json::to_string(text).unwrap_or_default();
        memmem::find(line.as_bytes(), json.as_bytes()).is_none()
    });
    match lost {
        // Another notation of the same text.
        Some(lost) if !file.says(place, lost) => {
            broken(Rule::MessageKept, format!("line {place} does not have {lost:?}: {line}"))
        }
        _ => Ok(()),
    }
}
