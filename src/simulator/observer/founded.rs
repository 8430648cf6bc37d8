//! A session that is made for the summary of a compaction.

use super::{Rule, Verdict, require};
use crate::{
    conversation::{
        context::{self, check},
        entry::Entry,
        path::Path,
    },
    ids::{EntryId, OperationId, SessionId},
    prompts::Prompts,
    protocol::types::CompactionResult,
    session::founding::Founding,
};
use std::sync::Arc;

/// The newest session that was made.
#[derive(Debug, Default)]
pub struct Founded {
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    operation: OperationId,
    session: SessionId,
    compaction: EntryId,
    outcome: Outcome,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The session is being made.
    None,
    /// The session is open.
    Open,
    /// It could not be made.
    Failed,
}

impl Founded {
    /// A session is to be made: a model may be sent its context, and each entry is the child of the one before.
    pub fn begins(&mut self, operation: &OperationId, founding: &Founding) -> Verdict {
        let follows = |pair: &[Arc<Entry>]| pair[1].parent.as_ref() == Some(&pair[0].id);
        require(founding.entries.windows(2).all(follows), Rule::Chained, || {
            format!("the entries of a new session: {:?}", founding.lines())
        })?;
        let path = Path::of(&founding.entries);
        let in_force = path.compaction().map(|place| &path[place].id);
        let carries = match founding.carrier.compaction() {
            Some(_) => in_force == Some(&founding.carrier.id),
            None => in_force.is_none() && path.position(&founding.carrier.id).is_some(),
        };
        require(carries, Rule::ContextSurvives, || format!("{in_force:?} is in force in a new session"))?;
        let built = context::build(&path, &Prompts::default());
        let messages: Vec<_> =
            built.messages().iter().map(|it| serde_json::from_str(&it.json()).unwrap_or_default()).collect();
        let found = check::violations(&messages);
        require(found.is_empty(), Rule::ContextValid, || format!("a new session: {found:?}"))?;
        self.made = Some(Made {
            operation: operation.clone(),
            session: founding.id().clone(),
            compaction: founding.carrier.id.clone(),
            outcome: Outcome::None,
        });
        Ok(())
    }

    /// Whether the session of this operation is being made.
    pub fn is_out(&self, operation: &OperationId) -> bool {
        self.made.as_ref().is_some_and(|made| made.operation == *operation && made.outcome == Outcome::None)
    }

    /// A session was made, or not.
    pub fn ends(&mut self, operation: &OperationId, opened: bool) {
        if let Some(made) = self.made.as_mut().filter(|made| made.operation == *operation) {
            made.outcome = if opened { Outcome::Open } else { Outcome::Failed };
        }
    }

    /// A compaction completed with a new session.
    pub fn completed(&self, operation: &OperationId, result: &CompactionResult, named: Option<&SessionId>) -> Verdict {
        let agrees = |made: &Made| {
            made.operation == *operation
                && made.outcome == Outcome::Open
                && Some(&made.session) == named
                && Some(&made.compaction) == result.entry_id.as_ref()
        };
        require(self.made.as_ref().is_some_and(agrees), Rule::EndFollowsEntry, || {
            format!("{operation:?} ends with the session {named:?}, and {:?} was made", self.made)
        })
    }
}
