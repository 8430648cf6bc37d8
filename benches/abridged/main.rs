//! `cargo bench`: the numbers the project is held to, measured on the real binary over real pipes and on the pure core.
//! `cargo bench -- --json` prints them for machines. `cargo bench -- --against OLD` alternates this binary with the one at
//! OLD and prints the median of the ratios, which holds on a machine whose speed drifts.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its numbers")]

mod ahead;
mod clients;
mod daemon;
mod damage;
mod deciding;
mod ending;
mod fidelity;
mod hooks;
mod models;
mod pairs;
mod preparing;
mod redacting;
mod sessions;
mod store;
mod trees;
mod turns;

use abridged::{
    compaction::{
        ladder,
        plan::{self, Demand},
        prune::Rules,
    },
    conversation::{
        context,
        entry::Entry,
        path::Path,
        tokens::{self, Estimator, Scale},
    },
    models::Budget,
    prompts::Prompts,
    settings::{CompactionSettings, Settings},
    summary::{cleaner::Cleaner, extractive},
};
use daemon::Daemon;
use serde_json::{Value, json};
use std::{
    fs,
    hint::black_box,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

/// A name, and what is measured under it.
type Group = (&'static str, fn(&mut Report));

/// Groups of measurements, by their names on the command line: `cargo bench -- sizes idle`. Default: all groups.
const GROUPS: &[Group] = &[
    ("start", first_answer),
    ("echo", bare_echo),
    ("pings", pings),
    ("appends", appends),
    ("deciding", deciding::decisions),
    ("planning", planning),
    ("extracting", extracting),
    ("redaction", redacting::redactions),
    ("compaction", whole_compaction),
    ("models", models::models),
    ("preparing", preparing::preparations),
    ("ending", ending::endings),
    ("ahead", ahead::splices),
    ("hooks", hooks::hooks),
    ("turns", turns::turns),
    ("sizes", sessions::sizes),
    ("whole", sessions::without_compaction),
    ("fork", trees::forks),
    ("leaf", trees::leaves),
    ("idle", sessions::idle_sessions),
    ("timers", sessions::idle_timers),
    ("listing", sessions::listing),
    ("damaged", damage::damaged_lines),
    ("paging", clients::paging),
    ("fitting", clients::fitting),
    ("formats", clients::formats),
    ("commands", clients::commands),
    ("store", store::store),
];

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let against = arguments.iter().position(|argument| argument == "--against").map(|at| {
        let rest: Vec<String> = arguments.drain(at..).skip(1).collect();
        let old = PathBuf::from(rest.first().expect("--against needs the path of another abridged binary"));
        arguments.extend(rest.into_iter().skip(1));
        old
    });
    if arguments.first().is_some_and(|first| first == "fidelity") {
        let svg = arguments.iter().position(|argument| argument == "--svg").map(|at| {
            let rest: Vec<String> = arguments.drain(at..).skip(1).collect();
            PathBuf::from(rest.first().expect("--svg needs the path of the image"))
        });
        let files: Vec<String> = arguments[1..].iter().filter(|argument| !argument.starts_with('-')).cloned().collect();
        return fidelity::run(&files, arguments.iter().any(|argument| argument == "--json"), svg.as_deref());
    }
    let as_json = arguments.iter().any(|argument| argument == "--json");
    let named = |name: &str| arguments.iter().all(|it| it.starts_with('-')) || arguments.iter().any(|it| it == name);
    let mut report = Report { rows: Vec::new(), as_json };
    match against {
        Some(old) => pairs::measure(&mut report, &old, &named),
        None => GROUPS.iter().filter(|(name, _)| named(name)).for_each(|(_, measure)| measure(&mut report)),
    }
    report.end();
}

/// A measured number beside the one it is held to.
struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    goal: &'static str,
}

struct Report {
    rows: Vec<Row>,
    as_json: bool,
}

