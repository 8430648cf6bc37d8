//! `abridged demo --model`: a session over its threshold, and a compaction whose summary a model writes, shown as it is
//! written. A picture of both contexts follows.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use super::{Home, SESSION, print_frame, say};
use crate::cli::{
    cells::bar::bar,
    client::Client,
    compact::{authors, grouped, model_name, rejected},
    model::Chosen,
    paint::Paint,
    print::{plain, printable},
};
use crate::regular;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::PathBuf, time::Instant};

/// Largest session file of the demo, in bytes.
const LARGEST: u64 = 64 << 20;

/// The window of the demo's model is small, so that a short session is over its threshold. The user's own
/// settings name the models that write the summary; no other setting of theirs applies.
fn settings(chosen: &Chosen) -> Value {
    let own = json!({ "provider": "demo", "id": "demo-24k", "contextWindow": 24_576 });
    let models: Vec<Value> = chosen.models.first().cloned().into_iter().chain([own]).collect();
    let order = [chosen.candidate.model.to_string()];
    json!({ "models": models, "compaction": { "keepRecentTokens": 3_000, "models": order } })
}

/// Compacts the session; with `raw` only the dialogue is printed.
///
/// # Errors
/// When something does not work: what.
pub(super) fn run(home: &Home, chosen: &Chosen, raw: bool) -> Result<i32, String> {
    let settings = settings(chosen);
    fs::write(session(home), SESSION).map_err(|error| error.to_string())?;
    if raw {
        let mut client = home.start(&settings, print_frame)?;
        let loaded = load(&mut client, home)?;
        compact(&mut client, &loaded, &mut |_| {})?;
        client.call("session/context", json!({ "sessionId": loaded["session"]["sessionId"] }))?;
        client.call("shutdown", json!({}))?;
        client.end()?;
        return Ok(0);
    }
    show(home, &settings, chosen)
}

/// The file of the session.
fn session(home: &Home) -> PathBuf {
    home.folder.join("session.jsonl")
}

fn load(client: &mut Client, home: &Home) -> Result<Value, String> {
    client.call("session/load", json!({ "path": session(home) }))
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

fn show(home: &Home, settings: &Value, chosen: &Chosen) -> Result<i32, String> {
    let paint = Paint::for_stdout();
    let mut client = home.start(settings, |_, _| {})?;
    let loaded = load(&mut client, home)?;
    let (info, file) = (&loaded["session"], session(home));
    let id = json!({ "sessionId": info["sessionId"] });
    let before = client.call("session/context", id.clone())?;
    let usage = client.call("session/usage", id.clone())?;
    let bytes_before = regular::read(&file, LARGEST).map_err(|error| error.to_string())?;

    say("");
    say(&paint.bold("A session that is too long for its model"));
    say(&format!(
        "  “{}”, {} entries, in {}",
        info["title"].as_str().unwrap_or_default(),
        info["entryCount"],
        info["cwd"].as_str().unwrap_or_default()
    ));
    say(&format!("  {}", meter(&before["usage"], &paint)));
    say(&format!("  {}", usage["why"].as_str().unwrap_or_default()));
    say("");
    say(&paint.bold("Who writes the summary"));
    say(&format!("  {}", chosen.told()));
    say("  It is sent the conversation as text, its secrets taken out. If it fails, the summary is extracted.");
    say("");
    say(&paint.bold("session/compact, and its events as they come"));
    let started = Instant::now();
    let mut written = Lines::default();
    let mut tell = |event: &Value| {
        let at = started.elapsed().as_millis();
        if written.take(event, &paint) {
            return;
        }
        if let Some(line) = event_line(event, &paint) {
            say(&format!("  {at:>6} ms  {line}"));
        }
    };
    let end = compact(&mut client, &loaded, &mut tell)?;
    let after = client.call("session/context", id.clone())?;
    let result = &end["result"];
    say("");
    say(&paint.bold("What came of it"));
    outcome(&mut client, &id, result, &paint)?;

    say("");
    say(&paint.bold("What the model is sent"));
    picture(&before, &after, result, &paint);
    say(&format!("  before {}", meter(&before["usage"], &paint)));
    say(&format!("  after  {}", meter(&after["usage"], &paint)));
    // A model's summary was shown while it was written.
    if result["method"] != "llm" {
        say("");
        say(&paint.bold("The summary that stands for the rest"));
        summary(result["summary"].as_str().unwrap_or_default(), &paint);
    }
    say("");
    say(&paint.bold("On disk"));
    let bytes_after = regular::read(&file, LARGEST).map_err(|error| error.to_string())?;
    let untouched = bytes_after.starts_with(&bytes_before);
    let lines = bytes_after[bytes_before.len().min(bytes_after.len())..].iter().filter(|byte| **byte == b'\n').count();
    say(&format!(
        "  {} appended; the {} bytes before it are {}.",
        if lines == 1 { "1 line was".to_owned() } else { format!("{lines} lines were") },
        grouped(&json!(bytes_before.len())),
        if untouched { "what they were, byte for byte" } else { "NOT what they were" }
    ));
    say("  Nothing is lost: session/entry gives back every message that the model no longer sees.");
    client.call("shutdown", json!({}))?;
    client.end()?;
    say("");
    let model = &chosen.candidate.model;
    say(&format!("Next: `abridged compact FILE --model {model}` does the same to a session of yours;"));
    say("README.md has a client in 20 lines.");
    Ok(if untouched && end["outcome"] == "completed" { 0 } else { 1 })
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
        "retry_start" => {
            let what = plain(&text("errorMessage"));
            format!("try {} of {} in {} ms: {what}", event["attempt"], event["maxAttempts"], event["delayMs"])
        }
        "retry_end" if event["success"] == true => "it worked".to_owned(),
        "retry_end" => plain(&text("errorMessage")),
        "notice" => plain(&format!("{}. {}", text("title"), text("detail"))),
        "summary_chunk" => {
            let words = text("text").split_whitespace().count();
            format!("{}, {words} words", text("source"))
        }
        "entry_appended" if event["entry"]["type"] == "usage" => "what a request cost is on disk".to_owned(),
        "entry_appended" => "the compaction is on disk".to_owned(),
        "usage_updated" => format!("{} tokens", grouped(&event["usage"]["contextTokens"])),
        "compaction_end" => format!("{} in {} ms", text("outcome"), event["durationMs"]),
        "settled" => "nothing runs any more".to_owned(),
        _ => return None,
    };
    Some(format!("{} {detail}", paint.dim(&format!("{kind:<20}"))))
}

