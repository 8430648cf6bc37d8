//! Errors of the commands: each is caused, is in the words of a shell and says what to do next.

use super::command;
use crate::support::{Daemon, Home, run, session_of, turns};
use serde_json::json;
use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

/// Words of the wire that no error of a shell has.
const WIRE: [&str; 7] = ["session/", "readOnly", "keepRecentTokens", "params", "parentEntryId", "fallback`", "path: "];

/// Runs a command that fails. Returns its error.
fn error(home: &Home, arguments: &[&str], code: i32) -> String {
    let (found, out, err) = command(home, arguments);
    assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
    let wire = WIRE.iter().find(|word| err.contains(**word) && !err.contains(&format!("/{word}")));
    assert!(wire.is_none(), "{wire:?} in {err}");
    err
}

/// The commands that open a session, with this one.
fn opening(name: &str) -> [Vec<&str>; 8] {
    [
        vec!["show", name],
        vec!["tail", name],
        vec!["tree", name],
        vec!["search", name, "word"],
        vec!["export", name, "/no/out.md"],
        vec!["undo", name],
        vec!["compact", name, "--keep", "100"],
        vec!["compact", name, "--keep", "100", "--dry-run"],
    ]
}

#[test]
fn a_file_that_cannot_be_opened_is_named_with_the_next_step() {
    let home = Home::new();
    let at = |name: &str| home.path(name).display().to_string();
    fs::create_dir(at("folder")).expect("a folder");
    fs::write(at("empty.jsonl"), "").expect("a file");
    fs::write(at("bytes.jsonl"), b"\xff\xfe\x00\n").expect("a file");
    fs::write(at("foreign.jsonl"), "{\"type\":\"other\"}\n").expect("a file");
    assert!(Command::new("mkfifo").arg(at("fifo.jsonl")).status().expect("mkfifo").success());
    let mut long = File::create(at("long.jsonl")).expect("a file");
    writeln!(long, "{}", crate::support::header("long")).expect("written");
    long.set_len(300 << 20).expect("a size");
    for (name, part) in [
        ("nothing.jsonl", "abridged sessions lists those there are"),
        ("folder", "is a folder; give the path of the session file in it"),
        ("empty.jsonl", "it is empty; abridged sessions lists those there are"),
        ("bytes.jsonl", "is not a session file: its first line is not UTF-8; abridged sessions"),
        ("foreign.jsonl", "its first line is not a header"),
        ("fifo.jsonl", "it is a device or a pipe; abridged sessions"),
    ] {
        let name = at(name);
        for arguments in opening(&name) {
            let err = error(&home, &arguments, 1);
            assert!(err.starts_with("abridged: ") && err.contains(&name) && err.contains(part), "{arguments:?}: {err}");
        }
    }
    // A hole of zeros has no end of a line. Readers see the entries before it.
    let err = error(&home, &["compact", &at("long.jsonl"), "--keep", "100"], 1);
    assert!(err.contains("cut the file there; abridged tail and tree read the part before it"), "{err}");
}

#[test]
fn a_file_without_permission_names_it() {
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root reads every file");
        return;
    }
    let home = Home::new();
    let path = session_of(&home, "mine", &turns(4));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("a mode");
    for arguments in opening(path.to_str().expect("text")) {
        let err = error(&home, &arguments, 1);
        assert!(err.contains("ermission") && err.contains("change the permissions"), "{err}");
    }
}

#[test]
fn an_id_without_a_session_or_with_several_says_so() {
    let home = Home::new();
    let mut daemon = Daemon::at(home);
    let ids = [0, 1].map(|_| daemon.new_session(json!({"cwd": "/project"})));
    daemon.end();
    let home = &daemon.home;
    let shared = ids[0].chars().zip(ids[1].chars()).take_while(|(a, b)| a == b).count();
    for arguments in opening("nosuchid") {
        assert!(error(home, &arguments, 1).contains("abridged sessions lists them"), "{arguments:?}");
    }
    for arguments in opening(&ids[0][..shared.min(4)]) {
        let err = error(home, &arguments, 1);
        assert!(
            err.contains("2 sessions have an id") && err.contains(&ids[1]) && err.contains("write more of it"),
            "{err}"
        );
    }
    let elsewhere = home.path("elsewhere").display().to_string();
    for arguments in [["show", "--data", &elsewhere], ["tail", "--data", &elsewhere]] {
        assert!(error(home, &arguments, 1).contains("there is no session in"));
    }
}

