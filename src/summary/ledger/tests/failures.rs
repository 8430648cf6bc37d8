//! Tests of failures: the line that tells one, and whether it was solved since.

use super::*;

#[test]
fn a_failure_that_worked_later_is_resolved() {
    let said = |failed, label: &str, text: &str| Said {
        speaker: Speaker::Result { failed },
        ..Said::new(Speaker::Aside, Clean::assembled(label), Clean::assembled(text))
    };
    let pieces = [
        said(true, "bash cargo test", "running\nerror[E0308]: mismatched types"),
        said(true, "bash make", "make: *** no rule"),
        said(false, "bash cargo test", "ok"),
        said(true, "bash cargo run", "thread 'main' panicked at src/main.rs:3:5:\nthe port is taken\nnote: run with"),
    ];
    let ledger = Ledger::of(&Sources {
        previous: &[],
        said: &pieces,
        entries: &[],
        goes_on: false,
        todo_tools: &[],
        clean: &|text| Clean::assembled(text),
    });
    let found: Vec<_> = ledger.failures.iter().map(|it| (it.line.as_str(), it.state == State::Solved)).collect();
    let panic = "thread 'main' panicked at src/main.rs:3:5: the port is taken";
    assert_eq!(found, [("error[E0308]: mismatched types", true), ("make: *** no rule", false), (panic, false)]);
}

#[test]
fn failures_are_passed_where_the_work_went_on_without_them() {
    let state = |pieces: &[Said]| ledger(&[], pieces).failures[0].state;
    let [ask, go] = ["Push it.", "Go on with the docs."].map(|text| piece(Speaker::User, text));
    let push = result(true, "bash git push origin main");
    let merged = piece(Speaker::Assistant, "PR #236 is merged.");
    assert_eq!(state(&[ask.clone(), push.clone(), merged.clone()]), State::Earlier);
    assert_eq!(state(&[ask.clone(), push.clone(), piece(Speaker::Assistant, "The push is refused."), go]), State::Open);
    assert_eq!(state(&[ask, push, piece(Speaker::Call, "x"), merged]), State::Earlier);
    assert_eq!(state(&[result(true, "read a.rs"), result(false, "read b.rs")]), State::Earlier);
    assert_eq!(state(&[result(true, "bash pytest a.py"), result(false, "bash .venv/bin/pytest a.py")]), State::Solved);
    assert_eq!(state(&[result(true, "bash pytest a.py"), result(false, "bash nohup pytest a.py &")]), State::Open);
}

#[test]
fn a_later_failure_of_the_same_command_takes_the_place_of_the_first() {
    let failed = |text: &str| Said {
        speaker: Speaker::Result { failed: true },
        ..Said::new(Speaker::Aside, Clean::assembled("bash cargo test"), Clean::assembled(text))
    };
    let found = ledger(&[], &[failed("error: one"), failed("error: two")]).failures;
    let found: Vec<_> = found.iter().map(|it| (it.line.as_str(), it.state)).collect();
    assert_eq!(found, [("error: one", State::Earlier), ("error: two", State::Open)]);
}

#[test]
fn the_line_of_a_failure_is_the_end_of_its_traceback() {
    let text = "a.py:5: ExperimentalWarning: APIs may change without notice, error: none\nTraceback (most recent call last):\n  File \"a.py\", line 3\nImportError: no vllm";
    let failed = Said { speaker: Speaker::Result { failed: true }, ..piece(Speaker::Aside, text) };
    assert_eq!(ledger(&[], &[failed]).failures[0].line, "ImportError: no vllm");
}

#[test]
fn a_request_after_a_red_check_is_not_done() {
    let check = |failed: bool| Said {
        speaker: Speaker::Result { failed },
        runs: crate::summary::heard::runs("cargo test").into(),
        ..piece(Speaker::Aside, if failed { "error: it broke" } else { "test result: ok" })
    };
    let done = |checks: &[bool]| {
        let mut said = vec![piece(Speaker::User, "Fix the parser.")];
        said.extend(checks.iter().map(|failed| check(*failed)));
        said.push(piece(Speaker::Assistant, "Done, all tests pass."));
        ledger(&[], &said).requests[0].is_done()
    };
    assert!(done(&[true, false]) && !done(&[false, true]));
    let asked = [
        piece(Speaker::User, "Fix the tests."),
        ran(true, "pytest", "error: it broke"),
        ran(false, "pytest --collect-only", "3 tests"),
        ran(false, "pytest --version", "8.0"),
        piece(Speaker::Assistant, "I looked at it."),
    ];
    assert!(!ledger(&[], &asked).requests[0].is_done());
    let after = |failed: bool, script: &str, output: &str| {
        let pieces = [
            piece(Speaker::User, "Fix it."),
            ran(failed, script, output),
            piece(Speaker::Assistant, "Fixed the parser."),
        ];
        ledger(&[], &pieces).requests[0].is_done()
    };
    assert!(!after(false, "cargo test | tail", "2 failed"), "the pipe hides it");
    assert!(after(true, "git push", "error: x"), "a push is no check");
}

