//! Tests of learned windows.

use super::*;
use jiff::Timestamp;
use serde_json::{Value, json};

fn model(name: &str) -> ModelRef {
    ModelRef::parse(name).expect("a name")
}

fn settings(json: Value) -> Settings {
    serde_json::from_value(json).expect("settings")
}

fn at(url: &str) -> Settings {
    settings(json!({"models": [{"provider": "p", "id": "m", "baseUrl": url}]}))
}

/// A refusal of a model in a session.
fn refusal(settings: &Settings, name: &str, window: u64, session: &str) -> Change {
    let server = Server::of(settings, &model(name));
    Change::Learned(LearnedWindow::new(server, window, WindowOrigin::Refusal, Timestamp::UNIX_EPOCH, &session.into()))
}

fn everywhere(tokens: u64) -> Option<Stated> {
    Some(Stated { tokens, reach: Reach::Everywhere })
}

fn single(tokens: u64) -> Option<Stated> {
    Some(Stated { tokens, reach: Reach::WhereNoneIsNamed })
}

#[test]
fn a_window_counts_everywhere_in_its_session_and_after_a_second_refusal_in_all() {
    let none = Settings::default();
    let mut shared = Learned::default();
    assert!(shared.apply(&refusal(&none, "p/m", 8_192, "one")));
    let stated = |learned: &Learned, session: &str| {
        learned.clone().in_session(&session.into()).taught(&none, &model("p/m")).stated
    };
    assert_eq!((stated(&shared, "one"), stated(&shared, "two")), (everywhere(8_192), single(8_192)));
    assert_eq!(shared.taught(&none, &model("p/m")).stated, single(8_192), "outside of any session");
    assert!(shared.apply(&refusal(&none, "p/m", 8_192, "one")));
    assert_eq!((stated(&shared, "two"), shared.all().next().map(|row| row.refusals)), (everywhere(8_192), Some(2)));
    shared.apply(&refusal(&none, "p/m", 9_000, "two"));
    assert_eq!(
        (stated(&shared, "one"), stated(&shared, "two")),
        (everywhere(8_192), everywhere(9_000)),
        "another number"
    );
    shared.apply(&refusal(&none, "p/m", 9_000, "three"));
    assert_eq!(stated(&shared, "one"), everywhere(9_000), "the newest of two that are confirmed");
}

#[test]
fn sessions_that_are_told_different_windows_keep_their_own() {
    let none = Settings::default();
    let mut shared = Learned::default();
    let stated = |learned: &Learned, session: &str| {
        learned.clone().in_session(&session.into()).taught(&none, &model("p/m")).stated
    };
    for (session, window) in [("one", 16_000), ("two", 16_384)] {
        assert!(shared.apply(&refusal(&none, "p/m", window, session)));
    }
    assert_eq!((stated(&shared, "one"), stated(&shared, "two")), (everywhere(16_000), everywhere(16_384)));
    assert_eq!(stated(&shared, "three"), single(16_384));
    shared.apply(&refusal(&none, "p/m", 16_000, "three"));
    assert_eq!((stated(&shared, "two"), stated(&shared, "four")), (everywhere(16_000), everywhere(16_000)));
    // A session that is told another number takes the newest, and a file keeps them all in their order.
    shared.apply(&refusal(&none, "p/m", 12_000, "two"));
    let read: Learned = serde_json::from_value(json!(shared)).expect("windows");
    for learned in [&shared, &read] {
        assert_eq!((stated(learned, "two"), stated(learned, "four")), (everywhere(12_000), everywhere(16_000)));
        assert_eq!(learned.all().count(), 2);
    }
    for number in 0..40 {
        shared.apply(&refusal(&none, "p/m", 2_000 + number, &format!("session {number}")));
    }
    assert_eq!((shared.all().count(), stated(&shared, "four")), (16, everywhere(16_000)), "a confirmed one stays");
}

