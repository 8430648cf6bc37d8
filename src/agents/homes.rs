//! The folders in which agents keep their sessions, and lists of what is in them. Only the beginning and the end of a file are read.

#![expect(clippy::disallowed_methods, reason = "looks for the files of other agents")]

use super::{Agent, opencode::database, reading, records::owned};
use crate::{
    conversation::entry,
    regular::{self, Links},
    text,
};
use jiff::Timestamp;
use serde_json::Value;
use std::{
    collections::HashMap,
    env,
    fs::{self, Metadata},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Bytes that are read at the beginning and at the end of a file.
const EDGE: usize = 64 << 10;

/// Bytes at the beginning of a file of Codex that are read where its first message is further back: instructions stand before it.
const LONG_HEAD: usize = 1 << 20;

/// The largest list of names that is read, in bytes.
const LARGEST_INDEX: u64 = 16 << 20;

/// The longest title, in bytes.
const LONGEST_TITLE: usize = 200;

/// The folders of the agents.
#[derive(Debug, Clone)]
pub struct Homes {
    /// `projects` of Claude Code.
    pub claude_code: PathBuf,
    /// The home folder of Codex.
    pub codex: PathBuf,
    /// The data folder of OpenCode.
    pub opencode: PathBuf,
    /// `tmp` of Gemini CLI.
    pub gemini: PathBuf,
    /// `sessions` of pi.
    pub pi: PathBuf,
    /// `sessions` of oh-my-pi.
    pub oh_my_pi: PathBuf,
}

/// The sessions that were found, and the files that cannot be read.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The sessions.
    pub found: Vec<Found>,
    /// Databases that cannot be read.
    pub left_out: Vec<PathBuf>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The agent; none for this program.
    pub agent: Option<Agent>,
    /// Its id in that agent.
    pub session_id: String,
    /// The path under which `session/load` reads it.
    pub path: PathBuf,
    /// The working folder, where the file says it.
    pub cwd: Option<String>,
    /// The title, else the beginning of the first message of the user.
    pub title: Option<String>,
    /// Time of the last change, RFC 3339.
    pub updated_at: String,
    /// Size, in bytes.
    pub size_bytes: u64,
}

