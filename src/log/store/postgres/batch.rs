//! Appends of all sessions: those that wait are sent together, as one statement, so that they share a transaction.

use super::{Inner, Typed, connection::Connection, faults, lock, signed};
use crate::log::{
    Unfinished,
    store::{
        facts::Facts,
        rows,
        server::{Fault, Held},
    },
};
use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, atomic::Ordering, mpsc},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::{Client, Error, Row, Statement, error::SqlState, types::Type};

/// The most bytes of one statement. A single append may have more.
const MOST_BYTES: u64 = 32 << 20;

/// The most appends of one statement.
const MOST_APPENDS: usize = 1_024;

/// A request of a session.
pub(super) enum Order {
    /// Appends rows. It is told whether the session stood as its owner knew it.
    Append { held: Held, rows: Vec<Vec<u8>>, facts: Facts, tell: mpsc::Sender<Result<bool, Fault>> },
    /// Records the operations that run.
    Record { held: Held, operations: Vec<Unfinished> },
    /// Gives a session up.
    Release { held: Held, tell: mpsc::Sender<()> },
}

/// The tasks, each with a connection of its own: while one waits for its commit, another one sends.
const TASKS: usize = 2;

/// The ways to the tasks.
pub(super) struct Batches([UnboundedSender<Order>; TASKS]);

impl Batches {
    /// Starts the tasks. They live as long as this does.
    pub(super) fn start(inner: &Arc<Inner>) -> Self {
        Self(std::array::from_fn(|_| {
            let (send, orders) = unbounded_channel();
            inner.runtime.spawn(run(inner.clone(), orders));
            send
        }))
    }

    /// Sends a request. Those of one session go the same way, so they stay in their order.
    pub(super) fn send(&self, order: Order) {
        let (Order::Append { held, .. } | Order::Record { held, .. } | Order::Release { held, .. }) = &order;
        let mut hasher = DefaultHasher::new();
        held.id.as_str().hash(&mut hasher);
        let task = usize::try_from(hasher.finish() % TASKS as u64).unwrap_or_default();
        let _ = self.0[task].send(order);
    }
}

async fn run(inner: Arc<Inner>, mut orders: UnboundedReceiver<Order>) {
    let connection = Connection::new(inner.address.clone());
    let mut prepared = Prepared::default();
    let mut unrecorded = Vec::new();
    let mut next = None;
    loop {
        let Some(first) = (match next.take() {
            Some(order) => Some(order),
            None => orders.recv().await,
        }) else {
            return;
        };
        let mut batch = Batch { records: std::mem::take(&mut unrecorded), ..Batch::default() };
        batch.add(first);
        while batch.has_room() {
            let Ok(order) = orders.try_recv() else { break };
            // The order of one session's requests stays.
            if !batch.takes(&order) {
                next = Some(order);
                break;
            }
            batch.add(order);
        }
        unrecorded = batch.perform(&inner, &connection, &mut prepared).await;
    }
}

/// Requests that are performed together: what runs is recorded, rows are appended, then sessions are given up.
#[derive(Default)]
struct Batch {
    records: Vec<(Held, Vec<Unfinished>)>,
    appends: Vec<Append>,
    releases: Vec<(Held, mpsc::Sender<()>)>,
    bytes: u64,
}

struct Append {
    held: Held,
    rows: Vec<Vec<u8>>,
    facts: Facts,
    tell: mpsc::Sender<Result<bool, Fault>>,
}

impl Batch {
    fn has_room(&self) -> bool {
        self.bytes < MOST_BYTES && self.appends.len() < MOST_APPENDS
    }

    /// Whether a request may be performed at the place that it has in the batch.
    fn takes(&self, order: &Order) -> bool {
        match order {
            Order::Append { held, rows, .. } => {
                let fits = self.bytes + rows::size(rows) <= MOST_BYTES;
                fits && !self.appends.iter().any(|it| it.held.id == held.id) && !self.releases(held)
            }
            Order::Record { held, .. } => !self.appends.iter().any(|it| it.held.id == held.id) && !self.releases(held),
            Order::Release { .. } => true,
        }
    }

