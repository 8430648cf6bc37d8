//! The path: the conversation from where its context begins to its leaf.
//!
//! A session file is a tree and may be a gigabyte; a context needs the end of one branch of it. `gather` walks from the
//! leaf towards the root and stops where nothing older can matter, so the cost of opening is that distance. What a
//! context needs from before it, the compaction in force carries.

mod chosen;
mod gather;
mod pins;
mod places;

pub use chosen::Chosen;
pub use gather::gather;
pub use places::Places;

use chosen::{answered, chosen};
use pins::Pins;

use crate::{
    conversation::{
        batch::Batch,
        entry::{Attempts, Body, CarriedAgent, CarriedModel, CarriedPin, Entry, Preserved},
        message::{outline::Role, system::SystemPrompt},
    },
    ids::{EntryId, ModelRef},
};
use serde_json::Value;
use std::{
    collections::HashSet,
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The entries of a path, oldest first. Each is the parent of the next.
#[derive(Debug, Clone, Default)]
pub struct Path {
    entries: Vec<Arc<Entry>>,
    revision: Revision,
    /// Derived from the entries when it is first asked for. The other marks need it.
    foundation: OnceLock<Option<Foundation>>,
    /// Derived too; kept up to date while the path only grows.
    marks: OnceLock<Marks>,
    /// Whether other programs lacked lines when somebody asked first.
    lacks_lines: OnceLock<bool>,
    /// There is more of it before the first entry, in the file.
    cut: bool,
    /// Size of the entries' lines.
    bytes: u64,
    /// The state found before the first entry, where the compaction in force is another program's and carries none.
    before: Option<Arc<Preserved>>,
}

/// Names a state of a path: two paths with the same revision differ by plain entries at their ends, if at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision(u64);

impl Default for Revision {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The entry that a context begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foundation {
    /// The compaction in force, at this place.
    Compaction(usize),
    /// The last reset, at this place. No compaction after it is in force.
    Reset(usize),
}

/// Places on a path that every measurement needs.
#[derive(Debug, Clone)]
struct Marks {
    first_kept: usize,
    last_rewrite: Option<usize>,
    model: Chosen,
    pins: Vec<Pin>,
    undone: bool,
    batch: Batch,
}

/// A pin in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The pins.
    pub entry: EntryId,
    /// Its text, where a compaction or the pin itself brought it along.
    pub text: Option<String>,
}

impl Deref for Path {
    type Target = [Arc<Entry>];

    fn deref(&self) -> &[Arc<Entry>] {
        &self.entries
    }
}

impl Path {
    /// The path to the last of these entries, each after the nearest earlier one that it names as its parent, or else
    /// after the one before it.
    #[must_use]
    pub fn of(entries: &[Arc<Entry>]) -> Self {
        let mut rest = entries;
        let gathered = gather::<std::convert::Infallible>(|child| {
            let place = match child.map(|child| &child.parent) {
                Some(None) => None,
                Some(Some(parent)) => {
                    let named = rest.iter().rposition(|entry| entry.id == *parent);
                    named.or_else(|| rest.len().checked_sub(1))
                }
                None => rest.len().checked_sub(1),
            };
            let found = place.map(|place| rest[place].clone());
            rest = &rest[..place.unwrap_or_default()];
            Ok(found)
        });
        match gathered {
            Ok(path) => path,
            Err(never) => match never {},
        }
    }

    /// Whether the entry simply goes on where the path ends.
    #[must_use]
    pub fn continues_with(&self, entry: &Entry) -> bool {
        entry.parent.as_ref() == self.last().map(|leaf| &leaf.id) && entry.undoes().is_none()
    }

    /// Whether these entries continue the path, each after the one before.
    #[must_use]
    pub fn continues_with_all(&self, entries: &[Arc<Entry>]) -> bool {
        let mut leaf = self.last().map(|leaf| &leaf.id);
        entries.iter().all(|entry| {
            let continues = entry.parent.as_ref() == leaf && entry.undoes().is_none();
            leaf = Some(&entry.id);
            continues
        })
    }

    /// Goes on with an entry.
    pub fn push(&mut self, entry: Arc<Entry>) {
        self.bytes += entry.line().len() as u64;
        if !entry.is_plain() {
            self.forget_marks();
        } else if let Some(marks) = self.marks.get_mut() {
            marks.model.take(&entry);
            marks.batch.push(&entry);
        }
        self.entries.push(entry);
    }

    /// The state of the path. It stays the same while only plain entries are pushed.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    fn forget_marks(&mut self) {
        self.revision = Revision::default();
        self.foundation = OnceLock::new();
        self.marks = OnceLock::new();
        self.lacks_lines = OnceLock::new();
    }

    /// Whether other programs lacked lines for it, which `look` finds out once for each rewrite.
    pub(super) fn lacks_lines(&self, look: impl FnOnce() -> bool) -> bool {
        *self.lacks_lines.get_or_init(look)
    }

    fn marks(&self) -> &Marks {
        self.marks.get_or_init(|| Marks {
            first_kept: self.find_first_kept(),
            last_rewrite: self.entries.iter().rposition(|entry| entry.rewrites()),
            model: self.find_model(),
            pins: self.find_pins(),
            undone: self.find_undone(),
            batch: Batch::at_end_of(&self.entries),
        })
    }

    /// The path as it would be with one more entry after its leaf.
    #[must_use]
    pub fn with(&self, entry: Arc<Entry>) -> Self {
        let mut path = self.clone();
        path.push(entry);
        path
    }

    /// The path up to an entry, where nothing of it has to be looked up: it has everything up to its root, or the
    /// compaction in force there is in it with all it keeps.
    #[must_use]
    pub fn up_to(&self, id: &EntryId) -> Option<Self> {
        let place = self.position(id)?;
        let mut path = Self { cut: self.cut, before: self.before.clone(), ..Self::default() };
        self.entries[..=place].iter().for_each(|entry| path.push(entry.clone()));
        (!path.cut || path.foundation() == self.foundation()).then_some(path)
    }

    /// Lets go of what stands before the context, where the compaction or the reset that it begins with carries what is
    /// needed of it.
    pub fn trim(&mut self) {
        let carries = self.foundation().and_then(|place| self[place].preserved());
        let first = self.beginning();
        if carries.is_some() && first > 0 {
            let gone = self.entries.drain(..first);
            self.bytes -= gone.map(|entry| entry.line().len() as u64).sum::<u64>();
            self.cut = true;
            self.before = None;
            self.forget_marks();
        }
    }

    /// Size of its entries' lines, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The same path, before whose first entry more of it was not read.
    #[must_use]
    pub fn begins_later(mut self) -> Self {
        self.cut = true;
        self.forget_marks();
        self
    }

    /// Whether there is more of it in the file.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether what stands before it has to be looked up: there is more, and the entry that the context begins with says
    /// nothing of it.
    #[must_use]
    pub fn lacks_its_past(&self) -> bool {
        self.cut && self.before.is_none() && self.carried_in().is_none()
    }

    /// Takes what was found before it.
    pub fn learn_its_past(&mut self, past: Preserved) {
        self.before = Some(Arc::new(past));
        self.forget_marks();
    }

    /// Takes what was found before another path, if this one begins where that one does.
    pub fn learn_its_past_from(&mut self, other: &Self) {
        let begins = |path: &Self| path.first().map(|entry| entry.id.clone());
        if self.lacks_its_past() && begins(self) == begins(other) {
            self.before.clone_from(&other.before);
            self.forget_marks();
        }
    }

    /// The state carried by the entry that the context begins with, and the place of the first entry that adds to it.
    fn carried_in(&self) -> Option<(usize, &Preserved)> {
        let place = self.foundation()?;
        Some((place + 1, self[place].preserved()?))
    }

    /// Everything known from before, and where the entries begin that add to it.
    fn past(&self) -> (usize, Option<&Preserved>) {
        match self.carried_in() {
            Some((from, past)) => (from, Some(past)),
            None => (0, self.before.as_deref()),
        }
    }

    /// Whether this path is where `earlier` has grown to: nothing of it changed, only more came.
    #[must_use]
    pub fn grew_from(&self, earlier: &Self) -> bool {
        self.entries.len() >= earlier.entries.len()
            && earlier.entries.iter().zip(&self.entries).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The leaf as clients see it: the last entry that is no marker of ours. A path that consists of nothing else says
    /// what stood before it, as far as that is known.
    #[must_use]
    pub fn visible_leaf(&self) -> Option<&EntryId> {
        let shown = self.entries.iter().rev().find(|entry| !entry.is_marker());
        shown.map(|entry| &entry.id).or_else(|| self.entries.first()?.parent.as_ref())
    }

    /// The place of an entry on the path.
    #[must_use]
    pub fn position(&self, id: &EntryId) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.id == *id)
    }

    /// The places of entries on the path, for many of them.
    #[must_use]
    pub fn places(&self) -> Places<'_> {
        Places::of(self)
    }

    /// The place of the compaction that is in force: the latest one that was not undone, unless everything up to a
    /// later point was cleared.
    #[must_use]
    pub fn compaction(&self) -> Option<usize> {
        match self.found_on() {
            Some(Foundation::Compaction(place)) => Some(place),
            Some(Foundation::Reset(_)) | None => None,
        }
    }

    /// The place of the last reset, where no compaction after it is in force.
    #[must_use]
    pub fn reset(&self) -> Option<usize> {
        match self.found_on() {
            Some(Foundation::Reset(place)) => Some(place),
            Some(Foundation::Compaction(_)) | None => None,
        }
    }

    /// The place of the entry that the context begins with: the compaction in force, or the last reset.
    #[must_use]
    pub fn foundation(&self) -> Option<usize> {
        self.found_on().map(|foundation| match foundation {
            Foundation::Compaction(place) | Foundation::Reset(place) => place,
        })
    }

    fn found_on(&self) -> Option<Foundation> {
        *self.foundation.get_or_init(|| self.find_foundation())
    }

    fn find_foundation(&self) -> Option<Foundation> {
        let mut undone: HashSet<EntryId> = HashSet::new();
        for (place, entry) in self.entries.iter().enumerate().rev() {
            match &entry.body {
                Body::ResetBoundary(_) => return Some(Foundation::Reset(place)),
                Body::Compaction(_) if !undone.contains(&entry.id) => return Some(Foundation::Compaction(place)),
                _ => undone.extend(entry.undoes()),
            }
        }
        None
    }

    /// The place of the first entry that is sent as it is: the first kept one of the compaction in force, or the first
    /// after a cleared point. With a compaction that keeps nothing, its own place.
    #[must_use]
    pub fn first_kept(&self) -> usize {
        self.marks().first_kept
    }

    /// The place of the first entry that the path has for certain when it is read from its file: the first kept one, or
    /// the cleared point before it. A path that grew in memory may have earlier entries.
    #[must_use]
    pub fn beginning(&self) -> usize {
        match self.compaction() {
            Some(_) => self.first_kept(),
            None => self.first_kept().saturating_sub(1),
        }
    }

    fn find_first_kept(&self) -> usize {
        match self.compaction() {
            None => self.cleared(self.entries.len()),
            Some(place) => {
                let Some(compaction) = self.entries[place].compaction() else { return place };
                let kept = match (&compaction.first_kept_entry_id, compaction.keep_last_messages) {
                    (Some(id), _) => self.entries[..place].iter().rposition(|entry| entry.id == *id),
                    (None, Some(count)) => self.last_messages(place, count),
                    (None, None) => None,
                };
                kept.map_or(place, |kept| kept.max(self.cleared(place)))
            }
        }
    }

    /// The place after the last point before `until` where everything was cleared.
    fn cleared(&self, until: usize) -> usize {
        let boundary = self.entries[..until].iter().rposition(|entry| matches!(entry.body, Body::ResetBoundary(_)));
        boundary.map_or(0, |place| place + 1)
    }

    /// The place where the turn of the `count`-th message before `place` starts, but not past an earlier compaction.
    fn last_messages(&self, place: usize, count: u64) -> Option<usize> {
        let earlier = self.entries[..place].iter().rposition(|entry| entry.compaction().is_some());
        let since = earlier.map_or(0, |earlier| earlier + 1);
        let messages = (since..place).rev().filter(|&at| self.entries[at].outline().is_some());
        let first = messages.take(usize::try_from(count).unwrap_or(usize::MAX)).last()?;
        let start = (since..=first).rev().find(|&at| self.entries[at].starts_turn());
        Some(start.unwrap_or(since))
    }

    /// The place of the last entry that changed what was sent before it: a compaction (undone or not), an edit, a pin,
    /// an undo, a cleared point. Usage reported before it says nothing about the context now.
    #[must_use]
    pub fn last_rewrite(&self) -> Option<usize> {
        self.marks().last_rewrite
    }

    /// Whether a compaction was undone since the latest one and the last reset.
    #[must_use]
    pub fn has_undo(&self) -> bool {
        self.marks().undone
    }

    /// The tool calls at its end.
    #[must_use]
    pub fn batch(&self) -> &Batch {
        &self.marks().batch
    }

    fn find_undone(&self) -> bool {
        let since = self.compaction().map_or(0, |place| place + 1);
        let is_reset = |entry: &Entry| matches!(entry.body, Body::ResetBoundary(_));
        let mut newer = self.entries[since..].iter().rev().take_while(|entry| !is_reset(entry));
        newer.any(|entry| entry.undoes().is_some())
    }

    /// The number of compactions on the whole path after the last reset, undone ones included.
    #[must_use]
    pub fn compactions(&self) -> u64 {
        let ((from, past), cleared) = (self.past(), self.cleared(self.entries.len()));
        let here = self.entries[from.max(cleared)..].iter().filter(|entry| entry.compaction().is_some()).count() as u64;
        past.filter(|_| cleared <= from).map_or(0, |past| past.compactions) + here
    }

    /// The pins in force, in the order of the path: first those of entries that are not in memory any more, as a
    /// compaction carries them or a later pin says where it belongs among them.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        &self.marks().pins
    }

    /// The entries of the pins in force.
    #[must_use]
    pub fn pinned(&self) -> HashSet<&EntryId> {
        self.pins().iter().map(|pin| &pin.entry).collect()
    }

    fn find_pins(&self) -> Vec<Pin> {
        let cleared = self.cleared(self.entries.len());
        let (from, past) = self.past();
        // A reset of this program carries the pins over it. Those from before another program's reset are gone.
        let past = match cleared <= from {
            true => past,
            false => self.entries[cleared - 1].preserved(),
        };
        let mut pins = Pins::default();
        past.into_iter().flat_map(|past| &past.pins).for_each(|pin| pins.add(pin.into(), None));
        for entry in &self.entries[from.max(cleared)..] {
            let target = |data: &Value| Some(EntryId::from(data.get("entryId")?.as_str()?));
            if let Some(id) = entry.ours("unpin").as_ref().and_then(target) {
                pins.remove(&id);
            } else if let Some(data) = entry.ours("pin") {
                let Some(id) = target(&data) else { continue };
                let text = |key: &str| data.get(key).and_then(Value::as_str);
                if !pins.has(&id) {
                    pins.add(Pin { entry: id, text: text("text").map(str::to_owned) }, text("before"));
                }
            } else if entry.is_pinned_text() {
                pins.add(Pin { entry: entry.id.clone(), text: None }, None);
            }
        }
        let (mut pins, places) = (pins.in_order(), self.places());
        // Nothing, where it is not in memory, comes before any place.
        pins.sort_by_cached_key(|pin| places.of_entry(&pin.entry));
        pins
    }

    /// The newest user message that the compaction in force left behind, as far as that was carried or found.
    #[must_use]
    pub fn newest_user_message_before(&self) -> Option<&crate::conversation::entry::CarriedMessage> {
        self.past().1?.newest_user_message.as_ref()
    }

    /// The same, or the newest of the messages that stand in front of the summary.
    #[must_use]
    pub fn newest_carried_message(&self) -> Option<&crate::conversation::entry::CarriedMessage> {
        let past = self.past().1?;
        past.newest_user_message.as_ref().or(past.user_messages.last())
    }

    /// Value from the newest entry that sets it, else the preserved one.
    fn newest<T>(
        &self,
        here: impl FnMut(&Arc<Entry>) -> Option<T>,
        before: impl FnOnce(&Preserved) -> Option<T>,
    ) -> Option<T> {
        let (from, past) = self.past();
        let mut here = here;
        self.entries[from..]
            .iter()
            .rev()
            .find_map(&mut here)
            .or_else(|| past.and_then(before))
            .or_else(|| self.entries[..from].iter().rev().find_map(here))
    }

    /// The session's name; empty where it was taken away.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        let name = |entry: &Arc<Entry>| match &entry.body {
            Body::SessionInfo { name } => Some(name.clone()),
            _ => None,
        };
        self.newest(name, |past| past.title.clone())
    }

    /// System prompt, tools and settings, as they were stored last.
    #[must_use]
    pub fn session_data(&self) -> Option<Value> {
        self.newest(|entry| entry.ours("session"), |past| past.session.clone())
    }

    /// The data of the newest `abridged.after_turn` entry: a compaction that waits for the end of the turn, or the end of its
    /// wait. A compaction that leaves such an entry behind has it again behind it.
    #[must_use]
    pub fn after_turn(&self) -> Option<Value> {
        self.entries.iter().rev().find_map(|entry| entry.ours("after_turn"))
    }

    /// The newest `abridged.queue` entry with its place: the messages that wait for a turn. A compaction that covers such an entry has
    /// it again after it.
    #[must_use]
    pub fn queue(&self) -> Option<(usize, Value)> {
        let place = self.entries.iter().rposition(|entry| entry.is_ours("queue"))?;
        Some((place, self.entries[place].ours("queue")?))
    }

    /// The model of the newest answer that names one.
    #[must_use]
    pub fn answered_by(&self) -> Option<ModelRef> {
        self.iter().rev().find_map(|entry| entry.outline()?.model.clone())
    }

    /// The model that was chosen last, or else the one that answered last. An answer of another model than the chosen one may be
    /// late, or of a request beside the conversation, so it chooses nothing.
    #[must_use]
    pub fn model(&self) -> Option<ModelRef> {
        self.marks().model.model.clone()
    }

    /// Whether that model was chosen, and not only an answer names it.
    #[must_use]
    pub fn model_is_chosen(&self) -> bool {
        self.marks().model.is_chosen
    }

    fn find_model(&self) -> Chosen {
        let chosen = self.newest(
            |entry| chosen(entry),
            |past| past.model.as_ref().filter(|it| it.chosen).map(|it| it.model.clone()),
        );
        match chosen {
            Some(model) => Chosen { model: Some(model), is_chosen: true },
            None => Chosen {
                model: self.newest(|entry| answered(entry), |past| past.model.as_ref().map(|it| it.model.clone())),
                is_chosen: false,
            },
        }
    }

    /// System prompt and tools as the system messages of the path declare them: those after the compaction in force, on top
    /// of what it carries.
    #[must_use]
    pub fn system_prompt(&self) -> SystemPrompt {
        let mut prompt = SystemPrompt::default();
        let carried = self.foundation().and_then(|place| self[place].carried_system_message());
        if let Some(message) = carried {
            prompt.apply(message);
        }
        let since = self.compaction().map_or_else(|| self.first_kept(), |place| place + 1);
        for entry in self[since..].iter().filter(|entry| entry.is_from(Role::System)) {
            if let Some(message) = entry.message_json().and_then(|json| serde_json::from_str(json).ok()) {
                prompt.apply(&message);
            }
        }
        prompt
    }

    /// The path up to a place, that one included.
    #[must_use]
    pub fn through(&self, place: usize) -> Self {
        let mut path = Self { cut: self.cut, before: self.before.clone(), ..Self::default() };
        self.entries[..=place].iter().for_each(|entry| path.push(entry.clone()));
        path
    }

    /// The thinking level.
    #[must_use]
    pub fn thinking_level(&self) -> Option<String> {
        let level = |entry: &Arc<Entry>| match &entry.body {
            Body::ThinkingLevel(level) => Some(level.clone()),
            _ => None,
        };
        self.newest(level, |past| past.thinking_level.clone())
    }
}

