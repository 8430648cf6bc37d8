//! Prompts that a person or a project has files for.

use crate::support::{Daemon, Home, entries, header, run, session_of, turns};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(30);

const FRAME: &str = "compaction-summary-context";

/// Puts a text in the place of a prompt.
fn put(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let file = folder.join(format!("{name}.md"));
    fs::create_dir_all(folder).and_then(|()| fs::write(&file, text)).expect("a file");
    file
}

/// The first message of a session's context.
fn first_message(daemon: &mut Daemon, session: &str) -> String {
    let context = daemon.ok("session/context", json!({ "sessionId": session }));
    context["messages"][0].to_string()
}

/// Asks for the context until its first message has this in it.
fn until_it_says(daemon: &mut Daemon, session: &str, part: &str) -> String {
    let end = Instant::now() + LONG;
    loop {
        let message = first_message(daemon, session);
        if message.contains(part) {
            return message;
        }
        assert!(Instant::now() < end, "{part} never comes: {message}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The notices so far, taken out of what was told: severity, title and detail.
fn notices(daemon: &mut Daemon) -> Vec<String> {
    daemon.ok("ping", json!({}));
    let (notices, others) = daemon.events.drain(..).partition(|frame| frame["method"] == "notice");
    daemon.events = others;
    let text = |frame: &Value, key: &str| frame["params"][key].as_str().unwrap_or("?").to_owned();
    let line = |frame: &Value| ["severity", "title", "detail"].map(|key| text(frame, key)).join(": ");
    notices.iter().map(line).collect()
}

/// The next notice.
fn notice(daemon: &mut Daemon) -> String {
    let end = Instant::now() + LONG;
    loop {
        let mut said = notices(daemon);
        assert!(said.len() < 2 && Instant::now() < end, "one notice is expected: {said:?}");
        if let Some(notice) = said.pop() {
            return notice;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A session that was compacted.
fn compacted(daemon: &mut Daemon, path: &Path) -> String {
    let session = daemon.load(path);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1000, "wait": true}));
    session
}

/// A session about a folder, compacted.
fn compacted_in(daemon: &mut Daemon, cwd: &Path) -> String {
    let mut first = header("project");
    first["cwd"] = json!(cwd);
    let lines: Vec<Value> = std::iter::once(first).chain(entries(&turns(30))).collect();
    let path = daemon.home.session("project.jsonl", &lines);
    compacted(daemon, &path)
}

#[test]
fn a_prompt_of_the_user_holds_while_the_daemon_runs() {
    let home = Home::new();
    let path = session_of(&home, "live", &turns(30));
    let mut daemon = Daemon::at(home);
    let session = compacted(&mut daemon, &path);
    let embedded = first_message(&mut daemon, &session);
    assert!(embedded.contains("was condensed to make room"), "{embedded}");
    // Neither the folder nor the one around it is there yet.
    let folder = daemon.home.path("config/prompts");
    let file = put(&folder, FRAME, "FRAME ONE\n{{summary}}\n");
    let said = until_it_says(&mut daemon, &session, "FRAME ONE");
    assert!(said.contains("## Goal") && !said.contains("was condensed"), "{said}");
    // As editors save: a new file in the place of the old one.
    let fresh = folder.join(".frame.tmp");
    fs::write(&fresh, "FRAME TWO {{summary}}").and_then(|()| fs::rename(&fresh, &file)).expect("renamed");
    until_it_says(&mut daemon, &session, "FRAME TWO");
    // A session that is opened now has it, too.
    let other = session_of(&daemon.home, "later", &turns(30));
    let other = compacted(&mut daemon, &other);
    assert!(first_message(&mut daemon, &other).contains("FRAME TWO"));

    fs::remove_file(&file).expect("removed");
    until_it_says(&mut daemon, &session, "was condensed");
    assert_eq!(first_message(&mut daemon, &session), embedded);
    put(&folder, FRAME, "FRAME THREE {{summary}}");
    until_it_says(&mut daemon, &session, "FRAME THREE");
    fs::remove_dir_all(&folder).expect("removed");
    until_it_says(&mut daemon, &session, "was condensed");
    put(&folder, FRAME, "FRAME FOUR {{summary}}");
    until_it_says(&mut daemon, &session, "FRAME FOUR");
    assert_eq!(notices(&mut daemon), Vec::<String>::new());
    let told = |it: &Value| it["method"] == "settings_changed" || it["params"]["event"]["type"] == "settings_changed";
    assert!(!daemon.events.iter().any(told), "settings are what they were");
}

#[test]
fn a_prompt_that_breaks_keeps_the_old_text_and_is_told() {
    let home = Home::new();
    let path = session_of(&home, "broken", &turns(30));
    let folder = home.path("config/prompts");
    let file = put(&folder, FRAME, "FRAME ONE {{summary}}");
    let mut daemon = Daemon::at(home);
    let session = compacted(&mut daemon, &path);
    assert!(first_message(&mut daemon, &session).contains("FRAME ONE"));
    let name = file.display().to_string();
    for (bytes, why) in [
        (b"no frame at all".as_slice(), "it lacks {{summary}}"),
        (b"{{summary}} \xff", "it is not UTF-8"),
        ("{{summary}}".repeat(7_000).as_bytes(), "more than 65536 bytes"),
    ] {
        // Written at once: a file that is half written is broken in another way.
        let fresh = folder.join("fresh");
        fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, &file)).expect("renamed");
        let said = notice(&mut daemon);
        assert!(said.starts_with("error: ") && said.contains(&name) && said.contains(why), "{said}");
        assert!(first_message(&mut daemon, &session).contains("FRAME ONE"));
    }
    put(&folder, "compaction-summery", "{{summary}}");
    let said = notice(&mut daemon);
    assert!(said.starts_with("warning: ") && said.contains("compaction-summery.md: there is no prompt"), "{said}");
    put(&folder, FRAME, "FRAME TWO {{summary}}");
    until_it_says(&mut daemon, &session, "FRAME TWO");
    assert_eq!(notices(&mut daemon), Vec::<String>::new(), "all of it is told once");
}

#[test]
fn a_project_has_prompts_of_its_own_when_it_is_trusted() {
    let home = Home::new();
    let project = home.path("project");
    fs::create_dir(&project).expect("a folder");
    let mut daemon = Daemon::at(home);
    let session = compacted_in(&mut daemon, &project);
    put(&daemon.home.path("config/prompts"), FRAME, "OF THE USER {{summary}}");
    until_it_says(&mut daemon, &session, "OF THE USER");
    let own = project.join(".abridged/prompts");
    let file = put(&own, FRAME, "OF THE PROJECT {{summary}}");
    let said = notice(&mut daemon);
    assert!(said.starts_with("warning: ") && said.contains(&format!("{}: ", own.display())), "{said}");
    assert!(said.contains("trustedProjects"), "{said}");
    put(&own, "auto-continue", "x");
    daemon.home.settings(&json!({ "trustedProjects": [&project] }).to_string());
    until_it_says(&mut daemon, &session, "OF THE PROJECT");
    fs::remove_file(&file).expect("removed");
    until_it_says(&mut daemon, &session, "OF THE USER");
    put(&own, FRAME, "OF THE PROJECT {{summary}}");
    until_it_says(&mut daemon, &session, "OF THE PROJECT");
    assert_eq!(notices(&mut daemon), Vec::<String>::new(), "it is told once");
    daemon.home.settings("{}");
    until_it_says(&mut daemon, &session, "OF THE USER");
    assert!(notice(&mut daemon).contains(&own.display().to_string()));
}

#[cfg(unix)]
#[test]
fn prompts_that_are_kept_elsewhere_are_watched_there() {
    let home = Home::new();
    let path = session_of(&home, "links", &turns(30));
    let elsewhere = home.path("dotfiles/prompts");
    put(&elsewhere, FRAME, "FRAME ONE {{summary}}");
    fs::create_dir(home.path("config")).expect("a folder");
    std::os::unix::fs::symlink(&elsewhere, home.path("config/prompts")).expect("a link");
    let mut daemon = Daemon::at(home);
    let session = compacted(&mut daemon, &path);
    assert!(first_message(&mut daemon, &session).contains("FRAME ONE"));
    put(&elsewhere, FRAME, "FRAME TWO {{summary}}");
    until_it_says(&mut daemon, &session, "FRAME TWO");
    // The link leads elsewhere from here on.
    let other = daemon.home.path("other");
    put(&other, FRAME, "FRAME THREE {{summary}}");
    let (link, fresh) = (daemon.home.path("config/prompts"), daemon.home.path("config/fresh"));
    std::os::unix::fs::symlink(&other, &fresh).and_then(|()| fs::rename(&fresh, &link)).expect("renamed");
    until_it_says(&mut daemon, &session, "FRAME THREE");
    // And one file of it, too.
    let file = put(&daemon.home.path("third"), "frame", "FRAME FOUR {{summary}}");
    let (link, fresh) = (other.join(format!("{FRAME}.md")), other.join("fresh"));
    std::os::unix::fs::symlink(&file, &fresh).and_then(|()| fs::rename(&fresh, &link)).expect("renamed");
    until_it_says(&mut daemon, &session, "FRAME FOUR");
    fs::write(&file, "FRAME FIVE {{summary}}").expect("a file");
    until_it_says(&mut daemon, &session, "FRAME FIVE");
}

#[test]
fn the_doctor_shows_whose_prompts_hold() {
    let home = Home::new();
    let project = home.path("project");
    fs::create_dir(&project).expect("a folder");
    let doctor = |json: &[&str]| {
        let mut command = home.command();
        command.arg("doctor").args(json).current_dir(&project);
        run(command)
    };
    assert!(!doctor(&[]).1.contains("Prompts"), "there is nothing to say");
    let user = put(&home.path("config/prompts"), FRAME, "{{summary}}");
    let own = put(&project.join(".abridged/prompts"), "auto-continue", "Go on.");
    put(&home.path("config/prompts"), "pinned-context", "no pins");
    home.settings(&json!({ "trustedProjects": [&project] }).to_string());
    let (code, out, _) = doctor(&["--json"]);
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let expected = json!([{"name": "auto-continue", "file": own, "source": "project"},
        {"name": FRAME, "file": user, "source": "global"}]);
    assert_eq!((code, &found["prompts"]), (Some(1), &expected));
    assert_eq!(found["problems"][0]["file"], json!(home.path("config/prompts/pinned-context.md")));
    let (_, out, _) = doctor(&[]);
    for part in ["Prompts", "from project", "lacks {{pins}}"] {
        assert!(out.contains(part), "{part} is missing in:\n{out}");
    }
}
