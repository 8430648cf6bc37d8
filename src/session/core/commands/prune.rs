//! `session/prune`: old tool results give way to one line each.

use crate::{
    compaction::{
        images,
        prune::{self, Pruned},
    },
    conversation::{
        context,
        entry::{ContextEdit, Entry, Stamps},
    },
    ids::EntryId,
    protocol::{
        SessionPrune,
        errors::Failure,
        events::Event,
        types::{PruneAnswer, PruneParams},
    },
    session::{
        core::{
            Core,
            edit::{EditMethod, NotStaged, Staged},
        },
        state::State,
    },
    settings::PruneSettings,
};
use serde_json::json;

impl EditMethod for SessionPrune {
    fn stage(state: &State, params: &PruneParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let settings = &state.settings().settings.prune;
        let settings = PruneSettings {
            protect_tokens: params.protect_tokens.unwrap_or(settings.protect_tokens),
            minimum_savings: params.minimum_savings.unwrap_or(settings.minimum_savings),
            ..settings.clone()
        };
        let pruned = pruned(state, &settings);
        if params.dry_run == Some(true) {
            let about = pruned.edits.into_iter().map(|edit| edit.target_id).collect();
            return Ok(Staged { about, tokens_saved: pruned.tokens_saved, ..Staged::default() });
        }
        Ok(staged(state, pruned, stamps)?)
    }

    fn answer(_: &Core, staged: &Staged) -> Result<PruneAnswer, Failure> {
        Ok(PruneAnswer { entry_ids: staged.about.clone(), tokens_saved: staged.tokens_saved })
    }

    fn event(_: &State, staged: &Staged) -> Option<Event> {
        Some(event(staged, "session/prune was called"))
    }

    fn rewrites_context(params: &PruneParams) -> bool {
        params.dry_run != Some(true)
    }
}

/// The results in the kept part that may be cut, with the saving.
pub(in crate::session::core) fn pruned(state: &State, settings: &PruneSettings) -> Pruned {
    let path = state.path();
    let pins = path.pins();
    let edited = |entry: &Entry| context::is_edited(path, &entry.id);
    let may = |entry: &Entry| !edited(entry) && pins.iter().all(|pin| pin.entry != entry.id);
    prune::prune(&path[path.first_kept()..], settings, state.estimator(), &may)
}

/// The entries that bring the images of the context within their budget. None where no image can leave.
pub(in crate::session::core) fn without_old_images(state: &State, stamps: &mut Stamps) -> Option<Staged> {
    let (path, fullness) = (state.path(), state.measure());
    let context = context::build(path, &state.settings().prompts);
    let may = |entry: &EntryId| path.pins().iter().all(|pin| pin.entry != *entry);
    let edits = images::within(&context, images::TARGET, &may);
    if edits.is_empty() {
        return None;
    }
    let staged = staged(state, Pruned { edits, tokens_saved: 0 }, stamps).ok()?;
    let after = staged.entries.iter().fold(path.clone(), |path, entry| path.with(entry.clone()));
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

    /// Lines of messages, each behind the one before.
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
        let staged = without_old_images(&held.core.state, &mut held.core.stamps)?;
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
