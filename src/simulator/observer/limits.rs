//! Limits that the client states for a model.

use super::{Rule, Verdict, file::File, requests::Asked, require};
use crate::{ids::ModelRef, session::core::Core};
use serde_json::Value;

/// The limits of the newest entry that says the session's data.
fn stated(file: &File) -> Option<Value> {
    let mut data = file.chain().find_map(|entry| entry.ours("session"))?;
    Some(data["limits"].take()).filter(Value::is_object)
}

/// Whether limits are those of a model.
fn are_of(limits: &Value, model: Option<&ModelRef>) -> bool {
    let of = (limits["model"]["provider"].as_str(), limits["model"]["id"].as_str());
    model.is_some_and(|model| of == (Some(model.provider.as_str()), Some(model.id.as_str())))
}

/// A change of the limits was answered.
pub fn answered(asked: &Asked, result: &Value) -> Verdict {
    let Some(most) = asked.params["contextWindow"].as_u64() else { return Ok(()) };
    let window = result["session"]["usage"]["contextWindow"].as_u64();
    require(window.is_some_and(|window| window <= most), Rule::LimitsHold, || {
        format!("the client states a window of {most}, and it is {window:?}")
    })
}

/// The session plans with no window that is larger than the stated one.
pub fn hold(core: &Core, file: &File) -> Verdict {
    if file.another_wrote() {
        return Ok(());
    }
    let state = core.state();
    let Some(limits) = stated(file).filter(|limits| are_of(limits, state.model(state.path()).as_ref())) else {
        return Ok(());
    };
    let window = state.usage().context_window;
    let most = limits["contextWindow"].as_u64();
    require(most.is_none_or(|most| window.is_some_and(|window| window <= most)), Rule::LimitsHold, || {
        format!("the client states {limits}, and the window is {window:?}")
    })
}

/// The longest answer of a context fits. `end`: the fields after the messages or the body.
pub fn fit(end: &Value, file: &File) -> Verdict {
    let Some(output) = end["maxOutputTokens"].as_u64() else { return Ok(()) };
    let usage = &end["usage"];
    let (window, size) = (usage["contextWindow"].as_u64(), usage["contextTokens"].as_u64().unwrap_or_default());
    let room = window.map(|window| window.saturating_sub(size).max(1));
    let model = serde_json::from_value::<ModelRef>(end["model"].clone()).ok();
    let limits = stated(file).filter(|limits| !file.another_wrote() && are_of(limits, model.as_ref()));
    let most = limits.as_ref().and_then(|limits| limits["maxOutputTokens"].as_u64());
    let fits = room.is_none_or(|room| output <= room) && most.is_none_or(|most| output <= most);
    require(fits, Rule::OutputFits, || format!("an answer of {output} tokens beside {usage}, with {limits:?}"))
}
