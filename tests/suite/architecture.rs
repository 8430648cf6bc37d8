//! The house as docs/ARCHITECTURE.md draws it: who may know whom.

mod core_methods;

use crate::imports::{self, Imports, Sources};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
    sync::LazyLock,
};
use syn::visit::{self, Visit};

/// Folders of `src` from the ground up; a file beside `lib.rs` is a folder of its own. A folder uses itself and what is on a
/// lower floor.
const FLOORS: &[&[&str]] = &[
    &["clock", "ids", "prompts", "regular", "text", "watch"],
    &["redact"],
    &["conversation"],
    &["log", "provider"],
    &["agents", "settings"],
    &["models"],
    &["ask"],
    &["summary"],
    &["compaction"],
    &["protocol"],
    &["wire"],
    &["session"],
    &["daemon", "simulator"],
    &["cli"],
];

/// Imports that still go up or sideways. The test fails when one of them is gone, so that the list only shrinks.
const KNOWN_UPWARD: &[(&str, &str)] = &[];

/// Files that touch the world: clock, randomness, disk, environment, threads, other processes. A file that calls a function
/// which `clippy.toml` disallows carries `expect(clippy::disallowed_methods)`; no other file may.
const SHELL: &[&str] = &[
    "regular",
    "agents/homes",
    "agents/opencode/database",
    "agents/opencode/files",
    "agents/reading",
    "provider/http",
    "provider/keys",
    "wire/caller",
    "ask/clock",
    "ask/virtual_clock",
    "summary/model/writer",
    "ask/later",
    "ask/slots",
    "models/windows",
    "log/bytes",
    "log/writer/file",
    "log/header",
    "log/lock",
    "log/files",
    "log/blobs",
    "log/store/cache",
    "log/store/pages",
    "log/store/postgres",
    "log/store/postgres/asking",
    "log/store/postgres/connection",
    "log/store/postgres/health",
    "log/store/postgres/keeper",
    "log/store/postgres/lanes",
    "log/store/postgres/lines",
    "log/store/stored",
    "log/store/home",
    "log/store/postgres/owning",
    "session/open",
    "daemon/listing",
    "session/shared",
    "session/recording/recorder",
    "session/shell",
    "session/shell/background",
    "session/shell/reads",
    "session/idle_turn",
    "session/jobs/at_once",
    "session/jobs/export",
    "session/jobs/pool",
    "session/handle",
    "settings/alone",
    "settings/files",
    "settings/prompt_files",
    "watch",
    "daemon",
    "daemon/connection",
    "daemon/files",
    "daemon/sessions",
    "daemon/settings",
    "daemon/sources",
    "daemon/stores",
    "daemon/serve",
    "wire/outbox",
    "wire/line_queue",
    "wire/transport",
    "cli/chat",
    "cli/client",
    "cli/demo",
    "cli/demo/agent",
    "cli/demo/screen",
    "cli/demo/watched",
    "cli/doctor",
    "cli/model",
    "cli/models",
    "cli/interrupt",
    "cli/named",
    "cli/other_agents/continuing",
    "cli/other_agents/found",
    "cli/other_agents/hook",
    "cli/report/written",
    "cli/session_commands/stored",
    "cli/session_commands/tail",
    "cli/paint",
    "cli/print",
    "cli/generated/man",
    "cli/generated/schema",
    "cli/tree",
    "cli/watch",
    "cli/watch/live",
    "cli/watch/look",
    "cli/watch/terminal",
    "clock",
    "conversation/entry/system",
    "ids",
];

fn files() -> Vec<(String, String)> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, root, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
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

