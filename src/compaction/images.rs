//! The budget of images. A provider limits the bytes of a request apart from its tokens, so a short conversation with many
//! images is refused. The oldest images leave until the rest is within the budget.

use crate::{
    conversation::{
        context::{Context, ContextMessage},
        entry::{ContextEdit, Replacement},
        message,
        path::{Path, Pin},
    },
    ids::EntryId,
};
use serde_json::{Value, json};

/// Largest size of the images of a context, as base64, in bytes. The smallest documented limit of a request is 20 MB (Amazon
/// Bedrock, Gemini with inline data; Anthropic takes 32 MB, OpenAI 50 MB). A quarter of it is left for the texts.
pub const BUDGET: usize = 15_000_000;

/// Size of the images after some of them left, in bytes: like the target of a compaction, so that one more fits.
pub const TARGET: usize = BUDGET / 5 * 4;

/// Size of the images of a context, as base64, in bytes.
#[must_use]
pub fn bytes(context: &Context) -> usize {
    context.messages().iter().map(|message| message.outline().image_bytes).sum()
}

/// Size of the pinned images of a path, in bytes. No edit removes them.
#[must_use]
pub fn pinned_bytes(path: &Path) -> usize {
    let places = path.places();
    let of = |pin: &Pin| places.entry(&pin.entry).map_or(0, |entry| entry.image_bytes());
    path.pins().iter().map(of).sum()
}

/// The edits that bring the images of a context within `most` bytes, the oldest images first. `may` tells whether an entry
/// may be edited. Where the rest alone is larger, all images leave that may.
#[must_use]
pub fn within(context: &Context, most: usize, may: &dyn Fn(&EntryId) -> bool) -> Vec<ContextEdit> {
    let mut over = bytes(context).saturating_sub(most);
    let mut edits = Vec::new();
    for message in context.messages() {
        if over == 0 {
            break;
        }
        let removed = |data: &str| {
            let leaves = over > 0;
            over = over.saturating_sub(data.len());
            leaves
        };
        edits.extend(editable(message, may).and_then(|entry| without_images(message, entry, removed)));
    }
    edits
}

/// The edits that remove the images of all messages but the newest `keep` of those that have any.
#[must_use]
pub fn but_newest(context: &Context, keep: usize, may: &dyn Fn(&EntryId) -> bool) -> Vec<ContextEdit> {
    let messages = context.messages().iter().rev();
    let shown = messages.filter_map(|message| Some((message, editable(message, may)?)));
    shown.skip(keep).filter_map(|(message, entry)| without_images(message, entry, |_| true)).collect()
}

/// The entry of a message with images, if it may be edited.
fn editable<'a>(message: &'a ContextMessage, may: &dyn Fn(&EntryId) -> bool) -> Option<&'a EntryId> {
    let entry = message.entry_shown()?;
    (message.outline().image_bytes > 0 && may(entry)).then_some(entry)
}

/// The edit of a message that takes out those of its images for which `leaves` is true. A notice stands in the place of those
/// that follow one another.
fn without_images(
    message: &ContextMessage,
    entry: &EntryId,
    mut leaves: impl FnMut(&str) -> bool,
) -> Option<ContextEdit> {
    let mut value = message::value(&message.json())?;
    let blocks: Vec<Value> = serde_json::from_value(value["content"].take()).ok()?;
    let (mut left, mut in_a_row) = (Vec::new(), 0);
    for block in blocks {
        if block["type"] == "image" && leaves(block["data"].as_str().unwrap_or_default()) {
            in_a_row += 1;
            continue;
        }
        left.extend(notice(entry, std::mem::take(&mut in_a_row)));
        left.push(block);
    }
    left.extend(notice(entry, in_a_row));
    Some(ContextEdit { target_id: entry.clone(), replacement: Some(Replacement { content: Value::from(left).into() }) })
}

