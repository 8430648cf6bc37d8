//! The size of the context after each entry of a session, on all of its branches. A size is the newest believed report of the
//! provider and an estimate of the entries after it, as in a running session, with one difference: a report is compared with
//! its own request alone, and not with the reports after it.

use crate::{
    compaction::meter,
    conversation::{
        entry::{Body, Compaction, ContextEdit, Entry},
        evidence::{self, Estimate, Report},
        tokens::{Estimator, Scale},
    },
    ids::EntryId,
};
use std::collections::HashMap;

/// The sizes after the entries that were read so far, by the number of an entry's place.
#[derive(Default)]
pub(super) struct Sizes {
    standings: Vec<Standing>,
    /// By the number of an edited entry: the number of each edit, and the tokens that it leaves. Each branch has its own edits.
    edits: HashMap<usize, Vec<(usize, Estimate)>>,
}

/// An entry, and the context after it.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    parent: Option<usize>,
    /// The first entry of the longest run of entries up to this one in which each follows the line before it.
    run: usize,
    /// The entry by itself.
    own: Estimate,
    /// Whether it is a part of the conversation.
    is_said: bool,
    context: Context,
}

/// The context after an entry.
#[derive(Debug, Clone, Copy, Default)]
struct Context {
    /// The messages from the root, as if none of them was rewritten.
    all: Estimate,
    /// The entries of the conversation from the root.
    entries: u32,
    /// The messages of the context.
    sent: Estimate,
    /// The entries of the conversation that are before the context.
    left: u32,
    /// Reported tokens beside those of `sent`: instructions, and the error of the estimate.
    beside: i64,
    /// Whether a report is a part of the size.
    is_reported: bool,
}

/// The effect of an entry on the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// The size before the entry, in tokens.
    pub before: u64,
    /// The size after it, in tokens.
    pub after: u64,
    /// Whether a report of the provider is a part of the size after it.
    pub is_reported: bool,
    /// Whether the entry has a report that is not believed.
    pub is_doubted: bool,
    /// Whether the entry is a part of the conversation.
    pub is_said: bool,
    /// The entries of the conversation that a compaction summarizes.
    pub covered: u32,
    /// The entries of the conversation that a compaction keeps.
    pub kept: u32,
}

impl Context {
    fn size(&self) -> u64 {
        scaled(self.sent.all).saturating_add_signed(self.beside)
    }

    /// The context with other messages. Without a report of it, the tokens beside its messages shrink with them.
    fn rewritten(self, sent: Estimate) -> Self {
        let share = if self.sent.all == 0 { 0.0 } else { (sent.all as f64 / self.sent.all as f64).min(1.0) };
        Self { sent, beside: (self.beside as f64 * share).round() as i64, ..self }
    }

    /// The context with a size that the file states.
    fn measured(self, tokens: u64) -> Self {
        Self { beside: tokens.cast_signed().saturating_sub(scaled(self.sent.all).cast_signed()), ..self }
    }
}

fn scaled(estimated: u64) -> u64 {
    Scale::expected(Estimator::Chars, None).size(estimated)
}

fn plus(one: Estimate, other: Estimate) -> Estimate {
    Estimate { all: one.all.saturating_add(other.all), solid: one.solid.saturating_add(other.solid) }
}

