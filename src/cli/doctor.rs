//! `abridged doctor`: where everything is, what holds in this folder and who says so, and what is wrong. It only looks,
//! and asks models only if it is told to.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use super::{
    compact::grouped,
    models::{Model, models},
    named::Shelf,
    paint::Paint,
    print::{self, plain},
    spent::Costs,
    watch::columns,
    wrap::in_sentences,
};
use crate::{
    daemon::Places,
    log::{header, lock},
    models::{
        ModelRef,
        catalog::{Known, ListedModel},
        known,
        learned::{LearnedWindow, WindowOrigin},
        windows::Windows,
    },
    settings::{
        Sourced,
        files::{Overridden, SettingsFiles},
        masked,
        sources::project_file,
        trust::Trust,
    },
};
use rustix::fs::{Access, access};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Everything that is found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Findings {
    version: &'static str,
    /// The folder it was asked about.
    folder: PathBuf,
    settings: Place,
    project: Project,
    data: Data,
    /// The store that sessions are in, in the place of the data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<StoreFound>,
    values: Vec<Setting>,
    prompts: Vec<OwnPrompt>,
    models: Vec<Model>,
    /// The known providers with a key in the environment, and its variable.
    keys: Vec<(&'static str, &'static str)>,
    costs: Costs,
    problems: Vec<Finding>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    path: PathBuf,
    exists: bool,
    /// The variable that says where it is; none where the platform does.
    set_by: Option<&'static str>,
}

/// A store, and its state where it was asked.
#[derive(Serialize)]
struct StoreFound {
    /// Without its password.
    address: String,
    state: Option<String>,
}

#[derive(Serialize)]
struct Project {
    path: PathBuf,
    exists: bool,
    trusted: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    #[serde(flatten)]
    place: Place,
    sessions: usize,
    bytes: u64,
}

/// A value that is not a default.
#[derive(Serialize)]
struct Setting {
    key: String,
    value: Value,
    source: Value,
}

/// A prompt that is not the one that comes with the program.
#[derive(Serialize)]
struct OwnPrompt {
    name: &'static str,
    file: PathBuf,
    source: Value,
}

/// Something wrong.
#[derive(Serialize)]
struct Finding {
    weight: Weight,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Weight {
    /// Something does not work.
    Broken,
    /// Something is not as somebody may think.
    Odd,
}

/// Looks at everything and prints it; with `ask` each model is asked for a word. The value is 1 where something is broken.
///
/// # Errors
/// When there is nowhere to look.
pub fn run(ask: bool, as_json: bool) -> Result<i32, String> {
    let places = Places::from_environment()?;
    let folder = std::env::current_dir().map_err(|error| format!("this folder cannot be found: {error}"))?;
    let findings = find(&places, folder, ask)?;
    match as_json {
        true => print::document(&json!(findings)),
        false => print::line(&picture(&findings, &Paint::for_stdout(), columns(80).max(20))),
    }
    Ok(i32::from(findings.problems.iter().any(|problem| problem.weight == Weight::Broken)))
}

fn find(places: &Places, folder: PathBuf, ask: bool) -> Result<Findings, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let place = |path: PathBuf, by: &'static str| {
        let path = std::path::absolute(&path).unwrap_or(path);
        Place { exists: path.exists(), path, set_by: variable(by).map(|_| by) }
    };
    let mut files = SettingsFiles::read(places.settings(), &variable);
    let sourced = files.read_project(&folder).sourced();
    let project = project_file(&folder);
    let mut problems: Vec<Finding> = files.problems().map(of_settings).collect();
    let sessions = places.sessions();
    problems.extend([&places.config, &sessions].into_iter().filter_map(|folder| unwritable(folder)));
    let found = look_at_sessions(&sessions, &mut problems);
    let windows = Windows::read(&places.data);
    problems.extend(windows.fault().map(|(file, fault)| Finding {
        weight: Weight::Odd,
        file: Some(file.to_owned()),
        line: None,
        key: None,
        what: fault,
    }));
    let models = models(&windows, &sourced, ask)?;
    let names: HashSet<String> = models.iter().map(|model| name_of(&model.listed)).collect();
    problems.extend(models.iter().flat_map(|model| of_model(model, &names, &variable)));
    problems.extend(sourced.settings.compaction.models.iter().filter(|it| ModelRef::parse(it).is_none()).map(no_model));
    let store = look_at_store(ask, &mut problems);
    problems.sort_by_key(|problem| problem.weight != Weight::Broken);
    Ok(Findings {
        version: env!("CARGO_PKG_VERSION"),
        settings: place(places.settings(), "ABRIDGED_CONFIG_DIR"),
        project: Project { exists: project.exists(), path: project, trusted: files.trust(&folder) == Trust::Trusted },
        data: Data { place: place(sessions, "ABRIDGED_DATA_DIR"), sessions: found.files.len(), bytes: found.bytes },
        costs: Costs::of(found.files),
        store,
        values: values(&sourced, &models),
        prompts: files.overridden(Some(&folder)).map(own_prompt).collect(),
        folder,
        models,
        keys: known::with_keys(|name| variable(name).is_some()),
        problems,
    })
}

