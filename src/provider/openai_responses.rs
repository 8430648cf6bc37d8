//! OpenAI's Responses. The server keeps nothing between requests: reasoning comes encrypted and goes back as it came.
//! Other servers send only some of the events; the last event stands in for the missing ones.

use super::{
    Answer, Cache, Delivery, Delta, Encoded, Part, Reasoning, Request, Stop, ToolChoice, Trouble, TroubleKind, Turn,
    format::{Decode, WireFormat},
    levels::{Efforts, Level},
    reading, sse,
    steps::{self, Call, Content, Ids, Returned, Said, Step, Tool},
};
use crate::conversation::message::Usage;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::collections::HashSet;

/// The differences between models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    /// The levels of thinking that the model takes. It refuses a request with another one.
    pub efforts: Efforts,
}

impl Default for Dialect {
    /// The three levels that servers have in common, for requests that ask for an effort.
    fn default() -> Self {
        Self { efforts: Efforts { thinks: false, levels: vec![Level::Low, Level::Medium, Level::High] } }
    }
}

/// This wire format.
pub(super) struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn encode(&self, request: &Request, delivery: Delivery) -> Encoded {
        encode(request, delivery)
    }

    fn last_events(&self) -> &'static [&'static str] {
        &["response.completed", "response.incomplete", "response.failed"]
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<Decoder>::default()
    }
}

