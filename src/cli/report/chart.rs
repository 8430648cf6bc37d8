//! The size of the context over a session, drawn with its window, its threshold and its events.
//!
//! Lines are SVG that is stretched to the width of the page; texts and marks stand beside them as HTML, so that they are
//! readable at any width and reachable with the keyboard.

use super::{
    html::line,
    timeline::{Event, Kind, Timeline},
};
use crate::{cli::cells::short, ids::ModelRef, text::grouped};
use std::fmt::Write as _;

/// Units of the drawing from left to right. A unit has at most four points.
const WIDTH: f64 = 1_000.0;

/// Units from top to bottom.
const HEIGHT: f64 = 300.0;

/// The most branches beside the active path that are drawn, the longest ones.
const MOST_BRANCHES: usize = 50;

/// Events nearer to each other than this share one mark, in percent of the width.
const NEAR: f64 = 4.0;

/// The window and the threshold of a model, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The window.
    pub window: u64,
    /// The size over which a context is compacted.
    pub threshold: u64,
}

/// The scale of a drawing.
#[derive(Clone, Copy)]
struct Frame {
    /// The position at the right end.
    last: u32,
    /// The size at the top, in tokens.
    top: u64,
}

/// A point in units of the drawing.
type Point = (f64, f64);

impl Frame {
    fn x(self, at: u32) -> f64 {
        f64::from(at.saturating_sub(1)) / f64::from(self.last.saturating_sub(1).max(1)) * WIDTH
    }

    fn y(self, tokens: u64) -> f64 {
        HEIGHT - (tokens.min(self.top) as f64 / self.top.max(1) as f64) * HEIGHT
    }
}

/// Draws a session. `active`: the numbers of the entries on its active path. `limits` gives those of a model.
pub(super) fn draw(timeline: &Timeline, active: &[usize], limits: impl Fn(Option<&ModelRef>) -> Limits) -> String {
    let steps = steps(timeline, active, limits);
    let largest = timeline.largest();
    let window = steps.iter().map(|(_, limits)| limits.window).max().unwrap_or(0);
    let threshold = steps.iter().map(|(_, limits)| limits.threshold).max().unwrap_or(0);
    // A window far above all contexts would press them to the ground.
    let shown = if window <= largest.saturating_mul(3) { window } else { threshold.min(largest.saturating_mul(3)) };
    let frame = Frame { last: timeline.entries, top: round_up(largest.max(shown).max(1_000) * 21 / 20) };
    let mut figure = String::from("<figure>\n<div class=\"chart\">\n");
    let _ = writeln!(
        figure,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        line(&described(timeline, &steps, largest))
    );
    let path = |class: &str, points: &[Point], end: &str| match points {
        [] => String::new(),
        points => format!("<path class=\"{class}\" d=\"{}{end}\"/>\n", data(points)),
    };
    for event in &timeline.events {
        let x = frame.x(timeline.points[event.number].at);
        let _ = write!(figure, "<path class=\"event\" d=\"M{x:.1} 0V{HEIGHT}\"/>");
    }
    figure.push('\n');
    let mut branches = timeline.branches(active);
    branches.sort_by_key(|branch| std::cmp::Reverse(branch.len()));
    for branch in branches.iter().take(MOST_BRANCHES) {
        figure.push_str(&path("aside", &thinned(&points(timeline, branch, frame)), ""));
    }
    let size = thinned(&points(timeline, active, frame));
    if let (Some((first, _)), Some((last, _))) = (size.first(), size.last()) {
        figure.push_str(&path("area", &size, &format!("L{last:.1} {HEIGHT}L{first:.1} {HEIGHT}Z")));
    }
    figure.push_str(&path("size", &size, ""));
    for (class, of) in [("window", (|limits| limits.window) as fn(Limits) -> u64), ("threshold", |it| it.threshold)] {
        figure.push_str(&path(class, &stairs(&steps, of, frame), ""));
    }
    figure.push_str("</svg>\n");
    for part in 0..=4_u64 {
        let tokens = frame.top * part / 4;
        let top = 100.0 - part as f64 * 25.0;
        let _ =
            writeln!(figure, "<span class=\"y\" style=\"top:{top}%\" aria-hidden=\"true\">{}</span>", short(tokens));
    }
    figure.push_str(&pins(timeline, frame));
    figure.push_str("</div>\n");
    if let Some((first, last)) = &timeline.times {
        let (first, last) = (line(&day(first)), line(&day(last)));
        let entries = grouped(&timeline.entries.to_string());
        let _ = writeln!(
            figure,
            "<p class=\"x\"><span>{first}</span><span>{entries} entries</span><span>{last}</span></p>"
        );
    }
    figure.push_str(&legend(timeline, !branches.is_empty(), window > frame.top, window));
    figure.push_str("</figure>\n");
    figure
}

