//! The statements that append: one for a single session, which the server performs faster, and one for many.

use super::{Inner, signed};
use crate::log::store::{facts::Facts, rows};
use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};
use tokio_postgres::{
    Client, Error, Row, Statement,
    error::SqlState,
    types::{ToSql, Type},
};

/// Rows of a session that are appended.
pub(super) struct Addition<'a> {
    id: &'a str,
    epoch: i64,
    first: u64,
    rows: &'a [Vec<u8>],
    facts: &'a Facts,
}

impl<'a> Addition<'a> {
    /// `first` is the number of the first row, which is the number of rows before.
    pub(super) fn of(id: &'a str, epoch: i64, first: u64, rows: &'a [Vec<u8>], facts: &'a Facts) -> Self {
        Self { id, epoch, first, rows, facts }
    }

    /// Adds the rows in a transaction. Returns the session, if it stood as its owner knew it.
    pub(super) async fn query(self, inner: &Inner, client: &Client) -> Result<Vec<Row>, Error> {
        Sent::one(inner, &self, false).query(inner, client).await
    }

    fn numbers(&self) -> Vec<i64> {
        (self.first..).map(signed).take(self.rows.len()).collect()
    }

    fn data(&self) -> Vec<&'a [u8]> {
        self.rows.iter().map(Vec::as_slice).collect()
    }

    fn text_numbers(&self) -> Vec<i64> {
        self.facts.texts.iter().map(|(number, _)| signed(*number)).collect()
    }

    fn texts(&self) -> Vec<&'a str> {
        self.facts.texts.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// The statements that a connection knows.
#[derive(Default)]
pub(super) struct Prepared {
    known: Option<(Arc<Client>, HashMap<&'static str, Statement>)>,
    /// A pooler gives each transaction another connection of the server, which does not know the statement.
    is_pooled: bool,
}

impl Prepared {
    /// Appends rows. Returns the sessions that have them.
    pub(super) async fn append(
        &mut self,
        inner: &Inner,
        client: &Arc<Client>,
        additions: &[Addition<'_>],
    ) -> Result<Vec<Row>, Error> {
        let notifies = inner.notifies.load(Ordering::Relaxed);
        let sent = match additions {
            [one] => Sent::one(inner, one, notifies),
            many => Sent::many(inner, many, notifies),
        };
        if self.is_pooled {
            return sent.query(inner, client).await;
        }
        // A statement that is unknown did nothing, and is sent whole.
        match self.known_to(inner, client, &sent).await {
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
        sent.query(inner, client).await
    }

    async fn known_to(&mut self, inner: &Inner, client: &Arc<Client>, sent: &Sent<'_>) -> Result<Statement, Error> {
        if !self.known.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, client)) {
            self.known = None;
        }
        let (_, statements) = self.known.get_or_insert_with(|| (client.clone(), HashMap::new()));
        if let Some(statement) = statements.get(sent.text) {
            return Ok(statement.clone());
        }
        let types: Vec<Type> = sent.columns.iter().map(|(_, kind)| kind.clone()).collect();
        let statement = client.prepare_typed(&inner.sql(sent.text), &types).await?;
        statements.insert(sent.text, statement.clone());
        Ok(statement)
    }
}

/// Whether the server does not know a statement by its name, or knows another one by it.
fn is_unknown(error: &Error) -> bool {
    let codes = [&SqlState::INVALID_SQL_STATEMENT_NAME, &SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| codes.contains(&code))
}

/// A statement that appends, with its parameters.
struct Sent<'a> {
    text: &'static str,
    columns: Vec<(Box<dyn ToSql + Sync + Send + 'a>, Type)>,
}

impl<'a> Sent<'a> {
    fn one(inner: &Inner, it: &Addition<'a>, notifies: bool) -> Self {
        let mut sent = Self { text: if notifies { ONE } else { ONE_QUIETLY }, columns: Vec::new() };
        sent.add(inner.channel(), Type::TEXT);
        sent.add(inner.me.id.clone(), Type::TEXT);
        sent.add(it.id, Type::TEXT);
        sent.add(it.epoch, Type::INT8);
        sent.add(signed(it.first), Type::INT8);
        sent.add(signed(it.rows.len() as u64), Type::INT8);
        sent.add(signed(rows::size(it.rows)), Type::INT8);
        sent.add(rows::are_whole(it.rows), Type::BOOL);
        sent.add(it.facts.title.as_deref(), Type::TEXT);
        sent.add(it.facts.preview.as_deref(), Type::TEXT);
        sent.add(signed(it.facts.entries), Type::INT8);
        sent.add(it.numbers(), Type::INT8_ARRAY);
        sent.add(it.data(), Type::BYTEA_ARRAY);
        sent.add(it.text_numbers(), Type::INT8_ARRAY);
        sent.add(it.texts(), Type::TEXT_ARRAY);
        sent
    }

