//! The messages that a model may be sent: the path, seen through its latest compaction and its edits, made valid for a
//! provider.
//!
//! `build` is the only way to a `Context`, and validity is its last step, so no chain of compactions, branches, aborts
//! or another program's writing leads to a list that a provider refuses. `check` is a second opinion that shares no
//! code with it.

pub mod check;
pub mod native;
pub mod others;
mod pairing;
pub mod thinking;

use self::native::NativeForm;
use crate::{
    conversation::{
        entry::{self, Body, CarriedLoad, CarriedMessage, Entry, Mirror, Replacement, native::Covers},
        evidence::Estimate,
        message::{
            Block, Message,
            outline::{Outline, Role},
        },
        path::{Path, Pin},
        tokens::{Estimator, Size},
    },
    ids::EntryId,
    prompts::{Prompt, Prompts, escape_frame, escape_tags, escape_within},
    text,
};
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    convert::Infallible,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// The messages a model may be sent, in order.
#[derive(Debug, Clone, Default)]
pub struct Context {
    messages: Vec<ContextMessage>,
    compaction: Option<EntryId>,
    native: Option<NativeForm>,
}

/// One message of a context.
#[derive(Debug, Clone)]
pub struct ContextMessage {
    /// The entry it comes from; none for one that stands in for something that is missing.
    pub entry: Option<EntryId>,
    /// The part of the context.
    pub part: Part,
    source: Source,
}

/// The part of the context that a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It stands for what a compaction summarized.
    Summary,
    /// It is an entry's own.
    Message,
    /// It was made up, so that a call has its result.
    StandIn,
}

#[derive(Debug, Clone)]
enum Source {
    /// Sent byte for byte.
    Entry(Arc<Entry>),
    Made(Arc<Made>),
}

#[derive(Debug)]
struct Made {
    /// Its JSON. That of a text is made when it is asked for: a context that is only measured has none.
    json: OnceLock<String>,
    /// The time of its entry, in milliseconds.
    timestamp: i64,
    message: Message,
    outline: Outline,
    size: Size,
}

impl Context {
    /// The messages, in order.
    #[must_use]
    pub fn messages(&self) -> &[ContextMessage] {
        &self.messages
    }

    /// The compaction it is seen through.
    #[must_use]
    pub fn compaction(&self) -> Option<&EntryId> {
        self.compaction.as_ref()
    }

    /// The estimated tokens of all messages, uncalibrated, or those of the form for the provider that compacted the
    /// conversation, if they are more. With `Tiktoken` this may count for a while.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator) -> u64 {
        let readable = self.messages.iter().map(|message| u64::from(message.tokens(estimator))).sum();
        self.native.as_ref().map_or(readable, |native| native.tokens(estimator).max(readable))
    }
}

impl Context {
    /// The estimate of its messages for the judgement of a report. The form of a provider's own compaction is not read: its
    /// size says nothing about a smallest prompt.
    #[must_use]
    pub fn estimate(&self, estimator: Estimator) -> Estimate {
        let solid = |message: &ContextMessage| message.outline().solid(u64::from(message.tokens(estimator)));
        let solid = match self.native {
            None => self.messages.iter().map(solid).sum(),
            Some(_) => 0,
        };
        Estimate { all: self.tokens(estimator), solid }
    }
}

impl ContextMessage {
    fn of_entry(entry: &Arc<Entry>) -> Self {
        Self { entry: Some(entry.id.clone()), part: Part::Message, source: Source::Entry(entry.clone()) }
    }

    fn made(entry: Option<EntryId>, part: Part, value: &Value) -> Option<Self> {
        let json = serde_json::to_string(value).ok()?;
        let message = Message::parse(&json).ok()?;
        Some(Self::of_message(entry, part, json, message))
    }

    /// A message whose JSON this is.
    fn of_message(entry: Option<EntryId>, part: Part, json: String, message: Message) -> Self {
        Self { entry, part, source: Source::Made(Arc::new(Made::of(message, OnceLock::from(json), 0))) }
    }

    /// A message of one text. It is not read from its JSON, which says nothing else.
    fn user_text(entry: &Entry, part: Part, text: String) -> Self {
        let message = Message::User(vec![Block::Text(text)]);
        let made = Made::of(message, OnceLock::new(), entry::milliseconds(&entry.timestamp));
        Self { entry: Some(entry.id.clone()), part, source: Source::Made(Arc::new(made)) }
    }

    /// A message of the user that a compaction carries.
    fn of_user(compaction: &Entry, said: &CarriedMessage) -> Self {
        Self::user_text(compaction, Part::Summary, said.text.clone())
    }

