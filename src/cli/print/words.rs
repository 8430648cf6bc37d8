//! Errors of the protocol in the words of a shell: commands and options in the place of methods and params.

/// Words of errors, and those in their place. A longer text stands before its part.
const WORDS: &[(&str, &str)] = &[
    (
        "; make a session with session/new, or list those there are with session/list",
        "; abridged sessions lists those there are",
    ),
    ("it is empty; make a session with session/new", "it is empty; abridged sessions lists those there are"),
    (
        "; close it there, or load it with readOnly: true",
        "; close it there. abridged show, tail, tree, search and compact --dry-run only read it",
    ),
    ("; to look at the session, load it with readOnly: true", "; abridged tail and tree only read the session"),
    (
        "cut the file there, or load it with readOnly: true, which reads what stands before it",
        "cut the file there; abridged tail and tree read the part before it",
    ),
    ("close the session and load it again", "run the command again"),
    (
        "cannot be made; give the path of a file that is not there yet, in a folder that is (entity already exists)",
        "there is something of this name already; name a new file",
    ),
    (
        "cannot be made; give the path of a file that is not there yet, in a folder that is",
        "cannot be made; name a new file in a folder that exists",
    ),
    (
        "could not be written; it is incomplete",
        "could not be written, and nothing is left of it; make room, then try again",
    ),
    (
        "nothing came since the last compaction",
        "there is nothing to compact: no message came since the last compaction",
    ),
    (
        "there is no message yet; append the conversation first",
        "there is nothing to compact: the session has no message yet",
    ),
    ("a smaller keepRecentTokens would compact it", "a smaller number with --keep compacts it"),
    ("instructions make it all the same", "--instructions make it all the same"),
    (
        "there is no compaction on this branch that could be undone",
        "there is nothing to undo: no compaction or reset is in force on this branch; abridged tree shows the branches",
    ),
    ("; send at least one character that is not a blank", "; give at least one character that is not a blank"),
    ("`fallback`: true", "--fallback"),
    ("Name another `model`", "Name another --model"),
    ("without `method` the summary", "without --model the summary"),
    (
        "give it an `api` and a `baseUrl` in models",
        "name it with --base-url and --api, or in the models of the settings",
    ),
    ("or stop it with session/cancel", "or stop it with Ctrl-C there"),
];

/// Beginnings of advice that has no command. The text ends before it.
const ONLY_ON_THE_WIRE: [&str; 2] = ["; session/append with ", "; read the new entries with session/entries"];

/// Params at the beginning of an error. A shell names them by their place.
const PARAMS: [&str; 3] = ["path: ", "query: ", "limit: "];

/// An error in the words of a shell. One in these words stays as it is: an error may go through several writers.
#[must_use]
pub fn in_shell(error: &str) -> String {
    let error = PARAMS.iter().find_map(|param| error.strip_prefix(param)).unwrap_or(error);
    // The words of a shell may contain those of the wire.
    let replaced = |text: String, (wire, shell): &(&str, &str)| {
        text.split(shell).map(|part| part.replace(wire, shell)).collect::<Vec<_>>().join(shell)
    };
    let text = WORDS.iter().fold(error.to_owned(), replaced);
    let end = ONLY_ON_THE_WIRE.iter().filter_map(|advice| text.find(advice)).min();
    let text = &text[..end.unwrap_or(text.len())];
    if let Some((of_another, _)) = text.split_once(", which is only read here") {
        return format!(
            "{}, which is only read here; abridged import makes a session of it",
            of_another.trim_start_matches("readOnly: ")
        );
    }
    match text.contains(" is not a session file: ") && !text.contains(';') {
        true => format!("{text}; abridged sessions lists those there are"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::EntryId,
        log::error::StoreError,
        protocol::errors::{Failure, Nothing},
    };
    use std::path::PathBuf;

    #[test]
    fn words_of_a_shell_stay_as_they_are() {
        let others = ["path: x", "e1 is of another program, which is only read here; session/append with x"];
        let others = others.into_iter().chain(ONLY_ON_THE_WIRE).chain(PARAMS);
        for error in WORDS.iter().map(|(wire, _)| *wire).chain(others) {
            let once = in_shell(&format!("compact: {error}"));
            assert_eq!(in_shell(&once), once, "{error}");
        }
        let hint = in_shell("Nothing to compact; instructions make it all the same");
        assert_eq!(in_shell(&hint), "Nothing to compact; --instructions make it all the same");
    }

    #[test]
    fn an_error_of_a_file_names_no_method_and_no_param() {
        let path = || PathBuf::from("/s.jsonl");
        let what = || "it is empty; make a session with session/new".to_owned();
        let of_files = [
            StoreError::Locked { pid: Some(1) },
            StoreError::Missing(path()),
            StoreError::Foreign { path: path(), what: what() },
            StoreError::Planted { path: path(), what: "a link".to_owned() },
            StoreError::Changed { path: path(), what: "it is shorter".to_owned() },
            StoreError::LineTooLong { path: path(), offset: 7 },
        ];
        let nothing = [Nothing::AlreadyCompacted, Nothing::Empty, Nothing::TooShort, Nothing::WouldNotShrink];
        let changed = Failure::ContentModified { leaf: Some(EntryId::from("e1")) };
        let texts = of_files
            .iter()
            .map(ToString::to_string)
            .chain(nothing.iter().map(|it| Failure::NothingToCompact(*it).to_string()));
        for text in texts.chain([changed.to_string()]) {
            let shown = in_shell(&text);
            for wire in ["session/", "readOnly", "keepRecentTokens", "append", "`"] {
                assert!(!shown.contains(wire), "{wire} in {shown}");
            }
            assert!(shown.len() > 20, "{text}: {shown}");
        }
    }
}
