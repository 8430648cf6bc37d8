//! `session/undo_compaction`.

use crate::{
    conversation::{entry::Stamps, undo::Undoing},
    protocol::{
        SessionUndoCompaction,
        errors::Failure,
        types::{SessionParams, UndoAnswer},
    },
    session::{
        Session,
        edit::{EditMethod, NotStaged, Staged},
        state::State,
    },
};

impl EditMethod for SessionUndoCompaction {
    fn stage(state: &State, _: &SessionParams) -> Result<Staged, NotStaged> {
        let Some(undoing) = Undoing::of(state.path(), &state.settings().prompts, &mut Stamps::system()) else {
            let what = "there is no compaction on this branch that could be undone".to_owned();
            return Err(Failure::NotFound { kind: "compaction", what }.into());
        };
        let entries = vec![undoing.marker().clone()];
        Ok(Staged { entries, undoing: Some(Box::new(undoing)), ..Staged::default() })
    }

    fn answer(session: &Session, _: &Staged) -> Result<UndoAnswer, Failure> {
        Ok(UndoAnswer { leaf_entry_id: session.state.visible_leaf(), usage: session.state.usage() })
    }

    fn rewrites_context(_: &SessionParams) -> bool {
        true
    }
}
