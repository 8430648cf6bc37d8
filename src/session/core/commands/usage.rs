//! `session/usage`: the fullness of the context.

use crate::{
    compaction::resting,
    conversation::tokens::Estimator,
    protocol::{
        SessionUsage,
        events::Event,
        types::{SessionParams, Thresholds, Usage, UsageAnswer},
    },
    session::{
        core::{Core, command::SessionMethod, recovering::reports, standing::Standing},
        effects::Ticket,
    },
    wire::outbox::About,
};

impl SessionMethod for SessionUsage {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        let fullness = core.state.measure();
        let why = core.why_and_switches();
        let estimator = match fullness.scale.estimator() {
            Estimator::Tiktoken => "tiktoken",
            Estimator::Chars => "chars",
        };
        ticket.ok(&UsageAnswer {
            thresholds: Thresholds {
                threshold_tokens: fullness.budget.threshold,
                target_tokens: fullness.budget.target(),
                fixed_overhead_tokens: fullness.budget.overhead(),
                summary_tokens: fullness.budget.summary_cap(),
                keep_recent_tokens: fullness.compaction.keep_recent_tokens,
                calibration: fullness.calibration,
                estimator: estimator.to_owned(),
            },
            usage: Usage::of(&fullness, core.state.path()),
            why,
        });
    }
}

impl Core {
    /// The reason why the context is compacted now or not, the last decision about a pruning, and everything that is switched
    /// off.
    fn why_and_switches(&self) -> String {
        let pruning = self.upkeep.pruning.map(|considered| format!(" {considered}"));
        let why = Standing::of(self).why() + &pruning.unwrap_or_default();
        let mut off = self.state.settings().switched_off(self.state.model(self.state.path()).as_ref());
        if self.log.writable(&self.state).is_err() {
            off.push("writing (readOnly of session/load)".to_owned());
        }
        let fullness = self.state.measure();
        if fullness.rests(self.state.path()) {
            let until = resting::rests_to(&fullness.with_reported_overhead());
            off.push(format!("automatic compaction (an undone compaction; it acts again over {until} tokens)"));
        }
        let why = match reports::why_estimated(&self.state) {
            Some(estimated) => format!("{why} {estimated}"),
            None => why,
        };
        let why = match self.costs.why_extracted(&Standing::of(self).facts()) {
            Some(extracted) => format!("{why} {extracted}"),
            None => why,
        };
        match off.as_slice() {
            [] => why,
            off => format!("{why} Switched off: {}.", off.join(", ")),
        }
    }

    /// Sends the fullness of the context, if it changed since the last event.
    pub(in crate::session::core) fn send_usage(&mut self, usage: Usage) {
        if usage != self.sent_usage {
            self.sent_usage = usage.clone();
            self.effects.emit(About::default(), Event::UsageUpdated { usage });
        }
    }
}
