//! Requests that wait are performed together: their appends are one statement, so that they share a transaction.

use super::{
    Inner, Typed,
    appending::{Addition, Prepared},
    asking::certain,
    connection::Connection,
    faults, lock,
};
use crate::log::{
    Unfinished,
    store::{
        facts::Facts,
        rows,
        server::{Fault, Held},
    },
};
use std::{
    collections::VecDeque,
    sync::{Arc, mpsc},
};
use tokio_postgres::{Client, types::Type};

/// The most bytes of one statement. A single append may have more.
const MOST_BYTES: u64 = 32 << 20;

/// The most appends of one statement.
const MOST_APPENDS: usize = 1_024;

/// A request of a session.
pub(super) enum Order {
    /// Appends rows.
    Append(Append),
    /// Records the operations that run.
    Record { held: Held, operations: Vec<Unfinished> },
    /// Gives a session up.
    Release { held: Held, tell: mpsc::Sender<()> },
}

impl Order {
    /// The session.
    pub(super) fn held(&self) -> &Held {
        match self {
            Self::Append(Append { held, .. }) | Self::Record { held, .. } | Self::Release { held, .. } => held,
        }
    }
}

/// An append, whose thread is told whether the session stood as its owner knew it.
pub(super) struct Append {
    pub(super) held: Held,
    pub(super) rows: Vec<Vec<u8>>,
    pub(super) facts: Facts,
    pub(super) tell: mpsc::Sender<Said>,
}

impl Append {
    fn answer(&self, added: Result<bool, Fault>) {
        let _ = self.tell.send(Said::Done(added));
    }

    /// Answers with the sessions that have their rows.
    fn answer_of(&self, added: &[String]) {
        self.answer(Ok(added.iter().any(|id| id == self.held.id.as_str())));
    }
}

/// A word to a thread that appends.
pub(super) enum Said {
    /// Its append has ended.
    Done(Result<bool, Fault>),
    /// It performs those that wait now, its own among them.
    Lead,
}

/// Requests that are performed together: what runs is recorded, rows are appended, then sessions are given up.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<(Held, Vec<Unfinished>)>,
    appends: Vec<Append>,
    releases: Vec<(Held, mpsc::Sender<()>)>,
    bytes: u64,
}

impl Batch {
    /// Takes the requests that can be performed together out of those that wait. `unrecorded` are records that could not be
    /// written before.
    pub(super) fn of(waiting: &mut VecDeque<Order>, unrecorded: Vec<(Held, Vec<Unfinished>)>) -> Self {
        let mut batch = Self { records: unrecorded, ..Self::default() };
        while let Some(order) = waiting.pop_front() {
            batch.add(order);
            // The order of one session's requests stays.
            if !waiting.front().is_some_and(|next| batch.has_room() && batch.takes(next)) {
                break;
            }
        }
        batch
    }

    fn has_room(&self) -> bool {
        self.bytes < MOST_BYTES && self.appends.len() < MOST_APPENDS
    }

    /// Whether a request may be performed at the place that it has in the batch.
    fn takes(&self, order: &Order) -> bool {
        match order {
            Order::Append(Append { held, rows, .. }) => {
                let fits = self.bytes + rows::size(rows) <= MOST_BYTES;
                fits && !self.appends.iter().any(|it| it.held.id == held.id) && self.releases.is_empty()
            }
            Order::Record { held, .. } => !self.appends.iter().any(|it| it.held.id == held.id) && !self.releases(held),
            // No append waits for the end of another session.
            Order::Release { .. } => self.appends.is_empty(),
        }
    }

    fn releases(&self, held: &Held) -> bool {
        self.releases.iter().any(|(it, _)| it.id == held.id)
    }

    fn add(&mut self, order: Order) {
        match order {
            Order::Append(append) => {
                self.bytes += rows::size(&append.rows);
                self.appends.push(append);
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
    pub(super) async fn perform(
        self,
        inner: &Inner,
        client: Arc<Client>,
        connection: &Connection,
        prepared: &mut Prepared,
    ) -> Vec<(Held, Vec<Unfinished>)> {
        let mut unrecorded = Vec::new();
        let mut records = self.records.into_iter();
        while let Some((held, operations)) = records.next() {
            if is_over(inner, &held) {
                continue;
            }
            let running = serde_json::to_string(&operations).unwrap_or_else(|_| "[]".to_owned());
            let running = crate::log::store::facts::sound(&running);
            let text = inner.sql("UPDATE @.session SET running = $3 WHERE id = $1 AND epoch >= $2 AND owner = $4");
            let parameters: [Typed<'_>; 4] = [
                (&held.id.as_str(), Type::TEXT),
                (&held.epoch, Type::INT8),
                (&running, Type::TEXT),
                (&inner.me.id, Type::TEXT),
            ];
            let recorded = async { client.query_typed(&text, &parameters).await.map_err(|error| faults::of(&error)) };
            let Err(fault) = inner.within(recorded, 0, connection).await else { continue };
            tracing::warn!(?fault, "the operations that run could not be recorded");
            unrecorded.push((held, operations));
            if is_away(&fault) {
                unrecorded.extend(records);
                let rest = Self { records: unrecorded, appends: self.appends, ..Self::default() };
                // Nothing of them was sent.
                return rest.refuse(&certain(fault));
            }
        }
        append(inner, connection, &client, prepared, self.appends).await;
        for (held, tell) in self.releases {
            if is_over(inner, &held) {
                let _ = tell.send(());
                continue;
            }
            let text = inner.sql("UPDATE @.session SET owner = NULL WHERE id = $1 AND epoch = $2 AND owner = $3");
            let parameters: [Typed<'_>; 3] =
                [(&held.id.as_str(), Type::TEXT), (&held.epoch, Type::INT8), (&inner.me.id, Type::TEXT)];
            let released = async { client.query_typed(&text, &parameters).await.map_err(|error| faults::of(&error)) };
            let released = inner.within(released, 0, connection).await;
            let _ = tell.send(());
            let Err(fault) = released else { continue };
            tracing::warn!(?fault, "a session could not be given up; it is free when this daemon ends");
            if is_away(&fault) {
                break;
            }
        }
        unrecorded
    }

    /// Ends them without a server. Returns the records.
    pub(super) fn refuse(self, fault: &Fault) -> Vec<(Held, Vec<Unfinished>)> {
        self.appends.iter().for_each(|append| append.answer(Err(fault.clone())));
        self.records
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
            for append in &appends {
                match send(inner, connection, client, prepared, std::slice::from_ref(append)).await {
                    Ok(added) => append.answer_of(&added),
                    Err(fault) => append.answer(Err(fault)),
                }
            }
        }
        Ok(added) => appends.iter().for_each(|append| append.answer_of(&added)),
        Err(fault) => appends.iter().for_each(|append| append.answer(Err(fault.clone()))),
    }
}

/// Whether the server answers nothing more on this connection.
fn is_away(fault: &Fault) -> bool {
    matches!(fault, Fault::Away(_) | Fault::Cut(_))
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
    let additions: Vec<Addition<'_>> = appends
        .iter()
        .map(|Append { held, rows, facts, .. }| {
            Addition::of(held.id.as_str(), held.epoch, held.standing.lines, rows, facts)
        })
        .collect();
    let added = async { prepared.append(inner, client, &additions).await.map_err(|error| faults::of(&error)) };
    let bytes = appends.iter().map(|append| rows::size(&append.rows)).sum();
    let added = inner.within(added, bytes, connection).await;
    Ok(added?.iter().map(|row| row.get(0)).collect())
}
