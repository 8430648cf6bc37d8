//! The summary of a branch that is left: the entries that it is made of, and the texts around it.
//!
//! The entries are chosen in two passes. The first one collects the files of all entries, also of those that earlier
//! summaries list. The second one takes messages from the newest to the oldest, within a budget. Both passes depend on
//! nothing but their arguments.

#[cfg(test)]
mod tests;

use super::{files::FileLists, model::transcript::piece, span::Span};
use crate::{
    conversation::{
        entry::{Body, Entry},
        path::Path,
        tokens::Scale,
    },
    ids::EntryId,
    prompts::{Prompt, Prompts},
    redact::{Clean, Secrets},
    settings::FileTool,
};
use serde_json::json;
use std::{collections::HashSet, sync::Arc};

/// Share of the budget below which one more summary is taken, though it is larger than the rest of the budget.
const NEARLY_FULL: (u64, u64) = (9, 10);

/// Least room for a summary, in tokens. A smaller one says nothing.
const LEAST: u64 = 60;

/// The most tokens of a summary, without the texts around it. The next compaction has to read it, too.
const MOST: u64 = 4_096;

/// The size in tokens up to which a summary may be larger than a short branch. Its headings alone have a tenth of it.
const SMALL: u64 = 1_000;

/// The entries of a branch, chosen for its summary.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// All entries of the branch, oldest first. The summary of a compaction stands after it as a message.
    entries: Vec<Arc<Entry>>,
    /// The entries that are not summarized: the pinned ones, and those that the budget has no room for.
    without: HashSet<EntryId>,
    /// The files of all entries.
    pub files: FileLists,
    /// The texts of the pins that do not hold at the target, oldest first.
    pub pins: Vec<Clean>,
    /// The number of messages that the budget has no room for.
    pub left_out: usize,
}

/// A pin that does not hold at the target. Its entry may stand before the branch, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftPin {
    /// The entry.
    pub entry: EntryId,
    /// Its text.
    pub text: String,
}

impl LeftPin {
    /// The pins of the path `from` that do not hold on the path `there`, in the order of the path.
    #[must_use]
    pub fn between(from: &Path, there: &Path) -> Vec<Self> {
        let stays = there.pinned();
        let left = from.pins().iter().filter(|pin| !stays.contains(&pin.entry));
        let places = from.places();
        left.map(|pin| {
            let text = match places.entry(&pin.entry) {
                Some(entry) => entry.pinned_text(),
                None => pin.text.clone().unwrap_or_default(),
            };
            Self { entry: pin.entry.clone(), text }
        })
        .collect()
    }
}

/// The demands on a preparation.
pub struct Demand<'a> {
    /// The pins that do not hold at the target. Their entries are kept word for word and not summarized.
    pub pins: &'a [LeftPin],
    /// The room for the conversation in the summarizer's window, in tokens.
    pub budget: u64,
    /// The scale that messages are measured with.
    pub scale: Scale,
    /// Tools that precede the known ones.
    pub tools: &'a [FileTool],
    /// Whether the pins lose their secrets.
    pub secrets: Secrets,
    /// Redacts the path of a file.
    pub clean: &'a dyn Fn(&str) -> Clean,
    /// Whether the work is cancelled. It then ends early.
    pub stop: &'a dyn Fn() -> bool,
}

/// Whether a branch has something to summarize: a message, or the summary of earlier ones.
#[must_use]
pub fn has_content(left: &[Arc<Entry>]) -> bool {
    left.iter().rev().any(|entry| said(entry).is_some())
}

/// The text of an entry as a summarizer reads it, not cleaned. A compaction counts as a message with its summary.
fn said(entry: &Arc<Entry>) -> Option<String> {
    let as_message = summary_message(entry);
    piece(as_message.as_ref().unwrap_or(entry), &str::to_owned)
}

/// The summary of a compaction as a message of its own.
fn summary_message(entry: &Arc<Entry>) -> Option<Arc<Entry>> {
    let Body::Compaction(compaction) = &entry.body else { return None };
    let line = json!({
        "type": "message", "id": entry.id, "parentId": entry.id, "timestamp": entry.timestamp,
        "message": {"role": "compactionSummary", "summary": compaction.summary, "tokensBefore": 0, "timestamp": 0},
    });
    Entry::parse(line.to_string().into()).ok().map(Arc::new)
}

/// Whether an entry is a summary of earlier messages.
fn is_summary(entry: &Entry) -> bool {
    matches!(entry.body, Body::Compaction(_) | Body::BranchSummary(_))
}

