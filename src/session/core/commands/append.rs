//! `session/append`: messages of a client become entries.

mod given;
mod strays;
mod tools;

use crate::{
    conversation::{
        entry::{self, Entry, Gap, Requested, Stamps},
        message::{
            Assistant, Message,
            outline::{Outline, Role},
        },
        mirroring,
    },
    ids::{CallId, EntryId, ModelRef},
    models::known,
    protocol::{SessionAppend, errors::Failure, types::AppendParams},
    provider::{
        Api,
        given::completing::{self, Missing},
    },
    session::{
        core::{
            base::Base,
            command::{Command, CommandMethod},
            edit::NotStaged,
            parts::contexts::Identity,
            turns::Own,
        },
        effects::Ticket,
        log_work::{Fetch, Fetched},
        state::State,
    },
};
use serde_json::{Value, json, value::RawValue};
use std::{cell::RefCell, sync::Arc};
use strays::Strays;
use tools::Tools;

impl CommandMethod for SessionAppend {
    fn command(params: AppendParams) -> Command {
        Command::Append(params)
    }
}

/// Makes the entries of an append after those before it, or refuses it. Returns whether another append may follow in
/// the same write.
pub(in crate::session::core) fn stage(
    base: &mut Base,
    params: AppendParams,
    ticket: Ticket,
    appends: &mut Vec<Append>,
) -> bool {
    if ticket.cancelled() {
        ticket.fail(&Failure::Cancelled);
        return true;
    }
    if let Err(failure) = base.writable() {
        ticket.fail(&failure);
        return true;
    }
    if params.parent_entry_id.as_ref().is_some_and(|parent| base.state.path().position(parent).is_none())
        && base.state.history().index().is_none()
    {
        base.await_index(Command::Append(params), ticket);
        return true;
    }
    let before = appends.last().and_then(|append| append.staged.entries.last());
    let leaf = before.or_else(|| base.state.path().last()).map(|entry| entry.id.clone());
    let named = params.context_id.as_deref();
    let context = match base.contexts.of_answer(named, &Identity::at_leaf(&base.state)) {
        Ok(context) => context,
        Err(failure) => {
            ticket.fail(&failure);
            return true;
        }
    };
    if let Some(unknown) = named.and_then(|_| unknown_entry(&base.state, &context)) {
        match base.state.history().index() {
            None => base.await_index(Command::Append(params), ticket),
            Some(_) => ticket.fail(&of_another_session(unknown)),
        }
        return true;
    }
    let model = base.state.model(base.state.path());
    match staged(&base.state, appends, leaf.as_ref(), &params, &context, &mut base.stamps) {
        Ok(staged) => {
            if staged.is_outdated {
                base.contexts.took_outdated(&context, base.state.path());
            }
            appends.push(Append { params, staged, context, model, asker: Asker::Client(ticket) });
        }
        Err(Unstaged::Not(NotStaged::NeedsIndex)) => base.await_index(Command::Append(params), ticket),
        Err(Unstaged::Not(NotStaged::NeedsEntries(fetch))) => base.fetch(fetch, Command::Append(params), ticket),
        Err(Unstaged::Not(NotStaged::Failed(failure))) => ticket.fail(&failure),
        Err(Unstaged::Alone) => {
            base.queue.put_back(Command::Append(params), ticket);
            return false;
        }
    }
    true
}

/// The entries of messages that the daemon appends itself, after those before it, with the context that an answer belongs to and the
/// model before it.
pub(in crate::session::core) type OwnStaged = (AppendParams, Staged, Identity, Option<ModelRef>);

