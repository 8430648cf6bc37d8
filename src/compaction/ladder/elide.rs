//! Texts of a draft that lose their middle.
//!
//! All entries of one step are cut to the same number of characters, the level, so the longest ones lose most and shorter ones
//! stay whole. Levels come from a fixed series. The largest one that fits is found by bisection, which reads the room of the
//! draft only in its comparisons: more room never leads to a lower level.

use super::is_pinned;
use crate::{
    compaction::{
        draft::{Draft, Shortened},
        plan::{self, Plan},
    },
    conversation::{
        context::{self, Context, ContextMessage},
        entry::{Body, ContextEdit, Entry, Replacement},
        message::{self, outline::Role},
        tokens::{Estimator, Scale},
    },
    ids::EntryId,
    text,
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Largest result that is no oversized one, in tokens: a tenth of the default tail.
const OVERSIZED: u64 = 2_000;

/// Characters that stay of an oversized result, beginning and end together: about half of that size.
const ELIDED_CHARS: usize = 4_000;

/// Least characters that stay of an entry that loses its middle.
const LEAST_CHARS: usize = 160;

/// Least part of a text that a cut saves: one in so many.
const LEAST_GAIN_PART: usize = 10;

/// Characters that are worth a cut however long the text is: several times the note in their place.
const CLEAR_GAIN: usize = 1_000;

/// Characters of a token of prose, at most.
const MOST_CHARS_OF_A_TOKEN: u64 = 8;

/// Part of a level by which the next one is larger: one in so many.
const STEPS_OF_A_LEVEL: usize = 256;

/// Longest line that is kept or left out as a whole, in characters: a screen of eighty columns has six such lines.
pub(super) const LONGEST_LINE: usize = 500;

/// An entry that may lose the middle of its text.
struct Long {
    id: EntryId,
    /// The text without a cut.
    text: String,
    /// Its length, in characters.
    chars: usize,
    /// Size of the message without the edits of the draft, in tokens.
    tokens: u64,
    /// Estimate of the message without its text, in tokens.
    beside: u64,
    /// The images that the draft shows.
    images: Vec<Value>,
    /// The edit that it has with all of its text.
    whole: Option<ContextEdit>,
}

impl Long {
    /// The text at a level; `None` where all of it stays, because it is short enough or a cut makes it hardly shorter.
    fn clipped(&self, level: usize) -> Option<String> {
        let (head, tail) = ends(&self.text, self.chars, level)?;
        let gap = format!(
            "[… the middle of these {} tokens was {} (session/entry of abridged returns it) …]",
            self.tokens,
            note(&self.id)
        );
        let clipped = format!("{}\n{gap}\n{tail}", head.strip_suffix('\n').unwrap_or(head));
        let gain = self.chars.saturating_sub(clipped.chars().count());
        (gain > gap.chars().count() && gain >= (self.chars / LEAST_GAIN_PART).min(CLEAR_GAIN)).then_some(clipped)
    }

    /// The edit at a level; `None` where the entry stays as it is.
    fn edit(&self, level: usize) -> Option<ContextEdit> {
        self.clipped(level).map_or_else(|| self.whole.clone(), |text| Some(edit(&self.id, text, &self.images)))
    }

    /// Estimate of the message at a level, in tokens.
    fn size(&self, level: usize, estimator: Estimator) -> u64 {
        self.beside + self.clipped(level).map_or_else(|| estimator.of_text(&self.text), |text| estimator.of_text(&text))
    }
}

/// The edit that leaves a text and images of an entry.
fn edit(entry: &EntryId, text: String, images: &[Value]) -> ContextEdit {
    let text = std::iter::once(json!({ "type": "text", "text": text }));
    let blocks: Vec<Value> = text.chain(images.iter().cloned()).collect();
    ContextEdit { target_id: entry.clone(), replacement: Some(Replacement { content: Value::from(blocks).into() }) }
}

/// The words by which a cut of an entry is recognized.
fn note(entry: &EntryId) -> String {
    format!("left out to save room; entry {entry} has all of it")
}

/// Beginning and end of a text of `length` characters that has more than `most`: up to two thirds and a third of them. Lines
/// stay whole. Only a long line is cut inside, and the first and the last one where they alone are too long for their part.
/// `None` for a text that is short enough.
pub(super) fn ends(text: &str, length: usize, most: usize) -> Option<(&str, &str)> {
    if length <= most {
        return None;
    }
    let back = most / 3;
    Some((head(text, most - back), tail(text, back)))
}

/// The longest beginning of a text within so many characters.
fn head(text: &str, most: usize) -> &str {
    let part = text::head(text, most);
    let ends_a_line = part.ends_with('\n') || text[part.len()..].starts_with(['\n', '\r']);
    let start = memchr::memrchr(b'\n', part.as_bytes()).map_or(0, |at| at + 1);
    if start == 0 || ends_a_line || is_long(&text[start..]) { part } else { &part[..start] }
}

/// The longest end of a text within so many characters.
fn tail(text: &str, most: usize) -> &str {
    let part = text::tail(text, most);
    let before = &text[..text.len() - part.len()];
    let Some(end) = memchr::memchr(b'\n', part.as_bytes()) else { return part };
    let begins_a_line = before.is_empty() || before.ends_with('\n');
    let start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |at| at + 1);
    let is_last = end + 1 == part.len();
    if is_last || begins_a_line || is_long(&text[start..]) { part } else { &part[end + 1..] }
}

