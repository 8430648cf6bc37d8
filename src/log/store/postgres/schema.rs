//! The tables of a store: made where there are none, and checked where there are.

use super::{Inner, faults};
use crate::log::store::server::Fault;
use tokio_postgres::{Client, error::SqlState, types::Type};

/// The steps to the tables of this version, in their order.
const STEPS: [&str; 1] = [include_str!("../schema/0001.sql")];

/// The lock of those that make the tables, an arbitrary number.
const LOCK: i64 = 0x6162_7269_6467_6564;

/// Makes the tables or brings them to this version. Returns the identity of the store.
pub(super) async fn prepare(inner: &Inner, client: &Client) -> Result<String, Fault> {
    // Most daemons find them.
    if let Some((version, identity)) = read(inner, client).await?
        && version == STEPS.len()
    {
        return Ok(identity);
    }
    let made = make(inner, client).await;
    if made.is_err() {
        let _ = client.batch_execute("ROLLBACK").await;
    }
    made
}

/// The version of the tables and the identity of the store; `None` where there are no tables.
async fn read(inner: &Inner, client: &Client) -> Result<Option<(usize, String)>, Fault> {
    let rows = match client.query_typed(&inner.sql("SELECT version, identity FROM @.about"), &[]).await {
        Ok(rows) => rows,
        Err(error) => {
            let missing = [&SqlState::UNDEFINED_TABLE, &SqlState::INVALID_SCHEMA_NAME];
            return match error.code() {
                Some(code) if missing.contains(&code) => Ok(None),
                _ => Err(faults::of(&error)),
            };
        }
    };
    let Some(row) = rows.first() else { return Ok(None) };
    let version: i32 = row.get(0);
    let known = STEPS.len();
    match usize::try_from(version) {
        Ok(version) if version <= known => Ok(Some((version, row.get(1)))),
        _ => {
            let why = format!(
                "its tables are of version {version}, and this program knows versions up to {known}; install a newer \
                 abridged, or name another schema"
            );
            Err(Fault::Refused { why, retryable: false })
        }
    }
}

async fn make(inner: &Inner, client: &Client) -> Result<String, Fault> {
    let run = async |text: &str| client.batch_execute(&inner.sql(text)).await.map_err(|error| unmade(&error));
    run("BEGIN").await?;
    // A server without such locks refuses the second of two that make the tables.
    let locked = client.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)]).await;
    if locked.is_err() {
        run("ROLLBACK").await?;
        run("BEGIN").await?;
    }
    let schema = inner.sql("@.");
    let schema = schema.trim_end_matches('.');
    let found = client
        .query_typed(
            "SELECT 1 FROM information_schema.schemata WHERE schema_name = $1",
            &[(&inner.address.schema, Type::TEXT)],
        )
        .await
        .map_err(|error| unmade(&error))?;
    if found.is_empty() {
        run(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await?;
    }
    run(&format!("SET LOCAL search_path TO {schema}")).await?;
    let there = client
        .query_typed(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = $1 AND table_name = 'about'",
            &[(&inner.address.schema, Type::TEXT)],
        )
        .await
        .map_err(|error| unmade(&error))?;
    let (version, identity) = match there.is_empty() {
        true => (0, inner.me.id.clone()),
        // Another daemon may have made them meanwhile.
        false => read(inner, client).await?.unwrap_or((0, inner.me.id.clone())),
    };
    for step in &STEPS[version..] {
        run(step).await?;
    }
    let now = STEPS.len();
    if version == 0 {
        let made = format!("INSERT INTO about (version, identity) VALUES ({now}, '{identity}')");
        run(&made).await?;
    } else if version < now {
        run(&format!("UPDATE about SET version = {now}")).await?;
    }
    run("COMMIT").await?;
    tracing::info!(version = now, "the tables of the store are ready");
    Ok(identity)
}

/// The fault of tables that could not be made.
fn unmade(error: &tokio_postgres::Error) -> Fault {
    match error.as_db_error() {
        Some(refusal) if refusal.code() == &SqlState::INSUFFICIENT_PRIVILEGE => {
            let why = format!(
                "there are no tables yet, and this role may not make them ({}); start once with a role that may, or run \
                 the statements of docs/STORE.md under Roles",
                refusal.message()
            );
            Fault::Refused { why, retryable: false }
        }
        _ => faults::of(error),
    }
}
