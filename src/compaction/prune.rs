//! Pruning: old tool results are replaced with a notice. The newest results and those of protected tools stay. A small
//! gain is not worth an edit, because each edit costs the provider's prompt cache behind it.

use crate::{
    conversation::{
        entry::{ContextEdit, Entry, Replacement},
        message::{Message, ToolResult, outline::Role},
        tokens::Estimator,
    },
    settings::PruneSettings,
};
use std::sync::Arc;

/// The edits of a pruning.
#[derive(Debug, Clone, Default)]
pub struct Pruned {
    /// One edit for each result.
    pub edits: Vec<ContextEdit>,
    /// Freed tokens, by the estimate.
    pub tokens_saved: u64,
}

/// The tool results among entries, newest first.
pub fn results(entries: &[Arc<Entry>]) -> impl Iterator<Item = (&Arc<Entry>, &ToolResult)> {
    entries.iter().rev().filter(|entry| entry.is_from(Role::ToolResult)).filter_map(|entry| match entry.message() {
        Some(Message::ToolResult(result)) => Some((entry, result)),
        _ => None,
    })
}

/// Cuts the results before the newest `protect_tokens` of results, if that frees at least `minimum_savings`. `may` tells
/// whether an entry may be cut.
#[must_use]
pub fn prune(
    entries: &[Arc<Entry>],
    settings: &PruneSettings,
    estimator: Estimator,
    may: &dyn Fn(&Entry) -> bool,
) -> Pruned {
    let mut newer = 0;
    let mut pruned = Pruned::default();
    for (entry, result) in results(entries) {
        let tokens = u64::from(entry.tokens(estimator));
        let protected = newer < settings.protect_tokens || settings.protected_tools.contains(&result.tool);
        newer += tokens;
        if protected || result.pruned || !may(entry) {
            continue;
        }
        let notice = format!("[Output truncated - {tokens} tokens]");
        let left = Estimator::Chars.of_text(&notice);
        if tokens > left {
            pruned.tokens_saved += tokens - left;
            pruned.edits.push(edit(entry, notice.into()));
        }
    }
    if pruned.tokens_saved < settings.minimum_savings { Pruned::default() } else { pruned }
}

/// An edit that replaces the content of an entry.
#[must_use]
pub fn edit(entry: &Entry, content: serde_json::Value) -> ContextEdit {
    ContextEdit { target_id: entry.id.clone(), replacement: Some(Replacement { content }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(at: usize, tool: &str, tokens: usize) -> Arc<Entry> {
        let text = json!([{"type": "text", "text": "abc ".repeat(tokens)}]);
        let mut message =
            json!({"role": "toolResult", "toolCallId": "c", "toolName": tool, "isError": false, "content": text});
        if tool == "pruned" {
            message["prunedAt"] = json!(1);
        }
        let line = json!({"type": "message", "id": format!("e{at}"), "message": message});
        Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
    }

    #[test]
    fn results_before_the_newest_are_cut_where_that_is_worth_an_edit() {
        let entries: Vec<Arc<Entry>> = [
            ("bash", 100),
            ("read", 100),
            ("pruned", 100),
            ("no", 100),
            ("bash", 8),
            ("bash", 9),
            ("bash", 60),
            ("bash", 50),
        ]
        .into_iter()
        .enumerate()
        .map(|(at, (tool, tokens))| result(at, tool, tokens))
        .collect();
        let cut = |minimum_savings, protect_tokens| {
            let settings = PruneSettings { protect_tokens, minimum_savings, protected_tools: vec!["read".to_owned()] };
            let may = |entry: &Entry| entry.id.as_str() != "e3";
            let pruned = prune(&entries, &settings, Estimator::Chars, &may);
            let ids: Vec<String> = pruned.edits.iter().map(|edit| edit.target_id.to_string()).collect();
            (ids.join(" "), pruned.tokens_saved)
        };
        // A notice has 8 tokens. The results of 60 and 50 tokens are the newest 110.
        assert_eq!(cut(0, 110), ("e5 e0".to_owned(), 93));
        assert_eq!(cut(0, 111), ("e0".to_owned(), 92));
        assert_eq!(cut(93, 110), ("e5 e0".to_owned(), 93));
        assert_eq!(cut(94, 110), (String::new(), 0));
    }
}