fn own_prompt(own: Overridden<'_>) -> OwnPrompt {
    OwnPrompt { name: own.prompt.name(), file: own.file.to_owned(), source: json!(own.source) }
}

fn of_settings(problem: &crate::settings::Problem) -> Finding {
    Finding {
        weight: if problem.is_fatal() { Weight::Broken } else { Weight::Odd },
        file: problem.file.clone(),
        line: problem.line,
        key: Some(problem.key.clone()).filter(|key| !key.is_empty()),
        what: problem.what.clone(),
    }
}

/// A folder that cannot be written, or made.
fn unwritable(folder: &Path) -> Option<Finding> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let there = folder.ancestors().find(|it| it.exists())?;
    let why = match access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if there.is_dir() => return None,
        Ok(()) => "it is no folder".to_owned(),
        Err(error) => error.to_string(),
    };
    let what = match there == folder {
        true => format!("cannot be written ({why}); sessions and settings are kept below it"),
        false => format!("cannot be written ({why}), so {} cannot be made", folder.display()),
    };
    Some(Finding { weight: Weight::Broken, file: Some(there.to_owned()), line: None, key: None, what })
}

/// The store of the environment or the settings. It is asked for its tables where `ask` says so.
fn look_at_store(ask: bool, problems: &mut Vec<Finding>) -> Option<StoreFound> {
    let broken =
        |what: String| Finding { weight: Weight::Broken, file: None, line: None, key: Some("store".to_owned()), what };
    let shelf = Shelf::named().map_err(|error| problems.push(broken(error))).ok().flatten()?;
    let server = shelf.store().server();
    let state = ask.then(|| match server.identity() {
        Ok(_) => "it answers".to_owned(),
        Err(fault) => {
            let why = fault.at(Path::new("the store")).to_string();
            problems.push(broken(why));
            "it does not work".to_owned()
        }
    });
    Some(StoreFound { address: server.to_string(), state })
}

/// The files of sessions, with their times of modification, and their size together.
struct Sessions {
    files: Vec<(SystemTime, PathBuf)>,
    bytes: u64,
}

