//! The files that a command of a shell removes or shows, by its words. A command that says it in another way is not understood:
//! the lists are hints.

use serde_json::Value;

/// Tools of common agents that run a command.
const SHELLS: [&str; 13] = [
    "bash",
    "shell",
    "exec",
    "exec_command",
    "local_shell",
    "shell_command",
    "terminal",
    "execute_command",
    "run_command",
    "run_terminal_cmd",
    "run_terminal_command",
    "run_shell_command",
    "run_in_terminal",
];

/// Arguments with the command.
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];

/// Arguments with the folder that the command runs in.
const FOLDERS: [&str; 4] = ["workdir", "cwd", "working_directory", "dir_path"];

/// The longest command that is read, in bytes. A longer one writes a file.
const LONGEST: usize = 16 * 1024;

/// The use of a file by a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// It is removed, or moved away. A folder goes with all of its files.
    Removed(String),
    /// It is written: by `>`, or in place.
    Changed(String),
    /// Its whole text is the output.
    Shown(String),
}

/// Whether a tool runs commands.
#[must_use]
pub fn is_shell(tool: &str) -> bool {
    SHELLS.iter().any(|shell| super::is_same_tool(shell, tool))
}

/// The files that a call of a shell uses, in its order. Paths are relative to the folder that the call names, if it names one.
#[must_use]
pub fn uses(tool: &str, arguments: &Value) -> Vec<Use> {
    if !is_shell(tool) {
        return Vec::new();
    }
    let Some(command) = COMMANDS.iter().find_map(|name| command_of(arguments.get(*name)?)) else { return Vec::new() };
    let mut folder = FOLDERS.iter().find_map(|name| arguments.get(*name)?.as_str()).unwrap_or_default().to_owned();
    let mut uses = Vec::new();
    let is_alone = !command.contains(['|', '>', '<', ';', '&', '\n']);
    // The folder is not known any more.
    let mut is_lost = false;
    for SimpleCommand { words, written, is_known } in simple_commands(&command) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let changes_folder = matches!(words.first(), Some(&("cd" | "pushd" | "popd")));
        is_lost |= changes_folder && (!is_known || words.first() != Some(&"cd"));
        if !is_known || words.contains(&"--cached") {
            continue;
        }
        let words = match words.as_slice() {
            ["sudo" | "git", rest @ ..] => rest,
            words => words,
        };
        let Some((program, operands)) = words.split_first() else { continue };
        let within = |path: &&str| match folder.as_str() {
            "" => (*path).to_owned(),
            _ if is_absolute(path) => (*path).to_owned(),
            folder => format!("{}/{path}", folder.trim_end_matches('/')),
        };
        let is_found = |path: &&&str| !is_lost || is_absolute(path);
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        uses.extend(written.iter().filter(is_found).map(within).map(Use::Changed));
        let operands = operands.iter().filter(|word| !word.starts_with('-') && !word.is_empty()).filter(is_found);
        match *program {
            "rm" | "unlink" | "rmdir" | "trash" => uses.extend(operands.map(within).map(Use::Removed)),
            "mv" => {
                let paths: Vec<String> = operands.map(within).collect();
                let moved = paths.len().saturating_sub(1);
                uses.extend(paths.into_iter().take(moved).map(Use::Removed));
            }
            // The first operand is the script.
            "sed" if words.contains(&"-i") => uses.extend(operands.skip(1).map(within).map(Use::Changed)),
            "cat" if is_alone => uses.extend(operands.map(within).map(Use::Shown)),
            "cd" => folder = operands.map(within).next().unwrap_or_default(),
            _ => {}
        }
    }
    uses
}

/// Whether a path needs no folder before it.
#[must_use]
pub fn is_absolute(path: &str) -> bool {
    let drive = |path: &str| path.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && path[1..].starts_with(':');
    path.starts_with(['/', '\\', '~']) || drive(path)
}

/// The command as one text. Codex names the shell and its option before it.
fn command_of(value: &Value) -> Option<String> {
    let command = match value {
        Value::String(command) => command.clone(),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [shell, option, script] if shell.ends_with("sh") && option.starts_with('-') => (*script).to_owned(),
                words => words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
            }
        }
        _ => return None,
    };
    (command.len() <= LONGEST).then_some(command)
}

/// A command without operators.
struct SimpleCommand {
    words: Vec<String>,
    /// The files that `>` writes.
    written: Vec<String>,
    /// It has no pattern and no variable in it, so that its words are those that the shell takes.
    is_known: bool,
}

/// The simple commands of a text. One with a document in it has none: its words say nothing.
fn simple_commands(command: &str) -> Vec<SimpleCommand> {
    if command.contains("<<") {
        return Vec::new();
    }
    let (mut commands, mut words, mut written) = (Vec::new(), Vec::new(), Vec::new());
    let (mut word, mut quote, mut is_known) = (None::<String>, None::<char>, true);
    let mut chars = command.chars().peekable();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), char) if char == open => quote = None,
            (Some('\''), char) => word.get_or_insert_default().push(char),
            (_, '\\') => word.get_or_insert_default().extend(chars.next()),
            (_, '$' | '`') => is_known = false,
            (Some(_), char) => word.get_or_insert_default().push(char),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, '*' | '?' | '[' | '{') => is_known = false,
            (None, '\n' | ';' | '&' | '|') => {
                words.extend(word.take());
                let words = std::mem::take(&mut words);
                let written = std::mem::take(&mut written);
                commands.push(SimpleCommand { words, written, is_known: std::mem::replace(&mut is_known, true) });
            }
            // The name of a file that is written.
            (None, '>') => {
                word = None;
                let mut is_of_number = false;
                while let Some(char) = chars.next_if(|char| matches!(char, '>' | '&' | ' ')) {
                    is_of_number |= char == '&';
                }
                let mut name = String::new();
                while let Some(char) = chars.next_if(|char| !char.is_whitespace() && !matches!(char, ';' | '|' | '&')) {
                    name.push(char);
                }
                let is_file = !name.is_empty() && !name.starts_with("/dev/");
                let is_plain = is_file && !name.contains(['$', '`', '"', '\'', '*', '?', '(', '\\']);
                written.extend(Some(name).filter(|_| is_plain && !is_of_number));
            }
            (None, char) if char.is_whitespace() => words.extend(word.take()),
            (None, char) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    commands.push(SimpleCommand { words, written, is_known: is_known && quote.is_none() });
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(command: &str) -> Vec<String> {
        let shown = |it| match it {
            Use::Removed(path) => format!("-{path}"),
            Use::Changed(path) => format!("*{path}"),
            Use::Shown(path) => format!("+{path}"),
        };
        uses("Bash", &json!({ "command": command })).into_iter().map(shown).collect()
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
            ("cat > rm <<EOF\nrm a\nEOF", vec![]),
            ("rm 'a", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(of(command), expected, "{command}");
        }
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
