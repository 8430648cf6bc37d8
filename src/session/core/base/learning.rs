//! Windows that providers teach: by limits in their refusals, and by sizes that they refuse or cut.

use super::Base;
use crate::{
    conversation::{
        entry::Entry,
        evidence,
        message::{self, outline::Outline},
    },
    models::{
        self, ModelRef, SaidBy,
        learned::{Change, Learned, LearnedWindow, Server, WindowOrigin},
    },
    protocol::notices::{NoticeCode, Warning},
    provider::overflow::{self, Meaning, Overflow},
    session::{core::parts::facts::Facts, effects::Effect},
    wire::outbox::About,
};
use std::{collections::HashSet, sync::Arc};

/// The notices about windows that the client of a session got.
#[derive(Default)]
pub(in crate::session::core) struct Learning {
    /// The code, the model, and the window in tokens.
    told: HashSet<(NoticeCode, ModelRef, u64)>,
}

/// A step of learning.
pub(in crate::session::core) enum Lesson {
    /// The windows of all sessions change.
    Teach(Change),
    /// A window counts in this session alone, in tokens.
    See(ModelRef, u64),
    /// A refusal states this limit for a model that took a request of so many tokens before.
    Doubt { model: ModelRef, limit: u64, accepted: u64 },
}

/// A learned window that is in force in the place of a larger one that the host or a setting names.
struct Limited {
    learned: LearnedWindow,
    /// In tokens.
    named: u64,
}

impl Learning {
    /// Tells of a learned window that took the place of a larger one which the host or a setting names, once for each model
    /// and number.
    fn notice_of_window(&mut self, facts: &Facts) -> Option<Warning> {
        // The path of a sleeping session is empty, and so it may name no model.
        if facts.state.history().is_asleep() {
            return None;
        }
        let Limited { learned: LearnedWindow { model, context_window, origin, refusals, .. }, named } = limited(facts)?;
        if !self.is_news(NoticeCode::WindowLearned, &model, context_window) {
            return None;
        }
        let evidence = match (origin, refusals) {
            (WindowOrigin::Refusal, 1) => "a refusal states it".to_owned(),
            (WindowOrigin::Refusal, times) => format!("{times} refusals state it"),
            (WindowOrigin::Saturation, _) => "its server reads no more of a prompt, without an error".to_owned(),
        };
        Some(Warning::new(
            NoticeCode::WindowLearned,
            "A model has a smaller window than it was given",
            format!(
                "The window of {model} is {context_window} tokens here instead of {named}, because {evidence}. Where that is \
                 wrong, a larger request that succeeds corrects it, and so does models/forget."
            ),
        ))
    }

    /// Tells of a limit that a refusal states and that does not count here, once for each model and number. The server may
    /// have a smaller window since it took that request.
    fn notice_of_doubt(&mut self, model: &ModelRef, limit: u64, accepted: u64, facts: &Facts) -> Option<Warning> {
        let counts = facts.state.measure().budget.window;
        let is_asked = facts.state.model(facts.state.path()).as_ref() == Some(model);
        if !is_asked || limit >= counts || !self.is_news(NoticeCode::WindowDoubted, model, limit) {
            return None;
        }
        Some(Warning::new(
            NoticeCode::WindowDoubted,
            "A model refuses a request for a limit below one that it took",
            format!(
                "A refusal states a limit of {limit} tokens for {model}, which took a request of {accepted} tokens before. Its \
                 window is {counts} tokens here as before. Where the server has a smaller window now, set contextWindow of \
                 the model to {limit}, and call models/forget for the sessions without such a setting."
            ),
        ))
    }

    /// Whether the client did not get this notice about a window yet.
    fn is_news(&mut self, code: NoticeCode, model: &ModelRef, window: u64) -> bool {
        self.told.insert((code, model.clone(), window))
    }
}

