//! `session/prune`: old tool results give way to one line each.

use crate::{
    compaction::{
        images, plan,
        prune::{
            self, Pruned, Rules, Standing,
            cache::Cache,
            pays::{self, Facts, Judged, MOST_REQUESTS, Postponed, SUMMARY},
        },
    },
    conversation::{
        context,
        entry::{ContextEdit, Entry, Stamps},
        message::outline::Role,
    },
    ids::EntryId,
    models::prices,
    protocol::{
        SessionPrune,
        errors::Failure,
        events::Event,
        types::{PruneAnswer, PruneParams},
    },
    session::{
        core::edit::{EditMethod, NotStaged, Staged},
        state::State,
    },
    settings::PruneSettings,
};
use jiff::Timestamp;
use serde_json::json;
use std::collections::HashSet;

impl EditMethod for SessionPrune {
    fn stage(state: &State, params: &PruneParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let settings = &state.settings().settings.prune;
        let settings = PruneSettings {
            protect_tokens: params.protect_tokens.unwrap_or(settings.protect_tokens),
            minimum_savings: params.minimum_savings.unwrap_or(settings.minimum_savings),
            ..settings.clone()
        };
        let pruned = pruned(state, &settings, Share::All);
        if params.dry_run == Some(true) {
            let about = pruned.edits.into_iter().map(|edit| edit.target_id).collect();
            return Ok(Staged { about, tokens_saved: pruned.tokens_saved, ..Staged::default() });
        }
        let judged = judged(state, &pruned, stamps.now());
        let why = format!("session/prune was called; {}", described(&pruned, &judged));
        Ok(Staged { why, ..staged(state, pruned, stamps)? })
    }

    fn answer(_: &State, staged: &Staged) -> Result<PruneAnswer, Failure> {
        Ok(PruneAnswer { entry_ids: staged.about.clone(), tokens_saved: staged.tokens_saved })
    }

    fn event(_: &State, staged: &Staged) -> Option<Event> {
        Some(event(staged, &staged.why))
    }

    fn rewrites_context(params: &PruneParams) -> bool {
        params.dry_run != Some(true)
    }
}

/// Which results of the kept part leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::core) enum Share {
    /// The reads that newer reads stand for.
    Superseded,
    /// These, and the results before the newest ones.
    All,
}

/// The results in the kept part that may be cut, with the saving.
pub(in crate::session::core) fn pruned(state: &State, settings: &PruneSettings, share: Share) -> Pruned {
    let path = state.path();
    let (edited, kept) = (context::edited_entries(path), &path[path.first_kept()..]);
    let (unread, pinned) = (plan::unread_ids(kept), path.pinned());
    let standing = |entry: &Entry| match () {
        () if edited.contains(&entry.id) => Standing::Edited,
        () if pinned.contains(&entry.id) => Standing::Pinned,
        () if unread.contains(&entry.id) => Standing::Unread,
        () => Standing::Free,
    };
    let rules = Rules { settings, tools: &state.settings().settings.tools.files };
    let prune = match share {
        Share::Superseded => prune::prune_superseded,
        Share::All => prune::prune,
    };
    prune(kept, rules, state.estimator(), &standing)
}

/// A pruning and its judgement as a part of a sentence.
pub(in crate::session::core) fn described(pruned: &Pruned, judged: &Judged) -> String {
    match pruned.superseded {
        0 => judged.to_string(),
        reads => format!("superseded reads of files: {reads}; {judged}"),
    }
}

/// Judges a pruning of the context as it is.
pub(in crate::session::core) fn judged(state: &State, pruned: &Pruned, now: Timestamp) -> Judged {
    let (path, settings, fullness) = (state.path(), &state.settings().settings, state.measure());
    let model = state.model(path);
    let size = |tokens: u64| fullness.scale.size(tokens);
    let saved = size(pruned.tokens_saved);
    let budget = fullness.budget.attainable().unwrap_or(fullness.budget);
    let keep = fullness.compaction.keep_recent_tokens.min(fullness.messages);
    let written = keep + SUMMARY.min(fullness.budget.summary_cap());
    let room = |context: u64| budget.threshold.saturating_sub(context);
    // A context that was below its threshold has as much more room as it is smaller.
    let gained = room(fullness.context_tokens.saturating_sub(saved)).min(saved);
    let compacted = room(budget.overhead() + budget.pins + written).max(1);
    let answers = path[path.first_kept()..].iter().filter(|entry| entry.is_from(Role::Assistant)).count() as u64;
    let growth = (fullness.messages / answers.max(1)).max(1);
    pays::judge(Facts {
        saved,
        behind: size(behind(state, pruned)),
        cache: Cache::of(path, model.as_ref(), now, settings.prune.cache_seconds),
        rates: prices::rates(settings, model.as_ref()),
        requests: (gained / growth).clamp(1, MOST_REQUESTS),
        postponed: Postponed {
            read: fullness.messages - keep,
            answered: written - keep,
            written,
            share: (gained as f64 / compacted as f64).min(1.0),
        },
    })
}

