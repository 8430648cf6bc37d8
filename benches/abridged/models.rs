//! Cost of a summary by a model, without the model's own time: reading the conversation, the wire, and the daemon.

use super::{Daemon, Report, SCALE, demand, median, milliseconds, path_of};
use abridged::{
    provider::{Api, codec::Decoder, sse},
    redact::redact,
    settings::Settings,
    summary::{cleaner::Cleaner, files::FileLists, model::material::Material},
};
use serde_json::{Value, json};
use std::{
    fs,
    hint::black_box,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Instant,
};

/// All of it.
pub fn models(report: &mut Report) {
    material(report);
    stream(report);
    whole(report);
}

fn material(report: &mut Report) {
    let (path, bytes) = path_of(300_000);
    path.iter().for_each(|entry| entry.count());
    let plan = abridged::compaction::plan::plan(path.clone(), demand(20_000), Arc::default()).expect("long enough");
    let settings = Settings::default();
    let times = (0..7)
        .map(|_| {
            let started = Instant::now();
            let files = FileLists::default();
            black_box(Material::of(plan.span(), &files, 10_000, &Cleaner::new(&settings), SCALE, &|| false).replaces);
            started.elapsed()
        })
        .collect();
    report.add(
        "reading a conversation for a model, per MB",
        milliseconds(median(times)) / bytes as f64 * 1e6,
        "ms",
        "",
    );
    let text: String = path.iter().map(|entry| entry.line()).collect();
    let times = (0..7)
        .map(|_| {
            let started = Instant::now();
            black_box(redact(&text).len());
            started.elapsed()
        })
        .collect();
    report.add("looking for secrets, per MB", milliseconds(median(times)) / text.len() as f64 * 1e6, "ms", "");
}

fn stream(report: &mut Report) {
    let delta =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a few words "}});
    let start = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let mut text = format!("event: content_block_start\ndata: {start}\n\n");
    while text.len() < 4 << 20 {
        text.push_str(&format!("event: content_block_delta\ndata: {delta}\n\n"));
    }
    let times = (0..5)
        .map(|_| {
            let (mut parser, mut decoder) = (sse::Parser::default(), Decoder::new(Api::Anthropic));
            let started = Instant::now();
            for piece in text.as_bytes().chunks(4_096) {
                for event in parser.push(piece).expect("small events") {
                    black_box(decoder.event(&event).expect("right events").len());
                }
            }
            started.elapsed()
        })
        .collect();
    report.add(
        "reading a stream of an answer, per MB",
        milliseconds(median(times)) / text.len() as f64 * 1e6,
        "ms",
        "",
    );
}

/// A model that answers at once: what is left is ours.
fn whole(report: &mut Report) {
    let provider = Provider::start();
    let (path, _) = path_of(100_000);
    let header = json!({"type": "session", "version": 3, "id": "bench", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/bench"});
    let text: String =
        std::iter::once(format!("{header}\n")).chain(path.iter().map(|entry| format!("{}\n", entry.line()))).collect();
    let settings = json!({
        "defaultModel": "bench/model",
        "models": [{"provider": "bench", "id": "model", "api": "openai_chat", "baseUrl": provider.url(), "contextWindow": 200_000}],
    });
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..7 {
        for (method, times) in ["llm", "extractive"].into_iter().zip(&mut times) {
            let mut daemon = Daemon::start();
            let file = daemon.home().join("bench.jsonl");
            fs::write(&file, &text).expect("a file");
            let load = json!({"path": file, "settings": settings});
            daemon.call("session/load", load);
            // Counted, so that only the compaction is measured.
            daemon.call("session/compact", json!({"sessionId": "bench", "dryRun": true}));
            let compact = json!({"sessionId": "bench", "wait": true, "method": method});
            let started = Instant::now();
            let done = daemon.call("session/compact", compact);
            times.push(started.elapsed());
            assert_eq!(done["result"]["method"], method, "{done:#}");
        }
    }
    let [by_model, extracted] = times.map(median);
    report.add("session/compact of 100k tokens by a model that answers at once", milliseconds(by_model), "ms", "");
    report.add("the same, extracted", milliseconds(extracted), "ms", "");
}

/// A provider on loopback that answers every request at once, over HTTP. Its threads end with the process.
pub struct Provider {
    url: String,
    last_bytes: LastBytes,
    first_head: FirstHead,
}

/// The time of the head of the first request, since the heads were forgotten.
type FirstHead = Arc<Mutex<Option<Instant>>>;

/// The times at which the last bytes of the latest summary and of the latest answer were sent.
type LastBytes = Arc<Mutex<Option<(Instant, Instant)>>>;

impl Provider {
    /// Starts it.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let last_bytes = LastBytes::default();
        let first_head = FirstHead::default();
        let (noted, head) = (last_bytes.clone(), first_head.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (noted, head) = (noted.clone(), head.clone());
                std::thread::spawn(move || serve(connection, &noted, &head));
            }
        });
        Self { url, last_bytes, first_head }
    }

    /// Forgets the requests so far.
    pub fn forget_heads(&self) {
        *self.first_head.lock().expect("no panic") = None;
    }

    /// The time of the head of the first request.
    pub fn first_head(&self) -> Instant {
        self.first_head.lock().expect("no panic").expect("it was asked")
    }

    /// The `baseUrl` of its model.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The times at which the last bytes of the latest summary and of the latest answer were sent.
    pub fn last_bytes(&self) -> (Instant, Instant) {
        self.last_bytes.lock().expect("no panic").expect("it was asked")
    }
}

/// Reads the head of a request. Returns the length of its body, in bytes; none at the end of the connection.
pub fn length_of_body(from: &mut impl BufRead) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            return Some(length);
        }
    }
}

fn serve(
    connection: std::net::TcpStream,
    last_bytes: &Mutex<Option<(Instant, Instant)>>,
    first_head: &Mutex<Option<Instant>>,
) {
    /// It has headings of a history summary and of a turn prefix, so that it serves as both.
    const SUMMARY: &str =
        "## Original Request\nGo on.\n\n## Goal\nGo on.\n\n## Progress\n### Done\n- [x] much\n\n## Next Steps\n1. more";
    let mut from = BufReader::new(connection.try_clone().expect("a second handle"));
    let mut to = connection;
    loop {
        let Some(length) = length_of_body(&mut from) else { return };
        first_head.lock().expect("no panic").get_or_insert_with(Instant::now);
        let mut body = vec![0; length];
        if from.read_exact(&mut body).is_err() {
            return;
        }
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let short = asked["max_tokens"].as_u64().is_some_and(|most| most <= 512);
        let said = if short { "Went on with the work. More is to come." } else { SUMMARY };
        let answer = json!({
            "choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": body.len() / 4, "completion_tokens": 50},
        })
        .to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
        // Noted before the write: the daemon reads it at the same time.
        let now = Instant::now();
        let mut noted = last_bytes.lock().expect("no panic");
        *noted = Some((noted.filter(|_| short).map_or(now, |(summary, _)| summary), now));
        drop(noted);
        if to.write_all(format!("{head}{answer}").as_bytes()).is_err() {
            return;
        }
    }
}
