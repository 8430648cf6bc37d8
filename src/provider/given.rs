//! Messages that a host has in a wire format, as messages in pi's form. The requests are read here, and the answers by the
//! decoders that also read the answers to requests of the daemon.

mod anthropic;
pub mod completing;
mod google;
mod known;
mod look;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

use super::{Api, Part, codec, halves::Halves, reading::MOST_PARTS, trouble::Trouble};
use crate::ids::ModelRef;
use look::{Look, Spot};
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::collections::{HashMap, VecDeque};

/// Facts about the last answer that stand beside the messages, as the provider names them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// The usage, in the fields of the wire format.
    pub usage: Option<&'a RawValue>,
    /// The stop reason of the wire format, or one of pi.
    pub stop: Option<&'a str>,
    /// The text of the error; the answer failed.
    pub error: Option<&'a str>,
}

impl Beside<'_> {
    /// The name of the first field that is given.
    #[must_use]
    pub fn first(&self) -> Option<&'static str> {
        let given = [self.usage.is_some(), self.stop.is_some(), self.error.is_some()];
        given.into_iter().zip(["usage", "stopReason", "errorMessage"]).find_map(|(given, name)| given.then_some(name))
    }
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Its id in the session.
    pub id: String,
    /// Its tool.
    pub name: String,
}

/// A message in pi's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The place of its original among the given messages. An answer of several items has that of the first one.
    pub at: usize,
    /// The message.
    pub json: String,
}

/// The reason for which given messages are not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The path from the params on, such as `messages[2].content[0].type`.
    pub path: String,
    /// The problem and the expected value.
    pub problem: String,
}

/// A piece of a given message.
#[derive(Debug)]
enum Piece {
    /// A message of the user's side, in pi's form.
    Said(Value),
    /// A tool result.
    Result(Returned),
    /// An answer.
    Answer(Answered),
    /// An item of an answer. Consecutive items are one answer.
    Item(String),
}

/// A tool result.
#[derive(Debug)]
struct Returned {
    /// The id of its call; empty where the format has none.
    call: String,
    /// The name of the tool; empty where the format has none.
    name: String,
    /// Texts and images in pi's form.
    content: Vec<Value>,
    is_error: bool,
}

/// An answer in a wire format.
#[derive(Debug, Default)]
struct Answered {
    /// The JSON texts of its parts: blocks, items or parts, or the message itself.
    parts: Vec<String>,
    /// The stop reason inside of the answer.
    stop: Option<String>,
    /// The usage inside of the answer.
    usage: Option<Box<RawValue>>,
}

/// The end of an answer, as its body says it in a wire format.
#[derive(Debug, Clone, Copy)]
enum Ending<'a> {
    /// It came to its end.
    Done,
    /// It reached a limit.
    Length,
    /// A stop reason of the wire format.
    Said(&'a str),
}

/// The problem of a system prompt among the messages.
const SYSTEM: &str = "a system prompt is given with the session, by session/new or session/configure";

/// The reading of one wire format.
trait Given: Sync {
    /// The pieces of a message.
    fn read(&self, message: Look<'_>) -> Result<Vec<Piece>, Spot>;

    /// The body of an answer with these parts.
    fn body(&self, parts: &str, ending: Ending<'_>, usage: Option<&RawValue>) -> String;

    /// The field of a whole answer that holds its usage.
    fn usage(&self) -> &'static str {
        "usage"
    }

    /// JSON pointers to the counts of a usage.
    fn counts(&self) -> &'static [&'static str];
}

fn given(api: Api) -> &'static dyn Given {
    match api {
        Api::Anthropic => &anthropic::Anthropic,
        Api::OpenaiResponses => &openai_responses::OpenaiResponses,
        Api::Google => &google::Google,
        Api::OpenaiChat | Api::Client => &openai_chat::OpenaiChat,
    }
}

