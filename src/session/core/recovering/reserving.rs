//! Refusals for the room kept for an answer, and for a provider's own compaction. The input fits, so nothing is compacted: the
//! client repeats the turn with a smaller answer, or with the text of the summary.

use crate::{
    compaction::recovery::AnswerError,
    conversation::entry::Entry,
    models::{ModelRef, learned::WindowOrigin},
    provider::overflow::{Overflow, Reservation, is_far_off},
    session::{
        core::{
            base::{Base, learning},
            due::DueRepeat,
        },
        state::{
            State,
            output::{self, Refused},
        },
    },
};

/// Learns the limit that such a refusal states, where it counts about the context that was sent.
pub(super) fn learn(base: &mut Base, answer: &Entry) {
    let learns = base.state.settings().settings.tokens.learn_window;
    let Some(refused) = output::reservation(answer).filter(|_| learns) else { return };
    let named = answer.outline().and_then(|outline| outline.model.clone());
    let Some(model) = named.or_else(|| base.state.model(base.state.path())) else { return };
    let is_of_context = !is_far_off(refused.input(), base.state.measure().context_tokens);
    if is_of_context {
        base.learn(learning::of_window(&model, refused.limit(), WindowOrigin::Refusal, &base.facts()));
    }
}

/// The error of an answer that a model refused for the room kept for it, with the sizes that it states as an overflow. It
/// is an overflow where its input is over the threshold, where it leaves no room for an answer, and where the same context
/// was refused like that before.
pub(super) fn reserved(
    state: &State,
    refused: Reservation,
    answer: &Entry,
    model: Option<&ModelRef>,
) -> (AnswerError, Option<(u64, u64)>) {
    let (path, fullness) = (state.path(), state.measure());
    let context = fullness.context_tokens;
    let threshold = fullness.bounded(refused.limit()).budget.threshold;
    let place = path.position(&answer.id).unwrap_or(path.len());
    let again = Refused::before(path, place, model).is_some_and(|before| before.is_of_same_context());
    let fits = refused.believed_input(context) <= threshold && refused.next_output(context).is_some();
    let Overflow { limit, requested } = refused.as_overflow();
    match fits && !again {
        true => (AnswerError::Reserved(refused), None),
        false => (AnswerError::TooManyTokens, limit.zip(requested)),
    }
}

/// The turn that a client repeats after such a refusal.
pub(super) fn repeat(state: &State, answer: &Entry, refused: Reservation) -> DueRepeat {
    let max_output = next_output(state, answer);
    let why = format!(
        "The input of {} tokens fits the limit of {}, and the {} tokens kept for the answer do not. Repeat the request \
         with at most {max_output} tokens for the answer.",
        refused.input(),
        refused.limit(),
        refused.output(),
    );
    DueRepeat { removed: answer.id.clone(), max_output, why }
}

/// The turn that a client repeats after its provider refused its own compaction.
pub(super) fn repeat_without_block(state: &State, answer: &Entry) -> DueRepeat {
    let why = "The provider refused its own compaction. Repeat the request for a new context: it has the text of the summary in its \
               place.";
    DueRepeat { removed: answer.id.clone(), max_output: next_output(state, answer), why: why.to_owned() }
}

