//! Passages of a conversation that answer a question. Without a model they are found by the words of the question.

mod shelf;

use super::model::transcript::{note, said};
use crate::{
    conversation::{
        context::{self, ContextMessage, Part},
        entry::{Body, Entry},
        path::Path,
    },
    ids::EntryId,
    prompts::Prompts,
    text,
};
use shelf::Shelf;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The `customType` of an extract from another session.
pub const REFERENCE: &str = "reference";

/// The longest passage, in characters. A longer paragraph is divided.
const LONGEST: usize = 700;

/// The part of the best passage's weight that any other one has at least.
const LEAST_WEIGHT: f64 = 0.3;

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The entry that it stands in.
    pub entry: EntryId,
    /// The part of the conversation that it belongs to.
    pub origin: Origin,
    /// The cleaned text, without a label.
    pub text: String,
    label: String,
}

/// The part of a conversation that a passage belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The summary of an earlier part.
    Summary,
    /// A message of the user or an answer.
    Said,
    /// Thoughts, calls and results.
    Work,
}

/// Passages that were chosen, in the order of their conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The text, a line for each passage.
    pub text: String,
    /// The entries of the passages, each once.
    pub entries: Vec<EntryId>,
}

impl Passage {
    /// The passage as a line with its entry and its speaker.
    #[must_use]
    pub fn line(&self) -> String {
        format!("- [{}] {}: {}", self.entry, self.label, text::one_line(&self.text, LONGEST))
    }
}

/// The passages of the live context of a path, oldest first, every text of it through `clean`. `stop` ends the work early.
/// An extract from a third session says nothing of this one, so it has none. A context that is too large for memory keeps
/// those about `question` and the newest.
#[must_use]
pub fn passages(path: &Path, question: &str, clean: &dyn Fn(&str) -> String, stop: &dyn Fn() -> bool) -> Vec<Passage> {
    let context = context::build(path, &Prompts::default());
    let speakers = speakers(path);
    let mut shelf = Shelf::new(question, shelf::KEPT);
    for message in context.messages().iter().take_while(|_| !stop()) {
        passages_of(message, &speakers, clean).into_iter().for_each(|passage| shelf.put(passage));
    }
    shelf.into_passages()
}

/// Whether the live context of a path has a passage.
#[must_use]
pub fn has_passages(path: &Path) -> bool {
    let speakers = speakers(path);
    let context = context::build(path, &Prompts::default());
    context.messages().iter().any(|message| !passages_of(message, &speakers, &str::to_owned).is_empty())
}

/// The entries whose messages are not what their roles in a context say.
fn speakers(path: &Path) -> HashMap<&EntryId, &Arc<Entry>> {
    let differs = |entry: &&Arc<Entry>| matches!(entry.body, Body::CustomMessage(_) | Body::BranchSummary(_));
    path.iter().filter(differs).map(|entry| (&entry.id, entry)).collect()
}

fn passages_of(
    message: &ContextMessage,
    speakers: &HashMap<&EntryId, &Arc<Entry>>,
    clean: &dyn Fn(&str) -> String,
) -> Vec<Passage> {
    let Some(entry) = &message.entry else { return Vec::new() };
    let speaker = match speakers.get(entry).filter(|_| message.part == Part::Message).map(|entry| &entry.body) {
        Some(Body::CustomMessage(custom)) if custom.custom_type == REFERENCE => return Vec::new(),
        Some(Body::CustomMessage(custom)) => Some((Origin::Said, note(&clean(&custom.custom_type)))),
        Some(_) => Some((Origin::Summary, "Summary".to_owned())),
        None => None,
    };
    let Some(text) = said(&message.message_once(), clean, usize::MAX) else { return Vec::new() };
    let mut passages = Vec::new();
    let mut label = String::new();
    for paragraph in text.split("\n\n") {
        let labelled = paragraph.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        // A text that looks like a label is escaped.
        let text = match labelled.filter(|(name, _)| LABELS.contains(name)) {
            Some((name, text)) => {
                label = name.to_owned();
                text
            }
            None => paragraph,
        };
        let (origin, label) = match (&speaker, message.part, label.as_str()) {
            (Some((origin, label)), ..) => (*origin, label.as_str()),
            (None, Part::Summary, _) | (None, _, "Summary of an earlier part") => (Origin::Summary, "Summary"),
            (None, _, label @ ("User" | "Assistant" | "Developer" | "Note")) => (Origin::Said, label),
            (None, _, label) => (Origin::Work, label),
        };
        passages.extend(divided(text).map(|text| Passage {
            entry: entry.clone(),
            origin,
            text: text.to_owned(),
            label: label.to_owned(),
        }));
    }
    passages
}

