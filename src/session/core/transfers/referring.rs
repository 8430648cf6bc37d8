//! `session/reference`: an extract from another session enters this one.

use super::{delivery::Delivery, entry_of};
use crate::{
    conversation::message::{Message, outline::Role},
    ids::OperationId,
    protocol::{SessionReference, errors::Failure, types::ReferenceParams},
    session::{
        core::{
            base::Base,
            command::{Command, CommandMethod, TransferRequest},
            step::Step,
            transfers,
            work::{Referring, Task, Unstarted, Work},
        },
        effects::Ticket,
        jobs::{
            Job,
            transfer::{ReferenceOrder, TransferText, TransferWork},
        },
        kind::{OperationKind, Reference, Referred, Transfer, Transferred},
        operations::Asked,
        source::{Source, SourceOrder},
        state::State,
        stop::Stop,
    },
    summary::passages::REFERENCE,
};
use serde_json::json;

/// The largest extract, in tokens.
const LARGEST: u64 = 4_000;

/// The smallest room for an extract, in tokens.
const SMALLEST: u64 = 300;

/// The largest question, in tokens. The extract has it in its frame.
const LARGEST_QUESTION: u64 = 500;

/// The messages of the user that stand in for a question.
const NEWEST_MESSAGES: usize = 3;

impl CommandMethod for SessionReference {
    fn command(params: ReferenceParams) -> Command {
        Command::Transfer(Box::new(TransferRequest::Reference(params)))
    }
}

/// Looks for the source of a reference. Its operation starts when the source was found.
pub(super) fn refer(base: &mut Base, params: ReferenceParams, ticket: Ticket) -> Option<Step> {
    let question = params.question.as_deref().map(str::trim).filter(|question| !question.is_empty());
    let question = question.map(|question| transfers::secrets(&base.state).clean(question));
    if let Err(failure) = may_refer(&base.state, &params, question.as_deref()) {
        return Some(Step::fail(ticket, &failure));
    }
    let (id, stop) = (base.stamps.operation(), Stop::default());
    let kind = OperationKind::Transfer(Transfer::Reference(Reference::of(&params)));
    base.effects.start(Job::Source(SourceOrder { id: id.clone(), from: params.from_session_id }));
    let asked = Asked::by(ticket, params.wait);
    base.work = Work::Referring(Referring { question, unstarted: Unstarted { id, kind, asked, stop } }, None);
    None
}

/// The source of a reference was found, or there is none.
pub(in crate::session::core) fn sourced(
    base: &mut Base,
    id: &OperationId,
    result: Result<Source, Failure>,
) -> Option<Step> {
    match base.work.take() {
        Work::Referring(request, None) if request.unstarted.id == *id => {
            // A start follows the answer and the events of the write before it.
            if base.log.is_free() {
                return begin_reference(base, request, result);
            }
            base.work = Work::Referring(request, Some(Box::new(result)));
        }
        other => base.work = other,
    }
    None
}

/// Starts the operation of a reference, or answers why there is none.
pub(in crate::session::core) fn begin_reference(
    base: &mut Base,
    request: Referring,
    result: Result<Source, Failure>,
) -> Option<Step> {
    let Referring { question, unstarted } = request;
    let begun = result.and_then(|source| Ok((source, room_for_extract(&base.state, question.as_deref())?)));
    let (source, cap) = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            unstarted.asked.into_request().into_iter().for_each(|ticket| ticket.fail(&failure));
            return Some(Step::AnswerContexts);
        }
    };
    let is_introduced = matches!(unstarted.asked, Asked::Answered(_));
    let operation = base.open(unstarted, base.state.usage());
    let order = ReferenceOrder {
        source,
        question,
        newest: newest_messages(&base.state),
        cap,
        scale: base.state.measure().scale,
    };
    let model = base.state.model(base.state.path());
    let work = TransferWork::Reference(Box::new(order));
    transfers::make_text(base, operation, Task::Reference { is_introduced }, work, model);
    None
}

