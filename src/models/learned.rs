//! Windows as providers taught them: from limits in errors, and from prompts that were cut without an error. A value: each
//! session has a copy, and `windows.rs` has the one that all sessions learn into.

use super::ModelRef;
use std::{collections::BTreeMap, sync::Arc};

/// The windows that were learned. Cheap to clone. A clone stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    stated: Arc<BTreeMap<String, u64>>,
    /// The window of a model that cuts prompts without an error. A session knows it for itself.
    seen: Option<(ModelRef, u64)>,
}

/// The windows of one model that were learned, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taught {
    /// The window that the provider states.
    pub stated: Option<u64>,
    /// The window that a cut prompt shows.
    pub seen: Option<u64>,
}

impl From<Option<u64>> for Taught {
    fn from(stated: Option<u64>) -> Self {
        Self { stated, seen: None }
    }
}

impl Learned {
    /// The windows that were learned before.
    #[must_use]
    pub fn of(mut windows: BTreeMap<String, u64>) -> Self {
        windows.retain(|_, window| plausible(*window));
        Self { stated: Arc::new(windows), seen: None }
    }

    /// The window of a model as its provider states it, in tokens.
    #[must_use]
    pub fn window(&self, model: &ModelRef) -> Option<u64> {
        self.stated.get(&model.to_string()).copied()
    }

    /// The windows of a model.
    #[must_use]
    pub fn taught(&self, model: &ModelRef) -> Taught {
        let seen = self.seen.as_ref().filter(|(of, _)| of == model).map(|(_, window)| *window);
        Taught { stated: self.window(model), seen }
    }

    /// Learns a window. Returns true if it is new. A number that can be no window is ignored.
    pub fn learn(&mut self, model: &ModelRef, window: u64) -> bool {
        // A stated window counts for more than one that was seen.
        self.seen.take_if(|(of, _)| of == model && plausible(window));
        let new = plausible(window) && self.window(model) != Some(window);
        if new {
            Arc::make_mut(&mut self.stated).insert(model.to_string(), window);
        }
        new
    }

    /// Learns the window of a model from a prompt that it cut.
    pub fn see(&mut self, model: &ModelRef, window: u64) {
        if plausible(window) {
            self.seen = Some((model.clone(), window));
        }
    }

    /// Forgets the window that a cut prompt showed, where the model reports a longer prompt.
    pub fn disprove(&mut self, model: &ModelRef, reported: u64) {
        self.seen.take_if(|(of, window)| of == model && reported > *window);
    }

    /// Takes the windows that other sessions learned.
    pub fn update(&mut self, learned: Self) {
        self.stated = learned.stated;
    }

    /// All that providers state, by `"provider/id"`.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, u64> {
        &self.stated
    }
}

/// Whether a number can be a window that an agent works in, in tokens. A smaller one would leave a session stuck, on the
/// word of one server.
fn plausible(window: u64) -> bool {
    (1_024..=20_000_000).contains(&window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_seen_belongs_to_one_model_and_can_be_disproved() {
        let model = |name| ModelRef::parse(name).expect("a name");
        let mut learned = Learned::default();
        learned.see(&model("p/m"), 4_096);
        assert_eq!(learned.taught(&model("p/m")), Taught { stated: None, seen: Some(4_096) });
        assert_eq!(learned.taught(&model("p/other")), Taught::default());
        learned.update(Learned::of([("p/m".to_owned(), 8_192)].into()));
        assert_eq!(learned.taught(&model("p/m")), Taught { stated: Some(8_192), seen: Some(4_096) });
        learned.disprove(&model("p/other"), 5_000);
        learned.disprove(&model("p/m"), 4_096);
        assert_eq!(learned.taught(&model("p/m")).seen, Some(4_096));
        learned.disprove(&model("p/m"), 4_097);
        assert_eq!(learned.taught(&model("p/m")).seen, None);
        learned.see(&model("p/m"), 20);
        assert_eq!(learned.taught(&model("p/m")).seen, None, "no window is that small");
    }

    #[test]
    fn a_stated_window_takes_the_place_of_one_that_was_seen() {
        let model = |name| ModelRef::parse(name).expect("a name");
        let mut learned = Learned::default();
        learned.see(&model("p/m"), 4_096);
        learned.learn(&model("p/other"), 8_192);
        learned.learn(&model("p/m"), 20);
        assert_eq!(learned.taught(&model("p/m")), Taught { stated: None, seen: Some(4_096) });
        learned.learn(&model("p/m"), 8_192);
        assert_eq!(learned.taught(&model("p/m")), Taught { stated: Some(8_192), seen: None });
    }

    #[test]
    fn a_number_that_can_be_no_window_is_not_learned() {
        let model = ModelRef::parse("p/m").expect("a name");
        for (window, plausible) in [(1_023, false), (1_024, true), (20_000_000, true), (20_000_001, false)] {
            let mut learned = Learned::default();
            assert_eq!(learned.learn(&model, window), plausible, "{window}");
            assert_eq!(learned.window(&model).is_some(), plausible);
            assert!(!learned.learn(&model, window), "it is not new");
            assert_eq!(Learned::of([("p/m".to_owned(), window)].into()).window(&model).is_some(), plausible);
        }
    }
}
