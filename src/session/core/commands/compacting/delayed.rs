//! A compaction that a client asks for after the turn, as the session performs its steps.

use crate::{
    compaction::request::Cause,
    protocol::types::{CompactParams, Initiator},
    session::{
        core::{
            Core,
            commands::{
                compacting::{
                    self,
                    after_turn::{self, Step},
                    planning,
                },
                founding,
            },
            work::{Request, Work},
        },
        effects::Ticket,
        jobs::{Authors, Focus, Job, PlanOrder},
        operations::{Asked, Place},
    },
    wire::outbox::About,
};

impl Core {
    /// Takes a request for a compaction after the turn. Where the session ends before the turn, the compaction ends at once.
    pub(in crate::session::core) fn delay(&mut self, params: CompactParams, ticket: Ticket) {
        let accepted =
            self.log.writable(&self.state).and_then(|()| self.upkeep.after_turn.accepts(&params, &self.state));
        if let Err(failure) = accepted {
            return ticket.fail(&failure);
        }
        let asked = Asked::by(ticket, params.wait);
        if self.ending.goes_on() || after_turn::outlives_session(&asked, self.log.facts().access) {
            let steps = self.upkeep.after_turn.ask(params, asked, &self.state, &mut self.stamps);
            self.follow_after_turn(steps);
        } else {
            let request = self.upkeep.after_turn.ask_at_end(params, asked, &mut self.stamps);
            self.end_unstarted([request]);
        }
    }

    /// Performs steps of the compaction after the turn.
    pub(in crate::session::core) fn follow_after_turn(&mut self, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            match step {
                Step::Wake => self.wake(),
                Step::Write(write) => self.write(Box::new(write)),
                Step::Announce(entry) => self.effects.announce(&entry, None),
                Step::Answer(ticket, answer) => ticket.answer(answer),
                Step::Warn(warning) => self.effects.emit(About::default(), warning.into()),
                Step::Record => self.record_running(),
            }
        }
    }

    /// Starts a compaction after the turn.
    pub(in crate::session::core) fn begin_delayed(&mut self, request: Request) {
        self.idle_gives_way();
        let Request { id, kind, params, asked, stop } = request;
        let operation = self.open(kind, Place::Top(id.clone()), asked, self.state.usage(), stop.clone());
        self.upkeep.after_turn.begun(&id, self.operations.unfinished(), &self.state);
        self.upkeep.moves = founding::moved(&id, &params);
        let initiator = params.initiator.unwrap_or(Initiator::User);
        let mut request = planning::plan_request(&self.state, params.keep_recent_tokens, initiator, Cause::Asked);
        request.insists = compacting::insists(&params, self.hooks());
        // It was checked when it was asked for.
        let authors = Authors::of(&params).unwrap_or_default();
        self.effects.start(Job::Plan(PlanOrder { id, request, authors, former: None, stop }));
        self.work = Work::Preparing(operation, Focus::of(params));
    }
}
