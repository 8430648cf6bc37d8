//! Asks a provider over HTTP. The only file that knows reqwest. Dropping a question closes its connection.

use super::{Answer, Api, Delivery, Delta, Encoded, Endpoint, Request, Trouble, TroubleKind, codec, keys, sse};
use reqwest::{
    Client, Response, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use std::{error::Error as _, sync::OnceLock, time::Duration};

/// Asks providers. Connections are kept and used again.
#[derive(Debug, Default)]
pub struct Http {
    /// For `http://`, which needs no certificates: there may be none on this machine.
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

/// A server that does not even take the connection is not there.
const LONGEST_CONNECT: Duration = Duration::from_secs(15);

/// So much of an error's body is read, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

impl Http {
    /// Asks, and waits for the whole answer. `told` hears of it piece by piece; without a byte for `stall` it ends.
    ///
    /// # Errors
    /// When there is no answer, by what to do about it.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        stall: Duration,
        told: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Answer, Trouble> {
        let key = keys::key(&endpoint.key).await?;
        let Encoded { path, body } = codec::encode(endpoint.api, request, Delivery::Stream);
        let url = address(&endpoint.base_url, &path);
        let mut headers = headers(endpoint.api, key.as_ref().map(crate::secret::Secret::reveal))?;
        for (name, value) in &endpoint.headers {
            let (name, value) = (HeaderName::try_from(name.as_str()), secret_value(value.reveal()));
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.insert(name, value);
            }
        }
        let client = self.client(&url)?;
        let sent = client.post(&url).headers(headers).body(body.to_string()).send();
        let response = within(stall, sent).await?.map_err(|error| trouble(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused(response, stall).await);
        }
        read(response, endpoint.api, request, stall, told).await
    }

    fn client(&self, url: &str) -> Result<&Client, Trouble> {
        let secure = url.starts_with("https://");
        let client = if secure { &self.secure } else { &self.plain };
        let made = client.get_or_init(|| {
            let builder = Client::builder()
                .connect_timeout(LONGEST_CONNECT)
                // A key is for who it was given for.
                .redirect(redirect::Policy::none())
                .user_agent(concat!("abridged/", env!("CARGO_PKG_VERSION")));
            let builder = if secure { builder } else { builder.tls_certs_only([]).no_proxy() };
            builder.build().map_err(|error| in_full(&error))
        });
        made.as_ref().map_err(|error| Trouble::new(TroubleKind::Untrusted, error.clone()))
    }
}

/// Base URL and path; what the base URL asks for behind a question mark stays behind everything.
fn address(base_url: &str, path: &str) -> String {
    let (base, query) = base_url.split_once('?').unwrap_or((base_url, ""));
    let base = base.trim_end_matches('/');
    match (query, path.contains('?')) {
        ("", _) => format!("{base}{path}"),
        (query, true) => format!("{base}{path}&{query}"),
        (query, false) => format!("{base}{path}?{query}"),
    }
}

fn headers(api: Api, key: Option<&str>) -> Result<HeaderMap, Trouble> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream, application/json"));
    if api == Api::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let Some(key) = key else { return Ok(headers) };
    let (name, value) = match api {
        Api::Anthropic => ("x-api-key", key.to_owned()),
        Api::Google => ("x-goog-api-key", key.to_owned()),
        Api::OpenaiChat | Api::OpenaiResponses | Api::Client => ("authorization", format!("Bearer {key}")),
    };
    let no_header = |_| Trouble::new(TroubleKind::Denied, "the key has characters that no key has");
    headers.insert(name, secret_value(&value).map_err(no_header)?);
    Ok(headers)
}

/// A header that no log shows.
fn secret_value(text: &str) -> Result<HeaderValue, reqwest::header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

async fn within<T>(longest: Duration, work: impl Future<Output = T>) -> Result<T, Trouble> {
    let silent = |_| Trouble::new(TroubleKind::Stalled, format!("nothing came for {} s", longest.as_secs()));
    tokio::time::timeout(longest, work).await.map_err(silent)
}

/// What an answer with a bad status means.
async fn refused(mut response: Response, stall: Duration) -> Trouble {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    while let Ok(Ok(Some(bytes))) = within(stall, response.chunk()).await {
        body.extend_from_slice(&bytes);
        if body.len() > LONGEST_ERROR {
            break;
        }
    }
    body.truncate(LONGEST_ERROR);
    let body = String::from_utf8_lossy(&body);
    let said = match response.headers().get("location").and_then(|to| to.to_str().ok()) {
        Some(to) if status.is_redirection() => format!("it redirects to {to}; {body}"),
        _ => body.into_owned(),
    };
    let said = if said.trim().is_empty() { reason(status) } else { said };
    Trouble::of(Some(status.as_u16()), &said, retry_after)
}

