//! The state that a provider made of a conversation by its own compaction. It counts as missing where a part is invalid, since a
//! provider would refuse it.
//!
//! OpenAI makes a history of items: `preserveData.openaiRemoteCompaction` of a compaction, in oh-my-pi's form. Anthropic makes
//! one block with a signature: `preserveData.anthropicCompaction`.

use crate::ids::EntryId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;

/// A state of a conversation that its provider made.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeHistory {
    provider: String,
    items: Vec<Value>,
    kind: Kind,
    facts: String,
    covers: Covers,
    tokens: u64,
}

/// The form of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Items of OpenAI's Responses.
    Items,
    /// A block of Anthropic's Messages, which stands first in a request.
    Block(Bound),
}

/// The request that a block belongs to. With another model, system prompt or tools its text goes in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bound {
    /// The model's id at its provider.
    pub model: String,
    /// The fingerprint of system prompt and tools.
    pub instructions: String,
}

/// The part of a conversation that a state stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// The summarized part. The kept entries follow it.
    Summarized,
    /// Everything before the compaction, as oh-my-pi asks for it.
    Kept,
}

/// A block as a compaction stores it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredBlock {
    /// The compaction that it belongs to: other programs copy `preserveData`.
    entry_id: EntryId,
    provider: String,
    #[serde(flatten)]
    bound: Bound,
    block: Value,
    /// Facts that its text does not have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    facts: String,
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
        (valid && !provider.is_empty()).then(|| Self {
            provider: provider.to_owned(),
            items,
            kind: Kind::Items,
            facts: String::new(),
            covers,
            tokens,
        })
    }

    /// The block of Anthropic's own compaction, with the facts that its text does not have. None where it is no such block.
    #[must_use]
    pub fn block(provider: &str, block: Value, bound: Bound, facts: String) -> Option<Self> {
        let text = text_of_block(&block)?;
        let tokens = crate::conversation::tokens::utf16_len(text).div_ceil(4) as u64;
        (!provider.is_empty()).then(|| Self {
            provider: provider.to_owned(),
            tokens,
            items: vec![block],
            kind: Kind::Block(bound),
            facts,
            covers: Covers::Summarized,
        })
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

    /// The block in a stored value, where it belongs to the compaction with this id.
    #[must_use]
    pub(super) fn read_block(value: Value, id: &EntryId) -> Option<Self> {
        let StoredBlock { entry_id, provider, bound, block, facts } = serde_json::from_value(value).ok()?;
        Self::block(&provider, block, bound, facts).filter(|_| entry_id == *id)
    }

    /// The key in `preserveData` and the value there, for the compaction with this id.
    #[must_use]
    pub fn stored(&self, id: &EntryId) -> (&'static str, Value) {
        match (&self.kind, self.items.first()) {
            (Kind::Block(bound), Some(block)) => {
                let (entry_id, provider) = (id.clone(), self.provider.clone());
                let (bound, block, facts) = (bound.clone(), block.clone(), self.facts.clone());
                let stored = StoredBlock { entry_id, provider, bound, block, facts };
                ("anthropicCompaction", json!(stored))
            }
            _ => {
                let compaction = self.items.iter().find(|item| is_compaction(item));
                let stored = json!({ "provider": self.provider, "replacementHistory": self.items, "compactionItem": compaction });
                ("openaiRemoteCompaction", stored)
            }
        }
    }

    /// The provider that can read it.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The items, oldest first, or the block alone.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// Facts that its text does not have. Empty where there are none.
    #[must_use]
    pub fn facts(&self) -> &str {
        &self.facts
    }

    /// Its form.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
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

/// The text of a block of Anthropic's own compaction. None where it is another block, or has no text or no signature.
#[must_use]
pub fn text_of_block(block: &Value) -> Option<&str> {
    let signed = block["signature"].as_str().is_some_and(|signature| !signature.is_empty());
    let text = block["content"].as_str().filter(|text| !text.trim().is_empty());
    text.filter(|_| block["type"] == "compaction" && signed)
}

/// The longest encrypted content that OpenAI takes back, in characters: it answers a longer one with `string_above_max_length`.
const LONGEST: usize = 10_485_760;

/// Whether an item is the compaction itself.
#[must_use]
pub fn is_compaction(item: &Value) -> bool {
    let is_short =
        |content: &str| !content.is_empty() && (content.len() <= LONGEST || content.chars().count() <= LONGEST);
    let encrypted = item["encrypted_content"].as_str().is_some_and(is_short);
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
            json!({"type": "compaction", "encrypted_content": "x".repeat(LONGEST + 1)}),
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
        let (key, mut stored) = history.stored(&"c".into());
        assert_eq!(key, "openaiRemoteCompaction");
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

    #[test]
    fn a_block_belongs_to_its_compaction_and_has_a_text_and_a_signature() {
        let bound = || Bound { model: "m".to_owned(), instructions: "f".to_owned() };
        let block = json!({"type": "compaction", "content": "So far.", "signature": "s", "encrypted_content": null});
        let history = NativeHistory::block("anthropic", block.clone(), bound(), String::new()).expect("a block");
        assert_eq!(
            (history.items(), history.tokens(), history.covers()),
            (&[block.clone()][..], 2, Covers::Summarized)
        );
        let (key, stored) = history.stored(&"c".into());
        assert_eq!((key, &stored["block"]), ("anthropicCompaction", &block));
        assert_eq!(NativeHistory::read_block(stored.clone(), &"c".into()), Some(history));
        assert_eq!(NativeHistory::read_block(stored, &"d".into()), None, "a copy in another compaction");
        for (field, value) in
            [("content", json!(null)), ("content", json!(" ")), ("signature", json!("")), ("type", json!("text"))]
        {
            let mut other = block.clone();
            other[field] = value;
            assert!(NativeHistory::block("anthropic", other.clone(), bound(), String::new()).is_none(), "{other}");
        }
    }
}
