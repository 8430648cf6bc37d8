//! `abridged demo`: a newcomer's first minute. A daemon as a child, a session over its threshold, one compaction, and
//! what it did as a picture.

use super::{client::Client, compact::grouped, paint::Paint};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    time::Instant,
};

/// The session, bundled: retries for a program that sends webhooks.
const SESSION: &str = include_str!("../../demo/session.jsonl");

/// The window of the demo's model is small, so that a short session is over its threshold.
fn settings() -> Value {
    json!({
        "models": [{ "provider": "demo", "id": "demo-24k", "contextWindow": 24_576 }],
        "compaction": { "keepRecentTokens": 3_000 },
    })
}

/// Runs the demo; with `raw` only the dialogue is printed.
///
/// # Errors
/// When something does not work: what.
pub fn run(raw: bool) -> Result<i32, String> {
    let home = Home::make()?;
    if raw {
        let print = |direction: char, line: &str| {
            let _ = writeln!(std::io::stdout(), "{direction} {line}");
        };
        let mut client = Client::start(Some(&home.folder), print)?;
        let loaded = load(&mut client, &home)?;
        compact(&mut client, &loaded, &mut |_| {})?;
        client.call("session/context", json!({ "sessionId": loaded["session"]["sessionId"] }))?;
        client.call("shutdown", json!({}))?;
        client.end()?;
        return Ok(0);
    }
    show(&home)
}

fn load(client: &mut Client, home: &Home) -> Result<Value, String> {
    client.call("session/load", json!({ "path": home.session, "settings": settings() }))
}

/// Compacts and hands each event on, to the one that says the session has settled.
fn compact(client: &mut Client, loaded: &Value, told: &mut dyn FnMut(&Value)) -> Result<Value, String> {
    client.call("session/compact", json!({ "sessionId": loaded["session"]["sessionId"] }))?;
    let mut end = Value::Null;
    loop {
        let frame = client.next_event()?;
        let event = frame["params"]["event"].clone();
        told(&event);
        match event["type"].as_str() {
            Some("compaction_end") => end = event,
            Some("settled") => return Ok(end),
            _ => {}
        }
    }
}

