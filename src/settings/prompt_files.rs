//! The texts in a folder that replace prompts, as they were read last. A broken file keeps its previous text, and each
//! problem is reported once.

#![expect(clippy::disallowed_methods, reason = "reads prompt files")]

use super::{
    problem::{Flaw, Problem, Subject},
    sources::{Reread, project_prompts},
    trust::Trust,
};
use crate::{
    prompts::{LONGEST, Prompt, Prompts},
    regular::{self, Links},
};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// A folder of prompts.
pub struct PromptFolder {
    folder: PathBuf,
    owner: Owner,
    files: BTreeMap<PathBuf, PromptFile>,
    /// The problem of the folder itself.
    flaw: Option<Problem>,
}

/// The owner of a folder of prompts.
enum Owner {
    User,
    /// The project in this folder.
    Project(PathBuf),
}

/// One file.
#[derive(Default)]
struct PromptFile {
    /// Its text at the last read, or the reason why it could not be read.
    seen: Option<Result<String, String>>,
    /// Its text, or the last text that was valid.
    text: Option<String>,
    problem: Option<Problem>,
}

impl PromptFolder {
    /// The folder of the user's prompts, beside the global settings file. Reads nothing yet.
    #[must_use]
    pub fn of_user(settings: &Path) -> Self {
        Self::at(settings.with_file_name("prompts"), Owner::User)
    }

    /// The folder of a project's prompts. Reads nothing yet.
    #[must_use]
    pub fn of_project(cwd: &Path) -> Self {
        Self::at(project_prompts(cwd), Owner::Project(cwd.to_owned()))
    }

    fn at(folder: PathBuf, owner: Owner) -> Self {
        Self { folder, owner, files: BTreeMap::new(), flaw: None }
    }

    /// The path of the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that stands in for a prompt, and its text.
    #[must_use]
    pub fn text(&self, prompt: Prompt) -> Option<(&Path, &str)> {
        let (file, own) = self.files.get_key_value(&self.folder.join(format!("{}.md", prompt.name())))?;
        Some((file, own.text.as_deref()?))
    }

    /// All current problems.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.flaw.iter().chain(self.files.values().filter_map(|file| file.problem.as_ref()))
    }

    /// The folders in which its changes show: itself, and the targets of links.
    #[must_use]
    pub fn seen_in(&self) -> Vec<PathBuf> {
        let files = self.files.keys().filter_map(|file| Some(file.canonicalize().ok()?.parent()?.to_owned()));
        [self.folder.clone()].into_iter().chain(self.folder.canonicalize()).chain(files).collect()
    }

    /// Reads the folder again. New problems go to `untold`. `Changed` is about the texts in force, so a file that
    /// breaks changes nothing.
    pub fn look(&mut self, trust: Trust, untold: &mut Vec<Problem>) -> Reread {
        let (there, flaw) = match (self.there(), trust) {
            (Ok(there), Trust::Trusted) => (there, None),
            (Err(what), Trust::Trusted) => {
                self.note(Some(problem(&self.folder, Flaw::Broken, what)), untold);
                return Reread::Same;
            }
            (Ok(there), Trust::Untrusted) if there.is_empty() => (there, None),
            (_, Trust::Untrusted) => (BTreeMap::new(), Some(problem(&self.folder, Flaw::Untrusted, self.untrusted()))),
        };
        self.note(flaw, untold);
        let mut reread = Reread::Same;
        for (path, file) in std::mem::take(&mut self.files) {
            if there.contains_key(&path) {
                self.files.insert(path, file);
            } else if file.text.is_some() {
                reread = Reread::Changed;
            }
        }
        for (path, name) in there {
            let file = self.files.entry(path.clone()).or_default();
            if file.look(&path, &name, &self.owner, untold) == Reread::Changed {
                reread = Reread::Changed;
            }
        }
        reread
    }

    /// The files in it that are meant to be prompts, with the names of these. Hidden ones are not: editors make them.
    fn there(&self) -> Result<BTreeMap<PathBuf, String>, String> {
        match fs::metadata(&self.folder) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => return Err("it is no folder".to_owned()),
            Err(error) if missing(&error) => return Ok(BTreeMap::new()),
            Err(error) => return Err(unreadable(&error)),
        }
        if let Owner::Project(_) = self.owner
            && [Some(self.folder.as_path()), self.folder.parent()].into_iter().flatten().any(is_link)
        {
            return Err(LINK.to_owned());
        }
        let files = match fs::read_dir(&self.folder) {
            Err(error) if missing(&error) => return Ok(BTreeMap::new()),
            files => files.and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(|error| unreadable(&error))?,
        };
        let named = files.iter().filter_map(|file| {
            let name = file.file_name().to_string_lossy().strip_suffix(".md")?.to_owned();
            (!name.is_empty() && !name.starts_with('.')).then(|| (file.path(), name))
        });
        Ok(named.collect())
    }

    /// Records the problem of the folder itself.
    fn note(&mut self, flaw: Option<Problem>, untold: &mut Vec<Problem>) {
        if flaw != self.flaw {
            untold.extend(flaw.clone());
            self.flaw = flaw;
        }
    }

    fn untrusted(&self) -> String {
        let whose = match &self.owner {
            Owner::User => &self.folder,
            Owner::Project(cwd) => cwd,
        };
        format!(
            "a project may not have prompts of its own; ignored. If you trust it, add \"{}\" to trustedProjects in the \
             global settings file",
            whose.display()
        )
    }
}

