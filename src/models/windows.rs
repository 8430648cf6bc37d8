//! The file of learned windows: one for all daemons that keep their files in the same folder.

#![expect(clippy::disallowed_methods, reason = "keeps learned windows on disk")]

use super::{ModelRef, learned::Learned};
use crate::regular;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Largest file that is read, in bytes. A window takes less than a hundred.
const LARGEST: u64 = 1 << 20;

/// The windows that providers taught, with the file that keeps them.
#[derive(Debug, Clone, Default)]
pub struct Windows {
    learned: Arc<Mutex<Learned>>,
    /// Grows with each window that is learned.
    version: Arc<AtomicU64>,
    /// None: nothing is written.
    file: Option<PathBuf>,
}

impl Windows {
    /// No windows, and no file.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Reads the file in `data`. A missing or invalid file holds no windows. Blocks.
    #[must_use]
    pub fn read(data: &Path) -> Self {
        let file = data.join("learned-windows.json");
        let text = regular::read(&file, LARGEST).ok();
        let windows: Option<BTreeMap<String, u64>> = text.and_then(|text| serde_json::from_slice(&text).ok());
        let learned = Arc::new(Mutex::new(Learned::of(windows.unwrap_or_default())));
        Self { learned, version: Arc::default(), file: Some(file) }
    }

    /// The windows now.
    #[must_use]
    pub fn learned(&self) -> Learned {
        self.lock().clone()
    }

    /// A number that grows with each window that is learned. It costs less than a look at the windows.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window of a model, in tokens.
    #[must_use]
    pub fn window(&self, model: &ModelRef) -> Option<u64> {
        self.lock().window(model)
    }

    /// Learns a window and writes the file, if there is one, in the background. A window that cannot be written is learned
    /// again.
    pub fn learn(&self, model: &ModelRef, window: u64) {
        if !self.lock().learn(model, window) {
            return;
        }
        self.version.fetch_add(1, Ordering::Release);
        if let Some(file) = self.file.clone() {
            let windows = self.clone();
            tokio::task::spawn_blocking(move || write(&windows.learned(), &file));
        }
    }
}

fn write(learned: &Learned, file: &Path) {
    let text = serde_json::to_string_pretty(learned.all()).unwrap_or_default();
    let written = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = written.and_then(|()| regular::replace(file, text.as_bytes()));
    if let Err(error) = written {
        tracing::debug!(%error, "learned windows are not written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_outlive_their_daemon() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let model = ModelRef::parse("local/m").expect("a model");
        let windows = Windows::read(&data);
        assert_eq!(windows.window(&model), None);
        assert!(windows.lock().learn(&model, 8_192));
        write(&windows.learned(), &data.join("learned-windows.json"));
        assert_eq!(Windows::read(&data).window(&model), Some(8_192));
        fs::write(data.join("learned-windows.json"), "{").expect("a file");
        assert_eq!(Windows::read(&data).window(&model), None, "an invalid file holds none");
    }

    #[test]
    fn windows_in_memory_need_neither_a_file_nor_a_runtime() {
        let windows = Windows::in_memory();
        let model = ModelRef::parse("local/m").expect("a model");
        windows.learn(&model, 8_192);
        assert_eq!(windows.clone().window(&model), Some(8_192));
    }
}
