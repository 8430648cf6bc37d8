//! A store in PostgreSQL, or in a database that speaks its protocol.
//!
//! Appends of all sessions go through a few connections (`lanes`), each of which sends those that wait together (`batch`). A
//! further connection is for reading, taking and releasing, and one for changes of several statements. One more holds a lock, by
//! which others see that this daemon lives (`keeper`). No request needs a state of its connection, so all but the keeper may go through a pooler.

mod appending;
mod asking;
mod batch;
mod connection;
mod faults;
mod health;
mod keeper;
mod lanes;
mod lines;
mod listing;
mod owning;
mod schema;

pub use health::Outage;
pub use listing::{ListOrder, Listed};

use super::{
    address::Address,
    facts::Facts,
    server::{About, Fault, From, Held, Rows, Server, Standing},
};
use crate::{ids::SessionId, log::Unfinished};
use asking::certain;
use batch::Order;
use connection::Connection;
use health::Health;
use lanes::Lanes;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, atomic::AtomicBool, mpsc},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, watch},
};
use tokio_postgres::types::{ToSql, Type};

/// The time for which a request waits for a server that is away.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most attempts of one request: they take ten seconds, where each fails at once.
const MOST_ATTEMPTS: u32 = 22;

/// This daemon, as others see it in the store.
#[derive(Debug, Clone)]
pub struct Me {
    /// A fresh id.
    pub id: String,
    /// The number of its lock.
    pub lock: i64,
    /// The name of its machine.
    pub host: String,
    /// Its process.
    pub pid: u32,
}

/// A store in PostgreSQL.
pub struct Postgres {
    inner: Arc<Inner>,
    lanes: Lanes,
}

/// The parts that the tasks share.
struct Inner {
    runtime: Handle,
    me: Me,
    address: Address,
    /// For reading, taking and releasing.
    common: Connection,
    /// For changes of several statements, one after the other.
    long: AsyncMutex<Connection>,
    /// The identity of the store, once its tables were checked.
    identity: OnceLock<String>,
    checking: AsyncMutex<()>,
    /// The keeper's lock keeps others out.
    locks: AtomicBool,
    /// The server tells of new rows.
    notifies: AtomicBool,
    /// The daemon is registered.
    registered: watch::Sender<Registered>,
    health: Health,
    followed: Mutex<HashMap<String, Follow>>,
    /// The sessions that this daemon has open, with the epochs in which it took them; zero for one that it is about to open.
    open: Mutex<HashMap<String, i64>>,
}

/// Whether the row of this daemon is there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Registered {
    NotYet,
    Yes,
    /// The server refuses it.
    Refused(Fault),
}

/// A session that is followed.
struct Follow {
    /// The lines that were seen last, with their generation.
    seen: (i64, i64),
    tell: Box<dyn Fn() + Send>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("address", &self.inner.address).finish_non_exhaustive()
    }
}

impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.address.fmt(f)
    }
}

/// A parameter of a statement with its type.
type Typed<'a> = (&'a (dyn ToSql + Sync), Type);

impl Postgres {
    /// A store at an address. Nothing is asked of it yet.
    #[must_use]
    pub fn new(address: Address, me: Me, runtime: Handle) -> Arc<Self> {
        let inner = Arc::new(Inner {
            common: Connection::new(address.clone()),
            long: AsyncMutex::new(Connection::new(address.clone())),
            runtime: runtime.clone(),
            me,
            address,
            identity: OnceLock::new(),
            checking: AsyncMutex::default(),
            locks: AtomicBool::new(false),
            notifies: AtomicBool::new(false),
            registered: watch::channel(Registered::NotYet).0,
            health: Health::default(),
            followed: Mutex::default(),
            open: Mutex::default(),
        });
        let lanes = Lanes::new(&inner);
        Arc::new(Self { inner, lanes })
    }