impl Homes {
    /// The folders of this machine: those that variables of the agents name, else those below the home folder.
    ///
    /// # Errors
    /// When there is no home folder.
    pub fn from_environment() -> Result<Self, String> {
        let home = etcetera::home_dir().map_err(|error| format!("there is no home folder ({error}); set HOME"))?;
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let below = |name: &str, folder: &str| named(name).unwrap_or_else(|| home.join(folder));
        let data = named("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        Ok(Self {
            claude_code: below("CLAUDE_CONFIG_DIR", ".claude").join("projects"),
            codex: below("CODEX_HOME", ".codex"),
            opencode: data.join("opencode"),
            gemini: below("GEMINI_CLI_HOME", "").join(".gemini/tmp"),
            pi: below("PI_CODING_AGENT_DIR", ".pi/agent").join("sessions"),
            oh_my_pi: home.join(".omp/agent/sessions"),
        })
    }

    /// The sessions of Claude Code, Codex, OpenCode and Gemini CLI.
    #[must_use]
    pub fn sessions(&self) -> Listing {
        let mut found = Vec::new();
        let is = |ending: &'static str| move |file: &Path| file.extension().is_some_and(|it| it == ending);
        for file in files_below(&self.claude_code, 2, is("jsonl")) {
            // Sessions of subagents, which earlier versions kept beside their parents.
            if !name(&file).starts_with("agent-") {
                found.extend(of_file(Agent::ClaudeCode, &file));
            }
        }
        found.extend(self.of_codex());
        let is_chat = |file: &Path| {
            let in_chats = file.parent().is_some_and(|folder| name(folder) == "chats");
            in_chats && file.extension().is_some_and(|it| it == "json" || it == "jsonl")
        };
        for file in files_below(&self.gemini, 3, is_chat) {
            found.extend(of_file(Agent::GeminiCli, &file));
        }
        let mut listing = self.of_opencode();
        listing.found.append(&mut found);
        listing
    }

    /// The sessions of Codex. A thread that was reverted has several files, of which the newest one counts.
    fn of_codex(&self) -> Vec<Found> {
        let names = regular::read(&self.codex.join("session_index.jsonl"), LARGEST_INDEX).unwrap_or_default();
        let names = String::from_utf8_lossy(&names);
        let names = names.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let names: HashMap<String, String> =
            names.filter_map(|line| owned(&line["id"]).zip(owned(&line["thread_name"]))).collect();
        let mut newest: HashMap<String, Found> = HashMap::new();
        let is_rollout = |file: &Path| file.extension().is_some_and(|ending| ending == "jsonl");
        let folders = ["sessions", "archived_sessions"].map(|folder| self.codex.join(folder));
        for file in folders.iter().flat_map(|folder| files_below(folder, 4, is_rollout)) {
            let Some(mut found) = of_file(Agent::Codex, &file) else { continue };
            found.title = names.get(&found.session_id).cloned().or(found.title);
            let other = newest.get(&found.session_id);
            // Names begin with their times.
            if other.is_none_or(|other| (&other.updated_at, &other.path) < (&found.updated_at, &found.path)) {
                newest.insert(found.session_id.clone(), found);
            }
        }
        newest.into_values().collect()
    }

    /// The sessions in the database of OpenCode, and those that earlier versions kept in files.
    fn of_opencode(&self) -> Listing {
        let mut left_out = Vec::new();
        // Each channel of OpenCode has a database of its own.
        let is_database = |file: &Path| name(file).starts_with("opencode") && name(file).ends_with(".db");
        let databases = files_below(&self.opencode, 1, is_database);
        let listed = databases.iter().flat_map(|file| {
            let listed = database::list(file).unwrap_or_else(|_| {
                left_out.push(file.clone());
                Vec::new()
            });
            listed.into_iter().map(move |session| (file, session))
        });
        let mut found: Vec<Found> = listed
            // Sessions of subagents are parts of their parents.
            .filter(|(_, session)| session.parent.is_none())
            .map(|(file, session)| Found {
                agent: Some(Agent::OpenCode),
                path: reading::in_database(file, &session.id),
                session_id: session.id,
                cwd: Some(session.cwd),
                title: Some(shortened(&session.title)).filter(|title| !title.is_empty()),
                updated_at: Timestamp::from_millisecond(session.updated).map(entry::timestamp).unwrap_or_default(),
                size_bytes: session.size,
            })
            .collect();
        let is_session = |file: &Path| name(file).starts_with("ses") && file.extension().is_some_and(|it| it == "json");
        for file in files_below(&self.opencode.join("storage/session"), 2, is_session) {
            let session = of_file(Agent::OpenCode, &file);
            found.extend(session.filter(|it| found.iter().all(|other| other.session_id != it.session_id)));
        }
        Listing { found, left_out }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files at most so many levels below a folder that are wanted.
fn files_below(folder: &Path, levels: usize, wanted: impl Fn(&Path) -> bool + Copy) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && levels > 1 => found.extend(files_below(&path, levels - 1, wanted)),
            Ok(kind) if kind.is_file() && wanted(&path) => found.push(path),
            _ => {}
        }
    }
    found
}

/// The beginning and the end of a file.
struct Edges {
    head: String,
    tail: String,
    metadata: Metadata,
}

