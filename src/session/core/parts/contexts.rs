//! The identity of contexts that were handed out. An answer, a failure and a report belong to the context that the request was
//! made with.

use crate::{
    conversation::{entry::Entry, evidence, message::outline::Role, path::Path},
    ids::{EntryId, ModelRef},
    protocol::errors::Failure,
    session::state::State,
};
use std::{collections::HashMap, fmt, sync::Arc};

/// The state in which a context was made: its end, the entries that decide what came before it, and its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The last entry that clients see.
    pub leaf: Option<EntryId>,
    /// The compaction or the reset that the context begins with.
    pub foundation: Option<EntryId>,
    /// The last entry that rewrote the context.
    pub rewrite: Option<EntryId>,
    /// The model that the context is for.
    pub model: Option<ModelRef>,
}

/// The contexts that clients were given last.
#[derive(Debug, Default)]
pub struct Contexts {
    /// The last one in a provider's format or with `wait`, which a request to a model is made of.
    asked: Option<Identity>,
    /// The last one of any kind. A client that never asks for a format makes its requests of these.
    read: Option<Identity>,
    /// The least sizes of the contexts that models answered, in tokens. An answer shows that a context was taken, also where its
    /// host reports no count.
    answered: HashMap<ModelRef, u64>,
}

impl Identity {
    /// The identity of the context at the leaf.
    #[must_use]
    pub fn at_leaf(state: &State) -> Self {
        Self::of(state.path(), state.model(state.path()))
    }

    /// The identity of the context of a path.
    #[must_use]
    pub fn of(path: &Path, model: Option<ModelRef>) -> Self {
        let id = |place: Option<usize>| place.map(|place| path[place].id.clone());
        Self {
            leaf: path.visible_leaf().cloned(),
            foundation: id(path.foundation()),
            rewrite: id(path.last_rewrite()),
            model,
        }
    }

    /// Reads the identity that a client names.
    ///
    /// # Errors
    /// When the text is no `contextId`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let what = "not an id of a context; give back the contextId of the answer of session/context, or leave it out";
        let invalid = || Failure::params("contextId", what);
        let mut parts = text.rsplitn(4, SEPARATOR);
        let mut next = || parts.next().ok_or_else(invalid);
        let (rewrite, foundation, leaf, model) = (next()?, next()?, next()?, next()?);
        let id = |text: &str| {
            (!text.is_empty()).then(|| EntryId::from(text.replace(BAR, "|").replace(PERCENT, "%").as_str()))
        };
        let model = match model {
            "" => None,
            name => Some(ModelRef::parse(name).ok_or_else(invalid)?),
        };
        Ok(Self { leaf: id(leaf), foundation: id(foundation), rewrite: id(rewrite), model })
    }

    /// The entries that the context is named by.
    pub fn entries(&self) -> impl Iterator<Item = &EntryId> {
        [&self.leaf, &self.foundation, &self.rewrite].into_iter().flatten()
    }

    /// Whether the context was rewritten after this one was made, or its end is not on the path any more. A report of it is
    /// about another context then.
    #[must_use]
    pub fn is_outdated(&self, path: &Path) -> bool {
        let rewrite = path.last_rewrite().map(|place| &path[place].id);
        let is_on_path = self.leaf.as_ref().is_none_or(|leaf| path.position(leaf).is_some());
        self.rewrite.as_ref() != rewrite || !is_on_path
    }

    /// Whether the context begins elsewhere now, or is for another model. A failure of it needs no remedy then.
    #[must_use]
    pub fn is_replaced_by(&self, now: &Self) -> bool {
        self.foundation != now.foundation || self.model != now.model
    }
}

/// Stands between the parts of an id. The name of a model may contain it, because it is the first part.
const SEPARATOR: char = '|';

/// The separator in the id of an entry that another program wrote.
const BAR: &str = "%7C";
const PERCENT: &str = "%25";

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |id: &EntryId| id.as_str().replace('%', PERCENT).replace(SEPARATOR, BAR);
        let id = |id: &Option<EntryId>| id.as_ref().map(escaped).unwrap_or_default();
        let model = self.model.as_ref().map(ToString::to_string).unwrap_or_default();
        let (leaf, foundation, rewrite) = (id(&self.leaf), id(&self.foundation), id(&self.rewrite));
        write!(f, "{model}{SEPARATOR}{leaf}{SEPARATOR}{foundation}{SEPARATOR}{rewrite}")
    }
}

