//! Pruning: old tool results are replaced with a notice. The newest results and those of protected tools stay. A read of a
//! file that a newer read stands for goes first, whatever its age and its tool. A small gain is not worth an edit, because
//! each edit costs the provider's prompt cache after it.

pub mod cache;
pub mod pays;
mod protected;
mod superseded;

pub use superseded::named_part;

use crate::{
    conversation::{
        entry::{ContextEdit, Entry, Replacement},
        message::{Message, ToolResult, outline::Role},
        tokens::Estimator,
    },
    ids::EntryId,
    settings::{FileTool, PruneSettings, Settings},
};
use std::{collections::HashSet, sync::Arc};

/// The settings of a pruning.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The limits, and the tools whose results stay.
    pub settings: &'a PruneSettings,
    /// Tools that touch files, before the known ones.
    pub tools: &'a [FileTool],
}

/// The standing of an entry in the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may be cut.
    Free,
    /// It is pinned, and stays.
    Pinned,
    /// No model has read it, so it stays.
    Unread,
    /// An edit replaces or removes it.
    Edited,
}

/// The edits of a pruning.
#[derive(Debug, Clone, Default)]
pub struct Pruned {
    /// One edit for each result. Superseded reads come first.
    pub edits: Vec<ContextEdit>,
    /// Number of the superseded reads.
    pub superseded: usize,
    /// Freed tokens, by the estimate.
    pub tokens_saved: u64,
}

impl<'a> From<&'a Settings> for Rules<'a> {
    fn from(settings: &'a Settings) -> Self {
        Self { settings: &settings.prune, tools: &settings.tools.files }
    }
}

impl Pruned {
    /// Replaces a result with a notice, if that is smaller.
    fn cut(&mut self, entry: &Entry, estimator: Estimator, notice: impl Fn(u32) -> String) -> bool {
        let tokens = entry.tokens(estimator);
        let notice = notice(tokens);
        let saved = u64::from(tokens).saturating_sub(Estimator::Chars.of_text(&notice));
        if saved > 0 {
            self.tokens_saved += saved;
            self.edits.push(edit(entry, notice.into()));
        }
        saved > 0
    }

    /// The same, if it frees so many tokens.
    fn at_least(self, tokens: u64) -> Self {
        if self.tokens_saved < tokens { Self::default() } else { self }
    }
}

/// The tool results among entries, newest first.
pub fn results(entries: &[Arc<Entry>]) -> impl Iterator<Item = (&Arc<Entry>, &ToolResult)> {
    entries.iter().rev().filter(|entry| entry.is_from(Role::ToolResult)).filter_map(|entry| match entry.message() {
        Some(Message::ToolResult(result)) => Some((entry, result)),
        _ => None,
    })
}

/// Cuts the superseded reads, then the results before the newest `protect_tokens` of results that stay, if all of it
/// together frees at least `minimum_savings`. Neither the newest results nor protected tools protect a superseded read: its
/// text is in the newer one.
#[must_use]
pub fn prune(
    entries: &[Arc<Entry>],
    rules: Rules<'_>,
    estimator: Estimator,
    standing: &dyn Fn(&Entry) -> Standing,
) -> Pruned {
    let settings = rules.settings;
    let mut pruned = superseded_of(entries, rules, estimator, standing);
    let gone: HashSet<EntryId> = pruned.edits.iter().map(|edit| edit.target_id.clone()).collect();
    let mut newer = 0;
    for (entry, result) in results(entries).filter(|(entry, _)| !gone.contains(&entry.id)) {
        let protected =
            newer < settings.protect_tokens || protected::is_protected(&settings.protected_tools, &result.tool);
        newer += u64::from(entry.tokens(estimator));
        if !protected && !result.pruned && standing(entry) == Standing::Free {
            pruned.cut(entry, estimator, |tokens| format!("[Output truncated - {tokens} tokens]"));
        }
    }
    pruned.at_least(settings.minimum_savings)
}

/// Cuts the superseded reads alone, if that frees at least `minimum_savings`.
#[must_use]
pub fn prune_superseded(
    entries: &[Arc<Entry>],
    rules: Rules<'_>,
    estimator: Estimator,
    standing: &dyn Fn(&Entry) -> Standing,
) -> Pruned {
    superseded_of(entries, rules, estimator, standing).at_least(rules.settings.minimum_savings)
}

