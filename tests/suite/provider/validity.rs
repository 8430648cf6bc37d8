//! The requirements of each provider. The error of the first violation has the provider's own words, so that a client
//! reads
//! the text that it would read in production.

mod anthropic;
mod chat;
mod google;
mod responses;

use super::{Asked, Format};
use serde_json::{Map, Value};

pub type Verdict = Result<(), String>;

/// Whether the provider would take the request; `limit` is the most output the model can give.
pub fn check(asked: &Asked, limit: Option<u64>) -> Verdict {
    let Some(body) = asked.body.as_object() else {
        return Err("We could not parse the JSON body of your request.".to_owned());
    };
    let json = asked.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    require(json, || "Unsupported content type: expected 'application/json'.".to_owned())?;
    match asked.format {
        Format::Anthropic => anthropic::check(asked, body, limit),
        Format::OpenAiChat => chat::check(body, limit),
        Format::OpenAiResponses => responses::check(asked, body, limit),
        Format::Google => google::check(asked, body, limit),
    }
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(message()) }
}

/// Nothing but these fields.
fn only(fields: &Map<String, Value>, known: &[&str], message: impl Fn(&str) -> String) -> Verdict {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(message(unknown)),
        None => Ok(()),
    }
}

/// The elements of an array; none of anything else.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Whether an image of OpenAI's is somewhere else, or one of the four kinds that are looked at.
fn picture(url: &str) -> bool {
    let Some(data) = url.strip_prefix("data:") else { return !url.is_empty() };
    let (kind, data) = data.split_once(";base64,").unwrap_or_default();
    ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&kind) && !data.is_empty()
}

fn unsupported() -> String {
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].".to_owned()
}

/// Letters, digits, `_` and `-`, at least one and at most so many.
fn plain(name: &str, longest: usize) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.len() <= longest && name.bytes().all(plain)
}
