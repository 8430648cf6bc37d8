//! The reading order of docs/ARCHITECTURE.md names every file of the sources, and no file that is not there.

use std::{collections::BTreeSet, fs, path::Path};

/// Texts in backquotes that end with `.rs`, as paths below `src`.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|word| word.ends_with(".rs") && !word.contains(char::is_whitespace)).map(str::to_owned).collect()
}

fn files(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, root, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path.strip_prefix(root).expect("a path below").display().to_string());
        }
    }
}

#[test]
fn the_reading_order_names_every_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).expect("the page");
    let mut there = BTreeSet::new();
    files(&root.join("src"), &root.join("src"), &mut there);
    let named = named(&text);
    let gone: Vec<_> =
        named.iter().filter(|name| !there.contains(*name) && !root.join(name.as_str()).exists()).collect();
    assert!(gone.is_empty(), "docs/ARCHITECTURE.md names files that are not there: {gone:?}");
    let unnamed: Vec<_> = there.iter().filter(|name| !named.contains(*name)).collect();
    assert!(unnamed.is_empty(), "docs/ARCHITECTURE.md does not name {unnamed:?}");
}
