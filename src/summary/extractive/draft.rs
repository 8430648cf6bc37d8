//! One part of an extracted summary, history or turn prefix: its facts, and the lines that fill its room.

use super::{
    Part, Request, Wishes,
    excerpts::{excerpts, root},
    items::{AMPLE, Items, Kind, LAST, TINY, WISH},
    last_words::head_and_end,
    previous_summary,
    salient::{Context, Picker},
};
use crate::{
    conversation::entry::{Entry, TodoState},
    redact::Clean,
    summary::{
        archived, cues,
        heard::{Said, Speaker},
        ledger::{self, LAST_COMMAND, LEFT_OFF, Ledger, MENTIONED, Sources},
        prose::{clip, content_words, item},
        sections::{self, Section},
        statements,
    },
    text,
};
use std::{collections::HashSet, sync::Arc};

/// One part of a summary.
pub(super) struct Draft<'a> {
    said: Vec<Said>,
    previous: Vec<(Section, String)>,
    /// The facts.
    pub ledger: Ledger,
    /// The part of the conversation that stays.
    following: Vec<Said>,
    /// Whether the turn goes on in the part that stays.
    goes_on: bool,
    request: &'a Request<'a>,
}

/// The mark of the task of a todo list that the agent works on.
const TASK: &str = "task – ";

/// Longest quotation of instructions, in characters.
const LONGEST_WISH: usize = 400;

impl<'a> Draft<'a> {
    pub(super) fn of_history(request: &'a Request<'a>) -> Self {
        let archived = request.span.previous_archive();
        let archived = archived.map(|archive| archived::said(archive, &|text| request.clean(text)));
        let previous = previous_summary(request).map(|text| sections::parse(&text)).unwrap_or_default();
        Self::of(request, previous, archived.unwrap_or_default(), &request.span.history(), false)
    }

    pub(super) fn of_turn_prefix(request: &'a Request<'a>) -> Self {
        Self::of(request, Vec::new(), Vec::new(), &request.span.turn_prefix(), true)
    }

    fn of(
        request: &'a Request<'a>,
        mut previous: Vec<(Section, String)>,
        archived: Vec<Said>,
        entries: &[&'a Arc<Entry>],
        goes_on: bool,
    ) -> Self {
        // Instructions are for one summary, and so is the mark of what it left out.
        previous.retain(|(_, text)| !text.starts_with(WISH) && text != sections::GAP);
        let fresh: Vec<Said> = archived.into_iter().chain(request.heard(entries)).collect();
        let mut ledger = Ledger::of(&Sources {
            previous: &previous,
            said: &fresh,
            entries,
            goes_on,
            todo_tools: request.cleaner.todo_tools(),
            clean: &|text| request.clean(text),
        });
        let following = match request.without {
            Some(Part::Kept) => Vec::new(),
            _ => request.heard(&request.span.following().collect::<Vec<_>>()),
        };
        if !goes_on && ledger.has_open_failures() {
            ledger.learn_later(&request.heard(&request.span.turn_prefix()));
        }
        ledger.learn_later(&following);
        let excerpts = previous.iter().filter(|(section, _)| *section == Section::Excerpts);
        let carried =
            excerpts.filter_map(|(_, item)| sections::excerpt(item)).map(|(label, text)| carried(label, text));
        let said = carried.chain(fresh).collect();
        Self { said, previous, ledger, following, goes_on, request }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty() && self.previous.is_empty()
    }

    /// The goal: that of the previous summary, else the first request.
    pub(super) fn goal(&self) -> Option<&str> {
        let earlier = self.earlier(Section::Goal).next();
        let first = || self.ledger.requests.first().map(|request| request.text.as_str());
        earlier.or(self.ledger.goal.as_deref().filter(|goal| !goal.is_empty())).or_else(first)
    }

    /// The goal in one line. One that is only the name of a command says what it was about.
    pub(super) fn goal_line(&self) -> Option<String> {
        self.goal().map(|goal| self.with_order(goal))
    }

    fn earlier(&self, section: Section) -> impl Iterator<Item = &str> {
        self.previous.iter().filter(move |(it, _)| *it == section).map(|(_, text)| text.as_str())
    }

    /// The text within `cap` tokens. `wish`: instructions that it quotes.
    pub(super) fn compose(&self, cap: u64, wish: Option<&str>) -> String {
        let scale = self.request.scale;
        let measure = |text: &str| scale.text(text);
        let mut items = Items::new(cap, self.request.without, &measure);
        self.facts(&mut items, cap, wish);
        if self.request.without != Some(Part::Lines) {
            self.fill(&mut items, &measure);
        }
        items.into_text()
    }

    /// Fills the room that the facts leave with lines of the conversation.
    fn fill<'i>(&'i self, items: &mut Items<'i>, measure: &dyn Fn(&str) -> u64) {
        let Request { without, wishes, .. } = self.request;
        let root = root(&self.said);
        let solved = self.ledger.failures.iter().filter(|failure| failure.is_solved());
        let solved: HashSet<&str> = solved.map(|failure| failure.label.as_str()).collect();
        let context = Context {
            solved: &solved,
            following: &self.following,
            root,
            even: *without == Some(Part::Worth),
            known: &items.texts(),
            focus: &wishes.words(),
            stale: &|text| self.is_outdated(text),
        };
        let mut picker = Picker::new(&self.said, &context, measure);
        items.set_root(root);
        // The whole has fewer tokens than its parts: the room that is left after all is filled again.
        for _ in 0..REFILLS {
            if !picker.take(items.room()) {
                break;
            }
            items.replace_lines(excerpts(&self.said, &picker.picked(), root));
            // Many lines of one piece are one item, which does not go for a few tokens.
            while let Some(excess) = items.excess()
                && picker.give_back(excess)
            {
                items.replace_lines(excerpts(&self.said, &picker.picked(), root));
            }
        }
    }

