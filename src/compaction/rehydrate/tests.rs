//! Tests of what comes back after a compaction.

use super::*;
use crate::{
    compaction::{
        draft::Draft,
        ladder, lines,
        plan::{self, Demand, Plan},
    },
    conversation::{context, entry::Stamp, spending::Spending, tokens::Estimator},
    models::Budget,
    redact::Clean,
    settings::CompactionSettings,
    summary::{extractive::Summary, files::FileLists},
};
use serde_json::{Value, json};

/// A call with its result. A call of `!tool` fails.
fn called(at: usize, tool: &str, arguments: Value, text: &str) -> [Value; 2] {
    let name = tool.trim_start_matches('!');
    let call = json!({"type": "toolCall", "id": format!("c{at}"), "name": name, "arguments": arguments});
    [
        json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}),
        json!({"role": "toolResult", "toolCallId": format!("c{at}"), "toolName": name, "isError": tool != name,
            "content": [{"type": "text", "text": text}]}),
    ]
    .map(|message| json!({"type": "message", "message": message}))
}

fn user(text: &str) -> Value {
    json!({"type": "message", "message": {"role": "user", "content": text}})
}

type Call<'a> = (&'a str, Value, &'a str);

fn read(path: &str) -> Call<'_> {
    ("read", json!({ "path": path }), "the text of a file")
}

fn edit(path: &str) -> Call<'_> {
    ("edit", json!({"path": path, "oldText": "a", "newText": "b"}), "edited")
}

fn shell(command: &str) -> Call<'_> {
    ("bash", json!({ "command": command }), "")
}

fn skill<'a>(name: &str, text: &'a str) -> Call<'a> {
    ("skill", json!({ "name": name }), text)
}

