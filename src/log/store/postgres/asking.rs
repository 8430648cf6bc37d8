//! Requests to the database: the common connection, transactions, and the time that an answer may take.

use super::{Inner, Typed, connection::Connection, faults, schema};
use crate::log::store::server::Fault;
use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio_postgres::{Client, Row};

/// The longest time that a request may take. A server that does not answer for longer counts as away.
const LONGEST_REQUEST: Duration = Duration::from_secs(10);

/// The time that an answer has after that, to be read.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// The slowest connection that counts as one, in bytes per second.
const SLOWEST: u64 = 1 << 20;

/// The most bytes of a transaction, for the time that it may take.
const LARGEST: u64 = 1 << 30;

/// The most bytes that a request of the common connection asks for.
const READ_AT_ONCE: u64 = 4 << 20;

impl Inner {
    /// A statement with the schema in the place of `@`.
    pub(super) fn sql(&self, text: &str) -> String {
        text.replace("@.", &format!("\"{}\".", self.address.schema.replace('"', "\"\"")))
    }

    /// The name of the channel of notifications.
    pub(super) fn channel(&self) -> String {
        format!("abridged_{}", self.identity.get().map_or("", String::as_str))
    }

    /// The common connection, after the tables were checked.
    pub(super) async fn ready(&self) -> Result<Arc<Client>, Fault> {
        let (client, is_new) = self.connected(&self.common).await?;
        let checked = self.checking.lock().await;
        if self.identity.get().is_none() {
            let identity = self.within(schema::prepare(self, &client), 0, &self.common).await?;
            let _ = self.identity.set(identity);
        }
        drop(checked);
        if is_new {
            let listen = format!("LISTEN {}", self.channel());
            let listens = async { client.batch_execute(&listen).await.map_err(|error| faults::of(&error)) };
            let listens = self.within(listens, 0, &self.common).await;
            self.notifies.store(listens.is_ok(), Ordering::Relaxed);
        }
        Ok(client)
    }

    /// A client of a connection, and whether it is a new one.
    pub(super) async fn connected(&self, connection: &Connection) -> Result<(Arc<Client>, bool), Fault> {
        connection.client().await.inspect_err(|fault| self.health.fails(fault))
    }

    /// Asks a statement on the common connection. It changes nothing, or may be repeated.
    pub(super) async fn ask(&self, text: &str, parameters: &[Typed<'_>]) -> Result<Vec<Row>, Fault> {
        let client = self.ready().await?;
        let sql = self.sql(text);
        let asked = async {
            let rows = client.query_typed(&sql, parameters).await;
            rows.map_err(|error| faults::of(&error))
        };
        self.within(asked, READ_AT_ONCE, &self.common).await
    }

    /// Runs statements in one transaction on the connection for long changes.
    pub(super) async fn transaction<T>(&self, body: impl AsyncFnOnce(&Client) -> Result<T, Fault>) -> Result<T, Fault> {
        self.ready().await?;
        let long = self.long.lock().await;
        let (client, _) = self.connected(&long).await?;
        let run = async {
            let begun = client.batch_execute("BEGIN").await;
            begun.map_err(|error| certain(faults::of(&error)))?;
            let done = body(&client).await.map_err(certain)?;
            client.batch_execute("COMMIT").await.map_err(|error| faults::of(&error))?;
            Ok(done)
        };
        let done = self.within(run, LARGEST, &long).await;
        if done.is_err() {
            // The server takes the transaction back with its connection.
            let rolled_back = tokio::time::timeout(Duration::from_secs(2), client.batch_execute("ROLLBACK")).await;
            if !matches!(rolled_back, Ok(Ok(()))) {
                long.drop_client().await;
            }
        }
        done
    }

    /// A request that takes too long counts as cut off, its connection is given up, and the server counts as away since then.
    /// `bytes` are those that it sends or asks for.
    pub(super) async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, Fault>>,
        bytes: u64,
        connection: &Connection,
    ) -> Result<T, Fault> {
        let longest = LONGEST_REQUEST + Duration::from_secs(bytes / SLOWEST);
        match answer(request, longest).await {
            Some(done) => {
                self.health.saw(&done);
                done
            }
            None => {
                connection.drop_client().await;
                let fault = Fault::Cut(format!("no answer in {} seconds", longest.as_secs()));
                self.health.was_silent(longest, &fault);
                Err(fault)
            }
        }
    }
}

/// The answer of a request that comes in time.
async fn answer<T>(request: impl Future<Output = T>, longest: Duration) -> Option<T> {
    let mut request = pin!(request);
    match tokio::time::timeout(longest, &mut request).await {
        Ok(answer) => Some(answer),
        // A process that was paused finds the answer and the end of the time at once.
        Err(_) => tokio::time::timeout(SECOND_LOOK, request).await.ok(),
    }
}

/// A request that was cut off before its commit did nothing.
pub(super) fn certain(fault: Fault) -> Fault {
    match fault {
        Fault::Cut(why) => Fault::Away(why),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_came_while_the_process_was_paused_counts() {
        let paused = async {
            std::thread::sleep(Duration::from_millis(30));
            // Other tasks read the answer first.
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            7
        };
        assert_eq!(answer(paused, Duration::from_millis(10)).await, Some(7));
        assert_eq!(answer(std::future::pending::<u8>(), Duration::from_millis(10)).await, None);
    }
}
