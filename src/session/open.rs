//! Opening a session: a new one, or an existing file.

#![expect(clippy::disallowed_methods, reason = "creates session files")]

use super::{
    data::model_fields,
    forking::Forking,
    founding::{Founding, Keeping},
    state::{Capabilities, SessionData, State},
};
use crate::{
    agents::{reading, transcript::Origin},
    conversation::entry::{self, Entry, Header, HeaderKind, Stamps, VERSION},
    ids::{EntryId, SessionId},
    log::{
        Log, Unfinished,
        blobs::{self, Blobs},
        bytes::Bytes,
        error::StoreError,
        files::{self, Sink},
        header,
        history::History,
        memory::Ephemeral,
        sealed::Blocking,
        source::Source,
        store::home::Home,
    },
    models::{ModelRef, learned::Learned},
    protocol::{
        errors::Failure,
        types::{ImportParams, LONGEST_PATH, LONGEST_TITLE, LoadParams, NewParams, ThinkingLevel},
    },
    settings::{Layers, trust::Trust},
    text::values,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// An opened session.
pub struct Opened {
    /// The session.
    pub state: State,
    /// Its log.
    pub log: Box<dyn Log>,
    /// Operations that the last owner had not ended when it died, outer ones first.
    pub left_behind: Vec<Unfinished>,
}

/// The way in which a session was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// With a new file.
    New,
    /// From a file.
    Loaded,
    /// From a file that is only read.
    ReadOnly,
    /// Without a file.
    Ephemeral,
}

impl Opened {
    /// The session with the windows learned from providers and the capabilities of the client. A short session uses the
    /// tokenizer from the beginning, where its tables are loaded.
    #[must_use]
    pub fn knowing(mut self, learned: Learned, tokenizer: bool, capabilities: Capabilities) -> Self {
        self.state.learned = learned.in_session(&self.state.id);
        self.state.set_capabilities(capabilities);
        self.state.tokenizer_is(tokenizer);
        self.state.settle_estimator(&HashSet::new());
        self
    }
}

/// Creates a session of these params in the home of this daemon. `stamps` gives its time and the ids of its first entries.
///
/// # Errors
/// When the settings are invalid, or the file cannot be written.
pub fn new(
    id: SessionId,
    params: NewParams,
    home: &Home,
    layers: &Layers,
    mut stamps: Stamps,
) -> Result<Opened, Failure> {
    // A header that is longer than any reader looks makes a file that nobody can load.
    Failure::if_longer("title", params.title.as_deref(), LONGEST_TITLE)?;
    if !Path::new(&params.cwd).is_absolute() {
        return Err(Failure::relative_path("cwd", &params.cwd));
    }
    Failure::if_longer("cwd", Some(&params.cwd), LONGEST_PATH)?;
    Failure::if_longer("parentSession", params.parent_session.as_deref(), LONGEST_PATH)?;
    let header = Header {
        kind: HeaderKind::Session,
        version: VERSION,
        id,
        timestamp: entry::timestamp(stamps.now()),
        cwd: params.cwd,
        parent_session: params.parent_session,
        // oh-my-pi reads a title from no other place.
        title: params.title.clone(),
        rest: params.title.iter().map(|_| ("titleSource".to_owned(), Value::from("user"))).collect(),
    };
    let mut data = SessionData {
        system_prompt: params.system_prompt,
        tools: params.tools.map(|tools| tools.0),
        settings: params.settings.map(|object| Value::Object(object.0)),
        limits: SessionData::stated(params.context_window, params.max_output_tokens),
    };
    // Checked before the write: invalid settings leave no file behind.
    let sourced = layers.with_session(data.settings.as_ref()).map_err(Failure::invalid_settings)?;
    data.hold_for(|| sourced.settings.model_or_default(params.model.clone()));
    let (title, thinking) = (params.title.as_deref(), params.thinking_level.map(ThinkingLevel::name));
    let lines = first_entries(&data, title, params.model.as_ref(), thinking, &mut stamps);
    let entries = lines.iter().map(|line| Entry::parse(line.as_str().into()).map(Arc::new));
    let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::Internal(error.to_string()))?;
    if entries.iter().any(|entry| entry.is_too_large()) {
        let what = format!("tools and settings have more than {} values and keys together; send fewer", values::MOST);
        return Err(Failure::params("tools", what));
    }
    let (log, history, file) = if params.ephemeral == Some(true) {
        (Box::new(Ephemeral) as Box<dyn Log>, History::in_memory(entries), None)
    } else {
        let file = file_of(&home.sessions()?, &header);
        let (log, source) = home.create(&file, &header, &lines)?;
        let floor = source.floor();
        (log, History::of_new_file(source.into(), floor, entries), Some(file))
    };
    let images = file.as_deref().and_then(Blobs::beside);
    let state = State::new(header, file, None, history, data, None, layers, Trust::Trusted);
    let mut state = state.map_err(Failure::invalid_settings)?;
    state.set_images(images);
    Ok(Opened { state, log, left_behind: Vec::new() })
}

