//! The tools of the calls before a result: some formats name no tool in a result.

use crate::{conversation::entry::Entry, ids::CallId};
use std::{collections::HashMap, sync::Arc};

/// The tools of calls. Earlier entries are read backwards and once, as far as the results of an append need them.
pub(super) struct Tools<'a> {
    seen: HashMap<CallId, String>,
    /// The entries that were not read, newest first.
    earlier: Box<dyn Iterator<Item = &'a Arc<Entry>> + 'a>,
}

impl<'a> Tools<'a> {
    /// The tools of the calls of these entries, which come newest first.
    pub fn new(earlier: impl Iterator<Item = &'a Arc<Entry>> + 'a) -> Self {
        Self { seen: HashMap::new(), earlier: Box::new(earlier) }
    }

    /// The tool of the newest call with this id.
    pub fn of(&mut self, id: &CallId) -> Option<String> {
        while !self.seen.contains_key(id) {
            let calls = self.earlier.next()?.outline().map(|outline| &outline.calls);
            for call in calls.into_iter().flatten() {
                self.seen.entry(call.id.clone()).or_insert_with(|| call.name.clone());
            }
        }
        self.seen.get(id).cloned()
    }

    /// Adds an entry that is newer than all others.
    pub fn add(&mut self, entry: &Entry) {
        // Of several calls with one id the first one of an answer counts.
        for call in entry.outline().into_iter().flat_map(|outline| outline.calls.iter().rev()) {
            self.seen.insert(call.id.clone(), call.name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::Cell;

    fn answer(calls: &[(&str, &str)]) -> Arc<Entry> {
        let call = |(id, name): &(&str, &str)| json!({"type": "toolCall", "id": id, "name": name, "arguments": {}});
        let message = json!({"role": "assistant", "content": calls.iter().map(call).collect::<Vec<_>>()});
        let line = json!({"type": "message", "id": "e", "parentId": null, "timestamp": "2026-01-01T00:00:00Z", "message": message});
        Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
    }

    #[test]
    fn the_newest_call_names_the_tool_and_no_entry_is_read_twice() {
        let path = [answer(&[("a", "old"), ("b", "find")]), answer(&[("a", "read"), ("a", "second")])];
        let read = Cell::new(0);
        let mut tools = Tools::new(path.iter().rev().inspect(|_| read.set(read.get() + 1)));
        assert_eq!((tools.of(&"a".into()).as_deref(), read.get()), (Some("read"), 1));
        assert_eq!((tools.of(&"b".into()).as_deref(), read.get()), (Some("find"), 2));
        assert_eq!(tools.of(&"a".into()).as_deref(), Some("read"));
        assert_eq!((tools.of(&"c".into()), tools.of(&"c".into()), read.get()), (None, None, 2));
        tools.add(&answer(&[("a", "write"), ("a", "again")]));
        assert_eq!(tools.of(&"a".into()).as_deref(), Some("write"));
    }
}
