//! The contract of a log, kept by a store in PostgreSQL: the same steps as on a file give the same entries, the same path and
//! the same bytes. The binary on a store is driven by `tests/interop/store`.

mod server;

use crate::logs::{self, Medium, Step};
use abridged::{
    conversation::entry::Header,
    ids::SessionId,
    log::{
        Access, Unfinished,
        error::StoreError,
        files::{self, Opened},
        header,
        sealed::Blocking,
        store::{
            facts::Facts,
            home::{Home, Store, send},
            postgres::{ListOrder, Me, Postgres},
            server::{About, Fault, From, Held, Server as _},
        },
    },
    session::open,
    settings::Layers,
};
use proptest::{prelude::*, sample, test_runner::TestRunner};
use serde_json::json;
use server::Server;
use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// A daemon without a wire: its connections, and its cache.
struct Daemon {
    home: Home,
    store: Arc<Store>,
    cache: tempfile::TempDir,
    runtime: Runtime,
}

impl Daemon {
    fn new(address: &str, number: u32) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let me = Me { id: format!("daemon-{number}"), lock: i64::from(number), host: "test".to_owned(), pid: number };
        let server = Postgres::new(address.parse().expect("an address"), me, runtime.handle().clone());
        server.keep();
        let cache = tempfile::tempdir().expect("a folder");
        let store = Arc::new(Store::new(server, cache.path().to_owned()));
        Self { home: Home::Store(store.clone()), store, cache, runtime }
    }

    /// The daemon is killed: its connections end, and nothing is given up.
    fn kill(self) -> tempfile::TempDir {
        self.runtime.shutdown_background();
        self.cache
    }

    /// Makes a session of a file's bytes. Returns its path in the cache.
    fn push(&self, id: &str, bytes: &[u8]) -> PathBuf {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.jsonl");
        let text = std::str::from_utf8(bytes).expect("text").replacen("\"id\":\"s\"", &format!("\"id\":\"{id}\""), 1);
        fs::write(&file, text).expect("a file");
        let found = header::peek(&file).expect("a header");
        let name = format!("--p--/{id}.jsonl");
        let blocking = Blocking::is_allowed_here();
        let held = send(self.store.server(), &file, &name, &found, &blocking).expect("a new session");
        self.store.server().release(&held);
        self.home.find(&id.into()).expect("it is there").expect("a path")
    }

    /// The lines of a session, one after the other.
    fn rows(&self, id: &str) -> Vec<u8> {
        let (server, id) = (self.store.server(), SessionId::from(id));
        let standing = server.look(&id).expect("a session");
        let mut rows: Vec<Vec<u8>> = Vec::new();
        while (rows.len() as u64) < standing.lines {
            rows.extend(server.read(&id, standing.generation, From::Line(rows.len() as u64), 1 << 10).expect("rows"));
        }
        rows.concat()
    }
}

/// A session of a store.
struct Session<'a> {
    daemon: &'a Daemon,
    path: PathBuf,
    id: String,
}

impl Medium for Session<'_> {
    fn open(&self) -> Result<Opened, StoreError> {
        self.daemon.home.open(&self.path, &Blocking::is_allowed_here())
    }

    fn open_read_only(&self) -> Result<Opened, StoreError> {
        self.daemon.home.open_read_only(&self.path, &Blocking::is_allowed_here())
    }

    fn write_as_another(&self, _: &[u8]) {
        unreachable!("the cache belongs to its process");
    }

    fn bytes(&self) -> Vec<u8> {
        self.daemon.rows(&self.id)
    }
}

/// Steps without other programs.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Append),
        2 => any::<sample::Index>().prop_map(Step::Branch),
        1 => Just(Step::CatchUp),
        1 => Just(Step::Index),
        1 => Just(Step::Sleep),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..20)
}

#[test]
fn a_store_is_a_log_like_a_file() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let number = Cell::new(0);
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() });
    let played = runner.run(&steps(), |steps| {
        number.set(number.get() + 1);
        let id = format!("s{}", number.get());
        let [file, ..] = logs::media();
        let path = daemon.push(&id, &file.bytes());
        let stored = Session { daemon: &daemon, path, id };
        prop_assert_eq!(logs::play(&*file, &steps), logs::play(&stored, &steps));
        let renamed = String::from_utf8(stored.bytes()).expect("text").replacen(&stored.id, "s", 1);
        let bytes = String::from_utf8(file.bytes()).expect("text");
        prop_assert_eq!(without_stamps(&renamed), without_stamps(&bytes));
        Ok(())
    });
    played.expect("both are alike");
}

