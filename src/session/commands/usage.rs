//! `session/usage`: the fullness of the context.

use crate::{
    conversation::tokens::Estimator,
    protocol::{
        SessionUsage,
        events::Event,
        types::{SessionParams, Thresholds, Usage, UsageAnswer},
    },
    session::{Session, command::SessionMethod},
    wire::{outbox::About, rpc::Reply},
};

impl SessionMethod for SessionUsage {
    fn handle(session: &mut Session, _: SessionParams, reply: Reply) {
        let fullness = session.state.measure();
        let why = fullness.decision(session.state.path()).why().to_owned();
        let estimator = match fullness.scale.estimator() {
            Estimator::Tiktoken => "tiktoken",
            Estimator::Chars => "chars",
        };
        reply.ok(&UsageAnswer {
            thresholds: Thresholds {
                threshold_tokens: fullness.budget.threshold,
                target_tokens: fullness.budget.target(),
                fixed_overhead_tokens: fullness.budget.overhead(),
                summary_tokens: fullness.budget.summary_cap(),
                keep_recent_tokens: fullness.compaction.keep_recent_tokens,
                calibration: fullness.calibration,
                estimator: estimator.to_owned(),
            },
            usage: Usage::from(&fullness),
            why,
        });
    }
}

impl Session {
    /// Sends the fullness of the context, if it changed since the last event.
    pub(in crate::session) fn tell_usage(&mut self, usage: Usage) {
        if usage != self.told {
            self.told = usage.clone();
            self.emitter.emit(About::default(), &Event::UsageUpdated { usage });
        }
    }
}
