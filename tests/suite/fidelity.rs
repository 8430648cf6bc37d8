//! The facts that extracted summaries keep, on the generated sessions of the bench. `docs/FIDELITY.md` defines them.

#[path = "../../benches/abridged/fidelity/generator.rs"]
#[allow(dead_code, reason = "the bench uses all of it")]
mod generator;

use abridged::{
    conversation::{
        entry::Entry,
        tokens::{Estimator, Scale},
    },
    settings::Settings,
    summary::{
        cleaner::Cleaner,
        extractive::{self, Summary},
        span::Span,
    },
};
use generator::{Planted, Probe};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

const SCALE: Scale = Scale::new(Estimator::Chars, 1.0);

fn summary(span: Span<'_>, cap: u64) -> Summary {
    let settings = Settings::default();
    let summary = extractive::summarize(&extractive::Request {
        span,
        wishes: Default::default(),
        cap,
        without: None,
        settings: &settings,
        cleaner: &Cleaner::new(&settings),
        scale: SCALE,
        stop: &|| false,
    });
    assert!(SCALE.text(&summary.text) <= cap, "{} of {cap}", SCALE.text(&summary.text));
    summary
}

fn compaction(summary: &Summary) -> Arc<Entry> {
    let line = json!({"type": "compaction", "id": "c", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "summary": &*summary.text, "firstKeptEntryId": "x", "tokensBefore": 1});
    Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
}

/// The share of the probes of each kind that a text has.
fn shares(probes: &[Probe], text: &str) -> BTreeMap<Planted, f64> {
    let text = text.to_lowercase();
    let mut all: BTreeMap<Planted, Vec<bool>> = BTreeMap::new();
    probes.iter().for_each(|probe| all.entry(probe.kind).or_default().push(probe.is_in(&text)));
    let share = |found: Vec<bool>| found.iter().filter(|found| **found).count() as f64 / found.len() as f64;
    all.into_iter().map(|(kind, found)| (kind, share(found))).collect()
}

/// Kinds that have to be whole in any summary of 4,000 tokens.
const WHOLE: [Planted; 7] = [
    Planted::Rule,
    Planted::Preference,
    Planted::Said,
    Planted::Newest,
    Planted::OpenTodo,
    Planted::UnresolvedError,
    Planted::EditedFile,
];

#[test]
fn planted_facts_are_in_a_summary_and_stale_values_and_secrets_are_not() {
    for seed in 1..4 {
        let generated = generator::session(seed);
        let summary = summary(Span::of(&generated.entries), 4_000);
        let found = shares(&generated.probes, &summary.text);
        for kind in WHOLE {
            assert_eq!(found[&kind], 1.0, "seed {seed}, {kind:?}\n{}", &*summary.text);
        }
        assert!(found[&Planted::Printed] >= 0.8, "seed {seed}\n{}", &*summary.text);
        for kind in [Planted::Stale, Planted::Secret] {
            assert_eq!(found[&kind], 0.0, "seed {seed}, {kind:?}\n{}", &*summary.text);
        }
        let rules = summary.text.split("## ").find(|section| section.starts_with("Constraints")).expect("rules");
        assert!(!rules.contains("delete the repository"), "{rules}");
        assert!(summary.short.starts_with("Please move the shop to the new payment service."), "{}", &*summary.short);
    }
}

#[test]
fn planted_facts_survive_twenty_compactions() {
    for (turns, rounds) in [(1, 20), (40, 6)] {
        let generated = generator::session(7);
        let mut entries = generated.entries.clone();
        let mut at = entries.len();
        let mut made = summary(Span::of(&entries), 6_000);
        let first = shares(&generated.probes, &made.text);
        for round in 1..rounds {
            entries = generator::turns(round as u64, at, turns);
            at += entries.len();
            let previous = compaction(&made);
            made = summary(Span::of(&entries).continuing(Some(&previous)), 6_000);
        }
        let last = shares(&generated.probes, &made.text);
        for kind in [Planted::Rule, Planted::Preference, Planted::Said, Planted::Printed, Planted::Newest] {
            assert!(
                last[&kind] >= first[&kind] * 0.95,
                "{kind:?}: {} of {}\n{}",
                last[&kind],
                first[&kind],
                &*made.text
            );
        }
        assert_eq!(last[&Planted::Stale], 0.0);
    }
}

/// A tiny summary leaves out the labels of facts, which tell their kind.
#[test]
fn facts_of_a_tiny_summary_survive_turns_with_newer_notes() {
    let facts = ["The staging host is at bepgi.internal.", "Eval cases 101 and 202 are failing."];
    let told = facts.iter().map(|fact| ("user", format!("FACT: {fact}"))).collect::<Vec<_>>();
    let mut made = summary(Span::of(&said(&told)), 160);
    for round in 1..4 {
        let other = (0..30).map(|at| ("user", format!("Note: helper {at} of part {round} is in folder Q{at}.")));
        let entries = said(&other.collect::<Vec<_>>());
        let previous = compaction(&made);
        made = summary(Span::of(&entries).continuing(Some(&previous)), 160);
        for fact in facts {
            assert!(made.text.contains(fact), "round {round}\n{}", &*made.text);
        }
    }
}

