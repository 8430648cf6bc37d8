//! A store in PostgreSQL on this machine, with durable commits, beside a file: appends, many sessions at once, and opening.

#[path = "../../tests/suite/stored/server.rs"]
mod server;

use super::Report;
use abridged::{
    ids::{EntryId, SessionId},
    log::{
        files::{self, Opened},
        header,
        sealed::Blocking,
        store::{
            home::{Home, Store, send},
            postgres::{Me, Postgres},
            server::Server as _,
        },
    },
};
use serde_json::json;
use server::Server;
use std::{
    fs,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// Appends of one session.
const APPENDS: u32 = 400;

/// Sessions that append together.
const TOGETHER: u32 = 64;

/// Size of the large session, in bytes.
const LARGE: u64 = 1 << 30;

/// The text of each entry.
const TEXT: &str = "the same words again and again, as long as a request of a person is";

struct Daemon {
    home: Home,
    store: Arc<Store>,
    _cache: tempfile::TempDir,
    _runtime: Runtime,
}

impl Daemon {
    fn new(server: &Server, number: u32) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let me = Me { id: format!("bench-{number}"), lock: i64::from(number), host: "bench".to_owned(), pid: number };
        let postgres = Postgres::new(server.address().parse().expect("an address"), me, runtime.handle().clone());
        postgres.keep();
        let cache = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Store::new(postgres, cache.path().to_owned()));
        Self { home: Home::Store(store.clone()), store, _cache: cache, _runtime: runtime }
    }

    fn push(&self, file: &Path) -> PathBuf {
        let found = header::peek(file).expect("a header");
        let id: SessionId = found.header.id.clone();
        let name = format!("--bench--/{id}.jsonl");
        let held = send(self.store.server(), file, &name, &found, &Blocking::is_allowed_here()).expect("a new session");
        self.store.server().release(&held);
        self.home.find(&id).expect("it is there").expect("a path")
    }
}

fn header_of(id: &str) -> String {
    let header =
        json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/bench"});
    format!("{header}\n")
}

fn entry(id: &str, parent: Option<&str>, text: &str) -> String {
    let message = json!({"role": "user", "content": text, "timestamp": 0});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": message}).to_string()
}

/// Appends entries one after the other. Returns the time of each.
fn append(opened: &mut Opened, name: &str, count: u32) -> Vec<Duration> {
    let mut parent: Option<String> = None;
    (0..count)
        .map(|number| {
            let id = format!("{name}{number:06}");
            let line = entry(&id, parent.as_deref(), TEXT);
            let leaf = parent.as_deref().map(EntryId::from);
            let begun = Instant::now();
            opened.log.append(&[line], leaf.as_ref()).expect("it is written");
            let took = begun.elapsed();
            parent = Some(id);
            took
        })
        .collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    milliseconds(times[times.len() / 2])
}

fn mean(times: &[Duration]) -> f64 {
    milliseconds(times.iter().sum::<Duration>()) / times.len() as f64
}

fn file(folder: &Path, id: &str) -> PathBuf {
    let path = folder.join(format!("{id}.jsonl"));
    fs::write(&path, header_of(id)).expect("a file");
    path
}

pub fn store(report: &mut Report) {
    let settings = "fsync=on\nsynchronous_commit=on\nmax_wal_size=8GB\nshared_buffers=256MB";
    let Some(server) = Server::with(settings) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::new(&server, 1);
    let blocking = Blocking::is_allowed_here();

    let local = file(folder.path(), "local");
    let mut opened = files::open(&local, &blocking).expect("it opens");
    let on_disk = mean(&append(&mut opened, "f", APPENDS));
    drop(opened);
    report.add("store: append to a file", on_disk, "ms", "");

    let path = daemon.push(&file(folder.path(), "one"));
    let mut opened = daemon.home.open(&path, &blocking).expect("it opens");
    append(&mut opened, "w", 50);
    // One after the other: the speed of a disk drifts.
    let (mut stored, mut commit) = (0.0, 0.0);
    for part in 0..4 {
        stored += mean(&append(&mut opened, &format!("s{part}"), APPENDS / 4)) / 4.0;
        commit += by_pgbench(&server, folder.path(), part == 0) / 4.0;
    }
    drop(opened);
    report.add("store: append to the store", stored, "ms", "");
    report.add("store: one commit of the same rows by pgbench", commit, "ms", "");
    report.add("store: append over commit", stored / commit, "x", "<= 1.3");

    let (alone, together) = (rate(&daemon, folder.path(), 1), rate(&daemon, folder.path(), TOGETHER));
    report.add("store: appends of one session", alone, "/s", "");
    report.add("store: appends of 64 sessions together", together, "/s", "");
    report.add("store: 64 sessions over one", together / alone, "x", "");
    // A disk that takes two milliseconds for a commit, as a volume over a network does.
    server.query("ALTER SYSTEM SET commit_delay = 2000");
    server.query("ALTER SYSTEM SET commit_siblings = 0");
    server.query("SELECT pg_reload_conf()");
    let commit = by_pgbench(&server, folder.path(), false);
    let (alone, together) = (rate(&daemon, folder.path(), 1), rate(&daemon, folder.path(), TOGETHER));
    report.add("store: append over commit, commits of 2 ms", 1_000.0 / alone / commit, "x", "<= 1.3");
    report.add("store: appends of one session, commits of 2 ms", alone, "/s", "");
    report.add("store: 64 sessions over one, commits of 2 ms", together / alone, "x", ">= 20");
    server.query("ALTER SYSTEM RESET commit_delay");
    server.query("SELECT pg_reload_conf()");

    let large = compacted(folder.path(), LARGE);
    let begun = Instant::now();
    daemon.push(&large);
    report.add("store: push of 1 GB", begun.elapsed().as_secs_f64(), "s", "");
    fs::remove_file(&large).expect("it goes");
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for number in 0..7 {
        let other = Daemon::new(&server, 100 + number);
        let there = other.home.find(&"large".into()).expect("it is there").expect("a path");
        drop(other.home.open(&daemon_path(&other, "one"), &blocking).expect("it opens"));
        let begun = Instant::now();
        let opened = other.home.open(&there, &blocking).expect("it opens");
        cold.push(begun.elapsed());
        assert!(opened.history.path().iter().count() > 10);
        drop(opened);
        let begun = Instant::now();
        drop(other.home.open(&there, &blocking).expect("it opens"));
        warm.push(begun.elapsed());
    }
    report.add("store: open of 1 GB compacted, nothing cached", median(cold), "ms", "<= 30");
    report.add("store: open of it again, its end cached", median(warm), "ms", "");
}

