//! Simpler forms of the actions and the setup of a scenario, for a search: shorter waits, fewer messages, smaller texts, no
//! options. Each form is simpler by a measure that ends, so a search ends too.

use super::{
    action::{
        Action, Ahead, Compacting, Configured, Counts, Indexed, Navigating, OtherWrite, PanicAt, Pinned, Prices,
        Provider, Reported, Request, Rights, Said, Setup, Target, Tuning, Way, Which, WhichOperation,
    },
    hooks,
    script::{Script, Step},
    shrink::{shorter, smaller},
};
use crate::session::effects::Sent;

/// Simpler forms of an action, the simplest first.
#[must_use]
pub fn simpler(action: &Action) -> Vec<Action> {
    match action {
        Action::Steps(steps) => small(*steps).map(Action::Steps).collect(),
        Action::Wait(millis) => smaller(*millis).into_iter().map(Action::Wait).collect(),
        Action::Send(request, sent) => {
            let alone = (*sent != Sent::Alone).then(|| Action::Send(request.clone(), Sent::Alone));
            let simpler = simpler_request(request).into_iter().map(|request| Action::Send(request, *sent));
            alone.into_iter().chain(simpler).collect()
        }
        Action::Cancel(WhichOperation::All) => Vec::new(),
        Action::Cancel(WhichOperation::Newest(place)) => {
            let newer = small(*place).map(|place| Action::Cancel(WhichOperation::Newest(place)));
            std::iter::once(Action::Cancel(WhichOperation::All)).chain(newer).collect()
        }
        Action::Cancel(WhichOperation::Unknown) => vec![Action::Cancel(WhichOperation::All)],
        Action::CancelRequest(place) => small(*place).map(Action::CancelRequest).collect(),
        Action::Hooks(registered) => hooks::simpler_registered(*registered).into_iter().map(Action::Hooks).collect(),
        Action::Layers(tuning) => simpler_tuning(*tuning).map(Action::Layers).collect(),
        Action::WindowLearned(window) => smaller(*window).into_iter().map(Action::WindowLearned).collect(),
        Action::AwakeElsewhere(bytes) => smaller(*bytes).into_iter().map(Action::AwakeElsewhere).collect(),
        Action::OthersIdle(millis) => smaller(*millis).into_iter().map(Action::OthersIdle).collect(),
        Action::Other(write) => simpler_write(write).into_iter().map(Action::Other).collect(),
        Action::Room(bytes) => small(*bytes).map(Action::Room).collect(),
        Action::WallJumps(millis) => {
            let closer = |step: i64| if *millis < 0 { -step } else { step };
            smaller(millis.unsigned_abs())
                .into_iter()
                .filter_map(|step| Some(Action::WallJumps(closer(i64::try_from(step).ok()?))))
                .collect()
        }
        Action::Crash(effects) => small(*effects).map(Action::Crash).collect(),
        Action::Tear(bytes) => small(*bytes).map(Action::Tear).collect(),
        Action::Open(Rights::Write) => Vec::new(),
        Action::Open(_) => vec![Action::Open(Rights::Write)],
        Action::Stall(millis) => smaller(*millis).into_iter().map(Action::Stall).collect(),
        Action::PanicLog(PanicAt::End) => vec![Action::PanicLog(PanicAt::Begin)],
        Action::PanicLog(PanicAt::Begin) | Action::FailRead => Vec::new(),
        Action::FileTouched | Action::MakeRoom | Action::FailSync(_) | Action::Finish | Action::Stop => Vec::new(),
    }
}

