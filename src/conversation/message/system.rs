//! The system prompt and the tools as pi stores them: in messages of the role `system`, each a change of the ones before.
//!
//! A message adds its `content` to the prompt, sets or removes (`null`) named `sections`, removes the tools of
//! `toolsRemoved` and then adds those of `toolsAdded`. A compaction of pi carries the sum of all as `systemMessage`.

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

/// The sum of system messages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SystemPrompt {
    content: Vec<String>,
    sections: Vec<(String, String)>,
    tools: Vec<Value>,
    timestamp: Option<Value>,
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
            self.content.push(content);
        }
        for (name, text) in message["sections"].as_object().into_iter().flatten() {
            let place = self.sections.iter().position(|(known, _)| known == name);
            match (text, place) {
                (Value::String(text), Some(place)) => self.sections[place].1.clone_from(text),
                (Value::String(text), None) => self.sections.push((name.clone(), text.clone())),
                (Value::Null, Some(place)) => drop(self.sections.remove(place)),
                _ => {}
            }
        }
        for removed in message["toolsRemoved"].as_array().into_iter().flatten() {
            self.tools.retain(|tool| tool["name"] != removed["name"]);
        }
        for added in message["toolsAdded"].as_array().into_iter().flatten().filter(|tool| tool["name"].is_string()) {
            match self.tools.iter_mut().find(|tool| tool["name"] == added["name"]) {
                Some(tool) => tool.clone_from(added),
                None => self.tools.push(added.clone()),
            }
        }
        if self.timestamp.is_none() {
            self.timestamp = message.get("timestamp").cloned();
        }
    }

    /// The text of the prompt: content and sections in their order; none where there is no text.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let parts = self.content.iter().chain(self.sections.iter().map(|(_, text)| text));
        let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }

    /// The tools; none where no message added one.
    #[must_use]
    pub fn tools(&self) -> Option<Vec<Value>> {
        (!self.tools.is_empty()).then(|| self.tools.clone())
    }

    /// All of it as one message in pi's form; none where there is nothing to say.
    #[must_use]
    pub fn message(&self) -> Option<Value> {
        if self.content.is_empty() && self.sections.is_empty() && self.tools.is_empty() {
            return None;
        }
        let mut message = json!({ "role": "system", "content": self.content.join("\n\n") });
        if !self.sections.is_empty() {
            let sections = self.sections.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str())));
            message["sections"] = sections.collect::<Map<_, _>>().into();
        }
        if !self.tools.is_empty() {
            message["toolsAdded"] = self.tools.clone().into();
        }
        message["timestamp"] = self.timestamp.clone().unwrap_or_else(|| 0.into());
        Some(message)
    }
}

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
