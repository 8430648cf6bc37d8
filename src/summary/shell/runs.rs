//! The programs that a script runs, and what the exit code of the script says about each: whether a failure of one was solved
//! by another run.

use super::{
    folders::{self, Folders},
    options::{NAMED_VARIANTS, PLACES, PLANS, REDUCING, VALUED, VARIANTS, lists},
    programs,
    tokens::{Command, Join, Word},
};

/// A program that a script runs, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::summary) struct Run {
    /// The name of the program and its arguments, without options and redirections.
    pub words: Vec<String>,
    /// The meaning of the exit code of the whole script for this program.
    pub exit: ExitCode,
    /// The folder that it runs in, if the script names it.
    folder: Option<String>,
    /// Options that make another variant of the work, with their values, in order: `--release`.
    variant: Vec<String>,
    /// Options that leave a part of the work out: `--no-verify`.
    reduced: Vec<String>,
}

/// The meaning of the exit code of a script for one of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::summary) enum ExitCode {
    /// A success of the script is one of this program.
    Own,
    /// The code is that of a later program: `a | tail`, `a; b`.
    Masked,
    /// The program stands beside an alternative or is a condition: `a || b`, `if a`.
    Unknown,
    /// It goes on after the script: `a &`.
    Background,
    /// The program only says what it would do: `make -n`.
    DryRun,
}

/// Programs and tools of agents that look at something, and words of the shell. Their failure blocks nothing.
const LOOKS: [&str; 68] = [
    "[",
    "[[",
    "awk",
    "basename",
    "break",
    "cat",
    "cd",
    "command",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "done",
    "du",
    "echo",
    "env",
    "esac",
    "exit",
    "export",
    "false",
    "fd",
    "fi",
    "file",
    "find",
    "grep",
    "head",
    "jq",
    "kill",
    "less",
    "ls",
    "md5sum",
    "mkdir",
    "nl",
    "pgrep",
    "pkill",
    "printf",
    "ps",
    "pushd",
    "popd",
    "pwd",
    "read",
    "return",
    "rg",
    "sed",
    "set",
    "sleep",
    "sort",
    "source",
    "stat",
    "tail",
    "tee",
    "test",
    "touch",
    "tree",
    "true",
    "uniq",
    "wait",
    "wc",
    "which",
    "xargs",
    "view",
    "glob",
    "list",
    "search",
    "fetch",
    "webfetch",
    "websearch",
];

/// Programs that check the work, and without an argument all of it.
const RUNNERS: [&str; 20] = [
    "pytest",
    "make",
    "tsc",
    "jest",
    "vitest",
    "eslint",
    "ruff",
    "mypy",
    "pyright",
    "black",
    "prettier",
    "tox",
    "nox",
    "rspec",
    "phpunit",
    "ctest",
    "ninja",
    "golangci-lint",
    "biome",
    "playwright",
];

/// Programs that run a script file.
const INTERPRETERS: [&str; 9] = ["python", "node", "bash", "sh", "zsh", "ruby", "perl", "deno", "bun"];

/// Ends of the names of script files.
const SCRIPTS: [&str; 10] = [".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl"];

/// Programs whose first argument names the work that they do.
const COMMANDED: [&str; 27] = [
    "apt",
    "apt-get",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "conda",
    "docker",
    "dotnet",
    "gh",
    "git",
    "go",
    "gradle",
    "helm",
    "just",
    "kubectl",
    "mise",
    "mvn",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
    "task",
];

/// Commands of git whose `-n` means `--dry-run`.
const PLANNED_BY_GIT: [&str; 6] = ["add", "clean", "fetch", "mv", "push", "rm"];

/// Commands of git that take a remote and branches, or take them from the settings.
const REMOTE_IN_GIT: [&str; 3] = ["fetch", "pull", "push"];

/// Commands of git that stop at a conflict, and go on with `--continue`.
const CONTINUED_IN_GIT: [&str; 5] = ["am", "cherry-pick", "merge", "rebase", "revert"];

/// Arguments that make another command of one.
const OTHERS: [&str; 5] = ["--version", "--help", "--abort", "--quit", "--skip"];

impl Run {
    /// The use of a tool that is no shell.
    pub(in crate::summary) fn of_tool(tool: &str, argument: &str) -> Self {
        Self {
            words: vec![tool.to_lowercase(), argument.to_owned()],
            exit: ExitCode::Own,
            folder: None,
            variant: Vec::new(),
            reduced: Vec::new(),
        }
    }