fn superseded_of(
    entries: &[Arc<Entry>],
    rules: Rules<'_>,
    estimator: Estimator,
    standing: &dyn Fn(&Entry) -> Standing,
) -> Pruned {
    let mut pruned = Pruned::default();
    for entry in superseded::superseded(entries, rules, estimator, standing) {
        let notice = |tokens| format!("[Older read of this file left out, a newer one follows - {tokens} tokens]");
        pruned.superseded += usize::from(pruned.cut(entry, estimator, notice));
    }
    pruned
}

/// An edit that replaces the content of an entry.
#[must_use]
pub fn edit(entry: &Entry, content: serde_json::Value) -> ContextEdit {
    ContextEdit { target_id: entry.id.clone(), replacement: Some(Replacement { content: content.into() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::lines;
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
            let settings = PruneSettings {
                protect_tokens,
                minimum_savings,
                protected_tools: vec!["read".to_owned()],
                cache_seconds: 300,
            };
            let standing = |entry: &Entry| if entry.id.as_str() == "e3" { Standing::Pinned } else { Standing::Free };
            let pruned = prune(&entries, Rules { settings: &settings, tools: &[] }, Estimator::Chars, &standing);
            let ids: Vec<String> = pruned.edits.iter().map(|edit| edit.target_id.to_string()).collect();
            (ids.join(" "), pruned.tokens_saved)
        };
        // A notice has 8 tokens. The results of 60 and 50 tokens are the newest 110.
        assert_eq!(cut(0, 110), ("e5 e0".to_owned(), 93));
        assert_eq!(cut(0, 111), ("e0".to_owned(), 92));
        assert_eq!(cut(93, 110), ("e5 e0".to_owned(), 93));
        assert_eq!(cut(94, 110), (String::new(), 0));
    }

    #[test]
    fn superseded_reads_go_first_and_are_protected_by_nothing() {
        let call = |at: usize, path: &str| {
            let call = json!({"type": "toolCall", "id": format!("c{at}"), "name": "read", "arguments": {"path": path}});
            let message = json!({"role": "assistant", "content": [call], "stopReason": "toolUse"});
            json!({"type": "message", "message": message})
        };
        let result = |at: usize, tool: &str, tokens: usize| {
            let text = json!([{"type": "text", "text": "abc ".repeat(tokens)}]);
            let message =
                json!({"role": "toolResult", "toolCallId": format!("c{at}"), "toolName": tool, "content": text});
            json!({"type": "message", "message": message})
        };
        // e1 is an old result, e3 is read again as e5, which is protected as the newest and by its tool.
        let path = lines::path(&[
            call(9, "x"),
            result(0, "bash", 100),
            call(1, "a"),
            result(1, "read", 200),
            call(2, "a"),
            result(2, "read", 200),
        ]);
        let cut = |protect_tokens, minimum_savings| {
            let settings = PruneSettings {
                protect_tokens,
                minimum_savings,
                protected_tools: vec!["read".to_owned()],
                cache_seconds: 300,
            };
            let rules = Rules { settings: &settings, tools: &[] };
            [prune, prune_superseded].map(|prune| {
                let pruned = prune(&path, rules, Estimator::Chars, &|_| Standing::Free);
                let ids: Vec<String> = pruned.edits.iter().map(|edit| edit.target_id.to_string()).collect();
                (ids.join(" "), pruned.superseded, pruned.tokens_saved)
            })
        };
        let (all, alone) = (("e3 e1".to_owned(), 1, 275), ("e3".to_owned(), 1, 183));
        assert_eq!(cut(200, 183), [all.clone(), alone.clone()]);
        assert_eq!(cut(201, 183), [alone.clone(), alone], "what is cut protects nothing");
        assert_eq!(cut(200, 184), [all, (String::new(), 0, 0)], "superseded reads count for the minimum");
        let notice = &prune_superseded(&path, Rules::from(&Settings::default()), Estimator::Chars, &|_| Standing::Free);
        assert!(notice.edits.is_empty(), "20,000 tokens by default");
    }
}