    /// Whether a line that was said holds no longer. A request may name an outdated value: "add a redirect from port 8080".
    fn is_outdated(&self, line: &str) -> bool {
        let outdated = &self.ledger.outdated;
        if statements::may_ask_for_work(line) { outdated.is_repeated_in(line) } else { outdated.is_in(line) }
    }

    fn facts(&self, items: &mut Items<'_>, cap: u64, wish: Option<&str>) {
        let ledger = &self.ledger;
        if let Some(wish) = wish {
            // A quarter of a small summary.
            let chars = usize::try_from(cap).unwrap_or(usize::MAX).clamp(60, LONGEST_WISH);
            items.take(Kind::Wish, [(Section::Context, format!("{WISH}\"{}\"", clip(wish, chars)))]);
        }
        let goals: Vec<String> = self.earlier(Section::Goal).take(3).map(|goal| clip(goal, 600)).collect();
        let goals = if goals.is_empty() { self.goal_line().into_iter().collect() } else { goals };
        items.take(Kind::Goal, goals.into_iter().map(|goal| (Section::Goal, goal)));
        let asks = |text: &str| statements::may_ask_for_work(text) || text.trim_end().ends_with(['?', '？']);
        if let Some(latest) = ledger.requests.last().filter(|latest| !latest.is_done() && asks(&latest.text)) {
            // With the box and the headings above it.
            items.reserve(self.request.scale.text(&latest.text) + 10);
        }
        // Rules first to last: the oldest rule is as valid as the newest.
        let (carried, new): (Vec<_>, Vec<_>) = ledger.statements.iter().partition(|held| held.carried);
        for (rules, kind) in [(true, Kind::Rules), (false, Kind::Facts)] {
            let of_kind = |held: &&&ledger::Held| (held.statement.kind <= statements::Kind::Wish) == rules;
            let mut order: Vec<&&ledger::Held> =
                carried.iter().filter(of_kind).chain(new.iter().filter(of_kind)).collect();
            // A tiny summary has no labels, which tell the kind of a fact: those of an earlier one come first.
            let kind_of = |held: &ledger::Held| match held.statement.kind {
                statements::Kind::Fact if held.carried && cap < TINY => statements::Kind::Note,
                kind => kind,
            };
            order.sort_by_key(|held| (kind_of(held), !held.carried));
            let section = if rules { Section::Constraints } else { Section::Context };
            // The section tells the kind, too.
            let text = |text: &str| if cap < TINY { cues::without_label(text).to_owned() } else { text.to_owned() };
            order.retain(|held| held.statement.kind != statements::Kind::Told);
            let line = |held: &&&ledger::Held| (section, text(&held.statement.text));
            // In a tiny summary a new fact takes no room of an old one, which no other summary has.
            if !rules && cap < TINY {
                items.take_first(kind, order.iter().map(line).collect());
                continue;
            }
            // The newest statements of a kind come before any of the next one.
            for of_one_kind in order.chunk_by(|one, other| kind_of(one) == kind_of(other)) {
                items.take_both_ends(kind, of_one_kind.iter().map(line).collect());
            }
        }
        let todo = |state: TodoState| {
            ledger.todos.iter().filter(move |todo| todo.state == state).map(|todo| clip(&todo.text, 240))
        };
        items.take(Kind::Open, todo(TodoState::Doing).map(|text| (Section::InProgress, format!("{TASK}{text}"))));
        items.take(Kind::Open, todo(TodoState::Open).map(|text| (Section::NextSteps, text)));
        let tasks = ledger.tasks.iter().filter(|task| !self.is_task_done(task));
        items.take(Kind::Open, tasks.map(|task| (Section::NextSteps, clip(task, 240))));
        // The request of a split turn comes after the steps that were listed before it.
        if self.goes_on || self.request.span.turn_prefix().is_empty() {
            items.take(Kind::Open, ledger.next.iter().map(|step| (Section::NextSteps, step.clone())));
        }
        let is_done = |step: &str| self.is_done(step) || self.is_task_done(step);
        if ledger.todos.is_empty() {
            // The step that an answer announced was the next one at that time.
            let open = self.earlier(Section::NextSteps).filter(|step| !ledger::is_announced(step) && !is_done(step));
            items.take(Kind::Open, open.map(|step| (Section::NextSteps, clip(step, 300))));
        }
        self.requests(items, cap);
        let finished = self.earlier(Section::NextSteps).filter(|step| ledger.todos.is_empty() && is_done(step));
        let earlier = self.earlier(Section::Done).map(str::to_owned).chain(finished.map(str::to_owned));
        // A newer list of tasks takes the place of an older one.
        let is_listed = |line: &&str| !line.starts_with(TASK) || ledger.todos.is_empty();
        let goes_on = |line: &&str| ledger.requests.iter().all(|request| request.text != ledger::asked(line));
        let open = self.earlier(Section::InProgress).filter(goes_on).filter(is_listed);
        let section = |line: &str| if self.is_done(line) { Section::Done } else { Section::InProgress };
        items.take_newest(Kind::Earlier, open.map(|line| (section(line), clip(line, 320))));
        items.take_newest(Kind::Earlier, earlier.map(|line| (Section::Done, clip(&line, 320))));
        items.take_newest(Kind::Earlier, todo(TodoState::Done).map(|text| (Section::Done, text)));
        self.mentioned(items);
        items.take(Kind::Instructions, self.instructions().into_iter().map(|rule| (Section::Constraints, rule)));
        let past =
            ledger.failures.iter().filter(|it| !it.is_open() && (cap >= WIDE || !it.is_solved_slip())).map(|failure| {
                let (section, mark) = failure.state.place();
                (section, format!("{mark}{}", failure.text()))
            });
        items.take_newest(Kind::Solved, past);
        let decisions =
            self.earlier(Section::Decisions).map(|line| clip(line, 300)).chain(ledger.decisions.iter().cloned());
        items.take_newest(Kind::Decisions, decisions.map(|line| (Section::Decisions, line)));
        if let Some(said) = self.last_words(cap) {
            items.take(Kind::Last, [(Section::Excerpts, format!("{LAST}{said}"))]);
        }
    }

