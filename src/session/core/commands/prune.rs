//! `session/prune`: old tool results give way to one line each.

use crate::{
    compaction::prune,
    conversation::{
        context,
        entry::{ContextEdit, Entry, Stamps},
    },
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
        let path = state.path();
        let settings = &state.settings().settings.prune;
        let settings = PruneSettings {
            protect_tokens: params.protect_tokens.unwrap_or(settings.protect_tokens),
            minimum_savings: params.minimum_savings.unwrap_or(settings.minimum_savings),
            ..settings.clone()
        };
        let kept = &path[path.first_kept()..];
        let pins = path.pins();
        let edited = |entry: &Entry| context::is_edited(path, &entry.id);
        let may = |entry: &Entry| !edited(entry) && pins.iter().all(|pin| pin.entry != entry.id);
        let pruned = prune::prune(kept, &settings, state.estimator(), &may);
        let mut staged = Staged { tokens_saved: pruned.tokens_saved, ..Staged::default() };
        for ContextEdit { target_id, replacement } in pruned.edits {
            if params.dry_run != Some(true) {
                let fields = [("targetId", json!(target_id)), ("replacement", json!(replacement))];
                staged.add(state, stamps, "context_edit", &fields)?;
            }
            staged.about.push(target_id);
        }
        Ok(staged)
    }

    fn answer(_: &Core, staged: &Staged) -> Result<PruneAnswer, Failure> {
        Ok(PruneAnswer { entry_ids: staged.about.clone(), tokens_saved: staged.tokens_saved })
    }

    fn event(_: &State, staged: &Staged) -> Option<Event> {
        Some(Event::Pruned {
            entry_ids: staged.about.clone(),
            tokens_saved: staged.tokens_saved,
            why: "session/prune was called".to_owned(),
        })
    }

    fn rewrites_context(params: &PruneParams) -> bool {
        params.dry_run != Some(true)
    }
}
