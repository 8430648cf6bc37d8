//! The folder that each command of a script runs in.

use super::tokens::{Command, Group};

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Folder {
    /// The folder that the script begins in.
    First,
    /// A folder that the script names, relative to the first one or absolute.
    Named(String),
    /// The script says it in a way that is not understood.
    Unknown,
}

/// The folder while the commands of a script are read in their order.
pub(super) struct Folders {
    current: Folder,
    /// The groups that have no end yet, each with the folder before it.
    groups: Vec<(Group, Folder)>,
}

impl Folders {
    /// Begins in the folder that a call names; an empty one is not known.
    pub(super) fn begin(first: &str) -> Self {
        let current = if first.is_empty() { Folder::First } else { Folder::Named(first.to_owned()) };
        Self { current, groups: Vec::new() }
    }

    /// Takes in that a command begins.
    pub(super) fn enter(&mut self, command: &Command) {
        self.groups.extend(command.opened.iter().map(|group| (*group, self.current.clone())));
    }

    /// Takes in that a command ended.
    pub(super) fn leave(&mut self, command: &Command) {
        let mut words = command.words.iter();
        match words.next().map(|word| word.text.as_str()) {
            Some("cd") => {
                let target = words.find(|word| !word.text.starts_with('-') || word.text == "-");
                self.current = match target {
                    Some(target) if target.is_plain && target.text != "-" => self.changed(&target.text),
                    None => Folder::Named("~".to_owned()),
                    Some(_) => Folder::Unknown,
                };
            }
            Some("pushd" | "popd") => self.current = Folder::Unknown,
            _ => {}
        }
        for _ in 0..command.closed {
            match self.groups.pop() {
                Some((Group::Subshell, before)) => self.current = before,
                Some((Group::Braces, _)) | None => {}
            }
        }
    }

    fn changed(&self, target: &str) -> Folder {
        self.within(target).map_or(Folder::Unknown, Folder::Named)
    }

    /// A path in the current folder. `None` where the folder is not known.
    pub(super) fn within(&self, path: &str) -> Option<String> {
        match &self.current {
            _ if is_absolute(path) => Some(path.to_owned()),
            Folder::First => Some(path.to_owned()),
            Folder::Named(folder) => Some(format!("{}/{path}", folder.trim_end_matches('/'))),
            Folder::Unknown => None,
        }
    }

    /// The folder, if the script names it.
    pub(super) fn named(&self) -> Option<&str> {
        match &self.current {
            Folder::Named(folder) => Some(folder),
            Folder::First | Folder::Unknown => None,
        }
    }
}

/// Whether a path needs no folder before it.
#[must_use]
pub fn is_absolute(path: &str) -> bool {
    let drive = |path: &str| path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && path[1..].starts_with(':');
    path.starts_with(['/', '\\', '~']) || drive(path)
}

/// Whether a folder is inside of another one.
pub(super) fn is_inside(inner: Option<&str>, outer: Option<&str>) -> bool {
    let rest = outer.and_then(|outer| inner?.strip_prefix(outer.trim_end_matches('/')));
    rest.is_some_and(|rest| rest.starts_with('/') && !rest.contains(".."))
}

/// Whether two folders may be one: one of them may be the end of the other. One that is not named may be any.
pub(super) fn may_be_same(one: Option<&str>, other: Option<&str>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return true };
    let bare = |path: &'_ str| {
        let path = path.trim_end_matches('/').trim_start_matches("~/");
        path.strip_prefix("./").unwrap_or(path).to_owned()
    };
    let (one, other) = (bare(one), bare(other));
    let is_unsure = |path: &str| path.is_empty() || path == "." || path.contains("..");
    let ends =
        |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    is_unsure(&one) || is_unsure(&other) || ends(&one, &other) || ends(&other, &one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::shell::uses;
    use serde_json::json;

    #[test]
    fn folders_are_compared_by_their_paths() {
        assert!(["/x", "~/x", "C:/x"].into_iter().all(is_absolute));
        assert!(!["x/y", "1:x", "ä:x"].into_iter().any(is_absolute));
        for (inner, outer, inside) in
            [("/r/a", "/r", true), ("/r/a", "/r/", true), ("/rx", "/r", false), ("/r/../x", "/r", false)]
        {
            assert_eq!(is_inside(Some(inner), Some(outer)), inside, "{inner} {outer}");
        }
        for (one, other, same) in [
            ("/x/a", "a", true),
            ("xa", "a", false),
            (".", "b", true),
            ("a/..", "b", true),
            ("/", "b", true),
            ("b", "/", true),
            ("./a", "~/a", true),
        ] {
            assert_eq!(may_be_same(Some(one), Some(other)), same, "{one} {other}");
        }
    }

    #[test]
    fn a_folder_that_is_not_understood_has_no_files() {
        for script in ["cd - && rm b", "cd $X; rm b", "pushd a; rm b"] {
            assert_eq!(uses("bash", &json!({ "command": script })), [], "{script}");
        }
    }
}
