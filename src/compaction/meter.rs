//! The meter of a path: the estimated tokens of its context, the tokens of the last provider report, and the calibrations
//! of the estimates by all reports. An appended entry adds to these sums. An entry that rewrites the context makes the
//! meter compute them again.

use super::{
    calibrations::{Calibrations, MOST_REMEMBERED},
    images,
};
use crate::{
    conversation::{
        calls::Waiting,
        context::{self, Context, Part},
        entry::{Body, Entry, Gap, Requested},
        evidence::{self, Bounds, Estimate, Report, Series, Standing, Verdict},
        instructions::{Announced, Difference, Instructions},
        message::outline::{Outline, Role},
        path::{Path, Revision},
        tokens::{Estimator, calibration::Basis},
    },
    ids::{CallId, EntryId, ModelRef},
    models,
    settings::Sourced,
};
use std::sync::Arc;

/// The running sums of a path, all in tokens.
#[derive(Debug, Clone)]
pub struct Meter {
    estimator: Estimator,
    /// The revision of the measured path. The next two fields are its length and its last entry.
    revision: Revision,
    length: usize,
    last: Option<Arc<Entry>>,
    /// Estimate of all messages of the context.
    sent: Estimate,
    /// Size of the images of the context, in bytes.
    image_bytes: usize,
    since: Since,
    /// The same without a report that no other one confirms yet.
    confirmed: Since,
    /// The reports of each model about this context.
    series: Vec<(Option<ModelRef>, Series)>,
    /// The newest report.
    newest: Option<Judged>,
    /// Estimated tokens of the summary.
    summary: u64,
    /// Tokens of the pinned texts in the summary message. They are estimated by characters, which is fast.
    pins: u64,
    calibrations: Calibrations,
    announced: Announced,
    calls: Calls,
}

/// A report that was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The answer that has it.
    pub answer: EntryId,
    /// The model that answered, where the answer names it.
    pub model: Option<ModelRef>,
    /// Its standing among the reports of that model.
    pub standing: Standing,
}

/// The calls of a path that wait for results. No request contains a result of another call.
#[derive(Debug, Clone)]
struct Calls {
    waiting: Waiting<CallId>,
    /// Calls before the path may wait, too: it begins in the middle, and no context of it is known yet.
    earlier: bool,
}

impl Calls {
    fn of_context(context: &Context) -> Self {
        let mut calls = Self { waiting: Waiting::default(), earlier: false };
        for message in context.messages().iter().filter(|message| message.part != Part::StandIn) {
            calls.is_sent(message.outline());
        }
        calls
    }

    /// Takes the calls of an answer. Returns whether requests contain this message as far as calls matter.
    fn is_sent(&mut self, outline: &Outline) -> bool {
        if !outline.failed {
            // The place of an answer does not matter here.
            outline.calls.iter().for_each(|call| self.waiting.call(call.id.clone(), 0));
        }
        outline.answers.as_ref().is_none_or(|call| self.waiting.result(call).is_some() || self.earlier)
    }
}

/// A count of the path up to some entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// There is no count. All of the path is estimated.
    None,
    /// The provider reported the count with an answer.
    Report(u64),
    /// The compaction in force carries the count, which this estimator or another one measured. `overhead` is the part of
    /// the system prompt and the tools.
    Compaction { tokens: u64, overhead: u64, same_estimator: bool },
}

/// The newest count of a path, and the estimated tokens since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The count.
    pub anchor: Anchor,
    /// Estimated tokens of the messages after the count.
    pub messages: u64,
    /// The growth of the announced system prompt and tools in estimated tokens. It is negative if they shrank.
    pub announced: i64,
}

impl Since {
    fn the(anchor: Anchor) -> Self {
        Self { anchor, messages: 0, announced: 0 }
    }
}

