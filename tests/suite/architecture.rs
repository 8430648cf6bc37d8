//! The house as docs/ARCHITECTURE.md draws it: who may know whom.

use crate::imports::{self, Imports, Sources};
use std::{fs, path::Path};

/// Rooms from the ground up. A file may use what is in its own room or below it.
const ROOMS: &[(&str, &[&str])] = &[
    ("words", &["clock", "ids", "text", "prompts", "regular", "secret", "watch"]),
    (
        "entries",
        &[
            "tokens",
            "message",
            "message/outline",
            "entry",
            "entry/escapes",
            "entry/header",
            "entry/mirror",
            "entry/place",
            "entry/preserved",
            "entry/writing",
            "message/system",
            "tokens/calibration",
            "entry",
            "entry/compaction",
            "entry/preserved",
        ],
    ),
    (
        "providers",
        &[
            "provider",
            "provider/anthropic",
            "provider/body",
            "provider/codec",
            "provider/google",
            "provider/halves",
            "provider/http",
            "provider/keys",
            "provider/openai_chat",
            "provider/openai_responses",
            "provider/overflow",
            "provider/reading",
            "provider/sse",
            "provider/steps",
            "provider/trouble",
            "provider/turns",
        ],
    ),
    (
        "knowledge",
        &[
            "models",
            "models/candidates",
            "models/catalog",
            "models/learned",
            "models/known",
            "settings",
            "settings/checked",
            "settings/files",
            "settings/layers",
            "settings/patch",
            "settings/prompt_files",
            "settings/ranges",
            "settings/trust",
            "path",
            "index",
            "context",
            "context/check",
            "context/others",
            "context/pairing",
        ],
    ),
    (
        "decisions",
        &[
            "maintenance",
            "maintenance/plan",
            "maintenance/ladder",
            "maintenance/prune",
            "summary",
            "summary/brief",
            "summary/check",
            "summary/extractive",
            "summary/fold",
            "summary/language",
            "summary/made",
            "summary/material",
            "summary/rules",
            "summary/transcript",
            "summary/files",
            "summary/ledger",
            "summary/redact",
            "summary/redact/blocks",
            "summary/redact/commands",
            "summary/redact/corpus",
            "summary/redact/keys",
            "summary/redact/labels",
            "summary/redact/lines",
            "summary/redact/named",
            "summary/redact/named/words",
            "summary/redact/places",
            "summary/redact/rules",
            "summary/redact/stream",
            "summary/redact/tables",
            "summary/salient",
            "summary/sections",
            "summary/todo",
        ],
    ),
    (
        "wire",
        &[
            "protocol",
            "protocol/codes",
            "protocol/errors",
            "protocol/events",
            "protocol/notifications",
            "protocol/requests",
            "protocol/schema",
            "protocol/transcripts",
            "protocol/typescript",
            "protocol/types",
            "protocol/types/browsing",
            "protocol/types/compaction",
            "protocol/types/connection",
            "protocol/types/reading",
            "protocol/types/settings",
            "protocol/types/shapes",
            "transport",
            "outbox",
            "caller",
            "rpc",
            "session/store",
            "session/header",
            "session/history",
            "session/follower",
            "session/indexing",
            "session/lines",
            "session/pieces",
            "session/walk",
            "provider/http",
            "provider/keys",
            "session/lock",
            "session/migrate",
        ],
    ),
    (
        "session",
        &[
            "session",
            "session/append",
            "session/background",
            "session/blobs",
            "session/completing",
            "session/browse",
            "session/export",
            "session/notes",
            "session/search",
            "session/telling",
            "session/undoing",
            "session/compaction",
            "session/listing",
            "session/means",
            "session/mirroring",
            "session/meter",
            "session/instructions",
            "session/drafting",
            "session/summarizing",
            "session/asking",
            "session/open",
            "session/operation",
            "session/read",
            "session/relayer",
            "session/request",
            "session/state",
            "session/usage",
            "session/writing",
            "session/compacting",
            "session/handle",
        ],
    ),
    (
        "daemon",
        &[
            "daemon",
            "daemon/files",
            "daemon/registry",
            "daemon/registry/model",
            "daemon/sessions",
            "daemon/settings",
            "serve",
        ],
    ),
    (
        "shell",
        &[
            "cli",
            "cli/client",
            "cli/compact",
            "cli/demo",
            "cli/doctor",
            "cli/model",
            "cli/models",
            "cli/paint",
            "cli/schema",
        ],
    ),
];

/// Files that touch the world: disk, clock, threads, other processes.
const SHELL: &[&str] = &[
    "regular",
    "provider/http",
    "provider/keys",
    "caller",
    "session/drafting",
    "session/asking",
    "session/follower",
    "session/lock",
    "session/lines",
    "session/header",
    "session/history",
    "session/migrate",
    "session/store",
    "session/export",
    "session/background",
    "session/blobs",
    "session/open",
    "session/listing",
    "session/means",
    "session/summarizing",
    "session",
    "session/handle",
    "settings/files",
    "settings/prompt_files",
    "watch",
    "daemon",
    "daemon/files",
    "daemon/sessions",
    "daemon/settings",
    "serve",
    "outbox",
    "caller",
    "transport",
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

fn room(name: &str) -> usize {
    ROOMS
        .iter()
        .position(|(_, files)| files.contains(&name))
        .unwrap_or_else(|| panic!("src/{name}.rs is in no room of this test"))
}

/// Code without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// Circles of files that are still to be opened. The test fails when one of them is gone, so that the list only shrinks.
const KNOWN_CIRCLES: &[&[&str]] = &[
    &["message", "tokens"],
    &["session/asking", "session/summarizing"],
    &["session/background", "session/handle", "session/notes", "session/writing"],
    &[
        "session/follower",
        "session/header",
        "session/history",
        "session/indexing",
        "session/lock",
        "session/migrate",
        "session/store",
        "session/walk",
    ],
    &["session/instructions", "session/open", "session/state", "session/usage"],
    &["settings/checked", "settings/layers"],
    &["settings/files", "settings/prompt_files"],
];

/// Folders that still use each other, as above.
const KNOWN_MUTUAL_FOLDERS: &[(&str, &str)] =
    &[("maintenance", "summary"), ("message", "tokens"), ("protocol", "session")];

fn imports_of_the_project() -> Imports {
    Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).imports()
}

#[test]
fn an_import_goes_down() {
    for (from, to) in imports_of_the_project() {
        let (from, to) = (imports::name(&from), imports::name(&to));
        assert!(room(&to) <= room(&from), "src/{from}.rs uses src/{to}.rs, which is above it");
    }
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
