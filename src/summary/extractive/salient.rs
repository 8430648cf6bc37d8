//! The lines of a conversation that are worth most for what comes next, chosen under a budget.
//!
//! An agent later needs names (paths, identifiers, versions, hashes) in the line in which they stood: a name alone
//! says nothing. Lines are taken greedily by the worth of the names that no line before has brought, for their length.

use super::{
    gone::{Gone, path_of, without_number},
    worth::{MOST_NAMES, Worth, names},
};
use crate::{
    summary::{
        cues::without_label,
        files::patch,
        heard::{Said, Speaker},
        prose::sentences_of_line,
    },
    text,
};
use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap, HashSet},
    fmt,
    sync::LazyLock,
};

/// A line that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Picked<'a> {
    /// The piece of the conversation it stands in.
    pub piece: usize,
    /// The line, or a part of a long one.
    pub text: &'a str,
    /// The blanks at the beginning of the line.
    pub indent: &'a str,
    /// Its place among the lines of the piece.
    pub line: usize,
    /// Its number in the file that was read.
    pub number: Option<usize>,
    /// Whether it is a line of code among prose.
    pub code: bool,
    /// Whether the line has more before the part, and after it.
    pub more: (bool, bool),
}

#[cfg(test)]
impl<'a> Picked<'a> {
    /// A line that is taken as a whole.
    pub(super) fn whole(piece: usize, text: &'a str) -> Self {
        Self { piece, text, indent: "", line: 0, number: None, code: false, more: (false, false) }
    }
}

impl fmt::Display for Picked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.more;
        write!(f, "{}{}{}", if before { "… " } else { "" }, self.text, if after { " …" } else { "" })
    }
}

/// A longer line is divided into parts of about this many characters.
const LONGEST: usize = 90;
/// A longer word is cut, in characters: a path or an address is not.
const LONGEST_WORD: usize = 400;
/// Shorter lines say nothing by themselves.
const SHORTEST: usize = 8;
/// The worth of a line that an earlier summary has, to that of another with the same names.
const CARRIED: f64 = 1.5;
/// The weight of the cost of a line: below 1, longer lines are not passed over for their length alone.
const COST_WEIGHT: f64 = 0.8;
/// Lines that begin with the same characters, so many of them, are the same.
const SAME: usize = 48;
/// Different words beside a name that say something of it. With fewer the line is a list, or an end of a line.
const COMPANY: usize = 2;
/// Characters a token takes at the least in transcripts with code: a cautious price.
const CHARS_PER_TOKEN: f64 = 3.2;
/// Tokens of a character of Chinese, Japanese and Korean, and of a symbol.
const TOKENS_PER_WIDE: f64 = 0.8;
/// Cost of a line beside its text, in tokens: its mark and its share of the label above.
const LINE_OVERHEAD: f64 = 2.0;

/// The surroundings of the lines.
pub(super) struct Context<'a> {
    /// The part of the conversation that stays.
    pub following: &'a [Said],
    /// Texts that the summary has already.
    pub known: &'a [String],
    /// The folder that labels leave out of their paths.
    pub root: Option<&'a str>,
    /// Words whose lines come before all others.
    pub focus: &'a [String],
    /// Whether all names are worth the same.
    pub even: bool,
    /// The labels of calls that failed and later worked. Their failed output says nothing any more.
    pub solved: &'a HashSet<&'a str>,
    /// Whether a text gives a value that is outdated.
    pub stale: &'a dyn Fn(&str) -> bool,
}

