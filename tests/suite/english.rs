//! Doc comments name their subject: the first word of a line is never a pronoun in the place of a noun of the field.

use std::{fs, path::Path};

/// First words of a riddle.
const RIDDLES: [&str; 6] = ["What", "Whatever", "Who", "Whoever", "Whose", "One that"];

/// The text of a doc comment's line.
fn doc(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "))
}

/// Whether a line of a doc comment begins with a riddle.
fn is_a_riddle(line: &str) -> bool {
    doc(line).is_some_and(|text| {
        RIDDLES.iter().any(|riddle| {
            text.strip_prefix(riddle).is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
        })
    })
}

fn check(folder: &Path, root: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            check(&path, root, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("a path below").display().to_string();
            let text = fs::read_to_string(&path).expect("a file");
            let riddles = text.lines().enumerate().filter(|(_, line)| is_a_riddle(line));
            found.extend(riddles.map(|(at, line)| format!("{name}:{}: {}", at + 1, line.trim())));
        }
    }
}

#[test]
fn no_doc_line_begins_with_a_riddle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in ["src", "tests", "benches", "examples"] {
        check(&root.join(folder), root, &mut found);
    }
    assert!(found.is_empty(), "name the subject instead:\n{}", found.join("\n"));
}

#[test]
fn a_riddle_is_recognized_by_its_first_word() {
    for riddle in ["/// What is kept.", "    //! Whoever asks.", "/// One that waits.", "/// Whose it is"] {
        assert!(is_a_riddle(riddle), "{riddle}");
    }
    for plain in
        ["/// Whatsoever.", "/// The entry.", "// What is no doc comment.", "let what = 1; /// What", "/// Whole"]
    {
        assert!(!is_a_riddle(plain), "{plain}");
    }
}