/// Whether the first line of a text is a long one.
fn is_long(text: &str) -> bool {
    text.chars().take_while(|char| *char != '\n').nth(LONGEST_LINE).is_some()
}

/// The kept entries of a draft, and the edits of the path that apply to them.
struct Kept<'a> {
    draft: &'a Draft,
    entries: HashMap<&'a EntryId, &'a Arc<Entry>>,
    replaced: HashMap<&'a EntryId, &'a Replacement>,
    /// The edits of the draft.
    edits: HashMap<&'a EntryId, &'a ContextEdit>,
}

impl<'a> Kept<'a> {
    fn of(draft: &'a Draft) -> Self {
        let entries = draft.plan.kept().iter().map(|entry| (&entry.id, entry)).collect();
        let mut replaced = HashMap::new();
        for entry in draft.plan.path().iter() {
            if let Body::ContextEdit(edit) = &entry.body {
                match &edit.replacement {
                    Some(replacement) => replaced.insert(&edit.target_id, replacement),
                    None => replaced.remove(&edit.target_id),
                };
            }
        }
        let edits = draft.edits.iter().map(|edit| (&edit.target_id, edit)).collect();
        Self { draft, entries, replaced, edits }
    }

    /// An entry as it stands in a context without the edits of the draft. An edit on the path stands for the content that it
    /// replaces, which may be gone for a reason.
    fn on_path(&self, entry: &Arc<Entry>) -> Option<ContextMessage> {
        match self.replaced.get(&entry.id) {
            Some(replacement) => context::edited(entry, replacement),
            None => context::unedited(entry, &self.draft.plan.prompts),
        }
    }

    /// A message of the draft as an entry that may lose its middle. One that lost it before is cut anew: its text is that of
    /// the path. A message of images alone has no other text than the notices about them.
    fn long(&self, id: EntryId, message: &ContextMessage) -> Option<Long> {
        let (entry, scale) = (self.entries.get(&id)?, self.draft.plan.demand.scale);
        let whole = self.on_path(entry)?;
        let image_bytes = message.outline().image_bytes;
        let images = if image_bytes > 0 { images(message) } else { Vec::new() };
        let (shown, words) = (message.message().text(), whole.message().text());
        let cut_before = shown.contains(&note(&id)) && !words.trim().is_empty();
        let tokens = size(&whole, scale);
        let (text, whole) = if cut_before {
            let lost_images = image_bytes < whole.outline().image_bytes;
            let whole = lost_images.then(|| edit(&id, words.clone(), &images));
            (words, whole)
        } else {
            (shown, self.edits.get(&id).map(|edit| (*edit).clone()))
        };
        let without = Replacement { content: Value::from(images.clone()).into() };
        let beside = context::edited(entry, &without)?.tokens(scale.estimator());
        let chars = text.chars().count();
        Some(Long { id, text, chars, tokens, beside: u64::from(beside), images, whole })
    }
}

