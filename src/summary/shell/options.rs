//! Options of programs, by what they mean for the work: the place of it, its variant, or nothing.

/// Options of programs. The first names of a row are the programs; without any it holds for all.
pub(super) type Options = &'static [(&'static [&'static str], &'static [&'static str])];

/// Options whose value is the folder or the cluster that a program works in.
pub(super) const PLACES: Options = &[
    (&[], &["-C", "--prefix", "--cwd", "--directory"]),
    (&["kubectl", "helm", "oc"], &["-n", "--namespace", "--context"]),
];

/// Options whose value says nothing of the work.
pub(super) const VALUED: Options = &[
    (&[], &["-t"]),
    (&["pytest"], &["-n", "-p", "-o", "-c", "--maxfail", "--durations", "--tb", "--timeout", "--dist"]),
    (&["make", "ninja", "cargo", "ctest", "gradle"], &["-j", "--jobs"]),
    (&["git"], &["-m", "-am", "-F", "--message", "-c", "--author"]),
    (&["gh"], &["-b", "-F", "-B", "-H", "--body", "--body-file", "--title", "--base", "--head"]),
];

/// Options by which a program only says what it would do. `-n` is one for few programs: it is a number, a name or the end of
/// a check elsewhere.
pub(super) const PLANS: Options = &[
    (&[], &["--dry-run"]),
    (&["make", "gmake", "ninja"], &["-n", "--just-print", "--recon"]),
    (&["rsync"], &["-n"]),
    (&["cargo"], &["--no-run", "--list"]),
    (&["pytest"], &["--collect-only", "--co"]),
    (&["jest", "npm", "pnpm", "yarn"], &["--listTests", "--list"]),
    (&["mvn", "mvnw", "gradle", "gradlew"], &["-DskipTests", "-m"]),
    (&["just", "nox", "tox", "playwright", "vitest"], &["--list", "-l"]),
    (&["phpunit", "ctest", "catch2"], &["--list-tests", "-N"]),
];

/// Options that make another variant of the work. A success of one variant is none of another.
pub(super) const VARIANTS: Options = &[
    (&["cargo"], &["--release", "-r", "--all-features"]),
    (&["npm", "pnpm", "yarn", "bun"], &["--prod", "--production"]),
];

/// Options that name a variant by their value.
pub(super) const NAMED_VARIANTS: Options = &[
    (&[], &["--env", "--environment", "--stage"]),
    (&["cargo"], &["--features", "-F", "--target", "--profile", "--manifest-path"]),
    (&["terraform", "tofu", "terragrunt"], &["-var-file", "--var-file", "-target"]),
    (&["dotnet", "cmake", "ctest"], &["-c", "--configuration", "--config", "--preset"]),
    (&["vite", "ng", "astro"], &["--mode", "-m", "-c", "--configuration"]),
    (&["mvn", "mvnw", "gradle", "gradlew"], &["-P"]),
];

/// Options that leave a part of the work out. A success with one says nothing of the work without it.
pub(super) const REDUCING: Options = &[
    (&["git"], &["--no-verify"]),
    (&["cargo"], &["--no-default-features", "--keep-going", "--no-fail-fast"]),
    (&["npm", "pnpm", "yarn", "bun"], &["--ignore-scripts"]),
];

/// Whether a table has an option for a program.
pub(super) fn lists(table: Options, program: &str, option: &str) -> bool {
    table
        .iter()
        .any(|(programs, options)| (programs.is_empty() || programs.contains(&program)) && options.contains(&option))
}
