//! The errors of each provider: status, body and events.

use super::{Format, formats::Event};
use serde_json::{Value, json};

/// Kinds of trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    RateLimited,
    Quota,
    Overloaded,
    Server,
    Overflow,
    Unauthorized,
    Forbidden,
    ModelNotFound,
    /// The provider has nothing at this method and path.
    NoSuchAddress(String),
    TooLarge,
    /// The request is not what the provider takes; its words.
    Invalid(String),
}

/// The text of a request over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The window and the size, as far as the provider states them.
    Numbers,
    /// No number.
    Words,
    /// Another window than the one that is enforced.
    States(u64),
}

/// An overflow as other servers of the format say it.
pub fn overflow_without_numbers(format: Format) -> Value {
    let invalid = "invalid_request_error";
    match format {
        Format::Anthropic => json!({"type": "error", "error": {"type": invalid, "message": "Prompt is too long"}}),
        Format::OpenAiChat => json!({"error": {
            "message": "Please reduce the length of the messages or completion.", "type": invalid, "param": "messages",
            "code": "context_length_exceeded",
        }}),
        Format::OpenAiResponses => json!({"error": {
            "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "type": invalid, "param": "input", "code": "context_length_exceeded",
        }}),
        Format::Google => json!({"error": {
            "code": 400, "message": "The input token count exceeds the maximum number of tokens allowed.",
            "status": "INVALID_ARGUMENT",
        }}),
    }
}

/// Numbers and names in the texts of errors.
#[derive(Debug, Clone)]
pub struct Facts {
    pub model: String,
    /// The estimated size of the request.
    pub tokens: u64,
    pub max_output: Option<u64>,
    pub window: Option<u64>,
    /// The key as it came.
    pub key: String,
    pub number: usize,
}

impl Trouble {
    /// Trouble that a status stands for.
    pub fn of(code: u16) -> Self {
        match code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::ModelNotFound,
            413 => Self::TooLarge,
            429 => Self::RateLimited,
            503 | 529 => Self::Overloaded,
            500.. => Self::Server,
            _ => Self::Invalid("The request could not be processed.".to_owned()),
        }
    }
}

/// The status and the body of a trouble.
pub fn refusal(format: Format, trouble: &Trouble, facts: &Facts) -> (u16, Value) {
    match format {
        Format::Anthropic => anthropic(trouble, facts),
        Format::OpenAiChat => open_ai(trouble, facts, false),
        Format::OpenAiResponses => open_ai(trouble, facts, true),
        Format::Google => google(trouble, facts),
    }
}

/// The events a stream that began says it with.
pub fn events(format: Format, trouble: &Trouble, facts: &Facts) -> Vec<Event> {
    let (_, body) = refusal(format, trouble, facts);
    match format {
        Format::Anthropic => vec![Event::named("error", body)],
        Format::OpenAiChat | Format::Google => vec![Event::data(body)],
        Format::OpenAiResponses => {
            let code = match (&body["error"]["code"], trouble) {
                (Value::String(code), _) => code.clone(),
                (_, Trouble::Invalid(_)) => "invalid_prompt".to_owned(),
                _ => "server_error".to_owned(),
            };
            let message = &body["error"]["message"];
            let response = json!({
                "id": format!("resp_{}", facts.number), "object": "response", "created_at": 1_790_000_000, "status": "failed",
                "error": {"code": code, "message": message}, "incomplete_details": null, "model": facts.model,
                "output": [], "store": false, "usage": null,
            });
            let failed = Event::typed(json!({"type": "response.failed", "response": response}));
            // The service speaks of its own failures in one event and of the request's in two.
            let mut events = vec![failed];
            if matches!(trouble, Trouble::Overflow | Trouble::Invalid(_)) {
                let error = json!({"type": "error", "code": code, "message": message, "param": "input"});
                events.insert(0, Event::typed(error));
            }
            events
        }
    }
}