/// The tokens of the context after the first edit of a pruning that stay.
fn behind(state: &State, pruned: &Pruned) -> u64 {
    let context = context::build(state.path(), &state.settings().prompts);
    let edited: HashSet<&EntryId> = pruned.edits.iter().map(|edit| &edit.target_id).collect();
    let is_edited = |id: &EntryId| edited.contains(id);
    let from = context.messages().iter().skip_while(|message| !message.entry_shown().is_some_and(is_edited));
    let tokens: u64 = from.map(|message| u64::from(message.tokens(state.estimator()))).sum();
    tokens.saturating_sub(pruned.tokens_saved)
}

/// The entries that bring the images of the context within their budget. None where no image can leave.
pub(in crate::session::core) fn without_old_images(state: &State, stamps: &mut Stamps) -> Option<Staged> {
    let (path, fullness) = (state.path(), state.measure());
    let context = context::build(path, &state.settings().prompts);
    let pinned = path.pinned();
    let may = |entry: &EntryId| !pinned.contains(entry);
    let edits = images::within(&context, images::TARGET, &may);
    if edits.is_empty() {
        return None;
    }
    let staged = staged(state, Pruned { edits, ..Pruned::default() }, stamps).ok()?;
    let mut after = path.clone();
    staged.entries.iter().for_each(|entry| after.push(entry.clone()));
    let left = context::build(&after, &state.settings().prompts).tokens(state.estimator());
    let saved = context.tokens(state.estimator()).saturating_sub(left);
    let why = format!("the images had {} bytes, over the budget of {}", fullness.image_bytes, images::BUDGET);
    Some(Staged { tokens_saved: saved, why, ..staged })
}

/// The entries of a pruning.
///
/// # Errors
/// When the fields make no entry, which is a defect.
pub(in crate::session::core) fn staged(state: &State, pruned: Pruned, stamps: &mut Stamps) -> Result<Staged, Failure> {
    let mut staged = Staged { tokens_saved: pruned.tokens_saved, ..Staged::default() };
    for ContextEdit { target_id, replacement } in pruned.edits {
        let fields = [("targetId", json!(target_id)), ("replacement", json!(replacement))];
        staged.add(state, stamps, "context_edit", &fields)?;
        staged.about.push(target_id);
    }
    Ok(staged)
}

/// The event of a pruning.
pub(in crate::session::core) fn event(staged: &Staged, why: &str) -> Event {
    Event::Pruned { entry_ids: staged.about.clone(), tokens_saved: staged.tokens_saved, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::core::held::{Held, answer, events, line, log_work};

    /// Lines of messages, each after the one before.
    fn lines(messages: &[serde_json::Value]) -> Vec<String> {
        let parent = |at: usize| at.checked_sub(1).map(|before| format!("e{before}"));
        let line = |(at, message): (usize, &serde_json::Value)| {
            line(&format!("e{at}"), parent(at).as_deref(), "message", json!({ "message": message }))
        };
        messages.iter().enumerate().map(line).collect()
    }

    fn image(bytes: usize) -> serde_json::Value {
        let content = json!([{"type": "image", "data": "A".repeat(bytes), "mimeType": "image/png"}]);
        json!({"role": "user", "content": content, "timestamp": 1})
    }

    /// The images that leave, with the saving.
    fn leaving(lines: &[String]) -> Option<(Vec<String>, u64)> {
        let mut held = Held::of(lines, u64::MAX);
        let staged = without_old_images(&held.core.base.state, &mut held.core.base.stamps)?;
        Some((staged.about.iter().map(ToString::to_string).collect(), staged.tokens_saved))
    }

    #[test]
    fn only_a_dry_run_is_possible_during_a_compaction() {
        let mut held = Held::new();
        held.begin_draft(1);
        held.edit::<SessionPrune>(2, json!({"dryRun": true}));
        assert!(answer(&held.turn(), 2).is_some_and(|answer| answer.is_object()));
        held.edit::<SessionPrune>(3, json!({}));
        assert_eq!(answer(&held.turn(), 3), Some(json!("busy")));
    }

    #[test]
    fn a_pruning_without_results_is_no_event() {
        let mut held = Held::new();
        held.edit::<SessionPrune>(1, json!({}));
        let effects = held.turn();
        assert!(answer(&effects, 1).is_some_and(|answer| answer.is_object()));
        assert!(events(&effects).next().is_none() && log_work(effects).is_none());
    }

    #[test]
    fn the_oldest_images_leave_until_one_more_fits_and_pinned_ones_stay() {
        let four = [2_000_000, 5_000_000, 4_500_000, 4_000_000].map(image);
        let (left, saved) = leaving(&lines(&four)).expect("some leave");
        assert_eq!(left, ["e0", "e1"]);
        assert!(saved > 0);
        let mut pinned = lines(&four);
        let pin = json!({"customType": "abridged.pin", "data": {"entryId": "e0"}});
        pinned.push(line("p", Some("e3"), "custom", pin));
        assert_eq!(leaving(&pinned).expect("some leave").0, ["e1"]);
        assert_eq!(leaving(&lines(&four[..2])), None);
    }
}
