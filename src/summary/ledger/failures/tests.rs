//! Tests of failures and of the calls that solve them.

use super::{super::Sources, *};
use crate::{
    redact::Clean,
    summary::{heard::Speaker, ledger::Ledger},
};

const PASSED: &str = "test result: ok. 3 passed";

/// The result of a command of a shell.
fn ran(failed: bool, script: &str, output: &str) -> Said {
    Said {
        speaker: Speaker::Result { failed },
        runs: runs(script).into(),
        ..Said::new(Speaker::Aside, Clean::assembled(format!("bash {script}")), Clean::assembled(output))
    }
}

fn failures(pieces: &[Said]) -> Vec<Failure> {
    let clean = |text: &str| Clean::assembled(text);
    let sources = Sources { previous: &[], said: pieces, entries: &[], goes_on: false, todo_tools: &[], clean: &clean };
    Ledger::of(&sources).failures
}

/// The state of a command that failed, after another one worked.
fn after(failed: &str, worked: &str, output: &str) -> State {
    failures(&[ran(true, failed, "error: it broke"), ran(false, worked, output)])[0].state
}

#[test]
fn a_command_in_quotes_solves_nothing() {
    assert_eq!(after("cargo test", "git commit -m 'wip; cargo test'", "[main 1a2b3c4] wip"), State::Open);
    assert_eq!(after("make", "echo 'first lint && make'", "first lint && make"), State::Open);
}

#[test]
fn a_shift_begins_no_document() {
    assert_eq!(after("x=$((1<<k))\ncargo test", "cargo test", PASSED), State::Solved);
    assert_eq!(after("read a <<< \"$x\"\ncargo test", "cargo test", PASSED), State::Solved);
}

#[test]
fn a_failure_stays_open_where_the_option_plans_nothing() {
    for failed in
        ["pytest -n 4 tests/test_cart.py", "kubectl -n prod apply -f x.yaml", "git commit -n -m x", "make a || make b"]
    {
        assert_eq!(after(failed, "ls", "a.py"), State::Open, "{failed}");
    }
    assert_eq!(after("make -n deploy", "ls", "a.py"), State::Earlier);
    assert_eq!(after("make a || make b", "make a || make b", "fine"), State::Solved);
}

#[test]
fn the_same_work_in_another_form_solves_a_failure() {
    for (failed, worked) in [
        ("make -C dir test", "cd dir && make test"),
        ("cd dir && make test", "make -C dir test"),
        ("git push", "git push -u origin HEAD"),
        ("git push -u origin HEAD", "git push"),
        ("bash x.sh", "timeout 60 bash x.sh"),
        ("./x.sh", "script -q -c './x.sh' /dev/null"),
        ("python x.py", "nohup python3 x.py > log 2>&1 & sleep 5; cat log"),
    ] {
        assert_eq!(after(failed, worked, PASSED), State::Solved, "{failed} | {worked}");
    }
    let unsure = after("python x.py", "nohup python3 x.py > log 2>&1 &", "[1] 4711");
    assert_eq!(unsure, State::Open, "nothing says that it worked");
    assert_eq!(after("make -C a test", "make -C b test", PASSED), State::Open);
}

#[test]
fn an_invalid_use_is_solved_by_another_use() {
    let state = |failed: &str, output: &str, worked: &str| {
        failures(&[ran(true, failed, output), ran(false, worked, "fine")])[0].state
    };
    let unexpected = "error: unexpected argument '--fast' found";
    assert_eq!(state("cargo run x --fast", unexpected, "cargo run y"), State::Solved);
    assert_eq!(state("cargo run x --fast", unexpected, "cargo fetch"), State::Open);
    assert_eq!(state("cargo run x", "error: it broke", "cargo run y"), State::Open);
    assert_eq!(state("rgx --foo a", "rgx: unrecognized option '--foo'", "rgx b"), State::Solved);
}

#[test]
fn a_warning_of_a_cut_output_is_no_failure() {
    let cut = "Warning: truncated output (original token count: 12000)";
    assert_eq!(failures(&[ran(true, "make", cut)]).len(), 0);
    assert_eq!(failures(&[ran(true, "make", &format!("{cut}\nerror: it broke"))])[0].line, "error: it broke");
}