fn daemon_path(daemon: &Daemon, id: &str) -> PathBuf {
    daemon.home.find(&id.into()).expect("it is there").expect("a path")
}

/// Appends each second of a number of sessions, each with a thread of its own.
fn rate(daemon: &Daemon, folder: &Path, sessions: u32) -> f64 {
    let count = if sessions == 1 { APPENDS } else { 150 };
    let opened: Vec<Opened> = (0..sessions)
        .map(|number| {
            let path = daemon.push(&file(folder, &format!("t{sessions}-{number}-{}", fresh())));
            daemon.home.open(&path, &Blocking::is_allowed_here()).expect("it opens")
        })
        .collect();
    let begun = Instant::now();
    thread::scope(|scope| {
        for (number, mut opened) in opened.into_iter().enumerate() {
            scope.spawn(move || append(&mut opened, &format!("t{number}-"), count));
        }
    });
    f64::from(sessions * count) / begun.elapsed().as_secs_f64()
}

/// A number that was not given before.
fn fresh() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Milliseconds of a transaction with the same rows, by pgbench.
fn by_pgbench(server: &Server, folder: &Path, first: bool) -> f64 {
    if first {
        server.query(
            "INSERT INTO abridged.session (id, name, cwd, created) VALUES ('pgbench', 'p', '/', '');
             CREATE SEQUENCE abridged.pgbench MINVALUE 0",
        );
    }
    let data = entry("s000000", Some("s000000"), TEXT);
    let script = folder.join("commit.sql");
    let text = format!(
        "WITH n AS (SELECT nextval('abridged.pgbench') AS number), held AS (
            UPDATE abridged.session SET lines = lines + 1, bytes = bytes + 300, entries = entries + 1, changed = now()
            WHERE id = 'pgbench' RETURNING id),
         added AS (INSERT INTO abridged.line SELECT held.id, n.number, convert_to('{data}', 'UTF8') FROM held, n),
         found AS (INSERT INTO abridged.passage SELECT held.id, n.number, '{TEXT}' FROM held, n)
         SELECT id FROM held;\n"
    );
    fs::write(&script, text).expect("a script");
    let given = ["-n", "-c", "1", "-M", "prepared", "-t", &(APPENDS / 4).to_string(), "-f"].map(str::to_owned);
    let output = server.client("pgbench").args(given).arg(&script).arg("postgres").output().expect("pgbench runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let latency = said.lines().find_map(|line| line.strip_prefix("latency average = ")?.strip_suffix(" ms"));
    let errors = String::from_utf8_lossy(&output.stderr);
    latency.and_then(|latency| latency.parse().ok()).unwrap_or_else(|| panic!("pgbench: {said}{errors}"))
}

/// A session of a size with a compaction near its end.
fn compacted(folder: &Path, size: u64) -> PathBuf {
    let path = folder.join("large.jsonl");
    let mut file = BufWriter::new(fs::File::create(&path).expect("a file"));
    file.write_all(header_of("large").as_bytes()).expect("it is written");
    let (mut written, mut number, mut parent) = (0, 0_u64, None::<String>);
    let text = "A line of a file that a tool has read, with some words. ".repeat(60);
    while written < size {
        let id = format!("m{number:08}");
        let line = entry(&id, parent.as_deref(), &format!("{number} {text}"));
        written += line.len() as u64 + 1;
        writeln!(file, "{line}").expect("it is written");
        parent = Some(id);
        number += 1;
    }
    let kept = format!("m{:08}", number - 20);
    let compaction = json!({"type": "compaction", "id": "c0000000", "parentId": parent, "timestamp": "",
        "summary": "Everything so far.", "firstKeptEntryId": kept, "tokensBefore": 100_000});
    writeln!(file, "{compaction}").expect("it is written");
    for after in 0..20 {
        let before = if after == 0 { "c0000000".to_owned() } else { format!("a{:07}", after - 1) };
        writeln!(file, "{}", entry(&format!("a{after:07}"), Some(&before), "and on")).expect("it is written");
    }
    file.flush().expect("it is written");
    path
}
