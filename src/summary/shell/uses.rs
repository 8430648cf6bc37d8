//! The files that a call of a shell removes, changes or shows, by the words of its commands. A command that says it in another
//! way is not understood: the lists are hints.

use super::{
    calls,
    folders::Folders,
    programs,
    tokens::{Command, Join, Redirection, Word},
};
use crate::summary::files::patch;
use serde_json::Value;

/// The use of a file by a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// It is removed, or moved away. A folder goes with all of its files.
    Removed(String),
    /// It is changed in place.
    Changed(String),
    /// The output of a command is written to it.
    Written(String),
    /// Its whole text is the output.
    Shown(String),
}

/// The files that a call of a shell uses, in its order. Paths are relative to the folder that the call names, if it names one.
#[must_use]
pub fn uses(tool: &str, arguments: &Value) -> Vec<Use> {
    let Some(all) = arguments.as_object().filter(|_| calls::is_shell(tool)) else { return Vec::new() };
    let mut uses = Vec::new();
    // Code that gives a patch to a tool.
    for code in calls::CODES.iter().filter_map(|name| all.get(*name)?.as_str()) {
        patch::all_in(code).iter().for_each(|patch| of_patch(patch, &Folders::begin(""), &mut uses));
    }
    let Some(script) = calls::script_of(all) else { return uses };
    let mut folders = Folders::begin(calls::folder_of(arguments));
    let commands = programs::commands(&script);
    let is_alone = match commands.as_slice() {
        [only] => only.redirects.is_empty() && only.document.is_none() && only.joined == Join::Then,
        _ => false,
    };
    for command in &commands {
        folders.enter(command);
        of_command(command, is_alone, &folders, &mut uses);
        folders.leave(command);
    }
    uses
}

/// Whether a call runs one command and nothing else: its exit code is that of the command.
#[must_use]
pub fn runs_one_command(arguments: &Value) -> bool {
    let script = arguments.as_object().and_then(calls::script_of);
    let changes_folder = |command: &&Command| command.words.first().is_some_and(|word| word.text == "cd");
    script
        .is_none_or(|script| programs::commands(&script).iter().filter(|command| !changes_folder(command)).count() <= 1)
}

fn of_command(command: &Command, is_alone: bool, folders: &Folders, uses: &mut Vec<Use>) {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    let within = |word: &Word| folders.within(&word.text).filter(|_| word.is_plain && !word.text.is_empty());
    let written = command.redirects.iter().filter(|redirect| redirect.kind == Redirection::Write);
    let written = written.map(|redirect| &redirect.target).filter(|target| !target.text.starts_with("/dev/"));
    uses.extend(written.filter_map(within).map(Use::Written));
    let Some(program) = words.first() else { return };
    let mut program = programs::base(program);
    let mut arguments = &command.words[1..];
    if program == "git" {
        // A folder before the name of the command is not read.
        let Some((name, rest)) = arguments.split_first().filter(|_| !words.contains(&"--cached")) else { return };
        (program, arguments) = (&name.text, rest);
    }
    let options = || arguments.iter().map(|word| word.text.as_str()).filter(|word| word.starts_with('-'));
    let is_operand = |word: &&Word| !word.text.starts_with('-') && !word.text.is_empty();
    let operands: Vec<&Word> = arguments.iter().filter(is_operand).collect();
    let found = |operands: &[&Word]| operands.iter().filter_map(|word| within(word)).collect::<Vec<_>>();
    match program {
        "rm" | "unlink" | "rmdir" | "trash" => uses.extend(found(&operands).into_iter().map(Use::Removed)),
        "mv" => {
            let moved = &operands[..operands.len().saturating_sub(1)];
            uses.extend(found(moved).into_iter().map(Use::Removed));
        }
        "sed" if options().any(edits_in_place) => {
            let gives_script = |word: &Word| ["-e", "-f", "--expression", "--file"].contains(&word.text.as_str());
            let given: Vec<&Word> =
                arguments.windows(2).filter(|pair| gives_script(&pair[0])).map(|pair| &pair[1]).collect();
            // Without such an option the first operand is the script.
            let files = operands.iter().skip(usize::from(given.is_empty()));
            let files: Vec<&Word> =
                files.copied().filter(|file| !given.iter().any(|it| std::ptr::eq(*it, *file))).collect();
            uses.extend(found(&files).into_iter().map(Use::Changed));
        }
        "cat" if is_alone && command.words.iter().all(|word| word.is_plain) => {
            uses.extend(found(&operands).into_iter().map(Use::Shown));
        }
        "apply_patch" | "applypatch" => {
            let given = operands.iter().map(|word| word.text.as_str()).chain(command.document.as_deref());
            given.for_each(|patch| of_patch(patch, folders, uses));
        }
        _ => {}
    }
}

/// Whether an option of sed has it write its files: `-i`, `-i.bak`, `-ni`, `--in-place`.
fn edits_in_place(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long.starts_with("in-place"),
        None => option.split('.').next().is_some_and(|letters| letters.contains('i')),
    }
}

