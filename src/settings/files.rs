//! The settings files as they were read last, and the prompts beside them. A broken file keeps its previous values, and
//! each problem is reported once.

#![expect(clippy::disallowed_methods, reason = "reads and writes settings files")]

use super::{
    alone::Alone,
    checked::{Checked, LARGEST, check_all, check_layer, line_of, tighten},
    layers::{Layers, Source, from_environment},
    patch::patched_text,
    problem::{Flaw, Problem},
    prompt_files::PromptFolder,
    ranges::{Effect, Outside},
    sources::{Reread, project_file},
    trust::{Trust, allowed, needs_trust},
};
use crate::{
    prompts::{Prompt, Prompts},
    regular,
};
use serde_json::Value;
use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

/// The settings files and their layers.
pub struct SettingsFiles {
    global: Layer,
    /// The user's prompts.
    prompts: PromptFolder,
    environment: Checked,
    /// For `~/` in trusted folders.
    home: Option<PathBuf>,
    /// The projects by their folders.
    projects: HashMap<PathBuf, Project>,
    untold: Vec<Problem>,
    /// True after a project was read anew for one session and the other sessions about it do not have the changes.
    unheard: bool,
}

/// One file.
struct Layer {
    file: PathBuf,
    /// Its text at the last read; `None` where there was no file.
    seen: Option<String>,
    /// The trust it was checked with.
    trust: Trust,
    /// Dotted keys that its text has and this trust forbids.
    refused: Vec<String>,
    /// Its values, or those of the last text that was valid.
    value: Option<Value>,
    problems: Vec<Problem>,
}

struct Project {
    layer: Layer,
    /// The part of its values that its trust allows.
    taken: Option<Value>,
    refused: Vec<Problem>,
    prompts: PromptFolder,
}

/// A prompt that a file of the user or the project replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overridden<'a> {
    /// The prompt.
    pub prompt: Prompt,
    /// The source of the text.
    pub source: Source,
    /// The file.
    pub file: &'a Path,
    /// The text.
    pub text: &'a str,
}

/// The file that is to be changed.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// The global file.
    Global,
    /// The file of the project in this folder.
    Project(&'a Path),
}

