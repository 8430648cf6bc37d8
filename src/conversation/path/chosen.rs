//! The model of a path: the one that was chosen last, or else the one that answered last.

use crate::{
    conversation::entry::{Body, Entry},
    ids::ModelRef,
};

/// The model of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The model.
    pub model: Option<ModelRef>,
    /// Whether it was chosen, and not only an answer names it.
    pub is_chosen: bool,
}

impl Chosen {
    /// Takes the next entry of the path.
    pub fn take(&mut self, entry: &Entry) {
        if let Some(model) = chosen(entry) {
            *self = Self { model: Some(model), is_chosen: true };
        } else if !self.is_chosen {
            self.model = answered(entry).or(self.model.take());
        }
    }
}

/// The model that an entry chooses.
pub(super) fn chosen(entry: &Entry) -> Option<ModelRef> {
    match &entry.body {
        Body::ModelChange { provider, model } => Some(ModelRef { provider: provider.clone(), id: model.clone() }),
        _ => None,
    }
}

/// The model that answered in an entry.
pub(super) fn answered(entry: &Entry) -> Option<ModelRef> {
    entry.outline().and_then(|outline| outline.model.clone())
}
