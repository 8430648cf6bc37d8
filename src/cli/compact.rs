//! `abridged compact`: one session file from the shell.

use super::{
    client::{Client, Start},
    interrupt::{self, INTERRUPTED},
    model::Named,
    named,
    print::{self, plain, words::in_shell},
    watch::columns,
    wrap::print_sentences,
};
use crate::{log::header, text};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::mpsc,
};

/// Options of `abridged compact`.
pub struct Request {
    /// A session file, or the beginning of the id of a session of the data folder.
    pub session: PathBuf,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// Author of the summary, and no other one.
    pub model: Option<Named>,
    /// The candidates of the settings follow the author, and at last the extracted summary.
    pub fallback: bool,
    /// Report the plan without writing.
    pub dry_run: bool,
    /// Instructions for the summary: topics to keep above all.
    pub instructions: Option<String>,
    /// Tokens kept as they are.
    pub keep: Option<u64>,
    /// As JSON: the events as they come, each on a line, then the result.
    pub json: bool,
    /// The new file with a trace of the dialogue.
    pub trace: Option<PathBuf>,
}

/// Something that happens while a compaction runs.
enum Happening {
    /// A frame of the daemon; none when it is gone.
    Frame(Option<Value>),
    /// Ctrl-C.
    Interrupt,
}

/// Compacts a session file.
///
/// # Errors
/// When it is none, or there is nothing to compact, or the model that has to write the summary cannot be asked: the next
/// step.
pub fn run(request: &Request) -> Result<i32, String> {
    let file = named::file(Some(&request.session), request.data.as_deref())?;
    let over = match request.model.as_ref().map(|model| model.choose(&folder_of(&file))) {
        None => None,
        Some(Ok(chosen)) => Some(json!({ "models": chosen.models })),
        Some(Err(why)) => return Ok(refused(&why)),
    };
    let trace = request.trace.as_deref();
    let start = Start { home: None, over: over.as_ref(), data: None, capabilities: json!({}), is_apart: true, trace };
    let mut client = Client::start_as(start, |_, _| {})?;
    let loaded = client.call("session/load", json!({ "path": file, "readOnly": request.dry_run }))?;
    let session = &loaded["session"];
    let mut params = json!({ "sessionId": session["sessionId"], "dryRun": request.dry_run, "wait": !request.dry_run });
    if let Some(named) = &request.model {
        (params["model"], params["fallback"]) = (json!(named.model), json!(request.fallback));
    }
    if let Some(instructions) = &request.instructions {
        params["instructions"] = json!(instructions);
    }
    if let Some(keep) = request.keep {
        params["keepRecentTokens"] = json!(keep);
    }
    if request.dry_run {
        let answer = client.call("session/compact", params).map_err(|error| about(&file, &error))?;
        match request.json {
            true => print::document(&answer),
            false => print_sentences(&preparation(session, &loaded["repairs"], &answer["preparation"])),
        }
        client.end()?;
        return Ok(0);
    }
    let ended = compacted(client, &params, request.json)?;
    let answer = ended.answer.map_err(|error| about(&file, &error))?;
    // A closed pipe is no error: the file is compacted.
    match request.json {
        true => drop(writeln!(print::json(), "{answer}")),
        false => {
            print_sentences(&result(session, &loaded["repairs"], &answer, ended.why.as_deref()));
            if answer["outcome"] == "completed" {
                // Whole lines, which may be copied.
                print::line(then(&request.session).trim_end());
            }
        }
    }
    Ok(match answer["outcome"].as_str() {
        Some("completed") => 0,
        _ if ended.interrupted => INTERRUPTED,
        _ => 1,
    })
}

/// The end of a compaction.
struct Ended {
    answer: Result<Value, String>,
    /// The text of the error in its end event.
    why: Option<String>,
    interrupted: bool,
}

