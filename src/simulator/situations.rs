//! Situations that actions drawn one by one rarely make: a request at the right moment of a compaction, a request that is
//! cancelled in the queue, a log that is lost, a model that answers at its second try.

use super::{
    action::{
        Action, Ahead, Compacting, Configured, Idle, Method, PanicAt, Pinned, Reported, Request, Rights, Said,
        Scenario, Tuning, Which, WhichOperation,
    },
    script::{End, Fault, Step},
    setup,
};
use crate::{ids::random::SplitMix64, provider::TroubleKind, session::effects::Sent};

/// The most situations of a scenario.
const MOST: u64 = 4;

/// Adds some situations to a scenario, at random places.
pub fn add(scenario: &mut Scenario, random: &mut SplitMix64) {
    if random.below(3) == 0 {
        add_retries(scenario, random);
    }
    for _ in 0..random.below(MOST) {
        let place = usize::try_from(random.below(scenario.actions.len() as u64 + 1)).unwrap_or(0);
        let situation = Situation(random).draw();
        scenario.actions.splice(place..place, situation);
    }
}

/// A client that is away for a while, now and then, in a session with idle maintenance.
pub fn add_idleness(scenario: &mut Scenario, random: &mut SplitMix64) {
    if random.below(2) == 0 {
        return;
    }
    scenario.setup.idle = Idle { seconds: 1 + random.below(600), threshold: random.below(scenario.setup.window / 2) };
    for _ in 0..=random.below(8) {
        let place = usize::try_from(random.below(scenario.actions.len() as u64 + 1)).unwrap_or(0);
        let situation = Situation(random).client_is_away();
        scenario.actions.splice(place..place, situation);
    }
}

/// A conversation that grows while summaries are made ahead of its threshold, now and then.
pub fn add_growth(scenario: &mut Scenario, random: &mut SplitMix64) {
    if random.below(3) == 0 || scenario.setup.window > LARGEST_GROWN {
        return;
    }
    for _ in 0..=random.below(2) {
        let place = usize::try_from(random.below(scenario.actions.len() as u64 + 1)).unwrap_or(0);
        let situation = Situation(random).grows(scenario.setup.window);
        scenario.actions.splice(place..place, situation);
    }
}

/// Each model fails once or twice in a way that is worth a retry, then answers as before.
fn add_retries(scenario: &mut Scenario, random: &mut SplitMix64) {
    for number in 0..scenario.setup.models {
        let steps = scenario.setup.script.models.entry(setup::model(number)).or_default();
        for _ in 0..=random.below(2) {
            let kinds = [TroubleKind::Throttled, TroubleKind::Broken, TroubleKind::CutOff];
            let kind = random.one_of(&kinds).copied().unwrap_or(TroubleKind::Broken);
            let retry_after_ms = (random.below(2) == 0).then(|| random.below(5_000));
            steps.insert(0, Step::ends(End::Fails(Fault { kind, retry_after_ms })));
        }
        if steps.iter().all(|step| step.end != Step::default().end) {
            steps.push(Step::default());
        }
    }
}

/// The largest window that a growing conversation fills, in tokens. Larger texts cost time, and nothing else.
const LARGEST_GROWN: u64 = 20_000;

/// A situation in the making.
struct Situation<'a>(&'a mut SplitMix64);

