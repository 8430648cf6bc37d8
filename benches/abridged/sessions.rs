//! Sessions of a megabyte to a gigabyte, and thousands of them.

use super::{Daemon, Report, median, milliseconds};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    time::{Duration, Instant},
};

/// The part that a context needs, in bytes: some 340 messages.
const TAIL: u64 = 840_000;

/// Writes a session of about so many bytes.
pub struct Writer {
    out: BufWriter<File>,
    /// Bytes of the lines so far.
    pub bytes: u64,
    count: u64,
    /// The parent of the next entry.
    pub parent: Option<String>,
    texts: Vec<String>,
}

impl Writer {
    /// A file with a header of this id.
    pub fn new(path: &Path, id: &str) -> Self {
        let words = ["let", "value", "read", "part", "config", "limits", "context", "error", "path", "module", "test"];
        // A small generator of our own: the same sessions in every run.
        let mut state = 0x9E37_79B9_u64;
        let mut word = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            words[(state % words.len() as u64) as usize]
        };
        let texts = (0..40)
            .map(|_| (0..1_500).map(|at| if at % 12 == 0 { "\n".to_owned() } else { format!("{} ", word()) }).collect())
            .collect();
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
        let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/bench"});
        writeln!(out, "{header}").expect("it is written");
        Self { out, bytes: 0, count: 0, parent: None, texts }
    }

    /// Goes on after the last entry of the file. Its bytes are counted from here on.
    pub fn further(self, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a session");
        let last: Value = serde_json::from_str(text.lines().next_back().expect("a line")).expect("an entry");
        let parent = last["id"].as_str().map(str::to_owned);
        let out = BufWriter::new(File::options().append(true).open(path).expect("a file"));
        Self { out, bytes: 0, count: self.count + 1_000_000, parent, texts: self.texts }
    }

    fn add(&mut self, body: Value) -> String {
        let id = format!("{:08x}", self.count);
        // Ids and time stand behind the type, as pi writes them.
        let mut line =
            json!({"type": body["type"], "id": id, "parentId": self.parent, "timestamp": "2026-01-01T00:00:00.000Z"});
        body.as_object().expect("an object").iter().skip(1).for_each(|(key, value)| line[key] = value.clone());
        let text = line.to_string();
        writeln!(self.out, "{text}").expect("it is written");
        self.bytes += text.len() as u64 + 1;
        self.count += 1;
        self.parent = Some(id.clone());
        id
    }

    /// Writes what is buffered.
    pub fn flush(&mut self) {
        self.out.flush().expect("it is written");
    }

    fn turn(&mut self) -> String {
        let at = self.count;
        let text = self.texts[(at as usize / 4) % self.texts.len()].clone();
        let message = |message: Value| json!({"type": "message", "message": message});
        let first = self.add(message(
            json!({"role": "user", "content": [{"type": "text", "text": format!("Request {at}: look at part_{at}.")}]}),
        ));
        let call = json!({"type": "toolCall", "id": format!("c{at}"), "name": "read", "arguments": {"path": format!("src/part_{at}.rs")}});
        self.add(message(json!({"role": "assistant", "content": [call], "stopReason": "toolUse"})));
        self.add(message(json!({"role": "toolResult", "toolCallId": format!("c{at}"), "toolName": "read", "content": [{"type": "text", "text": text}], "isError": false})));
        let answer = format!("Part {at} is fine. {}", &text[..400]);
        self.add(message(
            json!({"role": "assistant", "content": [{"type": "text", "text": answer}], "stopReason": "stop"}),
        ));
        first
    }

    /// Adds turns until the lines have so many bytes.
    pub fn turns(&mut self, until: u64) {
        while self.bytes < until {
            self.turn();
        }
    }

    /// The end of a session that was compacted: half of the tail is kept, half came since.
    fn end(&mut self) {
        self.end_of(TAIL);
    }

    /// The same with an active part of so many bytes.
    pub fn end_of(&mut self, active: u64) {
        let kept = self.turn();
        self.turns(self.bytes + active / 2);
        self.add(json!({"type": "compaction", "summary": "What happened. ".repeat(300), "firstKeptEntryId": kept, "tokensBefore": 100_000}));
        self.turns(self.bytes + active / 2);
    }
}

/// Writes a session of so many bytes with the id `bench`, whose end is compacted or not.
pub fn session(path: &Path, bytes: u64, compacted: bool) {
    let mut writer = Writer::new(path, "bench");
    writer.turns(if compacted { bytes.saturating_sub(TAIL) } else { bytes });
    if compacted {
        writer.end();
    }
}

/// Opens a file, so that it can be cut or synced.
pub fn open_file(path: &Path) -> File {
    File::options().write(true).open(path).expect("a file")
}

/// Writes a session of so many bytes without a compaction.
pub fn named_session(path: &Path, id: &str, bytes: u64) {
    Writer::new(path, id).turns(bytes);
}