/// The lessons of an answer that was appended: the window that its refusal states. Where it states none and the window is a
/// default, the size of the context that was refused bounds it for this session.
fn of_answer(answer: &Entry, facts: &Facts) -> Vec<Lesson> {
    let refused = || {
        let outline = answer.outline().filter(|outline| outline.failed)?;
        let error = answer.message_json().and_then(message::error_of)?;
        let Meaning::Overflow(refusal) = overflow::meaning(None, &error) else { return None };
        let learns = facts.state.settings().settings.tokens.learn_window;
        Some((model_of(outline, facts)?, refusal)).filter(|_| learns)
    };
    let Some((model, refusal)) = refused() else { return Vec::new() };
    match refusal.limit {
        Some(window) if is_about_this_context(&model, refusal, facts) => {
            of_window(&model, window, WindowOrigin::Refusal, facts)
        }
        Some(_) => Vec::new(),
        None => refused_size(&model, facts).map(|size| Lesson::See(model, size)).into_iter().collect(),
    }
}

/// The lessons of a window of a model, for all sessions. A model that took a larger request has a larger window. Where another
/// session made that request, a limit counts in this session alone.
pub(in crate::session::core) fn of_window(
    model: &ModelRef,
    window: u64,
    origin: WindowOrigin,
    facts: &Facts,
) -> Vec<Lesson> {
    let larger = |accepted: &u64| *accepted > window;
    let server = Server::of(&facts.state.settings().settings, model);
    // A server that cuts prompts silently answers any context.
    let answered = facts.contexts.largest_answered(model).filter(|_| origin == WindowOrigin::Refusal);
    let here = facts.state.largest_believed(model).max(answered).filter(larger);
    let elsewhere = facts.state.learned.accepted(&server).filter(larger);
    let doubt = |accepted| Lesson::Doubt { model: model.clone(), limit: window, accepted };
    match (origin, here, elsewhere) {
        (WindowOrigin::Refusal, Some(accepted), _) => vec![doubt(accepted)],
        (WindowOrigin::Saturation, Some(_), _) => Vec::new(),
        (WindowOrigin::Refusal, None, Some(accepted)) => vec![Lesson::See(model.clone(), window), doubt(accepted)],
        (WindowOrigin::Saturation, None, _) | (WindowOrigin::Refusal, None, None) => {
            let row = LearnedWindow::new(server, window, origin, facts.wall, &facts.state.id);
            vec![Lesson::Teach(Change::Learned(row))]
        }
    }
}

/// The lesson of a request that a model took, in tokens. Smaller windows of it are forgotten in all sessions, and not learned
/// again.
pub(in crate::session::core) fn of_accepted(model: &ModelRef, tokens: u64, facts: &Facts) -> Vec<Lesson> {
    let server = Server::of(&facts.state.settings().settings, model);
    vec![Lesson::Teach(Change::Accepted(server, tokens))]
}

/// The lesson of the windows that all sessions have. Where the session's model took a larger request here, a smaller window
/// that another session was told is wrong.
fn of_sessions(facts: &Facts) -> Vec<Lesson> {
    let settings = &facts.state.settings().settings;
    let Some(model) = facts.state.model(facts.state.path()) else { return Vec::new() };
    let Some(accepted) = facts.state.largest_believed(&model) else { return Vec::new() };
    match facts.state.learned.rows_of(settings, &model).any(|row| row.context_window < accepted) {
        true => of_accepted(&model, accepted, facts),
        false => Vec::new(),
    }
}

/// The model that an answer belongs to: the one that it names, else the session's.
pub(in crate::session::core) fn model_of(answer: &Outline, facts: &Facts) -> Option<ModelRef> {
    answer.model.clone().or_else(|| facts.state.model(facts.state.path()))
}

/// Whether the sizes of a refusal are about the context that was sent. The count of another request, a limit far above the
/// context, or a request within its limit teaches no window.
fn is_about_this_context(model: &ModelRef, refusal: Overflow, facts: &Facts) -> bool {
    let size = facts.state.measure().context_tokens;
    match (refusal.requested, refusal.limit) {
        (Some(requested), Some(limit)) if requested <= limit => false,
        // An overhead that nobody announced may be many times the messages. A context that this session made for a limit
        // is no second evidence for it.
        (_, Some(limit)) if size < evidence::SMALLEST_ESTIMATE => {
            let mut rows = facts.state.learned.rows_of(&facts.state.settings().settings, model);
            !rows.any(|row| row.context_window == limit && row.session.as_ref() == Some(&facts.state.id))
        }
        (Some(requested), _) => !overflow::is_far_off(requested, size),
        (None, Some(limit)) => limit <= size.saturating_mul(3),
        (None, None) => false,
    }
}