fn show(home: &Home) -> Result<i32, String> {
    let paint = Paint::for_stdout();
    let mut client = Client::start(Some(&home.folder), |_, _| {})?;
    let loaded = load(&mut client, home)?;
    let session = &loaded["session"];
    let id = json!({ "sessionId": session["sessionId"] });
    let before = client.call("session/context", id.clone())?;
    let usage = client.call("session/usage", id.clone())?;
    let bytes_before = fs::read(&home.session).map_err(|error| error.to_string())?;

    say("");
    say(&paint.bold("A session that is too long for its model"));
    say(&format!(
        "  “{}”, {} entries, in {}",
        session["title"].as_str().unwrap_or_default(),
        session["entryCount"],
        session["cwd"].as_str().unwrap_or_default()
    ));
    say(&format!("  {}", bar(&before["usage"], &paint)));
    say(&format!("  {}", usage["why"].as_str().unwrap_or_default()));
    say("");
    say(&paint.bold("session/compact, and its events as they come"));
    let started = Instant::now();
    let mut tell = |event: &Value| {
        if let Some(line) = event_line(event, &paint) {
            say(&format!("  {:>6} ms  {line}", started.elapsed().as_millis()));
        }
    };
    let end = compact(&mut client, &loaded, &mut tell)?;
    let after = client.call("session/context", id)?;
    let result = &end["result"];

    say("");
    say(&paint.bold("What the model is sent"));
    picture(&before, &after, result, &paint);
    say(&format!("  before {}", bar(&before["usage"], &paint)));
    say(&format!("  after  {}", bar(&after["usage"], &paint)));
    say("");
    say(&paint.bold("The summary that stands for the rest"));
    summary(result["summary"].as_str().unwrap_or_default(), &paint);
    say("");
    say(&paint.bold("On disk"));
    let bytes_after = fs::read(&home.session).map_err(|error| error.to_string())?;
    let untouched = bytes_after.starts_with(&bytes_before);
    let lines = bytes_after[bytes_before.len().min(bytes_after.len())..].iter().filter(|byte| **byte == b'\n').count();
    say(&format!(
        "  {} line was appended; the {} bytes before it are {}.",
        lines,
        grouped(&json!(bytes_before.len())),
        if untouched { "what they were, byte for byte" } else { "NOT what they were" }
    ));
    say("  Nothing is lost: session/entry gives back every message that the model no longer sees.");
    client.call("shutdown", json!({}))?;
    client.end()?;
    say("");
    say("Next: `abridged compact FILE` does the same to a session of yours; README.md has a client in 20 lines.");
    Ok(if untouched && end["outcome"] == "completed" { 0 } else { 1 })
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// One event on one line; none for those a person need not see.
fn event_line(event: &Value, paint: &Paint) -> Option<String> {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let kind = event["type"].as_str()?;
    let detail = match kind {
        "status_changed" => event["status"]["type"].as_str()?.to_owned(),
        "compaction_start" => format!("{}, {} tokens", text("reason"), grouped(&event["tokensBefore"])),
        "compaction_progress" => {
            let (done, total) = (event["done"].as_u64()?, event["total"].as_u64()?.max(1));
            let width = 20;
            let full = usize::try_from(done * width / total).ok()?;
            format!("[{}{}] {}", "█".repeat(full), "░".repeat(usize::try_from(width).ok()? - full), text("stage"))
        }
        "summary_chunk" => {
            let words = text("text").split_whitespace().count();
            format!("{}, {words} words", text("source"))
        }
        "entry_appended" => "the compaction is on disk".to_owned(),
        "usage_updated" => format!("{} tokens", grouped(&event["usage"]["contextTokens"])),
        "compaction_end" => format!("{} in {} ms", text("outcome"), event["durationMs"]),
        "settled" => "nothing runs any more".to_owned(),
        _ => return None,
    };
    Some(format!("{} {detail}", paint.dim(&format!("{kind:<20}"))))
}

/// A window as a bar with its threshold.
fn bar(usage: &Value, paint: &Paint) -> String {
    const WIDTH: u64 = 48;
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    let window = number("contextWindow").max(1);
    let at = |tokens: u64| (tokens * WIDTH / window).min(WIDTH);
    let (filled, threshold) = (at(number("contextTokens")), at(number("thresholdTokens")));
    let cells = (0..WIDTH).map(|cell| match () {
        () if cell == threshold => "│",
        () if cell < filled => "█",
        () => "░",
    });
    let over = number("contextTokens") > number("thresholdTokens");
    let cells = cells.collect::<String>();
    let cells = if over { paint.red(&cells) } else { paint.green(&cells) };
    format!(
        "▕{cells}▏ {} of {} tokens, threshold {}",
        grouped(&usage["contextTokens"]),
        grouped(&usage["contextWindow"]),
        grouped(&usage["thresholdTokens"])
    )
}

/// Both contexts, a letter for each message: what was summarized, what was kept.
fn picture(before: &Value, after: &Value, result: &Value, paint: &Paint) {
    let letters = |context: &Value| -> Vec<&'static str> {
        let messages = context["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let summary = context["compactionEntryId"].is_string();
        let letter = |(at, message): (usize, &Value)| match message["role"].as_str() {
            _ if at == 0 && summary => "S",
            Some("user") => "u",
            Some("assistant") => "a",
            Some("toolResult") => "t",
            _ => "·",
        };
        messages.iter().enumerate().map(letter).collect()
    };
    let ids = |context: &Value| context["entryIds"].as_array().cloned().unwrap_or_default();
    let cut = ids(before).iter().position(|id| *id == result["firstKeptEntryId"]).unwrap_or(0);
    let (was, is) = (letters(before), letters(after));
    let kept = was.len() - cut;
    let brace = |width: usize, name: &str| {
        let name = format!(" {name} ");
        let line = width.saturating_sub(2 + name.chars().count());
        format!("└{}{name}{}┘", "─".repeat(line / 2), "─".repeat(line - line / 2))
    };
    say(&format!("  before  {}{}", paint.dim(&was[..cut].concat()), paint.green(&was[cut..].concat())));
    say(&format!("          {}{}", brace(cut, &format!("{cut} summarized")), brace(kept, &format!("{kept} kept"))));
    say(&format!(
        "  after   {:>width$}{}",
        paint.bold(is.first().unwrap_or(&"")),
        paint.green(&is[1..].concat()),
        width = cut + paint.width_of_bold()
    ));
    say(&format!("          {}", paint.dim("S summary, u user, a answer, t tool result")));
}

/// The summary, long parts cut for the screen.
fn summary(text: &str, paint: &Paint) {
    const MOST_LINES: usize = 46;
    const WIDEST: usize = 110;
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(MOST_LINES) {
        let line = crate::text::head(line, WIDEST);
        let line = if line.starts_with('#') { paint.bold(line) } else { line.to_owned() };
        say(&format!("  {line}"));
    }
    if lines.len() > MOST_LINES {
        say(&paint.dim(&format!("  … {} more lines; session/entry has them all", lines.len() - MOST_LINES)));
    }
    let secrets = text.matches("[REDACTED:").count();
    say(&paint.dim(&format!("  ({secrets} secrets of the session are placeholders in it)")));
}

/// A folder for the demo alone, gone when it ends.
struct Home {
    folder: PathBuf,
    session: PathBuf,
}

impl Home {
    fn make() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("abridged-demo-{}", std::process::id()));
        let session = folder.join("session.jsonl");
        let made = fs::create_dir_all(&folder).and_then(|()| fs::write(&session, SESSION));
        made.map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
        Ok(Self { folder, session })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all::<&Path>(&self.folder);
    }
}
