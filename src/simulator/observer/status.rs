//! The status: it flips before events, is sent when it changes, and is followed by `settled` when nothing runs.

pub mod usage;

use super::{Rule, Verdict, broken, names::named, operations::Ended, require};
use crate::{
    ids::OperationId,
    protocol::{
        events::Event,
        types::{Status, StatusKind},
    },
    session::{effects::Effect, operations::Follows},
};
use serde_json::Value;

/// The steps between the end of the last operation and `settled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Closing {
    /// No operation has just ended, or another one runs.
    #[default]
    No,
    /// The last operation has ended.
    Ended,
    /// `status_changed` was sent.
    StatusSent,
    /// `settled` waits for work that follows without input.
    WorkFollows,
}

/// The status of the session as others know it.
#[derive(Debug, Default)]
pub struct StatusLine {
    /// The published status; none before the first.
    published: Option<Status>,
    /// The status that was sent last; none before the first.
    sent: Option<Status>,
    closing: Closing,
    /// The operation that ended last.
    ended_last: Option<OperationId>,
    /// Whether `settled` was sent, no request was open, and none was sent since.
    quiet: bool,
}

fn is_idle(status: Option<&Status>) -> bool {
    status.is_none_or(|status| status.kind == StatusKind::Idle)
}

impl StatusLine {
    /// Whether an effect may come now. `follows`: whether the session may start work without input.
    pub fn permits(&mut self, effect: &Effect, follows: Follows) -> Verdict {
        let event = match effect {
            Effect::Emit(_, event) => Some(event),
            _ => None,
        };
        let may = match (self.closing, event) {
            (Closing::No | Closing::WorkFollows, _) => true,
            // Other ends may come first, with a status of their own.
            (
                Closing::Ended,
                Some(
                    Event::CompactionEnd { .. }
                    | Event::RecoveryEnd { .. }
                    | Event::RetryEnd { .. }
                    | Event::BranchSummaryEnd { .. }
                    | Event::TurnEnd { .. }
                    | Event::StatusChanged { .. },
                ),
            ) => true,
            (Closing::StatusSent, Some(Event::Notice { .. } | Event::Settled { .. })) => true,
            (Closing::Ended, None) => matches!(effect, Effect::Publish(_)),
            (Closing::StatusSent, _) if follows == Follows::Work => {
                self.closing = Closing::WorkFollows;
                true
            }
            _ => false,
        };
        require(may, Rule::OrderAfterEnd, || {
            format!("{} follows the end of {:?} ({:?})", named(effect), self.ended_last, self.closing)
        })
    }

    /// The operation that ended last.
    pub fn ended_last(&self) -> Option<&OperationId> {
        self.ended_last.as_ref()
    }

    /// The status was published.
    pub fn published(&mut self, status: &Status) {
        self.published = Some(status.clone());
    }

    /// `status_changed` was sent. `introduced`: whether an answer has introduced the operation.
    pub fn changed(&mut self, status: &Status, introduced: impl Fn(&OperationId) -> bool) -> Verdict {
        let published =
            self.published.clone().unwrap_or(Status { kind: StatusKind::Idle, operation_id: None, reason: None });
        let same = |a: &Status, b: &Status| a.kind == b.kind && a.reason == b.reason;
        require(same(status, &published), Rule::StatusChanges, || {
            format!("{status:?} is sent while {published:?} is published")
        })?;
        let expected = published.operation_id.filter(|id| introduced(id));
        require(status.operation_id == expected, Rule::AnswerIntroduces, || {
            format!("{status:?} should name {expected:?}")
        })?;
        let repeated = match &self.sent {
            None => status.kind == StatusKind::Idle,
            Some(sent) => sent == status && self.closing == Closing::No && status.operation_id.is_some(),
        };
        require(!repeated, Rule::StatusChanges, || format!("{status:?} is sent again"))?;
        if is_idle(self.sent.as_ref()) && is_idle(Some(status)) {
            return broken(Rule::StatusChanges, "idle is sent again");
        }
        self.sent = Some(status.clone());
        if self.closing == Closing::Ended {
            self.closing = if is_idle(Some(status)) { Closing::StatusSent } else { Closing::No };
        }
        Ok(())
    }