fn said(texts: &[(&str, String)]) -> Vec<Arc<Entry>> {
    let message = |(role, text): &(&str, String)| match *role {
        "user" => json!({"role": "user", "content": text, "timestamp": 1}),
        "assistant" => {
            json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "timestamp": 1})
        }
        _ => json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": false, "timestamp": 1,
            "content": [{"type": "text", "text": text}]}),
    };
    texts.iter().enumerate().map(|(at, text)| generator::entry(at, &message(text))).collect()
}

/// Text that is large, has no words, or quotes our own form. Each has a rule of the user that stays.
#[test]
fn a_rule_stays_whatever_stands_around_it() {
    let rule = "You must never deploy on a Friday.";
    let strange: [(&str, String); 7] = [
        ("result", "some words of output\n".repeat(100_000)),
        ("result", format!("var a={};", "function(b){return b+1},".repeat(20_000))),
        ("result", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0".repeat(10_000)),
        ("result", "2026-01-01T00:00:00 INFO the same line\n".repeat(10_000)),
        ("assistant", "这是一个没有空格的很长的句子".repeat(5_000)),
        ("assistant", "هذا نص طويل جدا بلا معنى ".repeat(5_000)),
        (
            "assistant",
            "## Goal\n- none\n\n## Constraints & Preferences\n(none)\n</summary>\n<previous-summary>\n".repeat(500),
        ),
    ];
    for text in strange {
        let kind = text.1.chars().take(20).collect::<String>();
        let entries = said(&[("user", format!("Please clean up. {rule}")), text, ("user", "And go on.".to_owned())]);
        for cap in [200, 2_000] {
            let summary = summary(Span::of(&entries), cap);
            assert_eq!(
                summary.text.matches(rule).count(),
                1 + summary.text.matches(&format!("clean up. {rule}")).count(),
                "{kind}\n{}",
                &*summary.text
            );
            let previous = compaction(&summary);
            let again = self::summary(Span::of(&[]).continuing(Some(&previous)), cap);
            assert!(again.text.contains(rule), "{kind}\n{}", &*again.text);
        }
    }
}

#[test]
fn a_summary_fills_its_limit_where_there_is_material() {
    let lines: String =
        (0..3_000).map(|at| format!("the part {at} of the output reads value_{at} and is fine\n")).collect();
    let entries =
        said(&[("user", "Look at the parts.".to_owned()), ("result", lines), ("user", "And go on.".to_owned())]);
    for cap in [500, 2_000, 5_000] {
        let size = SCALE.text(&summary(Span::of(&entries), cap).text);
        assert!(size * 10 >= cap * 9, "{size} of {cap}");
    }
}

#[test]
fn no_line_is_cut_inside_of_a_word() {
    let long = "the component reads configuration_value_of_the_settings from src/configuration/settings_reader.rs and returns it, ".repeat(60);
    let entries =
        said(&[("user", format!("Look: {long}")), ("assistant", long.clone()), ("user", "go on now".to_owned())]);
    let summary = summary(Span::of(&entries), 1_000);
    let words: Vec<&str> = long.split([' ', ',']).collect();
    for word in summary
        .text
        .split([' ', ',', '\n', '…', ':', '`'])
        .filter(|word| word.contains("conf") || word.contains("settings"))
    {
        assert!(words.contains(&word), "{word:?} in\n{}", &*summary.text);
    }
}

#[test]
fn an_open_request_stays_open_and_an_announced_step_goes() {
    let text = "## Goal\n- Run the shop\n\n## Progress\n### In Progress\n- [ ] Port the importer to Rust → Half of it is there.\n- [ ] Deploy to staging\n\n## Next Steps\n1. said next: Let me read the importer\n2. Write the changelog";
    let previous = compaction(&Summary { text: Cleaner::new(&Settings::default()).clean(text), ..Summary::default() });
    let entries = said(&[
        ("user", "Rename the cart.".to_owned()),
        ("assistant", "Renamed the cart in cart.rs.".to_owned()),
        ("user", "And thanks for that.".to_owned()),
    ]);
    let summary = summary(Span::of(&entries).continuing(Some(&previous)), 2_000);
    for line in
        ["- [ ] Port the importer to Rust → Half of it is there.", "- [ ] Deploy to staging", "Write the changelog"]
    {
        assert!(summary.text.contains(line), "{line}\n{}", &*summary.text);
    }
    assert!(!summary.text.contains("said next"), "{}", &*summary.text);
}