impl Meter {
    /// Measures a path. With `Tiktoken` this counts the entries that have no count yet, which is slow.
    #[must_use]
    pub fn of(path: &Path, sourced: &Sourced, estimator: Estimator) -> Self {
        let prompts = &sourced.prompts;
        // A path in memory may begin earlier than the same path read from its file. Only the entries of both count.
        let beginning = path.beginning();
        let earlier = path.is_cut() || beginning > 0;
        let mut meter = Self {
            estimator,
            revision: path.revision(),
            length: 0,
            last: None,
            sent: Estimate::default(),
            image_bytes: 0,
            since: Since::the(Anchor::None),
            confirmed: Since::the(Anchor::None),
            series: Vec::new(),
            newest: None,
            summary: path.compaction().map_or(0, |place| u64::from(path[place].tokens(estimator))),
            pins: pinned(path),
            calibrations: Calibrations::new(estimator),
            announced: Announced::default(),
            calls: Calls { waiting: Waiting::default(), earlier },
        };
        let last_rewrite = path.last_rewrite();
        // The size of the context before a path that begins in the middle is unknown up to the last rewrite.
        let mut basis = if earlier { Basis::Since } else { Basis::Whole };
        for (place, entry) in path.iter().enumerate().skip(beginning) {
            if !entry.rewrites() {
                meter.add(entry, Request::of(path, place, estimator), basis, sourced);
                continue;
            }
            meter.rewritten(entry, path.foundation() == Some(place));
            basis = match entry.body {
                // Nothing of the context is left.
                Body::ResetBoundary(_) => Basis::Whole,
                _ => Basis::Since,
            };
            if Some(place) == last_rewrite {
                basis = Basis::Whole;
                meter.holds(&context::build(&path.through(place), prompts));
            }
        }
        if last_rewrite.is_none() && path.is_cut() {
            meter.holds(&context::build(path, prompts));
        }
        meter.stands_at(path);
        meter
    }

    /// Adds the new entries of a path. A path that did more than grow is measured again.
    pub fn follow(&mut self, path: &Path, sourced: &Sourced, estimator: Estimator) {
        let same = |last: &Arc<Entry>| path.get(self.length - 1).is_some_and(|entry| Arc::ptr_eq(entry, last));
        let goes_on =
            self.estimator == estimator && self.revision == path.revision() && self.last.as_ref().is_none_or(same);
        if !goes_on || self.length > path.len() {
            *self = Self::of(path, sourced, estimator);
            return;
        }
        for (place, entry) in path.iter().enumerate().skip(self.length) {
            // Every other entry changes the revision.
            debug_assert!(entry.is_plain() || self.length == 0);
            self.add(entry, Request::of(path, place, estimator), Basis::Whole, sourced);
        }
        self.stands_at(path);
    }

    /// Takes the sizes of a context in the place of its sums.
    fn holds(&mut self, context: &Context) {
        self.sent = context.estimate(self.estimator);
        self.image_bytes = images::bytes(context);
        self.calls = Calls::of_context(context);
    }

    fn stands_at(&mut self, path: &Path) {
        self.length = path.len();
        self.last = path.last().cloned();
    }

    /// Takes an entry that changes the context before it. `in_force`: the context begins with it, and it carries the
    /// instructions.
    fn rewritten(&mut self, entry: &Entry, in_force: bool) {
        self.sent = Estimate::default();
        self.image_bytes = 0;
        self.calibrations.interrupt();
        self.series.iter_mut().for_each(|(_, series)| series.rewritten());
        let compaction = entry.compaction();
        if let Some(preserved) = entry.preserved() {
            self.calibrations.restore(preserved);
        }
        if in_force && (compaction.is_some() || entry.preserved().is_some()) {
            self.announced.restore(entry);
        }
        let same_estimator = |name: &str| name == self.estimator.name();
        let measured = compaction.filter(|_| in_force).and_then(|compaction| {
            let (tokens, overhead) = compaction.measured()?;
            let estimator = compaction.preserved()?.estimator.as_deref();
            Some(Anchor::Compaction { tokens, overhead, same_estimator: estimator.is_some_and(same_estimator) })
        });
        self.since = Since::the(measured.unwrap_or(Anchor::None));
        self.confirmed = self.since;
    }

    /// Takes an entry. `request`: the request of an answer.
    fn add(&mut self, entry: &Entry, request: Request, basis: Basis, sourced: &Sourced) {
        self.announce(entry);
        let is_sent = entry.outline().is_none_or(|outline| self.calls.is_sent(outline));
        let tokens = if is_sent { sent(entry, self.estimator) } else { 0 };
        self.image_bytes += if tokens == 0 { 0 } else { entry.image_bytes() };
        self.calibrations.choose(entry);
        let before = self.sent;
        self.sent = before.with(entry.outline(), tokens);
        self.since.messages += tokens;
        self.confirmed.messages += tokens;
        self.take_report(entry, before, request, tokens, basis, sourced);
    }

