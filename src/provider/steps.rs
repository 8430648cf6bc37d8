//! A conversation in the one order that every provider takes: a user begins, users and models take turns, and right
//! after an answer stand the results of its calls, each of them once and under a name that the provider allows.

use super::{Part, ToolOutcome, Turn};
use crate::conversation::calls::{INTERRUPTED, Waiting};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

/// One step of it.
#[derive(Debug, PartialEq)]
pub(super) enum Step<'a> {
    /// The content of user messages in a row; never empty.
    User(Vec<Content<'a>>),
    /// An answer, and one result for each of its calls.
    Answer { said: Vec<Said<'a>>, results: Vec<Returned<'a>> },
}

/// A piece of a user message or of a result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content<'a> {
    /// Not blank.
    Text(Cow<'a, str>),
    /// An image of a type that every provider takes.
    Image { mime: &'static str, data: &'a str },
}

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Said<'a> {
    /// Blank only where it is signed.
    Text {
        text: &'a str,
        signature: Option<&'a str>,
    },
    Thinking {
        text: &'a str,
        signature: Option<&'a str>,
        redacted: bool,
    },
    Call(Call<'a>),
}

/// A call of a tool.
#[derive(Debug, PartialEq)]
pub(super) struct Call<'a> {
    /// Its name on the wire: allowed, and the only one of the conversation.
    pub id: String,
    pub name: Cow<'a, str>,
    /// A JSON object.
    pub arguments: &'a str,
    pub signature: Option<&'a str>,
    /// The part of its id after the bar: OpenAI's id of the item.
    pub item: Option<&'a str>,
    /// Its name in the conversation, until its result was found.
    open: Option<&'a str>,
}

/// The result of a call.
#[derive(Debug, PartialEq)]
pub(super) struct Returned<'a> {
    /// The call's name on the wire.
    pub id: String,
    pub content: Vec<Content<'a>>,
    pub is_error: bool,
}

/// A tool that a model may call.
#[derive(Debug, PartialEq)]
pub(super) struct Tool<'a> {
    /// Allowed, and the only one of the request.
    pub name: Cow<'a, str>,
    pub description: &'a str,
    /// A JSON object.
    pub schema: Option<&'a Value>,
}

impl Said<'_> {
    /// Whether a model reads it in an answer, where it stands for nothing but itself.
    pub fn is_something(&self) -> bool {
        match self {
            Self::Text { text, .. } => !text.trim().is_empty(),
            Self::Thinking { .. } => false,
            Self::Call(_) => true,
        }
    }
}

/// The form of call ids that a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ids {
    /// Letters, digits, `_` and `-`, at most so many.
    UpTo(usize),
    /// Nine letters and digits.
    Nine,
}

/// A user message before a conversation that begins with an answer.
const BEGINNING: &str = "(The conversation goes on.)";

/// The steps of `turns`. Blank texts, results without a call, and answers with nothing but thinking are left out.
pub(super) fn steps(turns: &[Turn], ids: Ids) -> Vec<Step<'_>> {
    let mut steps = continued(turns, ids);
    if !matches!(steps.first(), Some(Step::User(_))) {
        steps.insert(0, Step::User(vec![Content::Text(BEGINNING.into())]));
    }
    steps
}

/// The steps of `turns` after earlier ones: an answer may come first, and there may be none.
pub(super) fn continued<'a>(turns: &'a [Turn], ids: Ids) -> Vec<Step<'a>> {
    let mut steps: Vec<Step<'a>> = Vec::new();
    let mut names = Names::of(ids);
    // The calls by the places of their answer and in it.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut waiting: Waiting<&str> = Waiting::default();
    for turn in turns {
        match turn {
            Turn::User(parts) => match (content(parts), steps.last_mut()) {
                (content, _) if content.is_empty() => {}
                (content, Some(Step::User(before))) => before.extend(content),
                (content, _) => steps.push(Step::User(content)),
            },
            Turn::Assistant(parts) => {
                let mut said = said(parts, &mut names);
                if !said.iter().any(Said::is_something) {
                    continue;
                }
                // What was thought last led to nothing, least of all to what another answer says.
                while said.pop_if(|last| matches!(last, Said::Thinking { .. })).is_some() {}
                let ids = |(at, it): (usize, &Said<'a>)| match it {
                    Said::Call(call) => Some((at, call.open?)),
                    _ => None,
                };
                let ids: Vec<(usize, &str)> = said.iter().enumerate().filter_map(ids).collect();
                let first = match steps.last_mut() {
                    Some(Step::Answer { said: before, .. }) if calls(before).next().is_none() => {
                        let first = before.len();
                        before.extend(said);
                        first
                    }
                    _ => {
                        steps.push(Step::Answer { said, results: Vec::new() });
                        0
                    }
                };
                // Of several calls with one id the first one is answered first.
                for (at, id) in ids.into_iter().rev() {
                    waiting.call(id, open.len());
                    open.push((steps.len() - 1, first + at));
                }
            }
            Turn::Result(outcome) => {
                if let Some(call) = waiting.result(outcome.call.as_str()) {
                    let (answer, at) = open[call];
                    returned(&mut steps[answer], at, outcome);
                }
            }
        }
    }
    for step in &mut steps {
        if let Step::Answer { said, results } = step {
            let missing = calls(said).filter(|call| call.open.is_some());
            results.extend(missing.map(|call| Returned {
                id: call.id.clone(),
                content: vec![Content::Text(INTERRUPTED.into())],
                is_error: true,
            }));
        }
    }
    steps
}

