//! A service that makes summaries: `{systemPrompt, prompt}` becomes `{summary, shortSummary?}`.

use super::{Answer, Beside, Encoded, Part, Request, Trouble, TroubleKind, Turn};
use serde_json::{Value, json};

/// The largest answer, in bytes of JSON. It has room for the longest summary, 128,000 tokens of text.
pub const LARGEST_ANSWER: u64 = 1 << 20;

/// The request for a summary. Its path is empty, because the setting names the whole address.
#[must_use]
pub fn encode(request: &Request) -> Encoded {
    let turns = request.all_turns();
    let parts = turns.iter().flat_map(|turn| match turn {
        Turn::User(parts) | Turn::Assistant(parts) => parts.as_slice(),
        Turn::Result(outcome) => outcome.parts.as_slice(),
    });
    let texts = parts.filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let prompt = texts.collect::<Vec<_>>().join("\n\n");
    let system = request.system.as_deref().unwrap_or_default();
    Encoded::new("", json!({ "systemPrompt": system, "prompt": prompt }))
}

/// The summary in a document. An empty one is an answer, which the gate rejects.
///
/// # Errors
/// When the document is no object with a text as `summary`.
pub fn decode(document: &str) -> Result<Answer, Trouble> {
    let garbled = |what: &str| Trouble { status: Some(200), ..Trouble::new(TroubleKind::Garbled, what) };
    let value: Value = serde_json::from_str(document).map_err(|_| garbled("the answer is not JSON"))?;
    let summary = match value.get("summary") {
        Some(Value::String(summary)) => summary,
        Some(_) => return Err(garbled("its `summary` is no text")),
        None => return Err(garbled("the answer has no `summary`")),
    };
    let beside = match value.get("shortSummary").and_then(Value::as_str) {
        Some(short) if !short.trim().is_empty() => Beside::Short(short.to_owned()),
        _ => Beside::Nothing,
    };
    Ok(Answer { parts: vec![Part::text(summary)], beside, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_two_prompts() {
        let request = Request {
            system: Some("Be a summarizer.".to_owned()),
            turns: vec![Turn::user("<conversation>")],
            ..Request::default()
        };
        let Encoded { path, body, .. } = encode(&request);
        assert_eq!(
            (path.as_str(), body),
            ("", json!({"systemPrompt": "Be a summarizer.", "prompt": "<conversation>"}))
        );
    }

    #[test]
    fn an_answer_has_a_summary_and_may_have_a_short_one() {
        let read = |value: Value| decode(&value.to_string()).map(|answer| (answer.text(), answer.beside));
        let whole = |text: &str, beside| Ok((text.to_owned(), beside));
        assert_eq!(read(json!({"summary": "All of it.", "model": 7})), whole("All of it.", Beside::Nothing));
        assert_eq!(read(json!({"summary": "a", "shortSummary": "b"})), whole("a", Beside::Short("b".to_owned())));
        assert_eq!(read(json!({"summary": "a", "shortSummary": " "})), whole("a", Beside::Nothing));
        assert_eq!(read(json!({"summary": "a", "shortSummary": 7})), whole("a", Beside::Nothing));
        assert_eq!(read(json!({"summary": ""})), whole("", Beside::Nothing));
    }

    #[test]
    fn a_document_without_a_summary_is_no_answer() {
        for (document, said) in [
            ("", "not JSON"),
            ("{\"summary\": \"x", "not JSON"),
            ("[]", "no `summary`"),
            ("{}", "no `summary`"),
            ("{\"summary\": null}", "no text"),
            ("{\"summary\": [\"x\"]}", "no text"),
        ] {
            let trouble = decode(document).expect_err(document);
            assert_eq!((trouble.kind, trouble.transient()), (TroubleKind::Garbled, false), "{document}");
            assert!(trouble.said.contains(said), "{document}: {trouble}");
        }
    }
}