#[test]
fn a_window_belongs_to_a_model_at_an_address() {
    let mut learned = Learned::default();
    let (one, other) = (at("http://me:hush@one/v1"), at("http://two/v1"));
    learned.apply(&refusal(&one, "p/m", 8_192, "s"));
    let window =
        |learned: &Learned, settings: &Settings| learned.row(settings, &model("p/m")).map(|it| it.context_window);
    assert_eq!(window(&learned, &at("http://one/v1")), Some(8_192), "credentials are no part of the address");
    assert_eq!((window(&learned, &other), window(&learned, &Settings::default())), (None, None));
    learned.apply(&refusal(&Settings::default(), "p/m", 4_096, "s"));
    assert_eq!((window(&learned, &one), window(&learned, &Settings::default())), (Some(8_192), Some(4_096)));
    assert!(!serde_json::to_string(&learned).expect("JSON").contains("hush"));
    // A file of an older version says no address: its window counts at each, and the next refusal takes its place.
    let mut old: Learned = serde_json::from_value(json!({"p/m": 8_192})).expect("windows");
    assert_eq!((window(&old, &one), window(&old, &Settings::default())), (Some(8_192), Some(8_192)));
    old.apply(&refusal(&one, "p/m", 8_192, "s"));
    assert_eq!((window(&old, &one), window(&old, &other)), (Some(8_192), None));
    assert_eq!(old.all().map(|row| row.refusals).collect::<Vec<_>>(), [2], "the old one counts as one refusal");
}

#[test]
fn a_larger_request_that_succeeds_disproves_a_window_at_its_address() {
    let (one, other) = (at("http://one"), at("http://two"));
    let mut learned = Learned::default();
    for settings in [&one, &other] {
        learned.apply(&refusal(settings, "p/m", 8_192, "s"));
    }
    let accepted = |tokens| Change::Accepted(Server::of(&one, &model("p/m")), tokens);
    learned.apply(&accepted(8_192));
    assert_eq!(learned.all().count(), 2, "it is as large");
    assert!(learned.apply(&accepted(8_193)));
    let left: Vec<_> = learned.all().map(|row| row.base_url.url()).collect();
    assert_eq!(left, [Some("http://two")]);
    assert!(!learned.apply(&accepted(8_193)), "there is nothing more to disprove");
}

#[test]
fn a_window_that_was_seen_belongs_to_one_model_and_can_be_disproved() {
    let none = Settings::default();
    let mut learned = Learned::default();
    learned.see(&model("p/m"), 4_096);
    let taught = |learned: &Learned, name: &str| learned.taught(&none, &model(name));
    assert_eq!(taught(&learned, "p/m"), Taught { stated: None, seen: Some(4_096) });
    assert_eq!(taught(&learned, "p/other"), Taught::default());
    let mut shared = Learned::default();
    shared.apply(&refusal(&none, "p/m", 8_192, "s"));
    learned.update(shared);
    assert_eq!(taught(&learned, "p/m"), Taught { stated: single(8_192), seen: Some(4_096) });
    let accepted = |name: &str, tokens| Change::Accepted(Server::of(&none, &model(name)), tokens);
    learned.apply(&accepted("p/other", 5_000));
    learned.apply(&accepted("p/m", 4_096));
    assert_eq!(taught(&learned, "p/m").seen, Some(4_096));
    assert!(learned.apply(&accepted("p/m", 4_097)));
    assert_eq!(taught(&learned, "p/m").seen, None);
    learned.see(&model("p/m"), 20);
    assert_eq!(taught(&learned, "p/m").seen, None, "no window is that small");
}

#[test]
fn a_stated_window_takes_the_place_of_one_that_was_seen() {
    let none = Settings::default();
    let mut learned = Learned::default().in_session(&"s".into());
    learned.see(&model("p/m"), 4_096);
    learned.apply(&refusal(&none, "p/other", 8_192, "s"));
    learned.apply(&refusal(&none, "p/m", 20, "s"));
    assert_eq!(learned.taught(&none, &model("p/m")), Taught { stated: None, seen: Some(4_096) });
    learned.apply(&refusal(&none, "p/m", 8_192, "s"));
    assert_eq!(learned.taught(&none, &model("p/m")), Taught { stated: everywhere(8_192), seen: None });
}

