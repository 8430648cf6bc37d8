//! `abridged report`: the page, and the browser that opens it.

use crate::support::{Daemon, Home, assistant, header, result, run, turns, user};
use serde_json::{Value, json};
use std::{
    fs,
    io::{Write as _, stderr},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// Largest page, in bytes.
const LARGEST: u64 = 1 << 20;

/// Runs `abridged report` in the folder of a home.
fn report(home: &Home, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = home.command();
    command.current_dir(home.0.path()).arg("report").args(more);
    run(command)
}

/// The page of a file.
fn page_of(home: &Home, file: &Path) -> String {
    let (code, out, err) = report(home, &[&file.display().to_string(), "-o", "-"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    out
}

fn line(kind: &str, id: &str, parent: Option<&str>, mut fields: Value) -> Value {
    (fields["type"], fields["id"], fields["parentId"]) = (json!(kind), json!(id), json!(parent));
    fields["timestamp"] = json!("2026-01-02T03:04:05.000Z");
    fields
}

/// A session with two compactions, one of which was undone, a branch, a pruning and a recovery.
fn eventful(daemon: &mut Daemon) -> PathBuf {
    let session = daemon
        .new_session(json!({"cwd": "/project", "title": "Port <b>of</b> the parser", "contextWindow": 60_000,
        "settings": {"prune": {"protectTokens": 1_000, "minimumSavings": 1_000}}}));
    daemon.append(&session, &turns(12));
    daemon.compact(&session, 10);
    daemon.append(&session, &turns(6));
    daemon.compact(&session, 10);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let calls = |id: &str| json!({"role": "assistant", "content": [{"type": "toolCall", "id": id, "name": "bash", "arguments": {}}]});
    let shown = |id: &str| {
        let mut shown = result(id, &"value ".repeat(4_000));
        shown["toolName"] = json!("bash");
        shown
    };
    for id in ["one", "two", "three", "four"] {
        daemon.append(&session, &[user("Read it."), calls(id), shown(id), assistant("Done.")]);
    }
    daemon.ok("session/prune", json!({"sessionId": session}));
    let answer = json!({"role": "assistant", "content": [], "stopReason": "error",
        "errorMessage": "prompt is too long: 70000 tokens > 60000 maximum"});
    daemon.append(&session, &[user("And?"), answer]);
    daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
    let path = daemon.ok("session/status", json!({"sessionId": session}))["session"]["path"].take();
    PathBuf::from(path.as_str().expect("a path"))
}

#[test]
fn a_page_shows_the_compactions_of_a_session_and_leads_to_the_originals() {
    let mut daemon = Daemon::start();
    let file = eventful(&mut daemon);
    let before = fs::read(&file).expect("a file");
    // The daemon has the session open. Nothing is locked or written.
    let page = page_of(&daemon.home, &file);
    assert_eq!(fs::read(&file).expect("a file"), before);
    assert!(page.starts_with("<!doctype html>") && page.contains("Port &lt;b&gt;of&lt;/b&gt; the parser"));
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"), "nothing is loaded");
    for part in [
        "Compaction 1 of 3",
        "Compaction 3 of 3",
        "class=\"badge\">undone",
        "Pruning</h3>",
        "after a failed answer (overflow)",
    ] {
        assert!(page.contains(part), "{part} is missing in:\n{page}");
    }
    let entries: Vec<Value> = String::from_utf8(before)
        .expect("text")
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let compaction = entries.iter().find(|entry| entry["type"] == "compaction").expect("a compaction");
    let grouped = |value: &Value| {
        let digits = value.to_string();
        match digits.len() {
            ..=3 => digits,
            length => format!("{},{}", &digits[..length - 3], &digits[length - 3..]),
        }
    };
    let sizes = format!("{} → {} tokens", grouped(&compaction["tokensBefore"]), grouped(&compaction["tokensAfter"]));
    assert!(page.contains(&sizes), "{sizes}");
    assert!(page.contains("## Goal"), "the summary is on the page");
    // The first entries of the conversation are summarized, and the page names them.
    let first = entries.iter().find(|entry| entry["type"] == "message").expect("a message");
    let id = first["id"].as_str().expect("an id");
    assert!(page.contains(&format!("<code>{id}</code>")));
    let mut show = daemon.home.command();
    show.args(["show", &file.display().to_string(), id]);
    assert_eq!(run(show).0, Some(0), "the command on the page shows it");
}

#[test]
fn the_numbers_of_a_page_are_those_of_the_daemon() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "model": "anthropic/claude-haiku-4-5"}));
    let answer = json!({"role": "assistant", "content": "Fine.", "provider": "anthropic", "model": "claude-haiku-4-5",
        "usage": {"input": 12_345, "output": 20, "cacheRead": 0, "cacheWrite": 0}});
    let appended = daemon.append(&session, &[user(&"word ".repeat(9_000)), answer]);
    let usage = &appended["usage"];
    let path = daemon.ok("session/status", json!({"sessionId": session}))["session"]["path"].take();
    let page = page_of(&daemon.home, Path::new(path.as_str().expect("a path")));
    for (name, number) in [("Window", &usage["contextWindow"]), ("Threshold", &usage["thresholdTokens"])] {
        let number = number.as_u64().expect("a number");
        let shown = format!("<dt>{name}</dt><dd>{},{:03} tokens", number / 1_000, number % 1_000);
        assert!(page.contains(&shown), "{shown} is missing");
    }
    assert!(page.contains("<dt>Context now</dt><dd>12,3"), "the report of the provider counts");
    assert!(page.contains("(reported)"));
}

