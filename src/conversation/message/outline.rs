//! A message without its texts: enough to pair calls with results, to measure a context and to
//! plan a cut. A session of a hundred megabytes is held as outlines; a message is read whole when its text
//! is needed.

use super::{Block, Message, NO_MODEL, NotAMessage, StopReason, Usage, WireUsage, system};
use crate::{
    conversation::tokens,
    ids::{CallId, ModelRef},
};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// An agent, not the user.
    Developer,
    /// A system prompt that was stored as a message.
    System,
    /// A model.
    Assistant,
    /// A tool.
    ToolResult,
    /// A command the user ran beside the model.
    Execution,
    /// An extension.
    Custom,
    /// A summary stored as a message.
    Summary,
}

/// A call of a tool, without what it was called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The model's name for this call.
    pub id: CallId,
    /// The tool.
    pub name: String,
}

/// A message without its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// The role.
    pub role: Role,
    /// An answer that failed or was stopped.
    pub failed: bool,
    /// An answer that ended at its output limit.
    pub cut_off: bool,
    /// It has no blocks.
    pub empty: bool,
    /// It has nothing but empty texts.
    pub silent: bool,
    /// The user asked for it not to be shown to the model.
    pub excluded: bool,
    /// The calls of an answer, in order.
    pub calls: Vec<Call>,
    /// The call that a result answers.
    pub answers: Option<CallId>,
    /// Token counts that the provider reported for an answer; none where one of them is invalid.
    pub usage: Option<Usage>,
    /// A count in the usage is no number.
    pub invalid_usage: bool,
    /// The model that answered, where the file says so.
    pub model: Option<ModelRef>,
    /// Its size as the peers estimate it, in UTF-16 code units.
    pub chars: usize,
    /// The part of `chars` that a provider may count otherwise or leave out of later requests: images and thinking.
    pub loose_chars: usize,
    /// The base64 texts of its images together, in bytes.
    pub image_bytes: usize,
}

impl Outline {
    /// A message of a role without any content.
    fn blank(role: Role) -> Self {
        Self {
            role,
            failed: false,
            cut_off: false,
            empty: true,
            silent: true,
            excluded: false,
            calls: Vec::new(),
            answers: None,
            usage: None,
            invalid_usage: false,
            model: None,
            chars: 0,
            loose_chars: 0,
            image_bytes: 0,
        }
    }

    /// Reads the outline of a message. What it takes, `Message::parse` takes too, and the other way round.
    ///
    /// # Errors
    /// When it is not an object with a known `role` and that role's fields.
    pub fn read(json: &str) -> Result<Self, NotAMessage> {
        let quick = serde_json::from_str::<WireOutline<'_>>(json).ok().and_then(WireOutline::outline);
        // What is odd is read whole: either it is odd where it does not matter, or what is wrong is told with its place.
        quick.map_or_else(|| Message::parse(json).map(|message| Self::of(&message)), Ok)
    }