/// The calls of an answer.
pub(super) fn calls<'s, 'a>(said: &'s [Said<'a>]) -> impl Iterator<Item = &'s Call<'a>> {
    said.iter().filter_map(|it| match it {
        Said::Call(call) => Some(call),
        _ => None,
    })
}

/// The tools of a request, each name once: of two that a provider could not tell apart, the first. A schema may stand
/// where the formats themselves have it.
pub(super) fn tools(tools: &[Value]) -> impl Iterator<Item = Tool<'_>> {
    let mut known = HashSet::new();
    let tools = tools.iter().map(|tool| Tool {
        name: tool_name(tool["name"].as_str().unwrap_or_default()),
        description: tool["description"].as_str().unwrap_or_default(),
        schema: ["inputSchema", "input_schema", "parameters"].iter().map(|key| &tool[*key]).find(|it| it.is_object()),
    });
    tools.filter(move |tool| known.insert(tool.name.clone()))
}

/// The name of a tool as every provider takes it: at most 64 letters, digits, `_` and `-`.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    let allowed = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    match name {
        "" => "tool".into(),
        name if name.len() <= 64 && name.chars().all(allowed) => name.into(),
        name => name.chars().take(64).map(|it| if allowed(it) { it } else { '_' }).collect(),
    }
}

fn content<'a>(parts: &'a [Part]) -> Vec<Content<'a>> {
    let shown = |part: &'a Part| match part {
        Part::Text { text, .. } => (!text.trim().is_empty()).then(|| Content::Text(text.as_str().into())),
        Part::Image { mime, data } => Some(image(mime, data)),
        Part::Thinking { .. } | Part::Call { .. } => None,
    };
    parts.iter().filter_map(shown).collect()
}

fn image<'a>(mime: &str, data: &'a str) -> Content<'a> {
    let known = match mime.to_ascii_lowercase().as_str() {
        "image/png" => "image/png",
        "image/jpeg" | "image/jpg" => "image/jpeg",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        _ => return Content::Text(format!("[An image of the type {mime}, which cannot be shown here.]").into()),
    };
    if data.is_empty() {
        return Content::Text("[An image without content.]".into());
    }
    Content::Image { mime: known, data }
}

fn said<'a>(parts: &'a [Part], names: &mut Names) -> Vec<Said<'a>> {
    let mut said = |part: &'a Part| match part {
        Part::Text { text, signature } => {
            let said = Said::Text { text, signature: signature.as_deref() };
            (said.is_something() || signature.is_some()).then_some(said)
        }
        Part::Thinking { text, signature, redacted } => {
            Some(Said::Thinking { text, signature: signature.as_deref(), redacted: *redacted })
        }
        Part::Call { id, name, arguments, signature } => Some(Said::Call(Call {
            id: names.of_call(id),
            name: tool_name(name),
            arguments: object(arguments),
            signature: signature.as_deref(),
            item: id.split_once('|').map(|(_, item)| item),
            open: Some(id),
        })),
        // No model answers with images that any provider would take back.
        Part::Image { .. } => None,
    };
    parts.iter().filter_map(&mut said).collect()
}

fn object(arguments: &str) -> &str {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments,
        Err(_) => "{}",
    }
}

/// Adds a result to the answer with its call, which stands at this place in it.
fn returned<'a>(answer: &mut Step<'a>, at: usize, outcome: &'a ToolOutcome) {
    let Step::Answer { said, results } = answer else { return };
    if let Some(Said::Call(call)) = said.get_mut(at) {
        call.open = None;
        let content = content(&outcome.parts);
        results.push(Returned { id: call.id.clone(), content, is_error: outcome.is_error });
    }
}

/// The names of the calls of a request.
struct Names {
    ids: Ids,
    used: HashSet<String>,
    /// The number of the last name for ids whose first names are the same.
    last: HashMap<String, usize>,
}

/// Names that are tried for a call before one is made that no other call has. Only ids that were chosen for it get there.
const MOST_TRIES: usize = 64;

