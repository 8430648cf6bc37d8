//! OpenAI's own compaction: `POST /responses/compact` turns a conversation into items that stand for it. One of them is
//! encrypted, and only the provider reads it.

use crate::{
    conversation::entry::native::{is_compaction, is_message},
    provider::{Answer, Beside, Encoded, Request, Trouble, TroubleKind},
};
use serde_json::{Value, json};

/// The largest answer, in bytes of JSON. It repeats messages of the user, which may have images.
pub const LARGEST_ANSWER: u64 = 32 << 20;

/// The request for a compaction.
#[must_use]
pub fn encode(request: &Request) -> Encoded {
    // `instructions` is deprecated there.
    Encoded::new("/responses/compact", json!({ "model": request.model.id, "input": super::input(request) }))
}

/// The items in a document: the compaction and the messages of the user and the model. Others are left out: system prompt
/// and developer messages come with each request.
///
/// # Errors
/// When there is no compaction among them.
pub fn decode(document: &str) -> Result<Answer, Trouble> {
    let garbled = |what: &str| Trouble { status: Some(200), ..Trouble::new(TroubleKind::Garbled, what) };
    let mut value: Value = serde_json::from_str(document).map_err(|_| garbled("the answer is not JSON"))?;
    if value["error"].is_object() {
        return Err(Trouble::of(Some(200), document, None));
    }
    let usage = super::answer::usage(&value["usage"]);
    let Some(Value::Array(output)) = value.get_mut("output").map(Value::take) else {
        return Err(Trouble { usage, ..garbled("the answer has no `output`") });
    };
    let mut items: Vec<Value> = output.into_iter().filter(|item| is_compaction(item) || is_message(item)).collect();
    // The newest compaction covers those before it.
    if let Some(newest) = items.iter().rposition(is_compaction) {
        let mut place = 0;
        items.retain(|item| {
            place += 1;
            place > newest || !is_compaction(item)
        });
    }
    if !items.iter().any(is_compaction) {
        let what = "its `output` has no compaction with encrypted content";
        return Err(Trouble { usage, ..garbled(what) });
    }
    Ok(Answer { usage, beside: Beside::Items(items), ..Answer::default() })
}

/// Whether an error says that a provider refuses an item in a request. A request with the text in its place may be answered.
#[must_use]
pub fn refuses_item(error: &str) -> bool {
    ["encrypted_content", "compaction", "string_above_max_length"].iter().any(|name| error.contains(name))
}

/// Whether an error says that a model takes no trigger of compactions.
#[must_use]
pub fn refuses_trigger(error: &str) -> bool {
    error.contains("compaction_trigger")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Model, Turn};

    fn compaction() -> Value {
        json!({"id": "cmp_1", "type": "compaction", "encrypted_content": "c2VjcmV0", "created_by": "x"})
    }

    #[test]
    fn a_request_has_the_history_before_the_conversation() {
        let request = Request {
            model: Model { id: "gpt-5".to_owned(), ..Model::default() },
            system: Some("Be brief.".to_owned()),
            history: vec![compaction()],
            turns: vec![Turn::Assistant(vec![crate::provider::Part::text("Done.")]), Turn::user("Go on.")],
            ..Request::default()
        };
        let Encoded { path, body, .. } = encode(&request);
        assert_eq!((path.as_str(), &body["model"]), ("/responses/compact", &json!("gpt-5")));
        let input = body["input"].as_array().expect("items");
        let roles: Vec<_> = input.iter().map(|item| item["role"].as_str().unwrap_or_default()).collect();
        assert_eq!((roles.as_slice(), &input[0]), (&["", "assistant", "user"][..], &compaction()));
        let fields: Vec<_> = body.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["model", "input"]);
    }

    #[test]
    fn the_answer_keeps_messages_and_the_compaction_as_they_are() {
        let said =
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}], "id": "msg_1"});
        let developer =
            json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "x"}]});
        let usage = json!({"input_tokens": 90, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 40}});
        let body = json!({"output": [said, developer, {"type": "tomorrow"}, compaction()], "usage": usage});
        let answer = decode(&body.to_string()).expect("an answer");
        assert_eq!(answer.beside, Beside::Items(vec![said, compaction()]));
        assert_eq!((answer.usage.input, answer.usage.cache_read, answer.usage.output), (50, 40, 7));
    }

    #[test]
    fn of_several_compactions_the_newest_is_kept() {
        let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]});
        let newer = json!({"id": "cmp_2", "type": "compaction", "encrypted_content": "bmV3ZXI="});
        let body = json!({"output": [compaction(), said, newer]});
        let answer = decode(&body.to_string()).expect("an answer");
        assert_eq!(answer.beside, Beside::Items(vec![said, newer]));
    }

    #[test]
    fn an_answer_without_a_compaction_failed() {
        for (body, said) in [
            (json!({"output": []}), "no compaction"),
            (json!({"output": [{"type": "compaction", "id": "cmp_1"}]}), "no compaction"),
            (json!({"output": {"type": "compaction"}}), "no `output`"),
            (json!({"summary": "x"}), "no `output`"),
            (json!([]), "no `output`"),
            (json!({"error": {"message": "The server had an error"}}), "error"),
        ] {
            let trouble = decode(&body.to_string()).expect_err("no answer");
            assert!(trouble.said.contains(said), "{body}: {trouble}");
        }
        assert_eq!(decode("<html>").expect_err("no answer").kind, TroubleKind::Garbled);
    }
}