/// The path and the body of a request.
fn encode(request: &Request, delivery: Delivery) -> Encoded {
    let mut body = json!({
        "model": request.model.id,
        "input": input(&request.turns),
        "store": false,
    });
    if delivery == Delivery::Stream {
        body["stream"] = true.into();
    }
    if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
        body["instructions"] = system.into();
    }
    if !request.tools.is_empty() {
        body["tools"] = steps::tools(&request.tools).map(tool).collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(most) = request.max_tokens {
        body["max_output_tokens"] = most.min(request.ceiling.unwrap_or(u64::MAX)).max(LEAST_OUTPUT).into();
    }
    let Efforts { thinks, levels } = &request.model.dialect.openai_responses.efforts;
    let asked = matches!(request.reasoning, Reasoning::Effort(_));
    if let Some(level) = request.model.dialect.openai_responses.efforts.level(request.reasoning) {
        body["reasoning"] = json!({ "effort": level.name() });
        if asked {
            body["reasoning"]["summary"] = "auto".into();
        }
    }
    // Models that do not think refuse a request that asks for their encrypted reasoning.
    if (*thinks || asked) && !levels.is_empty() {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Cache::Prefix(prefix) = &request.cache {
        body["prompt_cache_key"] = prefix.chars().take(LONGEST_CACHE_KEY).collect::<String>().into();
    }
    Encoded { path: "/responses".into(), body }
}

/// An answer while it comes.
#[derive(Debug, Default)]
struct Decoder {
    /// The items, in the order in which they began.
    items: Vec<Item>,
    end: Option<End>,
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
        Ok(Answer { parts: self.items.into_iter().filter_map(Item::part).collect(), usage, stop })
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
        let deltas = self.compare(exact);
        let count = |pointer| reading::count_at(&response["usage"], pointer).unwrap_or_default();
        let cache_read = count("/input_tokens_details/cached_tokens");
        let cache_write = count("/input_tokens_details/cache_write_tokens");
        let usage = Usage {
            input: count("/input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
            output: count("/output_tokens"),
            cache_read,
            cache_write,
            total: count("/total_tokens"),
        };
        self.end = Some(End { stop, usage });
        Ok(deltas)
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

/// The least `max_output_tokens` that is taken.
const LEAST_OUTPUT: u64 = 16;
/// The longest `prompt_cache_key` that is taken, in characters.
const LONGEST_CACHE_KEY: usize = 64;
/// Between the summaries of one reasoning item, as pi writes them.
const BETWEEN_SECTIONS: &str = "\n\n";
/// The output of a tool that returned nothing.
const NO_OUTPUT: &str = "(no output)";

fn input(turns: &[Turn]) -> Vec<Value> {
    let mut items = Vec::new();
    // No item is taken twice, should one answer stand twice in a conversation.
    let mut used = HashSet::new();
    for step in steps::steps(turns, Ids::UpTo(LONGEST_ID)) {
        match step {
            Step::User(said) => items.push(json!({ "type": "message", "role": "user", "content": content(&said) })),
            Step::Answer { said, results } => {
                items.extend(answer(&said, &mut used));
                items.extend(results.iter().map(result));
            }
        }
    }
    items
}

fn content(content: &[Content<'_>]) -> Vec<Value> {
    let piece = |content: &Content<'_>| match content {
        Content::Text(text) => json!({ "type": "input_text", "text": text }),
        Content::Image { mime, data } => {
            let url = format!("data:{mime};base64,{data}");
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        }
    };
    content.iter().map(piece).collect()
}

/// Reasoning is only taken right before what it led to, and what it led to only with it, where both are named by their
/// ids. So items are named where all their reasoning goes along, and reasoning that led to nothing stays behind.
fn answer(said: &[Said<'_>], used: &mut HashSet<String>) -> Vec<Value> {
    let reasoning = |said: &Said<'_>| match said {
        Said::Thinking { signature, .. } => {
            let item = signature.and_then(sendable);
            Some(item.filter(|item| item["id"].is_null() || used.insert(reading::text(item, "id").to_owned())))
        }
        _ => None,
    };
    let thoughts: Vec<_> = said.iter().filter_map(reasoning).collect();
    let named = !thoughts.is_empty() && thoughts.iter().all(Option::is_some);
    let mut thoughts = thoughts.into_iter();
    let mut items = Vec::new();
    let mut waiting = Vec::new();
    for piece in said {
        let item = match piece {
            Said::Thinking { .. } => {
                waiting.extend(thoughts.next().flatten());
                continue;
            }
            Said::Text { text, signature } if piece.is_something() => message(text, *signature, named),
            Said::Text { .. } => continue,
            Said::Call(made) => call(made, named),
        };
        items.append(&mut waiting);
        items.push(item);
    }
    for item in items.iter_mut().filter(|item| item["type"] != "reasoning" && !item["id"].is_null()) {
        if !used.insert(reading::text(item, "id").to_owned()) {
            item.as_object_mut().map(|item| item.shift_remove("id"));
        }
    }
    items
}

/// The item in a reasoning's signature, if the server can do something with it: one that it neither keeps nor finds
/// inside is an error to it.
fn sendable(signature: &str) -> Option<Value> {
    let item: Value = serde_json::from_str(signature).ok()?;
    let encrypted = !reading::text(&item, "encrypted_content").is_empty();
    let open = item["content"].as_array().is_some_and(|content| !content.is_empty());
    (item["type"] == "reasoning" && (encrypted || open)).then_some(item)
}

fn message(text: &str, signature: Option<&str>, named: bool) -> Value {
    let mut item = json!({
        "type": "message",
        "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    });
    let (id, phase) = signature.map(read_signature).unwrap_or_default();
    if named && id.starts_with("msg_") && id.len() <= LONGEST_ID {
        item["id"] = id.into();
        item["status"] = "completed".into();
    }
    if let Some(phase @ ("commentary" | "final_answer")) = phase.as_deref() {
        item["phase"] = phase.into();
    }
    item
}

/// The longest id of an item or a call that is taken, in characters.
const LONGEST_ID: usize = 64;

/// The id and the phase in pi's `textSignature`, which older versions wrote as the bare id.
fn read_signature(signature: &str) -> (String, Option<String>) {
    match serde_json::from_str::<Value>(signature) {
        Ok(json) if json.is_object() => {
            (reading::text(&json, "id").to_owned(), json["phase"].as_str().map(std::borrow::ToOwned::to_owned))
        }
        _ => (signature.to_owned(), None),
    }
}

fn write_signature(id: &str, phase: Option<String>) -> Option<String> {
    if id.is_empty() && phase.is_none() {
        return None;
    }
    let mut json = json!({ "v": 1, "id": id });
    if let Some(phase) = phase {
        json["phase"] = phase.into();
    }
    Some(json.to_string())
}

fn call(call: &Call<'_>, named: bool) -> Value {
    let mut item =
        json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments });
    let name = call.item.filter(|item| named && item.starts_with("fc_") && item.len() <= LONGEST_ID);
    if let Some(name) = name {
        item["id"] = name.into();
    }
    item
}

fn result(result: &Returned<'_>) -> Value {
    let text = |content: &Content<'_>| match content {
        Content::Text(text) => Some(text.to_string()),
        Content::Image { .. } => None,
    };
    let output: Value = match result.content.iter().map(text).collect::<Option<Vec<_>>>() {
        Some(texts) if texts.is_empty() => NO_OUTPUT.into(),
        Some(texts) => texts.join("\n").into(),
        None => content(&result.content).into(),
    };
    json!({ "type": "function_call_output", "call_id": result.id, "output": output })
}

fn tool(tool: Tool<'_>) -> Value {
    let mut parameters = tool.schema.cloned().unwrap_or_else(|| json!({ "type": "object" }));
    // An object of which nothing is said is refused.
    if parameters["type"] == "object" && parameters["properties"].is_null() {
        parameters["properties"] = json!({});
    }
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": parameters,
        "strict": false,
    })
}

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

