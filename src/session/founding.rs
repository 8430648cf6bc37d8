//! A session that begins with the summary of another one, or with a document: its first entries, and the way in which it
//! is made.

mod document;

pub use document::{Document, HANDOFF, Saved};

use super::{data::model_fields, state::State};
use crate::{
    compaction::draft::Draft,
    conversation::{
        context,
        entry::{self, Entry, Header, HeaderKind, PINNED_TEXT, Stamp, Stamps, VERSION},
        mirroring,
        path::Path,
        spending::Spending,
    },
    ids::{EntryId, SessionId},
    protocol::{errors::Failure, types::LONGEST_TITLE},
    settings::trust::Trust,
    text,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};

/// A session that is to be made.
#[derive(Debug, Clone)]
pub struct Founding {
    /// The header. It names the session that it comes from.
    pub header: Header,
    /// The first entries, each the child of the one before.
    pub entries: Vec<Arc<Entry>>,
    /// The one among them that carries the knowledge of the other session: a compaction or a document.
    pub carrier: Arc<Entry>,
    /// A file with the document beside the file of the session.
    pub saved: Option<Saved>,
    /// The place where it is kept.
    pub keeping: Keeping,
}

/// The place where a session is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// In a file.
    File,
    /// In memory alone.
    Memory,
}

/// The reason why a session could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfounded {
    path: String,
    errno: Option<i32>,
    what: String,
}

impl From<Failure> for Unfounded {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Storage { path, errno, what } => Self { path, errno, what },
            Failure::Store { path, what, .. } => Self { path, errno: None, what },
            other => Self { path: String::new(), errno: None, what: other.to_string() },
        }
    }
}

impl From<Unfounded> for Failure {
    fn from(Unfounded { path, errno, what }: Unfounded) -> Self {
        Self::Storage { path, errno, what: format!("the new session could not be made: {what}") }
    }
}

/// The outcome of making a session: its file, where it has one.
pub type Outcome = Result<Option<PathBuf>, Unfounded>;

/// Takes the outcome of making a session.
pub type Told = Box<dyn FnOnce(Outcome) + Send>;

/// Makes sessions.
pub type Founder = Box<dyn Fn(Founding, Told) + Send + Sync>;

impl Founding {
    /// The session in which a draft takes effect. Its context is the one that the draft would leave behind at the leaf of
    /// `state`. `first_newer`: the first entry of the context that came after the plan. None where a line is no entry,
    /// which is a defect.
    #[must_use]
    pub fn of(
        state: &State,
        draft: &Draft,
        first_newer: Option<&EntryId>,
        tokens_after: u64,
        stamps: &mut Stamps,
    ) -> Option<Self> {
        let path = state.path();
        let cut = draft.plan.first_kept();
        let kept = &path[cut..];
        let mut begun = Begun::default();
        begun.add_values(state, stamps)?;
        let texts = context::texts_of_pins(path, cut, path.pins());
        begun.add_pins(&texts, stamps)?;
        let pinned: Vec<EntryId> = begun.pinned_texts();
        begun.lead_to(kept.first(), state, stamps.stamp())?;
        begun.entries.extend(kept.iter().cloned());

        let stamp = stamps.stamp();
        let parent = begun.entries.last().map(|entry| entry.id.clone());
        let line = draft.line(&stamp, parent.as_ref(), path, first_newer, tokens_after, Spending::default());
        let mut line: Value = serde_json::from_str(&line).ok()?;
        let ours = &mut line["preserveData"]["abridged"];
        ours["compactions"] = 1.into();
        ours["beginsSession"] = true.into();
        // The pinned texts have entries of their own here.
        let pins = ours.get_mut("pins").and_then(Value::as_array_mut);
        let carried = pins.into_iter().flatten().filter(|pin| pin["text"].is_string());
        let moved = carried.filter(|pin| texts.iter().any(|(id, _)| pin["entryId"] == id.as_str()));
        moved.zip(&pinned).for_each(|(pin, id)| pin["entryId"] = json!(id));
        let compaction = Arc::new(Entry::parse(line.to_string().into()).ok()?);
        let path = Path::of(&begun.entries);
        let mirrors = mirroring::with_mirrors(&path, std::slice::from_ref(&compaction), &draft.plan.prompts, stamps);
        begun.entries.push(compaction.clone());
        begun.entries.extend(mirrors);

        let header = header(state, stamps);
        Some(Self { header, entries: begun.entries, carrier: compaction, saved: None, keeping: Keeping::like(state) })
    }

