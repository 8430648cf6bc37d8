//! Sessions in which the daemon runs turns, drawn from a seed: those of other clients, honest ones and liars, with messages, cancels
//! and continues in between.

use crate::{
    ids::random::SplitMix64,
    session::effects::Sent,
    simulator::{
        action::{Action, Request, Scenario, Setup, WhichOperation},
        script::{Step, Text},
        seeds, setup,
    },
};

/// The answers of a model among which some call tools.
const ANSWERS: usize = 20;

/// Sets the draws of these sessions apart from others of a seed.
const TURNS: u64 = 0x7425;

/// The session of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut random = SplitMix64::new(!seed ^ TURNS);
    let Scenario { mut setup, actions, .. } = seeds::scenario(seed);
    // The models of turns count as they are scripted to, and not as this provider does.
    setup.truth = None;
    if random.below(2) == 0 {
        call_tools(&mut setup, &mut random);
    }
    let mut with_turns = Vec::new();
    for action in actions {
        match random.below(10) {
            0..3 => with_turns.push(Action::Send(prompt(&mut random), Sent::Alone)),
            3 => with_turns.push(Action::Wait(random.below(3_000))),
            4 if random.below(3) == 0 => with_turns.push(Action::Send(Request::Continue, Sent::Alone)),
            4 if random.below(4) == 0 => with_turns.push(Action::Send(Request::ClearQueue, Sent::Alone)),
            5 if random.below(3) == 0 => with_turns.push(Action::Cancel(WhichOperation::All)),
            _ => {}
        }
        with_turns.push(action);
    }
    Scenario { seed, setup, actions: with_turns }
}

/// Lets models call tools in a part of their first answers, also where a summary is asked for.
fn call_tools(setup: &mut Setup, random: &mut SplitMix64) {
    for model in 0..setup.models {
        let answers = setup.script.models.entry(setup::model(model)).or_default();
        let calls = (0..ANSWERS).map(|_| match random.below(2) {
            0 => Step { text: Text::ToolCall, ..Step::default() },
            _ => Step::default(),
        });
        let calls: Vec<Step> = calls.collect();
        answers.splice(0..0, calls);
        answers.push(Step::default());
    }
}

fn prompt(random: &mut SplitMix64) -> Request {
    Request::Prompt { steers: random.below(3) == 0 }
}
