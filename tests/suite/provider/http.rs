//! HTTP/1.1 on one connection: requests as they come, replies with everything that can go wrong on their way.

use super::{
    formats::{Data, Event, Place},
    step::{End, Manner},
};
use serde_json::json;
use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

/// A byte stream: TCP, or TLS over it.
pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection of a client.
pub struct Wire {
    stream: Box<dyn Stream>,
    /// The socket below, for its timeouts.
    socket: TcpStream,
    unread: Vec<u8>,
}

/// A request as it came.
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A response to send.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Body,
    pub manner: Manner,
}

pub enum Body {
    Whole(Vec<u8>),
    Events(Vec<Event>),
    /// Not even a status.
    Never,
}

/// The client closed the connection before it had everything.
#[derive(Debug)]
pub struct Gone;

/// Whether the connection stays for the next request.
#[derive(Debug, PartialEq, Eq)]
pub enum After {
    Stays,
    Closes,
}

impl Wire {
    pub fn new(stream: Box<dyn Stream>, socket: TcpStream) -> Self {
        Self { stream, socket, unread: Vec::new() }
    }

    /// The next request; nothing when the client closed, or speaks no HTTP.
    pub fn request(&mut self) -> Option<Request> {
        let head = self.until(b"\r\n\r\n")?;
        let head = String::from_utf8(head).ok()?;
        let mut lines = head.trim_end().split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers: Vec<(String, String)> = lines.map(header).collect::<Option<_>>()?;
        let of = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let body = if of("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            self.chunks()?
        } else {
            let length = of("content-length").map_or(Some(0), |length| length.parse().ok())?;
            self.exactly(length)?
        };
        Some(Request { method, path, headers, body })
    }

    fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(self.until(b"\r\n")?).ok()?;
            let size = usize::from_str_radix(line.trim().split(';').next()?, 16).ok()?;
            let chunk = self.exactly(size + 2)?;
            if size == 0 {
                return Some(body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        let mut looked = 0;
        loop {
            if let Some(at) = self.unread[looked..].windows(mark.len()).position(|bytes| bytes == mark) {
                return self.exactly(looked + at + mark.len());
            }
            looked = (self.unread.len() + 1).saturating_sub(mark.len());
            self.fill()?;
        }
    }

    fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unread.len() < length {
            self.fill()?;
        }
        let rest = self.unread.split_off(length);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    fn fill(&mut self) -> Option<()> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => {
                    self.unread.extend_from_slice(&bytes[..count]);
                    return Some(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Says a reply in its manner.
    pub fn say(&mut self, reply: &Reply) -> Result<After, Gone> {
        match &reply.body {
            Body::Never => self.until_gone(),
            Body::Whole(bytes) => {
                let length = ("content-length".to_owned(), bytes.len().to_string());
                self.head(reply, "application/json", length)?;
                if let End::Cut(_) = reply.manner.end {
                    self.bytes(&bytes[..bytes.len() / 2], &reply.manner, false)?;
                    return Ok(After::Closes);
                }
                self.bytes(bytes, &reply.manner, false)?;
                Ok(After::Stays)
            }
            Body::Events(events) => {
                let coding = ("transfer-encoding".to_owned(), "chunked".to_owned());
                self.head(reply, "text/event-stream; charset=utf-8", coding)?;
                self.stream(events, &reply.manner)
            }
        }
    }

    fn head(&mut self, reply: &Reply, content: &str, framing: (String, String)) -> Result<(), Gone> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", reply.status, reason(reply.status));
        let ours = [("content-type".to_owned(), content.to_owned()), framing];
        let given = |name: &String| reply.manner.headers.iter().any(|(known, _)| known == name);
        let defaults = ours.iter().chain(&reply.headers).filter(|(name, _)| !given(name));
        for (name, value) in defaults.chain(&reply.manner.headers) {
            head += &format!("{name}: {value}\r\n");
        }
        self.write(format!("{head}\r\n").as_bytes())
    }

    fn stream(&mut self, events: &[Event], manner: &Manner) -> Result<After, Gone> {
        let events = ended(events, manner);
        let mut sent = 0;
        for (at, event) in events.iter().enumerate() {
            self.pause(if at == 0 { Duration::ZERO } else { manner.drip })?;
            let bytes = encoded(event, at, manner.torn);
            match manner.end {
                End::Cut(after) if after.min(events.len() - 1) == at => {
                    self.bytes(&bytes[..bytes.len() / 2], manner, true)?;
                    return Ok(After::Closes);
                }
                End::Hang(after) if after == at => self.until_gone()?,
                _ => self.bytes(&bytes, manner, true)?,
            };
            sent = at + 1;
            if manner.end == End::Never && event.place == Place::Delta {
                break;
            }
        }
        match manner.end {
            End::Hang(_) => self.until_gone(),
            End::Never => loop {
                self.pause(manner.drip)?;
                self.bytes(&encoded(&events[sent - 1], sent, manner.torn), manner, true)?;
            },
            _ => {
                self.write(b"0\r\n\r\n")?;
                Ok(After::Stays)
            }
        }
    }

    /// Writes bytes in one go or, torn, in many small ones that know nothing of characters.
    fn bytes(&mut self, bytes: &[u8], manner: &Manner, chunked: bool) -> Result<(), Gone> {
        let mut rest = bytes;
        let mut sizes = [1, 7, 2, 11, 3, 5, 23].iter().cycle();
        while !rest.is_empty() {
            let size = if manner.torn { *sizes.next().expect("a cycle") } else { rest.len() };
            let (now, later) = rest.split_at(size.min(rest.len()));
            if chunked {
                let mut chunk = format!("{:x}\r\n", now.len()).into_bytes();
                chunk.extend_from_slice(now);
                chunk.extend_from_slice(b"\r\n");
                self.write(&chunk)?;
            } else {
                self.write(now)?;
            }
            rest = later;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(|_| Gone)
    }

    /// Waits, and hears when the client closes meanwhile. Without a time it only listens.
    fn pause(&mut self, time: Duration) -> Result<(), Gone> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let heard = if left.is_zero() {
                self.socket.set_nonblocking(true).map_err(|_| Gone)?;
                let heard = self.hear();
                self.socket.set_nonblocking(false).map_err(|_| Gone)?;
                heard
            } else {
                self.socket.set_read_timeout(Some(left)).map_err(|_| Gone)?;
                let heard = self.hear();
                self.socket.set_read_timeout(None).map_err(|_| Gone)?;
                heard
            };
            if heard? || left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Reads once: whether nothing came in time.
    fn hear(&mut self) -> Result<bool, Gone> {
        let mut bytes = [0; 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Gone),
            Ok(count) => {
                self.unread.extend_from_slice(&bytes[..count]);
                Ok(false)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(true),
                ErrorKind::Interrupted => Ok(false),
                _ => Err(Gone),
            },
        }
    }

    /// Says nothing until the client closes.
    fn until_gone<T>(&mut self) -> Result<T, Gone> {
        while self.fill().is_some() {}
        Err(Gone)
    }

    /// Closes the connection for both sides, whoever else holds the socket.
    pub fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// The events that are sent at all.
fn ended(events: &[Event], manner: &Manner) -> Vec<Event> {
    let mut events = events.to_vec();
    match manner.end {
        End::Unfinished => events.retain(|event| event.place != Place::End),
        End::Unmarked => drop(events.pop()),
        _ => {}
    }
    if manner.malformed {
        let middle = events.len() / 2;
        let name = events.get(middle).and_then(|event| event.name.clone());
        events.insert(middle, Event { name, ..Event::raw("{\"text\": \"cut in the mid") });
    }
    events
}

/// An event as it stands in the stream, the `at`th of it.
fn encoded(event: &Event, at: usize, torn: bool) -> Vec<u8> {
    let data = match &event.data {
        Data::Raw(text) => text.clone(),
        Data::Json(value) => {
            let mut value = value.clone();
            let numbered = |name: &str| name.starts_with("response.") || (name == "error" && value["code"].is_string());
            if event.name.as_deref().is_some_and(numbered) {
                value["sequence_number"] = json!(at);
            }
            // JSON may break its lines, and an event has as many lines of data as it likes.
            if torn { format!("{value:#}") } else { value.to_string() }
        }
    };
    let line = if torn { "\r\n" } else { "\n" };
    let mut text = String::new();
    if torn {
        text += &format!(": ping{line}{line}");
    }
    if let Some(name) = &event.name {
        text += &format!("event: {name}{line}");
    }
    for part in data.split('\n') {
        text += &format!("data: {part}{line}");
    }
    (text + line).into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        529 => "Site Overloaded",
        _ => "Status",
    }
}
