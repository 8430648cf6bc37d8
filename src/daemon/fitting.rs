//! `context/fit`, which needs no session.

use super::{Daemon, routes::DaemonMethod};
use crate::{
    protocol::{
        ContextFit,
        errors::Failure,
        types::{FitAnswer, FitParams},
    },
    session::{
        jobs::{
            defect,
            draft::DraftJob,
            fitting::{Fitting, Next},
            pool::{DraftOr, Planned, planned_draft},
        },
        stop::Stop,
    },
    wire::rpc::Reply,
};
use std::sync::Arc;

impl DaemonMethod for ContextFit {
    fn handle(daemon: &Arc<Daemon>, params: FitParams, reply: Reply) {
        let stop = daemon.fits.child();
        let cancel = stop.clone();
        reply.on_cancel(move || cancel.request());
        let (fitter, token) = (daemon.clone(), daemon.tasks.token());
        daemon.runtime.spawn(async move {
            let answer = fit(fitter, params, stop.clone()).await;
            reply.with(if stop.requested() { Err(Failure::Cancelled) } else { answer });
            drop(token);
        });
    }
}

async fn fit(daemon: Arc<Daemon>, params: FitParams, stop: Stop) -> Result<FitAnswer, Failure> {
    let plan = move || {
        let access = daemon.access.clone();
        let fitting = Fitting::new(params, &daemon.settings.general_layers(), access.windows.learned())?;
        Ok(match fitting.plan(&access, stop)? {
            Next::Fits(answer) => Planned::Needless(Fitted::Whole(answer)),
            Next::Draft(order, fitting) => {
                let job = DraftJob { session: fitting.session(), order, access };
                Planned::Job(Box::new(job), Fitted::Draft(Box::new(fitting)))
            }
        })
    };
    match planned_draft(plan).await? {
        DraftOr::Other(Fitted::Whole(answer)) => Ok(answer),
        DraftOr::Draft(draft, Fitted::Draft(fitting)) => Ok(fitting.answer(&draft)),
        DraftOr::Other(Fitted::Draft(_)) | DraftOr::Draft(_, Fitted::Whole(_)) => Err(defect()),
    }
}

/// The messages after their plan.
enum Fitted {
    /// They fit.
    Whole(FitAnswer),
    /// They wait for a summary.
    Draft(Box<Fitting>),
}
