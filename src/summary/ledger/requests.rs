//! The requests of the user, and what came of each: the answer that its turn ended with, a question, an interruption.

use super::{
    failures::{self, Worked},
    outcomes::{self, Asked},
};
use crate::summary::{
    cues,
    heard::{Run, Said},
    prose::{clip, content_words, lines, sentences, sentences_of_line},
    statements::{self, Kind, Paste, Statement},
};
use std::collections::HashSet;

/// A request of the user and what came of it.
#[derive(Debug, Clone)]
pub(in crate::summary) struct Request {
    pub text: String,
    pub outcome: Option<String>,
    /// The sentence of the answer that says what is not done.
    pub gap: Option<String>,
    end: End,
}

/// The end of the turn of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It has none.
    Open,
    /// The user stopped the agent.
    Stopped,
    /// The user stopped the agent or did not answer its question, and several later requests were done.
    LeftOff,
    /// The agent asked the user.
    Question,
    /// The agent asked the user, who put the work off.
    Waiting,
    /// The agent asked the user, who does not want it any more.
    Declined,
    /// The agent answered, and the last check of the turn had failed or the answer says that it is not done.
    NotDone,
    /// The agent answered.
    Done,
}

impl Request {
    pub(super) fn new(text: String) -> Self {
        Self { text, outcome: None, gap: None, end: End::Open }
    }

    /// Whether nothing of it is open: its turn ended with an answer that says nothing of a gap, or the user went on to others.
    pub(in crate::summary) fn is_done(&self) -> bool {
        matches!(self.end, End::Done | End::Declined)
    }

    /// Whether the user went on without it, though it is not done.
    pub(in crate::summary) fn is_left_off(&self) -> bool {
        self.end == End::LeftOff
    }

    /// Whether the user stopped the agent at it.
    pub(in crate::summary) fn is_stopped(&self) -> bool {
        self.end == End::Stopped
    }
}

/// The turn that is read.
#[derive(Default)]
pub(super) struct Turn<'a> {
    /// The newest answer in it.
    answer: Option<&'a str>,
    /// Whether the agent called a tool with or after that answer.
    called: bool,
    /// Whether such a call worked.
    worked: bool,
    /// Whether the agent called a tool at all.
    acted: bool,
    /// The checks that failed and did not pass since.
    failing: Vec<Run>,
}

impl<'a> Turn<'a> {
    /// The answer that the turn ended with.
    pub(super) fn end(&self) -> Option<&'a str> {
        self.answer.filter(|_| !self.called)
    }

    /// The newest answer, if no call of it or after it worked: the step that it announces is the next one.
    pub(super) fn announcing(&self) -> Option<&'a str> {
        self.answer.filter(|_| !self.worked)
    }

    pub(super) fn answered(&mut self, answer: &'a str) {
        (self.answer, self.called, self.worked) = (Some(answer), false, false);
    }

    pub(super) fn called(&mut self) {
        (self.called, self.acted) = (true, true);
    }

    pub(super) fn result(&mut self, piece: &Said, failed: bool) {
        self.called();
        self.worked |= !failed;
        if failed || failures::is_hidden_failure(piece) {
            self.failing.extend(piece.runs.iter().filter(|run| run.checks()).cloned());
        } else if !self.failing.is_empty() {
            let worked = Worked::by(piece);
            self.failing.retain(|failed| !worked.covers(failed));
        }
    }
}

/// The part of a message of the user in the requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// It asks for something.
    Request,
    /// It answers the question of the agent.
    Reply { question: String, answer: String },
    /// It asks for nothing.
    Nothing,
}

/// The longest request that is kept, in characters.
const LONGEST: usize = 600;

/// The longest answer of the user to a question of the agent, in characters. A longer message is a request.
const LONGEST_REPLY: usize = 160;

/// Later requests that were done, after which a stopped one and an open question are left off: the user went on without them.
const WENT_ON: usize = 3;

/// The requests of a conversation, as it is read.
#[derive(Debug, Default)]
pub(super) struct Requests {
    list: Vec<Request>,
    /// A message that only states facts. It is a request if the agent then does something about it.
    stated: Option<String>,
    /// The outcomes so far.
    reported: HashSet<String>,
    /// The results that the agent told since the last request.
    so_far: Vec<String>,
    /// The newest question of the agent.
    question: String,
}

impl Requests {
    /// Those of a conversation that goes on with a request of an earlier summary.
    pub(super) fn going_on_with(request: Option<String>) -> Self {
        Self { list: request.into_iter().map(Request::new).collect(), ..Self::default() }
    }

