//! The requests of the user, and what came of each: the answer that its turn ended with, a question, an interruption.

use super::{
    acknowledged,
    failures::{self, Worked},
    outcomes::{self, Asked},
};
use crate::summary::{
    cues,
    heard::{Run, Said},
    prose::{clip, content_words, lines, sentences, sentences_of_line},
    statements::{self, Kind, Paste, Statement},
};
use std::{collections::HashSet, sync::LazyLock};

/// A request of the user and what came of it.
#[derive(Debug, Clone)]
pub(in crate::summary) struct Request {
    pub text: String,
    pub outcome: Option<String>,
    /// The sentence of the answer that says what is not done.
    pub gap: Option<String>,
    end: End,
    /// Whether an earlier summary has it.
    carried: bool,
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
    /// The agent acknowledged it and did nothing yet.
    Promised,
    /// The agent answered, and the last check of the turn had failed or the answer says that it is not done.
    NotDone,
    /// It asked for nothing, and the agent acknowledged it.
    Told,
    /// The agent answered.
    Done,
}

impl Request {
    pub(super) fn new(text: String) -> Self {
        Self { text, outcome: None, gap: None, end: End::Open, carried: false }
    }

    /// Whether nothing of it is open: its turn ended with an answer that says nothing of a gap, or the user went on to others.
    pub(in crate::summary) fn is_done(&self) -> bool {
        matches!(self.end, End::Done | End::Declined | End::Told)
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
        // An invalid use of a check says nothing of the work.
        if failed && failures::was_misused(piece) {
            return;
        }
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

/// Requests before a new one that it may ask for again in other words.
const LOOKED_BACK: usize = 8;

/// The requests of a conversation, as it is read.
#[derive(Debug, Default)]
pub(super) struct Requests {
    list: Vec<Request>,
    /// The texts of all requests.
    asked: HashSet<String>,
    /// The number of requests so far.
    count: usize,
    /// The first request, which may be asked for again later.
    first: Option<String>,
    /// A message that only states facts. It is a request if the agent then does something about it.
    stated: Option<String>,
    /// The outcomes so far.
    reported: HashSet<String>,
    /// The results that the agent told since the last request.
    so_far: Vec<String>,
    /// The newest question of the agent.
    question: String,
    /// Whether the user has not answered it.
    is_asked: bool,
}

/// The requests of a conversation that was read.
pub(super) struct Gathered {
    /// From the oldest to the newest.
    pub list: Vec<Request>,
    /// The first thing that the user asked for.
    pub goal: Option<String>,
    /// The results that the agent told in the last turn.
    pub so_far: Vec<String>,
}

impl Requests {
    /// Those of a conversation that goes on with a request of an earlier summary.
    pub(super) fn going_on_with(request: Option<String>) -> Self {
        let list: Vec<Request> =
            request.into_iter().map(|text| Request { carried: true, ..Request::new(text) }).collect();
        let first = list.first().map(|request| request.text.clone());
        Self { count: list.len(), list, first, ..Self::default() }
    }

    /// The requests of the whole conversation.
    pub(super) fn gathered(mut self) -> Gathered {
        let mut done = 0;
        for request in self.list.iter_mut().rev() {
            done += usize::from(request.end == End::Done);
            match request.end {
                End::Stopped | End::Question if done >= WENT_ON => request.end = End::LeftOff,
                _ => {}
            }
        }
        // A conversation in which nothing is asked for is about the first thing that is told.
        if self.list.iter().any(|request| request.end != End::Told) {
            self.list.retain(|request| request.end != End::Told);
        } else {
            self.list.truncate(1);
        }
        let goal = self.first.or_else(|| self.list.first().map(|request| request.text.clone()));
        Gathered { list: self.list, goal, so_far: self.so_far }
    }

    /// The number of requests so far, by which the turns are told apart.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn push(&mut self, text: String) {
        self.count += 1;
        self.is_asked = false;
        self.first.get_or_insert_with(|| text.clone());
        self.asked.insert(text.clone());
        self.list.push(Request::new(text));
    }

    /// Leaves out requests that a new one asks for again.
    fn leave_out_repeated(&mut self, text: &str) {
        if self.asked.contains(text) {
            self.list.retain(|request| request.text != text);
        }
        let mut newest = self.list.split_off(self.list.len().saturating_sub(LOOKED_BACK));
        newest.retain(|request| !(request.is_stopped() && is_again(&request.text, text)));
        self.list.append(&mut newest);
    }

    /// Takes a message of the user in. `found`: the statements in it.
    pub(super) fn heard(&mut self, said: &str, found: &[Statement]) -> Part {
        let text = clip(&without_pastes(said), LONGEST);
        if text.is_empty() {
            return Part::Nothing;
        }
        if self.is_asked && (!is_request(&text) || is_reply(&text, &self.question, !found.is_empty())) {
            self.replied(&text);
            return Part::Reply { question: self.question.clone(), answer: text };
        }
        // "Yes, and add a test": both are worked on.
        if let Some(request) = self.list.last_mut().filter(|_| self.is_asked && agrees(&text)) {
            request.end = End::Open;
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
        self.leave_out_repeated(&text);
        self.push(text);
        self.so_far.clear();
        Part::Request
    }

    /// Takes the answer of the user to the agent's question in.
    fn replied(&mut self, answer: &str) {
        self.is_asked = false;
        let Some(request) = self.list.last_mut() else { return };
        request.end = match request.end {
            End::Question if declines(answer) => End::Declined,
            End::Question if postpones(answer) => End::Waiting,
            end if declines(answer) || postpones(answer) => end,
            _ => End::Open,
        };
        // The name of a command says nothing of the work.
        if is_bare_command(&request.text) {
            let order = clip(&format!("{} – {answer}", request.text), LONGEST);
            if self.first.as_ref() == Some(&request.text) {
                self.first = Some(order.clone());
            }
            request.text = order;
        }
    }

    /// Takes in what the agent says before the end of its turn.
    pub(super) fn told(&mut self, said: &str) {
        if let Some(request) = self.list.last_mut().filter(|_| self.stated.is_none()) {
            let asked = Asked::of(&request.text);
            let outcome = outcomes::outcome(said, &asked, &self.reported);
            // That the checks pass says less than the sentence before it.
            let outcome = outcome.filter(|new| request.outcome.is_none() || !outcomes::only_checks(new, &asked));
            request.outcome = outcome.or(request.outcome.take());
        }
        self.so_far.extend(outcomes::results(said));
    }

    /// Takes the end of a turn in. The last answer says what came of its request, and of those that joined it. Returns the
    /// message that the turn answered, if it asked for nothing and the agent only acknowledged it.
    pub(super) fn turn_ended(&mut self, turn: &Turn<'_>) -> Option<String> {
        let answer = turn.end()?;
        let gap = outcomes::gap(answer);
        let is_acknowledged = !turn.acted && acknowledged::is_acknowledgement(answer);
        if let Some(stated) = self.stated.take() {
            let acts = turn.acted || gap.is_some() || outcomes::claims_success(answer);
            if !acts || acknowledged::is_acknowledgement(answer) {
                return None;
            }
            self.push(stated);
        }
        let (request, before) = self.list.split_last_mut()?;
        if request.end == End::Waiting && acknowledged::is_acknowledgement(answer) {
            return None;
        }
        let asked = Asked::of(&request.text);
        let is_fresh = request.end == End::Open && !request.carried && request.outcome.is_none();
        if is_acknowledged && is_fresh && !asked.is_question {
            let text = &request.text;
            let only_tells =
                !asks_for_something(text) && !acknowledged::promises_work(answer) && states_something(text);
            request.end = if only_tells || statements::is_task(text) { End::Told } else { End::Promised };
            let told = Some(request.text.clone()).filter(|_| request.end == End::Told)?;
            // The first thing that is asked for is still to come.
            self.first.take_if(|first| *first == told);
            return Some(told);
        }
        let last = outcomes::last_outcome(answer, &asked, &self.reported);
        // That the checks pass at last says less than the sentence before it.
        let is_less = |last: &str| outcomes::only_checks(last, &asked);
        let earlier = request.outcome.take().filter(|_| last.as_deref().is_none_or(is_less));
        let is_answered = asked.is_question && last.is_some();
        request.outcome = earlier.or(last);
        self.reported.extend(request.outcome.clone());
        let denies = |text: &str| outcomes::denies(&text.to_lowercase());
        let succeeds = sentences(answer).next().is_some_and(|first| {
            let lower = first.to_lowercase();
            outcomes::claims_result(&lower) && !outcomes::denies(&lower)
        });
        let is_denied = gap.is_some() || !succeeds && request.outcome.as_deref().is_some_and(denies);
        // A request of an earlier summary may not be the one that is answered.
        let is_other = request.carried && !outcomes::claims_success(answer) && !asked.is_about(answer);
        self.is_asked = outcomes::asks_back(answer);
        request.end = match () {
            () if self.is_asked && !is_answered => End::Question,
            () if !turn.failing.is_empty() || is_denied || is_other => End::NotDone,
            () => End::Done,
        };
        if self.is_asked {
            self.question = clip(outcomes::question(answer), LONGEST_REPLY);
        }
        let is_new = |gap: &String| request.outcome.as_ref().is_none_or(|outcome| !outcome.contains(gap.as_str()));
        request.gap = gap.filter(is_new);
        let end = request.end;
        let joined = before.iter_mut().rev().take_while(|request| request.end == End::Open);
        joined.for_each(|request| request.end = end);
        None
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
    const LEADS: [&str; 7] = ["no", "nope", "nah", "please", "nein", "not", "later"];
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
    let leads = agrees(text) || words.clone().next().is_some_and(|word| LEADS.contains(&word)) || postpones(text);
    let has_value = text.bytes().any(|byte| byte.is_ascii_digit()) && !text.contains('/');
    let is_word =
        words.clone().count() <= 2 && !words.any(|word| ["it", "this", "that", "them", "on", "up"].contains(&word));
    let takes_up = content_words(&lower).intersection(&content_words(&question.to_lowercase())).next().is_some();
    // "B) the second one"
    let chooses = text.get(1..).is_some_and(|rest| rest.starts_with([')', ':']));
    leads || chooses || states || has_value || is_word || takes_up
}

/// Whether a message asks for work, an answer or help, or reports that something does not work.
fn asks_for_something(text: &str) -> bool {
    text.starts_with(['/', '!', '['])
        || text.starts_with(PASTED)
        || text.ends_with(['?', '？'])
        || statements::is_trouble(text)
        || sentences_of_line(text).map(str::trim).any(|sentence| {
            let lower = sentence.to_lowercase();
            statements::may_ask_for_work(sentence) || statements::asks_something(sentence) || REQUESTS.is_match(&lower)
        })
}

/// Words of a request in any of its sentences.
static REQUESTS: LazyLock<regex::Regex> = LazyLock::new(|| {
    regex::Regex::new(
        r"\b(?:please|can you|could you|let's|let us|we need|i need|i want you to|i'd like you to|bitte|kannst du|könntest du|por favor|puedes|s'il te pla[iî]t|s'il vous pla[iî]t|per favore)\b",
    )
    .expect("a fixed pattern")
});

/// Whether a message reads as a statement: it begins with its subject, or has a verb of a state.
fn states_something(text: &str) -> bool {
    static STATES: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?:i|i'm|i've|we|we're|my|our|the|this|that|these|those|it|he|she|they|there|his|her|their|an?|nobody|no\sone|every\w*|all|some|most|fyi|btw|just\sso\syou\sknow
                  |ich|wir|mein\w*|unser\w*|der|die|das|es|sie|er|el|la|los|las|mis?|nuestr\w*|yo|le|les|mon|ma|mes|notre|nos|je|nous|il|elle)\b
              | \b(?:is|are|was|were|has|have|had|isn't|aren't|can't|won't|reports?\sto|likes?|loves?|hates?|prefers?|prefiero|starts?|over|not|ist|sind|war|hat|haben|heißt|es|son|está|están|tiene|est|sont)\b
              | は | です | ます | 是 | 입니다 | 习惯",
        )
        .expect("a fixed pattern")
    });
    STATES.is_match(&text.to_lowercase().replace('’', "'"))
}

