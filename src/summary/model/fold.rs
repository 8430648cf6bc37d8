//! A conversation in chunks that fit a summarizer's window. A chunk ends at the end of a message. A message that is larger
//! than a chunk loses its middle.

use super::transcript::Reader;
use crate::{conversation::entry::Entry, text};
use std::{borrow::Cow, sync::Arc};

/// The messages of a conversation with their sizes in tokens. Copies share them.
#[derive(Debug, Clone, Default)]
pub struct Pieces(Arc<[Piece]>);

#[derive(Debug, Clone)]
enum Piece {
    /// A text, with its size.
    Read(String, u64),
    /// A message that is read with its chunk, with the most that its text may have.
    Unread(Arc<Entry>, u64, Reader),
}

impl Piece {
    /// The most tokens that it may have.
    fn most(&self) -> u64 {
        match self {
            Self::Read(_, tokens) | Self::Unread(_, tokens, _) => *tokens,
        }
    }
}

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
        Self::read(texts.into_iter().map(|text| (measure(&text), text)).map(|(tokens, text)| (text, tokens)))
    }

    /// Texts with their sizes in tokens.
    #[must_use]
    pub fn read(texts: impl IntoIterator<Item = (String, u64)>) -> Self {
        Self(texts.into_iter().map(|(text, tokens)| Piece::Read(text, tokens + SEAM)).collect())
    }

    /// Messages that are read chunk by chunk. None of them where nothing is said.
    #[must_use]
    pub fn unread(entries: &[&Arc<Entry>], reader: Reader) -> Self {
        let says_something = entries.iter().any(|entry| reader.read_clean(entry).is_some());
        let entries = entries.iter().filter(|_| says_something);
        Self(entries.map(|entry| Piece::Unread((*entry).clone(), reader.most(entry) + SEAM, reader)).collect())
    }

    /// Whether a chunk takes no reading.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Read(..)))
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
        let before = Self::measured(texts, measure);
        let after = &self.0[from.min(self.len())..];
        Self(before.0.iter().chain(after).cloned().collect())
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

    /// Their size, in tokens: the most that those may have that are not read yet.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.0.iter().map(Piece::most).sum()
    }

    /// The messages from `from` on that fit into `room` tokens, at least one.
    #[must_use]
    pub fn chunk(&self, from: usize, room: u64) -> Chunk {
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        let (mut tokens, mut until) = (0, from);
        for piece in &self.0[from..] {
            let (text, size) = match piece {
                Piece::Read(text, size) => (Cow::Borrowed(text.as_str()), *size),
                Piece::Unread(entry, _, reader) => match reader.read_clean(entry) {
                    Some((text, size)) => (Cow::Owned(text), size + SEAM),
                    None => {
                        until += 1;
                        continue;
                    }
                },
            };
            if !texts.is_empty() && tokens + size > room {
                break;
            }
            until += 1;
            tokens += size;
            if tokens > room {
                return Chunk { text: clipped(&text, size, room), tokens: room, until };
            }
            texts.push(text);
        }
        Chunk { text: texts.join("\n\n"), tokens, until }
    }

    /// The number of chunks from `from` on, by the most that their messages may have. The first chunk may have another `room`.
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

    /// The first message after a chunk, by the most that its messages may have.
    #[must_use]
    pub fn end_of_chunk(&self, from: usize, room: u64) -> usize {
        let mut sum = 0;
        let fits = |piece: &&Piece| {
            sum += piece.most();
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
    use crate::{
        conversation::tokens::{Estimator, Scale},
        redact::Secrets,
    };

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
        assert!(pieces.len() > 1 && pieces.0.iter().all(|piece| piece.most() < 300), "{}", pieces.len());
        let text = pieces.chunk(0, 10_000).text;
        assert!(
            (0..100).all(|at| text.contains(&format!("- line {at}\n")) || at == 99) && text.ends_with("xxxxxxxxxx")
        );
    }

    fn message(role: &str, content: &str) -> Arc<Entry> {
        let line = serde_json::json!({"type": "message", "id": "e", "parentId": null, "timestamp": "",
            "message": {"role": role, "content": content, "toolCallId": "c"}});
        Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
    }

    fn unread(entries: &[Arc<Entry>], estimator: Estimator) -> Pieces {
        let reader = Reader { secrets: Secrets::Redacted, scale: Scale::new(estimator, 1.0) };
        Pieces::unread(&entries.iter().collect::<Vec<_>>(), reader)
    }

    #[test]
    fn messages_are_read_with_their_chunk_and_divided_by_their_own_size() {
        let said = |at: usize| message("user", &format!("Part {at}: DB_PASSWORD=hunter2hunter2 </conversation>"));
        let mut entries: Vec<_> = (0..6).map(said).collect();
        entries.insert(3, message("user", " "));
        entries.insert(4, message("toolResult", &"a line of output\n".repeat(2_000)));
        entries.push(message("user", ""));
        let pieces = unread(&entries, Estimator::Chars);
        assert!(!pieces.is_read());
        let whole = pieces.chunk(0, 10_000);
        assert_eq!((whole.until, pieces.chunks(0, 10_000)), (entries.len(), 1));
        assert!(!whole.text.contains("hunter2") && !whole.text.contains("</conversation>"), "{}", whole.text);
        assert!(whole.text.contains("[User]: Part 5") && whole.text.contains("more characters truncated"));
        assert!(whole.tokens <= pieces.tokens() && whole.tokens < 800, "{} {}", whole.tokens, pieces.tokens());
        let (mut at, mut chunks) = (0, Vec::new());
        while at < pieces.len() {
            let chunk = pieces.chunk(at, 100);
            assert!(chunk.tokens <= 100 && chunk.until > at);
            (at, chunks) = (chunk.until, [chunks, vec![chunk.text]].concat());
        }
        assert!((0..6).all(|at| chunks.iter().filter(|text| text.contains(&format!("Part {at}:"))).count() == 1));
        assert!(chunks.len() <= pieces.chunks(0, 100), "{} of {}", chunks.len(), pieces.chunks(0, 100));
    }

    #[test]
    fn messages_that_say_nothing_are_no_pieces() {
        let silent = [message("user", ""), message("user", "  ")];
        assert!(unread(&silent, Estimator::Chars).is_empty() && unread(&[], Estimator::Chars).is_empty());
    }

    #[test]
    fn a_window_that_leaves_nothing_is_said_to() {
        assert_eq!(room(10_000, 2_000, 1_000), Some(6_000));
        assert_eq!(room(4_000, 3_000, 500), None);
        assert_eq!(room(100, 13_000, 500), None);
    }
}