impl Preserved {
    /// The settings of a path beside its messages, for readers that do not see the path.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let carried = |pin: Pin| CarriedPin { entry_id: pin.entry, text: pin.text };
        Self {
            newest_user_message: None,
            user_messages: Vec::new(),
            edits: Vec::new(),
            title: path.title(),
            session: path.session_data(),
            pins: path.pins().iter().cloned().map(carried).collect(),
            model: path.model().map(|model| CarriedModel { model, chosen: path.model_is_chosen() }),
            thinking_level: path.thinking_level(),
            compactions: path.compactions(),
            undone: None,
            begins_session: false,
            reset: None,
            overhead: None,
            estimator: None,
            calibrations: Vec::new(),
            attempts: Attempts::default(),
            summary_times: Vec::new(),
            agent: CarriedAgent::default(),
            summary: Default::default(),
            spent: None,
        }
    }
}

impl From<&CarriedPin> for Pin {
    fn from(pin: &CarriedPin) -> Self {
        Self { entry: pin.entry_id.clone(), text: pin.text.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entries(lines: &[Value]) -> Vec<Arc<Entry>> {
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))).collect()
    }

    fn line(id: &str, parent: &str) -> Value {
        json!({"type": "label", "id": id, "parentId": parent, "targetId": "x"})
    }

    fn user(id: &str, parent: &str) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "user", "content": id}})
    }

    fn compaction(id: &str, parent: &str, first: &str) -> Value {
        json!({"type": "compaction", "id": id, "parentId": parent, "summary": "s", "firstKeptEntryId": first})
    }

    fn undo(id: &str, parent: &str, which: &str) -> Value {
        json!({"type": "custom", "customType": "abridged.undo", "id": id, "parentId": parent, "data": {"compactionEntryId": which}})
    }

    fn ids(path: &Path) -> String {
        path.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_last_line_is_the_leaf_and_branches_are_left_aside() {
        let path = Path::of(&entries(&[line("a", ""), line("b", "a"), line("c", "b"), line("d", "a")]));
        assert_eq!(ids(&path), "a d");
        assert!(!path.is_cut());
    }

    #[test]
    fn cycles_same_ids_and_missing_parents_are_harmless() {
        let path = Path::of(&entries(&[line("a", "b"), line("b", "a"), line("a", "b"), line("a", "a")]));
        assert_eq!(ids(&path), "a b a a");
    }

    #[test]
    fn it_reaches_back_to_the_first_kept_entry_and_no_further() {
        let mut lines = vec![user("a", ""), user("b", "a"), user("c", "b"), compaction("d", "c", "c"), user("e", "d")];
        let path = Path::of(&entries(&lines));
        assert_eq!((ids(&path).as_str(), path.is_cut(), path.first_kept()), ("c d e", true, 0));
        lines.extend([compaction("f", "e", "f"), user("g", "f")]);
        let path = Path::of(&entries(&lines));
        assert_eq!((ids(&path).as_str(), path.first_kept()), ("f g", 0));
        lines.push(undo("h", "g", "f"));
        assert_eq!(ids(&Path::of(&entries(&lines))), "c d e f g h");
        lines.push(undo("i", "h", "d"));
        let path = Path::of(&entries(&lines));
        assert_eq!((ids(&path).as_str(), path.is_cut()), ("a b c d e f g h i", false));
    }

    #[test]
    fn a_count_of_messages_keeps_whole_turns_and_stops_at_the_compaction_before() {
        let answer = |id: &str, parent: &str| json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "assistant", "content": id}});
        let counted = |id: &str, parent: &str, count: u64| json!({"type": "compaction", "id": id, "parentId": parent, "summary": "s", "keepLastMessages": count});
        let kept = |lines: &[Value]| {
            let path = Path::of(&entries(lines));
            let place = path.compaction().expect("a compaction");
            path[path.first_kept()..place].iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>().join(" ")
        };
        let mut lines = vec![user("u1", ""), answer("a1", "u1"), user("u2", "a1"), answer("a2", "u2")];
        lines.push(counted("c1", "a2", 1));
        assert_eq!(kept(&lines), "u2 a2");
        // The first message after c1 is an answer: its turn starts before c1.
        lines.extend([answer("a3", "c1"), user("u4", "a3"), answer("a4", "u4"), answer("a5", "a4")]);
        for (count, expected) in [(0, ""), (1, "u4 a4 a5"), (3, "u4 a4 a5"), (4, "a3 u4 a4 a5"), (9, "a3 u4 a4 a5")] {
            let lines = [lines.clone(), vec![counted("c2", "a5", count)]].concat();
            assert_eq!(kept(&lines), expected, "{count}");
        }
    }

    #[test]
    fn a_first_kept_entry_that_is_nowhere_costs_the_way_to_the_root_and_keeps_nothing() {
        let path = Path::of(&entries(&[user("a", ""), compaction("b", "a", "nowhere"), user("c", "b")]));
        assert_eq!((ids(&path).as_str(), path.first_kept()), ("a b c", 1));
    }

    #[test]
    fn pins_from_before_a_cleared_point_do_not_come_back() {
        let boundary = |parent: &str| json!({"type": "reset_boundary", "id": "r", "parentId": parent});
        let carried = json!({"abridged": {"entryId": "c", "pins": [{"entryId": "old", "text": "kept"}]}});
        let mut compacted = compaction("c", "a", "c");
        compacted["preserveData"] = carried.clone();
        let pinned = |lines: &[Value]| Path::of(&entries(lines)).pins().len();
        assert_eq!(pinned(&[user("a", ""), compacted.clone(), user("b", "c")]), 1);
        assert_eq!(pinned(&[user("a", ""), compacted, boundary("c"), user("b", "r")]), 0);
        // The same where the index finds them before the first entry in memory.
        let past = || serde_json::from_value::<Preserved>(carried["abridged"].clone()).expect("preserved data");
        let mut cleared = Path::of(&entries(&[boundary("x"), user("b", "r")]));
        cleared.learn_its_past(past());
        assert_eq!(cleared.pins().len(), 0);
        let mut whole = Path::of(&entries(&[user("a", "x"), compaction("c", "a", "c"), user("b", "c")]));
        whole.learn_its_past(past());
        assert_eq!(whole.pins().len(), 1);
    }

    #[test]
    fn marks_of_a_path_that_grew_are_those_of_the_same_path_read_at_once() {
        let pin = |id: &str, parent: &str| json!({"type": "custom", "customType": "abridged.pin", "id": id, "parentId": parent, "data": {"entryId": "b"}});
        let calls = |id: &str, parent: &str, calls: &[&str]| {
            let calls: Vec<Value> =
                calls.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}})).collect();
            json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "assistant", "content": calls}})
        };
        let result = |id: &str, parent: &str, call: &str| json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "toolResult", "toolCallId": call, "content": []}});
        let model = |id: &str, parent: &str| json!({"type": "model_change", "id": id, "parentId": parent, "provider": "p", "modelId": id});
        let lines = [
            user("a", ""),
            user("b", "a"),
            pin("p", "b"),
            user("c", "p"),
            compaction("d", "c", "b"),
            model("m", "d"),
            user("e", "m"),
            undo("u", "e", "d"),
            user("f", "u"),
            compaction("g", "f", "f"),
            model("n", "g"),
            calls("h", "n", &["x", "y"]),
            result("i", "h", "y"),
            model("o", "i"),
            result("j", "o", "z"),
            result("k", "j", "x"),
            calls("l", "k", &["x"]),
            user("q", "l"),
            result("r", "q", "x"),
        ];
        let marks = |path: &Path| {
            let places = (path.compaction(), path.first_kept(), path.last_rewrite(), path.has_undo());
            (places, path.model(), path.pins().to_vec(), path.batch().clone())
        };
        let all = entries(&lines);
        let mut grown = Path::default();
        for (at, entry) in all.iter().enumerate() {
            grown.push(entry.clone());
            let mut fresh = Path::default();
            all[..=at].iter().for_each(|entry| fresh.push(entry.clone()));
            assert_eq!(marks(&grown), marks(&fresh), "{at}");
        }
    }
}