impl Names {
    fn of(ids: Ids) -> Self {
        Self { ids, used: HashSet::new(), last: HashMap::new() }
    }

    /// A name for a call that is allowed and not used yet, as much like `id` as can be, and the same for the same
    /// conversation. Some models number their calls from zero in each answer, so ids repeat.
    fn of_call(&mut self, id: &str) -> String {
        // After a bar stands the id of OpenAI's item, which is nobody else's business.
        let id = id.split('|').next().unwrap_or_default();
        let first = self.ids.candidate(id, 1);
        // The names before it are used.
        let mut nth = self.last.get(&first).map_or(1, |last| last + 1);
        let most = nth + MOST_TRIES;
        loop {
            let name = if nth < most { self.ids.candidate(id, nth) } else { self.ids.hashed(id, nth) };
            if self.used.insert(name.clone()) {
                self.last.insert(first, nth);
                return name;
            }
            nth += 1;
        }
    }
}

impl Ids {
    fn candidate(self, id: &str, nth: usize) -> String {
        match self {
            Self::Nine if nth == 1 && id.len() == 9 && id.chars().all(|it| it.is_ascii_alphanumeric()) => id.to_owned(),
            Self::Nine => self.hashed(id, nth),
            Self::UpTo(most) => {
                let allowed = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
                let suffix = if nth == 1 { String::new() } else { format!("_{nth}") };
                let name: String = id.chars().take(most - suffix.len()).map(allowed).collect();
                if name.is_empty() { format!("call{suffix}") } else { name + &suffix }
            }
        }
    }

    fn hashed(self, id: &str, nth: usize) -> String {
        let hash = format!("{:x}", Sha256::digest(format!("{id} {nth}")));
        let length = match self {
            Self::Nine => 9,
            Self::UpTo(most) => most.min(32),
        };
        hash[..length].to_owned()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A conversation as bad as can be: calls without results and the reverse, ids that repeat, nothing said at all.
    pub(in crate::provider) fn any_conversation() -> impl Strategy<Value = Vec<Turn>> {
        let id = || "[01|ä]{0,3}";
        let part = prop_oneof![
            "[a ]{0,3}".prop_map(Part::text),
            (prop::option::of("[a-b]{1,2}"), any::<bool>()).prop_map(|(signature, redacted)| Part::Thinking {
                text: "hm".into(),
                signature,
                redacted
            }),
            (id(), "\\{\\}|x|\\[1\\]")
                .prop_map(|(id, arguments)| { Part::Call { id, name: "f g".into(), arguments, signature: None } }),
            "image/(png|bmp)".prop_map(|mime| Part::Image { mime, data: "AA".into() }),
        ];
        let parts = prop::collection::vec(part, 0..4);
        let outcome = (id(), parts.clone(), any::<bool>());
        let turn = prop_oneof![
            parts.clone().prop_map(Turn::User),
            parts.prop_map(Turn::Assistant),
            outcome.prop_map(|(call, parts, is_error)| {
                Turn::Result(ToolOutcome { call, name: "f g".into(), parts, is_error })
            }),
        ];
        prop::collection::vec(turn, 0..12)
    }

    fn call(id: &str) -> Part {
        Part::Call { id: id.into(), name: "f".into(), arguments: "{}".into(), signature: None }
    }

    fn result(id: &str, text: &str) -> Turn {
        Turn::Result(ToolOutcome { call: id.into(), name: "f".into(), parts: vec![Part::text(text)], is_error: false })
    }

    /// A line for each step: what was said, and `id:result` for what the calls returned.
    fn drawn(turns: &[Turn]) -> Vec<String> {
        let content = |content: &[Content<'_>]| {
            let text = content.iter().map(|it| match it {
                Content::Text(text) => text.to_string(),
                Content::Image { mime, .. } => (*mime).to_owned(),
            });
            text.collect::<Vec<_>>().join("+")
        };
        let draw = |step: &Step<'_>| match step {
            Step::User(shown) => format!("U {}", content(shown)),
            Step::Answer { said, results } => {
                let said = said.iter().map(|it| match it {
                    Said::Text { text, .. } => (*text).to_owned(),
                    Said::Thinking { .. } => "thinking".to_owned(),
                    Said::Call(call) => format!("{}()", call.id),
                });
                let results = results.iter().map(|it| format!("{}:{}", it.id, content(&it.content)));
                format!("A {}", said.chain(results).collect::<Vec<_>>().join(" "))
            }
        };
        steps(turns, Ids::UpTo(40)).iter().map(draw).collect()
    }

