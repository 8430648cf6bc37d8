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

/// Whether a comment of the line has the word "behind".
fn is_behind(line: &str) -> bool {
    let comment = line.split_once("//").filter(|(before, _)| !before.contains(['"', ':'])).map(|(_, comment)| comment);
    comment.is_some_and(|comment| {
        comment.to_lowercase().split(|char: char| !char.is_alphabetic() && char != '_').any(|it| it == "behind")
    })
}

/// The lines below a folder for which `says` holds, each with its file and its number.
fn lines(folder: &Path, root: &Path, says: fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(lines(&path, root, says));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("a path below").display().to_string();
            let text = fs::read_to_string(&path).expect("a file");
            let said = text.lines().enumerate().filter(|(_, line)| says(line));
            found.extend(said.map(|(at, line)| format!("{name}:{}: {}", at + 1, line.trim())));
        }
    }
    found
}

#[test]
fn no_doc_line_begins_with_a_riddle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "tests", "benches", "examples"];
    let found: Vec<String> = folders.iter().flat_map(|folder| lines(&root.join(folder), root, is_a_riddle)).collect();
    assert!(found.is_empty(), "name the subject instead:\n{}", found.join("\n"));
}

/// "Behind" means a place, and "after" means time or order. Few comments are about places.
#[test]
fn comments_say_after_where_they_mean_time() {
    /// The number of comments with the word.
    const BEHIND: usize = 24;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = lines(&root.join("src"), root, is_behind);
    assert!(found.len() <= BEHIND, "{} of {BEHIND}; say after:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_word_counts_in_comments_alone() {
    assert!(is_behind("/// Stands behind it.") && is_behind("x(); // Behind."));
    assert!(!is_behind("fn behind() {}") && !is_behind("/// It is left_behind") && !is_behind("// after"));
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
