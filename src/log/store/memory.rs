//! A database in memory, for tests and simulations. It does what `postgres` asks of PostgreSQL, and loses connections at the
//! moments that a test names.

use super::{
    facts::Facts,
    rows,
    server::{About, Fault, From, Held, Owner, Rows, Server, Standing},
};
use crate::{ids::SessionId, log::Unfinished};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A database that daemons share.
#[derive(Debug, Clone, Default)]
pub struct Database(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    sessions: BTreeMap<SessionId, Session>,
    /// Daemons whose lock is free.
    gone: BTreeSet<u32>,
    /// Daemons that have died: nothing comes from them any more.
    dead: BTreeSet<u32>,
    /// The next requests are lost so.
    losses: VecDeque<Loss>,
    /// Changes that are on their way after their connection has ended.
    late: Vec<Late>,
    /// The sessions as the standby server has them.
    standby: BTreeMap<SessionId, Session>,
}

#[derive(Debug, Clone)]
struct Session {
    about: About,
    rows: Vec<Vec<u8>>,
    generation: i64,
    epoch: i64,
    owner: Option<u32>,
    running: Vec<Unfinished>,
}

/// A change with the values that it names.
#[derive(Debug, Clone)]
struct Late {
    id: SessionId,
    owner: u32,
    epoch: i64,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Append { first: u64, rows: Vec<Vec<u8>> },
    Rewrite { from: u64, rows: Vec<Vec<u8>> },
    Settle,
}

/// The way in which a request is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The server cannot be reached.
    Unsent,
    /// The connection ends before the server performs it.
    Before,
    /// The server performs it, and its answer is lost.
    After,
    /// The connection ends, and the server performs it later.
    Late,
    /// It is not lost.
    None,
}

/// A daemon that is connected to a database.
#[derive(Debug)]
pub struct Connected {
    database: Database,
    me: u32,
    /// Attempts of a request before it is given up.
    patience: u32,
}

impl Database {
    /// A daemon with a number of its own.
    #[must_use]
    pub fn connected(&self, me: u32, patience: u32) -> Connected {
        self.tables().gone.remove(&me);
        Connected { database: self.clone(), me, patience }
    }

    /// Loses the next requests.
    pub fn lose(&self, losses: impl IntoIterator<Item = Loss>) {
        self.tables().losses.extend(losses);
    }

    /// No request is lost any more.
    pub fn recover(&self) {
        self.tables().losses.clear();
    }

    /// Performs the changes that are on their way.
    pub fn arrive(&self) {
        let mut tables = self.tables();
        for late in mem::take(&mut tables.late) {
            let _ = tables.perform(&late);
        }
    }

    /// The standby server has every change.
    pub fn replicate(&self) {
        let mut tables = self.tables();
        tables.standby = tables.sessions.clone();
    }

    /// The standby server takes over. Changes that it does not have are lost, and those that are on their way do not reach it.
    pub fn fail_over(&self) {
        let mut tables = self.tables();
        tables.sessions = tables.standby.clone();
        tables.late.clear();
    }

    /// A daemon is gone, or has not renewed its row for too long: its sessions are free.
    pub fn is_gone(&self, daemon: u32) {
        self.tables().gone.insert(daemon);
    }

    /// A daemon dies.
    pub fn kill(&self, daemon: u32) {
        let mut tables = self.tables();
        tables.gone.insert(daemon);
        tables.dead.insert(daemon);
    }

    /// The lines of a session, one after the other.
    #[must_use]
    pub fn file(&self, id: &SessionId) -> Option<Vec<u8>> {
        self.tables().sessions.get(id).map(|session| session.rows.concat())
    }

    /// The operations that are recorded for the next owner.
    #[must_use]
    pub fn running(&self, id: &SessionId) -> Vec<Unfinished> {
        self.tables().sessions.get(id).map(|session| session.running.clone()).unwrap_or_default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn session(&mut self, id: &SessionId) -> Result<&mut Session, Fault> {
        self.sessions.get_mut(id).ok_or(Fault::Missing)
    }

    /// Performs a change where the session stands as it names it.
    fn perform(&mut self, Late { id, owner, epoch, change }: &Late) -> Result<Held, Fault> {
        let session = self.session(id)?;
        if session.epoch != *epoch || session.owner != Some(*owner) {
            return Err(session.taken());
        }
        match change {
            Change::Append { first, rows } if *first == session.rows.len() as u64 && rows::are_whole(&session.rows) => {
                session.rows.extend(rows.iter().cloned());
            }
            Change::Append { .. } => return Err(Fault::Changed("its lines are others".to_owned())),
            Change::Rewrite { from, rows } => {
                session.rows.truncate(usize::try_from(*from).unwrap_or(usize::MAX));
                session.rows.extend(rows.iter().cloned());
                session.generation += 1;
            }
            Change::Settle => session.epoch += 1,
        }
        Ok(session.held(id))
    }
}

impl Session {
    fn standing(&self) -> Standing {
        Standing {
            generation: self.generation,
            lines: self.rows.len() as u64,
            bytes: rows::size(&self.rows),
            whole: rows::are_whole(&self.rows),
            name: self.about.name.clone(),
            cwd: self.about.cwd.clone(),
        }
    }

    fn held(&self, id: &SessionId) -> Held {
        Held { id: id.clone(), epoch: self.epoch, standing: self.standing(), left_behind: self.running.clone() }
    }

    /// Whether a daemon has not lost it since. It may have raised the epoch by a request of whose end it did not hear.
    fn is_of(&self, daemon: u32, held: &Held) -> bool {
        self.owner == Some(daemon) && self.epoch >= held.epoch
    }