/// A small drawing of the active path alone.
pub(super) fn spark(timeline: &Timeline, active: &[usize], limits: Limits) -> String {
    let top = timeline.largest().max(limits.threshold.min(timeline.largest().saturating_mul(2))).max(1);
    let frame = Frame { last: timeline.entries, top };
    let thin: Vec<Point> =
        thinned(&points(timeline, active, frame).iter().map(|(x, y)| (x / 5.0, *y)).collect::<Vec<_>>());
    if thin.is_empty() {
        return String::new();
    }
    let y = frame.y(limits.threshold);
    let threshold = match limits.threshold <= top {
        true => format!("<path class=\"threshold\" d=\"M0 {y:.0}H{}\"/>", WIDTH / 5.0),
        false => String::new(),
    };
    format!(
        "<svg class=\"spark\" viewBox=\"0 0 {} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{threshold}\
         <path class=\"size\" d=\"{}\"/></svg>",
        WIDTH / 5.0,
        data(&thin)
    )
}

/// The limits along the active path: each change with its position.
fn steps(timeline: &Timeline, active: &[usize], limits: impl Fn(Option<&ModelRef>) -> Limits) -> Vec<(u32, Limits)> {
    let points = || active.iter().map(|number| &timeline.points[*number]);
    // Entries before the first one that names a model were made for that model.
    let first = points().find_map(|point| point.model.as_ref());
    let mut steps: Vec<(u32, Limits)> = Vec::new();
    let mut before = None;
    for point in points() {
        let model = point.model.as_ref().or(first);
        if steps.is_empty() || before != model {
            before = model;
            let limits = limits(model.map(|model| &**model));
            if steps.last().is_none_or(|(_, last)| *last != limits) {
                steps.push((point.at, limits));
            }
        }
    }
    steps
}

/// The line of a limit: level, and upright where it changes.
fn stairs(steps: &[(u32, Limits)], of: fn(Limits) -> u64, frame: Frame) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (number, (at, limits)) in steps.iter().enumerate() {
        let end = steps.get(number + 1).map_or(WIDTH, |(next, _)| frame.x(*next));
        // A limit above the drawing is named in the legend.
        if of(*limits) <= frame.top {
            let y = frame.y(of(*limits));
            points.extend([(frame.x(*at), y), (end, y)]);
        }
    }
    points
}

/// The sizes at some entries.
fn points(timeline: &Timeline, numbers: &[usize], frame: Frame) -> Vec<Point> {
    numbers.iter().map(|number| &timeline.points[*number]).map(|it| (frame.x(it.at), frame.y(it.tokens))).collect()
}

/// At most four points for each unit from left to right: the first, the highest, the lowest and the last one.
fn thinned(points: &[Point]) -> Vec<Point> {
    let mut thin: Vec<Point> = Vec::new();
    for unit in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
        let mut kept: Vec<&Point> = vec![&unit[0]];
        kept.extend(unit.iter().min_by(by_height));
        kept.extend(unit.iter().max_by(by_height));
        kept.push(&unit[unit.len() - 1]);
        kept.sort_by(|a, b| a.0.total_cmp(&b.0));
        kept.dedup();
        thin.extend(kept);
    }
    thin
}