/// The files without those of test modules: `x/tests.rs` and the files below it, where `x.rs` compiles them for tests only.
fn sources() -> Vec<(String, String)> {
    let files = files();
    let declares = |(_, text): &&(String, String)| text.contains("#[cfg(test)]\nmod tests;");
    let tests: Vec<String> = files.iter().filter(declares).map(|(name, _)| format!("{name}/tests")).collect();
    let is_test = |name: &str| {
        let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        tests.iter().any(|tests| name.strip_prefix(tests.as_str()).is_some_and(below))
    };
    files.into_iter().filter(|(name, _)| !is_test(name)).collect()
}

/// Code without its tests: the text before the first test module with a body.
fn code(text: &str) -> &str {
    let tests = text.match_indices("#[cfg(test)]\n").find(|(at, attribute)| {
        let item = text[at + attribute.len()..].lines().next().unwrap_or_default();
        item.contains("mod ") && item.ends_with('{')
    });
    tests.map_or(text, |(at, _)| &text[..at])
}

/// Circles of files that are still to be opened. The test fails when one of them is gone, so that the list only shrinks.
const KNOWN_CIRCLES: &[&[&str]] = &[];

/// Folders that still use each other, as above.
const KNOWN_MUTUAL_FOLDERS: &[(&str, &str)] = &[];

/// The imports of the sources. Reading them takes a second, so the tests share them.
static IMPORTS: LazyLock<Imports> =
    LazyLock::new(|| Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).imports());

#[test]
fn an_import_goes_down() {
    let mut upward = BTreeSet::new();
    for (from, to) in &*IMPORTS {
        let (from, to) = (imports::name(from), imports::name(to));
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
    let found = imports::circles(&IMPORTS);
    let found: Vec<Vec<String>> = found.iter().map(|circle| circle.iter().map(imports::name).collect()).collect();
    assert_eq!(found, KNOWN_CIRCLES, "left: the circles of the sources; right: those that are known");
}

#[test]
fn folders_do_not_use_each_other() {
    let found = imports::mutual_folders(&IMPORTS);
    let known = KNOWN_MUTUAL_FOLDERS.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(found, known, "left: the folders of the sources; right: those that are known");
}

/// The paths that each source names, by its text. Reading them takes seconds, so the tests share them.
static PATHS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let paths = |(_, text): (String, String)| (imports::paths(&text), text);
    files().into_iter().map(paths).map(|(paths, text)| (text, paths)).collect()
});

/// The paths that a text names.
fn paths(text: &str) -> Cow<'static, [String]> {
    PATHS.get(text).map_or_else(|| imports::paths(text).into(), |paths| paths.as_slice().into())
}

/// Paths by which a file touches the world.
const WORLD: &[&str] = &["std::env", "std::fs", "std::io", "std::net", "std::process", "std::thread", "tokio"];

/// The paths by which a file touches the world. A path in the arguments of a macro is seen as text. An `io::Error` is a
/// value.
fn touches(text: &str) -> Vec<&'static str> {
    let paths = paths(text);
    let named = |path: &String, touch: &str| {
        path.strip_prefix(touch).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let touched =
        |touch: &&&str| paths.iter().any(|path| named(path, touch)) || code(text).contains(&format!("{touch}::"));
    let errors_only = code(text).split("io::").skip(1).all(|rest| rest.starts_with("Error"));
    WORLD.iter().filter(touched).filter(|touch| **touch != "std::io" || !errors_only).copied().collect()
}

