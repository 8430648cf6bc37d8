//! Requests to providers over HTTP. The only file that uses reqwest. Dropping a request closes its connection.

#![expect(clippy::disallowed_methods, reason = "the deadline of a connection")]

use super::{
    Answer, Api, Delivery, Delta, Encoded, Endpoint, Part, Reach, Request, Trouble, TroubleKind,
    address::{
        self,
        withheld::{beginning_of_secret, without_secrets, without_secrets_as_it_stands},
    },
    body::{Body, Progress, Worth, endless},
    codec,
    format::WireFormat,
    keys,
};
use crate::{redact::secret::Secret, text};
use reqwest::{
    Client, Response, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use std::{error::Error as _, sync::OnceLock, time::Duration};
use tokio::time::Instant;

/// The HTTP client for all providers. Connections are reused.
#[derive(Debug, Default)]
pub struct Http {
    /// For `http://`, which needs no certificates: there may be none on this machine.
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

/// The longest wait for a connection.
const LONGEST_CONNECT: Duration = Duration::from_secs(15);

/// The part of an error's text that is kept, in characters.
const LONGEST_SAID: usize = 16 * 1024;

/// The part of an error's body that is read, in bytes. The bodies of providers have a few hundred.
const LONGEST_ERROR: usize = 64 * 1024;

/// One exchange.
enum Ask {
    /// A document is sent.
    Post(Encoded),
    /// The document at a path is read, with these headers.
    Get(&'static str, Vec<(&'static str, String)>),
}

impl Http {
    /// Sends a request and waits for the whole answer. `told` gets it piece by piece. It fails when no more of the answer
    /// comes for `stall`.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        stall: Duration,
        told: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Answer, Trouble> {
        let key = keys::key(&endpoint.key, stall).await.map_err(unsent)?;
        let key = key.as_ref();
        let mut guarded = Guarded { endpoint, key, held: String::new(), told };
        let asked = self.with_key(endpoint, key, request, stall, &mut |delta| guarded.take(delta)).await;
        // What a provider says may have in it what it was sent.
        match asked {
            Ok(mut answer) => {
                guarded.tell_all();
                for part in &mut answer.parts {
                    if let Part::Text { text, .. } = part {
                        *text = without_secrets_as_it_stands(std::mem::take(text), endpoint, key);
                    }
                }
                Ok(answer)
            }
            // Nobody reads more of it, and what is long takes long to look through.
            Err(trouble) => {
                Err(trouble.said_as(|said| without_secrets(text::head(said, LONGEST_SAID).to_owned(), endpoint, key)))
            }
        }
    }

    async fn with_key(
        &self,
        endpoint: &Endpoint,
        key: Option<&Secret>,
        request: &Request,
        stall: Duration,
        told: &mut (dyn FnMut(&Delta) + Send),
    ) -> Result<Answer, Trouble> {
        let encoded = codec::wire_format(endpoint.api).encode(request, Delivery::Stream);
        let response = self.send(endpoint, key, Ask::Post(encoded), stall).await?;
        read(response, endpoint.api, request, stall, told).await
    }

    /// Sends a request and waits for the JSON document that answers it, of at most `most` bytes. It fails when no more of
    /// the document comes for `stall`. The document has no secret of the endpoint in it.
    ///
    /// # Errors
    /// When there is no document.
    pub async fn post(
        &self,
        endpoint: &Endpoint,
        request: Encoded,
        most: u64,
        stall: Duration,
    ) -> Result<String, Trouble> {
        self.document(endpoint, Ask::Post(request), most, stall).await
    }

    /// Reads the JSON document at a path, of at most `most` bytes, with these headers. It fails when no more of the document
    /// comes for `stall`. The document has no secret of the endpoint in it.
    ///
    /// # Errors
    /// When there is no document.
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        path: &'static str,
        headers: Vec<(&'static str, String)>,
        most: u64,
        stall: Duration,
    ) -> Result<String, Trouble> {
        self.document(endpoint, Ask::Get(path, headers), most, stall).await
    }

    async fn document(&self, endpoint: &Endpoint, ask: Ask, most: u64, stall: Duration) -> Result<String, Trouble> {
        let key = keys::key(&endpoint.key, stall).await.map_err(unsent)?;
        let key = key.as_ref();
        let asked = async {
            let response = self.send(endpoint, key, ask, stall).await?;
            read_document(response, most, stall).await
        };
        match asked.await {
            Ok(document) => Ok(without_secrets_as_it_stands(document, endpoint, key)),
            Err(trouble) => {
                Err(trouble.said_as(|said| without_secrets(text::head(said, LONGEST_SAID).to_owned(), endpoint, key)))
            }
        }
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    /// When there is none, or its status is no success. A redirect is not followed.
    async fn send(
        &self,
        endpoint: &Endpoint,
        key: Option<&Secret>,
        ask: Ask,
        stall: Duration,
    ) -> Result<Response, Trouble> {
        let (path, body, needed) = match ask {
            Ask::Post(Encoded { path, body, headers }) => (path, Some(body), headers),
            Ask::Get(path, headers) => (path.to_owned(), None, headers),
        };
        let url = address(&endpoint.base_url, &path).map_err(unsent)?;
        let mut headers = headers(codec::wire_format(endpoint.api), key.map(Secret::reveal)).map_err(unsent)?;
        for (name, value) in &endpoint.headers {
            let (name, value) = (HeaderName::try_from(name.as_str()), secret_value(value.reveal()));
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.insert(name, value);
            }
        }
        for (name, value) in needed {
            // On one line with those of the endpoint: a proxy may read only one.
            let own = headers.get(name).and_then(|own| own.to_str().ok()).unwrap_or_default();
            let has = |value: &str| own.split(',').any(|own| own.trim() == value);
            let missing = value.split(',').filter(|value| !has(value));
            let joined: Vec<&str> = [own].into_iter().filter(|own| !own.trim().is_empty()).chain(missing).collect();
            if let Ok(value) = secret_value(&joined.join(",")) {
                headers.insert(name, value);
            }
        }
        let client = self.client(&url).map_err(unsent)?;
        let request = match body {
            // Its `Display` takes longer, which counts for a context of megabytes.
            Some(body) => {
                client.post(&url).body(serde_json::to_vec(&body).unwrap_or_else(|_| body.to_string().into_bytes()))
            }
            None => client.get(&url),
        };
        let response = within(stall, request.headers(headers).send()).await?.map_err(|error| trouble(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused(response, stall).await);
        }
        Ok(response)
    }

    fn client(&self, url: &str) -> Result<&Client, Trouble> {
        let secure = url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
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

impl Endpoint {
    /// Whether its address is one of this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        address::is_local(&self.base_url)
    }
}

/// Whether a URL is an address of a server.
///
/// # Errors
/// The reason why it is none.
pub fn is_address(url: &str) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url.trim()).map_err(|error| error.to_string())?;
    match parsed.scheme() {
        "http" | "https" => Ok(()),
        _ => Err("it begins neither with http:// nor with https://".to_owned()),
    }
}