    /// The requests, from the oldest to the newest, and the results that the agent told in the last turn.
    pub(super) fn into_parts(mut self) -> (Vec<Request>, Vec<String>) {
        let mut done = 0;
        for request in self.list.iter_mut().rev() {
            done += usize::from(request.end == End::Done);
            match request.end {
                End::Stopped | End::Question if done >= WENT_ON => request.end = End::LeftOff,
                _ => {}
            }
        }
        (self.list, self.so_far)
    }

    /// The number of requests so far, by which the turns are told apart.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Takes a message of the user in. `found`: the statements in it.
    pub(super) fn heard(&mut self, said: &str, found: &[Statement]) -> Part {
        let text = clip(&without_pastes(said), LONGEST);
        if text.is_empty() {
            return Part::Nothing;
        }
        let asked_back = self.list.last_mut().filter(|request| request.end == End::Question);
        if let Some(request) = asked_back
            && (!is_request(&text) || is_reply(&text, &self.question, !found.is_empty()))
        {
            request.end = match () {
                () if declines(&text) => End::Declined,
                () if postpones(&text) => End::Waiting,
                () => End::Open,
            };
            return Part::Reply { question: self.question.clone(), answer: text };
        }
        if !is_request(&text) || text.starts_with("[Image: ") && !text.contains("] ") {
            return Part::Nothing;
        }
        // A message that states facts and nothing else asks for nothing.
        let stated: usize = found.iter().map(|it| it.text.len()).sum();
        let states =
            found.iter().all(|it| matches!(it.kind, Kind::Note | Kind::Fact) || cues::label(&it.text).is_some());
        let only_states =
            !found.is_empty() && states && !statements::may_ask_for_work(&text) && stated * 10 >= said.trim().len() * 9;
        if let Some(last) = self.list.last().filter(|_| only_states) {
            // While the agent works, a fact belongs to the request that it works on.
            self.stated = (last.end != End::Open).then_some(text);
            return Part::Nothing;
        }
        self.stated = None;
        self.list.retain(|request| request.text != text && !(request.is_stopped() && is_again(&request.text, &text)));
        self.list.push(Request::new(text));
        self.so_far.clear();
        Part::Request
    }

    /// Takes in what the agent says before the end of its turn.
    pub(super) fn told(&mut self, said: &str) {
        if let Some(request) = self.list.last_mut().filter(|_| self.stated.is_none()) {
            let outcome = outcomes::outcome(said, &Asked::of(&request.text), &self.reported);
            request.outcome = outcome.or(request.outcome.take());
        }
        self.so_far.extend(outcomes::results(said));
    }

    /// Takes the end of a turn in. The last answer says what came of its request, and of those that joined it.
    pub(super) fn turn_ended(&mut self, turn: &Turn<'_>) {
        let Some(answer) = turn.end() else { return };
        let gap = outcomes::gap(answer);
        if let Some(stated) = self.stated.take() {
            let acts = turn.acted || gap.is_some() || outcomes::claims_success(answer);
            if !acts || outcomes::is_acknowledgement(answer) {
                return;
            }
            self.list.push(Request::new(stated));
        }
        let Some((request, before)) = self.list.split_last_mut() else { return };
        if request.end == End::Waiting && outcomes::is_acknowledgement(answer) {
            return;
        }
        let asked = Asked::of(&request.text);
        let last = outcomes::last_outcome(answer, &asked, &self.reported);
        // That the checks pass at last says less than the sentence before it.
        let earlier = request.outcome.take().filter(|_| last.as_deref().is_none_or(outcomes::only_checks));
        request.outcome = earlier.or(last);
        self.reported.extend(request.outcome.clone());
        let denies = |text: &str| outcomes::denies(&text.to_lowercase());
        let succeeds = sentences(answer).next().is_some_and(|first| {
            let lower = first.to_lowercase();
            outcomes::claims_result(&lower) && !outcomes::denies(&lower)
        });
        let is_denied = gap.is_some() || !succeeds && request.outcome.as_deref().is_some_and(denies);
        request.end = match () {
            () if outcomes::asks_back(answer) => End::Question,
            () if !turn.failing.is_empty() || is_denied => End::NotDone,
            () => End::Done,
        };
        if request.end == End::Question {
            let last = sentences(answer).last().unwrap_or(answer.trim());
            self.question = clip(last, LONGEST_REPLY);
        }
        let is_new = |gap: &String| request.outcome.as_ref().is_none_or(|outcome| !outcome.contains(gap.as_str()));
        request.gap = gap.filter(is_new);
        let end = request.end;
        let joined = before.iter_mut().rev().take_while(|request| request.end == End::Open);
        joined.for_each(|request| request.end = end);
    }

    /// Takes in that the user stopped the agent.
    pub(super) fn stopped(&mut self) {
        if let Some(request) = self.list.last_mut().filter(|request| request.end == End::Open) {
            request.end = End::Stopped;
        }
    }
}

