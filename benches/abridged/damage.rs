//! A session file with a thousand damaged lines against the whole one.

use super::{
    Report,
    sessions::{open, session},
};
use serde_json::Value;
use std::{fs, path::Path, time::Duration};

/// The lines that are damaged.
const DAMAGED: usize = 1_000;

/// The pairs of measurements for each size.
const PAIRS: usize = 20;

/// Damages so many lines of a file, spread over all of it: cut off behind their ids, cut off before them, with a broken
/// escape, or glued to the next. The compaction and the first entry that it keeps stay whole: without them the context is
/// the whole file.
fn damage(whole: &Path, damaged: &Path) {
    let text = fs::read_to_string(whole).expect("a file");
    let count = text.lines().count();
    let every = count / DAMAGED;
    let kept = |line: &&str| serde_json::from_str::<Value>(line).ok()?["firstKeptEntryId"].as_str().map(str::to_owned);
    let first = text.lines().rev().find_map(|line| kept(&line)).expect("a compaction");
    let first = format!("\"id\":\"{first}\"");
    let spared = |line: &str| line.contains("firstKeptEntryId") || line.contains(&first);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut due = false;
    for (at, line) in text.lines().enumerate() {
        due |= at % every == every / 2 && done < DAMAGED;
        let hit = due && !spared(line);
        match done % 4 {
            _ if !hit => out.push_str(line),
            0 => out.push_str(&line[..line.len() / 2]),
            1 => out.push_str("{\"ty"),
            2 => out.push_str(&line.replacen("\"role\":\"", "\"role\":\"\\q", 1)),
            _ => out.push_str(line),
        }
        if !hit || done % 4 != 3 {
            out.push('\n');
        }
        done += usize::from(hit);
        due &= !hit;
    }
    assert_eq!(done, DAMAGED, "{count} lines");
    fs::write(damaged, out).expect("a file");
}

/// The times until a session was loaded, had its first context, and had its index. Its daemon is gone then, so that it
/// takes nothing from the next one.
fn times_of(file: &Path) -> [Duration; 3] {
    let opened = open(file);
    [opened.load, opened.context, opened.index]
}

/// The median ratio of pairs, for a file that is indexed at once and one that is opened by its end.
pub fn damaged_lines(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, damaged) = (folder.path().join("whole.jsonl"), folder.path().join("damaged.jsonl"));
    for (name, megabytes) in [("15 MB", 15), ("100 MB", 100)] {
        session(&whole, megabytes * 1_000_000, true);
        damage(&whole, &damaged);
        let mut times = Vec::new();
        for pair in 0..PAIRS {
            // The order alternates: a drift of the machine's speed falls on both alike.
            let (first, second) = if pair % 2 == 0 { (&whole, &damaged) } else { (&damaged, &whole) };
            let (first, second) = (times_of(first), times_of(second));
            let (whole, damaged) = if pair % 2 == 0 { (first, second) } else { (second, first) };
            times.push([0, 1, 2].map(|part: usize| damaged[part].div_duration_f64(whole[part])));
        }
        for (part, what) in ["load", "load and first context", "index, since the load was sent"].iter().enumerate() {
            let mut ratios: Vec<f64> = times.iter().map(|parts| parts[part]).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            let name = format!("{name}, 1,000 damaged lines against the whole: {what}");
            report.add(name, ratios[ratios.len() / 2], "times", "1.5");
        }
    }
}
