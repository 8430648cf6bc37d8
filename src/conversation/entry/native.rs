//! The history that a provider made of a conversation by its own compaction: `preserveData.openaiRemoteCompaction` of a
//! compaction, in oh-my-pi's form. A history with an invalid item counts as missing, since a provider would refuse it.

use serde_json::{Value, json};
use std::collections::HashSet;

/// A history of a provider, as items of OpenAI's Responses.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeHistory {
    provider: String,
    items: Vec<Value>,
    covers: Covers,
    tokens: u64,
}

/// The part of a conversation that a history stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// The summarized part. The kept entries follow it.
    Summarized,
    /// Everything before the compaction, as oh-my-pi asks for it.
    Kept,
}

impl NativeHistory {
    /// A history of items. None where one of them is invalid, or none is a compaction.
    #[must_use]
    pub fn new(provider: &str, items: Vec<Value>, covers: Covers) -> Option<Self> {
        let mut ids = HashSet::new();
        let named = |item: &Value| match &item["id"] {
            Value::Null => true,
            Value::String(id) => ids.insert(id.clone()),
            _ => false,
        };
        let valid = items.iter().all(is_valid) && items.iter().all(named) && items.iter().any(is_compaction);
        let tokens = items.iter().map(size).sum::<usize>().div_ceil(4) as u64;
        (valid && !provider.is_empty()).then(|| Self { provider: provider.to_owned(), items, covers, tokens })
    }

    /// The history in a stored value. `ours` is the number of its first items that stand for the summarized part; without
    /// it another program wrote it.
    #[must_use]
    pub(super) fn read(mut value: Value, ours: Option<u64>) -> Option<Self> {
        let Value::Array(mut items) = value.get_mut("replacementHistory")?.take() else { return None };
        let covers = match ours {
            Some(count) => {
                items.truncate(usize::try_from(count).ok().filter(|count| *count <= items.len())?);
                Covers::Summarized
            }
            None => Covers::Kept,
        };
        Self::new(value["provider"].as_str()?, items, covers)
    }

    /// The history as a stored value.
    #[must_use]
    pub fn stored(&self) -> Value {
        let compaction = self.items.iter().find(|item| is_compaction(item));
        json!({ "provider": self.provider, "replacementHistory": self.items, "compactionItem": compaction })
    }

    /// The provider that can read it.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The items, oldest first.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// The part of the conversation that it stands for.
    #[must_use]
    pub fn covers(&self) -> Covers {
        self.covers
    }

    /// Its size in tokens: a quarter of its characters. The size of encrypted content is unknown, and its encoding is longer
    /// than the text.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }
}

/// Whether an item is the compaction itself.
#[must_use]
pub fn is_compaction(item: &Value) -> bool {
    let encrypted = item["encrypted_content"].as_str().is_some_and(|content| !content.is_empty());
    matches!(item["type"].as_str(), Some("compaction" | "compaction_summary")) && encrypted
}

/// Whether an item is a message of the user or of the model.
#[must_use]
pub fn is_message(item: &Value) -> bool {
    let pieces: &[&str] = match item["role"].as_str() {
        Some("user") => &["input_text", "input_image"],
        Some("assistant") => &["output_text", "refusal"],
        _ => return false,
    };
    let is_piece = |piece: &Value| {
        let text = match piece["type"].as_str() {
            Some(kind) if !pieces.contains(&kind) => return false,
            Some("input_image") => &piece["image_url"],
            Some("refusal") => &piece["refusal"],
            Some(_) => &piece["text"],
            None => return false,
        };
        text.is_string()
    };
    let content = match &item["content"] {
        Value::String(text) => !text.is_empty(),
        Value::Array(content) => !content.is_empty() && content.iter().all(is_piece),
        _ => false,
    };
    matches!(item["type"].as_str(), None | Some("message")) && content
}

fn is_valid(item: &Value) -> bool {
    item.is_object() && (is_compaction(item) || is_message(item))
}