#[test]
fn a_command_that_worked_solves_the_same_and_less() {
    let open = |failed: &str, worked: &str| {
        let found = ledger(&[], &[result(true, failed), result(false, worked)]);
        found.failures[0].is_open()
    };
    for (failed, worked) in [
        ("bash cargo test payment", "bash cargo test login"),
        ("bash docker compose up db", "bash docker compose ps"),
        ("bash npm run build", "bash npm run lint"),
        ("bash cargo test", "bash cargo test login"),
        ("bash make test", "bash make"),
        ("bash npm install left-pad", "bash npm install"),
        ("bash git stash pop", "bash git stash"),
        ("bash git push origin main", "bash git push"),
        ("bash ./deploy.sh prod", "bash ./deploy.sh"),
        ("bash mise run lint && mise run test", "bash mise run lint"),
    ] {
        assert!(open(failed, worked), "{failed} | {worked}");
    }
    for (failed, worked) in [
        ("bash cargo test payment", "bash cargo test"),
        ("bash cd /x && cargo test 2>&1 | tail -40", "bash cargo test 2>&1 | tail -5"),
        ("edit src/a.rs", "edit src/a.rs"),
        // The output says that it passed.
        ("bash cargo test", "bash cargo test || true"),
        ("bash mise run lint 2>&1", "bash mise run lint && mise run test"),
    ] {
        assert!(!open(failed, worked), "{failed} | {worked}");
    }
    let carried = [(Section::Blocked, "bash cargo test: error[E0382]: moved".to_owned())];
    assert!(ledger(&carried, &[]).failures[0].is_open());
    let found = ledger(&carried, &[result(false, "bash cargo test")]);
    assert!(found.failures[0].state == State::Solved && found.failures[0].text() == carried[0].1);
}

#[test]
fn a_failure_that_a_pipe_hides_is_one() {
    let output = "running 2 tests\ntest result: FAILED. 1 passed; 1 failed";
    let found = ledger(&[], &[ran(false, "cargo test | tail", output)]).failures;
    assert!(found.len() == 1 && found[0].is_open(), "{found:?}");
    assert_eq!(ledger(&[], &[ran(false, "cat log | tail", output)]).failures.len(), 0, "a log tells of another run");
    let solved = |output: &str| {
        let pieces = [ran(true, "cargo test", "error: it broke"), ran(false, "cargo test | tail", output)];
        ledger(&[], &pieces).failures[0].state == State::Solved
    };
    assert!(solved("test result: ok. 3 passed; 0 failed") && !solved("Compiling a v1.0.0") && !solved("10 failed"));
}

#[test]
fn failures_of_an_earlier_summary_keep_their_state_and_are_no_facts() {
    let items = [
        "failed earlier – bash make: x",
        "failed, later worked – bash tsc: y",
        "last command that worked – bash ls: z",
    ];
    let previous = items.map(|text| (Section::Context, text.to_owned()));
    let found = ledger(&previous, &[]);
    assert_eq!(found.failures.iter().map(|it| it.state).collect::<Vec<_>>(), [State::Earlier, State::Solved]);
    assert!(found.statements.is_empty(), "{:?}", found.statements);
    let solved = ledger(&previous, &[result(false, "bash make")]);
    assert_eq!(solved.failures[0].state, State::Solved);
}

#[test]
fn the_newest_command_that_worked_is_told_with_the_end_of_its_output() {
    let pieces =
        [ran(false, "git push", "to main\n55c7b81..ba28c63"), ran(false, "ls -l", "a"), ran(true, "make", "no")];
    assert_eq!(ledger(&[], &pieces).last_command.as_deref(), Some("bash git push: 55c7b81..ba28c63"));
}

#[test]
fn a_step_is_announced_until_its_call_worked() {
    let clean = |text: &str| Clean::assembled(text);
    let next = |pieces: &[Said]| {
        let sources =
            Sources { previous: &[], said: pieces, entries: &[], goes_on: true, todo_tools: &[], clean: &clean };
        Ledger::of(&sources).next
    };
    let said = [piece(Speaker::User, "Fix it."), piece(Speaker::Assistant, "Let me run the tests now:")];
    assert_eq!(next(&said), ["said next: Let me run the tests now"]);
    assert_eq!(next(&[said.to_vec(), vec![ran(true, "make", "no")]].concat()).len(), 1);
    assert_eq!(next(&[said.to_vec(), vec![ran(false, "make", "ok")]].concat()).len(), 0);
}