/// The lines of a conversation, taken from the best to the worst as far as there is room.
pub(super) struct Picker<'a> {
    said: &'a [Said],
    root: Option<&'a str>,
    index: Worth<'a>,
    lines: Vec<Line<'a>>,
    /// Lines by their scores. A score was right when it was computed; names may have been covered since.
    heap: BinaryHeap<Ranked>,
    covered: HashSet<u32>,
    labelled: HashSet<usize>,
    picked: Vec<usize>,
    /// The lines that were ever taken. One that was given back is not taken again.
    taken: HashSet<usize>,
    /// The lines that are taken after all names are covered: the newest first, the output of tools last.
    rest: Vec<usize>,
    /// The lines that did not fit, each with its cost in tokens, the best first. The room may grow.
    missed: Vec<(usize, u64)>,
    measure: &'a dyn Fn(&str) -> u64,
}

/// Tokens below which no line is taken.
const LEAST: u64 = 8;

/// Lines in a row that do not fit before the room is full. Each of them is measured.
const MOST_MISSES: usize = 48;

impl<'a> Picker<'a> {
    /// The lines of `said`, of which none is taken.
    pub(super) fn new(said: &'a [Said], context: &Context<'a>, measure: &'a dyn Fn(&str) -> u64) -> Self {
        let mut index = Worth::of(said, context.following);
        if context.even {
            index.level();
        }
        let lines = lines(&index, said, context);
        let known = context.known.iter().flat_map(|text| names(text));
        let covered: HashSet<u32> = known.filter_map(|name| index.id(name)).collect();
        let scored = |(at, line): (usize, &Line<'_>)| Ranked { score: line.score(&index, &covered), at };
        let heap = lines.iter().enumerate().map(scored).filter(|ranked| ranked.score > 0.0).collect();
        let is_output = |at: &usize| matches!(said[lines[*at].picked.piece].speaker, Speaker::Result { .. });
        let (output, spoken): (Vec<usize>, Vec<usize>) = (0..lines.len()).partition(is_output);
        let rest = output.into_iter().chain(spoken).collect();
        Self {
            said,
            root: context.root,
            index,
            lines,
            heap,
            covered,
            labelled: HashSet::new(),
            picked: Vec::new(),
            taken: HashSet::new(),
            rest,
            missed: Vec::new(),
            measure,
        }
    }

    /// Takes more lines, of about `tokens` together. Returns whether it took one.
    pub(super) fn take(&mut self, tokens: u64) -> bool {
        let before = self.picked.len();
        let (mut left, mut misses) = (tokens, 0);
        self.take_up_missed(tokens);
        while left >= LEAST
            && misses < MOST_MISSES
            && let Some(best) = self.heap.pop()
        {
            if self.taken.contains(&best.at) {
                continue;
            }
            let now = self.lines[best.at].score(&self.index, &self.covered);
            if now < best.score && self.heap.peek().is_some_and(|next| now < next.score) {
                if now > 0.0 {
                    self.heap.push(Ranked { score: now, at: best.at });
                }
                continue;
            }
            if now > 0.0 {
                misses = if self.take_line(best.at, &mut left) { 0 } else { misses + 1 };
            }
        }
        misses = 0;
        while left >= LEAST
            && misses < MOST_MISSES
            && self.heap.is_empty()
            && let Some(at) = self.rest.pop()
        {
            if !self.taken.contains(&at) {
                misses = if self.take_line(at, &mut left) { 0 } else { misses + 1 };
            }
        }
        self.picked.len() > before
    }

    /// Makes the lines that did not fit, and that fit into `tokens`, the next ones of their list again.
    fn take_up_missed(&mut self, tokens: u64) {
        let (fitting, missed): (Vec<_>, Vec<_>) = self.missed.drain(..).partition(|(_, cost)| *cost <= tokens);
        self.missed = missed;
        for (at, _) in fitting.into_iter().rev() {
            match self.lines[at].score(&self.index, &self.covered) {
                score if score > 0.0 => self.heap.push(Ranked { score, at }),
                _ => self.rest.push(at),
            }
        }
    }

    /// Takes a line if it fits.
    fn take_line(&mut self, at: usize, left: &mut u64) -> bool {
        let line = &self.lines[at];
        let label = &self.said[line.picked.piece].label;
        let first = !self.labelled.contains(&line.picked.piece);
        // A mark, the end of the line, and a label with a fence.
        let cost = (self.measure)(&line.picked.to_string()) + 2 + if first { (self.measure)(label) + 4 } else { 0 };
        if cost > *left {
            self.missed.push((at, cost));
            return false;
        }
        *left -= cost;
        if first {
            self.labelled.insert(line.picked.piece);
            // A path below the folder is not there as a whole, and a name without company says nothing.
            let root = self.root.map(|root| root.trim_start_matches('/'));
            let whole = |name: &&str| !root.is_some_and(|root| name.starts_with(root)) && tells(label, name);
            self.covered.extend(names(label).filter(whole).filter_map(|name| self.index.id(name)));
        }
        self.covered.extend(&line.names);
        self.picked.push(at);
        self.taken.insert(at);
        true
    }

    /// Gives the lines back that were taken last, of about `tokens` together. Returns whether there was one.
    pub(super) fn give_back(&mut self, tokens: u64) -> bool {
        let mut left = tokens;
        let mut gave = false;
        while left > 0
            && let Some(at) = self.picked.pop()
        {
            left = left.saturating_sub((self.measure)(self.lines[at].picked.text) + 1);
            gave = true;
        }
        gave
    }

    /// The lines that were taken, in the order in which they were said. Parts of one line that stand side by side are one, and a
    /// line that only announces the next one stands with it or not at all.
    pub(super) fn picked(&self) -> Vec<Picked<'a>> {
        let mut order = self.picked.clone();
        order.sort_unstable();
        let mut picked: Vec<Picked<'a>> = Vec::with_capacity(order.len());
        for line in order.into_iter().map(|at| &self.lines[at]) {
            let next = line.picked;
            match picked.last_mut().and_then(|last| Some((joined(&self.said[next.piece].text, last, &next)?, last))) {
                Some((text, last)) => (last.text, last.more) = (text, (last.more.0, next.more.1)),
                None => picked.push(next),
            }
        }
        let announces = |line: &Picked<'_>| self.is_spoken(line.piece) && line.text.ends_with([':', '：']);
        let stays: Vec<bool> = (0..picked.len())
            .map(|at| {
                let goes_on = picked
                    .get(at + 1)
                    .is_some_and(|next| next.piece == picked[at].piece && next.line <= picked[at].line + NEAR);
                goes_on || !announces(&picked[at])
            })
            .collect();
        let mut stays = stays.into_iter();
        picked.retain(|_| stays.next() == Some(true));
        picked
    }

