//! The outside of a session's core: the shell of a daemon, the world of the simulator, a replay. The list of effects is matched
//! here and nowhere else.

use super::{Answer, Effect, Read, TicketNumber, Turning};
use crate::{
    log::Unfinished,
    models::learned::Change,
    protocol::{
        events::Event,
        types::{Status, StatusAnswer, SubscribeParams},
    },
    session::{forking::Forking, jobs::Job, log_work::LogWork},
    wire::outbox::About,
};

/// Performs the effects of a core, a method for each. [`Effect`] describes them.
pub trait World {
    /// The reason why an effect cannot be performed.
    type Broken;

    /// [`Effect::Record`].
    fn record(&mut self, operations: Vec<Unfinished>);
    /// [`Effect::Publish`].
    fn publish(&mut self, status: Status);
    /// [`Effect::Emit`].
    fn emit(&mut self, about: About, event: Event);
    /// [`Effect::Answer`].
    fn answer(&mut self, request: TicketNumber, answer: Answer);
    /// [`Effect::Log`].
    ///
    /// # Errors
    /// When the log is out, which is a defect of the core.
    fn work_on_log(&mut self, work: LogWork) -> Result<(), Self::Broken>;
    /// [`Effect::Read`].
    fn read(&mut self, request: TicketNumber, read: Read);
    /// [`Effect::Start`].
    fn start(&mut self, job: Job);
    /// [`Effect::Teach`].
    fn teach(&mut self, change: Change);
    /// [`Effect::Share`].
    fn share(&mut self, bytes: u64);
    /// [`Effect::Subscribe`].
    fn subscribe(&mut self, request: TicketNumber, params: SubscribeParams, snapshot: StatusAnswer);
    /// [`Effect::Unsubscribe`].
    fn unsubscribe(&mut self, request: TicketNumber);
    /// [`Effect::HandOver`].
    fn hand_over(&mut self, request: TicketNumber);
    /// [`Effect::Fork`].
    fn fork(&mut self, request: TicketNumber, forking: Forking);
    /// [`Effect::IdleTurn`].
    fn turn(&mut self, turning: Turning);
}

impl Effect {
    /// Performs the effect.
    ///
    /// # Errors
    /// When the world cannot perform it.
    pub fn perform<W: World>(self, world: &mut W) -> Result<(), W::Broken> {
        match self {
            Self::Record(operations) => world.record(operations),
            Self::Publish(status) => world.publish(status),
            Self::Emit(about, event) => world.emit(about, event),
            Self::Answer(request, answer) => world.answer(request, answer),
            Self::Log(work) => return world.work_on_log(work),
            Self::Read(request, read) => world.read(request, read),
            Self::Start(job) => world.start(*job),
            Self::Open(gate) => gate.open(),
            Self::Teach(change) => world.teach(change),
            Self::Share(bytes) => world.share(bytes),
            Self::Subscribe(request, params, snapshot) => world.subscribe(request, params, *snapshot),
            Self::Unsubscribe(request) => world.unsubscribe(request),
            Self::HandOver(request) => world.hand_over(request),
            Self::Fork(request, forking) => world.fork(request, *forking),
            Self::IdleTurn(turning) => world.turn(turning),
        }
        Ok(())
    }
}