impl Sizes {
    /// Adds the next entry of the file. `parent`: the number of the entry that it follows. `find` gives the number of the
    /// entry with an id.
    pub(super) fn add(
        &mut self,
        entry: &Entry,
        parent: Option<usize>,
        find: impl Fn(&EntryId) -> Option<usize>,
    ) -> Change {
        let number = self.standings.len();
        let find = |id: &EntryId| find(id).filter(|found| *found < number);
        let before = self.context(parent);
        let own = Estimate::default().with(entry.outline(), meter::sent(entry, Estimator::Chars));
        let is_said = entry.is_conversation();
        let entries = before.entries + u32::from(is_said);
        let mut after = Context { all: plus(before.all, own), entries, sent: plus(before.sent, own), ..before };
        let mut is_doubted = false;
        let (mut covered, mut kept) = (0, 0);
        match &entry.body {
            Body::Message(_) => match reported(entry, before.sent, own.all) {
                Some(Some(tokens)) => after = Context { is_reported: true, ..after.measured(tokens) },
                report => is_doubted = report.is_some(),
            },
            Body::Compaction(compaction) => {
                after = self.compacted(compaction, parent, &find);
                (covered, kept) = (after.left.saturating_sub(before.left), after.entries - after.left);
            }
            Body::ResetBoundary(_) => {
                after = Context { left: before.entries, is_reported: false, ..after.rewritten(Estimate::default()) };
            }
            Body::ContextEdit(edit) => after.sent = self.edited(edit, parent, &find),
            Body::Custom(_) => {
                let undone = entry.undoes().and_then(|id| find(&id));
                if let Some(undone) = undone.filter(|undone| self.is_on_path(*undone, parent)) {
                    after = self.undone(undone, before);
                }
            }
            _ => {}
        }
        let follows = parent.is_some() && parent == number.checked_sub(1);
        let run = parent.filter(|_| follows).map_or(number, |parent| self.standings[parent].run);
        self.standings.push(Standing { parent, run, own, is_said, context: after });
        let (before, is_reported) = (before.size(), after.is_reported);
        Change { before, after: after.size(), is_reported, is_doubted, is_said, covered, kept }
    }

    fn context(&self, number: Option<usize>) -> Context {
        number.and_then(|number| self.standings.get(number)).map(|standing| standing.context).unwrap_or_default()
    }

    /// Whether an entry is on the path to another one.
    fn is_on_path(&self, entry: usize, to: Option<usize>) -> bool {
        let mut here = to;
        while let Some(number) = here.filter(|number| *number >= entry) {
            let run = self.standings[number].run;
            if run <= entry {
                return true;
            }
            here = self.standings[run].parent;
        }
        false
    }

    /// The context after a compaction that follows `parent`.
    fn compacted(
        &self,
        compaction: &Compaction,
        parent: Option<usize>,
        find: &impl Fn(&EntryId) -> Option<usize>,
    ) -> Context {
        let before = self.context(parent);
        let kept = compaction.first_kept_entry_id.as_ref().and_then(find);
        // An entry that is not on the path keeps nothing.
        let kept = kept.filter(|kept| self.is_on_path(*kept, parent)).map(|kept| self.standings[kept]);
        let rest = kept.map(|kept| plus(before.all.without(kept.context.all), kept.own)).unwrap_or_default();
        let left = kept.map_or(before.entries, |kept| kept.context.entries - u32::from(kept.is_said));
        let summary = Estimator::Chars.of_text(&compaction.summary);
        let sent = plus(rest, Estimate { all: summary, solid: summary });
        let left = left.max(before.left);
        let after = Context { left, is_reported: false, ..before.rewritten(sent) };
        compaction.measured().map_or(after, |(tokens, _)| after.measured(tokens))
    }

    /// The messages of a context after an edit, which follows `parent`, of one of them.
    fn edited(
        &mut self,
        edit: &ContextEdit,
        parent: Option<usize>,
        find: &impl Fn(&EntryId) -> Option<usize>,
    ) -> Estimate {
        let of = self.context(parent);
        let target = find(&edit.target_id).filter(|target| self.is_on_path(*target, parent));
        let Some(target) = target else { return of.sent };
        let Standing { own, context, .. } = self.standings[target];
        if context.entries <= of.left {
            return of.sent;
        }
        let content = edit.replacement.as_ref().map(|replacement| replacement.content.read().to_string());
        let tokens = content.map_or(0, |content| Estimator::Chars.of_text(&content));
        let replacement = Estimate { all: tokens, solid: tokens };
        let before = self.edits.get(&target).into_iter().flatten().rev();
        let was = before.clone().find(|(edit, _)| self.is_on_path(*edit, parent)).map_or(own, |(_, tokens)| *tokens);
        self.edits.entry(target).or_default().push((self.standings.len(), replacement));
        plus(of.sent.without(was), replacement)
    }

