//! The tokens that requests are charged.

use super::*;

#[test]
fn a_request_that_was_sent_and_not_reported_is_charged_its_input_by_an_estimate() {
    let charges = |world: &World| -> Vec<(u64, bool)> {
        let spent = |update: &Update| match update {
            Update::Spent(spent) => Some((spent.usage.context_tokens(), spent.estimated)),
            _ => None,
        };
        world.updates().iter().filter_map(spent).collect()
    };
    let mut request = at_provider();
    request.limits.input = 700;
    request.origin.trigger = Trigger::Manual;
    let world = World::new([Reply::Silence(vec![text("half")])]);
    world.ask_and_drop(&request);
    assert_eq!(charges(&world), [], "a client asked for it");
    request.origin.trigger = Trigger::Idle;
    // Cancelled while it is answered.
    let world = World::new([Reply::Silence(vec![text("half")])]);
    world.ask_and_drop(&request);
    assert_eq!(charges(&world), [(700, true)]);
    // Refused: nothing is billed.
    request.retry = Policy::NEVER;
    for kind in [TroubleKind::Broken, TroubleKind::Throttled, TroubleKind::Unreachable, TroubleKind::Denied] {
        let world = World::new([fails(kind)]);
        assert!(world.ask(&request).is_err());
        assert_eq!(charges(&world), [], "{kind:?}");
    }
    // Broken off.
    let world = World::new([fails(TroubleKind::CutOff)]);
    assert!(world.ask(&request).is_err());
    assert_eq!(charges(&world), [(700, true)]);
    // Answered without a report.
    let mut unreported = answer("hi");
    unreported.usage = Usage::default();
    let world = World::new([Reply::Ends(Vec::new(), Ok(unreported))]);
    assert!(world.ask(&request).is_ok());
    assert_eq!(charges(&world), [(700, true)]);
    // Answered with a report: it counts unless a request of this size cannot have cost that.
    for (reported, charged) in
        [(12, (702, true)), (175, (175, false)), (66_800, (66_800, false)), (66_801, (702, true))]
    {
        let mut counted = answer("hi");
        counted.usage = Usage { input: reported - 2, output: 2, ..Usage::default() };
        let world = World::new([Reply::Ends(Vec::new(), Ok(counted))]);
        assert!(world.ask(&request).is_ok());
        assert_eq!(charges(&world), [charged], "{reported}");
    }
}

#[test]
fn a_summary_ahead_counts_for_no_less_than_was_sent() {
    for (trigger, left) in [(Trigger::Threshold, 88), (Trigger::Speculative, 80)] {
        let allowance = Arc::new(Allowance::new(100));
        let mut request = at_provider();
        request.origin.trigger = trigger;
        request.limits.input = 20;
        request.limits.tokens = Some((allowance.clone(), 90));
        let world = World::new([answers("hi")]);
        world.ask(&request).expect("an answer");
        assert!(allowance.has(left).is_ok() && allowance.has(left + 1).is_err(), "{trigger:?}");
        let sent =
            world.updates().into_iter().find_map(|it| if let Update::Spent(it) = it { Some(it.sent) } else { None });
        assert_eq!(sent, Some(20));
    }
}

#[test]
fn a_summary_ahead_that_fails_without_a_report_is_at_stake_unless_it_evidently_was_not_read() {
    let broken = |reach| Reply::Ends(Vec::new(), Err(Trouble::new(TroubleKind::Broken, "").reaching(reach)));
    let cut = || fails(TroubleKind::CutOff);
    for (trigger, reply, at_stake, spent, left) in [
        (Trigger::Speculative, broken(Reach::Refused), Some(20), 0, 80),
        (Trigger::Speculative, broken(Reach::Sent), Some(20), 0, 80),
        (Trigger::Speculative, broken(Reach::Unsent), None, 0, 100),
        (Trigger::Threshold, broken(Reach::Refused), None, 0, 100),
        // It is charged already.
        (Trigger::Speculative, cut(), None, 20, 80),
    ] {
        let allowance = Arc::new(Allowance::new(100));
        let mut request = at_provider();
        (request.origin.trigger, request.limits.input, request.retry) = (trigger, 20, Policy::NEVER);
        request.limits.tokens = Some((allowance.clone(), 90));
        let world = World::new([reply]);
        world.ask(&request).expect_err("no answer");
        let updates = world.updates();
        let found = updates.iter().find_map(|it| if let Update::AtStake(it) = it { Some(*it) } else { None });
        let costs = updates.iter().filter_map(|it| if let Update::Spent(it) = it { Some(it) } else { None });
        assert_eq!((found, costs.map(|it| it.usage.context_tokens()).sum::<u64>()), (at_stake, spent), "{trigger:?}");
        assert!(allowance.has(left).is_ok() && allowance.has(left + 1).is_err(), "{trigger:?} {left}");
    }
}