/// Runs a compaction and shows its progress. Ctrl-C cancels it, and the answer says so.
fn compacted(client: Client, params: &Value, is_json: bool) -> Result<Ended, String> {
    let (sender, happenings) = mpsc::channel();
    let frames = sender.clone();
    let mut speaker = client.follow(move |frame| drop(frames.send(Happening::Frame(frame))));
    interrupt::on_ctrl_c(move || sender.send(Happening::Interrupt).is_ok());
    let shows = !is_json && print::has_progress();
    let asked = speaker.request("session/compact", params)?;
    let (mut why, mut interrupted) = (None, false);
    let answer = loop {
        match happenings.recv().map_err(|error| error.to_string())? {
            Happening::Frame(None) => return Err("the daemon ended; what it said of it stands above".to_owned()),
            Happening::Interrupt => {
                if std::mem::replace(&mut interrupted, true) {
                    // A second one does not wait.
                    print::note("left; the daemon ends the compaction and releases the file");
                    return Ok(Ended { answer: Ok(json!({"outcome": "cancelled"})), why, interrupted });
                }
                speaker.request("session/cancel", &json!({ "sessionId": params["sessionId"] }))?;
            }
            Happening::Frame(Some(frame)) if frame["id"] == asked && frame.get("method").is_none() => {
                break match frame.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or("an error without a text").to_owned()),
                    None => Ok(frame["result"].clone()),
                };
            }
            Happening::Frame(Some(frame)) => {
                let event = &frame["params"]["event"];
                match event["type"].as_str() {
                    Some("compaction_progress") if shows => print::progress(&progress(event), columns(80)),
                    Some("compaction_end") => why = event["errorMessage"].as_str().map(plain),
                    _ => {}
                }
                if is_json && event.is_object() {
                    drop(writeln!(print::json(), "{event}"));
                }
            }
        }
    };
    if shows {
        print::progress("", columns(80));
    }
    speaker.end()?;
    Ok(Ended { answer, why, interrupted })
}

/// The progress of a compaction on one line.
fn progress(event: &Value) -> String {
    let percent = event["share"].as_f64().unwrap_or(0.0) * 100.0;
    let by = if event["model"].is_object() { format!(" by {}", model_name(&event["model"])) } else { String::new() };
    let steps = match (&event["done"], &event["total"]) {
        (done, total) if event["stage"] == "summarizing" && *total != 1 => format!(", request {done} of {total} done"),
        _ => String::new(),
    };
    let left = match event["remainingMs"].as_u64() {
        Some(left @ 1_000..) => format!(", about {} s left", left.div_ceil(1_000)),
        _ => String::new(),
    };
    format!("{}{by}: {percent:.0} %{steps}{left}", event["stage"].as_str().unwrap_or_default())
}

/// The commands that follow.
fn then(session: &Path) -> String {
    let session = plain(&session.display().to_string());
    let session = if session.contains(' ') { format!("'{session}'") } else { session };
    format!("Read it: abridged show {session}\nTake it back: abridged undo {session}\n")
}

/// An error with the file that it is about.
fn about(file: &Path, error: &str) -> String {
    let file = file.display().to_string();
    if error.contains(&file) { error.to_owned() } else { format!("{file}: {}", in_shell(error)) }
}

/// The folder that a session is about; whose settings hold for it. That a file is none is said by the daemon.
fn folder_of(file: &Path) -> PathBuf {
    header::peek(file).map(|found| PathBuf::from(found.header.cwd)).unwrap_or_default()
}

/// Says why what was asked for on the command line cannot be; the exit code for that.
pub(super) fn refused(why: &str) -> i32 {
    print::note(why);
    2
}

fn head(session: &Value, repairs: &Value) -> String {
    let path = plain(session["path"].as_str().unwrap_or_default());
    let mut text = format!("{path}\n  {} entries\n", session["entryCount"]);
    for repair in repairs.as_array().into_iter().flatten() {
        text.push_str(&format!("  note: {}\n", plain(repair["detail"].as_str().unwrap_or_default())));
    }
    text
}

fn preparation(session: &Value, repairs: &Value, plan: &Value) -> String {
    let files = |name: &str| plan["fileOps"][name].as_array().map_or(0, Vec::len);
    let summarizer = match plan["summarizer"].is_object() {
        true => format!("Summary: by {}, in {} requests.\n", model_name(&plan["summarizer"]), plan["chunks"]),
        false => String::new(),
    };
    let warning = match plan["warning"].as_str() {
        Some(_) => "The summary may take as much as what it replaces; then nothing is written.\n",
        None => "",
    };
    format!(
        "{}Would summarize {} messages{}, keep {}.\nTokens: {} before, at most {} after.\n{warning}{summarizer}Files: {} read, {} modified.\nNothing was changed.\n",
        head(session, repairs),
        plan["messagesToSummarize"].as_u64().unwrap_or(0) + plan["turnPrefixMessages"].as_u64().unwrap_or(0),
        if plan["isSplitTurn"] == true { " (the cut falls inside a turn)" } else { "" },
        plan["firstKeptEntryId"].as_str().map_or_else(|| "nothing".to_owned(), |id| format!("everything from {id} on")),
        grouped(&plan["tokensBefore"]),
        grouped(&plan["tokensAfterEstimate"]),
        files("read"),
        files("modified"),
    )
}

