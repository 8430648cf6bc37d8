//! The programs that the commands of a script start, without the programs that only start another one.

use super::tokens::{self, Command, Group, Word};

/// A program that only starts another one.
struct Wrapper {
    /// The words that it begins with.
    words: &'static [&'static str],
    /// Its options that have a value.
    valued: &'static [&'static str],
    /// The number of its operands before the command.
    operands: usize,
}

const fn wrapper(words: &'static [&'static str], valued: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { words, valued, operands }
}

const WRAPPERS: [Wrapper; 33] = [
    wrapper(&["sudo"], &["-u", "-g", "-h", "-p", "-C", "-D"], 0),
    wrapper(&["doas"], &["-u"], 0),
    wrapper(&["nohup"], &[], 0),
    wrapper(&["setsid"], &[], 0),
    wrapper(&["exec"], &["-a"], 0),
    wrapper(&["command"], &[], 0),
    wrapper(&["env"], &["-u", "--unset"], 0),
    wrapper(&["time"], &["-f", "-o"], 0),
    wrapper(&["nice"], &["-n"], 0),
    wrapper(&["ionice"], &["-c", "-n"], 0),
    wrapper(&["stdbuf"], &["-i", "-o", "-e"], 0),
    wrapper(&["unbuffer"], &[], 0),
    wrapper(&["timeout"], &["-k", "-s", "--kill-after", "--signal"], 1),
    wrapper(&["gtimeout"], &["-k", "-s", "--kill-after", "--signal"], 1),
    wrapper(&["xvfb-run"], &["-n", "-s", "--server-num", "--server-args"], 0),
    wrapper(&["npx"], &["-p", "--package"], 0),
    wrapper(&["bunx"], &[], 0),
    wrapper(&["uvx"], &["-p", "--python", "--from", "--with"], 0),
    wrapper(
        &["uv", "run"],
        &["-p", "--python", "--with", "--extra", "--group", "--env-file", "--package", "--project", "--directory"],
        0,
    ),
    wrapper(&["poetry", "run"], &[], 0),
    wrapper(&["pipenv", "run"], &[], 0),
    wrapper(&["pdm", "run"], &[], 0),
    wrapper(&["rye", "run"], &[], 0),
    wrapper(&["hatch", "run"], &[], 0),
    wrapper(&["pnpm", "exec"], &[], 0),
    wrapper(&["pnpm", "dlx"], &[], 0),
    wrapper(&["yarn", "exec"], &[], 0),
    wrapper(&["yarn", "dlx"], &[], 0),
    wrapper(&["npm", "exec"], &[], 0),
    wrapper(&["bundle", "exec"], &[], 0),
    wrapper(&["mise", "exec"], &[], 0),
    wrapper(&["conda", "run"], &["-n", "-p", "--name", "--prefix"], 0),
    wrapper(&["direnv", "exec"], &[], 1),
];

/// The depth of scripts in the arguments of a shell that is read.
const DEEPEST: usize = 4;

/// The commands of a script, each without its wrappers. The script in `bash -c '…'` is a group.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let mut found = Vec::new();
    started(script, 0, &mut found);
    found
}

fn started(script: &str, deep: usize, found: &mut Vec<Command>) {
    for mut command in tokens::commands(script) {
        let start = found.len();
        command.words = without_wrappers(std::mem::take(&mut command.words));
        match inner_script(&command.words).filter(|_| deep < DEEPEST) {
            Some(inner) => started(inner, deep + 1, found),
            None => {
                found.push(command);
                continue;
            }
        }
        let mut inner = found[start..].iter_mut();
        let Some(first) = inner.next() else {
            command.words.clear();
            found.push(command);
            continue;
        };
        command.opened.push(Group::Subshell);
        command.opened.append(&mut first.opened);
        first.opened = command.opened;
        for it in &mut found[start..] {
            it.is_condition |= command.is_condition;
        }
        if let Some(last) = found.last_mut() {
            last.closed += command.closed + 1;
            last.joined = command.joined;
            last.redirects.append(&mut command.redirects);
        }
    }
}