    fn taken(&self) -> Fault {
        match self.owner {
            Some(owner) => Fault::Owned(Owner { host: "memory".to_owned(), pid: Some(owner), since: String::new() }),
            None => Fault::Changed("another daemon had it meanwhile".to_owned()),
        }
    }
}

impl Connected {
    /// Performs a change, or loses it.
    fn change(&self, held: &Held, change: Change) -> Result<Held, Fault> {
        let mut tables = self.database.tables();
        if tables.dead.contains(&self.me) {
            return Err(Fault::Away("this daemon has died".to_owned()));
        }
        let late = Late { id: held.id.clone(), owner: self.me, epoch: held.epoch, change };
        let cut = || Fault::Cut("the connection has ended".to_owned());
        match tables.losses.pop_front().unwrap_or(Loss::None) {
            Loss::None => tables.perform(&late),
            Loss::Unsent => Err(Fault::Away("no connection".to_owned())),
            Loss::Before => Err(cut()),
            Loss::After => {
                let _ = tables.perform(&late);
                Err(cut())
            }
            Loss::Late => {
                tables.late.push(late);
                Err(cut())
            }
        }
    }

    /// Reads, or does not reach the server.
    fn reach(&self) -> Result<MutexGuard<'_, Tables>, Fault> {
        let mut tables = self.database.tables();
        match tables.losses.pop_front() {
            None | Some(Loss::None) => Ok(tables),
            Some(_) => Err(Fault::Away("no connection".to_owned())),
        }
    }
}

impl Server for Connected {
    fn create(&self, about: &About, batches: &mut Rows<'_>) -> Result<Held, Fault> {
        let mut rows = Vec::new();
        loop {
            let batch = batches().map_err(|error| Fault::Source(error.to_string().into()))?;
            if batch.is_empty() {
                break;
            }
            rows.extend(batch);
        }
        let mut tables = self.reach()?;
        if tables.sessions.contains_key(&about.id) {
            return Err(Fault::Exists);
        }
        let (generation, epoch, owner) = (1, 1, Some(self.me));
        let session = Session { about: about.clone(), rows, generation, epoch, owner, running: Vec::new() };
        let held = session.held(&about.id);
        tables.sessions.insert(about.id.clone(), session);
        Ok(held)
    }

    fn look(&self, id: &SessionId) -> Result<Standing, Fault> {
        Ok(self.reach()?.session(id)?.standing())
    }

    fn take(&self, id: &SessionId) -> Result<Held, Fault> {
        let mut tables = self.reach()?;
        let gone = tables.gone.clone();
        let session = tables.session(id)?;
        match session.owner {
            Some(owner) if owner != self.me && !gone.contains(&owner) => return Err(session.taken()),
            _ => {}
        }
        session.owner = Some(self.me);
        session.epoch += 1;
        Ok(session.held(id))
    }

    fn append(&self, held: &Held, rows: &[Vec<u8>], _: Facts) -> Result<(), Fault> {
        let change = Change::Append { first: held.standing.lines, rows: rows.to_vec() };
        self.change(held, change).map(drop)
    }

    fn rewrite(&self, held: &Held, from: u64, rows: &[Vec<u8>]) -> Result<Standing, Fault> {
        self.change(held, Change::Rewrite { from, rows: rows.to_vec() }).map(|held| held.standing)
    }

    fn settle(&self, held: &Held) -> Result<Held, Fault> {
        // An owner knows its epochs also where it did not hear of the last one.
        let epoch = {
            let mut tables = self.database.tables();
            let session = tables.session(&held.id)?;
            if !session.is_of(self.me, held) {
                return Err(session.taken());
            }
            session.epoch
        };
        let settled = self.change(&Held { epoch, ..held.clone() }, Change::Settle);
        settled.map_err(|fault| match fault {
            Fault::Cut(why) => Fault::Away(why),
            other => other,
        })
    }

    fn read(&self, id: &SessionId, generation: i64, from: From, bytes: u64) -> Result<Vec<Vec<u8>>, Fault> {
        let mut tables = self.reach()?;
        let session = tables.session(id)?;
        if session.generation != generation {
            return Err(Fault::Changed("its owner took lines back".to_owned()));
        }
        let mut read = 0;
        let mut takes = |row: &&Vec<u8>| {
            let takes = read < bytes;
            read += row.len() as u64;
            takes
        };
        let line = |line| usize::try_from(line).unwrap_or(usize::MAX).min(session.rows.len());
        Ok(match from {
            From::Line(from) => session.rows[line(from)..].iter().take_while(&mut takes).cloned().collect(),
            From::Before(to) => session.rows[..line(to)].iter().rev().take_while(&mut takes).cloned().collect(),
        })
    }

    fn record(&self, held: &Held, operations: Vec<Unfinished>) {
        let mut tables = self.database.tables();
        let lives = !tables.dead.contains(&self.me);
        let ours = |session: &&mut Session| lives && session.is_of(self.me, held);
        if let Some(session) = tables.sessions.get_mut(&held.id).filter(ours) {
            session.running = operations;
        }
    }

    fn release(&self, held: &Held) {
        let mut tables = self.database.tables();
        let lives = !tables.dead.contains(&self.me);
        let ours = |session: &&mut Session| lives && session.is_of(self.me, held);
        if let Some(session) = tables.sessions.get_mut(&held.id).filter(ours) {
            session.owner = None;
        }
    }

    fn delete(&self, id: &SessionId) -> Result<(), Fault> {
        self.take(id)?;
        self.reach()?.sessions.remove(id);
        Ok(())
    }

    fn waits(&self, attempt: u32) -> bool {
        attempt < self.patience
    }
}
