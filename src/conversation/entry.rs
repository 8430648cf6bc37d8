//! The lines of a session file, read into typed values. The line itself is kept: it is what `session/entry` answers,
//! what a fork copies, and what a context sends.

mod agent;
mod archive;
mod compaction;
mod cost;
mod edit;
mod escapes;
mod head;
mod header;
mod mirror;
pub mod native;
mod place;
mod preserved;
mod requested;
mod reset;
mod stamps;
mod summarized;
mod system;
mod todos;
mod unparsed;
mod writing;

pub use agent::{CarriedAgent, CarriedLoad, LoadKind};
pub use compaction::Compaction;
pub use edit::{ContextEdit, Replacement};
pub use escapes::without_half_pairs;
pub use head::{Head, text};
pub use header::{Header, HeaderKind};
pub use mirror::{CARRIED, Mark, Mirror};
pub use place::{Broken, PLACEHOLDER};
pub use preserved::{Attempts, CarriedCalibration, CarriedMessage, CarriedModel, CarriedPin, Preserved, carried_data};
pub use requested::{Gap, Requested};
pub use reset::Reset;
pub use stamps::{Stamp, Stamps, milliseconds, timestamp};
pub use summarized::{CarriedSummary, SummaryForm, SummaryRequests};
pub use todos::{CarriedTodos, Todo, TodoState};
pub use unparsed::Unparsed;
pub use writing::{line, one_line, raw};

use crate::{
    conversation::{
        message::{
            self, Message,
            outline::{Outline, Role},
        },
        spending::Cost,
        tokens::{self, Estimator, Size},
    },
    ids::EntryId,
    text::{faults, values},
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// The version of the format that is written: pi's third.
pub const VERSION: u32 = 3;

/// Custom entries of ours start with this.
const OURS: &str = "abridged.";

/// The `customType` of a custom message that is a pinned text.
pub const PINNED_TEXT: &str = "abridged.pin";

/// One line of a session file after the header.
#[derive(Debug)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The entry it follows; none for a root. As it is read from its line this is the id that the line names, or an empty
    /// one, which names no entry, where the line names none at all; a reader of the file replaces a parent that no
    /// earlier entry is.
    pub parent: Option<EntryId>,
    /// When it was written, in the file's own form.
    pub timestamp: String,
    /// The content by type.
    pub body: Body,
    /// The `type` of the line.
    pub kind: String,
    /// The line, without its newline.
    line: Arc<str>,
    size: Size,
}

/// The content of an entry by its type.
#[derive(Debug)]
pub enum Body {
    /// A message of the conversation.
    Message(MessageBody),
    /// A summary that stands for everything before `first_kept`.
    Compaction(Compaction),
    /// A summary of a branch that was left.
    BranchSummary(BranchSummary),
    /// A message of an extension, sent to models as one of the user.
    CustomMessage(CustomMessage),
    /// Another text for an entry, or none: `session/prune` and recovery write these.
    ContextEdit(ContextEdit),
    /// Data of a program, never sent to a model.
    Custom(Custom),
    /// A name for an entry.
    Label { target: EntryId, label: Option<String> },
    /// The session's name.
    SessionInfo { name: String },
    /// The model from here on.
    ModelChange { provider: String, model: String },
    /// The thinking level from here on.
    ThinkingLevel(String),
    /// Tokens of a model call that was no turn.
    Usage,
    /// A `/clear`: nothing before it is in the context.
    ResetBoundary(Reset),
    /// A line of ours for other programs.
    Mirror(Mirror),
    /// A type this version does not know; kept, adds nothing.
    Unknown,
}

/// A message and where its JSON stands in the line.
#[derive(Debug)]
pub struct MessageBody {
    /// The message without its texts.
    pub outline: Outline,
    json: Range<usize>,
    /// The whole message, after the first use.
    message: OnceLock<Box<Message>>,
}

/// A `branch_summary` entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// The text.
    #[serde(default)]
    pub summary: String,
    /// File lists.
    #[serde(default)]
    pub details: Option<Unparsed>,
    #[serde(default)]
    from_extension: Option<bool>,
    #[serde(default)]
    from_hook: Option<bool>,
}