/// The labels of a transcript.
const LABELS: [&str; 9] = [
    "User",
    "Note",
    "Developer",
    "Assistant",
    "Assistant thinking",
    "Assistant tool calls",
    "Tool result",
    "Tool result, an error",
    "Summary of an earlier part",
];

/// A paragraph in pieces of at most [`LONGEST`] characters, divided between lines where it has some.
fn divided(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let head = text::head(rest, LONGEST);
        let end = if head.len() == rest.len() {
            head.len()
        } else {
            head.rfind('\n').or_else(|| head.rfind(". ").map(|at| at + 1)).filter(|at| *at > 0).unwrap_or(head.len())
        };
        let (piece, behind) = rest.split_at(end);
        rest = behind.trim_start();
        Some(piece.trim_end())
    })
    .filter(|piece| !piece.is_empty())
}

/// The passages that have most words of the question, within `cap` tokens by `measure`. None where no passage has any.
#[must_use]
pub fn answering(passages: &[Passage], question: &str, cap: u64, measure: &dyn Fn(&str) -> u64) -> Option<Chosen> {
    let weights = weights(passages, question);
    let best = weights.iter().copied().fold(0.0, f64::max);
    if best <= 0.0 {
        return None;
    }
    let mut ranked = ranked(&weights);
    ranked.retain(|at| weights[*at] >= best * LEAST_WEIGHT);
    Some(within(passages, &ranked, cap, measure)).filter(|chosen| !chosen.entries.is_empty())
}

/// The summary of the earlier part and the newest messages, within `cap` tokens by `measure`.
#[must_use]
pub fn newest(passages: &[Passage], cap: u64, measure: &dyn Fn(&str) -> u64) -> Chosen {
    let of = |origin: Origin| (0..passages.len()).filter(move |at| passages[*at].origin == origin);
    let mut summary = Vec::new();
    let mut tokens = 0;
    for at in of(Origin::Summary) {
        tokens += measure(&passages[at].line());
        if tokens > cap / 2 {
            break;
        }
        summary.push(at);
    }
    let order: Vec<usize> = summary.into_iter().chain(of(Origin::Said).rev()).chain(of(Origin::Work).rev()).collect();
    within(passages, &order, cap, measure)
}

/// The passages that a model reads about a question, a line each, within `budget` tokens by `measure`: those with most
/// words of the question, then the newest.
#[must_use]
pub fn readable(passages: &[Passage], question: &str, budget: u64, measure: &dyn Fn(&str) -> u64) -> Vec<String> {
    let weights = weights(passages, question);
    within(passages, &ranked(&weights), budget, measure).text.lines().map(str::to_owned).collect()
}

/// The entries of passages that a text names in brackets, each once.
#[must_use]
pub fn named_in(text: &str, passages: &[Passage]) -> Vec<EntryId> {
    let known: BTreeSet<&str> = passages.iter().map(|passage| passage.entry.as_str()).collect();
    let mut named: Vec<EntryId> = Vec::new();
    for part in text.split('[').skip(1) {
        let inside = part.split(']').next().unwrap_or_default();
        for id in inside.split([',', ';', ' ']).map(str::trim).filter(|id| known.contains(id)) {
            if named.iter().all(|it| it.as_str() != id) {
                named.push(id.into());
            }
        }
    }
    named
}

/// The weight of each passage for a question: each word of the question that it has counts more, the fewer passages have
/// it.
#[must_use]
pub fn weights(passages: &[Passage], question: &str) -> Vec<f64> {
    let wanted = terms(question);
    let found: Vec<BTreeSet<String>> = passages
        .iter()
        .map(|passage| terms(&passage.text).into_iter().filter(|term| wanted.contains(term)).collect())
        .collect();
    let mut passages_with: HashMap<&str, usize> = HashMap::new();
    found.iter().flatten().for_each(|term| *passages_with.entry(term).or_default() += 1);
    let weight = |term: &String| (1.0 + passages.len() as f64 / passages_with[term.as_str()] as f64).ln();
    found.iter().map(|terms| terms.iter().map(weight).sum()).collect()
}

/// The places of passages by their weights, the largest first; of two with the same weight the newer one.
fn ranked(weights: &[f64]) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..weights.len()).collect();
    ranked.sort_by(|one, other| weights[*other].total_cmp(&weights[*one]).then(other.cmp(one)));
    ranked
}

/// The passages at these places, in this order, as far as they fit. Equal texts count once.
fn within(passages: &[Passage], order: &[usize], cap: u64, measure: &dyn Fn(&str) -> u64) -> Chosen {
    let mut chosen: BTreeMap<usize, String> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut left = cap;
    for at in order {
        if !seen.insert(passages[*at].text.as_str()) {
            continue;
        }
        let line = passages[*at].line();
        let tokens = measure(&line) + 1;
        if tokens <= left {
            left -= tokens;
            chosen.insert(*at, line);
        }
    }
    let mut entries: Vec<EntryId> = Vec::new();
    for at in chosen.keys() {
        if entries.last() != Some(&passages[*at].entry) {
            entries.push(passages[*at].entry.clone());
        }
    }
    Chosen { text: chosen.into_values().collect::<Vec<_>>().join("\n"), entries }
}