#[test]
fn only_the_shell_touches_the_world() {
    for (name, text) in sources() {
        if SHELL.contains(&name.as_str()) {
            continue;
        }
        assert_eq!(touches(&text), Vec::<&str>::new(), "src/{name}.rs touches the world");
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

/// Files that write to stdout or stderr: the printer of the commands, the screen that `watch` draws on, and the daemon, which
/// sets stdout aside for its frames.
const WRITERS: &[&str] = &["cli/print", "cli/watch/terminal", "daemon/serve", "main"];

/// Text of a stranger reaches a terminal through the printer alone.
#[test]
fn a_command_prints_by_the_printer() {
    for (name, text) in files().iter().filter(|(name, _)| !name.starts_with("simulator") && !name.ends_with("/model")) {
        let code = code(text).replace("io::stdout().is_terminal()", "").replace("io::stderr().is_terminal()", "");
        let writes = ["io::stdout()", "io::stderr()", "eprintln!(", "eprint!("].iter().any(|it| code.contains(it));
        assert!(!writes || WRITERS.contains(&name.as_str()), "src/{name}.rs writes to stdout or stderr; see cli/print");
    }
}

/// Files of a session's folder may be planted: anything may lie in their place. `regular` opens regular files alone, and reads
/// no more of them than it is asked for.
#[test]
fn a_file_is_opened_by_one_module() {
    let ways = ["fs::read(", "fs::read_to_string(", "File::open(", "OpenOptions::new(", "tokio::fs"];
    let shell = sources().into_iter().filter(|(name, _)| name != "regular" && !name.starts_with("simulator"));
    for (name, text) in shell {
        // Its own type of that name opens sessions.
        let code = code(&text).replace("SessionFile::open(", "");
        let found = ways.iter().find(|way| code.contains(**way));
        assert_eq!(found, None, "src/{name}.rs opens a file; see regular");
    }
}

/// Files that assemble a text of clean texts and prompts: requests to models, and texts that stand for a conversation.
const ASSEMBLERS: &[&str] = &[
    "cli/models",
    "session/jobs/transfer/branch",
    "session/jobs/transfer/handoff",
    "session/jobs/transfer/reference",
    "summary/branch",
    "summary/cleaner",
    "summary/extractive",
    "summary/extractive/draft",
    "summary/extractive/short",
    "summary/heard",
    "summary/heard/arguments",
    "summary/heard/outputs",
    "summary/model/brief",
    "summary/model/check",
    "summary/model/material",
];

/// A text gets to another reader through `Secrets::clean`. To redact it elsewhere, or to call it clean, is to go around that.
#[test]
fn a_text_is_redacted_in_one_place() {
    let mut assemblers: BTreeSet<&str> = ASSEMBLERS.iter().copied().collect();
    for (name, text) in sources().iter().filter(|(name, _)| folder(name) != "redact") {
        let code = code(text);
        let may = assemblers.remove(name.as_str());
        assert!(may || !code.contains("Clean::assembled("), "src/{name}.rs calls a text clean; see Secrets::clean");
        assert!(!code.contains("Secrets::Sent.clean("), "src/{name}.rs calls a text clean; see Settings::secrets");
        // The errors of providers are redacted whatever the settings say.
        let redacts = code.contains("redact::redact(") && name != "ask/failed";
        assert!(!redacts, "src/{name}.rs redacts a text by itself; see Secrets::clean");
    }
    assert_eq!(assemblers, BTreeSet::new(), "these files assemble nothing");
}

/// Model families, by the words in their models' names.
const FAMILIES: &[&str] = &[
    "claude", "codex", "deepseek", "gemini", "gemma", "gpt", "grok", "haiku", "kimi", "llama", "minimax", "mistral",
    "opus", "qwen", "sonnet", "stral",
];

/// A codec follows the dialect of a model, which is data. `overflow/patterns` is a table of error texts, by the servers that
/// send them.
#[test]
fn a_provider_file_names_no_model_family() {
    for (name, text) in
        sources().iter().filter(|(name, _)| folder(name) == "provider" && name != "provider/overflow/patterns")
    {
        // Names of APIs in session files.
        let code = code(text).replace("google-gemini-cli", "").replace("openai-codex-responses", "").to_lowercase();
        let found = FAMILIES.iter().find(|family| code.contains(*family));
        assert_eq!(found, None, "src/{name}.rs names a model family; rules for models are in data/dialects.json");
    }
}

/// A file outside of the shell would allow itself clock, randomness, disk or environment.
#[test]
fn only_the_shell_allows_disallowed_methods() {
    let mut shell: BTreeSet<&str> = SHELL.iter().copied().collect();
    for (name, text) in files() {
        let allows = code(&text).contains("clippy::disallowed_methods");
        assert!(
            !allows || shell.contains(name.as_str()),
            "src/{name}.rs is not in the shell and allows itself clock or disk"
        );
        if allows || !touches(&text).is_empty() {
            shell.remove(name.as_str());
        }
    }
    assert_eq!(shell, BTreeSet::new(), "these files of the shell touch nothing, or are not there");
}

/// An attribute of a module holds for its children too, which no list of files would show.
#[test]
fn a_file_with_children_allows_no_disallowed_methods_as_a_whole() {
    let files = files();
    for (name, text) in &files {
        let whole = text.contains("#![expect(clippy::disallowed_methods")
            || text.contains("#![allow(clippy::disallowed_methods");
        let children =
            files.iter().any(|(other, _)| other.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/')));
        assert!(!whole || !children, "src/{name}.rs allows disallowed methods for the files below it");
    }
}

/// Ends of the paths of functions that ask the system for the time or for a new id, in the shell or further down.
const CLOCKS: &[&str] = &["clock::now", "::fresh", "Stamps::system"];

/// Files outside of the shell that still call one of `CLOCKS`. A pure file gets such values.
const KNOWN_CLOCKS: &[&str] = &[];

/// Whether a file names one of `CLOCKS`: in a `use` item, in a call or as a value. A path in the arguments of a macro is seen
/// as text.
fn asks_a_clock(text: &str) -> bool {
    let named = paths(text).iter().any(|path| CLOCKS.iter().any(|end| path.ends_with(end)));
    named || CLOCKS.iter().any(|end| code(text).contains(&format!("{end}(")))
}

#[test]
fn every_way_to_ask_a_clock_is_seen() {
    for code in [
        "use crate::clock::{now};",
        "fn f() -> T { Stamps::system().stamp() }",
        "fn f() -> T { with(&mut crate::conversation::entry::Stamps::system()) }",
        "fn f() -> T { json!({ \"id\": OperationId::fresh() }) }",
        "fn f(id: Option<T>) -> T { id.unwrap_or_else(OperationId::fresh) }",
        "fn f() -> T { entry::timestamp(clock::now()) }",
    ] {
        assert!(asks_a_clock(code), "{code}");
    }
    let given = "fn f(stamps: &mut Stamps) -> T { Stamps::seeded(1, stamps.now()).stamp() }";
    let tested = "#[cfg(test)]\nmod tests {\n    fn f() -> T { clock::now() }\n}";
    for code in [given, tested] {
        assert!(!asks_a_clock(code), "{code}");
    }
}

#[test]
fn a_pure_file_is_given_the_time_and_new_ids() {
    let found: Vec<String> = sources()
        .into_iter()
        .filter(|(name, text)| !SHELL.contains(&name.as_str()) && asks_a_clock(text))
        .map(|(name, _)| name)
        .collect();
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(
        found,
        KNOWN_CLOCKS.iter().copied().collect(),
        "left: the files of the sources; right: those that are known"
    );
}

/// The proof that a thread may wait for the disk. Every reader of a session file that the core knows asks for it.
const PROOF: &str = "Blocking::is_allowed_here";

/// Files that declare such a proof: the shell, the opening of a session, a command that reads one, the replay of a recording, and
/// the simulator, whose disk is in memory.
const BLOCKING: &[&str] = &[
    "cli/session_commands/stored",
    "cli/tree/file",
    "cli/watch/look",
    "daemon/sessions",
    "daemon/sources",
    "log/memory",
    "log/store/home",
    "session/core/held",
    "session/recording/replay",
    "session/shell",
    "session/shell/reads",
    "simulator/observer/tests/play",
    "simulator/world/effects",
    "simulator/world/life",
];

#[test]
fn only_the_shell_says_that_it_may_wait_for_the_disk() {
    let says = |text: &str| {
        let named = paths(text).iter().any(|path| path.ends_with(PROOF) || path.contains("sealed::*"));
        named || code(text).contains(&format!("{PROOF}("))
    };
    assert!(says("fn f() -> T { read(&Blocking::is_allowed_here()) }"));
    assert!(says("fn f() -> T { proof.unwrap_or_else(crate::log::sealed::Blocking::is_allowed_here) }"));
    let files = files();
    let found: BTreeSet<&str> = files.iter().filter(|(_, text)| says(text)).map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, BLOCKING.iter().copied().collect(), "left: the files of the sources; right: those that may");
}

/// Files of the core: functions of a state and an input, and the values that they keep.
fn is_core(name: &str) -> bool {
    ["session/core", "session/state", "log/history", "log/history/past", "log/index"].contains(&name)
        || name.starts_with("session/core/")
}

/// Files beside the shell that read a session file without a proof.
const READERS: &[&str] = &["log/lines", "log/loading", "log/pieces", "log/source", "log/walk", "log/writer"];

/// Files of the shell of which the core knows a value: ids, images and exports that are read with a proof, the steps of a
/// summary, and the address and the pieces of a message.
const KNOWN_TO_CORE: &[&str] =
    &["ids", "log/blobs", "session/jobs/export", "summary/model/writer", "wire/outbox", "wire/transport"];

#[test]
fn the_core_imports_nothing_that_reads_the_disk() {
    let mut found = BTreeSet::new();
    for (from, to) in &*IMPORTS {
        let (from, to) = (imports::name(from), imports::name(to));
        let reads = READERS.contains(&to.as_str()) || SHELL.contains(&to.as_str());
        if is_core(&from) && reads {
            assert!(KNOWN_TO_CORE.contains(&to.as_str()), "src/{from}.rs is in the core and uses src/{to}.rs");
            found.insert(to);
        }
    }
    let known: BTreeSet<String> = KNOWN_TO_CORE.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, known, "left: the files that the core uses; right: those that are known");
}

/// The most files flat in a folder, without its subfolders.
const MOST_FILES: usize = 22;

#[test]
fn a_folder_has_a_readable_number_of_files() {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in files() {
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder.to_owned()).or_default() += 1;
    }
    for (folder, count) in folders {
        assert!(count <= MOST_FILES, "src/{folder} has {count} files flat in it");
    }
}