/// A `custom_message` entry.
#[derive(Debug)]
pub struct CustomMessage {
    /// The type, which names its owner.
    pub custom_type: String,
    /// The content.
    pub content: message::Content,
    json: Range<usize>,
}

/// A `custom` entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    /// The type, which names its owner.
    #[serde(default)]
    pub custom_type: String,
    /// Its data.
    #[serde(default)]
    data: Option<Unparsed>,
}

/// The reason for which a line is no entry.
#[derive(Debug, thiserror::Error)]
pub enum BadLine {
    /// Not JSON, or not an object with a `type`.
    #[error("not a JSON object with a type: {0}")]
    Garbled(String),
    /// A version 3 line without its id.
    #[error("an entry of version 3 needs an id")]
    NoId,
}

/// The fields of the small types.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Small {
    #[serde(default)]
    custom_type: Option<String>,
    #[serde(default)]
    target_id: Option<EntryId>,
    #[serde(default)]
    label: Option<Value>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    model_id: Option<String>,
    #[serde(default)]
    model: Option<Value>,
    #[serde(default)]
    thinking_level: Option<String>,
}

impl Entry {
    /// Reads one line of a version 3 file. A known type whose fields are not what that type needs is kept as
    /// `Unknown`: it adds nothing to the context, and it is not lost.
    ///
    /// # Errors
    /// When the line is not JSON, or has no type or id.
    pub fn parse(line: Arc<str>) -> Result<Self, BadLine> {
        match without_half_pairs(&line) {
            Some(mended) => {
                // An index reads the type and the ids of the line as it stands.
                let (id, parent) = Self::ids(&Self::head(&line)?)?;
                Ok(Self { id, parent, ..Self::read(mended.into())? })
            }
            None => Self::read(line),
        }
    }