/// Makes a session that begins with the summary of another one, in the home of this daemon.
///
/// # Errors
/// When the settings are invalid, or the file cannot be written. No file is left then.
pub fn found(founding: Founding, home: &Home, layers: &Layers, blocking: &Blocking) -> Result<Opened, Failure> {
    let lines = founding.lines();
    let Founding { header, entries, saved, keeping, .. } = founding;
    let (log, history, file) = match keeping {
        Keeping::Memory => (Box::new(Ephemeral) as Box<dyn Log>, History::in_memory(entries), None),
        Keeping::File => {
            let file = file_of(&home.sessions()?, &header);
            let write = |sink: Sink<'_>| {
                saved.iter().try_for_each(|saved| files::save_beside(&saved.path(&file), &saved.text))?;
                lines.iter().try_for_each(|line| sink(format!("{line}\n").as_bytes()))
            };
            let unsave = |_: &StoreError| saved.iter().for_each(|saved| files::remove_beside(&saved.path(&file)));
            let files::Opened { log, history, .. } =
                home.found(&file, &header, write, || Ok(None), blocking).inspect_err(unsave)?;
            (log, history, Some(file))
        }
    };
    let images = file.as_deref().and_then(Blobs::beside);
    let state = State::new(header, file, None, history, SessionData::default(), None, layers, Trust::Trusted);
    let mut state = state.map_err(Failure::invalid_settings)?;
    state.set_images(images);
    Ok(Opened { state, log, left_behind: Vec::new() })
}

/// Makes a session of the lines of another one, in the home of this daemon. Images beside the other session come along. Returns the
/// text for the editor, too.
///
/// # Errors
/// When no fork may end at its entry, the settings are invalid, or a file cannot be read or written. `Cancelled` where the
/// caller does not want it any more. No session file is left then.
pub fn fork(
    mut forking: Forking,
    home: &Home,
    layers: &Layers,
    blocking: &Blocking,
) -> Result<(Opened, Option<String>), Failure> {
    let forked = forking.run(blocking)?;
    let Forking { header, keeping, given, model, images, trust, .. } = forking;
    let (log, history, file) = match keeping {
        Keeping::Memory => (Box::new(Ephemeral) as Box<dyn Log>, History::in_memory(forked.entries(blocking)?), None),
        Keeping::File => {
            let file = file_of(&home.sessions()?, &header);
            let write = |sink: Sink<'_>| {
                let Some(images) = &images else { return forked.write(sink, blocking) };
                let mut hashes = BTreeSet::new();
                let mut noting = |lines: &[u8]| {
                    blobs::add_references(lines, &mut hashes);
                    sink(lines)
                };
                forked.write(&mut noting, blocking)?;
                let failed = StoreError::io(&file, "the images of the session cannot be copied for its fork");
                images.copy_to(&file, &hashes).map_err(failed)
            };
            let files::Opened { log, history, .. } =
                home.found(&file, &header, write, || forked.known(blocking), blocking)?;
            (log, history, Some(file))
        }
    };
    let images = file.as_deref().map_or(images, Blobs::beside);
    let title = header.title.clone();
    let state = State::new(header, file, title, history, given, model, layers, trust);
    let mut state = state.map_err(Failure::invalid_settings)?;
    state.set_images(images);
    Ok((Opened { state, log, left_behind: Vec::new() }, forked.editor_text))
}

