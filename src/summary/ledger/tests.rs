//! Tests of the facts of a conversation.

mod failures;

use super::{failures::State, *};

fn statements(pieces: &[Said]) -> Vec<String> {
    let clean = |text: &str| Clean::assembled(text);
    let ledger = Ledger::of(&Sources {
        previous: &[],
        said: pieces,
        entries: &[],
        goes_on: false,
        todo_tools: &[],
        clean: &clean,
    });
    ledger.statements.into_iter().map(|held| held.statement.text).collect()
}

fn piece(speaker: Speaker, text: &str) -> Said {
    Said::new(speaker, Clean::assembled("x"), Clean::assembled(text))
}

#[test]
fn a_statement_with_and_without_its_label_is_one_statement() {
    let said = ["The port is 4711.", "Note: The port is 4711."].map(|text| piece(Speaker::User, text));
    assert_eq!(statements(&said), ["Note: The port is 4711."]);
}

#[test]
fn the_statements_in_the_summary_of_a_branch_are_held_and_may_be_replaced() {
    let branch = "## Goal\nTry it\n\n## Constraints & Preferences\n- Never use macros.\n\n## Critical Context\n- The port is 4711.\n- The host is a.internal.";
    let said = [piece(Speaker::Branch, branch), piece(Speaker::User, "The port is 9000.")];
    assert_eq!(statements(&said), ["Never use macros.", "The port is 9000.", "The host is a.internal."]);
}

fn ledger(previous: &[(Section, String)], pieces: &[Said]) -> Ledger {
    let clean = |text: &str| Clean::assembled(text);
    Ledger::of(&Sources { previous, said: pieces, entries: &[], goes_on: false, todo_tools: &[], clean: &clean })
}

#[test]
fn a_correction_takes_its_sentence_and_not_the_request() {
    let said = |text: &str| piece(Speaker::User, text);
    let found = ledger(&[], &[said("Build a REST API in Rust. The port is 8080."), said("The port is 9000.")]);
    let requests: Vec<_> = found.requests.iter().map(|request| request.text.as_str()).collect();
    assert_eq!(requests, ["Build a REST API in Rust."]);
}

#[test]
fn a_pasted_error_is_no_task_of_its_own_words() {
    let error = "[browser] ./a.js:203:1\nExport default does not exist\n> 203 | import X";
    let pasted = ledger(&[], &[piece(Speaker::User, error)]);
    assert_eq!(pasted.requests[0].text, "Pasted output: [browser] ./a.js:203:1");
    let asked = ledger(&[], &[piece(Speaker::User, &format!("Fix this:\n\n{error}"))]);
    assert!(asked.requests[0].text.starts_with("Fix this: Export"), "{}", asked.requests[0].text);
    let after =
        ledger(&[], &[piece(Speaker::User, &format!("{error}\n\nThe export is not there.\n\nCan you fix this?"))]);
    assert_eq!(after.requests[0].text, "Can you fix this?");
}

#[test]
fn an_answered_request_is_done_and_one_that_goes_on_is_not() {
    let said = [piece(Speaker::User, "Fix the parser."), piece(Speaker::Assistant, "Fixed the parser in a.rs.")];
    assert!(ledger(&[], &said).requests[0].is_done());
    let call = piece(Speaker::Call, "cargo test");
    assert!(!ledger(&[], &[said.clone().to_vec(), vec![call]].concat()).requests[0].is_done());
    let denied = [said[0].clone(), piece(Speaker::Assistant, "Two tests are still failing after it.")];
    assert!(!ledger(&[], &denied).requests[0].is_done());
}

#[test]
fn a_long_item_of_an_earlier_summary_is_divided_into_its_sentences() {
    let long = format!("{}Never push to main.", "The parser reads one more of the many files. ".repeat(90));
    for section in [Section::Constraints, Section::Context] {
        let found = ledger(&[(section, long.clone())], &[]).statements;
        let texts: Vec<&str> = found.iter().map(|held| held.statement.text.as_str()).collect();
        assert!(
            texts.contains(&"Never push to main.") && texts.iter().all(|text| text.len() < 60),
            "{section:?} {texts:?}"
        );
        let most = found.iter().map(|held| held.statement.kind).min();
        assert!(found.iter().any(|held| Some(held.statement.kind) == most && held.statement.text.starts_with("Never")));
    }
    let word = ledger(&[(Section::Context, "QUJD".repeat(2_000))], &[]).statements;
    assert!(word.len() == 1 && word[0].statement.text.ends_with(" …"), "{}", word[0].statement.text.len());
    assert!(ledger(&[(Section::Context, "…".to_owned())], &[]).statements.is_empty(), "a mark is no statement");
}