fn result(session: &Value, repairs: &Value, answer: &Value, why: Option<&str>) -> String {
    let mut text = head(session, repairs);
    let result = &answer["result"];
    match answer["outcome"].as_str() {
        Some("completed") => {
            let before = result["tokensBefore"].as_u64().unwrap_or(0);
            let after = result["tokensAfter"].as_u64().unwrap_or(0);
            text.push_str(&format!(
                "Compacted: {} → {} tokens ({} % freed), summary by {}.\n{}{}\n{}Kept as it is from entry {} on; written as entry {}.\n",
                grouped(&result["tokensBefore"]),
                grouped(&result["tokensAfter"]),
                (before.saturating_sub(after) * 100).checked_div(before).unwrap_or(0),
                authors(result),
                rejected(result).iter().map(|line| format!("Not by {line}\n")).collect::<String>(),
                result["shortSummary"].as_str().unwrap_or_default(),
                lost(result),
                result["firstKeptEntryId"].as_str().unwrap_or("–"),
                result["entryId"].as_str().unwrap_or_default(),
            ));
        }
        Some("cancelled") => text.push_str("Cancelled: nothing was written, and the file is free again.\n"),
        outcome => {
            let why = why.or_else(|| answer["skippedReason"].as_str());
            let why = why.map_or_else(|| answer["error"].to_string(), in_shell);
            text.push_str(&format!("Not compacted ({}): {why}\n", outcome.unwrap_or("?")));
        }
    }
    text
}

/// The numbers of facts that the summary does not have, on a line.
fn lost(result: &Value) -> String {
    let count = |name: &str| result["lost"][name].as_array().map_or(0, Vec::len);
    let parts = [("rules", "rules"), ("todos", "open tasks"), ("errors", "errors"), ("files", "changed files")];
    let parts = parts.map(|(name, words)| (count(name), words));
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    if parts.is_empty() { String::new() } else { format!("Not in the summary: {}.\n", parts.join(", ")) }
}

/// Authors of a summary: one, or one for each part.
pub(super) fn authors(result: &Value) -> String {
    match &result["parts"] {
        Value::Null => by(result),
        parts => format!("{}, its turn's beginning by {}", by(&parts["history"]), by(&parts["turnPrefix"])),
    }
}

/// Author of a summary, or of a part: a model, or the method.
fn by(result: &Value) -> String {
    match result["model"].is_object() {
        true => model_name(&result["model"]),
        false => result["method"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A model's name.
pub(super) fn model_name(model: &Value) -> String {
    let part = |name: &str| model[name].as_str().unwrap_or_default();
    plain(&format!("{}/{}", part("provider"), part("id")))
}

/// Rejected candidates with their reasons, one line each.
pub(super) fn rejected(result: &Value) -> Vec<String> {
    let line = |it: &Value| {
        let why = plain(it["why"].as_str().unwrap_or_default());
        match (it["model"].is_object(), why.split_once(": ")) {
            // An error of a provider names its model itself.
            (true, Some((model, _))) if model == by(it) => why,
            (true, _) => format!("{}: {why}", by(it)),
            (false, _) => why,
        }
    };
    result["rejected"].as_array().into_iter().flatten().map(line).collect()
}

/// A number with commas; another value as JSON.
pub(super) fn grouped(number: &Value) -> String {
    text::grouped(&number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_authors_of_a_summary_are_those_of_its_parts() {
        let model = json!({"provider": "p", "id": "m"});
        let mut result = json!({"method": "llm", "model": model});
        assert_eq!(authors(&result), "p/m");
        let extracted = json!({"method": "extractive", "model": null});
        result["parts"] = json!({"history": {"method": "llm", "model": model}, "turnPrefix": extracted});
        assert_eq!(authors(&result), "p/m, its turn's beginning by extractive");
    }
}