impl Report {
    fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str, goal: &'static str) {
        let name = name.into();
        if !self.as_json {
            println!("{name:<66} {value:>12.2} {unit:<10} {goal}");
        }
        self.rows.push(Row { name, value, unit, goal });
    }

    fn end(self) {
        if self.as_json {
            let rows: Vec<Value> = self
                .rows
                .iter()
                .map(|row| json!({ "name": row.name, "value": row.value, "unit": row.unit, "goal": row.goal }))
                .collect();
            println!("{:#}", json!(rows));
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn first_answer(report: &mut Report) {
    let times = (0..31)
        .map(|_| {
            let started = Instant::now();
            let daemon = Daemon::start();
            let took = started.elapsed();
            drop(daemon);
            took
        })
        .collect();
    report.add("start of the process to its first answer", milliseconds(median(times)), "ms", "5");
}

/// Time of one line there and back through `cat`: the floor of this machine.
fn bare_echo(report: &mut Report) {
    const ROUNDS: usize = 20_000;
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
    let mut to = cat.stdin.take().expect("a pipe");
    let mut from = BufReader::new(cat.stdout.take().expect("a pipe"));
    let mut line = String::new();
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").expect("it reads");
        line.clear();
        from.read_line(&mut line).expect("it writes");
        times.push(begun.elapsed());
    }
    report.add("bare echo of a line by cat, median", median(times).as_secs_f64() * 1e6, "µs", "");
    drop(to);
    let _ = cat.wait();
}

fn pings(report: &mut Report) {
    const SERIAL: usize = 30_000;
    const PIPELINED: usize = 300_000;
    const WINDOW: usize = 64;
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let mut daemon = Daemon::start();
    let mut times = Vec::with_capacity(SERIAL);
    let started = Instant::now();
    for _ in 0..SERIAL {
        let begun = Instant::now();
        daemon.write(ping);
        daemon.flush();
        daemon.read();
        times.push(begun.elapsed());
    }
    let rate = SERIAL as f64 / started.elapsed().as_secs_f64();
    times.sort_unstable();
    report.add("ping, one by one", rate, "/s", "15,000");
    report.add("ping, one by one, median", times[SERIAL / 2].as_secs_f64() * 1e6, "µs", "");
    report.add("ping, one by one, 99 %", times[SERIAL / 100 * 99].as_secs_f64() * 1e6, "µs", "");

    let started = Instant::now();
    for _ in 0..PIPELINED / WINDOW {
        for _ in 0..WINDOW {
            daemon.write(ping);
        }
        daemon.flush();
        for _ in 0..WINDOW {
            daemon.read();
        }
    }
    report.add("ping, 64 at once", PIPELINED as f64 / started.elapsed().as_secs_f64(), "/s", "80,000");
}

fn appends(report: &mut Report) {
    const ONE_BY_ONE: usize = 200;
    const TOGETHER: u64 = 64;
    let mut daemon = Daemon::start();
    let session = daemon.call("session/new", json!({"cwd": "/bench"}))["session"]["sessionId"].clone();
    let params = json!({"sessionId": session, "messages": [{"role": "user", "content": "x".repeat(1_000)}]});
    let started = Instant::now();
    for _ in 0..ONE_BY_ONE {
        daemon.call("session/append", params.clone());
    }
    let rate = ONE_BY_ONE as f64 / started.elapsed().as_secs_f64();
    report.add("durable appends of 1 kB, one by one", rate, "/s", "");
    let fsyncs = |daemon: &mut Daemon| {
        daemon.call("session/status", json!({"sessionId": session}))["_meta"]["fsyncs"].as_u64().expect("a count")
    };
    let mut counts = Vec::new();
    let mut times = Vec::new();
    for _ in 0..21 {
        let before = fsyncs(&mut daemon);
        let started = Instant::now();
        for id in 0..TOGETHER {
            daemon.send(id, "session/append", &params);
        }
        daemon.flush();
        for _ in 0..TOGETHER {
            daemon.answer();
        }
        times.push(started.elapsed());
        counts.push(fsyncs(&mut daemon) - before);
    }
    counts.sort_unstable();
    report.add("64 durable appends at once", milliseconds(median(times)), "ms", "");
    report.add("64 durable appends at once, fsyncs, median", counts[10] as f64, "", "3");
    report.add("64 durable appends at once, fsyncs, most", counts[20] as f64, "", "");
}

/// A path of about so many tokens: turns of a request, a call, its result and an answer, with sources in the results.
fn path_of(tokens: usize) -> (Path, usize) {
    let mut path = Path::default();
    let mut parent = Value::Null;
    let mut count = 0;
    let mut bytes = 0;
    let mut add = |path: &mut Path, message: Value| {
        let id = format!("e{count}");
        let line =
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": message}).to_string();
        bytes += line.len();
        path.push(Arc::new(Entry::parse(line.into()).expect("a line")));
        parent = json!(id);
        count += 1;
    };
    let turns = tokens / 1_000;
    for turn in 0..turns {
        let source: String = (0..48)
            .map(|n| format!("    let value_{turn}_{n} = read_part(&config.parts[{n}], limits.max_{turn}).context(\"part {n}\")?;\n"))
            .collect();
        add(
            &mut path,
            json!({"role": "user", "content": format!("Now part {turn}: it must not break src/part_{turn}.rs.")}),
        );
        add(
            &mut path,
            json!({"role": "assistant", "stopReason": "toolUse", "content": [{"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": format!("src/part_{turn}.rs")}}]}),
        );
        add(
            &mut path,
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [{"type": "text", "text": source}]}),
        );
        add(
            &mut path,
            json!({"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": format!("Part {turn} reads value_{turn}_7, because limits.max_{turn} is set.")}]}),
        );
    }
    (path, bytes)
}