    /// Judges the report of an answer. `before`: the estimate of the messages before it. `tokens`: its own estimate.
    fn take_report(
        &mut self,
        entry: &Entry,
        before: Estimate,
        request: Request,
        tokens: u64,
        basis: Basis,
        sourced: &Sourced,
    ) {
        let Some(outline) = entry.outline() else { return };
        let Some(usage) = outline.measured() else { return };
        // Without an input only a total says how large the context is; the output alone does not.
        let (estimate, report, answer) = match Report::of(&usage) {
            Some(report) => (before, report, evidence::answer(usage.output, tokens)),
            None if usage.total > usage.output => (self.sent, Report { prompt: usage.total, uncached: None }, 0),
            None => return,
        };
        let model = outline.model.clone().or_else(|| self.calibrations.model().cloned());
        let announced = self.announced.sizes(self.estimator).all();
        let bounds = Bounds {
            line: self.calibrations.line(model.as_ref(), announced),
            window: models::known_window(&sourced.settings, model.as_ref()),
            estimator: self.estimator,
            is_whole: basis == Basis::Whole,
        };
        let series = self.series_of(model.as_ref());
        let Some(lacking) =
            request.lacks(|gap| series.is_nearer(report.prompt, estimate.without(gap), estimate, bounds.line))
        else {
            return;
        };
        let estimate = estimate.without(lacking);
        let standing = series.judge(estimate, report, &bounds);
        let is_exact = answer == usage.output || report.uncached.is_none() && Report::of(&usage).is_none();
        let since = Since {
            messages: lacking.all + if is_exact { 0 } else { answer },
            ..Since::the(Anchor::Report(if is_exact { report.prompt + answer } else { report.prompt }))
        };
        match standing.verdict {
            Verdict::Believed => {
                self.calibrations.jump(model.as_ref(), standing.jump);
                if let Some((estimated, reported)) = standing.confirms {
                    self.calibrations.report(model.as_ref(), estimated, reported, basis);
                }
                self.calibrations.report(model.as_ref(), estimate.all, report.prompt, basis);
                (self.since, self.confirmed) = (since, since);
            }
            Verdict::Unconfirmed => self.since = since,
            Verdict::Waits | Verdict::Refused(_) => {}
        }
        self.newest = Some(Judged { answer: entry.id.clone(), model, standing });
    }

    fn series_of(&mut self, model: Option<&ModelRef>) -> &mut Series {
        let known = self.series.iter().position(|(of, _)| of.as_ref() == model);
        let newest = match known {
            Some(place) => self.series.remove(place),
            None => (model.cloned(), Series::default()),
        };
        if self.series.len() == MOST_REMEMBERED {
            self.series.remove(0);
        }
        self.series.push(newest);
        let last = self.series.len() - 1;
        &mut self.series[last].1
    }

    /// Takes the instructions that an entry announces. Nothing is counted where no earlier count depends on them.
    fn announce(&mut self, entry: &Entry) {
        if !Announced::by(entry) {
            return;
        }
        if self.calibrations.is_empty() && self.since.anchor == Anchor::None {
            return self.announced.take(entry);
        }
        let before = self.announced.sizes(self.estimator);
        self.announced.take(entry);
        let difference = self.announced.sizes(self.estimator).difference(before);
        if difference != Difference::default() {
            let growth = self.calibrations.announce(difference, before.all());
            self.since.announced += growth;
            self.confirmed.announced += growth;
            for (model, series) in &mut self.series {
                let factor = self.calibrations.line(model.as_ref(), 0).factor;
                series.shift((growth as f64 * factor).round() as i64);
            }
        }
    }

    /// The calibrations that the reports and the compactions on the path give.
    #[must_use]
    pub fn calibrations(&self) -> &Calibrations {
        &self.calibrations
    }

    /// The instructions that the path announces.
    #[must_use]
    pub fn instructions(&self) -> &Instructions {
        self.announced.instructions()
    }