    fn is_spoken(&self, piece: usize) -> bool {
        matches!(self.said[piece].speaker, Speaker::User | Speaker::Assistant)
    }
}

/// The distance of a line from the one that announces it, in lines: an empty line may stand between.
const NEAR: usize = 2;

/// The text of two parts of one line with nothing but blanks between them.
fn joined<'a>(text: &'a str, one: &Picked<'a>, other: &Picked<'a>) -> Option<&'a str> {
    if (one.piece, one.line) != (other.piece, other.line) {
        return None;
    }
    let place = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
    let (start, end) = (place(one.text), place(one.text) + one.text.len());
    let between = text.get(end..place(other.text))?;
    between.trim().is_empty().then(|| text.get(start..place(other.text) + other.text.len())).flatten()
}

struct Ranked {
    score: f64,
    at: usize,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.at.cmp(&self.at))
    }
}
impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Ranked {}

struct Line<'a> {
    picked: Picked<'a>,
    names: Vec<u32>,
    /// In tokens.
    cost: f64,
    focused: bool,
    carried: bool,
}

impl<'a> Line<'a> {
    fn score(&self, index: &Worth<'_>, covered: &HashSet<u32>) -> f64 {
        let new = self.names.iter().filter(|name| !covered.contains(name));
        let worth: f64 = new.map(|&name| f64::from(index.worth(name))).sum();
        let bonus = if self.focused { 1_000.0 } else { 0.0 };
        // A line of an earlier summary was chosen once.
        let carried = if self.carried { CARRIED } else { 1.0 };
        (worth * carried + bonus) / self.cost.powf(COST_WEIGHT)
    }
}

