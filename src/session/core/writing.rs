//! Writes of a session: to the disk, and announced afterwards.

pub(super) mod appends;
pub(super) mod edits;

use super::{
    base::Base, command::Command, commands::compacting::after_turn::AfterTurn, step::Write, turns::prompts::Prompts,
};
use crate::{
    conversation::{entry::Entry, path::Path, undo::Undoing},
    log::{Placed, error::StoreError},
    protocol::notices::NoticeCode,
    session::{
        effects::{Effects, Ticket},
        log_work::{Adds, AppendWork, Fetched, LogWork, UndoWork, both, placed},
    },
};
use std::sync::Arc;

/// The work on the log of a write. The entries about the compaction after the turn and about the queue go along where the session
/// moves.
pub(super) fn work(base: &mut Base, after_turn: &AfterTurn, prompts: &Prompts, write: &mut dyn Write) -> LogWork {
    match write.take_undoing() {
        Some(undoing) => undo_work(base, after_turn, prompts, undoing),
        None => append_work(base, after_turn, prompts, write.entries()),
    }
}

/// Makes the entries about what waits, for a path that the session moves to.
fn waiting_there(base: &mut Base, after_turn: &AfterTurn, prompts: &Prompts) -> Option<Adds> {
    let access = base.log.facts().access;
    let compaction = after_turn.entry_there(&base.state.id, access, &mut base.stamps);
    both(compaction, prompts.entry_there(&base.state.id, access, &mut base.stamps))
}

fn append_work(base: &mut Base, after_turn: &AfterTurn, prompts: &Prompts, entries: Vec<Arc<Entry>>) -> LogWork {
    let continues = base.state.path().continues_with_all(&entries);
    let adds = if continues { None } else { waiting_there(base, after_turn, prompts) };
    let (path, library) = (base.state.path(), base.state.history().library());
    let leads_to = match (&library, &adds) {
        (None, Some(_)) => leads_to(path, &entries),
        _ => None,
    };
    LogWork::Append(Box::new(AppendWork {
        leaf: path.last().map(|leaf| leaf.id.clone()),
        continues,
        source: base.state.history().source().cloned(),
        library,
        adds,
        leads_to,
        count: base.state.counts_with(),
        entries,
    }))
}

/// An undo. Its entries depend on the path without the compaction, which is read first.
fn undo_work(base: &mut Base, after_turn: &AfterTurn, prompts: &Prompts, undoing: Undoing) -> LogWork {
    let adds = waiting_there(base, after_turn, prompts);
    LogWork::Undo(Box::new(UndoWork {
        adds,
        undoing,
        leaf: base.state.path().last().map(|leaf| leaf.id.clone()),
        reader: base.state.history().reader(),
        library: base.state.history().library(),
        stamps: base.stamps.fork(),
    }))
}

/// The entries of a write are on disk, with entries of another program that came in between and are on branches of their own.
pub(super) fn place(
    base: &mut Base,
    at: u64,
    others: &[Placed],
    entries: &[Arc<Entry>],
    path: Option<Result<Path, StoreError>>,
) {
    base.state.change(|history| {
        others.iter().for_each(|placed| history.push(placed.clone()));
    });
    others.iter().for_each(|placed| base.effects.announce(&placed.entry, None));
    warn_of_branch(&base.effects, others);
    base.state.change(|history| {
        for placed in placed(entries, at) {
            history.push(placed);
        }
        match path {
            None => {}
            Some(Ok(path)) => history.set_path(path),
            Some(Err(error)) => {
                tracing::warn!(%error, "the path could not be read again");
                history.forget_path();
            }
        }
        history.complete_in_memory();
    });
}

/// Handles a command again after the entries that it needs were read.
pub(super) fn fetched(base: &mut Base, fetched: Result<Fetched, StoreError>, command: Command, ticket: Ticket) {
    match fetched {
        Ok(fetched) => {
            base.state.fetched = Some(fetched);
            base.queue.put_back(command, ticket);
        }
        Err(error) => ticket.fail(&error.into()),
    }
}

