//! Random daemons on one database: no answered append is lost, none is doubled, and nobody writes behind a successor.

use super::*;
use crate::{
    conversation::entry::Stamps,
    ids::SessionId,
    log::{
        bytes::Shared,
        store::{
            memory::{Connected, Database, Loss},
            server::About,
        },
    },
};
use proptest::prelude::*;

/// The attempts of a request. Longer runs of losses are refusals.
const PATIENCE: u32 = 3;

/// A local file in memory.
#[derive(Debug)]
struct Local(Shared);

impl Medium for Local {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.cut(usize::try_from(length).expect("a length"));
        Ok(())
    }

    fn keep_torn(&mut self, _: &[u8]) -> io::Result<PathBuf> {
        Ok(PathBuf::new())
    }

    fn remove_torn(&mut self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8], _: &str) -> io::Result<Bytes> {
        self.0 = bytes.to_vec().into();
        Ok(Bytes::Memory(self.0.clone()))
    }

    fn wait_for_others(&mut self) {}

    fn stamp(&mut self) -> Stamp {
        Stamps::system().stamp()
    }

    fn register(&self) -> Arc<dyn Register> {
        unreachable!("the store has it")
    }
}

/// A session that a daemon has open, as a writer uses it.
struct Open {
    medium: Stored<Local>,
    file: Shared,
}

impl Open {
    fn of(database: &Database, server: Connected, held: Held) -> Self {
        let file: Shared = database.file(&held.id).expect("a session").into();
        let bytes = Bytes::Memory(file.clone());
        let medium = Stored::new(PathBuf::from("s"), Local(file.clone()), Arc::new(server), held, bytes);
        Self { medium, file }
    }

    /// Appends, and takes the local bytes of a failed append back.
    fn append(&mut self, text: &str) -> io::Result<()> {
        let start = self.file.length() as u64;
        let appended = self.medium.append(text.as_bytes());
        if appended.is_err() && self.file.length() as u64 > start {
            self.medium.cut(start).expect("the end is local");
        }
        appended
    }

    fn local(&self) -> Vec<u8> {
        self.file.to_vec()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Open(usize),
    Append(usize, u8),
    Close(usize),
    /// The process dies, and its lock is free.
    Kill(usize),
    /// The daemon is paused for so long that its sessions are free. It goes on later.
    Stall(usize),
    Lose(Vec<Loss>),
    Arrive,
    Replicate,
    FailOver,
}

fn losses() -> impl Strategy<Value = Vec<Loss>> {
    let loss = prop_oneof![
        3 => Just(Loss::None),
        2 => Just(Loss::Unsent),
        2 => Just(Loss::Before),
        2 => Just(Loss::After),
        2 => Just(Loss::Late),
    ];
    prop::collection::vec(loss, 1..7)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let daemon = 0..2_usize;
    let step = prop_oneof![
        3 => daemon.clone().prop_map(Step::Open),
        9 => (daemon.clone(), 1..4_u8).prop_map(|(daemon, lines)| Step::Append(daemon, lines)),
        1 => daemon.clone().prop_map(Step::Close),
        1 => daemon.clone().prop_map(Step::Kill),
        1 => daemon.prop_map(Step::Stall),
        4 => losses().prop_map(Step::Lose),
        2 => Just(Step::Arrive),
        3 => Just(Step::Replicate),
        1 => Just(Step::FailOver),
    ];
    prop::collection::vec(step, 1..60)
}

fn id() -> SessionId {
    "s".into()
}

fn founded() -> Database {
    let database = Database::default();
    let about = About { id: id(), name: "a/b.jsonl".into(), cwd: "/".into(), created: String::new(), parent: None };
    let mut rows = vec![vec![b"header\n".to_vec()]];
    let held = database.connected(99, 0).create(&about, &mut || Ok(rows.pop().unwrap_or_default())).expect("made");
    database.connected(99, 0).release(&held);
    database.replicate();
    database
}

/// The texts of appends by their outcomes.
#[derive(Default)]
struct Outcomes {
    answered: Vec<String>,
    /// Refused ones of each daemon since its last answer.
    refused: [Vec<String>; 2],
    ever_refused: Vec<String>,
    /// Refused ones of a daemon that went without another word: their rows may be there.
    doubtful: Vec<String>,
}

fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let database = founded();
    let mut daemons: [Option<Open>; 2] = [None, None];
    let mut outcomes = Outcomes::default();
    let mut next = 0;
    for step in steps {
        match step {
            Step::Open(at) if daemons[*at].is_none() => {
                let number = u32::try_from(*at).expect("a number");
                let server = database.connected(number, PATIENCE);
                if let Ok(held) = server.take(&id()) {
                    // A successor comes before its owner has removed the rows that it refused.
                    outcomes.refused.iter_mut().for_each(|refused| outcomes.doubtful.append(refused));
                    daemons[*at] = Some(Open::of(&database, database.connected(number, PATIENCE), held));
                }
            }
            Step::Append(at, lines) => {
                let Some(open) = &mut daemons[*at] else { continue };
                next += 1;
                let text: String = (0..*lines).map(|line| format!("{next}.{line}\n")).collect();
                let before = open.local();
                match open.append(&text) {
                    Ok(()) => {
                        outcomes.answered.push(text);
                        outcomes.refused[*at].clear();
                        let there = database.file(&id()).expect("a session");
                        prop_assert_eq!(&there, &open.local(), "an answered append is in the store");
                    }
                    Err(_) => {
                        outcomes.refused[*at].push(text.clone());
                        outcomes.ever_refused.push(text);
                        prop_assert_eq!(before, open.local(), "nothing of a refused one is in the file");
                    }
                }
            }
            Step::Close(at) => {
                // It is closed also where the server is away and refused rows cannot be removed.
                outcomes.doubtful.append(&mut outcomes.refused[*at]);
                drop(daemons[*at].take());
            }
            Step::Kill(at) => {
                if let Some(open) = daemons[*at].take() {
                    outcomes.doubtful.append(&mut outcomes.refused[*at]);
                    std::mem::forget(open);
                    database.is_gone(u32::try_from(*at).expect("a number"));
                }
            }
            Step::Stall(at) => {
                database.is_gone(u32::try_from(*at).expect("a number"));
                outcomes.doubtful.append(&mut outcomes.refused[*at]);
            }
            Step::Lose(losses) => database.lose(losses.iter().copied()),
            Step::Arrive => database.arrive(),
            Step::Replicate => database.replicate(),
            Step::FailOver => {
                database.fail_over();
                let there = text(&database);
                let has = |text: &String| there.lines().any(|line| text.lines().next() == Some(line));
                outcomes.answered.retain(has);
                outcomes.refused.iter_mut().for_each(|refused| outcomes.doubtful.append(refused));
                // The standby may have rows that were removed since.
                outcomes.doubtful.extend(outcomes.ever_refused.iter().filter(|text| has(text)).cloned());
            }
            Step::Open(_) => {}
        }
    }
    // The last owner settles what is open, as it does at its next append or at its end.
    database.recover();
    for open in daemons.iter_mut().flatten() {
        next += 1;
        let text = format!("{next}\n");
        if open.append(&text).is_ok() {
            outcomes.answered.push(text);
        }
    }
    drop(daemons);
    database.arrive();
    let file = String::from_utf8(database.file(&id()).expect("a session")).expect("text");
    let lines: Vec<&str> = file.lines().skip(1).collect();
    let wanted: Vec<&str> = outcomes.answered.iter().flat_map(|text| text.lines()).collect();
    let doubtful: Vec<&str> = outcomes.doubtful.iter().flat_map(|text| text.lines()).collect();
    let certain: Vec<&str> = lines.iter().copied().filter(|line| !doubtful.contains(line)).collect();
    prop_assert_eq!(certain, wanted, "each answered append is there once and in order, and no other");
    for line in &doubtful {
        prop_assert!(lines.iter().filter(|it| it == &line).count() <= 1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 10_000 }))]

    #[test]
    fn every_answered_append_is_there_once_whatever_happens_to_the_connections(steps in steps()) {
        play(&steps)?;
    }
}

