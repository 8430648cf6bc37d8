//! Operations that wait for the client. Meanwhile the session is as idle as without them: it has their status again, and
//! is busy, when they go on.

use super::{Follows, Key, Kind, OperationId, Operations, Phase, Step, Steps};
use crate::protocol::{events::Event, types::Status};

impl<K: Kind, W> Operations<K, W> {
    /// An operation waits for the client. A cancel ends it.
    pub fn waits(&mut self, key: Key) -> Steps<K, W> {
        let was_busy = self.busy().is_some();
        self.enter(key, Phase::Running, Phase::Waiting);
        let mut steps = self.status_steps(None);
        if self.settles(was_busy, false) {
            steps.push(Step::Emit(None, Event::Settled { aborted: false }));
        }
        steps
    }

    /// An operation that waited goes on. `introduced`: the client knows its id.
    pub fn goes_on(&mut self, key: Key, introduced: bool) -> Steps<K, W> {
        self.enter(key, Phase::Waiting, Phase::Running);
        if self.busy().is_some() {
            self.owed = None;
        }
        let hidden = self.find(key).filter(|_| !introduced).map(|open| open.id.clone());
        self.status_steps(hidden.as_ref())
    }

    /// The status for other tasks, and its event where it is another one. The event does not name the hidden operation.
    fn status_steps(&mut self, hidden: Option<&OperationId>) -> Steps<K, W> {
        let status = self.status();
        let mut steps = vec![Step::Publish(status.clone())];
        if self.sent != status {
            self.sent = status.clone();
            let operation_id = status.operation_id.filter(|id| hidden != Some(id));
            steps.push(Step::Emit(None, Event::StatusChanged { status: Status { operation_id, ..status } }));
        }
        steps
    }

    /// Whether `settled` is to be sent now. Where work follows, it is owed.
    pub(super) fn settles(&mut self, was_busy: bool, aborted: bool) -> bool {
        if !was_busy || self.busy().is_some() {
            return false;
        }
        if self.follows == Follows::Work {
            self.owed = Some(aborted);
        }
        self.follows == Follows::Nothing
    }
}
