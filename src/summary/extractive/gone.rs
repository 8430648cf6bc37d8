//! Lines of files that a later edit took out, however the files were shown.

use crate::summary::heard::{Run, Said, Speaker};
use std::collections::{HashMap, HashSet};

/// The file that a call or a result is about: that of its label, or the one file that a script shows.
pub(super) fn path_of(piece: &Said) -> Option<&str> {
    let is_call = matches!(piece.speaker, Speaker::Call | Speaker::Result { failed: false });
    let of_label = piece.label.split_once(' ').map(|(_, path)| path).filter(|path| !path.contains(' '));
    of_label.filter(|_| is_call).or_else(|| shown(&piece.runs).filter(|_| is_call))
}

/// The file that a script shows, if it does nothing else.
fn shown(runs: &[Run]) -> Option<&str> {
    const SHOWS: [&str; 6] = ["sed", "cat", "head", "tail", "nl", "bat"];
    let shows = |run: &Run| matches!(&run.words[..], [program, ..] if SHOWS.contains(&program.as_str()));
    if runs.iter().any(|run| !shows(run) && run.words.first().is_none_or(|program| program != "cd")) {
        return None;
    }
    // The other words are numbers, or the script of sed.
    let of_sed = |run: &Run| usize::from(run.words[0] == "sed" && run.words.len() > 2);
    let words = runs.iter().filter(|run| shows(run)).flat_map(|run| &run.words[1 + of_sed(run)..]);
    let mut files = words.filter(|word| word.contains(['.', '/']));
    files.next().filter(|_| files.next().is_none()).map(String::as_str)
}

/// A line without the number that a program puts before it, and without the mark of a line that is new.
pub(super) fn without_number(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|char: char| char.is_ascii_digit());
    let line = if rest.len() < line.trim_start().len() { rest.strip_prefix('\t').unwrap_or(line) } else { line };
    line.trim_start_matches('+').trim()
}

/// The lines of files that edits took out.
pub(super) struct Gone<'a> {
    /// Each with the last of these edits.
    lines: HashMap<(&'a str, &'a str), usize>,
    /// The paths of these files, and the same by their names.
    paths: HashSet<&'a str>,
    by_name: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> Gone<'a> {
    pub(super) fn of(said: &'a [Said]) -> Self {
        let mut gone = Self { lines: HashMap::new(), paths: HashSet::new(), by_name: HashMap::new() };
        for (piece, it) in said.iter().enumerate().filter(|(_, it)| !it.gone.is_empty()) {
            if let Some(path) = path_of(it) {
                gone.lines.extend(it.gone.lines().map(|line| ((path, line), piece)));
                if gone.paths.insert(path) {
                    gone.by_name.entry(file_name(path)).or_default().push(path);
                }
            }
        }
        gone
    }

    /// The name by which edits call the file of a path: one may begin in another folder.
    pub(super) fn edited(&self, path: &str) -> Option<&'a str> {
        /// Files with one name. With more of them the end of a path names none for sure.
        const MOST: usize = 16;
        if let Some(exact) = self.paths.get(path) {
            return Some(exact);
        }
        let of_name = self.by_name.get(file_name(path)).filter(|paths| paths.len() <= MOST)?;
        let is_same = |edited: &&&str| {
            let (short, long) = if edited.len() < path.len() { (**edited, path) } else { (path, **edited) };
            long.strip_suffix(short.trim_start_matches("./")).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let mut same = of_name.iter().filter(is_same);
        same.next().filter(|_| same.next().is_none()).copied()
    }

    /// Whether an edit after a piece took a line of a file out.
    pub(super) fn is_in(&self, path: &str, line: &str, piece: usize) -> bool {
        self.lines.get(&(path, line)).is_some_and(|by| *by > piece)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