#[test]
fn text_of_a_session_is_no_markup_and_has_no_secrets() {
    let home = Home::new();
    let evil = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}";
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghAA";
    let lines = [
        line("session_info", "n", None, json!({"name": evil})),
        line(
            "message",
            "a\"><script>",
            Some("n"),
            json!({"message": {"role": "user", "content": format!("{evil} {key}")}}),
        ),
        line("message", "b", Some("a\"><script>"), json!({"message": {"role": "user", "content": "more"}})),
        line(
            "compaction",
            "c",
            Some("b"),
            json!({"summary": format!("{evil} {key}"), "shortSummary": evil,
            "firstKeptEntryId": "b", "tokensBefore": 1e300, "method": evil}),
        ),
        line("model_change", "d", Some("c"), json!({"provider": evil, "modelId": evil})),
        line(
            "message",
            "e",
            Some("d"),
            json!({"message": {"role": "assistant", "content": "x", "provider": evil, "model": evil}}),
        ),
        line("model_change", "f", Some("e"), json!({"provider": "p", "modelId": evil})),
    ];
    let mut head = header("evil");
    head["cwd"] = json!(evil);
    let file = home.session("evil", &[&[head][..], &lines[..]].concat());
    let page = page_of(&home, &file);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'), "{page}");
    assert!(!page.contains(key), "secrets stay out of a page that is made to be shown");
    assert!(page.contains("Compaction 1 of 1"));
}

#[test]
fn a_page_of_many_long_compactions_is_no_larger_than_a_megabyte() {
    let home = Home::new();
    let mut lines = vec![header("long")];
    let mut parent = None;
    for number in 0..900 {
        let (user, compaction) = (format!("u{number}"), format!("c{number}"));
        lines.push(line(
            "message",
            &user,
            parent.as_deref(),
            json!({"message": {"role": "user", "content": "<".repeat(2_000)}}),
        ));
        let summary = format!("## Goal\n{}", "<&>\"'".repeat(if number % 3 == 0 { 2_000 } else { 50 }));
        lines.push(line(
            "compaction",
            &compaction,
            Some(&user),
            json!({"summary": summary, "shortSummary": "<".repeat(5_000),
            "firstKeptEntryId": user, "tokensBefore": 1_000}),
        ));
        parent = Some(compaction);
    }
    let file = home.session("long", &lines);
    let page = page_of(&home, &file);
    assert!((page.len() as u64) < LARGEST, "{} bytes", page.len());
    assert!(page.contains("Compaction 900 of 900"), "the newest one is there");
    assert!(page.contains("earlier events are not described here"), "the oldest ones are named");
}

#[test]
fn a_page_is_small_whatever_a_field_of_the_file_has() {
    let home = Home::new();
    let long = "<".repeat(300_000);
    let usage = json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0});
    let mut lines = vec![
        header("fields"),
        line("session_info", "t", None, json!({"name": long})),
        line("message", "u", Some("t"), json!({"message": {"role": "user", "content": "Go."}})),
        line(
            "message",
            "a",
            Some("u"),
            json!({"message": {"role": "assistant", "content": "A", "provider": "p", "model": "m"}}),
        ),
        line("model_change", "m", Some("a"), json!({"provider": long, "modelId": long})),
        line(
            "compaction",
            "c",
            Some("m"),
            json!({"summary": "s", "method": long, "shortSummary": long, "firstKeptEntryId": long,
            "tokensBefore": 1}),
        ),
        line(
            "usage",
            &long,
            Some("c"),
            json!({"purpose": "compaction", "provider": long, "model": long, "usage": usage}),
        ),
    ];
    let mut parent = long.clone();
    for number in 0..20 {
        let id = format!("{number}{}", "&".repeat(60_000));
        let attempt = json!({"customType": "abridged.attempt", "data": {"reason": long}});
        lines.push(line("custom", &id, Some(&parent), attempt));
        lines.push(line("reset_boundary", &format!("r{id}"), Some(&id), json!({})));
        parent = format!("r{id}");
    }
    let file = home.session("fields", &lines);
    let page = page_of(&home, &file);
    assert!((page.len() as u64) < LARGEST / 2, "{} bytes", page.len());
    assert!(page.contains("Compaction 1 of 1") && page.contains("Recovery"), "{page:.3000}");
}

