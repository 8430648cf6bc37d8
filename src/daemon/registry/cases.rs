//! Single cases of the registry: its bounds, and orders that random interleavings seldom meet.

use super::{
    model::{By, Command, Fake, Load, Mailboxes, Quality},
    *,
};

fn registry() -> Registry<Fake> {
    Registry::new(Fake(Mailboxes::default()))
}

fn load(number: usize, by: By) -> Load {
    Load { number, quality: Quality::Good, by }
}

/// A load by path that is the first of its path.
fn pending(registry: &mut Registry<Fake>, path: &str) -> Ticket {
    registry.load_path(Path::new(path), load(0, By::Path)).ok().flatten().expect("a ticket")
}

/// Opens a session from `/<id>`, and returns its door.
fn open(registry: &mut Registry<Fake>, id: &SessionId) -> usize {
    let steps = registry.load(id, load(0, By::New));
    let [Step::Open { life, door, .. }] = &steps[..] else { panic!("the session is opened") };
    let path = format!("/{}", id.as_str());
    assert!(registry.opened(id, *life, Some(Path::new(&path))).is_empty());
    *door
}

fn refused(steps: &[Step<Fake>]) -> bool {
    matches!(steps, [Step::TooMany(_)])
}

#[test]
fn a_load_by_path_waits_for_a_load_by_id_before_it() {
    let id = SessionId::from("s");
    let mut registry = registry();
    let other = registry.load_path(Path::new("/other"), load(0, By::Path)).ok().flatten().expect("a ticket");
    assert!(registry.load(&id, load(1, By::Id)).is_empty(), "the other path may lead to the session");
    let ticket = registry.load_path(Path::new("/s"), load(2, By::Path)).ok().flatten().expect("a ticket");
    assert!(registry.decide(ticket, Decided::Is(&id)).1.is_empty(), "the load by id is before it");
    let (_, steps) = registry.decide(other, Decided::Nothing);
    assert!(
        matches!(&steps[..], [Step::Open { load: Load { number: 1, .. }, .. }]),
        "the load by id opens the session"
    );
}

#[test]
fn loads_by_path_are_refused_where_too_many_are_pending() {
    let mut registry = registry();
    let tickets: Vec<Ticket> = (0..64).map(|at| pending(&mut registry, &format!("/{at}"))).collect();
    assert!(registry.load_path(Path::new("/more"), load(0, By::Path)).is_err(), "the 65th path");
    assert!(matches!(registry.load_path(Path::new("/7"), load(0, By::Path)), Ok(None)), "a path that is pending");
    registry.decide(tickets[0], Decided::Nothing);
    pending(&mut registry, "/more");
}

#[test]
fn requests_are_refused_where_too_many_wait_for_a_load_by_path() {
    let (mut registry, id) = (registry(), SessionId::from("s"));
    pending(&mut registry, "/s");
    // The load by path waits, too.
    for number in 1..MOST_WAITING {
        assert!(registry.command(&id, Command::Append(number)).is_empty(), "{number}");
    }
    assert!(refused(&registry.command(&id, Command::Append(0))));
    assert!(refused(&registry.delete(&id, 0)));
    assert!(registry.load_path(Path::new("/s"), load(0, By::Path)).is_err());
}

#[test]
fn requests_are_refused_where_too_many_wait_for_a_session_that_is_being_opened() {
    let (mut registry, id) = (registry(), SessionId::from("s"));
    assert_eq!(registry.load(&id, load(0, By::New)).len(), 1);
    for number in 0..MOST_WAITING {
        assert!(registry.command(&id, Command::Append(number)).is_empty(), "{number}");
    }
    assert!(refused(&registry.command(&id, Command::Append(0))));
}

#[test]
fn a_session_is_finished_only_where_no_request_waits_for_it() {
    let (mut registry, ids) = (registry(), ["a", "b"].map(SessionId::from));
    let doors = ids.each_ref().map(|id| open(&mut registry, id));
    let idle = |registry: &Registry<Fake>| {
        let mut found: Vec<usize> = registry.doors_without_requests().copied().collect();
        found.sort_unstable();
        found
    };
    assert_eq!(idle(&registry), doors);
    // A load of the path that the session is open from.
    let ticket = pending(&mut registry, "/a");
    assert_eq!(idle(&registry), doors[1..]);
    registry.stop_holding(ticket);
    assert_eq!(idle(&registry), doors);
    // A request to a session that is closed and may be what a path leads to.
    pending(&mut registry, "/other");
    registry.command(&ids[1], Command::Close(0));
    assert_eq!(idle(&registry), doors);
    assert!(registry.command(&ids[1], Command::Append(1)).is_empty(), "it waits for the path");
    assert_eq!(idle(&registry), doors[..1]);
    assert_eq!(registry.doors().count(), 2);
}

#[test]
fn the_last_sessions_that_ended_are_remembered_for_a_cancel() {
    let mut registry = registry();
    let ids: Vec<SessionId> = (0..=REMEMBERED).map(|at| SessionId::from(format!("s{at}").as_str())).collect();
    for id in &ids {
        let steps = registry.load(id, load(0, By::New));
        let [Step::Open { life, .. }] = &steps[..] else { panic!("the session is opened") };
        registry.retire(id, *life);
    }
    assert!(matches!(registry.cancel(&ids[0]), Cancel::NotOpen), "it was forgotten");
    for id in &ids[1..] {
        assert!(matches!(registry.cancel(id), Cancel::Nothing(none) if none.is_empty()), "{id:?}");
    }
    assert!(matches!(registry.cancel(&SessionId::from("never")), Cancel::NotOpen));
}