/// Makes the entries of messages that the daemon appends itself.
///
/// # Errors
/// When the session is only read, or a message is none.
pub(in crate::session::core) fn stage_own(
    base: &mut Base,
    params: AppendParams,
    before: &[Append],
) -> Result<OwnStaged, Failure> {
    base.writable()?;
    let last = before.last().and_then(|append| append.staged.entries.last());
    let leaf = last.or_else(|| base.state.path().last()).map(|entry| entry.id.clone());
    let context = base.contexts.of_answer(params.context_id.as_deref(), &Identity::at_leaf(&base.state))?;
    let model = base.state.model(base.state.path());
    match staged(&base.state, before, leaf.as_ref(), &params, &context, &mut base.stamps) {
        Ok(staged) => Ok((params, staged, context, model)),
        Err(Unstaged::Not(NotStaged::Failed(failure))) => Err(failure),
        Err(_) => Err(Failure::Internal("a message of a turn belongs to another branch".to_owned())),
    }
}

/// An entry of a context that this session does not have, or does not know before there is an index. A fork has the entries
/// of its parent, and knows its contexts up to there.
fn unknown_entry<'a>(state: &State, context: &'a Identity) -> Option<&'a EntryId> {
    let (path, index) = (state.path(), state.history().index());
    let is_known = |id: &EntryId| path.position(id).is_some() || index.is_some_and(|index| index.find(id).is_some());
    context.entries().find(|id| !is_known(id))
}

/// The refusal of an answer that was made for the context of another session.
fn of_another_session(entry: &EntryId) -> Failure {
    let what = format!(
        "no context of this session, which has no entry {}; append the answer to the session whose context it was made for, \
         or leave contextId out",
        Failure::shortened(entry)
    );
    Failure::params("contextId", what)
}

/// An append that is being written.
pub(in crate::session::core) struct Append {
    pub params: AppendParams,
    pub staged: Staged,
    /// The context that its answer belongs to.
    pub context: Identity,
    /// The model of the session before it.
    pub model: Option<ModelRef>,
    pub asker: Asker,
}

/// The one that appends.
pub(in crate::session::core) enum Asker {
    /// The client.
    Client(Ticket),
    /// A turn that the daemon runs.
    Turn(Box<Own>),
}

impl Append {
    /// Whether its answer introduces the maintenance that follows.
    pub fn introduces(&self) -> bool {
        matches!(&self.asker, Asker::Client(ticket) if !ticket.in_batch())
    }

    /// Whether its last message is an answer that failed or was cut off.
    pub fn may_be_recovered(&self) -> bool {
        let outline = self.staged.entries.last().and_then(|entry| entry.outline());
        outline.is_some_and(|outline| outline.failed || outline.cut_off)
    }
}

/// The reason why an append has no entries.
enum Unstaged {
    /// It begins the next write.
    Alone,
    /// As of any other request.
    Not(NotStaged),
}

impl From<NotStaged> for Unstaged {
    fn from(reason: NotStaged) -> Self {
        Self::Not(reason)
    }
}

impl From<Failure> for Unstaged {
    fn from(failure: Failure) -> Self {
        Self::Not(failure.into())
    }
}

/// Entries that are to be written together.
#[derive(Debug, Default)]
pub struct Staged {
    /// The entries, parsed from the lines of the file.
    pub entries: Vec<Arc<Entry>>,
    /// Whether an answer among them was made for a context that was rewritten since.
    pub is_outdated: bool,
}

/// The members of a message in pi's form that hold signed thinking.
const SIGNED: [&str; 2] = ["\"thinkingSignature\"", "\"redactedThinking\""];

