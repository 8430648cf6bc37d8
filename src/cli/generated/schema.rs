//! `abridged schema`: the machine-readable protocol as files.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use crate::cli::print;
use crate::protocol::schema;
use std::{fs, path::Path};

/// Writes the files to a folder.
///
/// # Errors
/// When it cannot be written.
pub fn run(out: &Path) -> Result<i32, String> {
    for (name, text) in schema::files() {
        let path = out.join(name);
        let folder = path.parent().unwrap_or(out);
        fs::create_dir_all(folder).map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
        fs::write(&path, text).map_err(|error| format!("{}: cannot be written: {error}", path.display()))?;
        print::line(&print::plain(&path.display().to_string()));
    }
    Ok(0)
}
