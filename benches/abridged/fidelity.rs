//! The fidelity of extracted summaries: what survives a compaction of the things that the rest of a session needs, beside
//! other methods within the same budget. `docs/FIDELITY.md` defines the probes.
//!
//! `cargo bench -- fidelity [FILES]` measures generated sessions, and those in the files. `--json` prints everything for
//! machines, `--svg FILE` draws the curve of contextual recall over the budget.

mod baselines;
mod curve;
mod generator;
mod names;
mod probes;
mod session;

use abridged::{
    conversation::{
        entry::Entry,
        tokens::{self, Estimator, Scale},
    },
    settings::Settings,
    summary::{
        cleaner::Cleaner,
        extractive::{self, Part, Wishes},
        span::Span,
    },
};
use generator::{Planted, Probe};
use probes::{FIELDS, Measures, Probes};
use serde_json::{Value, json};
use session::{Cut, Session};
use std::{collections::BTreeMap, path::Path, sync::Arc, thread};

/// Budgets of the summaries, in tokens.
const BUDGETS: [u64; 4] = [2_000, 4_000, 8_000, 16_000];

/// Generated sessions.
const SEEDS: std::ops::Range<u64> = 1..9;

const SCALE: Scale = Scale::new(Estimator::Tiktoken, 1.0);

/// Measures of a method for a session within a budget: the means over its cuts.
struct Row {
    session: String,
    budget: u64,
    method: &'static str,
    measures: Measures,
}

/// The name of our method.
const OURS: &str = "abridged";

/// Measures generated sessions, and the sessions in these files.
pub fn run(files: &[String], as_json: bool, svg: Option<&Path>) {
    tokens::load();
    let rows = sessions(files);
    let without = parts(files);
    let planted = planted();
    let decay = decay();
    if let Some(path) = svg {
        std::fs::write(path, curve::drawn(&rows)).expect("the curve is written");
    }
    if as_json {
        println!(
            "{:#}",
            json!({"sessions": rows.iter().map(Row::json).collect::<Vec<_>>(), "without": without,
            "planted": planted, "decay": decay})
        );
        return;
    }
    print_sessions(&rows);
    print_table("What each part brings: contextual recall at 4,000 tokens without it", &without);
    print_table("Generated sessions: share that is in the summary", &planted);
    print_table("Generated sessions: share that is left after compactions in a row, at 8,000 tokens", &decay);
}

/// Measures every file with every method, on two threads.
fn sessions(files: &[String]) -> Vec<Row> {
    let measured = |files: &[String]| files.iter().flat_map(|file| measured(&read(file))).collect::<Vec<_>>();
    let (one, other) = files.split_at(files.len() / 2);
    thread::scope(|scope| {
        let first = scope.spawn(|| measured(one));
        let mut rows = measured(other);
        rows.splice(0..0, first.join().expect("no panic"));
        rows
    })
}

fn read(file: &str) -> Session {
    let name = Path::new(file).file_stem().map(|name| name.to_string_lossy().into_owned());
    Session::read(&name.unwrap_or_default(), &std::fs::read_to_string(file).expect("a session file"))
}

/// The cuts of a session that have something to find.
fn cuts(session: &Session) -> Vec<(Cut<'_>, Probes<'_>)> {
    let cuts = session.cuts().into_iter().map(|cut| (Probes::of(&cut), cut));
    cuts.filter(|(probes, _)| !probes.gold.is_empty()).map(|(probes, cut)| (cut, probes)).collect()
}

fn measured(session: &Session) -> Vec<Row> {
    let cuts = cuts(session);
    let ours: baselines::Method = (OURS, |cut, budget| extracted(cut, budget, None));
    let methods: Vec<_> = [ours].iter().chain(baselines::METHODS).chain([&baselines::CEILING]).copied().collect();
    let of = |budget: u64, (method, text): baselines::Method| {
        let all: Vec<Measures> = cuts.iter().map(|(cut, probes)| probes.measure(&text(cut, budget), budget)).collect();
        Row { session: session.name.clone(), budget, method, measures: mean_of(&all) }
    };
    BUDGETS
        .iter()
        .flat_map(|budget| methods.iter().map(move |method| (*budget, *method)))
        .map(|(budget, method)| of(budget, method))
        .collect()
}

fn mean_of(all: &[Measures]) -> Measures {
    let of = |field: usize| mean(all.iter().map(FIELDS[field].1));
    Measures {
        context: of(0),
        names: of(1),
        requests: of(2),
        rules: of(3),
        modified: of(4),
        errors: of(5),
        repeated: of(6),
        secrets: all.iter().map(|it| it.secrets).sum(),
        filled: of(8),
    }
}

/// The mean of the values that are numbers.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
    if values.is_empty() { f64::NAN } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The extracted summary of a cut within a budget.
fn extracted(cut: &Cut<'_>, budget: u64, without: Option<Part>) -> String {
    let entries = |pieces: &[session::Piece]| pieces.iter().map(|piece| piece.entry.clone()).collect::<Vec<_>>();
    let (span, kept) = (entries(cut.span), entries(cut.kept));
    summary(Span::of(&span).followed_by(&kept), budget, without)
}

