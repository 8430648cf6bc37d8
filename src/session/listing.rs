//! The sessions there are, from the beginnings of their files: none is opened.

use super::header;
use crate::{
    entry::Header,
    message::{self, Message},
    protocol::types::{ListAnswer, ListParams, ListedSession},
    text,
};
use serde_json::Value;
use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Sessions of a page, if the client does not say.
const PAGE: usize = 100;

/// How much of a file is looked at for its first message and its name, in bytes.
const HEAD: u64 = 64 * 1024;

/// `session/list`, without what runs.
#[must_use]
pub fn list(params: &ListParams, sessions: &Path) -> ListAnswer {
    let mut files: Vec<(SystemTime, PathBuf, u64)> = session_files(sessions).collect();
    // Newest first; the name settles a tie, so that a cursor means the same every time.
    files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    let search = params.search.as_deref().map(str::to_lowercase);
    let wanted = |session: &ListedSession| {
        let cwd = params.cwd.as_ref().is_none_or(|cwd| *cwd == session.cwd);
        let found = search.as_ref().is_none_or(|search| {
            let fields = [Some(&session.cwd), session.title.as_ref(), session.preview.as_ref()];
            fields.into_iter().flatten().any(|text| text.to_lowercase().contains(search.as_str()))
        });
        cwd && found
    };
    let after_cursor = files.into_iter().skip_while({
        let mut found = params.cursor.is_none();
        move |(_, path, _)| {
            let skip = !found;
            found |= params.cursor.as_deref() == path.to_str();
            skip
        }
    });
    let mut listed = after_cursor.filter_map(|(time, path, size)| read(&path, time, size)).filter(wanted);
    let limit = params.limit.unwrap_or(PAGE).max(1);
    let page: Vec<ListedSession> = listed.by_ref().take(limit).collect();
    let next_cursor = listed.next().and(page.last()).map(|last| last.path.clone());
    ListAnswer { sessions: page, next_cursor }
}

fn session_files(sessions: &Path) -> impl Iterator<Item = (SystemTime, PathBuf, u64)> {
    let folders = fs::read_dir(sessions).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.filter_map(|file| {
        let path = file.path();
        let metadata = file.metadata().ok()?;
        let is_session = path.extension().is_some_and(|it| it == "jsonl") && metadata.is_file();
        is_session.then_some((metadata.modified().ok()?, path, metadata.len()))
    })
}

/// What the beginning of a file says; none where it is no session.
fn read(path: &Path, time: SystemTime, size_bytes: u64) -> Option<ListedSession> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let header::Found { header: Header { id, cwd, .. }, mut title, .. } = header::find(path, &head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let mut preview = None;
    for line in head.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        match line["type"].as_str() {
            Some("session_info") => title = line["name"].as_str().map(str::to_owned).filter(|name| !name.is_empty()),
            Some("message") if preview.is_none() => {
                if let Ok(Message::User(content)) = Message::parse(&line["message"].to_string()) {
                    preview = Some(text::one_line(&message::text_of(&content), 160));
                }
            }
            _ => {}
        }
    }
    let updated_at = jiff::Timestamp::try_from(time).ok()?.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    let path = path.display().to_string();
    Some(ListedSession { session_id: id, path, cwd, title, preview, updated_at, size_bytes, status: None })
}
