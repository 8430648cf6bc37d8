//! A row of the picture as a line of a terminal.

use super::forest::{Item, Row};
use crate::{
    cli::{
        cells::{fitted, short, width},
        compact::grouped,
        paint::Paint,
        print::plain,
    },
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
    },
    ids::EntryId,
    text::{head, one_line},
};
use serde_json::json;

/// Columns of the kind of an entry.
const KIND: usize = 10;

/// The most characters of an entry's text that are looked at.
const MOST_TEXT: usize = 400;

/// The part of a line that levels may take: one column of this number.
const FOR_LEVELS: usize = 4;

/// An entry with its place in the tree.
pub(super) struct Drawn<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its label.
    pub label: Option<&'a str>,
    /// Its place.
    pub state: State,
    /// Whether it is a compaction or a reset that does not hold any more.
    pub is_undone: bool,
}

/// The place of an entry in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The last entry of the active path.
    Leaf,
    /// On the active path.
    Active,
    /// On another branch.
    Aside,
}

/// The form of all rows of a picture.
pub(super) struct Style<'a> {
    /// Columns of a line.
    pub columns: usize,
    /// Characters of an id.
    pub id: usize,
    /// Colours.
    pub paint: &'a Paint,
}

impl Style<'_> {
    /// The line of a row without an entry.
    pub(super) fn other(&self, row: &Row<'_>) -> String {
        let text = match row.item {
            Item::Folded { entries, users: 0 } => format!("⋮ {} entries", grouped(&json!(entries))),
            Item::Folded { entries, users } => {
                format!("⋮ {} entries, {} of the user", grouped(&json!(entries)), grouped(&json!(users)))
            }
            Item::Entry(_) | Item::Blank => return String::new(),
        };
        let mut line = Line::new(self.columns);
        for part in [&self.levels(row), &text] {
            line.add(part, |text| self.paint.dim(text));
        }
        line.text
    }

    /// The line of an entry.
    pub(super) fn entry(&self, row: &Row<'_>, drawn: &Drawn<'_>) -> String {
        let rewrites =
            matches!(drawn.entry.body, Body::Compaction(_) | Body::ResetBoundary(_) | Body::BranchSummary(_));
        let mark = match (drawn.state, rewrites && !drawn.is_undone) {
            (State::Leaf, _) => "◉",
            (State::Active, true) => "◆",
            (State::Active, false) => "●",
            (State::Aside, true) => "◇",
            (State::Aside, false) => "○",
        };
        let kind = format!("{:<KIND$}", fitted(&plain(kind(drawn.entry)), KIND));
        let id = format!("{:<length$}", plain(head(drawn.entry.id.as_str(), self.id)), length = self.id);
        let label = drawn.label.map(|label| format!("[{}]", fitted(&plain(label), 24)));
        let undone = drawn.is_undone.then(|| "undone".to_owned());
        let text = plain(&one_line(&self.text(drawn.entry), MOST_TEXT));
        let mut line = Line::new(self.columns);
        let aside = drawn.state == State::Aside;
        let paint = self.paint;
        let or_dim = |painted: fn(&Paint, &str) -> String| {
            move |text: &str| match aside {
                true => paint.dim(text),
                false => painted(paint, text),
            }
        };
        line.add(&self.levels(row), |text| paint.dim(text));
        line.add(mark, or_dim(if drawn.state == State::Leaf { Paint::green } else { plainly }));
        line.add(" ", str::to_owned);
        line.add(&id, |text| paint.dim(text));
        line.add(" ", str::to_owned);
        let is_user = drawn.entry.is_from(Role::User);
        line.add(
            &kind,
            or_dim(if rewrites {
                Paint::yellow
            } else if is_user {
                Paint::bold
            } else {
                plainly
            }),
        );
        for (word, painted) in [(label, Paint::yellow as fn(&Paint, &str) -> String), (undone, Paint::red)] {
            if let Some(word) = word {
                line.add(" ", str::to_owned);
                line.add(&word, |text| painted(paint, text));
            }
        }
        line.add(" ", str::to_owned);
        line.add(&text, or_dim(plainly));
        line.text
    }

    /// The lines of the levels to the left of a row. A deep row shows the innermost ones.
    fn levels(&self, row: &Row<'_>) -> String {
        let most = (self.columns / (2 * FOR_LEVELS)).max(1);
        let (mark, shown) = match row.bars.len() {
            levels if levels <= most => ("", row.bars),
            levels => ("… ", &row.bars[levels + 1 - most..]),
        };
        let innermost = shown.len().saturating_sub(1);
        let levels =
            shown.iter().enumerate().map(|(level, goes_on)| match (row.joins && level == innermost, goes_on) {
                (true, true) => "├─",
                (true, false) => "╰─",
                (false, true) => "│ ",
                (false, false) => "  ",
            });
        std::iter::once(mark).chain(levels).collect()
    }

    /// The content of an entry for a person.
    fn text(&self, entry: &Entry) -> String {
        let short_id = |id: &EntryId| head(id.as_str(), self.id).to_owned();
        match &entry.body {
            Body::Compaction(compaction) => {
                let summary = compaction.short_summary.as_ref().filter(|short| !short.is_empty());
                let summary = summary.unwrap_or(&compaction.summary);
                match compaction.tokens_before() {
                    tokens if tokens >= 1.0 => format!("{} tokens: {summary}", short(tokens as u64)),
                    _ => summary.clone(),
                }
            }
            Body::BranchSummary(branch) => branch.summary.clone(),
            Body::ResetBoundary(_) => "nothing before it is in the context".to_owned(),
            Body::ContextEdit(edit) => match edit.replacement {
                Some(_) => format!("{} has another content in the context", short_id(&edit.target_id)),
                None => format!("{} is not in the context", short_id(&edit.target_id)),
            },
            Body::Label { target, label: Some(label) } => format!("{}: {label}", short_id(target)),
            Body::Label { target, label: None } => format!("{}: no label", short_id(target)),
            Body::Custom(custom) => custom.custom_type.clone(),
            _ => entry.readable_text(),
        }
    }
}

