//! Hosts with their own loops, several hundred turns long, in every wire format, against a provider that enforces its window
//! by a count of its own.

mod host;
pub mod wire;

use crate::{
    provider::{Format, Refusal},
    support::at_once,
    wire::{cases, is_whole},
};
use host::{Fault, Run, Stated, Told, TurnEnd};

/// Runs hosts, and checks each of them.
fn all(runs: impl IntoIterator<Item = Run>) -> Vec<(Run, Told)> {
    let told = std::sync::Mutex::new(Vec::new());
    at_once(runs, |run| {
        let facts = host::run(run.clone());
        told.lock().expect("a lock").push((run, facts));
    });
    let told = told.into_inner().expect("a lock");
    for (run, facts) in &told {
        // A window that is stated too large, and that no refusal corrects, is overfilled again behind each compaction.
        let is_misled = matches!(run.stated, Stated::Larger(_)) || matches!(run.refusal, Refusal::States(_));
        let most = if is_misled { 8 } else { 3 };
        let right = facts.invalid.is_empty()
            && facts.lacking.is_empty()
            && facts.unpaired.is_empty()
            && facts.refused_again.is_empty()
            && facts.refused.len() * 100 <= facts.requests * most;
        assert!(right, "{run:#?}\n{facts:#?}");
    }
    told
}

/// The turns of a host: these, or half of them in a run that is not whole.
fn turns(all: u32) -> usize {
    cases("ABRIDGED_TURNS", all / 2, all) as usize
}

/// The formats of a test: all of them in a run that is whole, or else these two.
fn formats(two: [Format; 2]) -> Vec<Format> {
    if is_whole() { Format::ALL.to_vec() } else { two.to_vec() }
}

/// Whether each turn ended with an answer.
fn each_is_answered(told: &[(Run, Told)]) {
    for (run, facts) in told {
        let answered = facts.ends.get(&TurnEnd::Answered).copied().unwrap_or_default();
        assert_eq!(answered, run.turns, "{run:#?}\n{facts:#?}");
    }
}

#[test]
fn a_host_that_states_the_window_of_its_provider_is_answered() {
    let told = all(Format::ALL.map(|format| Run { turns: turns(80), ..Run::of(format, 1) }));
    each_is_answered(&told);
    for (run, facts) in &told {
        assert!(facts.compactions >= run.turns / 20 && facts.recoveries == 0, "{run:#?}\n{facts:#?}");
    }
}

#[test]
fn a_provider_that_counts_more_than_the_estimate_is_not_overfilled() {
    let run = |format| Run { turns: turns(60), chars_per_token: 3.2, ..Run::of(format, 2) };
    let told = all(formats([Format::Anthropic, Format::Google]).into_iter().map(run));
    each_is_answered(&told);
}

#[test]
fn the_model_of_the_host_writes_the_summaries() {
    let runs = formats([Format::OpenAiChat, Format::OpenAiResponses]).into_iter().map(|format| Run {
        turns: turns(60),
        summarizer: true,
        window: 32_000,
        largest_result: 6_000,
        ..Run::of(format, 3)
    });
    each_is_answered(&all(runs));
}

#[test]
fn an_overflow_with_numbers_teaches_the_window() {
    let run = |format, stated| Run { turns: turns(50), stated, ..Run::of(format, 5) };
    let runs = Format::ALL.into_iter().enumerate().flat_map(|(at, format)| match [Stated::Larger(150), Stated::No] {
        all if is_whole() => all.map(|stated| run(format, stated)).to_vec(),
        all => vec![run(format, all[at % 2])],
    });
    each_is_answered(&all(runs));
}

#[test]
fn an_overflow_without_numbers_bounds_a_window_that_nobody_stated() {
    let runs = formats([Format::OpenAiChat, Format::Google]).into_iter().map(|format| Run {
        turns: turns(60),
        stated: Stated::No,
        refusal: Refusal::Words,
        chars_per_token: 3.2,
        ..Run::of(format, 6)
    });
    let told = all(runs);
    each_is_answered(&told);
    assert!(told.iter().all(|(_, facts)| facts.recoveries > 0), "{told:#?}");
}

#[test]
fn an_overflow_that_states_another_window_is_recovered_from() {
    let run = |format| Run { turns: turns(60), window: 28_000, stated: Stated::No, ..Run::of(format, 7) };
    let formats = formats([Format::Anthropic, Format::OpenAiResponses]).into_iter();
    let told = all(formats.map(|format| Run { refusal: Refusal::States(34_000), ..run(format) }));
    each_is_answered(&told);
    assert!(told.iter().all(|(_, facts)| facts.recoveries > 0), "{told:#?}");
}

#[test]
fn an_answer_that_is_cut_off_is_asked_for_again() {
    let faults = vec![Fault::LengthText(3), Fault::LengthCall(5), Fault::LengthNothing(5)];
    let told = all(Format::ALL.map(|format| Run { turns: turns(60), faults: faults.clone(), ..Run::of(format, 8) }));
    for (run, facts) in &told {
        let ended: usize = [TurnEnd::Answered, TurnEnd::Cut].iter().filter_map(|end| facts.ends.get(end)).sum();
        assert!(ended == run.turns && facts.recoveries > 0, "{run:#?}\n{facts:#?}");
    }
}

/// The provider serves less in the second third of the turns, which nobody tells the host.
#[test]
fn hundreds_of_turns_with_all_faults_end_inside_the_window() {
    let turns = turns(300);
    let faults = vec![
        Fault::TokensPerMinute(2),
        Fault::Broken(2),
        Fault::LengthText(2),
        Fault::LengthCall(2),
        Fault::LengthNothing(2),
        Fault::Overflow(2),
        Fault::CutOff(2),
    ];
    let runs = formats([Format::Anthropic, Format::OpenAiResponses]).into_iter().map(|format| {
        let run = Run { faults: faults.clone(), summarizer: true, stated: Stated::No, ..Run::of(format, 9) };
        Run { turns, window: 14_000, meanwhile: Some(10_000), largest_result: 1_500, ..run }
    });
    for (run, facts) in &all(runs) {
        let of = |end| facts.ends.get(&end).copied().unwrap_or_default();
        let answered = of(TurnEnd::Answered);
        assert!(answered * 100 >= run.turns * 85, "{run:#?}\n{facts:#?}");
        assert_eq!(answered + of(TurnEnd::Cut), run.turns, "{run:#?}\n{facts:#?}");
        assert!(facts.faults.iter().all(|met| *met >= turns / 100), "{run:#?}\n{facts:#?}");
        assert!(!facts.refused.is_empty() && facts.recoveries >= turns / 30, "{run:#?}\n{facts:#?}");
        assert!(facts.compactions >= turns / 15, "{run:#?}\n{facts:#?}");
    }
}

#[test]
fn a_fault_that_needs_no_recovery_changes_nothing() {
    let faults = vec![Fault::TokensPerMinute(5), Fault::Broken(5), Fault::LengthText(3)];
    let run = |format| Run { turns: turns(60), faults: faults.clone(), ..Run::of(format, 4) };
    let told = all(formats([Format::OpenAiChat, Format::Google]).into_iter().map(run));
    for (run, facts) in &told {
        assert!(facts.recoveries == 0 && facts.refused.is_empty(), "{run:#?}\n{facts:#?}");
    }
}
