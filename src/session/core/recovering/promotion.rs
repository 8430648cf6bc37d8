//! The model that takes a context over, where it is too large for the session's.

use crate::{
    models::{self, Budget, ModelRef, SaidBy},
    protocol::types::TURN,
    session::core::base::Base,
};

/// The model that the settings name for a context that is too large for the session's, if the client asks the model that
/// a context names and the context is below its threshold.
pub(in crate::session::core) fn larger_model(base: &Base) -> Option<ModelRef> {
    let state = &base.state;
    let settings = &state.settings().settings;
    // In a turn the daemon itself asks the model.
    let may_switch = state.client_switches_models() || base.operations.runs(TURN);
    if !settings.context_promotion.enabled || !may_switch {
        return None;
    }
    let model = state.model(state.path())?;
    let larger = ModelRef::parse(settings.model(&model)?.promote_to.as_deref()?)?;
    let fullness = state.measure();
    let window = models::window(settings, state.taught(Some(&larger)), Some(&larger));
    let Budget { system, tools, .. } = fullness.budget;
    let budget = Budget::of(window.tokens, &settings.compaction_for(Some(&larger)), system, tools);
    let known = window.source != SaidBy::Default;
    let takes_it = window.tokens > fullness.budget.window && fullness.context_tokens <= budget.threshold;
    (known && takes_it).then_some(larger)
}