/// The terms of a text: words in small letters without an ending of the plural; of writing without spaces, pairs of
/// characters.
fn terms(text: &str) -> BTreeSet<String> {
    let mut terms = BTreeSet::new();
    for word in text.to_lowercase().split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if word.chars().any(without_spaces) {
            let chars: Vec<char> = word.chars().collect();
            terms.extend(chars.windows(2).map(String::from_iter));
        } else if word.chars().count() > 2 && !COMMON.contains(&word) {
            let stem = word.strip_suffix('s').filter(|stem| stem.chars().count() > 2).unwrap_or(word);
            terms.insert(stem.to_owned());
        }
    }
    terms
}

/// Whether a character belongs to a writing without spaces: Chinese, Japanese, Thai.
fn without_spaces(char: char) -> bool {
    matches!(char, '\u{e00}'..='\u{e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Words that tell nothing of a question.
const COMMON: [&str; 48] = [
    "the", "and", "for", "with", "that", "this", "what", "which", "when", "where", "who", "why", "how", "did", "does",
    "was", "were", "are", "has", "have", "had", "not", "but", "you", "our", "they", "them", "its", "from", "into",
    "about", "can", "could", "would", "should", "will", "there", "then", "than", "been", "any", "all", "die", "der",
    "das", "und", "que", "les",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn path(messages: &[Value]) -> Path {
        let entry = |(at, message): (usize, &Value)| {
            let parent = at.checked_sub(1).map(|before| format!("e{before}"));
            let line = json!({"type": "message", "id": format!("e{at}"), "parentId": parent,
                "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        Path::of(&messages.iter().enumerate().map(entry).collect::<Vec<_>>())
    }

    fn found(messages: &[Value]) -> Vec<Passage> {
        passages(&path(messages), "", &|text| text.replace("hunter2", "[X]"), &|| false)
    }

    fn says(role: &str, text: &str) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        json!({"role": role, "content": content, "timestamp": 1})
    }

    const MEASURE: fn(&str) -> u64 = |text| text.len() as u64 / 4;

    #[test]
    fn passages_with_the_rare_words_of_a_question_come_with_their_entries() {
        let messages = [
            says("user", "Write the parser, please."),
            says("assistant", "The parser is written.\n\nThe cache of the parser expires after 90 seconds."),
            says("user", "Now the printer of the parser."),
            says("assistant", "The printer is written."),
        ];
        let chosen = answering(&found(&messages), "When does the parser's cache expire?", 1_000, &MEASURE);
        let chosen = chosen.expect("one has the word");
        assert_eq!(chosen.text, "- [e1] Assistant: The cache of the parser expires after 90 seconds.");
        assert_eq!(chosen.entries, ["e1".into()] as [EntryId; 1]);
        assert_eq!(answering(&found(&messages), "Which database?", 1_000, &MEASURE), None);
        let chinese = [says("user", "解析器的缓存九十秒后过期。"), says("user", "打印机已经写好了。")];
        let chosen = answering(&found(&chinese), "缓存什么时候过期？", 1_000, &MEASURE).expect("words");
        assert_eq!(chosen.entries, ["e0".into()] as [EntryId; 1]);
    }

    #[test]
    fn passages_fit_their_cap_and_stand_in_the_order_of_the_conversation() {
        let messages: Vec<Value> =
            (0..50).map(|at| says("user", &format!("Note {at}: the cache key is k{at}."))).collect();
        for cap in [0, 20, 100, 400] {
            let chosen = answering(&found(&messages), "cache key", cap, &MEASURE).unwrap_or_default();
            assert!(MEASURE(&chosen.text) <= cap, "{cap}: {}", chosen.text);
            assert!(cap < 20 || !chosen.entries.is_empty());
            let places: Vec<usize> = chosen.entries.iter().filter_map(|id| id.as_str()[1..].parse().ok()).collect();
            assert!(places.is_sorted(), "{places:?}");
            assert!(places.is_empty() || places.last() == Some(&49), "the newest first: {places:?}");
        }
    }

    #[test]
    fn each_passage_has_its_speaker_and_extracts_of_third_sessions_are_left_out() {
        let line = |at: usize, kind: &str, more: Value| {
            let mut line = json!({"type": kind, "id": format!("e{at}"), "timestamp": "2026-01-01T00:00:00.000Z",
                "parentId": at.checked_sub(1).map(|before| format!("e{before}"))});
            line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        let added = |kind: &str| json!({"customType": kind, "content": "The port is 4711.", "display": true});
        let mut entries = vec![
            line(0, "custom_message", added(REFERENCE)),
            line(1, "custom_message", json!({"customType": "blank", "content": " ", "display": true})),
        ];
        assert!(!has_passages(&Path::of(&entries)));
        entries.push(line(2, "custom_message", added("handoff")));
        entries.push(line(3, "branch_summary", json!({"fromId": "e0", "summary": "The port was moved."})));
        entries.push(line(
            4,
            "message",
            json!({"message": {"role": "user", "content": "Keep the port.", "timestamp": 1}}),
        ));
        let path = Path::of(&entries);
        assert!(has_passages(&path));
        let found = passages(&path, "", &str::to_owned, &|| false);
        let lines: Vec<String> = found.iter().map(Passage::line).filter(|line| line.contains("port")).collect();
        assert_eq!(lines[0], "- [e2] Note (handoff): The port is 4711.");
        assert!(lines[1].starts_with("- [e3] Summary: ") && lines[1].contains("The port was moved."), "{lines:?}");
        assert_eq!(lines[2], "- [e4] User: Keep the port.");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn the_whole_of_a_tool_result_is_searched_and_cleaned() {
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
        let output =
            format!("{}\nthe wombat password is hunter2\n{}", "noise\n".repeat(2_000), "noise\n".repeat(2_000));
        let messages = [
            says("user", "Look."),
            json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1}),
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "timestamp": 1, "isError": false,
                "content": [{"type": "text", "text": output}]}),
        ];
        let chosen = answering(&found(&messages), "wombat", 1_000, &MEASURE).expect("a passage");
        assert!(chosen.text.contains("wombat password is [X]"), "{}", chosen.text);
        assert_eq!(chosen.entries, ["e2".into()] as [EntryId; 1]);
        assert!(chosen.text.chars().count() < LONGEST + 60);
    }

    #[test]
    fn without_a_word_of_the_question_the_newest_part_is_chosen() {
        let messages: Vec<Value> = (0..50).map(|at| says("user", &format!("Message number {at}."))).collect();
        let chosen = newest(&found(&messages), 40, &MEASURE);
        assert!(chosen.text.contains("number 49") && !chosen.text.contains("number 0."), "{}", chosen.text);
    }

    #[test]
    fn words_that_all_texts_have_find_no_passage() {
        let found = found(&[says("user", "It is for the printer and we go on.")]);
        for question in ["What is it?", "the and for", "we go on"] {
            assert_eq!(answering(&found, question, 1_000, &MEASURE), None, "{question}");
        }
    }

    #[test]
    fn equal_texts_and_the_entry_of_several_passages_count_once() {
        let twice = newest(&found(&[says("user", "One."), says("user", "One.")]), 1_000, &MEASURE);
        assert_eq!(twice.text.lines().count(), 1, "{}", twice.text);
        let labelled = found(&[says("user", "One.\n\n[Foo]: bar")]);
        assert_eq!(labelled.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>(), ["One.", "[Foo]: bar"]);
        assert_eq!(newest(&labelled, 1_000, &MEASURE).entries.len(), 1);
        let stopped = passages(&path(&[says("user", "One.")]), "", &str::to_owned, &|| true);
        assert!(stopped.is_empty());
    }

    #[test]
    fn a_model_reads_the_passages_about_the_question_and_then_the_newest() {
        let mut messages: Vec<Value> = (0..50).map(|at| says("user", &format!("Message number {at}."))).collect();
        messages[3] = says("user", "The wombat lives in the cellar.");
        let found = found(&messages);
        let all = readable(&found, "wombat", 10_000, &MEASURE);
        assert_eq!((all.len(), all[3].as_str()), (50, "- [e3] User: The wombat lives in the cellar."));
        let few = readable(&found, "wombat", 40, &MEASURE);
        assert!(few[0].contains("wombat") && few.last().is_some_and(|line| line.contains("number 49")), "{few:?}");
        assert!(few.iter().map(|line| MEASURE(line)).sum::<u64>() <= 40);
    }

    #[test]
    fn the_entries_that_an_answer_names_are_those_that_there_are() {
        let found = found(&[says("user", "One."), says("assistant", "Two."), says("user", "Three.")]);
        let named = named_in("It is so [e2], and so [e0; e9], see [1] and [e2].", &found);
        assert_eq!(named, ["e2".into(), "e0".into()] as [EntryId; 2]);
    }

    #[test]
    fn long_paragraphs_are_divided_and_lose_nothing() {
        let long = "word ".repeat(1_000);
        let pieces: Vec<&str> = divided(&long).collect();
        assert!(pieces.iter().all(|piece| piece.chars().count() <= LONGEST));
        assert_eq!(pieces.concat().replace(' ', ""), long.replace(' ', ""));
        let wide = "字".repeat(2_000);
        assert_eq!(divided(&wide).collect::<String>(), wide);
    }
}