    /// The same with the messages that wait for a turn. `entry`: the entry with them for this session, after this entry.
    #[must_use]
    pub fn with_queue(mut self, entry: impl FnOnce(&SessionId, &EntryId) -> Option<Arc<Entry>>) -> Self {
        let last = self.entries.last().map(|last| last.id.clone());
        self.entries.extend(last.and_then(|last| entry(&self.header.id, &last)));
        self
    }

    /// The path of the session.
    #[must_use]
    pub fn path(&self) -> Path {
        Path::of(&self.entries)
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// The lines of the entries.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.line().to_owned()).collect()
    }
}

impl Keeping {
    /// The place of a session, for one that comes from it.
    #[must_use]
    pub fn like(state: &State) -> Self {
        if state.file.is_some() { Self::File } else { Self::Memory }
    }
}

/// The header of a session that comes from another one.
fn header(state: &State, stamps: &mut Stamps) -> Header {
    let parent = state.file.as_ref().map_or_else(|| state.id.to_string(), |file| file.display().to_string());
    let mut header = Header {
        kind: HeaderKind::Session,
        version: VERSION,
        id: stamps.session(),
        timestamp: entry::timestamp(stamps.now()),
        cwd: state.cwd().to_owned(),
        parent_session: Some(parent),
        title: None,
        rest: serde_json::Map::new(),
    };
    if state.beginning().trust == Trust::Untrusted {
        header.mark_foreign();
    }
    header
}

/// The title of a session that goes on from one with this title, so that a list tells them apart: a number at its end.
fn next_title(title: &str) -> String {
    let numbered = title.strip_suffix(')').and_then(|title| title.rsplit_once(" ("));
    let numbered = numbered.and_then(|(title, number)| Some((title, number.parse::<u32>().ok()?.checked_add(1)?)));
    let (title, number) = numbered.unwrap_or((title, 2));
    format!("{} ({number})", text::shortened(title.to_owned(), LONGEST_TITLE - 16))
}

/// The first entries of a session.
#[derive(Default)]
struct Begun {
    entries: Vec<Arc<Entry>>,
}

impl Begun {
    fn add(&mut self, kind: &str, stamp: Stamp, fields: &[(&str, Value)]) -> Option<()> {
        let parent = self.entries.last().map(|entry| entry.id.clone());
        self.entries.push(mirroring::entry_of(kind, &stamp, parent.as_ref(), fields)?);
        Some(())
    }

    /// The values of a session that messages do not have: model, thinking level, title, system prompt, tools, settings.
    fn add_values(&mut self, state: &State, stamps: &mut Stamps) -> Option<()> {
        if let Some(model) = state.model(state.path()) {
            self.add("model_change", stamps.stamp(), &model_fields(&model))?;
        }
        if let Some(level) = state.path().thinking_level() {
            self.add("thinking_level_change", stamps.stamp(), &[("thinkingLevel", level.into())])?;
        }
        if let Some(title) = state.title() {
            self.add("session_info", stamps.stamp(), &[("name", next_title(&title).into())])?;
        }
        if !state.data().is_empty() {
            let data = json!(state.data());
            self.add("custom", stamps.stamp(), &[("customType", "abridged.session".into()), ("data", data)])?;
        }
        Some(())
    }

    /// The pinned texts, as entries of their own.
    fn add_pins(&mut self, texts: &[(EntryId, String)], stamps: &mut Stamps) -> Option<()> {
        for (_, text) in texts {
            let fields =
                [("customType", PINNED_TEXT.into()), ("content", text.as_str().into()), ("display", true.into())];
            self.add("custom_message", stamps.stamp(), &fields)?;
        }
        Some(())
    }

    fn pinned_texts(&self) -> Vec<EntryId> {
        self.entries.iter().filter(|entry| entry.is_pinned_text()).map(|entry| entry.id.clone()).collect()
    }

    /// Adds a marker that names the session before. It has the id that the first kept entry names as its parent, so that
    /// the line of that one stays as it is.
    fn lead_to(&mut self, first_kept: Option<&Arc<Entry>>, state: &State, stamp: Stamp) -> Option<()> {
        let id = first_kept.and_then(|entry| entry.parent.clone()).unwrap_or(stamp.id);
        let data = json!({ "sessionId": state.id, "leafEntryId": state.visible_leaf() });
        let fields = [("customType", "abridged.parent".into()), ("data", data)];
        self.add("custom", Stamp { id, ..stamp }, &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_goes_on_has_a_title_of_its_own() {
        assert_eq!(next_title("Fix the login"), "Fix the login (2)");
        assert_eq!(next_title("Fix the login (2)"), "Fix the login (3)");
        assert_eq!(next_title("Fix (the login)"), "Fix (the login) (2)");
        assert!(next_title(&"x".repeat(LONGEST_TITLE)).len() <= LONGEST_TITLE);
    }
}