impl Situation<'_> {
    fn draw(&mut self) -> Vec<Action> {
        match self.0.below(10) {
            0 => self.edit_during_a_compaction(),
            1 => self.context_that_waits(),
            2 => self.close_during_a_compaction(),
            3 | 4 => self.cancelled_before_its_turn(),
            5 => self.lost_log(),
            6 => self.failed_read(),
            7 => self.late_thread(),
            8 => self.stale_compaction(),
            _ => self.one_compaction_after_another(),
        }
    }

    /// The client answers, or leaves a message or a call open, is away, and comes back at some time.
    fn client_is_away(&mut self) -> Vec<Action> {
        let chars = 40 + self.few(4_000);
        let said = match self.0.below(6) {
            0 => Said::User(chars),
            1 => Said::Calls(1 + self.few(2), Reported::Nothing),
            2 => Said::Result(0, chars),
            _ => Said::Answer(chars, Reported::Nothing),
        };
        let mut actions = Vec::new();
        if self.0.below(3) == 0 {
            actions.push(Action::OthersIdle(self.0.below(100_000)));
        }
        actions.push(send(Request::Append { messages: vec![Said::User(200), said], parent: None, expected: None }));
        if self.0.below(4) == 0 {
            actions.push(Action::Stall(self.0.below(200_000_000)));
        }
        actions.push(Action::Wait(self.0.below(900_000)));
        if self.0.below(2) == 0 {
            actions.push(send(Request::RunIdle));
            actions.push(Action::Wait([2, 200, 3_000][self.few(3) as usize]));
        }
        match self.0.below(8) {
            0 | 1 => actions.push(send(Request::Activity)),
            2 => actions.push(self.append()),
            3 => actions.push(self.compact()),
            4 => actions.push(send(Request::Prune { protect: Some(0), minimum: Some(0), dry_run: None })),
            5 => actions.push(send(Request::Context { leaf: None, format: None, wait: Some(true) })),
            6 => actions.push(Action::Cancel(WhichOperation::All)),
            _ => actions.push(send(Request::Status)),
        }
        actions
    }

    /// Turns of about a sixteenth of the window each. Between them the client changes this and that, so that summaries that
    /// are made, or are ready, do not serve any more.
    fn grows(&mut self, window: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..6 + self.0.below(14) {
            let chars = 20 + self.few(window / 4);
            let reported = match self.0.below(4) {
                0 => Reported::Cached(window * (20 + self.0.below(60)) / 100),
                _ => Reported::Nothing,
            };
            let messages = match self.0.below(3) {
                0 => vec![Said::User(40), Said::Calls(1, reported), Said::Result(0, chars)],
                _ => vec![Said::User(chars), Said::Answer(20 + self.few(60), reported)],
            };
            actions.push(send(Request::Append { messages, parent: None, expected: None }));
            let most = [4, 2_000, 90_000][self.few(3) as usize];
            actions.push(self.wait(most));
            if self.0.below(3) == 0 {
                actions.push(self.change());
                let most = [4, 90_000][self.few(2) as usize];
                actions.push(self.wait(most));
            }
        }
        actions
    }

    /// A change of the summarized part, of the kept part, or of the settings.
    fn change(&mut self) -> Action {
        let covered = if self.0.below(3) == 0 { Which::Oldest(self.few(40)) } else { Which::Newest(self.few(24)) };
        send(match self.0.below(12) {
            0..3 => Request::Pin(Pinned::Entry(covered)),
            3 | 4 => Request::Unpin(Pinned::Entry(covered)),
            5 => Request::Undo,
            6 => Request::Prune { protect: Some(0), minimum: Some(0), dry_run: None },
            7 => {
                let messages = vec![Said::User(40)];
                Request::Append { messages, parent: Some(Which::Newest(self.few(10))), expected: None }
            }
            8 => Request::Configure(Configured::Model(self.few(3))),
            9 => {
                Request::Set([Tuning::None, Tuning::Ahead(Ahead::Off), Tuning::Ahead(Ahead::On)][self.few(3) as usize])
            }
            10 => Request::Label(covered, Some(1)),
            _ => Request::Context { leaf: None, format: None, wait: Some(true) },
        })
    }

    fn few(&mut self, end: u64) -> u32 {
        u32::try_from(self.0.below(end)).unwrap_or(0)
    }

    fn wait(&mut self, most: u64) -> Action {
        Action::Wait(self.0.below(most))
    }

    fn append(&mut self) -> Action {
        let messages = vec![Said::User(20 + self.few(400))];
        send(Request::Append { messages, parent: None, expected: None })
    }

    /// A compaction of nearly everything.
    fn compact(&mut self) -> Action {
        let method = if self.0.below(4) == 0 { Some(Method::Extractive) } else { None };
        let wait = (self.0.below(2) == 0).then_some(true);
        let keep_recent_tokens = Some(self.0.below(100));
        send(Request::Compact(Compacting { wait, method, keep_recent_tokens, ..Compacting::default() }))
    }

    fn rewrite(&mut self) -> Action {
        match self.0.below(2) {
            0 => send(Request::Undo),
            _ => send(Request::Prune { protect: Some(0), minimum: Some(0), dry_run: None }),
        }
    }

    fn edit_during_a_compaction(&mut self) -> Vec<Action> {
        let result = send(Request::Append {
            messages: vec![Said::User(300), Said::Calls(1, super::action::Reported::Nothing), Said::Result(0, 3_000)],
            parent: None,
            expected: None,
        });
        vec![
            self.append(),
            self.compact(),
            Action::Wait(60_000),
            result,
            self.append(),
            self.compact(),
            self.wait(1_200),
            self.rewrite(),
            self.wait(200),
            self.rewrite(),
        ]
    }

    fn context_that_waits(&mut self) -> Vec<Action> {
        let context = send(Request::Context { leaf: None, format: None, wait: Some(true) });
        let end = if self.0.below(3) == 0 { Action::CancelRequest(0) } else { Action::Cancel(WhichOperation::All) };
        vec![self.append(), self.compact(), self.wait(1_500), context, self.wait(100), end, self.wait(100)]
    }

    fn close_during_a_compaction(&mut self) -> Vec<Action> {
        let (compact, wait) = (self.compact(), self.wait(1_500));
        let end = if self.0.below(4) == 0 { Action::Stop } else { send(Request::Close) };
        vec![compact, wait, end, Action::Wait(3_000), Action::Open(Rights::Write)]
    }

    fn cancelled_before_its_turn(&mut self) -> Vec<Action> {
        let waiting = match self.0.below(7) {
            0 => send(Request::Pin(Pinned::Text(self.few(9), 30))),
            1 => send(Request::Label(Which::Leaf, Some(1))),
            2 => self.rewrite(),
            3 => send(Request::Context { leaf: None, format: None, wait: Some(true) }),
            4 => self.compact(),
            _ => self.append(),
        };
        let mut actions = vec![self.append()];
        if self.0.below(2) == 0 {
            actions.push(Action::Steps(2));
        }
        actions.push(waiting);
        actions.extend([Action::Steps(1 + self.few(2)), Action::CancelRequest(0), self.wait(50)]);
        actions
    }

    fn lost_log(&mut self) -> Vec<Action> {
        let at = if self.0.below(2) == 0 { PanicAt::Begin } else { PanicAt::End };
        let mut actions = Vec::new();
        if self.0.below(2) == 0 {
            actions.extend([self.compact(), self.wait(1_500)]);
        }
        actions.push(Action::PanicLog(at));
        actions.push(if self.0.below(3) == 0 { self.compact() } else { self.append() });
        actions.extend([self.append(), Action::Wait(5_000), Action::Open(Rights::Write)]);
        actions
    }

    fn failed_read(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.0.below(3) == 0 {
            // The session sleeps.
            actions.push(Action::Wait(100_000));
        }
        let parent = Some(Which::Oldest(self.few(300)));
        let branch = send(Request::Append { messages: vec![Said::User(40)], parent, expected: None });
        let pin = send(Request::Pin(Pinned::Entry(Which::Oldest(self.few(300)))));
        actions.extend([Action::FailRead, if self.0.below(2) == 0 { branch } else { pin }]);
        actions.extend([self.append(), self.compact(), Action::Steps(2 + self.few(3))]);
        if self.0.below(2) == 0 {
            actions.push(Action::Cancel(WhichOperation::All));
        }
        actions
    }

    fn late_thread(&mut self) -> Vec<Action> {
        let (compact, wait, late) = (self.compact(), self.wait(2_000), self.0.below(6_000));
        let then = match self.0.below(4) {
            0 => send(Request::Close),
            1 => Action::CancelRequest(self.few(2)),
            _ => Action::Cancel(WhichOperation::All),
        };
        let reopens = then == send(Request::Close);
        let mut actions = vec![compact, wait, Action::Stall(late), then];
        actions.extend(reopens.then_some([Action::Wait(3_000), Action::Open(Rights::Write)]).into_iter().flatten());
        actions
    }

    fn stale_compaction(&mut self) -> Vec<Action> {
        let expected = Some(Which::Leaf);
        let compact = Compacting { expected, keep_recent_tokens: Some(0), ..Compacting::default() };
        vec![self.append(), Action::Wait(50), self.append(), send(Request::Compact(compact)), self.wait(5_000)]
    }

    fn one_compaction_after_another(&mut self) -> Vec<Action> {
        let cancel = Action::Cancel(WhichOperation::All);
        vec![self.compact(), self.wait(1_500), cancel, self.compact(), self.wait(1_500), self.append()]
    }
}

fn send(request: Request) -> Action {
    Action::Send(request, Sent::Alone)
}
