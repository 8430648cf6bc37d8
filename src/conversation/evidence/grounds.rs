//! The grounds on which an answer may leave the context. A count is none of them.

use crate::conversation::{
    entry::Entry,
    message::{Block, Message, outline::Role},
};

/// The reason why nothing that was delivered is lost with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grounds {
    /// It failed or was aborted.
    Failed,
    /// It was cut off before any text.
    Empty,
    /// It was cut off inside a call, which cannot be executed.
    CutCall,
}

impl Grounds {
    /// The grounds on which an answer may leave the context. `None` where it was delivered, or the entry is no answer.
    #[must_use]
    pub fn of(answer: &Entry) -> Option<Self> {
        let outline = answer.outline().filter(|outline| outline.role == Role::Assistant)?;
        match () {
            () if outline.failed => Some(Self::Failed),
            () if !outline.cut_off => None,
            () if !outline.calls.is_empty() => Some(Self::CutCall),
            () => match answer.message() {
                Some(Message::Assistant(message)) if message.content.iter().any(is_text) => None,
                _ => Some(Self::Empty),
            },
        }
    }
}

fn is_text(block: &Block) -> bool {
    matches!(block, Block::Text(text) if !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_delivered_answer_has_no_grounds_to_leave() {
        let text = json!([{"type": "text", "text": "Done."}]);
        let call = json!([{"type": "text", "text": "I read."}, {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]);
        let thinking = json!([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": " \n"}]);
        for (stop, content, expected) in [
            ("stop", &text, None),
            ("stop", &json!([]), None),
            ("toolUse", &call, None),
            ("length", &text, None),
            ("length", &call, Some(Grounds::CutCall)),
            ("length", &thinking, Some(Grounds::Empty)),
            ("length", &json!([]), Some(Grounds::Empty)),
            ("error", &text, Some(Grounds::Failed)),
            ("aborted", &call, Some(Grounds::Failed)),
        ] {
            assert_eq!(grounds("assistant", stop, content), expected, "{stop} {content}");
        }
        assert_eq!(grounds("user", "error", &text), None);
    }

    fn grounds(role: &str, stop: &str, content: &Value) -> Option<Grounds> {
        let message = json!({"role": role, "content": content, "stopReason": stop, "timestamp": 1});
        let line = json!({"type": "message", "id": "a", "message": message});
        Grounds::of(&Entry::parse(line.to_string().into()).expect("an entry"))
    }
}
