//! The house as docs/ARCHITECTURE.md draws it: who may know whom.

use crate::imports::{self, Imports, Sources};
use std::{collections::BTreeSet, fs, path::Path};

/// Folders of `src` from the ground up; a file beside `lib.rs` is a folder of its own. A folder uses itself and what is on a
/// lower floor.
const FLOORS: &[&[&str]] = &[
    &["clock", "ids", "prompts", "redact", "regular", "secret", "text", "watch"],
    &["conversation"],
    &["log", "provider"],
    &["settings"],
    &["models"],
    &["ask"],
    &["summary"],
    &["compaction"],
    &["protocol"],
    &["wire"],
    &["session"],
    &["daemon"],
    &["cli"],
];

/// Imports that still go up or sideways. The test fails when one of them is gone, so that the list only shrinks.
const KNOWN_UPWARD: &[(&str, &str)] = &[];

/// Files that touch the world: disk, clock, threads, other processes.
const SHELL: &[&str] = &[
    "regular",
    "provider/http",
    "provider/keys",
    "wire/caller",
    "session/draft_job",
    "ask/clock",
    "summary/model/writer",
    "ask/slots",
    "models/windows",
    "log/follower",
    "log/lock",
    "log/lines",
    "log/header",
    "log/history",
    "log/migrate",
    "log/source",
    "log/loading",
    "log/store",
    "log/writer",
    "log/memory",
    "session/commands/export",
    "session/idle",
    "log/blobs",
    "session/open",
    "daemon/listing",
    "session",
    "session/handle",
    "settings/files",
    "settings/prompt_files",
    "watch",
    "daemon",
    "daemon/connection",
    "daemon/files",
    "daemon/sessions",
    "daemon/settings",
    "daemon/serve",
    "wire/outbox",
    "wire/caller",
    "wire/transport",
    "cli/client",
    "cli/compact",
    "cli/demo",
    "cli/doctor",
    "cli/model",
    "cli/models",
    "cli/paint",
    "cli/schema",
];

fn files() -> Vec<(String, String)> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                let name = path.strip_prefix(root).expect("below").with_extension("").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("a file")));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.retain(|(name, _)| name != "main" && name != "lib");
    found
}

fn folder(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

fn floor(name: &str) -> usize {
    let folder = folder(name);
    FLOORS
        .iter()
        .position(|folders| folders.contains(&folder))
        .unwrap_or_else(|| panic!("src/{name}.rs is on no floor of this test"))
}

/// Code without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// Circles of files that are still to be opened. The test fails when one of them is gone, so that the list only shrinks.
const KNOWN_CIRCLES: &[&[&str]] =
    &[&["settings/checked", "settings/layers"], &["settings/files", "settings/prompt_files"]];

/// Folders that still use each other, as above.
const KNOWN_MUTUAL_FOLDERS: &[(&str, &str)] = &[];

fn imports_of_the_project() -> Imports {
    Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).imports()
}

#[test]
fn an_import_goes_down() {
    let mut upward = BTreeSet::new();
    for (from, to) in imports_of_the_project() {
        let (from, to) = (imports::name(&from), imports::name(&to));
        if folder(&from) != folder(&to) && floor(&to) >= floor(&from) {
            assert!(
                KNOWN_UPWARD.contains(&(folder(&from), folder(&to))),
                "src/{from}.rs uses src/{to}.rs, which is not on a lower floor"
            );
            upward.insert((folder(&from).to_owned(), folder(&to).to_owned()));
        }
    }
    let known: BTreeSet<_> = KNOWN_UPWARD.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
    assert_eq!(upward, known, "left: the upward imports of the sources; right: those that are known");
}

#[test]
fn files_do_not_use_each_other_in_a_circle() {
    let found = imports::circles(&imports_of_the_project());
    let found: Vec<Vec<String>> = found.iter().map(|circle| circle.iter().map(imports::name).collect()).collect();
    assert_eq!(found, KNOWN_CIRCLES, "left: the circles of the sources; right: those that are known");
}

#[test]
fn folders_do_not_use_each_other() {
    let found = imports::mutual_folders(&imports_of_the_project());
    let known = KNOWN_MUTUAL_FOLDERS.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(found, known, "left: the folders of the sources; right: those that are known");
}

#[test]
fn only_the_shell_touches_the_world() {
    for (name, text) in files() {
        if SHELL.contains(&name.as_str()) {
            continue;
        }
        for touch in ["std::fs", "std::io", "std::process::", "std::thread", "tokio::", "std::env::"] {
            assert!(!code(&text).contains(touch), "src/{name}.rs touches {touch}");
        }
    }
}

#[test]
fn no_file_grows_into_the_place_where_everything_ends_up() {
    for (name, text) in files() {
        let lines = code(&text).lines().count();
        assert!(lines <= 720, "src/{name}.rs has {lines} lines without its tests");
    }
}

/// stdout is the wire: nothing but the outbox and the commands of a person write to it.
#[test]
fn nothing_prints_on_the_wire() {
    for (name, text) in files() {
        let without_stderr = code(&text).replace("eprintln!(", "").replace("eprint!(", "");
        assert!(!without_stderr.contains("println!(") && !without_stderr.contains("print!("), "src/{name}.rs prints");
    }
}

/// Model families, by the words in their models' names.
const FAMILIES: &[&str] = &[
    "claude", "codex", "deepseek", "gemini", "gemma", "gpt", "grok", "haiku", "kimi", "llama", "minimax", "mistral",
    "opus", "qwen", "sonnet", "stral",
];

/// A codec follows the dialect of a model, which is data. `overflow` is a table of error texts, by the servers that send
/// them.
#[test]
fn a_provider_file_names_no_model_family() {
    for (name, text) in files().iter().filter(|(name, _)| folder(name) == "provider" && name != "provider/overflow") {
        // Names of APIs in session files.
        let code = code(text).replace("google-gemini-cli", "").replace("openai-codex-responses", "").to_lowercase();
        let found = FAMILIES.iter().find(|family| code.contains(*family));
        assert_eq!(found, None, "src/{name}.rs names a model family; rules for models are in data/dialects.json");
    }
}