#[test]
fn a_red_check_stays_open_whatever_the_answer_claims() {
    let said = [
        piece(Speaker::User, "Fix the parser."),
        ran(true, "cargo test", "error: it broke"),
        piece(Speaker::Assistant, "Done, the parser is fixed."),
    ];
    assert!(ledger(&[], &said).failures[0].is_open());
}

#[test]
fn words_of_failure_that_deny_nothing_leave_a_request_done() {
    for (request, answer) in [
        ("Fix the login.", "Fixed the failing test in auth.ts."),
        ("The import in cart.ts is broken.", "Added the missing import to cart.ts."),
        ("Repariere das Menü.", "Das Menü ist repariert, der Fehler tritt nicht mehr auf."),
        ("Fix the login.", "I fixed the login. Before, the cookie could not be parsed."),
        ("Fix the login.", "Fixed the login. I have not changed the CSS."),
        ("Add a tooltip.", "Done. The tooltip shows up. Anything else?"),
        ("Make the header sticky.", "The header is sticky now, that is done. Should I commit this?"),
        ("Check the counts.", "The count is fixed since you didn't edit the file."),
    ] {
        assert!(answered(request, answer).0, "{request} {:?}", answered(request, answer));
    }
}

#[test]
fn the_success_of_another_turn_solves_nothing() {
    let pieces = [
        piece(Speaker::User, "Deploy it."),
        ran(true, "kubectl apply -f x.yaml", "error: Unauthorized"),
        piece(Speaker::Assistant, "I couldn't deploy it. Please log in."),
        piece(Speaker::User, "Fix the typo in the footer."),
        piece(Speaker::Assistant, "Fixed the typo."),
    ];
    assert!(ledger(&[], &pieces).failures[0].is_open());
}

#[test]
fn the_line_of_a_failure_is_its_message_and_no_code() {
    for (output, line) in [
        (
            "[lint] $ golangci-lint run ./...\na.go:12:3: Error return value is not checked (errcheck)\n\treturn fmt.Errorf(\"failed to get agent: %w\", err)",
            "a.go:12:3: Error return value is not checked (errcheck)",
        ),
        ("# entire.io/cli/x\na.go:3:1: undefined: object", "a.go:3:1: undefined: object"),
        (
            "<tool_use_error>Found 2 matches of the string to replace\nString: return fmt.Errorf(\"failed to get\")",
            "Found 2 matches of the string to replace",
        ),
        ("warning: the last Error: was ignored\nError:\nthe lock is stale", "Error: the lock is stale"),
        ("Exit code 1\nmake: it broke", "make: it broke"),
        ("exit code 1 of the long script here: it broke", "exit code 1 of the long script here: it broke"),
        ("$ make\nit broke", "it broke"),
        ("=== RUN TestA\nit broke", "it broke"),
        ("task failed: lint\nit broke", "it broke"),
        ("if error: x\nit broke", "it broke"),
        ("error: x {\nit broke", "it broke"),
        ("# it failed\nthe end", "the end"),
        ("warning: it failed\nthe end", "the end"),
        ("a.rs:1:2: warning x\na.rs:3:4: it broke", "a.rs:3:4: it broke"),
        ("a\nCONFLICT (content): x", "CONFLICT (content): x"),
        ("ok\nfatal it broke", "fatal it broke"),
        ("ok\nit is fatal so\nthe fatal: one", "the fatal: one"),
        ("note\nrejected by remote", "rejected by remote"),
        ("Traceback (most recent call last):\n  File x\nabc.Error: one\n1Error: two", "abc.Error: one"),
        ("Traceback (most recent call last):\n  File x\nhttpx.ReadTimeout\nmore", "httpx.ReadTimeout"),
    ] {
        assert_eq!(ledger(&[], &[ran(true, "mise run lint", output)]).failures[0].line, line, "{output}");
    }
}

#[test]
fn a_failure_without_output_is_none() {
    let without = [
        "",
        " \n ",
        "Command exited with code 1",
        "exit code 1",
        "(no output)",
        "The user doesn't want to go on.",
        "Total output lines: 110",
    ];
    for output in without {
        assert_eq!(ledger(&[], &[ran(true, "make", output)]).failures.len(), 0, "{output}");
    }
}

#[test]
fn a_long_line_is_not_that_of_a_failure() {
    let output = format!("{} error: y\nit broke", "x".repeat(500));
    assert_eq!(ledger(&[], &[ran(true, "make", &output)]).failures[0].line, "it broke");
}

#[test]
fn an_alternative_that_says_it_passed_solves_its_failure() {
    let script = "for i in 1 2; do if curl localhost; then echo ready; exit 0; fi; done";
    let pieces = [ran(true, script, "❌ the server failed to start"), ran(false, script, "✅ the server is ready")];
    assert_eq!(ledger(&[], &pieces).failures[0].state, State::Solved);
}
