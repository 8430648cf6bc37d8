//! The items of an extracted summary, taken under a budget for each kind of fact.

use super::{Part, last_words::head_and_end};
use crate::summary::{
    prose::clip,
    sections::{self, Section},
};
use std::collections::HashSet;

/// The kinds of items, the most important first. Where a summary is too large after all, the last ones go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Instructions for this summary.
    Wish,
    Goal,
    /// Rules and wishes of the user.
    Rules,
    /// Facts that the user stated.
    Facts,
    /// Open tasks.
    Open,
    /// The latest request.
    Latest,
    /// Results that were told in the turn that goes on.
    SoFar,
    /// Failures that are not solved.
    Failures,
    Requests,
    /// Requests and tasks of earlier summaries.
    Earlier,
    /// Sentences of messages that asked for nothing.
    Mentioned,
    /// The agent's last words.
    Last,
    /// Rules in instructions of the project, which most harnesses give again.
    Instructions,
    /// Failures that were solved.
    Solved,
    /// Requests that the user went on without.
    LeftOff,
    Decisions,
    /// Lines of the conversation.
    Lines,
}

/// Label of the instructions that a summary quotes.
pub(super) const WISH: &str = "Instructions for this summary: ";

/// Label of the agent's last words.
pub(super) const LAST: &str = "said last: ";

/// A summary in tokens below which statements of the user come before anything else.
pub(super) const TINY: u64 = 900;

/// A summary in tokens that has room for everything else beside the statements of the user.
pub(super) const AMPLE: u64 = 2_000;

/// A share, in hundredths, that is `tiny` in a tiny summary and `ample` in one with ample room.
fn between(cap: u64, tiny: u64, ample: u64) -> u64 {
    let above = cap.clamp(TINY, AMPLE) - TINY;
    tiny - (tiny - ample) * above / (AMPLE - TINY)
}

impl Kind {
    fn part(self) -> Option<Part> {
        Some(match self {
            Self::Rules | Self::Facts | Self::Mentioned => Part::Statements,
            Self::Latest | Self::SoFar | Self::Requests | Self::Earlier | Self::LeftOff => Part::Requests,
            Self::Failures | Self::Solved => Part::Failures,
            Self::Decisions => Part::Decisions,
            Self::Last => Part::LastWords,
            Self::Wish | Self::Goal | Self::Open | Self::Instructions | Self::Lines => return None,
        })
    }

    /// The label of its items.
    fn label(self) -> &'static str {
        match self {
            Self::Wish => WISH,
            Self::Last => LAST,
            _ => "",
        }
    }

    /// The shorter form of an item that has a place in any case, with about `chars` characters after its label.
    fn shortened(self, text: &str, chars: usize) -> Option<String> {
        let shorten: fn(&str, usize) -> String = match self {
            Self::Goal | Self::Latest | Self::Wish => clip,
            Self::Last => head_and_end,
            _ => return None,
        };
        let label = self.label();
        let (label, text) = text.strip_prefix(label).map_or(("", text), |text| (label, text));
        Some(format!("{label}{}", shorten(text, chars)))
    }

    /// Tokens that a kind has in any case.
    fn least(self) -> u64 {
        match self {
            Self::Goal | Self::Latest => 40,
            Self::Rules | Self::Open => 60,
            _ => 0,
        }
    }

    /// The largest share of a summary of `cap` tokens, in hundredths.
    fn share(self, cap: u64) -> u64 {
        match self {
            Self::Wish => 25,
            Self::Goal if cap < TINY => 8,
            Self::Goal => 15,
            Self::Rules => between(cap, 75, 40),
            Self::Facts => between(cap, 75, 20),
            Self::Open => 25,
            Self::Latest => 12,
            Self::SoFar => 8,
            Self::Failures => 12,
            Self::Requests if cap < AMPLE => 15,
            Self::Requests if cap < 3_000 => 26,
            Self::Requests => 32,
            Self::Earlier => 8,
            Self::Mentioned if cap < AMPLE => 6,
            Self::Mentioned => 10,
            Self::Last => 8,
            Self::Instructions => 10,
            Self::Solved => 6,
            Self::LeftOff => 4,
            Self::Decisions => 6,
            Self::Lines => 100,
        }
    }
}

