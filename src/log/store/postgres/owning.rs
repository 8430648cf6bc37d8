//! Ownership of a session: how it stands, whether its owner lives, taking it and giving it up.

use super::{Inner, PATIENCE, Registered, Typed, asking::certain, keeper, unsigned};
use crate::{
    ids::SessionId,
    log::store::server::{Fault, Held, Owner, Standing},
};
use std::{sync::atomic::Ordering, time::Duration};
use tokio_postgres::{Row, types::Type};

/// The time without a renewal after which an owner counts as gone, in seconds.
const LONGEST_SILENCE: f64 = 15.0;

/// The time after which a lock that is free is tried again: its owner may have lost that one connection, and takes it again.
const SECOND_LOOK: Duration = Duration::from_millis(300);

impl Inner {
    /// The row of a session: how it stands, and who owns it.
    pub(super) async fn find(&self, id: &SessionId) -> Result<Found, Fault> {
        if id.as_str().contains('\0') {
            return Err(Fault::Missing);
        }
        let rows = self.ask(FIND, &[(&id.as_str(), Type::TEXT)]).await?;
        rows.first().map(Found::of).ok_or(Fault::Missing)
    }

    /// The reason why a write of an owner changed nothing.
    pub(super) async fn why_not(&self, held: &Held) -> Fault {
        match self.find(&held.id).await {
            Err(fault) => fault,
            Ok(found) => match found.owner {
                Some(owner) if owner.id != self.me.id => Fault::Owned(owner.shown),
                _ => Fault::Changed("another daemon had it meanwhile, or its lines in the store are others".to_owned()),
            },
        }
    }

    /// Makes this daemon the owner of a session, where its owner is gone.
    pub(super) async fn take(&self, id: &SessionId) -> Result<Held, Fault> {
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
    pub(super) async fn is_registered(&self) -> Result<(), Fault> {
        let mut registered = self.registered.subscribe();
        let known = registered.wait_for(|it| *it != Registered::NotYet);
        match tokio::time::timeout(PATIENCE, known).await.map(|known| known.map(|it| it.clone())) {
            // The role may have got its rights since.
            Ok(Ok(Registered::Refused(_))) => {
                keeper::renew(self).await?;
                self.registered.send_replace(Registered::Yes);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(_) => Err(self.health.reason()),
        }
    }

    /// Whether an owner may still write.
    pub(super) async fn is_alive(&self, owner: &FoundOwner) -> Result<bool, Fault> {
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
        Ok(self.is_locked(lock).await? || self.may_not_have_returned(&owner.id).await)
    }

    /// Whether the server has just started, and an owner had no time to take its lock again. Some servers do not say it.
    async fn may_not_have_returned(&self, owner: &String) -> bool {
        let rows = self.ask(JUST_STARTED, &[(owner, Type::TEXT)]).await;
        rows.is_ok_and(|rows| rows.first().is_some_and(|row| row.get(0)))
    }

    /// Whether a daemon holds its lock. The lock is free again at once, because the statement is the transaction.
    pub(super) async fn is_locked(&self, lock: i64) -> Result<bool, Fault> {
        let rows = self.ask("SELECT pg_try_advisory_xact_lock($1)", &[(&lock, Type::INT8)]).await?;
        Ok(!rows.first().is_some_and(|row| row.get(0)))
    }

    pub(super) async fn settle(&self, held: &Held) -> Result<Held, Fault> {
        let parameters: [Typed<'_>; 3] =
            [(&held.id.as_str(), Type::TEXT), (&self.me.id, Type::TEXT), (&held.epoch, Type::INT8)];
        let rows = self.ask(SETTLE, &parameters).await.map_err(certain)?;
        match rows.first() {
            Some(row) => Ok(Held { epoch: row.get(6), standing: standing_of(row), ..held.clone() }),
            None => Err(self.why_not(held).await),
        }
    }

    pub(super) async fn delete(&self, id: &SessionId) -> Result<(), Fault> {
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

/// A session as it was found.
pub(super) struct Found {
    pub(super) standing: Standing,
    epoch: i64,
    running: String,
    pub(super) owner: Option<FoundOwner>,
}

/// The owner of a session.
pub(super) struct FoundOwner {
    pub(super) id: String,
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
pub(super) fn standing_of(row: &Row) -> Standing {
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

const JUST_STARTED: &str = "
SELECT now() - pg_postmaster_start_time() < interval '5 seconds'
    AND NOT EXISTS (SELECT 1 FROM @.owner o WHERE o.id = $1 AND o.renewed > pg_postmaster_start_time())";

const TAKE: &str = "
UPDATE @.session SET owner = $2, epoch = epoch + 1, owned = now() WHERE id = $1 AND epoch = $3 RETURNING epoch";

// The same daemon may have raised the epoch by a request of which it did not hear.
const SETTLE: &str = "
UPDATE @.session SET epoch = epoch + 1 WHERE id = $1 AND owner = $2 AND epoch >= $3
RETURNING generation, lines, bytes, whole, name, cwd, epoch";