/// An acknowledgement asks for nothing.
pub(super) fn is_request(text: &str) -> bool {
    const EMPTY: &[&str] = &[
        "ok",
        "okay",
        "yes",
        "yep",
        "yeah",
        "no",
        "y",
        "n",
        "yo",
        "wow",
        "nice",
        "great",
        "cool",
        "good",
        "perfect",
        "thanks",
        "thank you",
        "thx",
        "go",
        "go on",
        "continue",
        "sure",
        "done",
        "ls",
        "hi",
        "hello",
        "and",
        "really",
    ];
    let words = text.to_lowercase();
    !EMPTY.contains(&words.trim_matches(|char: char| !char.is_alphanumeric()))
}

/// Whether a message answers a question of the agent: it asks for nothing by itself, and it agrees, refuses, states something,
/// gives a value, or takes a word of the question up.
fn is_reply(text: &str, question: &str, states: bool) -> bool {
    const LEADS: [&str; 16] = [
        "yes", "yep", "yeah", "no", "nope", "nah", "ok", "okay", "sure", "please", "ja", "nein", "oui", "sí", "not",
        "later",
    ];
    let lower = text.to_lowercase();
    let asks = sentences_of_line(text).any(|sentence| statements::may_ask_for_work(sentence.trim()))
        || text.ends_with(['?', '？'])
        || text.starts_with('/')
        || statements::asks_something(text)
        || statements::is_trouble(text)
        || ["should", " first", "also "].iter().any(|word| lower.contains(word))
        || ["but ", "however", "aber ", "mais ", "pero "].iter().any(|word| lower.starts_with(word));
    if asks || text.chars().count() > LONGEST_REPLY {
        return false;
    }
    let mut words = lower.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let leads = words.clone().next().is_some_and(|word| LEADS.contains(&word)) || postpones(text);
    let has_value = text.bytes().any(|byte| byte.is_ascii_digit()) && !text.contains('/');
    let is_word =
        words.clone().count() <= 2 && !words.any(|word| ["it", "this", "that", "them", "on", "up"].contains(&word));
    let takes_up = content_words(&lower).intersection(&content_words(&question.to_lowercase())).next().is_some();
    leads || states || has_value || is_word || takes_up
}

/// Whether an answer puts the work off.
fn postpones(text: &str) -> bool {
    const STARTS: [&str; 9] =
        ["not yet", "tomorrow", "later", "wait", "not now", "warte", "noch nicht", "morgen", "später"];
    let lower = text.to_lowercase();
    let rest = ["no, ", "nah, ", "no ", "nein, "].iter().find_map(|start| lower.strip_prefix(start)).unwrap_or(&lower);
    STARTS.iter().any(|start| rest.starts_with(start))
}

/// Whether an answer takes the request back.
fn declines(text: &str) -> bool {
    const STARTS: [&str; 9] =
        ["skip", "never mind", "nevermind", "forget it", "leave it", "don't bother", "drop it", "lass es", "vergiss"];
    let lower = text.to_lowercase().replace('’', "'");
    let rest = ["no, ", "nah, ", "no ", "nah ", "nein, "].iter().find_map(|start| lower.strip_prefix(start));
    STARTS.iter().any(|start| lower.starts_with(start) || rest.is_some_and(|rest| rest.starts_with(start)))
}

/// Whether a request asks again for most of what an earlier one asked for.
fn is_again(earlier: &str, later: &str) -> bool {
    let (earlier, later) = (content_words(&earlier.to_lowercase()), content_words(&later.to_lowercase()));
    !earlier.is_empty() && earlier.intersection(&later).count() * 10 >= earlier.len() * 6
}

/// A user's own words without what was pasted among them: long lines, code blocks, logs, many lines. A message that was pasted as
/// a whole says so.
pub(super) fn without_pastes(text: &str) -> String {
    const MOST: usize = 12;
    let mut kept = Vec::new();
    let mut paste = Paste::default();
    // After a log only a paragraph that asks for something is the user's.
    let (mut speaks, mut begins) = (true, true);
    for line in lines(text).map(str::trim) {
        if line.is_empty() {
            begins = true;
            continue;
        }
        let pasted = paste.has(line);
        if pasted {
            speaks = false;
        } else if begins && !speaks {
            speaks = statements::asks(line);
        }
        begins = false;
        if speaks || !pasted && !kept.is_empty() {
            kept.push(line);
        }
        if kept.len() == MOST {
            break;
        }
    }
    if kept.is_empty() && paste.began() {
        let first = lines(text).map(str::trim).find(|line| !line.is_empty());
        return format!("Pasted output: {}", first.unwrap_or_default());
    }
    kept.join(" ")
}