    fn user(entry: &Entry, part: Part, content: Value) -> Option<Self> {
        Self::made(Some(entry.id.clone()), part, &user_value(content, entry::milliseconds(&entry.timestamp)))
    }

    /// The entry that it is, for clients. A frame and a stand-in are no entry.
    #[must_use]
    pub fn entry_shown(&self) -> Option<&EntryId> {
        self.entry.as_ref().filter(|_| self.part == Part::Message)
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &Message {
        match &self.source {
            Source::Entry(entry) => entry.message().expect("only message entries become context messages unchanged"),
            Source::Made(made) => &made.message,
        }
    }

    /// The same for a reader that needs it once: a message that is read for it is not kept in memory.
    #[must_use]
    pub fn message_once(&self) -> Cow<'_, Message> {
        match &self.source {
            Source::Entry(entry) => {
                entry.message_once().expect("only message entries become context messages unchanged")
            }
            Source::Made(made) => Cow::Borrowed(&made.message),
        }
    }

    /// The message without its texts.
    #[must_use]
    pub fn outline(&self) -> &Outline {
        match &self.source {
            Source::Entry(entry) => entry.outline().expect("only message entries become context messages unchanged"),
            Source::Made(made) => &made.outline,
        }
    }

    /// Its JSON as a part of an entry's line, where it is that and stands on one line.
    #[must_use]
    pub fn part(&self) -> Option<(Arc<str>, Range<usize>)> {
        match (&self.source, self.json()) {
            (Source::Entry(entry), Cow::Borrowed(_)) => entry.message_part(),
            _ => None,
        }
    }

    /// Its JSON on one line: the entry's own bytes where nothing changed it.
    #[must_use]
    pub fn json(&self) -> Cow<'_, str> {
        match &self.source {
            Source::Entry(entry) => {
                entry::one_line(entry.message_json().expect("only message entries become context messages unchanged"))
            }
            Source::Made(made) => Cow::Borrowed(made.json()),
        }
    }

    /// Its estimated tokens, uncalibrated.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator) -> u32 {
        match &self.source {
            Source::Entry(entry) => entry.tokens(estimator),
            Source::Made(made) => made.size.tokens(estimator, || made.message.count()),
        }
    }
}

impl Made {
    fn of(message: Message, json: OnceLock<String>, timestamp: i64) -> Self {
        let outline = Outline::of(&message);
        let size = Size::of_chars(outline.chars);
        Self { json, timestamp, message, outline, size }
    }

    fn json(&self) -> &str {
        let of_text = || user_value(json!([{ "type": "text", "text": self.message.text() }]), self.timestamp);
        self.json.get_or_init(|| of_text().to_string())
    }
}

/// A message of the user in the form of the file.
fn user_value(content: Value, timestamp: i64) -> Value {
    json!({ "role": "user", "content": content, "timestamp": timestamp })
}

/// Builds the context of a path.
#[must_use]
pub fn build(path: &Path, prompts: &Prompts) -> Context {
    let Ok(context) = build_while(path, prompts, &|| Ok::<(), Infallible>(()));
    context
}

/// Builds the context of a path for a reader that may stop. `go_on` is asked before each entry and before each pass over all
/// messages.
///
/// # Errors
/// The first error of `go_on`.
pub fn build_while<E>(path: &Path, prompts: &Prompts, go_on: &impl Fn() -> Result<(), E>) -> Result<Context, E> {
    let compaction = path.compaction();
    let first_kept = path.first_kept();
    let pins = path.pins();
    let pinned = path.pinned();
    let edits = edits(path, compaction);
    let first_later = compaction.map_or(first_kept, |place| place.max(first_kept));
    let message = |entry: &Arc<Entry>| match edits.get(&entry.id) {
        None => unedited(entry, prompts),
        Some(None) => None,
        // A pinned entry stays as it is.
        Some(Some(_)) if pinned.contains(&entry.id) => unedited(entry, prompts),
        Some(Some(replacement)) => edited(entry, replacement),
    };
    let sent = |entries: &[Arc<Entry>]| -> Result<Vec<ContextMessage>, E> {
        let entries = entries.iter().filter(|entry| !matches!(entry.body, Body::Compaction(_)));
        entries.filter_map(|entry| go_on().map(|()| message(entry)).transpose()).collect()
    };
    let (kept, later) = (sent(&path[first_kept..first_later])?, sent(&path[first_later..])?);
    let (first, native): (Vec<_>, _) = match compaction {
        Some(place) => {
            let rest = |sent_from| behind_summary(path, place, first_kept, sent_from, pins, prompts);
            let behind_history = |covers| match covers {
                Covers::Summarized => rest(first_kept),
                Covers::Kept => rest(first_later),
            };
            let facts = facts_frame(&path[place], prompts);
            let beside =
                |covers| facts.clone().into_iter().chain(behind_history(covers)).collect::<Vec<_>>().join("\n\n");
            let native = NativeForm::of(&path[place], &beside, &kept, &later);
            let rest = rest(first_kept);
            let said = user_messages(path, place, pins).map(|said| ContextMessage::of_user(&path[place], said));
            (said.chain(summary(&path[place], &rest, prompts)).collect(), native)
        }
        None => (path.reset().and_then(|place| pinned_over(path, place, pins, prompts)).into_iter().collect(), None),
    };
    go_on()?;
    let messages = pairing::pair(first.into_iter().chain(kept).chain(later).collect());
    go_on()?;
    let violations = check::violations_of(&messages);
    if !violations.is_empty() {
        tracing::error!(?violations, "a context that a provider may refuse; please report this");
        debug_assert!(violations.is_empty(), "{violations:?}");
    }
    Ok(Context { messages, compaction: compaction.map(|place| path[place].id.clone()), native })
}

