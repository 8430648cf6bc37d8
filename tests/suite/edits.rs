//! The places that write an edit of the context, each with its evidence. Nothing that a user saw leaves the context because of a
//! number that may be wrong.

use std::{collections::BTreeMap, fs, path::Path};

/// The sources that write a `context_edit`, and the evidence on which they do.
const EVIDENCE: &[(&str, &str)] = &[
    (
        "src/session/core/recovering.rs",
        "an answer leaves with `Grounds`: it failed, was empty, or was cut inside a call",
    ),
    (
        "src/session/core/commands/prune.rs",
        "old tool results are elided where the client asks, or over a believed threshold",
    ),
    ("src/conversation/mirroring.rs", "lines for other programs repeat an edit that a compaction carries"),
];

/// Reads the type of an entry, and writes none.
const READERS: &[&str] = &["src/conversation/entry.rs", "src/protocol/types/shapes/entries.rs"];

fn sources() -> BTreeMap<String, String> {
    fn walk(folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("a path below").display().to_string();
            if path.is_dir() {
                walk(&path, found);
            } else if !name.ends_with("tests.rs") && !name.starts_with("src/simulator") {
                let text = fs::read_to_string(&path).expect("a file");
                let private = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                let code = private.split("#[cfg(test)]\npub(super) mod tests {").next().unwrap_or_default();
                found.insert(name, code.to_owned());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found
}

#[test]
fn each_place_that_writes_an_edit_has_its_evidence() {
    let writes: Vec<String> =
        sources().into_iter().filter(|(_, code)| code.contains("\"context_edit\"")).map(|(name, _)| name).collect();
    let mut known: Vec<&str> = EVIDENCE.iter().map(|(file, _)| *file).chain(READERS.iter().copied()).collect();
    known.sort_unstable();
    assert_eq!(writes, known, "a new place needs its evidence here");
}

#[test]
fn answers_are_removed_in_one_place() {
    let of = |text: &str| -> Vec<String> {
        sources().into_iter().filter(|(_, code)| code.contains(text)).map(|(name, _)| name).collect()
    };
    assert_eq!(of("Grounds::of("), ["src/session/core/recovering.rs"]);
    assert_eq!(of(" removal("), ["src/session/core/recovering.rs"]);
    assert_eq!(of("::removal("), ["src/session/core/recovering/reported.rs"]);
}
