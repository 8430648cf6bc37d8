//! `session/context`: the messages, or the request body, that a model may be sent now.

mod body;

use crate::{
    compaction::ladder::Floor,
    conversation::{context, path::Path},
    log::{blobs::Reading, sealed::Blocking},
    models::ModelRef,
    protocol::{
        SessionContext,
        errors::Failure,
        types::{ContextParams, MessageFormat, Usage},
    },
    session::{
        core::{
            Core,
            base::Base,
            command::{Command, SessionMethod},
            parts::{
                contexts::Identity,
                waiting_contexts::{Starts, must_fit},
            },
            standing::Standing,
        },
        effects::{Answer, Ticket},
        state::View,
    },
    wire::transport::Piece,
};
use serde_json::Value;
use std::convert::Infallible;

impl SessionMethod for SessionContext {
    fn handle(core: &mut Core, params: ContextParams, ticket: Ticket) {
        if ticket.cancelled() {
            return ticket.fail(&Failure::Cancelled);
        }
        core.context(params, ticket, Starts::Maintenance);
    }
}

/// The command for a request that waits for its turn again.
pub(in crate::session::core) fn command(params: ContextParams) -> Command {
    Command::call::<SessionContext>(params)
}

/// The most entries of a context that the session builds by itself, in a few milliseconds. A larger one is built beside it, where
/// the request can be cancelled.
const MOST_AT_ONCE: usize = 1_000;

/// The way to the answer of a request for a context.
pub(in crate::session::core) enum Way {
    /// The context as the session stands.
    Answer,
    /// The context after the work that runs, or after the counts that decide.
    Hold,
    /// The context after maintenance that starts now.
    Maintain,
    /// No request with this context fits the window, and no maintenance may run.
    TooLarge(Floor),
}

/// Refuses a context that is larger than its window.
fn within_window(view: &View, path: &Path) -> Result<(), Failure> {
    let why = || "The session compacts itself at its leaf alone; ask for the context of the leaf.".to_owned();
    view.measure(path).too_large(path).map_or(Ok(()), |floor| Err(Failure::OverWindow { floor, why: why() }))
}

impl Standing<'_> {
    /// A request that waits, or that is in a provider's format, gets a context that fits a window that is known.
    pub(in crate::session::core) fn way(&self, params: &ContextParams, starts: Starts) -> Way {
        let (waits, runs) = (params.wait == Some(true), self.core.base.work.is_in_front());
        if waits && runs
            || must_fit(params)
                && (self.core.recoveries.hold_contexts(&self.core.base)
                    || self.core.upkeep.switches.hold_contexts(self.core.base.work.operation().map(|it| &it.kind)))
        {
            return Way::Hold;
        }
        let leaf = params.leaf_entry_id.as_ref();
        let at_leaf = leaf.is_none_or(|leaf| self.core.base.state.path().visible_leaf() == Some(leaf));
        if !must_fit(params) || !at_leaf {
            return Way::Answer;
        }
        if self.core.recoveries.failed_at(self.core.base.state.path().visible_leaf()).is_some() {
            return Way::TooLarge(self.core.base.state.measure().floor(self.core.base.state.path()));
        }
        let fullness = self.core.base.state.measure();
        match fullness.too_large(self.core.base.state.path()) {
            None if waits
                && starts == Starts::Maintenance
                && self.may_maintain()
                && self.decision().is_due_before_a_request() =>
            {
                // An estimate alone starts nothing.
                if self.core.base.counting.runs() { Way::Hold } else { Way::Maintain }
            }
            None => Way::Answer,
            Some(_) if runs => Way::Hold,
            Some(_) if self.core.base.counting.runs() && self.core.base.ending.goes_on() => Way::Hold,
            Some(_) if starts == Starts::Maintenance && self.maintenance_is_due() => Way::Maintain,
            Some(floor) => Way::TooLarge(floor),
        }
    }

    /// The way to the context for the next request of a turn.
    pub(in crate::session::core) fn way_of_turn(&self) -> Way {
        let session = self.core.base.state.id.clone();
        let params = ContextParams { session_id: session, leaf_entry_id: None, format: None, wait: Some(true) };
        match self.maintenance_is_due() {
            true => Way::Maintain,
            false => self.way(&params, Starts::Maintenance),
        }
    }

    /// Whether a context that waits is over the window or leaves too little of it for the answer, and more maintenance makes
    /// it smaller.
    pub(in crate::session::core) fn waiting_context_needs_more(&self) -> bool {
        if !self.core.base.waiting.ask_for_maintenance()
            || self.core.recoveries.failed_at(self.core.base.state.path().visible_leaf()).is_some()
        {
            return false;
        }
        match self.core.base.state.measure().too_large(self.core.base.state.path()) {
            Some(_) => self.core.base.counting.runs() || self.decision().is_due(),
            None => self.core.base.waiting.ask_for_room() && self.decision().is_due_before_a_request(),
        }
    }
}

