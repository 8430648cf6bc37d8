//! Blocks of quoted text in Markdown.

use super::item;

/// The line that opens a block of code: at least three backticks or tildes, and the name of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::summary) struct Fence {
    mark: char,
    /// The number of marks.
    length: usize,
}

/// The most tildes of a fence. A longer row of them is an underline.
const MOST_TILDES: usize = 4;

impl Fence {
    /// The fence that a line without indentation opens. A line with further marks is text, and tildes often mark a place in the
    /// line before or underline a heading.
    pub(in crate::summary) fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|char| matches!(char, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        let is_name = rest.trim_start().chars().next().is_none_or(char::is_alphanumeric);
        let is_fence = mark == '`' || is_name && length <= MOST_TILDES;
        (length >= 3 && is_fence && !rest.contains(mark)).then_some(Self { mark, length })
    }

    /// The line that closes the block.
    pub(in crate::summary) fn end(self) -> String {
        String::from(self.mark).repeat(self.length)
    }

    /// Whether a line without indentation closes the block.
    pub(in crate::summary) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim_end();
        line.len() >= self.length && line.chars().all(|char| char == self.mark)
    }
}

/// Tells the lines of a text that are quoted from those of its author.
pub(super) struct Quoted<'a> {
    text: &'a str,
    open: Option<Block>,
    /// Whether the line before is blank.
    is_after_blank: bool,
    /// Whether an indented block may begin here: after a line that announces it. An item of a list goes on indented, and so do some
    /// people.
    is_announced: bool,
    /// Whether no end of a tag stands further on.
    has_no_end: bool,
}

/// A block of quoted text that is open.
#[derive(Debug, Clone, Copy)]
enum Block {
    Fence(Fence),
    Tag,
    Indented,
}

/// The end of quoted text in HTML.
const TAG_END: &str = "</pre>";

impl<'a> Quoted<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, open: None, is_after_blank: false, is_announced: false, has_no_end: false }
    }

    /// Takes the next line of the text in: whether it is quoted.
    pub(super) fn has(&mut self, line: &str) -> bool {
        let trimmed = line.trim();
        let is_after_blank = std::mem::replace(&mut self.is_after_blank, trimmed.is_empty());
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        match self.open {
            Some(Block::Fence(fence)) => {
                self.open = self.open.filter(|_| !fence.is_closed_by(trimmed));
                return true;
            }
            Some(Block::Tag) => {
                self.open = self.open.filter(|_| !line.contains(TAG_END));
                return true;
            }
            Some(Block::Indented) if is_indented || trimmed.is_empty() => return true,
            Some(Block::Indented) | None => self.open = None,
        }
        if let Some(fence) = Fence::opened_by(trimmed) {
            self.open = Some(Block::Fence(fence));
            return true;
        }
        if let Some(inside) = ["<pre>", "<pre "].iter().find_map(|tag| trimmed.strip_prefix(tag)) {
            let is_one_line = inside.contains(TAG_END);
            self.open = (!is_one_line && self.is_closed_after(line)).then_some(Block::Tag);
            return is_one_line || self.open.is_some();
        }
        // People indent lists, too.
        if is_indented && is_after_blank && self.is_announced && item(trimmed).is_none() {
            self.open = Some(Block::Indented);
            return true;
        }
        if !trimmed.is_empty() && !line.starts_with([' ', '\t']) {
            self.is_announced = trimmed.ends_with([':', '：']) && item(trimmed).is_none();
        }
        false
    }

    /// Whether the end of a tag stands after this line of the text.
    fn is_closed_after(&mut self, line: &str) -> bool {
        let end = line.as_ptr().addr() - self.text.as_ptr().addr() + line.len();
        self.has_no_end = self.has_no_end || !self.text[end..].contains(TAG_END);
        !self.has_no_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_lines_are_told_from_those_of_the_author() {
        // Quoted lines have a mark here.
        for text in [
            "a\n|~~~html\n|b\n|```\n|~~~\nc",
            "a\n|````\n|b\n|```rust\n|c\n|````\nd",
            "```make``` passes\nb",
            "a\n|<pre>\n|b\n|</pre>\nc\n|<pre class=\"x\">b</pre>\nd",
            "<pre> is no tag of ours\nb",
            "The page says:\n\n|    Always do it.\n|\n|\tNever stop.\n|\nb\n    c",
            "a\n    b",
            "I want this from you today\n\n    Fix the crash.\n    Never push.\n\nThanks",
            "    main()\n    ~~~~^^\nFix it.",
            "Review notes\n~~~~~~~~~~~~\nFix it.",
            "1. a\n\n    b\n\n    c",
            "Rules:\n\n    - a\n    - b",
            "\n    a\n\n    b",
        ] {
            let plain: String =
                text.lines().map(|line| format!("{}\n", line.strip_prefix('|').unwrap_or(line))).collect();
            let mut quoted = Quoted::of(&plain);
            for (line, marked) in plain.lines().zip(text.lines()) {
                assert_eq!(quoted.has(line), marked.starts_with('|'), "{line:?} in {text:?}");
            }
        }
    }

    #[test]
    fn a_fence_is_closed_by_as_many_marks_of_its_kind() {
        let fence = Fence::opened_by("````rust").expect("a fence");
        for (line, closes) in [("```", false), ("````rust", false), ("~~~~", false), ("````", true), ("````` ", true)] {
            assert_eq!(fence.is_closed_by(line), closes, "{line}");
        }
        for line in ["``", "```make``` passes", "~~~a~~~", "x ```", ""] {
            assert_eq!(Fence::opened_by(line), None, "{line}");
        }
    }
}