fn summary(span: Span<'_>, cap: u64, without: Option<Part>) -> String {
    let settings = Settings::default();
    let summary = extractive::summarize(&extractive::Request {
        span,
        wishes: Wishes::default(),
        cap,
        without,
        settings: &settings,
        cleaner: &Cleaner::new(&settings),
        scale: SCALE,
        stop: &|| false,
    });
    summary.text.into_string()
}

/// Contextual recall, requests and errors at 4,000 tokens without each of our parts.
fn parts(files: &[String]) -> Table {
    const BUDGET: u64 = 4_000;
    let sessions: Vec<Session> = files.iter().map(|file| read(file)).collect();
    let cuts: Vec<_> = sessions.iter().map(cuts).filter(|cuts| !cuts.is_empty()).collect();
    let mut table = Table::new();
    for without in std::iter::once(None).chain(Part::ALL.into_iter().map(Some)) {
        let of = |cuts: &Vec<(Cut<'_>, Probes<'_>)>| {
            let measured = cuts.iter().map(|(cut, probes)| probes.measure(&extracted(cut, BUDGET, without), BUDGET));
            mean_of(&measured.collect::<Vec<_>>())
        };
        let all: Vec<Measures> = cuts.iter().map(of).collect();
        let name = without.map_or("nothing".to_owned(), |part| format!("{part:?}"));
        let row = [("context", 0), ("requests", 2), ("rules", 3), ("errors", 5)];
        table.push((name, row.map(|(name, at)| (name.to_owned(), mean(all.iter().map(FIELDS[at].1)))).into()));
    }
    table
}

/// Rows of a table: a name and its cells, each with the name of its column.
type Table = Vec<(String, Vec<(String, f64)>)>;

/// The share of planted things that a summary of a generated session has, by kind and budget.
fn planted() -> Table {
    let mut found: BTreeMap<Planted, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for generated in SEEDS.map(generator::session) {
        for budget in BUDGETS {
            let text = summary(Span::of(&generated.entries), budget, None).to_lowercase();
            for (kind, share) in shares(&generated.probes, &text) {
                found.entry(kind).or_default().entry(budget).or_default().push(share);
            }
        }
    }
    let cells = |shares: BTreeMap<u64, Vec<f64>>| {
        shares.into_iter().map(|(budget, shares)| (budget.to_string(), mean(shares.into_iter()))).collect()
    };
    found.into_iter().map(|(kind, shares)| (format!("{kind:?}"), cells(shares))).collect()
}

fn shares(probes: &[generator::Probe], text: &str) -> BTreeMap<Planted, f64> {
    // Under the heading of the rules an injection would be one.
    let rules =
        text.split_once("## constraints").map_or("", |(_, after)| after.split("\n## ").next().unwrap_or_default());
    let mut all: BTreeMap<Planted, (usize, usize)> = BTreeMap::new();
    for probe in probes {
        let (found, count) = all.entry(probe.kind).or_default();
        *count += 1;
        *found += usize::from(probe.is_in(if probe.kind == Planted::Injection { rules } else { text }));
    }
    all.into_iter().map(|(kind, (found, count))| (kind, found as f64 / count as f64)).collect()
}

/// The share of planted facts after compactions in a row, with so many turns between them.
/// Budget of the summaries whose decay is measured, and of those of branches, in tokens.
const BUDGET_OF_DECAY: u64 = 8_000;
const BUDGET_OF_BRANCH: u64 = 2_000;

fn decay() -> Table {
    let mut table = Table::new();
    for (name, between, rounds) in [("1 turn between", 1, 20), ("120 turns between", 120, 20)] {
        let mut after: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for seed in SEEDS.take(4) {
            let generated = generator::session(seed);
            let mut entries = generated.entries.clone();
            let mut previous: Option<Arc<Entry>> = None;
            let mut at = entries.len();
            for round in 1..=rounds {
                let text = summary(Span::of(&entries).continuing(previous.as_ref()), BUDGET_OF_DECAY, None);
                if [1, 5, 10, 20].contains(&round) {
                    after.entry(round).or_default().push(held(&generated.probes, &text));
                }
                previous = Some(compaction(round, &text));
                entries = generator::turns(seed * 1_000 + round as u64, at, between);
                at += entries.len();
            }
        }
        let cells = after.into_iter().map(|(round, shares)| (format!("after {round}"), mean(shares.into_iter())));
        table.push((name.to_owned(), cells.collect()));
    }
    table.push(("10 branches that were left".to_owned(), after_branches()));
    table
}

