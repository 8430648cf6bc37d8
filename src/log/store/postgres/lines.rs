//! The lines of a session: reading them, making a session of them, and replacing those at the end.

use super::{
    Inner, Typed,
    appending::Addition,
    faults,
    owning::{Found, standing_of},
    signed,
};
use crate::{
    ids::SessionId,
    log::store::{
        facts::{self, Facts},
        rows,
        server::{About, Fault, From, Held, Standing},
    },
};
use std::time::Duration;
use tokio_postgres::{Client, types::Type};

/// The most rows of one page.
const MOST_ROWS: i64 = 8_192;

/// The fewest rows of one page that are looked at.
const LEAST_ROWS: i64 = 64;

/// The size of a short row, in bytes.
const SHORT: u64 = 512;

impl Inner {
    pub(super) async fn read(
        &self,
        id: &SessionId,
        generation: i64,
        from: From,
        bytes: u64,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let (line, text) = match from {
            From::Line(line) => (line, READ_ON),
            From::Before(line) => (line, READ_BACK),
        };
        // Short rows are no reason to look at many of them.
        let rows = signed(bytes / SHORT).clamp(LEAST_ROWS, MOST_ROWS);
        let (line, bytes) = (signed(line), signed(bytes));
        let parameters: [Typed<'_>; 5] = [
            (&id.as_str(), Type::TEXT),
            (&generation, Type::INT8),
            (&line, Type::INT8),
            (&bytes, Type::INT8),
            (&rows, Type::INT8),
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

    pub(super) async fn create(
        &self,
        about: &About,
        batches: &mut tokio::sync::mpsc::Receiver<Vec<Vec<u8>>>,
    ) -> Result<Held, Fault> {
        let id = sound_id(&about.id)?;
        self.is_registered().await?;
        let (me, epoch) = (self.me.id.clone(), 1_i64);
        let created = self
            .transaction(async |client| {
                let sound = |text: &str| facts::sound(text);
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
                loop {
                    // A source that ends without the empty batch has failed, and nothing of it is committed.
                    let batch = batches.recv().await.ok_or_else(|| Fault::Source("the lines end too early".into()))?;
                    if batch.is_empty() {
                        break;
                    }
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
            Err(Fault::Cut(why)) => match self.found_again(&about.id).await {
                Ok(found) if found.owner.as_ref().is_some_and(|owner| owner.id == self.me.id) => {
                    Ok(Held { id: about.id.clone(), epoch, standing: found.standing, left_behind: Vec::new() })
                }
                _ => Err(Fault::Cut(why)),
            },
            Err(fault) => Err(fault),
        }
    }

    /// Looks for a session until the server answers, or has been away for too long.
    async fn found_again(&self, id: &SessionId) -> Result<Found, Fault> {
        loop {
            match self.find(id).await {
                Err(Fault::Away(_) | Fault::Cut(_)) if self.health.gate().is_ok() => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                other => return other,
            }
        }
    }

    /// Adds rows in a transaction. `None` where the session does not stand as the owner knows it.
    pub(super) async fn add(
        &self,
        client: &Client,
        id: &str,
        epoch: i64,
        standing: &Standing,
        batch: &[Vec<u8>],
        facts: &Facts,
    ) -> Result<Option<Standing>, Fault> {
        let addition = Addition::of(id, epoch, standing.lines, batch, facts);
        let added = addition.query(self, client).await.map_err(|error| faults::of(&error))?;
        Ok((!added.is_empty()).then(|| Standing {
            lines: standing.lines + batch.len() as u64,
            bytes: standing.bytes + rows::size(batch),
            whole: rows::are_whole(batch),
            ..standing.clone()
        }))
    }

    pub(super) async fn rewrite(&self, held: &Held, from: u64, batch: &[Vec<u8>]) -> Result<Standing, Fault> {
        let id = held.id.as_str();
        let first = signed(from);
        let rewritten = self
            .transaction(async |client| {
                let query = async |text: &str, parameters: &[Typed<'_>]| {
                    client.query_typed(&self.sql(text), parameters).await.map_err(|error| faults::of(&error))
                };
                let of_line: [Typed<'_>; 2] = [(&id, Type::TEXT), (&first, Type::INT8)];
                let gone = query(GONE, &of_line).await?;
                let gone: (i64, i64) = gone.first().map_or((0, 0), |row| (row.get(0), row.get(1)));
                let parameters: [Typed<'_>; 6] = [
                    (&id, Type::TEXT),
                    (&held.epoch, Type::INT8),
                    (&first, Type::INT8),
                    (&gone.0, Type::INT8),
                    (&self.me.id, Type::TEXT),
                    (&gone.1, Type::INT8),
                ];
                let cut = query(CUT, &parameters).await?;
                let Some(cut) = cut.first() else { return Ok(None) };
                let standing = standing_of(cut);
                query("DELETE FROM @.passage WHERE session = $1 AND line >= $2", &of_line).await?;
                query("DELETE FROM @.line WHERE session = $1 AND number >= $2", &of_line).await?;
                if batch.is_empty() {
                    return Ok(Some(standing));
                }
                let facts = Facts::of(batch, from);
                self.add(client, id, held.epoch, &standing, batch, &facts).await
            })
            .await?;
        match rewritten {
            Some(standing) => Ok(standing),
            None => Err(self.why_not(held).await),
        }
    }
}

/// An id as the database takes it.
fn sound_id(id: &SessionId) -> Result<String, Fault> {
    if id.as_str().contains('\0') {
        let why = "its id has a zero character, which the database takes in no text".to_owned();
        return Err(Fault::Refused { why, retryable: false });
    }
    Ok(id.as_str().to_owned())
}

const CREATE: &str = "
INSERT INTO @.session (id, name, cwd, created, parent, owner, owned) VALUES ($1, $2, $3, $4, $5, $6, now())
ON CONFLICT DO NOTHING RETURNING id";

const GONE: &str = "
SELECT coalesce(sum(octet_length(data)), 0)::int8, count(*) FROM @.line WHERE session = $1 AND number >= $2";

const CUT: &str = "
UPDATE @.session SET generation = generation + 1, lines = $3, bytes = bytes - $4, whole = true, changed = now(),
    entries = CASE WHEN $3 = 0 THEN 0 ELSE greatest(0, entries - $6) END,
    preview = CASE WHEN EXISTS (SELECT 1 FROM @.passage p WHERE p.session = $1 AND p.line < $3) THEN preview END
WHERE id = $1 AND epoch = $2 AND owner = $5
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
