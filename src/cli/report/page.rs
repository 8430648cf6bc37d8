//! The page of one session.

use super::{
    chart::{self, Limits, day},
    html::{argument, line, text},
    timeline::{Compaction, Event, Kind, Spent, Timeline},
};
use crate::{
    cli::cells::clipped,
    ids::ModelRef,
    redact::redact,
    text::{grouped, head, one_line},
};
use std::fmt::Write as _;

/// Bytes of summaries and excerpts on a page.
const MOST_TEXT: usize = 640 << 10;

/// Bytes of the descriptions of events, with their markup. With the drawing the page has at most 1 MB.
const MOST_DESCRIBED: usize = 800 << 10;

/// Characters of a name that are shown: a model, a method, a reason, a title.
const NAME: usize = 120;

/// Characters of an id that are shown. Commands take its beginning.
const ID: usize = 120;

/// The most bytes of one summary that are shown.
const MOST_SUMMARY: usize = 48 << 10;

/// The most entries of a compaction that are listed.
const MOST_ENTRIES: usize = 60;

/// The most events that are described, the newest ones.
const MOST_EVENTS: usize = 500;

/// Characters of an entry that are shown.
const EXCERPT: usize = 160;

/// Characters of an entry that are looked at. A secret over their end is not in the excerpt.
const LOOKED_AT: usize = 4_000;

/// Facts about a session beside its timeline.
pub(super) struct About {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// Its file, as a person would write it in a shell.
    pub file: String,
    /// Its working folder.
    pub cwd: String,
    /// The session that it was made from.
    pub parent: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The size of its context now, in tokens, and the source of that number.
    pub now: Option<(u64, &'static str)>,
    /// The limits of its model now.
    pub limits: Limits,
    /// Number of faults in the file.
    pub faults: usize,
}

/// An entry of the conversation as an excerpt.
pub(super) struct Excerpt {
    /// Its id.
    pub id: String,
    /// Its role or type.
    pub role: String,
    /// Its text.
    pub text: String,
}

impl Excerpt {
    /// The excerpt of a text without its secrets.
    pub(super) fn of(id: &str, role: &str, text: &str) -> Self {
        let clean = redact(head(text, LOOKED_AT));
        Self { id: id.to_owned(), role: role.to_owned(), text: one_line(&clean, EXCERPT) }
    }
}

/// The excerpts of some entries.
pub(super) struct Excerpts {
    /// Those of the first and of the last entries, oldest first.
    pub shown: Vec<Excerpt>,
    /// Number of entries between them.
    pub left_out: usize,
}

/// The session of a page, beside its timeline.
pub(super) trait Source {
    /// The limits of a model.
    fn limits(&self, model: Option<&ModelRef>) -> Limits;

    /// At most `most` excerpts of the entries that the compaction with this number summarizes.
    fn covered(&self, number: usize, compaction: &Compaction, most: usize) -> Excerpts;

    /// Whether the entry with this number is a compaction or a reset that no longer holds.
    fn is_undone(&self, number: usize) -> bool;
}

/// Writes the page.
pub(super) fn write(about: &About, timeline: &Timeline, active: &[usize], source: &impl Source) -> String {
    let mut body = String::new();
    head_of(&mut body, about, timeline);
    body.push_str("<main>\n<h2>Size of the context</h2>\n");
    match timeline.entries {
        0 => body.push_str("<p>The session has no entries yet.</p>\n"),
        _ => {
            body.push_str(&chart::draw(timeline, active, |model| source.limits(model)));
            let _ = writeln!(body, "<p class=\"soft\">{}</p>", line(&origin(timeline)));
        }
    }
    events(&mut body, about, timeline, source);
    body.push_str("</main>\n");
    foot(&mut body, about, timeline);
    super::html::page(&title_of(about), &body)
}

/// The title of a session without its secrets.
fn title_of(about: &About) -> String {
    let title = about.title.as_deref().unwrap_or("A session without a title");
    one_line(&redact(head(title, LOOKED_AT)), NAME)
}

/// A name from a file, which may have any length.
fn name(text: &str) -> String {
    line(&one_line(text, NAME))
}

fn number(number: impl Into<u64>) -> String {
    grouped(&number.into().to_string())
}

fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", number(count as u64)),
    }
}