/// Data of a new session as entries that every reader of the format knows.
fn first_entries(
    data: &SessionData,
    title: Option<&str>,
    model: Option<&ModelRef>,
    thinking: Option<&str>,
    stamps: &mut Stamps,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut parent: Option<EntryId> = None;
    let mut add = |kind: &str, fields: &[(&str, Value)]| {
        let stamp = stamps.stamp();
        let raw: Vec<_> = fields.iter().map(|(name, value)| (*name, entry::raw(value))).collect();
        let fields: Vec<_> = raw.iter().map(|(name, value)| (*name, &**value)).collect();
        lines.push(entry::line(kind, &stamp, parent.as_ref(), &fields));
        parent = Some(stamp.id);
    };
    if let Some(model) = model {
        let fields = model_fields(model);
        add("model_change", &fields);
    }
    if let Some(level) = thinking {
        add("thinking_level_change", &[("thinkingLevel", level.into())]);
    }
    if let Some(title) = title {
        add("session_info", &[("name", title.into())]);
    }
    if !data.is_empty() {
        let data = serde_json::to_value(data).unwrap_or_default();
        add("custom", &[("customType", "abridged.session".into()), ("data", data)]);
    }
    lines
}

/// `sessions/--<cwd>--/<time>_<id>.jsonl`, pi's names.
#[must_use]
pub fn file_of(sessions: &Path, header: &Header) -> PathBuf {
    /// File systems take 255 bytes.
    const LONGEST: usize = 200;
    let cwd = header.cwd.strip_prefix(['/', '\\']).unwrap_or(&header.cwd);
    let mut folder: String = cwd.replace(['/', '\\', ':', '\0'], "-");
    if folder.len() > LONGEST {
        folder = crate::text::tail(&folder, LONGEST / 4).to_owned();
    }
    // The header of a file may say anything.
    let safe = |text: &str| text.replace(['/', '\\', ':', '.', '\0'], "-");
    let time = safe(crate::text::head(&header.timestamp, LONGEST / 4));
    let id = header.id.as_str();
    let id = match id.contains(['/', '\\', '\0']) || id.len() > LONGEST / 2 {
        true => format!("{:x}", Sha256::digest(id)),
        false => id.to_owned(),
    };
    sessions.join(format!("--{folder}--")).join(format!("{time}_{id}.jsonl"))
}

/// Opens the session file at `path`. Another program may have written a file that is not under its sessions: only its
/// harmless settings apply.
///
/// # Errors
/// When the file is no session, is owned by another process, or the given settings are invalid. `Cancelled` where the caller
/// does not want it any more.
pub fn load(
    path: &Path,
    params: LoadParams,
    home: &Home,
    layers: &Layers,
    blocking: &Blocking,
) -> Result<Opened, Failure> {
    let read_only = params.read_only == Some(true);
    // A session of a store may have no file yet.
    let stored = home.own(path)?;
    let is_stored = stored.is_some();
    let path = stored.map_or_else(|| real(path), Ok)?;
    let opened = if read_only { home.open_read_only(&path, blocking) } else { home.open(&path, blocking) };
    let opened = match opened {
        Err(error) if !is_stored => other_agent(&path, read_only, error, blocking)?,
        opened => opened?,
    };
    let files::Opened { header, title, history, repairs, left_behind, log } = opened;
    let given = SessionData::given(&params);
    let is_below = |sessions: &PathBuf| fs::canonicalize(sessions).is_ok_and(|sessions| path.starts_with(sessions));
    // Rows may come from another machine, or from a file of a stranger that was pushed.
    let ours = home.folder().is_some_and(is_below);
    let trust = if ours && !header.is_foreign() { Trust::Trusted } else { Trust::Untrusted };
    let images = Blobs::beside(&path);
    let state = State::new(header, Some(path), title, history, given, params.model, layers, trust);
    let mut state = state.map_err(Failure::invalid_settings)?;
    state.set_images(images);
    state.repairs = repairs;
    state.repairs.extend(state.invalid_settings());
    Ok(Opened { state, log, left_behind })
}

/// A path without links, with the session where it is one in a database.
fn real(path: &Path) -> Result<PathBuf, Failure> {
    let (file, in_database) = reading::file_and_session(path);
    let file = fs::canonicalize(file).map_err(|_| Failure::from(StoreError::Missing(path.to_owned())))?;
    Ok(in_database.map_or_else(|| file.clone(), |session| reading::in_database(&file, &session)))
}

