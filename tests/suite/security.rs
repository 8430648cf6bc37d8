//! SECURITY.md: each promise names tests, and each of them exists.

use std::{fs, path::Path};

/// The rows of the tables whose first cell is a number: that number and the last cell.
fn promises(text: &str) -> Vec<(usize, &str)> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|');
            let number = cells.next()?.trim().parse().ok()?;
            Some((number, cells.next_back()?.trim()))
        })
        .collect()
}

/// Whether a file of tests has this one.
fn exists(root: &Path, test: &str) -> bool {
    let Some((file, name)) = test.rsplit_once("::") else { return false };
    let texts = ["tests/suite", "src"].map(|folder| fs::read_to_string(root.join(folder).join(format!("{file}.rs"))));
    texts.into_iter().flatten().any(|text| {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let declared = |at: &usize| lines[*at].starts_with(&format!("fn {name}("));
        (0..lines.len()).filter(declared).any(|at| lines[..at].iter().rev().take(3).any(|line| *line == "#[test]"))
    })
}

#[test]
fn each_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("SECURITY.md")).expect("the page");
    let promises = promises(&text);
    let numbers: Vec<usize> = promises.iter().map(|(number, _)| *number).collect();
    assert!(numbers.len() >= 30 && numbers.iter().copied().eq(1..=numbers.len()), "{numbers:?}");
    for (number, tests) in promises {
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "promise {number} names no test");
        for name in names {
            assert!(exists(root, name), "promise {number}: there is no test {name}");
        }
    }
    assert!(!exists(root, "planted::fifo"), "a function is no test");
}
