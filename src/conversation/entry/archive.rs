//! The archive of a conversation that oh-my-pi's `snapcompact` makes: `preserveData.snapcompact` of a compaction. Its summary
//! says only how to read the archive.

use serde_json::{Value, json};

/// The conversation before a compaction, word for word as far as the archive goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Archive {
    /// The text. An archive without it has pictures of it.
    pub text: String,
    /// The pictures, oldest first, as blocks of a message. None where the text has all of it.
    pub frames: Vec<Value>,
}

/// oh-my-pi's sign for the end of a line in an archive.
const LINE_END: char = '\u{2588}';

/// oh-my-pi's signs around texts in a paler ink.
const INK: [char; 2] = ['\u{e}', '\u{f}'];

/// Most pictures of an archive in a context, the newest. One has up to 170 kB, and oh-my-pi sends 3 MB of them.
const MOST_FRAMES: usize = 17;

impl Archive {
    /// The archive in a stored value; `None` where it has neither texts nor pictures.
    #[must_use]
    pub(super) fn read(stored: &Value) -> Option<Self> {
        let text = |key: &str| stored[key].as_str().map(plain).filter(|text| !text.trim().is_empty());
        if let Some(text) = text("text") {
            return Some(Self { text, frames: Vec::new() });
        }
        let frame = |frame: &Value| {
            let data = frame["data"].as_str().filter(|data| !data.is_empty())?;
            Some(json!({ "type": "image", "data": data, "mimeType": frame["mimeType"].as_str()? }))
        };
        let mut frames: Vec<Value> = stored["frames"].as_array().into_iter().flatten().filter_map(frame).collect();
        let left_out = frames.len().saturating_sub(MOST_FRAMES);
        frames.drain(..left_out);
        let middle = match (frames.len(), left_out) {
            (0, _) => None,
            (count, 0) => Some(format!("[{count} images have the next part of it.]")),
            (count, more) => {
                Some(format!("[{count} images have the next part of it; {more} older ones are left out.]"))
            }
        };
        let texts: Vec<String> = text("textHead").into_iter().chain(middle).chain(text("textTail")).collect();
        (!texts.is_empty()).then(|| Self { text: texts.join("\n"), frames })
    }
}

fn plain(text: &str) -> String {
    text.replace(INK, "").replace(LINE_END, "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(data: &str) -> Value {
        json!({"data": data, "mimeType": "image/png", "cols": 196, "rows": 71, "chars": 9, "font": "8x13"})
    }

    #[test]
    fn the_text_of_an_archive_stands_for_its_pictures() {
        let stored = json!({"frames": [frame("AAAA")], "totalChars": 9, "truncatedChars": 0, "textHead": "¶user:one",
            "textTail": "three", "text": "¶user:one█two\u{e} pale\u{f}█three"});
        let archive = Archive::read(&stored).expect("an archive");
        assert_eq!((archive.text.as_str(), archive.frames.len()), ("¶user:one\ntwo pale\nthree", 0));
    }

    #[test]
    fn an_archive_without_its_text_has_pictures_between_its_ends() {
        let mut frames: Vec<Value> = (0..20).map(|at| frame(&format!("{at}"))).collect();
        frames.extend([json!({"data": ""}), json!(7), json!({"data": "AAAA"})]);
        let stored = json!({"frames": frames, "textHead": "first█", "textTail": "last"});
        let archive = Archive::read(&stored).expect("an archive");
        assert!(archive.text.starts_with("first\n") && archive.text.ends_with("last"), "{}", archive.text);
        assert!(archive.text.contains("17 images") && archive.text.contains("3 older ones"), "{}", archive.text);
        assert_eq!(archive.frames.len(), 17);
        assert_eq!(archive.frames[0], json!({"type": "image", "data": "3", "mimeType": "image/png"}));
    }

    #[test]
    fn other_values_are_no_archive() {
        for stored in [json!(null), json!("x"), json!({}), json!({"frames": []}), json!({"text": " ", "frames": "x"})] {
            assert_eq!(Archive::read(&stored), None, "{stored}");
        }
    }
}
