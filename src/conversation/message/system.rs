//! The system prompt and the tools as pi stores them: in messages of the role `system`, each a change of the ones before.
//!
//! A message adds its `content` to the prompt, sets or removes (`null`) named `sections`, removes the tools of
//! `toolsRemoved` and then adds those of `toolsAdded`. A compaction of pi carries the sum of all as `systemMessage`.

use crate::conversation::tokens::{self, Estimator, Size};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use std::{collections::HashMap, sync::Arc};

/// The sum of system messages. A change of it costs as much as the message that makes it, however large the sum is.
#[derive(Debug, Clone, Default)]
pub struct SystemPrompt {
    content: Vec<Arc<Text>>,
    sections: Named<Arc<Text>>,
    tools: Named<Arc<Tool>>,
    timestamp: Option<Value>,
    text_total: Total,
    tools_total: Total,
}

/// A text of the prompt.
#[derive(Debug)]
pub struct Text {
    text: String,
    size: Size,
}

/// A tool.
#[derive(Debug)]
struct Tool {
    value: Value,
    chars: usize,
    size: Size,
}

impl Text {
    fn of(text: &str) -> Arc<Self> {
        Arc::new(Self { text: text.to_owned(), size: Size::of_text(text) })
    }

    /// Its tokens by the tokenizer. The first call counts.
    #[must_use]
    pub fn counted(&self) -> u32 {
        self.size.counted(|| tokens::of_text(&self.text))
    }
}

impl Tool {
    fn of(value: &Value) -> Arc<Self> {
        let chars = tokens::utf16_len(&value.to_string());
        Arc::new(Self { value: value.clone(), chars, size: Size::of_chars(chars) })
    }

    fn counted(&self) -> u32 {
        self.size.counted(|| tokens::of_text(&self.value.to_string()))
    }
}

/// Values by name, in the order in which their names came.
#[derive(Debug, Clone)]
struct Named<T> {
    values: Vec<Option<(String, T)>>,
    places: HashMap<String, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashMap::new() }
    }
}

impl<T> Named<T> {
    /// Sets the value of a name, and returns the one before.
    fn set(&mut self, name: &str, value: T) -> Option<T> {
        match self.places.get(name) {
            Some(place) => self.values[*place].replace((name.to_owned(), value)).map(|(_, before)| before),
            None => {
                self.places.insert(name.to_owned(), self.values.len());
                self.values.push(Some((name.to_owned(), value)));
                None
            }
        }
    }

    fn remove(&mut self, name: &str) -> Option<T> {
        let place = self.places.remove(name)?;
        self.values[place].take().map(|(_, value)| value)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.values.iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// The size of texts together.
#[derive(Debug, Clone, Copy, Default)]
struct Total {
    /// Number of the texts that are not empty.
    texts: usize,
    /// Their UTF-16 code units.
    chars: usize,
    /// Their tokens by the tokenizer, after they were counted once.
    counted: Option<u64>,
}

impl Total {
    fn add(&mut self, chars: usize, count: impl FnOnce() -> u32) {
        self.texts += usize::from(chars > 0);
        self.chars += chars;
        self.counted = self.counted.map(|counted| counted + u64::from(count()));
    }

    fn remove(&mut self, chars: usize, count: impl FnOnce() -> u32) {
        self.texts -= usize::from(chars > 0);
        self.chars -= chars;
        self.counted = self.counted.map(|counted| counted.saturating_sub(u64::from(count())));
    }
}

impl SystemPrompt {
    /// Takes the next message, as it stands in the file.
    pub fn apply(&mut self, message: &Value) {
        let content = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                texts.join("\n")
            }
            _ => String::new(),
        };
        if !content.is_empty() {
            let text = Text::of(&content);
            self.add(&text);
            self.content.push(text);
        }
        for (name, text) in message["sections"].as_object().into_iter().flatten() {
            let before = match text {
                Value::String(text) => {
                    let text = Text::of(text);
                    self.add(&text);
                    self.sections.set(name, text)
                }
                Value::Null => self.sections.remove(name),
                _ => None,
            };
            if let Some(before) = before {
                self.text_total.remove(tokens::utf16_len(&before.text), || before.counted());
            }
        }
        let removed = message["toolsRemoved"].as_array().into_iter().flatten();
        for name in removed.filter_map(|tool| tool["name"].as_str()) {
            if let Some(before) = self.tools.remove(name) {
                self.tools_total.remove(before.chars, || before.counted());
            }
        }
        for added in message["toolsAdded"].as_array().into_iter().flatten() {
            let Some(name) = added["name"].as_str() else { continue };
            let tool = Tool::of(added);
            self.tools_total.add(tool.chars, || tool.counted());
            if let Some(before) = self.tools.set(name, tool) {
                self.tools_total.remove(before.chars, || before.counted());
            }
        }
        if self.timestamp.is_none() {
            self.timestamp = message.get("timestamp").cloned();
        }
    }

    fn add(&mut self, text: &Text) {
        self.text_total.add(tokens::utf16_len(&text.text), || text.counted());
    }

    /// The texts of the prompt: content and sections in their order, without empty ones.
    #[must_use]
    pub fn texts(&self) -> Vec<Arc<Text>> {
        let texts = self.content.iter().chain(self.sections.iter().map(|(_, text)| text));
        texts.filter(|text| !text.text.is_empty()).cloned().collect()
    }

