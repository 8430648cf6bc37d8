//! The error of a recovery whose attempts are used up.

use crate::{
    conversation::entry::Attempts,
    protocol::{errors::Failure, events::RecoveryReason},
    session::{core::transfers::Relays, state::State},
};

/// The error of a recovery whose attempts are used up.
pub(super) fn given_up(state: &State, relays: &Relays, reason: RecoveryReason, attempts: Attempts) -> Failure {
    let fullness = state.measure();
    let Attempts { overflow, incomplete, .. } = attempts;
    let (tokens, window) = (fullness.context_tokens, fullness.budget.window);
    let history = match (reason, overflow, incomplete) {
        (RecoveryReason::Overflow, _, 0) => format!("The provider refused it {} in a row", times(overflow + 1)),
        (RecoveryReason::Overflow, ..) => {
            format!("The provider refused it {} and cut off its answer {}", times(overflow + 1), times(incomplete))
        }
        (RecoveryReason::Incomplete, 0, _) => format!("The answer was cut off {} in a row", times(incomplete + 1)),
        (RecoveryReason::Incomplete, ..) => {
            format!("The answer was cut off {} and the request refused {}", times(incomplete + 1), times(overflow))
        }
    };
    let way_out = match reason {
        RecoveryReason::Overflow if tokens <= window => format!(
            ", and {} attempts to make it smaller are used up. It refuses a context of {tokens} tokens, although the \
             window of its model has {window}: correct contextWindow in the settings of the model, or remove a wrong \
             learned window with models/forget.",
            attempts.recoveries()
        ),
        RecoveryReason::Overflow => format!(
            ", and {} attempts to make it smaller are used up. Use a larger model, fewer tools, or a shorter message.",
            attempts.recoveries()
        ),
        RecoveryReason::Incomplete => {
            ". Use a model with a larger window or output limit, or ask for less at once.".to_owned()
        }
    };
    let why = relays.or_goes_on_elsewhere(history + &way_out);
    Failure::OverWindow { floor: fullness.floor(state.path()), why }
}

/// A number of times, as a word or with its digits.
fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::core::{
        held::{Held, log_work},
        recovering::tests::with_window,
    };
    use serde_json::json;

    #[test]
    fn a_recovery_that_gives_up_counts_the_refusals() {
        let held = Held::new();
        let attempts = |overflow, incomplete| Attempts { overflow, incomplete, compactions: 4, ..Attempts::default() };
        for (reason, attempts, expected) in [
            (RecoveryReason::Overflow, attempts(2, 0), "refused it 3 times in a row, and 2 attempts"),
            (
                RecoveryReason::Overflow,
                attempts(1, 2),
                "refused it 2 times and cut off its answer 2 times, and 3 attempts",
            ),
            (
                RecoveryReason::Overflow,
                attempts(0, 3),
                "refused it once and cut off its answer 3 times, and 3 attempts",
            ),
            (RecoveryReason::Incomplete, attempts(0, 3), "cut off 4 times in a row"),
            (RecoveryReason::Incomplete, attempts(1, 2), "cut off 3 times and the request refused once"),
        ] {
            let sentence = given_up(&held.core.base.state, &held.core.upkeep.relays, reason, attempts).to_string();
            assert!(sentence.contains(expected), "{sentence}");
        }
    }

    #[test]
    fn a_recovery_that_gives_up_below_the_window_names_what_may_be_wrong_about_the_window() {
        for (window, fits) in [(100_000, true), (3_000, false)] {
            let mut held = Held::new();
            with_window(&mut held, window, json!({}));
            let sentence = given_up(
                &held.core.base.state,
                &held.core.upkeep.relays,
                RecoveryReason::Overflow,
                Attempts::default(),
            )
            .to_string();
            let tokens = held.core.state().usage().context_tokens;
            let named =
                format!("It refuses a context of {tokens} tokens, although the window of its model has {window}");
            assert_eq!(sentence.contains(&named) && sentence.contains("models/forget"), fits, "{sentence}");
            assert_eq!(sentence.contains("a larger model"), !fits, "{sentence}");
        }
    }

    #[test]
    fn the_floor_has_all_messages_that_no_model_has_read() {
        let mut held = Held::new();
        let waiting = json!({"role": "user", "content": "abc ".repeat(1_000), "timestamp": 1});
        held.append_with(1, json!({"messages": [waiting, waiting]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let Failure::OverWindow { floor, .. } =
            given_up(&held.core.base.state, &held.core.upkeep.relays, RecoveryReason::Overflow, Attempts::default())
        else {
            unreachable!("a recovery that gives up is over the window")
        };
        // 1,000 tokens each, and the safe factor of the estimate is 1.35.
        assert!(floor.latest_turn >= 2_700, "{floor:?}");
    }
}