fn opened(patience: u32) -> (Database, Open) {
    let database = founded();
    let server = database.connected(1, patience);
    let held = server.take(&id()).expect("free");
    let open = Open::of(&database, database.connected(1, patience), held);
    (database, open)
}

fn text(database: &Database) -> String {
    String::from_utf8(database.file(&id()).expect("a session")).expect("text")
}

#[test]
fn a_refused_append_of_the_same_size_is_not_taken_for_the_next_one() {
    let (database, mut open) = opened(0);
    database.lose([Loss::After]);
    open.append("refused\n").expect_err("no answer came");
    assert_eq!(text(&database), "header\nrefused\n");
    open.append("answered\n").expect("the server answers");
    assert_eq!(text(&database), "header\nanswered\n");
}

#[test]
fn bytes_of_another_program_in_the_cache_file_refuse_an_append() {
    let (database, mut open) = opened(0);
    open.file.append(b"of another program\n");
    let error = StoreError::io(Path::new("s"), "x")(open.append("one\n").expect_err("its file is another one"));
    assert!(matches!(error, StoreError::Changed { .. }), "{error:?}");
    assert_eq!(text(&database), "header\n");
}

#[test]
fn an_append_whose_answer_was_lost_is_there_once() {
    let (database, mut open) = opened(1);
    database.lose([Loss::After]);
    open.append("one\n").expect("found by its line");
    open.append("two\n").expect("the server answers");
    assert_eq!(text(&database), "header\none\ntwo\n");
}

#[test]
fn a_change_that_arrives_after_its_repetition_does_nothing() {
    let (database, mut open) = opened(1);
    database.lose([Loss::Late]);
    open.append("one\n").expect("repeated");
    database.arrive();
    assert_eq!(text(&database), "header\none\n");
}

#[test]
fn an_owner_that_was_replaced_is_told_who_has_the_session() {
    let (database, mut open) = opened(1);
    database.is_gone(1);
    let held = database.connected(2, 1).take(&id()).expect("free");
    let mut successor = Open::of(&database, database.connected(2, 1), held);
    successor.append("two\n").expect("it is the owner");
    let refused = open.append("one\n").expect_err("it is not the owner any more");
    let error = StoreError::io(Path::new("s"), "x")(refused);
    assert!(matches!(error, StoreError::Owned { pid: Some(2), .. }), "{error:?}");
    drop(open);
    successor.append("three\n").expect("the end of the first one gives up nothing");
    assert_eq!(text(&database), "header\ntwo\nthree\n");
}

#[test]
fn refused_rows_are_removed_when_the_session_is_closed() {
    let (database, mut open) = opened(0);
    database.lose([Loss::After]);
    open.append("refused\n").expect_err("no answer came");
    drop(open);
    assert_eq!(text(&database), "header\n");
}

#[test]
fn a_last_line_without_its_newline_is_finished_or_cut() {
    let (database, mut open) = opened(0);
    open.append("one").expect("written");
    open.append("\n").expect("finished");
    open.append("two\nthr").expect("written");
    open.medium.cut(11 + 4).expect("cut");
    assert_eq!(text(&database), "header\none\ntwo\n");
    assert_eq!(open.local(), text(&database).as_bytes());
}