/// Resident memory and its peak, in MB.
pub fn memory(daemon: &Daemon) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches(':')
            .split_whitespace()
            .next()
            .and_then(|number| number.parse::<f64>().ok())
            .unwrap_or(0.0)
            / 1024.0
    };
    (field("VmRSS"), field("VmHWM"))
}

/// Waits until nothing is read or counted any more, which is when its memory has stopped changing.
fn settled(daemon: &mut Daemon) -> (f64, f64) {
    let mut before = (0.0, 0.0);
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = memory(daemon);
        if (now.0 - before.0).abs() < 0.5 {
            return now;
        }
        before = now;
    }
}

/// A session that was opened, and the times since its load was sent.
pub struct Opened {
    daemon: Daemon,
    /// Until the load was answered.
    pub load: Duration,
    /// Until the first context was there too.
    pub context: Duration,
    /// Until the index was there.
    pub index: Duration,
    bytes: usize,
}

/// Opens a session in a daemon of its own.
pub fn open(file: &Path) -> Opened {
    open_with(Daemon::start(), file)
}

/// Opens the session of a file read-only, asks for its context and waits for its index.
pub fn open_with(mut daemon: Daemon, file: &Path) -> Opened {
    let started = Instant::now();
    daemon.send(1, "session/load", &json!({"path": file, "readOnly": true}));
    daemon.flush();
    let (loaded, arrival) = daemon.answer_with_arrival();
    let load = arrival - started;
    daemon.send(1, "session/context", &json!({"sessionId": "bench"}));
    daemon.flush();
    let mut bytes = 0;
    let mut index = if loaded["indexed"] == true { Some(load) } else { None };
    let mut context = None;
    while context.is_none() || index.is_none() {
        let line = daemon.read();
        if line.starts_with(r#"{"jsonrpc":"2.0","id":1"#) {
            bytes = line.len();
            context = Some(started.elapsed());
        } else if line.contains(r#""type":"index_ready""#) {
            index = Some(started.elapsed());
        }
    }
    Opened { daemon, load, context: context.unwrap_or_default(), index: index.unwrap_or_default(), bytes }
}

fn search(daemon: &mut Daemon, query: &str) -> Duration {
    let times = (0..5)
        .map(|_| {
            let started = Instant::now();
            daemon.call("session/search", json!({"sessionId": "bench", "query": query}));
            started.elapsed()
        })
        .collect();
    median(times)
}

/// Sessions of every size with the same active end.
pub fn sizes(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, megabytes, goal) in [("1 MB", 1, ""), ("10 MB", 10, ""), ("100 MB", 100, ""), ("1 GB", 1_000, "20")] {
        let file = folder.path().join("bench.jsonl");
        session(&file, megabytes * 1_000_000, true);
        let mut runs: Vec<Opened> = (0..if megabytes == 1_000 { 3 } else { 7 }).map(|_| open(&file)).collect();
        let of = |part: fn(&Opened) -> Duration| milliseconds(median(runs.iter().map(part).collect()));
        report.add(format!("{name}: load"), of(|run| run.load), "ms", "");
        report.add(format!("{name}: load and first context"), of(|run| run.context), "ms", goal);
        report.add(
            format!("{name}: index, since the load was sent"),
            of(|run| run.index),
            "ms",
            if megabytes == 1_000 { "1,000" } else { "" },
        );
        let mut last = runs.pop().expect("there were runs").daemon;
        drop(runs);
        if megabytes == 1_000 {
            let fresh = open_without_index(&file);
            report.add(
                "1 GB: resident after the first context, before tables and index".to_owned(),
                fresh,
                "MB",
                "75 with tables",
            );
        }
        let (resident, peak) = settled(&mut last);
        report.add(
            format!("{name}: resident with tables and index"),
            resident,
            "MB",
            if megabytes == 1_000 { "100" } else { "" },
        );
        report.add(format!("{name}: peak"), peak, "MB", "");
        if megabytes == 100 {
            report.add(
                "search of a word in 100 MB".to_owned(),
                milliseconds(search(&mut last, "part_17")),
                "ms",
                "150",
            );
            report.add(
                "search of what is not in 100 MB".to_owned(),
                milliseconds(search(&mut last, "nowhere at all")),
                "ms",
                "",
            );
        }
    }
}

fn open_without_index(file: &Path) -> f64 {
    let mut daemon = Daemon::start();
    daemon.call("session/load", json!({"path": file, "readOnly": true}));
    daemon.call("session/context", json!({"sessionId": "bench"}));
    memory(&daemon).0
}

