//! Session files only grow: bytes that were there stay, and entries that a client was told of are there.

use super::{super::record::Asked, Event, Line, Rule, result};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::{Path, PathBuf},
};

#[derive(Default)]
pub struct Files {
    /// Session files as they were last seen.
    held: BTreeMap<PathBuf, Vec<u8>>,
    /// Entries that the client was told of, each with its session.
    told: BTreeSet<(String, String)>,
    /// Sessions without a file.
    in_memory: HashSet<String>,
    /// Whether a session may have been deleted since.
    deleted: bool,
}

impl Files {
    fn tell(&mut self, session: &str, entry: &Value) {
        if let Some(entry) = entry.as_str().filter(|_| !self.in_memory.contains(session)) {
            self.told.insert((session.to_owned(), entry.to_owned()));
        }
    }

    fn look(&mut self, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
        for (path, old) in &self.held {
            match files.get(path) {
                None if self.deleted => {}
                None => return Err(format!("{} is gone", path.display())),
                Some(new) if grew(path, old, new, files) => {}
                Some(new) => {
                    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
                    let part = |of: &[u8]| String::from_utf8_lossy(&of[same..of.len().min(same + 80)]).into_owned();
                    return Err(format!(
                        "{} differs from byte {same} of {} on: {:?} became {:?}",
                        path.display(),
                        old.len(),
                        part(old),
                        part(new)
                    ));
                }
            }
        }
        self.held = files.iter().filter(|(path, _)| is_session(path)).map(|(a, b)| (a.clone(), b.clone())).collect();
        let ids: HashSet<String> = self.held.values().flat_map(|bytes| ids(bytes)).collect();
        match self.told.iter().find(|(_, entry)| !ids.contains(entry)) {
            Some((session, entry)) if !self.deleted => {
                Err(format!("the entry {entry} of {session} was told of and is in no file"))
            }
            _ => {
                self.told.clear();
                self.deleted = false;
                Ok(())
            }
        }
    }
}

/// Whether the second bytes are the first ones and more. A torn last line, or the torn piece after a whole entry on the
/// last line, is moved out of the way. A file of an older version is kept beside its new form.
fn grew(path: &Path, old: &[u8], new: &[u8], files: &BTreeMap<PathBuf, Vec<u8>>) -> bool {
    let whole = old.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    // The line of the entry gets its newline where the piece began.
    let cut = if same > whole && new.get(same) == Some(&b'\n') { same } else { whole };
    let name = path.as_os_str().as_encoded_bytes();
    let mut beside =
        files.iter().filter(|(other, _)| *other != path && other.as_os_str().as_encoded_bytes().starts_with(name));
    new.starts_with(old)
        || new.starts_with(&old[..cut]) && beside.clone().any(|(_, bytes)| bytes.ends_with(&old[cut..]))
        || beside.any(|(_, bytes)| bytes == old)
}

/// Whether this is a session file and none that lies beside one or was exported.
fn is_session(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "jsonl") && path.components().any(|part| part.as_os_str() == "sessions")
}

/// The ids in the lines of a file, however they are broken.
fn ids(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split("\"id\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    parts.map(str::to_owned).collect()
}

impl Rule for Files {
    fn name(&self) -> &'static str {
        "session files only grow"
    }

    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String> {
        if let Some(answer) = result(line, of, &["session/new", "session/load", "session/fork"])
            && answer["session"]["path"].is_null()
        {
            self.in_memory.insert(answer["session"]["sessionId"].as_str().unwrap_or_default().to_owned());
        }
        if let Some(answer) = result(line, of, &["session/append"]) {
            let session = of.map(Asked::session).unwrap_or_default();
            answer["entryIds"].as_array().into_iter().flatten().for_each(|id| self.tell(session, id));
        }
        if let Some(event) = Event::of(line).filter(|event| event.kind == "entry_appended") {
            self.tell(event.session, &event.params["entryId"]);
        }
        match line {
            Line::Sent(frame) if frame["method"] == "session/delete" => self.deleted = true,
            Line::Rewritten(path, bytes) => {
                self.held.insert(path.clone(), bytes.clone());
                self.told.clear();
            }
            Line::Files(files) => return self.look(files),
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn a_torn_piece_may_leave_the_file_only_if_it_is_beside_it() {
    let path = Path::new("s.jsonl");
    let grown = |old: &str, new: &str, torn: &str| {
        let files = [(path, new), (Path::new("s.jsonl.torn"), torn)];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into_iter().collect();
        grew(path, old.as_bytes(), new.as_bytes(), &files)
    };
    assert!(grown("{1}\n{2", "{1}\n{3}\n", "{2"));
    assert!(grown("{1}\n{2}{3", "{1}\n{2}\n{4}\n", "{3"));
    assert!(!grown("{1}\n{2}{3", "{1}\n{2}\n{4}\n", "{5"));
    assert!(!grown("{1}\n{2}{3", "{1}\n{2}{4}\n", "{3"));
    assert!(!grown("{1}\n{2}\n{3", "{1}\n\n{4}\n", "{2}\n"));
}
