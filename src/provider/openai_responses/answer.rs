//! Answers of OpenAI's Responses.

use super::{sendable, write_signature};
use crate::{
    conversation::{entry::native::is_compaction, message::Usage},
    provider::{Answer, Beside, Delta, Part, Stop, Trouble, TroubleKind, format::Decode, reading, sse},
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

/// An answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The items, in the order in which they began.
    items: Vec<Item>,
    end: Option<End>,
    /// The compactions of the conversation, which are no part of an answer.
    compactions: Vec<Value>,
}

/// A piece of the answer.
#[derive(Debug)]
struct Item {
    kind: Kind,
    /// The place that the server states.
    place: Option<u64>,
    id: String,
    /// The text of a message, the summary of reasoning, or the arguments of a call.
    text: String,
    /// It came to its end: nothing can be missing.
    done: bool,
    /// The refusal in a message.
    refusal: String,
    /// The phase of a message.
    phase: Option<String>,
    /// The id and the tool of a call.
    call: (String, String),
    /// The summary that is being told; reasoning has several.
    section: u64,
    /// The reasoning item as it stood in the answer.
    exact: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call,
}

/// The end of the answer.
#[derive(Debug)]
struct End {
    stop: Stop,
    usage: Usage,
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        let data = event.data.trim();
        if self.end.is_some() || data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let value: Value = serde_json::from_str(data).map_err(|_| Trouble::new(TroubleKind::Garbled, data))?;
        let name = value["type"].as_str().or(event.name.as_deref()).unwrap_or_default();
        if name == "error" || is_there(&value["error"]) {
            return Err(Trouble::of(None, data, None));
        }
        let delta = match name {
            "response.output_item.added" => self.begins(&value),
            "response.output_item.done" => self.ends(&value, data),
            "response.output_text.delta" => self.grows(Kind::Message, &value).map(Delta::Text),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.grows(Kind::Reasoning, &value).map(Delta::Thinking)
            }
            "response.function_call_arguments.delta" => self.grows(Kind::Call, &value).map(Delta::Call),
            "response.refusal.delta" => {
                let more = value["delta"].as_str().unwrap_or_default();
                self.open(Kind::Message, &value).refusal.push_str(more);
                None
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let exact: Ended<'_> = serde_json::from_str(data).unwrap_or_default();
                return self.over(name, &value["response"], &exact.response.output);
            }
            _ => None,
        };
        Ok(delta.into_iter().collect())
    }

    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        let garbled = || Trouble::new(TroubleKind::Garbled, body);
        let value: Value = serde_json::from_str(body).map_err(|_| garbled())?;
        let exact: Whole<'_> = serde_json::from_str(body).unwrap_or_default();
        if is_there(&value["error"]) && !value["output"].is_array() {
            return Err(Trouble::of(None, body, None));
        }
        if value["status"].is_null() && !value["output"].is_array() {
            return Err(garbled());
        }
        self.over("", &value, &exact.output).map(|_| ())
    }

    fn parts(&self) -> usize {
        self.items.len()
    }

    fn finish(mut self: Box<Self>) -> Result<Answer, Trouble> {
        let cut = || Trouble::new(TroubleKind::CutOff, "");
        let End { mut stop, usage } = self.end.take().ok_or_else(cut)?;
        if self.items.iter().all(|item| item.place.is_some()) {
            self.items.sort_by_key(|item| item.place);
        }
        if stop == Stop::Done && self.items.iter().any(|item| item.kind == Kind::Call) {
            if self.items.iter().any(Item::is_half_a_call) {
                return Err(cut());
            }
            stop = Stop::ToolUse;
        }
        let refusal: String = self.items.iter().map(|item| item.refusal.as_str()).collect();
        if !refusal.is_empty() {
            stop = Stop::Refused(refusal);
        }
        let beside = match self.compactions.pop() {
            // The newest one covers those before it.
            Some(newest) => Beside::Items(vec![newest]),
            None => Beside::Nothing,
        };
        Ok(Answer { parts: self.items.into_iter().filter_map(Item::part).collect(), usage, stop, beside })
    }
}

impl Decoder {
    /// The item an event speaks of, among those that have not ended. Ids are the second choice: there are servers that
    /// give the same item another one in every event.
    fn open(&mut self, kind: Kind, event: &Value) -> &mut Item {
        let place = reading::count_at(event, "/output_index");
        let id = [&event["item_id"], &event["item"]["id"]].into_iter().find_map(Value::as_str).unwrap_or_default();
        let meant = |item: &Item| match (place, item.place) {
            (Some(place), Some(at)) => place == at,
            _ => id.is_empty() || item.id.is_empty() || item.id == id,
        };
        let known = self.items.iter().rposition(|item| item.kind == kind && !item.done && meant(item));
        let at = known.unwrap_or_else(|| {
            self.items.push(Item::new(kind, place, id));
            self.items.len() - 1
        });
        &mut self.items[at]
    }