/// Reads messages in a wire format, oldest first. `open` are the calls of the conversation so far that have no result,
/// oldest first.
///
/// # Errors
/// When a message is none of the format, or a field beside the messages has no answer to belong to.
pub fn messages(
    api: Api,
    given_messages: &[&str],
    beside: &Beside<'_>,
    model: Option<&ModelRef>,
    open: Vec<OpenCall>,
) -> Result<Vec<Made>, Invalid> {
    let format = given(api);
    let mut pieces: Vec<(usize, Piece)> = Vec::new();
    for (at, json) in given_messages.iter().enumerate() {
        let invalid = |Spot { path, problem }| {
            let path = if path.is_empty() { format!("messages[{at}]") } else { format!("messages[{at}].{path}") };
            Invalid { path, problem }
        };
        let json = Halves::whole(json);
        let value: Value = serde_json::from_str(&json)
            .map_err(|error| invalid(Spot::new("", crate::text::faults::without_position(&error.to_string()))))?;
        known::check(api, at, &json, &value)?;
        for piece in format.read(Look::new(&json, &value)).map_err(invalid)? {
            match (piece, pieces.last_mut()) {
                (Piece::Item(item), Some((_, Piece::Answer(answer)))) => answer.parts.push(item),
                (Piece::Item(item), _) => {
                    pieces.push((at, Piece::Answer(Answered { parts: vec![item], ..Answered::default() })));
                }
                (piece, _) => pieces.push((at, piece)),
            }
        }
    }
    for (at, piece) in &pieces {
        if let Piece::Answer(answer) = piece
            && answer.parts.len() > MOST_PARTS
        {
            let problem = format!("an answer has at most {MOST_PARTS} parts, not {}", answer.parts.len());
            return Err(Invalid { path: format!("messages[{at}]"), problem });
        }
        if let Piece::Answer(Answered { usage: Some(usage), .. }) = piece {
            check_counts(format, usage, &format!("messages[{at}].{}", format.usage()))?;
        }
    }
    known::check_beside(api, beside.usage.map(RawValue::get), beside.stop)?;
    check_beside(format, beside, &mut pieces)?;
    let mut calls = Calls::of(open);
    let last = pieces.len().saturating_sub(1);
    let made = pieces.into_iter().enumerate().map(|(nth, (at, piece))| {
        let json = match piece {
            Piece::Said(message) => message.to_string(),
            Piece::Result(result) => calls.returned(result).to_string(),
            Piece::Answer(answer) => {
                let nothing = Beside::default();
                answer_json(api, &answer, if nth == last { beside } else { &nothing }, model, &mut calls)
            }
            Piece::Item(_) => return None,
        };
        Some(Made { at, json })
    });
    Ok(made.flatten().collect())
}

/// The fields beside the messages belong to an answer at their end. An answer without any content needs no message.
fn check_beside(format: &dyn Given, beside: &Beside<'_>, pieces: &mut Vec<(usize, Piece)>) -> Result<(), Invalid> {
    let Some(name) = beside.first() else { return Ok(()) };
    match pieces.last() {
        Some((_, Piece::Answer(_))) => {}
        None => pieces.push((0, Piece::Answer(Answered::default()))),
        Some(_) => {
            let problem = format!("`{name}` belongs to an answer of the model, and the last message is none");
            return Err(Invalid { path: name.to_owned(), problem });
        }
    }
    check_usage(format, beside.usage)
}

/// A usage beside the messages has at least one count of the format, unless it is empty.
fn check_usage(format: &dyn Given, usage: Option<&RawValue>) -> Result<(), Invalid> {
    let Some(usage) = usage else { return Ok(()) };
    if check_counts(format, usage, "usage")? {
        return Ok(());
    }
    let names: Vec<&str> = format.counts().iter().map(|pointer| pointer.trim_start_matches('/')).collect();
    let problem = format!("no count of this format; expected {}", names.join(", "));
    Err(Invalid { path: "usage".to_owned(), problem })
}

/// Checks the counts of a usage: each is a number or null, as in the form of pi. Returns true if the usage has a count of
/// the format, or nothing at all.
fn check_counts(format: &dyn Given, usage: &RawValue, path: &str) -> Result<bool, Invalid> {
    let invalid = |path: String, problem: &str| Invalid { path, problem: problem.to_owned() };
    let value: Value = serde_json::from_str(usage.get()).unwrap_or(Value::Null);
    let Value::Object(fields) = &value else {
        return match usage.get() {
            "null" => Ok(true),
            _ => Err(invalid(path.to_owned(), "expected an object with the counts of the provider")),
        };
    };
    let mut found = fields.is_empty();
    for pointer in format.counts() {
        let Some(count) = value.pointer(pointer) else { continue };
        found = true;
        if !count.is_null() && !count.is_number() {
            let path = format!("{path}{}", pointer.replace('/', "."));
            return Err(invalid(path, "invalid; expected a number of tokens, or null"));
        }
    }
    Ok(found)
}

/// The calls that wait for a result, oldest first.
struct Calls {
    open: Vec<Option<OpenCall>>,
    /// Their places by their ids, and by the ids before that of an item.
    by_id: HashMap<String, Vec<usize>>,
    by_name: HashMap<String, VecDeque<usize>>,
}

impl Calls {
    fn of(open: Vec<OpenCall>) -> Self {
        let mut calls = Self { open: Vec::new(), by_id: HashMap::new(), by_name: HashMap::new() };
        for (place, OpenCall { id, name }) in open.iter().enumerate() {
            calls.by_id.entry(id.clone()).or_default().push(place);
            // In the session stands the id of OpenAI's item after that of the call.
            if let Some((id, _)) = id.split_once('|') {
                calls.by_id.entry(id.to_owned()).or_default().push(place);
            }
            calls.by_name.entry(name.clone()).or_default().push_back(place);
        }
        calls.open = open.into_iter().map(Some).collect();
        calls
    }