    /// The text of the prompt; none where there is no text.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let texts = self.texts();
        let texts: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join(BETWEEN))
    }

    /// The tools; none where no message added one.
    #[must_use]
    pub fn tools(&self) -> Option<Vec<Value>> {
        (!self.tools.is_empty()).then(|| self.tools.iter().map(|(_, tool)| tool.value.clone()).collect())
    }

    /// The estimated tokens of the text and of the tools; none of what is not there. With `Tiktoken` the first call counts
    /// all of them, and a later one what was added since.
    pub fn tokens(&mut self, estimator: Estimator) -> (Option<u64>, Option<u64>) {
        let (text, tools) = match estimator {
            Estimator::Chars => {
                let between = BETWEEN.len() * self.text_total.texts.saturating_sub(1);
                let of_chars = |chars: usize| u64::from(tokens::of_chars(chars));
                (of_chars(self.text_total.chars + between), of_chars(self.tools_total.chars))
            }
            Estimator::Tiktoken => {
                let text = self.text_total.counted;
                let text = text.unwrap_or_else(|| self.texts().iter().map(|text| u64::from(text.counted())).sum());
                let of_tools = || self.tools.iter().map(|(_, tool)| u64::from(tool.counted())).sum();
                let tools = self.tools_total.counted.unwrap_or_else(of_tools);
                (self.text_total.counted, self.tools_total.counted) = (Some(text), Some(tools));
                (text, tools)
            }
        };
        ((self.text_total.texts > 0).then_some(text), (!self.tools.is_empty()).then_some(tools))
    }

    /// All of it as one message in pi's form; none where there is nothing to say.
    #[must_use]
    pub fn message(&self) -> Option<Value> {
        if self.content.is_empty() && self.sections.is_empty() && self.tools.is_empty() {
            return None;
        }
        let content: Vec<&str> = self.content.iter().map(|text| text.text.as_str()).collect();
        let mut message = json!({ "role": "system", "content": content.join(BETWEEN) });
        if !self.sections.is_empty() {
            let sections = self.sections.iter().map(|(name, text)| (name.to_owned(), Value::from(text.text.as_str())));
            message["sections"] = sections.collect::<Map<_, _>>().into();
        }
        if let Some(tools) = self.tools() {
            message["toolsAdded"] = tools.into();
        }
        message["timestamp"] = self.timestamp.clone().unwrap_or_else(|| 0.into());
        Some(message)
    }
}

/// Between two texts of the prompt.
const BETWEEN: &str = "\n\n";

/// The texts of a message's `sections`; none of what is no text.
pub(super) fn section_texts(sections: Option<&RawValue>) -> Vec<String> {
    let sections: Option<Map<String, Value>> = sections.and_then(|json| serde_json::from_str(json.get()).ok());
    let texts = sections.into_iter().flatten().filter_map(|(_, text)| match text {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    });
    texts.collect()
}

/// The size in bytes of the tools that a message adds.
pub(super) fn tools_size(tools: Option<&RawValue>) -> usize {
    let some = |json: &&RawValue| Vec::<Value>::deserialize(*json).is_ok_and(|tools| !tools.is_empty());
    tools.filter(some).map_or(0, |json| json.get().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_changes_the_sum_of_those_before() {
        let mut prompt = SystemPrompt::default();
        assert_eq!((prompt.text(), prompt.tools(), prompt.message()), (None, None, None));
        let read = json!({"name": "read", "description": "reads", "parameters": {"type": "object"}});
        let write = json!({"name": "write", "parameters": {}});
        prompt.apply(&json!({"role": "system", "content": "Base.", "timestamp": 7,
            "sections": {"skills": "<skills/>", "cwd": "In /a."}, "toolsAdded": [read, write]}));
        prompt.apply(&json!({"role": "system", "content": [{"type": "text", "text": "More."}], "timestamp": 8,
            "sections": {"cwd": "In /b.", "skills": null, "date": "Today.", "odd": 5}, "toolsRemoved": [{"name": "write"}]}));
        assert_eq!(prompt.text().as_deref(), Some("Base.\n\nMore.\n\nIn /b.\n\nToday."));
        assert_eq!(prompt.tools(), Some(vec![read.clone()]));
        let message = json!({"role": "system", "content": "Base.\n\nMore.",
            "sections": {"cwd": "In /b.", "date": "Today."}, "toolsAdded": [read], "timestamp": 7});
        assert_eq!(prompt.message(), Some(message.clone()));
        let mut again = SystemPrompt::default();
        again.apply(&message);
        assert_eq!(again.message(), Some(message));
    }

    #[test]
    fn a_tool_that_is_added_again_takes_the_place_of_the_first() {
        let mut prompt = SystemPrompt::default();
        prompt.apply(&json!({"toolsAdded": [{"name": "a", "v": 1}, {"name": "b"}, {"no": "name"}]}));
        prompt.apply(
            &json!({"toolsRemoved": [{"name": "a"}], "toolsAdded": [{"name": "b", "v": 2}, {"name": "a", "v": 2}]}),
        );
        assert_eq!(prompt.tools(), Some(vec![json!({"name": "b", "v": 2}), json!({"name": "a", "v": 2})]));
        assert_eq!(prompt.text(), None);
    }

    #[test]
    fn what_is_not_as_pi_writes_it_changes_nothing() {
        let mut prompt = SystemPrompt::default();
        for odd in
            [json!(null), json!("x"), json!({"content": 5, "sections": [], "toolsAdded": {}, "toolsRemoved": "x"})]
        {
            prompt.apply(&odd);
        }
        assert_eq!(prompt.message(), None);
    }
}
