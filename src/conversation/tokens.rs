//! Sizes of texts and images in tokens. These are estimates: a report of the provider has precedence. `Scale` turns
//! estimates into the sizes of one session, and `calibration` learns its factor from reports.

pub mod calibration;
mod memo;
mod scale;

pub use scale::Scale;

use std::sync::OnceLock;
use tiktoken_rs::CoreBPE;

/// Bytes fed to the tokenizer at once. Its regular expression overflows a fixed stack on about 700,000 blanks in a
/// row; pieces of this size cost 0.01 % accuracy and make every input linear.
const PIECE: usize = 32 * 1024;

/// An image whose dimensions cannot be read, in tokens: what the peers charge for any image.
const UNKNOWN_IMAGE: u32 = 1_200;

/// The largest any provider charges for one image after scaling it down (Anthropic's published cap), in tokens.
const LARGEST_IMAGE: u32 = 1_600;

/// A method of estimation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimator {
    /// OpenAI's `o200k_base` vocabulary: the best known for every other model too.
    Tiktoken,
    /// A quarter of the UTF-16 length, as pi counts: makes cut points comparable with its.
    Chars,
}

/// Both estimates of one entry. The cheap one is made at once; the other when it is first asked for, and then kept.
#[derive(Debug, Default)]
pub struct Size {
    chars: u32,
    counted: OnceLock<u32>,
}

impl Estimator {
    /// Its name on the wire and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tiktoken => "o200k_base",
            Self::Chars => "chars",
        }
    }

    /// The estimate of a text, in tokens. With `Tiktoken` it counts, which may take a while.
    #[must_use]
    pub fn of_text(self, text: &str) -> u64 {
        u64::from(match self {
            Self::Tiktoken => of_text(text),
            Self::Chars => of_chars(utf16_len(text)),
        })
    }
}

impl Size {
    /// The size of something with so many UTF-16 code units.
    #[must_use]
    pub fn of_chars(chars: usize) -> Self {
        Self { chars: of_chars(chars), counted: OnceLock::new() }
    }

    /// The size of a text that becomes a message.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self { chars: of_chars(utf16_len(text)), counted: OnceLock::new() }
    }

    /// Nothing at all: what metadata costs.
    #[must_use]
    pub fn nothing() -> Self {
        Self { chars: 0, counted: OnceLock::from(0) }
    }

    /// The quarter of the UTF-16 length, images by the peers' constant.
    #[must_use]
    pub fn chars(&self) -> u32 {
        self.chars
    }

    /// The estimate by an estimator, in tokens. With `Tiktoken` the first call counts with `count`, which may take a while:
    /// never in a session's actor.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator, count: impl FnOnce() -> u32) -> u32 {
        match estimator {
            Estimator::Chars => self.chars,
            Estimator::Tiktoken => self.counted(count),
        }
    }

    /// The estimate by an estimator, in tokens; `None` if it was not counted yet.
    #[must_use]
    pub fn known(&self, estimator: Estimator) -> Option<u32> {
        match estimator {
            Estimator::Chars => Some(self.chars),
            Estimator::Tiktoken => self.counted.get().copied(),
        }
    }

    /// The tokenizer's count. The first call counts with `count`.
    pub fn counted(&self, count: impl FnOnce() -> u32) -> u32 {
        *self.counted.get_or_init(count)
    }
}

/// Whether the tokenizer's tables are in memory. They take about 150 ms and 49 MB, so nobody waits for them who
/// does not need them.
#[must_use]
pub fn ready() -> bool {
    TABLES.get().is_some()
}

/// Loads the tokenizer's tables; returns when they are there.
pub fn load() {
    tables();
}

static TABLES: OnceLock<&'static CoreBPE> = OnceLock::new();

fn tables() -> &'static CoreBPE {
    TABLES.get_or_init(tiktoken_rs::o200k_base_singleton)
}

/// Tokens of `text` by the tokenizer.
#[must_use]
pub fn of_text(text: &str) -> u32 {
    memo::of_text(text, count)
}

fn count(text: &str) -> u32 {
    let mut rest = text;
    let mut total = 0_usize;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(piece_end(rest));
        total += tables().count_ordinary(piece);
        rest = tail;
    }
    u32::try_from(total).unwrap_or(u32::MAX)
}

/// Where the next piece ends: before the last newline in it, else before the last blank, else on a character.
fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let mut end = PIECE;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let window = &text.as_bytes()[..end];
    match memchr::memrchr(b'\n', window).or_else(|| memchr::memrchr(b' ', window)) {
        Some(at) if at > 0 => at,
        _ => end,
    }
}

/// An image in the peers' estimate, in characters.
pub const IMAGE_CHARS: usize = 4 * UNKNOWN_IMAGE as usize;

/// Code units of the text in UTF-16: one for each character, two for those that take four bytes in UTF-8.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.bytes().map(|byte| usize::from(byte & 0xC0 != 0x80) + usize::from(byte >= 0xF0)).sum()
}

/// Tokens of so many UTF-16 code units by the peers' estimate: a quarter, rounded up.
#[must_use]
pub fn of_chars(chars: usize) -> u32 {
    u32::try_from(chars.div_ceil(4)).unwrap_or(u32::MAX)
}

/// Tokens of an image, from the dimensions in the head of its base64 data: a token for each 750 pixels (Anthropic's
/// published rule; the other providers' tiles come out near it), at most what a scaled-down image costs.
#[must_use]
pub fn of_image(base64_data: &str) -> u32 {
    use base64::{Engine, engine::general_purpose::STANDARD};
    /// Enough for the header of each format; JPEG may put its dimensions after a thumbnail.
    const HEAD: usize = 64 * 1024;
    let mut end = base64_data.len().min(HEAD) / 4 * 4;
    while !base64_data.is_char_boundary(end) {
        end -= 1;
    }
    let Ok(bytes) = STANDARD.decode(&base64_data[..end]) else {
        return UNKNOWN_IMAGE;
    };
    match imagesize::blob_size(&bytes) {
        Ok(size) => {
            let tokens = (size.width as u64).saturating_mul(size.height as u64).div_ceil(750);
            u32::try_from(tokens).unwrap_or(u32::MAX).clamp(1, LARGEST_IMAGE)
        }
        Err(_) => UNKNOWN_IMAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabyte_of_blanks_is_counted_and_not_a_panic() {
        assert!(of_text(&" ".repeat(1 << 20)) > 1_000);
        assert!(of_text(&"\n".repeat(1 << 18)) > 1_000);
    }

    #[test]
    fn pieces_change_the_count_by_next_to_nothing() {
        let text = "fn main() { println!(\"hello, world\"); }\nlet answer = 42;\n".repeat(4_000);
        let whole = tables().count_ordinary(&text) as f64;
        let pieces = f64::from(of_text(&text));
        assert!((pieces / whole - 1.0).abs() < 0.001, "{pieces} against {whole}");
    }

    #[test]
    fn utf16_length_is_what_javascript_says() {
        for text in ["", "plain", "Grüße", "日本語", "😀 mixed 𝄞"] {
            assert_eq!(utf16_len(text), text.encode_utf16().count(), "{text}");
        }
    }

    #[test]
    fn images_cost_by_their_size() {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let png = |width: u32, height: u32| {
            let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
            bytes.extend(width.to_be_bytes());
            bytes.extend(height.to_be_bytes());
            bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
            STANDARD.encode(bytes)
        };
        assert_eq!(of_image(&png(300, 300)), 120);
        assert_eq!(of_image(&png(8000, 8000)), LARGEST_IMAGE);
        assert_eq!(of_image("no image at all"), UNKNOWN_IMAGE);
    }
}
