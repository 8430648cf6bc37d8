//! The signs of life of this daemon: a row that is renewed, and a lock that the server frees with the connection.
//!
//! The lock belongs to a transaction that stays open, so that it holds through a pooler, too. The transaction has read and
//! written nothing and has no snapshot, so it keeps no old row from being removed. Where the server has no such locks, or a pooler ends the
//! transaction, the row alone counts.

#![expect(clippy::disallowed_methods, reason = "the time of a renewal")]

use super::{Follow, Inner, Registered, Typed, connection::Connection, faults, lock};
use crate::log::store::server::Fault;
use std::{
    collections::HashSet,
    sync::{Arc, Weak, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio_postgres::{Client, SimpleQueryMessage, types::Type};

/// The time between two looks at the connections.
const ROUND: Duration = Duration::from_millis(500);

/// The time between two renewals.
const RENEWAL: Duration = Duration::from_secs(5);

/// The longest time for taking the lock. The row has to be renewed meanwhile.
const LONGEST_HOLD: Duration = Duration::from_secs(3);

/// Rounds between two attempts where the server refuses the renewal.
const REFUSED: u32 = 120;

/// Starts the task. It ends with the store.
pub(super) fn start(inner: &Arc<Inner>) {
    let connection = Connection::new(inner.address.clone());
    let listening = Arc::downgrade(inner);
    inner.common.heard().set(move |id| {
        if let Some(inner) = listening.upgrade()
            && let Some(follow) = lock(&inner.followed).get(id)
        {
            (follow.tell)();
        }
    });
    inner.runtime.spawn(run(Arc::downgrade(inner), connection));
}

async fn run(inner: Weak<Inner>, connection: Connection) {
    let mut round = 0_u32;
    let mut holder: Option<Arc<Client>> = None;
    let mut renewed = None;
    loop {
        let Some(inner) = inner.upgrade() else { return };
        if let Err(fault) = look(&inner, &connection, &mut holder, &mut renewed, round).await {
            tracing::debug!(?fault, "no sign of life could be given");
        }
        drop(inner);
        round = round.wrapping_add(1);
        // A lock that is lost is taken again before another daemon looks twice.
        tokio::select! {
            () = tokio::time::sleep(ROUND) => {}
            () = connection.ended() => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn look(
    inner: &Inner,
    connection: &Connection,
    holder: &mut Option<Arc<Client>>,
    renewed: &mut Option<Instant>,
    round: u32,
) -> Result<(), Fault> {
    if inner.health.is_away() {
        inner.ask("SELECT 1", &[]).await?;
    }
    let was_held = holder.as_ref().is_some_and(|client| !client.is_closed());
    if !was_held {
        // Without an answer the row still has to be renewed, and followers are told.
        let held = tokio::time::timeout(LONGEST_HOLD, hold(inner, connection)).await;
        *holder = held.unwrap_or(Ok(None)).unwrap_or_else(|fault| {
            tracing::debug!(?fault, "the lock could not be taken");
            None
        });
    }
    let is_registered = *inner.registered.borrow() == Registered::Yes;
    let is_refused = matches!(*inner.registered.borrow(), Registered::Refused(_));
    let is_due = renewed.is_none_or(|renewed| renewed.elapsed() > RENEWAL);
    // A renewal after the start of the server says that the lock is taken again, so the lock comes first.
    let renews = match (is_refused, was_held) {
        (true, _) => round.is_multiple_of(REFUSED),
        (false, true) => is_due,
        (false, false) => is_due || !is_registered || holder.is_some(),
    };
    if renews {
        match renew(inner).await {
            Ok(()) => {
                *renewed = Some(Instant::now());
                if !is_registered {
                    inner.registered.send_replace(Registered::Yes);
                    forget(inner).await;
                }
            }
            // A role that only reads, or a replica: its sessions are followed, and none is taken.
            Err(fault @ Fault::Refused { .. }) => {
                inner.registered.send_replace(Registered::Refused(fault));
            }
            Err(_) => {}
        }
    }
    // A notification may be lost with a connection, or go to another client of a pooler.
    poll(inner).await?;
    Ok(())
}

/// Takes the lock, and tries whether it keeps another connection out. Returns the client that holds it.
async fn hold(inner: &Inner, connection: &Connection) -> Result<Option<Arc<Client>>, Fault> {
    inner.ready().await?;
    let (client, _) = inner.connected(connection).await?;
    let taken = async {
        client.batch_execute("BEGIN").await?;
        // Servers end transactions that do nothing, if they are told to; some do not know the setting.
        // Some servers do not know these settings, or this way to set them.
        client.batch_execute("SAVEPOINT settings").await?;
        let set = client.batch_execute(UNLIMITED).await.is_ok();
        client.batch_execute(if set { "RELEASE settings" } else { "ROLLBACK TO settings" }).await?;
        // A statement of the extended protocol leaves its portal open, and with it a snapshot that keeps old rows.
        client.simple_query(&format!("SELECT pg_try_advisory_xact_lock({})", inner.me.lock)).await
    };
    let is_true =
        |message: &SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"));
    let taken = async { taken.await.map_err(|error| faults::of(&error)) };
    let is_taken = inner.within(taken, 0, connection).await.is_ok_and(|messages| messages.iter().any(is_true));
    let parameters: [Typed<'_>; 1] = [(&inner.me.lock, Type::INT8)];
    let others = inner.ask("SELECT pg_try_advisory_xact_lock($1)", &parameters).await;
    let keeps_out = others.is_ok_and(|rows| rows.first().is_some_and(|row| !row.get::<_, bool>(0)));
    inner.locks.store(keeps_out, Ordering::Relaxed);
    if !is_taken {
        // The server has not yet seen that the connection before this one is gone, or it has no locks.
        connection.drop_client().await;
        return Ok(None);
    }
    Ok(Some(client))
}

/// Renews the row of this daemon, or makes it.
pub(super) async fn renew(inner: &Inner) -> Result<(), Fault> {
    let me = &inner.me;
    let pid = i64::from(me.pid);
    let parameters: [Typed<'_>; 5] = [
        (&me.id, Type::TEXT),
        (&me.lock, Type::INT8),
        (&me.host, Type::TEXT),
        (&pid, Type::INT8),
        (&env!("CARGO_PKG_VERSION"), Type::TEXT),
    ];
    let renewed = inner.ask(RENEW, &parameters).await;
    if renewed.is_ok() {
        // A session that was closed while the server was away, or made by a request of whose end this daemon did not hear.
        let open: Vec<String> = lock(&inner.open).keys().cloned().collect();
        inner.ask(GIVE_UP, &[(&me.id, Type::TEXT), (&open, Type::TEXT_ARRAY)]).await?;
    }
    watch(inner).await;
    renewed.map(drop)
}

/// Asks the owners of the sessions that are followed to tell of new rows.
pub(super) async fn watch(inner: &Inner) {
    let followed: Vec<String> = lock(&inner.followed).keys().cloned().collect();
    if !followed.is_empty() && inner.notifies.load(Ordering::Relaxed) {
        let watched = inner.ask(WATCH, &[(&followed, Type::TEXT_ARRAY)]).await;
        // A replica tells nothing of that, and is polled.
        if matches!(watched, Err(Fault::Refused { retryable: false, .. })) {
            inner.notifies.store(false, Ordering::Relaxed);
        }
    }
}

/// Removes the rows of daemons that ended long ago and own nothing.
async fn forget(inner: &Inner) {
    let _ = inner.ask(FORGET, &[]).await;
}

/// Tells of the sessions that have grown.
async fn poll(inner: &Inner) -> Result<(), Fault> {
    let followed: Vec<String> = lock(&inner.followed).keys().cloned().collect();
    if followed.is_empty() {
        return Ok(());
    }
    let text = "SELECT id, generation, lines FROM @.session WHERE id = ANY($1)";
    let rows = inner.ask(text, &[(&followed, Type::TEXT_ARRAY)]).await?;
    let mut known = lock(&inner.followed);
    let there: HashSet<String> = rows.iter().map(|row| row.get(0)).collect();
    for (_, follow) in known.iter_mut().filter(|(id, _)| !there.contains(*id)) {
        // It was deleted. Its reader learns it once.
        if follow.seen != GONE {
            follow.seen = GONE;
            (follow.tell)();
        }
    }
    for row in rows {
        let (id, now): (String, (i64, i64)) = (row.get(0), (row.get(1), row.get(2)));
        if let Some(Follow { seen, tell }) = known.get_mut(&id)
            && *seen != now
        {
            *seen = now;
            tell();
        }
    }
    Ok(())
}

/// Generation and lines of a session that was deleted.
const GONE: (i64, i64) = (-1, -1);

const RENEW: &str = "
INSERT INTO @.owner (id, lock, host, pid, version) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET renewed = now()";

/// The transaction of the keeper stays open.
const UNLIMITED: &str = "SELECT set_config(name, '0', true) FROM pg_settings
WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')";

const GIVE_UP: &str = "UPDATE @.session SET owner = NULL WHERE owner = $1 AND NOT id = ANY($2)";

const WATCH: &str = "
UPDATE @.session SET watched = now() + interval '1 minute' WHERE id IN (SELECT id FROM @.session WHERE id = ANY($1)
    AND (watched IS NULL OR watched < now() + interval '30 seconds') ORDER BY id FOR UPDATE SKIP LOCKED)";

const FORGET: &str = "
DELETE FROM @.owner o WHERE o.renewed < now() - interval '7 days'
AND NOT EXISTS (SELECT 1 FROM @.session s WHERE s.owner = o.id)";
