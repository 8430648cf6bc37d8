//! The members and the stop reasons of the wire formats. A misspelt one in a message of a host would be lost without an
//! error. The lists have members that are not read, so that they are not taken for misspelt ones.

use super::Invalid;
use crate::{
    provider::Api,
    text::{
        members::{Form, misspelt},
        one_line, spelling,
    },
};

/// A wire format by its names.
struct Known {
    /// A message, an item, or a whole answer.
    message: &'static Form,
    /// A usage.
    usage: &'static Form,
    /// The path of the stop reason in a whole answer, as a JSON pointer.
    stop: &'static str,
    /// The stop reasons that have an effect.
    stops: &'static [&'static str],
}

/// The first misspelt member of a message, with the message at the beginning of its path, or its misspelt stop reason.
///
/// # Errors
/// The problem with its path.
pub(super) fn check(api: Api, at: usize, json: &str, message: &serde_json::Value) -> Result<(), Invalid> {
    let known = known(api);
    let path = |path: &str| format!("messages[{at}].{path}");
    if let Some(misspelt) = misspelt(json, known.message) {
        return Err(Invalid { path: path(&misspelt.path), problem: misspelt.to_string() });
    }
    // An item of OpenAI's Responses has a status of its own.
    let is_item = message.get("type").or(message.get("role")).is_some() && known.stop == "/status";
    match message.pointer(known.stop).and_then(serde_json::Value::as_str).filter(|_| !is_item) {
        Some(stop) => {
            let place = known.stop.trim_start_matches('/').replace("/0/", "[0].");
            check_stop(known, stop, &path(&place))
        }
        None => Ok(()),
    }
}

/// The same for the members beside the messages.
///
/// # Errors
/// The problem with its path.
pub(super) fn check_beside(api: Api, usage: Option<&str>, stop: Option<&str>) -> Result<(), Invalid> {
    let known = known(api);
    if let Some(misspelt) = usage.and_then(|usage| misspelt(usage, known.usage)) {
        return Err(Invalid { path: format!("usage.{}", misspelt.path), problem: misspelt.to_string() });
    }
    stop.map_or(Ok(()), |stop| check_stop(known, stop, "stopReason"))
}

/// The stop reasons of every format that have an effect.
const COMMON_STOPS: [&str; 3] = ["length", "error", "aborted"];

/// Servers have stop reasons of their own, and write those of others in their style. So only one with other letters that looks
/// like one with an effect is refused.
fn check_stop(known: &Known, stop: &str, path: &str) -> Result<(), Invalid> {
    let all = || known.stops.iter().copied().chain(COMMON_STOPS);
    match spelling::meant_member(stop, all()).filter(|meant| !spelling::is_same(stop, meant)) {
        Some(meant) => {
            let problem = format!("unknown value `{}`; did you mean `{meant}`?", one_line(stop, 64));
            Err(Invalid { path: path.to_owned(), problem })
        }
        None => Ok(()),
    }
}

fn known(api: Api) -> &'static Known {
    match api {
        Api::Anthropic => &ANTHROPIC,
        Api::OpenaiResponses => &RESPONSES,
        Api::Google => &GOOGLE,
        Api::OpenaiChat | Api::Client => &CHAT,
    }
}