/// Items in a row that do not fit before a share is full. Each of them is measured.
const MOST_MISSES: usize = 64;

/// An item is shortened down to about this length after its label, in bytes.
const SHORT: usize = 40;

struct Item {
    kind: Kind,
    section: Section,
    text: String,
    tokens: u64,
}

/// The items that a summary has so far.
pub(super) struct Items<'a> {
    cap: u64,
    measure: &'a dyn Fn(&str) -> u64,
    items: Vec<Item>,
    known: HashSet<String>,
    root: Option<&'a str>,
    without: Option<Part>,
    /// Tokens that the latest request needs.
    reserved: u64,
}

impl<'a> Items<'a> {
    pub(super) fn new(cap: u64, without: Option<Part>, measure: &'a dyn Fn(&str) -> u64) -> Self {
        Self { cap, measure, items: Vec::new(), known: HashSet::new(), root: None, without, reserved: 0 }
    }

    /// Takes items of a kind in this order, as far as its share has room. Returns whether it had room for all.
    pub(super) fn take(&mut self, kind: Kind, items: impl IntoIterator<Item = (Section, String)>) -> bool {
        if self.without.is_some() && self.without == kind.part() {
            return true;
        }
        let mut left = self.room_of(kind);
        let (mut misses, mut all) = (0, true);
        for (section, text) in items {
            let text = text.trim();
            let is_gap = text == sections::GAP;
            if left < 6 && !is_gap || misses > MOST_MISSES {
                return false;
            }
            // The latest request is told though it is the goal, too.
            let is_known = kind != Kind::Latest && self.known.contains(&text.to_lowercase())
                || kind == Kind::Facts && self.is_in_goal(text);
            if text.is_empty() || is_known && !is_gap {
                continue;
            }
            let (whole, mut chars) = (text, text.chars().count());
            let mut text = text.to_owned();
            let mut tokens = self.cost(section, &text);
            // A goal that is too long is still the goal.
            while tokens > left && text.len() > SHORT + kind.label().len() {
                chars = chars * 2 / 3;
                let Some(shorter) = kind.shortened(whole, chars) else { break };
                text = shorter;
                tokens = self.cost(section, &text);
            }
            if tokens > left {
                (misses, all) = (misses + 1, false);
                continue;
            }
            misses = 0;
            left -= tokens;
            self.known.insert(text.to_lowercase());
            self.items.push(Item { kind, section, text, tokens });
        }
        all
    }

    /// Keeps about `tokens` free for the latest request, which comes after facts and is told in any case.
    pub(super) fn reserve(&mut self, tokens: u64) {
        self.reserved = tokens.min(Kind::Latest.least()).min(self.cap / 8);
    }

    /// The tokens that requests of earlier summaries have beside their share: those that the requests since leave.
    fn inherited(&self, kind: Kind) -> u64 {
        if kind != Kind::Earlier {
            return 0;
        }
        let used: u64 = self.items.iter().filter(|item| item.kind == Kind::Requests).map(|item| item.tokens).sum();
        (self.cap * Kind::Requests.share(self.cap) / 100).saturating_sub(used)
    }

    /// The tokens that are left for a kind.
    fn room_of(&self, kind: Kind) -> u64 {
        // A sum is larger than the whole. In a tiny summary the difference is room for a fact.
        let used = match self.cap < TINY {
            true => self.size(),
            false => self.items.iter().map(|item| item.tokens).sum(),
        };
        let of_kind: u64 = self.items.iter().filter(|item| item.kind == kind).map(|item| item.tokens).sum();
        // Two thirds for facts, so that there is always something of what was actually said. A tiny summary is facts.
        let all = self.cap * between(self.cap, 100, 67) / 100;
        let share = (self.cap * kind.share(self.cap) / 100).max(kind.least()) + self.inherited(kind);
        let reserved = if kind < Kind::Latest { self.reserved } else { 0 };
        share.saturating_sub(of_kind).min(all.saturating_sub(used + reserved))
    }

