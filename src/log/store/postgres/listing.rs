//! The list of sessions, by working folder and by a text.

use super::{Inner, signed, unsigned};
use crate::{
    ids::SessionId,
    log::store::{facts, server::Fault},
};
use tokio_postgres::types::Type;

/// An order for a list.
#[derive(Debug, Clone, Default)]
pub struct ListOrder {
    /// Only sessions with this working folder.
    pub cwd: Option<String>,
    /// Only sessions with this text in folder, title or first request, or with its words in a message.
    pub search: Option<String>,
    /// Only sessions whose id begins so.
    pub id: Option<String>,
    /// Only sessions after this place in the order.
    pub after: Option<(i64, String)>,
    /// The most sessions.
    pub most: u64,
}

/// A session of a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its id.
    pub id: SessionId,
    /// Path of its file below the folder of the sessions.
    pub name: String,
    /// Its working folder.
    pub cwd: String,
    /// Time of its creation, as the header has it.
    pub created: String,
    /// The session that it was made from, as its header has it.
    pub parent: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The first request of the user.
    pub preview: Option<String>,
    /// Number of entries.
    pub entries: u64,
    /// Size of its lines, in bytes.
    pub bytes: u64,
    /// Time of its last change, in microseconds since 1970, by the clock of the database.
    pub changed: i64,
}

pub(super) async fn list(inner: &Inner, order: &ListOrder) -> Result<Vec<Listed>, Fault> {
    let sound = |text: &Option<String>| text.as_deref().map(facts::sound);
    let (cwd, search, id) = (sound(&order.cwd), sound(&order.search), sound(&order.id));
    let (changed, after) =
        order.after.clone().map_or((None, None), |(changed, id)| (Some(changed), Some(facts::sound(&id))));
    let most = signed(order.most);
    let rows = inner
        .ask(
            LIST,
            &[
                (&cwd, Type::TEXT),
                (&search, Type::TEXT),
                (&id, Type::TEXT),
                (&changed, Type::INT8),
                (&after, Type::TEXT),
                (&most, Type::INT8),
            ],
        )
        .await?;
    let listed = rows.iter().map(|row| Listed {
        id: SessionId::from(row.get::<_, &str>(0)),
        name: row.get(1),
        cwd: row.get(2),
        created: row.get(3),
        parent: row.get(4),
        title: row.get(5),
        preview: row.get(6),
        entries: unsigned(row.get(7)),
        bytes: unsigned(row.get(8)),
        changed: row.get(9),
    });
    Ok(listed.collect())
}

const LIST: &str = "
SELECT * FROM (
    SELECT id, name, cwd, created, parent, title, preview, entries, bytes,
        (extract(epoch FROM changed) * 1000000)::int8 AS at
    FROM @.session s
    WHERE ($1 IS NULL OR s.cwd = $1)
    AND ($3 IS NULL OR left(s.id, length($3)) = $3)
    AND ($2 IS NULL
        OR position(lower($2) IN lower(s.cwd || ' ' || coalesce(s.title, '') || ' ' || coalesce(s.preview, ''))) > 0
        OR s.id IN (SELECT p.session FROM @.passage p
            WHERE to_tsvector('simple', p.text) @@ plainto_tsquery('simple', $2)))
) listed
WHERE $4 IS NULL OR at < $4 OR (at = $4 AND id < $5)
ORDER BY at DESC, id DESC LIMIT $6";
