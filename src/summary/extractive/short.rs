//! Two sentences about a part of a conversation: its subject, and where it stands.

use super::draft::Draft;
use crate::{
    conversation::entry::TodoState,
    redact::Clean,
    summary::{files::FileLists, prose::clip},
};

/// The sentences of a summary.
pub(super) fn of(history: &Draft<'_>, prefix: &Draft<'_>, files: &FileLists) -> Clean {
    let goal = history.goal().or_else(|| prefix.goal()).unwrap_or("The conversation so far");
    let requests = || prefix.ledger.requests.iter().rev().chain(history.ledger.requests.iter().rev());
    let latest = requests().next().map(|request| clip(&request.text, 90)).filter(|latest| clip(goal, 90) != *latest);
    let outcome = requests().find_map(|request| request.outcome.as_deref()).map(|outcome| clip(outcome, 90));
    let both = || [prefix, history].into_iter();
    let open = both().map(|part| part.ledger.todos.iter().filter(|todo| todo.state != TodoState::Done).count()).max();
    let failing = both().find_map(|part| part.ledger.failures.iter().rev().find(|failure| !failure.resolved));
    let changed = files.modified_files.len() as u64 + files.modified_files_left_out;
    let mut stands: Vec<String> = Vec::new();
    match (latest, outcome) {
        (Some(latest), _) => stands.push(format!("last asked: {}", bare(&latest))),
        (None, Some(outcome)) => stands.push(format!("so far: {}", bare(&outcome))),
        (None, None) => {}
    }
    if let Some(failing) = failing {
        stands.push(format!("failing: {}", bare(&clip(&failing.label, 50))));
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

fn bare(text: &str) -> &str {
    text.trim_end_matches(['.', '!', ' '])
}

/// A sentence with its end.
fn ended(text: &str) -> String {
    let ends = ['.', '!', '?', '…', '。', '！', '？'];
    if text.ends_with(ends) { text.to_owned() } else { format!("{text}.") }
}
