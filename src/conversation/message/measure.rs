//! Sizes of a message: the cheap estimate by characters, and the count by the tokenizer.

use super::{Block, Message};
use crate::conversation::tokens::{self, Size};

/// Tokens of a message beside its content (role, separators), as OpenAI documents them for chat models.
const PER_MESSAGE: u32 = 4;

impl Message {
    /// The size of the message by characters; the tokenizer counts when it is asked.
    #[must_use]
    pub fn size(&self) -> Size {
        Size::of_chars(self.chars())
    }

    /// Characters that the peers' estimate is a quarter of: the UTF-16 length, an image as 4,800 characters.
    #[must_use]
    pub fn chars(&self) -> usize {
        match self {
            Self::Execution(run) if run.excluded => 0,
            Self::Execution(run) => tokens::utf16_len(&run.command) + tokens::utf16_len(&run.output),
            Self::Summary(text) => tokens::utf16_len(text),
            _ => self.blocks().iter().map(chars_of_block).sum(),
        }
    }

    /// The part of `chars` that a provider may count otherwise or leave out of later requests: images and thinking.
    #[must_use]
    pub fn loose_chars(&self) -> usize {
        let loose = |block: &&Block| matches!(block, Block::Thinking { .. } | Block::Image(_));
        self.blocks().iter().filter(loose).map(chars_of_block).sum()
    }

    /// Tokens of the message by the tokenizer, images by their dimensions.
    #[must_use]
    pub fn count(&self) -> u32 {
        let content: u32 = match self {
            Self::Execution(run) if run.excluded => return 0,
            Self::Execution(run) => tokens::of_text(&run.command) + tokens::of_text(&run.output),
            Self::Summary(text) => tokens::of_text(text),
            _ => self.blocks().iter().map(count_of_block).sum(),
        };
        content + PER_MESSAGE
    }
}

fn chars_of_block(block: &Block) -> usize {
    match block {
        Block::Text(text) | Block::Thinking { text, .. } => tokens::utf16_len(text),
        Block::ToolCall(call) => tokens::utf16_len(&call.name) + tokens::utf16_len(&call.arguments),
        Block::Image(_) => tokens::IMAGE_CHARS,
        Block::Other(bytes) => *bytes,
    }
}

fn count_of_block(block: &Block) -> u32 {
    match block {
        Block::Text(text) | Block::Thinking { text, .. } => tokens::of_text(text),
        Block::ToolCall(call) => tokens::of_text(&call.name) + tokens::of_text(&call.arguments),
        Block::Image(image) => image.tokens,
        Block::Other(bytes) => tokens::of_chars(*bytes),
    }
}
