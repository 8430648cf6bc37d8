//! The curve of contextual recall over the budget, as an SVG image.

use super::{BUDGETS, OURS, Row, baselines, mean};
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Room for the axes, and for the names of the lines.
const LEFT: f64 = 48.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 40.0;

/// The image of all methods: the means over the sessions.
pub fn drawn(rows: &[Row]) -> String {
    let x = |at: usize| LEFT + (WIDTH - LEFT - RIGHT) * at as f64 / (BUDGETS.len() - 1) as f64;
    let y = |share: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Contextual recall over the budget of a summary</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for tenth in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/><text x=\"8\" y=\"{:.1}\" fill=\"#555\">{tenth:.2}</text>",
            WIDTH - RIGHT,
            y(tenth),
            y(tenth),
            y(tenth) + 4.0
        );
    }
    for (at, budget) in BUDGETS.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{budget} tokens</text>",
            x(at),
            HEIGHT - 14.0
        );
    }
    let colours = ["#0b5", "#c33", "#e80", "#05c", "#83b", "#088", "#975", "#999"];
    let mut ends: Vec<(f64, usize, &str)> = Vec::new();
    let methods = std::iter::once(OURS).chain(baselines::METHODS.iter().map(|method| method.0));
    for (number, method) in methods.enumerate() {
        let share = |budget: u64| {
            mean(rows.iter().filter(|row| row.method == method && row.budget == budget).map(|row| row.measures.context))
        };
        let points: Vec<(f64, f64)> =
            BUDGETS.iter().enumerate().map(|(at, budget)| (x(at), y(share(*budget)))).collect();
        if points.iter().any(|(_, y)| y.is_nan()) {
            continue;
        }
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.0},{y:.1}")).collect();
        let width = if method == OURS { 3 } else { 1 };
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"/>",
            line.join(" "),
            colours[number]
        );
        ends.push((points[points.len() - 1].1, number, method));
    }
    // The names beside the ends of their lines, each below the one before.
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut lowest = 0.0_f64;
    for (end, number, method) in ends {
        lowest = (lowest + 14.0).max(end + 4.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{lowest:.1}\" fill=\"{}\">{method}</text>",
            WIDTH - RIGHT + 8.0,
            colours[number]
        );
    }
    svg + "</svg>\n"
}