    /// A request is sent.
    pub fn request_sent(&mut self) {
        self.quiet = false;
    }

    /// The session is told to end. A compaction after the turn starts and ends with it.
    pub fn told_to_end(&mut self) {
        self.quiet = false;
    }

    /// A start event is sent. `may_follow`: whether it may start without a request.
    pub fn starts(&mut self, id: &OperationId, may_follow: bool) -> Verdict {
        require(!self.quiet || may_follow, Rule::NothingBehindSettled, || format!("{id:?} starts behind `settled`"))?;
        self.closing = Closing::No;
        let of = |status: &Option<Status>| status.as_ref().and_then(|status| status.operation_id.clone());
        let is_published = of(&self.published).as_ref() == Some(id);
        let is_sent = !is_idle(self.sent.as_ref()) && of(&self.sent).is_none_or(|sent| sent == *id);
        require(is_published && is_sent, Rule::StatusBeforeStart, || {
            format!("{id:?} starts while {:?} is published and {:?} was sent", self.published, self.sent)
        })
    }

    /// A start event of work in the background is sent.
    pub fn starts_behind(&mut self, id: &OperationId) -> Verdict {
        let idles = is_idle(self.published.as_ref()) && is_idle(self.sent.as_ref());
        require(idles, Rule::StatusBeforeStart, || {
            format!("{id:?} starts in the background, and {:?} is published", self.published)
        })
    }

    /// An end event is sent.
    pub fn ends(&mut self, Ended { id, is_part }: &Ended) -> Verdict {
        // The status is that of the whole.
        let names = !is_part && self.published.as_ref().is_some_and(|status| status.operation_id.as_ref() == Some(id));
        require(!names, Rule::StatusBeforeEnd, || format!("{id:?} ends, and {:?} is published", self.published))?;
        self.ended_last = Some(id.clone());
        if !is_idle(self.sent.as_ref()) && is_idle(self.published.as_ref()) {
            self.closing = Closing::Ended;
        }
        Ok(())
    }

    /// `settled` is sent. `open`: the number of requests that are not answered.
    pub fn settled(&mut self, open: usize) -> Verdict {
        let closes = matches!(self.closing, Closing::StatusSent | Closing::WorkFollows);
        let may = closes && is_idle(self.published.as_ref());
        require(may, Rule::SettledOnce, || {
            format!("settled with {:?} published ({:?})", self.published, self.closing)
        })?;
        self.closing = Closing::No;
        self.quiet = open == 0;
        Ok(())
    }

    /// `session/status` is answered.
    pub fn answered(&self, result: &Value) -> Verdict {
        let published = self.published.as_ref().and_then(|status| serde_json::to_value(status).ok());
        let published = published.unwrap_or_else(|| serde_json::json!({ "type": "idle" }));
        let said = &result["session"]["status"];
        require(*said == published, Rule::StatusAnswer, || format!("{said} is answered, and {published} published"))
    }

    /// Nothing is left to do.
    pub fn at_rest(&self) -> Verdict {
        require(self.closing == Closing::No, Rule::SettledOnce, || format!("never settled after {:?}", self.ended_last))
    }

    /// An input was handled. `follows`: whether the session may start work without input.
    pub fn after_input(&mut self, follows: Follows) -> Verdict {
        if self.closing == Closing::StatusSent && follows == Follows::Work {
            self.closing = Closing::WorkFollows;
        }
        let waits = self.closing == Closing::WorkFollows && follows == Follows::Work;
        require(waits || self.closing == Closing::No, Rule::SettledOnce, || {
            format!("not settled after {:?}", self.ended_last)
        })?;
        let kind = |status: &Option<Status>| status.as_ref().map_or(StatusKind::Idle, |status| status.kind);
        require(kind(&self.published) == kind(&self.sent), Rule::StatusChanges, || {
            format!("{:?} is published, and {:?} was sent", self.published, self.sent)
        })
    }
}