    /// The context after the undo of a compaction: that before it, with the entries since.
    fn undone(&self, undone: usize, now: Context) -> Context {
        let Standing { parent, context, .. } = self.standings[undone];
        let before = self.context(parent);
        let sent = plus(before.sent, now.all.without(context.all));
        Context { sent, left: before.left, beside: before.beside, is_reported: false, ..now }
    }
}

/// The size after an answer by the report in it: `None` where it has no report, `Some(None)` where that is not believed.
fn reported(entry: &Entry, before: Estimate, answer: u64) -> Option<Option<u64>> {
    /// Tokens of instructions that nobody announced, at most.
    const UNANNOUNCED: u64 = 200_000;
    /// The most tokens for an estimated one: dense text has about three.
    const DENSEST: u64 = 6;
    let usage = entry.outline()?.measured()?;
    let prompt = Report::of(&usage)?.prompt;
    let is_believed =
        !evidence::is_too_small(prompt, before.solid) && prompt <= before.all.saturating_mul(DENSEST) + UNANNOUNCED;
    Some(is_believed.then(|| prompt.saturating_add(evidence::answer(usage.output, answer))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A message of 400 characters: 100 estimated tokens, and a size of 135.
    fn message(id: &str, parent: Option<&str>) -> Value {
        let content = [id, &"x".repeat(400 - id.len())].concat();
        json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "user", "content": content}})
    }

    fn answer(id: &str, parent: &str, usage: &Value) -> Value {
        let message = json!({"role": "assistant", "content": "x".repeat(400), "usage": usage});
        json!({"type": "message", "id": id, "parentId": parent, "message": message})
    }

    fn changes(lines: &[Value]) -> Vec<Change> {
        let entries: Vec<Entry> =
            lines.iter().map(|line| Entry::parse(line.to_string().into()).expect("an entry")).collect();
        let find = |id: &EntryId| entries.iter().position(|entry| entry.id == *id);
        let mut sizes = Sizes::default();
        entries.iter().map(|entry| sizes.add(entry, entry.parent.as_ref().and_then(find), find)).collect()
    }

    fn sizes(lines: &[Value]) -> Vec<u64> {
        changes(lines).iter().map(|change| change.after).collect()
    }

    #[test]
    fn a_size_is_that_of_the_path_of_its_entry() {
        let lines = [message("a", None), message("b", Some("a")), message("c", Some("a")), message("d", Some("b"))];
        assert_eq!(sizes(&lines), [135, 270, 270, 405]);
    }

    #[test]
    fn a_believed_report_is_the_size_and_another_one_is_not() {
        let long = json!({"type": "message", "id": "a", "parentId": null, "message": {"role": "user", "content": "x".repeat(40_000)}});
        let believed =
            [long.clone(), answer("b", "a", &json!({"input": 12_000, "output": 100})), message("c", Some("b"))];
        let [_, report, later] = changes(&believed)[..] else { panic!("three changes") };
        assert_eq!((report.after, report.is_reported, report.is_doubted), (12_100, true, false));
        assert_eq!((later.after, later.is_reported), (12_235, true), "an estimate is added to the report");
        for input in [40, 19_999_999] {
            let doubted = [long.clone(), answer("b", "a", &json!({"input": input, "output": 100}))];
            let report = changes(&doubted)[1];
            assert_eq!((report.after, report.is_reported, report.is_doubted), (13_635, false, true), "{input}");
        }
    }

    #[test]
    fn a_compaction_leaves_its_summary_and_the_kept_entries() {
        let compaction = |kept: &str| {
            json!({"type": "compaction", "id": "s", "parentId": "d", "summary": "x".repeat(40), "firstKeptEntryId": kept,
                "tokensBefore": 9})
        };
        let of = |kept: &str| {
            let path = [message("a", None), message("b", Some("a")), message("c", Some("b")), message("d", Some("c"))];
            let aside = message("aside", Some("a"));
            let lines = [&path[..3], &[aside], &path[3..], &[compaction(kept), message("e", Some("s"))]].concat();
            let changes = changes(&lines);
            let (made, later) = (changes[5], changes[6]);
            assert_eq!((made.before, later.after - made.after), (540, 135), "{kept}");
            (made.after, made.covered, made.kept)
        };
        assert_eq!(of("c"), (284, 2, 2));
        assert_eq!(of("a"), (554, 0, 4));
        for nowhere in ["s", "aside", "missing"] {
            assert_eq!(of(nowhere), (14, 4, 0), "{nowhere}");
        }
    }

    #[test]
    fn a_second_compaction_covers_what_the_first_one_kept() {
        let compaction = |id: &str, parent: &str, kept: &str| json!({"type": "compaction", "id": id, "parentId": parent, "summary": "s", "firstKeptEntryId": kept, "tokensBefore": 9});
        let lines = [
            message("a", None),
            message("b", Some("a")),
            compaction("s", "b", "b"),
            message("c", Some("s")),
            message("d", Some("c")),
            compaction("t", "d", "d"),
        ];
        let last = changes(&lines)[5];
        assert_eq!((last.covered, last.kept), (2, 1));
    }

    #[test]
    fn the_tokens_beside_the_messages_shrink_with_them() {
        let mut lines = vec![json!({"type": "message", "id": "a", "parentId": null,
            "message": {"role": "user", "content": "x".repeat(40_000)}})];
        lines.push(answer("b", "a", &json!({"input": 20_000, "output": 100})));
        lines.push(json!({"type": "compaction", "id": "s", "parentId": "b", "summary": "x".repeat(400),
            "firstKeptEntryId": "none", "tokensBefore": 9}));
        let compacted = changes(&lines)[2];
        assert!((135..400).contains(&compacted.after), "{compacted:?}");
        assert!(!compacted.is_reported);
    }

    #[test]
    fn a_size_that_this_program_counted_is_taken_from_the_file() {
        let compaction = json!({"type": "compaction", "id": "s", "parentId": "a", "summary": "s", "firstKeptEntryId": "a",
            "tokensBefore": 9, "tokensAfter": 777, "preserveData": {"abridged": {"entryId": "s", "overhead": 10}}});
        assert_eq!(sizes(&[message("a", None), compaction, message("b", Some("s"))]), [135, 777, 912]);
    }

    #[test]
    fn a_reset_an_edit_and_an_undo_change_the_size() {
        let reset = json!({"type": "reset_boundary", "id": "r", "parentId": "a"});
        assert_eq!(sizes(&[message("a", None), reset, message("b", Some("r"))]), [135, 0, 135]);
        let edit = |id: &str, parent: &str, content: &Value| json!({"type": "context_edit", "id": id, "parentId": parent, "targetId": "a", "replacement": content});
        let short = json!({"content": "12345678901234567890123456789012345678"});
        let lines = [message("a", None), edit("e", "a", &short), edit("f", "e", &Value::Null)];
        assert_eq!(sizes(&lines), [135, 14, 0], "the second edit replaces the first one");
        let compaction = json!({"type": "compaction", "id": "s", "parentId": "b", "summary": "s", "firstKeptEntryId": "b", "tokensBefore": 9});
        let undo = json!({"type": "custom", "id": "u", "parentId": "c", "customType": "abridged.undo",
            "data": {"compactionEntryId": "s"}});
        let lines = [message("a", None), message("b", Some("a")), compaction, message("c", Some("s")), undo];
        assert_eq!(sizes(&lines)[4], 405, "all three messages are in the context");
        let branches = [message("a", None), edit("e", "a", &short), edit("f", "a", &Value::Null)];
        assert_eq!(sizes(&branches), [135, 14, 0], "an edit of another branch changes nothing here");
        let beside = [message("b", None), message("a", None), edit("e", "b", &Value::Null)];
        assert_eq!(sizes(&beside)[2], 135, "an entry that is not on the path cannot make it smaller");
        let gone = edit("e", "s", &Value::Null);
        let lines = [&lines[..3], &[gone]].concat();
        assert_eq!(sizes(&lines)[3], sizes(&lines)[2], "an entry before the context cannot make it smaller");
    }
}