/// The largest answer of the next request after an answer, in tokens.
fn next_output(state: &State, answer: &Entry) -> u64 {
    let path = state.path();
    let session = state.model(path);
    let model = answer.outline().and_then(|outline| outline.model.clone()).or(session);
    let most = state.view().max_output(path, &state.usage(), model.as_ref());
    most.tokens.unwrap_or(Reservation::LEAST_OUTPUT)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{is_answered, next, recoveries, set, wait_for_context};
    use crate::{
        ids::ModelRef,
        protocol::{errors::Failure, events::Event},
        session::{
            core::{
                Input,
                held::{Held, draft, events, log_work, written},
            },
            effects::Effect,
            log_work::LogWork,
        },
    };
    use serde_json::{Value, json};

    const WINDOW: u64 = 40_000;

    /// A session of 40 messages whose model is `p/m`.
    fn session() -> Held {
        let mut held = Held::new();
        let model = |id: &str| json!({"provider": "p", "id": id, "contextWindow": WINDOW});
        let compaction = json!({"reserveTokens": 100});
        set(&mut held, json!({"defaultModel": "p/m", "models": [model("m"), model("n")], "compaction": compaction}));
        held
    }

    fn size(held: &Held) -> u64 {
        held.core.state().measure().context_tokens
    }

    /// A text of a provider that refuses this input with this room for the answer.
    fn text(limit: u64, input: u64, output: u64) -> String {
        format!(
            "input length and `max_tokens` exceed context limit: {input} + {output} > {limit}, decrease input length"
        )
    }

    fn failure(error: &str) -> Value {
        json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1, "errorMessage": error})
    }

    /// Appends a refusal and takes the answer out of the context. Returns `next`, and whether anything started.
    fn refuse(held: &mut Held, number: u64, error: &str) -> (Value, bool) {
        let effects = held.write_message(number, &failure(error));
        let said = next(&effects, number);
        let Some(work) = log_work(effects) else { return (said, false) };
        let effects = held.back(work);
        let started =
            recoveries(&effects).0 > 0 || events(&effects).any(|it| matches!(it, Event::StatusChanged { .. }));
        (said, started)
    }

    /// The largest answer to the next request.
    fn most(held: &Held) -> u64 {
        let (state, path) = (held.core.state(), held.core.state().path());
        let most = state.view().max_output(path, &state.usage(), state.model(path).as_ref());
        most.tokens.expect("a window")
    }

    #[test]
    fn a_refusal_whose_input_fits_is_repeated_with_a_smaller_answer_and_nothing_else_happens() {
        let mut held = session();
        let input = size(&held);
        let before = most(&held);
        let effects = held.write_message(2, &failure(&text(WINDOW, input, WINDOW)));
        let said = next(&effects, 2);
        let expected = WINDOW - input - input / 20;
        assert_eq!((&said["type"], &said["willRetry"]), (&json!("retry"), &json!(true)), "{said}");
        assert_eq!(said["maxOutputTokens"], expected, "{said}");
        assert!(said["why"].as_str().is_some_and(|why| why.contains(&input.to_string())), "{said}");
        assert!(expected > before, "the count of the provider needs no more room");
        let work = log_work(effects).expect("the answer leaves the context");
        assert_eq!(written(Some(&work)), ["context_edit"]);
        let effects = held.back(work);
        let kinds: Vec<&str> = events(&effects).map(Event::kind).collect();
        assert_eq!(kinds, ["entry_appended"], "no operation");
        assert!(log_work(held.turn()).is_none());
        assert_eq!((most(&held), size(&held)), (expected, input));
        let done = json!({"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "stopReason": "stop",
            "timestamp": 1});
        held.write_message(4, &done);
        assert!(most(&held) <= before, "a request succeeded");
    }

    #[test]
    fn the_same_context_is_repeated_once_and_a_longer_one_again() {
        let mut held = session();
        let error = |held: &Held| text(WINDOW, size(held), WINDOW);
        let refusal = error(&held);
        assert_eq!(refuse(&mut held, 1, &refusal).0["type"], "retry");
        refuse(&mut held, 2, "500 Internal Server Error");
        held.write_message(3, &json!({"role": "user", "content": "And this?", "timestamp": 1}));
        let refusal = error(&held);
        assert_eq!(refuse(&mut held, 4, &refusal).0["type"], "retry", "the context has grown");
        refuse(&mut held, 5, "500 Internal Server Error");
        let (said, started) = refuse(&mut held, 6, &refusal);
        assert_eq!((&said["type"], &said["reason"]), (&json!("maintenance"), &json!("overflow")));
        assert!(started, "the same context was refused twice");
    }

    #[test]
    fn an_input_over_the_threshold_or_far_off_the_estimate_is_an_overflow_by_the_estimate() {
        let fits = |limit: u64, input: &dyn Fn(u64) -> u64, output: u64| {
            let mut held = session();
            let input = input(size(&held));
            let said = refuse(&mut held, 1, &text(limit, input, output)).0;
            assert!(["retry", "maintenance"].contains(&said["type"].as_str().expect("a type")), "{said}");
            said["type"] == "retry"
        };
        let size = size(&session());
        assert!(fits(WINDOW, &|size| size, WINDOW));
        // The threshold is 85 % of the limit, where that is the smaller window.
        assert!(fits(size * 100 / 80, &|size| size, WINDOW));
        assert!(!fits(size * 100 / 90, &|size| size, WINDOW));
        assert!(!fits(size * 3, &|size| size * 28 / 10, WINDOW), "the count of the provider is over the threshold");
        assert!(
            fits(WINDOW, &|_| WINDOW * 9 / 10, WINDOW),
            "the count is far off, and the estimate is below the threshold"
        );
        // A count of another request.
        assert!(fits(WINDOW, &|size| size / 3 - 10, WINDOW));
        assert!(!fits(size * 9 / 10, &|size| size / 3 - 10, WINDOW), "the estimate does not fit the limit");
        assert!(!fits(size + 1_000, &|size| size - 10, WINDOW), "no room for an answer");
    }

    #[test]
    fn a_refusal_during_maintenance_only_leaves_the_context_behind_it() {
        for (succeeds, enabled) in [(true, true), (false, true), (false, false)] {
            let mut held = session();
            let models = json!([{"provider": "p", "id": "m", "contextWindow": WINDOW}]);
            set(&mut held, json!({"defaultModel": "p/m", "models": models, "compaction": {"enabled": enabled}}));
            let refusal = text(WINDOW, size(&held), WINDOW);
            let order = held.begin_draft(1);
            let effects = held.write_message(2, &failure(&refusal));
            let said = next(&effects, 2);
            assert_eq!((&said["operationId"], &said["willRetry"]), (&json!(order.id), &json!(true)), "{said}");
            assert!(!is_answered(&wait_for_context(&mut held, 3), 3));
            match succeeds {
                true => {
                    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
                    let work = log_work(held.turn()).expect("the compaction");
                    held.back(work);
                }
                false => {
                    held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))));
                }
            }
            let work = log_work(held.turn()).expect("the answer leaves the context");
            assert_eq!(written(Some(&work)), ["context_edit"]);
            let effects = held.back(work);
            assert_eq!(recoveries(&effects).0, 0);
            assert!(is_answered(&effects, 3));
        }
    }

    #[test]
    fn the_smaller_answer_is_that_of_the_model_that_refused() {
        let mut held = session();
        let input = size(&held);
        let mut refusal = failure(&text(20_000, input, WINDOW));
        (refusal["provider"], refusal["model"]) = ("p".into(), "n".into());
        let effects = held.write_message(2, &refusal);
        assert_eq!(next(&effects, 2)["maxOutputTokens"], 20_000 - input - input / 20);
        let learned =
            |model: &str| held.core.state().learned.of_model(&ModelRef::parse(model).expect("a name")).to_vec();
        let window = |model: &str| learned(model).first().map(|row| row.context_window);
        assert_eq!((window("p/n"), window("p/m")), (Some(20_000), None));
    }

    #[test]
    fn a_limit_is_learned_where_the_text_counts_the_context() {
        let learned = |input: &dyn Fn(u64) -> u64, learns: bool| {
            let mut held = session();
            let models = json!([{"provider": "p", "id": "m", "contextWindow": WINDOW}]);
            set(&mut held, json!({"defaultModel": "p/m", "models": models, "tokens": {"learnWindow": learns}}));
            let input = input(size(&held));
            let effects = held.write_message(1, &failure(&text(30_000, input, WINDOW)));
            let told = effects
                .iter()
                .any(|effect| matches!(effect, Effect::Teach(crate::models::learned::Change::Learned(row)) if row.context_window == 30_000));
            let model = ModelRef::parse("p/m").expect("a name");
            assert_eq!(told, held.core.state().learned.of_model(&model).iter().any(|row| row.context_window == 30_000));
            told
        };
        assert!(learned(&|size| size, true));
        assert!(!learned(&|size| size, false));
        assert!(!learned(&|size| size / 3 - 10, true), "under a third of the context");
        assert!(!learned(&|size| size * 3 + 10, true), "over three times the context");
    }

    #[test]
    fn a_write_that_fails_leaves_the_turn_to_be_repeated() {
        let mut held = session();
        let refusal = text(WINDOW, size(&held), WINDOW);
        let effects = held.write_message(1, &failure(&refusal));
        assert_eq!(next(&effects, 1)["type"], "retry");
        assert!(matches!(log_work(effects), Some(LogWork::Append(_))));
        held.refuse_write();
        assert!(is_answered(&wait_for_context(&mut held, 2), 2));
    }
}
