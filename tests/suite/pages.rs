//! The pages for contributors name files that are there, and each file of the sources says what it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Texts in backquotes that end with `.rs`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|word| word.ends_with(".rs") && !word.contains(char::is_whitespace))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_pages_name_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in ["ARCHITECTURE.md", "INVARIANTS.md", "TESTING.md", "DECISIONS.md"] {
        let text = fs::read_to_string(root.join("docs").join(page)).expect("the page");
        let is_there = |name: &&str| root.join("src").join(name).exists() || root.join(name).exists();
        let gone: Vec<&str> = named(&text).filter(|name| !is_there(name)).collect();
        assert!(gone.is_empty(), "docs/{page} names files that are not there: {gone:?}");
    }
}

#[test]
fn each_source_begins_with_a_sentence_about_itself() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    let is_silent = |path: &PathBuf| !fs::read_to_string(path).expect("a file").starts_with("//! ");
    found.retain(is_silent);
    assert!(found.is_empty(), "no //! at the top of {found:?}");
}