    /// Takes sentences of messages that asked for nothing, those with values first.
    fn mentioned(&self, items: &mut Items<'_>) {
        let told = self.ledger.statements.iter().map(|held| &held.statement);
        let told = told.filter(|statement| statement.kind == statements::Kind::Told);
        let (valued, others): (Vec<_>, Vec<_>) =
            told.partition(|statement| !cues::values(&statement.text, true).is_empty());
        let line = |statement: &statements::Statement| (Section::Context, format!("{MENTIONED}{}", statement.text));
        items.take(Kind::Mentioned, valued.into_iter().map(line));
        items.take_newest(Kind::Mentioned, others.into_iter().map(line));
    }

    /// Whether no answer tells the outcome of a request: the next one says what it was about.
    fn is_unanswered(&self, text: &str) -> bool {
        self.ledger.requests.iter().any(|request| request.text == text && !request.is_done())
    }

    /// The rules in instructions of the project, those about the commands and requests of the conversation first.
    fn instructions(&self) -> Vec<String> {
        let mut used: HashSet<String> = HashSet::new();
        for piece in self.said.iter().filter(|piece| matches!(piece.speaker, Speaker::Call | Speaker::User)) {
            used.extend(content_words(&text::head(&piece.label, LONGEST_WISH).to_lowercase()));
            used.extend(content_words(&text::head(&piece.text, LONGEST_WISH).to_lowercase()));
        }
        // A line that only announces others says nothing by itself, and neither does one that leans on the line before.
        let leans = |rule: &str| rule.ends_with([':', '：']) || rule.ends_with("instead.") && rule.len() < SHORT_GOAL;
        let rules = self.ledger.instructions.iter().map(|rule| item(rule).unwrap_or(rule)).filter(|rule| !leans(rule));
        let mut rules: Vec<_> = rules
            .map(|rule| {
                let lower = rule.to_lowercase();
                let words = content_words(&lower);
                // A long sentence has more words of everything.
                let shared = words.intersection(&used).count() as f64 / (words.len().max(1) as f64).sqrt();
                (commands(&lower), shared, rule)
            })
            .collect();
        rules.sort_by(|(strong, shared, _), (other, of_other, _)| {
            other.cmp(strong).then_with(|| of_other.total_cmp(shared))
        });
        rules.into_iter().map(|(_, _, rule)| rule.to_owned()).collect()
    }