/// Lines without those of gaps, whose ids and times are drawn.
fn without_stamps(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.contains("abridged.gap")).collect()
}

fn line(id: &str, parent: Option<&str>, text: &str) -> String {
    let message = json!({"role": "user", "content": text, "timestamp": 0});
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": message}).to_string()
}

#[test]
fn a_session_has_one_owner_until_that_is_gone() {
    let Some(server) = Server::start() else { return };
    let (first, second) = (Daemon::new(&server.address(), 1), Daemon::new(&server.address(), 2));
    let [file, ..] = logs::media();
    let path = first.push("s1", &file.bytes());
    let elsewhere = second.home.find(&"s1".into()).expect("it is there").expect("a path");
    let blocking = Blocking::is_allowed_here();
    let open = |daemon: &Daemon, path: &Path| daemon.home.open(path, &blocking);
    let mut opened = open(&first, &path).expect("it is free");
    let running: Unfinished =
        serde_json::from_value(json!({"operationId": "o", "kind": "compaction", "reason": "manual", "startedAt": ""}))
            .expect("an operation");
    opened.log.register().expect("a register").record(vec![running.clone()]);
    opened.log.append(&[line("a", None, "one")], None).expect("it is the owner");
    match open(&second, &elsewhere).map(drop) {
        Err(StoreError::Owned { host, pid, since }) => {
            assert_eq!((host.as_str(), pid, since.len()), ("test", Some(1), 24), "{since}");
        }
        other => unreachable!("{other:?}"),
    }
    // The process dies: nothing that it holds is dropped in order.
    std::mem::forget(opened);
    let _cache = first.kill();
    let begun = Instant::now();
    let next = loop {
        match open(&second, &elsewhere) {
            Ok(next) => break next,
            Err(StoreError::Owned { .. }) if begun.elapsed() < Duration::from_secs(10) => {}
            Err(error) => unreachable!("{error:?}"),
        }
    };
    assert_eq!(next.left_behind, [running], "the successor sees the operation that ran");
    assert_eq!(next.log.access(), Access::Write);
    drop(next);
    assert!(String::from_utf8(second.rows("s1")).expect("text").contains("\"one\""));
}

#[test]
fn a_large_session_is_read_from_both_ends_and_its_cache_is_believed_where_its_last_line_is_the_same() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let mut bytes = file.bytes();
    let mut parent: Option<String> = None;
    for number in 0..3_000 {
        let id = format!("e{number:07}");
        bytes.extend(line(&id, parent.as_deref(), &"text ".repeat(400)).bytes());
        bytes.push(b'\n');
        parent = Some(id);
    }
    let path = daemon.push("large", &bytes);
    let blocking = Blocking::is_allowed_here();
    let opened = daemon.home.open_read_only(&path, &blocking).expect("it opens");
    assert_eq!(opened.history.path().iter().count(), 3_000);
    let whole = daemon.home.whole(&path).expect("it is read");
    drop(opened);
    assert_eq!(fs::read(&whole).expect("a file"), daemon.rows("large"));

    // A change of the store that the cache does not know, as a restored backup makes it.
    let last = daemon.store.server().look(&"large".into()).expect("a session");
    server.query(&format!(
        "UPDATE abridged.line SET data = convert_to(replace(convert_from(data, 'UTF8'), 'text', 'TEXT'), 'UTF8')
         WHERE session = 'large' AND number >= {}",
        last.lines - 2
    ));
    let opened = daemon.home.open(&path, &blocking).expect("it opens");
    let leaf = opened.history.path().last().expect("an entry").clone();
    assert!(leaf.line().contains("TEXT"), "the cache is not believed");
}