impl PromptFile {
    /// Reads the file again. A broken file keeps its text.
    fn look(&mut self, path: &Path, name: &str, owner: &Owner, untold: &mut Vec<Problem>) -> Reread {
        let prompt = Prompt::named(name);
        let seen = prompt.clone().and_then(|_| text_of(path, owner));
        // A file that was removed just now is handled with the next read of the folder.
        let gone = seen.is_err() && path.symlink_metadata().is_err_and(|error| missing(&error));
        if gone || self.seen.as_ref() == Some(&seen) {
            return Reread::Same;
        }
        let wrong = seen.as_ref().map_err(String::clone).and_then(|text| Prompts::default().set(name, text)).err();
        let flaw = if prompt.is_ok() { Flaw::Broken } else { Flaw::Unknown };
        self.problem = wrong.map(|what| problem(path, flaw, what));
        untold.extend(self.problem.clone());
        let right = self.problem.is_none().then(|| seen.clone().ok()).flatten();
        self.seen = Some(seen);
        if right.is_none() || right == self.text {
            return Reread::Same;
        }
        self.text = right;
        Reread::Changed
    }
}

/// The text of a file, or the reason why it cannot be read.
fn text_of(path: &Path, owner: &Owner) -> Result<String, String> {
    if matches!(owner, Owner::Project(_)) && is_link(path) {
        return Err(LINK.to_owned());
    }
    let links = if matches!(owner, Owner::Project(_)) { Links::Refused } else { Links::Followed };
    let mut bytes = Vec::new();
    let read = regular::open(path, links).and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(&error))?;
    if bytes.len() > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not UTF-8: byte {at} begins no character")
    })?;
    // Some editors begin a file with a mark that no model should see.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

const LINK: &str = "a link stands in its place, and a project's links are not followed";

/// Returns true for a link. A cloned project could lead out of its folder by one.
fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_symlink())
}

fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read ({error}); check what it is and who may read it")
}