    fn head(line: &str) -> Result<Head<'_>, BadLine> {
        Head::read(line).map_err(|error| BadLine::Garbled(faults::without_position(&error.to_string())))
    }

    /// The id and the parent that a line names.
    fn ids(head: &Head<'_>) -> Result<(EntryId, Option<EntryId>), BadLine> {
        let id = head.id().ok_or(BadLine::NoId)?;
        Ok((id.into_owned().into(), head.parent().map(|parent| parent.into_owned().into())))
    }

    fn read(line: Arc<str>) -> Result<Self, BadLine> {
        let head = Self::head(&line)?;
        let (id, parent) = Self::ids(&head)?;
        let timestamp =
            head.timestamp.map(|json| text(json).unwrap_or(json.get().into())).unwrap_or_default().into_owned();
        // The fields of a type are read into trees.
        let body = values::check(&line).ok().and_then(|()| Body::read(&line, &id, &head));
        let body = body.map_or(Body::Unknown, |body| mirror::marked(body, &line));
        let size = body.size();
        let kind = head.kind.to_string();
        Ok(Self { id, parent, timestamp, body, kind, line, size })
    }

    /// A type that is known, with fields that are not what it needs: it adds nothing to the context, which somebody
    /// should be told.
    #[must_use]
    pub fn unreadable(&self) -> bool {
        matches!(self.body, Body::Unknown) && Self::is_known(&self.kind)
    }

    /// Whether the fields of an entry of this type are read.
    #[must_use]
    pub fn is_known(kind: &str) -> bool {
        const KNOWN: [&str; 11] = [
            "message",
            "compaction",
            "branch_summary",
            "custom_message",
            "context_edit",
            "custom",
            "label",
            "session_info",
            "model_change",
            "thinking_level_change",
            "reset_boundary",
        ];
        KNOWN.contains(&kind)
    }

    /// Whether the line has too many values and keys for one of its type.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.unreadable() && values::check(&self.line).is_err()
    }

    /// An answer whose usage has a count that is no number: the message is in the context, its usage is not used.
    #[must_use]
    pub fn has_invalid_usage(&self) -> bool {
        matches!(&self.body, Body::Message(_)) && self.outline().is_some_and(|outline| outline.invalid_usage)
    }

    /// The line as it stands in the file, without its newline.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The JSON of the message, byte for byte, where the entry is one.
    #[must_use]
    pub fn message_json(&self) -> Option<&str> {
        match &self.body {
            Body::Message(body) => Some(&self.line[body.json.clone()]),
            _ => None,
        }
    }

    /// The same as a part of the line.
    #[must_use]
    pub fn message_part(&self) -> Option<(Arc<str>, Range<usize>)> {
        match &self.body {
            Body::Message(body) => Some((self.line.clone(), body.json.clone())),
            _ => None,
        }
    }

    /// The JSON of a custom message's content.
    #[must_use]
    pub fn custom_content_json(&self) -> Option<&str> {
        match &self.body {
            Body::CustomMessage(custom) => Some(&self.line[custom.json.clone()]),
            _ => None,
        }
    }

    /// The message, where the entry is one.
    #[must_use]
    pub fn message(&self) -> Option<&Message> {
        match &self.body {
            Body::Message(body) => Some(body.message.get_or_init(|| Box::new(body.read(&self.line)))),
            _ => None,
        }
    }

    /// The same for a reader that needs it once: a message that is read for it is not kept in memory.
    #[must_use]
    pub fn message_once(&self) -> Option<Cow<'_, Message>> {
        match &self.body {
            Body::Message(body) => Some(match body.message.get() {
                Some(message) => Cow::Borrowed(&**message),
                None => Cow::Owned(body.read(&self.line)),
            }),
            _ => None,
        }
    }

    /// The message without its texts, where the entry is one.
    #[must_use]
    pub fn outline(&self) -> Option<&Outline> {
        match &self.body {
            Body::Message(body) => Some(&body.outline),
            _ => None,
        }
    }

    /// Whether it is a message of this role.
    #[must_use]
    pub fn is_from(&self, role: Role) -> bool {
        self.outline().is_some_and(|outline| outline.role == role)
    }

    /// The compaction, where the entry is one.
    #[must_use]
    pub fn compaction(&self) -> Option<&Compaction> {
        match &self.body {
            Body::Compaction(compaction) => Some(compaction),
            _ => None,
        }
    }

    /// The state from before it that it carries, where it is a compaction or a reset of this program.
    #[must_use]
    pub fn preserved(&self) -> Option<&Preserved> {
        match &self.body {
            Body::Compaction(compaction) => compaction.preserved(),
            Body::ResetBoundary(reset) => reset.preserved(),
            _ => None,
        }
    }

    /// The system message in pi's form that a compaction or a reset carries.
    #[must_use]
    pub fn carried_system_message(&self) -> Option<&Value> {
        match &self.body {
            Body::Compaction(compaction) => compaction.system_message.as_ref(),
            Body::ResetBoundary(reset) => reset.system_message.as_ref(),
            _ => None,
        }
    }

    /// The cost that it records, where it is a `usage` entry.
    #[must_use]
    pub fn cost(&self) -> Option<Cost> {
        match &self.body {
            Body::Usage => Cost::of(&Head::read(&self.line).ok()?),
            _ => None,
        }
    }

    /// Whether it adds to the context by itself.
    #[must_use]
    pub fn in_context(&self) -> bool {
        match &self.body {
            Body::Message(body) => !body.outline.excluded,
            Body::BranchSummary(branch) => !branch.summary.is_empty(),
            Body::CustomMessage(_) => true,
            _ => false,
        }
    }

    /// Whether a path can go on with it and nothing but its end and its model are others: it neither rewrites nor pins
    /// anything, and says nothing of the session or its system prompt.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match &self.body {
            Body::Compaction(_)
            | Body::ContextEdit(_)
            | Body::ResetBoundary(_)
            | Body::SessionInfo { .. }
            | Body::Mirror(_) => false,
            Body::Custom(custom) => !custom.custom_type.starts_with(OURS),
            Body::CustomMessage(_) => !self.is_pinned_text(),
            Body::Message(body) => body.outline.role != Role::System,
            Body::BranchSummary(_)
            | Body::Label { .. }
            | Body::ModelChange { .. }
            | Body::ThinkingLevel(_)
            | Body::Usage
            | Body::Unknown => true,
        }
    }

    /// Whether a turn starts with it: a message that no model wrote, or a frame that stands for one. A tool result and
    /// an answer belong to the turn before them.
    #[must_use]
    pub fn starts_turn(&self) -> bool {
        match &self.body {
            Body::Message(body) => {
                let role = body.outline.role;
                matches!(role, Role::User | Role::Execution | Role::Developer | Role::Summary) && !body.outline.excluded
            }
            Body::BranchSummary(_) | Body::CustomMessage(_) => self.in_context(),
            _ => false,
        }
    }

    /// Whether it is a line about the entry right before it: one for other programs, or one about the request of an answer.
    #[must_use]
    pub fn goes_with_entry(&self) -> bool {
        matches!(self.body, Body::Mirror(_)) || self.tells_of_request()
    }

    /// Whether it is a line of ours right after an answer whose request was another one than the path before it.
    #[must_use]
    pub fn tells_of_request(&self) -> bool {
        self.is_ours("report") || self.is_ours("unbound")
    }

    /// A line that only this program reads: never a leaf on the wire, never "the last entry".
    #[must_use]
    pub fn is_marker(&self) -> bool {
        match &self.body {
            Body::Custom(custom) => custom.custom_type.starts_with(OURS),
            Body::Usage | Body::Mirror(_) => true,
            _ => false,
        }
    }

    /// Whether it records a request of this daemon, answered or failed, and nothing of the conversation.
    #[must_use]
    pub fn records_request(&self) -> bool {
        matches!(self.body, Body::Usage) || self.is_ours("speculation_failed")
    }

    /// The data of a custom entry of ours: `ours("undo")` reads `abridged.undo`.
    #[must_use]
    pub fn ours(&self, name: &str) -> Option<Value> {
        match &self.body {
            Body::Custom(custom) if self.is_ours(name) => {
                Some(custom.data.as_ref().map(Unparsed::read).unwrap_or_default())
            }
            _ => None,
        }
    }

    /// The id that a message had in the queue.
    #[must_use]
    pub fn queued_id(&self) -> Option<EntryId> {
        #[derive(Deserialize)]
        struct Line {
            message: Message,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Message {
            queued_id: Option<EntryId>,
        }
        let line = self.is_from(Role::User).then(|| serde_json::from_str::<Line>(self.line()).ok()).flatten();
        line?.message.queued_id
    }

    /// Whether it is a custom entry of ours with this name.
    #[must_use]
    pub fn is_ours(&self, name: &str) -> bool {
        matches!(&self.body, Body::Custom(custom) if custom.custom_type.strip_prefix(OURS) == Some(name))
    }

    /// The compaction that it takes back.
    #[must_use]
    pub fn undoes(&self) -> Option<EntryId> {
        Some(self.ours("undo")?.get("compactionEntryId")?.as_str()?.into())
    }

    /// The answer before this line whose request was another one than the path before it, with that request.
    #[must_use]
    pub fn requested(&self) -> Option<(EntryId, Requested)> {
        let data = self.ours("report")?;
        Some((data.get("entryId")?.as_str()?.into(), Requested::of(&data)))
    }

    /// A text that was pinned as an entry of its own.
    #[must_use]
    pub fn is_pinned_text(&self) -> bool {
        matches!(&self.body, Body::CustomMessage(custom) if custom.custom_type == PINNED_TEXT)
    }

    /// The text that a pin keeps word for word: its texts, and its calls by name.
    #[must_use]
    pub fn pinned_text(&self) -> String {
        let blocks = match &self.body {
            Body::CustomMessage(custom) => custom.content.as_slice(),
            Body::BranchSummary(branch) => return branch.summary.clone(),
            Body::Message(_) => match self.message() {
                Some(message @ (Message::Execution(_) | Message::Summary(_))) => return message.text(),
                message => message.map(Message::blocks).unwrap_or_default(),
            },
            _ => &[],
        };
        let parts = blocks.iter().filter_map(|block| match block {
            message::Block::Text(text) => Some(text.clone()),
            message::Block::ToolCall(call) => Some(format!("{}({})", call.name, call.arguments)),
            message::Block::Image(image) => Some(format!("[Image: {}; entry {} has it]", image.mime, self.id)),
            message::Block::Thinking { .. } | message::Block::Other(_) => None,
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    /// The text for a person: its texts and calls, a summary, a name.
    #[must_use]
    pub fn readable_text(&self) -> String {
        match &self.body {
            Body::Compaction(compaction) => compaction.summary.clone(),
            Body::Label { label, .. } => label.clone().unwrap_or_default(),
            Body::SessionInfo { name } => name.clone(),
            Body::ModelChange { provider, model } => format!("{provider}/{model}"),
            Body::ThinkingLevel(level) => level.clone(),
            _ => self.pinned_text(),
        }
    }

    /// Takes a count that was made before.
    pub fn remember_tokens(&self, tokens: u32) {
        self.size.counted(|| tokens);
    }

    /// Whether it changes what is sent of the entries before it.
    #[must_use]
    pub fn rewrites(&self) -> bool {
        match &self.body {
            Body::Compaction(_) | Body::ContextEdit(_) | Body::ResetBoundary(_) => true,
            // A pin of an entry that is sent anyway changes nothing.
            Body::Custom(_) => {
                self.undoes().is_some()
                    || self.is_ours("unpin")
                    || self.ours("pin").is_some_and(|data| data.get("text").is_some())
            }
            _ => false,
        }
    }

    /// Whether a model is sent this as part of the conversation: in the context, and no change of system prompt and tools.
    #[must_use]
    pub fn is_conversation(&self) -> bool {
        self.in_context() && !self.is_from(Role::System)
    }

    /// The base64 texts of its images together, in bytes.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        match &self.body {
            Body::Message(body) => body.outline.image_bytes,
            Body::CustomMessage(custom) => message::image_bytes(custom.content.as_slice()),
            _ => 0,
        }
    }

    /// Its size in tokens. With `Tiktoken` the first call counts, which may take a while.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator) -> u32 {
        self.size.tokens(estimator, || self.body.count(&self.line))
    }

    /// Counts its tokens now, so that nobody has to wait for it later.
    pub fn count(&self) {
        self.size.counted(|| self.body.count(&self.line));
    }

    /// Its size in tokens, if that needs no counting now.
    #[must_use]
    pub fn tokens_known(&self, estimator: Estimator) -> Option<u32> {
        self.size.known(estimator)
    }
}