#[test]
fn texts_of_all_kinds_are_found_and_nothing_of_them_is_a_statement() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let texts = ["'; DROP TABLE abridged.line; --", "\\'; SELECT 1", "100% _sure_ $1 {}", "zéro \u{0} 漢字 🦀"];
    for (number, text) in texts.iter().enumerate() {
        let id = format!("s{number}");
        let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": format!("/{text}")});
        let name = json!({"type": "session_info", "id": "n", "parentId": null, "timestamp": "", "name": text});
        let said = line("m", Some("n"), &format!("{text} marker{number}"));
        daemon.push(&id, format!("{header}\n{name}\n{said}\n").as_bytes());
        let found = |search: &str| {
            let order = ListOrder { search: Some(search.to_owned()), most: 10, ..ListOrder::default() };
            let listed = daemon.store.list(order).expect("a list");
            listed.into_iter().map(|(listed, _)| listed.id.to_string()).collect::<Vec<_>>()
        };
        assert!(found(text).contains(&id), "{text:?}");
        assert_eq!(found(&format!("marker{number}")), std::slice::from_ref(&id));
        assert_eq!(found("no such text"), Vec::<String>::new());
    }
    assert!(matches!(daemon.store.server().look(&"a\0b".into()), Err(Fault::Missing)));
}

#[test]
fn a_store_of_a_newer_schema_and_a_role_without_rights_are_refused_with_advice() {
    let Some(server) = Server::start() else { return };
    let refusal = |address: &str| match Daemon::new(address, 7).store.server().identity() {
        Err(Fault::Refused { why, retryable: false }) => why,
        other => unreachable!("{other:?}"),
    };
    Daemon::new(&server.address(), 1).store.server().identity().expect("the tables are made");
    server.query("UPDATE abridged.about SET version = 99");
    let newer = refusal(&server.address());
    assert!(newer.contains("version 99") && newer.contains("newer abridged"), "{newer}");
    server.query("CREATE ROLE guest LOGIN");
    let guest = refusal(&server.address_of("guest", "other"));
    assert!(guest.contains("may not make them") && guest.contains("docs/STORE.md"), "{guest}");
    let unknown = refusal(&server.address_of("nobody_here", "other"));
    assert!(unknown.contains("check user, password and database"), "{unknown}");
}

#[test]
fn no_connection_of_an_idle_daemon_keeps_old_rows() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let path = daemon.push("s1", &file.bytes());
    let _opened = daemon.home.open(&path, &Blocking::is_allowed_here()).expect("it opens");
    let held = server.query(
        "SELECT count(*) FILTER (WHERE backend_xmin IS NOT NULL), count(*) FROM pg_stat_activity
         WHERE application_name = 'abridged' AND state = 'idle in transaction'",
    );
    assert_eq!(held.trim(), "0|1", "the keeper has a transaction without a snapshot");
}

/// Each append has its answer, also where records of what runs come between, and appends that wait share a transaction.
#[test]
fn sessions_that_append_together_share_transactions() {
    const SESSIONS: usize = 24;
    const APPENDS: usize = 20;
    let Some(server) = Server::with("fsync=off\ncommit_delay=2000\ncommit_siblings=0") else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let append = |number: usize| {
        let (daemon, bytes) = (&daemon, file.bytes());
        move || {
            let id = format!("s{number}");
            let path = daemon.push(&id, &bytes);
            let before = daemon.rows(&id);
            let Opened { mut log, .. } = daemon.home.open(&path, &Blocking::is_allowed_here()).expect("it opens");
            let mut sent = String::from_utf8(before).expect("text");
            for count in 0..APPENDS {
                log.register().expect("a register").record(Vec::new());
                let line = line(&format!("n{count}"), None, "together");
                log.append(std::slice::from_ref(&line), None).expect("it is written");
                sent.push_str(&line);
                sent.push('\n');
            }
            assert_eq!(String::from_utf8(daemon.rows(&id)).expect("text"), sent);
        }
    };
    std::thread::scope(|scope| (0..SESSIONS).for_each(|number| drop(scope.spawn(append(number)))));
    let count =
        "SELECT count(DISTINCT xmin::text) FROM abridged.line WHERE convert_from(data, 'UTF8') LIKE '%together%'";
    let transactions: usize = server.query(count).trim().parse().expect("a number");
    assert!(transactions < SESSIONS * APPENDS / 2, "{transactions} transactions");
}

