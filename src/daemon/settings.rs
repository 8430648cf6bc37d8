//! The settings of a running daemon: read when it starts, when a session opens, and when a file of theirs changes.

#![expect(clippy::disallowed_methods, reason = "reads settings files")]

use super::{Daemon, Places, lock, routes::DaemonMethod};
use crate::{
    ids::SessionId,
    models::{catalog::catalog, windows::Windows},
    protocol::{
        ModelsForget, ModelsList, SettingsGet, SettingsSet,
        errors::Failure,
        events::Severity,
        notices::NoticeCode,
        notifications::{Notice, NoticeParams, Notification as _, SettingsChanged},
        types::{
            ModelsForgetAnswer, ModelsForgetParams, ModelsListAnswer, ModelsListParams, Scope, SettingsGetParams,
            SettingsSetParams,
        },
    },
    session::{
        core::{
            command::Command,
            commands::settings::{self, relayer::wrong_patch},
        },
        handle::{Handle, Mail, Urgent},
        state::State,
    },
    settings::{
        Flaw, Layers, Problem, Sourced, Subject,
        files::{self, NotChanged, SettingsFiles, Target},
        sources::{Reread, project_file, project_prompts},
    },
    watch::{Depth, Watcher},
    wire::{outbox::Outbox, rpc::Reply},
};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// The settings of a running daemon.
pub(super) struct LiveSettings {
    outbox: Arc<Outbox>,
    /// The lock is held while files are read, so the thread that reads requests never takes it.
    files: Mutex<SettingsFiles>,
    /// The settings without those of a project or a session.
    general: Mutex<Layers>,
    /// Problems that were found before a client was there.
    untold: Mutex<Vec<Problem>>,
    greeted: AtomicBool,
    followers: Mutex<Followers>,
    next_follower: AtomicU64,
    /// Set when the daemon begins to watch.
    watcher: OnceLock<Watcher>,
    /// Changes that are to be made, the oldest first.
    changes: Mutex<VecDeque<Change>>,
    /// Held while a change is made.
    changing: Mutex<()>,
    /// The watched folders of the global file and of the user's prompts.
    global_folders: Mutex<Vec<PathBuf>>,
}

/// A change of a settings file that a client asks for.
struct Change {
    /// The folder of the project whose file it is; none for the global one.
    project: Option<PathBuf>,
    patch: Value,
    /// The session whose settings are the answer.
    session: Option<SessionId>,
    reply: Reply,
}

/// The sessions that receive new settings.
#[derive(Default)]
struct Followers {
    /// The sessions by a number: a closed session may be open again before its old life is gone.
    sessions: HashMap<u64, Follower>,
    /// The folders of their projects' settings and prompts, with the number of sessions of each.
    folders: HashMap<PathBuf, usize>,
}

impl Followers {
    fn add(&mut self, number: u64, follower: Follower) {
        for folder in project_folders(&follower.cwd) {
            *self.folders.entry(folder).or_default() += 1;
        }
        self.sessions.insert(number, follower);
    }

    fn remove(&mut self, number: u64) -> Option<Follower> {
        let follower = self.sessions.remove(&number)?;
        for folder in project_folders(&follower.cwd) {
            if let Some(count) = self.folders.get_mut(&folder) {
                *count -= 1;
                if *count == 0 {
                    self.folders.remove(&folder);
                }
            }
        }
        Some(follower)
    }

    fn is_about(&self, folder: &Path) -> bool {
        self.folders.contains_key(folder)
    }
}

/// A session that receives new settings.
struct Follower {
    cwd: PathBuf,
    handle: Handle,
}

/// Keeps a session receiving new settings until it is dropped.
pub(super) struct Following {
    settings: Arc<LiveSettings>,
    number: u64,
}

impl Drop for Following {
    fn drop(&mut self) {
        let follower = lock(&self.settings.followers).remove(self.number);
        if let (Some(follower), Some(watcher)) = (follower, self.settings.watcher.get()) {
            project_folders(&follower.cwd).iter().for_each(|folder| watcher.unwatch_folder(folder));
        }
    }
}