/// The entry of a reference after the leaf.
pub(super) fn staged(base: &mut Base, is_introduced: bool, text: Option<TransferText>) -> Result<Delivery, Failure> {
    let Some(TransferText::Reference(made)) = &text else {
        return Err(Failure::Internal("a reference has no text, which is a defect of abridged".to_owned()));
    };
    let fullness = base.state.measure();
    if fullness.context_tokens + fullness.scale.text(&made.text) > fullness.budget.window {
        let why =
            "messages came meanwhile, and the window has no room for the extract; compact the session, then refer \
                   again"
                .to_owned();
        return Err(Failure::OverWindow { floor: fullness.floor(base.state.path()), why });
    }
    let fields = [
        ("customType", json!(REFERENCE)),
        ("content", json!(made.text)),
        ("display", json!(true)),
        ("details", made.details.clone()),
    ];
    let costs = base.costs.take(&base.state, &mut base.stamps);
    let parent = costs.entries.last().or_else(|| base.state.path().last()).map(|leaf| leaf.id.clone());
    let entry = match entry_of("custom_message", &base.stamps.stamp(), parent.as_ref(), &fields) {
        Ok(entry) => entry,
        Err(failure) => {
            base.costs.put_back(costs);
            return Err(failure);
        }
    };
    let result = Transferred::Referred(Referred { entry: entry.id.clone(), lack: made.lack.clone() });
    let task = Box::new(Task::Reference { is_introduced });
    Ok(Delivery { task, text, costs, entries: vec![entry], event: None, result })
}

fn tokens_of(state: &State, question: Option<&str>) -> u64 {
    question.map_or(0, |question| state.measure().scale.text(question))
}

/// The largest extract about this question that leaves at least half of the free window, in tokens.
fn room_for_extract(state: &State, question: Option<&str>) -> Result<u64, Failure> {
    let fullness = state.measure();
    let room = fullness.budget.window.saturating_sub(fullness.context_tokens) / 2;
    if room < SMALLEST + tokens_of(state, question) {
        let why = "the window has no room for an extract; compact the session, then refer again".to_owned();
        return Err(Failure::OverWindow { floor: fullness.floor(state.path()), why });
    }
    Ok(room.min(LARGEST))
}

fn may_refer(state: &State, params: &ReferenceParams, question: Option<&str>) -> Result<(), Failure> {
    if params.from_session_id == state.id {
        return Err(Failure::params("fromSessionId", "a session does not refer to itself; name another session"));
    }
    if params.wait == Some(true) && state.path().batch().is_open() {
        let what = "calls of the newest answer have no result yet, and the extract goes behind the results; append them \
                    first, or leave out wait";
        return Err(Failure::params("wait", what));
    }
    let tokens = tokens_of(state, question);
    if tokens > LARGEST_QUESTION {
        let what = format!(
            "it has about {tokens} tokens, and the extract has it in its frame; ask in at most {LARGEST_QUESTION} tokens"
        );
        return Err(Failure::params("question", what));
    }
    room_for_extract(state, question).map(|_| ())
}