#[test]
fn an_answer_to_a_fact_is_no_outcome_of_the_request_before() {
    let said = [
        piece(Speaker::User, "Fix the rounding in cart.rs."),
        piece(Speaker::Assistant, "Fixed the rounding in cart.rs."),
        piece(Speaker::User, "The port of staging is 8443."),
        piece(Speaker::Assistant, "Understood."),
    ];
    let found = ledger(&[], &said).requests;
    assert_eq!((found.len(), found[0].outcome.as_deref()), (1, Some("Fixed the rounding in cart.rs.")));
}

#[test]
fn a_stopped_request_is_not_done_and_a_carried_one_goes_on() {
    let stop = piece(Speaker::Stop, "stopped");
    let said = [
        piece(Speaker::User, "Refactor it."),
        stop,
        piece(Speaker::User, "Fix the build."),
        piece(Speaker::Assistant, "Fixed."),
    ];
    let found = ledger(&[], &said).requests;
    assert!(found[0].is_stopped() && !found[0].is_done() && found[1].is_done());
    let previous = [(Section::InProgress, "Port the parser → Half of it is there.".to_owned())];
    for first in [None, Some(piece(Speaker::User, "go on"))] {
        let said: Vec<Said> =
            first.into_iter().chain([piece(Speaker::Assistant, "The parser is ported, all done.")]).collect();
        let found = ledger(&previous, &said).requests;
        assert!(found.len() == 1 && found[0].text == "Port the parser" && found[0].is_done(), "{found:?}");
    }
}

#[test]
fn the_answer_to_a_question_is_a_decision() {
    let asked = Said {
        speaker: Speaker::Result { failed: false },
        ..Said::new(
            Speaker::Aside,
            Clean::assembled("AskUserQuestion which database"),
            Clean::assembled(
                "Your questions have been answered: \"Which database?\"=\"SQLite\". You can now continue with these answers in mind.",
            ),
        )
    };
    assert_eq!(ledger(&[], &[asked]).decisions, ["The user answered: \"Which database?\"=\"SQLite\""]);
    let of = |label: &str| ledger(&[], &[result(false, label)]).decisions.len();
    assert_eq!((of("ask"), of("question"), of("ask how to deploy"), of("question How?")), (1, 1, 0, 0));
}

#[test]
fn each_request_has_its_own_outcome() {
    let said = [
        piece(Speaker::User, "Fix the bug in src/cart.rs where the total is 3 instead of 4."),
        piece(Speaker::Assistant, "**Files changed (1):**\n- src/cart.rs\n\nI rounded in the wrong place."),
        piece(Speaker::User, "Add an endpoint /v2/export that returns CSV and is limited to 100 rows."),
        piece(Speaker::Assistant, "The endpoint is there, the tests are missing."),
    ];
    let found = ledger(&[], &said).requests;
    let done: Vec<_> = found.iter().map(|request| (request.outcome.as_deref(), request.is_done())).collect();
    assert_eq!(
        done,
        [(Some("I rounded in the wrong place."), true), (Some("The endpoint is there, the tests are missing."), false)]
    );
}

/// The result of a call.
fn result(failed: bool, label: &str) -> Said {
    let text = if failed { "error: it broke" } else { "test result: ok. 3 passed" };
    Said {
        speaker: Speaker::Result { failed },
        ..Said::new(Speaker::Aside, Clean::assembled(label), Clean::assembled(text))
    }
}

/// The result of a command of a shell.
fn ran(failed: bool, script: &str, output: &str) -> Said {
    Said {
        speaker: Speaker::Result { failed },
        runs: crate::summary::heard::runs(script).into(),
        ..Said::new(Speaker::Aside, Clean::assembled(format!("bash {script}")), Clean::assembled(output))
    }
}

