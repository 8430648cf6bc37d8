//! The messages of a request, up to a limit.

use super::GivenMessage;
use serde::{
    Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use std::fmt;

/// The most messages of one append. With so many small ones a session takes some 100 MB while they are written.
pub const MOST_MESSAGES: usize = 50_000;

/// The messages of an append, up to the limit. One over it ends the reading.
///
/// # Errors
/// When the value is no list, or has more messages.
pub(super) fn read<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<GivenMessage>, D::Error> {
    struct Messages;
    impl<'de> Visitor<'de> for Messages {
        type Value = Vec<GivenMessage>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of messages")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut messages = Vec::new();
            while let Some(message) = items.next_element()? {
                if messages.len() == MOST_MESSAGES {
                    let what =
                        format_args!("a request has at most {MOST_MESSAGES} messages; send the rest in another one");
                    return Err(A::Error::custom(what));
                }
                messages.push(message);
            }
            Ok(messages)
        }
    }
    reader.deserialize_seq(Messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of(count: usize) -> Result<usize, String> {
        let text = format!("[{}0]", "0,".repeat(count - 1));
        let mut reader = serde_json::Deserializer::from_str(&text);
        read(&mut reader).map(|messages| messages.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_append_with_more_messages_than_the_limit_is_refused_with_the_next_step() {
        assert_eq!(length_of(MOST_MESSAGES), Ok(MOST_MESSAGES));
        let error = length_of(MOST_MESSAGES + 1).expect_err("one too many");
        assert!(error.contains("at most 50000 messages; send the rest in another one"), "{error}");
    }
}
