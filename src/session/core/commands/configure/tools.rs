//! `tools/set` of a session: its tools are stored with it.

use crate::{
    conversation::entry::Stamps,
    protocol::{ToolsSet, errors::Failure, types::ToolsSetParams},
    session::{
        core::edit::{EditMethod, NotStaged, Staged},
        state::{SessionData, State},
    },
};

impl EditMethod for ToolsSet {
    fn stage(state: &State, params: &ToolsSetParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let mut staged = Staged::default();
        let data = SessionData { tools: Some(params.tools.0.clone()), ..state.data().clone() };
        staged.add_custom(state, stamps, "session", serde_json::to_value(data).unwrap_or_default())?;
        Ok(staged)
    }

    fn answer(_: &State, _: &Staged) -> Result<(), Failure> {
        Ok(())
    }
}
