//! The draft without a model, under every other: before models are asked, or while they are asked where it fits in any case.

use super::{
    Focus,
    blocking::blocking,
    live::{Live, kept_part},
};
use crate::{
    ask::pool::Pool,
    compaction::{
        draft::{Draft, Supplied},
        ladder,
        native::NativeOrder,
        plan::Plan,
    },
    models::candidates::{Candidate, Unfit},
    protocol::errors::{Failure, Nothing},
    session::stop::Stop,
    settings::{Settings, Sourced},
    summary::{
        cleaner::Cleaner,
        made::Rejected,
        model::{
            material::{Added, Material},
            writer::{LiveJob, NativeJob},
        },
    },
};
use std::sync::Arc;

/// Least room for a summary by a model, in tokens. A smaller one is extracted.
pub(in crate::session::jobs) const LEAST_SUMMARY: u64 = 200;

/// The order for the draft without a model.
pub(super) struct FloorOrder {
    pub plan: Plan,
    pub focus: Focus,
    pub settings: Arc<Sourced>,
    pub stop: Stop,
    /// The parts that hooks supplied.
    pub supplied: Supplied,
    /// The summary of a hook that was refused.
    pub refused: Option<Rejected>,
    /// The requests of the session.
    pub live: Option<Live>,
}

/// A draft without a model that is made, or is made while models are asked.
pub(super) enum Floor {
    Made(Box<Draft>),
    Later(Box<FloorOrder>),
}

/// The beginning of a draft.
pub(super) enum Begun {
    /// The draft. No model is asked.
    Alone(Box<Draft>),
    /// The material for models, with the draft under theirs.
    Asks { floor: Floor, material: Box<Material>, requests: Box<Requests> },
}

/// The requests for a draft beside those with a transcript.
pub(super) struct Requests {
    /// The provider's own compaction.
    pub native: Option<NativeJob>,
    /// The session's own request.
    pub live: Option<LiveJob>,
}

/// The largest span that is read before a model is asked, in bytes: about four milliseconds. The limits of its summary are
/// exact then. Tests have both ways.
const READ_AT_ONCE: usize = if cfg!(test) { 4 << 10 } else { 128 << 10 };

/// Whether the span of a plan is so large that a model may be asked before it is read.
pub(super) fn is_read_later(plan: &Plan) -> bool {
    plan.span().bytes() > READ_AT_ONCE
}

impl FloorOrder {
    /// Makes the material for models, and the draft without one where the material depends on it or the span is small.
    pub fn begin(
        mut self,
        candidates: &[Result<Candidate, Unfit>],
        native: Option<Box<NativeOrder>>,
    ) -> Result<Begun, Failure> {
        let asks = !candidates.is_empty();
        // Before a model is asked: its summary would be paid for, and refused.
        self.plan = judged(self.plan, &self.focus)?;
        let (secrets, scale) = (self.settings.settings.redaction.secrets(), self.plan.demand.scale);
        let room =
            (asks && native.is_none() && is_read_later(&self.plan)).then(|| ladder::room_at_once(&self.plan)).flatten();
        if let Some(room) = room.filter(|room| *room >= LEAST_SUMMARY && !self.plan.summarized().is_empty()) {
            let material = Box::new(Material::unread(self.plan.span(), room, secrets, scale));
            let requests = Box::new(Requests { native: None, live: self.live_request(&self.plan, candidates) });
            return Ok(Begun::Asks { floor: Floor::Later(Box::new(self)), material, requests });
        }
        // The model reads the same texts: each is redacted once for both.
        let cleaner = Cleaner::new(&self.settings.settings);
        let stop = self.stop.clone();
        let live = self.live.take();
        let floor = self.draft(&cleaner)?;
        let cap = floor.room_for_summary();
        // Without messages, or without room for more than a few lines, a model has nothing to add.
        let adds = cap >= LEAST_SUMMARY && !floor.plan.summarized().is_empty();
        if !asks || !adds {
            return Ok(Begun::Alone(Box::new(floor)));
        }
        let (span, files) = (floor.plan.span(), &floor.summary.files);
        let material = Box::new(Material::of(span, files, cap, &cleaner, scale, &|| stop.requested()));
        let native = match native {
            Some(native) if native.is_on_demand() => {
                live.as_ref().and_then(|live| live.compaction(*native, &floor.plan, secrets))
            }
            native => native.map(|native| native.job(&floor.plan, secrets)),
        };
        let part = || kept_part(floor.plan.path(), floor.plan.kept(), secrets);
        let live = live.and_then(|live| live.request(floor.plan.path(), part(), candidates));
        Ok(Begun::Asks { floor: Floor::Made(Box::new(floor)), material, requests: Box::new(Requests { native, live }) })
    }

    /// The session's own request for a plan.
    fn live_request(&self, plan: &Plan, candidates: &[Result<Candidate, Unfit>]) -> Option<LiveJob> {
        let secrets = self.settings.settings.redaction.secrets();
        self.live.as_ref()?.request(plan.path(), kept_part(plan.path(), plan.kept(), secrets), candidates)
    }

    fn draft(self, cleaner: &Cleaner) -> Result<Draft, Failure> {
        let Self { plan, focus, settings, stop, supplied, refused, .. } = self;
        let mut floor = extracted(plan, &focus, &settings.settings, cleaner, &|| stop.requested())?;
        floor.supplied = supplied;
        floor.made.rejected.extend(refused);
        Ok(floor)
    }
}

impl Floor {
    /// The draft. It names the texts that are added to a summary by a model.
    pub async fn adding(self, material: Material, pool: &dyn Pool) -> Result<Draft, Failure> {
        match self {
            Self::Made(draft) => Ok(*draft),
            Self::Later(order) => {
                blocking(pool, move || {
                    let cleaner = Cleaner::new(&order.settings.settings);
                    let stop = order.stop.clone();
                    let floor = order.draft(&cleaner)?;
                    let (span, scale) = (floor.plan.span(), floor.plan.demand.scale);
                    let files = &floor.summary.files;
                    material.add(Added::of(span, files, material.cap, &cleaner, scale, &|| stop.requested()));
                    Ok(floor)
                })
                .await
            }
        }
    }
}

/// Makes the draft without a model.
///
/// # Errors
/// When the work is cancelled, no draft fits, or the plan makes nothing smaller and its request does not insist.
pub fn extracted(
    plan: Plan,
    focus: &Focus,
    settings: &Settings,
    cleaner: &Cleaner,
    stop: &dyn Fn() -> bool,
) -> Result<Draft, Failure> {
    Ok(ladder::extracted(judged(plan, focus)?, settings, cleaner, focus.wishes(), stop)?)
}

/// The plan, without the insistence of a hook: a hook is asked about a plan that makes nothing smaller, too.
///
/// # Errors
/// When it makes nothing smaller and its request does not insist.
fn judged(mut plan: Plan, focus: &Focus) -> Result<Plan, Failure> {
    let judges = plan.demand.insists && !focus.insists();
    plan.demand.insists = focus.insists();
    if judges && !ladder::may_shrink(&plan) {
        return Err(Failure::NothingToCompact(Nothing::WouldNotShrink));
    }
    Ok(plan)
}