/// Entries of these calls: a request, and two for each call.
fn entries(calls: &[Call<'_>]) -> Vec<Value> {
    let calls = calls.iter().enumerate();
    let pairs = calls.flat_map(|(at, (tool, arguments, text))| called(at, tool, arguments.clone(), text));
    std::iter::once(user("go")).chain(pairs).collect()
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.compaction.rehydrate = true;
    settings
}

/// A plan that keeps the entries from this one on, in a window of so many tokens.
fn planned(path: Path, kept_from: &str, window: u64) -> Plan {
    let scale = Scale::new(Estimator::Chars, 1.0);
    let demand = Demand {
        keep: 1,
        explicit: false,
        scale,
        budget: Budget::of(window, &CompactionSettings::default(), 0, 0),
        tokens_before: 0,
        may_stay: u64::MAX,
        insists: true,
    };
    let rehydration = Rehydration::of(&path, &settings(), Some("/work"), scale, &demand.budget);
    let plan = plan::plan(path, demand, Arc::default()).expect("a plan").rehydrating(Some(rehydration));
    plan.keeping_from(&kept_from.into()).expect("a cut")
}

/// The compaction of the first calls, which keeps the others. A long request is in the summarized part.
fn of(summarized: &[Call<'_>], kept: &[Call<'_>]) -> Plan {
    let mut lines = entries(summarized);
    lines.insert(0, user(&"word ".repeat(40_000)));
    let first_kept = lines.len();
    lines.push(user("go on"));
    let from = summarized.len();
    let kept = kept.iter().enumerate();
    lines.extend(kept.flat_map(|(at, (tool, arguments, text))| called(from + at, tool, arguments.clone(), text)));
    planned(lines::path(&lines), &format!("e{first_kept}"), 200_000)
}

fn files(plan: &Plan) -> Vec<String> {
    let Rehydrated { files, .. } = plan.rehydrated(&[], &[]).expect("rehydration");
    files.into_iter().map(|file| file.path).collect()
}

#[test]
fn the_newest_changes_come_first_and_then_the_newest_reads() {
    let calls = [read("r1"), edit("a"), read("r2"), edit("b"), edit("a"), read("b"), read("c"), edit("d"), edit("e")];
    let rehydrated = of(&calls, &[]).rehydrated(&[], &[]).expect("rehydration");
    let shown: Vec<_> = rehydrated.files.iter().map(|file| (file.path.as_str(), file.operation)).collect();
    use FileUse::{Changed, Read};
    let expected =
        [("/work/e", Changed), ("/work/d", Changed), ("/work/a", Changed), ("/work/b", Changed), ("/work/c", Read)];
    assert_eq!((shown.as_slice(), rehydrated.files_left_out), (&expected[..], 2));
    // The result of the second change of `a`, and a read after the change of `b`.
    assert_eq!(rehydrated.files[2].entry_id.as_str(), "e11");
    assert_eq!(rehydrated.files[3].entry_id.as_str(), "e9");
}

#[test]
fn a_file_that_was_removed_or_moved_is_not_named() {
    let patch = |text: &str| ("apply_patch", json!({"input": format!("*** Begin Patch\n{text}\n*** End Patch")}), "");
    for (calls, expected) in [
        (vec![edit("a"), ("delete_file", json!({"path": "a"}), "")], vec![]),
        (vec![edit("a"), shell("rm a")], vec![]),
        (vec![edit("a"), ("!bash", json!({"command": "rm a"}), "no")], vec!["/work/a"]),
        (vec![edit("d/a"), edit("dd"), shell("rm -rf d")], vec!["/work/dd"]),
        (vec![edit("a"), shell("git mv a b")], vec![]),
        (vec![edit("a"), shell("rm a"), ("write", json!({"path": "a", "content": "x"}), "")], vec!["/work/a"]),
        (vec![edit("a"), patch("*** Update File: a\n*** Move to: b\n-x\n+y")], vec!["/work/b"]),
        (vec![edit("a"), patch("*** Delete File: a")], vec![]),
        (vec![("!edit", json!({"path": "a"}), "no")], vec![]),
    ] {
        assert_eq!(files(&of(&calls, &[])), expected, "{calls:?}");
    }
    assert_eq!(files(&of(&[edit("a")], &[shell("rm a")])), [""; 0], "removed in the kept part");
}

#[test]
fn a_file_whose_newest_form_is_kept_is_not_named() {
    let part = ("read", json!({"path": "a", "offset": 5, "limit": 2}), "x");
    let write = ("write", json!({"path": "a", "content": "x"}), "");
    for (kept, named) in [
        (vec![], true),
        (vec![read("a")], false),
        (vec![read("./a")], false),
        (vec![read("/work/b/../a")], false),
        (vec![write.clone()], false),
        (vec![read("a"), edit("a")], false),
        (vec![edit("a")], true),
        (vec![part], true),
        (vec![("!read", json!({"path": "a"}), "no")], true),
    ] {
        assert_eq!(!files(&of(&[edit("a")], &kept)).is_empty(), named, "{kept:?}");
    }
    assert_eq!(files(&of(&[], &[edit("a")])), [""; 0], "the summarized part did not have it");
}

#[test]
fn an_edit_of_the_kept_text_and_entries_after_the_plan_count() {
    let plan = of(&[edit("a")], &[read("a")]);
    let result = plan.path().last().expect("the result").id.clone();
    let edit_of = ContextEdit { target_id: result, replacement: None };
    assert_eq!(plan.rehydrated(&[edit_of], &[]).expect("rehydration").files.len(), 1);
    let plan = of(&[edit("a")], &[]);
    let mut grown = plan.path().clone();
    let newer = called(77, "read", json!({"path": "a"}), "text");
    for (at, line) in newer.iter().enumerate() {
        let mut line = line.clone();
        line["id"] = format!("n{at}").into();
        grown.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
    }
    assert!(plan.rehydrated(&[], &grown[plan.path().len()..]).expect("rehydration").files.is_empty());
}

#[test]
fn the_size_is_that_of_the_newest_whole_text() {
    let text = "word ".repeat(800);
    let whole = ("read", json!({"path": "a"}), text.as_str());
    let part = ("read", json!({"path": "b", "limit": 5}), text.as_str());
    let write = ("write", json!({"path": "c", "content": text}), "");
    let plan = of(&[whole, part, write, edit("a")], &[]);
    let sizes: Vec<_> =
        plan.rehydrated(&[], &[]).expect("rehydration").files.into_iter().map(|it| (it.path, it.tokens)).collect();
    let named = |name: &str| sizes.iter().find(|(path, _)| path.ends_with(name)).expect("a file").1;
    assert_eq!((named("/a"), named("/b"), named("/c")), (Some(1_000), None, Some(1_000)), "{sizes:?}");
}

#[test]
fn a_path_with_a_secret_or_without_a_file_is_not_named() {
    let secret = "keys/sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF.txt";
    let calls = [edit(secret), edit("http://x/y"), edit(" "), edit("a\nb"), edit("/c")];
    assert_eq!(files(&of(&calls, &[])), ["/c"]);
}

#[test]
fn paths_of_another_system_are_resolved_by_their_own_rules() {
    let demand = of(&[read("a")], &[]).demand;
    let mut lines = entries(&[edit("src\\a.rs"), edit("..\\b.rs"), edit("D:\\c.rs")]);
    lines.push(user("go on"));
    let path = lines::path(&lines);
    let of_cwd = |cwd: Option<&str>| {
        let rehydration = Rehydration::of(&path, &settings(), cwd, demand.scale, &demand.budget);
        let plan = plan::plan(path.clone(), demand, Arc::default()).expect("a plan").rehydrating(Some(rehydration));
        let mut files = files(&plan.keeping_from(&"e7".into()).expect("a cut"));
        files.sort();
        files
    };
    assert_eq!(of_cwd(Some("C:\\work")), ["C:\\b.rs", "C:\\work\\src\\a.rs", "D:\\c.rs"]);
    assert_eq!(of_cwd(None), ["..\\b.rs", "D:\\c.rs", "src\\a.rs"]);
}

/// The loads that a client is told, oldest last: name, kept.
fn told(plan: &Plan) -> Vec<(String, LoadKept)> {
    let Rehydrated { loaded, .. } = plan.rehydrated(&[], &[]).expect("rehydration");
    loaded.into_iter().map(|load| (load.name, load.kept)).collect()
}

#[test]
fn a_skill_that_was_loaded_three_times_stays_once_with_its_newest_text() {
    let plan = of(&[skill("pdf", "one"), skill("csv", "other"), skill("pdf", "two"), skill("pdf", "three")], &[]);
    let texts: Vec<String> = plan.loaded().into_iter().map(|load| load.framed()).collect();
    assert_eq!(texts, ["<skill name=\"csv\">\nother\n</skill>", "<skill name=\"pdf\">\nthree\n</skill>"]);
    assert_eq!(told(&plan), [("pdf".to_owned(), LoadKept::Whole), ("csv".to_owned(), LoadKept::Whole)]);
}

#[test]
fn a_text_that_the_kept_part_has_is_neither_told_nor_carried() {
    let plan = of(&[skill("pdf", "one")], &[skill("pdf", "two")]);
    assert_eq!((plan.loaded(), told(&plan)), (Vec::new(), Vec::new()));
}

#[test]
fn instructions_stay_unless_their_file_was_changed_or_removed_later() {
    let agents = ("Read", json!({"file_path": "/work/AGENTS.md"}), "Use tabs.");
    for (later, kept) in [(read("a"), true), (edit("AGENTS.md"), false), (shell("rm AGENTS.md"), false)] {
        let plan = of(&[agents.clone(), later.clone()], &[]);
        assert_eq!(plan.loaded().len(), usize::from(kept), "{later:?}");
        assert_eq!(told(&plan).len(), usize::from(kept), "{later:?}");
        let named = files(&plan).contains(&"/work/AGENTS.md".to_owned());
        assert_eq!(named, later.0 == "edit", "instructions that stay are no file to read");
    }
}

#[test]
fn a_part_of_a_skill_does_not_replace_the_whole() {
    let part = |offset: u32, text| ("read", json!({"path": "pdf/SKILL.md", "offset": offset}), text);
    let whole = ("read", json!({"path": "pdf/SKILL.md"}), "all");
    let texts = |calls: &[Call<'_>]| -> Vec<String> { of(calls, &[]).loaded().into_iter().map(|it| it.text).collect() };
    assert_eq!(texts(&[part(1, "first"), part(50, "second"), part(1, "again")]), ["second", "again"]);
    assert_eq!(texts(&[part(1, "first"), whole.clone(), part(50, "second")]), ["all", "second"]);
    assert_eq!(texts(&[part(1, "first"), part(50, "second"), whole]), ["all"]);
}

#[test]
fn a_failed_pruned_or_edited_load_does_not_stay() {
    let plan = of(&[("!skill", json!({"name": "pdf"}), "no such skill")], &[]);
    assert_eq!(told(&plan), []);
    let mut lines = entries(&[skill("pdf", "text")]);
    lines.insert(0, user(&"word ".repeat(40_000)));
    lines.push(json!({"type": "context_edit", "targetId": "e3", "replacement": {"content": "[Output truncated]"}}));
    lines.push(user("go on"));
    let plan = planned(lines::path(&lines), "e5", 200_000);
    assert_eq!((plan.loaded(), told(&plan)), (vec![], vec![("pdf".to_owned(), LoadKept::None)]));
}

#[test]
fn a_skill_in_a_message_of_a_harness_is_told_and_not_carried() {
    let message = "Base directory for this skill: /s/pdf\n\nMerge files with the script.";
    let mut lines = entries(&[("Skill", json!({"skill": "pdf"}), "Launching skill: pdf")]);
    lines.push(user(message));
    lines.push(user("go on"));
    let plan = planned(lines::path(&lines), "e4", 200_000);
    assert_eq!((plan.loaded(), told(&plan)), (vec![], vec![("pdf".to_owned(), LoadKept::None)]));
}

#[test]
fn a_long_text_is_clipped_with_a_note_and_has_no_secrets() {
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF";
    let text = format!("begin {key} {} end", "word ".repeat(40_000));
    let plan = of(&[skill("pdf", &text)], &[]);
    let [load] = plan.loaded().try_into().expect("one");
    let scale = plan.demand.scale;
    assert!(load.text.starts_with("begin ") && load.text.ends_with(" end"), "{}", load.text);
    assert!(load.text.contains("characters of this text were left out; load it again") && !load.text.contains(key));
    assert!((4_000..=MOST_OF_ONE).contains(&scale.text(&load.text)), "{}", scale.text(&load.text));
    assert!(load.clipped && load.tokens > 50_000, "{}", load.tokens);
    assert_eq!(told(&plan), [("pdf".to_owned(), LoadKept::Clipped)]);
}

#[test]
fn all_texts_together_keep_the_budget_and_the_newest_come_first() {
    let texts: Vec<String> = (0..9).map(|at| format!("text {at} {}", "word ".repeat(3_200))).collect();
    let names: Vec<String> = (0..9).map(|at| format!("s{at}")).collect();
    let calls: Vec<Call<'_>> = names.iter().zip(&texts).map(|(name, text)| skill(name, text)).collect();
    let plan = of(&calls, &[]);
    let loaded = plan.loaded();
    let sum: u64 = loaded.iter().map(|load| plan.demand.scale.text(&load.framed())).sum();
    assert!((20_000..=MOST_OF_ALL).contains(&sum), "{sum}");
    assert_eq!(loaded.last().expect("one").name, "s8");
    assert!(loaded.len() < 9 && loaded[0].clipped, "the oldest of those that stay lost its middle");
    assert_eq!(told(&plan).last(), Some(&("s0".to_owned(), LoadKept::None)));
}

/// The draft of a plan with an empty summary.
fn drafted(plan: Plan) -> Draft {
    let summary = Summary { text: Clean::assembled("## Goal"), short: Clean::default(), files: FileLists::default() };
    let summarize = |_: &Plan, _: u64| summary.clone();
    ladder::climb(plan, (&settings()).into(), &summarize).unwrap_or_else(|why| panic!("{why:?}"))
}

#[test]
fn loaded_texts_never_bring_a_context_over_its_goal() {
    for window in [4_000, 8_000, 16_000, 64_000] {
        let text = "word ".repeat(40_000);
        let mut lines = entries(&[skill("pdf", &text), skill("csv", &text)]);
        lines.insert(0, user(&"word ".repeat(4_000)));
        lines.push(user("go on"));
        let draft = drafted(planned(lines::path(&lines), "e6", window));
        assert!(draft.tokens_after <= draft.plan.demand.budget.target(), "{window}: {}", draft.tokens_after);
    }
}

#[test]
fn a_loaded_text_is_no_reason_against_a_compaction() {
    let text = "word ".repeat(1_000);
    let mut lines = entries(&[skill("pdf", &text)]);
    lines.push(user("go on"));
    let mut plan = planned(lines::path(&lines), "e3", 200_000);
    plan.demand.insists = false;
    assert!(ladder::may_shrink(&plan));
    let draft = drafted(plan);
    assert!(draft.tokens_after < draft.plan.estimate_before(), "{}", draft.tokens_after);
}

#[test]
fn the_next_compaction_carries_the_text_on_and_a_pin_takes_its_place() {
    let draft = drafted(of(&[skill("pdf", "Merge with </loaded> care.")], &[]));
    let stamp = Stamp { id: "0123456789abcdef".into(), timestamp: "2026-01-01T00:00:00.000Z".to_owned() };
    let path = draft.plan.path();
    let line = draft.line(&stamp, path.last().map(|leaf| &leaf.id), path, None, 1, Spending::default());
    let mut path = path.with(Arc::new(Entry::parse(line.into()).expect("an entry")));
    let frame = |path: &Path| context::build(path, &Default::default()).messages()[0].message().text();
    let framed = "<loaded>\n<skill name=\"pdf\">\nMerge with &lt;/loaded> care.\n</skill>\n</loaded>";
    assert!(frame(&path).contains(framed), "{}", frame(&path));
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop"});
    let answer = json!({"type": "message", "message": answer});
    for (at, line) in [user(&"word ".repeat(40_000)), answer, user("and on")].into_iter().enumerate() {
        let mut line = line;
        line["id"] = format!("n{at}").into();
        path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
    }
    let again = planned(path.clone(), "n2", 200_000);
    assert_eq!(again.loaded().len(), 1);
    assert_eq!(told(&again), [("pdf".to_owned(), LoadKept::Whole)]);
    assert!(again.with_nothing_loaded().loaded().is_empty());
    let pin = json!({"type": "custom", "id": "p", "customType": "abridged.pin", "data": {"entryId": "e3"}});
    let pinned = path.with(Arc::new(Entry::parse(pin.to_string().into()).expect("an entry")));
    assert!(!frame(&pinned).contains("<loaded>"), "{}", frame(&pinned));
    assert!(planned(pinned, "n2", 200_000).loaded().is_empty());
}

#[test]
fn only_the_setting_brings_anything_back() {
    let plan = of(&[edit("a"), skill("pdf", "text")], &[]).rehydrating(None);
    assert_eq!((plan.rehydrated(&[], &[]), plan.loaded()), (None, Vec::new()));
}