    /// Starts to own sessions: this daemon is registered, and renews that.
    pub fn keep(&self) {
        keeper::start(&self.inner);
    }

    /// The identity of the store. Its tables are made or checked before.
    ///
    /// # Errors
    /// When the server cannot be reached, or the tables are not those of this version.
    pub fn identity(&self) -> Result<String, Fault> {
        let inner = self.inner.clone();
        self.wait(async move {
            inner.ready().await?;
            Ok(inner.identity.get().cloned().unwrap_or_default())
        })
    }

    /// The function that learns of outages.
    pub fn on_outage(&self, tell: impl Fn(&Outage) + Send + Sync + 'static) {
        let _ = self.inner.health.tell.set(Box::new(tell));
    }

    /// Calls a function after new rows of a session, until it is unfollowed.
    pub fn follow(&self, id: &SessionId, tell: impl Fn() + Send + 'static) {
        let follow = Follow { seen: (0, 0), tell: Box::new(tell) };
        lock(&self.inner.followed).insert(id.as_str().to_owned(), follow);
        // Its owner tells of its rows from here on, and not from the next renewal.
        let inner = self.inner.clone();
        self.inner.runtime.spawn(async move { keeper::watch(&inner).await });
    }

    /// Ends the calls for a session.
    pub fn unfollow(&self, id: &SessionId) {
        lock(&self.inner.followed).remove(id.as_str());
    }

    /// The session with this name.
    ///
    /// # Errors
    /// `Missing` where there is none.
    pub fn id_of(&self, name: &str) -> Result<SessionId, Fault> {
        if name.contains('\0') {
            return Err(Fault::Missing);
        }
        self.repeat(|| {
            let (inner, name) = (self.inner.clone(), name.to_owned());
            async move {
                let rows = inner.ask("SELECT id FROM @.session WHERE name = $1", &[(&name, Type::TEXT)]).await?;
                let id: String = rows.first().ok_or(Fault::Missing)?.get(0);
                Ok(SessionId::from(id.as_str()))
            }
        })
    }

    /// Lists sessions, those that were changed last first.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn list(&self, order: &ListOrder) -> Result<Vec<Listed>, Fault> {
        self.repeat(|| {
            let (inner, order) = (self.inner.clone(), order.clone());
            async move { listing::list(&inner, &order).await }
        })
    }

    /// Opens a session. The keeper gives up what this daemon owns and has not open.
    fn opening(&self, id: &SessionId, open: impl FnOnce() -> Result<Held, Fault>) -> Result<Held, Fault> {
        lock(&self.inner.open).insert(id.as_str().to_owned(), 0);
        let opened = open();
        let mut open = lock(&self.inner.open);
        match &opened {
            Ok(held) => drop(open.insert(id.as_str().to_owned(), held.epoch)),
            Err(_) => drop(open.remove(id.as_str())),
        }
        drop(open);
        opened
    }

    fn created(&self, about: &About, rows: &mut Rows<'_>) -> Result<Held, Fault> {
        // The rows are read once, so the server has to be there before.
        self.repeat(|| {
            let inner = self.inner.clone();
            async move {
                inner.ready().await?;
                let long = inner.long.lock().await;
                inner.connected(&long).await.map(drop)
            }
        })?;
        let (send, mut batches) = tokio::sync::mpsc::channel(1);
        let (tell, told) = mpsc::channel();
        let (inner, about) = (self.inner.clone(), about.clone());
        self.inner.runtime.spawn(async move {
            let _ = tell.send(inner.create(&about, &mut batches).await);
        });
        let sent = loop {
            match rows() {
                Ok(batch) => {
                    let is_last = batch.is_empty();
                    // A receiver that is gone has failed, and says why.
                    if send.blocking_send(batch).is_err() || is_last {
                        break Ok(());
                    }
                }
                Err(error) => break Err(Fault::Source(error.to_string().into())),
            }
        };
        drop(send);
        // The transaction has ended before the next one begins.
        let created = told.recv().unwrap_or_else(|_| Err(Fault::Away("the daemon ends".to_owned())));
        sent.and(created)
    }

    /// Runs a request that may be performed twice until it is answered, or the server has been away for too long.
    fn repeat<T: Send + 'static, F>(&self, request: impl Fn() -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let mut attempt = 0;
        loop {
            match self.wait(request()) {
                Err(Fault::Away(_) | Fault::Cut(_)) if self.waits(attempt) => attempt += 1,
                other => return other.map_err(certain),
            }
        }
    }

    /// Runs a future on the runtime and waits for it. The calling thread may block.
    fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        self.inner.health.gate()?;
        let (tell, told) = mpsc::channel();
        self.inner.runtime.spawn(async move {
            let _ = tell.send(future.await);
        });
        told.recv().unwrap_or_else(|_| Err(Fault::Away("the daemon ends".to_owned())))
    }
}