/// The session of another agent at a path where no session file is. It is read as a whole, and nothing is written.
///
/// # Errors
/// `error` where the file is of no agent that is known here; otherwise when it cannot be read, or is to be written.
fn other_agent(path: &Path, read_only: bool, error: StoreError, blocking: &Blocking) -> Result<files::Opened, Failure> {
    let peeked = if is_no_session(&error) { reading::peek(path)? } else { None };
    let Some(peeked) = peeked else { return Err(error.into()) };
    if !read_only {
        let what = format!(
            "{} is a session of {}, which is only read here: load it with readOnly: true, or make a session of it with \
             session/import",
            path.display(),
            peeked.agent.title()
        );
        return Err(Failure::params("readOnly", what));
    }
    let Some(converted) = reading::read(path)? else { return Err(error.into()) };
    let header = converted.header(converted.own_id(), None);
    let line = header::new_line(path, &header)?;
    let found = header::Found { header, title: converted.about.title.clone(), end: line.len() as u64 + 1, lines: 1 };
    let bytes = format!("{line}\n{}", converted.lines()).into_bytes();
    let source = Source::of(path.to_owned(), Bytes::Memory(bytes.into()), &found);
    let mut opened = files::follow(source, found, files::INDEXED_AT_ONCE, blocking)?;
    opened.repairs.extend(converted.repairs);
    Ok(opened)
}

/// Whether a path leads to no session file, so that another agent's may be there.
fn is_no_session(error: &StoreError) -> bool {
    matches!(error, StoreError::Foreign { .. } | StoreError::Missing(_))
}

/// Makes a session of one of another agent, in the home of this daemon. Returns its origin, too.
///
/// # Errors
/// When the file is of no other agent, or cannot be read, or the session cannot be written. No file is left then.
pub fn import(
    id: SessionId,
    params: ImportParams,
    home: &Home,
    layers: &Layers,
    blocking: &Blocking,
) -> Result<(Opened, Origin), Failure> {
    let given = PathBuf::from(&params.path);
    let Some(mut converted) = reading::read(&given)? else {
        header::peek(&given)?;
        let what = "it is a session in pi's form: session/load opens it in place, and session/fork copies it";
        return Err(Failure::params("path", what));
    };
    if let Some(title) = params.title {
        converted.about.title = Some(title);
    }
    if let Some(cwd) = params.cwd {
        converted.about.cwd = cwd;
    }
    let (original, in_database) = reading::file_and_session(&given);
    let original = fs::canonicalize(&original).unwrap_or(original);
    let original = in_database.map_or_else(|| original.clone(), |session| reading::in_database(&original, &session));
    let header = converted.header(id, Some(original.display().to_string()));
    let file = file_of(&home.sessions()?, &header);
    let write = |sink: Sink<'_>| sink(converted.lines().as_bytes());
    let files::Opened { log, history, mut repairs, .. } = home.found(&file, &header, write, || Ok(None), blocking)?;
    repairs.extend(converted.repairs);
    let images = Blobs::beside(&file);
    let title = converted.about.title;
    let given = SessionData::default();
    let state = State::new(header, Some(file), title, history, given, None, layers, Trust::Untrusted);
    let mut state = state.map_err(Failure::invalid_settings)?;
    state.set_images(images);
    state.repairs = repairs;
    Ok((Opened { state, log, left_behind: Vec::new() }, converted.about.origin))
}

/// The id and the working folder of the session at a path, of this program or of another agent.
///
/// # Errors
/// When there is none.
pub fn peek(path: &Path, home: &Home) -> Result<(SessionId, String), StoreError> {
    if let Some(peeked) = home.peek(path)? {
        return Ok(peeked);
    }
    match header::peek(path) {
        Ok(found) => Ok((found.header.id, found.header.cwd)),
        Err(error) if is_no_session(&error) => match reading::peek(path)? {
            Some(peeked) => Ok((peeked.id, peeked.cwd)),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The file of a session of this daemon.
///
/// # Errors
/// When there is none.
pub fn find(id: &SessionId, home: &Home) -> Result<PathBuf, Failure> {
    let missing = |place: &str| Failure::NotFound {
        kind: "session",
        what: format!(
            "there is no session {id} in {place}; session/list lists those there are, and session/load takes a path too"
        ),
    };
    match home.find(id) {
        Ok(Some(path)) => return Ok(path),
        Ok(None) => {}
        Err(StoreError::Missing(_)) => return Err(missing("the store")),
        Err(error) => return Err(error.into()),
    }
    let sessions = home.sessions()?;
    let ending = format!("_{id}.jsonl");
    let folders = fs::read_dir(&sessions).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&ending));
    let ours = |path: &PathBuf| named(path) && header::peek(path).is_ok_and(|found| found.header.id == *id);
    files.map(|file| file.path()).find(ours).ok_or_else(|| missing(&sessions.display().to_string()))
}