/// Whether a program runs scripts of a shell.
pub(super) fn is_shell(program: &str) -> bool {
    let name = base(program);
    ["sh", "bash", "zsh", "dash", "ksh", "fish", "pwsh", "powershell"].contains(&name.trim_end_matches(".exe"))
}

/// A program without its folder.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a word sets a variable: `RUST_LOG=debug`.
pub(in crate::summary) fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    })
}

/// The script in the arguments of a shell: `bash -lc '…'`, `script -c '…'`.
fn inner_script(words: &[Word]) -> Option<&str> {
    let (program, arguments) = words.split_first()?;
    let runs_scripts = is_shell(&program.text) || ["script", "su"].contains(&base(&program.text));
    let is_option = |word: &Word| {
        let text = word.text.as_str();
        text == "--command" || text.starts_with('-') && !text.starts_with("--") && text.ends_with('c')
    };
    // An option after the script file is one of the script.
    let options = arguments.iter().take_while(|word| word.text.starts_with('-') || base(&program.text) == "su");
    let at = options.into_iter().position(is_option).filter(|_| runs_scripts)?;
    arguments.get(at + 1).map(|word| word.text.as_str())
}

/// The words of a command without the programs that only start another one.
fn without_wrappers(mut words: Vec<Word>) -> Vec<Word> {
    loop {
        let skipped = leading(&words);
        if skipped == 0 || skipped >= words.len() {
            return words;
        }
        words.drain(..skipped);
    }
}

/// The number of words before the program that is started; 0 where the first one is it.
fn leading(words: &[Word]) -> usize {
    let word = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    if is_variable(word(0)) || word(0) == "--" {
        return 1;
    }
    let program = base(word(0));
    if program == "command" && ["-v", "-V"].contains(&word(1)) {
        return 0;
    }
    if is_python(program) {
        let module = words.iter().skip(1).take_while(|word| word.text.starts_with('-')).position(|it| it.text == "-m");
        return module.map_or(0, |at| at + 2);
    }
    if program == "mise" && ["exec", "x"].contains(&word(1)) {
        return words.iter().position(|word| word.text == "--").map_or(2, |at| at + 1);
    }
    let matches = |wrapper: &&Wrapper| {
        program == wrapper.words[0] && wrapper.words.iter().enumerate().skip(1).all(|(at, it)| word(at) == *it)
    };
    let Some(wrapper) = WRAPPERS.iter().find(matches) else { return 0 };
    let mut at = wrapper.words.len();
    let mut operands = wrapper.operands;
    while at < words.len() {
        match word(at) {
            "--" => {
                at += 1;
                break;
            }
            option if option.starts_with('-') => at += 1 + usize::from(wrapper.valued.contains(&option)),
            _ if operands > 0 => {
                operands -= 1;
                at += 1;
            }
            _ => break,
        }
    }
    at
}

fn is_python(program: &str) -> bool {
    let rest = program.strip_prefix("python").or_else(|| program.strip_prefix("pypy"));
    rest.is_some_and(|version| version.chars().all(|char| char.is_ascii_digit() || char == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str) -> Vec<String> {
        let words =
            |command: &Command| command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        commands(script).iter().map(words).collect()
    }

    #[test]
    fn wrappers_are_left_out_with_their_options() {
        for (script, expected) in [
            ("sudo -u root timeout -k 5 60 bash x.sh a", "bash x.sh a"),
            ("A=1 env -u B C=2 nice -n 10 cargo test", "cargo test"),
            ("uv run --with x -- python -u -m pytest -q", "pytest -q"),
            ("mise exec node@20 -- npm test", "npm test"),
            ("npx -y tsc --noEmit", "tsc --noEmit"),
            ("python3 -u a.py -m x", "python3 -u a.py -m x"),
            ("uv pip install x", "uv pip install x"),
            ("command -v git", "command -v git"),
            ("env", "env"),
            ("bash -lc 'make all'", "make all"),
            ("script -q -c 'bash x.sh' /dev/null", "bash x.sh"),
            ("bash x.sh -c y", "bash x.sh -c y"),
        ] {
            assert_eq!(started(script), [expected], "{script}");
        }
        assert_eq!(started("ssh host 'rm a'; bash -c 'cd x; make' && ls"), ["ssh host rm a", "cd x", "make", "ls"]);
    }
}
