//! The entries of a session that another agent wrote, in pi's form.

use super::Agent;
use crate::{
    conversation::{
        entry::{self, Header, HeaderKind, Stamp, VERSION, line, raw},
        message::Message,
    },
    ids::{CallId, EntryId, ModelRef, SessionId},
    log::repair::Repair,
    provider::{
        Api,
        given::completing::{self, Missing},
    },
    text::{self, values},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};

/// `customType` of the entry that says where an imported session comes from.
pub const IMPORTED: &str = "abridged.imported";

/// The longest working folder, in bytes. Headers and events have it.
const LONGEST_CWD: usize = 4_096;

/// The longest title, in bytes. A longer one is cut.
const LONGEST_TITLE: usize = 1_000;

/// The longest id of a session, in bytes. Every event has it.
const LONGEST_ID: usize = 256;

/// The id of a session by the one that it has in its agent.
#[must_use]
pub fn own_id(id: &str) -> SessionId {
    match id.len() {
        1..=LONGEST_ID => id.into(),
        _ => EntryId::of_bits(bits(id)).as_str().into(),
    }
}

/// Key of the entry with the origin.
const ORIGIN: &str = "origin";

/// The session of another agent that a session was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The agent that wrote it.
    pub agent: Agent,
    /// Its id in that agent.
    pub session_id: String,
    /// Version of the agent, where the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The session of the same agent that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<String>,
    /// Branch of the project's git repository, where the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_branch: Option<String>,
}

/// Facts about a session beside its entries.
#[derive(Debug, Clone)]
pub struct About {
    /// Its origin.
    pub origin: Origin,
    /// The working folder; empty where the file has none.
    pub cwd: String,
    /// The time of its beginning, RFC 3339.
    pub created: String,
    /// The title.
    pub title: Option<String>,
}

/// A session of another agent in pi's form.
#[derive(Debug, Clone)]
pub struct Converted {
    /// Facts about it.
    pub about: About,
    /// Lines of its conversation, each with its newline.
    conversation: String,
    /// Numbers of the parts that are left out, by their kind.
    left_out: Map<String, Value>,
    /// Parts of the file that are in no entry.
    pub repairs: Vec<Repair>,
}

impl Converted {
    /// The header of a session with these entries. `id` names the session here, `file` the one that it was read from.
    #[must_use]
    pub fn header(&self, id: SessionId, file: Option<String>) -> Header {
        let title = self.about.title.clone();
        let is_usable =
            |cwd: &&str| cwd.starts_with('/') && cwd.len() <= LONGEST_CWD && !cwd.chars().any(char::is_control);
        let cwd = Some(self.about.cwd.as_str()).filter(is_usable).unwrap_or("/").to_owned();
        let mut header = Header {
            kind: HeaderKind::Session,
            version: VERSION,
            id,
            timestamp: self.about.created.clone(),
            cwd,
            parent_session: file,
            title: title.clone(),
            rest: title.iter().map(|_| ("titleSource".to_owned(), Value::from("auto"))).collect(),
        };
        header.mark_foreign();
        header
    }

    /// The lines of all entries, each with its newline. The conversation hangs on the entry that says its origin.
    #[must_use]
    pub fn lines(&self) -> String {
        let Origin { agent, session_id, .. } = &self.about.origin;
        let mut head = Transcript::new(*agent, session_id, &self.about.created);
        head.leaf = None;
        if let Some(title) = &self.about.title {
            head.entry("session_info", "title", &[("name", raw(title))]);
        }
        let mut data = json!(self.about.origin);
        if !self.left_out.is_empty() {
            data["leftOut"] = self.left_out.clone().into();
        }
        head.entry("custom", ORIGIN, &[("customType", raw(&IMPORTED)), ("data", raw(&data))]);
        head.lines + &self.conversation
    }

    /// The id that the session has in its agent.
    #[must_use]
    pub fn own_id(&self) -> SessionId {
        own_id(&self.about.origin.session_id)
    }
}

