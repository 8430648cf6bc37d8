//! A store in PostgreSQL, or in a database that speaks its protocol.
//!
//! Appends of all sessions go through one task, which sends those that wait together (`batch`). A second connection is for
//! reading, taking and releasing; a third one for changes of several statements. A fourth one holds a lock, by which others see
//! that this daemon lives (`keeper`). No request needs a state of its connection, so all but the keeper may go through a pooler.

mod batch;
mod connection;
mod faults;
mod keeper;
mod listing;
mod schema;

pub use listing::{ListOrder, Listed};

use super::{
    address::Address,
    facts::Facts,
    rows,
    server::{About, Fault, From, Held, Owner, Rows, Server, Standing},
};
use crate::{
    ids::SessionId,
    log::{Unfinished, error::StoreError},
};
use batch::{Batches, Order};
use connection::Connection;
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, watch},
};
use tokio_postgres::{
    Client, Row,
    types::{ToSql, Type},
};

/// The time without a renewal after which an owner counts as gone, in seconds.
const LONGEST_SILENCE: f64 = 15.0;

/// The time for which a request waits for a server that is away.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest time that a request may take. A server that does not answer for longer counts as away.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);

/// The slowest connection that counts as one, in bytes per second.
const SLOWEST: u64 = 1 << 20;

/// The time after which a lock that is free is tried again: its owner may have lost that one connection, and takes it again.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// The most attempts of one request.
const MOST_ATTEMPTS: u32 = 100;

/// The most bytes that a request of the common connection asks for.
const READ_AT_ONCE: u64 = 4 << 20;

/// The most rows of one page.
const MOST_ROWS: i64 = 8_192;

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
    batches: Batches,
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

/// Whether the server answers.
#[derive(Default)]
struct Health {
    away: Mutex<Option<Away>>,
    tell: OnceLock<Box<dyn Fn(&Outage) + Send + Sync>>,
}

struct Away {
    since: Instant,
    told: bool,
}

/// News about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outage {
    /// It does not answer, for this reason.
    Begun(String),
    /// It answers again.
    Over,
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
        });
        let batches = Batches::start(inner.clone());
        Arc::new(Self { inner, batches })
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
        let (inner, name) = (self.inner.clone(), name.to_owned());
        self.wait(async move {
            if name.contains('\0') {
                return Err(Fault::Missing);
            }
            let rows = inner.ask("SELECT id FROM @.session WHERE name = $1", &[(&name, Type::TEXT)]).await?;
            let id: String = rows.first().ok_or(Fault::Missing)?.get(0);
            Ok(SessionId::from(id.as_str()))
        })
    }

    /// Lists sessions, those that were changed last first.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn list(&self, order: ListOrder) -> Result<Vec<Listed>, Fault> {
        let inner = self.inner.clone();
        self.wait(async move { listing::list(&inner, &order).await })
    }

    /// Runs a future on the runtime and waits for it. The calling thread may block.
    fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Result<T, Fault> {
        let (tell, told) = mpsc::channel();
        self.inner.runtime.spawn(async move {
            let _ = tell.send(future.await);
        });
        told.recv().unwrap_or_else(|_| Err(Fault::Away("the daemon ends".to_owned())))
    }
}

impl Inner {
    /// A statement with the schema in the place of `@`.
    fn sql(&self, text: &str) -> String {
        text.replace("@.", &format!("\"{}\".", self.address.schema.replace('"', "\"\"")))
    }

    /// The name of the channel of notifications.
    fn channel(&self) -> String {
        format!("abridged_{}", self.identity.get().map_or("", String::as_str))
    }

    /// The common connection, after the tables were checked.
    async fn ready(&self) -> Result<Arc<Client>, Fault> {
        let (client, is_new) = self.health.saw(self.common.client().await)?;
        let checked = self.checking.lock().await;
        if self.identity.get().is_none() {
            let identity = self.within(schema::prepare(self, &client), 0, &self.common).await?;
            let _ = self.identity.set(identity);
        }
        drop(checked);
        if is_new {
            let listens = client.batch_execute(&format!("LISTEN {}", self.channel())).await;
            self.notifies.store(listens.is_ok(), Ordering::Relaxed);
        }
        Ok(client)
    }

