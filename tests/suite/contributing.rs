//! CONTRIBUTING.md: the files that it names exist, and a method, an event and an error cost the places that it says.

use regex::Regex;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Files that name a method besides its handler: limits of requests depend on a few, and `settings/set` has a half in the
/// daemon and a half in the session.
const KNOWN: &[(&str, &str)] = &[
    ("Initialize", "src/wire/rpc.rs"),
    ("Initialized", "src/wire/rpc.rs"),
    ("Exit", "src/wire/rpc.rs"),
    ("Ping", "src/wire/rpc.rs"),
    ("CancelLsp", "src/wire/rpc.rs"),
    ("CancelAcp", "src/wire/rpc.rs"),
    ("SessionCancel", "src/wire/rpc.rs"),
    ("CancelLsp", "src/wire/caller.rs"),
    ("SettingsSet", "src/session/core/commands/settings.rs"),
    ("SettingsSet", "src/simulator/world/requests.rs"),
    ("SessionLoad", "src/session/recording/requests.rs"),
    ("ModelsList", "src/session/recording/requests.rs"),
    ("SettingsGet", "src/session/recording/requests.rs"),
    ("SettingsSet", "src/session/recording/requests.rs"),
    ("ToolsSet", "src/session/core/commands/configure/tools.rs"),
    ("ToolsSet", "src/session/recording/requests.rs"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page")
}

/// The sources by their paths, without comments and tests.
fn sources() -> BTreeMap<String, String> {
    fn walk(folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                // A file of tests, declared by its parent, or below one.
                let below = path.strip_prefix(root()).expect("a path below");
                if path.ends_with("tests.rs") || below.iter().any(|part| part == "tests") {
                    continue;
                }
                let text = fs::read_to_string(&path).expect("a file").replace("#[cfg(test)]\nmod tests;", "");
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>();
                let name = path.strip_prefix(root()).expect("a path below").display().to_string();
                found.insert(name, code.join("\n"));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&root().join("src"), &mut found);
    found
}

/// The files whose code matches.
fn naming<'a>(sources: &'a BTreeMap<String, String>, pattern: &str) -> BTreeSet<&'a str> {
    let pattern = Regex::new(pattern).expect("a pattern");
    sources.iter().filter(|(_, code)| pattern.is_match(code)).map(|(name, _)| name.as_str()).collect()
}

const LINE: &str =
    r#"(?m)^ *(?:request|notification) (daemon|session|edit|command) (\w+) = "([^"]+)": [\w:]+ => [\w:()]+;$"#;

#[test]
fn the_files_of_the_page_exist() {
    let page = page();
    let named = Regex::new(r"`((?:src|tests|docs|protocol|\.ci)/[\w./-]*)`").expect("a pattern");
    let mut files = BTreeSet::new();
    for (_, [file]) in named.captures_iter(&page).map(|it| it.extract()) {
        // The example adds this file.
        let is_new = file == "src/session/core/commands/count.rs";
        assert_eq!(root().join(file).exists(), !is_new, "{file}");
        files.insert(file);
    }
    assert!(files.len() >= 25, "{files:?}");
    for folder in fs::read_dir(root().join("src")).expect("a folder").flatten().filter(|it| it.path().is_dir()) {
        let folder = format!("src/{}/", folder.file_name().display());
        assert!(files.contains(folder.as_str()), "{folder} has no line");
    }
    let of = Regex::new(r"`(\w+)` of `(src/[\w./]+)`").expect("a pattern");
    let mut traits = 0;
    for (_, [name, file]) in of.captures_iter(&page).map(|it| it.extract()) {
        let text = fs::read_to_string(root().join(file)).expect("a file");
        assert!(text.contains(&format!("trait {name}")), "{file} has no {name}");
        traits += 1;
    }
    assert_eq!(traits, 4, "one for each kind of handler");
}

#[test]
fn a_method_is_a_line_and_a_handler() {
    let sources = sources();
    let table = &sources["src/protocol.rs"];
    let line = Regex::new(LINE).expect("a pattern");
    assert!(line.is_match(&page()), "the line of the example is none of the table");
    let mut methods = 0;
    let mut known = BTreeSet::new();
    for (_, [kind, method, name]) in line.captures_iter(table).map(|it| it.extract()) {
        methods += 1;
        let handler = match kind {
            "daemon" => "DaemonMethod",
            "session" => "SessionMethod",
            "edit" => "EditMethod",
            _ => "CommandMethod",
        };
        let handlers = naming(&sources, &format!(r"impl {handler} for (?:protocol::)?{method} "));
        assert_eq!(handlers.len(), 1, "{method}: {handlers:?}");
        for file in naming(&sources, &format!(r"\b{method}\b")) {
            if file != "src/protocol.rs" && !handlers.contains(file) {
                assert!(KNOWN.contains(&(method, file)), "{file} names {method}, and is not its handler");
                known.insert((method, file));
            }
        }
        // The commands of a shell are clients, and so is the simulator.
        let named = naming(&sources, &format!("\"{}\"", regex::escape(name)));
        // A word of a shell is no method.
        let clients = ["src/cli/", "src/simulator/", "src/summary/shell/", "src/summary/harness.rs"];
        let named: Vec<_> = named.into_iter().filter(|file| clients.iter().all(|it| !file.starts_with(it))).collect();
        assert_eq!(named, ["src/protocol.rs"], "{name}");
    }
    assert_eq!(methods, abridged::protocol::methods().len());
    assert_eq!(
        known,
        KNOWN.iter().copied().collect(),
        "left: the exceptions of the sources; right: those that are known"
    );
}

#[test]
fn an_event_is_one_entry_of_the_table() {
    let sources = sources();
    let table = &sources["src/protocol/events.rs"];
    let line = Regex::new(r#"(?m)^ *(?:Durable|Droppable|Replaceable) (\w+) = "(\w+)" \{$"#).expect("a pattern");
    assert!(line.is_match(&page()), "the event of the example is none of the table");
    let mut events = 0;
    for (_, [variant, name]) in line.captures_iter(table).map(|it| it.extract()) {
        events += 1;
        // A notification may have the name of an event, the TypeScript has an example, and a provider has an event of its own.
        let others =
            ["src/protocol/notifications.rs", "src/protocol/typescript.rs", "src/provider/anthropic/answer.rs"];
        let named = naming(&sources, &format!("\"{name}\""));
        let elsewhere: Vec<_> =
            named.into_iter().filter(|file| !file.starts_with("src/cli/") && !others.contains(file)).collect();
        assert_eq!(elsewhere, ["src/protocol/events.rs"], "{name}");
        let sent = naming(&sources, &format!(r"Event::{variant}\b"));
        assert!(sent.iter().any(|file| *file != "src/wire/event_log.rs"), "nothing sends {name}");
    }
    assert!(events >= 14, "{events}");
}

#[test]
fn an_error_is_a_line_and_a_variant() {
    let sources = sources();
    for (number, name) in abridged::protocol::codes::CODES {
        // Providers have errors of the same names, and the TypeScript has an example.
        let of_protocol = |file: &&str| file.starts_with("src/protocol/") && *file != "src/protocol/typescript.rs";
        let named: Vec<_> = naming(&sources, &format!("\"{name}\"")).into_iter().filter(of_protocol).collect();
        assert_eq!(named, ["src/protocol/codes.rs"], "{name}");
        let numbered: Vec<_> = naming(&sources, &format!(r"{number}\b")).into_iter().collect();
        assert_eq!(numbered, ["src/protocol/codes.rs"], "{number}");
    }
}
