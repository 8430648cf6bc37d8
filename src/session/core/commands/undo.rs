//! `session/undo_compaction`.

use crate::{
    conversation::{entry::Stamps, undo::Undoing},
    protocol::{
        SessionUndoCompaction,
        errors::Failure,
        types::{SessionParams, UndoAnswer},
    },
    session::{
        core::{
            Core,
            edit::{EditMethod, NotStaged, Staged},
        },
        state::State,
    },
};

impl EditMethod for SessionUndoCompaction {
    fn stage(state: &State, _: &SessionParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let Some(undoing) = Undoing::of(state.path(), &state.settings().prompts, stamps) else {
            let what = "there is no compaction on this branch that could be undone".to_owned();
            return Err(Failure::NotFound { kind: "compaction", what }.into());
        };
        let entries = vec![undoing.marker().clone()];
        Ok(Staged { entries, undoing: Some(Box::new(undoing)), ..Staged::default() })
    }

    fn answer(core: &Core, _: &Staged) -> Result<UndoAnswer, Failure> {
        Ok(UndoAnswer { leaf_entry_id: core.state.visible_leaf(), usage: core.state.usage() })
    }

    fn rewrites_context(_: &SessionParams) -> bool {
        true
    }
}