/// The most fields of a struct.
const MOST_FIELDS: usize = 20;

/// A group of settings is one object of a settings file. Its keys cannot be split over several structs: serde does not tell
/// unknown keys of an object that flattened structs share.
const MOST_FIELDS_OF_A_GROUP: usize = 24;

#[test]
fn a_struct_has_a_readable_number_of_fields() {
    struct Structs(String);
    impl<'ast> Visit<'ast> for Structs {
        fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
            let (name, fields) = (&item.ident, item.fields.len());
            let most = if self.0 == "settings" { MOST_FIELDS_OF_A_GROUP } else { MOST_FIELDS };
            assert!(fields <= most, "{name} in src/{}.rs has {fields} fields", self.0);
            visit::visit_item_struct(self, item);
        }
    }
    for (name, text) in files().into_iter().filter(|(_, text)| text.contains("struct ")) {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("src/{name}.rs: {error}"));
        Structs(name).visit_file(&file);
    }
}

/// The places of the product at which a test plants a fault. Faults of effects belong into the simulator, so this only shrinks.
const PLANTED: usize = 28;

#[test]
fn the_product_has_few_places_for_planted_faults() {
    let product = sources().into_iter().filter(|(name, _)| !name.starts_with("simulator") && name != "session/fault");
    let found: usize = product.map(|(_, text)| code(&text).matches("planted(").count()).sum();
    assert_eq!(found, PLANTED, "a smaller number is written down here");
}