impl Edges {
    fn read(path: &Path, head: usize) -> Option<Self> {
        let file = regular::open(path, Links::Followed).ok()?;
        let metadata = file.metadata().ok()?;
        let part = |offset: u64, most: usize| {
            let mut bytes = vec![0; most];
            let mut length = 0;
            while let Ok(more @ 1..) = file.read_at(&mut bytes[length..], offset + length as u64) {
                length += more;
            }
            bytes.truncate(length);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let after_head = metadata.len().min(head as u64);
        let (head, tail) = (part(0, head), part(metadata.len().saturating_sub(EDGE as u64).max(after_head), EDGE));
        Some(Self { head, tail, metadata })
    }

    /// The lines of both edges that are whole JSON.
    fn lines(&self) -> impl DoubleEndedIterator<Item = Value> {
        let lines = self.head.lines().chain(self.tail.lines());
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>().into_iter()
    }

    fn updated(&self) -> String {
        let since = self.metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let time = since.and_then(|since| Timestamp::from_millisecond(i64::try_from(since.as_millis()).ok()?).ok());
        time.map(entry::timestamp).unwrap_or_default()
    }
}

/// The session of a file; none where it is none, or of a subagent.
fn of_file(agent: Agent, path: &Path) -> Option<Found> {
    let edges = Edges::read(path, EDGE)?;
    let facts = match agent {
        Agent::ClaudeCode => of_claude_code(&edges, path)?,
        Agent::Codex => match of_codex(&edges) {
            Some(facts) if facts.title.is_some() => facts,
            _ => of_codex(&Edges::read(path, LONG_HEAD)?)?,
        },
        Agent::GeminiCli => of_gemini(&edges, path)?,
        _ => of_opencode_file(&edges)?,
    };
    let Facts { session_id, cwd, title } = facts;
    Some(Found {
        agent: Some(agent),
        session_id,
        path: path.to_owned(),
        cwd,
        title: title.map(|title| shortened(&title)).filter(|title| !title.is_empty()),
        updated_at: edges.updated(),
        size_bytes: edges.metadata.len(),
    })
}

struct Facts {
    session_id: String,
    cwd: Option<String>,
    title: Option<String>,
}

/// A title on one line.
fn shortened(title: &str) -> String {
    let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
    text::head(&line, LONGEST_TITLE).to_owned()
}

/// The text of a content in the form of Anthropic.
fn text_of(content: &Value) -> Option<String> {
    owned(content).or_else(|| content.as_array()?.iter().find_map(|block| owned(&block["text"])))
}

fn of_claude_code(edges: &Edges, path: &Path) -> Option<Facts> {
    let lines: Vec<Value> = edges.lines().collect();
    if !lines.iter().any(|line| line["uuid"].is_string()) || lines.iter().all(|line| line["isSidechain"] == true) {
        return None;
    }
    let last = |name: &str| lines.iter().rev().find_map(|line| owned(&line[name]));
    let said = || {
        let users = lines.iter().filter(|line| line["type"] == "user" && line["isMeta"] != true);
        users.filter_map(|line| text_of(&line["message"]["content"])).find(|text| !text.starts_with('<'))
    };
    Some(Facts {
        session_id: path.file_stem()?.to_string_lossy().into_owned(),
        cwd: lines.iter().find_map(|line| owned(&line["cwd"])),
        title: last("customTitle").or_else(|| last("aiTitle")).or_else(said),
    })
}

fn of_codex(edges: &Edges) -> Option<Facts> {
    let lines: Vec<Value> = edges.lines().collect();
    let meta = lines.iter().find(|line| line["type"] == "session_meta").map(|line| &line["payload"]);
    // The first versions, and a first line that is longer than what is read.
    let meta = meta.or(lines.first())?;
    if meta["source"]["subagent"].is_object() {
        return None;
    }
    let named = lines.iter().rev().find_map(|line| owned(&line["payload"]["thread_name"]));
    let said = || {
        let payloads = || lines.iter().map(|line| &line["payload"]);
        let events = payloads().filter(|event| event["type"] == "user_message").map(|event| &event["message"]);
        // Newer versions write their items in events.
        let items = payloads().map(|event| &event["item"]).filter(|item| item["type"] == "UserMessage");
        events.filter_map(owned).next().or_else(|| items.filter_map(|item| text_of(&item["content"])).next())
    };
    Some(Facts { session_id: owned(&meta["id"])?, cwd: owned(&meta["cwd"]), title: named.or_else(said) })
}

fn of_gemini(edges: &Edges, path: &Path) -> Option<Facts> {
    // Earlier versions wrote one document.
    let document = || serde_json::from_slice::<Value>(&regular::read(path, 64 << 20).ok()?).ok();
    let mut lines: Vec<Value> = edges.lines().collect();
    if !lines.iter().any(|line| line["sessionId"].is_string()) {
        lines = vec![document()?];
    }
    let meta = lines.iter().find(|line| line["sessionId"].is_string())?;
    if meta["kind"] == "subagent" {
        return None;
    }
    let messages = lines.iter().chain(lines.iter().flat_map(|line| line["messages"].as_array().into_iter().flatten()));
    let said = messages.filter(|message| message["type"] == "user").find_map(|message| text_of(&message["content"]));
    let named = lines.iter().rev().find_map(|line| owned(&line["summary"]).or_else(|| owned(&line["$set"]["summary"])));
    let title = named.or(said);
    Some(Facts { session_id: owned(&meta["sessionId"])?, cwd: reading::project_root(path), title })
}

fn of_opencode_file(edges: &Edges) -> Option<Facts> {
    let info: Value = serde_json::from_str(&edges.head).ok()?;
    if info["parentID"].is_string() {
        return None;
    }
    Some(Facts { session_id: owned(&info["id"])?, cwd: owned(&info["directory"]), title: owned(&info["title"]) })
}
