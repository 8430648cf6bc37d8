//! The commands in a call of a shell: a title for a person, and the programs that it runs with their arguments.

use serde_json::{Map, Value};

/// The script in the arguments of a call that runs commands. `None` for other calls.
pub(super) fn script_of(arguments: &Map<String, Value>) -> Option<String> {
    let command = ["command", "cmd", "script"].iter().find_map(|name| arguments.get(*name));
    match command {
        Some(Value::String(script)) => Some(script.clone()),
        // `["bash", "-lc", "…"]`
        Some(Value::Array(words)) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words?.as_slice() {
                [_, option, script] if option.starts_with('-') && option.ends_with('c') => Some((*script).to_owned()),
                words => Some(words.join(" ")),
            }
        }
        _ => of_code(arguments.get("input").or_else(|| arguments.get("code"))?.as_str()?),
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
pub(super) fn other_calls(code: &str) -> Option<String> {
    let calls = |line: &&str| {
        let rest = line.replace("tools.exec_command", "");
        rest.contains("tools.") && !line.contains("cmd:") || line.contains("ALL_TOOLS")
    };
    let lines: Vec<&str> = code.lines().map(str::trim).filter(calls).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The value of the string literal that a piece of JavaScript begins with.
pub(super) fn string_literal(code: &str) -> Option<String> {
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
        if !is_variable(word) {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

/// Whether a word sets a variable: `RUST_LOG=debug`.
fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
    })
}

/// A program that a script runs, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::summary) struct Run {
    /// The name of the program and its arguments, without options and redirections.
    pub words: Vec<String>,
    /// Whether it stands beside an alternative or in the background, `a || b`, `a &`: that the script worked says nothing of it.
    pub alternative: bool,
    /// Whether the exit code is that of another one: `a | tail`, `a; b`.
    pub hidden: bool,
}

/// Programs and tools of agents that look at something, and words of the shell. Their failure blocks nothing.
const LOOKS: [&str; 63] = [
    "[",
    "awk",
    "basename",
    "break",
    "cat",
    "cd",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "done",
    "du",
    "echo",
    "env",
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
    "rg",
    "sed",
    "set",
    "sleep",
    "sort",
    "source",
    "stat",
    "tail",
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

impl Run {
    /// Whether it only looks at something.
    pub(in crate::summary) fn only_looks(&self) -> bool {
        self.words.first().is_none_or(|program| LOOKS.contains(&program.as_str()))
            || ["--version", "--help"].iter().any(|asked| self.words.iter().any(|word| word == asked))
    }

    /// Whether it checks the work: tests, a build, a linter.
    pub(in crate::summary) fn checks(&self) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", String::as_str);
        let named = ["test", "check", "lint", "build", "clippy", "typecheck", "vet"];
        match word(0) {
            "cargo" | "go" | "npm" | "pnpm" | "yarn" | "bun" | "mise" | "just" | "gradle" | "gradlew" | "mvn"
            | "dotnet" | "deno" => {
                self.words[1..].iter().take(2).any(|word| named.iter().any(|name| word.contains(name)))
            }
            program => RUNNERS.contains(&program),
        }
    }

    /// Whether this run did what another one failed at: the same, or more of it, as all tests are more than some.
    pub(in crate::summary) fn covers(&self, failed: &Self) -> bool {
        const INTERPRETERS: [&str; 8] = ["python", "node", "bash", "sh", "ruby", "perl", "deno", "bun"];
        // Without an argument only a runner tells its work.
        let tells = match self.words.as_slice() {
            [] => false,
            [program] => {
                !INTERPRETERS.contains(&program.as_str())
                    && (self.words == failed.words || RUNNERS.contains(&program.as_str()))
            }
            _ => true,
        };
        tells && failed.words.starts_with(&self.words)
    }
}

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

/// The longest script that is read, in bytes. A longer one writes a file.
const LONGEST: usize = 16 * 1024;

