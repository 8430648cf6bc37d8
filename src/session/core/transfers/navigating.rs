//! `session/navigate`: the session goes on at another entry of its tree.

use super::{delivery::Delivery, entry_of};
use crate::{
    ids::EntryId,
    log::history::{points::NoPoint, route::Route},
    prompts,
    protocol::{
        SessionNavigate,
        errors::Failure,
        events::{Event, Stage},
        types::{HookEvent, LONGEST_LABEL, NavigateParams},
    },
    session::{
        core::{
            base::Base,
            command::{Command, CommandMethod, TransferRequest},
            step::Step,
            transfers,
            work::{Navigating, Task},
        },
        effects::Ticket,
        fault::{Fault, planted},
        jobs::transfer::{BranchOrder, BranchText, TransferText, TransferWork},
        kind::{Lack, Moved, Navigation, Transfer, Transferred},
        log_work::{Fetch, Fetched, RouteOrder},
        operations::Asked,
        state::State,
    },
    summary::{
        branch::{self, LeftPin},
        made::SummaryMethod,
    },
};
use serde_json::{Map, json};

impl CommandMethod for SessionNavigate {
    fn command(params: NavigateParams) -> Command {
        Command::Transfer(Box::new(TransferRequest::Navigate(params)))
    }
}

/// Handles a request for a navigation. Its way is read first.
pub(super) fn navigate(base: &mut Base, params: NavigateParams, ticket: Ticket) -> Option<Step> {
    let label = Failure::if_longer("label", params.label.as_deref(), LONGEST_LABEL);
    let instructions = || Failure::if_longer("instructions", params.instructions.as_deref(), prompts::LONGEST);
    if let Err(failure) = label.and_then(|()| instructions()) {
        return Some(Step::fail(ticket, &failure));
    }
    let Some(library) = base.state.history().library() else {
        base.await_index(SessionNavigate::command(params), ticket);
        return None;
    };
    let reads_left = summarizes_branches(&base.state, &params) || base.hooks.answers(HookEvent::SessionBeforeTree);
    let leaf = base.state.path().last().map(|leaf| leaf.id.clone());
    // While the way was read, a hook may have been registered, and another program may have gone on from the leaf.
    let holds = |route: &Result<Route, _>| {
        route.as_ref().map_or(true, |route| route.from == leaf && (route.reads_left || !reads_left))
    };
    let route = match base.state.fetched.take() {
        Some(Fetched::Route(target, route)) if target == params.target_entry_id && holds(&route) => *route,
        _ => {
            let order = RouteOrder { target: params.target_entry_id.clone(), leaf, library, reads_left };
            base.fetch(Fetch::Route(order), SessionNavigate::command(params), ticket);
            return None;
        }
    };
    match route {
        Ok(route) => leave_for(base, route, params, ticket),
        Err(none) => Some(Step::fail(ticket, &refused(&none, &params.target_entry_id))),
    }
}

/// Starts the operation of a navigation whose way is known.
fn leave_for(base: &mut Base, route: Route, params: NavigateParams, ticket: Ticket) -> Option<Step> {
    let id = base.stamps.operation();
    let old_leaf = base.state.visible_leaf();
    // Without anything to summarize the session moves as if no summary was asked for.
    let summarizes = summarizes_branches(&base.state, &params) && branch::has_content(&route.left);
    let navigation = Navigation {
        old_leaf: old_leaf.clone(),
        target: params.target_entry_id.clone(),
        common_ancestor: route.common_ancestor.clone(),
        entry_count: route.left.len(),
        summarizes,
    };
    let asked = Asked::by(ticket, params.wait);
    let hooks = base.hooks.clone();
    let asks = hooks.answers(HookEvent::SessionBeforeTree);
    // The start event of the hook names the operation, too.
    let is_introduced = summarizes || asks || matches!(asked, Asked::Answered(_));
    let label = params.label.as_deref().map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned);
    let mut operation = transfers::open(base, id, Transfer::Navigation(navigation), asked);
    let task = Task::Navigation(Navigating { route: route.clone(), label, is_introduced });
    if !(summarizes || asks) {
        return Some(Step::Deliver(operation, task, None));
    }
    if summarizes {
        operation.progress(Stage::Summarizing, 0, 1);
    }
    let pins = LeftPin::between(base.state.path(), &route.there);
    let (view, path, is_warm) = (base.state.view(), base.state.path().clone(), base.is_cache_warm());
    let order = BranchOrder { route, params, old_leaf, pins, view, path, is_warm, hooks, summarizes };
    let model = base.state.model(base.state.path());
    transfers::make_text(base, operation, task, TransferWork::Branch(Box::new(order)), model);
    None
}

