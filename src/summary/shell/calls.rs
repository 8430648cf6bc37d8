//! Calls of tools that run commands: the names of these tools, and the script in the arguments of a call.

use super::{programs, tokens};
use serde_json::{Map, Value};

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
pub const COMMANDS: [&str; 3] = ["command", "cmd", "script"];

/// Arguments with a piece of code that calls tools.
pub(in crate::summary) const CODES: [&str; 2] = ["input", "code"];

/// Arguments with the folder that the command runs in.
const FOLDERS: [&str; 4] = ["workdir", "cwd", "working_directory", "dir_path"];

/// Whether a tool runs commands.
#[must_use]
pub fn is_shell(tool: &str) -> bool {
    SHELLS.iter().any(|shell| is_same_tool(shell, tool))
}

/// Whether two names are one tool: agents differ in case, `_` and `-`.
#[must_use]
pub fn is_same_tool(one: &str, other: &str) -> bool {
    let plain = |name: &str| -> Vec<u8> {
        name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase()).collect()
    };
    one == other || plain(one) == plain(other)
}

/// The folder that a call runs its commands in, if it names one.
pub(super) fn folder_of(arguments: &Value) -> &str {
    FOLDERS.iter().find_map(|name| arguments.get(*name)?.as_str()).unwrap_or_default()
}

/// The script in the arguments of a call that runs commands. `None` for other calls.
pub(in crate::summary) fn script_of(arguments: &Map<String, Value>) -> Option<String> {
    let command = COMMANDS.iter().find_map(|name| arguments.get(*name));
    match command {
        Some(Value::String(script)) => Some(script.clone()),
        Some(Value::Array(words)) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words?.as_slice() {
                // `["bash", "-lc", "…"]`
                [shell, option, script] if programs::is_shell(shell) && option.starts_with('-') => {
                    Some((*script).to_owned())
                }
                words => Some(tokens::quoted(words.iter().copied())),
            }
        }
        _ => of_code(CODES.iter().find_map(|name| arguments.get(*name))?.as_str()?),
    }
}

/// The commands in a piece of JavaScript by which some harnesses call their tools: `tools.exec_command({cmd: "…"})`.
fn of_code(code: &str) -> Option<String> {
    if !code.contains("tools.") {
        return None;
    }
    let commands: Vec<String> = code
        .match_indices("cmd:")
        .filter_map(|(at, mark)| string_literal(code[at + mark.len()..].trim_start()))
        .collect();
    (!commands.is_empty()).then(|| commands.join("\n"))
}

/// The lines of such a piece that call other tools.
pub(in crate::summary) fn other_calls(code: &str) -> Option<String> {
    let calls = |line: &&str| {
        let rest = line.replace("tools.exec_command", "");
        rest.contains("tools.") && !line.contains("cmd:") || line.contains("ALL_TOOLS")
    };
    let lines: Vec<&str> = code.lines().map(str::trim).filter(calls).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The value of the string literal that a piece of JavaScript begins with.
pub(in crate::summary) fn string_literal(code: &str) -> Option<String> {
    let mut chars = code.chars();
    let quote = chars.next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let mut value = String::new();
    loop {
        match chars.next()? {
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => {}
                // The value of a number is not known here.
                'u' | 'x' => return None,
                other => value.push(other),
            },
            char if char == quote => return Some(value),
            char => value.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(arguments: Value) -> Option<String> {
        script_of(arguments.as_object().expect("an object"))
    }

    #[test]
    fn the_script_of_a_call_is_read_in_each_of_its_forms() {
        assert_eq!(script(serde_json::json!({"command": "ls"})).as_deref(), Some("ls"));
        assert_eq!(script(serde_json::json!({"command": ["bash", "-lc", "ls -l"]})).as_deref(), Some("ls -l"));
        assert_eq!(script(serde_json::json!({"command": ["git", "push"]})).as_deref(), Some("git push"));
        assert_eq!(script(serde_json::json!({"command": ["rm", "it's"]})).as_deref(), Some(r"rm 'it'\''s'"));
        assert_eq!(script(serde_json::json!({"cmd": ["python", "-c", "x = 1"]})).as_deref(), Some("python -c 'x = 1'"));
        let code = r#"const r = await tools.exec_command({cmd:"git log \"x\"\nls",workdir:"/x"}); text(r.output)"#;
        assert_eq!(script(serde_json::json!({"input": code})).as_deref(), Some("git log \"x\"\nls"));
        let more = "const [a,b] = await Promise.all([\n tools.fetch_pr({n:7}),\n tools.exec_command({cmd:\"ls\"})]);";
        assert_eq!(other_calls(more).as_deref(), Some("tools.fetch_pr({n:7}),"));
        assert_eq!(script(serde_json::json!({"input": "text(ALL_TOOLS)"})), None);
        assert_eq!(script(serde_json::json!({"path": "a.rs"})), None);
    }
}