/// Alone, and together with others in one statement.
#[test]
fn an_append_counts_where_owner_epoch_and_lines_are_those_that_it_names() {
    const SESSIONS: usize = 16;
    let Some(server) = Server::with("fsync=off\ncommit_delay=5000\ncommit_siblings=0") else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let ids: Vec<SessionId> = (0..SESSIONS).map(|number| format!("s{number}").as_str().into()).collect();
    ids.iter().for_each(|id| drop(daemon.push(id.as_str(), &file.bytes())));
    let store = daemon.store.server();
    let before: Vec<Held> = ids.iter().map(|id| store.take(id).expect("it is free")).collect();
    let row = || vec![format!("{}\n", line("late", None, "late")).into_bytes()];
    let all_are_refused = |held: &[Held], why: &str| {
        let refused = |held: &Held| {
            let appended = store.append(held, &row(), Facts::default());
            assert!(appended.is_err(), "{why}: {appended:?}");
        };
        refused(&held[0]);
        std::thread::scope(|scope| held.iter().for_each(|held| drop(scope.spawn(|| refused(held)))));
    };
    let other_lines = |held: &Held| {
        let mut held = held.clone();
        held.standing.lines -= 1;
        held
    };
    all_are_refused(&before.iter().map(other_lines).collect::<Vec<_>>(), "other lines");
    let after: Vec<Held> = ids.iter().map(|id| store.take(id).expect("it is its own")).collect();
    all_are_refused(&before, "an older epoch");
    after.iter().for_each(|held| store.release(held));
    all_are_refused(&after, "no owner");
    for id in &ids {
        assert!(!String::from_utf8_lossy(&daemon.rows(id.as_str())).contains("late"), "{id}");
    }
    let standing = store.look(&ids[0]).expect("a session");
    let read = |generation| store.read(&ids[0], generation, From::Line(0), 1 << 10);
    assert!(read(standing.generation).is_ok_and(|rows| !rows.is_empty()));
    assert!(matches!(read(standing.generation + 1), Err(Fault::Changed(_))), "lines of another generation");
}

#[test]
fn appends_that_get_no_connection_share_the_one_for_reading() {
    let Some(server) = Server::start() else { return };
    // The keeper, that for reading, and that for new sessions.
    server.query("CREATE ROLE few LOGIN CONNECTION LIMIT 3");
    server.query("GRANT CREATE ON DATABASE postgres TO few");
    let daemon = Daemon::new(&server.address_of("few", "postgres"), 1);
    let [file, ..] = logs::media();
    for number in 0..8 {
        let path = daemon.push(&format!("s{number}"), &file.bytes());
        let Opened { mut log, .. } = daemon.home.open(&path, &Blocking::is_allowed_here()).expect("it opens");
        log.append(&[line("a", None, "one")], None).expect("it is written");
        drop(log);
    }
    assert_eq!(server.query("SELECT count(*) FROM abridged.session WHERE owner IS NOT NULL").trim(), "0");
}

#[test]
fn texts_of_lines_that_were_taken_back_are_not_found() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    daemon.push("s1", &file.bytes());
    let store = daemon.store.server();
    let mut held = store.take(&"s1".into()).expect("it is free");
    let first = held.standing.lines;
    let found = |search: &str| {
        let order = ListOrder { search: Some(search.to_owned()), most: 10, ..ListOrder::default() };
        daemon.store.list(order).expect("a list").len()
    };
    for word in ["refused", "answered"] {
        let rows = vec![format!("{}\n", line("a", None, word)).into_bytes()];
        let facts = Facts::of(&rows, first);
        store.append(&held, &rows, facts).expect("it is written");
        assert_eq!(found(word), 1);
        held.standing.lines += 1;
        held.standing = store.rewrite(&held, first, &[]).expect("it is taken back");
        assert_eq!(found(word), 0);
    }
}

#[test]
fn a_record_that_waits_is_none_of_the_next_opening() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address_of("postgres", "other"), 1);
    let [file, ..] = logs::media();
    daemon.push("s1", &file.bytes());
    let (store, id) = (daemon.store.server(), SessionId::from("s1"));
    let is_read_only = |is: &str| {
        server.query(&format!("ALTER DATABASE other SET default_transaction_read_only = {is}"));
        let ends = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'other'";
        server.query(ends);
    };
    let append = |held: &Held| {
        let rows = vec![format!("{}\n", line("a", None, "one")).into_bytes()];
        store.append(held, &rows, Facts::default())
    };
    let before = store.take(&id).expect("it is free");
    append(&before).expect("it is written");
    is_read_only("on");
    store.record(&before, vec![operation()]);
    append(&before).expect_err("nothing is written");
    is_read_only("off");
    let after = store.take(&id).expect("it is its own");
    append(&after).expect("it is written, and the record with it");
    assert_eq!(store.take(&id).expect("it is its own").left_behind, [], "the record is of the opening before");
}