/// The length of the texts of an item, in UTF-16 code units. An image counts as the peers' constant.
fn size(item: &Value) -> usize {
    use crate::conversation::tokens::{IMAGE_CHARS, utf16_len};
    match item {
        Value::String(text) => utf16_len(text),
        Value::Array(pieces) => pieces.iter().map(size).sum(),
        Value::Object(fields) if fields.contains_key("image_url") => IMAGE_CHARS,
        Value::Object(fields) => fields.values().map(size).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compaction() -> Value {
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"})
    }

    fn said(text: &str) -> Value {
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    }

    #[test]
    fn a_history_has_messages_and_a_compaction_and_nothing_else() {
        let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"});
        let answered =
            json!({"role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]});
        let valid = |items: &[Value]| NativeHistory::new("openai", items.to_vec(), Covers::Summarized).is_some();
        assert!(valid(&[compaction()]));
        assert!(valid(&[json!({"role": "user", "content": "x"}), answered, compaction()]));
        assert!(valid(&[json!({"type": "message", "role": "user", "content": [image]}), compaction()]));
        for other in [
            json!(7),
            json!({}),
            json!({"type": "compaction", "id": "cmp_2"}),
            json!({"type": "compaction", "encrypted_content": ""}),
            json!({"type": "message", "role": "user", "content": []}),
            json!({"type": "message", "role": "user", "content": [{"type": "output_text", "text": "x"}]}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_text"}]}),
            json!({"type": "message", "role": "developer", "content": "x"}),
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
            json!({"type": "reasoning", "encrypted_content": "x"}),
            json!({"type": "message", "role": "user", "content": "x", "id": 7}),
            json!({"type": "message", "role": "user", "content": "x", "id": "cmp_1"}),
        ] {
            assert!(!valid(&[compaction(), other.clone()]), "{other}");
        }
        assert!(!valid(&[]) && !valid(&[said("x")]), "without a compaction it is no history");
        assert!(NativeHistory::new("", vec![compaction()], Covers::Kept).is_none());
    }

    #[test]
    fn a_stored_history_is_read_as_it_was() {
        let history = NativeHistory::new("openai", vec![said("x"), compaction()], Covers::Summarized).expect("valid");
        let mut stored = history.stored();
        let call = json!({"type": "function_call", "call_id": "c"});
        stored["replacementHistory"].as_array_mut().expect("items").push(call);
        assert_eq!((&stored["provider"], &stored["compactionItem"]), (&json!("openai"), &compaction()));
        assert_eq!(stored["replacementHistory"].as_array().map(Vec::len), Some(3));
        assert_eq!(NativeHistory::read(stored.clone(), Some(2)), Some(history));
        assert_eq!(NativeHistory::read(stored.clone(), Some(4)), None);
        assert_eq!(NativeHistory::read(stored.clone(), None), None, "a call is no part of another program's history");
        let theirs =
            json!({"provider": "openai", "replacementHistory": [compaction()], "compactionItem": compaction()});
        let theirs = NativeHistory::read(theirs, None).expect("valid");
        assert_eq!((theirs.covers(), theirs.items()), (Covers::Kept, &[compaction()][..]));
        for other in
            [json!(null), json!([]), json!({"provider": "openai"}), json!({"replacementHistory": [compaction()]})]
        {
            assert_eq!(NativeHistory::read(other, None), None);
        }
    }

    #[test]
    fn the_size_of_a_history_is_that_of_its_texts() {
        let tokens = |items| NativeHistory::new("p", items, Covers::Kept).map(|history| history.tokens());
        let (small, large) = (tokens(vec![compaction()]), tokens(vec![said(&"x".repeat(4_000)), compaction()]));
        assert!(small.is_some_and(|tokens| tokens < 20), "{small:?}");
        assert!(large.is_some_and(|tokens| (1_000..1_100).contains(&tokens)), "{large:?}");
    }
}
