//! Blocks of quoted text in Markdown.

/// The line that opens a block of code: at least three backticks or tildes, and the name of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::summary) struct Fence {
    mark: char,
    /// The number of marks.
    length: usize,
}

impl Fence {
    /// The fence that a line without indentation opens. A line with marks at both ends is text.
    pub(in crate::summary) fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|char| matches!(char, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        (length >= 3 && !rest.contains(mark)).then_some(Self { mark, length })
    }

    /// Whether a line without indentation closes the block.
    pub(in crate::summary) fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim_end();
        line.len() >= self.length && line.chars().all(|char| char == self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
