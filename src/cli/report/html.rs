//! Text in a page. Text of a session is data: it passes `text` and cannot become markup.

use crate::cli::print::{plain, printable};
use std::fmt::Write as _;

/// A text of several lines in the content of an element or in a quoted attribute.
pub(super) fn text(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            char => escaped.push(char),
        }
    }
    escaped
}

/// The same on one line.
pub(super) fn line(line: &str) -> String {
    text(&plain(line))
}

/// A page without scripts that loads nothing. A browser is told so, too.
pub(super) fn page(title: &str, body: &str) -> String {
    let mut page = String::with_capacity(body.len() + 16_000);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{MARK}\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n{body}\
         </body>\n</html>\n",
        line(title),
        include_str!("report.css"),
    );
    page
}

/// The line that tells a report from any other file.
pub(super) const MARK: &str = "<meta name=\"generator\" content=\"abridged report\">";

/// An argument of a shell that it takes as it is.
pub(super) fn argument(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+:@%,".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_no_markup() {
        assert_eq!(text("<script>\"a\" & 'b'\n\u{202e}c"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;\nc");
        assert_eq!(line("a\nb"), "a b");
        assert!(!page("</title><script>", "").contains("<script>"));
    }

    #[test]
    fn an_argument_is_quoted_where_a_shell_would_read_it() {
        assert_eq!(argument("/a/b-1.jsonl"), "/a/b-1.jsonl");
        assert_eq!(argument("/a b/$(c)'d"), "'/a b/$(c)'\\''d'");
        assert_eq!(argument(""), "''");
    }
}
