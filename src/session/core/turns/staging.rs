//! Entries of the messages that a turn appends, and their write.

use super::{own::Own, prompts::Prompts};
use crate::{
    protocol::errors::Failure,
    session::core::{
        base::Base,
        commands::append::{self, Append, Asker},
        step::Step,
        writing::appends,
    },
};

/// Makes the entries of messages after those of `before`. The queue without the messages that they deliver follows in the same write.
///
/// # Errors
/// When the messages are none, with them.
pub(super) fn stage(
    base: &mut Base,
    own: Own,
    prompts: &Prompts,
    before: &[Append],
) -> Result<Append, Box<(Own, Failure)>> {
    let params = own.params(&base.state.id);
    match append::stage_own(base, params, before) {
        Ok((params, mut staged, context, model)) => {
            if !own.delivered.is_empty() {
                let parent = staged.entries.last().map(|entry| entry.id.clone());
                let rest = prompts.entry_without(&own.delivered, &base.state.id, parent.as_ref(), &mut base.stamps);
                staged.entries.extend(rest);
            }
            Ok(Append { params, staged, context, model, asker: Asker::Turn(Box::new(own)) })
        }
        Err(failure) => Err(Box::new((own, failure))),
    }
}

/// Writes appends of a turn.
pub(super) fn write(base: &mut Base, appends: Vec<Append>) -> Option<Step> {
    (!appends.is_empty()).then(|| appends::write(base, appends))
}