/// As SDKs put it where there is no body.
fn reason(status: StatusCode) -> String {
    format!("{} status code (no body)", status.as_u16())
}

/// When to ask again, in seconds or as a date, or in OpenAI's milliseconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let positive = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    if let Some(milliseconds) = text("retry-after-ms").and_then(|it| it.parse::<f64>().ok()) {
        return positive(milliseconds / 1_000.0);
    }
    let after = text("retry-after")?;
    match after.parse::<f64>() {
        Ok(seconds) => positive(seconds),
        Err(_) => {
            let at = jiff::fmt::rfc2822::parse(after).ok()?.timestamp();
            positive(at.duration_since(jiff::Timestamp::now()).as_secs_f64())
        }
    }
}

async fn read(
    mut response: Response,
    api: Api,
    request: &Request,
    stall: Duration,
    told: &mut (dyn FnMut(&Delta) + Send),
) -> Result<Answer, Trouble> {
    /// No token has more bytes on the wire, with everything around it. What comes beyond does not end by itself.
    const BYTES_OF_A_TOKEN: u64 = 2_048;
    let kind = response.headers().get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let status = response.status().as_u16();
    let most = request.max_tokens.unwrap_or(64_000).max(1_024).saturating_mul(BYTES_OF_A_TOKEN);
    let mut decoder = codec::Decoder::new(api);
    let mut events = sse::Parser::default();
    let mut whole: Option<Vec<u8>> = None;
    let mut length = 0_u64;
    let with_status = |trouble: Trouble| Trouble { status: trouble.status.or(Some(status)), ..trouble };
    while let Some(bytes) = within(stall, response.chunk()).await?.map_err(|error| broken_off(&error))? {
        length += bytes.len() as u64;
        if length > most {
            let what = format!("{length} bytes came and no end");
            return Err(with_status(Trouble::new(TroubleKind::Endless, what)));
        }
        if length == bytes.len() as u64 && !kind.contains("event-stream") && !looks_like_events(&bytes) {
            whole = Some(Vec::new());
        }
        if let Some(whole) = &mut whole {
            whole.extend_from_slice(&bytes);
            continue;
        }
        let too_large = |_| Trouble::new(TroubleKind::Garbled, "an event of its stream has no end");
        for event in events.push(&bytes).map_err(too_large)? {
            decoder.event(&event).map_err(with_status)?.iter().for_each(&mut *told);
        }
        if decoder.over() {
            break;
        }
    }
    if let Some(whole) = whole {
        let text = String::from_utf8_lossy(&whole);
        if kind.contains("html") || text.trim_start().starts_with('<') {
            return Err(with_status(Trouble::of(Some(status), &text, None)).garbled());
        }
        decoder.whole(&text).map_err(with_status)?;
    }
    decoder.finish().map_err(with_status)
}

/// Some servers send events and call them something else.
fn looks_like_events(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    [&b"data:"[..], b"event:", b":", b"id:"].iter().any(|field| start.starts_with(field))
}

/// Why nothing could be sent.
fn trouble(error: &reqwest::Error) -> Trouble {
    let text = in_full(error);
    let lower = text.to_ascii_lowercase();
    let certificate = ["certificate", "unknownissuer", "notvalidforname", "invalid peer", "handshake", "tls"];
    let kind = match () {
        () if error.is_builder() => TroubleKind::NotFound,
        () if certificate.iter().any(|word| lower.contains(word)) => TroubleKind::Untrusted,
        () if error.is_connect() || error.is_timeout() => TroubleKind::Unreachable,
        () => TroubleKind::CutOff,
    };
    Trouble::new(kind, text)
}

fn broken_off(error: &reqwest::Error) -> Trouble {
    Trouble::new(TroubleKind::CutOff, in_full(error))
}

/// An error with its causes, and without the address: a key may stand in it.
fn in_full(error: &reqwest::Error) -> String {
    let mut text = match error.url() {
        Some(url) => error.to_string().replace(&format!(" for url ({url})"), ""),
        None => error.to_string(),
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_behind_the_base_and_before_its_query() {
        assert_eq!(address("http://h/v1/", "/chat/completions"), "http://h/v1/chat/completions");
        assert_eq!(address("https://h/o?api-version=1", "/x"), "https://h/o/x?api-version=1");
        assert_eq!(address("https://h/v1beta?key=k", "/m:s?alt=sse"), "https://h/v1beta/m:s?alt=sse&key=k");
    }

    #[test]
    fn when_to_ask_again_comes_in_several_forms() {
        let after = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).expect("a value"));
            retry_after(&headers)
        };
        assert_eq!(after("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(after("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("retry-after-ms", "1500"), Some(Duration::from_millis(1_500)));
        assert_eq!(after("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert_eq!(after("retry-after", "soon"), None);
    }
}