/// The entries so far of a session that is read.
pub struct Transcript {
    agent: Agent,
    /// Id of the session, a part of each id of an entry.
    session: String,
    lines: String,
    leaf: Option<EntryId>,
    /// The entry of the last line.
    last: Option<EntryId>,
    /// Time of the first entry.
    begun: String,
    /// Time of the newest entry, for those without one.
    time: String,
    model: Option<ModelRef>,
    thinking: Option<String>,
    /// The entries so far: another agent's file may have an id twice.
    ids: HashSet<EntryId>,
    /// Tools of the calls so far.
    tools: HashMap<CallId, String>,
    /// Parts that are left out, by their kind, with their number.
    left_out: BTreeMap<&'static str, usize>,
}

impl Transcript {
    /// An empty transcript of this session.
    #[must_use]
    pub fn new(agent: Agent, session: &str, time: &str) -> Self {
        let mut transcript = Self {
            agent,
            session: session.to_owned(),
            lines: String::new(),
            leaf: None,
            last: None,
            begun: entry::timestamp(jiff::Timestamp::UNIX_EPOCH),
            time: entry::timestamp(jiff::Timestamp::UNIX_EPOCH),
            model: None,
            thinking: None,
            ids: HashSet::new(),
            tools: HashMap::new(),
            left_out: BTreeMap::new(),
        };
        transcript.at(time);
        transcript.leaf = Some(transcript.root());
        transcript
    }

    /// The newest entry of the branch that is written. At the beginning it is the root.
    #[must_use]
    pub fn leaf(&self) -> EntryId {
        self.leaf.clone().unwrap_or_else(|| self.root())
    }

    /// The entry before the conversation.
    #[must_use]
    pub fn root(&self) -> EntryId {
        self.id(ORIGIN)
    }

    /// Continues after another entry.
    pub fn continue_after(&mut self, entry: EntryId) {
        self.leaf = Some(entry);
    }

    /// Counts a part that is left out. `kind` is the plural of a noun.
    pub fn leave_out(&mut self, kind: &'static str) {
        *self.left_out.entry(kind).or_default() += 1;
    }

    /// Adds a message in pi's form. `key` names its record within the session. Returns the id of its entry; `None` where it is
    /// none, which is counted.
    pub fn message(&mut self, key: &str, time: &str, json: &str) -> Option<EntryId> {
        if values::check(json).is_err() {
            self.leave_out("messages with too many values");
            return None;
        }
        let Ok(message) = Message::parse(json) else {
            self.leave_out("messages that cannot be read");
            return None;
        };
        self.at(time);
        if let Message::Assistant(answer) = &message {
            let calls = answer.calls().map(|call| (call.id.clone(), call.name.clone()));
            self.tools.extend(calls);
        }
        let now = entry::milliseconds(&self.time);
        let tool_of = |call: &CallId| self.tools.get(call).cloned();
        let missing = Missing { model: self.model.clone(), api_of: &api_of, tool_of: &tool_of, now };
        let json = completing::complete(json, &message, &missing);
        let json: Box<RawValue> = serde_json::from_str(&json).ok()?;
        Some(self.add("message", key, &[("message", &json)]))
    }

    /// Adds a text that the agent put into the conversation and the user did not write.
    pub fn note(&mut self, key: &str, time: &str, kind: &str, content: &Value) -> EntryId {
        self.at(time);
        let fields = [("customType", raw(&kind)), ("content", raw(content)), ("display", raw(&false))];
        self.entry("custom_message", key, &fields)
    }

    /// Adds a compaction of the agent. Nothing before `first_kept` is kept; without one, nothing before the compaction.
    pub fn compaction(
        &mut self,
        key: &str,
        time: &str,
        summary: &str,
        first_kept: Option<&EntryId>,
        tokens_before: u64,
    ) -> EntryId {
        self.at(time);
        let own = self.id(key);
        let kept = first_kept.unwrap_or(&own);
        let details = json!({ "readFiles": [], "modifiedFiles": [] });
        let fields = [
            ("summary", raw(&summary)),
            ("firstKeptEntryId", raw(kept)),
            ("tokensBefore", raw(&tokens_before)),
            ("details", raw(&details)),
            ("fromHook", raw(&true)),
        ];
        self.entry("compaction", key, &fields)
    }