impl Prepared {
    /// Chooses the entries for the summary of a branch. The newest message is always chosen.
    #[must_use]
    pub fn of(left: &[Arc<Entry>], demand: &Demand<'_>) -> Self {
        let files = FileLists::of(&Span::of(left), demand.tools, demand.clean);
        let pins = demand
            .pins
            .iter()
            .map(|pin| demand.secrets.clean(&pin.text))
            .filter(|text| !text.trim().is_empty())
            .collect();
        let mut without: HashSet<EntryId> = demand.pins.iter().map(|pin| pin.entry.clone()).collect();
        let (mut taken, mut is_full, mut left_out) = (0_u64, false, 0);
        for entry in left.iter().rev() {
            if without.contains(&entry.id) {
                continue;
            }
            if (demand.stop)() {
                break;
            }
            if is_full {
                left_out += usize::from(said(entry).is_some());
                without.insert(entry.id.clone());
                continue;
            }
            let Some(text) = said(entry) else { continue };
            let tokens = demand.scale.text(&text);
            let fits = taken.saturating_add(tokens) <= demand.budget;
            let (share, of) = NEARLY_FULL;
            let may_enter = is_summary(entry) && taken.saturating_mul(of) < demand.budget.saturating_mul(share);
            is_full = !fits;
            if fits || may_enter || taken == 0 {
                taken = taken.saturating_add(tokens);
            } else {
                left_out += 1;
                without.insert(entry.id.clone());
            }
        }
        let entries = left.iter().flat_map(|entry| [Some(entry.clone()), summary_message(entry)]).flatten().collect();
        Self { entries, without, files, pins, left_out }
    }

    /// The entries as the span of a summary.
    #[must_use]
    pub fn span(&self) -> Span<'_> {
        Span::of(&self.entries).without(&self.without)
    }

    /// The size that a summary has to stay below, in tokens. `replaced` is the size of the messages that it stands for.
    #[must_use]
    pub fn limit(replaced: u64) -> u64 {
        replaced.max(SMALL)
    }
}

/// The texts around the summary of a branch: the preamble before it, and the pinned texts and the lists of files after it.
#[derive(Debug, Clone)]
pub struct Frame {
    before: String,
    after: String,
    /// The room for the summary, in tokens.
    pub room: u64,
    all: u64,
    scale: Scale,
}

impl Frame {
    /// The frame for a context with `room` tokens left. None where they are not enough for a summary.
    #[must_use]
    pub fn of(prepared: &Prepared, prompts: &Prompts, room: u64, scale: Scale) -> Option<Self> {
        let measure = |text: &str| scale.text(text);
        let before = format!("{}\n\n", prompts.get(Prompt::BranchSummaryPreamble));
        let mut after = pinned_texts(&prepared.pins, room / 2, scale);
        if prepared.left_out > 0 {
            after.push_str(&format!(
                "\n\n(The {} oldest messages of the branch are not in this summary: the request had no room for them.)",
                prepared.left_out
            ));
        }
        let tags = prepared.files.tags_within((room / 8).min(MOST / 4), &measure);
        if !tags.is_empty() {
            after.push_str("\n\n");
            after.push_str(&tags);
        }
        // Two texts together are a few tokens more than each of them.
        let left = room.saturating_sub(measure(&before) + measure(&after) + 8);
        (left >= LEAST).then(|| Self { before, after, room: left.min(MOST), all: room, scale })
    }

    /// The room for the summary with the texts around it, in tokens.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.all
    }

    /// The whole text. None where it is too large.
    #[must_use]
    pub fn around(&self, summary: &Clean) -> Option<Clean> {
        let said = match summary.trim() {
            "" => self.before.trim_end().to_owned(),
            summary => format!("{}{summary}", self.before),
        };
        self.fitting(format!("{said}{}", self.after))
    }

    /// The text of a hook, with the pinned texts and the lists of files. None where it is too large.
    #[must_use]
    pub fn behind(&self, supplied: &Clean, prepared: &Prepared) -> Option<Clean> {
        let missing: Vec<Clean> = prepared.pins.iter().filter(|pin| !supplied.contains(&***pin)).cloned().collect();
        self.fitting(format!("{}{}", supplied.trim(), pinned_texts(&missing, self.all / 2, self.scale)))
    }

    fn fitting(&self, text: String) -> Option<Clean> {
        (self.scale.text(&text) <= self.all).then(|| Clean::assembled(text))
    }
}

/// The pinned texts after a summary, word for word: the newest ones that fit into `room` tokens, and the number of the
/// others. A pin holds on its branch alone, so its text goes along in the summary.
fn pinned_texts(pins: &[Clean], room: u64, scale: Scale) -> String {
    if pins.is_empty() {
        return String::new();
    }
    let mut taken = 0;
    let fits = |pin: &&Clean| {
        taken += scale.text(pin) + 2;
        taken <= room
    };
    let fitting = pins.iter().rev().take_while(fits).count();
    let mut text = "\n\n## Pinned\nThe user pinned this on the branch, word for word:".to_owned();
    for pin in &pins[pins.len() - fitting..] {
        text.push_str("\n\n");
        text.push_str(pin);
    }
    if fitting < pins.len() {
        let missing = pins.len() - fitting;
        text.push_str(&format!("\n\n({missing} older pinned texts have no room here and stand on the branch.)"));
    }
    text
}
