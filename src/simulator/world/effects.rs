//! The effects of a session in a world: at once, or after a time of the world's own.

use super::{
    World,
    life::{Due, Message, Turn},
};
use crate::{
    ask::{
        clock::{Clock as _, after},
        request::Origin,
    },
    ids::SessionId,
    log::{Unfinished, sealed::Blocking},
    models::learned::Change,
    protocol::{
        errors::Failure,
        events::Event,
        types::{Status, StatusAnswer, SubscribeAnswer, SubscribeParams, Subscription},
    },
    session::{
        core::Input,
        effects::{Answer, IdleTurn, Read, TicketNumber, Turning, world},
        forking::Forking,
        jobs::{
            DraftOrder, Job,
            draft::{self, DraftJob},
            transfer::{self, TransferJob, TransferOrder},
            turn::{self, TurnJob, TurnOrder},
        },
        log_work::LogWork,
    },
    simulator::{observer::Violation, pool::VirtualPool},
    wire::outbox::About,
};
use std::{sync::PoisonError, time::Duration};

/// The longest time of a step of work on the pool.
const LONGEST_WORK: Duration = Duration::from_millis(20);

impl world::World for World<'_> {
    type Broken = Violation;

    fn record(&mut self, operations: Vec<Unfinished>) {
        if let Some(register) = self.life.as_ref().and_then(|life| life.register.as_ref()) {
            register.record(operations);
        }
    }

    fn publish(&mut self, _: Status) {}

    fn emit(&mut self, about: About, event: Event) {
        self.view.event(&about, &event);
    }

    fn answer(&mut self, request: TicketNumber, answer: Answer) {
        self.leaves_the_core(request);
        self.view.answer(request, &answer);
    }

    fn work_on_log(&mut self, work: LogWork) -> Result<(), Violation> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let Some(mut log) = life.log.take() else {
            return Err(Violation::of_world("work is given to a log that is out".to_owned()));
        };
        if matches!(work, LogWork::CatchUp(..)) && !log.may_have_grown() {
            let done = work.run(&mut *log, &Blocking::is_allowed_here());
            life.messages.push_back(Message::Log(log, Some(done)));
        } else {
            self.later(Due::Log(log, work));
        }
        Ok(())
    }

    fn read(&mut self, request: TicketNumber, read: Read) {
        self.leaves_the_core(request);
        self.later(Due::Read(request, read));
    }

    fn start(&mut self, job: Job) {
        match job {
            Job::Count(entries) => self.later(Due::Count(entries)),
            Job::Index(work, stop) => self.later(Due::Index(work, stop)),
            Job::Plan(order) => self.later(Due::Plan(order)),
            Job::Draft(order) => self.draft(order),
            Job::Transfer(order) => self.transfer(order),
            Job::Turn(order) => self.run_turn(order),
            // The world has one session.
            Job::Source(order) => {
                let unknown = Failure::no_session(order.from.as_str());
                self.later(Due::Arrives(Message::Input(Input::Sourced(order.id, Err(unknown)))));
            }
            Job::Found(id, founding) => self.later(Due::Found(id, founding)),
        }
    }

    fn teach(&mut self, change: Change) {
        self.access.windows.teach(change);
    }

    fn share(&mut self, _: u64) {}

    fn subscribe(&mut self, request: TicketNumber, _: SubscribeParams, snapshot: StatusAnswer) {
        let answer = SubscribeAnswer {
            epoch: "simulated".to_owned(),
            seq: 0,
            status: Subscription::Ok,
            replayed: 0,
            snapshot: Some(snapshot),
        };
        world::World::answer(self, request, Answer::ok(&answer));
    }

    fn unsubscribe(&mut self, request: TicketNumber) {
        world::World::answer(self, request, Answer::ok(&()));
    }

    fn hand_over(&mut self, request: TicketNumber) {
        world::World::answer(self, request, Answer::ok(&()));
    }

    fn fork(&mut self, request: TicketNumber, _: Forking) {
        world::World::answer(self, request, Answer::ok(&()));
    }

    /// The session asks for its turn among the others, or leaves it.
    fn turn(&mut self, turning: Turning) {
        let others = std::mem::take(&mut self.surroundings.others_idle);
        let now = self.clock.now();
        let Some(life) = &mut self.life else { return };
        life.turn = match turning {
            Turning::Leave => Turn::No,
            Turning::Ask => {
                if others > Duration::ZERO {
                    life.messages.push_back(Message::Input(Input::IdleTurn(IdleTurn::Waits)));
                }
                life.next_due += 1;
                life.due.insert((after(now, others), life.next_due), Due::Turn);
                Turn::Asked
            }
        };
    }
}

impl World<'_> {
    /// A cancel of the request that is late reaches nobody.
    fn leaves_the_core(&mut self, request: TicketNumber) {
        if let Some(life) = &mut self.life {
            life.delivered.remove(&request);
        }
    }

    fn transfer(&mut self, order: TransferOrder) {
        let Some(life) = &mut self.life else { return };
        let id = order.id.clone();
        let (session, trigger) = (SessionId::from("simulated"), order.trigger());
        let origin = Origin { session, operation: id.clone(), trigger };
        let job = TransferJob { origin, order, access: self.access.clone(), may_block: Blocking::is_allowed_here };
        let pool = VirtualPool { clock: self.clock.clone(), longest: LONGEST_WORK };
        let reports = life.reports.clone();
        let report = move |input| reports.lock().unwrap_or_else(PoisonError::into_inner).push(input);
        life.next_due += 1;
        life.tasks.start(life.next_due, async move {
            let result = transfer::transfer(job, &pool, &|step| report(Input::Reported(id.clone(), step))).await;
            report(Input::Transferred(id, result));
        });
    }

    fn run_turn(&mut self, order: TurnOrder) {
        let Some(life) = &mut self.life else { return };
        let (id, session) = (order.id().clone(), SessionId::from("simulated"));
        let job = TurnJob { session, order, access: self.access.clone(), may_block: Blocking::is_allowed_here };
        let pool = VirtualPool { clock: self.clock.clone(), longest: LONGEST_WORK };
        let reports = life.reports.clone();
        let report =
            move |input| reports.lock().unwrap_or_else(PoisonError::into_inner).push(Input::Turned(id.clone(), input));
        life.next_due += 1;
        life.tasks.start(life.next_due, async move { turn::run(job, &pool, &report).await });
    }

    fn draft(&mut self, order: DraftOrder) {
        let Some(life) = &mut self.life else { return };
        let id = order.id.clone();
        let job = DraftJob {
            session: SessionId::from("simulated"),
            order,
            access: self.access.clone(),
            may_block: Some(Blocking::is_allowed_here),
        };
        let pool = VirtualPool { clock: self.clock.clone(), longest: LONGEST_WORK };
        let reports = life.reports.clone();
        let report = move |input| reports.lock().unwrap_or_else(PoisonError::into_inner).push(input);
        life.next_due += 1;
        life.tasks.start(life.next_due, async move {
            let result = draft::draft(job, &pool, &|step| report(Input::Reported(id.clone(), step))).await;
            report(Input::Drafted(id, result));
        });
    }
}