/// The entries of a navigation. Messages that came meanwhile are not in the summary, so they stop it.
pub(super) fn staged(base: &mut Base, navigating: Navigating, text: Option<TransferText>) -> Result<Delivery, Failure> {
    // Pins and undos that stood after the leaf before are no news.
    let stays = match &navigating.route.from {
        Some(last) => base.state.unchanged_since(last),
        None => base.state.path().iter().all(|entry| !entry.in_context()),
    };
    if !stays {
        return Err(Failure::ContentModified { leaf: base.state.visible_leaf() });
    }
    let costs = base.costs.take(&base.state, &mut base.stamps);
    let Navigating { route, label, .. } = &navigating;
    // Lines that change no context, as a title, may have come since the start.
    let old_leaf = base.state.visible_leaf();
    let branch = text.as_ref().and_then(TransferText::branch);
    let label = branch.and_then(|branch| branch.label.clone()).or_else(|| label.clone());
    let summary = branch.and_then(|branch| branch.summary.as_ref());
    let before = costs.entries.last().or_else(|| base.state.path().last()).map(|leaf| leaf.id.clone());
    let (stamp, mut entries) = (base.stamps.stamp(), Vec::new());
    let summary_id = summary.map(|_| stamp.id.clone());
    let moves = route.leaf != old_leaf || summary.is_some();
    if let Some(label) = &label {
        // The last line is the leaf, so the label stands before it, on the branch that is left.
        let target = summary_id.as_ref().unwrap_or(&route.target.id);
        let fields = [("targetId", json!(target)), ("label", json!(label))];
        entries.push(entry_of("label", &base.stamps.stamp(), before.as_ref(), &fields)?);
    }
    if let Some(summary) = summary {
        let from = old_leaf.as_ref().map_or("root", EntryId::as_str);
        let made = &summary.made;
        let mut fields =
            vec![("fromId", json!(from)), ("summary", json!(summary.text)), ("method", json!(made.method))];
        fields.extend(summary.details.clone().map(|details| ("details", details)));
        if made.by.is_some() || !made.rejected.is_empty() {
            let mut ours = Map::new();
            ours.extend(made.by.as_ref().map(|by| ("summarizer".to_owned(), json!(by))));
            ours.extend((!made.rejected.is_empty()).then(|| ("rejected".to_owned(), json!(made.rejected))));
            fields.push(("preserveData", json!({"abridged": ours})));
        }
        if made.method == SummaryMethod::Hook {
            // Two programs read two names.
            fields.extend([("fromHook", json!(true)), ("fromExtension", json!(true))]);
        }
        let parent = route.parent.as_ref();
        entries.push(entry_of("branch_summary", &stamp, parent, &fields)?);
    } else if moves {
        let data = json!({"targetEntryId": route.target.id, "oldLeafId": old_leaf});
        let fields = [("customType", json!("abridged.leaf")), ("data", data)];
        let parent = if planted(Fault::StateForgotten) { route.leaf.as_ref() } else { route.parent.as_ref() };
        entries.push(entry_of("custom", &stamp, parent, &fields)?);
    } else if label.is_some() {
        // The label is no leaf.
        let fields = [("customType", json!("abridged.leaf")), ("data", json!({"targetEntryId": route.target.id}))];
        entries.push(entry_of("custom", &stamp, before.as_ref(), &fields)?);
    }
    let leaf = summary_id.clone().or_else(|| route.leaf.clone());
    let event = (!entries.is_empty()).then(|| Event::TreeChanged {
        old_leaf_id: old_leaf.clone(),
        new_leaf_id: leaf.clone(),
        summary_entry_id: summary_id.clone(),
        label,
    });
    let lack = branch.and_then(lack);
    let moved = Moved { left: old_leaf, leaf, editor_text: route.editor_text.clone(), summary: summary_id, lack };
    let result = Transferred::Moved(moved);
    Ok(Delivery { task: Box::new(Task::Navigation(navigating)), text, costs, entries, event, result })
}

