//! What a session says of itself: its status, how full it is, and everything at once to whoever opens or subscribes.

use crate::{
    log::Access,
    protocol::{
        errors::Failure,
        events::Event,
        types::{
            LoadAnswer, LoadParams, Queue, Status, StatusAnswer, StatusKind, SubscribeAnswer, SubscribeParams,
            Subscription, Usage,
        },
    },
    session::{Session, Writer, open, operation::Operation},
    wire::{
        outbox::{About, Missed},
        rpc::Reply,
    },
};
use serde_json::json;
use std::path::PathBuf;

impl Session {
    pub(in crate::session) fn status(&self) -> Status {
        let idle = Status { kind: StatusKind::Idle, operation_id: None, reason: None };
        self.work.operation().map_or(idle, Operation::status)
    }

    pub(in crate::session) fn status_answer(&self) -> StatusAnswer {
        let stats = match &self.writer {
            Writer::Ready(log) => log.stats(),
            _ => self.state.stats,
        };
        StatusAnswer {
            session: self.state.info(self.status()),
            queue: Queue::default(),
            operations: self.work.operation().map(Operation::describe).into_iter().collect(),
            meta: json!({ "writes": stats.writes, "fsyncs": stats.fsyncs }),
        }
    }

    /// The client wants the events, and those it missed. Only this session makes them, so none comes in between.
    pub(in crate::session) fn subscribe(&mut self, params: SubscribeParams, reply: Reply) {
        let outbox = self.emitter.outbox.clone();
        outbox.wants(&self.state.id, true);
        let missed = params.after.as_ref().map(|seen| outbox.missed(&self.state.id, &seen.epoch, seen.seq));
        let (status, replayed) = match missed {
            Some(Missed::Kept(count)) => (Subscription::Ok, count),
            Some(Missed::Forgotten) => (Subscription::Expired, 0),
            None => (Subscription::Ok, 0),
        };
        reply.ok(&SubscribeAnswer {
            epoch: outbox.epoch().to_owned(),
            seq: outbox.last_seq(&self.state.id),
            status,
            replayed,
            snapshot: (!matches!(missed, Some(Missed::Kept(_)))).then(|| self.status_answer()),
        });
        if let (Some(Missed::Kept(_)), Some(seen)) = (missed, params.after) {
            outbox.replay(&self.state.id, seen.seq);
        }
    }

    /// A session that is loaded again is described, if it is really the same, with what the client gives for it now.
    pub(in crate::session) fn describe(&mut self, params: LoadParams) -> Result<LoadAnswer, Failure> {
        if let (Some(asked), Some(file)) = (&params.path, &self.state.file)
            && PathBuf::from(asked).canonicalize().ok().as_ref() != Some(file)
        {
            let what = format!("its session is open already, from {}; close that one first", file.display());
            return Err(Failure::params("path", what));
        }
        if matches!(&self.writer, Writer::Ready(log) if log.access() == Access::Read) && params.read_only != Some(true)
        {
            let what =
                "the session is open here to look at only; close it with session/close, then load it to write to it";
            return Err(Failure::params("readOnly", what));
        }
        self.state.give(open::given(&params), params.model)?;
        let indexed = self.state.history().index().is_some();
        Ok(LoadAnswer { session: self.state.info(self.status()), indexed, repairs: self.state.repairs() })
    }

    /// Tells how full the context is, if that is news.
    pub(in crate::session) fn tell_usage(&mut self, usage: Usage) {
        if usage != self.told {
            self.told = usage.clone();
            self.emitter.emit(About::default(), &Event::UsageUpdated { usage });
        }
    }
}
