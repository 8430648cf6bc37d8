//! Frames of a client: each request is answered once, with its id, and no error is a defect or too long.

use super::owed::{Owed, answered};
use abridged::{
    protocol::{self, Method, types::Empty},
    wire::{
        caller::Caller,
        fit::SOFT_FRAME,
        outbox::Outbox,
        rpc::{Reply, Service},
        transport::Chosen,
    },
};
use std::sync::Arc;

pub fn check(frame: &[u8]) {
    let outbox = Arc::new(Outbox::new());
    let caller = Arc::new(Caller::new(outbox.clone()));
    let service = service(&outbox, caller);
    service.frame(frame);
    let mut owed = Owed::default();
    owed.by_frame(frame);
    outbox.close();
    let mut out = Vec::new();
    outbox.write_to(&mut out, &Chosen::default());
    assert_eq!(outbox.in_flight(), 0, "every request is answered");
    let mut answers = Vec::new();
    for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // The id is the client's, and so are the keys that are named as ignored.
        assert!(line.len() < SOFT_FRAME + 4 * frame.len(), "{} bytes", line.len());
        answers.extend(answered(line));
    }
    if let Err(what) = owed.settle(&answers) {
        panic!("{what}");
    }
}

/// A service whose methods read their params and answer.
fn service(outbox: &Arc<Outbox>, caller: Arc<Caller>) -> Service<()> {
    fn answer<M: Method>(_: &Arc<()>, _: M::Params, reply: Reply) {
        reply.ok(&Empty {});
    }
    macro_rules! methods {
        ($service:ident: $($method:ident)+) => { $($service.method::<protocol::$method>(answer::<protocol::$method>);)+ };
    }
    let mut service = Service::new(Arc::new(()), outbox.clone(), caller, |_| Ok(()));
    methods!(service: Initialize Initialized Shutdown Exit Ping Discover SessionNew SessionLoad SessionList SessionClose
        SessionDelete SessionStatus SessionAppend SessionContext SessionEntries SessionEntry SessionSearch SessionTree
        SessionUsage SessionRunIdle SessionActivity SessionCancel SessionCompact SessionUndoCompaction SessionReset
        SessionNavigate SessionReference SessionHandoff SessionPrune SessionPin SessionUnpin SessionLabel SessionConfigure
        SessionFork SessionImport SessionClearQueue SessionExport SessionSubscribe SessionUnsubscribe ModelsList ModelsForget SettingsGet
        SettingsSet HooksSet ToolsSet ContextFit SessionPrompt SessionContinue CancelLsp CancelAcp);
    service
}

/// The names of the methods that the target has.
#[cfg(test)]
pub fn methods() -> Vec<&'static str> {
    let outbox = Arc::new(Outbox::new());
    let caller = Arc::new(Caller::new(outbox.clone()));
    service(&outbox, caller).names()
}