/// The reason why a settings file was not changed.
#[derive(Debug)]
pub enum NotChanged {
    /// The patch is invalid.
    Patch(Problem),
    /// The file is broken. It is left as it is, for a person to mend.
    File(Problem),
    /// The operating system refused.
    Io {
        /// The file.
        file: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// Waits for other processes that change a file. The settings are not locked meanwhile.
///
/// # Errors
/// When one of them takes too long, or the folder cannot be opened.
pub fn hold(file: PathBuf, target: Target<'_>) -> Result<Alone, NotChanged> {
    let held = match target {
        Target::Global => Alone::with_file_of_user(file.clone()),
        Target::Project(cwd) => Alone::with_file_of_project(file.clone(), cwd),
    };
    held.map_err(|error| NotChanged::Io { file, error })
}

impl SettingsFiles {
    /// Reads the global file, the user's prompts and the environment.
    #[must_use]
    pub fn read(global: PathBuf, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let global = std::path::absolute(&global).unwrap_or(global);
        let environment_layer = from_environment(environment);
        let mut files = Self {
            prompts: PromptFolder::of_user(&global),
            global: Layer::at(global),
            untold: environment_layer.problems.clone(),
            environment: environment_layer,
            home: environment("HOME").map(PathBuf::from),
            projects: HashMap::new(),
            unheard: false,
        };
        files.reread();
        files
    }

    /// The layers without those of a project or a session.
    #[must_use]
    pub fn layers(&self) -> Layers {
        self.layers_of(None)
    }

    /// The layers of sessions about a folder, as far as its file was read.
    #[must_use]
    pub fn layers_of(&self, cwd: Option<&Path>) -> Layers {
        let project = cwd.and_then(|cwd| self.projects.get(cwd)).and_then(|project| project.taken.clone());
        let layers = [
            (Source::Global, self.global.value.clone()),
            (Source::Project, project),
            (Source::Environment, self.environment.value.clone()),
        ];
        let layers = Layers::of(layers.into_iter().filter_map(|(source, value)| Some((source, value?))).collect());
        let mut prompts = Prompts::default();
        for Overridden { prompt, text, .. } in self.overridden(cwd) {
            if let Err(why) = prompts.set(prompt.name(), text) {
                tracing::warn!(prompt = prompt.name(), why, "a text that was right is not");
            }
        }
        layers.with_prompts(prompts)
    }

    /// The prompts that the user or the project replaces in sessions about a folder.
    pub fn overridden<'a>(&'a self, cwd: Option<&Path>) -> impl Iterator<Item = Overridden<'a>> {
        let project = cwd.and_then(|cwd| self.projects.get(cwd));
        Prompt::ALL.iter().filter_map(move |prompt| {
            let of = |folder: &'a PromptFolder, source| {
                let (file, text) = folder.text(*prompt)?;
                Some(Overridden { prompt: *prompt, source, file, text })
            };
            project.and_then(|it| of(&it.prompts, Source::Project)).or_else(|| of(&self.prompts, Source::Global))
        })
    }

    /// Reads the files of a project, and returns the layers of sessions about it. A folder that is not absolute has no
    /// project: it is a path of another machine.
    pub fn read_project(&mut self, cwd: &Path) -> Layers {
        if cwd.is_absolute() {
            let mut project = match self.projects.remove(cwd) {
                Some(project) => project,
                None => Project {
                    layer: Layer::at(project_file(cwd)),
                    taken: None,
                    refused: Vec::new(),
                    prompts: PromptFolder::of_project(cwd),
                },
            };
            self.unheard |= self.look_at(cwd, &mut project) == Reread::Changed;
            self.projects.insert(cwd.to_owned(), project);
        }
        self.layers_of(Some(cwd))
    }

    /// Drops the projects that are not wanted any more.
    pub fn keep_projects(&mut self, wanted: impl Fn(&Path) -> bool) {
        self.projects.retain(|cwd, _| wanted(cwd));
    }

    /// Reads all files again.
    pub fn reread(&mut self) -> Reread {
        let mut reread = if std::mem::take(&mut self.unheard) { Reread::Changed } else { Reread::Same };
        if self.global.look(Trust::Trusted) == Reread::Changed {
            self.untold.extend(self.global.problems.iter().cloned());
            reread = Reread::Changed;
        }
        if self.prompts.look(Trust::Trusted, &mut self.untold) == Reread::Changed {
            reread = Reread::Changed;
        }
        for (cwd, mut project) in std::mem::take(&mut self.projects) {
            if self.look_at(&cwd, &mut project) == Reread::Changed {
                reread = Reread::Changed;
            }
            self.projects.insert(cwd, project);
        }
        reread
    }

    /// The folders in which changes of the global file and of the user's prompts show: their own, and the targets of
    /// links.
    #[must_use]
    pub fn global_folders(&self) -> Vec<PathBuf> {
        let links = [Some(self.global.file.clone()), self.global.file.canonicalize().ok()];
        let mut folders: Vec<_> = links.into_iter().flatten().filter_map(|it| Some(it.parent()?.to_owned())).collect();
        folders.extend(self.prompts.seen_in());
        folders.sort();
        folders.dedup();
        folders
    }

    /// The problems that were not reported yet.
    pub fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.untold)
    }

    /// All current problems, reported or not.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let projects = self.projects.values();
        let projects = projects.flat_map(|it| it.layer.problems.iter().chain(&it.refused).chain(it.prompts.problems()));
        let of_user = self.environment.problems.iter().chain(&self.global.problems);
        of_user.chain(self.prompts.problems()).chain(projects)
    }

    /// The file that a change is about.
    #[must_use]
    pub fn file_of(&self, target: Target<'_>) -> PathBuf {
        match target {
            Target::Global => self.global.file.clone(),
            Target::Project(cwd) => project_file(cwd),
        }
    }

    /// Changes a file by a patch, in which null takes a key out. Changes of other processes before it are kept.
    ///
    /// # Errors
    /// When the patch is invalid, the file is broken, or the write fails. Then the file is unchanged.
    pub fn change(&mut self, alone: &Alone, target: Target<'_>, patch: &Value) -> Result<(), NotChanged> {
        let file = alone.file().to_owned();
        let mut layer = Layer::at(file.clone());
        layer.look(Trust::Trusted);
        if let Some(problem) = layer.problems.into_iter().find(|problem| problem.flaw == Flaw::Broken) {
            return Err(NotChanged::File(problem));
        }
        if let Target::Project(cwd) = target {
            if leads_out(cwd) {
                let what =
                    "a link stands in its place, and a project's links are not followed; change what it leads to";
                return Err(NotChanged::File(Problem { file: Some(file), ..Problem::broken(what.to_owned()) }));
            }
            let trust = self.trust(cwd);
            let patch = super::layers::without_nulls(patch);
            let (mut kept, refused) = allowed(&patch, trust);
            // A key that is no setting is refused below.
            let problems = check_all(&patch.to_string()).problems;
            let known = |key: &String| !problems.iter().any(|problem| problem.key == *key);
            if let Some(key) = refused.into_iter().find(|key| needs_trust(key) && known(key)) {
                let what = untrusted(&key, cwd);
                return Err(NotChanged::Patch(Problem { key, flaw: Flaw::Untrusted, ..Problem::broken(what) }));
            }
            // A number that nobody may set is no matter of trust. Where it is clamped, it is accepted.
            for outside in tighten(&mut kept, trust) {
                let key = outside.place.to_string();
                let (flaw, what) = match (known(&key), outside.effect) {
                    (true, _) => (Flaw::Untrusted, out_of_range(&outside, cwd)),
                    (false, Effect::Refused) => {
                        (Flaw::Invalid, format!("{}; expected {}", outside.found, outside.expected(trust)))
                    }
                    (false, Effect::Clamped) => continue,
                };
                return Err(NotChanged::Patch(Problem { key, flaw, ..Problem::broken(what) }));
            }
        }
        let Some(text) = patched_text(layer.seen.as_deref(), patch).map_err(NotChanged::Patch)? else {
            return Ok(());
        };
        if text.len() as u64 > LARGEST {
            let what = "with this the file would be larger than 1 MiB, and would not be read any more";
            return Err(NotChanged::Patch(Problem::broken(what.to_owned())));
        }
        alone.replace(&text).map_err(|error| NotChanged::Io { file, error })
    }

    /// Reads a project's files again, and takes the part that its trust allows, which may have changed too.
    fn look_at(&mut self, cwd: &Path, project: &mut Project) -> Reread {
        let trust = self.trust(cwd);
        let layer = &mut project.layer;
        let known = if layer.trust == trust { Vec::new() } else { layer.problems.clone() };
        // A project file that is the global file itself counts as the global one.
        let read = if same_file(&layer.file, &self.global.file) { Reread::Same } else { layer.look(trust) };
        if read == Reread::Changed {
            // A problem that another trust left as it was is known already.
            self.untold.extend(layer.problems.iter().filter(|problem| !known.contains(problem)).cloned());
        }
        let value = layer.value.as_ref().map(|value| allowed(value, trust));
        let (mut taken, refused) = value.map_or_else(Default::default, |(taken, refused)| (Some(taken), refused));
        let outside = taken.as_mut().map(|taken| tighten(taken, trust)).unwrap_or_default();
        let text = layer.seen.as_deref().unwrap_or_default();
        // A broken text keeps its old values, which may need trust that is gone.
        let mut forbidden = layer.refused.clone();
        forbidden.extend(refused.into_iter().filter(|key| needs_trust(key) && !layer.refused.contains(key)));
        let refused = forbidden.into_iter().map(|key| {
            let what = untrusted(&key, cwd);
            (key, what)
        });
        let outside = outside.iter().map(|it| (it.place.to_string(), out_of_range(it, cwd)));
        let refused = refused.chain(outside).map(|(key, what)| {
            let (file, line) = (Some(layer.file.clone()), line_of(text, &key));
            Problem { file, key, line, flaw: Flaw::Untrusted, ..Problem::broken(what) }
        });
        let refused: Vec<Problem> = refused.collect();
        if refused != project.refused {
            self.untold.extend(refused.iter().cloned());
            project.refused = refused;
        }
        let prompts = match same_file(project.prompts.folder(), self.prompts.folder()) {
            true => Reread::Same,
            false => project.prompts.look(trust, &mut self.untold),
        };
        let same = read == Reread::Same && prompts == Reread::Same && taken == project.taken;
        project.taken = taken;
        if same { Reread::Same } else { Reread::Changed }
    }

    /// The trust of a project: it is trusted where its very folder is in `trustedProjects` of the global file.
    #[must_use]
    pub fn trust(&self, cwd: &Path) -> Trust {
        let trusted = self.global.value.as_ref().and_then(|value| value.get("trustedProjects")?.as_array());
        let is_it = |folder: &str| {
            let folder = match (folder.strip_prefix("~/"), &self.home) {
                (Some(below), Some(home)) => home.join(below),
                _ => PathBuf::from(folder),
            };
            folder.is_absolute() && same_file(&folder, cwd)
        };
        match trusted.into_iter().flatten().filter_map(Value::as_str).any(is_it) {
            true => Trust::Trusted,
            false => Trust::Untrusted,
        }
    }
}