    /// Whether a text is a part of the goal.
    fn is_in_goal(&self, text: &str) -> bool {
        self.items.iter().any(|item| item.kind == Kind::Goal && item.text.contains(text))
    }

    /// Takes these items, which are in their order. Where there is no room for all, the first ones and the last ones are taken.
    pub(super) fn take_both_ends(&mut self, kind: Kind, items: Vec<(Section, String)>) {
        let all = items.len();
        // The first item has the heading of its section, too.
        let of_heading = items.first().map_or(0, |(section, _)| self.of_heading(*section));
        let room = self.room_of(kind).saturating_sub(of_heading);
        let size: u64 = items.iter().map(|(section, text)| self.of_line(*section, text)).sum();
        if size <= room {
            self.take(kind, items);
            return;
        }
        // The line that says how many are left out. A small summary has no room for the number.
        let gap = |count: usize| if self.cap >= AMPLE { sections::left_out(count) } else { sections::GAP.to_owned() };
        let (mut used, mut first, mut last) = (self.of_line(Section::Context, &gap(all)), 0, 0);
        while first + last < all {
            // Two of three are of the first ones: the rules of the first message hold longest.
            let takes_first = first <= last * 2;
            let at = if takes_first { first } else { all - 1 - last };
            used += self.of_line(items[at].0, &items[at].1);
            if used > room {
                break;
            }
            if takes_first {
                first += 1
            } else {
                last += 1
            };
        }
        let left_out = all - first - last;
        let gap = items.first().filter(|_| left_out > 0).map(|(section, _)| (*section, gap(left_out)));
        let (mut chosen, end): (Vec<_>, Vec<_>) = items
            .into_iter()
            .enumerate()
            .filter(|(at, _)| *at < first || *at >= all - last)
            .partition(|(at, _)| *at < first);
        chosen.extend(gap.map(|gap| (first, gap)));
        chosen.extend(end);
        self.take(kind, chosen.into_iter().map(|(_, item)| item));
    }

    /// Takes the first of these items, with a mark where others are left out.
    pub(super) fn take_first(&mut self, kind: Kind, items: Vec<(Section, String)>) {
        let section = items.first().map(|(section, _)| *section);
        if !self.take(kind, items) {
            self.take(kind, section.map(|section| (section, sections::GAP.to_owned())));
        }
    }

    /// Takes the newest of these items, which are in their order.
    pub(super) fn take_newest(&mut self, kind: Kind, items: impl IntoIterator<Item = (Section, String)>) {
        let mut newest: Vec<_> = items.into_iter().collect();
        newest.reverse();
        let before = self.items.len();
        self.take(kind, newest);
        self.items[before..].reverse();
    }

    /// Names the folder that the paths of excerpts are below.
    pub(super) fn set_root(&mut self, root: Option<&'a str>) {
        self.root = root;
    }

    /// Puts these lines in the place of the lines so far.
    pub(super) fn replace_lines(&mut self, lines: Vec<String>) {
        self.items.retain(|item| item.kind != Kind::Lines);
        for text in lines {
            let tokens = self.cost(Section::Excerpts, &text);
            self.items.push(Item { kind: Kind::Lines, section: Section::Excerpts, text, tokens });
        }
    }

    pub(super) fn texts(&self) -> Vec<String> {
        self.items.iter().map(|item| item.text.clone()).collect()
    }

    /// The tokens over the limit, if there are some.
    pub(super) fn excess(&self) -> Option<u64> {
        self.size().checked_sub(self.cap).filter(|excess| *excess > 0)
    }

    /// The room that is left, in tokens.
    pub(super) fn room(&self) -> u64 {
        self.cap.saturating_sub(self.size())
    }

    fn size(&self) -> u64 {
        (self.measure)(&self.render())
    }

    /// The tokens of an item, with the heading of its section if it is the first one below it.
    fn cost(&self, section: Section, text: &str) -> u64 {
        self.of_heading(section) + self.of_line(section, text)
    }

    /// The tokens of the heading that the next item of a section brings.
    fn of_heading(&self, section: Section) -> u64 {
        match self.items.iter().any(|item| item.section == section) {
            true => 0,
            false => (self.measure)(&section.opening(self.items.iter().map(|item| item.section))),
        }
    }