/// The scale of all plans here.
pub const SCALE: Scale = Scale::new(Estimator::Tiktoken, 1.0);

fn demand(keep: u64) -> Demand {
    Demand {
        keep,
        explicit: false,
        scale: SCALE,
        budget: Budget::of(200_000, &CompactionSettings::default(), 0, 0),
        tokens_before: 0,
        may_stay: u64::MAX,
        insists: true,
    }
}

fn planning(report: &mut Report) {
    let loading = Instant::now();
    tokens::load();
    report.add("loading the tokenizer's tables", milliseconds(loading.elapsed()), "ms", "");
    for (name, tokens) in
        [("plan at 100k tokens, counts cached", 100_000), ("plan at 1M tokens, counts cached", 1_000_000)]
    {
        let (path, _) = path_of(tokens);
        path.iter().for_each(|entry| entry.count());
        let times = (0..51)
            .map(|_| {
                let path = path.clone();
                let started = Instant::now();
                black_box(plan::plan(path, demand(20_000), Arc::default()).is_ok());
                started.elapsed()
            })
            .collect();
        report.add(name, milliseconds(median(times)), "ms", "5");
    }
    let (path, _) = path_of(1_000_000);
    path.iter().for_each(|entry| entry.count());
    let times = (0..21)
        .map(|_| {
            let started = Instant::now();
            black_box(context::build(&path, &Prompts::default()).messages().len());
            started.elapsed()
        })
        .collect();
    report.add("context of 1M tokens, built and checked", milliseconds(median(times)), "ms", "");
}

fn extracting(report: &mut Report) {
    let (path, bytes) = path_of(300_000);
    let counting = Instant::now();
    path.iter().for_each(|entry| entry.count());
    report.add("counting tokens, per MB", milliseconds(counting.elapsed()) / bytes as f64 * 1e6, "ms", "");
    let settings = Settings::default();
    let plan = plan::plan(path, demand(20_000), Arc::default()).expect("long enough");
    let times = (0..7)
        .map(|_| {
            let started = Instant::now();
            let cleaner = Cleaner::new(&settings);
            let draft = ladder::climb(plan.clone(), Rules { settings: &settings.prune, tools: &[] }, &|plan, cap| {
                extractive::summarize(&extractive::Request {
                    span: plan.span(),
                    wishes: Default::default(),
                    cap,
                    without: None,
                    settings: &settings,
                    cleaner: &cleaner,
                    scale: SCALE,
                    stop: &|| false,
                })
            });
            black_box(draft.is_ok());
            started.elapsed()
        })
        .collect();
    report.add("extracting a summary, per MB", milliseconds(median(times)) / bytes as f64 * 1e6, "ms", "100");
}

fn whole_compaction(report: &mut Report) {
    let (path, bytes) = path_of(300_000);
    let header = json!({"type": "session", "version": 3, "id": "bench", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/bench"});
    let text: String =
        std::iter::once(format!("{header}\n")).chain(path.iter().map(|entry| format!("{}\n", entry.line()))).collect();
    let (mut loads, mut compactions) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let mut daemon = Daemon::start();
        let file = daemon.home().join("bench.jsonl");
        fs::write(&file, &text).expect("a file");
        let started = Instant::now();
        daemon.call("session/load", json!({"path": file}));
        daemon.call("session/context", json!({"sessionId": "bench"}));
        loads.push(started.elapsed());
        let started = Instant::now();
        let done = daemon.call("session/compact", json!({"sessionId": "bench", "wait": true}));
        assert_eq!(done["outcome"], "completed");
        compactions.push(started.elapsed());
    }
    let megabytes = bytes as f64 / 1e6;
    report.add(
        "session/load and context of a session without compaction, per MB",
        milliseconds(median(loads)) / megabytes,
        "ms",
        "",
    );
    report.add(
        "session/compact with wait, tables loaded on the way, 1.3 MB",
        milliseconds(median(compactions)),
        "ms",
        "",
    );
}
