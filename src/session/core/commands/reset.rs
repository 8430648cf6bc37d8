//! `session/reset`: a context without the messages before it. Pins and the values of the session stay.

use crate::{
    conversation::{
        entry::{Preserved, Stamps},
        restating::CLEARED,
    },
    protocol::{
        SessionReset,
        errors::Failure,
        types::{ResetAnswer, SessionParams},
    },
    session::{
        core::edit::{EditMethod, NotStaged, Staged},
        state::State,
    },
};
use serde_json::{Value, json};

impl EditMethod for SessionReset {
    fn stage(state: &State, _: &SessionParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let (path, mut staged) = (state.path(), Staged::default());
        if let Some(place) = path.reset()
            && !path[place..].iter().any(|entry| entry.in_context())
        {
            staged.about.push(path[place].id.clone());
            return Ok(staged);
        }
        let meter = state.meter(state.estimator());
        let fullness = state.measure_with(&meter);
        let mut carried = Preserved {
            overhead: Some(fullness.budget.overhead()),
            estimator: Some(state.estimator().name().to_owned()),
            calibrations: meter.calibrations().carried(),
            summary_times: path
                .foundation()
                .and_then(|place| path[place].preserved())
                .map_or_else(Vec::new, |it| it.summary_times.clone()),
            spent: Some(state.history().spending().clone()).filter(|spent| !spent.is_empty()),
            // No summary is left.
            compactions: 0,
            ..Preserved::of(path)
        };
        let places = path.places();
        for pin in &mut carried.pins {
            pin.text = places.entry(&pin.entry_id).map(|entry| entry.pinned_text()).or(pin.text.take());
        }
        let system_message = path.system_prompt().message();
        let reset = staged.add_with(state, stamps, "reset_boundary", |id| {
            fields(Vec::new(), carried.of_entry(id), system_message.as_ref())
        })?;
        let told = vec![
            ("summary", CLEARED.into()),
            ("firstKeptEntryId", json!(reset)),
            ("tokensBefore", fullness.context_tokens.into()),
            ("details", json!({ "readFiles": [], "modifiedFiles": [] })),
        ];
        let repeated = Preserved { reset: Some(reset.clone()), ..Preserved::default() };
        staged
            .add_with(state, stamps, "compaction", |id| fields(told, repeated.of_entry(id), system_message.as_ref()))?;
        staged.add_mirrors(state, stamps);
        staged.about.push(reset);
        Ok(staged)
    }

    fn answer(state: &State, staged: &Staged) -> Result<ResetAnswer, Failure> {
        let entry_id = staged.entry_id()?.entry_id;
        Ok(ResetAnswer { entry_id, leaf_entry_id: state.visible_leaf(), usage: state.usage() })
    }

    fn rewrites_context(_: &SessionParams) -> bool {
        true
    }
}

/// The fields of a line that carries data of this program and the system message of the path.
fn fields<'a>(own: Vec<(&'a str, Value)>, ours: Value, system_message: Option<&Value>) -> Vec<(&'a str, Value)> {
    let system_message = system_message.map(|message| ("systemMessage", message.clone()));
    own.into_iter().chain([("preserveData", json!({ "abridged": ours }))]).chain(system_message).collect()
}
