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
fn a_run_with_a_hidden_exit_code_solves_what_its_output_tells() {
    for (failed, worked, output, state) in [
        ("cargo run", "cargo run | tail", "fine", State::Solved),
        ("cargo run", "cargo run | tail", "error: it failed", State::Open),
        ("python x.py", "nohup python x.py & sleep 1", "3 passed; 1 failed", State::Open),
        ("cargo run", "cargo run || true", "fine", State::Open),
        ("cargo run", "cargo run || true", "3 passed, 1 failed", State::Open),
        ("cargo run &", "cargo run &", "fine", State::Open),
        ("make; ls", "make", PASSED, State::Solved),
        ("cargo test", "cargo test | tail", "3 passed", State::Solved),
        ("cargo test", "cargo test | tail", "0 failed", State::Solved),
        ("cargo test", "cargo test | tail", "it passed", State::Solved),
        ("cargo test", "cargo test | tail", "Finished dev", State::Solved),
        ("cargo test", "cargo test | tail", "no issues found", State::Solved),
        ("cargo test", "cargo test | tail", "server is ready", State::Solved),
        ("cargo test", "cargo test | tail", "2 tests failed", State::Open),
        ("cargo test", "cargo test | tail", "fine", State::Open),
    ] {
        assert_eq!(after(failed, worked, output), state, "{failed} | {worked} | {output}");
    }
    let told = "test result: FAILED. 1 passed; 1 failed";
    assert_eq!(failures(&[ran(false, "cargo test", told)]).len(), 0, "its own exit code says that it passed");
}

#[test]
fn a_failure_is_the_same_with_its_call_and_its_line() {
    let states = |pieces: &[Said]| failures(pieces).iter().map(|it| it.state).collect::<Vec<_>>();
    assert_eq!(states(&[ran(true, "make a", "error: a"), ran(true, "make b", "error: a")]).len(), 2);
    let again = [ran(true, "make", "error: a"), ran(false, "make", PASSED), ran(true, "make", "error: b")];
    assert_eq!(states(&again), [State::Solved, State::Open]);
    let unnamed = ["error: x", "error: y"].map(|text| Said {
        speaker: Speaker::Result { failed: true },
        ..Said::new(Speaker::Aside, Clean::default(), Clean::assembled(text))
    });
    assert_eq!(states(&unnamed), [State::Open, State::Open]);
    let turn = [
        Said::new(Speaker::User, Clean::assembled("x"), Clean::assembled("Fix it.")),
        ran(true, "git push", "error: x"),
        ran(false, "git push", "ok"),
        Said::new(Speaker::Assistant, Clean::assembled("x"), Clean::assembled("Fixed the parser.")),
    ];
    assert_eq!(states(&turn), [State::Solved]);
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