/// Simpler forms of a setup, the simplest first.
#[must_use]
pub fn simpler_setup(setup: &Setup) -> Vec<Setup> {
    let mut simpler = Vec::new();
    let mut add = |change: &dyn Fn(&mut Setup)| {
        let mut candidate = setup.clone();
        change(&mut candidate);
        simpler.push(candidate);
    };
    let usual = Setup::default();
    if setup.script != usual.script {
        add(&|it| it.script = Script::default());
    }
    for history in small(setup.history) {
        add(&|it| it.history = history);
    }
    if setup.history == 0 && setup.history_seed != 0 {
        add(&|it| it.history_seed = 0);
    }
    if setup.rights != Rights::Write {
        add(&|it| it.rights = Rights::Write);
    }
    if setup.indexed != Indexed::AtOnce {
        add(&|it| it.indexed = Indexed::AtOnce);
    }
    if setup.counts != Counts::Chars {
        add(&|it| it.counts = Counts::Chars);
    }
    if setup.way != Way::Provider {
        add(&|it| it.way = Way::Provider);
    }
    if setup.promotes {
        add(&|it| it.promotes = false);
    }
    if setup.idle.seconds > 0 {
        add(&|it| it.idle.seconds = 0);
    }
    if setup.idle.threshold > 0 {
        add(&|it| it.idle.threshold = 0);
    }
    if setup.ceiling.is_some() {
        add(&|it| it.ceiling = None);
    }
    if setup.ahead != Ahead::Auto {
        add(&|it| it.ahead = Ahead::Auto);
    }
    if setup.prices != Prices::Unknown {
        add(&|it| it.prices = Prices::Unknown);
    }
    if setup.switches {
        add(&|it| it.switches = false);
    }
    if setup.stored {
        add(&|it| it.stored = false);
    }
    for models in small(setup.models) {
        add(&|it| it.models = models);
    }
    if let Some(truth) = setup.truth {
        for truth in std::iter::once(None).chain(truth.simpler().into_iter().map(Some)) {
            add(&|it| it.truth = truth);
        }
    }
    for hooking in hooks::simpler(&setup.hooks) {
        add(&|it| it.hooks = hooking.clone());
    }
    for script in simpler_script(&setup.script) {
        add(&|it| it.script = script.clone());
    }
    simpler
}

fn simpler_script(script: &Script) -> Vec<Script> {
    let mut simpler = Vec::new();
    for (model, steps) in &script.models {
        let with = |steps: Vec<Step>| {
            let mut script = script.clone();
            script.models.insert(model.clone(), steps);
            script
        };
        let mut without = script.clone();
        without.models.remove(model);
        simpler.push(without);
        simpler.extend(shorter(steps, 1, &simpler_step).into_iter().map(with));
    }
    simpler
}

fn simpler_step(step: &Step) -> Vec<Step> {
    let usual = Step::default();
    let mut simpler = Vec::new();
    let mut add = |differs: bool, candidate: Step| simpler.extend(differs.then_some(candidate));
    add(*step != usual, usual.clone());
    add(step.between_ms != 0, Step { between_ms: 0, ..step.clone() });
    add(step.first_ms != usual.first_ms, Step { first_ms: usual.first_ms, ..step.clone() });
    add(step.pieces != usual.pieces, Step { pieces: usual.pieces, ..step.clone() });
    add(step.text != usual.text, Step { text: usual.text.clone(), ..step.clone() });
    add(step.end != usual.end, Step { end: usual.end, ..step.clone() });
    add(step.usage != usual.usage, Step { usage: usual.usage, ..step.clone() });
    simpler
}

fn simpler_request(request: &Request) -> Vec<Request> {
    match request {
        Request::Append { messages, parent, expected } => {
            let make =
                |messages: &[Said], parent, expected| Request::Append { messages: messages.to_vec(), parent, expected };
            let mut simpler: Vec<Request> = shorter(messages, 1, &simpler_message)
                .iter()
                .map(|messages| make(messages, *parent, *expected))
                .collect();
            simpler.extend(options(*parent, simpler_entry).map(|parent| make(messages, parent, *expected)));
            simpler.extend(options(*expected, simpler_entry).map(|expected| make(messages, *parent, expected)));
            simpler
        }
        Request::Compact(compacting) => simpler_compacting(compacting).into_iter().map(Request::Compact).collect(),
        Request::Pin(pinned) => simpler_pin(*pinned).map(Request::Pin).collect(),
        Request::Unpin(pinned) => simpler_pin(*pinned).map(Request::Unpin).collect(),
        Request::Label(which, label) => {
            let entries = simpler_entry(*which).into_iter().map(|which| Request::Label(which, *label));
            entries
                .chain(options(*label, |number| small(number).collect()).map(|label| Request::Label(*which, label)))
                .collect()
        }
        Request::Prune { protect, minimum, dry_run } => {
            let make = |protect, minimum, dry_run| Request::Prune { protect, minimum, dry_run };
            let protects = options(*protect, smaller).map(|protect| make(protect, *minimum, *dry_run));
            let minimums = options(*minimum, smaller).map(|minimum| make(*protect, minimum, *dry_run));
            let real = options(*dry_run, |_| Vec::new()).map(|dry_run| make(*protect, *minimum, dry_run));
            protects.chain(minimums).chain(real).collect()
        }
        Request::Configure(configured) => simpler_configured(*configured).into_iter().map(Request::Configure).collect(),
        Request::Set(tuning) => simpler_tuning(*tuning).map(Request::Set).collect(),
        Request::Context { leaf, format, wait } => {
            let make = |leaf, format, wait| Request::Context { leaf, format, wait };
            let leaves = options(*leaf, simpler_entry).map(|leaf| make(leaf, *format, *wait));
            let formats = options(*format, |_| Vec::new()).map(|format| make(*leaf, format, *wait));
            let waits = options(*wait, |_| Vec::new()).map(|wait| make(*leaf, *format, wait));
            leaves.chain(formats).chain(waits).collect()
        }
        Request::Entries { since, all, limit } => {
            let make = |since, all, limit| Request::Entries { since, all, limit };
            let whole = (*all).then(|| make(*since, false, *limit));
            let since_others = options(*since, simpler_entry).map(|since| make(since, *all, *limit));
            let limits = options(*limit, |number| small(number).collect()).map(|limit| make(*since, *all, limit));
            whole.into_iter().chain(since_others).chain(limits).collect()
        }
        Request::Entry(which) => simpler_entry(*which).into_iter().map(Request::Entry).collect(),
        Request::Tree(which) => options(*which, simpler_entry).map(Request::Tree).collect(),
        Request::Search(number) => small(*number).map(Request::Search).collect(),
        Request::Navigate(navigating) => simpler_navigation(*navigating).into_iter().map(Request::Navigate).collect(),
        Request::Undo
        | Request::Reset
        | Request::Settings
        | Request::Usage
        | Request::Status
        | Request::Subscribe
        | Request::Unsubscribe
        | Request::ClearQueue
        | Request::Activity
        | Request::RunIdle
        | Request::Load
        | Request::HandOver
        | Request::Prompt { steers: false }
        | Request::Continue
        | Request::Close => Vec::new(),
        Request::Prompt { steers: true } => vec![Request::Prompt { steers: false }],
    }
}

