//! `session/usage`: how full the context is.

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
        let measure = session.state.measure();
        let why = measure.decision(session.state.path()).why().to_owned();
        let estimator = match measure.estimator {
            Estimator::Tiktoken => "tiktoken",
            Estimator::Chars => "chars",
        };
        reply.ok(&UsageAnswer {
            thresholds: Thresholds {
                threshold_tokens: measure.budget.threshold,
                target_tokens: measure.budget.target(),
                fixed_overhead_tokens: measure.budget.overhead(),
                summary_tokens: measure.budget.summary_cap(),
                keep_recent_tokens: measure.compaction.keep_recent_tokens,
                calibration: measure.calibration,
                estimator: estimator.to_owned(),
            },
            usage: measure.usage,
            why,
        });
    }
}

impl Session {
    /// Sends how full the context is, if that changed since the last event.
    pub(in crate::session) fn tell_usage(&mut self, usage: Usage) {
        if usage != self.told {
            self.told = usage.clone();
            self.emitter.emit(About::default(), &Event::UsageUpdated { usage });
        }
    }
}
