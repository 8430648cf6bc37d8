//! Operations that a life before has left, and costs that the file is to have.

use super::{Ended, Operations, What};
use crate::{
    ids::OperationId,
    protocol::types::Outcome,
    simulator::observer::{Rule, Verdict, Violation, file::File, require},
};

impl Operations {
    /// An operation that the life before left ends.
    pub(super) fn ends_from_before(
        &mut self,
        id: OperationId,
        what: What,
        outcome: Outcome,
    ) -> Result<Ended, Violation> {
        let last = self.left_behind.last();
        require(last == Some(&(id.clone(), what)), Rule::InnerEndsFirst, || {
            format!("{what:?} {id:?} ends before those inside of it: {:?}", self.left_behind)
        })?;
        require(outcome == Outcome::Failed, Rule::EveryStartEnds, || {
            format!("{id:?} was lost and ends as {outcome:?}")
        })?;
        self.inside_has_ended(&id)?;
        self.left_behind.pop();
        self.owed.remove(&(id.clone(), what));
        let is_part = self.was_left_behind(&id);
        if !is_part {
            self.ended.insert(id.clone(), outcome);
        }
        Ok(Ended { id, is_part })
    }

    /// The costs are in the file. For a session that can write.
    pub fn costs(&self, file: &File) -> Verdict {
        for (operation, spent) in &self.spent {
            let written = file.costs_of(operation);
            require(written == *spent, Rule::CostsKept, || {
                format!("{spent} requests of {operation} were paid, and {written} are in the file")
            })?;
        }
        Ok(())
    }
}