    fn begins(&mut self, event: &Value) -> Option<Delta> {
        let json = &event["item"];
        let mut item = Item::new(Kind::of(json)?, reading::count_at(event, "/output_index"), reading::text(json, "id"));
        item.call = (reading::text(json, "call_id").to_owned(), reading::text(json, "name").to_owned());
        item.text.push_str(reading::text(json, "arguments"));
        self.items.push(item);
        None
    }

    fn grows(&mut self, kind: Kind, event: &Value) -> Option<String> {
        let more = event["delta"].as_str().filter(|more| !more.is_empty())?;
        let section = reading::count_at(event, "/summary_index")
            .or(reading::count_at(event, "/content_index"))
            .unwrap_or_default();
        let item = self.open(kind, event);
        let apart = kind == Kind::Reasoning && section != item.section && !item.text.is_empty();
        let more = if apart { format!("{BETWEEN_SECTIONS}{more}") } else { more.to_owned() };
        item.section = section;
        item.text.push_str(&more);
        Some(more)
    }

    fn ends(&mut self, event: &Value, data: &str) -> Option<Delta> {
        let json = &event["item"];
        self.keep_compaction(json);
        let kind = Kind::of(json)?;
        let exact: Option<EndedItem<'_>> = serde_json::from_str(data).ok();
        self.open(kind, event).settle(json, exact.map(|exact| exact.item.get()))
    }

    /// The last event, or a whole answer.
    fn over(&mut self, name: &str, response: &Value, exact: &[&RawValue]) -> Result<Vec<Delta>, Trouble> {
        let reason = response["incomplete_details"]["reason"].as_str();
        let stop = match (response["status"].as_str(), name) {
            (Some("failed"), _) | (_, "response.failed") => return Err(failure(response)),
            (Some("cancelled" | "queued" | "in_progress"), "") | (Some("cancelled"), _) => {
                return Err(Trouble::new(TroubleKind::CutOff, ""));
            }
            (Some("incomplete"), _) | (_, "response.incomplete") => match reason {
                Some(reason @ "content_filter") => Stop::Refused(reason.to_owned()),
                _ => Stop::Length,
            },
            _ => Stop::Done,
        };
        reading::few(exact.len())?;
        response["output"].as_array().into_iter().flatten().for_each(|item| self.keep_compaction(item));
        let deltas = self.compare(exact);
        self.end = Some(End { stop, usage: usage(&response["usage"]) });
        Ok(deltas)
    }

    /// Keeps an item that is a compaction, once.
    fn keep_compaction(&mut self, item: &Value) {
        if is_compaction(item)
            && self.compactions.iter().all(|kept| kept["encrypted_content"] != item["encrypted_content"])
        {
            self.compactions.push(item.clone());
        }
    }

    /// Holds the items that were seen against those the server says there are. What ended stays as it was, but for
    /// reasoning whose encrypted form came only now, as from Azure.
    fn compare(&mut self, output: &[&RawValue]) -> Vec<Delta> {
        let stated: Vec<(usize, Kind, Value, &str)> = output
            .iter()
            .enumerate()
            .filter_map(|(at, exact)| {
                let json: Value = serde_json::from_str(exact.get()).ok()?;
                Some((at, Kind::of(&json)?, json, exact.get()))
            })
            .collect();
        let seen = self.items.len();
        let mut taken = vec![false; seen];
        let mut deltas = Vec::new();
        for (at, kind, json, exact) in &stated {
            let free = || (0..seen).filter(|it| !taken[*it] && self.items[*it].kind == *kind);
            let id = reading::text(json, "id");
            let by_id = || free().find(|it| !id.is_empty() && self.items[*it].id == id);
            let by_place = || free().find(|it| self.items[*it].place == Some(*at as u64));
            // Where none is missing, only their names differ, and their order tells which is which.
            let enough = self.items[..seen].iter().filter(|item| item.kind == *kind).count()
                >= stated.iter().filter(|it| it.1 == *kind).count();
            let by_order = || if enough { free().next() } else { None };
            let item = match by_id().or_else(by_place).or_else(by_order) {
                Some(it) => {
                    taken[it] = true;
                    &mut self.items[it]
                }
                None => {
                    self.items.push(Item::new(*kind, Some(*at as u64), id));
                    let last = self.items.len() - 1;
                    &mut self.items[last]
                }
            };
            item.place = Some(*at as u64);
            let without_key = item.exact.as_deref().is_none_or(|item| sendable(item).is_none());
            if !item.done || (*kind == Kind::Reasoning && without_key && sendable(exact).is_some()) {
                deltas.extend(item.settle(json, Some(exact)));
            }
        }
        deltas
    }
}

/// Between the summaries of one reasoning item, as pi writes them.
const BETWEEN_SECTIONS: &str = "\n\n";