#[test]
fn a_number_that_can_be_no_window_is_not_learned() {
    for (window, plausible) in [(1_023, false), (1_024, true), (20_000_000, true), (20_000_001, false)] {
        let mut learned = Learned::default();
        assert_eq!(learned.apply(&refusal(&Settings::default(), "p/m", window, "s")), plausible, "{window}");
        assert_eq!(learned.all().count(), usize::from(plausible));
        let old: Learned = serde_json::from_value(json!({"p/m": window})).expect("windows");
        assert_eq!(old.all().count(), usize::from(plausible));
    }
}

#[test]
fn forgetting_reaches_every_address_of_a_model_and_what_a_session_saw() {
    let mut shared = Learned::default();
    for (settings, name) in [(at("http://one"), "p/m"), (at("http://two"), "p/m"), (at("http://one"), "p/other")] {
        shared.apply(&refusal(&settings, name, 8_192, "s"));
    }
    let mut sessions = ["p/m", "p/other"].map(|name| {
        let mut session = shared.clone().in_session(&"s".into());
        session.see(&model(name), 4_096);
        session
    });
    shared.apply(&Change::Forgotten(model("p/m")));
    assert_eq!(shared.all().map(|row| row.model.to_string()).collect::<Vec<_>>(), ["p/other"]);
    sessions.iter_mut().for_each(|session| session.update(shared.clone()));
    let seen = |at: usize, name: &str| sessions[at].taught(&Settings::default(), &model(name)).seen;
    assert_eq!((seen(0, "p/m"), seen(1, "p/other")), (None, Some(4_096)));
}

#[test]
fn a_limit_below_an_accepted_size_is_not_learned_until_that_is_forgotten() {
    let (one, other) = (at("http://one"), at("http://two"));
    let mut learned = Learned::default();
    let accepted = |settings: &Settings, tokens| Change::Accepted(Server::of(settings, &model("p/m")), tokens);
    assert!(learned.apply(&accepted(&one, 9_000)) && !learned.apply(&accepted(&one, 8_999)));
    assert!(!learned.apply(&refusal(&one, "p/m", 8_999, "s")), "the model took more");
    assert!(learned.apply(&refusal(&one, "p/m", 9_000, "s")) && learned.apply(&refusal(&other, "p/m", 8_192, "s")));
    assert!(learned.apply(&refusal(&one, "p/other", 8_192, "s")), "of another model");
    let read: Learned = serde_json::from_value(json!(learned)).expect("windows");
    assert_eq!(read, learned);
    learned.apply(&Change::Forgotten(model("p/m")));
    assert!(learned.apply(&refusal(&one, "p/m", 8_192, "s")));
    // A file of an older version names no server.
    let unknown = Server { model: model("p/old"), address: Address::Unknown };
    assert!(learned.apply(&Change::Accepted(unknown, 9_000)) && !learned.apply(&refusal(&one, "p/old", 8_192, "s")));
}

/// A server that cuts its prompts reads less than it did before: its limit was changed.
#[test]
fn a_cut_prompt_counts_for_more_than_an_accepted_size() {
    let (one, mut learned) = (at("http://one"), Learned::default());
    learned.apply(&Change::Accepted(Server::of(&one, &model("p/m")), 9_000));
    let server = Server::of(&one, &model("p/m"));
    let row = LearnedWindow::new(server, 4_096, WindowOrigin::Saturation, Timestamp::UNIX_EPOCH, &"s".into());
    assert!(learned.apply(&Change::Learned(row)));
    assert!(learned.apply(&refusal(&one, "p/m", 4_000, "s")));
}

#[test]
fn the_oldest_of_too_many_accepted_sizes_go() {
    let mut learned = Learned::default();
    let server = |number: u64| Server { model: model(&format!("p/m{number}")), address: Address::Usual };
    for number in 0..1_000 {
        learned.apply(&Change::Accepted(server(number), 9_000));
    }
    let none = Settings::default();
    assert!(learned.apply(&refusal(&none, "p/m0", 8_192, "s")));
    assert!(!learned.apply(&refusal(&none, "p/m999", 8_192, "s")));
}