    /// Takes the newest call of an id that is open.
    fn take_by_id(&mut self, id: &str) -> Option<OpenCall> {
        let places = self.by_id.get_mut(id)?;
        std::iter::from_fn(|| places.pop()).find_map(|place| self.open[place].take())
    }

    /// Takes the oldest call of a tool that is open.
    fn take_by_name(&mut self, name: &str) -> Option<OpenCall> {
        let places = self.by_name.get_mut(name)?;
        std::iter::from_fn(|| places.pop_front()).find_map(|place| self.open[place].take())
    }

    /// A result with the id that its call has in the session.
    fn returned(&mut self, result: Returned) -> Value {
        let Returned { call, name, content, is_error } = result;
        let open = if call.is_empty() { self.take_by_name(&name) } else { self.take_by_id(&call) };
        let id = match open {
            Some(open) => open.id,
            None if call.is_empty() => format!("call_{name}"),
            None => call,
        };
        let mut message = json!({ "role": "toolResult", "toolCallId": id, "content": content, "isError": is_error });
        if !name.is_empty() {
            message["toolName"] = name.into();
        }
        message
    }

    /// A new answer closes the calls before it.
    fn answered(&mut self, parts: &[Part]) {
        let call = |part: &Part| match part {
            Part::Call { id, name, .. } => Some(OpenCall { id: id.clone(), name: name.clone() }),
            _ => None,
        };
        *self = Self::of(parts.iter().filter_map(call).collect());
    }
}

/// The end that a stop reason says in every format: a limit, a failure or an abort.
enum End<'a> {
    Ending(Ending<'a>),
    Failed,
    Aborted,
}

fn end(stop: Option<&str>) -> End<'_> {
    match stop {
        None | Some("stop" | "toolUse") => End::Ending(Ending::Done),
        Some("length") => End::Ending(Ending::Length),
        Some("error" | "failed" | "response.failed") => End::Failed,
        Some("aborted" | "cancelled" | "canceled" | "response.cancelled") => End::Aborted,
        Some(other) => End::Ending(Ending::Said(other)),
    }
}

/// An answer in pi's form, without the fields that each answer of a host gets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerJson<'a> {
    role: &'static str,
    content: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    usage: Value,
    stop_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

fn answer_json(
    api: Api,
    answer: &Answered,
    beside: &Beside<'_>,
    model: Option<&ModelRef>,
    calls: &mut Calls,
) -> String {
    let end = match (beside.error, end(beside.stop.or(answer.stop.as_deref()))) {
        (Some(_), End::Ending(_)) => End::Failed,
        (_, end) => end,
    };
    let ending = match end {
        End::Ending(ending) => ending,
        End::Failed | End::Aborted => Ending::Done,
    };
    let body = given(api).body(&answer.parts.join(","), ending, beside.usage.or(answer.usage.as_deref()));
    let mut decoder = codec::Decoder::new(api);
    let read = decoder.whole(&body).and_then(|()| decoder.finish());
    let (read, trouble) = match read {
        Ok(answer) => (answer, None),
        Err(trouble) => (super::Answer::default(), Some(trouble)),
    };
    calls.answered(&read.parts);
    let error = || beside.error.map(str::to_owned);
    let (stop_reason, error_message) = match (end, trouble, &read.stop) {
        (End::Aborted, _, _) => ("aborted", error()),
        (End::Failed, _, _) => ("error", error()),
        (_, Some(Trouble { said, .. }), _) => ("error", Some(said)),
        (_, None, stop) => stop.in_pis_form(),
    };
    let json = AnswerJson {
        role: "assistant",
        content: read.parts.iter().filter_map(block).collect(),
        api: api.pi_name(),
        provider: model.map(|model| model.provider.as_str()),
        model: model.map(|model| model.id.as_str()),
        usage: read.usage_in_pis_form(),
        stop_reason,
        error_message,
    };
    serde_json::to_string(&json).unwrap_or_default()
}

/// A block in pi's form. The arguments of a call stay as the model wrote them.
fn block(part: &Part) -> Option<Box<RawValue>> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Call<'a> {
        r#type: &'static str,
        id: &'a str,
        name: &'a str,
        arguments: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    }
    let Part::Call { id, name, arguments, signature } = part else {
        return serde_json::value::to_raw_value(&part.block()).ok();
    };
    let arguments = match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments.trim(),
        Err(_) => "{}",
    };
    let arguments = serde_json::from_str(arguments).ok()?;
    let thought_signature = signature.as_deref();
    serde_json::value::to_raw_value(&Call { r#type: "toolCall", id, name, arguments, thought_signature }).ok()
}