    fn releases(&self, held: &Held) -> bool {
        self.releases.iter().any(|(it, _)| it.id == held.id)
    }

    fn add(&mut self, order: Order) {
        match order {
            Order::Append { held, rows, facts, tell } => {
                self.bytes += rows::size(&rows);
                self.appends.push(Append { held, rows, facts, tell });
            }
            Order::Record { held, operations } => {
                // The newest record of a session holds.
                self.records.retain(|(it, _)| it.id != held.id);
                self.records.push((held, operations));
            }
            Order::Release { held, tell } => self.releases.push((held, tell)),
        }
    }

    /// Performs them. Returns the records that could not be written; the next ones bring them along.
    async fn perform(
        self,
        inner: &Inner,
        connection: &Connection,
        prepared: &mut Prepared,
    ) -> Vec<(Held, Vec<Unfinished>)> {
        let client = match inner.ready().await {
            Ok(_) => inner.connected(connection).await,
            Err(fault) => Err(fault),
        };
        let client = match client {
            Ok((client, _)) => client,
            Err(fault) => {
                for append in self.appends {
                    let _ = append.tell.send(Err(fault.clone()));
                }
                return self.records;
            }
        };
        let mut unrecorded = Vec::new();
        for (held, operations) in self.records {
            if is_over(inner, &held) {
                continue;
            }
            let running = serde_json::to_string(&operations).unwrap_or_else(|_| "[]".to_owned());
            let running = crate::log::store::facts::sound(&running);
            let text = inner.sql("UPDATE @.session SET running = $3 WHERE id = $1 AND epoch >= $2 AND owner = $4");
            let parameters = [
                (&held.id.as_str() as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
                (&held.epoch, Type::INT8),
                (&running, Type::TEXT),
                (&inner.me.id, Type::TEXT),
            ];
            let recorded = async { client.query_typed(&text, &parameters).await.map_err(|error| faults::of(&error)) };
            if let Err(fault) = inner.within(recorded, 0, connection).await {
                tracing::warn!(?fault, "the operations that run could not be recorded");
                unrecorded.push((held, operations));
            }
        }
        append(inner, connection, &client, prepared, self.appends).await;
        for (held, tell) in self.releases {
            if is_over(inner, &held) {
                let _ = tell.send(());
                continue;
            }
            let text = inner.sql("UPDATE @.session SET owner = NULL WHERE id = $1 AND epoch = $2 AND owner = $3");
            let parameters = [
                (&held.id.as_str() as &(dyn tokio_postgres::types::ToSql + Sync), Type::TEXT),
                (&held.epoch, Type::INT8),
                (&inner.me.id, Type::TEXT),
            ];
            let released = async { client.query_typed(&text, &parameters).await.map_err(|error| faults::of(&error)) };
            if let Err(fault) = inner.within(released, 0, connection).await {
                tracing::warn!(?fault, "a session could not be given up; it is free when this daemon ends");
            }
            let _ = tell.send(());
        }
        unrecorded
    }
}

async fn append(
    inner: &Inner,
    connection: &Connection,
    client: &Arc<Client>,
    prepared: &mut Prepared,
    mut appends: Vec<Append>,
) {
    if appends.is_empty() {
        return;
    }
    // All statements lock rows in one order.
    appends.sort_by(|one, other| one.held.id.as_str().cmp(other.held.id.as_str()));
    let added = send(inner, connection, client, prepared, &appends).await;
    match added {
        // One of them is refused, perhaps: each on its own.
        Err(Fault::Refused { .. }) if appends.len() > 1 => {
            for append in appends {
                let one = [append];
                let added = send(inner, connection, client, prepared, &one).await;
                let [append] = one;
                let _ = append.tell.send(added.map(|ids| ids.contains(&append.held.id.as_str().to_owned())));
            }
        }
        Ok(ids) => {
            for append in appends {
                let _ = append.tell.send(Ok(ids.iter().any(|id| id == append.held.id.as_str())));
            }
        }
        Err(fault) => {
            for append in appends {
                let _ = append.tell.send(Err(fault.clone()));
            }
        }
    }
}

/// Whether this daemon has taken a session again since. A request of before says nothing about it.
fn is_over(inner: &Inner, held: &Held) -> bool {
    lock(&inner.open).get(held.id.as_str()).is_some_and(|taken| *taken > held.epoch)
}

/// Sends appends as one statement. Returns the sessions that have their rows.
async fn send(
    inner: &Inner,
    connection: &Connection,
    client: &Arc<Client>,
    prepared: &mut Prepared,
    appends: &[Append],
) -> Result<Vec<String>, Fault> {
    if client.is_closed() {
        return Err(Fault::Away("the connection has ended".to_owned()));
    }
    let mut sent = Sent::of(inner);
    for Append { held, rows, facts, .. } in appends {
        sent.add(held.id.as_str(), held.epoch, held.standing.lines, rows, facts);
    }
    let added = async { prepared.append(inner, client, &sent).await.map_err(|error| faults::of(&error)) };
    let bytes = appends.iter().map(|append| rows::size(&append.rows)).sum();
    let added = inner.within(added, bytes, connection).await;
    Ok(added?.iter().map(|row| row.get(0)).collect())
}

/// The statement that appends, as the connection knows it.
#[derive(Default)]
struct Prepared {
    /// The connection, and the form of the statement.
    known: Option<(Arc<Client>, bool, Statement)>,
    /// A pooler gives each transaction another connection of the server, which does not know the statement.
    is_pooled: bool,
}

impl Prepared {
    /// Appends rows. A statement that is unknown did nothing, and is sent whole.
    async fn append(&mut self, inner: &Inner, client: &Arc<Client>, sent: &Sent<'_>) -> Result<Vec<Row>, Error> {
        let notifies = inner.notifies.load(Ordering::Relaxed);
        let text = if notifies { APPEND } else { APPEND_QUIETLY };
        if self.is_pooled {
            return sent.query(client, &inner.sql(text)).await;
        }
        match self.known_to(inner, client, notifies, text).await {
            Ok(statement) => match sent.execute(client, &statement).await {
                Err(error) if is_unknown(&error) => {}
                other => return other,
            },
            Err(error) if is_unknown(&error) => {}
            Err(error) => return Err(error),
        }
        tracing::info!("the store is behind a pooler: statements are sent whole");
        self.known = None;
        self.is_pooled = true;
        sent.query(client, &inner.sql(text)).await
    }

