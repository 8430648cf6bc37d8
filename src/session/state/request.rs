//! The request to a model for a path, as the next turn of the session sends it.

use super::View;
use crate::{
    compaction::native::{self, Unsent},
    conversation::{
        context::{self, ContextMessage, native::NativeForm, thinking},
        message::outline::Role,
        path::Path,
    },
    ids::{EntryId, SessionId},
    log::{blobs::Reading, error::StoreError, sealed::Blocking},
    models::{self, ModelRef},
    protocol::types::Usage,
    provider::{
        Api, Cache, Effort, Reasoning, Request, anthropic,
        turns::{Target, Thinking, turns_with},
    },
};
use std::collections::HashSet;

/// The request to a model for a path.
pub struct LiveRequest {
    /// The request.
    pub request: Request,
    /// The usage of the context in it.
    pub usage: Usage,
    /// Least input that a provider counts for it, in estimated tokens without any factor: its messages without images and
    /// thinking, system prompt and tools.
    pub solid: u64,
    /// Its input, in estimated tokens without any factor.
    pub tokens: u64,
    /// The compaction through which the context is seen.
    pub compaction: Option<EntryId>,
    /// The reason for which the provider's own compaction is not in it, where there is one.
    pub unsent: Option<Unsent>,
}

/// The part of a path in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The entries before this place. Their messages have the same bytes as in the whole.
    Before(usize),
}

impl View {
    /// The request for a path, to `model` in a wire format.
    ///
    /// # Errors
    /// `Stopped` where `blocking` is stopped first.
    pub fn live_request(
        &self,
        path: &Path,
        session: &SessionId,
        model: &ModelRef,
        api: Api,
        blocking: &Blocking,
    ) -> Result<LiveRequest, StoreError> {
        self.request_of(path, Extent::Whole, session, model, api, blocking)
    }

    /// The request for a part of a path, to `model` in a wire format.
    ///
    /// # Errors
    /// `Stopped` where `blocking` is stopped first.
    pub fn request_of(
        &self,
        path: &Path,
        extent: Extent,
        session: &SessionId,
        model: &ModelRef,
        api: Api,
        blocking: &Blocking,
    ) -> Result<LiveRequest, StoreError> {
        let context = context::build_while(path, self.prompts(), &|| blocking.go_on())?;
        let usage = Usage::of(&self.measure(path), path);
        let (system, tools) = self.instructions().tokens(self.estimator);
        let solid = context.estimate(self.estimator).solid + system + tools;
        let compaction = context.compaction().cloned();
        // Each step drops the one before: a context may have a hundred megabytes, and each step holds all of it.
        let mut images = Reading::of(self.blobs(), blocking);
        let target = Target { api, provider: &model.provider, model: &model.id };
        // The provider reads its own history better than the summary.
        let native = native::form(&context, path, self.reader(model, api));
        let unsent = native.and_then(Result::err);
        let native = native.and_then(Result::ok);
        let history = native.map(|native| native.history().items().to_vec()).unwrap_or_default();
        let messages = native.map_or_else(|| context.messages(), NativeForm::messages);
        let places = path.places();
        let is_before = |message: &&ContextMessage| match (extent, &message.entry) {
            (Extent::Whole, _) | (Extent::Before(_), None) => true,
            // The summary stands first.
            (Extent::Before(_), Some(_)) if message.part == context::Part::Summary && native.is_none() => true,
            (Extent::Before(cut), Some(entry)) => places.of_entry(entry).is_none_or(|place| place < cut),
        };
        let messages = messages.iter().take_while(|_| !blocking.is_stopped()).take_while(is_before);
        let of_messages: u64 = messages.clone().map(|message| u64::from(message.tokens(self.estimator))).sum();
        let tokens = of_messages + native.map_or(0, |native| native.history().tokens()) + system + tools;
        let model_there = models::dialects::model(&model.id);
        let bound: Option<HashSet<&EntryId>> = (api == Api::Anthropic && model_there.dialect.anthropic.binds_thinking)
            .then(|| self.bound_from(path, &model_there.dialect.anthropic))
            .map(|from| path[from..].iter().map(|entry| &entry.id).collect());
        let goes = |message: &ContextMessage| match (&bound, &message.entry) {
            (None, _) => Thinking::Goes,
            (Some(bound), Some(entry)) if bound.contains(entry) => Thinking::Goes,
            _ => Thinking::Stays,
        };
        let turns = turns_with(messages.map(|message| (images.resolve(message.json()), goes(message))), &target);
        blocking.go_on()?;
        let most = self.max_output(path, &usage, Some(model));
        let request = Request {
            model: model_there,
            system: self.instructions().system_prompt().map(str::to_owned),
            history,
            turns,
            tools: self.instructions().tools().map(<[_]>::to_vec).unwrap_or_default(),
            max_tokens: most.tokens.filter(|_| most.is_named),
            ceiling: most.tokens,
            reasoning: self.reasoning(model, path),
            cache: Cache::Prefix(session.to_string()),
            has_bound_thinking: true,
            ..Request::default()
        };
        Ok(LiveRequest { request, usage, solid, tokens, compaction, unsent })
    }

    /// A request that a provider's own compaction may go into.
    fn reader<'r>(&'r self, model: &'r ModelRef, api: Api) -> native::Reader<'r> {
        let is_allowed = models::may_send_native(self.settings(), model);
        native::Reader { model, api, instructions: self.instructions(), is_allowed }
    }

    /// The place on a path from which on thinking goes back to a model that binds it.
    fn bound_from(&self, path: &Path, dialect: &anthropic::Dialect) -> usize {
        let request = thinking::Request {
            instructions: self.instructions(),
            forked: self.forked.as_deref(),
            depends_on_level: !dialect.thinks_at_each_level(),
        };
        thinking::bound_from(path, request)
    }

    /// Whether the next request for a path begins with the same bytes as the request of its last answer, as far as the path
    /// shows it.
    pub fn begins_as_the_last_request(&self, path: &Path) -> bool {
        let request = thinking::Request {
            instructions: self.instructions(),
            forked: self.forked.as_deref(),
            depends_on_level: true,
        };
        let answer = path.iter().rposition(|entry| entry.is_from(Role::Assistant));
        answer.is_some_and(|place| thinking::bound_from(path, request) <= place)
    }

    /// The reasoning that the thinking level of a path asks for; none of a model that is known not to reason.
    fn reasoning(&self, model: &ModelRef, path: &Path) -> Reasoning {
        let thinks = models::reasoning(self.settings(), model);
        match self.thinking_level(path).as_str() {
            _ if thinks == Some(false) => Reasoning::Unsaid,
            "off" if thinks == Some(true) => Reasoning::Off,
            "minimal" => Reasoning::Effort(Effort::Minimal),
            "low" => Reasoning::Effort(Effort::Low),
            "medium" => Reasoning::Effort(Effort::Medium),
            "high" => Reasoning::Effort(Effort::High),
            // oh-my-pi says `max`.
            "xhigh" | "max" => Reasoning::Effort(Effort::Highest),
            _ => Reasoning::Unsaid,
        }
    }
}
