//! The place of an entry in the tree: the parent that its line names, another one where no earlier entry is that, and the
//! entry that stands for a broken line.

use super::{BadLine, Body, Entry};
use crate::{conversation::message, ids::EntryId};
use serde_json::json;
use std::{borrow::Cow, sync::Arc};

/// The `customType` of the entry in the place of a broken line.
pub const PLACEHOLDER: &str = "abridged.corrupt";

/// The fields of a broken line that can still be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its id.
    pub id: EntryId,
    /// The parent it names, which may be none; nothing where that cannot be read.
    pub parent: Option<Option<EntryId>>,
    /// When it was written.
    pub timestamp: Option<String>,
}

impl Entry {
    /// An entry that stands in the place of a line that is broken but for its ids, so that the entries that follow the
    /// line keep their parent. It is a `custom` entry, which adds nothing to a context and which every program knows.
    ///
    /// # Errors
    /// When the id is empty.
    pub fn placeholder(broken: &Broken, offset: u64, length: u32) -> Result<Self, BadLine> {
        let mut line = json!({"type": "custom", "id": broken.id});
        if let Some(parent) = &broken.parent {
            line["parentId"] = json!(parent);
        }
        line["timestamp"] = json!(broken.timestamp.as_deref().unwrap_or("1970-01-01T00:00:00.000Z"));
        line["customType"] = json!(PLACEHOLDER);
        line["data"] = json!({"offset": offset, "length": length});
        Self::read(line.to_string().into())
    }

    /// Whether it stands in the place of a broken line.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        matches!(&self.body, Body::Custom(custom) if custom.custom_type == PLACEHOLDER)
    }

    /// The same entry after another one than its line names.
    #[must_use]
    pub fn behind(mut self: Arc<Self>, parent: Option<EntryId>) -> Arc<Self> {
        if self.parent == parent {
            return self;
        }
        if let Some(own) = Arc::get_mut(&mut self) {
            own.parent = parent;
            return self;
        }
        let read = Self::read(self.line.clone()).expect("the line of an entry is one");
        Arc::new(Self { id: self.id.clone(), parent, ..read })
    }

    /// The line as it goes into another file: with the parent that the entry has, where its own line names another.
    #[must_use]
    pub fn line_with_parent(&self) -> Cow<'_, str> {
        let Ok(head) = Self::head(&self.line) else { return Cow::Borrowed(&self.line) };
        if Self::ids(&head).is_ok_and(|(_, parent)| parent == self.parent) {
            return Cow::Borrowed(&self.line);
        }
        let parent = json!(self.parent).to_string();
        let (range, text) = match head.parent_id {
            Some(json) => {
                let start = message::offset_in(&self.line, json);
                (start..start + json.get().len(), parent)
            }
            None => {
                let start = self.line.find('{').map_or(0, |brace| brace + 1);
                (start..start, format!("\"parentId\":{parent},"))
            }
        };
        let mut line = self.line.to_string();
        line.replace_range(range, &text);
        Cow::Owned(line)
    }
}
