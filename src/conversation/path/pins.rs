//! The pins of a path, in an order that later pins have a say in.

use super::Pin;
use crate::ids::EntryId;
use std::collections::HashMap;

/// Pins while they are gathered. Its work grows with their number.
#[derive(Debug, Default)]
pub(super) struct Pins {
    slots: Vec<Slot>,
    /// Slots without a place before another one.
    in_turn: Vec<usize>,
    /// The slots of each entry that is pinned.
    of_entries: HashMap<EntryId, Vec<usize>>,
}

/// The place of a pin. It stays when the pin is removed.
#[derive(Debug)]
struct Slot {
    pin: Option<Pin>,
    /// Slots right before it, in their order.
    before: Vec<usize>,
}

impl Pins {
    /// Whether an entry is pinned.
    pub fn has(&self, id: &EntryId) -> bool {
        self.of_entries.contains_key(id)
    }

    /// Adds a pin after the others, or right before the pin of `next`, where there is one.
    pub fn add(&mut self, pin: Pin, next: Option<&str>) {
        let slot = self.slots.len();
        let next = next.and_then(|next| self.of_entries.get(&EntryId::from(next))?.first().copied());
        match next {
            Some(next) => self.slots[next].before.push(slot),
            None => self.in_turn.push(slot),
        }
        self.of_entries.entry(pin.entry.clone()).or_default().push(slot);
        self.slots.push(Slot { pin: Some(pin), before: Vec::new() });
    }

    /// Removes the pins of an entry.
    pub fn remove(&mut self, id: &EntryId) {
        for slot in self.of_entries.remove(id).into_iter().flatten() {
            self.slots[slot].pin = None;
        }
    }

    /// The pins in their order.
    pub fn in_order(mut self) -> Vec<Pin> {
        let mut pins = Vec::with_capacity(self.slots.len());
        let mut open: Vec<usize> = std::mem::take(&mut self.in_turn);
        open.reverse();
        while let Some(slot) = open.pop() {
            match std::mem::take(&mut self.slots[slot].before) {
                before if before.is_empty() => pins.extend(self.slots[slot].pin.take()),
                before => {
                    open.push(slot);
                    open.extend(before.into_iter().rev());
                }
            }
        }
        pins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as inserting into a list.
        #[test]
        fn pins_stand_where_a_list_would_have_them(steps in prop::collection::vec((0_u8..3, 0_u8..8, 0_u8..8), 0..40)) {
            let (mut pins, mut list) = (Pins::default(), Vec::<String>::new());
            for (step, id, next) in steps {
                let (id, next) = (format!("e{id}"), format!("e{next}"));
                let next = (step == 0).then_some(next.as_str());
                if step == 2 {
                    pins.remove(&id.as_str().into());
                    list.retain(|it| *it != id);
                } else if !pins.has(&id.as_str().into()) {
                    pins.add(Pin { entry: id.as_str().into(), text: None }, next);
                    let place = next.and_then(|next| list.iter().position(|it| it == next));
                    list.insert(place.unwrap_or(list.len()), id);
                }
            }
            let found: Vec<String> = pins.in_order().into_iter().map(|pin| pin.entry.to_string()).collect();
            prop_assert_eq!(found, list);
        }
    }
}