/// The newest user message, where the compaction at `place` left it behind: what it carries, or, for a compaction of
/// another program, what stands before its cut.
fn left_behind(path: &Path, place: usize, first_kept: usize) -> Option<Cow<'_, CarriedMessage>> {
    if path[place].compaction()?.preserved().is_some() {
        return path.newest_user_message_before().map(Cow::Borrowed);
    }
    let kept = path[first_kept..place].iter().any(|entry| is_user(entry));
    let found = newest_user_message_before(path, first_kept.min(place), place).map(Cow::Owned);
    found.or_else(|| path.newest_user_message_before().filter(|_| !kept).map(Cow::Borrowed))
}

fn is_user(entry: &Entry) -> bool {
    entry.is_from(Role::User)
}

/// The newest user message of `path[..until]` after the last reset, if it stands before `first_kept`; clipped as it is
/// carried.
#[must_use]
pub fn newest_user_message_before(path: &Path, first_kept: usize, until: usize) -> Option<CarriedMessage> {
    let cleared = |entry: &Arc<Entry>| matches!(entry.body, Body::ResetBoundary(_));
    let place = path[..until].iter().rposition(|entry| is_user(entry) || cleared(entry))?;
    (place < first_kept && !cleared(&path[place])).then(|| carried(&path[place]))
}

/// A message as it is carried over a cut.
#[must_use]
pub fn carried(entry: &Entry) -> CarriedMessage {
    let text = entry.message().map(text_over_cut).unwrap_or_default();
    CarriedMessage { entry_id: entry.id.clone(), text: clip_carried(&text, usize::MAX) }
}

/// The text of a message over a cut. A message of images alone has a placeholder.
#[must_use]
pub fn text_over_cut(message: &Message) -> String {
    match message.text() {
        text if text.trim().is_empty() => "[a message without text, such as an image]".to_owned(),
        text => text,
    }
}

/// A carried message keeps its beginning and its end: 2,000 tokens at the peers' four characters each, or fewer, but 40
/// tokens also where the room is smaller.
#[must_use]
pub fn clip_carried(text: &str, most_chars: usize) -> String {
    const MOST: usize = 2_000 * 4;
    const LEAST: usize = 40 * 4;
    text::clip_middle(text, most_chars.clamp(LEAST, MOST), "\n[… the middle of this message was left out …]\n")
}

/// The summary message: the summary, and the parts after it.
fn summary(entry: &Entry, behind: &[String], prompts: &Prompts) -> Option<ContextMessage> {
    let compaction = entry.compaction()?;
    let summary = escape_frame(&compaction.summary);
    let mut text = prompts.render(Prompt::CompactionSummaryContext, &[("summary", &summary)]);
    for part in behind {
        text.push_str("\n\n");
        text.push_str(part);
    }
    if compaction.frames().is_empty() {
        return Some(ContextMessage::user_text(entry, Part::Summary, text));
    }
    let text = json!({ "type": "text", "text": text });
    let content = std::iter::once(text).chain(compaction.frames().iter().cloned()).collect();
    ContextMessage::user(entry, Part::Summary, content)
}