fn limited(facts: &Facts) -> Option<Limited> {
    let settings = &facts.state.settings().settings;
    let model = facts.state.model(facts.state.path())?;
    let named = models::named_window(settings, Some(&model))?;
    let learned = facts.state.learned.row(settings, &model)?;
    let window = models::window(settings, facts.state.learned.taught(settings, &model), Some(&model));
    (window.source == SaidBy::Learned).then(|| Limited { learned: learned.clone(), named })
}

/// The size of the context that a model has just refused, if its window is not known better: from no source, or from
/// an earlier refusal of a size that is a little larger.
fn refused_size(model: &ModelRef, facts: &Facts) -> Option<u64> {
    /// The least part of a learned window, in percent, at which a refusal corrects the window.
    const NEARLY_FULL: u64 = 80;
    let state = facts.state;
    if state.model(state.path()).as_ref() != Some(model) {
        return None;
    }
    let window = models::window(&state.settings().settings, state.taught(Some(model)), Some(model));
    let size = state.measure().context_tokens;
    let corrects = match window.source {
        SaidBy::Default => size < window.tokens,
        SaidBy::Learned => size < window.tokens && size >= window.tokens / 100 * NEARLY_FULL,
        SaidBy::Setting | SaidBy::Catalog => false,
    };
    corrects.then_some(size)
}

impl Base {
    /// Learns from entries that were appended.
    pub fn learn_from(&mut self, entries: &[Arc<Entry>]) {
        for entry in entries {
            self.learn(of_answer(entry, &self.facts()));
        }
    }

    /// Takes the windows that all sessions have.
    pub fn take_windows(&mut self, learned: Learned) {
        self.state.learned.update(learned);
        if !self.state.history().is_asleep() {
            self.learn(of_sessions(&self.facts()));
            self.report_window();
        }
    }

    /// Performs lessons, each with the facts after the one before.
    pub(in crate::session::core) fn learn(&mut self, lessons: Vec<Lesson>) {
        for lesson in lessons {
            match lesson {
                Lesson::Teach(change) => {
                    if self.state.learned.apply(&change) {
                        self.effects.push(Effect::Teach(change));
                    }
                }
                Lesson::See(model, window) => self.state.learned.see(&model, window),
                Lesson::Doubt { model, limit, accepted } => {
                    let Self { learning, state, contexts, now, stamps, effects, .. } = self;
                    let facts = Facts::of(state, contexts, *now, stamps);
                    if let Some(notice) = learning.notice_of_doubt(&model, limit, accepted, &facts) {
                        effects.emit(About::default(), notice.into());
                    }
                }
            }
        }
    }

