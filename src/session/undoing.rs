//! Undoes a compaction for every reader of the file. Here a marker does; other programs know none.
//!
//! Where only lines without messages follow the compaction, the marker is a child of the compaction's parent, so that
//! the compaction is on nobody's path. Where messages follow, a second compaction line repeats the context from before:
//! that of the compaction before it, or all messages. Here that line is no compaction.

use super::{
    mirroring::{entry_of, mirrors},
    state::State,
};
use crate::{
    entry::{self, Body, Entry},
    ids::EntryId,
    path::Path,
    prompts::Prompts,
    protocol::errors::Failure,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The summary of a compaction line that keeps every message.
const NOTHING_SUMMARIZED: &str = "A compaction of this conversation was undone. All of its messages follow.";

/// An undo that still needs the path without the compaction, which has to be read.
pub struct Undoing {
    marker: Arc<Entry>,
    compaction: Arc<Entry>,
    /// Entries behind the compaction that say something of the session and are repeated behind the marker.
    repeated: Vec<Arc<Entry>>,
    /// Whether messages follow the compaction.
    followed: Followed,
    prompts: Arc<Prompts>,
}

/// What stands behind a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    ByMessages,
    ByMarkers,
}

impl Undoing {
    /// The undo of the compaction in force.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(state: &State) -> Result<Self, Failure> {
        let path = state.path();
        let Some(place) = path.compaction() else {
            let what = "there is no compaction on this branch that could be undone".to_owned();
            return Err(Failure::NotFound { kind: "compaction", what });
        };
        let (compaction, later) = (path[place].clone(), &path[place + 1..]);
        let followed =
            if later.iter().all(|entry| may_leave(entry)) { Followed::ByMarkers } else { Followed::ByMessages };
        let (parent, repeated) = match followed {
            Followed::ByMessages => (path.last().map(|leaf| leaf.id.clone()), Vec::new()),
            Followed::ByMarkers => {
                let says = |entry: &&Arc<Entry>| !matches!(entry.body, Body::Mirror(_) | Body::Usage);
                (compaction.parent.clone(), later.iter().filter(says).cloned().collect())
            }
        };
        let data = json!({ "compactionEntryId": compaction.id });
        let fields = [("customType", "abridged.undo".into()), ("data", data)];
        let marker = entry_of("custom", parent.as_ref(), &fields)
            .ok_or_else(|| Failure::Internal("the marker of an undo is no entry".to_owned()))?;
        Ok(Self { marker, compaction, repeated, followed, prompts: state.settings().prompts.clone() })
    }

    /// The entry by which the compaction is undone.
    #[must_use]
    pub fn marker(&self) -> &Arc<Entry> {
        &self.marker
    }

    /// Every entry of the undo, and the path that they make. `path` ends with the marker.
    #[must_use]
    pub fn complete(&self, path: Path) -> (Vec<Arc<Entry>>, Path) {
        let mut path = path;
        let mut entries = vec![self.marker.clone()];
        let mut add = |path: &mut Path, entry: Arc<Entry>| {
            path.push(entry.clone());
            entries.push(entry);
        };
        for entry in &self.repeated {
            if let Some(entry) = repeated(entry, path.last()) {
                add(&mut path, entry);
            }
        }
        if self.followed == Followed::ByMessages
            && let Some(entry) = self.restated(&path)
        {
            add(&mut path, entry);
        }
        for entry in mirrors(&path, &self.prompts) {
            add(&mut path, entry);
        }
        (entries, path)
    }

    /// A compaction line after which other programs have the context of this path.
    fn restated(&self, path: &Path) -> Option<Arc<Entry>> {
        let first = path.get(path.first_kept()).map(|entry| &entry.id);
        let mut line: Value = match path.compaction() {
            Some(place) => serde_json::from_str(path[place].line()).ok()?,
            None => json!({
                "type": "compaction",
                "summary": NOTHING_SUMMARIZED,
                "tokensBefore": self.compaction.compaction().map_or(0, |it| it.tokens_before as u64),
            }),
        };
        let fields = line.as_object_mut()?;
        // It was paid for once.
        ["usage", "keepLastMessages"].iter().for_each(|name| drop(fields.remove(*name)));
        let place = path.compaction().map(|place| path[place].id.clone());
        fields.insert("id".into(), json!(EntryId::fresh()));
        fields.insert("parentId".into(), json!(path.last().map(|leaf| &leaf.id)));
        fields.insert("timestamp".into(), entry::now().into());
        fields.insert("firstKeptEntryId".into(), json!(first));
        // pi drops the system messages before a compaction and reads this one.
        match path.system_prompt().message() {
            Some(message) => drop(fields.insert("systemMessage".into(), message)),
            None => drop(fields.remove("systemMessage")),
        }
        let mut preserved = match fields.remove("preserveData") {
            Some(Value::Object(preserved)) => preserved,
            _ => serde_json::Map::new(),
        };
        if preserved.contains_key("openaiRemoteCompaction") {
            // oh-my-pi shows what its provider's history replays, and from the message behind this entry on.
            fields.insert("providerReplayThroughEntryId".into(), json!(place));
        }
        preserved.insert("abridged".into(), json!({ "undone": self.compaction.id }));
        fields.insert("preserveData".into(), preserved.into());
        Entry::parse(line.to_string().into()).ok().map(Arc::new)
    }
}

/// Whether an entry behind a compaction may leave the path together with it: it says nothing to a model, and can be
/// repeated.
fn may_leave(entry: &Entry) -> bool {
    match &entry.body {
        Body::Mirror(_) | Body::Usage => true,
        // A broken line may have been a message.
        Body::Custom(_) => entry.is_marker() && !entry.is_placeholder(),
        Body::Label { .. } | Body::SessionInfo { .. } | Body::ModelChange { .. } | Body::ThinkingLevel(_) => true,
        _ => false,
    }
}

/// The same entry once more behind another one.
fn repeated(entry: &Entry, parent: Option<&Arc<Entry>>) -> Option<Arc<Entry>> {
    let mut line: Value = serde_json::from_str(entry.line()).ok()?;
    line["id"] = json!(EntryId::fresh());
    line["parentId"] = json!(parent.map(|parent| &parent.id));
    line["timestamp"] = entry::now().into();
    Entry::parse(line.to_string().into()).ok().map(Arc::new)
}