fn data(points: &[Point]) -> String {
    let mut data = String::with_capacity(points.len() * 12);
    for (number, (x, y)) in points.iter().enumerate() {
        let _ = write!(data, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
    }
    data
}

/// The marks of the events. Each leads to its event in the page.
fn pins(timeline: &Timeline, frame: Frame) -> String {
    let mut pins = String::new();
    let at = |event: &Event| frame.x(timeline.points[event.number].at) / WIDTH * 100.0;
    let mut rest = timeline.events.as_slice();
    while let [first, ..] = rest {
        let near = rest.iter().take_while(|event| at(event) - at(first) < NEAR).count().max(1);
        let (these, later) = rest.split_at(near);
        rest = later;
        // The mark is that of the most important one.
        let chief = these.iter().min_by_key(|event| order(&event.kind)).unwrap_or(first);
        let names = match these {
            [one] => name(&one.kind).to_owned(),
            several => format!("{} events, the first: {}", several.len(), name(&first.kind)),
        };
        let letter = if these.len() > 1 { these.len().to_string() } else { letter(&chief.kind).to_owned() };
        let _ = writeln!(
            pins,
            "<a class=\"pin {}\" href=\"#e{}\" style=\"left:{:.1}%\" title=\"{names}\" aria-label=\"{names}\">{letter}</a>",
            class(&chief.kind),
            first.number,
            at(first),
        );
    }
    pins
}

/// The name of a kind of event.
pub(super) fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Compaction(_) => "Compaction",
        Kind::Reset { .. } => "Reset",
        Kind::Branch { .. } => "Branch summary",
        Kind::Pruning { .. } => "Pruning",
        Kind::Recovery { .. } => "Recovery",
        Kind::Undo { .. } => "Undo",
        Kind::Model { .. } => "Change of the model",
    }
}

fn class(kind: &Kind) -> &'static str {
    match kind {
        Kind::Compaction(_) => "compaction",
        Kind::Recovery { .. } => "recovery",
        Kind::Pruning { .. } => "pruning",
        _ => "other",
    }
}

fn letter(kind: &Kind) -> &'static str {
    match kind {
        Kind::Compaction(_) => "C",
        Kind::Recovery { .. } => "R",
        Kind::Reset { .. } => "0",
        Kind::Pruning { .. } => "P",
        Kind::Undo { .. } => "U",
        Kind::Branch { .. } => "B",
        Kind::Model { .. } => "M",
    }
}

fn order(kind: &Kind) -> usize {
    ["R", "C", "0", "P", "U", "B", "M"].iter().position(|it| *it == letter(kind)).unwrap_or(usize::MAX)
}

/// The meaning of the lines and of the marks that the drawing has.
fn legend(timeline: &Timeline, has_branches: bool, is_above: bool, window: u64) -> String {
    let mut legend = String::from("<ul class=\"legend\">\n<li><i class=\"size\"></i>context</li>\n");
    legend.push_str("<li><i class=\"threshold\"></i>threshold</li>\n");
    let _ = match is_above {
        true => writeln!(legend, "<li>window {}, above the drawing</li>", grouped(&window.to_string())),
        false => writeln!(legend, "<li><i class=\"window\"></i>window</li>"),
    };
    if has_branches {
        legend.push_str("<li><i class=\"aside\"></i>other branches</li>\n");
    }
    let mut kinds: Vec<&Kind> = Vec::new();
    for kind in timeline.events.iter().map(|event| &event.kind) {
        if !kinds.iter().any(|known| letter(known) == letter(kind)) {
            kinds.push(kind);
        }
    }
    kinds.sort_by_key(|kind| order(kind));
    for kind in kinds {
        let name = name(kind).to_lowercase();
        let _ = writeln!(legend, "<li><span class=\"pin {}\">{}</span>{name}</li>", class(kind), letter(kind));
    }
    legend.push_str("<li>a number: several events</li>\n</ul>\n");
    legend
}