    fn many(inner: &Inner, all: &[Addition<'a>], notifies: bool) -> Self {
        let mut sent = Self { text: if notifies { MANY } else { MANY_QUIETLY }, columns: Vec::new() };
        sent.add(inner.channel(), Type::TEXT);
        sent.add(inner.me.id.clone(), Type::TEXT);
        sent.each(all, |it| it.id, Type::TEXT_ARRAY);
        sent.each(all, |it| it.epoch, Type::INT8_ARRAY);
        sent.each(all, |it| signed(it.first), Type::INT8_ARRAY);
        sent.each(all, |it| signed(it.rows.len() as u64), Type::INT8_ARRAY);
        sent.each(all, |it| signed(rows::size(it.rows)), Type::INT8_ARRAY);
        sent.each(all, |it| rows::are_whole(it.rows), Type::BOOL_ARRAY);
        sent.each(all, |it| it.facts.title.as_deref(), Type::TEXT_ARRAY);
        sent.each(all, |it| it.facts.preview.as_deref(), Type::TEXT_ARRAY);
        sent.each(all, |it| signed(it.facts.entries), Type::INT8_ARRAY);
        sent.all(all, |it| vec![it.id; it.rows.len()], Type::TEXT_ARRAY);
        sent.all(all, Addition::numbers, Type::INT8_ARRAY);
        sent.all(all, Addition::data, Type::BYTEA_ARRAY);
        sent.all(all, |it| vec![it.id; it.facts.texts.len()], Type::TEXT_ARRAY);
        sent.all(all, Addition::text_numbers, Type::INT8_ARRAY);
        sent.all(all, Addition::texts, Type::TEXT_ARRAY);
        sent
    }

    fn add(&mut self, value: impl ToSql + Sync + Send + 'a, kind: Type) {
        self.columns.push((Box::new(value), kind));
    }

    /// Adds an array with a value of each session.
    fn each<T: ToSql + Sync + Send + 'a>(
        &mut self,
        all: &[Addition<'a>],
        value: impl Fn(&Addition<'a>) -> T,
        kind: Type,
    ) {
        self.add(all.iter().map(value).collect::<Vec<T>>(), kind);
    }

    /// Adds an array with all values of all sessions.
    fn all<T: ToSql + Sync + Send + 'a>(
        &mut self,
        all: &[Addition<'a>],
        values: impl Fn(&Addition<'a>) -> Vec<T>,
        kind: Type,
    ) {
        self.add(all.iter().flat_map(values).collect::<Vec<_>>(), kind);
    }

    /// Sends it, with a statement that the connection knows.
    async fn execute(&self, client: &Client, statement: &Statement) -> Result<Vec<Row>, Error> {
        let values: Vec<&(dyn ToSql + Sync)> = self.columns.iter().map(|(value, _)| &**value as _).collect();
        client.query(statement, &values).await
    }

    /// Sends it with its text.
    async fn query(&self, inner: &Inner, client: &Client) -> Result<Vec<Row>, Error> {
        let columns: Vec<(&(dyn ToSql + Sync), Type)> =
            self.columns.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect();
        client.query_typed(&inner.sql(self.text), &columns).await
    }
}

// Arrays stand in subqueries, so that the planner does not see how long they are. It would else find a plan for these very
// arrays cheaper, and plan each append anew, which takes longer than the append.

macro_rules! one {
    ($told:literal) => {
        concat!(
            "
WITH held AS (
    UPDATE @.session s SET lines = s.lines + $6, bytes = s.bytes + $7, whole = $8,
        title = nullif(coalesce($9, s.title), ''), preview = coalesce(s.preview, $10),
        entries = s.entries + $11, changed = now()
    WHERE s.id = $3 AND s.epoch = $4 AND s.lines = $5 AND s.whole AND s.owner = $2
    RETURNING s.id, s.watched
), added AS (
    INSERT INTO @.line (session, number, data)
    SELECT held.id, l.number, l.data FROM held, unnest((SELECT $12::int8[]), (SELECT $13::bytea[])) AS l(number, data)
), found AS (
    INSERT INTO @.passage (session, line, text)
    SELECT held.id, p.number, p.text FROM held, unnest((SELECT $14::int8[]), (SELECT $15::text[])) AS p(number, text)
)
SELECT held.id, ",
            $told,
            " FROM held"
        )
    };
}

macro_rules! many {
    ($told:literal) => {
        concat!(
            "
WITH input AS (
    SELECT * FROM unnest((SELECT $3::text[]), (SELECT $4::int8[]), (SELECT $5::int8[]), (SELECT $6::int8[]),
        (SELECT $7::int8[]), (SELECT $8::bool[]), (SELECT $9::text[]), (SELECT $10::text[]), (SELECT $11::int8[]))
        AS i(id, epoch, first, count, size, whole, title, preview, entries)
), held AS (
    UPDATE @.session s SET lines = s.lines + i.count, bytes = s.bytes + i.size, whole = i.whole,
        title = nullif(coalesce(i.title, s.title), ''), preview = coalesce(s.preview, i.preview),
        entries = s.entries + i.entries, changed = now()
    FROM input i WHERE s.id = i.id AND s.epoch = i.epoch AND s.lines = i.first AND s.whole AND s.owner = $2
    RETURNING s.id, s.watched
), added AS (
    INSERT INTO @.line (session, number, data)
    SELECT l.id, l.number, l.data FROM unnest((SELECT $12::text[]), (SELECT $13::int8[]), (SELECT $14::bytea[]))
        AS l(id, number, data)
    JOIN held ON held.id = l.id
), found AS (
    INSERT INTO @.passage (session, line, text)
    SELECT p.id, p.number, p.text FROM unnest((SELECT $15::text[]), (SELECT $16::int8[]), (SELECT $17::text[]))
        AS p(id, number, text)
    JOIN held ON held.id = p.id
)
SELECT held.id, ",
            $told,
            " FROM held"
        )
    };
}

// Those that follow a session are told, where the server has notifications.
const ONE: &str = one!("CASE WHEN held.watched > now() THEN pg_notify($1, held.id)::text END");
const ONE_QUIETLY: &str = one!("$1::text");
const MANY: &str = many!("CASE WHEN held.watched > now() THEN pg_notify($1, held.id)::text END");
const MANY_QUIETLY: &str = many!("$1::text");