/// A summary while a model writes it. Its two parts may be written at the same time, so it is shown by lines.
#[derive(Default)]
struct Lines {
    /// By source: the chunk and its try, and the line that has not ended.
    open: BTreeMap<String, ((u64, u64), String)>,
    /// No model writes any more: what comes now was extracted.
    over: bool,
}

impl Lines {
    /// Shows what a model writes. Whether the event was that.
    fn take(&mut self, event: &Value, paint: &Paint) -> bool {
        match event["type"].as_str() {
            Some("summary_chunk") if !self.over => self.write(event, paint),
            Some("compaction_progress") => {
                self.over = event["done"] == event["total"];
                if self.over {
                    self.end(paint);
                }
                return false;
            }
            Some("compaction_end") => {
                self.end(paint);
                return false;
            }
            _ => return false,
        }
        true
    }

    fn write(&mut self, event: &Value, paint: &Paint) {
        let source = event["source"].as_str().unwrap_or_default();
        let place = (event["part"].as_u64().unwrap_or(1), event["attempt"].as_u64().unwrap_or(1));
        let (before, line) = self.open.entry(source.to_owned()).or_insert((place, String::new()));
        if *before != place {
            *before = place;
            Self::say(source, &std::mem::take(line), paint);
            Self::say(source, &format!("– chunk {}, try {}; the text above is void –", place.0, place.1), paint);
        }
        line.push_str(&printable(event["text"].as_str().unwrap_or_default()));
        while let Some((whole, rest)) = line.split_once('\n') {
            Self::say(source, whole, paint);
            *line = rest.to_owned();
        }
    }

    fn end(&mut self, paint: &Paint) {
        for (source, (_, line)) in &mut self.open {
            if !line.is_empty() {
                Self::say(source, &std::mem::take(line), paint);
            }
        }
    }

    fn say(source: &str, line: &str, paint: &Paint) {
        let line = if line.starts_with('#') { paint.bold(line) } else { line.to_owned() };
        say(&format!("  {} {line}", paint.dim(&format!("{source:>11} │"))));
    }
}

/// Author, rejected candidates and cost of the summary.
fn outcome(client: &mut Client, id: &Value, result: &Value, paint: &Paint) -> Result<(), String> {
    let text = |key: &str| result[key].as_str().unwrap_or_default().to_owned();
    say(&format!("  {} by {}", paint.dim("summary "), authors(result)));
    say(&format!(
        "  {} {} → {} tokens",
        paint.dim("context "),
        grouped(&result["tokensBefore"]),
        grouped(&result["tokensAfter"])
    ));
    if result["method"] == "llm" {
        say(&format!("  {} {}", paint.dim("in short"), plain(&text("shortSummary"))));
    }
    for line in rejected(result) {
        say(&format!("  {} {line}", paint.red("not by  ")));
    }
    let session = id["sessionId"].clone();
    let page = client.call("session/entries", json!({ "sessionId": session, "types": ["usage"] }))?;
    for entry in page["entries"].as_array().into_iter().flatten() {
        let usage = &entry["usage"];
        let cached = match usage["cacheRead"].as_u64().unwrap_or(0) {
            0 => String::new(),
            read => format!(", {} from the cache", grouped(&json!(read))),
        };
        say(&format!(
            "  {} {}, {}: {} tokens in{cached}, {} out",
            paint.dim("cost    "),
            entry["purpose"].as_str().unwrap_or_default(),
            model_name(&json!({ "provider": entry["provider"], "id": entry["model"] })),
            grouped(&usage["input"]),
            grouped(&usage["output"])
        ));
    }
    Ok(())
}

/// A window as a bar, and its numbers.
fn meter(usage: &Value, paint: &Paint) -> String {
    const WIDTH: u64 = 48;
    format!(
        "{} {} of {} tokens, threshold {}",
        bar(usage, WIDTH, paint),
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
        let line = &plain(crate::text::head(line, WIDEST));
        let line = if line.starts_with('#') { paint.bold(line) } else { line.to_owned() };
        say(&format!("  {line}"));
    }
    if lines.len() > MOST_LINES {
        say(&paint.dim(&format!("  … {} more lines; session/entry has them all", lines.len() - MOST_LINES)));
    }
    let secrets = text.matches("[REDACTED:").count();
    say(&paint.dim(&format!("  ({secrets} secrets of the session are placeholders in it)")));
}
