//! The files of settings and prompts: their places in a project, and the result of reading them again.

use std::path::{Path, PathBuf};

/// The result of another read of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reread {
    /// The settings and prompts are the same.
    Same,
    /// A setting or a prompt changed.
    Changed,
}

/// The settings file of a project.
#[must_use]
pub fn project_file(cwd: &Path) -> PathBuf {
    cwd.join(".abridged").join("settings.json")
}

/// The folder of a project's prompts.
#[must_use]
pub fn project_prompts(cwd: &Path) -> PathBuf {
    project_file(cwd).with_file_name("prompts")
}