/// An operation that runs.
fn operation() -> Unfinished {
    serde_json::from_value(json!({"operationId": "op-1", "kind": "compaction"})).expect("an operation")
}

/// Nothing runs a connection between two requests, so its end is learned at the next one.
#[test]
fn a_record_and_a_release_after_the_end_of_their_connection_are_written() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let path = daemon.push("s1", &file.bytes());
    let Opened { mut log, .. } = daemon.home.open(&path, &Blocking::is_allowed_here()).expect("it opens");
    log.append(&[line("a", None, "first")], None).expect("it is written");
    // Not that of the keeper.
    let ends = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'abridged' AND state = 'idle'";
    let soon = |query: &str, wanted: &str| {
        let begun = Instant::now();
        while server.query(query).trim() != wanted {
            assert!(begun.elapsed() < Duration::from_secs(2), "{}", server.query(query));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    server.query(ends);
    log.register().expect("a register").record(vec![operation()]);
    soon("SELECT running LIKE '%op-1%' FROM abridged.session", "t");
    server.query(ends);
    drop(log);
    soon("SELECT owner IS NULL FROM abridged.session", "t");
}

/// The log of a session is the same one in its file and in the store.
#[test]
fn a_file_of_any_bytes_is_pushed_and_read_back() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/"}"#;
    let ends = ["\n", "", "\n\n", "\r\n{broken\n", "\n{\"type\":\"custom\",\"id\":\"x\",\"torn"];
    for (number, end) in ends.iter().enumerate() {
        let id = format!("s{number}");
        let text = format!("{header}{end}");
        let path = daemon.push(&id, text.as_bytes());
        let sent = text.replacen("\"id\":\"s\"", &format!("\"id\":\"{id}\""), 1);
        assert_eq!(daemon.rows(&id), sent.as_bytes(), "{end:?}");
        let opened = daemon.home.open(&path, &Blocking::is_allowed_here()).expect("it opens");
        let files::Opened { mut log, .. } = opened;
        log.append(&[line("a", None, "after it")], None).expect("it is written");
        drop(log);
        let rows = String::from_utf8(daemon.rows(&id)).expect("text");
        assert!(rows.lines().last().is_some_and(|last| last.contains("after it")), "{rows}");
        assert_eq!(fs::read_to_string(&path).expect("a file"), rows, "the cache has the lines of the store");
    }
}

#[test]
fn a_cache_file_is_opened_by_its_store_alone_whatever_the_spelling_of_its_path() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let path = daemon.push("s1", &file.bytes());
    let blocking = Blocking::is_allowed_here();
    drop(daemon.home.open(&path, &blocking).expect("it opens"));
    let link = daemon.cache.path().join("link");
    std::os::unix::fs::symlink(path.parent().expect("a folder"), &link).expect("a link");
    let spelled = link.join(path.file_name().expect("a name"));
    assert_eq!(daemon.home.own(&spelled).expect("it is in the cache"), Some(path.clone()));
    let mut opened = daemon.home.open(&spelled, &blocking).expect("it opens");
    opened.log.append(&[line("a", None, "one")], None).expect("it is written");
    assert!(String::from_utf8(daemon.rows("s1")).expect("text").contains("\"one\""));
    drop(opened);

    server.query("UPDATE abridged.about SET identity = 'another'");
    let another = Daemon::new(&server.address(), 2);
    let folder = Home::Folder(daemon.cache.path().to_owned());
    for home in [&another.home, &folder] {
        assert!(matches!(home.open(&path, &blocking).map(drop), Err(StoreError::Foreign { .. })));
        assert!(matches!(home.open_read_only(&path, &blocking).map(drop), Err(StoreError::Foreign { .. })));
    }
}