fn lines<'a>(index: &Worth<'_>, said: &'a [Said], context: &Context<'_>) -> Vec<Line<'a>> {
    let focus = context.focus;
    let mut known: HashSet<&str> = HashSet::new();
    let mut lines = Vec::new();
    // A fact that was clipped begins like its line.
    let starts: HashSet<&str> = context.known.iter().map(|known| text::head(known, SAME)).collect();
    let all_known = context.known.join("\n");
    let is_known = |line: &str| {
        starts.contains(text::head(line, SAME)) || memchr::memmem::find(all_known.as_bytes(), line.as_bytes()).is_some()
    };
    // A later result of the same call is the newer one.
    let mut newest: HashMap<u64, usize> = HashMap::new();
    for (piece, it) in said.iter().enumerate() {
        if let Some(call) = it.call {
            newest.insert(call, piece);
        }
    }
    let gone = Gone::of(said);
    for (piece, it) in said.iter().enumerate() {
        let is_solved = it.speaker == Speaker::Result { failed: true } && context.solved.contains(&*it.label);
        if it.speaker == Speaker::Instructions || is_solved || it.call.is_some_and(|call| newest[&call] != piece) {
            continue;
        }
        let spoken = matches!(it.speaker, Speaker::User | Speaker::Assistant);
        let path = path_of(it).and_then(|path| gone.edited(path));
        let is_gone = |line: &str| path.is_some_and(|path| gone.is_in(path, without_number(line), piece));
        let mut fenced = false;
        for (at, whole) in it.text.lines().enumerate() {
            let line = whole.trim();
            let fence = spoken && line.starts_with("```");
            fenced ^= fence;
            if fence || is_gone(line) || says_nothing(it, line) {
                continue;
            }
            for (text, more) in if spoken && !fenced { spoken_parts(line) } else { parts(line).collect() } {
                if text.len() < SHORTEST || !known.insert(text) {
                    continue;
                }
                if spoken && ((context.stale)(text) || is_known(without_label(text))) {
                    continue;
                }
                let mut ids: Vec<u32> =
                    names(text).filter(|name| tells(text, name)).filter_map(|name| index.id(name)).collect();
                ids.sort_unstable();
                ids.dedup();
                if ids.len() > MOST_NAMES || is_head_of_diff(text) {
                    ids.clear();
                }
                let focused = !focus.is_empty() && {
                    let lower = text.to_lowercase();
                    focus.iter().any(|word| lower.contains(word.as_str()))
                };
                let indent = if more.0 { "" } else { &whole[..whole.len() - whole.trim_start().len()] };
                let number = it.numbers.and_then(|numbers| numbers.number(at));
                let picked = Picked { piece, text, indent, line: at, number, code: spoken && fenced, more };
                let cost = price(text) + LINE_OVERHEAD;
                lines.push(Line { picked, names: ids, cost, focused, carried: it.carried });
            }
        }
    }
    lines
}

/// Whether a line repeats the label of its call, reports that an edit was made, or is a hit without its text.
fn says_nothing(piece: &Said, line: &str) -> bool {
    static NOTHING: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"(?x)^(?:The\sfile\s\S+\shas\sbeen\s(?:updated|created|written) | All\soccurrences\sof\s | Successfully\s(?:wrote|replaced|edited|created)
              | File\s(?:created|written|updated|edited) | Wrote\s\d+\s(?:bytes|lines) | \S+:\d+:\s*$)",
        )
        .expect("a fixed pattern")
    });
    match piece.speaker {
        Speaker::Call => {
            let argument = line.strip_prefix("$ ").or_else(|| line.split_once(": ").map(|(_, argument)| argument));
            argument.is_some_and(|argument| piece.label.contains(argument.trim()))
        }
        Speaker::Result { .. } => NOTHING.is_match(line),
        _ => false,
    }
}

