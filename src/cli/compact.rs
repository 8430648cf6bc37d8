//! `abridged compact`: one session file from the shell.

use super::{
    client::Client,
    model::Named,
    print::{self, plain},
};
use crate::log::header;
use serde_json::{Value, json};
use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

/// Options of `abridged compact`.
pub struct Request {
    /// The session file.
    pub file: PathBuf,
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
    /// As JSON.
    pub json: bool,
}

/// Compacts a session file.
///
/// # Errors
/// When it is none, or there is nothing to compact, or the model that has to write the summary cannot be asked: the next
/// step.
pub fn run(request: &Request) -> Result<i32, String> {
    let file = std::path::absolute(&request.file).map_err(|error| error.to_string())?;
    let over = match request.model.as_ref().map(|model| model.choose(&folder_of(&file))) {
        None => None,
        Some(Ok(chosen)) => Some(json!({ "models": chosen.models })),
        Some(Err(why)) => return Ok(refused(&why)),
    };
    let mut client = Client::start(None, over.as_ref(), |_, _| {})?;
    let loaded = client.call("session/load", json!({ "path": file }))?;
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
    let answer = client.call("session/compact", params).map_err(|error| format!("{}: {error}", file.display()))?;
    let why = why_not(&mut client);
    let mut out = print::stdout();
    let printed = match (request.json, request.dry_run) {
        (true, _) => writeln!(print::json(), "{answer:#}"),
        (false, true) => write!(out, "{}", preparation(session, &loaded["repairs"], &answer["preparation"])),
        (false, false) => {
            let text = result(session, &loaded["repairs"], &answer, why.as_deref());
            write!(out, "{text}").and_then(|()| match std::io::stdout().is_terminal() {
                true => writeln!(out, "\nThe summary is in the last line of the file; --json prints it."),
                false => Ok(()),
            })
        }
    };
    printed.map_err(|error| error.to_string())?;
    client.end()?;
    Ok(if answer["outcome"].as_str().is_none_or(|outcome| outcome == "completed") { 0 } else { 1 })
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
        true => format!("Summary: by {}, in {} requests.\n", named(&plan["summarizer"]), plan["chunks"]),
        false => String::new(),
    };
    format!(
        "{}Would summarize {} messages{}, keep everything from {} on.\nTokens: {} before, at most {} after.\n{summarizer}Files: {} read, {} modified.\nNothing was changed.\n",
        head(session, repairs),
        plan["messagesToSummarize"].as_u64().unwrap_or(0) + plan["turnPrefixMessages"].as_u64().unwrap_or(0),
        if plan["isSplitTurn"] == true { " (the cut falls inside a turn)" } else { "" },
        plan["firstKeptEntryId"].as_str().unwrap_or("nothing"),
        grouped(&plan["tokensBefore"]),
        grouped(&plan["tokensAfterEstimate"]),
        files("read"),
        files("modified"),
    )
}

/// The text of the error that ended the compaction. It is in the end event.
fn why_not(client: &mut Client) -> Option<String> {
    let mut why = None;
    while let Some(frame) = client.arrived() {
        let event = &frame["params"]["event"];
        if event["type"] == "compaction_end" {
            why = event["errorMessage"].as_str().map(plain);
        }
    }
    why
}

fn result(session: &Value, repairs: &Value, answer: &Value, why: Option<&str>) -> String {
    let mut text = head(session, repairs);
    let result = &answer["result"];
    match answer["outcome"].as_str() {
        Some("completed") => {
            let before = result["tokensBefore"].as_u64().unwrap_or(0);
            let after = result["tokensAfter"].as_u64().unwrap_or(0);
            text.push_str(&format!(
                "Compacted: {} → {} tokens ({} % freed), summary by {}.\n{}{}\nKept as it is from entry {} on; written as entry {}.\n",
                grouped(&result["tokensBefore"]),
                grouped(&result["tokensAfter"]),
                (before.saturating_sub(after) * 100).checked_div(before).unwrap_or(0),
                authors(result),
                rejected(result).iter().map(|line| format!("Not by {line}\n")).collect::<String>(),
                result["shortSummary"].as_str().unwrap_or_default(),
                result["firstKeptEntryId"].as_str().unwrap_or("–"),
                result["entryId"].as_str().unwrap_or_default(),
            ));
        }
        outcome => {
            let why = why.or_else(|| answer["skippedReason"].as_str());
            let why = why.map_or_else(|| answer["error"].to_string(), str::to_owned);
            text.push_str(&format!("Not compacted ({}): {why}\n", outcome.unwrap_or("?")));
        }
    }
    text
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
        true => named(&result["model"]),
        false => result["method"].as_str().unwrap_or_default().to_owned(),
    }
}

/// A model's name.
pub(super) fn named(model: &Value) -> String {
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

/// 1234567 as 1,234,567.
pub(super) fn grouped(number: &Value) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
