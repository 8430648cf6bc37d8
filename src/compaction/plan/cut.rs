//! The cut between the entries that are summarized and those that are kept.

/// The role of an entry for a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first entry of a turn. A cut may be before it.
    TurnStart,
    /// A message inside a turn. A cut before it splits the turn.
    Message,
    /// A tool result. It is never separated from its call.
    ToolResult,
    /// An entry that no model is sent. It stays with the entry after it.
    Metadata,
    /// An earlier compaction.
    Compaction,
}

/// An entry as a cut sees it.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Its role.
    pub kind: Kind,
    /// Its size in tokens.
    pub tokens: u64,
}

/// The place where a window of steps is cut. `cut` and `Plan::keeping_from` are the only makers, so no result is
/// separated from its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    at: usize,
    history_end: usize,
}

impl Cut {
    /// The first kept step; the number of steps if none is kept.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The end of the whole turns. The steps from here to the cut are the beginning of a turn whose end is kept.
    #[must_use]
    pub fn history_end(&self) -> usize {
        self.history_end
    }

    /// Whether the cut is inside a turn.
    #[must_use]
    pub fn splits_a_turn(&self) -> bool {
        self.history_end < self.at
    }
}

/// Cuts a window so that about `keep` tokens stay. The sum of the newest steps reaches `keep` at some step. The cut is at
/// the first possible place from that step on, or else at the last possible place before it. With a `keep` of 0 no step
/// stays. `pending` is the place of an answer whose calls still wait for results; it always stays.
#[must_use]
pub fn cut(steps: &[Step], keep: u64, pending: Option<usize>) -> Cut {
    let may_cut = |place: &usize| matches!(steps[*place].kind, Kind::TurnStart | Kind::Message);
    let nothing = Cut { at: 0, history_end: 0 };
    let mut sum = 0;
    let reached = (0..steps.len()).rev().find(|&place| {
        sum += steps[place].tokens;
        keep > 0 && sum >= keep
    });
    let at = match reached {
        None if keep == 0 => Some(steps.len()),
        None => return nothing,
        Some(from) => (from..steps.len()).find(may_cut).or_else(|| (0..from).rev().find(may_cut)),
    };
    match at {
        Some(at) => before(steps, pending.map_or(at, |pending| at.min(pending))),
        None => nothing,
    }
}

/// The cut before a message, or after all steps.
pub(super) fn before(steps: &[Step], at: usize) -> Cut {
    // Decided before metadata is pulled in, which is the beginning of nothing.
    let begins_a_turn = steps.get(at).is_none_or(|step| step.kind == Kind::TurnStart);
    let turn_start = (0..at).rev().find(|&place| steps[place].kind == Kind::TurnStart);
    let pulled = (0..at).rev().find(|&place| steps[place].kind != Kind::Metadata).map_or(0, |place| place + 1);
    // With nothing kept the metadata at the end goes too.
    let at = if at == steps.len() { at } else { pulled };
    let history_end = match turn_start {
        Some(start) if !begins_a_turn => start,
        _ => at,
    };
    Cut { at, history_end }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `u:10k a:2k t:40k`: user, answer, tool result, x for execution, m for metadata, c for a compaction.
    fn steps(text: &str) -> Vec<Step> {
        let step = |word: &str| {
            let (kind, size) = word.split_once(':').unwrap_or((word, "0"));
            let tokens = match size.strip_suffix('k') {
                Some(thousands) => 1_000 * thousands.parse::<u64>().expect("a number"),
                None => size.parse().expect("a number"),
            };
            let kind = match kind {
                "u" | "x" => Kind::TurnStart,
                "a" => Kind::Message,
                "t" => Kind::ToolResult,
                "m" => Kind::Metadata,
                "c" => Kind::Compaction,
                other => panic!("no such step: {other}"),
            };
            Step { kind, tokens }
        };
        text.split(' ').map(step).collect()
    }

    fn check(text: &str, keep: u64, expected: &str) {
        let steps = steps(text);
        let cut = cut(&steps, keep, None);
        let words: Vec<&str> = text.split(' ').collect();
        let freed: u64 = steps[..cut.at()].iter().map(|step| step.tokens).sum();
        let before = words.get(cut.at()).map_or("the end".to_owned(), |word| format!("{word} at {}", cut.at()));
        let split =
            if cut.splits_a_turn() { format!(", splits the turn at {}", cut.history_end()) } else { String::new() };
        assert_eq!(format!("cut before {before}, frees {freed}{split}"), expected, "{text} keeping {keep}");
    }

    #[test]
    fn a_cut_is_a_row() {
        check("u:10k a:2k t:40k a:1k", 20_000, "cut before a:1k at 3, frees 52000, splits the turn at 0");
        check("u:1k a:1k u:1k a:1k", 1_500, "cut before u:1k at 2, frees 2000");
        check("u:1k a:1k u:1k a:1k", 1_000, "cut before a:1k at 3, frees 3000, splits the turn at 2");
        check("u:1k a:1k u:1k a:1k", 9_000, "cut before u:1k at 0, frees 0");
        check("u:1k a:1k u:1k a:1k", 0, "cut before the end, frees 4000");
        // The result on the edge alone reaches the goal: nothing may be cut at or after it.
        check("u:1k a:1k u:1k a:1k t:30k", 20_000, "cut before a:1k at 3, frees 3000, splits the turn at 2");
        check("u:1k a:1k m m u:1k a:1k", 2_000, "cut before m at 2, frees 2000");
        check("u:1k a:1k m a:1k t:1k", 1_500, "cut before m at 2, frees 2000, splits the turn at 0");
        check("x:1k a:1k x:1k", 1_000, "cut before x:1k at 2, frees 2000");
        check("t:5k t:5k", 1_000, "cut before t:5k at 0, frees 0");
        check("u:1k c u:1k a:1k", 2_000, "cut before u:1k at 2, frees 1000");
    }

    #[test]
    fn metadata_at_the_end_is_not_kept_alone() {
        check("u:1k a:1k m", 0, "cut before the end, frees 2000");
    }

    #[test]
    fn an_answer_that_waits_for_results_is_kept_even_when_nothing_is() {
        let steps = steps("u:1k a:1k t:1k a:1k t:1k");
        assert_eq!(cut(&steps, 0, Some(3)).at(), 3);
        assert_eq!(cut(&steps, 1, Some(1)).at(), 1);
    }
}