/// The block in the place of so many images, if there are any.
fn notice(entry: &EntryId, images: usize) -> Option<Value> {
    let (images, them) = match images {
        0 => return None,
        1 => ("Image".to_owned(), "it"),
        _ => (format!("{images} images"), "them"),
    };
    let text = format!(
        "[{images} left out to save room; entry {entry} has {them} (session/entry of abridged returns {them})]"
    );
    Some(json!({ "type": "text", "text": text }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::{context, entry::Entry},
        prompts::Prompts,
    };
    use std::sync::Arc;

    fn message(id: usize, parent: Option<usize>, role: &str, images: &[usize]) -> Value {
        let image = |bytes: &usize| json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(*bytes)});
        let mut content = vec![json!({"type": "text", "text": format!("message {id}")})];
        content.extend(images.iter().map(image));
        json!({"type": "message", "id": format!("e{id}"), "parentId": parent.map(|it| format!("e{it}")),
            "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": role, "content": content}})
    }

    fn path(messages: &[&[usize]]) -> Path {
        let mut path = Path::default();
        for (at, images) in messages.iter().enumerate() {
            let line = message(at, at.checked_sub(1), "user", images);
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        path
    }

    /// The images that are left of each message, in bytes.
    fn left(path: &Path, edits: &[ContextEdit]) -> Vec<Vec<usize>> {
        let mut path = path.clone();
        for (at, edit) in edits.iter().enumerate() {
            let line = json!({"type": "context_edit", "id": format!("edit{at}"), "targetId": edit.target_id,
                "replacement": edit.replacement});
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        }
        let images = |message: &ContextMessage| -> Vec<usize> {
            let value: Value = serde_json::from_str(&message.json()).expect("JSON");
            let blocks = value["content"].as_array().expect("blocks");
            blocks.iter().filter_map(|block| block["data"].as_str().map(str::len)).collect()
        };
        context::build(&path, &Prompts::default()).messages().iter().map(images).collect()
    }

    #[test]
    fn the_oldest_images_leave_until_the_rest_is_within_the_limit() {
        let path = path(&[&[40], &[], &[30, 20, 10], &[5]]);
        let context = context::build(&path, &Prompts::default());
        assert_eq!(bytes(&context), 105);
        for (most, expected) in [
            (105, vec![vec![40], vec![], vec![30, 20, 10], vec![5]]),
            (104, vec![vec![], vec![], vec![30, 20, 10], vec![5]]),
            (65, vec![vec![], vec![], vec![30, 20, 10], vec![5]]),
            (64, vec![vec![], vec![], vec![20, 10], vec![5]]),
            (5, vec![vec![], vec![], vec![], vec![5]]),
            (4, vec![vec![], vec![], vec![], vec![]]),
        ] {
            assert_eq!(left(&path, &within(&context, most, &|_| true)), expected, "within {most}");
        }
        let edited = within(&context, 64, &|_| true);
        assert_eq!(edited.len(), 2, "only messages that lose an image are edited");
        let unpinned = |entry: &EntryId| entry.as_str() != "e0";
        assert_eq!(left(&path, &within(&context, 70, &unpinned)), [vec![40], vec![], vec![10], vec![5]]);
        assert_eq!(left(&path, &within(&context, 0, &unpinned)), [vec![40], vec![], vec![], vec![]]);
    }

    #[test]
    fn all_images_but_the_newest_leave_and_say_where_they_are() {
        let path = path(&[&[40], &[30, 20], &[5]]);
        let context = context::build(&path, &Prompts::default());
        assert_eq!(left(&path, &but_newest(&context, 1, &|_| true)), [vec![], vec![], vec![5]]);
        let edits = but_newest(&context, 0, &|_| true);
        assert_eq!(left(&path, &edits).concat(), [0; 0]);
        let said = serde_json::to_string(&edits).expect("JSON");
        assert!(said.contains("[Image left out to save room; entry e0 has it (session/entry"), "{said}");
        assert!(said.contains("[2 images left out to save room; entry e1 has them (session/entry"), "{said}");
        assert_eq!(said.matches("left out").count(), 3, "one notice for images in a row: {said}");
        assert!((0..3).all(|at| said.contains(&format!("message {at}"))), "texts stay: {said}");
    }

    #[test]
    fn images_with_a_text_between_them_have_a_notice_each() {
        let mut line = message(0, None, "user", &[10, 20, 30]);
        let blocks = line["message"]["content"].as_array_mut().expect("blocks");
        blocks.insert(2, json!({"type": "text", "text": "between"}));
        let mut path = Path::default();
        path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
        let edits = but_newest(&context::build(&path, &Prompts::default()), 0, &|_| true);
        let said = serde_json::to_string(&edits).expect("JSON");
        let order = ["message 0", "[Image left out", "between", "[2 images left out"];
        let places: Vec<_> = order.iter().map(|part| said.find(part)).collect();
        assert!(places.is_sorted() && !places.contains(&None), "{places:?} in {said}");
    }
}
