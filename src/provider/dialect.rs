//! The dialect of a model: the differences between models that share a wire format. A codec follows the dialect and never
//! reads a model's name.

use super::{anthropic, google, openai_chat, openai_responses};

/// A model as a request names it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    /// The model's name at its provider.
    pub id: String,
    /// Its dialect in each wire format.
    pub dialect: Dialect,
}

/// The dialect of a model in each wire format. The default suits a model that nothing is known of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dialect {
    /// In Anthropic's Messages.
    pub anthropic: anthropic::Dialect,
    /// In OpenAI's Chat Completions.
    pub openai_chat: openai_chat::Dialect,
    /// In OpenAI's Responses.
    pub openai_responses: openai_responses::Dialect,
    /// In Google's `generateContent`.
    pub google: google::Dialect,
}