    async fn known_to(
        &mut self,
        inner: &Inner,
        client: &Arc<Client>,
        notifies: bool,
        text: &str,
    ) -> Result<Statement, Error> {
        if let Some((known, form, statement)) = &self.known
            && Arc::ptr_eq(known, client)
            && *form == notifies
        {
            return Ok(statement.clone());
        }
        let statement =
            client.prepare_typed(&inner.sql(text), &Sent::default().columns().map(|(_, kind)| kind)).await?;
        self.known = Some((client.clone(), notifies, statement.clone()));
        Ok(statement)
    }
}

/// Whether the server does not know a statement by its name, or knows another one by it.
fn is_unknown(error: &Error) -> bool {
    let codes = [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| codes.contains(&code))
}

/// The columns of a statement that appends.
#[derive(Default)]
pub(super) struct Sent<'a> {
    channel: String,
    owner: String,
    ids: Vec<&'a str>,
    epochs: Vec<i64>,
    firsts: Vec<i64>,
    counts: Vec<i64>,
    sizes: Vec<i64>,
    wholes: Vec<bool>,
    titles: Vec<Option<&'a str>>,
    previews: Vec<Option<&'a str>>,
    entries: Vec<i64>,
    line_ids: Vec<&'a str>,
    numbers: Vec<i64>,
    data: Vec<&'a [u8]>,
    text_ids: Vec<&'a str>,
    text_numbers: Vec<i64>,
    texts: Vec<&'a str>,
}

impl<'a> Sent<'a> {
    /// No rows yet, by this daemon.
    pub(super) fn of(inner: &Inner) -> Self {
        Self { channel: inner.channel(), owner: inner.me.id.clone(), ..Self::default() }
    }