/// Base URL and path. The query of the base URL stays at the end.
fn address(base_url: &str, path: &str) -> Result<String, Trouble> {
    let no_address =
        |what| Trouble::new(TroubleKind::NotFound, format!("the baseUrl is no address of a server ({what})"));
    // Before the path is after it: `http://` and a path would name a host.
    is_address(base_url).map_err(no_address)?;
    if path.is_empty() {
        return Ok(base_url.trim().to_owned());
    }
    let (base, query) = base_url.trim().split_once('?').unwrap_or((base_url.trim(), ""));
    let base = base.trim_end_matches('/');
    Ok(match (query, path.contains('?')) {
        ("", _) => format!("{base}{path}"),
        (query, true) => format!("{base}{path}&{query}"),
        (query, false) => format!("{base}{path}?{query}"),
    })
}

/// The headers of a request, with the key where there is one.
///
/// # Errors
/// When the key cannot stand in a header.
fn headers(format: &dyn WireFormat, key: Option<&str>) -> Result<HeaderMap, Trouble> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static("text/event-stream, application/json"));
    for (name, value) in format.headers() {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    let Some(key) = key else { return Ok(headers) };
    let (name, value) = format.key_header(key);
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

/// An answer piece by piece, without what an endpoint keeps to itself. The end of a piece that may begin a secret is held back, so
/// that no piece of it is half of a secret.
struct Guarded<'a> {
    endpoint: &'a Endpoint,
    key: Option<&'a Secret>,
    held: String,
    told: &'a mut (dyn FnMut(&Delta) + Send),
}

impl Guarded<'_> {
    fn take(&mut self, delta: &Delta) {
        let Delta::Text(text) = delta else {
            self.tell_all();
            return (self.told)(delta);
        };
        self.held.push_str(text);
        let whole = without_secrets_as_it_stands(std::mem::take(&mut self.held), self.endpoint, self.key);
        let end = beginning_of_secret(&whole, self.endpoint, self.key);
        self.held = whole[end..].to_owned();
        self.tell(&whole[..end]);
    }

    /// Tells what is held.
    fn tell_all(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.tell(&held);
    }

    fn tell(&mut self, text: &str) {
        if !text.is_empty() {
            (self.told)(&Delta::Text(text.to_owned()));
        }
    }
}