fn plainly(_: &Paint, text: &str) -> String {
    text.to_owned()
}

/// The kind of an entry: the role of a message, else its type.
fn kind(entry: &Entry) -> &str {
    match &entry.body {
        Body::Message(body) => match body.outline.role {
            Role::User => "user",
            Role::Developer => "developer",
            Role::System => "system",
            Role::Assistant => "assistant",
            Role::ToolResult => "result",
            Role::Execution => "bash",
            Role::Custom => "custom",
            Role::Summary => "summary",
        },
        Body::BranchSummary(_) => "branch",
        Body::CustomMessage(_) if entry.is_pinned_text() => "pin",
        Body::CustomMessage(_) | Body::Custom(_) => "custom",
        Body::ContextEdit(_) => "edit",
        Body::ResetBoundary(_) => "reset",
        Body::SessionInfo { .. } => "title",
        Body::ModelChange { .. } => "model",
        Body::ThinkingLevel(_) => "thinking",
        _ => &entry.kind,
    }
}

/// A line that ends at the last column.
struct Line {
    text: String,
    room: usize,
}

impl Line {
    fn new(columns: usize) -> Self {
        Self { text: String::new(), room: columns }
    }

    /// Adds a text, as far as there is room, in the colours of `painted`.
    fn add(&mut self, text: &str, painted: impl Fn(&str) -> String) {
        let taken = width(text);
        let fitting = match taken <= self.room {
            true => text.to_owned(),
            false => fitted(text, self.room),
        };
        self.room = self.room.saturating_sub(taken);
        if !fitting.is_empty() {
            self.text.push_str(&painted(&fitting));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn entry(line: &Value) -> Entry {
        Entry::parse(line.to_string().into()).expect("an entry")
    }

    fn line(style: &Style<'_>, bars: &[bool], joins: bool, drawn: &Drawn<'_>) -> String {
        style.entry(&Row { bars, joins, item: Item::Entry(0) }, drawn)
    }

    fn drawn(entry: &Entry, state: State) -> Drawn<'_> {
        Drawn { entry, label: None, state, is_undone: false }
    }

    #[test]
    fn an_entry_is_a_line() {
        let message = |role: &str, content: Value| {
            entry(
                &json!({"type": "message", "id": "0123456789abcdef", "parentId": null, "message": {"role": role, "content": content}}),
            )
        };
        let user = message("user", json!("Fix the\nretries"));
        let style = Style { columns: 80, id: 8, paint: &Paint::off() };
        assert_eq!(line(&style, &[], false, &drawn(&user, State::Active)), "● 01234567 user       Fix the retries");
        let labelled = Drawn { label: Some("here"), ..drawn(&user, State::Leaf) };
        assert_eq!(line(&style, &[true], false, &labelled), "│ ◉ 01234567 user       [here] Fix the retries");
        let call = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}}]);
        let answer = message("assistant", call);
        let expected = "  ├─○ 01234567 assistant  read({\"path\":\"a\"})";
        assert_eq!(line(&style, &[false, true], true, &drawn(&answer, State::Aside)), expected);
        let compaction = entry(
            &json!({"type": "compaction", "id": "c", "parentId": null, "summary": "Long.", "shortSummary": "Short.",
            "firstKeptEntryId": "c", "tokensBefore": 142_300}),
        );
        assert_eq!(
            line(&style, &[], false, &drawn(&compaction, State::Active)),
            "◆ c        compaction 142k tokens: Short."
        );
        let undone = Drawn { is_undone: true, ..drawn(&compaction, State::Active) };
        assert_eq!(line(&style, &[], false, &undone), "● c        compaction undone 142k tokens: Short.");
    }

    #[test]
    fn each_type_has_a_name_and_a_text() {
        let style = Style { columns: 80, id: 8, paint: &Paint::off() };
        for (fields, expected) in [
            (
                json!({"type": "branch_summary", "fromId": "a", "summary": "Tried a queue."}),
                "◆ x branch     Tried a queue.",
            ),
            (json!({"type": "reset_boundary"}), "◆ x reset      nothing before it is in the context"),
            (
                json!({"type": "context_edit", "targetId": "a", "replacement": null}),
                "● x edit       a is not in the context",
            ),
            (
                json!({"type": "context_edit", "targetId": "a", "replacement": {"content": "b"}}),
                "● x edit       a has another content in the context",
            ),
            (json!({"type": "label", "targetId": "a", "label": "here"}), "● x label      a: here"),
            (json!({"type": "label", "targetId": "a"}), "● x label      a: no label"),
            (json!({"type": "session_info", "name": "Parser"}), "● x title      Parser"),
            (json!({"type": "model_change", "provider": "p", "modelId": "m"}), "● x model      p/m"),
            (json!({"type": "thinking_level_change", "thinkingLevel": "high"}), "● x thinking   high"),
            (json!({"type": "custom", "customType": "plan", "data": {}}), "● x custom     plan"),
            (
                json!({"type": "custom_message", "customType": "abridged.pin", "content": "Use tabs."}),
                "● x pin        Use tabs.",
            ),
            (json!({"type": "a_type_of_tomorrow"}), "● x a_type_of… "),
            (
                json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c", "content": "done"}}),
                "● x result     done",
            ),
            (json!({"type": "message", "message": {"role": "nonsense"}}), "● x message    "),
        ] {
            let mut fields = fields;
            (fields["id"], fields["parentId"]) = (json!("x"), Value::Null);
            let style = Style { id: 1, ..style };
            assert_eq!(line(&style, &[], false, &drawn(&entry(&fields), State::Active)), expected, "{fields}");
        }
    }

    #[test]
    fn a_line_fits_every_terminal_and_moves_no_cursor() {
        let text = format!("漢字\u{1b}[2Jb\u{202e}{}", " and so on".repeat(40));
        let entry = entry(
            &json!({"type": "message", "id": "\u{1b}[31m0123", "parentId": null, "message": {"role": "user", "content": text}}),
        );
        let label = "a label that is longer than any line \u{7}".repeat(3);
        for columns in 1..150 {
            for levels in [0, 1, 5, 40, 1_000] {
                let style = Style { columns, id: 8, paint: &Paint::off() };
                let drawn = Drawn { label: Some(&label), is_undone: true, ..drawn(&entry, State::Leaf) };
                let bars = vec![true; levels];
                let line = line(&style, &bars, levels > 0, &drawn);
                assert!(width(&line) <= columns, "{columns} columns, {levels} levels: {line}");
                assert!(!line.chars().any(|char| char.is_control() || char == '\u{202e}'), "{line:?}");
                let folded = Row { bars: &bars, joins: false, item: Item::Folded { entries: 1_234, users: 12 } };
                assert!(width(&style.other(&folded)) <= columns, "{columns} columns, {levels} levels");
            }
        }
    }
}