/// Size of a message, in tokens.
fn size(message: &ContextMessage, scale: Scale) -> u64 {
    scale.size(u64::from(message.tokens(scale.estimator())))
}

/// The images of a message.
fn images(message: &ContextMessage) -> Vec<Value> {
    let mut value = message::value(&message.json()).unwrap_or_default();
    let blocks = value["content"].as_array_mut().map(std::mem::take).unwrap_or_default();
    blocks.into_iter().filter(|block| block["type"] == "image").collect()
}

/// The messages in the context of a draft that are entries and not pinned, as they stand there, and that are `wanted`.
fn shown(
    draft: &Draft,
    context: &Context,
    wanted: impl Fn(&EntryId, &ContextMessage) -> bool,
) -> Vec<(EntryId, ContextMessage)> {
    let of = |message: &ContextMessage| {
        let entry = message.entry_shown().filter(|entry| !is_pinned(draft, entry) && wanted(entry, message))?;
        Some((entry.clone(), message.clone()))
    };
    context.messages().iter().filter_map(of).collect()
}

fn is_result(message: &ContextMessage) -> bool {
    message.outline().role == Role::ToolResult
}

/// Entries of a draft that are cut to one level.
struct Cutting<'a> {
    draft: &'a Draft,
    longs: Vec<Long>,
    /// Estimate of the context without these entries, in tokens.
    rest: u64,
}

impl<'a> Cutting<'a> {
    /// The entries of these messages of the draft's context.
    fn of(draft: &'a Draft, context: &Context, messages: Vec<(EntryId, ContextMessage)>) -> Self {
        let (kept, estimator) = (Kept::of(draft), draft.plan.demand.scale.estimator());
        let (mut longs, mut sizes) = (Vec::new(), 0);
        for (id, message) in messages {
            if let Some(long) = kept.long(id, &message).filter(|long| long.chars > LEAST_CHARS) {
                sizes += u64::from(message.tokens(estimator));
                longs.push(long);
            }
        }
        let rest = context.tokens(estimator).saturating_sub(sizes);
        Self { draft, longs, rest }
    }

    /// The draft with these entries at a level.
    fn at(&self, level: usize) -> Draft {
        let ids: HashSet<&EntryId> = self.longs.iter().map(|long| &long.id).collect();
        let mut edits = self.draft.edits.clone();
        edits.retain(|edit| !ids.contains(&edit.target_id));
        edits.extend(self.longs.iter().filter_map(|long| long.edit(level)));
        self.draft.clone().with_edits(edits)
    }

    /// Whether the context with these entries at a level has at most `limit` tokens.
    fn fits(&self, level: usize, limit: u64) -> bool {
        let Plan { demand, .. } = &self.draft.plan;
        let room = limit.saturating_sub(demand.budget.overhead() + demand.scale.size(self.rest));
        // Texts that are far too long are not counted.
        let chars: u64 = self.longs.iter().map(|long| long.chars.min(level) as u64).sum();
        if chars > room.saturating_mul(MOST_CHARS_OF_A_TOKEN) {
            return false;
        }
        let sizes: u64 = self.longs.iter().map(|long| long.size(level, demand.scale.estimator())).sum();
        demand.budget.overhead() + demand.scale.size(self.rest + sizes) <= limit
    }