/// Whether a request is only the name of a command.
fn is_bare_command(text: &str) -> bool {
    text.starts_with('/') && !text.contains(char::is_whitespace)
}

/// Whether a message begins by agreeing.
fn agrees(text: &str) -> bool {
    const LEADS: [&str; 10] = ["yes", "yep", "yeah", "ok", "okay", "sure", "ja", "oui", "sí", "absolutely"];
    let lower = text.to_lowercase();
    LEADS.contains(&lower.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default())
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

/// The label of a message that was pasted as a whole.
const PASTED: &str = "Pasted output: ";

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
        return format!("{PASTED}{}", first.unwrap_or_default());
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::{Ledger, Sources};
    use super::*;
    use crate::{
        redact::Clean,
        summary::{heard::Speaker, sections::Section, statements::Kind},
    };

    /// The facts of a conversation: requests and answers in turn. An answer after a call begins with "$ ".
    fn read(previous: &[(Section, String)], turns: &[&str]) -> Ledger {
        let piece = |speaker: Speaker, text: &str| Said::new(speaker, Clean::assembled("x"), Clean::assembled(text));
        let mut pieces = Vec::new();
        for (at, text) in turns.iter().enumerate() {
            match text.strip_prefix("$ ") {
                Some(text) => {
                    pieces.push(piece(Speaker::Call, "make"));
                    pieces.push(piece(Speaker::Assistant, text));
                }
                None if at % 2 == 0 => pieces.push(piece(Speaker::User, text)),
                None => pieces.push(piece(Speaker::Assistant, text)),
            }
        }
        let clean = |text: &str| Clean::assembled(text);
        Ledger::of(&Sources { previous, said: &pieces, entries: &[], goes_on: false, todo_tools: &[], clean: &clean })
    }

    fn states(ledger: &Ledger) -> Vec<(&str, bool)> {
        ledger.requests.iter().map(|request| (request.text.as_str(), request.is_done())).collect()
    }

    #[test]
    fn a_message_that_asks_for_nothing_and_is_acknowledged_is_a_statement() {
        for (said, answer) in [
            ("Tabs over spaces in this repo.", "OK."),
            ("I love spicy food.", "Got it, I'll remember that."),
            ("My daughter is called Mia.", "Okay."),
            ("Tamsin reports to Okafor.", "Thanks for telling me!"),
            ("Prefiero los trenes de noche.", "Entendido."),
        ] {
            let found = read(&[], &["Plan the trip.", "The trip is planned.", said, answer]);
            assert_eq!(states(&found), [("Plan the trip.", true)], "{said}");
            let held: Vec<_> = found.statements.iter().map(|held| held.statement.text.as_str()).collect();
            assert_eq!(held, [said]);
        }
        for (asks, answer, done) in [
            ("Fix the parser.", "OK.", false),
            ("Please book the cabin.", "Will do.", false),
            ("Let's port the lexer to Zig.", "Will do.", false),
            ("Optimize the slow query in the report.", "Got it.", false),
            ("I need a script that parses the files.", "OK, I'll do that.", false),
            ("Corrige el parser de fechas, por favor.", "Entendido.", false),
            ("Schreib einen Test für den Lexer.", "Wird gemacht.", false),
            ("The build is broken again", "Noted.", false),
            ("Do you like jazz?", "Yes!", true),
            ("Tabs over spaces in this repo.", "$ OK.", true),
            ("Tabs over spaces in this repo.", "Tabs are set in the config of the editor.", true),
        ] {
            let found = read(&[], &["Plan the trip.", "The trip is planned.", asks, answer]);
            assert_eq!(states(&found)[1..], [(asks, done)], "{answer}");
        }
        let mentioned = [(Section::Context, "mentioned – I love spicy food.".to_owned())];
        let held = &read(&mentioned, &["Plan the trip."]).statements[0];
        assert_eq!((held.statement.kind, held.statement.text.as_str()), (Kind::Told, "I love spicy food."));
        let found = read(&[], &["I love spicy food.", "OK.", "My name is ada.", "OK."]);
        assert_eq!((found.requests.len(), found.goal.as_deref()), (1, Some("I love spicy food.")));
        let found = read(&[], &["I love spicy food.", "OK.", "Plan the trip.", "OK, the trip to Rome is planned."]);
        assert_eq!((states(&found), found.goal.as_deref()), (vec![("Plan the trip.", true)], Some("Plan the trip.")));
        let long = format!("The port is 4711. {} We eat at noon.", "It rains a lot here in the north. ".repeat(5));
        let found = read(&[], &["Plan the trip.", "The trip is planned.", &long, "OK."]);
        let held: Vec<_> = found.statements.iter().map(|held| (held.statement.kind, &*held.statement.text)).collect();
        assert!(held.len() > 1 && held[0].0 == Kind::Fact && held[0].1.starts_with("The port is 4711."), "{held:?}");
        assert!(held[1..].iter().all(|(kind, text)| *kind == Kind::Told && !text.contains("4711")), "{held:?}");
    }

    #[test]
    fn a_message_about_something_that_is_to_be_done_is_a_task() {
        for task in [
            "We have yet to find a photographer.",
            "Still to sort out: the flowers.",
            "Remind me to call the bank tomorrow.",
            "TODO: the flowers for table 4",
            "Die Einladungen sind noch offen.",
            "Queda pendiente el alquiler del coche.",
            "We haven't booked the hotel yet.",
        ] {
            let found = read(&[], &["Plan the wedding.", "The wedding is planned.", task, "OK."]);
            assert_eq!((found.tasks, found.requests.len()), (vec![task.to_owned()], 1), "{task}");
        }
        for fact in [
            "Der Server läuft, der Port ist noch 8080.",
            "The API has not changed yet since version 3.",
            "La réunion queda para el 5 de mayo.",
        ] {
            let found = read(&[], &["Plan it.", "It is planned.", fact, "OK."]);
            assert_eq!((found.tasks.len(), found.statements.len()), (0, 1), "{fact}");
        }
        let found = read(&[], &["Plan it.", "It is planned.", "Never push to main yet.", "OK."]);
        assert_eq!((found.tasks.len(), found.statements.len()), (0, 1), "a rule");
    }

    #[test]
    fn a_question_is_answered_though_an_offer_follows() {
        let explained = "The comment in line 366 refers to the old lock. Want me to update the comment?";
        let asked = ["Can you explain the comment?", explained, "Fix the parser.", "Fixed it."];
        assert_eq!(states(&read(&[], &asked))[0], ("Can you explain the comment?", true));
        let offered = "With a counter. Want me to implement it?";
        let later = ["List the options of a counter.", offered, "yes, and add a test", "Added the counter and a test."];
        assert!(states(&read(&[], &later))[0].1, "the user agreed");
        let other = ["List the options of a counter.", offered, "Fix the parser.", "Fixed it."];
        assert!(!states(&read(&[], &other))[0].1);
        let options = "**What would you like to brainstorm?**\n\nA) a new hook\nB) a new command";
        let found = read(&[], &["/brainstorm", options, "B) a hook for the end of a session", "Added the hook."]);
        assert_eq!(states(&found), [("/brainstorm – B) a hook for the end of a session", true)]);
        assert_eq!(found.goal.as_deref(), Some("/brainstorm – B) a hook for the end of a session"));
        assert!(found.decisions[0].ends_with("(asked: What would you like to brainstorm?)"), "{found:?}");
    }

    #[test]
    fn a_question_that_its_answer_answers_asks_nobody() {
        let answer =
            "I reworked it.\n\n**What does it read?**\n- the file `a.toml` at the start\n- the environment after it";
        assert_eq!(states(&read(&[], &["Rework the loader.", answer])), [("Rework the loader.", true)]);
        let asks = "Two ways are open.\n\nWhich one do you want?\n- the file\n- the environment";
        assert_eq!(states(&read(&[], &["Rework the loader.", asks])), [("Rework the loader.", false)]);
    }

    #[test]
    fn the_goal_stays_though_its_request_is_repeated() {
        let found =
            read(&[], &["Fix the parser.", "Fixed it.", "Why is it slow?", "It copies.", "Fix the parser.", "Done."]);
        assert_eq!(found.goal.as_deref(), Some("Fix the parser."));
        assert_eq!(states(&found).last(), Some(&("Fix the parser.", true)));
    }

    #[test]
    fn a_carried_request_is_done_by_an_answer_about_it() {
        let previous = [(Section::InProgress, "Port the lexer tests".to_owned())];
        let after = |answer: &str| {
            let clean = |text: &str| Clean::assembled(text);
            let said = [Said::new(Speaker::Assistant, Clean::assembled("x"), Clean::assembled(answer))];
            let sources = Sources {
                previous: &previous,
                said: &said,
                entries: &[],
                goes_on: false,
                todo_tools: &[],
                clean: &clean,
            };
            Ledger::of(&sources).requests[0].is_done()
        };
        assert!(after("The lexer tests run on the new parser.") && after("Everything is fixed and merged."));
        assert!(!after("The config is odd, I stop here."));
    }

    #[test]
    fn the_sentence_about_a_request_outweighs_that_the_checks_pass() {
        let outcome = |turns: &[&str]| read(&[], turns).requests[0].outcome.clone().unwrap_or_default();
        let renamed = "Renamed `FindSession` to `FindLegacySession`.";
        let clean = |text: &str| Clean::assembled(text);
        let piece = |speaker, text: &str| Said::new(speaker, Clean::assembled("x"), Clean::assembled(text));
        let said = [
            piece(Speaker::User, "Rename the method."),
            piece(Speaker::Assistant, renamed),
            piece(Speaker::Call, "make"),
            piece(Speaker::Assistant, "All tests pass and lint is clean."),
        ];
        let sources =
            Sources { previous: &[], said: &said, entries: &[], goes_on: false, todo_tools: &[], clean: &clean };
        assert_eq!(Ledger::of(&sources).requests[0].outcome.as_deref(), Some(renamed));
        let asked = ["Run the smoke tests again.", "## Both Smoke Tests Passed\n\nThe key fix: it was reinstalled."];
        assert_eq!(outcome(&asked), "Both Smoke Tests Passed");
        let asked = ["Run the smoke tests again.", "The library was stale. All smoke tests pass again."];
        assert_eq!(outcome(&asked), "All smoke tests pass again.");
    }

    #[test]
    fn thousands_of_stopped_requests_are_read_in_time() {
        let mut requests = Requests::default();
        for at in 0..20_000 {
            requests.heard(&format!("Implement the {at} th endpoint of the service, with its tests and its docs"), &[]);
            requests.stopped();
        }
        let texts: HashSet<String> = requests.list.iter().map(|request| request.text.clone()).collect();
        assert!(texts.len() < 20_000 && requests.count() == 20_000);
    }
}