    /// The estimator of its sums.
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        self.estimator
    }

    /// Estimated tokens of all messages of the context.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.all
    }

    /// Size of the images of the context, in bytes.
    #[must_use]
    pub fn image_bytes(&self) -> usize {
        self.image_bytes
    }

    /// The newest count, and the estimated tokens since then.
    #[must_use]
    pub fn since(&self) -> Since {
        self.since
    }

    /// The newest count that starts maintenance, and the estimated tokens since then. It differs from `since` where a report
    /// counts that no other one confirms yet.
    #[must_use]
    pub fn confirmed(&self) -> Since {
        self.confirmed
    }

    /// The largest believed prompt of a model on the path, in tokens.
    #[must_use]
    pub fn largest_believed(&self, model: &ModelRef) -> Option<u64> {
        let (_, series) = self.series.iter().find(|(of, _)| of.as_ref() == Some(model))?;
        series.largest()
    }

    /// Whether the newest report counts as a size.
    #[must_use]
    pub fn newest_counts(&self) -> bool {
        let counts = |judged: &Judged| matches!(judged.standing.verdict, Verdict::Believed | Verdict::Unconfirmed);
        self.newest.as_ref().is_none_or(counts)
    }

    /// The newest report.
    #[must_use]
    pub fn newest(&self) -> Option<&Judged> {
        self.newest.as_ref()
    }

    /// Estimated tokens of the summary.
    #[must_use]
    pub fn summary(&self) -> u64 {
        self.summary
    }

    /// Estimated tokens of pinned texts in the summary message.
    #[must_use]
    pub fn pins(&self) -> u64 {
        self.pins
    }
}

/// The most entries between the request of an answer and the answer. They came while the model ran.
const LONGEST_GAP: usize = 1_000;

/// The request of an answer, as a line after the answer says it.
#[derive(Clone, Copy)]
enum Request {
    /// The path before the answer.
    Path,
    /// A context from before a rewrite.
    Earlier,
    /// The path without entries of this size.
    Without(Estimate),
    /// One of both.
    Perhaps(Estimate),
}

impl Request {
    /// The request of the entry at a place, where it is an answer.
    fn of(path: &Path, place: usize, estimator: Estimator) -> Self {
        // No marker is an answer, so the markers after an answer are read once.
        if !path[place].is_from(Role::Assistant) {
            return Self::Path;
        }
        let markers = path[place + 1..].iter().take_while(|entry| entry.is_marker());
        let mut requests = markers.filter_map(|marker| marker.requested()).filter(|(of, _)| *of == path[place].id);
        let near = place.saturating_sub(LONGEST_GAP);
        let size = |gap: &Gap| {
            let first = path[near..place].iter().rposition(|entry| entry.id == gap.from).map_or(place, |at| near + at);
            let last =
                path[first..place].iter().position(|entry| entry.id == gap.to).map_or(place, |at| first + at + 1);
            let add = |sum: Estimate, entry: &Arc<Entry>| sum.with(entry.outline(), sent(entry, estimator));
            path[first..last].iter().fold(Estimate::default(), add)
        };
        match requests.next() {
            None => Self::Path,
            Some((_, Requested::Earlier)) => Self::Earlier,
            Some((_, Requested::Without(gap))) => Self::Without(size(&gap)),
            Some((_, Requested::Perhaps(gap))) => Self::Perhaps(size(&gap)),
        }
    }

    /// The entries that the request lacks. None where its report is about nothing that is left. `fits`: whether the report is
    /// rather one of the path without entries of this size.
    fn lacks(self, fits: impl FnOnce(Estimate) -> bool) -> Option<Estimate> {
        match self {
            Self::Path => Some(Estimate::default()),
            Self::Earlier => None,
            Self::Without(gap) => Some(gap),
            Self::Perhaps(gap) => Some(if fits(gap) { gap } else { Estimate::default() }),
        }
    }
}

/// Estimated tokens that a single entry adds to the context.
#[must_use]
pub fn sent(entry: &Entry, estimator: Estimator) -> u64 {
    let unsent = |outline: &Outline| match outline.role {
        Role::System => true,
        Role::Assistant => outline.failed || outline.empty,
        Role::User | Role::Developer | Role::Custom => outline.silent,
        Role::ToolResult | Role::Execution | Role::Summary => false,
    };
    if !entry.in_context() || entry.outline().is_some_and(unsent) {
        return 0;
    }
    u64::from(entry.tokens(estimator))
}