/// Whether a line is a head of a diff, which names a file and says nothing of it.
fn is_head_of_diff(line: &str) -> bool {
    const HEADS: [&str; 6] = ["diff --git ", "index ", "--- a/", "+++ b/", patch::UPDATE, "@@ "];
    HEADS.iter().any(|head| line.starts_with(head)) && !line.ends_with('.')
}

/// Whether a line has words beside a name in it that say something of the name.
fn tells(line: &str, name: &str) -> bool {
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|char: char| !char.is_alphanumeric()).filter(|word| word.len() > 2)
    }
    let mut beside: Vec<&str> = Vec::new();
    for word in words(line) {
        if words(name).chain(beside.iter().copied()).all(|known| !known.eq_ignore_ascii_case(word)) {
            beside.push(word);
            if beside.len() == COMPANY {
                return true;
            }
        }
    }
    false
}

/// The cost of a text in tokens, without a tokenizer.
fn price(text: &str) -> f64 {
    let chars = text.chars().count();
    let wide = if text.is_ascii() { 0 } else { text.chars().filter(|char| *char >= '\u{1100}').count() };
    (chars - wide) as f64 / CHARS_PER_TOKEN + wide as f64 * TOKENS_PER_WIDE
}

/// A line in parts of about [`LONGEST`] characters, each with whether there is more before and after it. A part ends after a sentence or a statement, else at a blank, else inside
/// of a word that has no end.
fn parts(line: &str) -> impl Iterator<Item = (&str, (bool, bool))> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let before = rest.len() < line.len();
        let (part, tail) = rest.split_at(part_end(rest));
        rest = tail.trim_start();
        (!part.is_empty()).then(|| (part.trim_end(), (before, !rest.is_empty())))
    })
}

/// The sentences of a line that was said. One that is too long to be taken whole is divided.
fn spoken_parts(line: &str) -> Vec<(&str, (bool, bool))> {
    const LONGEST_SENTENCE: usize = 220;
    let place = |part: &str| part.as_ptr().addr() - line.as_ptr().addr();
    let sentences = sentences_of_line(line).map(str::trim).filter(|sentence| !sentence.is_empty());
    let mut all = Vec::new();
    for sentence in sentences {
        if sentence.len() <= LONGEST_SENTENCE {
            all.push((sentence, (place(sentence) > 0, place(sentence) + sentence.len() < line.len())));
        } else {
            all.extend(parts(sentence).map(|(part, (before, after))| {
                let more = (before || place(part) > 0, after || place(part) + part.len() < line.len());
                (part, more)
            }));
        }
    }
    all
}