    #[test]
    fn turns_are_taken() {
        let text = |text: &str| Turn::Assistant(vec![Part::text(text)]);
        assert_eq!(drawn(&[]), [format!("U {BEGINNING}")]);
        assert_eq!(drawn(&[text("a")]), [format!("U {BEGINNING}"), "A a".into()]);
        let turns = [Turn::user("a"), Turn::user(" \n"), Turn::user("b"), text(""), text("c"), text("d")];
        assert_eq!(drawn(&turns), ["U a+b", "A c d"]);
        let thinking = Part::Thinking { text: "hm".into(), signature: Some("s".into()), redacted: false };
        assert_eq!(drawn(&[Turn::user("a"), Turn::Assistant(vec![thinking]), Turn::user("b")]), ["U a+b"]);
    }

    #[test]
    fn results_stand_behind_their_calls() {
        let turns = [
            Turn::user("go"),
            Turn::Assistant(vec![call("1|fc_1"), call("2"), call("3")]),
            result("2", "two"),
            Turn::user("meanwhile"),
            result("1|fc_1", "one"),
            result("9", "nobody's"),
            Turn::Assistant(vec![call("2")]),
            result("2", "again"),
        ];
        assert_eq!(
            drawn(&turns),
            [
                "U go".to_owned(),
                format!("A 1() 2() 3() 2:two 1:one 3:{INTERRUPTED}"),
                "U meanwhile".to_owned(),
                "A 2_2() 2_2:again".to_owned(),
            ],
        );
        let same = [Turn::user("go"), Turn::Assistant(vec![call("0"), call("0")]), result("0", "a"), result("0", "b")];
        assert_eq!(drawn(&same), ["U go", "A 0() 0_2() 0:a 0_2:b"]);
    }

    #[test]
    fn images_that_nobody_sees_are_named() {
        let image = |mime: &str, data: &str| Part::Image { mime: mime.into(), data: data.into() };
        let parts = vec![image("image/JPG", "AA"), image("image/tiff", "AA"), image("image/png", "")];
        assert_eq!(
            drawn(&[Turn::User(parts)]),
            ["U image/jpeg+[An image of the type image/tiff, which cannot be shown here.]+[An image without content.]"],
        );
    }

    #[test]
    fn what_was_thought_last_led_to_nothing() {
        let thinking = || Part::Thinking { text: "hm".into(), signature: Some("s".into()), redacted: false };
        let turns = [
            Turn::user("a"),
            Turn::Assistant(vec![thinking(), Part::text("b"), thinking()]),
            Turn::Assistant(vec![Part::text("c")]),
        ];
        assert_eq!(drawn(&turns), ["U a", "A thinking b c"]);
    }

    #[test]
    fn tools_are_told_apart() {
        let schema = json!({ "type": "object" });
        let given = [
            json!({ "name": "a.b", "description": "first", "inputSchema": schema }),
            json!({ "name": "a_b", "description": "second" }),
            json!({ "name": "c", "parameters": schema }),
            json!({ "input_schema": "none" }),
        ];
        let tool = |name: &'static str, description, schema| Tool { name: name.into(), description, schema };
        let expected = [tool("a_b", "first", Some(&schema)), tool("c", "", Some(&schema)), tool("tool", "", None)];
        assert_eq!(tools(&given).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_of_tools() {
        assert_eq!(tool_name("read_file-2"), "read_file-2");
        assert_eq!(tool_name(""), "tool");
        assert_eq!(tool_name("mcp.fs/läs"), "mcp_fs_l_s");
        assert_eq!(tool_name(&"x".repeat(70)).len(), 64);
    }

    #[test]
    fn an_id_that_repeats_is_numbered_and_few_names_are_tried_for_one_that_is_made_for_it() {
        let mut names = Names::of(Ids::UpTo(40));
        let numbered: Vec<String> = (0..1_000).map(|_| names.of_call("call_0")).collect();
        assert_eq!((numbered[0].as_str(), numbered[999].as_str()), ("call_0", "call_0_1000"));
        // Their second names are all the same.
        let alike = |at: usize| format!("{}{at:03}", "x".repeat(37));
        for at in (0..1_000).chain(0..1_000) {
            names.of_call(&alike(at));
        }
        assert_eq!(names.used.len(), 3_000);
        let most = names.last.values().max().copied();
        assert_eq!(most, Some(1_000));
        assert!((0..1_000).all(|at| names.last[&alike(at)] <= MOST_TRIES + 2));
    }

    proptest! {
        #[test]
        fn ids_are_allowed_and_never_the_same(ids in proptest::collection::vec("[a-c|é_ ]{0,12}|.{60,80}", 0..30), nine: bool) {
            let rule = if nine { Ids::Nine } else { Ids::UpTo(40) };
            let mut names = Names::of(rule);
            for id in ids {
                let before = names.used.clone();
                let name = names.of_call(&id);
                prop_assert!(!before.contains(&name));
                prop_assert!((1..=40).contains(&name.len()) && (!nine || name.len() == 9), "{name}");
                prop_assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || !nine && (it == '_' || it == '-')));
            }
        }
    }
}