    /// A goal that is only the name of a command, with the first request in the user's own words.
    fn with_order(&self, goal: &str) -> String {
        let is_command = |text: &str| text.starts_with('/') && !text.contains(char::is_whitespace);
        let requests = self.ledger.requests.iter().map(|request| request.text.as_str());
        match requests.skip(1).find(|text| !is_command(text)).filter(|_| is_command(goal) && self.is_unanswered(goal)) {
            Some(order) => format!("{goal} – {}", clip(order, 300)),
            None => goal.to_owned(),
        }
    }

    /// Takes the requests, the latest one first, and the failures that are open.
    fn requests(&self, items: &mut Items<'_>, cap: u64) {
        // The goal stands above, and the last words below.
        let goal = self.goal();
        let last = self.last_words(cap).filter(|_| cap >= AMPLE).unwrap_or_default();
        let line = |request: &ledger::Request, chars: usize| {
            let is_goal = goal == Some(&request.text);
            let outcome = request.outcome.as_deref();
            let is_said_below =
                |outcome: &&str| is_goal && self.goes_on && last.contains(outcome.trim_end_matches(" …"));
            let asked = clip(&request.text, if is_goal { SHORT_GOAL.min(chars) } else { chars });
            let asked = if request.is_stopped() { format!("{asked} (interrupted)") } else { asked };
            let outcome = outcome.filter(|outcome| !is_said_below(outcome)).map(|outcome| clip(outcome, chars * 2 / 3));
            let gap = request.gap.as_deref().map(|gap| clip(gap, chars / 2));
            let told: Vec<String> = outcome.into_iter().chain(gap).collect();
            if told.is_empty() { asked } else { format!("{asked} → {}", told.join(" ")) }
        };
        let Some((latest, before)) = self.ledger.requests.split_last() else {
            return self.open_failures(items);
        };
        let size =
            |chars: usize| -> u64 { before.iter().map(|request| self.request.scale.text(&line(request, chars))).sum() };
        let chars = longest_that_fits(&REQUEST_CHARS, cap * REQUEST_SHARE / 100, size);
        let line = |request: &ledger::Request| line(request, chars);
        let is_open = self.goes_on || !latest.is_done();
        let section = if is_open { Section::InProgress } else { Section::Done };
        items.take(Kind::Latest, [(section, line(latest))]);
        if let Some(command) = self.ledger.last_command.as_deref().filter(|_| self.goes_on) {
            items.take(Kind::Latest, [(Section::Context, format!("{LAST_COMMAND}{command}"))]);
        }
        if self.goes_on {
            let so_far = self.ledger.so_far.iter().filter(|said| latest.outcome.as_deref() != Some(said.as_str()));
            items.take_newest(Kind::SoFar, so_far.map(|said| (Section::Done, clip(said, chars))));
        }
        self.open_failures(items);
        let (left_off, before): (Vec<_>, Vec<_>) = before.iter().partition(|request| request.is_left_off());
        let with_section = |request: &ledger::Request| {
            (if request.is_done() { Section::Done } else { Section::InProgress }, line(request))
        };
        items.take_newest(Kind::Requests, before.into_iter().map(with_section));
        let left_off = left_off.into_iter().map(|request| (Section::Context, format!("{LEFT_OFF}{}", line(request))));
        items.take_newest(Kind::LeftOff, left_off);
    }

    /// The last words as the summary shows them: about the share of their kind.
    fn last_words(&self, cap: u64) -> Option<String> {
        let chars = (cap as usize * 2 / 5).clamp(120, 2_000);
        self.ledger.last_words.as_deref().map(|said| head_and_end(said.trim(), chars))
    }

    fn open_failures(&self, items: &mut Items<'_>) {
        let open = self.ledger.failures.iter().filter(|failure| failure.is_open());
        items.take_newest(Kind::Failures, open.map(|failure| (Section::Blocked, failure.text())));
    }

    /// Whether something that the user told to be open is done: somebody says all of its words later, and denies nothing.
    fn is_task_done(&self, task: &str) -> bool {
        let words = content_words(&statements::bare_task(&task.to_lowercase()));
        statements::is_task(task)
            && !words.is_empty()
            && self.said.iter().filter(|piece| !piece.carried).any(|piece| {
                matches!(piece.speaker, Speaker::Assistant | Speaker::User)
                    && piece.text.lines().any(|line| {
                        let lower = line.to_lowercase();
                        !line.ends_with(['?', '？'])
                            && line.trim() != task
                            && !statements::may_ask_for_work(line)
                            && !ledger::denies(&lower)
                            && words.is_subset(&content_words(&lower))
                    })
            })
    }