fn anthropic(trouble: &Trouble, facts: &Facts) -> (u16, Value) {
    let Facts { model, .. } = facts;
    let (status, kind, message) = match trouble {
        Trouble::RateLimited => (
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute.".to_owned(),
        ),
        Trouble::Quota => (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.".to_owned(),
        ),
        Trouble::Overloaded => (529, "overloaded_error", "Overloaded".to_owned()),
        Trouble::Server => (500, "api_error", "Internal server error".to_owned()),
        Trouble::Overflow => {
            let (tokens, window) = overflow(facts, facts.max_output.unwrap_or(0));
            let message = match facts.max_output {
                Some(max) if tokens <= window => format!(
                    "input length and `max_tokens` exceed context limit: {tokens} + {max} > {window}, decrease input length or `max_tokens` and try again"
                ),
                _ => format!("prompt is too long: {tokens} tokens > {window} maximum"),
            };
            (400, "invalid_request_error", message)
        }
        Trouble::Unauthorized => (401, "authentication_error", "invalid x-api-key".to_owned()),
        Trouble::Forbidden => {
            (403, "permission_error", "Your API key does not have permission to use the specified resource.".to_owned())
        }
        Trouble::ModelNotFound => (404, "not_found_error", format!("model: {model}")),
        Trouble::NoSuchAddress(_) => (404, "not_found_error", "Not Found".to_owned()),
        Trouble::TooLarge => (413, "request_too_large", "Request exceeds the maximum size".to_owned()),
        Trouble::Invalid(message) => (400, "invalid_request_error", message.clone()),
    };
    let id = format!("req_{:06}", facts.number);
    (status, json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": id}))
}

fn open_ai(trouble: &Trouble, facts: &Facts, responses: bool) -> (u16, Value) {
    let Facts { model, .. } = facts;
    let invalid = "invalid_request_error";
    let (status, kind, code, param, message) = match trouble {
        Trouble::RateLimited => (
            429,
            "tokens",
            json!("rate_limit_exceeded"),
            Value::Null,
            format!(
                "Rate limit reached for {model} in organization org-test on tokens per min (TPM): Limit 30000, Used 29000, Requested {}. Please try again in 1.2s.",
                facts.tokens
            ),
        ),
        Trouble::Quota => (
            429,
            "insufficient_quota",
            json!("insufficient_quota"),
            Value::Null,
            "You exceeded your current quota, please check your plan and billing details.".to_owned(),
        ),
        Trouble::Overloaded => (
            503,
            "server_error",
            if responses { json!("server_is_overloaded") } else { Value::Null },
            Value::Null,
            "The server is currently overloaded with other requests. Sorry about that! Please try again later."
                .to_owned(),
        ),
        Trouble::Server => (
            500,
            "server_error",
            if responses { json!("server_error") } else { Value::Null },
            Value::Null,
            "The server had an error while processing your request. Sorry about that!".to_owned(),
        ),
        Trouble::Overflow if responses => (
            400,
            invalid,
            json!("context_length_exceeded"),
            json!("input"),
            "Your input exceeds the context window of this model. Please adjust your input and try again.".to_owned(),
        ),
        Trouble::Overflow => {
            let (tokens, window) = overflow(facts, facts.max_output.unwrap_or(0));
            let message = match facts.max_output {
                Some(max) => format!(
                    "This model's maximum context length is {window} tokens. However, you requested {} tokens ({tokens} in the messages, {max} in the completion). Please reduce the length of the messages or completion.",
                    tokens + max
                ),
                None => format!(
                    "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. Please reduce the length of the messages."
                ),
            };
            (400, invalid, json!("context_length_exceeded"), json!("messages"), message)
        }
        Trouble::Unauthorized => (
            401,
            invalid,
            json!("invalid_api_key"),
            Value::Null,
            format!(
                "Incorrect API key provided: {}. You can find your API key at https://platform.openai.com/account/api-keys.",
                masked(&facts.key)
            ),
        ),
        Trouble::Forbidden => (
            403,
            invalid,
            json!("unsupported_country_region_territory"),
            Value::Null,
            "Country, region, or territory not supported".to_owned(),
        ),
        Trouble::ModelNotFound if responses => (
            400,
            invalid,
            json!("model_not_found"),
            json!("model"),
            format!("The requested model '{model}' does not exist."),
        ),
        Trouble::ModelNotFound => (
            404,
            invalid,
            json!("model_not_found"),
            Value::Null,
            format!("The model `{model}` does not exist or you do not have access to it."),
        ),
        Trouble::NoSuchAddress(address) => (404, invalid, Value::Null, Value::Null, format!("Invalid URL ({address})")),
        Trouble::TooLarge => {
            (413, invalid, Value::Null, Value::Null, "Request entity too large: the request is over 32 MB.".to_owned())
        }
        // Items that were never stored cannot be found.
        Trouble::Invalid(message) if message.starts_with("Item with id") => {
            (404, invalid, Value::Null, json!("input"), message.clone())
        }
        Trouble::Invalid(message) => {
            (400, invalid, Value::Null, json!(if responses { "input" } else { "messages" }), message.clone())
        }
    };
    (status, json!({"error": {"message": message, "type": kind, "param": param, "code": code}}))
}

fn google(trouble: &Trouble, facts: &Facts) -> (u16, Value) {
    let Facts { model, .. } = facts;
    let detail = |kind: &str, mut detail: Value| {
        detail["@type"] = json!(format!("type.googleapis.com/google.rpc.{kind}"));
        json!([detail])
    };
    let (status, kind, message, details) = match trouble {
        Trouble::RateLimited => (
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check quota).".to_owned(),
            detail("RetryInfo", json!({"retryDelay": "1s"})),
        ),
        Trouble::Quota => (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.".to_owned(),
            detail(
                "QuotaFailure",
                json!({"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "0"}]}),
            ),
        ),
        Trouble::Overloaded => {
            (503, "UNAVAILABLE", "The model is overloaded. Please try again later.".to_owned(), Value::Null)
        }
        Trouble::Server => (500, "INTERNAL", "An internal error has occurred.".to_owned(), Value::Null),
        Trouble::Overflow => {
            let (tokens, window) = overflow(facts, 0);
            let message =
                format!("The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).");
            (400, "INVALID_ARGUMENT", message, Value::Null)
        }
        // A wrong key is a wrong argument there.
        Trouble::Unauthorized => (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.".to_owned(),
            detail(
                "ErrorInfo",
                json!({"reason": "API_KEY_INVALID", "domain": "googleapis.com", "metadata": {"service": "generativelanguage.googleapis.com"}}),
            ),
        ),
        Trouble::Forbidden => (403, "PERMISSION_DENIED", "The caller does not have permission".to_owned(), Value::Null),
        Trouble::ModelNotFound => (
            404,
            "NOT_FOUND",
            format!("models/{model} is not found for API version v1beta, or is not supported for generateContent."),
            Value::Null,
        ),
        Trouble::NoSuchAddress(_) => (404, "NOT_FOUND", "Requested entity was not found.".to_owned(), Value::Null),
        Trouble::TooLarge => {
            (413, "INVALID_ARGUMENT", "Request payload size exceeds the limit: 20971520 bytes.".to_owned(), Value::Null)
        }
        Trouble::Invalid(message) => (400, "INVALID_ARGUMENT", message.clone(), Value::Null),
    };
    let mut body = json!({"error": {"code": status, "message": message, "status": kind}});
    if !details.is_null() {
        body["error"]["details"] = details;
    }
    (status, body)
}

/// The size and the window, as numbers that are an overflow even where the request is none.
fn overflow(facts: &Facts, counted_output: u64) -> (u64, u64) {
    let window = facts.window.unwrap_or(200_000);
    let over = facts.tokens + counted_output > window;
    (if over { facts.tokens } else { window + 1 }, window)
}

fn masked(key: &str) -> String {
    let shown: String = key.chars().take(3).collect();
    format!("{shown}{}", "*".repeat(key.chars().count().saturating_sub(3)))
}