#[test]
fn an_earlier_report_is_replaced_and_no_other_file() {
    let home = Home::new();
    let file = home.session("kept", &[&[header("kept")][..], &crate::support::entries(&turns(3))].concat());
    let name = file.display().to_string();
    let bytes = fs::read(&file).expect("a file");
    let (code, _, err) = report(&home, &[&name, "-o", &name]);
    assert_eq!(code, Some(1));
    assert!(err.contains("is there already and is no report") && err.contains("-o"), "{err}");
    assert_eq!(fs::read(&file).expect("a file"), bytes, "the session is whole");
    for _ in 0..2 {
        let (code, out, err) = report(&home, &[&name]);
        assert_eq!((code, out.as_str()), (Some(0), "report.html\n"), "{err}");
    }
    let page = home.path("report.html");
    assert_eq!(
        fs::metadata(&page).expect("a page").permissions().mode() & 0o777,
        0o600,
        "it has what the session says"
    );
    let (code, _, err) = report(&home, &[&name, "-o", "/dev/full"]);
    assert_eq!(code, Some(1), "{err}");
    let (code, _, err) = report(&home, &[&name, "-o", "nowhere/report.html"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot be written"), "{err}");
    let left: Vec<_> = fs::read_dir(home.0.path()).expect("a folder").flatten().map(|it| it.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
}

#[test]
fn a_page_that_cannot_be_made_says_why() {
    let home = Home::new();
    let (code, _, err) = report(&home, &["missing.jsonl"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("missing.jsonl"), "{err}");
    fs::write(home.path("text.jsonl"), "no session\n").expect("a file");
    assert_eq!(report(&home, &["text.jsonl"]).0, Some(1));
    let (code, _, err) = report(&home, &["text.jsonl", "--all"]);
    assert_eq!(code, Some(2), "{err}");
    fs::write(home.path("empty.jsonl"), format!("{}\n", header("empty"))).expect("a file");
    assert!(page_of(&home, &home.path("empty.jsonl")).contains("no entries yet"));
}

#[test]
fn all_sessions_of_a_data_folder_are_on_one_page() {
    let mut daemon = Daemon::start();
    eventful(&mut daemon);
    let second = daemon.new_session(json!({"cwd": "/elsewhere", "title": "Second"}));
    daemon.append(&second, &turns(2));
    let (code, page, err) = report(&daemon.home, &["--all", "-o", "-"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for part in
        ["Port &lt;b&gt;of&lt;/b&gt; the parser", "Second", &second, "<dt>Sessions</dt><dd>2</dd>", "class=\"spark\""]
    {
        assert!(page.contains(part), "{part} is missing in:\n{page}");
    }
    let (code, page, _) = report(&Home::new(), &["--all", "-o", "-"]);
    assert_eq!(code, Some(0));
    assert!(page.contains("There are no sessions yet"));
}

/// The browser, if this machine has one.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success()))
}

/// Opens a page beside a script that looks at it, and returns the result of the script. The page itself has no scripts.
fn looked_at(browser: &str, home: &Home, page: &str, width: u32, more: &[&str]) -> Value {
    let looking = r##"<!doctype html><meta charset="utf-8"><body style="margin:0"><iframe id="page" src="PAGE"
style="border:0;width:WIDTHpx;height:900px"></iframe><pre id="seen"></pre><script>
document.getElementById("page").onload = () => {
  const frame = document.getElementById("page"), page = frame.contentDocument, view = frame.contentWindow;
  const box = it => it.getBoundingClientRect();
  const channels = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = text => { const [r, g, b] = channels(text).map(c => { c /= 255; return c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const contrast = (one, other) => { const [a, b] = [light(one), light(other)].sort((a, b) => b - a); return (a + .05) / (b + .05); };
  const paper = view.getComputedStyle(page.documentElement).backgroundColor;
  const ink = it => contrast(view.getComputedStyle(it).color, paper);
  const chart = box(page.querySelector(".chart")), size = box(page.querySelector("path.size"));
  const pins = [...page.querySelectorAll(".chart .pin")];
  pins[0].focus();
  const targets = pins.map(pin => page.getElementById(pin.getAttribute("href").slice(1)) !== null);
  const details = [...page.querySelectorAll("details")];
  const closed = box(details[0]).height;
  details[0].querySelector("summary").click();
  document.getElementById("seen").textContent = JSON.stringify({
    paper, overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    ink: ink(page.body), soft: Math.min(...[...page.querySelectorAll(".soft")].map(ink)),
    chart: [chart.width, chart.height], size: [size.width, size.height],
    pins: pins.length, inside: pins.every(pin => box(pin).left >= chart.left - 20 && box(pin).right <= chart.right + 20),
    focused: page.activeElement === pins[0], targets: targets.every(it => it),
    opened: box(details[0]).height - closed, scripts: page.scripts.length,
    small: Math.min(...[...page.querySelectorAll("p, li, dt, dd, td, code")].map(it => parseFloat(view.getComputedStyle(it).fontSize))),
  });
};</script>"##;
    let report = home.path("looked-at.html");
    fs::write(&report, page).expect("a page");
    let looking = looking.replace("PAGE", &format!("file://{}", report.display())).replace("WIDTH", &width.to_string());
    let path = home.path("looking.html");
    fs::write(&path, looking).expect("a page");
    let profile = home.path("profile");
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-quic", "--allow-file-access-from-files"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--virtual-time-budget=4000", "--window-size=1400,1000"])
        .args(more)
        .args(["--dump-dom", &format!("file://{}", path.display())])
        .output()
        .expect("a browser that runs");
    let dom = String::from_utf8_lossy(&out.stdout);
    let seen = dom.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let seen = seen.map(|(seen, _)| seen.replace("&quot;", "\"").replace("&amp;", "&")).unwrap_or_default();
    serde_json::from_str(&seen)
        .unwrap_or_else(|error| panic!("{error} in {seen:?}: {dom}\n{}", String::from_utf8_lossy(&out.stderr)))
}

#[test]
fn a_browser_shows_the_page_on_a_phone_in_the_dark_and_to_the_keyboard() {
    let Some(browser) = browser() else {
        let _ = writeln!(stderr(), "skipped: the look of a report (no Chromium is installed)");
        return;
    };
    let mut daemon = Daemon::start();
    let file = eventful(&mut daemon);
    let page = page_of(&daemon.home, &file);
    let mut papers = Vec::new();
    for (width, more) in [(360, &[][..]), (1_200, &[]), (360, &["--force-dark-mode"])] {
        let seen = looked_at(browser, &daemon.home, &page, width, more);
        let number = |name: &str| seen[name].as_f64().unwrap_or_else(|| panic!("{name} in {seen}"));
        let at = |name: &str, at: usize| seen[name][at].as_f64().unwrap_or_else(|| panic!("{name} in {seen}"));
        assert!(number("overflow") <= 0.0, "the page is as wide as the window of {width}: {seen}");
        assert!(number("ink") >= 7.0 && number("soft") >= 4.5, "{width}: {seen}");
        assert!(number("small") >= 11.0, "{width}: {seen}");
        assert!(at("chart", 0) >= 0.7 * f64::from(width.min(1_024)) && at("chart", 1) >= 150.0, "{seen}");
        assert!(at("size", 0) >= 0.95 * at("chart", 0) && at("size", 1) >= 0.3 * at("chart", 1), "{seen}");
        assert!(number("pins") >= 3.0 && seen["inside"] == true, "{seen}");
        assert!(seen["focused"] == true && seen["targets"] == true, "{seen}");
        assert!(number("opened") > 50.0, "a summary opens: {seen}");
        assert_eq!(seen["scripts"], 0);
        papers.push(seen["paper"].as_str().expect("a colour").to_owned());
    }
    assert_eq!(papers[0], papers[1]);
    assert_ne!(papers[0], papers[2], "the dark page is dark");
    // On paper everything is open.
    let (html, pdf) = (daemon.home.path("print.html"), daemon.home.path("print.pdf"));
    fs::write(&html, &page).expect("a page");
    let printed = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .arg(format!("--user-data-dir={}", daemon.home.path("printer").display()))
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", html.display()))
        .output()
        .expect("a browser that runs");
    let pdf = fs::read(&pdf).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&printed.stderr)));
    let count = |part: &[u8]| pdf.windows(part.len()).filter(|window| *window == part).count();
    let pages = count(b"/Type /Page\n") + count(b"/Type /Page ");
    assert!(pages >= 3, "{pages} pages: summaries are printed open");
}