    /// The same run, ended before it could say whether it works.
    pub(in crate::summary) fn stopped(&self) -> Self {
        Self { exit: ExitCode::Unknown, ..self.clone() }
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Whether it only looks at something.
    pub(in crate::summary) fn only_looks(&self) -> bool {
        self.words.first().is_none_or(|program| LOOKS.contains(&program.as_str()))
            || ["--version", "--help"].iter().any(|asked| self.words.iter().any(|word| word == asked))
    }

    /// Whether it checks the work: tests, a build, a linter.
    pub(in crate::summary) fn checks(&self) -> bool {
        let named = ["test", "check", "lint", "build", "clippy", "typecheck", "vet"];
        match self.word(0) {
            "cargo" | "go" | "npm" | "pnpm" | "yarn" | "bun" | "mise" | "just" | "gradle" | "gradlew" | "mvn"
            | "dotnet" | "deno" => {
                self.words[1..].iter().take(2).any(|word| named.iter().any(|name| word.contains(name)))
            }
            program => RUNNERS.contains(&program),
        }
    }

    /// The script file that it runs, by an interpreter or by itself, with its arguments.
    fn script(&self) -> Option<(&str, &[String])> {
        let is_script =
            |word: &str| SCRIPTS.iter().any(|end| word.ends_with(end)) && !word.contains(char::is_whitespace);
        match self.words.as_slice() {
            [program, script, arguments @ ..] if INTERPRETERS.contains(&program.as_str()) && is_script(script) => {
                Some((script, arguments))
            }
            [script, arguments @ ..] if is_script(script) => Some((script, arguments)),
            _ => None,
        }
    }

    /// Whether it runs a script file.
    pub(in crate::summary) fn runs_script(&self) -> bool {
        self.script().is_some()
    }

    /// Whether this run did what another one failed at: the same, or more of it, as all tests are more than some.
    pub(in crate::summary) fn covers(&self, failed: &Self) -> bool {
        let (folder, of_failed) = (self.folder.as_deref(), failed.folder.as_deref());
        // A check of a folder is one of the folders in it.
        let is_wider = self.checks() && folders::is_inside(of_failed, folder);
        if !folders::may_be_same(folder, of_failed) && !is_wider || self.variant != failed.variant {
            return false;
        }
        if self.reduced.iter().any(|option| !failed.reduced.contains(option)) {
            return false;
        }
        if let (Some((script, arguments)), Some((failed, with))) = (self.script(), failed.script()) {
            return folders::may_be_same(Some(script), Some(failed)) && with == arguments;
        }
        if self.covers_in_git(failed) {
            return true;
        }
        // Only a check is wider with fewer arguments, and one with targets does the first of them without one.
        let takes_targets = ["make", "ninja", "just", "task"].contains(&self.word(0));
        let is_wider =
            || self.checks() && !(takes_targets && self.words.len() == 1) && failed.words.starts_with(&self.words);
        let names_work = self.words.len() > 1 || !INTERPRETERS.contains(&self.word(0));
        !self.words.is_empty() && names_work && (self.words == failed.words || is_wider())
    }

    fn covers_in_git(&self, failed: &Self) -> bool {
        let (own, its) = (self.texts(), failed.texts());
        let (["git", command, given @ ..], ["git", other, before @ ..]) = (own.as_slice(), its.as_slice()) else {
            return false;
        };
        let is_other = |words: &[&str]| words.iter().any(|word| OTHERS.contains(word));
        if command != other || is_other(given) || is_other(before) {
            return false;
        }
        // A remote without a branch, or the branch that is checked out: any other that works did it.
        let is_open = |words: &[&str]| words.len() < 2 || words[1..].iter().any(|branch| branch.starts_with("HEAD"));
        // Without an argument these go on where they stopped, and a commit takes all that is staged.
        CONTINUED_IN_GIT.contains(command) && given.is_empty()
            || *command == "commit"
            || REMOTE_IN_GIT.contains(command) && is_open(before)
    }

    fn texts(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// Whether this run is the same command of the same program, with any arguments.
    pub(in crate::summary) fn is_same_command(&self, other: &Self) -> bool {
        if let (Some((one, _)), Some((other, _))) = (self.script(), other.script()) {
            return folders::may_be_same(Some(one), Some(other));
        }
        let names_work = COMMANDED.contains(&self.word(0)) || INTERPRETERS.contains(&self.word(0));
        !self.word(0).is_empty() && self.word(0) == other.word(0) && (!names_work || self.word(1) == other.word(1))
    }
}

/// The programs that a script runs, in their order. The text of a document in it is none of them.
pub(in crate::summary) fn runs(script: &str) -> Vec<Run> {
    let commands = programs::commands(script);
    let mut folders = Folders::begin("");
    let mut found: Vec<(usize, Run)> = Vec::new();
    let mut in_pipe = false;
    for (at, command) in commands.iter().enumerate() {
        folders.enter(command);
        if let Some(run) = run_of(command, &folders) {
            // Of a pipe the first program does the work, and the others read what it says.
            let feeds = || found.last().is_some_and(|(_, first)| first.only_looks());
            match in_pipe {
                false => found.push((at, run)),
                true if (run.checks() || run.runs_script()) && feeds() => found.push((at, run)),
                true => {}
            }
        }
        in_pipe = command.joined == Join::Pipe;
        folders.leave(command);
    }
    let exits = exits(&commands, &found);
    found
        .into_iter()
        .map(|(at, run)| match run.exit {
            ExitCode::DryRun => run,
            _ => Run { exit: exits[at], ..run },
        })
        .collect()
}

/// The meaning of the exit code of the script for each command.
fn exits(commands: &[Command], runs: &[(usize, Run)]) -> Vec<ExitCode> {
    let options = options_of_shell(commands);
    let mut exits = vec![ExitCode::Own; commands.len()];
    let mut groups: Vec<usize> = Vec::new();
    let mut start = 0;
    // The exit code is that of the last statement that runs something.
    let ends = |at: usize| matches!(commands[at].joined, Join::Then | Join::Background) || at + 1 == commands.len();
    let last_run = runs.last().map_or(0, |(at, _)| *at);
    for (at, command) in commands.iter().enumerate() {
        groups.extend(command.opened.iter().map(|_| at));
        let before = at.checked_sub(1).map(|before| commands[before].joined);
        if command.is_condition || before == Some(Join::Or) && at > start {
            exits[at] = ExitCode::Unknown;
        }
        let mut of = vec![at];
        for _ in 0..command.closed {
            of = groups.pop().map_or(of, |first| (first..=at).collect());
        }
        match command.joined {
            Join::Pipe if !options.fails_in_pipe => of.iter().for_each(|at| mask(&mut exits[*at])),
            // `a || exit 1` fails where `a` does.
            Join::Or if commands.get(at + 1).is_some_and(exits_with_failure) => {}
            Join::Or => exits[start..=at].fill(ExitCode::Unknown),
            Join::Background => exits[start.min(of[0])..=at].fill(ExitCode::Background),
            _ => {}
        }
        if ends(at) {
            if at < last_run && !options.fails_at_once {
                exits[start..=at].iter_mut().for_each(mask);
            }
            start = at + 1;
        }
    }
    exits
}

fn mask(exit: &mut ExitCode) {
    if *exit == ExitCode::Own {
        *exit = ExitCode::Masked;
    }
}

/// Whether a command ends the script with a failure.
fn exits_with_failure(command: &Command) -> bool {
    let mut words = command.words.iter().map(|word| word.text.as_str());
    matches!(words.next(), Some("exit" | "return" | "false")) && words.next() != Some("0")
}

/// Options of the shell that keep a failure from being hidden.
#[derive(Default)]
struct ShellOptions {
    /// `set -e`
    fails_at_once: bool,
    /// `set -o pipefail`
    fails_in_pipe: bool,
}

fn options_of_shell(commands: &[Command]) -> ShellOptions {
    let is_set = |command: &&Command| command.words.first().is_some_and(|word| word.text == "set");
    let mut options = ShellOptions::default();
    for word in commands.iter().filter(is_set).flat_map(|command| &command.words[1..]) {
        let letters = word.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        options.fails_at_once |= letters.is_some_and(|letters| letters.contains('e')) || word.text == "errexit";
        options.fails_in_pipe |= word.text == "pipefail";
    }
    options
}

/// The program and the arguments of a command.
fn run_of(command: &Command, folders: &Folders) -> Option<Run> {
    let (program, arguments) = command.words.split_first()?;
    let program = program.text.as_str();
    // A number of a step, or a variable that is set.
    if program.is_empty() || programs::is_variable(program) {
        return None;
    }
    let is_script = SCRIPTS.iter().any(|end| program.ends_with(end));
    let name = if is_script { program.trim_start_matches("./") } else { programs::base(program) };
    // `python3.12`
    let bare = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let name = if bare.is_empty() { name } else { bare };
    let mut words: Vec<String> = match name.split_once("-compose") {
        Some((name, _)) => vec![name.to_owned(), "compose".to_owned()],
        None => vec![name.to_owned()],
    };
    let runs_scripts = ["npm", "pnpm", "yarn", "bun"].contains(&name);
    // The folder, or that it is not known.
    let mut place: Option<Option<String>> = None;
    let named = |word: Option<&Word>| word.filter(|word| word.is_plain).and_then(|word| folders.within(&word.text));
    let mut exit = ExitCode::Own;
    let (mut variant, mut reduced) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let (option, value) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        let of_git =
            option == "-n" && name == "git" && words.get(1).is_some_and(|it| PLANNED_BY_GIT.contains(&it.as_str()));
        match text {
            _ if lists(PLANS, name, option) || of_git => {
                if !["none", "false"].contains(&value.unwrap_or_default()) {
                    exit = ExitCode::DryRun;
                }
            }
            // Only `git -C dir commit` names a folder.
            _ if lists(PLACES, name, text) && !(name == "git" && words.len() > 1) => place = Some(named(rest.next())),
            _ if value.is_some() && lists(PLACES, name, option) => {
                place = Some(value.filter(|_| word.is_plain).and_then(|value| folders.within(value)));
            }
            "-j" | "--jobs" if rest.as_slice().first().is_none_or(|next| next.text.parse::<u32>().is_err()) => {}
            _ if lists(VALUED, name, text) => drop(rest.next()),
            _ if lists(VARIANTS, name, option) => variant.push(text.to_owned()),
            _ if lists(REDUCING, name, option) => reduced.push(text.to_owned()),
            _ if lists(NAMED_VARIANTS, name, option) => {
                let value = value.or_else(|| rest.next().map(|word| word.text.as_str()));
                variant.push(format!("{option}={}", value.unwrap_or_default()));
            }
            // The toolchain of `cargo +nightly test` says nothing of the work.
            _ if text.starts_with('+') && words.len() == 1 => {}
            "run" if runs_scripts && words.len() == 1 => {}
            _ if text.starts_with('-') && !OTHERS.contains(&text) => {}
            _ => words.push(text.to_owned()),
        }
    }
    variant.sort_unstable();
    let folder = place.unwrap_or_else(|| folders.named().map(str::to_owned));
    Some(Run { words, exit, folder: folder.filter(|_| name != "cd"), variant, reduced })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(script: &str) -> Vec<String> {
        runs(script).iter().map(|run| run.words.join(" ")).collect()
    }

    fn exits(script: &str) -> Vec<ExitCode> {
        runs(script).iter().map(|run| run.exit).collect()
    }

    fn covers(worked: &str, failed: &str) -> bool {
        let of = |script: &str| runs(script).pop().expect("a program");
        of(worked).covers(&of(failed))
    }

    #[test]
    fn the_programs_of_a_script_are_told_without_wrappers_and_options() {
        assert_eq!(told("cd /x && .venv/bin/pytest -q tests/a.py 2>&1 | tail -5"), ["cd /x", "pytest tests/a.py"]);
        assert_eq!(told("python3 -m pytest tests/a.py > log.txt"), ["pytest tests/a.py"]);
        assert_eq!(told("sudo timeout 5 uv run -- ruff check ."), ["ruff check ."]);
        assert_eq!(
            told("for i in 1 2; do\n  if curl -sf \"http://x/health\"; then break; fi\ndone"),
            ["curl http://x/health", "break", "fi", "done"]
        );
        assert_eq!(told("mise exec -- pkl eval a.pkl"), ["pkl eval a.pkl"]);
        for unsure in [
            "cargo test || true",
            "make -n deploy",
            "cargo test --no-run",
            "if ruff check; then echo yes; fi",
            "pytest &",
        ] {
            assert!(!matches!(runs(unsure)[0].exit, ExitCode::Own | ExitCode::Masked), "{unsure}");
        }
        assert!(runs("ls x; rg y | head; which z").iter().all(Run::only_looks));
        assert_eq!(told("cargo \\\n  test"), ["cargo test"]);
        let document = "cat > a.py <<'EOF'\nimport x\nEOF\npython a.py";
        assert_eq!(told(document), ["cat", "python a.py"]);
        let checks = |script: &str| runs(script)[0].checks();
        assert!(
            checks("cargo test x")
                && checks("npm run lint")
                && checks("pytest")
                && !checks("cargo run")
                && !checks("git push")
        );
        assert!(!runs("cargo test")[0].only_looks() && runs("vllm --version")[0].only_looks());
    }

    #[test]
    fn quotes_arithmetic_and_documents_hide_no_commands() {
        for (script, expected) in [
            ("git commit -m 'wip; cargo test'", vec!["git commit"]),
            ("echo 'first lint && make'", vec!["echo first lint && make"]),
            ("x=$((1<<k))\ncargo test", vec!["cargo test"]),
            ("((x = 1 << k))\ncargo test", vec!["cargo test"]),
            ("read a <<< \"$x\"\ncargo test", vec!["read a", "cargo test"]),
            ("cat <<A <<-'B'\nmake\nA\nmake\n\tB\nls", vec!["cat", "ls"]),
            ("echo \"$(cat <<'EOF'\ndon't (\nEOF\n)\"; make", vec!["echo $(cat <<'EOF'\ndon't (\nEOF\n)", "make"]),
            ("[[ a < b && -f x ]] && make", vec!["[[ a < b && x ]]", "make"]),
            ("case $x in\n a|b) make ;;\n *) ls ;;\nesac", vec!["make", "ls", "esac"]),
            ("f() { make; }; f", vec!["make", "f"]),
            ("# don't\nmake # it's", vec!["make"]),
            ("bash -lc \"cd x && make\" 2>&1 | tail", vec!["cd x", "make"]),
            ("diff <(sort a) <(sort b); make", vec!["diff <(sort a) <(sort b)", "make"]),
            ("yes | make install", vec!["yes"]),
            ("echo y | ./install.sh", vec!["echo y", "install.sh"]),
            ("echo a | pytest", vec!["echo a", "pytest"]),
            ("make -j test", vec!["make test"]),
            ("make -j 4 test", vec!["make test"]),
            ("npm test run", vec!["npm test run"]),
            ("cargo run", vec!["cargo run"]),
            ("git commit -C HEAD", vec!["git commit HEAD"]),
            ("'' a", vec![]),
            ("a#b #c", vec!["a#b"]),
            ("x=(1 2) a", vec!["a"]),
            ("for ((i=0;i<3;i++)); do a; done", vec!["a", "done"]),
            ("a `b; c` d", vec!["a `b; c` d"]),
            ("a $'b\\nc' d", vec!["a b\nc d"]),
            ("a ${b:-c} d", vec!["a ${b:-c} d"]),
            ("a $((1+(2))) d", vec!["a $((1+(2))) d"]),
            ("a $(b # )\n) c", vec!["a $(b # )\n) c"]),
            ("a $(b \"$(c 'd)')\") e", vec!["a $(b \"$(c 'd)')\") e"]),
            ("echo { a", vec!["echo { a"]),
            ("echo }", vec!["echo }"]),
        ] {
            assert_eq!(told(script), expected, "{script}");
        }
    }

    #[test]
    fn the_exit_code_of_a_script_is_that_of_some_of_its_programs() {
        use ExitCode::{Background, DryRun, Masked, Own, Unknown};
        for (script, expected) in [
            ("a x && b y", vec![Own, Own]),
            ("a x | tail; b y", vec![Masked, Own]),
            ("set -eo pipefail\na x | tail\nb y", vec![Own, Own, Own]),
            ("a && b || c && d", vec![Unknown, Unknown, Unknown, Own]),
            ("a || exit 1", vec![Own, Unknown]),
            ("(a; b) | tail -5", vec![Masked, Masked]),
            ("{ a && b; } 2>&1 | tail -5", vec![Masked, Masked]),
            ("nohup bash -c 'a; b' > log 2>&1 &\nsleep 1", vec![Background, Background, Own]),
            ("a & b", vec![Background, Own]),
            ("! a", vec![Unknown]),
            ("git push -n", vec![DryRun]),
            ("git commit -n -m x", vec![Own]),
            ("pytest -n 4 a.py", vec![Own]),
            ("kubectl -n prod apply -f x.yaml", vec![Own]),
            ("kubectl apply --dry-run=client -f x", vec![DryRun]),
            ("kubectl apply --dry-run=none -f x", vec![Own]),
            ("a; b", vec![Masked, Own]),
            ("a || exit 0", vec![Unknown, Unknown]),
            ("set -o errexit; a; b", vec![Own, Own, Own]),
            ("set --verbose; a; b", vec![Masked, Masked, Own]),
            ("a &> x", vec![Own]),
            ("a >| b", vec![Own]),
        ] {
            assert_eq!(exits(script), expected, "{script}");
        }
    }

    #[test]
    fn a_folder_in_a_variable_is_not_known() {
        for script in ["git -C $X push", "npm --prefix=$X test"] {
            assert_eq!(runs(script)[0].folder, None, "{script}");
        }
    }

    #[test]
    fn a_run_covers_the_same_and_less() {
        for (worked, failed) in [
            ("make", "make"),
            ("pytest", "pytest a.py"),
            ("npx tsc --noEmit", "tsc --noEmit"),
            ("pytest a.py", "pytest a.py b.py"),
            ("cd dir && make test", "make -C dir test"),
            ("make -C dir test", "cd /x/dir && make test"),
            ("cargo test", "cd /x && cargo test"),
            ("npm --prefix=web test", "cd web && npm run test"),
            ("cd /r && cargo test", "cd /r/a && cargo test"),
            ("git push -u origin HEAD", "git push"),
            ("git push", "git push -u origin HEAD"),
            ("git -C /x commit -m 'second; try'", "git commit -am first"),
            ("git rebase --continue", "git rebase main"),
            ("pytest -n 4 a.py", "pytest a.py"),
            ("timeout 60 bash ./x.sh", "bash x.sh"),
            ("script -q -c 'bash /r/x.sh' /dev/null", "./x.sh"),
            ("uv run python3 tools/x.py a", "python x.py a"),
            ("cargo test --release", "cargo test x --release"),
            ("terraform apply -auto-approve -var-file=prod.tfvars", "terraform apply -var-file prod.tfvars"),
            ("git push", "git push --no-verify"),
            ("cargo +1.96.0 test", "cargo test"),
            ("make test", "make test x"),
            ("cd . && make x", "cd b && make x"),
            ("cd a/.. && make x", "cd b && make x"),
            ("python3.12 a.py", "python a.py"),
        ] {
            assert!(covers(worked, failed), "{worked} | {failed}");
        }
        for (worked, failed) in [
            ("python", "python a.py"),
            ("ls a", "ls a b"),
            ("make", "make test"),
            ("npm install", "npm install left-pad"),
            ("git push", "git push origin main"),
            ("./x.sh", "./x.sh prod"),
            ("cargo", "cargo test"),
            ("pytest a.py", "pytest"),
            ("make -C a test", "make -C b test"),
            ("npm --prefix=web test", "cd app && npm test"),
            ("cd /r/a && cargo test", "cd /r && cargo test"),
            ("git merge b", "git merge a"),
            ("git push origin main", "git push origin v1"),
            ("git rebase --abort", "git rebase main"),
            ("git commit -m 'wip; cargo test'", "cargo test"),
            ("kubectl -n test apply x", "kubectl -n prod apply x"),
            ("python b.py", "python a.py"),
            ("bash x.sh a", "bash x.sh b"),
            ("cargo build", "cargo build --release"),
            ("cargo test --features a", "cargo test --features=b"),
            ("terraform apply -var-file=dev.tfvars", "terraform apply -var-file=prod.tfvars"),
            ("git commit --no-verify -m x", "git commit -m x"),
            ("cd /r && ls a", "cd /r/a && ls a"),
            ("python", "python"),
            ("git push --help", "git push"),
            ("git rebase --continue", "git rebase --abort"),
            ("git pull", "git push"),
            ("cargo run", "cargo test"),
        ] {
            assert!(!covers(worked, failed), "{worked} | {failed}");
        }
    }
}
