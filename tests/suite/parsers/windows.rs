//! The file of learned windows: what is read of it is written so that it is read again.

use abridged::models::learned::kept::{Content, read, text};

pub fn check(data: &[u8]) {
    let Content::Read(learned, bad) = read(data) else { return };
    assert!(learned.all().count() + bad <= data.len());
    let written = text(&learned);
    assert_eq!(read(written.as_bytes()), Content::Read(learned, 0), "{written}");
}
