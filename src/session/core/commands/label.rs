//! `session/label`: the name of an entry.

use crate::{
    conversation::entry::Stamps,
    protocol::{
        SessionLabel,
        errors::Failure,
        types::{EntryIdAnswer, LONGEST_LABEL, LabelParams},
    },
    session::{
        core::edit::{EditMethod, NotStaged, Staged, known},
        state::State,
    },
};
use serde_json::json;

impl EditMethod for SessionLabel {
    fn stage(state: &State, params: &LabelParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        Failure::if_longer("label", params.label.as_deref(), LONGEST_LABEL)?;
        known(state, &params.target_entry_id)?;
        let mut staged = Staged::default();
        let label = params.label.as_deref().map(str::trim).filter(|label| !label.is_empty());
        let mut fields = vec![("targetId", json!(params.target_entry_id))];
        // pi takes a label away by an entry without one.
        fields.extend(label.map(|label| ("label", label.into())));
        let id = staged.add(state, stamps, "label", &fields)?;
        staged.about.push(id);
        Ok(staged)
    }

    fn answer(_: &State, staged: &Staged) -> Result<EntryIdAnswer, Failure> {
        staged.entry_id()
    }
}
