//! The page of all sessions of a data folder.

use super::{
    Session,
    chart::{self, day},
    html::{line, page},
    page::Source as _,
};
use crate::{
    cli::{
        cells::{age, short},
        watch::{look::Looks, row::Row},
    },
    protocol::types::UsageSource,
    redact::redact,
    text::{grouped, head, one_line},
};
use jiff::Timestamp;
use std::{fmt::Write as _, path::Path};

/// The most sessions of a page, the ones that were changed last. A row takes up to 1 KB, and a drawing 10.
const MOST: usize = 500;

/// The most sessions whose contexts are drawn.
const MOST_DRAWN: usize = 40;

/// The bytes of session files that are read whole to be drawn. A larger file is not drawn.
const MOST_READ: u64 = 100 << 20;

/// Writes the page.
pub(super) fn write(looks: &mut Looks, now: Timestamp) -> String {
    let mut picture = looks.look();
    let all = picture.rows.len();
    let shown = all.min(MOST);
    looks.measure(&mut picture.rows[..shown]);
    let rows = &picture.rows[..shown];
    let mut body = String::from("<header>\n<h1>Sessions</h1>\n");
    let folder = line(&picture.folder.display().to_string());
    let _ = writeln!(body, "<p class=\"soft\"><code>{folder}</code></p>");
    facts(&mut body, rows, all);
    body.push_str("</header>\n<main>\n");
    if rows.is_empty() {
        body.push_str("<p>There are no sessions yet. A daemon writes one at session/new.</p>\n");
    } else {
        table(&mut body, rows, looks, now);
    }
    if all > shown {
        let _ = writeln!(
            body,
            "<p>{} older sessions are not on this page: <code>abridged sessions --limit {all}</code></p>",
            all - shown
        );
    }
    match picture.left_out.len() {
        0 => {}
        1 => body.push_str(
            "<p>1 file is no session, or not readable: <code>abridged sessions --json</code> names it.</p>\n",
        ),
        files => {
            let _ = writeln!(
                body,
                "<p>{files} files are no sessions, or not readable: <code>abridged sessions --json</code> names them.</p>"
            );
        }
    }
    body.push_str(
        "</main>\n<footer><p class=\"soft\">A page about one session: <code>abridged report ID</code></p></footer>\n",
    );
    page("Sessions", &body)
}

fn facts(body: &mut String, rows: &[Row], all: usize) {
    let over = |row: &&Row| {
        let usage = row.usage.as_ref().map(|fullness| &fullness.usage);
        usage.is_some_and(|usage| usage.threshold_tokens.is_some_and(|threshold| usage.context_tokens > threshold))
    };
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).fold(0_u64, u64::saturating_add);
    let dollars: f64 = rows.iter().filter_map(|row| row.maintenance.dollars).fold(0.0, |sum, dollars| sum + dollars);
    let facts = [
        ("Sessions", grouped(&all.to_string())),
        ("Open", rows.iter().filter(|row| row.open_in.is_some()).count().to_string()),
        ("Over their threshold", rows.iter().filter(over).count().to_string()),
        ("Requests of maintenance", grouped(&sum(|row| row.maintenance.requests).to_string())),
        ("Tokens of maintenance", grouped(&sum(|row| row.maintenance.tokens).to_string())),
        ("Known price", format!("${dollars:.4}")),
    ];
    body.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(body, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    body.push_str("</dl>\n");
}

fn table(body: &mut String, rows: &[Row], looks: &mut Looks, now: Timestamp) {
    body.push_str(
        "<div class=\"scroll\">\n<table>\n<thead><tr><th scope=\"col\">Session</th><th scope=\"col\">Context</th>\
         <th scope=\"col\" class=\"wide\">Over time</th><th scope=\"col\" class=\"number\">Changed</th>\
         <th scope=\"col\" class=\"number wide\">Maintenance</th></tr></thead>\n<tbody>\n",
    );
    let (mut drawn, mut room) = (0, MOST_READ);
    for row in rows {
        let spark = match room.checked_sub(row.size_bytes).filter(|_| drawn < MOST_DRAWN) {
            Some(left) => {
                (drawn, room) = (drawn + 1, left);
                spark(row, looks)
            }
            None => String::new(),
        };
        let title = row.title.as_deref().or(row.preview.as_deref()).unwrap_or("no messages yet");
        let title = line(&one_line(&redact(title), 100));
        let changed = row.last_event().map_or_else(|| day(&row.updated_at), |at| age(at, now));
        let state = match row.running.last() {
            Some(operation) => format!(" · {} runs", operation.kind),
            None if row.open_in.is_some() => " · open".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(
            body,
            "<tr><td>{title}<br><span class=\"soft\"><code>{}</code> {}{}</span></td><td>{}</td>\
             <td class=\"wide\">{spark}</td><td class=\"number\">{}</td><td class=\"number wide\">{}</td></tr>",
            line(head(row.session_id.as_str(), 120)),
            line(&crate::cli::cells::folder(&row.cwd, 40)),
            line(&state),
            context(row),
            line(&changed),
            maintenance(row),
        );
    }
    body.push_str("</tbody>\n</table>\n</div>\n");
}

/// The fullness of a context as a bar and in numbers.
fn context(row: &Row) -> String {
    let Some(fullness) = &row.usage else {
        return format!(
            "<span class=\"soft\">{}</span>",
            line(&one_line(row.problem.as_deref().unwrap_or("not measured"), 200))
        );
    };
    let usage = &fullness.usage;
    let mark = match usage.source {
        _ if fullness.at_least => "≥",
        UsageSource::Estimate => "~",
        UsageSource::Provider => "",
    };
    let tokens = format!("{mark}{}", short(usage.context_tokens));
    let (Some(percent), Some(window)) = (usage.percent, usage.context_window) else { return tokens };
    let is_over = usage.threshold_tokens.is_some_and(|threshold| usage.context_tokens > threshold);
    let over = if is_over { " over" } else { "" };
    format!(
        "<div class=\"full{over}\"><b style=\"width:{:.0}%\"></b></div>{tokens} of {}, {percent:.0} %",
        percent.clamp(0.0, 100.0),
        short(window)
    )
}

fn maintenance(row: &Row) -> String {
    let cost = &row.maintenance;
    if cost.requests == 0 {
        return "–".to_owned();
    }
    let more = if cost.at_least { "≥" } else { "" };
    let dollars = cost.dollars.map(|dollars| format!("<br>${dollars:.4}")).unwrap_or_default();
    format!("{more}{} tokens{dollars}", short(cost.tokens))
}

fn spark(row: &Row, looks: &mut Looks) -> String {
    match Session::read(Path::new(&row.path), Some(looks)) {
        Ok(session) => {
            let model = session.state.as_ref().and_then(|state| state.model(state.path()));
            chart::spark(&session.timeline, &session.active(), session.limits(model.as_ref()))
        }
        // Its row says why it is not readable.
        Err(_) => String::new(),
    }
}