/// Answers with the context of any entry.
pub(in crate::session::core) fn answer(base: &mut Base, params: ContextParams, ticket: Ticket) {
    // Lines of ours right after an entry belong to it, and those after an earlier entry may stand on another branch.
    let is_here = params.leaf_entry_id.as_ref().is_none_or(|leaf| base.state.visible_leaf().as_ref() == Some(leaf));
    let here = is_here.then(|| base.state.path().clone());
    if params.leaf_entry_id.is_none() {
        base.contexts.give(Identity::at_leaf(&base.state), must_fit(&params));
    }
    let api = params.format.and_then(MessageFormat::api);
    // No maintenance makes the context of another leaf smaller.
    let fits = match params.leaf_entry_id {
        Some(_) if must_fit(&params) => within_window,
        _ => |_: &View, _: &Path| Ok(()),
    };
    if let Some(path) = here {
        let view = match params.leaf_entry_id {
            Some(_) => base.state.view().of(&path),
            None => base.state.view(),
        };
        if let Err(failure) = fits(&view, &path) {
            return ticket.fail(&failure);
        }
        return match api {
            None if view.blobs().is_none() && path.len() - path.first_kept() <= MOST_AT_ONCE => {
                let Ok(pieces) = pieces(&view, &path, Reading::none(), &|| Ok::<(), Infallible>(()));
                ticket.answer(Answer::Pieces(pieces));
            }
            None => read_context(base, ticket, &view.clone(), move |blocking| messages(&view, &path, blocking)),
            Some(api) => {
                let session = base.state.id.clone();
                let outside = view.clone();
                let read = move |blocking: &Blocking| body::answer(&view, &path, &session, api, blocking);
                read_context(base, ticket, &outside, read);
            }
        };
    }
    let (Some(library), Some(leaf)) = (base.state.history().library(), params.leaf_entry_id.clone()) else {
        return base.await_index(command(params), ticket);
    };
    let (view, session, counts) = (base.state.view(), base.state.id.clone(), must_fit(&params));
    read_context(base, ticket, &view.clone(), move |blocking| match (library.path_at(&leaf, blocking), api) {
        (Ok(Some(path)), api) => {
            let view = view.of(&path);
            // The decision whether it fits needs counts.
            let view = if counts { view } else { view.at_a_glance(&path) };
            match (fits(&view, &path), api) {
                (Err(failure), _) => Answer::Failed(failure),
                (Ok(()), None) => messages(&view, &path, blocking),
                (Ok(()), Some(api)) => body::answer(&view, &path, &session, api, blocking),
            }
        }
        (Ok(None), _) => Answer::Failed(Failure::no_entry(&leaf)),
        (Err(error), _) => Answer::Failed(error.into()),
    });
}

/// Makes a context beside the session. Images are read from files of their own.
fn read_context(base: &mut Base, ticket: Ticket, view: &View, read: impl FnOnce(&Blocking) -> Answer + Send + 'static) {
    match view.blobs() {
        None => base.reads.start(ticket, read),
        Some(_) => base.reads.start_outside(ticket, move |_, blocking| read(blocking)),
    }
}

/// The result in the format `messages`.
struct Context {
    context: context::Context,
    system: Option<Value>,
    usage: Usage,
    model: Option<ModelRef>,
    id: Identity,
    max_output: Option<u64>,
}

