//! The models of the settings, found by their names.

use super::ModelSettings;
use crate::ids::ModelRef;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, ops::Deref, sync::OnceLock};

/// The models in their order. A file has room for ten thousand, and every one of them is looked up.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Models {
    listed: Vec<ModelSettings>,
    /// The first place of each name, made when the first model is looked up.
    #[serde(skip)]
    places: OnceLock<HashMap<ModelRef, usize>>,
}

impl Models {
    /// The first model with this name.
    #[must_use]
    pub fn find(&self, model: &ModelRef) -> Option<&ModelSettings> {
        Some(&self.listed[self.place(model)?])
    }

    /// The place of the first model with this name.
    #[must_use]
    pub fn place(&self, model: &ModelRef) -> Option<usize> {
        self.places.get_or_init(|| places(&self.listed)).get(model).copied()
    }

    /// Changes the models.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Vec<ModelSettings>) -> T) -> T {
        self.places.take();
        change(&mut self.listed)
    }
}

fn places(models: &[ModelSettings]) -> HashMap<ModelRef, usize> {
    let mut places = HashMap::with_capacity(models.len());
    for (place, model) in models.iter().enumerate() {
        let model = ModelRef { provider: model.provider.clone(), id: model.id.clone() };
        places.entry(model).or_insert(place);
    }
    places
}

impl Deref for Models {
    type Target = [ModelSettings];

    fn deref(&self) -> &[ModelSettings] {
        &self.listed
    }
}

impl PartialEq for Models {
    fn eq(&self, other: &Self) -> bool {
        self.listed == other.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_model_of_a_name_is_found_also_after_a_change() {
        let listed = json!([{"provider": "p", "id": "a", "contextWindow": 1}, {"provider": "p", "id": "b"},
            {"provider": "p", "id": "a", "contextWindow": 2}]);
        let mut models: Models = serde_json::from_value(listed).expect("models");
        let named = |id: &str| ModelRef { provider: "p".to_owned(), id: id.to_owned() };
        let window = |models: &Models, id: &str| models.find(&named(id)).map(|model| model.context_window);
        assert_eq!((window(&models, "a"), models.place(&named("b"))), (Some(Some(1)), Some(1)));
        assert_eq!(models.place(&named("c")), None);
        models.change(|models| models.remove(0));
        assert_eq!((window(&models, "a"), models.place(&named("b"))), (Some(Some(2)), Some(0)));
    }
}