#[test]
fn a_session_that_is_open_here_is_read_without_a_change_of_its_file() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let path = daemon.push("s1", &file.bytes());
    let blocking = Blocking::is_allowed_here();
    let mut owner = daemon.home.open(&path, &blocking).expect("it opens");
    owner.log.append(&[line("a", None, "one")], None).expect("it is written");
    let reader = daemon.home.open_read_only(&path, &blocking).expect("it is read");
    assert_eq!(reader.history.path().iter().count(), 1);
    owner.log.append(&[line("b", Some("a"), "two")], Some(&"a".into())).expect("its file is as it was");
    drop((reader, owner));
    assert_eq!(fs::read(&path).expect("a file"), daemon.rows("s1"));
}

#[test]
fn no_record_of_a_cache_file_outlives_its_bytes() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let path = daemon.push("s1", &file.bytes());
    let record = path.with_extension("jsonl.cache");
    let blocking = Blocking::is_allowed_here();
    let opened = daemon.home.open(&path, &blocking).expect("it opens");
    assert!(!record.exists(), "a crash leaves no record of an open file");
    drop(opened);
    assert!(record.exists(), "a later process finds the lines");
}

#[test]
fn an_id_that_is_no_name_of_a_file_is_pushed_found_and_listed() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    for id in ["../../etc/x", "Ä/ö", &"long".repeat(100)] {
        let header: Header = serde_json::from_value(
            json!({"type": "session", "version": 3, "id": id, "timestamp": "2026/01/01", "cwd": "/"}),
        )
        .expect("a header");
        let name = open::file_of(Path::new(""), &header);
        let found = header::Found { header, title: None, end: 0, lines: 0 };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.jsonl");
        fs::write(&file, format!("{}\n", header::header_line(&found.header))).expect("a file");
        let (server, blocking) = (daemon.store.server(), Blocking::is_allowed_here());
        let held = send(server, &file, name.to_str().expect("text"), &found, &blocking).expect("a new session");
        server.release(&held);
        let path = daemon.home.find(&id.into()).expect("it is there").expect("a path");
        drop(daemon.home.open(&path, &blocking).expect("it opens"));
        let listed = daemon.store.list(ListOrder { most: 10, ..ListOrder::default() }).expect("a list");
        assert!(listed.iter().any(|(listed, path)| listed.id.as_str() == id && path.is_some()));
    }
}

#[test]
fn a_stored_session_names_no_model_and_no_command() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let [file, ..] = logs::media();
    let settings = json!({"models": [{"provider": "p", "id": "m", "apiKeyCommand": ["touch", "x"]}],
        "prune": {"protectTokens": 7}});
    let entry = json!({"type": "custom", "id": "d", "parentId": null, "timestamp": "", "customType": "abridged.session",
        "data": {"settings": settings}});
    let path = daemon.push("s1", &[file.bytes(), format!("{entry}\n").into_bytes()].concat());
    let params = serde_json::from_value(json!({"sessionId": "s1"})).expect("params");
    let (layers, blocking) = (Layers::of(Vec::new()), Blocking::is_allowed_here());
    let opened = open::load(&path, params, &daemon.home, &layers, &blocking);
    let opened = opened.unwrap_or_else(|failure| unreachable!("it opens: {failure}"));
    let settings = &opened.state.settings().settings;
    assert!(settings.models.is_empty(), "a row names a command");
    assert_eq!(settings.prune.protect_tokens, 7, "harmless settings stay");
}

#[test]
fn a_session_whose_lines_end_in_an_error_is_not_there_also_after_the_next_one() {
    let Some(server) = Server::start() else { return };
    let daemon = Daemon::new(&server.address(), 1);
    let about =
        About { id: "half".into(), name: "a/half.jsonl".into(), cwd: "/".into(), created: String::new(), parent: None };
    let mut batches = vec![Err(StoreError::Stopped), Ok(vec![b"{}\n".to_vec()])];
    let refused = daemon.store.server().create(&about, &mut || batches.pop().unwrap_or_else(|| Ok(Vec::new())));
    assert!(matches!(refused, Err(Fault::Source(_))), "{refused:?}");
    let [file, ..] = logs::media();
    daemon.push("whole", &file.bytes());
    assert_eq!(daemon.store.server().look(&"half".into()), Err(Fault::Missing));
}