impl LiveSettings {
    /// Reads the global settings and the user's prompts.
    pub(super) fn read(places: &Places, outbox: Arc<Outbox>) -> Self {
        let mut files = SettingsFiles::read(places.settings(), &|name| std::env::var(name).ok());
        Self {
            outbox,
            general: Mutex::new(files.layers()),
            untold: Mutex::new(files.take_problems()),
            files: Mutex::new(files),
            greeted: AtomicBool::new(false),
            followers: Mutex::default(),
            next_follower: AtomicU64::new(0),
            watcher: OnceLock::new(),
            changes: Mutex::default(),
            changing: Mutex::default(),
            global_folders: Mutex::default(),
        }
    }

    /// Reads the files of the project in this folder. Returns the settings for a session about it.
    pub(super) fn layers_for(&self, cwd: &str) -> Layers {
        let mut files = lock(&self.files);
        let layers = files.read_project(Path::new(cwd));
        self.tell(files.take_problems());
        layers
    }

    /// The layers of settings without those of a project or a session.
    pub(super) fn general_layers(&self) -> Layers {
        lock(&self.general).clone()
    }

    /// The settings without those of a project or a session.
    pub(super) fn general(&self) -> Sourced {
        lock(&self.general).sourced()
    }

    /// Sends new settings to a session from here on, and those that came while it was opened.
    pub(super) fn follow(self: &Arc<Self>, session: &State, handle: Handle) -> Following {
        let (number, cwd) = (self.next_follower.fetch_add(1, Ordering::Relaxed), PathBuf::from(session.cwd()));
        // Watched before it is read, so that nothing falls between the two.
        project_folders(&cwd).iter().for_each(|folder| self.watch_folder(folder));
        lock(&self.followers).add(number, Follower { cwd: cwd.clone(), handle: handle.clone() });
        let mut files = lock(&self.files);
        handle.send_urgent(Urgent::Layers(files.read_project(&cwd)));
        self.tell(files.take_problems());
        Following { settings: self.clone(), number }
    }

    /// Changes a settings file, and sends the new settings to each session that they concern. Sessions open while another
    /// process keeps the file.
    fn change(&self, target: Target<'_>, patch: &Value) -> Result<(), Failure> {
        let file = lock(&self.files).file_of(target);
        let alone = files::hold(file, target).map_err(not_changed)?;
        let mut files = lock(&self.files);
        files.change(&alone, target, patch).map_err(not_changed)?;
        self.reread(&mut files);
        Ok(())
    }

    /// Reads the files again. New settings reach a session before any later request.
    fn reread(&self, files: &mut SettingsFiles) {
        let followers = lock(&self.followers);
        let wanted: HashSet<&Path> = followers.sessions.values().map(|follower| follower.cwd.as_path()).collect();
        files.keep_projects(|cwd| wanted.contains(cwd));
        let reread = files.reread();
        self.watch_global(files);
        self.tell(files.take_problems());
        if reread == Reread::Same {
            return;
        }
        let before = std::mem::replace(&mut *lock(&self.general), files.layers()).sourced();
        let now = self.general();
        if !now.tells_the_same(&before) && self.greeted.load(Ordering::SeqCst) {
            self.outbox.notify(SettingsChanged::NAME, now);
        }
        for Follower { cwd, handle } in followers.sessions.values() {
            handle.send_urgent(Urgent::Layers(files.layers_of(Some(cwd))));
        }
    }

    /// Watches the files and reads them again when one changes. Calls `told` with each path that changed.
    pub(super) fn watch(&self, told: impl Fn(PathBuf) + Send + 'static) {
        if self.watcher.set(Watcher::new(told)).is_ok() {
            let mut files = lock(&self.files);
            self.watch_global(&files);
            // A change since the last read was not seen.
            self.reread(&mut files);
        }
    }

    /// The watcher, once it is made. The daemon has one, because systems allow few.
    pub(super) fn watcher(&self) -> Option<&Watcher> {
        self.watcher.get()
    }

    /// Handles a change at this path.
    pub(super) fn changed(&self, path: &Path) {
        let is_in = |folder: &PathBuf| path == folder || path.parent() == Some(folder);
        let in_projects = || {
            let followers = lock(&self.followers);
            followers.is_about(path) || path.parent().is_some_and(|parent| followers.is_about(parent))
        };
        if lock(&self.global_folders).iter().any(is_in) || in_projects() {
            self.reread(&mut lock(&self.files));
        }
    }