    /// The outline of a message that was read whole.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        let role = match message {
            Message::User(_) => Role::User,
            Message::Developer(_) => Role::Developer,
            Message::System(_) => Role::System,
            Message::Assistant(_) => Role::Assistant,
            Message::ToolResult(_) => Role::ToolResult,
            Message::Execution(_) => Role::Execution,
            Message::Custom(_) => Role::Custom,
            Message::Summary(_) => Role::Summary,
        };
        let silent = |block: &Block| matches!(block, Block::Text(text) if text.is_empty());
        let mut outline = Self {
            empty: message.blocks().is_empty(),
            silent: message.blocks().iter().all(silent),
            chars: message.chars(),
            loose_chars: message.loose_chars(),
            image_bytes: super::image_bytes(message.blocks()),
            ..Self::blank(role)
        };
        match message {
            Message::Assistant(answer) => {
                outline.failed = answer.failed();
                outline.cut_off = answer.stop == StopReason::Length;
                outline.usage = answer.usage;
                outline.invalid_usage = answer.invalid_usage.is_some();
                outline.model = model(answer.provider.as_deref(), answer.model.as_deref());
                outline.calls =
                    answer.calls().map(|call| Call { id: call.id.clone(), name: call.name.clone() }).collect();
            }
            Message::ToolResult(result) => outline.answers = Some(result.call.clone()),
            Message::Execution(run) => outline.excluded = run.excluded,
            _ => {}
        }
        outline
    }

    /// The part of an estimate of this message that every request contains, in tokens: without images and thinking.
    #[must_use]
    pub fn solid(&self, tokens: u64) -> u64 {
        match self.loose_chars {
            0 => tokens,
            loose => tokens.saturating_mul((self.chars - loose) as u64) / self.chars as u64,
        }
    }

    /// Whether it is progress of the conversation: a message of the user, or a good answer.
    #[must_use]
    pub fn is_progress(&self) -> bool {
        match self.role {
            Role::User => true,
            // An answer that its limit cut off is one with text and without calls.
            Role::Assistant if self.cut_off => !self.silent && self.calls.is_empty(),
            Role::Assistant => !self.failed && !self.empty,
            _ => false,
        }
    }

    /// The provider's count of an answer that came through, if it is not all zero. It is a report, which `evidence` judges.
    #[must_use]
    pub fn measured(&self) -> Option<Usage> {
        self.usage.filter(|usage| !self.failed && usage.context_tokens() > 0)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireOutline<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<WireContent<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(borrow, default)]
    provider: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_call_id: Option<CallId>,
    #[serde(default)]
    command: Option<Length>,
    #[serde(default)]
    code: Option<Length>,
    #[serde(default)]
    output: Option<Length>,
    #[serde(default)]
    exclude_from_context: Option<bool>,
    #[serde(default)]
    summary: Option<Length>,
    #[serde(default)]
    files: Option<Vec<WireFile>>,
    #[serde(borrow, default)]
    sections: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools_added: Option<&'a RawValue>,
    // Read for nothing but their types, as `Message::parse` does.
    #[serde(default, rename = "toolName")]
    _tool_name: Option<Length>,
    #[serde(default, rename = "isError")]
    _is_error: Option<bool>,
    #[serde(default, rename = "exitCode")]
    _exit_code: Option<i64>,
}

#[derive(Deserialize)]
struct WireFile {
    #[serde(default)]
    path: Length,
    #[serde(default)]
    content: Length,
}

/// A text, by its length alone.
#[derive(Clone, Copy, Default)]
struct Length {
    utf16: usize,
    bytes: usize,
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Measure;
        impl Visitor<'_> for Measure {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Length, E> {
                Ok(Length { utf16: tokens::utf16_len(text), bytes: text.len() })
            }
        }
        reader.deserialize_str(Measure)
    }
}

enum WireContent<'a> {
    Text(Length),
    Blocks(Vec<WireBlock<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for WireContent<'a> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Content;
        impl<'de> Visitor<'de> for Content {
            type Value = WireContent<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or an array of blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(WireContent::Text(Length { utf16: tokens::utf16_len(text), bytes: text.len() }))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = items.next_element()? {
                    blocks.push(block);
                }
                Ok(WireContent::Blocks(blocks))
            }
        }
        reader.deserialize_any(Content)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<Length>,
    #[serde(default)]
    thinking: Option<Length>,
    #[serde(default)]
    id: Option<CallId>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    data: Option<Length>,
    #[serde(default, rename = "mimeType")]
    _mime_type: Option<Length>,
    #[serde(default, rename = "thinkingSignature")]
    _signature: Option<IgnoredAny>,
}

