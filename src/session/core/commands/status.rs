//! `session/status`, and the answer to `session/load` of a session that is open.

use crate::{
    conversation::path::Path,
    log::Access,
    protocol::{
        SessionStatus,
        errors::Failure,
        types::{LoadAnswer, LoadParams, Saved, SessionParams, StatusAnswer, SummaryStatus},
    },
    session::{
        core::{
            Core,
            base::Base,
            command::{Command, SessionMethod},
        },
        effects::Ticket,
        state::SessionData,
    },
};
use serde_json::json;
use std::path::PathBuf;

impl SessionMethod for SessionStatus {
    fn handle(core: &mut Core, _: SessionParams, ticket: Ticket) {
        ticket.ok(&answer(core));
    }
}

/// `session/status` without its params.
#[must_use]
pub fn command() -> Command {
    Command::with(|core, ticket| ticket.ok(&answer(core)))
}

/// The result of `session/status`.
#[must_use]
pub fn answer(core: &Core) -> StatusAnswer {
    let (base, stats) = (&core.base, core.base.log.facts().stats);
    StatusAnswer {
        session: base.state.info_at(base.operations.status(), base.stamps.now()),
        queue: core.turns.prompts.queue(),
        operations: base.operations.list(),
        waiting: core.upkeep.after_turn.status().into_iter().collect(),
        spent: base.costs.spent(&base.facts()),
        summary: summary(base.state.path()),
        hooks: base.hooks.in_force(),
        meta: json!({ "writes": stats.writes, "fsyncs": stats.fsyncs }),
    }
}

/// The requests for the summary in force.
fn summary(path: &Path) -> Option<SummaryStatus> {
    let entry = &path[path.compaction()?];
    let requests = entry.compaction()?.preserved()?.summary.requests?;
    Some(SummaryStatus { entry_id: entry.id.clone(), form: requests.form, saved: Saved::of(requests) })
}

/// The result of a `session/load` of a session that is open. It takes over the model, the system prompt, the tools and the
/// settings of the params. `asked` is the file of the params, without links and `..`.
///
/// # Errors
/// When the params name another file, or want to write to a session that is open to read.
pub fn describe(core: &mut Core, params: LoadParams, asked: Option<PathBuf>) -> Result<LoadAnswer, Failure> {
    let Base { state, log, operations, stamps, .. } = &mut core.base;
    if params.path.is_some()
        && let Some(file) = &state.file
        && asked.as_ref() != Some(file)
    {
        let what = format!("its session is open already, from {}; close that one first", file.display());
        return Err(Failure::params("path", what));
    }
    if log.facts().access == Access::Read && params.read_only != Some(true) {
        let what = "the session is open here to look at only; close it with session/close, then load it to write to it";
        return Err(Failure::params("readOnly", what));
    }
    state.give(SessionData::given(&params), params.model)?;
    let indexed = state.history().index().is_some();
    Ok(LoadAnswer { session: state.info_at(operations.status(), stamps.now()), indexed, repairs: state.repairs() })
}