/// Makes entries of messages, after `leaf` and the appends that are written with them.
///
/// # Errors
/// When a message is not one, or the client's picture of the session is not how it is.
fn staged(
    state: &State,
    before: &[Append],
    leaf: Option<&EntryId>,
    params: &AppendParams,
    context: &Identity,
    stamps: &mut Stamps,
) -> Result<Staged, Unstaged> {
    if let Some(expected) = &params.expected_leaf_id
        && !state.unchanged_since(expected)
    {
        return Err(Failure::ContentModified { leaf: state.visible_leaf() }.into());
    }
    if let Some(parent) = &params.parent_entry_id
        && state.path().position(parent).is_none()
        && state.history().index().is_none_or(|index| index.find(parent).is_none())
    {
        return Err(Failure::no_entry(parent).into());
    }
    // An answer that names no model is one of the model that its context was for.
    let model = context.model.clone().or_else(|| state.model(state.path()));
    let requested = requested(context, state, before, params);
    let messages = given::in_pis_form(params, state, before, model.as_ref())?;
    if messages.is_empty() {
        return Err(Failure::params("messages", "at least one message is needed").into());
    }
    let mut strays = Strays::of(&messages, state, before, params)?;
    let branch = params.parent_entry_id.as_ref().map(|parent| last_mirror_of(state, parent)).transpose()?;
    let mut parent = branch.or_else(|| leaf.cloned());
    let mut staged = Staged::default();
    let api_of = |model: &ModelRef| api_of(state, model);
    let now = stamps.now().as_millisecond();
    let mut visible_leaf = None;
    let mut is_elsewhere = false;
    let tools = RefCell::new(Tools::new(given::staged_before(before).rev().chain(state.path().iter().rev())));
    for (at, message) in messages {
        let elsewhere = strays.parent(at, params)?;
        is_elsewhere = elsewhere.is_some();
        let tool_of = |call: &CallId| strays.tool(at).or_else(|| tools.borrow_mut().of(call));
        let missing = Missing { model: model.clone(), api_of: &api_of, tool_of: &tool_of, now };
        let json = in_pis_form(&message, &missing).map_err(|(path, what)| Failure::of_message(at, &path, what))?;
        let stamp = stamps.stamp();
        let behind = elsewhere.as_ref().or(parent.as_ref());
        let line = entry::line("message", &stamp, behind, &[("message", &json)]);
        let entry = Entry::parse(line.into()).map_err(|error| Failure::Internal(error.to_string()))?;
        if entry.is_too_large() {
            return Err(given::too_large(at).into());
        }
        let reports = !is_elsewhere && entry.outline().is_some_and(|it| it.measured().is_some());
        // Signed thinking is bound to its request, too.
        let is_signed =
            |it: &Outline| it.role == Role::Assistant && SIGNED.iter().any(|name| json.get().contains(name));
        let is_bound = !is_elsewhere && entry.outline().is_some_and(is_signed);
        tools.borrow_mut().add(&entry);
        staged.entries.push(Arc::new(entry));
        if is_elsewhere {
            strays.placed(at, &stamp.id);
        } else {
            parent = Some(stamp.id.clone());
            visible_leaf = Some(stamp.id.clone());
        }
        let was_changed = (reports || is_bound) && given::was_changed_by_server(params, at);
        let of_answer = if was_changed { Some(&Requested::Earlier) } else { requested.as_ref() };
        let marker = match of_answer {
            Some(requested) if reports => {
                Some(marker_of("abridged.report", requested.data(&stamp.id), &stamp.id, stamps)?)
            }
            Some(_) if is_bound => Some(unbound(&stamp.id, stamps)?),
            None if is_bound && state.has_instructions_of_its_load() => Some(unbound(&stamp.id, stamps)?),
            _ => None,
        };
        if let Some(marker) = marker {
            parent = Some(marker.id.clone());
            staged.entries.push(marker);
        }
        staged.is_outdated |= reports && requested == Some(Requested::Earlier);
    }
    if is_elsewhere {
        let before = || given::staged_before(before).rev().find(|entry| !entry.is_marker()).map(|it| it.id.clone());
        let leaf = visible_leaf.or_else(before).or_else(|| state.visible_leaf());
        staged.entries.push(strays::leaf_again(parent.as_ref(), leaf.as_ref(), stamps)?);
    }
    Ok(staged)
}