impl Contexts {
    /// Records that a model answered a context that was handed out. `entries`: those of the answer, which are on the path now.
    pub fn is_answered(&mut self, context: &Identity, entries: &[Arc<Entry>], state: &State) {
        let Some(outline) = entries.iter().find_map(|entry| entry.outline()) else { return };
        let added: u64 = entries.iter().map(|entry| u64::from(entry.tokens(state.estimator()))).sum();
        let size = evidence::least_prompt(state.measure().context_tokens.saturating_sub(added));
        let model = outline.model.as_ref().or(context.model.as_ref());
        let model = model.filter(|_| outline.role == Role::Assistant && !outline.failed);
        if let (Some(model), Some(size)) = (model, size) {
            let largest = self.answered.entry(model.clone()).or_default();
            *largest = size.max(*largest);
        }
    }

    /// The least size of the largest context that a model answered, in tokens.
    #[must_use]
    pub fn largest_answered(&self, model: &ModelRef) -> Option<u64> {
        self.answered.get(model).copied()
    }

    /// Records that a client is given a context. `for_request`: in a provider's format, or with `wait`.
    pub fn give(&mut self, identity: Identity, for_request: bool) {
        if for_request {
            self.asked = Some(identity.clone());
        }
        self.read = Some(identity);
    }

    /// The context that an answer belongs to: the one that it names, else the last one that was asked for, else the last one
    /// that was read, else the path before it.
    ///
    /// # Errors
    /// When the name is no id of a context.
    pub fn of_answer(&self, named: Option<&str>, now: &Identity) -> Result<Identity, Failure> {
        let last = || self.asked.as_ref().or(self.read.as_ref()).unwrap_or(now).clone();
        named.map_or_else(|| Ok(last()), Identity::parse)
    }

    /// An answer of an outdated context was taken. A client that has read the context since makes later requests of that one.
    pub fn took_outdated(&mut self, of: &Identity, path: &Path) {
        let is_current = |identity: &Identity| !identity.is_outdated(path);
        if self.asked.as_ref() == Some(of) && self.read.as_ref().is_some_and(is_current) {
            self.asked = None;
        }
    }

    /// A failure was told to be of a context that was replaced. A client that asks for no other one is not told so again.
    pub fn told_replaced(&mut self, now: Identity) {
        self.asked = None;
        self.read = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(rewrite: Option<&str>, model: Option<&str>) -> Identity {
        Identity {
            leaf: Some("e1".into()),
            foundation: None,
            rewrite: rewrite.map(EntryId::from),
            model: model.and_then(ModelRef::parse),
        }
    }

    #[test]
    fn an_id_names_all_parts_and_nothing_else_is_an_id() {
        for identity in [
            identity(Some("c1"), Some("p/m")),
            identity(None, None),
            identity(None, Some("p/vendor|model:free")),
            Identity { leaf: None, foundation: Some("c0".into()), ..identity(Some("c1"), Some("p/m")) },
            identity(Some("c|1%7C%25"), Some("p/m")),
        ] {
            let text = identity.to_string();
            assert_eq!(Identity::parse(&text).expect("an id"), identity, "{text}");
        }
        for text in ["", "e1", "p/m|e1|", "no-model|e1||"] {
            assert!(Identity::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_answer_without_a_name_belongs_to_the_context_that_was_asked_for() {
        let (old, now) = (identity(None, None), identity(Some("c1"), None));
        let named = identity(Some("c0"), None);
        let mut contexts = Contexts::default();
        let of = |contexts: &Contexts| contexts.of_answer(None, &now).expect("a context");
        assert_eq!(of(&contexts), now, "the path before the answer");
        contexts.give(old.clone(), false);
        assert_eq!(of(&contexts), old, "nothing else was given");
        contexts.give(named.clone(), true);
        contexts.give(now.clone(), false);
        assert_eq!(of(&contexts), named, "who only reads makes no request");
        assert_eq!(contexts.of_answer(Some(&old.to_string()), &now).expect("a context"), old);
    }
}
