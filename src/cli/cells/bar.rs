//! A window as a bar with its threshold.

use crate::cli::paint::Paint;
use serde_json::Value;

/// The bar of a `usage`, in so many cells. It is red over the threshold.
pub(in crate::cli) fn bar(usage: &Value, cells: u64, paint: &Paint) -> String {
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    let window = number("contextWindow").max(1);
    let at = |tokens: u64| (tokens.saturating_mul(cells) / window).min(cells);
    let (filled, threshold) = (at(number("contextTokens")), at(number("thresholdTokens")));
    let cell = |cell: u64| match () {
        () if cell == threshold => '│',
        () if cell < filled => '█',
        () => '░',
    };
    let over = number("contextTokens") > number("thresholdTokens");
    let cells: String = (0..cells).map(cell).collect();
    let cells = if over { paint.red(&cells) } else { paint.green(&cells) };
    format!("▕{cells}▏")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bar_shows_the_size_and_the_threshold_of_the_window() {
        let of = |tokens: u64, window: u64| {
            let usage = json!({"contextTokens": tokens, "contextWindow": window, "thresholdTokens": 6_000});
            bar(&usage, 20, &Paint::off())
        };
        assert_eq!(of(4_000, 8_000), "▕██████████░░░░░│░░░░▏");
        assert_eq!(of(9_000, 8_000), "▕███████████████│████▏");
        assert_eq!(of(0, 0), "▕░░░░░░░░░░░░░░░░░░░░▏");
    }
}