/// Looks at the files of sessions, and reports what processes left behind that are gone.
fn look_at_sessions(sessions: &Path, problems: &mut Vec<Finding>) -> Sessions {
    let folders = fs::read_dir(sessions).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let mut found = Sessions { files: Vec::new(), bytes: 0 };
    for file in files {
        let path = file.path();
        match path.extension().and_then(|it| it.to_str()) {
            Some("jsonl") if header::peek(&path).is_ok() => {
                let about = file.metadata().ok();
                found.bytes += about.as_ref().map_or(0, fs::Metadata::len);
                let modified = about.and_then(|about| about.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
                found.files.push((modified, path));
            }
            Some("lock") => problems.extend(odd_lock(&path)),
            _ => {}
        }
    }
    found
}

/// The problem of a lock whose process is gone, or that no session can take. The lock of a process goes with it; only the file
/// is left.
fn odd_lock(lock: &Path) -> Option<Finding> {
    let what = match lock::look(&lock.with_extension("")) {
        Ok(Some(found)) if found.is_of_the_living() => return None,
        Ok(Some(found)) => {
            format!("left behind by process {}, which is gone; it is in nobody's way and may be removed", found.pid)
        }
        Ok(None) => return None,
        Err(error) => {
            format!("in the place of a session's lock: {error}; remove it, and the session can be written again")
        }
    };
    Some(Finding { weight: Weight::Odd, file: Some(lock.to_owned()), line: None, key: None, what })
}

/// Faults of a model's settings.
fn of_model(model: &Model, all: &HashSet<String>, variable: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let listed = &model.listed;
    let name = name_of(listed);
    let found = |weight: Weight, key: &str, what: String| Finding {
        weight,
        file: None,
        line: None,
        key: Some(if key.is_empty() { name.clone() } else { format!("{name}: {key}") }),
        what,
    };
    let odd = |key: &str, what: String| found(Weight::Odd, key, what);
    let key = listed.api_key_env.as_deref().filter(|it| variable(it).is_none());
    let key = key.map(|it| odd("apiKeyEnv", format!("the environment has no {it}; without a key it may not answer")));
    let promoted = listed.promote_to.as_ref().filter(|to| !all.contains(*to));
    let promoted =
        promoted.map(|to| odd("promoteTo", format!("{to} is not among the models; add it, or take this out")));
    // Of the others their hosts ask them, and only their sizes matter here.
    let unfit = model.asking.why.as_ref().filter(|_| model.summarizes && key.is_none());
    let unfit = unfit.map(|why| odd("compaction.models", why.clone()));
    let silent = model.answer.as_ref().and_then(|it| it.why.clone());
    let silent = silent.map(|why| found(Weight::Broken, "", why));
    [key, promoted, unfit, silent].into_iter().flatten().collect()
}

fn no_model(name: &String) -> Finding {
    let what = format!("`{name}` is no model; write \"provider/id\"");
    Finding { weight: Weight::Odd, file: None, line: None, key: Some("compaction.models".to_owned()), what }
}

fn name_of(model: &ListedModel) -> String {
    format!("{}/{}", model.provider, model.id)
}

/// Every value that is not a default. Models are shown as `models/list` returns them, without secrets.
fn values(sourced: &Sourced, models: &[Model]) -> Vec<Setting> {
    let settings = masked::told(&sourced.settings);
    let configured = |model: &&Model| sourced.settings.model(&model.listed.model()).is_some();
    let value = |key: &str| match key {
        "models" => models.iter().filter(configured).map(|it| name_of(&it.listed)).collect(),
        _ => settings.pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or_default(),
    };
    let known = |key: &str| value(key) != Value::Null;
    let sources = sourced.sources.iter().filter(|(key, _)| known(key));
    sources.map(|(key, source)| Setting { key: key.clone(), value: value(key), source: json!(source) }).collect()
}

fn picture(findings: &Findings, paint: &Paint, columns: usize) -> String {
    let mut text = format!("{}\n", paint.bold(&format!("abridged {}", findings.version)));
    let mut part = |title: &str, rows: Vec<Vec<String>>| {
        text.push_str(&format!("\n{}\n", paint.bold(title)));
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|it| print::cell(it)).collect()).collect();
        text.push_str(&aligned(&rows, paint, columns));
    };
    let by = |set_by: Option<&str>| set_by.map_or_else(String::new, |name| format!("from ${name}"));
    let there = |exists: bool, and: &str| if exists { and.to_owned() } else { "not there".to_owned() };
    let Data { place, sessions, bytes } = &findings.data;
    let kept = match sessions {
        1 => format!("1 session, {}", size(*bytes)),
        _ => format!("{} sessions, {}", grouped(&json!(sessions)), size(*bytes)),
    };
    let project = if findings.project.trusted { "there, trusted" } else { "there, not trusted" };
    let row = |name: &str, path: &Path, state: String, by: String| {
        vec![name.to_owned(), path.display().to_string(), listed([&state, &by])]
    };
    let store = findings.store.iter().map(|store| {
        vec!["store".to_owned(), store.address.clone(), store.state.clone().unwrap_or_else(|| "not asked".to_owned())]
    });
    part(
        "Places",
        [
            row(
                "settings",
                &findings.settings.path,
                there(findings.settings.exists, "there"),
                by(findings.settings.set_by),
            ),
            row("project", &findings.project.path, there(findings.project.exists, project), String::new()),
            row("sessions", &place.path, there(place.exists, &kept), by(place.set_by)),
        ]
        .into_iter()
        .chain(store)
        .collect(),
    );
    let short = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let values = findings.values.iter().map(|it| {
        vec![it.key.clone(), crate::text::one_line(&short(&it.value), 60), format!("from {}", short(&it.source))]
    });
    let nothing = |text: &str| vec![vec![text.to_owned()]];
    let values: Vec<_> = values.collect();
    part("Settings", if values.is_empty() { nothing("all of them are defaults") } else { values });
    let prompts = findings
        .prompts
        .iter()
        .map(|it| vec![it.name.to_owned(), it.file.display().to_string(), format!("from {}", short(&it.source))]);
    let prompts: Vec<_> = prompts.collect();
    if !prompts.is_empty() {
        part("Prompts", prompts);
    }
    let models: Vec<_> = findings.models.iter().flat_map(|model| rows_of(model, paint)).collect();
    let keys: Vec<String> =
        findings.keys.iter().map(|(provider, name)| format!("{} (${name})", plain(provider))).collect();
    let mut lines = if models.is_empty() { nothing("the settings name none") } else { models };
    lines.extend(nothing(&match keys.as_slice() {
        [] => "no key of a known provider is in the environment: sessions of other models get extracted summaries"
            .to_owned(),
        keys => format!("sessions of these providers are summarized by their own models: {}", keys.join(", ")),
    }));
    part("Models", lines);

    part("Costs of summaries", findings.costs.rows());

    text.push_str(&format!("\n{}\n", paint.bold("Problems")));
    for problem in &findings.problems {
        let mark = match problem.weight {
            Weight::Broken => paint.red("✗"),
            Weight::Odd => paint.yellow("!"),
        };
        let file = problem.file.as_ref().map(|file| file.display().to_string());
        let line = problem.line.map(|line| format!("line {line}"));
        let place: Vec<String> = [file, line, problem.key.clone()].into_iter().flatten().collect();
        text.push_str(&format!("  {mark} {}\n", plain(&place.join(": "))));
        let what = in_sentences(&plain(&problem.what), columns.saturating_sub(4));
        what.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    if findings.problems.is_empty() {
        text.push_str(&format!("  {} nothing is wrong\n", paint.green("✓")));
    }
    text.truncate(text.trim_end().len());
    text
}