fn percent(part: u64, of: u64) -> u64 {
    if of == 0 { 0 } else { (part as f64 / of as f64 * 100.0).round() as u64 }
}

fn head_of(body: &mut String, about: &About, timeline: &Timeline) {
    let _ = writeln!(body, "<header>\n<h1>{}</h1>", line(&title_of(about)));
    let _ = writeln!(
        body,
        "<p class=\"soft\">Session <code>{}</code> in <code>{}</code>",
        line(head(&about.id, ID)),
        line(head(&about.cwd, LOOKED_AT))
    );
    if let Some(parent) = &about.parent {
        let _ = write!(body, ", made from <code>{}</code>", line(head(parent, LOOKED_AT)));
    }
    let _ = writeln!(body, "<br><code>{}</code></p>", line(&about.file));
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some((tokens, source)) = about.now {
        let full = percent(tokens, about.limits.window);
        facts.push(("Context now", format!("{} tokens, {full} % ({source})", number(tokens))));
    }
    facts.push(("Window", format!("{} tokens", number(about.limits.window))));
    facts.push(("Threshold", format!("{} tokens", number(about.limits.threshold))));
    facts.extend(about.model.iter().map(|model| ("Model", one_line(model, NAME))));
    let of = |wanted: fn(&Kind) -> bool| timeline.events.iter().filter(|event| wanted(&event.kind)).count();
    facts.push(("Entries", number(timeline.entries)));
    facts.push(("Compactions", of(|kind| matches!(kind, Kind::Compaction(_))).to_string()));
    for (name, count) in [
        ("Recoveries", of(|kind| matches!(kind, Kind::Recovery { .. }))),
        ("Prunings", of(|kind| matches!(kind, Kind::Pruning { .. }))),
    ] {
        facts.extend(Some((name, count.to_string())).filter(|_| count > 0));
    }
    if about.faults > 0 {
        facts.push(("Faults in the file", format!("{} (abridged tree --json lists them)", about.faults)));
    }
    let mut all = timeline.other_cost.clone();
    for event in &timeline.events {
        if let Kind::Compaction(compaction) = &event.kind {
            all = all.and(&compaction.cost);
        }
    }
    facts.push(("Cost of maintenance", cost(&all).unwrap_or_else(|| "no model was asked".to_owned())));
    body.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(body, "<div><dt>{name}</dt><dd>{}</dd></div>", line(&value));
    }
    body.push_str("</dl>\n</header>\n");
}

/// The source of the sizes in the drawing.
fn origin(timeline: &Timeline) -> String {
    let reported = timeline.points.iter().filter(|point| point.is_reported).count();
    let mut origin = match reported {
        0 => "No provider reported a size: all sizes are estimates".to_owned(),
        _ => "Sizes are the reports of the provider, with estimates between them".to_owned(),
    };
    match timeline.doubted {
        0 => {}
        1 => origin.push_str("; 1 report is not believed"),
        doubted => {
            let _ = write!(origin, "; {} reports are not believed", number(doubted));
        }
    }
    origin.push_str(
        ". A running session also compares reports with later ones, so its size may differ. Window and threshold are those of \
         the settings today.",
    );
    origin
}

/// A cost for a person; `None` where no model was asked.
fn cost(spent: &Spent) -> Option<String> {
    let requests = counted(spent.requests as usize, "request", "requests");
    let price = match spent.priced {
        0 => String::new(),
        priced if priced == spent.requests => format!(", ${:.4}", spent.price as f64 / 1e6),
        _ => format!(", at least ${:.4}", spent.price as f64 / 1e6),
    };
    (spent.requests > 0).then(|| format!("{requests}, {} tokens{price}", number(spent.tokens)))
}