fn simpler_navigation(it: Navigating) -> Vec<Navigating> {
    let mut simpler: Vec<_> = match it.target {
        Target::Entry(which) => simpler_entry(which).into_iter().map(Target::Entry).collect(),
        Target::Left => Vec::new(),
    };
    let mut simpler: Vec<_> = simpler.drain(..).map(|target| Navigating { target, ..it }).collect();
    simpler.extend(options(it.summarize, |_| Vec::new()).map(|summarize| Navigating { summarize, ..it }));
    simpler.extend(options(it.label, |number| small(number).collect()).map(|label| Navigating { label, ..it }));
    simpler.extend(options(it.wait, |_| Vec::new()).map(|wait| Navigating { wait, ..it }));
    simpler
}

fn simpler_compacting(it: &Compacting) -> Vec<Compacting> {
    let mut simpler = Vec::new();
    if *it != Compacting::default() {
        simpler.push(Compacting::default());
    }
    simpler.extend(options(it.wait, |_| Vec::new()).map(|wait| Compacting { wait, ..it.clone() }));
    simpler.extend(options(it.dry_run, |_| Vec::new()).map(|dry_run| Compacting { dry_run, ..it.clone() }));
    simpler.extend(options(it.method, |_| Vec::new()).map(|method| Compacting { method, ..it.clone() }));
    simpler
        .extend(options(it.instructions, |_| Vec::new()).map(|instructions| Compacting { instructions, ..it.clone() }));
    simpler.extend(options(it.expected, simpler_entry).map(|expected| Compacting { expected, ..it.clone() }));
    simpler.extend(it.by_agent.then(|| Compacting { by_agent: false, ..it.clone() }));
    simpler.extend(it.new_session.then(|| Compacting { new_session: false, ..it.clone() }));
    simpler.extend(it.after_turn.then(|| Compacting { after_turn: false, ..it.clone() }));
    let keeps = options(it.keep_recent_tokens, smaller);
    simpler.extend(keeps.map(|keep_recent_tokens| Compacting { keep_recent_tokens, ..it.clone() }));
    simpler
}

fn simpler_configured(configured: Configured) -> Vec<Configured> {
    match configured {
        Configured::Nothing => Vec::new(),
        Configured::NoModel => vec![Configured::Nothing],
        Configured::Model(number) => small(number).map(Configured::Model).collect(),
        Configured::Thinking(level) => options(level, |it| small(it).collect()).map(Configured::Thinking).collect(),
        Configured::Title(title) => options(title, |it| small(it).collect()).map(Configured::Title).collect(),
        Configured::Prompt(prompt) => options(prompt, |it| small(it).collect()).map(Configured::Prompt).collect(),
        Configured::Tools(tools) => small(tools).map(Configured::Tools).collect(),
        Configured::Window(window) => options(window, smaller).map(Configured::Window).collect(),
        Configured::Output(output) => options(output, smaller).map(Configured::Output).collect(),
        Configured::All(number) => {
            std::iter::once(Configured::Model(number)).chain(small(number).map(Configured::All)).collect()
        }
    }
}