#[cfg(test)]
mod tests {
    use super::super::Effort;
    use super::super::ToolOutcome;
    use super::*;
    use crate::models::dialects;
    use std::path::Path;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/openai_responses")
    }

    fn events(decoder: &mut Decoder, pieces: &[&[u8]]) -> Result<Vec<Delta>, Trouble> {
        let mut parser = sse::Parser::default();
        let mut deltas = Vec::new();
        for piece in pieces {
            for event in parser.push(piece).expect("small") {
                deltas.extend(decoder.event(&event)?);
            }
        }
        Ok(deltas)
    }

    fn decode(pieces: &[&[u8]]) -> Result<(Vec<Delta>, Answer), Trouble> {
        let mut decoder = Box::<Decoder>::default();
        let deltas = events(&mut decoder, pieces)?;
        Ok((deltas, decoder.finish()?))
    }

    fn answer_of(recording: &str) -> Answer {
        decode(&[recording.as_bytes()]).expect("an answer").1
    }

    fn body(request: &Request) -> Value {
        encode(request, Delivery::Stream).body
    }

    fn input_of(turns: Vec<Turn>) -> Value {
        body(&Request { model: dialects::model("gpt-5.2"), turns, ..Request::default() })["input"].clone()
    }

    /// The items of an answer alone.
    fn answered(parts: Vec<Part>) -> Value {
        let items = input_of(vec![Turn::user("Go"), Turn::Assistant(parts)]);
        let own = |item: &&Value| item["role"] != "user" && item["type"] != "function_call_output";
        items.as_array().expect("items").iter().filter(own).cloned().collect()
    }

    fn thought(signature: Option<&str>) -> Part {
        Part::Thinking { text: "hm".into(), signature: signature.map(Into::into), redacted: false }
    }

    fn called(id: &str, arguments: &str) -> Part {
        Part::Call { id: id.into(), name: "read".into(), arguments: arguments.into(), signature: None }
    }

    fn signed(text: &str, signature: &str) -> Part {
        Part::Text { text: text.into(), signature: Some(signature.into()) }
    }

    fn image() -> Part {
        Part::Image { mime: "image/png".into(), data: "AAAA".into() }
    }

    fn outcome(call: &str, parts: Vec<Part>) -> Turn {
        Turn::Result(ToolOutcome { call: call.into(), name: String::new(), parts, is_error: false })
    }

    const TEXT: &str = include_str!("../../tests/recordings/openai_responses/text.sse");
    const REASONING: &str = include_str!("../../tests/recordings/openai_responses/reasoning_and_calls.sse");
    const INCOMPLETE: &str = include_str!("../../tests/recordings/openai_responses/incomplete.sse");
    const FILTERED: &str = include_str!("../../tests/recordings/openai_responses/filtered.sse");
    const FAILED: &str = include_str!("../../tests/recordings/openai_responses/failed.sse");
    const ERROR: &str = include_str!("../../tests/recordings/openai_responses/error.sse");
    const REFUSAL: &str = include_str!("../../tests/recordings/openai_responses/refusal.sse");
    const CUT: &str = include_str!("../../tests/recordings/openai_responses/cut.sse");
    const SPARSE: &str = include_str!("../../tests/recordings/openai_responses/sparse.sse");
    const LATE_KEY: &str = include_str!("../../tests/recordings/openai_responses/late_key.sse");
    const WHOLE: &str = include_str!("../../tests/recordings/openai_responses/whole.json");

    #[test]
    fn a_whole_request() {
        let request = Request {
            model: dialects::model("gpt-5.2"),
            system: Some("Be brief.".into()),
            turns: vec![Turn::User(vec![Part::text("What is this?"), image(), Part::text("")])],
            tools: vec![json!({ "name": "read", "description": "Reads.", "inputSchema": { "type": "object" } })],
            tool_choice: ToolChoice::None,
            max_tokens: Some(3),
            ceiling: None,
            reasoning: Reasoning::Effort(Effort::Highest),
            cache: Cache::Prefix("s".repeat(80)),
        };
        let expected = json!({
            "model": "gpt-5.2",
            "input": [{ "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": "What is this?" },
                { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
            ] }],
            "store": false,
            "stream": true,
            "instructions": "Be brief.",
            "tools": [{
                "type": "function", "name": "read", "description": "Reads.",
                "parameters": { "type": "object", "properties": {} }, "strict": false,
            }],
            "tool_choice": "none",
            "max_output_tokens": 16,
            "reasoning": { "effort": "xhigh", "summary": "auto" },
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "s".repeat(64),
        });
        let encoded = encode(&request, Delivery::Stream);
        assert_eq!(encoded, Encoded { path: "/responses".into(), body: expected });
        assert_eq!(encode(&request, Delivery::Whole).body.get("stream"), None);
    }

    #[test]
    fn a_plain_request_says_nothing_more() {
        let request = Request { model: dialects::model("llama"), turns: vec![Turn::user("Hi")], ..Request::default() };
        let expected = json!({
            "model": "llama",
            "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] }],
            "store": false,
            "stream": true,
        });
        assert_eq!(body(&request), expected);
    }

    #[test]
    fn encrypted_reasoning_is_only_asked_of_models_that_think() {
        let asked = |model: &str, reasoning| {
            let request = Request { model: dialects::model(model), reasoning, ..Request::default() };
            body(&request)["include"].is_array()
        };
        assert!(asked("gpt-5", Reasoning::Unsaid));
        assert!(asked("grok-4", Reasoning::Effort(Effort::Low)));
        assert!(!asked("grok-4", Reasoning::Unsaid));
        assert!(!asked("gpt-4.1", Reasoning::Effort(Effort::Low)));
    }

    #[test]
    fn reasoning_goes_back_as_it_came_and_only_before_what_it_led_to() {
        let key = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"e","summary":[],"x":1}"#;
        let item: Value = serde_json::from_str(key).expect("JSON");
        let said = |more: Value| {
            let mut item = json!({
                "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": "So", "annotations": [] }],
            });
            item.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
            item
        };
        let made = |id: Option<&str>| {
            let mut item = json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" });
            if let Some(id) = id {
                item["id"] = id.into();
            }
            item
        };
        let v1 = r#"{"v":1,"id":"msg_1","phase":"commentary"}"#;
        let with_id = json!({ "id": "msg_1", "status": "completed", "phase": "commentary" });
        let rows = [
            (
                vec![thought(Some(key)), signed("So", v1), called("c|fc_1", "{}")],
                json!([item, said(with_id), made(Some("fc_1"))]),
            ),
            // An older signature, and an id of another kind.
            (
                vec![thought(Some(key)), signed("So", "msg_1"), called("c|x", "{}")],
                json!([item, said(json!({ "id": "msg_1", "status": "completed" })), made(None)]),
            ),
            // What led to nothing stays behind, and what is empty is nothing.
            (vec![thought(Some(key))], json!([])),
            (vec![thought(Some(key)), Part::text("")], json!([])),
            (vec![called("c|fc_1", "{}"), thought(Some(key))], json!([made(None)])),
            // Without its reasoning nothing has a name.
            (
                vec![thought(None), signed("So", v1), called("c|fc_1", "{}")],
                json!([said(json!({ "phase": "commentary" })), made(None)]),
            ),
            (
                vec![thought(Some(key)), Part::text("So"), thought(None), called("c|fc_1", "{}")],
                json!([item, said(json!({})), made(None)]),
            ),
            // Reasoning of which the server knows nothing.
            (
                vec![thought(Some(r#"{"id":"rs_1","type":"reasoning","summary":[]}"#)), called("c|fc_1", "{}")],
                json!([made(None)]),
            ),
            (vec![thought(Some("EqQB")), Part::text("So")], json!([said(json!({}))])),
        ];
        for (parts, expected) in rows {
            assert_eq!(answered(parts.clone()), expected, "{parts:?}");
        }
    }

    #[test]
    fn nasty_conversations() {
        let turns = vec![
            Turn::Assistant(vec![Part::text("")]),
            Turn::Assistant(vec![called("a|fc_1", "{\"path\":"), called("functions.read:1", "{\"n\":1}")]),
            outcome("functions.read:1", vec![Part::text("two"), Part::text("")]),
            outcome("a|fc_1", vec![image(), Part::text("one")]),
            outcome("a|fc_1", vec![]),
            Turn::Assistant(vec![called("a|fc_1", "{}")]),
            outcome("a|fc_1", vec![]),
            Turn::User(vec![Part::text("")]),
            Turn::user("Go on"),
        ];
        let expected = json!([
            { "type": "message", "role": "user", "content": [
                { "type": "input_text", "text": "(The conversation goes on.)" },
            ] },
            { "type": "function_call", "call_id": "a", "name": "read", "arguments": "{}" },
            { "type": "function_call", "call_id": "functions_read_1", "name": "read", "arguments": "{\"n\":1}" },
            { "type": "function_call_output", "call_id": "functions_read_1", "output": "two" },
            { "type": "function_call_output", "call_id": "a", "output": [
                { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
                { "type": "input_text", "text": "one" },
            ] },
            { "type": "function_call", "call_id": "a_2", "name": "read", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a_2", "output": "(no output)" },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Go on" }] },
        ]);
        assert_eq!(input_of(turns), expected);
    }

    #[test]
    fn a_text_and_what_it_cost() {
        let (deltas, answer) = decode(&[TEXT.as_bytes()]).expect("an answer");
        let texts = ["Grüße", "! The tests ", "pass. 🦀"];
        assert_eq!(deltas, texts.map(|text| Delta::Text(text.into())));
        let usage = Usage { input: 176, output: 9, cache_read: 1024, cache_write: 0, total: 1209 };
        let parts = vec![signed(&texts.concat(), r#"{"v":1,"id":"msg_01a"}"#)];
        assert_eq!(answer, Answer { parts, usage, stop: Stop::Done });
    }

    #[test]
    fn reasoning_and_parallel_calls() {
        let (deltas, answer) = decode(&[REASONING.as_bytes()]).expect("an answer");
        let summary = "**Reading first**\n\nThe file is unknown.\n\nTwo reads can go together.";
        let told = |pick: fn(&Delta) -> Option<&str>| deltas.iter().filter_map(pick).collect::<String>();
        assert_eq!(told(|it| if let Delta::Thinking(text) = it { Some(text) } else { None }), summary);
        assert_eq!(told(|it| if let Delta::Text(text) = it { Some(text) } else { None }), "I'll read both.");
        let Part::Thinking { text, signature: Some(signature), .. } = &answer.parts[0] else { panic!("{answer:?}") };
        assert_eq!(text, summary);
        assert!(REASONING.contains(&format!("\"item\":{signature}}}")), "not byte for byte: {signature}");
        let rest = [
            signed("I'll read both.", r#"{"v":1,"id":"msg_02b","phase":"commentary"}"#),
            called("call_A1|fc_02c", r#"{"path":"src/a.rs"}"#),
            called("call_A2|fc_02d", r#"{"path":"src/ä.rs"}"#),
        ];
        assert_eq!(answer.parts[1..], rest);
        assert_eq!(answer.stop, Stop::ToolUse);
        assert_eq!((answer.usage.input, answer.usage.cache_read, answer.usage.output), (512, 1536, 310));
    }

    /// A decoded answer that is encoded again equals the server's answer, value by value.
    #[test]
    fn what_goes_back_is_what_came() {
        for recording in [REASONING, SPARSE, LATE_KEY] {
            let answer = answer_of(recording);
            let last = recording.lines().rev().find_map(|line| line.strip_prefix("data: {")).expect("an event");
            let last: Value = serde_json::from_str(&format!("{{{last}")).expect("JSON");
            let again = answered(answer.parts);
            let output = last["response"]["output"].as_array().expect("items");
            assert_eq!(again.as_array().map(Vec::len), Some(output.len()));
            for (ours, theirs) in again.as_array().expect("items").iter().zip(output) {
                if ours["type"] == "reasoning" {
                    assert_eq!(ours, theirs);
                } else {
                    for key in ["id", "call_id", "arguments", "name", "phase"] {
                        assert_eq!(ours[key], theirs[key], "{key}");
                    }
                }
            }
        }
    }

    #[test]
    fn ends_that_are_none() {
        let stop = |recording| answer_of(recording).stop;
        assert_eq!(stop(INCOMPLETE), Stop::Length);
        assert_eq!(answer_of(INCOMPLETE).text(), "The first half");
        assert_eq!(stop(FILTERED), Stop::Refused("content_filter".into()));
        assert_eq!(stop(REFUSAL), Stop::Refused("I can't help with that.".into()));
        let trouble = |recording: &str| decode(&[recording.as_bytes()]).expect_err("trouble");
        assert_eq!(trouble(CUT).kind, TroubleKind::CutOff);
        assert_eq!(trouble("").kind, TroubleKind::CutOff);
        let failed = trouble(FAILED);
        assert_eq!(failed.kind, TroubleKind::Broken);
        assert!(!failed.said.contains("instructions"), "{}", failed.said);
        assert!(trouble(ERROR).said.contains("exceeds the context window"));
        assert_eq!(trouble("data: <html>\n\n").kind, TroubleKind::Garbled);
        assert!(trouble("data: {\"error\":{\"message\":\"server_error\"}}\n\n").transient());
    }

    #[test]
    fn servers_that_say_little() {
        let answer = answer_of(SPARSE);
        assert!(
            matches!(&answer.parts[0], Part::Thinking { text, signature: Some(_), .. } if text == "A look is due.")
        );
        assert_eq!(answer.parts[1], signed("Let me look.", r#"{"v":1,"id":"msg_new"}"#));
        assert_eq!(answer.parts[2], called("call_7|fc_7", "{}"));
        assert_eq!(answer.usage, Usage { input: 40, output: 12, total: 52, ..Usage::default() });

        // Only the last event; texts that end without the others; a call that nobody ended.
        let last = SPARSE.lines().filter(|line| line.contains("completed")).collect::<String>();
        assert_eq!(answer_of(&format!("{last}\n\n")).parts, answer.parts);
        let event = |json: Value| format!("data: {json}\n\n");
        let completed = event(json!({ "type": "response.completed", "response": { "output": [] } }));
        let text = event(json!({ "type": "response.output_text.delta", "delta": "Hi" }));
        assert_eq!(answer_of(&(text + &completed)).parts, [Part::text("Hi")]);
        let added = event(json!({ "type": "response.output_item.added", "output_index": 0, "item":
            { "type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": "" } }));
        let grown = |delta: &str| {
            event(json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "delta": delta }))
        };
        assert_eq!(answer_of(&(added.clone() + &grown("{}") + &completed)).parts, [called("c|fc_1", "{}")]);
        let half = added + &grown("{\"path\":") + &completed;
        assert_eq!(decode(&[half.as_bytes()]).expect_err("trouble").kind, TroubleKind::CutOff);
    }

    #[test]
    fn the_key_of_reasoning_may_come_at_the_end() {
        let Part::Thinking { signature: Some(signature), .. } = &answer_of(LATE_KEY).parts[0] else { panic!() };
        assert!(sendable(signature).is_some());
    }

    #[test]
    fn an_answer_in_one_piece() {
        let whole = |body: &str| {
            let mut decoder = Box::<Decoder>::default();
            decoder.whole(body)?;
            decoder.finish()
        };
        let answer = whole(WHOLE).expect("an answer");
        assert_eq!(answer.stop, Stop::ToolUse);
        assert_eq!(answer.text(), "Both are read.");
        assert_eq!(answer.usage, Usage { input: 100, output: 60, cache_read: 400, cache_write: 0, total: 560 });
        let Part::Thinking { signature: Some(signature), .. } = &answer.parts[0] else { panic!("{answer:?}") };
        assert!(WHOLE.contains(signature.as_str()));
        let rows = [
            ("<html></html>", TroubleKind::Garbled),
            ("{}", TroubleKind::Garbled),
            ("[]", TroubleKind::Garbled),
            ("{\"status\":\"queued\"}", TroubleKind::CutOff),
            ("{\"error\":{\"message\":\"server_error\"}}", TroubleKind::Broken),
            ("{\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"output\":[]}", TroubleKind::Broken),
        ];
        for (body, kind) in rows {
            assert_eq!(whole(body).expect_err("trouble").kind, kind, "{body}");
        }
    }

    #[test]
    fn however_its_bytes_are_cut_an_answer_is_the_same() {
        for entry in std::fs::read_dir(folder()).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "sse") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("a recording");
            let expected = decode(&[&bytes]);
            assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{} byte by byte", path.display());
            let step = if bytes.len() > 2048 { 23 } else { 1 };
            for cut in (0..bytes.len()).step_by(step) {
                let (before, after) = bytes.split_at(cut);
                assert_eq!(decode(&[before, after]), expected, "{} cut at {cut}", path.display());
            }
        }
    }
}
