//! Reads the sessions of a data folder: the list, the locks and the ends of the files. It writes nothing, and takes and
//! tests no lock.

#![expect(clippy::disallowed_methods, reason = "looks at the folder of the sessions")]

use super::row::{Cost, Fullness, Measured, Picture, Row, sort};
use crate::{
    conversation::{entry::VERSION, spending::Spending},
    daemon::{Places, listing::Catalog},
    log::{
        header,
        history::History,
        lock,
        sealed::Blocking,
        source::{Source, Tail},
    },
    models::{learned::Learned, windows::Windows},
    protocol::types::{ListParams, UsageSource},
    session::state::{SessionData, State},
    settings::{Layers, files::SettingsFiles, sources::Reread, trust::Trust},
};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

/// The most bytes at the end of a file that are read to measure its context. A context of a million tokens has about
/// four million.
const MOST: u64 = 8 << 20;

/// Reads the sessions of a data folder again and again. A file that did not change is measured once.
pub(in crate::cli) struct Looks {
    sessions: PathBuf,
    data: PathBuf,
    catalog: Catalog,
    files: SettingsFiles,
    learned: Learned,
    /// By the path of the file.
    measured: HashMap<String, Known>,
}

/// A measurement, valid for this time of change and size of the file.
struct Known {
    updated_at: String,
    size: u64,
    measured: Measured,
}

impl Looks {
    /// Reads the settings and nothing else.
    pub(in crate::cli) fn at(places: &Places, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let sessions = places.sessions();
        Self {
            catalog: Catalog::reading(sessions.clone(), places.data.join("sessions-list.json")),
            sessions,
            data: places.data.clone(),
            files: SettingsFiles::read(places.settings(), environment),
            learned: Windows::read(&places.data).learned(),
            measured: HashMap::new(),
        }
    }

    /// The folder of the sessions.
    pub(in crate::cli) fn folder(&self) -> &Path {
        &self.sessions
    }

    /// Lists the sessions with their locks. Nothing is measured.
    pub(in crate::cli) fn look(&mut self) -> Picture {
        let problem = self.problem();
        let listed = match problem {
            None => self.catalog.list(&ListParams { limit: Some(usize::MAX), ..ListParams::default() }).sessions,
            Some(_) => Vec::new(),
        };
        let mut rows: Vec<Row> = listed
            .into_iter()
            .map(|listed| {
                let lock = lock::look(Path::new(&listed.path)).ok().flatten();
                Row::of(listed, lock, lives)
            })
            .collect();
        sort(&mut rows);
        let there: HashSet<&String> = rows.iter().map(|row| &row.path).collect();
        self.measured.retain(|path, _| there.contains(path));
        let mut left_out = self.closed_folders();
        if problem.is_none() {
            left_out.extend(self.catalog.left_out());
        }
        Picture { folder: self.sessions.clone(), rows, left_out, problem }
    }