/// The parts of the summary message after the summary: the pinned texts of entries before `sent_from`, the loaded texts, the
/// open tasks, the carried message and the hint.
fn behind_summary(
    path: &Path,
    place: usize,
    first_kept: usize,
    sent_from: usize,
    pins: &[Pin],
    prompts: &Prompts,
) -> Vec<String> {
    let pinned = pinned_frame(path, sent_from, pins, prompts);
    let loaded = loaded_frame(path, place, pins, prompts).map(|(_, loaded)| loaded);
    let todos = todos_frame(path, place, first_kept, prompts).map(|(_, todos)| todos);
    let carried = carried_frame(path, place, first_kept, pins, prompts).map(|(_, carried)| carried);
    pinned.into_iter().chain(loaded).chain(todos).chain(carried).chain(prompts.transcript_hint()).collect()
}

/// The messages of the user in front of the summary of the compaction at `place`, except pinned ones.
fn user_messages<'a>(path: &'a Path, place: usize, pins: &'a [Pin]) -> impl Iterator<Item = &'a CarriedMessage> {
    let carried = path[place].compaction().and_then(|compaction| compaction.preserved());
    let said = carried.into_iter().flat_map(|preserved| &preserved.user_messages);
    let pinned = pinned_entries(pins);
    said.filter(move |said| !pinned.contains(&said.entry_id))
}

/// The entries that are pinned.
fn pinned_entries(pins: &[Pin]) -> HashSet<&EntryId> {
    pins.iter().map(|pin| &pin.entry).collect()
}

/// The message with the pinned texts that a reset carries.
fn pinned_over(path: &Path, reset: usize, pins: &[Pin], prompts: &Prompts) -> Option<ContextMessage> {
    let text = pinned_frame(path, reset, pins, prompts)?;
    Some(ContextMessage::user_text(&path[reset], Part::Summary, text))
}

/// The pinned texts of entries before `first_kept` in their frame.
fn pinned_frame(path: &Path, first_kept: usize, pins: &[Pin], prompts: &Prompts) -> Option<String> {
    let pinned: Vec<String> = texts_of_pins(path, first_kept, pins).into_iter().map(|(_, text)| text).collect();
    (!pinned.is_empty()).then(|| prompts.render(Prompt::PinnedContext, &[("pins", &pinned.join("\n\n"))]))
}

/// The newest user message in its frame, with its entry, where the compaction at `place` left it behind and it is not
/// pinned.
fn carried_frame(
    path: &Path,
    place: usize,
    first_kept: usize,
    pins: &[Pin],
    prompts: &Prompts,
) -> Option<(EntryId, String)> {
    let carried = left_behind(path, place, first_kept).filter(|it| pins.iter().all(|pin| pin.entry != it.entry_id))?;
    let message = escape_tags(&carried.text);
    Some((carried.entry_id.clone(), prompts.render(Prompt::CarriedMessageContext, &[("message", &message)])))
}

/// The facts that the text of a provider's own compaction does not have, in their frame.
fn facts_frame(compaction: &Entry, prompts: &Prompts) -> Option<String> {
    let native = compaction.compaction()?.native()?;
    let facts = Some(native.facts()).filter(|facts| !facts.is_empty())?;
    Some(prompts.render(Prompt::FactsContext, &[("facts", &escape_within(&escape_tags(facts), "facts"))]))
}

/// The skills and instructions that the compaction at `place` carries in their frame, with the entry of the newest, except
/// pinned ones.
fn loaded_frame(path: &Path, place: usize, pins: &[Pin], prompts: &Prompts) -> Option<(EntryId, String)> {
    let carried = &path[place].compaction()?.preserved()?.agent.loaded;
    let loaded: Vec<&CarriedLoad> =
        carried.iter().filter(|load| pins.iter().all(|pin| pin.entry != load.entry_id)).collect();
    let texts: Vec<String> = loaded.iter().map(|load| load.framed()).collect();
    let text = prompts.render(Prompt::LoadedContext, &[("loaded", &texts.join("\n\n"))]);
    Some((loaded.last()?.entry_id.clone(), text))
}

/// The open tasks in their frame, with the entry that changed them last, where the compaction at `place` carries them and
/// the kept messages do not tell them. They stay as they are until the next compaction: a newer list stands after them.
fn todos_frame(path: &Path, place: usize, first_kept: usize, prompts: &Prompts) -> Option<(EntryId, String)> {
    let todos = path[place].compaction()?.preserved()?.agent.todos.as_ref()?;
    let kept = |id: &&EntryId| path.position(id).is_some_and(|at| at >= first_kept);
    let told = todos.since.as_ref().filter(kept).is_some_and(|id| !edits(path, Some(place)).contains_key(id));
    let lines = todos.lines();
    if told || lines.is_empty() {
        return None;
    }
    let todos_text = prompts.render(Prompt::TodosContext, &[("todos", &escape_tags(&lines))]);
    Some((todos.entry_id.clone(), todos_text))
}