    /// Sets the model of the answers that follow.
    pub fn model(&mut self, key: &str, time: &str, provider: &str, id: &str) {
        let model = ModelRef { provider: provider.to_owned(), id: id.to_owned() };
        if self.model.as_ref() == Some(&model) {
            return;
        }
        self.at(time);
        self.entry("model_change", key, &[("provider", raw(&provider)), ("modelId", raw(&id))]);
        self.model = Some(model);
    }

    /// The model of the answers that follow.
    #[must_use]
    pub fn current_model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// Sets the thinking level of the answers that follow, in the agent's own word.
    pub fn thinking(&mut self, key: &str, time: &str, level: &str) {
        if self.thinking.as_deref() == Some(level) {
            return;
        }
        self.at(time);
        self.entry("thinking_level_change", key, &[("thinkingLevel", raw(&level))]);
        self.thinking = Some(level.to_owned());
    }

    /// The session.
    #[must_use]
    pub fn finish(mut self, mut about: About) -> Converted {
        // A time that is none could be anything, and the name of a file has it.
        about.created = about.created.parse().map(entry::timestamp).unwrap_or_else(|_| self.begun.clone());
        about.title = about.title.map(|title| text::head(&title, LONGEST_TITLE).to_owned());
        let left_out: Map<String, Value> =
            self.left_out.iter().map(|(kind, count)| ((*kind).to_owned(), (*count).into())).collect();
        let repairs = self.left_out.iter().map(|(kind, count)| Repair {
            kind: "left_out",
            line: None,
            detail: format!("{count} {kind} of {} are in no entry; its own file has them", self.agent.title()),
        });
        let repairs = repairs.collect();
        self.lead_to_leaf();
        Converted { about, conversation: self.lines, left_out, repairs }
    }

    /// Marks the leaf where the last line is of another branch.
    fn lead_to_leaf(&mut self) {
        let leaf = self.leaf();
        if self.last.as_ref().is_some_and(|last| *last != leaf) {
            let data = json!({ "targetEntryId": leaf });
            self.entry("custom", "leaf", &[("customType", raw(&"abridged.leaf")), ("data", raw(&data))]);
        }
    }

    fn entry(&mut self, kind: &str, key: &str, fields: &[(&str, Box<RawValue>)]) -> EntryId {
        let fields: Vec<(&str, &RawValue)> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
        self.add(kind, key, &fields)
    }

    fn add(&mut self, kind: &str, key: &str, fields: &[(&str, &RawValue)]) -> EntryId {
        let mut id = self.id(key);
        let mut again = 1;
        while !self.ids.insert(id.clone()) {
            again += 1;
            id = self.id(&format!("{key}:again:{again}"));
        }
        let stamp = Stamp { id, timestamp: self.time.clone() };
        if self.lines.is_empty() {
            self.begun.clone_from(&self.time);
        }
        self.lines.push_str(&line(kind, &stamp, self.leaf.as_ref(), fields));
        self.lines.push('\n');
        self.leaf = Some(stamp.id.clone());
        self.last = Some(stamp.id.clone());
        stamp.id
    }

    /// The id of the entry of a record: the same each time that the session is read.
    fn id(&self, key: &str) -> EntryId {
        EntryId::of_bits(bits(&format!("{}:{}:{key}", self.agent.name(), self.session)))
    }

    /// Sets the time of the entries that follow, where it is one.
    fn at(&mut self, time: &str) {
        if let Ok(time) = time.parse() {
            self.time = entry::timestamp(time);
        }
    }
}

/// The first 64 bits of the hash of a text.
fn bits(text: &str) -> u64 {
    let mut bits = [0; 8];
    bits.copy_from_slice(&Sha256::digest(text)[..8]);
    u64::from_be_bytes(bits)
}

/// The wire format in which a provider's models answer.
fn api_of(model: &ModelRef) -> Option<Api> {
    match model.provider.as_str() {
        "anthropic" => Some(Api::Anthropic),
        "openai" => Some(Api::OpenaiResponses),
        "google" => Some(Api::Google),
        _ => None,
    }
}