fn events(body: &mut String, about: &About, timeline: &Timeline, source: &impl Source) {
    body.push_str("<h2>Events</h2>\n");
    if timeline.events.is_empty() {
        body.push_str("<p>Nothing was compacted, pruned or recovered.</p>\n");
    }
    let all = timeline.events.iter().filter(|event| matches!(event.kind, Kind::Compaction(_))).count();
    let mut count = all;
    // The newest events have the room before the older ones.
    let (mut room, mut described) = (MOST_TEXT, 0);
    let mut articles: Vec<String> = Vec::new();
    for event in timeline.events.iter().rev().take(MOST_EVENTS) {
        let mut article = String::new();
        match &event.kind {
            Kind::Compaction(compaction) => {
                let title = format!("Compaction {count} of {all}");
                count -= 1;
                compacted(&mut article, &title, event, compaction, about, source, &mut room);
            }
            other => changed(&mut article, event, other, about, &mut room),
        }
        described += article.len();
        if described > MOST_DESCRIBED {
            break;
        }
        articles.push(article);
    }
    let left_out = timeline.events.len() - articles.len();
    if left_out > 0 {
        let _ = writeln!(
            body,
            "<p>{} are not described here. <code>abridged tree {}</code> lists all compactions.</p>",
            counted(left_out, "earlier event", "earlier events"),
            line(&about.file)
        );
    }
    articles.iter().rev().for_each(|article| body.push_str(article));
}

fn compacted(
    article: &mut String,
    title: &str,
    event: &Event,
    compaction: &Compaction,
    about: &About,
    source: &impl Source,
    room: &mut usize,
) {
    let is_undone = source.is_undone(event.number);
    let class = if is_undone { " class=\"undone\"" } else { "" };
    let badge = if is_undone { " <span class=\"badge\">undone</span>" } else { "" };
    let _ = writeln!(article, "<article id=\"e{}\"{class}>\n<header><h3>{title}{badge}</h3>", event.number);
    let Compaction { before, after, covered, kept, .. } = *compaction;
    let mut facts = vec![day(&event.time)];
    let recovery = compaction.recovery.as_ref();
    facts.extend(recovery.map(|reason| format!("after a failed answer ({})", one_line(reason, NAME))));
    facts.push(match (compaction.is_supplied, &compaction.method) {
        (true, _) => "written by a hook or an extension".to_owned(),
        (false, Some(method)) => format!("method {}", one_line(method, NAME)),
        (false, None) => "by another program".to_owned(),
    });
    let _ = writeln!(article, "<p class=\"soft\">{}</p>", line(&facts.join(" · ")));
    let less = match before.checked_sub(after).filter(|less| *less > 0) {
        Some(less) => format!(", {} % less", percent(less, before)),
        None => String::new(),
    };
    let _ = writeln!(article, "<p><strong>{} → {} tokens</strong>{less}</p></header>", number(before), number(after));
    let gone = percent(before.saturating_sub(after), before.max(1)).min(100);
    let _ = writeln!(
        article,
        "<div class=\"parts\" aria-hidden=\"true\"><span class=\"kept\" style=\"width:{}%\"></span><span class=\"gone\" style=\"width:{gone}%\"></span></div>",
        100 - gone
    );
    let _ = writeln!(
        article,
        "<p>It summarizes {} and keeps {}. Cost: {}.</p>",
        counted(covered as usize, "entry", "entries"),
        counted(kept as usize, "entry", "entries"),
        cost(&compaction.cost).map_or_else(
            || "no model request is recorded for it".to_owned(),
            |cost| {
                let models = compaction.cost.models.join(", ");
                let by = if models.is_empty() { String::new() } else { format!(" by {}", name(&models)) };
                format!("{cost}{by}")
            }
        )
    );
    let short = compaction.short.as_ref().map(|short| line(&clipped(&redact(head(short, LOOKED_AT)), 600)));
    if let Some((short, left)) = short.and_then(|short| room.checked_sub(short.len()).map(|left| (short, left))) {
        *room = left;
        let _ = writeln!(article, "<p>{short}</p>");
    }
    let show = format!("abridged show {} {}", about.file, argument(head(event.id.as_str(), ID)));
    summary(article, "Summary", &compaction.summary, &show, room);
    covered_entries(article, event, compaction, about, source, room);
    article.push_str("</article>\n");
}

/// A text that can be opened, as far as the page has room for it.
fn summary(article: &mut String, name: &str, summary: &str, show: &str, room: &mut usize) {
    let words = counted(summary.split_whitespace().count(), "word", "words");
    let shown = redact(head(summary, MOST_SUMMARY));
    let escaped = text(&shown);
    let _ = writeln!(article, "<details><summary>{name} ({words})</summary>");
    match room.checked_sub(escaped.len()) {
        Some(left) => {
            *room = left;
            let _ = writeln!(article, "<pre>{escaped}</pre>");
            if shown.len() < summary.len() && summary.len() > MOST_SUMMARY {
                let _ = writeln!(article, "<p>It goes on: <code>{}</code></p>", line(show));
            }
        }
        None => {
            let _ = writeln!(article, "<p>The page has no room for it: <code>{}</code></p>", line(show));
        }
    }
    article.push_str("</details>\n");
}