/// The pinned texts whose entries are not sent by themselves any more, word for word, each with its entry.
#[must_use]
pub fn texts_of_pins(path: &Path, first_kept: usize, pins: &[Pin]) -> Vec<(EntryId, String)> {
    let places = path.places();
    let text = |pin: &Pin| match places.of_entry(&pin.entry) {
        Some(place) if place >= first_kept => None,
        Some(place) => Some(path[place].pinned_text()),
        None => pin.text.clone(),
    };
    let texts = pins.iter().filter_map(|pin| Some((pin.entry.clone(), text(pin)?)));
    texts.filter(|(_, text)| !text.is_empty()).collect()
}

/// Whether an entry is sent as a message of its own. A stored system prompt is fixed overhead, not a message.
fn is_sent(entry: &Entry) -> bool {
    entry.in_context() && !entry.is_from(Role::System)
}

/// The entry's message without edits. `None` where the entry adds none to a context.
#[must_use]
pub fn unedited(entry: &Arc<Entry>, prompts: &Prompts) -> Option<ContextMessage> {
    if !is_sent(entry) {
        return None;
    }
    match &entry.body {
        Body::Message(body) => match body.outline.role {
            Role::Summary => {
                let text = entry.message().map(Message::text).unwrap_or_default();
                let text = prompts.render(Prompt::BranchSummaryContext, &[("summary", &escape_frame(&text))]);
                Some(ContextMessage::user_text(entry, Part::Message, text))
            }
            _ => Some(ContextMessage::of_entry(entry)),
        },
        Body::BranchSummary(branch) => {
            let text = prompts.render(Prompt::BranchSummaryContext, &[("summary", &escape_frame(&branch.summary))]);
            Some(ContextMessage::user_text(entry, Part::Message, text))
        }
        Body::CustomMessage(_) => {
            let content: Value = serde_json::from_str(entry.custom_content_json()?).ok()?;
            ContextMessage::user(entry, Part::Message, content)
        }
        _ => None,
    }
}

/// The entry's message with another content. What is not sent by itself is not sent edited either.
#[must_use]
pub fn edited(entry: &Arc<Entry>, replacement: &Replacement) -> Option<ContextMessage> {
    if !is_sent(entry) {
        return None;
    }
    let json = match entry.message_json() {
        // These have no content of their own that could be another one.
        Some(json) if !entry.is_from(Role::Summary) && !entry.is_from(Role::Execution) => json,
        _ => return ContextMessage::user(entry, Part::Message, replacement.content.read()),
    };
    let mut value = crate::conversation::message::value(json)?;
    let blocks_only = entry.is_from(Role::Assistant) || entry.is_from(Role::ToolResult);
    value["content"] = match replacement.content.read() {
        Value::String(text) if blocks_only => json!([{ "type": "text", "text": text }]),
        content => content,
    };
    ContextMessage::made(Some(entry.id.clone()), Part::Message, &value)
}

/// The entries that are sent with another content, or not at all.
#[must_use]
pub fn edited_entries(path: &Path) -> HashSet<EntryId> {
    edits(path, path.compaction()).into_keys().cloned().collect()
}

/// The edits in force, the latest for each target.
fn edits(path: &Path, compaction: Option<usize>) -> HashMap<&EntryId, Option<&Replacement>> {
    let mut edits = HashMap::new();
    let undone: HashSet<EntryId> = path.iter().filter_map(|entry| entry.undoes()).collect();
    for (place, entry) in path.iter().enumerate() {
        match &entry.body {
            Body::ContextEdit(edit) => {
                edits.insert(&edit.target_id, edit.replacement.as_ref());
            }
            // After a later compaction of another program, which carries nothing, these are what is known of them.
            Body::Mirror(Mirror::Edit { edit, compaction: Some(of) }) if !undone.contains(of) => {
                edits.insert(&edit.target_id, edit.replacement.as_ref());
            }
            Body::Compaction(it) if Some(place) == compaction => {
                for edit in it.preserved().into_iter().flat_map(|preserved| &preserved.edits) {
                    edits.insert(&edit.target_id, edit.replacement.as_ref());
                }
            }
            _ => {}
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::clip_carried;

    #[test]
    fn a_carried_message_keeps_its_words_where_no_room_is_left() {
        let short = "Mend the parser, and run its tests before you commit.";
        assert_eq!(clip_carried(short, 0), short);
        let long = clip_carried(&format!("Mend the parser. {} Then run its tests.", "and so on ".repeat(1_000)), 0);
        assert!(long.starts_with("Mend the parser. and so on") && long.ends_with("Then run its tests."), "{long}");
        assert!(long.chars().count() < 220, "{long}");
    }
}
