//! Turns that the daemon runs: from a message to the request for it, from a piece of an answer to its event, and cancels.

use super::{Daemon, Report, median, milliseconds, models::length_of_body, sessions};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// Turns of a row.
const TURNS: usize = 21;

/// Pieces of the answer whose events are timed, and the time between two.
const PIECES: usize = 300;
const BETWEEN: Duration = Duration::from_millis(10);

/// An answer of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// One word, at once.
    AtOnce,
    /// Many pieces, a hundred in a second.
    InPieces,
    /// None.
    Never,
}

/// An event at the provider.
enum Seen {
    /// The first byte of a request was there.
    Request(Instant),
    /// A piece is about to be sent.
    Piece(Instant),
}

/// A provider on loopback that streams, in the format of chat completions.
struct Provider {
    url: String,
    answers: Sender<Answer>,
    seen: Receiver<Seen>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let ((answers, next), (tell, seen)) = (channel(), channel());
        // The daemon has one request at a time.
        thread::spawn(move || {
            let mut open = Vec::new();
            for connection in listener.incoming().flatten() {
                open.extend(serve(connection, &next, &tell));
            }
        });
        Self { url, answers, seen }
    }

    fn request(&self) -> Instant {
        match self.seen.recv().expect("the provider runs") {
            Seen::Request(at) => at,
            Seen::Piece(_) => panic!("a request comes first"),
        }
    }
}

fn piece(text: &str, end: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": end}]}))
}

