//! `hooks/set`, and the hooks that `initialize` names.

use super::{Daemon, routes::DaemonMethod};
use crate::{
    protocol::{
        HooksSet,
        events::Severity,
        notices::NoticeCode,
        notifications::{Notice, NoticeParams, Notification as _},
        types::{ClaimedHooks, HooksSetParams},
    },
    wire::rpc::Reply,
};
use std::sync::Arc;

/// The most wrong parts of `capabilities.hooks` that a notice names.
const MOST_NAMED: usize = 5;

/// The registration is in force when the handler ends, so requests after it on the wire find it.
impl DaemonMethod for HooksSet {
    fn handle(daemon: &Arc<Daemon>, params: HooksSetParams, reply: Reply) {
        daemon.hooks.set(params, |answer| reply.with(answer));
    }
}

impl Daemon {
    /// Registers the hooks that `initialize` names. Returns the notice about parts that are wrong.
    pub(super) fn register_claimed(&self, claimed: &ClaimedHooks) -> Option<NoticeParams> {
        let (registration, wrong) = claimed.read();
        self.hooks.set_default(registration);
        let more = wrong.len().saturating_sub(MOST_NAMED);
        let mut detail = wrong.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
        if more > 0 {
            detail.push_str(&format!("; and {more} more"));
        }
        (!wrong.is_empty()).then(|| NoticeParams {
            severity: Severity::Warning,
            code: NoticeCode::HooksInvalid,
            title: "`capabilities.hooks` is wrong in part; `hooks/set` registers hooks again".to_owned(),
            detail: Some(detail),
        })
    }

    /// Sends a notice.
    pub(super) fn notify(&self, notice: NoticeParams) {
        self.outbox.notify(Notice::NAME, notice);
    }
}