static ANTHROPIC: Known = Known {
    message: &Form::with(
        &["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
        &[("content", &ANTHROPIC_BLOCK), ("usage", &ANTHROPIC_USAGE)],
    ),
    usage: &ANTHROPIC_USAGE,
    stop: "/stop_reason",
    stops: &["max_tokens", "model_context_window_exceeded", "refusal"],
};

static ANTHROPIC_BLOCK: Form = Form {
    members: &[
        "type",
        "text",
        "citations",
        "cache_control",
        "thinking",
        "signature",
        "data",
        "id",
        "name",
        "input",
        "tool_use_id",
        "content",
        "is_error",
        "source",
    ],
    below: &[("content", &ANTHROPIC_BLOCK), ("source", &ANTHROPIC_SOURCE)],
    kinds: &[
        ("text", &["type", "text", "citations", "cache_control"]),
        ("image", &["type", "source", "cache_control"]),
        ("thinking", &["type", "thinking", "signature"]),
        ("redacted_thinking", &["type", "data"]),
        ("tool_use", &["type", "id", "name", "input", "cache_control"]),
        ("tool_result", &["type", "tool_use_id", "content", "is_error", "cache_control"]),
    ],
    foreign: &[("arguments", "input"), ("args", "input"), ("text", "content"), ("output", "content")],
};

static ANTHROPIC_SOURCE: Form = Form::flat(&["type", "media_type", "data", "url"]);

static ANTHROPIC_USAGE: Form = Form {
    foreign: TOKENS_ELSEWHERE,
    ..Form::flat(&[
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "service_tier",
        "server_tool_use",
    ])
};

/// The counts of other formats, and the ones of Anthropic and OpenAI's Responses that they stand for.
const TOKENS_ELSEWHERE: &[(&str, &str)] = &[
    ("prompt_tokens", "input_tokens"),
    ("completion_tokens", "output_tokens"),
    ("promptTokenCount", "input_tokens"),
    ("candidatesTokenCount", "output_tokens"),
];

static CHAT: Known = Known {
    message: &CHAT_MESSAGE,
    usage: &CHAT_USAGE,
    stop: "/choices/0/finish_reason",
    stops: &["content_filter", "content_filtered"],
};

/// A message, or a whole answer with one in each choice.
static CHAT_MESSAGE: Form = Form::with(
    &[
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "refusal",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "choices",
        "usage",
    ],
    &[("content", &CHAT_PART), ("tool_calls", &CHAT_CALL), ("choices", &CHAT_CHOICE), ("usage", &CHAT_USAGE)],
);

static CHAT_PART: Form = Form::with(&["type", "text", "image_url", "refusal"], &[("image_url", &CHAT_IMAGE)]);

static CHAT_IMAGE: Form = Form::flat(&["url", "detail"]);

static CHAT_CALL: Form = Form::with(&["id", "type", "index", "function"], &[("function", &CHAT_FUNCTION)]);

static CHAT_FUNCTION: Form =
    Form { foreign: &[("args", "arguments"), ("input", "arguments")], ..Form::flat(&["name", "arguments"]) };

static CHAT_CHOICE: Form =
    Form::with(&["index", "message", "finish_reason", "logprobs"], &[("message", &CHAT_MESSAGE)]);

// Servers name other counts in the details.
static CHAT_USAGE: Form = Form::flat(&[
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
    // Servers of other makers.
    "prompt_token_details",
    "completion_token_details",
    "input_tokens",
    "output_tokens",
]);

static RESPONSES: Known = Known {
    message: &RESPONSES_ITEM,
    usage: &RESPONSES_USAGE,
    stop: "/status",
    stops: &[
        "incomplete",
        // These look like the one before, and say the opposite.
        "complete",
        "completed",
        "failed",
        "cancelled",
        "canceled",
        "max_output_tokens",
        "content_filter",
        "response.incomplete",
        "response.failed",
        "response.cancelled",
    ],
};

/// An item, a part of a result, or a whole answer, whose output are items.
static RESPONSES_ITEM: Form = Form::with(
    &[
        "id",
        "type",
        "role",
        "content",
        "status",
        "call_id",
        "name",
        "arguments",
        "output",
        // Of tools of the server.
        "outputs",
        "summary",
        "encrypted_content",
        "incomplete_details",
        "usage",
        "text",
        "image_url",
    ],
    &[("content", &RESPONSES_PART), ("output", &RESPONSES_ITEM), ("usage", &RESPONSES_USAGE)],
);

static RESPONSES_PART: Form =
    Form::flat(&["type", "text", "annotations", "logprobs", "refusal", "image_url", "detail"]);

static RESPONSES_USAGE: Form = Form {
    foreign: TOKENS_ELSEWHERE,
    ..Form::flat(&[
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "input_tokens_details",
        "output_tokens_details",
        // Servers of other makers.
        "input_token_details",
        "output_token_details",
    ])
};

static GOOGLE: Known = Known {
    message: &GOOGLE_CONTENT,
    usage: &GOOGLE_USAGE,
    stop: "/candidates/0/finishReason",
    stops: &[
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MALFORMED_FUNCTION_CALL",
        "IMAGE_SAFETY",
    ],
};

/// A content, or a whole answer with one in each candidate.
static GOOGLE_CONTENT: Form = Form::with(
    &["role", "parts", "candidates", "usageMetadata"],
    &[("parts", &GOOGLE_PART), ("candidates", &GOOGLE_CANDIDATE), ("usageMetadata", &GOOGLE_USAGE)],
);

static GOOGLE_PART: Form = Form::with(
    &[
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    ],
    &[("functionCall", &GOOGLE_CALL), ("functionResponse", &GOOGLE_RESPONSE), ("inlineData", &GOOGLE_DATA)],
);

static GOOGLE_CALL: Form =
    Form { foreign: &[("arguments", "args"), ("input", "args")], ..Form::flat(&["id", "name", "args"]) };

static GOOGLE_RESPONSE: Form = Form::with(&["id", "name", "response", "parts"], &[("parts", &GOOGLE_PART)]);

static GOOGLE_DATA: Form = Form::flat(&["mimeType", "data", "displayName"]);

static GOOGLE_CANDIDATE: Form =
    Form::with(&["content", "finishReason", "index", "finishMessage"], &[("content", &GOOGLE_CONTENT)]);

static GOOGLE_USAGE: Form = Form {
    foreign: &[
        ("prompt_tokens", "promptTokenCount"),
        ("input_tokens", "promptTokenCount"),
        ("completion_tokens", "candidatesTokenCount"),
        ("output_tokens", "candidatesTokenCount"),
    ],
    ..Form::flat(&[
        "promptTokenCount",
        "cachedContentTokenCount",
        "toolUsePromptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "totalTokenCount",
        "promptTokensDetails",
        "candidatesTokensDetails",
        "cacheTokensDetails",
        "toolUsePromptTokensDetails",
    ])
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn misspelt_members_of_each_format_are_refused_with_their_path() {
        let row = |api, message: Value, path: &str, meant: &str| {
            let refused = check(api, 2, &message.to_string(), &message).expect_err(path);
            assert_eq!(refused.path, format!("messages[2].{path}"));
            assert!(refused.problem.contains(&format!("did you mean {meant}?")), "{refused:?}");
        };
        use Api::{Anthropic, Google, OpenaiChat, OpenaiResponses};
        for (api, usage, path, meant) in [
            (Anthropic, "usage", "prompt_tokens", r#""input_tokens""#),
            (Anthropic, "usage", "candidatesTokenCount", r#""output_tokens""#),
            (OpenaiResponses, "usage", "completion_tokens", r#""output_tokens""#),
            (Google, "usageMetadata", "input_tokens", r#""promptTokenCount""#),
        ] {
            let message = json!({"role": "assistant", "content": [], usage: {path: 7}});
            row(api, message, &format!("{usage}.{path}"), meant);
        }
        row(
            Anthropic,
            json!({"role": "assistant", "content": [], "stopReason": "end_turn"}),
            "stopReason",
            r#""stop_reason""#,
        );
        row(
            Anthropic,
            json!({"role": "assistant", "content": [], "stop_reason": "max_token"}),
            "stop_reason",
            "`max_tokens`",
        );
        row(
            Anthropic,
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "cacheControl": {}}]}]}),
            "content[0].content[0].cacheControl",
            r#""cache_control""#,
        );
        row(
            Anthropic,
            json!({"role": "assistant", "content": "x", "usage": {"input_tokens": 1, "cache_read_tokens": 5, "ouput_tokens": 1}}),
            "usage.ouput_tokens",
            r#""output_tokens""#,
        );
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "arguments": {}});
        row(Anthropic, json!({"role": "assistant", "content": [call]}), "content[0].arguments", r#""input""#);
        let result = json!({"type": "tool_result", "tool_use_id": "1", "context": "x"});
        row(Anthropic, json!({"role": "user", "content": [result]}), "content[0].context", r#""content""#);
        let call = json!({"id": "1", "function": {"name": "f", "args": "{}"}});
        let path = "tool_calls[0].function.args";
        row(OpenaiChat, json!({"role": "assistant", "tool_calls": [call]}), path, r#""arguments""#);
        row(OpenaiChat, json!({"role": "assistant", "content": null, "tool_cals": []}), "tool_cals", r#""tool_calls""#);
        row(
            OpenaiChat,
            json!({"choices": [{"message": {"role": "assistant", "toolCalls": []}}]}),
            "choices[0].message.toolCalls",
            r#""tool_calls""#,
        );
        row(
            OpenaiChat,
            json!({"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "lenght"}]}),
            "choices[0].finish_reason",
            "`length`",
        );
        row(
            OpenaiResponses,
            json!({"type": "function_call", "call_id": "a", "name": "f", "argument": "{}"}),
            "argument",
            r#""arguments""#,
        );
        row(OpenaiResponses, json!({"status": "incomplet", "output": []}), "status", "`incomplete`");
        row(
            Google,
            json!({"role": "model", "parts": [{"functionCall": {"name": "f", "arsg": {}}}]}),
            "parts[0].functionCall.arsg",
            r#""args""#,
        );
        row(Google, json!({"candidates": [], "usageMetaData": {}}), "usageMetaData", r#""usageMetadata""#);
    }

    #[test]
    fn members_and_stop_reasons_of_newer_servers_pass() {
        for (api, message) in [
            (
                Api::Anthropic,
                json!({"role": "assistant", "content": [{"type": "tool_use", "input": {"tpye": 1}}], "container": {}, "stop_reason": "compaction"}),
            ),
            (
                Api::OpenaiChat,
                json!({"role": "assistant", "content": "", "annotations": [], "audio": null, "tool_calls": [], "calls": 1}),
            ),
            (Api::OpenaiChat, json!({"choices": [{"message": {"content": ""}, "finish_reason": "STOP"}]})),
            (
                Api::OpenaiChat,
                json!({"choices": [{"message": {"content": ""}, "finish_reason": "tool_call"}], "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cache_tokens": 1}}}),
            ),
            (Api::Anthropic, json!({"role": "user", "content": [{"type": "document", "context": "x"}]})),
            (Api::OpenaiResponses, json!({"type": "code_interpreter_call", "outputs": null, "status": "complete"})),
            (Api::OpenaiResponses, json!({"type": "code_interpreter_call", "outputs": [], "status": "incomplet"})),
            (
                Api::OpenaiResponses,
                json!({"output": [], "status": "canceled", "usage": {"input_tokens": 1, "input_token_details": {}}}),
            ),
            (Api::OpenaiResponses, json!({"output": [], "status": "complete"})),
            (
                Api::OpenaiChat,
                json!({"choices": [{"message": {"content": ""}, "finish_reason": "content_filtered"}], "usage": {"prompt_token_details": {}}}),
            ),
            (Api::Google, json!({"role": "model", "parts": [{"text": "Hi", "function_call": null}]})),
            (Api::Google, json!({"candidates": [{"finishReason": "TOO_MANY_TOOL_CALLS"}], "modelVersion": "x"})),
        ] {
            assert_eq!(check(api, 0, &message.to_string(), &message), Ok(()), "{message}");
        }
    }

    #[test]
    fn members_beside_the_messages_are_checked_too() {
        let usage =
            check_beside(Api::Anthropic, Some(r#"{"input_tokens":1,"outputTokens":2}"#), None).expect_err("misspelt");
        assert_eq!(usage.path, "usage.outputTokens");
        let stop = check_beside(Api::Google, None, Some("MAX_TOKEN")).expect_err("misspelt");
        assert_eq!(
            (stop.path.as_str(), stop.problem.as_str()),
            ("stopReason", "unknown value `MAX_TOKEN`; did you mean `MAX_TOKENS`?")
        );
        assert_eq!(check_beside(Api::OpenaiResponses, None, Some("toolUse")), Ok(()));
    }
}
