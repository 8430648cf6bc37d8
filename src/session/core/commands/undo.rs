//! `session/undo_compaction`.

use crate::{
    conversation::{entry::Stamps, undo::Undoing},
    ids::EntryId,
    protocol::{
        SessionUndoCompaction,
        errors::Failure,
        types::{SessionParams, UndoAnswer},
    },
    session::{
        core::edit::{EditMethod, NotStaged, Staged},
        state::State,
    },
};

impl EditMethod for SessionUndoCompaction {
    fn stage(state: &State, _: &SessionParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let path = state.path();
        let begins =
            path.compaction().and_then(|place| path[place].preserved()).is_some_and(|ours| ours.begins_session);
        if begins {
            let what = format!(
                "the session begins with its compaction, which cannot be undone; the whole conversation is in its parent \
                 session, {}",
                state.header().parent_session.as_deref().unwrap_or("which its file no longer names")
            );
            return Err(Failure::NotFound { kind: "compaction", what }.into());
        }
        let Some(undoing) = Undoing::of(path, &state.settings().prompts, stamps) else {
            let what = match path.reset() {
                None => "there is no compaction on this branch that could be undone".to_owned(),
                Some(place) => format!(
                    "the conversation went on behind the reset, which can no longer be undone; session/append with \
                     parentEntryId {} goes on from before it",
                    path[place].parent.as_ref().map_or("null", EntryId::as_str)
                ),
            };
            return Err(Failure::NotFound { kind: "compaction", what }.into());
        };
        let entries = vec![undoing.marker().clone()];
        Ok(Staged { entries, undoing: Some(Box::new(undoing)), ..Staged::default() })
    }

    fn answer(state: &State, _: &Staged) -> Result<UndoAnswer, Failure> {
        Ok(UndoAnswer { leaf_entry_id: state.visible_leaf(), usage: state.usage() })
    }

    fn rewrites_context(_: &SessionParams) -> bool {
        true
    }
}