impl WireOutline<'_> {
    fn outline(self) -> Option<Outline> {
        let mut outline = Outline::blank(role(&self.role)?);
        match outline.role {
            Role::Execution => {
                let command = self.command.or(self.code)?;
                outline.excluded = self.exclude_from_context.unwrap_or(false);
                if !outline.excluded {
                    outline.chars = command.utf16 + self.output.unwrap_or_default().utf16;
                }
            }
            Role::Summary => outline.chars = self.summary.unwrap_or_default().utf16,
            Role::Custom if self.role == "fileMention" => {
                let files = self.files.unwrap_or_default();
                outline.empty = files.is_empty();
                outline.silent = files.is_empty();
                outline.chars = files.iter().map(|file| file.path.utf16 + 1 + file.content.utf16).sum();
            }
            role => {
                if role == Role::ToolResult {
                    outline.answers = Some(self.tool_call_id?);
                }
                if role == Role::Assistant {
                    let stop = self.stop_reason.as_deref().map_or(StopReason::Stop, StopReason::read);
                    outline.failed = matches!(stop, StopReason::Error | StopReason::Aborted);
                    outline.cut_off = stop == StopReason::Length;
                    outline.usage = self.usage.map(Into::into);
                    outline.model = model(self.provider.as_deref(), self.model.as_deref());
                }
                outline.content(self.content)?;
                if role == Role::System {
                    outline.declared(self.sections, self.tools_added);
                }
            }
        }
        Some(outline)
    }
}

impl Outline {
    fn content(&mut self, content: Option<WireContent<'_>>) -> Option<()> {
        match content {
            None => {}
            Some(WireContent::Text(text)) => {
                self.empty = false;
                self.silent = text.bytes == 0;
                self.chars = text.utf16;
            }
            Some(WireContent::Blocks(blocks)) => {
                self.empty = blocks.is_empty();
                for block in blocks {
                    self.block(block)?;
                }
            }
        }
        Some(())
    }

    /// The fields of a system message beside its content.
    fn declared(&mut self, sections: Option<&RawValue>, tools: Option<&RawValue>) {
        for text in system::section_texts(sections) {
            self.empty = false;
            self.silent = false;
            self.chars += tokens::utf16_len(&text);
        }
        let size = system::tools_size(tools);
        if size > 0 {
            self.empty = false;
            self.silent = false;
            self.chars += size;
        }
    }

    fn block(&mut self, block: WireBlock<'_>) -> Option<()> {
        let mut silent = false;
        self.chars += match block.kind.as_ref() {
            "text" => {
                let text = block.text?;
                silent = text.bytes == 0;
                text.utf16
            }
            "thinking" => {
                let chars = block.thinking.unwrap_or_default().utf16;
                self.loose_chars += chars;
                chars
            }
            "toolCall" => {
                let (id, name) = (block.id?, block.name?);
                let arguments = block.arguments.map_or("{}", RawValue::get);
                let chars = tokens::utf16_len(&name) + tokens::utf16_len(arguments);
                if self.role == Role::Assistant {
                    self.calls.push(Call { id, name: name.into_owned() });
                }
                chars
            }
            "image" => {
                self.image_bytes += block.data?.bytes;
                self.loose_chars += tokens::IMAGE_CHARS;
                tokens::IMAGE_CHARS
            }
            other => other.len() + block.text.map_or(0, |text| text.bytes),
        };
        self.silent &= silent;
        Some(())
    }
}

fn model(provider: Option<&str>, id: Option<&str>) -> Option<ModelRef> {
    let named = |name: Option<&str>| name.filter(|name| *name != NO_MODEL).map(str::to_owned);
    Some(ModelRef { provider: named(provider)?, id: named(id)? })
}

