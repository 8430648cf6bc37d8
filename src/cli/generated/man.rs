//! `abridged man`: the manual pages, one for each command.

use crate::cli::print;
use clap::Command;
use std::path::Path;

/// Writes the pages into a folder, which is made where it is missing: `abridged.1`, `abridged-compact.1` and so on.
///
/// # Errors
/// When they cannot be written: what to do next.
#[expect(clippy::disallowed_methods, reason = "a command of a person")]
pub fn run(command: Command, out: &Path) -> Result<i32, String> {
    let written = std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(command, out));
    written
        .map_err(|error| format!("{}: the pages cannot be written ({error}); name another folder", out.display()))?;
    print::line(&print::plain(&format!("{}: read one with man -l {}/abridged.1", out.display(), out.display())));
    Ok(0)
}