    /// The largest level at which the context has at most `limit` tokens, or the least one.
    fn level(&self, limit: u64) -> usize {
        let longest = self.longs.iter().map(|long| long.chars).max().unwrap_or_default();
        let next = |level: &usize| Some(level + (level / STEPS_OF_A_LEVEL).max(1)).filter(|_| *level < longest);
        let levels: Vec<usize> = std::iter::successors(Some(LEAST_CHARS), next).collect();
        levels[levels.partition_point(|level| self.fits(*level, limit)).saturating_sub(1)]
    }
}

/// The draft without the middle of its oversized results.
pub(super) fn without_oversized(draft: &Draft) -> Draft {
    let estimator = draft.plan.demand.scale.estimator();
    let oversized = |message: &ContextMessage| u64::from(message.tokens(estimator)) > OVERSIZED;
    let context = draft.context();
    let results = shown(draft, &context, |_, message| is_result(message) && oversized(message));
    Cutting::of(draft, &context, results).at(ELIDED_CHARS)
}

/// The draft whose results, and whose other entries that no model has read, are cut as little as `limit` tokens allow. Where
/// nothing fits, little of them stays.
pub(super) fn cut_to(draft: &Draft, limit: u64) -> Draft {
    let unread = plan::unread_ids(draft.plan.kept());
    let context = draft.context();
    let messages = shown(draft, &context, |entry, message| is_result(message) || unread.contains(entry));
    let cutting = Cutting::of(draft, &context, messages);
    cutting.at(cutting.level(limit))
}

/// The draft in which entries that it cuts before a model has read them have as much of their texts as `limit` tokens allow.
/// A cut of the previous compaction, `carried`, stays as it is.
pub(super) fn restored(draft: Draft, carried: &[ContextEdit], limit: u64) -> Draft {
    let cut = cut_unread(&draft, carried);
    let context = draft.context();
    let messages =
        shown(&draft, &context, |id, message| cut.contains(id) && message.message().text().contains(&note(id)));
    let cutting = Cutting::of(&draft, &context, messages);
    let more = cutting.at(cutting.level(limit));
    let is_more = (draft.tokens_after + 1..=limit).contains(&more.tokens_after);
    if is_more { more } else { draft }
}

/// The entries that a draft cuts or summarizes before a model has read them. Those whose cut is `carried` from the previous
/// compaction are none of them.
pub(super) fn shortened(draft: &Draft, carried: &[ContextEdit]) -> Vec<Shortened> {
    let (cut, summarized) = (cut_unread(draft, carried), draft.plan.summarized_unread());
    if cut.is_empty() && summarized.is_empty() {
        return Vec::new();
    }
    let (kept, scale) = (Kept::of(draft), draft.plan.demand.scale);
    // Also one whose cut is as large by the estimate is named.
    let of = |entry: &Arc<Entry>, after| {
        let before = size(&kept.on_path(entry)?, scale);
        Some(Shortened { entry: entry.id.clone(), before, after })
    };
    let is_cut = |message: &ContextMessage| {
        let entry = message.entry_shown().filter(|entry| cut.contains(entry))?;
        of(kept.entries.get(entry)?, size(message, scale))
    };
    let summarized = summarized.into_iter().filter_map(|entry| of(entry, 0));
    summarized.chain(draft.context().messages().iter().filter_map(is_cut)).collect()
}

fn cut_unread<'a>(draft: &'a Draft, carried: &[ContextEdit]) -> HashSet<&'a EntryId> {
    let unread = plan::unread_ids(draft.plan.kept());
    let carried: HashMap<&EntryId, &ContextEdit> = carried.iter().map(|edit| (&edit.target_id, edit)).collect();
    let is_new = |edit: &&ContextEdit| carried.get(&edit.target_id) != Some(edit);
    let edits = draft.edits.iter().filter(|edit| unread.contains(&edit.target_id)).filter(is_new);
    edits.map(|edit| &edit.target_id).collect()
}
