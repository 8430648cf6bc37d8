//! The list of a provider's models, which says whether a model compacts on demand.

use super::COMPACTION;
use crate::provider::{Trouble, TroubleKind};
use serde_json::Value;

/// The path of the list. A provider has fewer models than a page of it.
pub const PATH: &str = "/v1/models?limit=1000";

/// The largest list, in bytes.
pub const LARGEST: u64 = 4 << 20;

/// The headers of its request.
#[must_use]
pub fn headers() -> Vec<(&'static str, String)> {
    vec![("anthropic-beta", COMPACTION.to_owned())]
}

/// The models of a provider that compact on demand, by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compacting(Vec<String>);

impl Compacting {
    /// The models in a list.
    ///
    /// # Errors
    /// When the document is no list of models.
    pub fn of(document: &str) -> Result<Self, Trouble> {
        let garbled = || Trouble { status: Some(200), ..Trouble::new(TroubleKind::Garbled, "no list of models") };
        let list: Value = serde_json::from_str(document).map_err(|_| garbled())?;
        let models = list["data"].as_array().ok_or_else(garbled)?;
        let compacts = |model: &&Value| match &model["capabilities"]["compaction"] {
            Value::Bool(compacts) => *compacts,
            Value::Object(fields) => {
                let unsupported = Some(&Value::Bool(false));
                let summarize = fields.get("summarize").and_then(|summarize| summarize.get("supported"));
                fields.get("supported") != unsupported && summarize != unsupported
            }
            _ => false,
        };
        let ids = models.iter().filter(compacts).filter_map(|model| model["id"].as_str());
        Ok(Self(ids.map(str::to_owned).collect()))
    }

    /// Whether a model compacts. A name without a date means each date of it.
    #[must_use]
    pub fn has(&self, model: &str) -> bool {
        let is_date = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit());
        self.0.iter().any(|id| {
            let rest = id.strip_prefix(model);
            rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(is_date))
        })
    }
}

/// Whether an error says that a provider, or a gateway before it, refuses the block in a request. A request with the text in its
/// place may be answered. The codes of the provider's page begin with `compaction_`, and a gateway may write other words.
#[must_use]
pub fn refuses_block(error: &str) -> bool {
    error.contains("compaction") || error.contains(COMPACTION)
}

/// Whether an error is about a request for a compaction itself, and not about this conversation.
#[must_use]
pub fn refuses_compaction(error: &str) -> bool {
    let codes_of_conversations = ["compaction_", "context_length", "prompt is too long"];
    !codes_of_conversations.iter().any(|code| error.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_says_which_models_compact() {
        let model = |id: &str, compaction: Value| json!({"id": id, "capabilities": {"compaction": compaction}});
        let list = json!({"data": [
            model("claude-opus-5-5-20260901", json!(true)), model("claude-opus-4-5", json!(false)),
            model("claude-haiku-5-5", json!({"supported": true, "summarize": {"supported": true}})), model(
                "claude-mythos-1", json!({"supported": true, "summarize": {"supported": false}})), model("claude-sonnet-4-6", json!({"supported": false})),
            {"id": "claude-2"},
        ]});
        let compacting = Compacting::of(&list.to_string()).expect("a list");
        for (id, compacts) in [
            ("claude-opus-5-5", true),
            ("claude-opus-5-5-20260901", true),
            ("claude-opus-5", false),
            ("claude-opus-4-5", false),
            ("claude-haiku-5-5", true),
            ("claude-mythos-1", false),
            ("claude-sonnet-4-6", false),
            ("claude-2", false),
        ] {
            assert_eq!(compacting.has(id), compacts, "{id}");
        }
        for document in ["", "<html>", "[]", r#"{"data": {}}"#] {
            assert_eq!(Compacting::of(document).expect_err("no list").kind, TroubleKind::Garbled, "{document}");
        }
    }
}