fn part_end(line: &str) -> usize {
    let head = text::head(line, LONGEST * 3 / 2);
    if head.len() == line.len() {
        return line.len();
    }
    let head = text::head(line, LONGEST);
    let after = |mark: &str| head.rfind(mark).map(|at| at + mark.len()).filter(|end| *end > head.len() / 3);
    let ends = [". ", "; ", " && ", "? ", "! ", ", ", " "];
    if let Some(end) = ends.iter().find_map(|mark| after(mark)) {
        return end;
    }
    // A path or an address is one word.
    let word = text::head(&line[head.len()..], LONGEST_WORD);
    match word.find(char::is_whitespace) {
        Some(end) => head.len() + end,
        None if head.len() + word.len() == line.len() => line.len(),
        None => [",", ";", "}", ")"].iter().find_map(|mark| after(mark)).unwrap_or(head.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{redact::Clean, summary::shell::runs};

    const RESULT: Speaker = Speaker::Result { failed: false };

    fn said(speaker: Speaker, text: &str) -> Said {
        Said::new(speaker, Clean::assembled("x"), Clean::assembled(text))
    }

    fn measure(text: &str) -> u64 {
        text.len() as u64 / 4
    }

    fn picked(said: &[Said], tokens: u64, known: &[String], focus: &[String]) -> Vec<String> {
        let stale = |text: &str| text.contains("outdated");
        let solved = HashSet::from(["make test"]);
        let context = Context { following: &[], known, focus, root: None, even: false, solved: &solved, stale: &stale };
        let mut picker = Picker::new(said, &context, &measure);
        picker.take(tokens);
        picker.picked().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_that_say_nothing_are_left_out() {
        let of = |speaker: Speaker, label: &str, text: &str| {
            let said = [Said::new(speaker, Clean::assembled(label), Clean::assembled(text))];
            picked(&said, 200, &[], &[])
        };
        assert_eq!(of(Speaker::Call, "bash cargo test parser", "$ cargo test parser"), [""; 0]);
        assert_eq!(
            of(Speaker::Call, "read src/a.rs", "path: src/a.rs\nlimit: the first forty lines"),
            ["limit: the first forty lines"]
        );
        assert_eq!(of(RESULT, "edit a.rs", "The file /x/a.rs has been updated successfully."), [""; 0]);
        assert_eq!(of(Speaker::Result { failed: true }, "make test", "the parser test panicked at src/a.rs"), [""; 0]);
        assert_eq!(of(Speaker::Result { failed: true }, "make", "the parser test panicked at src/a.rs").len(), 1);
    }

    #[test]
    fn the_line_about_names_comes_first_and_nothing_comes_twice() {
        let said = [
            said(RESULT, "an old line about old_thing here\nfiller without any of them"),
            said(Speaker::User, "please look at retry_budget now"),
            said(Speaker::Assistant, "the value of retry_budget is in limits.rs"),
            said(Speaker::Assistant, "the value of retry_budget is in limits.rs"),
        ];
        assert_eq!(picked(&said, 22, &[], &[]), ["the value of retry_budget is in limits.rs"]);
        assert_eq!(picked(&said, 16, &[], &["filler".to_owned()]), ["filler without any of them"]);
        let all = picked(&said, 1_000, &[], &[]);
        assert_eq!(all.len(), 4, "the rest of the room is filled: {all:?}");
    }

    #[test]
    fn known_and_outdated_lines_are_left_out_and_so_are_older_results_of_a_call() {
        let of_call = |text: &str| Said { call: Some(7), ..said(RESULT, text) };
        let said = [
            of_call("the test_one failed at first"),
            said(Speaker::User, "NOTE: the port_name is 4711 for all\nthe outdated port_name is 80"),
            of_call("the test_one passes after all"),
        ];
        let known = ["the port_name is 4711 for all".to_owned()];
        assert_eq!(picked(&said, 1_000, &known, &[]), ["the test_one passes after all"]);
    }

    #[test]
    fn lines_that_did_not_fit_are_taken_where_the_room_grows() {
        let long = format!("the long_name stands in a line {}", "of many words ".repeat(5));
        let said = [said(RESULT, &format!("{long}\nthe short_name is here\n{}", "plain words ".repeat(7)))];
        let context = Context {
            following: &[],
            known: &[],
            focus: &[],
            root: None,
            even: true,
            solved: &HashSet::new(),
            stale: &|_| false,
        };
        let mut picker = Picker::new(&said, &context, &measure);
        assert!(picker.take(24) && picker.picked().len() == 1, "{:?}", picker.picked());
        assert!(picker.take(200) && picker.picked().len() == 3, "{:?}", picker.picked());
    }

    #[test]
    fn a_name_without_company_is_a_list() {
        let said = [said(RESULT, "src/list_one.rs"), said(RESULT, "open src/list_two.rs and read it")];
        assert_eq!(picked(&said, 14, &[], &[]), ["open src/list_two.rs and read it"]);
    }

    #[test]
    fn words_beside_a_name_count_once_and_its_own_words_do_not() {
        for (line, tells_it) in [
            ("validate_key(key, kind, kind)", false),
            ("validate_key(key, \"Cache\", kind)?", true),
            ("crate::validate_key(Crate)", false),
            ("키 검증: validate_key 함수", true),
        ] {
            assert_eq!(tells(line, "validate_key"), tells_it, "{line}");
        }
    }

    #[test]
    fn a_line_costs_as_much_in_korean_as_its_tokens() {
        let (english, korean) = ("the release of v0.16.1 is ready in full", "릴리즈 v0.16.1은 모두 준비되어 있습니다");
        let tokens = |text: &str| f64::from(crate::conversation::tokens::of_text(text));
        for text in [english, korean] {
            assert!((0.6..1.7).contains(&(price(text) / tokens(text))), "{text}: {} {}", price(text), tokens(text));
        }
    }

    #[test]
    fn a_path_that_a_label_has_in_part_is_still_new() {
        let label = "read /home/ana/shop/cart.rs";
        let line = "The file /home/ana/shop/cart.rs has the sum";
        let read = Said::new(RESULT, Clean::assembled(label), Clean::assembled("fn total_of(cart: &Cart)"));
        let said = [read, said(Speaker::Assistant, line)];
        let context = Context {
            following: &[],
            known: &[],
            focus: &[],
            root: Some("/home/ana/"),
            even: true,
            solved: &HashSet::new(),
            stale: &|_| false,
        };
        let mut picker = Picker::new(&said, &context, &measure);
        while picker.take(20) && !picker.heap.is_empty() {}
        assert!(picker.picked().iter().any(|picked| picked.text == line));
    }

    #[test]
    fn parts_of_a_long_line_end_between_words_and_say_so() {
        let long = "one of the words in_a_name, ".repeat(12);
        let found: Vec<_> = parts(long.trim()).collect();
        assert!(found.len() > 2 && found.iter().all(|(part, _)| part.chars().count() <= LONGEST), "{found:?}");
        assert_eq!(found.iter().map(|(part, _)| *part).collect::<Vec<_>>().join(" "), long.trim());
        assert_eq!((found[0].1, found[1].1, found[found.len() - 1].1), ((false, true), (true, true), (true, false)));
        let part = Picked { more: (true, true), ..Picked::whole(0, "b") };
        assert_eq!(part.to_string(), "… b …");
        assert_eq!(parts("short").collect::<Vec<_>>(), [("short", (false, false))]);
        assert_eq!(parts("").count(), 0);
        let address = format!("at https://example.org/{} it is", "long/".repeat(40));
        assert!(parts(&address).any(|(part, _)| part.contains("https") && part.ends_with('/')), "an address is whole");
    }

    #[test]
    fn parts_side_by_side_are_one_line_and_an_announcement_stands_with_its_line() {
        let long = format!("the long_name stands here, {} and the other_name stands there", "words, ".repeat(20));
        let said =
            [said(RESULT, &long), said(Speaker::Assistant, "The root_cause is this one:\n\n- the lock_file is stale")];
        let all = picked(&said, 1_000, &[], &[]);
        assert_eq!(all, [&*long, "The root_cause is this one:", "- the lock_file is stale"]);
        let known = ["- the lock_file is stale".to_owned()];
        assert_eq!(picked(&said[1..], 1_000, &known, &[]), [""; 0]);
    }

    #[test]
    fn lines_that_a_later_edit_took_out_are_left_out() {
        let call = |label: &str, text: &str, gone: &str| Said {
            gone: Clean::assembled(gone),
            ..Said::new(Speaker::Call, Clean::assembled(label), Clean::assembled(text))
        };
        let said = [
            call("edit a.rs", "let first_name = 1;", ""),
            call("edit a.rs", "let second_name = 2;", "let first_name = 1;"),
            call("edit b.rs", "let other_name = 3;", "let second_name = 2;"),
        ];
        assert_eq!(picked(&said, 1_000, &[], &[]), ["let second_name = 2;", "let other_name = 3;"]);
    }

    #[test]
    fn sentences_that_were_said_stand_by_themselves() {
        let line = "One is here. Two is there.";
        assert_eq!(spoken_parts(line), [("One is here.", (false, true)), ("Two is there.", (true, false))]);
        let long = format!("One is here. {}", "the words go on, ".repeat(20).trim());
        let found = spoken_parts(&long);
        assert!(found.len() > 3 && found[1].1 == (true, true), "{found:?}");
        assert_eq!(found.last().map(|(_, more)| *more), Some((true, false)));
        let said = [said(Speaker::Assistant, "```typescript\nlet the_name = first_thing(second_thing);\n```")];
        assert_eq!(picked(&said, 1_000, &[], &[]), ["let the_name = first_thing(second_thing);"]);
    }

    #[test]
    fn the_head_of_a_diff_and_the_file_of_a_call_are_known() {
        assert!(is_head_of_diff("+++ b/src/a.rs") && is_head_of_diff("*** Update File: a.rs"));
        assert!(!is_head_of_diff("a line of it") && !is_head_of_diff("index of the names that are there."));
        let path = |speaker: Speaker, label: &str| {
            path_of(&Said::new(speaker, Clean::assembled(label), Clean::default())).map(str::to_owned)
        };
        assert_eq!(path(Speaker::Call, "edit a.rs").as_deref(), Some("a.rs"));
        assert_eq!(path(RESULT, "edit a.rs").as_deref(), Some("a.rs"));
        assert_eq!(path(Speaker::Call, "bash make test"), None);
        assert_eq!(path(Speaker::User, "edit a.rs"), None);
    }

    #[test]
    fn lines_that_a_script_showed_before_an_edit_took_them_out_are_left_out() {
        let shown = |script: &str, text: &str| Said {
            runs: runs(script).into(),
            ..Said::new(RESULT, Clean::assembled(format!("bash {script}")), Clean::assembled(text))
        };
        let edit = |label: &str| Said {
            gone: Clean::assembled("let first_name = 1;"),
            ..Said::new(Speaker::Call, Clean::assembled(label), Clean::assembled("let second_name = 2;"))
        };
        let text = "    150\tlet first_name = 1;\nlet third_name = 3;";
        for (script, edited, stays) in [
            ("sed -n '150,200p' src/a.rs", "edit src/a.rs", false),
            ("cd /x && nl -ba src/a.rs | head -n 200", "edit /x/src/a.rs", false),
            ("cat /x/src/a.rs", "edit src/a.rs", false),
            ("cat src/a.rs src/b.rs", "edit src/a.rs", true),
            ("cat src/a.rs", "edit lib/a.rs", true),
            ("cat a.rs && cargo test", "edit a.rs", true),
        ] {
            let found = picked(&[shown(script, text), edit(edited)], 1_000, &[], &[]);
            assert_eq!(found.iter().any(|line| line.contains("first_name")), stays, "{script}: {found:?}");
        }
        let two = [shown("cat a.rs", text), edit("edit x/a.rs"), edit("edit y/a.rs")];
        assert!(picked(&two, 1_000, &[], &[]).iter().any(|line| line.contains("first_name")), "one of two files");
    }

    #[test]
    fn lines_that_were_given_back_are_the_last_ones() {
        let said = [said(RESULT, "the first_name is here\nthe second_name is here\nthe third_name is here")];
        let context = Context {
            following: &[],
            known: &[],
            focus: &[],
            root: None,
            even: true,
            solved: &HashSet::new(),
            stale: &|_| false,
        };
        let mut picker = Picker::new(&said, &context, &measure);
        assert!(picker.take(100));
        let all = picker.picked().len();
        assert!(picker.give_back(1));
        assert_eq!(picker.picked().len(), all - 1);
        assert!(picker.give_back(1_000) && picker.picked().is_empty());
        assert!(!picker.give_back(1), "there is none");
    }
}