/// The request of the answers of an append, where it was another one than the path before them. Messages of the same append
/// belong to it. Entries that were appended after the context was handed out came while the model ran, or the host sent them
/// along; an answer among them shows that the host goes on without asking for a context.
fn requested(context: &Identity, state: &State, before: &[Append], params: &AppendParams) -> Option<Requested> {
    let path = state.path();
    if context.is_outdated(path) {
        return Some(Requested::Earlier);
    }
    let place = path.position(context.leaf.as_ref()?).filter(|_| params.parent_entry_id.is_none())?;
    let since = || path[place + 1..].iter().chain(given::staged_before(before)).filter(|entry| entry.in_context());
    let gap = Gap { from: since().next()?.id.clone(), to: since().next_back()?.id.clone() };
    let is_answer = |entry: &Arc<Entry>| entry.is_from(Role::Assistant) && entry.outline().is_some_and(|it| !it.failed);
    match (params.context_id.is_some(), since().any(is_answer)) {
        (true, false) => Some(Requested::Without(gap)),
        (true, true) | (false, false) => Some(Requested::Perhaps(gap)),
        (false, true) => None,
    }
}

/// The line after an answer whose thinking is bound to another request than the path before it.
fn unbound(answer: &EntryId, stamps: &mut Stamps) -> Result<Arc<Entry>, Failure> {
    marker_of("abridged.unbound", json!({ "entryId": answer }), answer, stamps)
}

/// A line of this type after an answer.
fn marker_of(kind: &str, data: Value, answer: &EntryId, stamps: &mut Stamps) -> Result<Arc<Entry>, Failure> {
    let fields = [("customType", kind.into()), ("data", data)];
    let stamp = stamps.stamp();
    let defect = || Failure::Internal("a marker of an answer is no entry, which is a defect of abridged".to_owned());
    mirroring::entry_of("custom", &stamp, Some(answer), &fields).ok_or_else(defect)
}

/// The last of the lines for other programs that belong to an entry, where there are any: what goes on after the entry
/// goes on after them. After the leaf as clients see it these are all markers.
fn last_mirror_of(state: &State, parent: &EntryId) -> Result<EntryId, NotStaged> {
    let (path, history) = (state.path(), state.history());
    if path.visible_leaf() == Some(parent)
        && let Some(leaf) = path.last()
    {
        return Ok(leaf.id.clone());
    }
    let mut last = parent.clone();
    if let Some(place) = path.position(parent) {
        for entry in path[place + 1..].iter().take_while(|entry| entry.goes_with_entry()) {
            last = entry.id.clone();
        }
    } else if let Some(index) = history.index()
        && let Some(place) = index.find(parent)
    {
        match &state.fetched {
            Some(Fetched::Mirrors(of, found)) if of == parent => last = found.clone(),
            Some(Fetched::Homes(found)) if found.mirrors.as_ref().is_some_and(|(of, _)| of == parent) => {
                found.mirrors.iter().for_each(|(_, found)| last = found.clone());
            }
            _ => {
                let wanted = history.wanted(index.after(Some(place)));
                return Err(NotStaged::NeedsEntries(Fetch::Mirrors(parent.clone(), wanted)));
            }
        }
    }
    Ok(last)
}

/// The wire format of a model: that of its settings, else that of its provider.
fn api_of(state: &State, model: &ModelRef) -> Option<Api> {
    let set = state.settings().settings.model(model).and_then(|model| model.api);
    set.or_else(|| known::provider(&model.provider).map(|provider| provider.api))
}