    /// The tokens of an item as it stands below its heading, with the mark before it.
    fn of_line(&self, section: Section, text: &str) -> u64 {
        (self.measure)(&section.line(1, text))
    }

    fn render(&self) -> String {
        // Under a heading the oldest items stand first, and the last words after the other excerpts.
        let age = |kind: Kind| match kind {
            Kind::Earlier => 0,
            Kind::Latest => 2,
            Kind::Last => 3,
            _ => 1,
        };
        let mut items: Vec<&Item> = self.items.iter().collect();
        items.sort_by_key(|item| (item.section, age(item.kind)));
        let items: Vec<(Section, String)> = items.into_iter().map(|item| (item.section, item.text.clone())).collect();
        let excerpts = match self.root {
            _ if self.cap < TINY => ":".to_owned(),
            Some(root) => format!(", oldest first, without the lines between them (paths are below {root}):"),
            None => ", oldest first, without the lines between them:".to_owned(),
        };
        sections::render(&items, &excerpts)
    }

    /// The summary, within its limit.
    pub(super) fn into_text(mut self) -> String {
        loop {
            let text = self.render();
            if (self.measure)(&text) <= self.cap || self.items.is_empty() {
                return text;
            }
            // Tokens of a whole are rarely more than those of its parts; where they are, the least important goes.
            let worst = self.items.iter().enumerate().max_by_key(|(at, item)| (item.kind, usize::MAX - at));
            let worst = worst.map_or(0, |(at, _)| at);
            self.items.remove(worst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_items_both_ends_are_taken() {
        let measure = |text: &str| text.len() as u64 / 4;
        let mut items = Items::new(AMPLE, None, &measure);
        let rules = (0..500).map(|at| (Section::Constraints, format!("never touch folder number {at}"))).collect();
        items.take_both_ends(Kind::Rules, rules);
        let texts = items.texts();
        let has = |at: usize| texts.contains(&format!("never touch folder number {at}"));
        assert!(has(0) && has(499) && !has(250) && texts.len() > 20, "{texts:?}");
        assert_eq!(texts.iter().filter(|text| text.starts_with("… (") && text.ends_with(" left out)")).count(), 1);
        for cap in [300, 1_500] {
            let mut small = Items::new(cap, None, &measure);
            for kind in [Kind::Rules, Kind::Facts] {
                let name = |at: usize| format!("never touch the folder number {at} of {kind:?}");
                small.take_both_ends(kind, (0..90).map(|at| (Section::Constraints, name(at))).collect());
                let gaps = small.items.iter().filter(|item| item.kind == kind && item.text == sections::GAP).count();
                let room = small.items.iter().filter(|item| item.kind == kind).count();
                assert!(gaps == 1 && room > 2, "{cap} {kind:?}: {:?}", small.texts());
            }
        }
        let place = |at: usize| texts.iter().position(|text| text.ends_with(&format!(" {at}")));
        assert!(place(0) < place(499), "in their order");
    }

    #[test]
    fn an_item_is_taken_once_and_the_latest_request_in_any_case() {
        let measure = |text: &str| text.len() as u64 / 4;
        let mut items = Items::new(AMPLE, None, &measure);
        items.take(Kind::Goal, [(Section::Goal, "Port it. The port is 4711.".to_owned())]);
        items.take(Kind::Facts, [(Section::Context, "The port is 4711.".to_owned())]);
        items.take(Kind::Rules, [(Section::Constraints, "Port it.".to_owned())]);
        for kind in [Kind::Requests, Kind::Latest] {
            items
                .take(kind, [(Section::Done, "Port it. The port is 4711.".to_owned()), (Section::Done, String::new())]);
        }
        assert_eq!(items.texts(), ["Port it. The port is 4711.", "Port it.", "Port it. The port is 4711."]);
    }

    #[test]
    fn a_small_summary_does_not_count_the_items_that_are_left_out() {
        let measure = |text: &str| text.len() as u64 / 4;
        for (cap, lines) in [(AMPLE - 1, 0), (AMPLE, 1)] {
            let mut items = Items::new(cap, None, &measure);
            let rules = (0..500).map(|at| (Section::Constraints, format!("never touch folder number {at}"))).collect();
            items.take_both_ends(Kind::Rules, rules);
            let gaps = items.texts().iter().filter(|text| text.starts_with("… (")).count();
            assert_eq!(gaps, lines, "{cap}");
        }
        let mut items = Items::new(AMPLE, None, &measure);
        let rules: Vec<_> = (0..9).map(|at| (Section::Constraints, format!("never touch {at}"))).collect();
        items.take_both_ends(Kind::Rules, rules.clone());
        assert_eq!(items.texts(), rules.into_iter().map(|(_, text)| text).collect::<Vec<_>>());
    }

    #[test]
    fn a_part_that_is_left_out_has_no_items() {
        let measure = |text: &str| text.len() as u64 / 4;
        let mut items = Items::new(AMPLE, Some(Part::Decisions), &measure);
        items.take(Kind::Decisions, [(Section::Decisions, "use tabs".to_owned())]);
        items.take(Kind::Failures, [(Section::Blocked, "make: no rule".to_owned())]);
        assert_eq!(items.texts(), ["make: no rule"]);
    }

    #[test]
    fn a_goal_without_room_is_clipped_and_another_item_is_left_out() {
        let measure = |text: &str| text.len() as u64 / 4;
        let long = "word ".repeat(200);
        for (kind, is_told) in [(Kind::Goal, true), (Kind::Latest, true), (Kind::Requests, false)] {
            let mut items = Items::new(400, None, &measure);
            items.take(kind, [(Section::Goal, long.clone())]);
            let texts = items.texts();
            assert_eq!(texts.len(), usize::from(is_told), "{kind:?}");
            assert!(texts.iter().all(|text| text.len() < long.len() && text.ends_with('…')), "{texts:?}");
        }
    }

    #[test]
    fn the_first_items_are_taken_with_a_mark_for_the_others() {
        let measure = |text: &str| text.len() as u64 / 4;
        for (count, is_marked) in [(3, false), (90, true)] {
            let mut items = Items::new(600, None, &measure);
            let facts = (0..count).map(|at| (Section::Context, format!("the port of server {at} is 80{at}"))).collect();
            items.take_first(Kind::Facts, facts);
            let texts = items.texts();
            assert_eq!(texts[0], "the port of server 0 is 800");
            assert_eq!(texts.last().map(String::as_str) == Some(sections::GAP), is_marked, "{texts:?}");
        }
    }

    #[test]
    fn a_tiny_summary_is_filled_with_facts_to_its_end() {
        let measure = |text: &str| text.chars().count().div_ceil(4) as u64;
        for cap in 150..TINY {
            let mut items = Items::new(cap, None, &measure);
            items.take(Kind::Goal, [(Section::Goal, "Port it.".to_owned())]);
            // Facts alone would not fill it: half of it is rules.
            let rule = |at: u64| (Section::Constraints, format!("never touch {at:02}"));
            items.take(Kind::Rules, (0..cap / 10).map(rule));
            let fact = |at: u64| (Section::Context, format!("the port of server {at:02} is 80{at:02}"));
            items.take_first(Kind::Facts, (0..99).map(fact).collect());
            assert!(items.room() < 12, "{cap}: {} are left", items.room());
        }
    }

    #[test]
    fn the_latest_request_has_a_place_beside_facts_that_fill_a_summary() {
        let measure = |text: &str| text.chars().count().div_ceil(4) as u64;
        for cap in [200, 400, 890] {
            let mut items = Items::new(cap, None, &measure);
            let latest = "Add the refresh of tokens to auth.rs.";
            items.reserve(measure(latest) + 10);
            items.take(Kind::Rules, (0..99).map(|at| (Section::Constraints, format!("never touch {at:02}"))));
            items.take_first(Kind::Facts, (0..99).map(|at| (Section::Context, format!("the port {at:02}"))).collect());
            items.take(Kind::Latest, [(Section::InProgress, latest.to_owned())]);
            assert!(items.texts().iter().any(|text| text == latest), "{cap}: {:?}", items.texts());
        }
    }

    #[test]
    fn a_fact_that_is_told_elsewhere_is_not_left_out() {
        let measure = |text: &str| text.len() as u64 / 4;
        let mut items = Items::new(600, None, &measure);
        items.take(Kind::Goal, [(Section::Goal, "Port it. The port is 4711.".to_owned())]);
        let facts = ["The port is 4711.", "The host is db1."].map(|text| (Section::Context, text.to_owned()));
        items.take_first(Kind::Facts, facts.to_vec());
        assert_eq!(items.texts(), ["Port it. The port is 4711.", "The host is db1."]);
    }

    #[test]
    fn requests_of_earlier_summaries_have_the_room_that_new_ones_leave() {
        let measure = |text: &str| text.len() as u64 / 4;
        let earlier = |requests: usize| {
            let mut items = Items::new(4_000, None, &measure);
            let lines = |count: usize, name: &str| {
                let line = |at: usize| (Section::Done, format!("{name} {at} {}", "word ".repeat(20)));
                (0..count).map(line).collect::<Vec<_>>()
            };
            items.take(Kind::Requests, lines(requests, "new"));
            items.take(Kind::Earlier, lines(100, "old"));
            items.texts().iter().filter(|text| text.starts_with("old")).count()
        };
        assert!(earlier(0) > earlier(100) * 3 && earlier(100) > 5, "{} {}", earlier(0), earlier(100));
    }

    #[test]
    fn requests_have_a_share_by_the_room() {
        let shares = [600, AMPLE - 1, AMPLE, 2_999, 3_000].map(|cap| Kind::Requests.share(cap));
        assert_eq!(shares, [15, 15, 26, 26, 32]);
        assert_eq!([TINY - 1, TINY].map(|cap| Kind::Goal.share(cap)), [8, 15]);
    }

    #[test]
    fn an_item_that_is_too_long_is_shortened_after_its_label() {
        let measure = |text: &str| text.len() as u64 / 4;
        let shortened = |kind: Kind, text: String| {
            let mut items = Items::new(AMPLE, None, &measure);
            items.take(kind, [(Section::Excerpts, text)]);
            items.texts().pop().expect("an item")
        };
        for (kind, cap) in [Kind::Last, Kind::Wish].into_iter().flat_map(|kind| (40..400).map(move |cap| (kind, cap))) {
            let mut items = Items::new(cap, None, &measure);
            items.take(kind, [(Section::Context, format!("{}{}", kind.label(), "word ".repeat(90)))]);
            let is_told = |text: &String| text.len() > kind.label().len() + SHORT / 2;
            assert!(items.texts().iter().all(is_told), "{cap}: {:?}", items.texts());
        }
        let blob = shortened(Kind::Last, format!("{LAST}{}", "QUJD".repeat(2_000)));
        assert!(blob.starts_with("said last: QUJDQUJD") && blob.len() > 300, "{blob}");
        let wish = shortened(Kind::Wish, format!("{WISH}\"{}\"", "QUJD".repeat(2_000)));
        assert!(wish.starts_with("Instructions for this summary: \"QUJDQUJD"), "{wish}");
        let code = (0..90).map(|at| format!("code {at}\n")).collect::<String>();
        let said = shortened(Kind::Last, format!("{LAST}The code:\n```\n{code}```\nThat is all."));
        assert!(
            said.starts_with("said last: The code:\n```\ncode 0\n") && said.ends_with("\n```\nThat is all."),
            "{said}"
        );
    }

    #[test]
    fn the_share_of_statements_falls_without_a_step() {
        for kind in [Kind::Rules, Kind::Facts] {
            let tokens: Vec<u64> = (100..4_000).map(|cap| cap * kind.share(cap) / 100).collect();
            let drop = tokens.windows(2).map(|pair| pair[0].saturating_sub(pair[1])).max();
            assert!(drop <= Some(20), "{kind:?}: {drop:?}");
        }
        assert_eq!((Kind::Facts.share(600), Kind::Facts.share(4_000)), (75, 20));
    }
}
