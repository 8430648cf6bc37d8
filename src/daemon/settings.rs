//! The settings of a running daemon: read when it starts and whenever a session opens, and told where they are wrong.

use super::{Places, lock};
use crate::{
    outbox::Outbox,
    protocol::{events::Severity, types::Notice},
    settings::{Flaw, Layers, Problem, Sourced, files::SettingsFiles},
};
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// The settings of a running daemon.
pub(super) struct LiveSettings {
    outbox: Arc<Outbox>,
    /// Held while files are read, so never taken by the thread that reads requests.
    files: Mutex<SettingsFiles>,
    /// What holds where no project and no session says otherwise.
    general: Mutex<Layers>,
    /// What is wrong, until there is somebody to tell.
    untold: Mutex<Vec<Problem>>,
    greeted: AtomicBool,
}

impl LiveSettings {
    /// Reads the global settings.
    pub(super) fn read(places: &Places, outbox: Arc<Outbox>) -> Self {
        let mut files = SettingsFiles::read(places.settings(), &|name| std::env::var(name).ok());
        Self {
            outbox,
            general: Mutex::new(files.layers()),
            untold: Mutex::new(files.take_problems()),
            files: Mutex::new(files),
            greeted: AtomicBool::new(false),
        }
    }

    /// What holds for a session about this folder. Reads its project's file.
    pub(super) fn layers_for(&self, cwd: &str) -> Layers {
        let mut files = lock(&self.files);
        let layers = files.read_project(Path::new(cwd));
        self.tell(files.take_problems());
        layers
    }

    /// What holds where no project and no session says otherwise.
    pub(super) fn general(&self) -> Sourced {
        lock(&self.general).sourced()
    }

    /// There is a client now: what was wrong before is told.
    pub(super) fn greeted(&self) {
        self.greeted.store(true, Ordering::SeqCst);
        self.tell(Vec::new());
    }

    /// What is wrong, each as a notice.
    fn tell(&self, problems: Vec<Problem>) {
        let mut untold = lock(&self.untold);
        untold.extend(problems);
        if !self.greeted.load(Ordering::SeqCst) {
            return;
        }
        for problem in untold.drain(..) {
            let (severity, title) = match problem.flaw {
                Flaw::Broken => (Severity::Error, "A settings file is broken; what it said before holds"),
                Flaw::Unknown => (Severity::Warning, "A setting is not known"),
                Flaw::Untrusted => (Severity::Warning, "A project is not trusted with a setting"),
            };
            let notice = Notice { severity, title: title.to_owned(), detail: Some(problem.to_string()) };
            self.outbox.notify("notice", notice);
        }
    }
}