/// A message in the form that pi reads. The client's own bytes stay where nothing is missing in them.
fn in_pis_form(json: &str, missing: &Missing<'_>) -> Result<Box<RawValue>, (String, String)> {
    let message = Message::parse(json).map_err(|error| (error.path.clone(), error.problem))?;
    if let Message::Assistant(Assistant { invalid_usage: Some(path), .. }) = &message {
        let expected = if path == "usage" { "an object with numbers of tokens" } else { "a number of tokens" };
        return Err((path.clone(), format!("invalid; expected {expected}, or null")));
    }
    // Also finds what no JSON reader of a provider would take: too deep nesting, half of a surrogate pair.
    let value: Value = serde_json::from_str(json)
        .map_err(|error| (String::new(), crate::text::faults::without_position(&error.to_string())))?;
    if matches!(message, Message::System(_) | Message::Summary(_)) {
        let what = "a message is user, assistant, toolResult, bashExecution, custom or developer; a system prompt is given with the session";
        return Err(("role".to_owned(), what.to_owned()));
    }
    let content_missing = value.get("content").is_none_or(Value::is_null) && !matches!(message, Message::Execution(_));
    if content_missing && value.get("files").is_none() {
        return Err(("content".to_owned(), "the message needs a content: a text or an array of blocks".to_owned()));
    }
    unknown_block(&value)?;
    let json = completing::complete(json, &message, missing);
    RawValue::from_string(json).map_err(|error| (String::new(), error.to_string()))
}

/// Refuses a block that no model would get.
fn unknown_block(message: &Value) -> Result<(), (String, String)> {
    const KNOWN: [&str; 4] = ["text", "thinking", "toolCall", "image"];
    for (at, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let kind = block["type"].as_str().unwrap_or_default();
        if !KNOWN.contains(&kind) {
            let what = format!(
                "{kind:?} is no block of this form; it is one of {}, or name the provider's form of the messages with `format`",
                KNOWN.join(", ")
            );
            return Err((format!("content[{at}].type"), what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::entry::CARRIED,
        session::{
            core::held::{Held, line, log_work, message},
            log_work::LogWork,
        },
    };

    #[test]
    fn a_clients_bytes_are_kept_where_they_are_right() {
        let missing = Missing { model: None, api_of: &|_| None, tool_of: &|_| None, now: 1 };
        let form = |json: &str| in_pis_form(json, &missing).map(|raw| raw.get().to_owned());
        let signed = r#"{"role":"assistant", "content":[{"type":"thinking","thinking":"x","thinkingSignature":"é=="}],"timestamp":1}"#;
        let completed = form(signed).expect("a message");
        assert!(completed.starts_with(&signed[..signed.len() - 1]), "{completed}");
        let short = form(r#"{"role":"assistant","content":"hi"}"#).expect("a message");
        assert!(short.starts_with(r#"{"role":"assistant","content":[{"type":"text","text":"hi"}],"api":"#), "{short}");
        let (path, _) = form(r#"{"role":"toolResult","content":[]}"#).expect_err("no call id");
        assert_eq!(path, "toolCallId");
        let (path, _) = form(r#"{"role":"user","content":[{"type":"text"}]}"#).expect_err("no text");
        assert_eq!(path, "content[0].text");
        for lost in ["txt", "image_url", "tool_use"] {
            let json =
                json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": lost, "text": "LOST"}]});
            let (path, what) = form(&json.to_string()).expect_err("no model would get it");
            assert_eq!(path, "content[1].type");
            assert!(what.contains(lost) && what.contains("toolCall") && what.contains("`format`"), "{what}");
        }
        let deep = format!(r#"{{"role":"user","content":"x","details":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        assert!(form(&deep).is_err());
    }

    #[test]
    fn an_append_behind_an_entry_goes_behind_the_lines_for_other_programs() {
        let text = json!({"customType": CARRIED, "content": "a text", "display": false, "details": {"entryId": "e0"}});
        let lines = [
            message("e0", None),
            message("e1", Some("e0")),
            line("carried", Some("e1"), "custom_message", text),
            message("e2", Some("carried")),
        ];
        let mut held = Held::of(&lines, u64::MAX);
        held.append_with(1, json!({"parentEntryId": "e1"}));
        let Some(LogWork::Append(work)) = log_work(held.turn()) else { unreachable!("it is written") };
        assert_eq!(work.entries[0].parent, Some("carried".into()));
    }
}