/// Answers one request. Returns the connection, if it is to stay open.
fn serve(mut connection: TcpStream, next: &Receiver<Answer>, tell: &Sender<Seen>) -> Option<TcpStream> {
    connection.set_nodelay(true).expect("a socket");
    let mut from = BufReader::new(connection.try_clone().expect("a second handle"));
    from.fill_buf().ok()?;
    tell.send(Seen::Request(Instant::now())).ok()?;
    let mut body = vec![0; length_of_body(&mut from)?];
    from.read_exact(&mut body).ok()?;
    let answer = next.recv().ok()?;
    if answer == Answer::Never {
        return Some(connection);
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    connection.write_all(head.as_bytes()).ok()?;
    for _ in 0..if answer == Answer::InPieces { PIECES } else { 0 } {
        thread::sleep(BETWEEN);
        tell.send(Seen::Piece(Instant::now())).ok()?;
        connection.write_all(piece("word ", None).as_bytes()).ok()?;
    }
    connection.write_all(format!("{}data: [DONE]\n\n", piece("Done.", Some("stop"))).as_bytes()).ok()?;
    None
}

fn daemon(file: &Path, provider: &Provider) -> Daemon {
    let mut daemon = Daemon::start();
    let model = json!({"provider": "bench", "id": "model", "api": "openai_chat", "baseUrl": provider.url,
        "contextWindow": 100_000_000, "maxOutputTokens": 1_000});
    let settings = json!({"models": [model], "defaultModel": "bench/model", "compaction": {"speculative": false}});
    daemon.call("session/load", json!({"path": file, "settings": settings}));
    daemon
}

fn prompt(daemon: &mut Daemon) -> Instant {
    let sent = Instant::now();
    daemon.send(7, "session/prompt", &json!({"sessionId": "bench", "message": "Go on."}));
    daemon.flush();
    sent
}

/// Reads frames up to this event.
fn until(daemon: &mut Daemon, event: &str) {
    let wanted = format!(r#""type":"{event}""#);
    while !daemon.read().contains(&wanted) {}
}

/// The time of an fsync after a line, as the message of a turn needs one.
fn fsync(folder: &Path) -> Duration {
    let mut file = fs::File::create(folder.join("synced")).expect("a file");
    let times = (0..TURNS).map(|_| {
        let started = Instant::now();
        file.write_all(&[b'x'; 300]).and_then(|()| file.sync_data()).expect("it is on disk");
        started.elapsed()
    });
    median(times.collect())
}

/// From a message to the first byte of the request for it, behind so many bytes of conversation.
fn to_the_wire(file: &Path) -> Duration {
    let provider = Provider::start();
    let mut daemon = daemon(file, &provider);
    let mut times = Vec::new();
    // The first turn counts the conversation, and opens what later ones use.
    for turn in 0..=TURNS {
        let sent = prompt(&mut daemon);
        let arrived = provider.request();
        provider.answers.send(Answer::AtOnce).expect("the provider runs");
        until(&mut daemon, "settled");
        times.extend((turn > 0).then(|| arrived - sent));
    }
    median(times)
}

/// From a piece of an answer at the provider to its event at the client.
fn deltas(file: &Path) -> Duration {
    let provider = Provider::start();
    let mut daemon = daemon(file, &provider);
    prompt(&mut daemon);
    provider.request();
    provider.answers.send(Answer::InPieces).expect("the provider runs");
    let mut times = Vec::new();
    for _ in 0..PIECES {
        until(&mut daemon, "message_delta");
        let arrived = Instant::now();
        match provider.seen.recv().expect("the provider runs") {
            Seen::Piece(sent) => times.push(arrived - sent),
            Seen::Request(_) => panic!("no other request comes"),
        }
    }
    median(times)
}

/// The same way through `cat`: what the machine takes for it.
fn copies() -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("a socket");
    let (mut provider, _) = listener.accept().expect("a socket");
    provider.set_nodelay(true).expect("a socket");
    let mut cat = Command::new("cat")
        .stdin(Stdio::from(OwnedFd::from(stream)))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat starts");
    let mut from = BufReader::new(cat.stdout.take().expect("a pipe"));
    let (tell, sent) = channel();
    let sending = thread::spawn(move || {
        for _ in 0..PIECES {
            thread::sleep(BETWEEN);
            tell.send(Instant::now()).expect("the bench reads");
            let line = piece("word ", None).replace("\n\n", "\n");
            provider.write_all(line.as_bytes()).expect("cat reads");
        }
    });
    let mut times = Vec::new();
    for _ in 0..PIECES {
        from.read_line(&mut String::new()).expect("cat writes");
        times.push(Instant::now() - sent.recv().expect("the provider runs"));
    }
    sending.join().expect("no panic");
    let _ = cat.wait();
    median(times)
}

/// From a cancel to its answer, and to the end of the turn, while a model is silent.
fn cancels(file: &Path) -> [Duration; 2] {
    let provider = Provider::start();
    let mut daemon = daemon(file, &provider);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        prompt(&mut daemon);
        provider.request();
        provider.answers.send(Answer::Never).expect("the provider runs");
        let sent = Instant::now();
        daemon.send(9, "session/cancel", &json!({"sessionId": "bench"}));
        daemon.flush();
        loop {
            let frame: Value = serde_json::from_str(daemon.read()).expect("JSON");
            if frame["id"] == 9 {
                times[0].push(sent.elapsed());
            }
            if frame["params"]["event"]["type"] == "turn_end" {
                times[1].push(sent.elapsed());
            }
            if frame["params"]["event"]["type"] == "settled" {
                break;
            }
        }
    }
    times.map(median)
}

/// Turns at each size.
pub fn turns(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.jsonl");
    report.add("an fsync after a line", milliseconds(fsync(folder.path())), "ms", "");
    for (name, kilobytes, goal) in
        [("10 KB", 10, "5 + fsync"), ("1 MB", 1_000, "7 + fsync"), ("10 MB", 10_000, "25 + fsync")]
    {
        sessions::session(&file, kilobytes * 1_000, false);
        report.add(format!("{name}: from a prompt to its request"), milliseconds(to_the_wire(&file)), "ms", goal);
    }
    sessions::session(&file, 10_000, false);
    let (events, copies) = (milliseconds(deltas(&file)) * 1_000.0, milliseconds(copies()) * 1_000.0);
    report.add("from a piece of an answer, over HTTP, to its event", events, "µs", "");
    report.add("the same way through cat", copies, "µs", "");
    report.add("from a piece of an answer to its event, in the daemon", events - copies, "µs", "200");
    let [answered, ended] = cancels(&file);
    report.add("from a cancel to its answer", milliseconds(answered), "ms", "10");
    report.add("from a cancel to turn_end", milliseconds(ended), "ms", "");
}
