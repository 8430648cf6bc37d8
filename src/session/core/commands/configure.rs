//! `session/configure`: the values that are stored with a session.

mod tools;

use crate::{
    conversation::entry::Stamps,
    protocol::{
        SessionConfigure,
        errors::Failure,
        events::{Event, ModelChange},
        types::{ConfigureAnswer, ConfigureParams, LONGEST_TITLE, ThinkingLevel},
    },
    session::{
        core::edit::{EditMethod, NotStaged, Staged},
        data::model_fields,
        state::State,
    },
    settings::Limits,
};

impl EditMethod for SessionConfigure {
    fn stage(state: &State, params: &ConfigureParams, stamps: &mut Stamps) -> Result<Staged, NotStaged> {
        let mut staged = Staged::default();
        if params.model.is_some() || params.context_window.is_some() {
            staged.before = Some(Box::new(state.model_in_force()));
        }
        if let Some(model) = &params.model {
            let Some(model) = model else {
                let what = "a model cannot be taken away, only another one chosen";
                return Err(Failure::params("model", what).into());
            };
            staged.add(state, stamps, "model_change", &model_fields(model))?;
        }
        if let Some(level) = &params.thinking_level {
            let level = level.map_or("off", ThinkingLevel::name);
            staged.add(state, stamps, "thinking_level_change", &[("thinkingLevel", level.into())])?;
        }
        if let Some(title) = &params.title {
            Failure::if_longer("title", title.as_deref(), LONGEST_TITLE)?;
            staged.add(state, stamps, "session_info", &[("name", title.as_deref().unwrap_or_default().into())])?;
        }
        let limits = params.context_window.is_some() || params.max_output_tokens.is_some();
        if params.system_prompt.is_some() || params.tools.is_some() || limits {
            let mut data = state.data().clone();
            if let Some(prompt) = &params.system_prompt {
                data.system_prompt.clone_from(prompt);
            }
            if let Some(tools) = &params.tools {
                data.tools = tools.clone().map(|tools| tools.0);
            }
            if limits {
                data.limits = limits_of(state, params);
            }
            staged.add_custom(state, stamps, "session", serde_json::to_value(data).unwrap_or_default())?;
        }
        Ok(staged)
    }

    fn answer(state: &State, staged: &Staged) -> Result<ConfigureAnswer, Failure> {
        Ok(ConfigureAnswer { session: state.info(staged.status.clone()), next: staged.next.clone() })
    }

    fn event(state: &State, staged: &Staged) -> Option<Event> {
        let from = staged.before.as_ref()?.model.clone();
        let to = state.model(state.path()).filter(|to| from.as_ref() != Some(to))?;
        Some(Event::ModelChanged { from, to, reason: ModelChange::User })
    }
}

/// The limits of the model that the session has from here on.
fn limits_of(state: &State, params: &ConfigureParams) -> Option<Limits> {
    let model = match &params.model {
        Some(Some(model)) => Some(model.clone()),
        _ => state.model(state.path()),
    };
    let before = state.data().limits.clone().filter(|limits| limits.model == model);
    let mut limits = before.unwrap_or(Limits { model, ..Limits::default() });
    if let Some(window) = params.context_window {
        limits.context_window = window;
    }
    if let Some(output) = params.max_output_tokens {
        limits.max_output_tokens = output;
    }
    Some(limits).filter(|limits| !limits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::ModelRef,
        session::{
            core::{
                Input,
                held::{Held, answer, line, log_work, messages},
            },
            state::SessionData,
        },
        settings::{Layers, TokenLimit, layers::Source},
    };
    use serde_json::{Value, json};

    /// Gives the session the models `p/large`, which is the default, and `p/small`.
    fn with_models(mut held: Held) -> Held {
        let model = |id: &str, window: u64| json!({"provider": "p", "id": id, "contextWindow": window});
        let settings = json!({
            "tokens": {"estimator": "chars"},
            "compaction": {"enabled": false},
            "defaultModel": "p/large",
            "models": [model("large", 100_000), model("small", 40_000)],
        });
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held
    }

    fn configure(held: &mut Held, number: u64, params: Value) {
        held.edit::<SessionConfigure>(number, params);
        let work = log_work(held.turn()).expect("a write");
        assert!(answer(&held.back(work), number).is_some_and(|answer| answer.is_object()));
    }

    fn window(held: &Held) -> u64 {
        held.core.state().measure().budget.window
    }

    fn limit(tokens: u64) -> Option<TokenLimit> {
        serde_json::from_value(json!(tokens)).ok()
    }

    fn output(held: &Held) -> Option<u64> {
        let state = held.core.state();
        state.settings().settings.stated.output(state.model(state.path()).as_ref())
    }

    fn small() -> ModelRef {
        ModelRef { provider: "p".to_owned(), id: "small".to_owned() }
    }

    #[test]
    fn limits_hold_for_the_model_that_is_chosen_with_them() {
        let mut held = with_models(Held::new());
        configure(&mut held, 1, json!({"model": "p/small", "contextWindow": 30_000}));
        assert_eq!(window(&held), 30_000);
        configure(&mut held, 2, json!({"model": "p/large"}));
        assert_eq!(window(&held), 100_000);
        configure(&mut held, 3, json!({"model": "x/unknown", "contextWindow": 20_000}));
        assert_eq!(window(&held), 20_000, "no setting knows the model");
        configure(&mut held, 4, json!({"model": "x/other"}));
        assert_eq!(window(&held), 128_000, "nobody states its window");
    }

    #[test]
    fn a_limit_of_one_model_is_none_of_the_next() {
        let mut held = with_models(Held::new());
        configure(&mut held, 1, json!({"contextWindow": 30_000}));
        configure(&mut held, 2, json!({"model": "p/small", "maxOutputTokens": 500}));
        assert_eq!((window(&held), output(&held)), (40_000, Some(500)));
        configure(&mut held, 3, json!({"maxOutputTokens": 600}));
        assert_eq!(output(&held), Some(600));
        configure(&mut held, 4, json!({"maxOutputTokens": null}));
        assert_eq!(held.core.state().data().limits, None);
    }

    #[test]
    fn limits_that_are_given_at_the_opening_hold_for_the_model_that_is_given() {
        let limits = SessionData::stated(limit(30_000), None);
        let mut held = with_models(Held::given(SessionData { limits, ..SessionData::default() }, small()));
        assert_eq!(window(&held), 30_000);
        let more = SessionData { limits: SessionData::stated(None, limit(500)), ..SessionData::default() };
        held.core.base.state.give(more, None).expect("data");
        assert_eq!((window(&held), output(&held)), (30_000, Some(500)));
        configure(&mut held, 1, json!({"model": "p/large"}));
        assert_eq!((window(&held), output(&held)), (100_000, None));
    }

    #[test]
    fn a_file_without_trust_may_not_state_a_window_that_leaves_a_session_stuck() {
        let mut lines = messages();
        let limits = json!({"model": "p/large", "contextWindow": 500});
        let fields = json!({"customType": "abridged.session", "data": {"limits": limits}});
        lines.push(line("s1", Some("e39"), "custom", fields));
        let mut held = with_models(Held::untrusted(&lines));
        assert_eq!(window(&held), 100_000);
        configure(&mut held, 1, json!({"contextWindow": 600}));
        assert_eq!(window(&held), 600, "the client may");
    }
}