#[test]
fn a_session_that_another_program_has_open_is_read_and_not_changed() {
    let home = Home::new();
    let path = session_of(&home, "held", &turns(30));
    let mut daemon = Daemon::at(home);
    daemon.load(&path);
    let name = path.to_str().expect("text");
    for arguments in [vec!["undo", name], vec!["compact", name, "--keep", "100"]] {
        let err = error(&daemon.home, &arguments, 1);
        assert!(
            err.contains(&format!("(pid {})", daemon.pid())) && err.contains("compact --dry-run only read it"),
            "{err}"
        );
    }
    for arguments in [
        vec!["tail", name],
        vec!["tree", name],
        vec!["search", name, "part_3"],
        vec!["compact", name, "--keep", "100", "--dry-run"],
    ] {
        let (code, out, err) = command(&daemon.home, &arguments);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
        assert!(!out.is_empty());
    }
}

#[test]
fn nothing_to_do_says_why_and_what_to_do_instead() {
    let home = Home::new();
    let path = session_of(&home, "worked", &turns(30));
    let empty = session_of(&home, "empty", &[]);
    let (name, empty) = (path.to_str().expect("text"), empty.to_str().expect("text"));
    let cases: [(&[&str], &str); 6] = [
        (&["compact", empty], "there is nothing to compact: the session has no message yet"),
        (&["compact", name], "a smaller number with --keep compacts it"),
        (&["undo", name], "there is nothing to undo: no compaction or reset is in force on this branch; abridged tree"),
        (&["show", name], "nothing was compacted. abridged compact makes one"),
        (&["show", name, "zzz"], "no entry has an id that begins with zzz; abridged tree lists them"),
        (&["show", name, ""], "the id of the entry is empty; abridged tree lists the entries"),
    ];
    for (arguments, part) in cases {
        let err = error(&home, arguments, 1);
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    assert!(error(&home, &["show", name, "e"], 1).contains("write more of it"));
    let err = error(&home, &["search", name, "wombat"], 1);
    assert!(err.contains("no entry has the text \"wombat\""), "{err}");
    let (code, _, err) = command(&home, &["search", name, ""]);
    assert!(code == Some(1) && err.contains("the text to find is empty; give at least one character"), "{err}");
    assert_eq!(command(&home, &["compact", name, "--keep", "500"]).0, Some(0));
    let err = error(&home, &["compact", name, "--keep", "500"], 1);
    assert!(err.contains("there is nothing to compact: no message came since the last compaction"), "{err}");
}

#[test]
fn a_summary_that_was_undone_is_named() {
    let home = Home::new();
    let path = session_of(&home, "undone", &turns(30));
    let name = path.to_str().expect("text");
    assert_eq!(command(&home, &["compact", name, "--keep", "500"]).0, Some(0));
    assert_eq!(command(&home, &["undo", name]).0, Some(0));
    let err = error(&home, &["show", name], 1);
    assert!(err.contains("the last compaction was undone"), "{err}");
    let (_, rest) = err.split_once("abridged show ").expect("the next command");
    let (next, _) = rest.split_once(" prints its summary").expect("its end");
    let (code, out, err) = command(&home, &["show", name, next.rsplit(' ').next().expect("an id")]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(" · compaction · ") && out.contains("## Goal"), "{out}");
}

#[test]
fn numbers_that_are_none_are_refused_in_words() {
    let home = Home::new();
    for (arguments, part) in [
        (vec!["tail", "-n", "0"], "expected a number from 1 on"),
        (vec!["tail", "-n", "x"], "expected a number from 1 on"),
        (vec!["search", "s", "word", "--limit", "0"], "expected a number from 1 on"),
        (vec!["sessions", "--limit", "many"], "expected a number from 1 on"),
        (vec!["compact", "s", "--keep", "x"], "expected a number of tokens"),
        (vec!["compact", "s", "--keep", "-5"], "unexpected argument"),
    ] {
        let err = error(&home, &arguments, 2);
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
}

#[test]
fn an_export_that_cannot_be_written_leaves_nothing() {
    let home = Home::new();
    let path = session_of(&home, "exported", &turns(30));
    let name = path.to_str().expect("text");
    let at = |name: &str| home.path(name).display().to_string();
    fs::create_dir(at("out")).expect("a folder");
    fs::write(at("there.md"), "mine").expect("a file");
    for (out, part) in [
        (at("there.md"), "there is something of this name already; name a new file"),
        (at("out"), "there is something of this name already; name a new file"),
        (name.to_owned(), "there is something of this name already; name a new file"),
        ("/dev/full".to_owned(), "there is something of this name already; name a new file"),
        (at("new.pdf"), "export cannot write .pdf files; name a file that ends with .md for Markdown"),
        (at("no/out.md"), "name a new file in a folder that exists"),
    ] {
        let err = error(&home, &["export", name, &out], 1);
        assert!(err.contains(part), "{out}: {err}");
    }
    assert_eq!(fs::read_to_string(at("there.md")).expect("a file"), "mine");
    // A file system that is full in the middle of the file.
    let plain = home.command();
    let mut full = Command::new("sh");
    full.args(["-c", "ulimit -f 1; exec \"$0\" export \"$1\" \"$2\""])
        .arg(plain.get_program())
        .args([name, &at("out/full.md")]);
    full.env("ABRIDGED_DATA_DIR", home.path("data")).env("ABRIDGED_CONFIG_DIR", home.path("config"));
    let (code, _, err) = run(full);
    assert!(code == Some(1) && err.contains("nothing is left of it; make room, then try again"), "{err}");
    assert_eq!(fs::read_dir(at("out")).expect("a folder").count(), 0);
}

#[test]
fn a_damaged_line_is_named_with_its_place() {
    let home = Home::new();
    let path = session_of(&home, "damaged", &turns(4));
    let text = fs::read_to_string(&path).expect("a file");
    let lines: Vec<&str> = text.lines().collect();
    let [first, second, rest @ ..] = &lines[..] else { unreachable!("a header and messages") };
    let cut = &second[..second.len() - 40];
    fs::write(&path, format!("{first}\n{cut}\n{}\n", rest.join("\n"))).expect("a file");
    let id = serde_json::from_str::<serde_json::Value>(second).expect("JSON")["id"].as_str().expect("an id").to_owned();
    let name = path.to_str().expect("text");
    let err = error(&home, &["show", name, &id], 1);
    let place = format!("its {} bytes are in {name} from byte {} on", cut.len(), first.len() + 1);
    assert!(err.contains(&place), "{err}");
}

#[test]
fn an_output_that_cannot_be_written_fails_the_command() {
    let home = Home::new();
    let [path, fresh] = ["written", "fresh"].map(|name| session_of(&home, name, &turns(30)));
    let (name, fresh) = (path.to_str().expect("text"), fresh.to_str().expect("text"));
    assert_eq!(command(&home, &["compact", name, "--keep", "500"]).0, Some(0));
    for arguments in [
        vec!["show", name],
        vec!["show", name, "--json"],
        vec!["tail", name],
        vec!["tree", name],
        vec!["search", name, "part"],
        vec!["doctor"],
        vec!["sessions"],
        vec!["compact", fresh, "--keep", "500", "--dry-run"],
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["--version"],
        vec!["report", name, "-o", "-"],
    ] {
        let mut command = home.command();
        command.args(&arguments).stdout(File::options().write(true).open("/dev/full").expect("a device"));
        let done = command.output().expect("it runs");
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {err}");
        assert!(err.contains("stdout") && err.contains("No space left on device"), "{arguments:?}: {err}");
        // A reader that has read enough is no error.
        let mut closed = home.command();
        let mut child = closed.args(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        drop(child.stdout.take());
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{arguments:?}");
    }
}