/// The programs that a script runs, in their order. The text of a document in it is none of them.
pub(in crate::summary) fn runs(script: &str) -> Vec<Run> {
    if script.len() > LONGEST {
        return Vec::new();
    }
    let mut found: Vec<Run> = Vec::new();
    let mut last_statement = 0;
    let mut document: Option<String> = None;
    for line in script.replace("\\\n", " ").lines() {
        if let Some(end) = &document {
            if line.trim() == end {
                document = None;
            }
            continue;
        }
        for statement in line.split(';') {
            let before = found.len();
            of_statement(statement, &mut found);
            if found.len() > before {
                last_statement = before;
            }
        }
        document = document_end(line);
    }
    // The exit code is that of the last statement.
    found[..last_statement].iter_mut().for_each(|run| run.hidden = true);
    found
}

fn of_statement(statement: &str, found: &mut Vec<Run>) {
    for command in statement.split("&&") {
        // A command in the background has no exit code yet.
        let uncertain = command.contains("||") || command.trim_end().ends_with('&');
        let alternative =
            uncertain || command.split_whitespace().any(only_plans) || command.trim_start().starts_with("if ");
        for run in command.split("||") {
            let words = words_of(run.split('|').next().unwrap_or(run));
            if !words.is_empty() {
                found.push(Run { words, alternative, hidden: run.contains('|') });
            }
        }
    }
}

/// Whether an option has a program say what it would do.
fn only_plans(option: &str) -> bool {
    const PLANS: [&str; 9] = [
        "-n",
        "--dry-run",
        "--no-run",
        "--just-print",
        "--collect-only",
        "--listTests",
        "--list",
        "-DskipTests",
        "--list-tests",
    ];
    PLANS.contains(&option)
}

/// The line that ends the document that begins after a line: `<<'EOF'`.
fn document_end(line: &str) -> Option<String> {
    let (_, after) = line.split_once("<<").filter(|(_, after)| !after.starts_with('<'))?;
    let word = after.trim_start_matches('-').split_whitespace().next()?.trim_matches(['"', '\'']);
    word.starts_with(|char: char| char.is_alphabetic() || char == '_').then(|| word.to_owned())
}

/// The program and the arguments of a command.
fn words_of(command: &str) -> Vec<String> {
    const KEYWORDS: [&str; 11] = ["if", "then", "else", "elif", "while", "until", "do", "!", "time", "{", "("];
    let mut words: Vec<&str> = Vec::new();
    let mut skips = false;
    for word in command.split_whitespace() {
        let redirects =
            word.trim_start_matches(|char: char| char.is_ascii_digit() || char == '&').starts_with(['>', '<']);
        if std::mem::take(&mut skips) {
            continue;
        }
        // The target may stand apart.
        skips = redirects && word.ends_with(['>', '<']);
        let leads = words.is_empty() && (KEYWORDS.contains(&word) || is_variable(word));
        if !redirects && !leads && word != "&" {
            words.push(word);
        }
    }
    if words.first().is_some_and(|word| word.starts_with('#') || *word == "for" || *word == "case") {
        return Vec::new();
    }
    let words = without_wrappers(&words);
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let bare = |word: &str| word.trim_matches(['"', '\'', '`', '(', ')']).to_owned();
    let name = bare(program);
    let name = name.rsplit('/').next().unwrap_or(&name).to_owned();
    // `python3`, `npm run test`, `docker-compose`
    let bare_name = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let name = if bare_name.is_empty() { name } else { bare_name.to_owned() };
    let runs = ["npm", "pnpm", "yarn", "bun"].contains(&name.as_str());
    let asks = |word: &str| ["--version", "--help"].contains(&word);
    let mut told: Vec<String> = name
        .split_once("-compose")
        .map_or_else(|| vec![name.clone()], |(name, _)| vec![name.to_owned(), "compose".to_owned()]);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match *word {
            // The folder or the name after such an option.
            "-C" | "--prefix" | "--cwd" | "-t" => drop(rest.next()),
            "run" if runs => {}
            word if word.starts_with('-') && !asks(word) => {}
            word => told.push(bare(word)),
        }
    }
    told
}

