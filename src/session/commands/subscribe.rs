//! `session/subscribe` and `session/unsubscribe`.

use crate::{
    protocol::{
        SessionSubscribe, SessionUnsubscribe,
        types::{SessionParams, SubscribeAnswer, SubscribeParams, Subscription},
    },
    session::{Session, command::SessionMethod},
    wire::{outbox::Missed, rpc::Reply},
};

/// The session alone makes its events, so none comes between the answer and the missed events.
impl SessionMethod for SessionSubscribe {
    fn handle(session: &mut Session, params: SubscribeParams, reply: Reply) {
        let outbox = session.emitter.outbox.clone();
        outbox.wants(&session.state.id, true);
        let missed = params.after.as_ref().map(|seen| outbox.missed(&session.state.id, &seen.epoch, seen.seq));
        let (status, replayed) = match missed {
            Some(Missed::Kept(count)) => (Subscription::Ok, count),
            Some(Missed::Forgotten) => (Subscription::Expired, 0),
            None => (Subscription::Ok, 0),
        };
        reply.ok(&SubscribeAnswer {
            epoch: outbox.epoch().to_owned(),
            seq: outbox.last_seq(&session.state.id),
            status,
            replayed,
            snapshot: (!matches!(missed, Some(Missed::Kept(_)))).then(|| session.status_answer()),
        });
        if let (Some(Missed::Kept(_)), Some(seen)) = (missed, params.after) {
            outbox.replay(&session.state.id, seen.seq);
        }
    }
}

impl SessionMethod for SessionUnsubscribe {
    fn handle(session: &mut Session, _: SessionParams, reply: Reply) {
        session.emitter.outbox.wants(&session.state.id, false);
        reply.ok(&());
    }
}