async fn within<T>(longest: Duration, work: impl Future<Output = T>) -> Result<T, Trouble> {
    let silent = |_| Trouble::new(TroubleKind::Stalled, format!("nothing came for {} s", longest.as_secs()));
    tokio::time::timeout(longest, work).await.map_err(silent)
}

/// The trouble of an answer with an error status.
async fn refused(mut response: Response, stall: Duration) -> Trouble {
    let status = response.status();
    let retry_after = retry_after(response.headers());
    let mut body = Vec::new();
    let whole = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes[..bytes.len().min(LONGEST_ERROR - body.len())]);
            if body.len() == LONGEST_ERROR {
                break;
            }
        }
    };
    // What there is of it then has to do.
    let _ = within(stall, whole).await;
    let body = String::from_utf8_lossy(&body);
    let said = match response.headers().get("location").and_then(|to| to.to_str().ok()) {
        Some(to) if status.is_redirection() => format!("it redirects to {to}; {body}"),
        _ => body.into_owned(),
    };
    let said = if said.trim().is_empty() { reason(status) } else { said };
    Trouble::of(Some(status.as_u16()), &said, retry_after).reaching(Reach::Refused)
}

/// The text for an error without a body, in the words of the providers' SDKs.
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
            positive(at.duration_since(crate::clock::now()).as_secs_f64())
        }
    }
}

/// The time for the tokens of an answer to follow its end. A chosen number: they come with the end or right after it.
const AFTER_THE_END: Duration = Duration::from_secs(5);

async fn read(
    mut response: Response,
    api: Api,
    request: &Request,
    stall: Duration,
    told: &mut (dyn FnMut(&Delta) + Send),
) -> Result<Answer, Trouble> {
    let kind = response.headers().get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let status = response.status().as_u16();
    let with_status = |trouble: Trouble| Trouble { status: trouble.status.or(Some(status)), ..trouble };
    let mut body = Body::new(api, request, &kind);
    let (mut progress, began) = (Progress::new(stall), Instant::now());
    let came = async {
        let mut ended = None;
        while !body.over() {
            // Some servers send no mark of the end, and leave the stream open.
            if body.has_ended() {
                ended.get_or_insert(began.elapsed() + stall.min(AFTER_THE_END));
            }
            let until = ended.unwrap_or(progress.until());
            let more = match tokio::time::timeout_at(began + until, response.chunk()).await {
                Ok(more) => more,
                Err(_) if ended.is_some() => break,
                Err(_) => return Err(progress.over()),
            };
            let Some(bytes) = more.map_err(|error| broken_off(&error))? else { break };
            let worth = body.take(&bytes, told).map_err(with_status)?;
            progress.came(worth, began.elapsed())?;
        }
        Ok(())
    };
    let came = came.await;
    let usage = body.usage();
    let with_cost = |trouble: Trouble| Trouble { usage, ..trouble };
    came.map_err(with_cost)?;
    let page = |text: &str| {
        let is_page = kind.contains("html") || text.trim_start().starts_with('<');
        is_page.then(|| Trouble::of(Some(status), text, None).garbled())
    };
    body.finish(page).map_err(with_status).map_err(with_cost)
}

/// Reads a JSON document of at most `most` bytes.
async fn read_document(mut response: Response, most: u64, stall: Duration) -> Result<String, Trouble> {
    let kind = response.headers().get("content-type").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let is_page = kind.to_ascii_lowercase().contains("html");
    let status = response.status().as_u16();
    let (mut progress, began) = (Progress::new(stall), Instant::now());
    let mut body: Vec<u8> = Vec::new();
    loop {
        let more = tokio::time::timeout_at(began + progress.until(), response.chunk());
        let more = more.await.map_err(|_| progress.over())?;
        let Some(bytes) = more.map_err(|error| broken_off(&error))? else { break };
        let bytes = if body.is_empty() { bytes.trim_ascii_start() } else { &bytes };
        body.extend_from_slice(bytes);
        if body.len() as u64 > most {
            return Err(endless(body.len() as u64));
        }
        let worth = if bytes.iter().all(u8::is_ascii_whitespace) { Worth::KeepAlive } else { Worth::Progress };
        progress.came(worth, began.elapsed())?;
    }
    let document = String::from_utf8_lossy(&body).into_owned();
    if is_page || document.starts_with('<') {
        return Err(Trouble::of(Some(status), &document, None).garbled());
    }
    Ok(document)
}