/// A command without the programs that only start another one.
fn without_wrappers<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    const ONE: [&str; 9] = ["sudo", "nohup", "exec", "command", "npx", "bunx", "env", "xvfb-run", "time"];
    const TWO: [[&str; 2]; 8] = [
        ["uv", "run"],
        ["poetry", "run"],
        ["pipenv", "run"],
        ["pdm", "run"],
        ["pnpm", "exec"],
        ["bundle", "exec"],
        ["mise", "exec"],
        ["conda", "run"],
    ];
    let mut rest = words;
    loop {
        let skipped = match rest {
            [first, _, ..] if ONE.contains(first) => 1,
            ["timeout", _, _, ..] => 2,
            [first, second, _, ..] if TWO.contains(&[first, second]) => 2,
            [python, "-m", _, ..] if python.rsplit('/').next().is_some_and(|name| name.starts_with("python")) => 2,
            ["--", _, ..] => 1,
            [first, _, ..] if is_variable(first) => 1,
            _ => return rest,
        };
        rest = &rest[skipped..];
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
        let code = r#"const r = await tools.exec_command({cmd:"git log \"x\"\nls",workdir:"/x"}); text(r.output)"#;
        assert_eq!(script(serde_json::json!({"input": code})).as_deref(), Some("git log \"x\"\nls"));
        let more = "const [a,b] = await Promise.all([\n tools.fetch_pr({n:7}),\n tools.exec_command({cmd:\"ls\"})]);";
        assert_eq!(other_calls(more).as_deref(), Some("tools.fetch_pr({n:7}),"));
        assert_eq!(script(serde_json::json!({"input": "text(ALL_TOOLS)"})), None);
        assert_eq!(script(serde_json::json!({"path": "a.rs"})), None);
    }

    #[test]
    fn a_title_is_the_comment_or_the_command_without_its_surroundings() {
        for (script, titled) in [
            ("cargo test", "cargo test"),
            ("cd /root/trl && A_B=1 CUDA=0,1 python x.py 2>&1 | tail -5", "python x.py 2>&1 | tail -5"),
            ("# Wait for the server\nfor i in 1 2; do\n  curl x\ndone", "# Wait for the server"),
            ("set -e\ncargo build\ncargo test", "cargo build …"),
            ("FOO=1 cargo run \\\n  --release", "cargo run …"),
            ("cd src", "cd src"),
        ] {
            assert_eq!(title(script), titled);
        }
    }

    #[test]
    fn the_programs_of_a_script_are_told_without_wrappers_and_options() {
        let told = |script: &str| -> Vec<String> { runs(script).iter().map(|run| run.words.join(" ")).collect() };
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
            assert!(runs(unsure)[0].alternative, "{unsure}");
        }
        assert!(runs("ls x; rg y | head; which z").iter().all(Run::only_looks));
        let hidden = |script: &str| runs(script).iter().map(|run| run.hidden).collect::<Vec<_>>();
        assert_eq!(hidden("a x && b y"), [false, false]);
        assert_eq!(hidden("a x | tail; b y"), [true, false]);
        assert_eq!(told("cargo \\\n  test"), ["cargo test"]);
        let document = "cat > a.py <<'EOF'\nimport x\nEOF\npython a.py";
        assert_eq!(told(document), ["cat", "python a.py"]);
        let covers = |worked: &str, failed: &str| runs(worked)[0].covers(&runs(failed)[0]);
        for (worked, failed) in
            [("make", "make"), ("pytest", "pytest a.py"), ("npx tsc --noEmit", "tsc --noEmit"), ("ls a", "ls a b")]
        {
            assert!(covers(worked, failed), "{worked} | {failed}");
        }
        for (worked, failed) in [("python", "python a.py"), ("cargo", "cargo test"), ("pytest a.py", "pytest")] {
            assert!(!covers(worked, failed), "{worked} | {failed}");
        }
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
}