impl Body {
    fn read(line: &str, id: &EntryId, head: &Head<'_>) -> Option<Self> {
        let small = || serde_json::from_str::<Small>(line).ok();
        Some(match head.kind.as_ref() {
            "message" => {
                let json = head.message?;
                let start = message::offset_in(line, json);
                let outline = Outline::read(json.get()).ok()?;
                Self::Message(MessageBody { outline, json: start..start + json.get().len(), message: OnceLock::new() })
            }
            "compaction" => Self::Compaction(Compaction::read(line, id)?),
            "branch_summary" => Self::BranchSummary(serde_json::from_str(line).ok()?),
            "custom_message" => {
                let json = head.content?;
                let start = message::offset_in(line, json);
                let as_message = format!(r#"{{"role":"custom","content":{}}}"#, json.get());
                let Ok(Message::Custom(content)) = Message::parse(&as_message) else {
                    return None;
                };
                Self::CustomMessage(CustomMessage {
                    custom_type: small()?.custom_type.unwrap_or_default(),
                    content,
                    json: start..start + json.get().len(),
                })
            }
            "context_edit" => Self::ContextEdit(serde_json::from_str(line).ok()?),
            "custom" => Self::Custom(serde_json::from_str(line).ok()?),
            "label" => {
                let small = small()?;
                let label = small.label.as_ref().and_then(Value::as_str).map(str::to_owned);
                Self::Label { target: small.target_id?, label }
            }
            "session_info" => Self::SessionInfo { name: small()?.name.unwrap_or_default() },
            // oh-my-pi's.
            "title_change" => Self::SessionInfo { name: small()?.title.unwrap_or_default() },
            "model_change" => {
                // pi names provider and model apart, oh-my-pi as one "provider/id".
                let Small { provider, model_id, model, .. } = small()?;
                match (provider, model_id) {
                    (Some(provider), Some(model)) => Self::ModelChange { provider, model },
                    _ => {
                        let (provider, model) = model.as_ref()?.as_str()?.split_once('/')?;
                        Self::ModelChange { provider: provider.to_owned(), model: model.to_owned() }
                    }
                }
            }
            "thinking_level_change" => Self::ThinkingLevel(small()?.thinking_level.unwrap_or_else(|| "off".to_owned())),
            "usage" | "model_usage" => Self::Usage,
            "reset_boundary" => Self::ResetBoundary(Reset::read(line, id)),
            _ => Self::Unknown,
        })
    }

    fn size(&self) -> Size {
        match self {
            Self::Message(body) => Size::of_chars(body.outline.chars),
            Self::Compaction(compaction) => Size::of_text(&compaction.summary),
            Self::BranchSummary(branch) => Size::of_text(&branch.summary),
            Self::CustomMessage(custom) => Message::Custom(custom.content.clone()).size(),
            _ => Size::nothing(),
        }
    }

    fn count(&self, line: &str) -> u32 {
        match self {
            Self::Message(body) => match body.message.get() {
                Some(message) => message.count(),
                // Counted once: no reason to keep what it says.
                None => body.read(line).count(),
            },
            Self::Compaction(compaction) => tokens::of_text(&compaction.summary),
            Self::BranchSummary(branch) => tokens::of_text(&branch.summary),
            Self::CustomMessage(custom) => custom
                .content
                .iter()
                .map(|block| match block {
                    message::Block::Text(text) => tokens::of_text(text),
                    message::Block::Image(image) => image.tokens,
                    _ => 0,
                })
                .sum(),
            _ => 0,
        }
    }
}

impl MessageBody {
    fn read(&self, line: &str) -> Message {
        // The outline was read of the same bytes, and takes what this takes; a test holds them together.
        Message::parse(&line[self.json.clone()]).unwrap_or_else(|_| Message::Summary(String::new()))
    }
}

impl BranchSummary {
    /// Made by somebody's hook or extension: its `details` are theirs.
    #[must_use]
    pub fn from_hook(&self) -> bool {
        self.from_hook == Some(true) || self.from_extension == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_surrogate_pair_reads_as_the_replacement_character() {
        let line = r#"{"type":"message","id":"a","message":{"role":"user","content":"cut \ud83d, whole \ud83d\ude00, \\ud83d"}}"#;
        let entry = Entry::parse(line.into()).expect("a line");
        assert_eq!(entry.message().map(Message::text).as_deref(), Some("cut \u{fffd}, whole 😀, \\ud83d"));
        assert_eq!(without_half_pairs("nothing \\n of the kind"), None);
    }

    #[test]
    fn an_unknown_type_may_have_anything_and_a_known_one_says_when_it_is_unreadable() {
        let parse = |line: &str| Entry::parse(line.into()).expect("a line");
        let weird = parse(r#"{"type":"weird","id":"b","parentId":"a","name":{"x":1},"timestamp":7,"label":[]}"#);
        assert!(!weird.unreadable());
        assert_eq!(weird.parent.as_ref().map(EntryId::as_str), Some("a"));
        assert!(parse(r#"{"type":"message","id":"c","message":{"role":"nonsense"}}"#).unreadable());
        let arguments = format!("{}{}", "[".repeat(400), "]".repeat(400));
        let call = format!(r#"{{"type":"toolCall","id":"c","name":"n","arguments":{arguments}}}"#);
        let deep = format!(r#"{{"type":"message","id":"d","message":{{"role":"assistant","content":[{call}]}}}}"#);
        assert!(!parse(&deep).unreadable());
        assert!(!parse(r#"{"type":"message","id":"e","message":{"role":"assistant","content":null}}"#).unreadable());
    }
}