/// Answers with the context of a path in the format `messages`.
fn messages(view: &View, path: &Path, blocking: &Blocking) -> Answer {
    pieces(view, path, Reading::of(view.blobs(), blocking), &|| blocking.go_on())
        .map_or_else(|error| Answer::Failed(error.into()), Answer::Pieces)
}

/// The same as pieces of one line. `go_on` is asked before each message.
fn pieces<E>(
    view: &View,
    path: &Path,
    images: Reading<'_>,
    go_on: &impl Fn() -> Result<(), E>,
) -> Result<Vec<Piece>, E> {
    Context::new(view, path, go_on)?.pieces(images, go_on)
}

impl Context {
    fn new<E>(view: &View, path: &Path, go_on: &impl Fn() -> Result<(), E>) -> Result<Self, E> {
        let context = context::build_while(path, view.prompts(), go_on)?;
        let usage = Usage::of(&view.measure(path), path);
        let system = view.instructions().message().cloned();
        let model = view.model(path);
        let max_output = view.max_output(path, &usage, model.as_ref()).tokens;
        let id = Identity::of(path, model.clone());
        Ok(Self { context, system, usage, model, id, max_output })
    }

    /// The JSON of a `ContextAnswer`. The messages are JSON already and may have a hundred megabytes, so they are not
    /// copied.
    fn pieces<E>(&self, mut images: Reading<'_>, go_on: &impl Fn() -> Result<(), E>) -> Result<Vec<Piece>, E> {
        let messages = self.context.messages();
        let mut pieces = Vec::with_capacity(2 * messages.len() + 2);
        let mut before = "{\"messages\":[".to_owned();
        if let Some(system) = &self.system {
            before.push_str(&format!("{system}{}", if messages.is_empty() { "" } else { "," }));
        }
        for message in messages {
            go_on()?;
            pieces.push(Piece::Text(std::mem::replace(&mut before, ",".to_owned())));
            pieces.push(match message.part() {
                Some((line, part)) if !images.concerns(&line[part.clone()]) => Piece::Part(line, part),
                _ => Piece::Text(images.resolve(message.json()).into_owned()),
            });
        }
        // No single entry says all of the system prompt.
        let system = self.system.iter().map(|_| None);
        let entries: Vec<_> = system.chain(messages.iter().map(context::ContextMessage::entry_shown)).collect();
        let rest = serde_json::json!({
            "entryIds": entries,
            "contextId": self.id.to_string(),
            "usage": self.usage,
            "compactionEntryId": self.context.compaction(),
            "model": self.model,
            "maxOutputTokens": self.max_output,
        });
        let end = if messages.is_empty() { before } else { String::new() };
        pieces.push(Piece::Text(format!("{end}],{}", &rest.to_string()[1..])));
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::OperationId,
        protocol::{
            SessionClose, SessionConfigure, SessionReference, SessionStatus,
            events::{Event, Reason},
            types::Outcome,
        },
        session::{
            core::{
                Input, Over,
                command::CommandMethod as _,
                held::{Held, answer, answered, events, job, log_work, outcomes, started},
                parts::queue,
            },
            effects::{Effect, Read},
            jobs::{DraftOrder, Job},
            source,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::json;
    use std::sync::Arc;

    /// A session of 40 messages whose model has this window.
    fn session(window: Option<u64>, compaction: &Value) -> Held {
        let mut held = Held::new();
        set(&mut held, window, compaction, "chars");
        held
    }

    fn set(held: &mut Held, window: Option<u64>, compaction: &Value, estimator: &str) {
        let models = json!([{"provider": "p", "id": "m", "contextWindow": window}]);
        let settings = json!({"tokens": {"estimator": estimator}, "compaction": compaction, "defaultModel": "p/m",
            "models": models});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    }

    /// A session whose conversation has more tokens than its window.
    fn over_window(compaction: &Value) -> Held {
        session(Some(3_000), compaction)
    }

    fn off() -> Value {
        json!({"enabled": false})
    }

    fn ask(held: &mut Held, number: u64, params: Value) -> Vec<Effect> {
        held.call::<SessionContext>(number, params);
        held.turn()
    }

    /// Whether a request was answered, or its answer is being made.
    fn is_answered(effects: &[Effect], number: u64) -> bool {
        let read = effects.iter().any(|effect| matches!(effect, Effect::Read(it, _) if *it == number));
        read || answered(effects).contains(&number)
    }

    fn is_refused(effects: &[Effect], number: u64) -> bool {
        answer(effects, number) == Some(json!("context_overflow"))
    }

    fn starts_compaction(effects: &[Effect]) -> bool {
        events(effects).any(|event| matches!(event, Event::CompactionStart { .. }))
    }

    fn fail(held: &mut Held, order: DraftOrder) -> Vec<Effect> {
        held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))))
    }

    #[test]
    fn a_context_of_the_size_of_its_window_fits() {
        let size = session(None, &off()).core.base.state.measure().context_tokens;
        for (window, refused) in [(size, false), (size - 1, true)] {
            let effects = ask(&mut session(Some(window), &off()), 1, json!({"wait": true}));
            assert!(is_answered(&effects, 1));
            assert_eq!(is_refused(&effects, 1), refused, "{window}");
        }
    }

    #[test]
    fn a_context_over_a_window_that_nobody_stated_is_not_refused() {
        let mut held = session(None, &off());
        let text = "word ".repeat(110_000);
        held.append_with(1, json!({"messages": [{"role": "user", "content": text, "timestamp": 1}]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let measure = held.core.base.state.measure();
        assert!(measure.context_tokens > measure.budget.window);
        let effects = ask(&mut held, 2, json!({"wait": true}));
        assert!(is_answered(&effects, 2) && !is_refused(&effects, 2));
    }

    #[test]
    fn only_a_request_that_waits_or_is_for_a_provider_is_refused() {
        for (params, refused) in
            [(json!({}), false), (json!({"wait": true}), true), (json!({"format": "anthropic"}), true)]
        {
            let effects = ask(&mut over_window(&off()), 1, params.clone());
            assert!(is_answered(&effects, 1));
            assert_eq!(is_refused(&effects, 1), refused, "{params}");
        }
    }

    #[test]
    fn a_refusal_says_why_no_compaction_helps() {
        let effects = ask(&mut over_window(&off()), 1, json!({"wait": true}));
        let refusal = effects.iter().find_map(|effect| match effect {
            Effect::Answer(1, Answer::Failed(failure)) => Some(failure.to_string()),
            _ => None,
        });
        let refusal = refusal.expect("a refusal");
        assert!(refusal.contains("compaction.enabled"), "{refusal}");
    }

    #[test]
    fn the_leaf_is_compacted_and_another_entry_is_not() {
        for (leaf, wait, compacts, refused) in [
            ("e39", true, true, false),
            ("e38", true, false, true),
            ("e38", false, false, false),
            ("e5", true, false, false),
        ] {
            let mut held = over_window(&json!({}));
            let effects = ask(&mut held, 1, json!({"leafEntryId": leaf, "wait": wait}));
            assert_eq!(starts_compaction(&effects), compacts, "{leaf}");
            assert_eq!(is_answered(&effects, 1), !compacts, "{leaf}");
            // The path to another entry is read first.
            let failed = made(effects, 1).is_some_and(|answer| matches!(answer, Answer::Failed(_)));
            assert_eq!(failed, refused, "{leaf}");
        }
    }

    #[test]
    fn a_context_starts_the_compaction_that_is_due_behind_one_by_hand_that_failed_and_no_other_behind_it() {
        let mut held = over_window(&json!({}));
        let order = held.begin_draft(1);
        assert!(!is_answered(&ask(&mut held, 2, json!({"format": "anthropic"})), 2));
        let effects = fail(&mut held, order);
        assert_eq!((outcomes(&effects), started(&effects)), (vec![Outcome::Failed], vec![Reason::Threshold]));
        assert!(!is_answered(&effects, 2));
        let Job::Plan(order) = job(effects) else { unreachable!("it is planned") };
        let effects = held.feed(Input::Planned(order.id, Err(Failure::Internal("it failed".to_owned()))));
        assert!(is_refused(&effects, 2));
        assert!(!starts_compaction(&effects));
    }

    #[test]
    fn a_context_behind_a_compaction_by_hand_that_was_cancelled_starts_none() {
        for begins in [true, false] {
            let mut held = over_window(&json!({}));
            if begins {
                held.begin_draft(1);
            } else {
                held.compact(1);
                held.turn();
            }
            assert!(!is_answered(&ask(&mut held, 2, json!({"format": "anthropic"})), 2));
            let effects = held.cancel(3);
            assert!(is_refused(&effects, 2), "{begins}");
            assert_eq!(outcomes(&effects), [Outcome::Cancelled], "{begins}");
        }
    }

    /// A session in which a reference was asked for with number 1. Messages that came meanwhile are over the window, and a
    /// context waits with number 2. `begins`: the source of the reference was found. Returns the id of the reference.
    fn referring(begins: bool) -> (Held, OperationId) {
        let mut held = session(Some(16_000), &json!({}));
        let params = json!({"sessionId": "held", "fromSessionId": "other", "question": "Which port?", "wait": true});
        held.send(1, SessionReference::command(serde_json::from_value(params).expect("params")));
        let Job::Source(order) = job(held.turn()) else { unreachable!("the source is looked for first") };
        if begins {
            let source = source::Source { id: "other".into(), file: None, path: Path::of(&[]) };
            held.feed(Input::Sourced(order.id.clone(), Ok(source)));
        }
        let text = json!({"role": "user", "content": "a word ".repeat(12_000), "timestamp": 1});
        held.append_with(4, json!({ "messages": [text] }));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        assert!(!is_answered(&ask(&mut held, 2, json!({"format": "anthropic"})), 2));
        (held, order.id)
    }

    #[test]
    fn a_context_starts_the_compaction_that_is_due_after_a_transfer_without_a_result() {
        let missing = || Failure::Internal("it is missing".to_owned());
        for (name, begins, cancels) in
            [("without a source", false, false), ("failed", true, false), ("cancelled", true, true)]
        {
            let (mut held, id) = referring(begins);
            let effects = match (cancels, begins) {
                (true, _) => held.cancel(3),
                (false, true) => held.feed(Input::Transferred(id, Err(missing()))),
                (false, false) => held.feed(Input::Sourced(id, Err(missing()))),
            };
            assert_eq!(started(&effects), [Reason::Threshold], "{name}");
            assert!(!is_answered(&effects, 2), "{name}");
        }
    }

    #[test]
    fn a_context_starts_no_compaction_in_a_session_that_ends() {
        for closes in [true, false] {
            let (mut held, _) = referring(true);
            let effects = if closes {
                held.send(
                    3,
                    SessionClose::command(serde_json::from_value(json!({"sessionId": "held"})).expect("params")),
                );
                held.turn()
            } else {
                held.feed(Input::Stop)
            };
            assert!(is_answered(&effects, 2) && !starts_compaction(&effects), "{closes}");
            assert_eq!(held.core.over(), Over::Yes, "{closes}");
        }
    }

    /// A session over its window by an estimate, whose entries are being counted. A context waits with number 2.
    fn counting(compaction: &Value) -> Held {
        let mut held = Held::new();
        set(&mut held, Some(3_000), compaction, "auto");
        held.call::<SessionStatus>(1, json!({}));
        held.turn();
        assert!(!is_answered(&ask(&mut held, 2, json!({"wait": true})), 2));
        held.at.tokenizer = true;
        held
    }

    #[test]
    fn a_context_that_seems_too_large_waits_for_counts() {
        assert!(is_refused(&counting(&off()).feed(Input::Counted), 2));
        let effects = counting(&json!({})).feed(Input::Counted);
        assert!(!is_answered(&effects, 2) && starts_compaction(&effects), "maintenance is due by the counts");

        let mut held = counting(&off());
        held.feed(Input::Finish);
        assert!(is_refused(&ask(&mut held, 3, json!({"wait": true})), 3), "a session that ends waits for no counts");
    }

    #[test]
    fn a_context_starts_no_compaction_by_an_estimate() {
        let mut held_within = 0;
        for window in (2_000..8_000).step_by(250) {
            let mut held = Held::new();
            set(&mut held, Some(window), &json!({}), "auto");
            let effects = ask(&mut held, 2, json!({"wait": true}));
            assert!(held.core.base.counting.runs() && !starts_compaction(&effects), "{window}");
            let state = &held.core.base.state;
            let is_within = state.measure().too_large(state.path()).is_none();
            held_within += u32::from(is_within && !is_answered(&effects, 2));
        }
        assert!(held_within > 0, "some windows have room for the context, and not for the answer");
    }

    #[test]
    fn maintenance_for_a_context_starts_when_the_log_is_here() {
        let mut held = counting(&json!({}));
        held.edit::<crate::protocol::SessionLabel>(3, json!({"targetEntryId": "e1", "label": "a"}));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.feed(Input::Counted);
        assert!(!starts_compaction(&effects) && !is_answered(&effects, 2));
        held.back(work);
        assert!(starts_compaction(&held.turn()));
    }

    #[test]
    fn no_more_contexts_wait_than_a_queue_holds() {
        let mut held = session(None, &json!({}));
        held.begin_draft(1);
        let most = queue::FULL as u64;
        for number in 2..2 + most {
            assert!(!is_answered(&ask(&mut held, number, json!({"wait": true})), number));
        }
        assert_eq!(answer(&ask(&mut held, 2 + most, json!({"wait": true})), 2 + most), Some(json!("overloaded")));
    }

    #[test]
    fn a_request_for_a_context_that_was_cancelled_is_answered_so() {
        let mut held = session(None, &json!({}));
        held.append(1);
        let work = log_work(held.turn()).expect("a write");
        held.call::<SessionContext>(2, json!({}));
        held.feed(Input::RequestCancelled(2));
        held.back(work);
        assert_eq!(answer(&held.turn(), 2), Some(json!("request_cancelled")));
        // A waiting request is answered at once.
        assert!(matches!(
            job({
                held.compact(3);
                held.turn()
            }),
            Job::Plan(_)
        ));
        assert!(!is_answered(&ask(&mut held, 4, json!({"wait": true})), 4));
        assert_eq!(answer(&held.feed(Input::RequestCancelled(4)), 4), Some(json!("request_cancelled")));
    }

    /// The answer to a request for a context, which is made here where it is left to a read.
    fn made(effects: Vec<Effect>, number: u64) -> Option<Answer> {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Answer(of, answer) if of == number => Some(answer),
            Effect::Read(of, Read::Session(read)) if of == number => Some(read(&Blocking::is_allowed_here())),
            _ => None,
        })
    }

    /// Its text.
    fn result(effects: Vec<Effect>, number: u64) -> String {
        let Some(Answer::Pieces(pieces)) = made(effects, number) else {
            unreachable!("a context is answered in pieces")
        };
        pieces.iter().map(Piece::as_str).collect()
    }

    #[test]
    fn a_large_context_is_built_beside_the_session_and_a_stop_ends_that() {
        let mut held = session(None, &off());
        let mut messages = |count: usize| {
            let more = vec![json!({"role": "user", "content": "more", "timestamp": 1}); count];
            held.append_with(1, json!({ "messages": more }));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
            ask(&mut held, 2, json!({}))
        };
        let is_read = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Read(2, _)));
        assert!(!is_read(&messages(MOST_AT_ONCE - 40)));
        let effects = messages(1);
        assert!(is_read(&effects));
        assert_eq!(result(effects, 2).matches("\"role\":").count(), MOST_AT_ONCE + 1);

        let stopped = Blocking::is_allowed_here().until(Arc::new(true.into()));
        for format in ["messages", "openai_chat"] {
            let effects = ask(&mut held, 2, json!({ "format": format }));
            let read = effects.into_iter().find_map(|effect| match effect {
                Effect::Read(2, Read::Session(read)) => Some(read(&stopped)),
                _ => None,
            });
            assert!(matches!(read, Some(Answer::Failed(Failure::Cancelled))), "{format}");
        }
    }

    #[test]
    fn the_context_of_an_entry_has_the_system_prompt_of_its_branch() {
        let mut held = session(None, &json!({}));
        held.edit::<SessionConfigure>(1, json!({"systemPrompt": "Be brief."}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        for (number, leaf, has_prompt) in [(2, None, true), (3, Some("e10"), false), (4, Some("branch"), false)] {
            let effects = ask(&mut held, number, json!({"leafEntryId": leaf, "format": "anthropic"}));
            assert_eq!(result(effects, number).contains("Be brief."), has_prompt, "{leaf:?}");
        }
    }
}