fn simpler_tuning(tuning: Tuning) -> impl Iterator<Item = Tuning> {
    let simpler: Vec<Tuning> = match tuning {
        Tuning::None => Vec::new(),
        Tuning::KeepRecent(tokens) => smaller(tokens).into_iter().map(Tuning::KeepRecent).collect(),
        Tuning::Window(tokens) => smaller(tokens).into_iter().map(Tuning::Window).collect(),
        Tuning::ThresholdPercent(_)
        | Tuning::NoCompaction
        | Tuning::NoModels
        | Tuning::Invalid
        | Tuning::StrategyOff
        | Tuning::NoMidTurn
        | Tuning::NoPromotion
        | Tuning::NoLearning
        | Tuning::Ahead(_) => Vec::new(),
    };
    (tuning != Tuning::None).then_some(Tuning::None).into_iter().chain(simpler)
}

fn simpler_write(write: &OtherWrite) -> Vec<OtherWrite> {
    match write {
        OtherWrite::Entries { parent, messages } | OtherWrite::Race { parent, messages } => {
            let make = |parent, messages| match write {
                OtherWrite::Race { .. } => OtherWrite::Race { parent, messages },
                _ => OtherWrite::Entries { parent, messages },
            };
            let parents = simpler_entry(*parent).into_iter().map(|parent| make(parent, messages.clone()));
            let fewer = shorter(messages, 1, &simpler_message).into_iter().map(|messages| make(*parent, messages));
            fewer.chain(parents).collect()
        }
        OtherWrite::Half(percent) => smaller(u64::from(*percent))
            .into_iter()
            .filter_map(|percent| Some(OtherWrite::Half(u8::try_from(percent).ok()?)))
            .collect(),
        OtherWrite::Rest | OtherWrite::Garbage => Vec::new(),
    }
}

/// A user message is the simplest one. Its text has at least one character.
fn simpler_message(message: &Said) -> Vec<Said> {
    let texts = |chars: u32, make: &dyn Fn(u32) -> Said| -> Vec<Said> {
        std::iter::once(Said::User(chars)).chain(small(chars).filter(|chars| *chars > 0).map(make)).collect()
    };
    let reports = |chars: u32, reported: Reported, make: &dyn Fn(u32, Reported) -> Said| -> Vec<Said> {
        let silent = (reported != Reported::Nothing).then(|| make(chars, Reported::Nothing));
        texts(chars, &|chars| make(chars, reported)).into_iter().chain(silent).collect()
    };
    match message {
        Said::User(chars) => small(*chars).filter(|chars| *chars > 0).map(Said::User).collect(),
        Said::Answer(chars, reported) => reports(*chars, *reported, &Said::Answer),
        Said::CutOff(chars, reported) => reports(*chars, *reported, &Said::CutOff),
        Said::Thinking(chars, reported) => reports(*chars, *reported, &Said::Thinking),
        Said::Failed(error, reported) => {
            let silent = (*reported != Reported::Nothing).then_some(Said::Failed(*error, Reported::Nothing));
            std::iter::once(Said::User(1)).chain(silent).collect()
        }
        Said::Calls(calls, reported) => {
            let silent = (*reported != Reported::Nothing).then_some(Said::Calls(*calls, Reported::Nothing));
            let fewer = small(*calls).filter(|calls| *calls > 0).map(|calls| Said::Calls(calls, *reported));
            std::iter::once(Said::User(1)).chain(fewer).chain(silent).collect()
        }
        Said::Result(place, chars) => {
            let places = small(*place).map(|place| Said::Result(place, *chars));
            texts(*chars, &|chars| Said::Result(*place, chars)).into_iter().chain(places).collect()
        }
        Said::Aborted(chars) => texts(*chars, &Said::Aborted),
        Said::Stray(chars) => texts(*chars, &Said::Stray),
        Said::Image(chars) => texts(*chars, &Said::Image),
        Said::Custom(chars) => texts(*chars, &Said::Custom),
        Said::Developer(chars) => texts(*chars, &Said::Developer),
        Said::Execution(chars) => texts(*chars, &Said::Execution),
        Said::OfAnother(chars, reported) => std::iter::once(Said::Answer(*chars, *reported))
            .chain(reports(*chars, *reported, &Said::OfAnother))
            .collect(),
        Said::CutCall(reported) | Said::CutEmpty(reported) => {
            let silent = (*reported != Reported::Nothing).then_some(match message {
                Said::CutCall(_) => Said::CutCall(Reported::Nothing),
                _ => Said::CutEmpty(Reported::Nothing),
            });
            std::iter::once(Said::User(1)).chain(silent).collect()
        }
        Said::Provided(provider) => {
            let small = smaller(provider.window).into_iter().map(|window| Provider { window, ..*provider });
            let silent = provider.states.map(|_| Provider { states: None, ..*provider });
            std::iter::once(Said::User(1)).chain(silent.into_iter().chain(small).map(Said::Provided)).collect()
        }
        Said::Told(told) => std::iter::once(Said::User(1)).chain(told.simpler().into_iter().map(Said::Told)).collect(),
        Said::Images(images) => {
            std::iter::once(Said::User(1)).chain(small(*images).filter(|it| *it > 0).map(Said::Images)).collect()
        }
        Said::Invalid(kind) => std::iter::once(Said::User(1)).chain(small(*kind).map(Said::Invalid)).collect(),
    }
}