#[test]
fn an_answer_is_that_of_all_requests_that_joined_its_turn() {
    let [first, second] = ["Fix the parser.", "And rename it."].map(|text| piece(Speaker::User, text));
    let found =
        ledger(&[], &[first, piece(Speaker::Call, "x"), second, piece(Speaker::Assistant, "Both are done.")]).requests;
    assert!(found.len() == 2 && found.iter().all(Request::is_done));
}

#[test]
fn a_count_of_errors_denies_that_a_request_is_done() {
    for answer in ["There are 3 errors.", "Fixed the parser, the docs are not yet done."] {
        assert!(!answered("Fix the parser.", answer).0, "{answer}");
    }
    for answer in
        ["The parser is fixed if the lock is free.", "The parser is fixed because the lock could not be taken."]
    {
        assert!(answered("Fix the parser.", answer).0, "{answer}");
    }
}

#[test]
fn an_exclamation_is_no_last_word() {
    let last =
        |answer: &str| ledger(&[], &[piece(Speaker::User, "Fix it."), piece(Speaker::Assistant, answer)]).last_words;
    assert_eq!(last("What a mess this is!"), None);
    for said in [
        "The parser is fixed!",
        "I rounded it. Looks good to me!",
        "Great news for the parser of all those files in here.",
    ] {
        assert_eq!(last(said).as_deref(), Some(said));
    }
}

#[test]
fn a_message_that_states_facts_is_a_request_where_its_answer_does_something() {
    for (said, answer, requests) in [
        ("The port is 4711.", "I could not reach it.", 2),
        ("The port is 4711.", "Fixed the port as well.", 2),
        ("The port is 4711.", "It is in a.rs.", 1),
        ("RELEASE: the version is 2.0.1.", "Understood.", 1),
        ("The port is 4711. Handle it as you like, there is so much to say.", "I see.", 2),
        ("Never push.", "I see.", 2),
        ("[Image: image/png]", "A cat.", 1),
        ("```\nlong\n```", "I see.", 1),
    ] {
        let pieces = [
            piece(Speaker::User, "Fix the parser."),
            piece(Speaker::Assistant, "Fixed."),
            piece(Speaker::User, said),
            piece(Speaker::Assistant, answer),
        ];
        let found = ledger(&[], &pieces).requests;
        assert_eq!(found.len(), requests, "{said} {found:?}");
        if requests == 2 {
            assert_eq!(found[0].outcome.as_deref(), Some("Fixed."), "{said}");
        }
    }
    let acted = [
        piece(Speaker::User, "Fix the parser."),
        piece(Speaker::Assistant, "Fixed."),
        piece(Speaker::User, "The port is 4711."),
        piece(Speaker::Call, "x"),
    ];
    let found =
        |answer: &str| ledger(&[], &[acted.to_vec(), vec![piece(Speaker::Assistant, answer)]].concat()).requests;
    assert!(found("Set in a.rs.").len() == 2 && found("Noted.").len() == 1);
    let first = |said: &str| ledger(&[], &[piece(Speaker::User, said)]).requests.len();
    assert_eq!((first("[Image: image/png]"), first("[Image: image/png] what is it")), (0, 1));
}

#[test]
fn a_request_that_is_said_again_is_one() {
    let said = ["Fix the parser.", "I see.", "Fix the parser.", "Fixed the parser."];
    let speaker = |at: usize| if at.is_multiple_of(2) { Speaker::User } else { Speaker::Assistant };
    let pieces: Vec<Said> = said.iter().enumerate().map(|(at, text)| piece(speaker(at), text)).collect();
    assert_eq!(ledger(&[], &pieces).requests.len(), 1);
    assert_eq!(ledger(&[], &[piece(Speaker::User, &"a b\n".repeat(20))]).requests[0].text.len(), 12 * 4 - 1);
}

#[test]
fn a_request_that_the_agent_asked_back_is_open() {
    let said = [piece(Speaker::User, "Add tracing."), piece(Speaker::Assistant, "Jaeger or Zipkin?")];
    assert!(!ledger(&[], &said).requests[0].is_done());
}