    /// The reason why the folder cannot be listed. A folder that does not exist holds no sessions.
    pub(in crate::cli) fn problem(&self) -> Option<String> {
        let error = fs::read_dir(&self.sessions).err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "; run this as the user of the daemon, or name another folder with --data"
            }
            _ => "; name the data folder of a daemon with --data",
        };
        Some(format!("{}: cannot be listed: {error}{advice}", self.sessions.display()))
    }

    /// The folders of sessions that this user may not list.
    fn closed_folders(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(&self.sessions).into_iter().flatten().flatten().map(|folder| folder.path());
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        folders.filter(|folder| fs::read_dir(folder).is_err_and(denied)).collect()
    }

    /// Measures these sessions. Files that did not change since they were measured are not read.
    pub(in crate::cli) fn measure(&mut self, rows: &mut [Row]) {
        let mut layers: HashMap<String, Layers> = HashMap::new();
        for row in rows {
            let current = |known: &&Known| known.updated_at == row.updated_at && known.size == row.size_bytes;
            if let Some(known) = self.measured.get(&row.path).filter(current) {
                row.take(&known.measured);
                continue;
            }
            let layers = layers.entry(row.cwd.clone()).or_insert_with(|| self.files.read_project(Path::new(&row.cwd)));
            let measured = measure(Path::new(&row.path), layers, &self.learned);
            row.take(&measured);
            let known = Known { updated_at: row.updated_at.clone(), size: row.size_bytes, measured };
            self.measured.insert(row.path.clone(), known);
        }
        self.files.take_problems();
    }

    /// The state of a session, by the end of its file. `cwd`: its working folder.
    ///
    /// # Errors
    /// When the file cannot be read, or its settings are invalid.
    pub(in crate::cli) fn state(&mut self, file: &Path, cwd: &str) -> Result<State, String> {
        let layers = self.files.read_project(Path::new(cwd));
        end(file, &layers, &self.learned).map(|end| end.state)
    }

    /// Reads the settings and the learned windows again. Everything is measured anew if they changed.
    pub(in crate::cli) fn reread(&mut self) {
        let learned = Windows::read(&self.data).learned();
        if self.files.reread() == Reread::Changed || learned != self.learned {
            self.learned = learned;
            self.measured.clear();
        }
        self.files.take_problems();
    }
}

/// Whether a process is there. One of another user counts.
pub(in crate::cli) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

fn measure(file: &Path, layers: &Layers, learned: &Learned) -> Measured {
    match context(file, layers, learned) {
        Ok((usage, maintenance)) => Measured { usage: Ok(usage), maintenance },
        Err(why) => Measured { usage: Err(why), maintenance: Cost::default() },
    }
}

/// The fullness of a context by the rule of the daemon, from the part of the file after the last compaction. The
/// tokenizer is not loaded: what no provider reported is estimated by characters.
fn context(file: &Path, layers: &Layers, learned: &Learned) -> Result<(Fullness, Cost), String> {
    let End { state, spent, is_whole } = end(file, layers, learned)?;
    let path = state.path();
    let counted = path
        .compaction()
        .is_some_and(|place| path[place].compaction().is_some_and(|compaction| compaction.measured().is_some()));
    let usage = state.usage();
    let at_least = !is_whole && !counted && usage.source == UsageSource::Estimate;
    Ok((Fullness { usage, at_least }, Cost::from(&spent)))
}

/// A session by the end of its file.
struct End {
    state: State,
    /// The costs in that part.
    spent: Spending,
    /// Whether the whole context was read.
    is_whole: bool,
}

fn end(file: &Path, layers: &Layers, learned: &Learned) -> Result<End, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let found = header::peek(file).map_err(|error| text(&error))?;
    let source = Source::open(file.to_owned(), &found).map_err(|error| text(&error))?;
    let length = source.length().map_err(|error| text(&error))?;
    let (history, spent, is_whole) = if found.header.version < VERSION {
        if length > MOST {
            return Err(format!("its version is {}; it is measured after a daemon opened it", found.header.version));
        }
        let history = source.load(&found, 0, &Blocking::is_allowed_here()).map_err(|error| text(&error))?.history;
        let spent = history.spending().clone();
        (history, spent, true)
    } else {
        let (end, tail) = source.end(length).map_err(|error| text(&error))?;
        if tail == Tail::TooLong {
            return Err(text(&source.too_long(end)));
        }
        let near = source.path_within(end, MOST).map_err(|error| text(&error))?;
        (History::of_file(source.into(), near.path, None), near.spent, near.whole)
    };
    let given = SessionData::default();
    let state =
        State::new(found.header, Some(file.to_owned()), found.title, history, given, None, layers, Trust::Trusted);
    let mut state = state.map_err(|problem| format!("its settings are invalid: {problem}"))?;
    state.learned = learned.clone().in_session(&state.id);
    Ok(End { state, spent, is_whole })
}
