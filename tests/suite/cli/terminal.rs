//! Commands on terminals of any width, without one, and with a reader that goes away.

use super::command;
use crate::{
    provider::{Format, Provider},
    summarizing::{held_model, settings},
    support::{Daemon, Home, LONG, assistant, binary, entries, run, session_of, turns, user},
};
use rustix::{
    process::{Pid, Signal, kill_process, kill_process_group},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde_json::json;
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// Starts a command in a pseudo terminal of so many columns. Returns it with the bytes that the terminal gets.
fn in_terminal(mut command: Command, columns: u16) -> (Child, Receiver<Vec<u8>>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo terminal");
    grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be opened");
    let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("text");
    let slave = File::options().read(true).write(true).open(name).expect("the other end");
    tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
    let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
    command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(end()).stdout(end()).stderr(end());
    let child = command.spawn().expect("it starts");
    let mut reader = File::from(master);
    let (sender, written) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = reader.read(&mut bytes) {
            if sender.send(bytes[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    (child, written)
}

/// Everything that a command writes on a terminal.
fn on_terminal(command: Command, columns: u16) -> String {
    let (mut child, written) = in_terminal(command, columns);
    let mut seen = Vec::new();
    written.iter().for_each(|bytes| seen.extend(bytes));
    assert!(child.wait().expect("it ends").success());
    String::from_utf8(seen).expect("text")
}

/// The text without the sequences of colours.
fn bare(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn the_demo_draws_each_row_in_its_place_on_any_terminal() {
    // The picture has another form below 45 columns.
    let some = if crate::wire::is_whole() { &[20_u16, 40, 44, 45, 80, 120][..] } else { &[20, 45] };
    crate::support::at_once(some.to_vec(), |columns| {
        let home = Home::new();
        let mut command = home.command();
        command.arg("demo").env("TMPDIR", home.0.path());
        let text = bare(&on_terminal(command, columns));
        assert!(text.contains("lost."), "{text}");
        // A text that goes over the edge stands on two rows, and the next one is drawn below it.
        for row in text.split(['\n', '\r']) {
            assert!(row.chars().count() <= columns.into(), "{columns}: {row}");
        }
        assert_eq!(fs::read_dir(home.0.path()).expect("a folder").count(), 0, "nothing is left behind");
    });
}

#[test]
fn ctrl_c_ends_the_demo_and_leaves_nothing_behind() {
    crate::support::at_once([0, 1, 2, 5, 12], |chunks| {
        let home = Home::new();
        let mut command = home.command();
        // A terminal interrupts the daemon, too.
        command.arg("demo").env("TMPDIR", home.0.path()).process_group(0);
        let (mut child, written) = in_terminal(command, 80);
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
        let mut seen = Vec::new();
        for _ in 0..=chunks {
            seen.extend(written.recv_timeout(LONG).expect("it writes"));
        }
        kill_process_group(pid, Signal::INT).expect("it is there");
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        written.iter().for_each(|bytes| seen.extend(bytes));
        assert!(!String::from_utf8_lossy(&seen).contains("abridged: "), "no error is shown");
        assert_eq!(fs::read_dir(home.0.path()).expect("a folder").count(), 0, "nothing is left behind");
    });
}

/// The commands that print about a session of a data folder.
fn printing(id: &str) -> Vec<Vec<&str>> {
    let mut commands: Vec<Vec<&str>> = ["show", "tail", "tree"].iter().map(|name| vec![*name, id]).collect();
    commands.extend([
        vec!["show", id, "--json"],
        vec!["tail", id, "--json"],
        vec!["tree", id, "--json"],
        vec!["tree", id, "--all"],
    ]);
    commands.extend([vec!["search", id, "part_1", "--limit", "500"], vec!["search", id, "part", "--json"]]);
    commands.extend([
        vec!["sessions"],
        vec!["sessions", "--json"],
        vec!["watch", "--once"],
        vec!["watch", "--once", "--json"],
    ]);
    commands.extend([
        vec!["doctor"],
        vec!["doctor", "--json"],
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["--version"],
    ]);
    commands
        .extend([vec!["compact", id, "--keep", "300", "--dry-run"], vec!["compact", id, "--keep", "300", "--json"]]);
    commands.extend([vec!["undo", id], vec!["compact", id, "--keep", "300"], vec!["undo", id, "--json"]]);
    commands
}

/// A data folder with one compacted session, and its id.
fn compacted() -> (Home, String) {
    let mut daemon = Daemon::at(Home::new());
    let id = daemon
        .new_session(json!({"cwd": "/project/with/a/name", "title": "A title of some words, long enough for a line"}));
    daemon.append(&id, &turns(24));
    daemon.compact(&id, 2_000);
    daemon.end();
    (std::mem::replace(&mut daemon.home, Home::new()), id)
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let (home, id) = compacted();
    let schema = home.path("schema").display().to_string();
    let man = home.path("man").display().to_string();
    let mut commands = printing(&id);
    commands.extend([vec!["schema", "--out", &schema], vec!["man", "--out", &man], vec!["demo", "--json"]]);
    for arguments in commands {
        prepare(&home, &arguments);
        let mut command = home.command();
        command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(
            (ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_followed_session_ends_with_its_reader() {
    let home = Home::new();
    let path = session_of(&home, "followed", &turns(2));
    let mut command = home.command();
    command.arg("tail").arg("--follow").arg(&path).args(["-n", "1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut String::new()).expect("the only line");
    drop(out);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let end = Instant::now() + LONG;
    while child.try_wait().expect("a child can be waited for").is_none() {
        daemon.append(&session, &[user("One more.")]);
        assert!(Instant::now() < end, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), b"".as_slice()));
}

/// Makes sure that a command that changes the session has something to do.
fn prepare(home: &Home, arguments: &[&str]) {
    match arguments {
        ["undo", id, ..] => drop(command(home, &["compact", id, "--keep", "300"])),
        ["compact", id, ..] => while command(home, &["undo", id]).0 == Some(0) {},
        _ => {}
    }
}

#[test]
fn lines_fit_a_terminal_of_any_width_and_one_that_is_none() {
    let (home, id) = compacted();
    let folder = home.0.path().to_str().expect("text").to_owned();
    let is_read =
        |arguments: &Vec<&str>| !arguments.contains(&"--json") && !["completions", "--version"].contains(&arguments[0]);
    for arguments in printing(&id).into_iter().filter(is_read) {
        prepare(&home, &arguments);
        let (code, out, err) = command(&home, &arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
        // Paths and commands are whole, and a program gets the text of an entry as it is.
        let is_whole = |line: &&str| {
            !line.trim().contains(' ') || line.contains(&folder) || line.contains(&id) || line.contains("$ABRIDGED")
        };
        // A table is as wide as its columns, and an entry of show as its lines.
        let is_free = ["show", "watch", "sessions"].contains(&arguments[0]);
        for line in out.lines().filter(|line| !is_whole(line) && !is_free) {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
        for columns in [20, 60].into_iter().filter(|_| ["undo", "compact", "show"].contains(&arguments[0])) {
            prepare(&home, &arguments);
            let mut command = home.command();
            command.args(&arguments);
            let text = bare(&on_terminal(command, columns));
            for line in text.lines().filter(|line| !is_whole(line)) {
                assert!(line.chars().count() <= columns.into(), "{columns}, {arguments:?}: {line}");
            }
        }
    }
}

#[test]
fn a_tail_counts_the_entries_that_it_prints() {
    let home = Home::new();
    let mut messages = turns(4);
    messages.extend(std::iter::repeat_n(assistant(""), 12));
    let lines: Vec<_> = [vec![crate::support::header("tail")], entries(&messages)].concat();
    let path = home.session("tail.jsonl", &lines);
    let (code, out, err) = command(&home, &["tail", path.to_str().expect("text"), "-n", "3"]);
    assert_eq!((code, out.lines().count()), (Some(0), 3), "{out}{err}");
    let (_, out, _) = command(&home, &["tail", path.to_str().expect("text"), "-n", "100"]);
    assert_eq!(out.lines().count(), turns(4).len(), "{out}");
}

/// The names of the commands, as the help lists them.
fn commands() -> Vec<String> {
    let mut command = binary();
    command.arg("--help");
    let (_, out, _) = run(command);
    let (_, list) = out.split_once("Commands:\n").expect("a list");
    let names = list.lines().take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn help_completions_and_manual_pages_know_every_command() {
    let names = commands();
    assert!(names.len() > 15 && names.contains(&"tail".to_owned()), "{names:?}");
    let home = Home::new();
    let out = home.path("man");
    let (code, ..) = command(&home, &["man", "--out", out.to_str().expect("text")]);
    assert_eq!(code, Some(0));
    let page = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(page("abridged.1").contains("abridged\\-compact(1)"));
    assert!(page("abridged-compact.1").contains("\\-\\-dry\\-run"));
    for shell in ["bash", "zsh", "fish"] {
        let (_, text, _) = command(&home, &["completions", shell]);
        for name in &names {
            let offers = match shell {
                "bash" => text.contains(&format!("abridged,{name})")),
                "zsh" => text.contains(&format!("'{name}:")),
                _ => text.contains(&format!("-a \"{name}\"")),
            };
            assert!(offers, "{shell} does not know {name}");
        }
    }
    for name in names.iter().filter(|name| *name != "help") {
        page(&format!("abridged-{name}.1"));
        for (option, rows) in [("-h", 30), ("--help", 40)] {
            let (_, out, _) = command(&home, &[name, option]);
            let widest = out.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(80) && out.lines().count() <= rows, "{name} {option}: {widest:?} columns\n{out}");
        }
    }
    let (_, out, _) = command(&home, &["--help"]);
    assert!(out.lines().count() <= 30, "{} rows:\n{out}", out.lines().count());
}

/// Whether processes that are started from here ignore Ctrl-C, as jobs in the background of a script do.
fn ignores_interrupts() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
}

#[test]
fn ctrl_c_at_any_stage_of_a_compaction_changes_nothing_and_frees_the_file() {
    // The stage begins with this frame of the dialogue; the first one with the process.
    if ignores_interrupts() {
        eprintln!("SKIPPED: Ctrl-C is ignored here until a command asks for it");
        return;
    }
    crate::support::at_once([None, Some("initialize"), Some("session/load"), Some("session/compact")], |stage| {
        let provider = Provider::start(Format::Anthropic);
        let (_go_on, held) = held_model();
        provider.otherwise(held);
        let home = Home::new();
        home.settings(&settings(&provider, Format::Anthropic, json!({})));
        let path = session_of(&home, "interrupted", &turns(30));
        let (before, trace) = (fs::read(&path).expect("a file"), home.path("trace"));
        let mut command = home.command();
        command.arg("compact").arg(&path).args(["--keep", "1000", "--trace"]).arg(&trace);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let end = Instant::now() + LONG;
        let begun = |stage: &str| fs::read_to_string(&trace).is_ok_and(|text| text.contains(&format!("\"{stage}\"")));
        while stage.is_some_and(|stage| !begun(stage)) {
            assert!(Instant::now() < end, "{stage:?} does not begin");
            std::thread::sleep(Duration::from_millis(2));
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, Signal::INT).expect("it is there");
        // Before the compaction is asked for, the signal ends the process by itself.
        let status = child.wait().expect("it ends");
        assert!(status.code() == Some(130) || status.signal() == Some(2), "{stage:?}: {status}");
        let mut daemon = Daemon::at(home);
        while let Err(error) = daemon.call("session/load", json!({"path": path})) {
            assert!(error["data"]["code"] == "locked" && Instant::now() < end, "{stage:?}: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(fs::read(&path).expect("a file"), before, "{stage:?}");
    });
}