impl Layer {
    fn at(file: PathBuf) -> Self {
        Self { file, seen: None, trust: Trust::Trusted, refused: Vec::new(), value: None, problems: Vec::new() }
    }

    /// Reads the file again. A file that cannot be used keeps its old values; an invalid value falls back by itself.
    fn look(&mut self, trust: Trust) -> Reread {
        let trust_before = std::mem::replace(&mut self.trust, trust);
        let broken = |what| vec![Problem { file: Some(self.file.clone()), ..Problem::broken(what) }];
        match text_of(&self.file) {
            Ok(text)
                if text == self.seen
                    && (trust == trust_before || text.is_none())
                    && (text.is_some() || self.problems.is_empty()) =>
            {
                return Reread::Same;
            }
            Ok(None) => {
                (self.value, self.problems, self.refused, self.seen) = (None, Vec::new(), Vec::new(), None);
            }
            Ok(Some(text)) => {
                let (Checked { value, problems }, refused) = check_layer(&text, self.value.as_ref(), trust);
                self.refused = refused;
                let of_file = |problem| Problem { file: Some(self.file.clone()), ..problem };
                self.problems = problems.into_iter().map(of_file).collect();
                self.value = value.or(self.value.take());
                self.seen = Some(text);
            }
            Err(error) => {
                let problems = broken(format!("cannot be read ({error}); check what it is and who may read it"));
                if problems == self.problems {
                    return Reread::Same;
                }
                (self.problems, self.seen) = (problems, None);
            }
        }
        Reread::Changed
    }
}