/// The request of a turn and its answer: whether it is done, and its line.
fn answered(request: &str, answer: &str) -> (bool, String) {
    let found = ledger(&[], &[piece(Speaker::User, request), piece(Speaker::Assistant, answer)]).requests;
    let told = [found[0].outcome.clone(), found[0].gap.clone()];
    (found[0].is_done(), told.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

#[test]
fn an_answer_that_admits_a_gap_leaves_its_request_open() {
    for (request, answer, told) in [
        (
            "Export CSV, XLSX and PDF.",
            "I added CSV and XLSX export. I could not finish the PDF export because the library is missing.",
            "I added CSV and XLSX export. I could not finish the PDF export because the library is missing.",
        ),
        (
            "Add retries and a changelog.",
            "Added the retries. I will do the changelog later.",
            "Added the retries. I will do the changelog later.",
        ),
        ("Corrige el menú.", "No pude corregir el menú.", "No pude corregir el menú."),
        ("Répare le menu.", "Je n'ai pas pu réparer le menu.", "Je n'ai pas pu réparer le menu."),
        ("メニューを直して", "メニューは直せませんでした。", "メニューは直せませんでした。"),
        (
            "Add dark mode.",
            "I added dark mode. Tests are left for later.",
            "I added dark mode. Tests are left for later.",
        ),
        ("Füge Tests hinzu.", "Die Tests habe ich nicht angepasst.", "Die Tests habe ich nicht angepasst."),
        ("写测试", "测试还没写。", "测试还没写。"),
        ("修复菜单", "无法修复菜单，文件不存在。", "无法修复菜单，文件不存在。"),
    ] {
        assert_eq!(answered(request, answer), (false, told.to_owned()), "{request}");
    }
}

#[test]
fn the_outcome_is_the_sentence_about_the_request() {
    for (request, answer, told) in [
        (
            "Why is one method named so?",
            "The name is of the agent. All tests pass and lint is clean.",
            "The name is of the agent.",
        ),
        (
            "yeah I feel the prefix is redundant",
            "session/state.go - Added FindLegacySessionID(). The Gemini prefix is actually **necessary** since both handlers share a package.",
            "The Gemini prefix is actually **necessary** since both handlers share a package.",
        ),
        (
            "make a follow-up pr",
            "Made the follow-up PR: #10832. I also rebased after #10830 merged.",
            "Made the follow-up PR: #10832.",
        ),
        ("Run the plan.", "## Summary of Changes\n\nThe parser reads tabs.", "The parser reads tabs."),
        (
            "v0.16.1 패치 릴리즈 진행해주세요",
            "## v0.16.1 릴리즈 완료\n\n상세 조회는 차단되어 확인할 수 없습니다.",
            "v0.16.1 릴리즈 완료",
        ),
        ("Run the plan.", "Now executing the first batch (tasks 1-3). The batch is in a.rs.", "The batch is in a.rs."),
        (
            "The parser is slow, right?",
            "The parser copies each line. I fixed the docs and added the tests of the parser.",
            "The parser copies each line.",
        ),
        (
            "why is it slow",
            "The parser copies each line. I fixed the docs and added the tests.",
            "The parser copies each line.",
        ),
        (
            "Why is the parser slow?",
            "All tests pass. The parser copies each line. I fixed the docs of the parser.",
            "The parser copies each line.",
        ),
        ("Fix the parser.", "## Parser not fixed\n\nIt was the lexer all along.", "It was the lexer all along."),
        ("Fix the parser.", "## Docs fixed\n\nIt was the lexer all along.", "It was the lexer all along."),
        ("Fix the parser.", "## The parser\n\nIt was the lexer all along.", "It was the lexer all along."),
        (
            "Fix the parser.",
            "Option one: the parser is fixed by a lock. It is the second one.",
            "It is the second one.",
        ),
        ("Fix the parser.", "A) the parser is fixed so. It is in a.rs now.", "It is in a.rs now."),
        ("Fix the parser.", "Is the parser fixed now? It reads the tabs.", "It reads the tabs."),
        ("Fix the parser.", "The parser reads tabs now. All tests pass.", "The parser reads tabs now."),
        ("Fix the parser.", "Solution: a lock for it. I changed the parser.", "Solution: a lock for it."),
        ("Fix the parser.", "The tab is unnecessary. The parser reads it all.", "The parser reads it all."),
        ("Fix the parser.", "The parser fails. Fixed the docs.", "Fixed the docs."),
        ("Fix the parser.", "The parser of this project has the following parts in its files:", ""),
    ] {
        assert_eq!(answered(request, answer).1, told, "{request}");
    }
}

#[test]
fn a_report_of_trouble_is_a_request_and_no_fact() {
    for said in [
        "The login page is broken on Safari 17.",
        "GET /users is returning 500 now",
        "There are 3 failing tests in cart.spec.ts",
    ] {
        let pieces = [
            piece(Speaker::User, "Set up the API."),
            piece(Speaker::Assistant, "Set up."),
            piece(Speaker::User, said),
            piece(Speaker::Assistant, "I could not reproduce it; I need the server logs."),
        ];
        let found = ledger(&[], &pieces);
        assert_eq!((found.requests.len(), found.statements.len()), (2, 0), "{said} {:?}", found.statements);
        assert!(!found.requests[1].is_done(), "{said}");
    }
}

#[test]
fn a_fact_that_the_agent_acts_on_is_a_request() {
    let said = |text: &str| piece(Speaker::User, text);
    let pieces = [
        said("Rename foo to bar."),
        piece(Speaker::Assistant, "I could not rename it, the config is locked."),
        said("The config is at /etc/x.toml, version 4711."),
        piece(Speaker::Call, "x"),
        piece(Speaker::Assistant, "Renamed foo to bar in /etc/x.toml."),
    ];
    let found = ledger(&[], &pieces).requests;
    assert!(found.len() == 2 && found[1].is_done(), "{found:?}");
    let working = [
        said("Port the parser."),
        piece(Speaker::Call, "x"),
        said("The port is 4711."),
        piece(Speaker::Assistant, "Ported the parser."),
    ];
    let found = ledger(&[], &working).requests;
    assert!(found.len() == 1 && found[0].outcome.as_deref() == Some("Ported the parser."), "{found:?}");
}

#[test]
fn the_answer_to_a_question_goes_on_with_its_request() {
    let [ask, question] =
        [piece(Speaker::User, "Add dark mode."), piece(Speaker::Assistant, "Should I use CSS variables?")];
    let of = |reply: &str, answer: &str| {
        let pieces = [ask.clone(), question.clone(), piece(Speaker::User, reply), piece(Speaker::Assistant, answer)];
        ledger(&[], &pieces)
    };
    for reply in ["yes please", "yes", "plain colors, no variables", "The port is 4711.", "no release on Friday"] {
        let found = of(reply, "Added dark mode with CSS variables.").requests;
        assert!(found.len() == 1 && found[0].is_done(), "{reply} {found:?}");
    }
    let told = "The user answered: plain colors, no variables (asked: Should I use CSS variables?)";
    assert_eq!(of("plain colors, no variables", "Added.").decisions, [told]);
    let waits = of("not yet", "OK.").requests;
    assert!(waits.len() == 1 && !waits[0].is_done(), "{waits:?}");
    let pieces = [
        ask.clone(),
        question.clone(),
        piece(Speaker::User, "not yet"),
        piece(Speaker::Assistant, "OK."),
        piece(Speaker::User, "read the docs"),
        piece(Speaker::Assistant, "I did that."),
    ];
    let later = ledger(&[], &pieces).requests;
    assert!(later.len() == 2 && !later[0].is_done() && later[1].is_done(), "{later:?}");
    for (reply, told) in [("5433", "5433"), ("acme-kit", "acme-kit"), ("Apache 2.0", "Apache 2.0")] {
        assert!(of(reply, "Understood.").decisions[0].starts_with(&format!("The user answered: {told} ")), "{reply}");
    }
    for new in [
        "tidy up the imports",
        "read src/a.rs",
        "rerun it",
        "no, the header should be blue first",
        "also the footer is broken on mobile",
        "plain. And add a health endpoint.",
        "there are 3 failing tests",
        "/compact",
        "see a/b1",
        "blue please now ok",
        "fix it up",
    ] {
        assert_eq!(of(new, "Done with that.").requests.len(), 2, "{new}");
    }
    let declined = of("nah, skip dark mode", "Okay.").requests;
    assert!(declined.len() == 1 && declined[0].is_done(), "{declined:?}");
    let silent = |reply: &str| ledger(&[], &[ask.clone(), question.clone(), piece(Speaker::User, reply)]).requests;
    assert!(silent("nah, skip dark mode")[0].is_done() && !silent("yes")[0].is_done());
    for (reply, answer) in [("yes", "OK."), ("not yet", "Added dark mode after all.")] {
        assert!(of(reply, answer).requests[0].is_done(), "{reply}");
    }
    let other = of("Fix the typo first.", "Fixed the typo.").requests;
    assert!(other.len() == 2 && !other[0].is_done() && other[1].is_done(), "{other:?}");
}

#[test]
fn a_stopped_turn_is_not_that_of_the_next_answer() {
    let pieces = [
        piece(Speaker::User, "Rework the billing page."),
        piece(Speaker::Assistant, "Reworked the first half of it."),
        piece(Speaker::Stop, "stopped"),
        piece(Speaker::User, "Fix the typo in the footer first."),
        piece(Speaker::Assistant, "Fixed the typo."),
    ];
    let found = ledger(&[], &pieces).requests;
    assert!(found[0].is_stopped() && !found[0].is_done() && found[1].is_done(), "{found:?}");
    let again = [
        pieces[0].clone(),
        pieces[2].clone(),
        piece(Speaker::User, "Rework the billing page with tabs."),
        pieces[4].clone(),
    ];
    assert_eq!(ledger(&[], &again).requests.len(), 1);
}

#[test]
fn a_refusal_stands_with_the_decision_that_it_refuses() {
    let pieces = [
        piece(Speaker::User, "Add a queue."),
        piece(Speaker::Assistant, "We will use RabbitMQ because it is simple."),
        piece(Speaker::User, "no, SQS"),
        piece(Speaker::Assistant, "We will use SQS instead of it."),
    ];
    let told = ["We will use RabbitMQ because it is simple.", "The user: no, SQS", "We will use SQS instead of it."];
    assert_eq!(ledger(&[], &pieces).decisions, told);
}

#[test]
fn decisions_and_rules_of_instructions_are_told_once() {
    let decided = "We chose tabs instead of spaces here.";
    let turn =
        [piece(Speaker::User, "Fix it."), piece(Speaker::Assistant, decided), piece(Speaker::Assistant, decided)];
    assert_eq!(ledger(&[], &turn).decisions, [decided]);
    let instructions = piece(Speaker::Instructions, "Never push.\nThe port is 8080.\nNever push.\nI prefer tabs.");
    assert_eq!(ledger(&[], &[instructions]).instructions, ["Never push."]);
    for (answer, reply, told) in [
        ("It is simple.", "no, SQS", vec![]),
        (
            "We will use a queue because it is simple.",
            "fine with SQS",
            vec!["We will use a queue because it is simple."],
        ),
    ] {
        let pieces = [
            piece(Speaker::User, "Add a queue."),
            piece(Speaker::Assistant, answer),
            piece(Speaker::User, reply),
            piece(Speaker::Assistant, "Added SQS."),
        ];
        assert_eq!(ledger(&[], &pieces).decisions, told, "{reply}");
    }
    let silent = Said {
        speaker: Speaker::Result { failed: false },
        ..Said::new(Speaker::Aside, Clean::assembled("AskUserQuestion which"), Clean::default())
    };
    assert_eq!(ledger(&[], &[silent]).decisions, [""; 0]);
}

#[test]
fn the_end_of_a_whole_turn_announces_nothing() {
    let pieces = [piece(Speaker::User, "Fix it."), piece(Speaker::Assistant, "I added it. Let me see if it is fixed.")];
    assert_eq!(ledger(&[], &pieces).next, [""; 0]);
}

#[test]
fn a_new_request_does_not_go_on_with_a_carried_one() {
    let previous = [
        (Section::InProgress, "Port the parser".to_owned()),
        (Section::Context, "left off – Fix the docs".to_owned()),
        (Section::Constraints, "The port is 8080.".to_owned()),
        (Section::Context, "Never push.".to_owned()),
    ];
    let found = ledger(&previous, &[piece(Speaker::User, "Fix the lexer.")]);
    assert_eq!(found.requests.iter().map(|request| request.text.as_str()).collect::<Vec<_>>(), ["Fix the lexer."]);
    let held: Vec<_> = found.statements.iter().map(|held| (held.statement.kind, &*held.statement.text)).collect();
    assert_eq!(held, [(Kind::Wish, "The port is 8080."), (Kind::Note, "Never push.")]);
}

#[test]
fn a_request_may_name_an_outdated_value() {
    let said = ["The port is 8080.", "The port is 9090.", "Free the port 8080, nginx still blocks it."];
    let found = ledger(&[], &said.map(|text| piece(Speaker::User, text))).requests;
    assert!(found.iter().any(|request| request.text.starts_with("Free the port")), "{found:?}");
}

#[test]
fn a_rule_that_was_taken_back_is_none_and_the_permission_is_told() {
    let said = ["Set up the API. Never touch the migrations folder.", "You may touch the migrations folder after all."];
    let found = ledger(&[], &said.map(|text| piece(Speaker::User, text)));
    let texts: Vec<_> = found.statements.iter().map(|held| held.statement.text.as_str()).collect();
    assert_eq!(texts, ["You may touch the migrations folder after all."]);
    assert_eq!(found.requests[0].text, "Set up the API.");
    assert!(found.outdated.is_in("Never touch the migrations folder."));
    let carried = [(Section::Constraints, "don't commit yet".to_owned())];
    assert!(ledger(&carried, &[piece(Speaker::User, "commit it")]).statements.is_empty());
    let both = ["Never push to main.", "you can push now"].map(|text| piece(Speaker::User, text));
    assert_eq!(statements(&both), ["Never push to main."]);
}

#[test]
fn a_correction_without_a_subject_takes_the_place_of_its_statement() {
    let said = ["Set up the API.", "The port is 8080.", "no, use 9090"].map(|text| piece(Speaker::User, text));
    assert_eq!(statements(&said), ["The port is 9090."]);
}

#[test]
fn what_was_left_off_long_ago_is_not_open() {
    let turn = |at: usize| {
        [
            piece(Speaker::User, &format!("Fix the bug number {at}.")),
            piece(Speaker::Assistant, "Fixed the bug in a.rs."),
        ]
    };
    let mut said = vec![piece(Speaker::User, "Rework the page."), piece(Speaker::Stop, "stopped")];
    said.extend((0..2).flat_map(turn));
    let first = |said: &[Said]| ledger(&[], said).requests[0].clone();
    assert!(first(&said).is_stopped() && !first(&said).is_done());
    said.extend((2..4).flat_map(turn));
    assert!(first(&said).is_left_off() && !first(&said).is_stopped() && !first(&said).is_done());
}

#[test]
fn the_results_of_a_running_turn_are_no_findings_and_no_plans() {
    let of = |said: &str| {
        let pieces = [piece(Speaker::User, "Bump it."), piece(Speaker::Assistant, said), piece(Speaker::Call, "x")];
        let clean = |text: &str| Clean::assembled(text);
        let sources =
            Sources { previous: &[], said: &pieces, entries: &[], goes_on: true, todo_tools: &[], clean: &clean };
        Ledger::of(&sources).so_far
    };
    for result in [
        "The source default and the docs are updated.",
        "Fixed the rounding in cart.rs.",
        "GRPO smoke test passed in 37 s.",
    ] {
        assert_eq!(of(result), [result]);
    }
    for other in [
        "The installed version in .venv is stale.",
        "The patch exists in the source tree but not in the installed package.",
        "Now that the file printenv.pl has been created, I will write the script.",
        "A compatible toolchain is installed, so I can verify it.",
        "The tests are green and lint is clean.",
        "Fixed the parser, the docs are not yet done.",
        "It is in a.rs.",
    ] {
        assert_eq!(of(other), [""; 0], "{other}");
    }
}

#[test]
fn a_request_after_a_short_yes_is_one() {
    let pieces = [
        piece(Speaker::User, "How could we count lines?"),
        piece(Speaker::Assistant, "With a counter. Want me to implement it?"),
        piece(Speaker::User, "yes, add a counter per prompt"),
        piece(Speaker::Assistant, "Added the counter."),
    ];
    let found = ledger(&[], &pieces).requests;
    assert!(found.len() == 2 && found[1].text == "yes, add a counter per prompt" && found[1].is_done(), "{found:?}");
}