    /// Watches the folders of the global file and of the user's prompts again, because a link may lead elsewhere now.
    fn watch_global(&self, files: &SettingsFiles) {
        let Some(watcher) = self.watcher.get() else { return };
        let now = files.global_folders();
        let mut watched = lock(&self.global_folders);
        now.iter().filter(|folder| !watched.contains(folder)).for_each(|folder| self.watch_folder(folder));
        watched.iter().filter(|folder| !now.contains(folder)).for_each(|folder| watcher.unwatch_folder(folder));
        *watched = now;
    }

    fn watch_folder(&self, folder: &Path) {
        if folder.is_absolute()
            && let Some(watcher) = self.watcher.get()
            && let Err(error) = watcher.watch_folder(folder, Depth::Folder)
        {
            tracing::warn!(%error, "settings are read again when a session opens or settings/set is sent");
        }
    }

    /// Sends the problems that were found before `initialize`.
    pub(super) fn greeted(&self) {
        self.greeted.store(true, Ordering::SeqCst);
        self.tell(Vec::new());
    }

    /// Sends each problem as a notice.
    fn tell(&self, problems: Vec<Problem>) {
        let mut untold = lock(&self.untold);
        untold.extend(problems);
        if !self.greeted.load(Ordering::SeqCst) {
            return;
        }
        for problem in untold.drain(..) {
            let severity = if problem.is_fatal() { Severity::Error } else { Severity::Warning };
            let (code, title) = match (problem.subject, problem.flaw) {
                (Subject::Settings, Flaw::Broken) => {
                    (NoticeCode::SettingsBroken, "A settings file is broken; its old values or the defaults hold")
                }
                (Subject::Settings, Flaw::Invalid) => {
                    (NoticeCode::SettingInvalid, "A setting is invalid; its old value or its default holds")
                }
                (Subject::Settings, Flaw::Clamped) => {
                    (NoticeCode::SettingClamped, "A setting is out of its range; the nearest value holds")
                }
                (Subject::Settings, Flaw::Unknown) => (NoticeCode::SettingUnknown, "A setting is not known"),
                (Subject::Settings, Flaw::Untrusted) => {
                    (NoticeCode::SettingUntrusted, "A project is not trusted with a setting")
                }
                (Subject::Prompts, Flaw::Broken | Flaw::Invalid | Flaw::Clamped) => {
                    (NoticeCode::PromptInvalid, "A prompt cannot be used; what was there before holds")
                }
                (Subject::Prompts, Flaw::Unknown) => (NoticeCode::PromptUnknown, "A prompt is not known"),
                (Subject::Prompts, Flaw::Untrusted) => {
                    (NoticeCode::PromptUntrusted, "A project is not trusted with prompts")
                }
            };
            let notice = NoticeParams { severity, code, title: title.to_owned(), detail: Some(problem.to_string()) };
            self.outbox.notify(Notice::NAME, notice);
        }
    }
}

/// Has the client told of the faults of the file of learned windows.
pub(super) fn tell_of_windows(windows: &Windows, outbox: Arc<Outbox>) {
    windows.tell_faults(move |file, fault| {
        let notice = NoticeParams {
            severity: Severity::Warning,
            code: NoticeCode::WindowsNotKept,
            title: "Learned windows are not kept".to_owned(),
            detail: Some(format!("{}: {fault}", file.display())),
        };
        outbox.notify(Notice::NAME, notice);
    });
}

/// The file of learned windows is looked at before the request is passed on, so that a session answers with it. It is read
/// only where another daemon changed it.
impl DaemonMethod for ModelsList {
    fn handle(daemon: &Arc<Daemon>, params: ModelsListParams, reply: Reply) {
        daemon.access.windows.refresh();
        match params.session_id {
            Some(id) => daemon.send(&id, Mail::Command(settings::models(), reply)),
            None => reply.ok(&ModelsListAnswer {
                models: catalog(&daemon.settings.general(), &daemon.access.windows.learned(), &[]),
            }),
        }
    }
}