fn problem(path: &Path, flaw: Flaw, what: String) -> Problem {
    Problem { file: Some(path.to_owned()), flaw, subject: Subject::Prompts, ..Problem::broken(what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        home: tempfile::TempDir,
        folder: PromptFolder,
    }

    impl Case {
        /// A folder that is not there yet.
        fn new(of: impl Fn(&Path) -> PromptFolder) -> Self {
            let home = tempfile::tempdir().expect("a folder");
            Self { folder: of(home.path()), home }
        }

        fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
            let file = self.folder.folder().join(name);
            fs::create_dir_all(self.folder.folder()).and_then(|()| fs::write(&file, text)).expect("a file");
            file
        }

        /// The changed state of the texts, and the reported problems.
        fn look(&mut self, trust: Trust) -> (bool, Vec<Problem>) {
            let mut untold = Vec::new();
            let reread = self.folder.look(trust, &mut untold);
            (reread == Reread::Changed, untold)
        }

        /// Looks, where nothing is wrong.
        fn changed(&mut self) -> bool {
            let (changed, told) = self.look(Trust::Trusted);
            assert_eq!(told, []);
            changed
        }

        /// Looks, where one thing is newly wrong and all texts stay.
        fn broken(&mut self) -> Problem {
            let (changed, mut told) = self.look(Trust::Trusted);
            assert_eq!((changed, told.len()), (false, 1), "{told:?}");
            assert_eq!(self.look(Trust::Trusted), (false, vec![]), "it is told once");
            let problem = told.remove(0);
            assert_eq!(self.folder.problems().collect::<Vec<_>>(), [&problem]);
            problem
        }

        fn text(&self, prompt: Prompt) -> Option<&str> {
            self.folder.text(prompt).map(|(_, text)| text)
        }
    }

    fn of_user(home: &Path) -> PromptFolder {
        PromptFolder::of_user(&home.join("settings.json"))
    }

    #[test]
    fn a_text_comes_changes_and_goes() {
        let mut case = Case::new(of_user);
        assert!(!case.changed());
        let file = case.put("auto-continue.md", "\u{feff}Go on.\n");
        assert!(case.changed());
        assert_eq!(case.folder.text(Prompt::AutoContinue), Some((file.as_path(), "Go on.\n")));
        assert!(!case.changed());
        case.put("auto-continue.md", "Go further.\n");
        assert!(case.changed());
        assert_eq!(case.text(Prompt::AutoContinue), Some("Go further.\n"));
        fs::remove_file(file).expect("removed");
        assert!(case.changed());
        assert_eq!(case.text(Prompt::AutoContinue), None);
        case.put("auto-continue.md", "Go on.");
        assert!(case.changed());
        fs::remove_dir_all(case.folder.folder()).expect("removed");
        assert!(case.changed());
        assert_eq!(case.text(Prompt::AutoContinue), None);
    }

    #[test]
    fn what_is_broken_keeps_what_it_said_and_is_told_once() {
        let mut case = Case::new(of_user);
        let file = case.put("handoff-context.md", "A: {{document}}");
        assert!(case.changed());
        for (bytes, why) in [
            (b"nothing in it".as_slice(), "lacks {{document}}"),
            (b" \n", "it is empty"),
            (b"{{document}} \xff", "not UTF-8: byte 13"),
            ("{{document}}".repeat(6_000).as_bytes(), "more than 65536 bytes"),
        ] {
            case.put("handoff-context.md", bytes);
            let problem = case.broken();
            assert!(problem.to_string().starts_with(&file.display().to_string()), "{problem}");
            assert!(problem.what.contains(why), "{problem}");
            assert_eq!((problem.flaw, problem.subject), (Flaw::Broken, Subject::Prompts));
            assert_eq!(case.text(Prompt::HandoffContext), Some("A: {{document}}"));
        }
        fs::remove_file(&file).and_then(|()| fs::create_dir(&file)).expect("a folder");
        assert!(case.broken().what.contains("not a regular file"));
        assert_eq!(case.text(Prompt::HandoffContext), Some("A: {{document}}"));
        fs::remove_dir(&file).expect("removed");
        case.put("handoff-context.md", "A: {{document}}");
        assert!(!case.changed(), "it says what it said");
        assert_eq!(case.folder.problems().count(), 0);
        case.put("pinned-context.md", "never right");
        case.broken();
        assert_eq!(case.text(Prompt::PinnedContext), None);
        fs::remove_file(case.folder.folder().join("pinned-context.md")).expect("removed");
        assert!(!case.changed(), "nothing of it held");
        fs::remove_dir_all(case.folder.folder()).expect("removed");
        fs::write(case.folder.folder(), "in its place").expect("a file");
        assert!(case.broken().what.contains("no folder"));
        assert_eq!(case.text(Prompt::HandoffContext), Some("A: {{document}}"));
    }

    #[test]
    fn a_name_nobody_knows_is_told_once_and_other_files_are_nobodys_business() {
        let mut case = Case::new(of_user);
        for name in
            [".auto-continue.md", "auto-continue.md~", "#auto-continue.md#", ".md", "notes.txt", "auto-continue"]
        {
            case.put(name, "x");
        }
        assert!(!case.changed());
        case.put("auto-contineu.md", "x");
        let problem = case.broken();
        assert_eq!(problem.flaw, Flaw::Unknown);
        assert!(problem.to_string().contains("auto-contineu.md: there is no prompt `auto-contineu`"), "{problem}");
        case.put("auto-contineu.md", "y");
        assert!(!case.changed(), "what is in it says nothing new");
    }

    #[test]
    fn who_is_not_trusted_is_told_of_once_and_has_no_say() {
        let mut case = Case::new(|home| PromptFolder::of_project(&home.join("project")));
        assert_eq!(case.look(Trust::Untrusted), (false, vec![]));
        fs::create_dir_all(case.folder.folder()).expect("a folder");
        assert_eq!(case.look(Trust::Untrusted), (false, vec![]), "nothing is in it");
        case.put("auto-continue.md", "Go on.");
        let (changed, told) = case.look(Trust::Untrusted);
        assert_eq!((changed, told.len(), told[0].flaw), (false, 1, Flaw::Untrusted));
        assert_eq!(told[0].file.as_deref(), Some(case.folder.folder()));
        assert!(told[0].what.contains("project\" to trustedProjects"), "{}", told[0]);
        case.put("unknown.md", "");
        assert_eq!(case.look(Trust::Untrusted), (false, vec![]), "it is told once");
        fs::remove_file(case.folder.folder().join("unknown.md")).expect("removed");
        assert!(case.changed(), "now somebody trusts it");
        assert_eq!(case.text(Prompt::AutoContinue), Some("Go on."));
        let (changed, told) = case.look(Trust::Untrusted);
        assert_eq!((changed, told.len(), case.text(Prompt::AutoContinue)), (true, 1, None));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_for_the_user_and_not_for_a_project() {
        use std::os::unix::fs::symlink;
        let mut own = Case::new(of_user);
        let elsewhere = own.home.path().join("dotfiles");
        fs::create_dir(&elsewhere).and_then(|()| fs::write(elsewhere.join("go"), "Go on.")).expect("a file");
        fs::create_dir(own.folder.folder()).expect("a folder");
        symlink(elsewhere.join("go"), own.folder.folder().join("auto-continue.md")).expect("a link");
        assert!(own.changed());
        assert_eq!(own.text(Prompt::AutoContinue), Some("Go on."));
        let elsewhere = elsewhere.canonicalize().expect("a folder");
        assert!(own.folder.seen_in().contains(&elsewhere), "{:?}", own.folder.seen_in());

        let mut case = Case::new(PromptFolder::of_project);
        fs::create_dir_all(case.folder.folder()).expect("a folder");
        symlink(elsewhere.join("go"), case.folder.folder().join("auto-continue.md")).expect("a link");
        assert!(case.broken().what.contains("links are not followed"));
        assert_eq!(case.text(Prompt::AutoContinue), None);
        fs::remove_dir_all(case.folder.folder()).expect("removed");
        assert!(!case.changed());
        fs::rename(elsewhere.join("go"), elsewhere.join("auto-continue.md")).expect("renamed");
        symlink(&elsewhere, case.folder.folder()).expect("a link");
        assert!(case.broken().what.contains("links are not followed"));
        assert_eq!(case.text(Prompt::AutoContinue), None);
        fs::remove_dir_all(case.home.path().join(".abridged")).expect("removed");
        symlink(own.home.path(), case.home.path().join(".abridged")).expect("a link");
        fs::remove_dir_all(own.folder.folder()).expect("removed");
        assert!(!case.changed(), "there are no prompts behind it");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_nobody_may_read_keeps_what_it_said() {
        use std::os::unix::fs::PermissionsExt;
        let mut case = Case::new(of_user);
        let file = case.put("auto-continue.md", "Go on.");
        assert!(case.changed());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("a mode");
        if fs::read(&file).is_ok() {
            eprintln!("SKIPPED: root reads everything");
            return;
        }
        assert!(case.broken().what.contains("who may read it"));
        assert_eq!(case.text(Prompt::AutoContinue), Some("Go on."));
    }
}
