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
            draft::DraftJob,
            fitting::{Fitting, Next},
            pool::{planned, unapplied},
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
    let access = daemon.access.clone();
    let planned = planned(move || {
        let access = &daemon.access;
        Fitting::new(params, &daemon.settings.general_layers(), access.windows.learned())?.plan(access, stop)
    });
    match planned.await? {
        Next::Fits(answer) => Ok(answer),
        Next::Draft(order, fitting) => {
            let job = DraftJob { session: fitting.session(), order: *order, access, may_block: None };
            // No session has events about it.
            match unapplied(job, |_| ()).await {
                Ok(draft) => Ok(fitting.answer(&draft)),
                Err(failure) => fitting.without_a_draft(failure),
            }
        }
    }
}