/// The trouble of a request that this side refuses.
fn unsent(trouble: Trouble) -> Trouble {
    trouble.reaching(Reach::Unsent)
}

/// The trouble of a request without the head of a response.
fn trouble(error: &reqwest::Error) -> Trouble {
    let text = in_full(error);
    let lower = text.to_ascii_lowercase();
    let certificate = ["certificate", "unknownissuer", "notvalidforname", "invalid peer", "handshake", "tls"];
    let kind = match () {
        () if error.is_builder() => TroubleKind::NotFound,
        // TLS was spoken to who does not speak it, or the other way round.
        () if lower.contains("corrupt message") || lower.contains("invalid http") => TroubleKind::Garbled,
        () if certificate.iter().any(|word| lower.contains(word)) => TroubleKind::Untrusted,
        () if error.is_connect() || error.is_timeout() => TroubleKind::Unreachable,
        () => TroubleKind::CutOff,
    };
    let reach = if error.is_builder() || error.is_connect() { Reach::Unsent } else { Reach::Sent };
    Trouble::new(kind, text).reaching(reach)
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
    use crate::provider::KeySource;

    #[test]
    fn a_path_goes_behind_the_base_and_before_its_query() {
        let row = |base: &str, path: &str, expected: &str| {
            assert_eq!(address(base, path).expect("an address"), expected);
        };
        row("http://h/v1/", "/chat/completions", "http://h/v1/chat/completions");
        row(" HTTPS://h/o?api-version=1", "/x", "HTTPS://h/o/x?api-version=1");
        row("https://h/v1beta?key=k", "/m:s?alt=sse", "https://h/v1beta/m:s?alt=sse&key=k");
        row("https://h/sum/?key=k", "", "https://h/sum/?key=k");
    }

    #[test]
    fn an_address_of_this_machine_is_local() {
        for (base_url, local) in [
            ("http://127.0.0.1:11434/v1", true),
            ("http://127.9.9.9/v1", true),
            ("http://[::1]:8080", true),
            ("http://[::ffff:127.0.0.1]/v1", true),
            ("http://0.0.0.0:8000/v1", true),
            (" http://LOCALHOST:1234/v1", true),
            ("http://models.localhost/v1", true),
            ("http://192.168.1.7:11434/v1", false),
            ("https://api.anthropic.com", false),
            ("https://localhost.example.com", false),
            ("https://127.example.com", false),
            ("nonsense", false),
        ] {
            let base_url = base_url.to_owned();
            let endpoint = Endpoint { api: Api::Anthropic, base_url, key: KeySource::None, headers: Vec::new() };
            assert_eq!(endpoint.is_local(), local, "{}", endpoint.base_url);
        }
    }

    #[test]
    fn what_is_no_address_is_asked_for_nothing() {
        for base in ["", "nonsense", "h/v1", "localhost:11434/v1", "ftp://h", "http://", "http://?x", "file:///v1"] {
            let trouble = address(base, "/chat/completions").expect_err(base);
            assert_eq!(trouble.kind, TroubleKind::NotFound);
            assert!(trouble.to_string().contains("baseUrl"), "{trouble}");
        }
    }

    /// A server that answers one request with an error whose body has up to 256 MiB. The thread returns how many bytes it
    /// could send before the client went away.
    fn endless_error() -> (std::net::SocketAddr, std::thread::JoinHandle<usize>) {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let _ = socket.read(&mut [0; 1 << 16]);
            let _ = socket.write_all(b"HTTP/1.1 500 Broken\r\ncontent-type: text/plain\r\n\r\n");
            let piece = [b'x'; 1 << 16];
            (0..4_096).take_while(|_| socket.write_all(&piece).is_ok()).count() * piece.len()
        });
        (address, server)
    }

    #[tokio::test]
    async fn an_endless_error_is_read_to_its_bound() {
        let (address, server) = endless_error();
        let client = Client::builder().no_proxy().build().expect("a client");
        let response = client.post(format!("http://{address}/")).send().await.expect("an answer");
        let trouble = refused(response, Duration::from_secs(600)).await;
        assert_eq!(trouble.status, Some(500));
        assert!(trouble.said.len() <= LONGEST_ERROR, "{}", trouble.said.len());
        // The buffers of the sockets hold a few megabytes of the rest.
        let sent = tokio::task::spawn_blocking(|| server.join().expect("the server ended")).await.expect("it ended");
        assert!(sent < 128 << 20, "{sent} bytes were taken");
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