/// Reports messages of another program that arrived while a write was on its way: both follow the same entry.
fn warn_of_branch(effects: &Effects, others: &[Placed]) {
    let messages = others.iter().filter(|placed| placed.entry.in_context()).count();
    if let (true, Some(last)) = (messages > 0, others.last()) {
        let last = &last.entry.id;
        effects.warn(
            NoticeCode::SessionBranched,
            "Another program wrote to this session at the same moment",
            format!(
                "Its {messages} messages are a branch of their own, up to entry {last}, and are not in the context. \
                 Nothing is lost. To go on from them, call session/append with parentEntryId {last}. Two programs \
                 that write to one session should take turns."
            ),
        );
    }
}

/// The path that entries lead to which follow an entry of this path. None where they do not.
fn leads_to(path: &Path, entries: &[Arc<Entry>]) -> Option<Path> {
    let beginning = path.up_to(entries.first()?.parent.as_ref()?)?;
    let is_chain = beginning.continues_with_all(entries);
    is_chain.then(|| entries.iter().fold(beginning, |path, entry| path.with(entry.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        models::ModelRef,
        protocol::{SessionConfigure, SessionContext, SessionEntry, types::Outcome},
        session::{
            core::{
                Input, Over,
                held::{Held, answer, cost, draft, job, line, log_work, message, messages, outcomes, written},
                standing::load::Load,
            },
            effects::Effect,
            jobs::Job,
            log_work::LogDone,
            state::SessionData,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    #[test]
    fn a_compaction_whose_log_is_lost_has_its_end() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let written = held.turn();
        assert!(written.iter().any(|effect| matches!(effect, Effect::Log(LogWork::Append(_)))));
        let effects = held.lose_log();
        assert_eq!(outcomes(&effects), [Outcome::Failed]);
        assert!(answer(&effects, 1).is_some(), "the request is answered");
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn a_failed_read_fails_the_command_that_needs_it_and_no_other() {
        let mut held = Held::new();
        held.append_with(1, json!({"parentEntryId": "branch"}));
        held.compact(2);
        held.append(3);
        let read = held.turn();
        assert!(read.iter().any(|effect| matches!(effect, Effect::Log(LogWork::Fetch(_)))));
        held.cancel(4);
        let error = StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() };
        let facts = held.facts();
        let effects = held.feed(Input::Log(Some(LogDone::Fetched(Err(error))), facts));
        assert!(answer(&effects, 1).is_some_and(|it| it.is_string()), "the append fails");
        assert_eq!(answer(&effects, 2), None);
        let effects = held.turn();
        assert_eq!(outcomes(&effects), [Outcome::Cancelled]);
        assert_eq!(answer(&effects, 3), None, "it waits for its write");
        assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Log(LogWork::Append(_)))));
    }

    #[test]
    fn an_end_during_a_write_is_recorded_at_once() {
        let mut held = Held::new();
        held.begin_draft(1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        let cancelled = held.cancel(3);
        assert_eq!(outcomes(&cancelled), [Outcome::Cancelled]);
        let records = |effects: &[Effect]| -> Vec<usize> {
            let record = |effect: &Effect| match effect {
                Effect::Record(operations) => Some(operations.len()),
                _ => None,
            };
            effects.iter().filter_map(record).collect()
        };
        assert_eq!(records(&cancelled), [0]);
        assert_eq!(records(&held.back(work)), [] as [usize; 0]);
    }

    #[test]
    fn costs_whose_write_has_to_be_repeated_are_written() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        held.feed(Input::Reported(order.id, cost()));
        held.cancel(2);
        let work = log_work(held.turn()).expect("a write");
        held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
        held.back(work);
        let work = log_work(held.turn());
        assert_eq!(written(work.as_ref()), ["usage"]);
        held.back(work.expect("a write"));
        assert!(Load::of(&held.core).is_empty());
    }

    #[test]
    fn a_context_that_needs_the_index_during_a_write_has_it_built_behind_the_write() {
        let mut held = Held::indexed_below(0);
        held.begin_draft(1);
        held.call::<SessionContext>(2, json!({"leafEntryId": "branch", "wait": true}));
        held.turn();
        held.append(3);
        let work = log_work(held.turn()).expect("a write");
        assert!(answer(&held.cancel(4), 2).is_none());
        assert!(matches!(job(held.back(work)), Job::Index(..)));
    }

    #[test]
    fn entries_that_arrived_right_before_a_write_are_known() {
        let mut held = Held::new();
        held.append(1);
        let work = log_work(held.turn()).expect("a write");
        held.disk.race(format!("{}\n", message("raced", Some("e39"))).as_bytes());
        held.back(work);
        held.call::<SessionEntry>(2, json!({"entryId": "raced"}));
        assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(2, _))));
    }

    #[test]
    fn a_context_waits_for_one_pruning_that_cannot_be_written_and_for_no_second_one() {
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
        let says =
            |id: &str, parent: &str, message: Value| line(id, Some(parent), "message", json!({"message": message}));
        let mut lines = messages();
        lines.extend([
            says("f0", "e39", json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1})),
            says(
                "f1",
                "f0",
                json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "timestamp": 1,
                "content": [{"type": "text", "text": "word ".repeat(16_000)}], "isError": false}),
            ),
            says("f2", "f1", json!({"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1})),
            says("f3", "f2", json!({"role": "user", "content": "Go on.", "timestamp": 1})),
        ]);
        let mut held = Held::of(&lines, u64::MAX);
        let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m",
            "prune": {"protectTokens": 0, "minimumSavings": 0},
            "models": [{"provider": "p", "id": "m", "contextWindow": 16_000}]});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held.call::<SessionContext>(1, json!({"wait": true}));
        let work = log_work(held.turn()).expect("a pruning");
        assert_eq!(written(Some(&work)), ["context_edit"]);
        held.disk.fill();
        let effects = held.back(work);
        assert_eq!(answer(&effects, 1), Some(json!("context_overflow")));
        assert!(log_work(effects).is_none() && log_work(held.turn()).is_none());
    }

    #[test]
    fn values_that_are_stored_replace_those_that_the_client_gave() {
        let model = |name: &str| ModelRef { provider: "a".to_owned(), id: name.to_owned() };
        let given = SessionData { system_prompt: Some("be kind".to_owned()), ..SessionData::default() };
        let mut held = Held::given(given, model("given"));
        held.edit::<SessionConfigure>(1, json!({"model": model("stored"), "systemPrompt": "be brief"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let state = held.core.state();
        assert_eq!(state.model(state.path()), Some(model("stored")));
        assert_eq!(state.data().system_prompt.as_deref(), Some("be brief"));
    }

    #[test]
    fn texts_that_other_programs_lack_are_written_on_the_path_alone() {
        let pin = line("p1", Some("e39"), "custom", json!({"customType": "abridged.pin", "data": {"entryId": "e2"}}));
        let fields = json!({"summary": "A parser was mended.", "firstKeptEntryId": "e30", "tokensBefore": 100});
        let compaction = line("c1", Some("p1"), "compaction", fields);
        let lines: Vec<String> = messages().into_iter().chain([pin, compaction]).collect();
        let appended = |params| {
            let mut held = Held::of(&lines, u64::MAX);
            held.append_with(1, params);
            let work = log_work(held.turn()).expect("a write");
            match work {
                LogWork::Fetch(_) => {
                    held.back(work);
                    written(log_work(held.turn()).as_ref())
                }
                work => written(Some(&work)),
            }
        };
        assert_eq!(appended(json!({})), ["message", "custom_message"]);
        assert_eq!(appended(json!({"parentEntryId": "branch"})), ["message"]);
    }
}
