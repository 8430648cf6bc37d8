//! Coverage-guided fuzzing of the parsers. `run` starts it; the targets and their properties are those of the tests.

#![no_main]

#[path = "../../suite/parsers/mod.rs"]
mod parsers;

use libfuzzer_sys::fuzz_target;
use parsers::{TARGETS, Target, corpus};
use std::{env, fs, path::PathBuf, process::exit, sync::OnceLock};

/// The target of this process.
static TARGET: OnceLock<&Target> = OnceLock::new();

/// Reads the environment: `ABRIDGED_TARGET` names the target. With `ABRIDGED_UNPACK` its corpus becomes files in that folder,
/// with `ABRIDGED_PACK` the files of that folder become its corpus.
fn begin() {
    let name = env::var("ABRIDGED_TARGET").unwrap_or_default();
    let Some(target) = parsers::target(&name) else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("{name:?} is no target; there are {}", names.join(", "));
        exit(2);
    };
    if let Some(folder) = env::var_os("ABRIDGED_UNPACK").map(PathBuf::from) {
        for (at, input) in corpus::read(&name).expect("a corpus").iter().enumerate() {
            fs::write(folder.join(at.to_string()), input).expect("a file");
        }
        exit(0);
    }
    if let Some(folder) = env::var_os("ABRIDGED_PACK") {
        let files = fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
        corpus::write(&name, files.map(|file| fs::read(file).expect("a file")).collect()).expect("a file");
        exit(0);
    }
    let _ = TARGET.set(target);
}

fuzz_target!(init: begin(), |data: &[u8]| {
    if let Some(target) = TARGET.get() {
        (target.check)(data);
    }
});
