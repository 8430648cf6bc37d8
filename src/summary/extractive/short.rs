//! Two sentences about a part of a conversation: its subject, and where it stands.

use super::draft::Draft;
use crate::{
    conversation::entry::TodoState,
    redact::Clean,
    summary::{files::FileLists, prose::clip},
};

/// The sentences of a summary.
pub(super) fn of(history: &Draft<'_>, prefix: &Draft<'_>, files: &FileLists) -> Clean {
    let goal = history.goal_line().or_else(|| prefix.goal_line());
    let goal = goal.as_deref().unwrap_or("The conversation so far");
    let requests = || prefix.ledger.requests.iter().rev().chain(history.ledger.requests.iter().rev());
    let latest = requests().next();
    let asked = latest.map(|request| clip(&request.text, 90)).filter(|asked| clip(goal, 90) != *asked);
    let outcome = match &asked {
        Some(_) => latest.and_then(|request| request.outcome.as_deref()),
        None => requests().find_map(|request| request.outcome.as_deref()),
    };
    let outcome = outcome.map(|outcome| clip(outcome, 90));
    let both = || [prefix, history].into_iter();
    let open = both().map(|part| part.ledger.todos.iter().filter(|todo| todo.state != TodoState::Done).count()).max();
    let failing = both().find_map(|part| part.ledger.failures.iter().rev().find(|failure| failure.is_open()));
    let changed = files.modified_files.len() as u64 + files.modified_files_left_out;
    let mut stands: Vec<String> = Vec::new();
    match (asked, outcome) {
        (Some(asked), Some(outcome)) => stands.push(format!("last asked: {} – {}", bare(&asked), bare(&outcome))),
        (Some(asked), None) => stands.push(format!("last asked: {}", bare(&asked))),
        (None, Some(outcome)) => stands.push(format!("so far: {}", bare(&outcome))),
        (None, None) => {}
    }
    if let Some(failing) = failing {
        let name = if failing.label.is_empty() { &failing.line } else { &failing.label };
        stands.push(format!("failing: {}", named(name)));
    }
    match open.unwrap_or_default() {
        0 => {}
        1 => stands.push("1 task is open".to_owned()),
        more => stands.push(format!("{more} tasks are open")),
    }
    match changed {
        0 => {}
        1 => stands.push("1 file was changed".to_owned()),
        more => stands.push(format!("{more} files were changed")),
    }
    let first = ended(&clip(goal, 140));
    if stands.is_empty() {
        return Clean::assembled(first);
    }
    let mut second = stands.join("; ");
    if let Some(first) = second.get(..1) {
        let first = first.to_uppercase();
        second.replace_range(..1, &first);
    }
    Clean::assembled(format!("{first} {}", ended(&second)))
}

/// A call by its tool and its argument. A path is its file.
fn named(label: &str) -> String {
    match label.split_once(' ') {
        Some((tool, path)) if path.contains('/') && !path.contains(' ') => {
            format!("{tool} {}", path.trim_end_matches('/').rsplit('/').next().unwrap_or(path))
        }
        _ => bare(&clip(label, 60)).to_owned(),
    }
}

fn bare(text: &str) -> &str {
    text.trim_end_matches(['.', '!', ' '])
}

/// A sentence with its end.
fn ended(text: &str) -> String {
    let ends = ['.', '!', '?', '…', '。', '！', '？'];
    if text.ends_with(ends) { text.to_owned() } else { format!("{text}.") }
}
