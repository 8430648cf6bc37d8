//! A conversation in chunks that fit a summarizer's window. A chunk ends at the end of a message. A message that is larger
//! than a chunk loses its middle.

use crate::text;

/// The messages of a conversation with their sizes in tokens.
#[derive(Debug, Clone, Default)]
pub struct Pieces(Vec<(String, u64)>);

/// The part of a conversation in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The messages, blank lines between.
    pub text: String,
    /// Its size in tokens, the sum of its messages.
    pub tokens: u64,
    /// The first message after it.
    pub until: usize,
}

/// Size of the separator between two messages, in tokens.
const SEAM: u64 = 2;

impl Pieces {
    /// Measures messages.
    #[must_use]
    pub fn measured(texts: Vec<String>, measure: &dyn Fn(&str) -> u64) -> Self {
        Self(texts.into_iter().map(|text| (measure(&text) + SEAM, text)).map(|(tokens, text)| (text, tokens)).collect())
    }

    /// The pieces from `from` on after those of a summary that is too large for one request. Each of its pieces has some
    /// of its lines.
    #[must_use]
    pub fn behind(&self, summary: &str, from: usize, measure: &dyn Fn(&str) -> u64) -> Self {
        /// Small enough for every window in use, in tokens.
        const PIECE: u64 = 250;
        let mut texts: Vec<String> = Vec::new();
        let mut piece = String::new();
        for line in summary.lines().filter(|line| !line.trim().is_empty()) {
            if !piece.is_empty() && measure(&piece) + measure(line) > PIECE {
                texts.push(std::mem::take(&mut piece));
            }
            piece.push_str(if piece.is_empty() { "[Summary of an earlier part]: " } else { "\n" });
            piece.push_str(line);
        }
        texts.extend(Some(piece).filter(|piece| !piece.is_empty()));
        let mut pieces = Self::measured(texts, measure);
        pieces.0.extend_from_slice(&self.0[from.min(self.0.len())..]);
        pieces
    }

    /// The number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their size, in tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.0.iter().map(|(_, tokens)| tokens).sum()
    }

    /// The messages from `from` on that fit into `room` tokens, at least one.
    #[must_use]
    pub fn chunk(&self, from: usize, room: u64) -> Chunk {
        let until = self.end_of_chunk(from, room);
        let texts: Vec<&str> = self.0[from..until].iter().map(|(text, _)| text.as_str()).collect();
        let text = match self.0.get(from) {
            Some((text, tokens)) if *tokens > room => clipped(text, *tokens, room),
            _ => texts.join("\n\n"),
        };
        let tokens = self.0[from..until].iter().map(|(_, tokens)| tokens).sum::<u64>().min(room);
        Chunk { text, tokens, until }
    }

    /// The number of chunks from `from` on.
    #[must_use]
    pub fn chunks(&self, from: usize, room: u64) -> usize {
        let mut at = from;
        let mut count = 0;
        while at < self.len() {
            at = self.end_of_chunk(at, room);
            count += 1;
        }
        count
    }

    fn end_of_chunk(&self, from: usize, room: u64) -> usize {
        let mut sum = 0;
        let fits = |(_, tokens): &&(String, u64)| {
            sum += tokens;
            sum <= room
        };
        let fitting = self.0[from..].iter().take_while(fits).count();
        (from + fitting.max(1)).min(self.len())
    }
}

/// A message of `tokens` tokens without its middle, so that it fits into `room`.
fn clipped(text: &str, tokens: u64, room: u64) -> String {
    const GAP: &str = "\n[… the middle of this message was left out …]\n";
    // Tokens are not spread evenly; a twentieth less is nearly always enough.
    let share = room.saturating_sub(20) as f64 / tokens as f64 * 0.95;
    text::clip_middle(text, (text.chars().count() as f64 * share) as usize, GAP)
}

/// Room for a conversation in a request to a summarizer, in tokens: nine tenths of its window, because estimates are
/// rough, without the answer and the text around the conversation. `None` if the room is too small for a useful summary.
#[must_use]
pub fn room(window: u64, answer: u64, around: u64) -> Option<u64> {
    /// A chunk smaller than this would be summarized into something larger than itself.
    const LEAST: u64 = 384;
    let room = (window * 9 / 10).saturating_sub(answer).saturating_sub(around);
    (room >= LEAST).then_some(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[usize]) -> Pieces {
        Pieces::measured(sizes.iter().map(|size| "x".repeat(*size)).collect(), &|text| text.len() as u64 - SEAM)
    }

    /// The sizes of the chunks, in messages.
    fn chunks(sizes: &[usize], room: u64) -> Vec<usize> {
        let pieces = pieces(sizes);
        let mut at = 0;
        let mut found = Vec::new();
        while at < pieces.len() {
            let chunk = pieces.chunk(at, room);
            found.push(chunk.until - at);
            at = chunk.until;
        }
        assert_eq!(found.len(), pieces.chunks(0, room));
        found
    }

    #[test]
    fn chunks_end_between_messages() {
        assert_eq!(chunks(&[10, 10, 10, 10, 10], 30), [3, 2]);
        assert_eq!(chunks(&[10, 25, 10], 30), [1, 1, 1]);
        assert_eq!(chunks(&[30], 30), [1]);
        assert_eq!(chunks(&[], 30), [0; 0]);
    }

    #[test]
    fn a_message_that_is_too_large_stands_alone_and_loses_its_middle() {
        assert_eq!(chunks(&[10, 9_000, 10], 1_000), [1, 1, 1]);
        let chunk = pieces(&[9_000]).chunk(0, 1_000);
        assert!(chunk.text.len() < 1_000, "{}", chunk.text.len());
        assert!(chunk.text.contains("the middle of this message was left out"));
    }

    #[test]
    fn a_summary_that_is_too_large_goes_before_the_rest() {
        let summary = (0..100).map(|at| format!("- line {at}\n")).collect::<String>();
        let pieces = pieces(&[10, 10]).behind(&summary, 1, &|text| text.len() as u64 / 4);
        assert!(pieces.len() > 1 && pieces.0.iter().all(|(_, tokens)| *tokens < 300), "{}", pieces.len());
        let text = pieces.chunk(0, 10_000).text;
        assert!(
            (0..100).all(|at| text.contains(&format!("- line {at}\n")) || at == 99) && text.ends_with("xxxxxxxxxx")
        );
    }

    #[test]
    fn a_window_that_leaves_nothing_is_said_to() {
        assert_eq!(room(10_000, 2_000, 1_000), Some(6_000));
        assert_eq!(room(4_000, 3_000, 500), None);
        assert_eq!(room(100, 13_000, 500), None);
    }
}
