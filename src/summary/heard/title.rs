//! The title of a script for a person.

use crate::summary::shell::is_variable;

/// A title of a script, on one line: its first comment, or its first command without the folder and the variables that it is
/// run with. More commands are an ellipsis.
pub(super) fn title(script: &str) -> String {
    let lines: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_setting = |line: &&&str| line.starts_with("set -") || line.starts_with("export ") || line.starts_with("#!");
    let Some(first) = lines.iter().find(|line| !is_setting(line)).or(lines.first()) else { return String::new() };
    if first.starts_with('#') {
        return (*first).to_owned();
    }
    let title = without_surroundings(first);
    let is_whole = lines.last() == Some(first);
    if is_whole || title.ends_with('…') {
        title.to_owned()
    } else {
        format!("{} …", title.trim_end_matches('\\').trim_end())
    }
}

/// A command without the change of the folder before it and the variables in front of it.
fn without_surroundings(command: &str) -> &str {
    let mut rest = command;
    loop {
        let changes = rest.starts_with("cd ") || rest.starts_with("pushd ");
        let after = [" && ", "; "].iter().find_map(|mark| rest.split_once(mark)).map(|(_, after)| after.trim_start());
        rest = match after.filter(|_| changes) {
            Some(after) if !after.is_empty() => after,
            _ => break,
        };
    }
    while let Some((word, after)) = rest.split_once(' ') {
        // A value with blanks goes on in the next word.
        if !is_variable(word) || word.contains(['(', '`', '\'', '"']) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_comment_or_the_command_without_its_surroundings() {
        for (script, titled) in [
            ("cargo test", "cargo test"),
            ("cd /root/trl && A_B=1 CUDA=0,1 python x.py 2>&1 | tail -5", "python x.py 2>&1 | tail -5"),
            ("# Wait for the server\nfor i in 1 2; do\n  curl x\ndone", "# Wait for the server"),
            ("set -e\ncargo build\ncargo test", "cargo build …"),
            ("FOO=1 cargo run \\\n  --release", "cargo run …"),
            ("cd src", "cd src"),
            ("cd src &&", "cd src &&"),
            ("pushd src && make", "make"),
            ("#!/bin/sh\nmake", "make"),
            ("export A=1\n\nmake\n", "make"),
            ("make …\nls", "make …"),
            ("A='x y' make", "A='x y' make"),
            ("tmpdir=$(mktemp -d); ls", "tmpdir=$(mktemp -d); ls"),
        ] {
            assert_eq!(title(script), titled);
        }
    }
}
