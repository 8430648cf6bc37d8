//! `session/pin` and `session/unpin`: entries and texts that every compaction keeps verbatim.

use crate::{
    conversation::{
        context,
        entry::{Entry, PINNED_TEXT, Stamps},
        message::outline::Role,
        path::Pin,
        tokens::Estimator,
    },
    ids::EntryId,
    protocol::{
        SessionPin, SessionUnpin,
        errors::Failure,
        types::{EntryIdAnswer, PinParams},
    },
    session::{
        core::edit::{EditMethod, NotStaged, Staged, known},
        log_work::{Fetch, Fetched},
        state::State,
    },
};
use serde_json::json;
use std::sync::Arc;

/// The part of the window that pins may take, in percent: they are in every context.
const MOST_PINNED_PERCENT: u64 = 10;

impl EditMethod for SessionPin {
    fn stage(state: &State, params: &PinParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let mut staged = Staged::default();
        match (&params.entry_id, &params.text) {
            (Some(id), None) => {
                known(state, id)?;
                if state.path().pins().iter().any(|pin| pin.entry == *id) {
                    staged.about.push(id.clone());
                    return Ok(staged);
                }
                let entry = match state.path().position(id) {
                    Some(place) => state.path()[place].clone(),
                    None if state.history().is_on_path(id) => look_up(state, id)?,
                    None => {
                        return Err(Failure::params(
                            "entryId",
                            "the entry is not on the active path; session/entries lists those that are",
                        )
                        .into());
                    }
                };
                let failed = entry.outline().is_some_and(|outline| outline.failed);
                if !entry.in_context() || failed || is_stray(state, &entry) {
                    let what = "only messages that are sent to a model can be pinned";
                    return Err(Failure::params("entryId", what).into());
                }
                let mut data = json!({ "entryId": id });
                if state.path().position(id).is_none_or(|place| place < state.path().first_kept()) {
                    data["text"] = entry.pinned_text().into();
                    data["before"] = json!(next_pin(state, id));
                }
                room_for(state, u64::from(entry.tokens(Estimator::Chars)), "entryId")?;
                staged.add_custom(state, stamps, "pin", data)?;
                staged.about.push(id.clone());
            }
            (None, Some(text)) if text.trim().is_empty() => {
                return Err(Failure::params("text", "there is nothing in it").into());
            }
            (None, Some(text)) => {
                room_for(state, Estimator::Chars.of_text(text), "text")?;
                let fields =
                    [("customType", PINNED_TEXT.into()), ("content", text.as_str().into()), ("display", true.into())];
                let id = staged.add(state, stamps, "custom_message", &fields)?;
                staged.about.push(id);
            }
            _ => return Err(Failure::params("entryId", "give either entryId or text").into()),
        }
        staged.add_mirrors(state, stamps);
        Ok(staged)
    }

    fn answer(_: &State, staged: &Staged) -> Result<EntryIdAnswer, Failure> {
        staged.entry_id()
    }
}

impl EditMethod for SessionUnpin {
    fn stage(state: &State, params: &PinParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let path = state.path();
        let (pins, places) = (path.pins(), path.places());
        let found = match (&params.entry_id, &params.text) {
            (Some(id), None) => pins.iter().find(|pin| pin.entry == *id),
            (None, Some(text)) => pins.iter().find(|pin| match places.entry(&pin.entry) {
                Some(entry) => entry.pinned_text() == *text,
                None => pin.text.as_ref() == Some(text),
            }),
            _ => return Err(Failure::params("entryId", "give either entryId or text").into()),
        };
        let Some(pin) = found else {
            let what = "nothing like that is pinned in this session".to_owned();
            return Err(Failure::NotFound { kind: "pin", what }.into());
        };
        let mut staged = Staged::default();
        staged.add_custom(state, stamps, "unpin", json!({ "entryId": pin.entry }))?;
        staged.about.push(pin.entry.clone());
        staged.add_mirrors(state, stamps);
        Ok(staged)
    }

    fn answer(_: &State, staged: &Staged) -> Result<EntryIdAnswer, Failure> {
        staged.entry_id()
    }
}

/// An entry of the path that is not in memory.
fn look_up(state: &State, id: &EntryId) -> Result<Arc<Entry>, NotStaged> {
    if let Some(Fetched::Entry(fetched, entry)) = &state.fetched
        && fetched == id
    {
        return entry.clone().ok_or_else(|| Failure::no_entry(id).into());
    }
    let index = state.history().index().ok_or(NotStaged::NeedsIndex)?;
    let place = index.find(id).ok_or_else(|| Failure::no_entry(id))?;
    Err(NotStaged::NeedsEntries(Fetch::Entry(id.clone(), state.history().wanted([place]))))
}

/// Whether an entry is the result of a call that does not exist: no context has it.
fn is_stray(state: &State, entry: &Entry) -> bool {
    let path = state.path();
    let kept = path.position(&entry.id).is_some_and(|place| place >= path.first_kept());
    kept && entry.is_from(Role::ToolResult)
        && !context::build(path, &state.settings().prompts)
            .messages()
            .iter()
            .any(|message| message.entry_shown() == Some(&entry.id))
}

/// The next pin on the path after an entry that was compacted away.
fn next_pin(state: &State, id: &EntryId) -> Option<EntryId> {
    let path = state.path();
    let place = |id: &EntryId| state.history().index()?.find(id);
    let (pins, places) = (path.pins(), path.places());
    let own = places.of_entry(id);
    let next = pins.iter().find(|pin| match (own, places.of_entry(&pin.entry)) {
        (Some(own), Some(other)) => other > own,
        (Some(_), None) => false,
        (None, Some(_)) => true,
        (None, None) => place(&pin.entry) > place(id),
    });
    next.map(|pin| pin.entry.clone())
}

/// Checks that the pins leave room in the window.
fn room_for(state: &State, more: u64, param: &str) -> Result<(), Failure> {
    let path = state.path();
    let places = path.places();
    let size = |pin: &Pin| match places.entry(&pin.entry) {
        Some(entry) => u64::from(entry.tokens(Estimator::Chars)),
        None => pin.text.as_ref().map_or(0, |text| Estimator::Chars.of_text(text)),
    };
    let pinned: u64 = path.pins().iter().map(size).sum();
    let window = state.measure().budget.window;
    let most = window * MOST_PINNED_PERCENT / 100;
    if pinned + more <= most {
        return Ok(());
    }
    let what = format!(
        "it has about {more} tokens, and {pinned} are pinned already; pins may take {most}, {MOST_PINNED_PERCENT} % of the window. Unpin something, or pin a shorter text"
    );
    Err(Failure::params(param, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::core::held::{Held, answer, log_work};

    #[test]
    fn an_entry_is_pinned_once() {
        let mut held = Held::new();
        let pin = |held: &mut Held, number| {
            held.edit::<SessionPin>(number, json!({"entryId": "e5"}));
            held.turn()
        };
        let work = log_work(pin(&mut held, 1)).expect("a write");
        assert_eq!(answer(&held.back(work), 1), Some(json!({"entryId": "e5"})));
        let effects = pin(&mut held, 2);
        assert_eq!(answer(&effects, 2), Some(json!({"entryId": "e5"})));
        assert!(log_work(effects).is_none());
    }
}