impl Kind {
    fn of(item: &Value) -> Option<Self> {
        match item["type"].as_str()? {
            "message" => Some(Self::Message),
            "reasoning" => Some(Self::Reasoning),
            "function_call" => Some(Self::Call),
            _ => None,
        }
    }
}

impl Item {
    fn new(kind: Kind, place: Option<u64>, id: &str) -> Self {
        Self {
            kind,
            place,
            id: id.to_owned(),
            text: String::new(),
            done: false,
            refusal: String::new(),
            phase: None,
            call: Default::default(),
            section: 0,
            exact: None,
        }
    }

    /// Takes the item as the server has it in the end, and gives what was not told yet.
    fn settle(&mut self, json: &Value, exact: Option<&str>) -> Option<Delta> {
        let texts = |list: &str, key: &str| -> Vec<String> {
            let list = json[list].as_array().into_iter().flatten();
            list.filter_map(|piece| piece[key].as_str().map(std::borrow::ToOwned::to_owned)).collect()
        };
        let text = match self.kind {
            Kind::Message => texts("content", "text").concat(),
            Kind::Reasoning => match texts("summary", "text") {
                summary if summary.is_empty() => texts("content", "text").join(BETWEEN_SECTIONS),
                summary => summary.join(BETWEEN_SECTIONS),
            },
            Kind::Call => reading::text(json, "arguments").to_owned(),
        };
        let told = text.strip_prefix(&self.text).filter(|more| !more.is_empty()).map(|more| match self.kind {
            Kind::Message => Delta::Text(more.to_owned()),
            Kind::Reasoning => Delta::Thinking(more.to_owned()),
            Kind::Call => Delta::Call(more.to_owned()),
        });
        let or_before = |new: &str, before: &mut String| {
            if !new.is_empty() {
                new.clone_into(before);
            }
        };
        or_before(&text, &mut self.text);
        or_before(reading::text(json, "id"), &mut self.id);
        or_before(&texts("content", "refusal").concat(), &mut self.refusal);
        or_before(reading::text(json, "call_id"), &mut self.call.0);
        or_before(reading::text(json, "name"), &mut self.call.1);
        if let Some(phase) = json["phase"].as_str() {
            self.phase = Some(phase.to_owned());
        }
        if self.kind == Kind::Reasoning {
            self.exact = exact.map(std::borrow::ToOwned::to_owned);
        }
        self.done = true;
        told
    }

    /// A call that never ended, and cannot be told to be whole.
    fn is_half_a_call(&self) -> bool {
        let whole = self.text.is_empty() || serde_json::from_str::<&RawValue>(&self.text).is_ok();
        self.kind == Kind::Call && (self.call.1.is_empty() || (!self.done && !whole))
    }

    fn part(self) -> Option<Part> {
        match self.kind {
            Kind::Message if self.text.is_empty() => None,
            Kind::Message => Some(Part::Text { text: self.text, signature: write_signature(&self.id, self.phase) }),
            Kind::Reasoning => {
                let signature = self.exact.filter(|item| sendable(item).is_some());
                let nothing = self.text.is_empty() && signature.is_none();
                (!nothing).then_some(Part::Thinking { text: self.text, signature, redacted: false })
            }
            Kind::Call if self.call.1.is_empty() => None,
            Kind::Call => {
                let id = match (self.call.0, self.id) {
                    (call, id) if id.is_empty() || call.is_empty() => call + &id,
                    (call, id) => format!("{call}|{id}"),
                };
                let arguments = if self.text.is_empty() { "{}".to_owned() } else { self.text };
                Some(Part::Call { id, name: self.call.1, arguments, signature: None })
            }
        }
    }
}

/// The exact text of what an event carries.
#[derive(Deserialize)]
struct EndedItem<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize, Default)]
struct Ended<'a> {
    #[serde(borrow)]
    response: Whole<'a>,
}

#[derive(Deserialize, Default)]
struct Whole<'a> {
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
}

/// Without the response around the error: that one repeats instructions and tools, whose words mean nothing.
fn failure(response: &Value) -> Trouble {
    match &response["error"] {
        Value::Null => Trouble::new(TroubleKind::Broken, "the response failed, no reason is given"),
        error => Trouble::of(None, &json!({ "error": error }).to_string(), None),
    }
}

fn is_there(value: &Value) -> bool {
    !value.is_null()
}

/// The tokens that a response reports.
pub(super) fn usage(reported: &Value) -> Usage {
    let count = |pointer| reading::count_at(reported, pointer).unwrap_or_default();
    let cache_read = count("/input_tokens_details/cached_tokens");
    let cache_write = count("/input_tokens_details/cache_write_tokens");
    Usage {
        input: count("/input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("/output_tokens"),
        cache_read,
        cache_write,
        total: count("/total_tokens"),
    }
}