fn pinned(path: &Path) -> u64 {
    let texts = context::texts_of_pins(path, path.first_kept(), path.pins());
    texts.iter().map(|(_, text)| Estimator::Chars.of_text(text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compaction::calibrations::Expected, prompts::Prompts};
    use serde_json::{Value, json};

    fn path(lines: &[Value]) -> Path {
        let mut path = Path::default();
        for (at, line) in lines.iter().enumerate() {
            let mut line = line.clone();
            line["id"] = json!(at.to_string());
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        path
    }

    /// A user message of this many tokens by characters.
    fn user(tokens: usize) -> Value {
        json!({"type": "message", "message": {"role": "user", "content": "abc ".repeat(tokens)}})
    }

    /// An answer with a report.
    fn report(tokens: u64) -> Value {
        let usage = json!({"input": tokens, "output": 1});
        json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}], "usage": usage}})
    }

    fn dropped(target: &str) -> Value {
        json!({"type": "context_edit", "targetId": target, "replacement": null})
    }

    fn edit(target: &str) -> Value {
        json!({"type": "context_edit", "targetId": target, "replacement": {"content": "x"}})
    }

    #[test]
    fn a_report_after_an_edit_is_no_growth_since_the_report_before_it() {
        // The provider counts as the estimator does, with an overhead of 1000. The edit takes 4000 tokens out, and 10_000
        // tokens are added.
        let lines =
            [user(4_000), user(1_000), report(6_000), edit("0"), user(10_000), report(12_000), edit("1"), user(100)];
        let meter = Meter::of(&path(&lines), &Sourced::default(), Estimator::Chars);
        let fit = meter.calibrations().fit(Expected { factor: 1.0, announced: 0, most: 50_000.0 });
        assert!((fit.factor - 1.0).abs() < 0.02, "{fit:?}");
    }

    #[test]
    fn a_report_is_a_size_if_it_is_believed() {
        let anchored = |lines: &[Value]| Meter::of(&path(lines), &Sourced::default(), Estimator::Chars);
        let none = (Anchor::None, Anchor::None);
        for (lines, expected) in [
            (vec![user(10_000), report(5_900)], none),
            (vec![user(10_000), report(20_000_001)], none),
            (vec![user(10_000), report(12_000)], (Anchor::Report(12_001), Anchor::None)),
            (
                vec![user(10_000), report(12_000), user(1_000), report(13_300)],
                (Anchor::Report(13_301), Anchor::Report(13_301)),
            ),
        ] {
            let meter = anchored(&lines);
            assert_eq!((meter.since().anchor, meter.confirmed().anchor), expected, "{lines:?}");
            assert_eq!(meter.calibrations().is_empty(), expected.1 == Anchor::None, "{lines:?}");
        }
    }

    #[test]
    fn a_report_of_an_earlier_context_counts_for_nothing() {
        let late = json!({"type": "custom", "customType": "abridged.report", "data": {"entryId": "3"}});
        let lines = [user(10_000), report(12_000), user(1_000), report(13_300), late];
        let of = |lines: &[Value]| Meter::of(&path(lines), &Sourced::default(), Estimator::Chars);
        assert_eq!(of(&lines).newest().map(|newest| newest.answer.as_str().to_owned()), Some("1".to_owned()));
        assert_eq!(of(&lines[..4]).newest().map(|newest| newest.answer.as_str().to_owned()), Some("3".to_owned()));
    }

    #[test]
    fn a_result_is_in_the_size_of_a_request_if_its_call_is() {
        let answer = |stop: &str| {
            json!({"type": "message", "message": {"role": "assistant", "stopReason": stop,
            "content": [{"type": "toolCall", "id": "x", "name": "read", "arguments": {}}]}})
        };
        let result = |id: &str| {
            json!({"type": "message", "message": {"role": "toolResult", "toolCallId": id, "toolName": "read",
            "content": [{"type": "text", "text": "abc ".repeat(1_000)}]}})
        };
        let rows: [(&str, Vec<Value>); 9] = [
            ("its own", vec![answer("toolUse"), result("x")]),
            ("of a failed call", vec![answer("error"), result("x")]),
            ("of no call", vec![result("x")]),
            ("of another call", vec![answer("toolUse"), result("x"), result("y")]),
            ("before its call", vec![result("x"), answer("toolUse"), result("x")]),
            ("a second one", vec![answer("toolUse"), result("x"), result("x")]),
            ("late", vec![answer("toolUse"), user(10), answer("error"), result("x")]),
            ("of an id that comes twice", vec![answer("toolUse"), result("x"), answer("toolUse"), result("x")]),
            ("behind an edit of its call", vec![answer("toolUse"), dropped("1"), result("x")]),
        ];
        for (name, lines) in rows {
            let lines = [vec![user(100)], lines, vec![user(100)]].concat();
            let path = path(&lines);
            let meter = Meter::of(&path, &Sourced::default(), Estimator::Chars);
            assert_eq!(meter.sent(), context::build(&path, &Prompts::default()).tokens(Estimator::Chars), "{name}");
        }
    }
}
