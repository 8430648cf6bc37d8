//! Answers that a person at a screen waits for: pages of entries, fitted contexts, provider formats, and commands of the shell.

use super::{
    Daemon, Report,
    daemon::THIS,
    median, milliseconds,
    sessions::{self, Writer},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The times of a request, without the reading of its answer as JSON.
fn times(daemon: &mut Daemon, count: usize, method: &str, params: impl Fn(usize) -> Value) -> Vec<Duration> {
    (0..count)
        .map(|at| {
            let params = params(at);
            let started = Instant::now();
            daemon.send(1, method, &params);
            daemon.flush();
            daemon.answer_with_arrival().1 - started
        })
        .collect()
}

/// Pages of 100 entries, back from the end of a session of 1 GB.
pub fn paging(report: &mut Report) {
    let mut daemon = Daemon::start();
    let file = daemon.home().join("bench.jsonl");
    sessions::session(&file, 1_000_000_000, true);
    daemon.call("session/load", json!({"path": file, "readOnly": true}));
    // The index is there from here on.
    daemon.call("session/tree", json!({"sessionId": "bench", "limit": 1}));
    let mut before = json!("leaf");
    let mut pages = Vec::new();
    for _ in 0..50 {
        let started = Instant::now();
        daemon.send(1, "session/entries", &json!({"sessionId": "bench", "before": before, "limit": 100}));
        daemon.flush();
        let (answer, arrival) = daemon.answer_with_arrival();
        pages.push(arrival - started);
        // A page ends where it has many bytes, too.
        assert!(answer["entries"].as_array().is_some_and(|entries| entries.len() > 50));
        before = answer["nextCursor"].clone();
    }
    let slowest = pages.iter().max().copied().unwrap_or_default();
    report.add("1 GB: a page of 100 entries from the end, median", milliseconds(median(pages)), "ms", "5");
    report.add("1 GB: a page of 100 entries from the end, slowest", milliseconds(slowest), "ms", "");
}

/// A context of a host's own that is made to fit, without a model.
pub fn fitting(report: &mut Report) {
    let mut daemon = Daemon::start();
    let words = |at: usize| {
        let word = |number: usize| format!("value_{} of part {}; ", number * 7 % 101, (number + at) % 53);
        (0..60).map(word).collect::<String>()
    };
    let messages: Vec<Value> = (0..82)
        .map(|at| match at % 2 {
            0 => json!({"role": "user", "content": format!("Request {at}: {}", words(at))}),
            _ => {
                json!({"role": "assistant", "content": [{"type": "text", "text": format!("Done {at}. {}", words(at))}]})
            }
        })
        .collect();
    let params = json!({"messages": messages, "format": "anthropic", "contextWindow": 24_000});
    let first = daemon.call("context/fit", params.clone());
    let tokens = first["tokensBefore"].as_u64().or(first["usage"]["contextTokens"].as_u64()).unwrap_or_default();
    let fits = times(&mut daemon, 21, "context/fit", |_| params.clone());
    report.add(format!("context/fit of {tokens} tokens, without a model"), milliseconds(median(fits)), "ms", "25");
}

/// Appends of the same messages, plain and in a provider's format.
pub fn formats(report: &mut Report) {
    const EACH: usize = 200;
    let text = "A line of an answer that has some length. ".repeat(60);
    let plain = json!([{"role": "user", "content": text},
        {"role": "assistant", "content": [{"type": "text", "text": text}]}]);
    let mut daemon = Daemon::start();
    let mut session = || daemon.call("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].take();
    let (one, other) = (session(), session());
    let (mut plains, mut formatted) = (Vec::new(), Vec::new());
    for _ in 0..EACH {
        let of = |session: &Value| json!({"sessionId": session, "messages": plain});
        plains.extend(times(&mut daemon, 1, "session/append", |_| of(&one)));
        let mut params = of(&other);
        params["format"] = json!("anthropic");
        formatted.extend(times(&mut daemon, 1, "session/append", |_| params.clone()));
    }
    let (plain, formatted) = (median(plains), median(formatted));
    report.add("append of two messages of 2.5 kB", milliseconds(plain), "ms", "");
    report.add(
        "the same in a provider's format, by that",
        formatted.as_secs_f64() / plain.as_secs_f64(),
        "times",
        "1.2",
    );
}

/// A command of the shell in a data folder, whose output is not read.
fn shell(data: &Path, arguments: &[&str]) -> Duration {
    let started = Instant::now();
    let status = Command::new(THIS)
        .args(arguments)
        .env("ABRIDGED_DATA_DIR", data)
        .env("ABRIDGED_CONFIG_DIR", data.join("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("the binary starts");
    let took = started.elapsed();
    // A search without a match exits with 1.
    assert!(matches!(status.code(), Some(0 | 1)), "{arguments:?}");
    took
}

/// Commands of the shell that read sessions.
pub fn commands(report: &mut Report) {
    let mut daemon = Daemon::start();
    let data = &daemon.home().join("data");
    fs::create_dir_all(data).expect("a folder");
    let file = data.join("bench.jsonl");
    let name = file.display().to_string();
    let page = data.join("report.html").display().to_string();
    let timed = |arguments: &[&str], rounds: usize| median((0..rounds).map(|_| shell(data, arguments)).collect());

    sessions::session(&file, 100_000_000, true);
    let reports = timed(&["report", &name, "-o", &page], 5);
    report.add("abridged report of 100 MB", milliseconds(reports), "ms", "2,000");
    let size = fs::metadata(&page).expect("a page").len();
    report.add("its page", size as f64 / 1e3, "kB", "1,049");

    sessions::session(&file, 1_000_000_000, true);
    // The part of the file that a command reads, read plainly: all of it.
    let plain = median((0..3).map(|_| read_plainly(&file)).collect());
    report.add("1 GB read plainly", milliseconds(plain), "ms", "");
    for (name_of, arguments) in [("show", vec!["show", &name]), ("search", vec!["search", &name, "nowhere at all"])] {
        let took = timed(&arguments, 3);
        report.add(format!("abridged {name_of} of 1 GB"), milliseconds(took), "ms", "");
        let ratio = took.as_secs_f64() / plain.as_secs_f64();
        report.add(format!("abridged {name_of} of 1 GB, by a plain reading"), ratio, "times", "2");
    }
    fs::remove_file(&file).expect("removed");

    for folder in 0..50 {
        let folder = data.join(format!("sessions/--project-{folder}--"));
        fs::create_dir_all(&folder).expect("a folder");
        for at in 0..100 {
            let mut writer = Writer::new(&folder.join(format!("{at}.jsonl")), &format!("listed-{at}"));
            writer.turns(9_000);
        }
    }
    report.add(
        "abridged sessions over 5,000 that no daemon listed",
        milliseconds(shell(data, &["sessions"])),
        "ms",
        "",
    );
    // A daemon keeps what it read of the files. A command only reads.
    daemon.call("session/list", json!({"limit": 1}));
    while !data.join("sessions-list.json").exists() {
        std::thread::yield_now();
    }
    report.add("abridged sessions over 5,000", milliseconds(timed(&["sessions"], 9)), "ms", "100");
    report.add("abridged report --all of 5,000", milliseconds(timed(&["report", "--all", "-o", &page], 3)), "ms", "");
    let size = fs::metadata(&page).expect("a page").len();
    report.add("its page", size as f64 / 1e3, "kB", "1,049");
}

/// The time in which a program reads a file and does nothing with it.
fn read_plainly(file: &Path) -> Duration {
    let started = Instant::now();
    let mut file = fs::File::open(file).expect("a file");
    let mut piece = vec![0; 1 << 20];
    while std::io::Read::read(&mut file, &mut piece).expect("it is read") > 0 {}
    started.elapsed()
}
