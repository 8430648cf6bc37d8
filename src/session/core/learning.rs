//! Windows that an overflow teaches.

use super::{Core, commands::append};
use crate::{
    conversation::entry::Entry,
    models::{self, ModelRef, SaidBy},
    provider::overflow::{self, Meaning, Overflow},
    session::{
        effects::Effect,
        fault::{Fault, planted},
    },
};
use std::sync::Arc;

impl Core {
    /// Learns the window that the error of a failed answer states. Where it states none and the window is a default, the
    /// size of the context that was refused bounds it for this session. A report of a longer prompt lifts that bound.
    pub(super) fn learn_from(&mut self, entries: &[Arc<Entry>]) {
        if !self.state.settings().settings.tokens.learn_window {
            return;
        }
        if planted(Fault::ReportLearned) {
            let reports = entries.iter().filter_map(|entry| entry.outline()?.usage).map(|usage| usage.prompt_tokens());
            let model = self.state.model(self.state.path());
            let learned = model.zip(reports.max()).map(|(model, window)| Effect::Learn(model, window.max(1)));
            learned.into_iter().for_each(|effect| self.effects.push(effect));
        }
        for entry in entries.iter().filter(|entry| entry.outline().is_some_and(|outline| outline.failed)) {
            let Some(failed) = append::failed_answer(entry) else { continue };
            let Meaning::Overflow(Overflow { limit, .. }) = overflow::meaning(None, &failed.error) else { continue };
            let Some(model) = failed.model.or_else(|| self.state.model(self.state.path())) else { continue };
            match limit {
                Some(window) if self.state.learned.learn(&model, window) => {
                    self.effects.push(Effect::Learn(model, window));
                }
                Some(_) => {}
                None => {
                    if let Some(size) = self.refused_size(&model) {
                        self.state.learned.see(&model, size);
                    }
                }
            }
        }
    }