/// A model on two lines or three: how large it is, how it is asked, and what it said.
fn rows_of(model: &Model, paint: &Paint) -> Vec<Vec<String>> {
    let Model { listed: it, summarizes, asking, answer } = model;
    let known = |what: &str, known: Known| {
        let source = json!(known.source);
        format!("{what} {} from {}", grouped(&json!(known.value)), source.as_str().unwrap_or_default())
    };
    let output = it.max_output_tokens.map_or_else(String::new, |output| known("output", output));
    let default = if it.default { "the default" } else { "" };
    let summarizes = if *summarizes { "writes summaries" } else { "" };
    let sizes = listed([&known("window", it.context_window), &output]);
    let roles = listed([default, summarizes]);
    let sizes = if roles.is_empty() { sizes } else { format!("{sizes}; {roles}") };
    let mut rows = vec![vec![name_of(it), sizes]];
    let way = [asking.api.unwrap_or_default(), asking.base_url.as_deref().unwrap_or_default()].join(" ");
    let how = match (&asking.why, asking.possible) {
        (Some(why), _) => format!("not asked from here: {why}"),
        (None, true) => format!("{}, key: {}", way.trim(), asking.key),
        (None, false) => "asked by the client".to_owned(),
    };
    rows.push(vec![String::new(), how]);
    rows.extend(it.learned.iter().map(|learned| vec![String::new(), told_of(learned)]));
    if let Some(answer) = answer {
        let retries = match answer.retries {
            0 => String::new(),
            1 => " and 1 retry".to_owned(),
            retries => format!(" and {retries} retries"),
        };
        let after = format!("after {} ms{retries}", answer.duration_ms);
        let said = match &answer.why {
            None => format!("{} answers, {after}", paint.green("✓")),
            Some(why) => format!("{} {} ({after})", paint.red("✗"), plain(why)),
        };
        rows.push(vec![String::new(), said]);
    }
    rows
}

/// A learned window in a line: its size, its evidence, its server and its time.
fn told_of(learned: &LearnedWindow) -> String {
    let evidence = match (learned.origin, learned.refusals) {
        (WindowOrigin::Refusal, 1) => "1 refusal".to_owned(),
        (WindowOrigin::Refusal, times) => format!("{times} refusals"),
        (WindowOrigin::Saturation, _) => "prompts that were cut".to_owned(),
    };
    let server = learned.base_url.url().map(|url| format!(" at {}", plain(url))).unwrap_or_default();
    let time = learned.learned_at.as_deref().map(|time| format!(", {time}")).unwrap_or_default();
    format!("learned: window {} from {evidence}{server}{time}", grouped(&json!(learned.context_window)))
}

fn listed(parts: [&str; 2]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The fewest columns of a cell that is divided into lines.
const LEAST_WRAPPED: usize = 20;

/// Rows in columns; the last one is dim, and has further lines where it is too long.
fn aligned(rows: &[Vec<String>], paint: &Paint, columns: usize) -> String {
    // The last cell of a row takes no width from the others.
    let cells = |column: usize| rows.iter().filter(move |row| column + 1 < row.len()).map(move |row| &row[column]);
    let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0);
    // Measured once for all rows, of which there may be thousands.
    let widths: Vec<usize> = (0..rows.iter().map(Vec::len).max().unwrap_or(0)).map(width).collect();
    let line = |row: &Vec<String>| {
        let Some((last, others)) = row.split_last() else { return "\n".to_owned() };
        let before: String = others.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}   ")).collect();
        let taken = before.chars().count() + 2;
        let parts = match columns.saturating_sub(taken) {
            0..LEAST_WRAPPED => vec![last.clone()],
            room => in_sentences(last, room),
        };
        let shown = |part: &String| if others.is_empty() { part.clone() } else { paint.dim(part) };
        let parts = parts.iter().map(shown).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(taken)));
        format!("  {before}{parts}").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Bytes as a person reads them.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