    /// Asks a statement on the common connection. It changes nothing, or may be repeated.
    async fn ask(&self, text: &str, parameters: &[Typed<'_>]) -> Result<Vec<Row>, Fault> {
        let client = self.ready().await?;
        let sql = self.sql(text);
        let asked = async {
            let rows = client.query_typed(&sql, parameters).await;
            rows.map_err(|error| faults::of(&error))
        };
        self.within(asked, READ_AT_ONCE, &self.common).await
    }

    /// The row of a session: how it stands, and who owns it.
    async fn find(&self, id: &SessionId) -> Result<Found, Fault> {
        if id.as_str().contains('\0') {
            return Err(Fault::Missing);
        }
        let rows = self.ask(FIND, &[(&id.as_str(), Type::TEXT)]).await?;
        rows.first().map(Found::of).ok_or(Fault::Missing)
    }

    /// The reason why a write of an owner changed nothing.
    async fn why_not(&self, held: &Held) -> Fault {
        match self.find(&held.id).await {
            Err(fault) => fault,
            Ok(found) => match found.owner {
                Some(owner) if owner.id != self.me.id => Fault::Owned(owner.shown),
                _ => Fault::Changed("another daemon had it meanwhile, or its lines in the store are others".to_owned()),
            },
        }
    }

    /// Makes this daemon the owner of a session, where its owner is gone.
    async fn take(&self, id: &SessionId) -> Result<Held, Fault> {
        self.is_registered().await?;
        // Another daemon may take it between the look and the change.
        for _ in 0..8 {
            let found = self.find(id).await?;
            if let Some(owner) = &found.owner
                && self.is_alive(owner).await?
            {
                return Err(Fault::Owned(owner.shown.clone()));
            }
            let parameters: [Typed<'_>; 3] =
                [(&id.as_str(), Type::TEXT), (&self.me.id, Type::TEXT), (&found.epoch, Type::INT8)];
            if self.ask(TAKE, &parameters).await?.is_empty() {
                continue;
            }
            // The lines may have grown between the two.
            let now = self.find(id).await?;
            if now.owner.as_ref().is_some_and(|owner| owner.id == self.me.id) {
                let left_behind = serde_json::from_str(&now.running).unwrap_or_default();
                return Ok(Held { id: id.clone(), epoch: now.epoch, standing: now.standing, left_behind });
            }
        }
        Err(Fault::Refused { why: "several daemons take it at once; try again".to_owned(), retryable: true })
    }

    /// Waits until this daemon is registered: an owner without a row counts as gone.
    async fn is_registered(&self) -> Result<(), Fault> {
        let mut registered = self.registered.subscribe();
        let known = registered.wait_for(|it| *it != Registered::NotYet);
        match tokio::time::timeout(PATIENCE, known).await.map(|known| known.map(|it| it.clone())) {
            Ok(Ok(Registered::Refused(fault))) => Err(fault),
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::Away("it does not answer".to_owned())),
        }
    }

    /// Whether an owner may still write.
    async fn is_alive(&self, owner: &FoundOwner) -> Result<bool, Fault> {
        let Some((lock, silence)) = owner.renewed.filter(|_| owner.id != self.me.id) else { return Ok(false) };
        // A clock that was set back tells nothing, and an owner that lives renews by the new one.
        if silence.abs() > LONGEST_SILENCE {
            return Ok(false);
        }
        if !self.locks.load(Ordering::Relaxed) {
            return Ok(true);
        }
        if self.is_locked(lock).await? {
            return Ok(true);
        }
        tokio::time::sleep(SECOND_LOOK).await;
        self.is_locked(lock).await
    }

    /// Whether a daemon holds its lock. The lock is free again at once, because the statement is the transaction.
    async fn is_locked(&self, lock: i64) -> Result<bool, Fault> {
        let rows = self.ask("SELECT pg_try_advisory_xact_lock($1)", &[(&lock, Type::INT8)]).await?;
        Ok(!rows.first().is_some_and(|row| row.get(0)))
    }

    async fn read(&self, id: &SessionId, generation: i64, from: From, bytes: u64) -> Result<Vec<Vec<u8>>, Fault> {
        let (line, text) = match from {
            From::Line(line) => (line, READ_ON),
            From::Before(line) => (line, READ_BACK),
        };
        let (line, bytes) = (signed(line), signed(bytes));
        let parameters: [Typed<'_>; 5] = [
            (&id.as_str(), Type::TEXT),
            (&generation, Type::INT8),
            (&line, Type::INT8),
            (&bytes, Type::INT8),
            (&MOST_ROWS, Type::INT8),
        ];
        let rows = self.ask(text, &parameters).await?;
        if !rows.is_empty() {
            return Ok(rows.iter().map(|row| row.get(0)).collect());
        }
        let found = self.find(id).await?;
        if found.standing.generation == generation {
            return Ok(Vec::new());
        }
        Err(Fault::Changed("its owner took lines back".to_owned()))
    }

    /// Runs statements in one transaction on the connection for long changes.
    async fn transaction<T>(&self, body: impl AsyncFnOnce(&Client) -> Result<T, Fault>) -> Result<T, Fault> {
        self.ready().await?;
        let long = self.long.lock().await;
        let (client, _) = self.health.saw(long.client().await)?;
        let run = async {
            let begun = client.batch_execute("BEGIN").await;
            begun.map_err(|error| certain(faults::of(&error)))?;
            let done = body(&client).await.map_err(certain)?;
            client.batch_execute("COMMIT").await.map_err(|error| faults::of(&error))?;
            Ok(done)
        };
        let done = run.await;
        if done.is_err() {
            // The server takes the transaction back with its connection.
            let rolled_back = tokio::time::timeout(Duration::from_secs(2), client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                long.drop_client().await;
            }
        }
        done
    }

    async fn create(
        &self,
        about: &About,
        batches: &mut tokio::sync::mpsc::Receiver<Vec<Vec<u8>>>,
    ) -> Result<Held, Fault> {
        let id = sound_id(&about.id)?;
        self.is_registered().await?;
        let (me, epoch) = (self.me.id.clone(), 1_i64);
        let created = self
            .transaction(async |client| {
                let sound = |text: &str| super::facts::sound(text);
                let (cwd, created, parent) =
                    (sound(&about.cwd), sound(&about.created), about.parent.as_deref().map(sound));
                let parameters: [Typed<'_>; 6] = [
                    (&id, Type::TEXT),
                    (&about.name, Type::TEXT),
                    (&cwd, Type::TEXT),
                    (&created, Type::TEXT),
                    (&parent, Type::TEXT),
                    (&me, Type::TEXT),
                ];
                let made = client.query_typed(&self.sql(CREATE), &parameters).await;
                if made.map_err(|error| faults::of(&error))?.is_empty() {
                    return Err(Fault::Exists);
                }
                let mut standing = Standing {
                    generation: 1,
                    lines: 0,
                    bytes: 0,
                    whole: true,
                    name: about.name.clone(),
                    cwd: about.cwd.clone(),
                };
                while let Some(batch) = batches.recv().await {
                    let facts = Facts::of(&batch, standing.lines);
                    let changed = self.add(client, &id, epoch, &standing, &batch, &facts).await?;
                    standing = changed.ok_or_else(|| Fault::Changed("it was changed while it was made".to_owned()))?;
                }
                Ok(standing)
            })
            .await;
        match created {
            Ok(standing) => Ok(Held { id: about.id.clone(), epoch, standing, left_behind: Vec::new() }),
            // It is there as a whole, or not at all.
            Err(Fault::Cut(why)) => match self.find(&about.id).await {
                Ok(found) if found.owner.as_ref().is_some_and(|owner| owner.id == self.me.id) => {
                    Ok(Held { id: about.id.clone(), epoch, standing: found.standing, left_behind: Vec::new() })
                }
                _ => Err(Fault::Cut(why)),
            },
            Err(fault) => Err(fault),
        }
    }

    /// Adds rows in a transaction. `None` where the session does not stand as the owner knows it.
    async fn add(
        &self,
        client: &Client,
        id: &str,
        epoch: i64,
        standing: &Standing,
        batch: &[Vec<u8>],
        facts: &Facts,
    ) -> Result<Option<Standing>, Fault> {
        let mut sent = batch::Sent::default();
        sent.add(id, epoch, standing.lines, batch, facts);
        let added = sent.query(client, &self.sql(batch::APPEND_QUIETLY)).await.map_err(|error| faults::of(&error))?;
        Ok((!added.is_empty()).then(|| Standing {
            lines: standing.lines + batch.len() as u64,
            bytes: standing.bytes + rows::size(batch),
            whole: rows::are_whole(batch),
            ..standing.clone()
        }))
    }

    async fn rewrite(&self, held: &Held, from: u64, batch: &[Vec<u8>]) -> Result<Standing, Fault> {
        let id = held.id.as_str();
        let first = signed(from);
        let rewritten = self
            .transaction(async |client| {
                let query = async |text: &str, parameters: &[Typed<'_>]| {
                    client.query_typed(&self.sql(text), parameters).await.map_err(|error| faults::of(&error))
                };
                let of_line: [Typed<'_>; 2] = [(&id, Type::TEXT), (&first, Type::INT8)];
                let gone = query(GONE, &of_line).await?;
                let gone: i64 = gone.first().map_or(0, |row| row.get(0));
                let parameters: [Typed<'_>; 4] =
                    [(&id, Type::TEXT), (&held.epoch, Type::INT8), (&first, Type::INT8), (&gone, Type::INT8)];
                let cut = query(CUT, &parameters).await?;
                let Some(cut) = cut.first() else { return Ok(None) };
                let standing = standing_of(cut);
                query("DELETE FROM @.passage WHERE session = $1 AND line >= $2", &of_line).await?;
                query("DELETE FROM @.line WHERE session = $1 AND number >= $2", &of_line).await?;
                if batch.is_empty() {
                    return Ok(Some(standing));
                }
                let facts = Facts { entries: 0, ..Facts::of(batch, from) };
                self.add(client, id, held.epoch, &standing, batch, &facts).await
            })
            .await?;
        match rewritten {
            Some(standing) => Ok(standing),
            None => Err(self.why_not(held).await),
        }
    }

    async fn settle(&self, held: &Held) -> Result<Held, Fault> {
        let parameters: [Typed<'_>; 3] =
            [(&held.id.as_str(), Type::TEXT), (&self.me.id, Type::TEXT), (&held.epoch, Type::INT8)];
        let rows = self.ask(SETTLE, &parameters).await.map_err(certain)?;
        match rows.first() {
            Some(row) => Ok(Held { epoch: row.get(6), standing: standing_of(row), ..held.clone() }),
            None => Err(self.why_not(held).await),
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), Fault> {
        let found = self.find(id).await?;
        if let Some(owner) = &found.owner
            && self.is_alive(owner).await?
        {
            return Err(Fault::Owned(owner.shown.clone()));
        }
        let parameters: [Typed<'_>; 2] = [(&id.as_str(), Type::TEXT), (&found.epoch, Type::INT8)];
        if self.ask("DELETE FROM @.session WHERE id = $1 AND epoch = $2 RETURNING id", &parameters).await?.is_empty() {
            let why = "another daemon took it meanwhile; try again".to_owned();
            return Err(Fault::Refused { why, retryable: true });
        }
        Ok(())
    }
}

impl Health {
    /// Keeps whether a connection could be made.
    fn saw<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        match &result {
            Ok(_) => self.answers(),
            Err(fault) => self.fails(fault),
        }
        result
    }

    fn answers(&self) {
        let ended = lock(&self.away).take();
        if ended.is_some_and(|away| away.told) {
            self.tell(&Outage::Over);
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the time of an outage")]
    fn fails(&self, fault: &Fault) {
        /// Shorter outages are no news.
        const WORTH_TELLING: Duration = Duration::from_secs(2);
        let mut away = lock(&self.away);
        let away = away.get_or_insert_with(|| Away { since: Instant::now(), told: false });
        if !away.told && away.since.elapsed() > WORTH_TELLING {
            away.told = true;
            self.tell(&Outage::Begun(reason(fault)));
        }
    }

    /// The server did not answer for so long.
    #[expect(clippy::disallowed_methods, reason = "the time of an outage")]
    fn was_silent(&self, longest: Duration, fault: &Fault) {
        let since = Instant::now().checked_sub(longest).unwrap_or_else(Instant::now);
        lock(&self.away).get_or_insert(Away { since, told: false });
        self.fails(fault);
    }

    #[expect(clippy::disallowed_methods, reason = "the time of an outage")]
    fn is_hopeless(&self) -> bool {
        lock(&self.away).as_ref().is_some_and(|away| away.since.elapsed() > PATIENCE)
    }

    fn tell(&self, outage: &Outage) {
        if let Some(tell) = self.tell.get() {
            tell(outage);
        }
    }
}

fn reason(fault: &Fault) -> String {
    match fault {
        Fault::Away(why) | Fault::Cut(why) | Fault::Refused { why, .. } => why.clone(),
        other => format!("{other:?}"),
    }
}

/// A request that was cut off before its commit did nothing.
fn certain(fault: Fault) -> Fault {
    match fault {
        Fault::Cut(why) => Fault::Away(why),
        other => other,
    }
}

impl Inner {
    /// A request that takes too long counts as cut off, its connection is given up, and the server counts as away since then.
    /// `bytes` are those that it sends or asks for.
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, Fault>>,
        bytes: u64,
        connection: &Connection,
    ) -> Result<T, Fault> {
        let longest = LONGEST_REQUEST + Duration::from_secs(bytes / SLOWEST);
        match tokio::time::timeout(longest, request).await {
            Ok(done) => done,
            Err(_) => {
                connection.drop_client().await;
                let fault = Fault::Cut(format!("no answer in {} seconds", longest.as_secs()));
                self.health.was_silent(longest, &fault);
                Err(fault)
            }
        }
    }
}

/// A number as the database has it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// An id as the database takes it.
fn sound_id(id: &SessionId) -> Result<String, Fault> {
    if id.as_str().contains('\0') {
        let why = "its id has a zero character, which the database takes in no text".to_owned();
        return Err(Fault::Refused { why, retryable: false });
    }
    Ok(id.as_str().to_owned())
}

/// A session as it was found.
struct Found {
    standing: Standing,
    epoch: i64,
    running: String,
    owner: Option<FoundOwner>,
}

/// The owner of a session.
struct FoundOwner {
    id: String,
    shown: Owner,
    /// Its lock, and the seconds since its last renewal. `None` where its row is gone.
    renewed: Option<(i64, f64)>,
}

impl Found {
    fn of(row: &Row) -> Self {
        let owner: Option<String> = row.get(8);
        let host: Option<String> = row.get(10);
        let pid: Option<i64> = row.get(11);
        let lock: Option<i64> = row.get(12);
        let silence: Option<f64> = row.get(13);
        let since: Option<String> = row.get(9);
        let owner = owner.map(|id| FoundOwner {
            id,
            shown: Owner {
                host: host.unwrap_or_default(),
                pid: pid.and_then(|pid| u32::try_from(pid).ok()),
                since: since.unwrap_or_default(),
            },
            renewed: lock.zip(silence),
        });
        Self { standing: standing_of(row), epoch: row.get(6), running: row.get(7), owner }
    }
}

/// The first six columns of a row.
fn standing_of(row: &Row) -> Standing {
    Standing {
        generation: row.get(0),
        lines: unsigned(row.get(1)),
        bytes: unsigned(row.get(2)),
        whole: row.get(3),
        name: row.get(4),
        cwd: row.get(5),
    }
}

const FIND: &str = r#"
SELECT s.generation, s.lines, s.bytes, s.whole, s.name, s.cwd, s.epoch, s.running, s.owner,
    to_char(s.owned AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    o.host, o.pid, o.lock, extract(epoch FROM now() - o.renewed)::float8
FROM @.session s LEFT JOIN @.owner o ON o.id = s.owner WHERE s.id = $1"#;

const TAKE: &str = "
UPDATE @.session SET owner = $2, epoch = epoch + 1, owned = now() WHERE id = $1 AND epoch = $3 RETURNING epoch";

// The same daemon may have raised the epoch by a request of which it did not hear.
const SETTLE: &str = "
UPDATE @.session SET epoch = epoch + 1 WHERE id = $1 AND owner = $2 AND epoch >= $3
RETURNING generation, lines, bytes, whole, name, cwd, epoch";

const CREATE: &str = "
INSERT INTO @.session (id, name, cwd, created, parent, owner, owned) VALUES ($1, $2, $3, $4, $5, $6, now())
ON CONFLICT DO NOTHING RETURNING id";

const GONE: &str = "
SELECT coalesce(sum(octet_length(data)), 0)::int8 FROM @.line WHERE session = $1 AND number >= $2";

const CUT: &str = "
UPDATE @.session SET generation = generation + 1, lines = $3, bytes = bytes - $4, whole = true, changed = now()
WHERE id = $1 AND epoch = $2
RETURNING generation, lines, bytes, whole, name, cwd";

const READ_ON: &str = "
SELECT data FROM (
    SELECT l.number, l.data, sum(octet_length(l.data)) OVER (ORDER BY l.number) - octet_length(l.data) AS before
    FROM @.line l, @.session s
    WHERE s.id = $1 AND s.generation = $2 AND l.session = $1 AND l.number >= $3 AND l.number < $3 + $5
) page WHERE before < $4 ORDER BY number";

const READ_BACK: &str = "
SELECT data FROM (
    SELECT l.number, l.data, sum(octet_length(l.data)) OVER (ORDER BY l.number DESC) - octet_length(l.data) AS before
    FROM @.line l, @.session s
    WHERE s.id = $1 AND s.generation = $2 AND l.session = $1 AND l.number < $3 AND l.number >= $3 - $5
) page WHERE before < $4 ORDER BY number DESC";

impl Server for Postgres {
    fn create(&self, about: &About, rows: &mut Rows<'_>) -> Result<Held, Fault> {
        let (send, mut batches) = tokio::sync::mpsc::channel(1);
        let (tell, told) = mpsc::channel();
        let (inner, about) = (self.inner.clone(), about.clone());
        let creating = self.inner.runtime.spawn(async move {
            let _ = tell.send(inner.create(&about, &mut batches).await);
        });
        loop {
            match rows() {
                Ok(batch) if batch.is_empty() => break,
                // A receiver that is gone has failed, and says why.
                Ok(batch) => {
                    if send.blocking_send(batch).is_err() {
                        break;
                    }
                }
                Err(error) => {
                    creating.abort();
                    let stopped = matches!(error, StoreError::Stopped);
                    let why = if stopped { "cancelled".to_owned() } else { error.to_string() };
                    return Err(Fault::Source(why.into()));
                }
            }
        }
        drop(send);
        told.recv().unwrap_or_else(|_| Err(Fault::Away("the daemon ends".to_owned())))
    }

    fn look(&self, id: &SessionId) -> Result<Standing, Fault> {
        let (inner, id) = (self.inner.clone(), id.clone());
        self.wait(async move { inner.find(&id).await.map(|found| found.standing) })
    }

    fn take(&self, id: &SessionId) -> Result<Held, Fault> {
        let (inner, id) = (self.inner.clone(), id.clone());
        self.wait(async move { inner.take(&id).await })
    }

    fn append(&self, held: &Held, rows: &[Vec<u8>], facts: Facts) -> Result<(), Fault> {
        let (tell, told) = mpsc::channel();
        self.batches.send(Order::Append { held: held.clone(), rows: rows.to_vec(), facts, tell });
        match told.recv().unwrap_or_else(|_| Err(Fault::Away("the daemon ends".to_owned())))? {
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
        let mut attempt = 0;
        loop {
            let (inner, id) = (self.inner.clone(), id.clone());
            match self.wait(async move { inner.read(&id, generation, from, bytes).await }) {
                // Nothing changes by reading twice.
                Err(Fault::Away(_) | Fault::Cut(_)) if self.waits(attempt) => attempt += 1,
                other => return other.map_err(certain),
            }
        }
    }

    fn record(&self, held: &Held, operations: Vec<Unfinished>) {
        self.batches.send(Order::Record { held: held.clone(), operations });
    }

    fn release(&self, held: &Held) {
        /// A server that is away keeps no session from being closed.
        const LONGEST: Duration = Duration::from_secs(2);
        let (tell, told) = mpsc::channel();
        self.batches.send(Order::Release { held: held.clone(), tell });
        let _ = told.recv_timeout(LONGEST);
    }

    fn delete(&self, id: &SessionId) -> Result<(), Fault> {
        let (inner, id) = (self.inner.clone(), id.clone());
        self.wait(async move { inner.delete(&id).await })
    }

    #[expect(clippy::disallowed_methods, reason = "waits for the server")]
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