/// 100 MB of which all is active, and a branch whose parent lies far back.
pub fn without_compaction(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.jsonl");
    session(&file, 100_000_000, false);
    let size = fs::metadata(&file).expect("a file").len() as f64 / 1e6;
    let mut runs: Vec<Opened> = (0..3).map(|_| open(&file)).collect();
    let load = median(runs.iter().map(|run| run.load).collect());
    let context = median(runs.iter().map(|run| run.context).collect());
    report.add("100 MB without a compaction: load".to_owned(), size / load.as_secs_f64(), "MB/s", "250");
    report.add(
        "100 MB without a compaction: load and context of 96 MB".to_owned(),
        size / context.as_secs_f64(),
        "MB/s",
        "",
    );
    assert!(runs[0].bytes as f64 > 0.9 * 1e6 * size, "all of it is in the context");
    let mut last = runs.pop().expect("there were runs").daemon;
    let (_, peak) = settled(&mut last);
    report.add("100 MB without a compaction: peak, by the size of the file".to_owned(), peak / size, "times", "2.5");

    let mut writer = Writer::new(&file, "bench");
    writer.turns(1_000);
    let early = writer.parent.clone();
    writer.turns(100_000_000);
    writer.parent = early;
    writer.turn();
    drop(writer);
    let far = median((0..3).map(|_| open(&file).context).collect());
    report.add("100 MB, the leaf's parent at the beginning: load and context".to_owned(), milliseconds(far), "ms", "");
}

/// A client with a thousand sessions, none of which it looks at.
pub fn idle_sessions(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = Daemon::start();
    let mut times = Vec::new();
    for at in 0..1_000 {
        let file = folder.path().join(format!("{at}.jsonl"));
        let mut writer = Writer::new(&file, &format!("idle-{at}"));
        writer.turns(1_000_000);
        drop(writer);
        let started = Instant::now();
        daemon.call("session/load", json!({"path": file}));
        times.push(started.elapsed());
    }
    report.add("1,000 sessions of 1 MB: load of each".to_owned(), milliseconds(median(times)), "ms", "");
    let (resident, peak) = settled(&mut daemon);
    report.add("1,000 idle sessions of 1 MB: resident".to_owned(), resident, "MB", "150");
    report.add("1,000 idle sessions of 1 MB: peak on the way".to_owned(), peak, "MB", "");
    let started = Instant::now();
    daemon.call("session/context", json!({"sessionId": "idle-17"}));
    report.add("a context of one of them".to_owned(), milliseconds(started.elapsed()), "ms", "");
}

/// A client with a thousand sessions that wait for their idle maintenance.
pub fn idle_timers(report: &mut Report) {
    const SESSIONS: u32 = 1_000;
    const WATCHED: Duration = Duration::from_secs(90);
    let mut daemon = Daemon::start();
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop",
        "timestamp": 1});
    let asked = json!({"role": "user", "content": "Look at the next file. ".repeat(400), "timestamp": 1});
    let compaction = json!({"idleEnabled": true, "idleTimeoutSeconds": 3_600, "idleThresholdTokens": 1_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "compaction": compaction});
    for _ in 0..SESSIONS {
        let session = daemon.call("session/new", json!({"cwd": "/project", "settings": settings}));
        let id = session["session"]["sessionId"].clone();
        daemon.call("session/append", json!({"sessionId": id, "messages": [asked, answer]}));
    }
    // The time in which the sessions drop their bodies is in it.
    let (before, began) = (processor_time(daemon.id()), Instant::now());
    std::thread::sleep(WATCHED);
    let used = processor_time(daemon.id()).saturating_sub(before);
    let percent = 100.0 * used.as_secs_f64() / began.elapsed().as_secs_f64();
    report.add("1,000 idle timers: processor time".to_owned(), percent, "% of a core", "0.1");
}

/// The time that a process took of all processors.
fn processor_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    // The name in parentheses may have spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// A client that shows a list of all sessions.
pub fn listing(report: &mut Report) {
    let mut daemon = Daemon::start();
    for folder in 0..50 {
        let folder = daemon.home().join(format!("data/sessions/--project-{folder}--"));
        fs::create_dir_all(&folder).expect("a folder");
        for at in 0..100 {
            let mut writer = Writer::new(&folder.join(format!("{at}.jsonl")), &format!("listed-{at}"));
            writer.turns(9_000);
        }
    }
    let list = |daemon: &mut Daemon| {
        let started = Instant::now();
        let answer = daemon.call("session/list", json!({"limit": 100}));
        assert_eq!(answer["sessions"].as_array().map(Vec::len), Some(100));
        milliseconds(started.elapsed())
    };
    report.add("list of 5,000 sessions nobody has read yet".to_owned(), list(&mut daemon), "ms", "");
    report.add("list of 5,000 sessions, again".to_owned(), list(&mut daemon), "ms", "50");
    let mut next = daemon.again();
    report.add("list of 5,000 sessions, the first of another daemon".to_owned(), list(&mut next), "ms", "50");
}