/// The newest messages of the user, newest first. They stand in for a question.
fn newest_messages(state: &State) -> Vec<String> {
    let said = state.path().iter().rev().filter(|entry| entry.is_from(Role::User));
    let texts = said.filter_map(|entry| entry.message().map(Message::text));
    texts.take(NEWEST_MESSAGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::path::Path,
        ids::SessionId,
        redact::Clean,
        session::{
            core::{
                Input,
                held::{Held, answer, job, line, log_work, message, written},
            },
            jobs::transfer::ReferenceText,
            log_work::LogWork,
        },
    };
    use serde_json::Value;

    fn refer(held: &mut Held, number: u64, wait: bool) -> SourceOrder {
        let params = json!({"sessionId": "held", "fromSessionId": "other", "question": "Which port?", "wait": wait});
        held.send(number, SessionReference::command(serde_json::from_value(params).expect("params")));
        let Job::Source(order) = job(held.turn()) else { unreachable!("the source is looked for first") };
        order
    }

    fn source() -> Result<Source, Failure> {
        Ok(Source { id: SessionId::from("other"), file: None, path: Path::of(&[]) })
    }

    fn text(size: usize) -> Result<TransferText, Failure> {
        Ok(TransferText::Reference(ReferenceText {
            text: Clean::assembled("port 4711 ".repeat(size)),
            details: json!({}),
            lack: None,
        }))
    }

    fn with_open_call() -> Held {
        let call = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]);
        let said = json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1});
        let lines = [message("e0", None), line("e1", Some("e0"), "message", json!({ "message": said }))];
        Held::of(&lines, u64::MAX)
    }

    fn result() -> Value {
        json!([{"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [], "isError": false,
            "timestamp": 1}])
    }

    #[test]
    fn an_extract_waits_for_the_results_of_open_calls() {
        let mut held = with_open_call();
        let id = refer(&mut held, 1, false).id;
        held.feed(Input::Sourced(id.clone(), source()));
        held.feed(Input::Transferred(id, text(1)));
        assert!(log_work(held.turn()).is_none(), "the call has no result");
        held.append_with(2, json!({ "messages": result() }));
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(written(Some(&work)), ["message"]);
        held.back(work);
        assert_eq!(written(log_work(held.turn()).as_ref()), ["custom_message"]);
    }

    #[test]
    fn a_source_that_is_found_during_a_write_is_used_behind_it() {
        let mut held = Held::new();
        let id = refer(&mut held, 1, false).id;
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(answer(&held.feed(Input::Sourced(id, source())), 1), None, "the lock is with the writer");
        held.back(work);
        let effects = held.turn();
        assert!(answer(&effects, 1).is_some_and(|answer| answer["operationId"].is_string()));
        assert!(matches!(job(effects), Job::Transfer(_)));
    }

    #[test]
    fn a_cancel_ends_a_reference_whose_source_is_looked_for() {
        let mut held = Held::new();
        let id = refer(&mut held, 1, true).id;
        let effects = held.cancel(2);
        let named = answer(&effects, 2).expect("an answer");
        assert_eq!(named["cancelled"][0]["kind"], "reference", "{named}");
        let ended = answer(&effects, 1).expect("its request is answered");
        assert_eq!(ended["outcome"], "cancelled");
        let late = held.feed(Input::Sourced(id, source()));
        assert!(late.is_empty() && log_work(held.turn()).is_none());
    }

    #[test]
    fn a_second_reference_is_refused_while_the_first_looks_for_its_source() {
        let mut held = Held::new();
        refer(&mut held, 1, false);
        let params = json!({"sessionId": "held", "fromSessionId": "other"});
        held.send(2, SessionReference::command(serde_json::from_value(params).expect("params")));
        assert_eq!(answer(&held.turn(), 2), Some(json!("busy")));
    }

    #[test]
    fn an_extract_that_does_not_fit_any_more_is_not_written() {
        let mut held = Held::new();
        let id = refer(&mut held, 1, true).id;
        held.feed(Input::Sourced(id.clone(), source()));
        let mut effects = held.feed(Input::Transferred(id, text(400_000)));
        effects.extend(held.turn());
        let ended = answer(&effects, 1).expect("an answer");
        assert_eq!((&ended["outcome"], &ended["error"]["code"]), (&json!("failed"), &json!("context_overflow")));
        assert!(log_work(effects).is_none());
    }

    #[test]
    fn an_extract_is_looked_at_again_behind_the_entries_of_another_program() {
        let mut held = Held::new();
        let id = refer(&mut held, 1, true).id;
        held.feed(Input::Sourced(id.clone(), source()));
        held.feed(Input::Transferred(id, text(1)));
        let work = log_work(held.turn()).expect("a write");
        held.disk.append_as_another(&message("raced", Some("e39"))).expect("an entry");
        held.back(work);
        let work = log_work(held.turn()).expect("a write behind them");
        let LogWork::Append(append) = &work else { unreachable!("it is appended") };
        assert_eq!(append.entries[0].parent, Some("raced".into()));
        assert!(answer(&held.back(work), 1).is_some_and(|answer| answer["outcome"] == "completed"));
    }
}