    /// Adds the rows of one session.
    pub(super) fn add(&mut self, id: &'a str, epoch: i64, first: u64, rows: &'a [Vec<u8>], facts: &'a Facts) {
        self.ids.push(id);
        self.epochs.push(epoch);
        self.firsts.push(signed(first));
        self.counts.push(signed(rows.len() as u64));
        self.sizes.push(signed(rows::size(rows)));
        self.wholes.push(rows::are_whole(rows));
        self.titles.push(facts.title.as_deref());
        self.previews.push(facts.preview.as_deref());
        self.entries.push(signed(facts.entries));
        for (number, row) in (first..).zip(rows) {
            self.line_ids.push(id);
            self.numbers.push(signed(number));
            self.data.push(row);
        }
        for (number, text) in &facts.texts {
            self.text_ids.push(id);
            self.text_numbers.push(signed(*number));
            self.texts.push(text);
        }
    }

    /// Sends them, with a statement that the connection knows.
    async fn execute(&self, client: &Client, statement: &Statement) -> Result<Vec<Row>, Error> {
        let values = self.columns().map(|(value, _)| value);
        client.query(statement, &values).await
    }

    /// Sends them with their statement.
    pub(super) async fn query(&self, client: &Client, text: &str) -> Result<Vec<Row>, Error> {
        client.query_typed(text, &self.columns()).await
    }

    fn columns(&self) -> [Typed<'_>; 17] {
        [
            (&self.ids, Type::TEXT_ARRAY),
            (&self.epochs, Type::INT8_ARRAY),
            (&self.firsts, Type::INT8_ARRAY),
            (&self.counts, Type::INT8_ARRAY),
            (&self.sizes, Type::INT8_ARRAY),
            (&self.wholes, Type::BOOL_ARRAY),
            (&self.titles, Type::TEXT_ARRAY),
            (&self.previews, Type::TEXT_ARRAY),
            (&self.entries, Type::INT8_ARRAY),
            (&self.line_ids, Type::TEXT_ARRAY),
            (&self.numbers, Type::INT8_ARRAY),
            (&self.data, Type::BYTEA_ARRAY),
            (&self.text_ids, Type::TEXT_ARRAY),
            (&self.text_numbers, Type::INT8_ARRAY),
            (&self.texts, Type::TEXT_ARRAY),
            (&self.channel, Type::TEXT),
            (&self.owner, Type::TEXT),
        ]
    }
}

macro_rules! appending {
    ($last:literal) => {
        concat!(
            "
WITH input AS (
    SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::bool[], $7::text[],
        $8::text[], $9::int8[]) AS i(id, epoch, first, count, size, whole, title, preview, entries)
), held AS (
    UPDATE @.session s SET lines = s.lines + i.count, bytes = s.bytes + i.size, whole = i.whole,
        title = nullif(coalesce(i.title, s.title), ''), preview = coalesce(s.preview, i.preview),
        entries = s.entries + i.entries, changed = now()
    FROM input i WHERE s.id = i.id AND s.epoch = i.epoch AND s.lines = i.first AND s.whole AND s.owner = $17
    RETURNING s.id, s.watched
), added AS (
    INSERT INTO @.line (session, number, data)
    SELECT l.id, l.number, l.data FROM unnest($10::text[], $11::int8[], $12::bytea[]) AS l(id, number, data)
    JOIN held ON held.id = l.id
), found AS (
    INSERT INTO @.passage (session, line, text)
    SELECT p.id, p.number, p.text FROM unnest($13::text[], $14::int8[], $15::text[]) AS p(id, number, text)
    JOIN held ON held.id = p.id
)
SELECT held.id, ",
            $last,
            " FROM held"
        )
    };
}

/// Appends, and tells those that follow a session.
const APPEND: &str = appending!("CASE WHEN held.watched > now() THEN pg_notify($16, held.id)::text END");

/// Appends, where the server has no notifications.
pub(super) const APPEND_QUIETLY: &str = appending!("$16::text");