/// A generated session of which each tenth is a branch that was left: its summary stands among other turns, and a compaction
/// comes after it.
fn after_branches() -> Vec<(String, f64)> {
    const BRANCHES: usize = 10;
    let after = |seed: u64| {
        let generated = generator::session(seed);
        let mut previous: Option<Arc<Entry>> = None;
        let mut at = generated.entries.len();
        let mut text = String::new();
        for (round, left) in generated.entries.chunks(generated.entries.len().div_ceil(BRANCHES)).enumerate() {
            let branch = summary(Span::of(left), BUDGET_OF_BRANCH, None);
            let mut entries = generator::turns(seed * 1_000 + round as u64, at, 1);
            at += entries.len();
            entries.push(branch_summary(round, &branch));
            text = summary(Span::of(&entries).continuing(previous.as_ref()), BUDGET_OF_DECAY, None);
            previous = Some(compaction(round, &text));
        }
        held(&generated.probes, &text)
    };
    vec![(format!("after {BRANCHES}"), mean(SEEDS.take(4).map(after)))]
}

/// The share of planted facts that a text has.
fn held(probes: &[Probe], text: &str) -> f64 {
    use Planted::{Newest, Preference, Printed, Rule, Said};
    let facts = shares(probes, &text.to_lowercase()).into_iter();
    mean(facts.filter(|(kind, _)| matches!(kind, Rule | Preference | Said | Printed | Newest)).map(|(_, share)| share))
}

fn branch_summary(number: usize, summary: &str) -> Arc<Entry> {
    let line = json!({"type": "branch_summary", "id": format!("b{number}"), "parentId": null, "summary": summary,
        "timestamp": "2026-01-01T00:00:00.000Z", "fromId": "x"});
    Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
}

fn compaction(number: usize, summary: &str) -> Arc<Entry> {
    let line = json!({"type": "compaction", "id": format!("s{number}"), "parentId": null, "summary": summary,
        "timestamp": "2026-01-01T00:00:00.000Z", "firstKeptEntryId": "x", "tokensBefore": 1});
    Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
}

impl Row {
    fn json(&self) -> Value {
        let mut row = json!({"session": self.session, "budget": self.budget, "method": self.method});
        for (name, field) in FIELDS {
            row[name] = json!(Some(field(&self.measures)).filter(|value| !value.is_nan()));
        }
        row
    }
}

/// The contextual recall of a method over that of the best baseline, for each session of a budget. The names alone reach nothing.
fn ratios(rows: &[Row], method: &str, budget: u64) -> Vec<(f64, String)> {
    let of_budget: Vec<&Row> = rows.iter().filter(|row| row.budget == budget).collect();
    let ours = of_budget.iter().filter(|row| row.method == method);
    let ratio = |ours: &&&Row| {
        let is_other = |row: &&&Row| row.method != OURS && row.method != baselines::CEILING.0;
        let others = of_budget.iter().filter(|row| row.session == ours.session).filter(is_other);
        let best = others.map(|row| row.measures.context).fold(0.0, f64::max);
        (ours.measures.context / best, ours.session.clone())
    };
    let mut ratios: Vec<(f64, String)> = ours.map(|row| ratio(&row)).filter(|(ratio, _)| ratio.is_finite()).collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
    ratios
}

/// The place of a session among the files.
fn place(rows: &[Row], session: &str) -> usize {
    let mut sessions: Vec<&str> = rows.iter().map(|row| row.session.as_str()).collect();
    sessions.dedup();
    sessions.iter().position(|it| *it == session).unwrap_or_default()
}

fn print_sessions(rows: &[Row]) {
    for budget in BUDGETS {
        let reachable = ratios(rows, baselines::CEILING.0, budget);
        let ratios = ratios(rows, OURS, budget);
        let Some((median, _)) = ratios.get(ratios.len() / 2) else { continue };
        let (most, _) = &reachable[reachable.len() / 2];
        println!(
            "\n{budget} tokens: contextual recall over the best other method, median {median:.2}; the whole span has {most:.2}"
        );
        // The weights of names were fitted on the first, the third and so on of the files.
        let half = |odd: usize| {
            let of = ratios.iter().filter(|(_, session)| place(rows, session) % 2 == odd).map(|(ratio, _)| *ratio);
            let of: Vec<f64> = of.collect();
            of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
        };
        println!("  {:>5.2}  fitted half, {:.2} the other half", half(0), half(1));
        ratios.iter().for_each(|(ratio, session)| println!("  {ratio:>5.2}  {session}"));
        print!("  {:<22}", "means");
        FIELDS.iter().for_each(|(name, _)| print!("{name:>9}"));
        println!();
        let methods = baselines::METHODS.iter().chain([&baselines::CEILING]).map(|method| method.0);
        for method in std::iter::once(OURS).chain(methods) {
            let of_method = || rows.iter().filter(|row| row.budget == budget && row.method == method);
            print!("  {method:<22}");
            FIELDS.iter().for_each(|(_, field)| print!("{:>9.3}", mean(of_method().map(|row| field(&row.measures)))));
            println!();
        }
    }
}

fn print_table(title: &str, table: &Table) {
    let Some((_, cells)) = table.first() else { return };
    println!("\n{title}");
    print!("  {:<22}", "");
    cells.iter().for_each(|(column, _)| print!("{column:>10}"));
    println!();
    for (name, cells) in table {
        print!("  {name:<22}");
        cells.iter().for_each(|(_, value)| print!("{value:>10.3}"));
        println!();
    }
}
