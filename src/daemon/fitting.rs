//! `context/fit`, which needs no session.

use super::{Daemon, routes::DaemonMethod};
use crate::{
    protocol::{ContextFit, errors::Failure, types::FitParams},
    session::{
        jobs::{
            draft::DraftJob,
            fitting::{Fitting, Next},
            pool::wait_for_draft,
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
        let fitter = daemon.clone();
        daemon.runtime.spawn_blocking(daemon.tracked(move || {
            let answer = fit(&fitter, params, &stop);
            reply.with(if stop.requested() { Err(Failure::Cancelled) } else { answer });
        }));
    }
}

fn fit(daemon: &Daemon, params: FitParams, stop: &Stop) -> Result<crate::protocol::types::FitAnswer, Failure> {
    let access = daemon.access.clone();
    let fitting = Fitting::new(params, &daemon.settings.general_layers(), access.windows.learned())?;
    match fitting.plan(&access, stop.clone())? {
        Next::Fits(answer) => Ok(answer),
        Next::Draft(order, fitting) => {
            let draft = wait_for_draft(DraftJob { session: fitting.session(), order, access })?;
            Ok(fitting.answer(&draft))
        }
    }
}