/// The file is written on the blocking pool. Open sessions take the change before their next input.
impl DaemonMethod for ModelsForget {
    fn handle(daemon: &Arc<Daemon>, ModelsForgetParams { model }: ModelsForgetParams, reply: Reply) {
        let windows = daemon.access.windows.clone();
        daemon.runtime.spawn_blocking(move || match windows.forget(&model) {
            Ok(forgotten) => reply.ok(&ModelsForgetAnswer { forgotten }),
            Err(error) => {
                let path = windows.file().unwrap_or(Path::new("learned-windows.json")).display().to_string();
                let what = format!("the windows of {model} are forgotten until the daemon ends; {path}: {error}");
                reply.fail(&Failure::Storage { path, errno: error.raw_os_error(), what });
            }
        });
    }
}

impl DaemonMethod for SettingsGet {
    fn handle(daemon: &Arc<Daemon>, params: SettingsGetParams, reply: Reply) {
        match params.session_id {
            Some(id) => daemon.send(&id, settings_of_session(reply)),
            None => reply.ok(&daemon.settings.general()),
        }
    }
}

fn settings_of_session(reply: Reply) -> Mail {
    Mail::Command(settings::settings(), reply)
}

/// The file is written on the blocking pool. The answer has the settings in force then.
impl DaemonMethod for SettingsSet {
    fn handle(daemon: &Arc<Daemon>, params: SettingsSetParams, reply: Reply) {
        match (params.scope, params.session_id.clone()) {
            (Scope::Global, None) => daemon.change_settings(None, Value::Object(params.patch.0), None, reply),
            (Scope::Global | Scope::Project, Some(id)) => {
                let (changing, session) = (daemon.clone(), id.clone());
                let SettingsSetParams { scope, patch, .. } = params;
                let change = move |cwd: &str, reply| {
                    let project = (scope == Scope::Project).then(|| PathBuf::from(cwd));
                    changing.change_settings(project, Value::Object(patch.0), Some(session), reply);
                };
                daemon.send(&id, Mail::HandOver(Box::new(change), reply));
            }
            (Scope::Session, Some(id)) => daemon.send(&id, Mail::Command(Command::edit::<Self>(params), reply)),
            (Scope::Project | Scope::Session, None) => {
                reply.fail(&Failure::params("sessionId", "settings of this scope belong to a session; say which"));
            }
        }
    }
}

impl Daemon {
    /// Makes a change after those that were asked for before it.
    fn change_settings(
        self: &Arc<Self>,
        project: Option<PathBuf>,
        patch: Value,
        session: Option<SessionId>,
        reply: Reply,
    ) {
        if project.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
            let what = "the folder of this session is not absolute, so no project's settings belong to it";
            return reply.fail(&Failure::params("sessionId", what));
        }
        lock(&self.settings.changes).push_back(Change { project, patch, session, reply });
        let daemon = self.clone();
        self.runtime.spawn_blocking(self.tracked(move || {
            let _changing = lock(&daemon.settings.changing);
            // The threads of the pool run in any order. Each makes the oldest change.
            let oldest = lock(&daemon.settings.changes).pop_front();
            oldest.into_iter().for_each(|change| daemon.make_change(change));
        }));
    }

    fn make_change(self: &Arc<Self>, Change { project, patch, session, reply }: Change) {
        let target = project.as_deref().map_or(Target::Global, Target::Project);
        match (self.settings.change(target, &patch), session) {
            (Err(failure), _) => reply.fail(&failure),
            (Ok(()), Some(id)) => self.send(&id, settings_of_session(reply)),
            (Ok(()), None) => reply.ok(&self.settings.general()),
        }
    }
}

/// The folders of a project's settings file and prompts.
fn project_folders(cwd: &Path) -> [PathBuf; 2] {
    [project_file(cwd).parent().unwrap_or(cwd).to_owned(), project_prompts(cwd)]
}

fn not_changed(why: NotChanged) -> Failure {
    let storage = |file: &Path, errno, what| Failure::Storage { path: file.display().to_string(), errno, what };
    match why {
        NotChanged::Patch(problem) => wrong_patch(problem),
        NotChanged::File(problem) => {
            let what = format!("{problem}; the file was left as it is: mend it, then send this again");
            storage(problem.file.as_deref().unwrap_or(Path::new("")), None, what)
        }
        NotChanged::Io { file, error } => {
            let what = format!("{}: cannot be written ({error}); nothing was changed", file.display());
            storage(&file, error.raw_os_error(), what)
        }
    }
}