/// The drawing in words, for a reader that does not see it.
fn described(timeline: &Timeline, steps: &[(u32, Limits)], largest: u64) -> String {
    let limits = steps.last().map(|(_, limits)| {
        format!(
            "; the threshold is {} and the window {}",
            grouped(&limits.threshold.to_string()),
            grouped(&limits.window.to_string())
        )
    });
    format!(
        "The size of the context over {} entries, {} tokens at most{}.",
        grouped(&timeline.entries.to_string()),
        grouped(&largest.to_string()),
        limits.unwrap_or_default()
    )
}

/// The next number above with one or two digits and zeros.
fn round_up(tokens: u64) -> u64 {
    let mut unit = 1;
    while tokens / unit > 100 {
        unit *= 10;
    }
    tokens.div_ceil(unit * 4) * unit * 4
}

/// The day and the minute of a time.
pub(super) fn day(time: &str) -> String {
    time.get(..16).filter(|_| time.len() >= 19).unwrap_or(time).replacen('T', " ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::report::timeline::tests::{entry, timeline, user};
    use serde_json::json;

    fn same(window: u64, threshold: u64) -> impl Fn(Option<&ModelRef>) -> Limits {
        move |_| Limits { window, threshold }
    }

    #[test]
    fn a_long_line_keeps_its_peaks() {
        let points: Vec<Point> = (0..100_000)
            .map(|at| (f64::from(at) / 100.0, if at == 54_321 { 1.0 } else { 200.0 + f64::from(at % 7) }))
            .collect();
        let thin = thinned(&points);
        assert!(thin.len() <= 4 * 1_000, "{}", thin.len());
        assert!(thin.contains(&(543.21, 1.0)));
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
        assert!(thin.is_sorted_by_key(|point| point.0));
    }

    #[test]
    fn limits_change_with_the_model() {
        let change = entry("model_change", "m", "b", json!({"provider": "p", "modelId": "small"}));
        let first = entry("model_change", "l", "a", json!({"provider": "p", "modelId": "large"}));
        let timeline = timeline(&[user("a", ""), first, user("b", "l"), change]);
        let limits = |model: Option<&ModelRef>| match model.map(|model| model.id.as_str()) {
            Some("small") => Limits { window: 1_000, threshold: 800 },
            Some(_) => Limits { window: 2_000, threshold: 1_600 },
            None => Limits { window: 7, threshold: 7 },
        };
        let steps = steps(&timeline, &[0, 1, 2, 3], limits);
        let windows: Vec<(u32, u64)> = steps.iter().map(|(at, limits)| (*at, limits.window)).collect();
        assert_eq!(windows, [(1, 2_000), (4, 1_000)], "the entries before the first model were made for it");
    }

    #[test]
    fn a_window_far_above_the_context_does_not_press_it_to_the_ground() {
        let timeline = timeline(&[user("a", ""), user("b", "a")]);
        let drawn = draw(&timeline, &[0, 1], same(1_000_000, 850_000));
        assert!(drawn.contains("window 1,000,000, above the drawing") && !drawn.contains("<path class=\"window\""));
        let drawn = draw(&timeline, &[0, 1], same(800, 600));
        assert!(drawn.contains("<path class=\"window\"") && drawn.contains("<path class=\"threshold\""));
    }

    #[test]
    fn events_that_are_near_share_a_mark() {
        let mut lines = vec![user("a", "")];
        for number in 0..400 {
            let parent = if number == 0 { "a".to_owned() } else { format!("s{}", number - 1) };
            lines.push(entry("reset_boundary", &format!("s{number}"), &parent, json!({})));
        }
        let timeline = timeline(&lines);
        let drawn = pins(&timeline, Frame { last: timeline.entries, top: 1 });
        let marks = drawn.matches("<a class=\"pin").count();
        assert!((20..=26).contains(&marks), "{marks}");
        let named: usize = drawn.matches("aria-label=\"").count();
        assert_eq!(named, marks);
    }

    #[test]
    fn the_top_is_a_round_number() {
        for (tokens, top) in [(1, 4), (37_000, 40_000), (199_999, 200_000), (1_000_000, 1_000_000)] {
            assert_eq!(round_up(tokens), top, "{tokens}");
        }
    }
}
