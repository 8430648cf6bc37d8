//! The corpora: inputs that reach different code, and each input that once broke a property.

use super::{TARGETS, corpus, requests};
use abridged::protocol;
use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The most bytes of all corpora together.
const MOST_BYTES: u64 = 2_000_000;

#[test]
fn every_input_of_a_corpus_keeps_to_the_properties_of_its_parser() {
    let mut broken = Vec::new();
    for target in TARGETS {
        let inputs = corpus::read(target.name).unwrap_or_else(|error| panic!("{}: {error}", target.name));
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        for (at, input) in inputs.iter().enumerate() {
            if catch_unwind(AssertUnwindSafe(|| (target.check)(input))).is_err() {
                broken.push(format!("{}, line {}: {:.500}", target.name, at + 1, String::from_utf8_lossy(input)));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_corpus_is_small_and_belongs_to_a_parser() {
    let folder = corpus::file("x").parent().expect("a folder").to_owned();
    let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
    let bytes: u64 = files
        .map(|file| {
            let name = file.path().with_extension("");
            let name = name.file_name().and_then(|name| name.to_str()).expect("a name");
            assert!(super::target(name).is_some(), "{name} is no target");
            file.metadata().expect("a file").len()
        })
        .sum();
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
}

#[test]
fn a_corpus_is_written_as_it_is_read() {
    for target in TARGETS {
        let inputs = corpus::read(target.name).expect("a corpus");
        let text: String = inputs.iter().map(|input| corpus::line(input) + "\n").collect();
        assert_eq!(fs::read_to_string(corpus::file(target.name)).expect("a corpus"), text);
    }
}

#[test]
fn the_target_of_requests_has_every_method() {
    let mut methods: Vec<&str> = protocol::methods().iter().map(|method| method.name).collect();
    methods.sort_unstable();
    assert_eq!(requests::methods(), methods);
}
