//! Parsers of bytes from outside: for each a function that takes any bytes and asserts what holds for all of them. The tests
//! of `replay` give them the corpus, and `tests/fuzz` looks for bytes that reach new code. This folder has a `mod.rs` because
//! the fuzzer includes it by its path.

mod agents;
mod answers;
mod chunks;
pub mod corpus;
mod errors;
mod frames;
mod given;
mod lines;
mod locks;
pub mod owed;
#[cfg(test)]
mod replay;
mod requests;
mod sessions;
mod settings;
mod sse;
mod windows;

/// A parser and its properties.
pub struct Target {
    /// Its name, which is that of its corpus.
    pub name: &'static str,
    /// Asserts the properties for some bytes.
    pub check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "agents", check: agents::check },
    Target { name: "answers", check: answers::check },
    Target { name: "errors", check: errors::check },
    Target { name: "frames", check: frames::check },
    Target { name: "given", check: given::check },
    Target { name: "lines", check: lines::check },
    Target { name: "locks", check: locks::check },
    Target { name: "requests", check: requests::check },
    Target { name: "sessions", check: sessions::check },
    Target { name: "settings", check: settings::check },
    Target { name: "sse", check: sse::check },
    Target { name: "windows", check: windows::check },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
