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