    /// Reports a learned window that is new to the client.
    pub fn report_window(&mut self) {
        let Self { learning, state, contexts, now, stamps, effects, .. } = self;
        let facts = Facts::of(state, contexts, *now, stamps);
        if let Some(notice) = learning.notice_of_window(&facts) {
            effects.emit(About::default(), notice.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        conversation::evidence,
        models::{
            ModelRef, SaidBy,
            learned::{Change, Learned},
        },
        protocol::{SessionConfigure, events::Event},
        session::{
            core::{
                Input,
                held::{Held, events, log_work},
            },
            effects::Effect,
            state::SessionData,
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
    fn learned_from(held: &mut Held, number: u64, answers: &[Value]) -> Vec<(String, u64)> {
        let learned = |effect: &Effect| match effect {
            Effect::Teach(Change::Learned(row)) => Some((row.model.to_string(), row.context_window)),
            _ => None,
        };
        held.write_with(number, json!({ "messages": answers })).iter().filter_map(learned).collect()
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
        held.core.state().taught(Some(&named(model))).seen
    }

    /// The windows of other sessions: one that was taught once.
    fn windows(model: &str, window: u64) -> Learned {
        serde_json::from_value(json!({ model: window })).expect("windows")
    }

    fn named(model: &str) -> ModelRef {
        ModelRef::parse(model).expect("a model")
    }

    #[test]
    fn the_limit_of_an_error_is_the_window_of_the_model_that_failed() {
        let learned = |settings: Value, answers: &[Value]| learned_from(&mut session(&settings), 1, answers);
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

    /// Settings that name a window of `p/m`.
    fn naming(window: u64) -> Value {
        json!({"models": [{"provider": "p", "id": "m", "contextWindow": window}]})
    }

    /// The notices about windows.
    fn told(held: &mut Held, number: u64, answers: &[Value]) -> Vec<String> {
        held.append_with(number, json!({ "messages": answers }));
        let work = log_work(held.turn()).expect("a write");
        about_windows(&held.back(work))
    }

    fn about_windows(effects: &[Effect]) -> Vec<String> {
        let detail = |event: &Event| match event {
            Event::Notice { detail: Some(detail), .. } if detail.contains("tokens here instead of") => {
                Some(detail.clone())
            }
            _ => None,
        };
        events(effects).filter_map(detail).collect()
    }

    #[test]
    fn a_limit_below_a_named_window_counts_where_it_was_told_and_the_session_says_so_once() {
        let mut held = session(&naming(100_000));
        let notices = told(&mut held, 1, &[refused(STATES)]);
        assert_eq!(window(&held), (8_000, SaidBy::Learned));
        assert!(
            notices.len() == 1 && notices[0].contains("8000 tokens here instead of 100000, because a refusal"),
            "{notices:?}"
        );
        let learned = held.core.state().learned.clone();
        assert_eq!(told(&mut held, 2, &[json!({"role": "assistant", "content": [], "timestamp": 1})]), [""; 0]);
        // Another session goes on with the window that it was given, until a second refusal.
        let mut other = session(&naming(100_000));
        let taken = |held: &mut Held, learned: &Learned| {
            let shared: Learned = learned.all().cloned().collect();
            about_windows(&held.feed(Input::Windows(shared)))
        };
        let mut elsewhere = learned.all().next().expect("a row").clone();
        elsewhere.session = Some("elsewhere".into());
        let once: Learned = [elsewhere.clone()].into_iter().collect();
        assert_eq!((taken(&mut other, &once), window(&other)), (Vec::new(), (100_000, SaidBy::Setting)));
        elsewhere.refusals = 2;
        assert_eq!(taken(&mut other, &[elsewhere].into_iter().collect()).len(), 1);
        assert_eq!(window(&other), (8_000, SaidBy::Learned));
        // Without a named window one refusal is enough, and says nothing new about a promise.
        let mut unnamed = session(&json!({}));
        assert_eq!((taken(&mut unnamed, &once), window(&unnamed)), (Vec::new(), (8_000, SaidBy::Learned)));
    }

    #[test]
    fn a_larger_window_that_the_client_names_later_does_not_count_and_the_client_is_told() {
        let mut held = session(&json!({}));
        assert_eq!(told(&mut held, 1, &[refused(STATES)]), [""; 0], "nobody named a window");
        held.edit::<SessionConfigure>(2, json!({"contextWindow": 200_000}));
        let work = log_work(held.turn()).expect("a write");
        let notices = about_windows(&held.back(work));
        assert_eq!(window(&held), (8_000, SaidBy::Learned));
        assert!(notices.len() == 1 && notices[0].contains("instead of 200000"), "{notices:?}");
        held.edit::<SessionConfigure>(3, json!({"contextWindow": 7_000}));
        let work = log_work(held.turn()).expect("a write");
        assert_eq!((about_windows(&held.back(work)), window(&held).0), (Vec::new(), 7_000), "a smaller one counts");
    }

    /// Two turns of 4,000 tokens each, whose answers report their requests as they are, so that the second one is believed.
    /// Returns its effects and its prompt.
    fn takes(held: &mut Held, number: u64, model: &Value) -> (Vec<Effect>, u64) {
        let mut newest = (Vec::new(), 0);
        for number in [number, number + 1] {
            let user = json!({"role": "user", "content": "word ".repeat(3_200), "timestamp": 1});
            held.append_with(number + 50, json!({ "messages": [user] }));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
            let prompt = held.plain_request();
            let usage =
                json!({"input": prompt, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": prompt + 1});
            let mut answer = json!({"role": "assistant", "content": [{"type": "text", "text": "Yes."}],
                "stopReason": "stop", "usage": usage, "timestamp": 1});
            for (name, value) in model.as_object().expect("a model") {
                answer[name] = value.clone();
            }
            held.append_with(number, json!({ "messages": [answer] }));
            let work = log_work(held.turn()).expect("a write");
            newest = (held.back(work), prompt);
        }
        newest
    }

    #[test]
    fn a_limit_below_a_prompt_that_the_model_took_teaches_nothing() {
        for (model, expected) in [("m", 0), ("other", 1)] {
            let mut held = session(&json!({}));
            let (_, prompt) = takes(&mut held, 1, &json!({"provider": "p", "model": model}));
            assert!(prompt > 8_000);
            let mut refusal = refused(STATES);
            (refusal["provider"], refusal["model"]) = ("p".into(), "m".into());
            assert_eq!(learned_from(&mut held, 3, &[refusal]).len(), expected, "{model} took it");
        }
    }

    #[test]
    fn a_size_far_off_the_context_teaches_nothing() {
        for (text, learns) in [
            ("prompt is too long: 9000 tokens > 8000 maximum", true),
            ("prompt is too long: 90000 tokens > 8000 maximum", false),
            ("prompt is too long: 1500 tokens > 1400 maximum", false),
            ("prompt is too long: 8000 tokens > 8000 maximum", false),
            ("This model's maximum context length is 8000 tokens.", true),
            ("This model's maximum context length is 80000 tokens.", false),
        ] {
            let learned = learned_from(&mut session(&json!({})), 1, &[refused(text)]);
            assert_eq!(!learned.is_empty(), learns, "{text}");
        }
    }

    #[test]
    fn a_small_context_is_no_second_evidence_for_a_window() {
        let one = json!({"message": {"role": "user", "content": "Go on.", "timestamp": 1}});
        let mut held = Held::of(&[crate::session::core::held::line("e0", None, "message", one)], u64::MAX);
        set(&mut held, &naming(100_000));
        assert!(size(&held) < evidence::SMALLEST_ESTIMATE);
        assert_eq!(
            learned_from(&mut held, 1, &[refused(STATES)]),
            [("p/m".to_owned(), 8_000)],
            "unannounced instructions"
        );
        assert_eq!(learned_from(&mut held, 2, &[refused(STATES)]), []);
        let other = "prompt is too long: 9000 tokens > 7000 maximum";
        assert_eq!(learned_from(&mut held, 3, &[refused(other)]), [("p/m".to_owned(), 7_000)]);
    }

    /// Disproofs that are told to the other sessions: models and tokens.
    fn disproved(effects: &[Effect]) -> Vec<(String, u64)> {
        let told = |effect: &Effect| match effect {
            Effect::Teach(Change::Accepted(server, tokens)) => Some((server.model.to_string(), *tokens)),
            _ => None,
        };
        effects.iter().filter_map(told).collect()
    }

    #[test]
    fn a_larger_prompt_disproves_a_learned_window_for_all_sessions() {
        let mut held = session(&json!({}));
        learned_from(&mut held, 1, &[refused(STATES)]);
        assert_eq!(window(&held).1, SaidBy::Learned);
        let (effects, prompt) = takes(&mut held, 2, &json!({"provider": "p", "model": "m"}));
        assert_eq!(disproved(&effects), [("p/m".to_owned(), prompt)]);
        assert_eq!(window(&held).1, SaidBy::Default);
    }

    #[test]
    fn a_report_that_is_not_believed_disproves_nothing() {
        let mut held = session(&json!({}));
        learned_from(&mut held, 1, &[refused(STATES)]);
        let usage = json!({"input": 900_000, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 900_001});
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "stopReason": "stop",
            "usage": usage, "timestamp": 1});
        held.append_with(2, json!({ "messages": [answer] }));
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(disproved(&held.back(work)), []);
        assert_eq!(window(&held).1, SaidBy::Learned);
    }

    #[test]
    fn a_session_whose_model_took_more_disproves_the_window_of_another_session() {
        let mut held = session(&json!({}));
        let (_, prompt) = takes(&mut held, 1, &json!({"provider": "p", "model": "m"}));
        assert_eq!(disproved(&held.feed(Input::Windows(windows("p/m", prompt)))), []);
        assert_eq!(window(&held), (prompt, SaidBy::Learned));
        let effects = held.feed(Input::Windows(windows("p/m", prompt - 1)));
        assert_eq!(disproved(&effects), [("p/m".to_owned(), prompt)]);
        assert_eq!(window(&held).1, SaidBy::Default);
    }

    #[test]
    fn what_is_forgotten_is_forgotten_in_a_session_that_saw_a_bound() {
        let mut held = session(&json!({}));
        learned_from(&mut held, 1, &[refused(SILENT)]);
        let mut shared = Learned::default();
        held.feed(Input::Windows(shared.clone()));
        assert!(bound(&held, "p/m").is_some());
        shared.apply(&Change::Forgotten(named("p/m")));
        held.feed(Input::Windows(shared));
        assert_eq!(bound(&held, "p/m"), None);
    }

    #[test]
    fn a_refusal_without_a_limit_bounds_a_window_that_nobody_states() {
        let mut held = session(&json!({}));
        let size = size(&held);
        learned_from(&mut held, 1, &[refused(SILENT)]);
        let (bounded, source) = window(&held);
        assert!(bounded >= size && bounded < size + 100, "{bounded} of {size}");
        assert_eq!(source, SaidBy::Learned);
    }

    #[test]
    fn a_refusal_without_a_limit_leaves_a_window_that_is_known_and_those_of_other_models() {
        let stated = json!({"models": [{"provider": "p", "id": "m", "contextWindow": 100_000}]});
        for (settings, model) in [(stated, "p/m"), (json!({}), "openai/gpt-4o")] {
            let mut held = Held::given(SessionData::default(), named(model));
            set(&mut held, &settings);
            learned_from(&mut held, 1, &[refused(SILENT)]);
            assert_eq!(bound(&held, model), None, "{model}");
        }
        let mut held = Held::given(SessionData::default(), named("p/m"));
        set(&mut held, &json!({}));
        let mut other = refused(SILENT);
        (other["provider"], other["model"]) = ("q".into(), "n".into());
        learned_from(&mut held, 1, &[other]);
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
        learned_from(&mut held, 1, &[refused(SILENT)]);
        assert_eq!(bound(&held, "p/m"), None);
    }

    #[test]
    fn a_refusal_corrects_a_learned_window_of_which_four_fifths_were_full() {
        let refused_at = {
            let mut held = session(&json!({}));
            learned_from(&mut held, 1, &[refused(SILENT)]);
            bound(&held, "p/m").expect("a bound")
        };
        let hundredth = refused_at / 80;
        for (window, corrects) in [(100 * hundredth, true), (100 * (hundredth + 1), false), (refused_at, false)] {
            let mut held = session(&json!({}));
            held.feed(Input::Windows(windows("p/m", window)));
            learned_from(&mut held, 1, &[refused(SILENT)]);
            assert_eq!(bound(&held, "p/m"), corrects.then_some(refused_at), "of {window}");
        }
    }

    #[test]
    fn the_windows_of_other_sessions_are_taken_and_leave_the_bound_of_this_one() {
        let mut held = session(&json!({}));
        learned_from(&mut held, 1, &[refused(SILENT)]);
        let bounded = window(&held);
        held.feed(Input::Windows(windows("q/n", 9_000)));
        assert_eq!(window(&held), bounded);
        held.core.base.state.give(SessionData::default(), Some(named("q/n"))).expect("no settings");
        assert_eq!(window(&held), (9_000, SaidBy::Learned));
    }
}