/// The text of a file without the byte order mark that editors of Windows write; `None` where there is no file.
fn text_of(file: &Path) -> io::Result<Option<String>> {
    let missing = |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    match regular::read(file, LARGEST) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))?;
            Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
        }
        Err(error) if missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn untrusted(key: &str, cwd: &Path) -> String {
    match key {
        "trustedProjects" => "only the global settings file says whom to trust; ignored here".to_owned(),
        "store" | "storePasswordCommand" => "only the global settings file names the store; ignored here".to_owned(),
        _ => format!(
            "a project may not set this; ignored. If you trust it, add \"{}\" to trustedProjects in the global settings \
             file",
            cwd.display()
        ),
    }
}

/// The reason why a number of a project is refused.
fn out_of_range(outside: &Outside, cwd: &Path) -> String {
    let Outside { found, range, .. } = outside;
    format!(
        "{found}; a project may set {range}; ignored. If you trust it, add \"{}\" to trustedProjects in the global \
         settings file",
        cwd.display()
    )
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns true where a link stands on the way to a project's settings. A cloned project could lead out of its folder
/// by one.
fn leads_out(cwd: &Path) -> bool {
    let file = project_file(cwd);
    let parts = [file.as_path(), file.parent().unwrap_or(cwd)];
    parts.iter().any(|part| part.symlink_metadata().is_ok_and(|about| about.is_symlink()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ranges::{Effect, numbers};
    use serde_json::json;
    use std::fs;

    fn files(home: &Path) -> SettingsFiles {
        SettingsFiles::read(home.join("settings.json"), &|_| None)
    }

    fn change(files: &mut SettingsFiles, target: Target<'_>, patch: &Value) -> Result<(), NotChanged> {
        let alone = hold(files.file_of(target), target)?;
        files.change(&alone, target, patch)
    }

    fn put(file: &Path, text: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    /// The reserve; 0 where nobody set it.
    fn reserve(layers: &Layers) -> u64 {
        layers.sourced().settings.compaction.reserve_tokens.unwrap_or(0)
    }

    #[test]
    fn a_broken_file_keeps_what_it_said_and_is_told_once() {
        let home = tempfile::tempdir().expect("a folder");
        let global = home.path().join("settings.json");
        put(&global, r#"{"compaction":{"reserveTokens":1}}"#);
        let mut files = files(home.path());
        assert_eq!((reserve(&files.layers()), files.take_problems()), (1, vec![]));
        assert_eq!(files.reread(), Reread::Same);
        put(&global, r#"{"compaction":{"reserveTokens":"#);
        assert_eq!(files.reread(), Reread::Changed);
        assert_eq!(reserve(&files.layers()), 1);
        let told = files.take_problems();
        assert!(told[0].to_string().contains("settings.json: line 1: not JSON"), "{told:?}");
        assert_eq!((files.reread(), files.take_problems()), (Reread::Same, vec![]));
        put(&global, r#"{"compaction":{"reserveTokens":2}}"#);
        assert_eq!((files.reread(), reserve(&files.layers())), (Reread::Changed, 2));
        fs::remove_file(&global).expect("removed");
        assert_eq!((files.reread(), reserve(&files.layers())), (Reread::Changed, 0));
        assert_eq!(files.take_problems(), vec![]);
        fs::create_dir(&global).expect("a folder");
        assert_eq!(files.reread(), Reread::Changed);
        assert!(files.take_problems()[0].to_string().contains("not a regular file"));
        assert_eq!(files.reread(), Reread::Same);
    }

    #[test]
    fn a_project_is_taken_as_far_as_it_is_trusted() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        let text = "{\"compaction\": {\"reserveTokens\": 7,\n\"remoteEndpoint\": \"http://else.where\"}, \"x\": 1}";
        put(&project_file(&project), text);
        let mut files = files(home.path());
        let settings = files.read_project(&project).sourced();
        assert_eq!(settings.settings.compaction.reserve_tokens, Some(7));
        assert_eq!(settings.settings.compaction.remote_endpoint, None);
        let told: Vec<_> = files.take_problems().into_iter().map(|it| (it.flaw, it.key, it.line)).collect();
        let refused = "compaction.remoteEndpoint".to_owned();
        assert_eq!(told, [(Flaw::Unknown, "x".to_owned(), Some(2)), (Flaw::Untrusted, refused, Some(2))]);
        assert_eq!(reserve(&files.layers()), 0, "other folders have nothing of it");
        files.read_project(&project);
        assert_eq!(files.take_problems(), vec![], "it is told once");

        put(&home.path().join("settings.json"), &json!({"trustedProjects": [&project]}).to_string());
        assert_eq!(files.reread(), Reread::Changed);
        let settings = files.layers_of(Some(&project)).sourced();
        assert_eq!(settings.settings.compaction.remote_endpoint.as_deref(), Some("http://else.where"));
        assert_eq!(settings.sources["compaction.remoteEndpoint"], Source::Project);
        put(&project_file(&project), r#"{"trustedProjects": ["/"]}"#);
        files.reread();
        assert_eq!(files.take_problems()[0].key, "trustedProjects");
        assert_eq!(reserve(&files.read_project(Path::new("relative"))), 0);
    }

    /// Every number that an untrusted project may set, below, at and above its range, and above that of a trusted one.
    #[test]
    fn every_number_of_a_project_is_held_within_its_range() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        let mut watched = files(home.path());
        let with =
            |keys: &[String], value: i64| keys.iter().rev().fold(json!(value), |inner, key| json!({ key: inner }));
        let mut tried = 0;
        for number in numbers() {
            let pointer = format!("/{}", number.keys.join("/"));
            let whole = with(&number.keys, 1);
            if allowed(&whole, Trust::Untrusted).0.pointer(&pointer).is_none() {
                continue;
            }
            tried += 1;
            let range = number.range(Trust::Untrusted);
            let default = json!(crate::settings::Settings::default()).pointer(&pointer).cloned();
            let mut held = |value: i64| {
                // Without an old value to fall back to.
                put(&project_file(&project), "{}");
                watched.read_project(&project);
                put(&project_file(&project), &with(&number.keys, value).to_string());
                let settings = json!(watched.read_project(&project).sourced().settings);
                (settings.pointer(&pointer).cloned(), watched.take_problems())
            };
            for inside in [range.least, range.most] {
                assert_eq!(held(inside), (Some(json!(inside)), vec![]), "{pointer}");
            }
            for outside in [range.least - 1, range.most + 1] {
                let (value, told) = held(outside);
                let trusted = number.range(Trust::Trusted);
                // A number that only a trusted project may set is not used.
                let is_for_trusted = (trusted.least..=trusted.most).contains(&outside);
                let clamped = number.effect == Effect::Clamped && !is_for_trusted;
                let expected =
                    if clamped { Some(json!(outside.clamp(range.least, range.most))) } else { default.clone() };
                assert_eq!((value, told.len()), (expected, 1), "{pointer}: {outside}: {told:?}");
                assert_eq!(told[0].key, number.keys.join("."));
                let set = refused_key(&mut files(home.path()), &project, &with(&number.keys, outside));
                assert_eq!(set, if clamped { None } else { Some(number.keys.join(".")) });
            }
        }
        assert!(tried >= 14, "a project may set {tried} numbers");
    }

    /// The key that a change of a project's file is refused for.
    fn refused_key(files: &mut SettingsFiles, project: &Path, patch: &Value) -> Option<String> {
        fs::remove_file(project_file(project)).expect("a file");
        match change(files, Target::Project(project), patch) {
            Ok(()) => None,
            Err(NotChanged::Patch(problem)) => Some(problem.key),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_of_a_project_names_its_range() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        let mut files = files(home.path());
        for (value, expected) in [
            (9, "9; a project may set 0 to 3; ignored."),
            (99, "99; expected 0 to 3 in a project, or 0 to 10 in a trusted one"),
        ] {
            let Err(NotChanged::Patch(problem)) =
                change(&mut files, Target::Project(&project), &json!({"retry": {"maxRetries": value}}))
            else {
                panic!("{value} is refused")
            };
            assert!(problem.what.starts_with(expected), "{problem}");
            assert_eq!(problem.key, "retry.maxRetries");
        }
        fs::create_dir(&project).expect("a folder");
        change(&mut files, Target::Project(&project), &json!({"retry": {"maxRetries": 3.0}})).expect("in range");
    }

    #[test]
    fn a_trusted_project_has_the_ranges_of_everybody() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        put(&project_file(&project), r#"{"retry": {"maxRetries": 9}}"#);
        let mut files = files(home.path());
        assert_eq!(files.read_project(&project).sourced().settings.retry.max_retries, 3);
        let told = files.take_problems();
        assert!(told[0].to_string().contains("line 1: retry.maxRetries: 9; a project may set 0 to 3"), "{told:?}");
        put(&home.path().join("settings.json"), &json!({"trustedProjects": [&project]}).to_string());
        files.reread();
        assert_eq!(files.layers_of(Some(&project)).sourced().settings.retry.max_retries, 9);
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let home = tempfile::tempdir().expect("a folder");
        put(&home.path().join("settings.json"), "\u{feff}{\"compaction\": {\"reserveTokens\": 5}}");
        let mut files = files(home.path());
        assert_eq!((reserve(&files.layers()), files.take_problems()), (5, vec![]));
        change(&mut files, Target::Global, &json!({"prune": {"minimumSavings": 3}})).expect("written");
        assert_eq!((files.reread(), reserve(&files.layers())), (Reread::Changed, 5));
    }

    #[test]
    fn one_invalid_value_leaves_the_rest_of_a_file_alone() {
        let home = tempfile::tempdir().expect("a folder");
        let global = home.path().join("settings.json");
        put(&global, "{\"defaultModel\": \"a/b\",\n\"compaction\": {\"reserveTokens\": 5, \"stallSeconds\": 0}}");
        let mut files = files(home.path());
        let at_start = files.layers().sourced().settings;
        assert_eq!((at_start.default_model.as_deref(), at_start.compaction.reserve_tokens), (Some("a/b"), Some(5)));
        assert_eq!(at_start.compaction.stall_seconds, 90);
        assert_eq!(files.take_problems()[0].line, Some(2));
        put(&global, "{\"defaultModel\": \"c/d\", \"compaction\": {\"reserveTokens\": -5, \"stallSeconds\": 7}}");
        files.reread();
        let now = files.layers().sourced().settings;
        assert_eq!((now.default_model.as_deref(), now.compaction.reserve_tokens), (Some("c/d"), Some(5)));
        assert_eq!(now.compaction.stall_seconds, 7);
        // A file with an invalid value can be changed elsewhere, and mended.
        change(&mut files, Target::Global, &json!({"prune": {"minimumSavings": 3}})).expect("written");
        change(&mut files, Target::Global, &json!({"compaction": {"reserveTokens": 6}})).expect("written");
        assert_eq!((files.reread(), reserve(&files.layers())), (Reread::Changed, 6));
    }

    #[test]
    fn a_prompt_of_a_trusted_project_lies_over_the_users() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        put(&home.path().join("prompts/auto-continue.md"), "of the user");
        put(&home.path().join("prompts/branch-summary.md"), "of the user");
        put(&project.join(".abridged/prompts/auto-continue.md"), "of the project");
        let mut files = files(home.path());
        let own = |layers: &Layers| {
            let prompts = layers.sourced().prompts;
            [Prompt::AutoContinue, Prompt::BranchSummary].map(|prompt| prompts.get(prompt).to_owned())
        };
        assert_eq!(own(&files.read_project(&project)), ["of the user", "of the user"]);
        let told: Vec<_> = files.take_problems().into_iter().map(|it| (it.flaw, it.file)).collect();
        assert_eq!(told, [(Flaw::Untrusted, Some(project.join(".abridged/prompts")))]);
        put(&home.path().join("settings.json"), &json!({"trustedProjects": [&project]}).to_string());
        assert_eq!(files.reread(), Reread::Changed);
        assert_eq!(own(&files.layers_of(Some(&project))), ["of the project", "of the user"]);
        assert_eq!(own(&files.layers()), ["of the user", "of the user"]);
        let overridden: Vec<_> = files.overridden(Some(&project)).map(|it| (it.prompt, it.source)).collect();
        let expected = [(Prompt::BranchSummary, Source::Global), (Prompt::AutoContinue, Source::Project)];
        assert_eq!(overridden, expected);
        assert_eq!((files.reread(), files.take_problems()), (Reread::Same, vec![]));
    }

    #[test]
    fn what_was_read_for_one_session_is_news_for_the_others() {
        let home = tempfile::tempdir().expect("a folder");
        let project = home.path().join("project");
        let mut files = files(home.path());
        files.read_project(&project);
        assert_eq!(files.reread(), Reread::Same);
        put(&project_file(&project), r#"{"compaction":{"reserveTokens":7}}"#);
        files.read_project(&project);
        assert_eq!((files.reread(), files.reread()), (Reread::Changed, Reread::Same));
    }

    #[test]
    fn a_change_is_checked_then_written_whole() {
        let home = tempfile::tempdir().expect("a folder");
        let global = home.path().join("deep/settings.json");
        let mut files = SettingsFiles::read(global.clone(), &|_| None);
        change(&mut files, Target::Global, &json!({"compaction": {"reserveTokens": 9}})).expect("written");
        assert_eq!((files.reread(), reserve(&files.layers())), (Reread::Changed, 9));
        let before = fs::read(&global).expect("a file");
        let wrong = change(&mut files, Target::Global, &json!({"compaction": {"reserveTokens": -1}}));
        assert!(matches!(wrong, Err(NotChanged::Patch(problem)) if problem.key == "compaction.reserveTokens"));
        let project = home.path().join("project");
        let wrong = change(&mut files, Target::Project(&project), &json!({"models": []}));
        assert!(matches!(wrong, Err(NotChanged::Patch(problem)) if problem.key == "models"));
        assert!(!project.exists());
        assert_eq!(fs::read(&global).expect("a file"), before);
        put(&global, "{ broken");
        let wrong = change(&mut files, Target::Global, &json!({"defaultModel": "a/b"}));
        assert!(matches!(wrong, Err(NotChanged::File(problem)) if problem.line == Some(1)));
        assert_eq!(fs::read(&global).expect("a file"), b"{ broken");
        assert_eq!(fs::read_dir(global.parent().expect("a folder")).expect("a folder").count(), 1, "nothing is left");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_kept_and_those_of_a_project_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let home = tempfile::tempdir().expect("a folder");
        let elsewhere = home.path().join("dotfiles/settings.json");
        put(&elsewhere, "{}");
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o640)).expect("a mode");
        let global = home.path().join("settings.json");
        symlink(&elsewhere, &global).expect("a link");
        let mut files = files(home.path());
        change(&mut files, Target::Global, &json!({"compaction": {"reserveTokens": 9}})).expect("written");
        assert!(global.is_symlink());
        assert!(fs::read_to_string(&elsewhere).expect("a file").contains("reserveTokens"));
        assert_eq!(fs::metadata(&elsewhere).expect("a file").permissions().mode() & 0o777, 0o640);

        let project = home.path().join("project");
        fs::create_dir_all(project.join(".abridged")).expect("a folder");
        symlink(&elsewhere, project_file(&project)).expect("a link");
        let refused = change(&mut files, Target::Project(&project), &json!({"prune": {"minimumSavings": 1}}));
        assert!(matches!(refused, Err(NotChanged::File(_))));
        assert!(!fs::read_to_string(&elsewhere).expect("a file").contains("prune"));
    }
}