fn of_patch(text: &str, folders: &Folders, uses: &mut Vec<Use>) {
    for file in patch::files(text) {
        let Some(path) = folders.within(&file.path) else { continue };
        uses.push(match file.change {
            patch::Change::Deleted => Use::Removed(path),
            patch::Change::Added | patch::Change::Updated => Use::Changed(path),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::shell::tokens::LONGEST;
    use serde_json::json;

    fn of(command: &str) -> Vec<String> {
        shown(uses("Bash", &json!({ "command": command })))
    }

    fn shown(uses: Vec<Use>) -> Vec<String> {
        let shown = |it| match it {
            Use::Removed(path) => format!("-{path}"),
            Use::Changed(path) | Use::Written(path) => format!("*{path}"),
            Use::Shown(path) => format!("+{path}"),
        };
        uses.into_iter().map(shown).collect()
    }

    #[test]
    fn words_of_commands_say_which_files_go_and_which_are_shown() {
        for (command, expected) in [
            ("rm -rf src/old.rs 'my file'", vec!["-src/old.rs", "-my file"]),
            ("cargo test && git rm a.rs; sudo rm \"b c\"", vec!["-a.rs", "-b c"]),
            ("git rm --cached a.rs", vec![]),
            ("cd \"$(mktemp -d)\" && git clone x . && rm -rf src /tmp/y", vec!["-/tmp/y"]),
            ("pushd sub; rm a; popd; rm b", vec![]),
            ("mv a b c dir", vec!["-a", "-b", "-c"]),
            ("mv a", vec![]),
            ("cd sub && rm x ../y /z", vec!["-sub/x", "-sub/../y", "-/z"]),
            ("cat skills/pdf/SKILL.md", vec!["+skills/pdf/SKILL.md"]),
            ("cat skills/pdf/SKILL.md | head", vec![]),
            ("head -3 SKILL.md", vec![]),
            ("cat SKILL.md >> all.txt", vec!["*all.txt"]),
            ("cd sub && echo x > AGENTS.md", vec!["*sub/AGENTS.md"]),
            ("sed -i 's/a b/c/' x.rs y.rs", vec!["*x.rs", "*y.rs"]),
            ("sed -n 1p x.rs; make > \"$LOG\" 2>&1", vec![]),
            ("ls && cat SKILL.md", vec![]),
            ("rm \"$FILE\"; rm *.o; rm a", vec!["-a"]),
            ("echo rm a", vec![]),
            ("rm a > log 2>&1", vec!["*log", "-a"]),
            ("make > /dev/null", vec![]),
            // The text of a document is no command.
            ("cat > rm <<EOF\nrm a\nEOF", vec!["*rm"]),
            ("rm 'a", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(of(command), expected, "{command}");
        }
    }

    #[test]
    fn a_file_is_changed_in_place_by_an_editor_and_by_a_patch() {
        let patch = "*** Begin Patch\n*** Update File: src/c.rs\n@@\n-old\n+it's new\n*** End Patch";
        for (command, expected) in [
            (format!("cd sub && apply_patch <<'EOF'\n{patch}\nEOF\nrm x"), vec!["*sub/src/c.rs", "-sub/x"]),
            (format!("bash -c \"apply_patch <<'EOF'\n{patch}\nEOF\""), vec!["*src/c.rs"]),
            ("sed -i.bak s/a/b/ a.rs".to_owned(), vec!["*a.rs"]),
            ("sed -i -e s/a/b/ -e s/c/d/ a.rs b.rs".to_owned(), vec!["*a.rs", "*b.rs"]),
            ("sed -i '' -E \"s/$a/b/\" a.rs".to_owned(), vec!["*a.rs"]),
            ("sed -n 's/in/x/p' a.rs".to_owned(), vec![]),
            ("(cd sub && rm a) && rm b".to_owned(), vec!["-sub/a", "-b"]),
            ("x=$((1<<2)); rm a".to_owned(), vec!["-a"]),
            ("git commit -m \"$(cat <<'EOF'\ndon't > x\nEOF\n)\" && rm a".to_owned(), vec!["-a"]),
        ] {
            assert_eq!(of(&command), expected, "{command}");
        }
        let words = json!({ "command": ["apply_patch", patch] });
        assert_eq!(shown(uses("shell", &words)), ["*src/c.rs"]);
        let long = patch.replace("-old", &format!("-old\n{}", "+line of it\n".repeat(2_000)));
        assert_eq!(shown(uses("shell", &json!({ "command": ["apply_patch", long] }))), ["*src/c.rs"]);
        let code = format!("const patch = {};\ntext(await tools.apply_patch(patch));", json!(patch));
        assert_eq!(shown(uses("exec", &json!({ "input": code }))), ["*src/c.rs"]);
    }

    #[test]
    fn a_command_may_be_a_list_with_a_folder() {
        let script = json!({"command": ["bash", "-lc", "rm a"], "workdir": "/w/"});
        assert_eq!(uses("shell", &script), [Use::Removed("/w/a".to_owned())]);
        let words = json!({"cmd": ["rm", "a b"]});
        assert_eq!(uses("exec_command", &words), [Use::Removed("a b".to_owned())]);
        assert_eq!(uses("read", &json!({"command": "rm a"})), []);
        assert_eq!(uses("bash", &json!({"command": 7})), []);
        assert_eq!(uses("bash", &json!({"command": "a; ".repeat(LONGEST) + "rm a"})), []);
    }
}
