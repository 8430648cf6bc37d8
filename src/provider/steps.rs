//! A conversation in the one order that every provider takes: a user begins, users and models take turns, and right
//! behind an answer stand the results of its calls, each of them once and under a name that the provider allows.

use super::{Part, ToolOutcome, Turn};
use crate::conversation::calls::{INTERRUPTED, Waiting};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{borrow::Cow, collections::HashSet};

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
    /// The part of its id behind the bar: OpenAI's id of the item.
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

/// The steps of `turns` behind earlier ones: an answer may come first, and there may be none.
pub(super) fn continued(turns: &[Turn], ids: Ids) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut used = HashSet::new();
    let mut waiting: Waiting<&str> = Waiting::default();
    for turn in turns {
        match turn {
            Turn::User(parts) => match (content(parts), steps.last_mut()) {
                (content, _) if content.is_empty() => {}
                (content, Some(Step::User(before))) => before.extend(content),
                (content, _) => steps.push(Step::User(content)),
            },
            Turn::Assistant(parts) => {
                let mut said = said(parts, ids, &mut used);
                if !said.iter().any(Said::is_something) {
                    continue;
                }
                // What was thought last led to nothing, least of all to what another answer says.
                while said.pop_if(|last| matches!(last, Said::Thinking { .. })).is_some() {}
                let ids: Vec<&str> = calls(&said).filter_map(|call| call.open).collect();
                match steps.last_mut() {
                    Some(Step::Answer { said: before, .. }) if calls(before).next().is_none() => before.extend(said),
                    _ => steps.push(Step::Answer { said, results: Vec::new() }),
                }
                ids.into_iter().for_each(|id| waiting.call(id, steps.len() - 1));
            }
            Turn::Result(outcome) => {
                let answer = waiting.result(outcome.call.as_str()).and_then(|place| steps.get_mut(place));
                answer.into_iter().for_each(|answer| returned(answer, outcome));
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

fn said<'a>(parts: &'a [Part], ids: Ids, used: &mut HashSet<String>) -> Vec<Said<'a>> {
    let said = |part: &'a Part| match part {
        Part::Text { text, signature } => {
            let said = Said::Text { text, signature: signature.as_deref() };
            (said.is_something() || signature.is_some()).then_some(said)
        }
        Part::Thinking { text, signature, redacted } => {
            Some(Said::Thinking { text, signature: signature.as_deref(), redacted: *redacted })
        }
        Part::Call { id, name, arguments, signature } => Some(Said::Call(Call {
            id: ids.name(id, used),
            name: tool_name(name),
            arguments: object(arguments),
            signature: signature.as_deref(),
            item: id.split_once('|').map(|(_, item)| item),
            open: Some(id),
        })),
        // No model answers with images that any provider would take back.
        Part::Image { .. } => None,
    };
    parts.iter().filter_map(said).collect()
}

fn object(arguments: &str) -> &str {
    match serde_json::from_str::<Map<String, Value>>(arguments) {
        Ok(_) => arguments,
        Err(_) => "{}",
    }
}

/// Adds a result to the answer with its call.
fn returned<'a>(answer: &mut Step<'a>, outcome: &'a ToolOutcome) {
    let Step::Answer { said, results } = answer else { return };
    let open = said.iter_mut().find_map(|it| match it {
        Said::Call(call) if call.open == Some(outcome.call.as_str()) => Some(call),
        _ => None,
    });
    if let Some(call) = open {
        call.open = None;
        let content = content(&outcome.parts);
        results.push(Returned { id: call.id.clone(), content, is_error: outcome.is_error });
    }
}

impl Ids {
    /// A name for a call that is allowed and not `used` yet, as much like `id` as can be, and the same for the same
    /// conversation. Some models number their calls from zero in each answer, so ids repeat.
    fn name(self, id: &str, used: &mut HashSet<String>) -> String {
        // Behind a bar stands the id of OpenAI's item, which is nobody else's business.
        let id = id.split('|').next().unwrap_or_default();
        let mut nth = 1;
        loop {
            let name = self.candidate(id, nth);
            if used.insert(name.clone()) {
                return name;
            }
            nth += 1;
        }
    }

    fn candidate(self, id: &str, nth: usize) -> String {
        match self {
            Self::Nine if nth == 1 && id.len() == 9 && id.chars().all(|it| it.is_ascii_alphanumeric()) => id.to_owned(),
            Self::Nine => format!("{:x}", Sha256::digest(format!("{id} {nth}")))[..9].to_owned(),
            Self::UpTo(most) => {
                let allowed = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
                let suffix = if nth == 1 { String::new() } else { format!("_{nth}") };
                let name: String = id.chars().take(most - suffix.len()).map(allowed).collect();
                if name.is_empty() { format!("call{suffix}") } else { name + &suffix }
            }
        }
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

    proptest! {
        #[test]
        fn ids_are_allowed_and_never_the_same(ids in proptest::collection::vec("[a-c|é_ ]{0,12}|.{60,80}", 0..30), nine: bool) {
            let rule = if nine { Ids::Nine } else { Ids::UpTo(40) };
            let mut used = HashSet::new();
            for id in ids {
                let before = used.clone();
                let name = rule.name(&id, &mut used);
                prop_assert!(!before.contains(&name));
                prop_assert!((1..=40).contains(&name.len()) && (!nine || name.len() == 9), "{name}");
                prop_assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || !nine && (it == '_' || it == '-')));
            }
        }
    }
}
