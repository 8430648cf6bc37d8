//! Paths of lines that a test names.

use crate::conversation::{entry::Entry, path::Path};
use serde_json::Value;
use std::sync::Arc;

/// The entries e0, e1, … one after another.
pub fn path(lines: &[Value]) -> Path {
    let mut path = Path::default();
    for (at, line) in lines.iter().enumerate() {
        let mut line = line.clone();
        (line["id"], line["timestamp"]) = (format!("e{at}").into(), "2026-01-01T00:00:00.000Z".into());
        line["parentId"] = at.checked_sub(1).map(|parent| format!("e{parent}")).into();
        if let Some(Value::Object(ours)) = line.pointer_mut("/preserveData/abridged") {
            ours.insert("entryId".to_owned(), format!("e{at}").into());
        }
        path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
    }
    path
}