    /// Whether a step of the previous summary is done: the agent said so, with most of its words.
    fn is_done(&self, step: &str) -> bool {
        let words = |text: &str| -> HashSet<String> {
            let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| word.len() > 3);
            words.map(str::to_lowercase).collect()
        };
        let step = words(step);
        !step.is_empty()
            && self.said.iter().filter(|piece| !piece.carried).any(|piece| {
                matches!(piece.speaker, Speaker::Assistant | Speaker::Call)
                    && piece.text.lines().chain(piece.label.lines()).any(|line| {
                        let lower = line.to_lowercase();
                        ledger::says_done(&lower) && {
                            let said = words(line);
                            step.iter().filter(|word| said.contains(*word)).count() * 10 >= step.len() * 7
                        }
                    })
            })
    }
}

/// A summary in tokens that has room for slips in the use of a tool.
const WIDE: u64 = 4_000;

/// Whether a rule commands with a word that its project stands on. After a subject most of these words tell how something is:
/// "users don't need it".
fn commands(lower: &str) -> bool {
    const STRONG: [&str; 7] = ["must", "never", "always", "do not", "don't", "niemals", "immer"];
    const LEADS: [&str; 8] = ["please", "and", "but", "or", "so", "then", "you", "also"];
    const SUBJECTS: [&str; 13] =
        ["it", "they", "users", "he", "she", "which", "who", "that", "there", "is", "are", "was", "were"];
    let mut found = STRONG.iter().flat_map(|word| lower.match_indices(word));
    found.any(|(at, strong)| {
        let before = lower[..at].trim_end();
        let word = before.rsplit(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
        // Code is a subject, too.
        let begins = word.is_empty() && !before.ends_with(['`', ')']);
        let is_part = lower[..at].ends_with(char::is_alphanumeric)
            || lower[at + strong.len()..].starts_with(char::is_alphanumeric);
        match strong {
            _ if is_part => false,
            "must" => true,
            "do not" | "don't" => begins || LEADS.contains(&word),
            _ => begins || !SUBJECTS.contains(&word),
        }
    })
}

/// Length of the goal where it stands among the requests, in characters.
const SHORT_GOAL: usize = 60;

/// Times that the room of a summary is filled.
const REFILLS: usize = 4;

/// An excerpt of an earlier summary.
fn carried(label: &str, text: String) -> Said {
    let (speaker, label) = match label {
        "user" => (Speaker::User, label),
        label if label == "assistant" || LAST.strip_suffix(": ") == Some(label) => (Speaker::Assistant, "assistant"),
        _ => (Speaker::Aside, label),
    };
    Said { carried: true, ..Said::new(speaker, Clean::assembled(label), Clean::assembled(text)) }
}

/// Lengths of a request, in characters. The outcome has two thirds of it.
const REQUEST_CHARS: [usize; 6] = [320, 240, 180, 140, 110, 90];

/// The share of a summary, in hundredths, that all requests may have before they are shortened.
const REQUEST_SHARE: u64 = 22;

/// The first of these lengths, the longest first, with which a text has at most `room` tokens; else the shortest.
fn longest_that_fits(lengths: &[usize], room: u64, size: impl Fn(usize) -> u64) -> usize {
    let fits = lengths.iter().find(|chars| size(**chars) <= room).or(lengths.last());
    fits.copied().unwrap_or_default()
}

impl Wishes<'_> {
    /// The words of the wishes that lines are chosen by.
    fn words(&self) -> Vec<String> {
        const FILLERS: &[&str] =
            &["about", "keep", "focus", "that", "this", "with", "everything", "summary", "remember"];
        let texts = self.instructions.into_iter().chain(self.topics.iter().map(String::as_str));
        let words = texts.flat_map(|text| text.split(|char: char| !char.is_alphanumeric() && char != '_'));
        let words = words.map(str::to_lowercase);
        words.filter(|word| word.chars().count() > 3 && !FILLERS.contains(&word.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::tokens::{Estimator, Scale},
        settings::Settings,
        summary::{cleaner::Cleaner, span::Span},
    };
    use serde_json::{Value, json};

    fn entry(id: &str, kind: &str, fields: Value) -> Arc<Entry> {
        let mut line = json!({"type": kind, "id": id, "parentId": null, "timestamp": ""});
        line.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
    }

    fn entries(messages: &[Value]) -> Vec<Arc<Entry>> {
        let messages = messages.iter().enumerate();
        messages.map(|(at, message)| entry(&format!("e{at}"), "message", json!({"message": message}))).collect()
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn command(name: &str) -> Value {
        user(&format!("<command-name>{name}</command-name><command-args></command-args>"))
    }

    fn said(text: &str) -> Value {
        json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"})
    }

    /// A call and its result.
    fn called(id: &str, tool: &str, arguments: Value, output: &str, failed: bool) -> [Value; 2] {
        let call = json!({"type": "toolCall", "id": id, "name": tool, "arguments": arguments});
        let content = json!([{"type": "text", "text": output}]);
        [
            json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}),
            json!({"role": "toolResult", "toolCallId": id, "toolName": tool, "isError": failed, "content": content}),
        ]
    }

    /// The summary of whole turns after an earlier one, or of the beginning of a turn.
    fn composed(cap: u64, previous: Option<&str>, history: &[Value], turn: &[Value]) -> String {
        let previous = previous.map(|summary| {
            let fields = json!({"summary": summary, "firstKeptEntryId": "e0", "tokensBefore": 1});
            entry("k", "compaction", fields)
        });
        let (history, turn) = (entries(history), entries(turn));
        let settings = Settings::default();
        let request = Request {
            span: Span::of(&history).continuing(previous.as_ref()).with_turn_prefix(&turn),
            wishes: Wishes::default(),
            cap,
            without: None,
            settings: &settings,
            cleaner: &Cleaner::new(&settings),
            scale: Scale::new(Estimator::Chars, 1.0),
            stop: &|| false,
        };
        match turn.is_empty() {
            true => Draft::of_history(&request).compose(cap, None),
            false => Draft::of_turn_prefix(&request).compose(cap, None),
        }
    }

    fn of(cap: u64, history: &[Value]) -> String {
        composed(cap, None, history, &[])
    }

    /// The lines of a summary under a heading.
    fn under<'a>(summary: &'a str, heading: &str) -> Vec<&'a str> {
        let lines = summary.lines().skip_while(|line| *line != heading).skip(1);
        lines.take_while(|line| !line.is_empty() && !line.starts_with('#')).collect()
    }

    #[test]
    fn the_goal_of_a_command_has_the_first_request_in_words() {
        let rest = || [user("Port the parser to tabs."), said("Two tests are still failing.")];
        let goal = |first: &[Value]| {
            let summary = of(2_000, &[first, &rest()].concat());
            under(&summary, "## Goal").join(" ")
        };
        assert_eq!(goal(&[command("/review")]), "- /review – Port the parser to tabs.");
        assert_eq!(goal(&[command("/review"), command("/plan")]), "- /review – Port the parser to tabs.");
        assert_eq!(goal(&[command("/review"), said("Reviewed it, all is fine.")]), "- /review");
        assert_eq!(goal(&[user("/review the parser")]), "- /review the parser");
        assert_eq!(goal(&[user("Review the parser.")]), "- Review the parser.");
    }

    #[test]
    fn instructions_about_the_conversation_come_first() {
        let instructions = "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\n- Use tabs in the docs.\n- Use spaces in the parser.\n- Never edit vendor/.\n- Always do it as follows:\n- Use the new one instead.\n- Keep the lexer of the project in one file and use the short form of it instead.\n</INSTRUCTIONS>\n";
        let rules = |said_first: &str, more: &[Value]| {
            let messages = [&[user(&format!("{instructions}{said_first}"))], more].concat();
            under(&of(2_000, &messages), "## Constraints & Preferences").join("\n")
        };
        let (docs, parser) = ("- Use tabs in the docs.", "- Use spaces in the parser.");
        let (first, last) = (
            "- Never edit vendor/.",
            "- Keep the lexer of the project in one file and use the short form of it instead.",
        );
        let ported = rules("Port the parser.", &[said("Ported the parser and the docs.")]);
        assert_eq!(ported, [first, parser, docs, last].join("\n"));
        let read = called("1", "read", json!({"path": "docs/tabs.md"}), "x", false);
        assert_eq!(rules("Go on.", &read), [first, docs, parser, last].join("\n"));
    }

    #[test]
    fn a_slip_that_was_solved_has_room_in_a_wide_summary() {
        let edit = |id: &str, output: &str, failed: bool| {
            called(id, "edit", json!({"path": "src/a.rs", "oldText": id, "newText": "y"}), output, failed)
        };
        let make =
            |id: &str, output: &str, failed: bool| called(id, "bash", json!({"command": "make test"}), output, failed);
        let messages = [
            &[user("Fix the parser.")][..],
            &edit("1", "String to replace not found in file", true),
            &edit("2", "ok", false),
            &make("3", "make: no rule", true),
            &make("4", "test result: ok. 3 passed", false),
            &[said("Fixed the parser.")],
        ]
        .concat();
        for (cap, is_told) in [(WIDE - 1, false), (WIDE, true)] {
            let summary = of(cap, &messages);
            assert!(summary.contains("failed, later worked – bash make test: make: no rule"), "{summary}");
            assert_eq!(summary.contains("failed, later worked – edit src/a.rs"), is_told, "{summary}");
        }
    }

    #[test]
    fn many_long_requests_are_shortened() {
        let turn = |at: usize| {
            let words = format!("is about the module{at} and its many words ").repeat(8);
            [
                user(&format!("Request number {at} {words}")),
                said(&format!("Fixed the module{at} in src/module{at}.rs.")),
            ]
        };
        let messages: Vec<Value> = (0..12).flat_map(turn).collect();
        for (cap, number, longest) in [(1_000, 5, 150), (2_500, 12, 200)] {
            let summary = of(cap, &messages);
            let done = under(&summary, "### Done");
            assert_eq!(done.len(), number, "{summary}");
            assert!(done.iter().all(|line| line.chars().count() < longest), "{summary}");
        }
    }

    #[test]
    fn a_request_stands_under_the_heading_of_its_end() {
        let stop = json!({"role": "assistant", "content": [], "stopReason": "aborted"});
        let stopped = [user("Fix the parser."), stop, user("Fix the lexer."), said("Fixed the lexer.")];
        let summary = of(2_000, &stopped);
        assert_eq!(under(&summary, "### Done"), ["- [x] Fix the lexer. → Fixed the lexer."]);
        assert_eq!(under(&summary, "### In Progress"), ["- [ ] Fix the parser. (interrupted)"]);
        let turn = |at: usize| [user(&format!("Fix the bug {at} in the lexer.")), said("Fixed it in a.rs.")];
        let left: Vec<Value> = stopped[..2].iter().cloned().chain((0..4).flat_map(turn)).collect();
        assert!(of(2_000, &left).contains("\n- left off – Fix the parser.\n"), "{}", of(2_000, &left));
        let failing = of(2_000, &[user("Fix the parser."), said("Two tests are still failing.")]);
        assert_eq!(under(&failing, "### In Progress"), ["- [ ] Fix the parser. → Two tests are still failing."]);
    }

    #[test]
    fn a_turn_that_goes_on_tells_its_results_and_its_last_command() {
        let push = called("1", "bash", json!({"command": "git push"}), "to main\nab..cd", false);
        let first =
            [user("Fix the parser."), said("The table of the parser is fixed in a.rs."), said("Added the test.")];
        let turn = [&first[..], &push].concat();
        let ample = composed(2_000, None, &[], &turn);
        assert_eq!(under(&ample, "### Done"), ["- [x] The table of the parser is fixed in a.rs."]);
        assert_eq!(under(&ample, "### In Progress"), ["- [ ] Fix the parser."], "the last words stand below");
        assert!(ample.contains("\n- last command that worked – bash git push: ab..cd\n"), "{ample}");
        let small = composed(500, None, &[], &turn);
        assert_eq!(under(&small, "### In Progress"), ["- [ ] Fix the parser. → Added the test."]);
        let whole = of(2_000, &turn);
        assert!(!whole.contains("last command"), "{whole}");
    }

    #[test]
    fn a_tiny_summary_has_no_labels() {
        let messages = [user("Fix it."), said("Fixed it."), user("NOTE: the port is 4711."), said("Noted.")];
        assert!(of(500, &messages).contains("\n- the port is 4711.\n"));
        assert!(of(2_000, &messages).contains("\n- NOTE: the port is 4711.\n"));
    }

    #[test]
    fn facts_of_all_kinds_that_a_tiny_summary_leaves_out_have_one_mark() {
        let told = |label: &str, name: &str| -> Vec<Value> {
            let told = |at: usize| user(&format!("{label}: the {name} of server number {at} is value-{at}."));
            (0..30).flat_map(|at| [told(at), said("Noted.")]).collect()
        };
        let facts = [told("FACT", "port"), told("By the way", "owner")].concat();
        let messages = [&[user("Fix it."), said("Fixed it.")][..], &facts].concat();
        for (cap, marks) in [(200, 1), (600, 1), (5_000, 0)] {
            let summary = of(cap, &messages);
            assert_eq!(summary.matches("- …\n").count(), marks, "{summary}");
        }
        let carried = of(600, &messages);
        let again = composed(600, Some(&carried), &[user("NOTE: the lamp is a new-one."), said("Noted.")], &[]);
        assert_eq!(again.matches("- …").count(), 1, "{again}");
    }

    #[test]
    fn a_request_that_names_an_outdated_value_is_not_outdated() {
        let messages = [user("The port is 8080."), said("Okay."), user("The port is 9090."), said("Okay.")];
        let history = entries(&messages);
        let settings = Settings::default();
        let request = Request {
            span: Span::of(&history),
            wishes: Wishes::default(),
            cap: 1_000,
            without: None,
            settings: &settings,
            cleaner: &Cleaner::new(&settings),
            scale: Scale::new(Estimator::Chars, 1.0),
            stop: &|| false,
        };
        let draft = Draft::of_history(&request);
        assert!(!draft.is_outdated("Please add a redirect from port 8080 to the new one."));
        assert!(draft.is_outdated("It listens on port 8080.") && draft.is_outdated("Note that the port is 8080."));
        assert!(draft.is_outdated("Remember that the port is 8080. Run it."));
    }

    #[test]
    fn a_task_that_the_user_told_of_is_open_until_somebody_says_it_is_done() {
        let told =
            [user("Plan it."), said("It is planned."), user("We have not booked the hotel yet."), said("Noted.")];
        assert_eq!(under(&of(2_000, &told), "## Next Steps"), ["1. We have not booked the hotel yet."]);
        let asked = [&told[..], &[user("Book the hotel."), said("I could not book the hotel.")]].concat();
        assert!(of(2_000, &asked).contains("1. We have not booked the hotel yet."));
        for last in [said("I booked the hotel in Rome."), user("We have booked the hotel now.")] {
            let done = of(2_000, &[&told[..], &[last]].concat());
            assert!(!done.contains("1. We have not booked"), "{done}");
        }
    }

    #[test]
    fn tasks_stand_by_their_states() {
        let todos = json!({"todos": [{"content": "a task", "status": "completed"},
            {"content": "b task", "status": "in_progress"}, {"content": "c task", "status": "pending"}]});
        let messages = [&[user("Fix it.")][..], &called("1", "TodoWrite", todos, "ok", false)].concat();
        let summary = of(2_000, &messages);
        assert!(under(&summary, "### Done").contains(&"- [x] a task"), "{summary}");
        assert!(under(&summary, "### In Progress").contains(&"- [ ] task – b task"), "{summary}");
        assert_eq!(under(&summary, "## Next Steps"), ["1. c task"]);
        let steps = composed(2_000, Some("## Next Steps\n1. write the notes"), &messages, &[]);
        assert_eq!(under(&steps, "## Next Steps"), ["1. c task"], "a list takes the place of earlier steps");
        let listed = Some("### In Progress\n- [ ] task – old task\n- [ ] port it");
        let newer = composed(2_000, listed, &messages, &[]);
        assert!(!newer.contains("old task") && newer.contains("- [ ] port it"), "{newer}");
        assert!(composed(2_000, listed, &messages[..1], &[]).contains("- [ ] task – old task"));
    }

    #[test]
    fn a_step_of_an_earlier_summary_is_open_until_the_agent_says_that_it_is_done() {
        let previous = "## Goal\n- Ship it.\n\n## Progress\n### In Progress\n- [ ] port the lexer\n\n## Next Steps\n1. update the changelog file\n2. said next: Let me run it\n3. write the release notes\n\n## Critical Context\n- Instructions for this summary: \"tabs\"";
        let messages = [
            user("Do the rest of the release."),
            said("I updated the changelog file and added the update of it.\n\nThe tests still fail."),
        ];
        let summary = composed(2_000, Some(previous), &messages, &[]);
        assert_eq!(under(&summary, "## Goal"), ["- Ship it."]);
        assert_eq!(under(&summary, "## Next Steps"), ["1. write the release notes"]);
        assert!(under(&summary, "### Done").contains(&"- [x] update the changelog file"), "{summary}");
        assert!(under(&summary, "### In Progress").contains(&"- [ ] port the lexer"), "{summary}");
        assert!(!summary.contains("Instructions for this summary"), "they were for one summary: {summary}");
        let ported = [user("Do the rest."), said("I added the port of the lexer to a.rs.")];
        let summary = composed(2_000, Some(previous), &ported, &[]);
        assert!(under(&summary, "### Done").contains(&"- [x] port the lexer"), "{summary}");
    }

    #[test]
    fn a_strong_word_after_a_subject_commands_nothing() {
        for rule in [
            "don't use unwrap",
            "use tabs. do not use spaces",
            "please don't push",
            "**never** push",
            "commits must be signed",
            "we always squash",
            "if it fails, don't retry",
        ] {
            assert!(commands(rule), "{rule}");
        }
        for other in [
            "users don't need to know it",
            "use the flag where they just don't get it",
            "`open()` don't lock",
            "it never returns",
            "the list is always sorted",
            "use mustard",
        ] {
            assert!(!commands(other), "{other}");
        }
    }
}