/// A number as the database has it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

impl Server for Postgres {
    fn create(&self, about: &About, rows: &mut Rows<'_>) -> Result<Held, Fault> {
        self.opening(&about.id, || self.created(about, rows))
    }

    fn look(&self, id: &SessionId) -> Result<Standing, Fault> {
        self.repeat(|| {
            let (inner, id) = (self.inner.clone(), id.clone());
            async move { inner.find(&id).await.map(|found| found.standing) }
        })
    }

    fn take(&self, id: &SessionId) -> Result<Held, Fault> {
        let take = || {
            let (inner, id) = (self.inner.clone(), id.clone());
            async move { inner.take(&id).await }
        };
        self.opening(id, || self.repeat(take))
    }

    fn append(&self, held: &Held, rows: &[Vec<u8>], facts: Facts) -> Result<(), Fault> {
        self.inner.health.gate()?;
        match self.lanes.append(held.clone(), rows.to_vec(), facts)? {
            true => Ok(()),
            false => {
                let (inner, held) = (self.inner.clone(), held.clone());
                self.wait(async move { Err(inner.why_not(&held).await) })
            }
        }
    }

    fn rewrite(&self, held: &Held, from: u64, rows: &[Vec<u8>]) -> Result<Standing, Fault> {
        let (inner, held, rows) = (self.inner.clone(), held.clone(), rows.to_vec());
        self.wait(async move { inner.rewrite(&held, from, &rows).await })
    }

    fn settle(&self, held: &Held) -> Result<Held, Fault> {
        let (inner, held) = (self.inner.clone(), held.clone());
        self.wait(async move { inner.settle(&held).await })
    }

    fn read(&self, id: &SessionId, generation: i64, from: From, bytes: u64) -> Result<Vec<Vec<u8>>, Fault> {
        self.repeat(|| {
            let (inner, id) = (self.inner.clone(), id.clone());
            async move { inner.read(&id, generation, from, bytes).await }
        })
    }

    fn record(&self, held: &Held, operations: Vec<Unfinished>) {
        self.lanes.send(Order::Record { held: held.clone(), operations });
    }

    fn release(&self, held: &Held) {
        /// A server that is away keeps no session from being closed.
        const LONGEST: Duration = Duration::from_secs(2);
        lock(&self.inner.open).remove(held.id.as_str());
        let (tell, told) = mpsc::channel();
        self.lanes.send(Order::Release { held: held.clone(), tell });
        let _ = told.recv_timeout(LONGEST);
    }

    fn delete(&self, id: &SessionId) -> Result<(), Fault> {
        let (inner, id) = (self.inner.clone(), id.clone());
        self.wait(async move { inner.delete(&id).await })
    }

    fn waits(&self, attempt: u32) -> bool {
        if attempt >= MOST_ATTEMPTS || self.inner.health.is_hopeless() {
            return false;
        }
        std::thread::sleep(Duration::from_millis((50 << attempt.min(4)).min(500)));
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