/// The leaf is the simplest entry.
fn simpler_entry(which: Which) -> Vec<Which> {
    let simpler: Vec<Which> = match which {
        Which::Leaf => return Vec::new(),
        Which::Newest(place) => small(place).map(Which::Newest).collect(),
        Which::Oldest(place) => small(place).map(Which::Oldest).collect(),
        Which::Unknown => Vec::new(),
    };
    std::iter::once(Which::Leaf).chain(simpler).collect()
}

fn simpler_pin(pinned: Pinned) -> impl Iterator<Item = Pinned> {
    let simpler: Vec<Pinned> = match pinned {
        Pinned::Entry(which) => simpler_entry(which).into_iter().map(Pinned::Entry).collect(),
        Pinned::Text(number, chars) => {
            let shorter = small(chars).map(|chars| Pinned::Text(number, chars));
            shorter.chain(small(number).map(|number| Pinned::Text(number, chars))).collect()
        }
    };
    simpler.into_iter()
}

/// No value, then simpler values.
fn options<T: Copy>(option: Option<T>, simpler: impl Fn(T) -> Vec<T>) -> impl Iterator<Item = Option<T>> {
    let none = option.is_some().then_some(None);
    none.into_iter().chain(option.map(simpler).into_iter().flatten().map(Some))
}

/// Smaller numbers.
fn small(number: u32) -> impl Iterator<Item = u32> {
    smaller(u64::from(number)).into_iter().filter_map(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::random::SplitMix64,
        simulator::{seeds, shrink::Search},
    };
    use std::collections::HashSet;

    /// The longest chain of simpler forms that a search may follow, far above the longest real one.
    const LONGEST: usize = 2_000;

    #[test]
    fn simpler_forms_of_every_action_end() {
        let mut random = SplitMix64::new(1);
        for seed in 0..300 {
            for action in seeds::scenario(seed).actions {
                // A search that accepts half of all forms, at random.
                let (mut current, mut seen) = (action, HashSet::new());
                for length in 0.. {
                    assert!(length < LONGEST && seen.insert(current.clone()), "no end at {current:?}");
                    match simpler(&current).into_iter().find(|_| random.below(2) == 0) {
                        Some(next) => current = next,
                        None => break,
                    }
                }
            }
        }
    }

    #[test]
    fn simpler_forms_of_every_setup_end_at_one_without_history_and_script() {
        for seed in 0..300 {
            let setup = seeds::scenario(seed).setup;
            let mut search = Search::of(100_000);
            let simplest = search.simplest(setup, &simpler_setup, &mut |_| true);
            assert!(!search.is_spent());
            let Setup { window, keep_recent, .. } = simplest;
            assert_eq!(
                simplest,
                Setup { window, keep_recent, models: 0, indexed: Indexed::AtOnce, ..Setup::default() }
            );
        }
    }

    #[test]
    fn a_request_keeps_only_the_options_that_the_failure_needs() {
        let action = Action::Send(
            Request::Compact(Compacting {
                wait: Some(true),
                keep_recent_tokens: Some(77),
                by_agent: true,
                instructions: Some(3),
                ..Compacting::default()
            }),
            Sent::InBatch,
        );
        let fails = |action: &Action| {
            matches!(action, Action::Send(Request::Compact(Compacting { keep_recent_tokens: Some(10..), .. }), _))
        };
        let simplest = Search::of(1_000).simplest(action, &simpler, &mut |action| fails(action));
        let needed = Compacting { keep_recent_tokens: Some(10), ..Compacting::default() };
        assert_eq!(simplest, Action::Send(Request::Compact(needed), Sent::Alone));
    }
}
