//! The oldest Rust that is supported: `rust-version` in Cargo.toml. Clippy's `incompatible_msrv` holds the code to it, and these
//! tests hold the dependencies and the pages to it. Only a compiler of that version finds newer syntax.

use serde_json::Value;
use std::{fs, path::Path, process::Command};

/// The oldest Rust that Cargo.toml names.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// The numbers of a version: `1.89` and `1.89.0` are equal.
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = version.split('.').map(|number| number.parse().expect("a number"));
    [(); 3].map(|()| numbers.next().unwrap_or_default())
}

fn cargo(arguments: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn no_dependency_needs_a_newer_rust_than_the_crate() {
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("the host");
    let metadata = cargo(&["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host]);
    let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
    let needs = |package: &Value| {
        let version = package["rust_version"].as_str()?;
        let is_newer = numbers(version) > numbers(OLDEST);
        is_newer.then(|| format!("{} needs {version}", package["name"].as_str().unwrap_or_default()))
    };
    let packages = metadata["packages"].as_array().expect("packages");
    let newer: Vec<String> = packages.iter().filter_map(needs).collect();
    assert!(packages.len() > 100 && newer.is_empty(), "rust-version is {OLDEST}: {newer:?}");
}

#[test]
fn the_pages_name_the_oldest_rust() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in ["README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(page)).expect("the page");
        assert!(text.contains(&format!("Rust {OLDEST}")), "{page} does not name Rust {OLDEST}");
    }
    let clippy = fs::read_to_string(root.join("clippy.toml")).expect("the settings of clippy");
    assert!(!clippy.contains("msrv"), "clippy takes the version of Cargo.toml");
}

#[test]
fn versions_are_compared_by_their_numbers() {
    assert_eq!(numbers("1.89"), numbers("1.89.0"));
    assert!(numbers("1.100") > numbers("1.89.1"));
}