    /// The size of the context that a model has just refused, if its window is not known better: from no source, or from
    /// an earlier refusal of a size that is a little larger.
    fn refused_size(&self, model: &ModelRef) -> Option<u64> {
        /// The least part of a learned window, in percent, at which a refusal corrects the window.
        const NEARLY_FULL: u64 = 80;
        if self.state.model(self.state.path()).as_ref() != Some(model) {
            return None;
        }
        let window = models::window(&self.state.settings().settings, self.state.learned.taught(model), Some(model));
        let size = self.state.measure().context_tokens;
        let corrects = match window.source {
            SaidBy::Default => size < window.tokens,
            SaidBy::Learned => size < window.tokens && size >= window.tokens / 100 * NEARLY_FULL,
            SaidBy::Setting | SaidBy::Catalog => false,
        };
        corrects.then_some(size)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        models::{ModelRef, SaidBy, learned::Learned},
        session::{
            core::{
                Input,
                held::{Held, log_work},
            },
            effects::Effect,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    /// The error of an overflow that states a limit.
    const STATES: &str = "prompt is too long: 9000 tokens > 8000 maximum";
    /// The error of an overflow that states none.
    const SILENT: &str = "context_length_exceeded";

    /// A session with the model `p/m`, of which only these settings say something.
    fn session(settings: &Value) -> Held {
        let mut held = Held::new();
        set(&mut held, settings);
        held
    }

    fn set(held: &mut Held, settings: &Value) {
        let mut all =
            json!({"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}, "defaultModel": "p/m"});
        for (name, value) in settings.as_object().expect("settings") {
            all[name] = value.clone();
        }
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, all)])));
    }

    /// Appends answers, and returns the windows that are told to other sessions.
    fn append(held: &mut Held, number: u64, answers: &[Value]) -> Vec<(String, u64)> {
        held.append_with(number, json!({ "messages": answers }));
        let work = log_work(held.turn()).expect("a write");
        let learned = |effect: &Effect| match effect {
            Effect::Learn(model, window) => Some((model.to_string(), *window)),
            _ => None,
        };
        held.back(work).iter().filter_map(learned).collect()
    }

    fn refused(error: &str) -> Value {
        json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": error, "timestamp": 1})
    }

    fn window(held: &Held) -> (u64, SaidBy) {
        let fullness = held.core.state().measure();
        (fullness.budget.window, fullness.window_source)
    }

    fn size(held: &Held) -> u64 {
        held.core.state().measure().context_tokens
    }

    /// The bound that a refusal of a model left.
    fn bound(held: &Held, model: &str) -> Option<u64> {
        held.core.state().learned.taught(&ModelRef::parse(model).expect("a model")).seen
    }

    #[test]
    fn the_limit_of_an_error_is_the_window_of_the_model_that_failed() {
        let learned = |settings: Value, answers: &[Value]| append(&mut session(&settings), 1, answers);
        let of = |model: &str| vec![(model.to_owned(), 8_000)];
        let mut other = refused(STATES);
        (other["provider"], other["model"]) = ("q".into(), "n".into());
        let mut unnamed = refused(STATES);
        unnamed["provider"] = "q".into();
        let mut complete = refused(STATES);
        complete["stopReason"] = "stop".into();
        assert_eq!(learned(json!({}), &[other]), of("q/n"));
        assert_eq!(learned(json!({}), &[unnamed]), of("p/m"), "without a model it is the one of the session");
        assert_eq!(learned(json!({}), &[complete]), [], "the answer did not fail");
        assert_eq!(learned(json!({}), &[refused("It is raining."), refused(STATES)]), of("p/m"));
        let off = json!({"tokens": {"estimator": "chars", "learnWindow": false}});
        assert_eq!(learned(off, &[refused(STATES)]), []);
    }

    #[test]
    fn a_refusal_without_a_limit_bounds_a_window_that_nobody_states() {
        let mut held = session(&json!({}));
        let size = size(&held);
        append(&mut held, 1, &[refused(SILENT)]);
        let (bounded, source) = window(&held);
        assert!(bounded >= size && bounded < size + 100, "{bounded} of {size}");
        assert_eq!(source, SaidBy::Learned);
    }

    #[test]
    fn a_refusal_without_a_limit_leaves_a_window_that_is_known_and_those_of_other_models() {
        let stated = json!({"models": [{"provider": "p", "id": "m", "contextWindow": 100_000}]});
        let catalog = json!({"defaultModel": "openai/gpt-4o"});
        for (settings, model) in [(stated, "p/m"), (catalog, "openai/gpt-4o")] {
            let mut held = session(&settings);
            append(&mut held, 1, &[refused(SILENT)]);
            assert_eq!(bound(&held, model), None, "{model}");
        }
        let mut held = session(&json!({}));
        let mut other = refused(SILENT);
        (other["provider"], other["model"]) = ("q".into(), "n".into());
        append(&mut held, 1, &[other]);
        assert_eq!(bound(&held, "q/n"), None, "the context is not the one that it refused");
    }

    #[test]
    fn a_refusal_of_a_context_over_the_window_teaches_nothing() {
        let mut held = Held::of(
            &[crate::session::core::held::line(
                "e0",
                None,
                "message",
                json!({"message": {"role": "user", "content": "a word ".repeat(80_000), "timestamp": 1}}),
            )],
            u64::MAX,
        );
        set(&mut held, &json!({}));
        assert!(size(&held) > window(&held).0);
        append(&mut held, 1, &[refused(SILENT)]);
        assert_eq!(bound(&held, "p/m"), None);
    }

    #[test]
    fn a_refusal_corrects_a_learned_window_of_which_four_fifths_were_full() {
        let refused_at = {
            let mut held = session(&json!({}));
            append(&mut held, 1, &[refused(SILENT)]);
            bound(&held, "p/m").expect("a bound")
        };
        let hundredth = refused_at / 80;
        for (window, corrects) in [(100 * hundredth, true), (100 * (hundredth + 1), false), (refused_at, false)] {
            let mut held = session(&json!({}));
            held.feed(Input::Windows(Learned::of([("p/m".to_owned(), window)].into())));
            append(&mut held, 1, &[refused(SILENT)]);
            assert_eq!(bound(&held, "p/m"), corrects.then_some(refused_at), "of {window}");
        }
    }

    #[test]
    fn the_windows_of_other_sessions_are_taken_and_leave_the_bound_of_this_one() {
        let mut held = session(&json!({}));
        append(&mut held, 1, &[refused(SILENT)]);
        let bounded = window(&held);
        held.feed(Input::Windows(Learned::of([("q/n".to_owned(), 9_000)].into())));
        assert_eq!(window(&held), bounded);
        set(&mut held, &json!({"defaultModel": "q/n"}));
        assert_eq!(window(&held), (9_000, SaidBy::Learned));
    }
}