fn summarizes_branches(state: &State, params: &NavigateParams) -> bool {
    params.summarize.unwrap_or(state.settings().settings.branch_summary.enabled)
}

/// A navigation that is cancelled before its way is known.
pub(super) fn unstarted_navigation(state: &State, params: &NavigateParams) -> Navigation {
    Navigation {
        old_leaf: state.visible_leaf(),
        target: params.target_entry_id.clone(),
        common_ancestor: None,
        entry_count: 0,
        summarizes: summarizes_branches(state, params),
    }
}

/// The way in which the summary of a branch is less than it was asked for.
fn lack(text: &BranchText) -> Option<Lack> {
    if text.lacks_room {
        return Some(Lack::Room);
    }
    let made = &text.summary.as_ref()?.made;
    let of_a_model = made.rejected.iter().rev().find(|it| it.method != SummaryMethod::Hook);
    of_a_model.filter(|_| made.is_extracted()).map(|last| Lack::Model(last.why.clone()))
}

/// The error of a target at which no session goes on.
fn refused(none: &NoPoint, target: &EntryId) -> Failure {
    let what = match none {
        NoPoint::Unknown => return Failure::no_entry(target),
        NoPoint::Marker(before) => format!(
            "entry {target} is a marker of abridged and no point of the conversation; {}",
            match before {
                Some(before) => format!("navigate to the entry before it, {before}"),
                None => "it stands before the first message".to_owned(),
            }
        ),
        NoPoint::InBatch(last) => format!(
            "entry {target} is a tool result in the middle of a batch of calls; navigate to the last result of the batch, \
             {last}, or to the answer with the calls"
        ),
    };
    Failure::params("targetEntryId", &what)
}

#[cfg(test)]
mod tests {
    use crate::{
        protocol::SessionNavigate,
        session::{
            core::{
                Input,
                command::CommandMethod as _,
                held::{Held, answer, job, line, log_work},
            },
            jobs::{Job, transfer::TransferWork},
        },
    };
    use serde_json::json;

    #[test]
    fn a_message_of_another_program_that_comes_while_the_way_is_read_is_on_the_way() {
        let mut held = Held::new();
        let params = json!({"sessionId": "held", "targetEntryId": "branch", "summarize": true, "wait": true});
        held.send(1, SessionNavigate::command(serde_json::from_value(params).expect("params")));
        let first = log_work(held.turn()).expect("the way is read");
        let said = json!({"message": {"role": "user", "content": "from outside", "timestamp": 1}});
        held.disk.append_as_another(&line("outside", Some("e39"), "message", said)).expect("room");
        held.feed(Input::FileTouched);
        held.back(first);
        let grown = log_work(held.turn()).expect("the file is read");
        held.back(grown);
        let second = log_work(held.turn()).expect("the way is read again");
        held.back(second);
        let effects = held.turn();
        assert!(answer(&effects, 1).is_none());
        let Job::Transfer(order) = job(effects) else { unreachable!("the branch is summarized") };
        let TransferWork::Branch(order) = order.work else { unreachable!("the branch is summarized") };
        assert_eq!(order.old_leaf, Some("outside".into()));
        assert_eq!(order.route.left.last().map(|last| last.id.clone()), order.old_leaf);
    }
}