fn role(role: &str) -> Option<Role> {
    Some(match role {
        "user" => Role::User,
        "developer" => Role::Developer,
        "system" => Role::System,
        "custom" | "hookMessage" | "fileMention" => Role::Custom,
        "assistant" => Role::Assistant,
        "toolResult" => Role::ToolResult,
        "bashExecution" | "pythonExecution" => Role::Execution,
        "branchSummary" | "compactionSummary" => Role::Summary,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0_i64..5).prop_map(Value::from),
            "[a-zü😀\"\\\\\n]{0,6}".prop_map(Value::from),
            Just(json!({"path": "a", "n": [1, {}]})),
            Just(json!([])),
        ]
    }

    fn block() -> impl Strategy<Value = Value> {
        let kind = prop_oneof![Just("text"), Just("thinking"), Just("toolCall"), Just("image"), Just("odd")];
        let fields = prop::collection::vec(
            (
                prop_oneof![
                    Just("text"),
                    Just("thinking"),
                    Just("thinkingSignature"),
                    Just("id"),
                    Just("name"),
                    Just("arguments"),
                    Just("data"),
                    Just("mimeType")
                ],
                value(),
            ),
            0..6,
        );
        (kind, fields).prop_map(|(kind, fields)| {
            let mut block = json!({"type": kind});
            fields.into_iter().for_each(|(name, value)| block[name] = value);
            block
        })
    }

    fn message() -> impl Strategy<Value = Value> {
        let role = prop_oneof![
            Just("user"),
            Just("developer"),
            Just("system"),
            Just("assistant"),
            Just("toolResult"),
            Just("bashExecution"),
            Just("custom"),
            Just("fileMention"),
            Just("branchSummary"),
            Just("nonsense")
        ];
        let content = prop_oneof![3 => prop::collection::vec(block(), 0..4).prop_map(Value::from), 1 => value()];
        let fields = prop::collection::vec(
            (
                prop_oneof![
                    Just("toolCallId"),
                    Just("toolName"),
                    Just("isError"),
                    Just("stopReason"),
                    Just("provider"),
                    Just("command"),
                    Just("code"),
                    Just("output"),
                    Just("exitCode"),
                    Just("excludeFromContext"),
                    Just("summary"),
                    Just("usage"),
                    Just("files"),
                    Just("prunedAt"),
                    Just("model"),
                    Just("sections"),
                    Just("toolsAdded")
                ],
                prop_oneof![
                    4 => value(),
                    1 => Just(json!("error")),
                    1 => Just(json!({"input": 1.5, "output": 2})),
                    1 => Just(json!({"input": "12", "output": 2})),
                    1 => Just(json!([{"path": "p", "content": "c"}])),
                    1 => Just(json!({"a": "text", "b": null, "c": ""})),
                ],
            ),
            0..6,
        );
        (role, content, fields).prop_map(|(role, content, fields)| {
            let mut message = json!({"role": role, "content": content});
            fields.into_iter().for_each(|(name, value)| message[name] = value);
            message
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

        /// One reading keeps the texts, the other does not; they must never tell different things.
        #[test]
        fn an_outline_says_what_the_whole_message_says(message in message()) {
            let json = message.to_string();
            match (Outline::read(&json), Message::parse(&json)) {
                (Ok(outline), Ok(message)) => prop_assert_eq!(outline, Outline::of(&message)),
                (Err(_), Err(_)) => {}
                (outline, message) => prop_assert!(false, "{outline:?} but {message:?} for {json}"),
            }
        }
    }

    #[test]
    fn an_invalid_count_costs_the_usage_and_not_the_message() {
        for (usage, place) in [
            (r#"{"input":"12","output":1}"#, "usage.input"),
            (r#"{"input":1,"output":true}"#, "usage.output"),
            (r#"{"input":1,"cacheRead":1e400}"#, "usage.cacheRead"),
            (r#"{"totalTokens":[]}"#, "usage.totalTokens"),
            ("7", "usage"),
            ("\"x\"", "usage"),
            ("[5000,2,0,0,5002]", "usage"),
            ("[]", "usage"),
        ] {
            let text =
                r#"{"role":"assistant","content":[{"type":"text","text":"x"}],"usage":"#.to_owned() + usage + "}";
            let outline = Outline::read(&text).expect("a message");
            assert_eq!((outline.usage, outline.invalid_usage, outline.chars), (None, true, 1), "{usage}");
            let Ok(Message::Assistant(answer)) = Message::parse(&text) else { panic!("{usage}") };
            assert_eq!(answer.invalid_usage.as_deref(), Some(place));
        }
        for usage in ["null", r#"{"input":null,"output":2.5,"cost":{"total":1e400}}"#] {
            let text = r#"{"role":"assistant","content":[],"usage":"#.to_owned() + usage + "}";
            assert!(!Outline::read(&text).expect("a message").invalid_usage, "{usage}");
        }
    }
}
