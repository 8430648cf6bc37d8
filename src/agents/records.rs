//! The JSON lines of another agent's file.

use crate::{
    conversation::entry::without_half_pairs,
    log::{bytes::Bytes, lines},
    text::values,
};
use serde_json::Value;
use std::{io::Error, ops::ControlFlow};

/// A text of a record; none where it is empty or no text.
pub(super) fn owned(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Reads the lines of a file in their order. `each` gets the number of a line, from 1, and its text; `None` where it is no text, is
/// too long or has too many values to be read.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn each(file: &Bytes, mut each: impl FnMut(usize, Option<&str>) -> ControlFlow<()>) -> Result<(), Error> {
    let mut number = 0;
    lines::forwards(file, 0, file.length()?, |line| {
        number += 1;
        if line.is_blank() {
            return ControlFlow::Continue(());
        }
        let text = std::str::from_utf8(line.bytes).ok().filter(|text| !line.cut && values::check(text).is_ok());
        // A byte order mark may begin the file, and agents cut characters in two.
        let text = text.map(|text| text.trim_start_matches('\u{feff}'));
        let whole = text.and_then(without_half_pairs);
        each(number, whole.as_deref().or(text))
    })
}