fn covered_entries(
    article: &mut String,
    event: &Event,
    compaction: &Compaction,
    about: &About,
    source: &impl Source,
    room: &mut usize,
) {
    // An excerpt takes about 250 bytes.
    let most = MOST_ENTRIES.min(*room / 500);
    if compaction.covered == 0 || most == 0 {
        return;
    }
    let Excerpts { shown, left_out } = source.covered(event.number, compaction, most);
    let mut list = String::new();
    let first = shown.len().div_ceil(2);
    for (number, excerpt) in shown.iter().enumerate() {
        if number == first && left_out > 0 {
            let _ = writeln!(
                list,
                "<li class=\"soft\">… {} between: <code>abridged tree {} --all</code> lists them</li>",
                counted(left_out, "entry", "entries"),
                line(&about.file)
            );
        }
        let _ = writeln!(
            list,
            "<li><code>{}</code> <strong>{}</strong> {}</li>",
            line(head(&excerpt.id, ID)),
            name(&excerpt.role),
            line(&excerpt.text)
        );
    }
    *room = room.saturating_sub(list.len());
    let _ = writeln!(
        article,
        "<details><summary>Summarized entries ({})</summary>\n<p>Each is in the file as it was written: \
         <code>abridged show {} ID</code></p>\n<ul class=\"entries\">\n{list}</ul></details>",
        number(compaction.covered),
        line(&about.file)
    );
}

fn changed(article: &mut String, event: &Event, kind: &Kind, about: &About, room: &mut usize) {
    let said = match kind {
        Kind::Compaction(_) => String::new(),
        Kind::Reset { before } => format!("The context was cleared. It had {} tokens.", number(*before)),
        Kind::Branch { .. } => {
            "A branch was left, and its summary went to the entry where the session goes on.".to_owned()
        }
        Kind::Pruning { edits, before, after } => format!(
            "Shortened or left out in the context: {}, {} → {} tokens. The file has all of it.",
            counted(*edits as usize, "entry", "entries"),
            number(*before),
            number(*after)
        ),
        Kind::Recovery { reason } => {
            format!("An answer failed ({}), left the context, and the turn was repeated.", one_line(reason, NAME))
        }
        Kind::Undo { of } => {
            format!("Entry {} no longer holds. The context is the one from before it.", head(of.as_str(), ID))
        }
        Kind::Model { to } => format!("The session goes on with {}.", one_line(&to.to_string(), NAME)),
    };
    let kind_name = chart::name(kind);
    let time = line(&day(&event.time));
    let _ = writeln!(article, "<article id=\"e{}\">\n<header><h3>{kind_name}</h3>", event.number);
    let _ = writeln!(article, "<p class=\"soft\">{time}</p></header>\n<p>{}</p>", line(&said));
    if let Kind::Branch { summary: of } = kind {
        let show = format!("abridged show {} {}", about.file, argument(head(event.id.as_str(), ID)));
        summary(article, "Summary of the branch", of, &show, room);
    }
    article.push_str("</article>\n");
}

fn foot(body: &mut String, about: &About, timeline: &Timeline) {
    let file = line(&about.file);
    let undo = match timeline.events.iter().any(|event| matches!(event.kind, Kind::Compaction(_))) {
        true => format!("<li>The last compaction back: <code>abridged undo {file}</code></li>\n"),
        false => String::new(),
    };
    let _ = writeln!(
        body,
        "<footer>\n<h2>From here</h2>\n<ul>\n\
         <li>Any entry as it was written: <code>abridged show {file} ID</code></li>\n\
         <li>A text in all entries, summarized ones too: <code>abridged search {file} TEXT</code></li>\n\
         <li>All branches: <code>abridged tree {file}</code></li>\n\
         {undo}</ul>\n<p class=\"soft\">Texts on this page are without the secrets that abridged knows.</p>\n</footer>"
    );
}
