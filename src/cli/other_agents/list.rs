//! `abridged sessions --all`: the sessions of all agents on this machine.

use super::found;
use crate::{
    agents::{Agent, homes::Found},
    cli::{
        cells::{age, short, told_apart, width},
        columns::{self, LEAST_TITLE, LEAST_WITH_FOLDER, Layout, MOST_TITLE, aligned},
        paint::Paint,
        print::{self, plain},
        watch,
        wrap::print_sentences,
    },
    text::head,
};
use jiff::Timestamp;
use serde_json::json;
use std::{num::NonZeroUsize, path::Path};

/// Columns of a line that is written to no terminal.
const COLUMNS: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Id,
    Age,
    Size,
    Agent,
}

impl columns::Column for Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Age => "age",
            Self::Size => "size",
            Self::Agent => "agent",
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Age | Self::Size)
    }
}

/// Options of the list.
pub(in crate::cli) struct Request<'a> {
    pub data: Option<&'a Path>,
    pub cwd: Option<&'a Path>,
    pub limit: NonZeroUsize,
    pub json: bool,
    pub now: Timestamp,
}

/// Lists the sessions of all agents.
///
/// # Errors
/// When there is no home folder.
pub(in crate::cli) fn run(request: &Request<'_>) -> Result<i32, String> {
    let listing = found::all(request.data)?;
    let (mut sessions, left_out) = (listing.found, listing.left_out);
    // An id names one session of all agents, also where some are not listed.
    let ids = short_ids(&sessions);
    let mut rows: Vec<(Found, String)> = sessions.drain(..).zip(ids).collect();
    if let Some(cwd) = request.cwd {
        rows.retain(|(session, _)| session.cwd.as_deref().is_some_and(|own| Path::new(own) == cwd));
    }
    let shown = rows.len().min(request.limit.get());
    let more = rows.len() - shown;
    rows.truncate(shown);
    if request.json {
        let sessions: Vec<_> = rows.iter().map(|(session, _)| listed(session)).collect();
        let left_out: Vec<_> = left_out.iter().map(|file| file.display().to_string()).collect();
        print::document(&json!({ "sessions": sessions, "more": more, "leftOut": left_out }));
        return Ok(0);
    }
    for file in &left_out {
        print::note(&format!("{} cannot be read; its sessions are not listed", file.display()));
    }
    if rows.is_empty() {
        print_sentences(
            "No agent has sessions here. Looked for those of abridged, pi, oh-my-pi, Claude Code, Codex, OpenCode and Gemini CLI.",
        );
        return Ok(0);
    }
    let paint = Paint::for_stdout();
    lines(&rows, request.now, watch::columns(COLUMNS), &paint).iter().for_each(|line| print::line(line));
    if more > 0 {
        print::line(&paint.dim(&format!("and {more} more (--limit)")));
    }
    Ok(0)
}

/// A session for a program. The name of its agent is the one that `continue --in` takes.
fn listed(session: &Found) -> serde_json::Value {
    json!({
        "agent": name(session), "sessionId": session.session_id, "path": session.path.display().to_string(),
        "cwd": session.cwd, "title": session.title, "updatedAt": session.updated_at, "sizeBytes": session.size_bytes,
    })
}

fn name(session: &Found) -> &'static str {
    session.agent.map_or("abridged", Agent::name)
}

fn short_ids(sessions: &[Found]) -> Vec<String> {
    let ids: Vec<&str> = sessions.iter().map(|session| session.session_id.as_str()).collect();
    told_apart(&ids).into_iter().zip(ids).map(|(length, id)| plain(head(id, length))).collect()
}

fn lines(rows: &[(Found, String)], now: Timestamp, columns: usize, paint: &Paint) -> Vec<String> {
    let cells: Vec<[String; 4]> = rows.iter().map(|(session, id)| cells(session, id, now)).collect();
    let all = [Column::Id, Column::Age, Column::Size, Column::Agent];
    let widest = |at: usize| cells.iter().map(|cells| width(&cells[at])).max().unwrap_or(0);
    let widths = all.iter().enumerate().map(|(at, column)| {
        let heading = columns::Column::heading(*column).len();
        (*column, widest(at).max(heading))
    });
    let making_room = [Column::Size, Column::Age, Column::Id, Column::Agent].map(|column| (column, LEAST_TITLE));
    let layout = Layout::fitting(widths.collect(), &making_room, LEAST_WITH_FOLDER, columns);
    let mut lines = vec![paint.dim(&layout.headings())];
    lines.extend(rows.iter().zip(&cells).map(|((session, _), cells)| {
        let cell = |column: Column, width| {
            let at = all.iter().position(|it| *it == column).unwrap_or(0);
            aligned(&cells[at], column, width)
        };
        let title = plain(head(session.title.as_deref().unwrap_or("(no title)"), MOST_TITLE));
        let named = layout.named("", &title, session.cwd.as_deref().unwrap_or(""), paint);
        layout.line(cell, named)
    }));
    lines
}

fn cells(session: &Found, id: &str, now: Timestamp) -> [String; 4] {
    [
        id.to_owned(),
        session.updated_at.parse().map(|at| age(at, now)).unwrap_or_default(),
        format!("{}B", short(session.size_bytes)),
        name(session).to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(agent: Option<Agent>, id: &str, title: &str) -> Found {
        Found {
            agent,
            session_id: id.to_owned(),
            path: "/s".into(),
            cwd: Some("/home/user/project".to_owned()),
            title: Some(title.to_owned()),
            updated_at: "2026-01-01T00:00:10Z".to_owned(),
            size_bytes: 12_345,
        }
    }

    #[test]
    fn a_line_has_id_age_size_agent_title_and_folder_and_fits() {
        let rows = [
            session(None, "0192aaaa", "Fix the retries"),
            session(Some(Agent::ClaudeCode), "b7f3", "Write\u{1b}[2J the docs, all of them, one after the other"),
        ];
        let ids = short_ids(&rows);
        let rows: Vec<_> = rows.into_iter().zip(ids).collect();
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        assert_eq!(
            lines(&rows, now, 80, &Paint::off()),
            [
                "id       age size agent       session, folder",
                "0192aaaa 50s 12kB abridged    Fix the retries                   …/user/project",
                "b7f3     50s 12kB claude-code Write[2J the docs, all of them,…  …/user/project",
            ]
        );
        for columns in 1..120 {
            for line in lines(&rows, now, columns, &Paint::off()) {
                assert!(width(&line) <= columns && !line.contains('\u{1b}'), "{columns}: {line:?}");
            }
        }
    }
}
