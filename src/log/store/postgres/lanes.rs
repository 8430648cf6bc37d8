//! The ways of the appends to the server. A thread that appends drives the connection itself, so that no other thread has to wake
//! up for it. Requests that come meanwhile wait, and one of their threads performs all of them together.

#![expect(clippy::disallowed_methods, reason = "the time since which a connection is borrowed")]

use super::{
    Inner,
    appending::Prepared,
    batch::{Append, Batch, Order, Said},
    connection::Connection,
    lock,
};
use crate::log::{
    Unfinished,
    store::{
        facts::Facts,
        server::{Fault, Held},
    },
};
use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Client;

/// The number of lanes, each with a connection of its own: while one waits for its commit, another one sends.
const LANES: usize = 4;

/// The time for which a lane uses the common connection before it tries to make its own again.
const BORROWED: Duration = Duration::from_secs(10);

/// The lanes.
pub(super) struct Lanes([Arc<Lane>; LANES]);

impl Lanes {
    pub(super) fn new(inner: &Arc<Inner>) -> Self {
        Self(std::array::from_fn(|_| Arc::new(Lane::new(inner.clone()))))
    }

    /// Appends rows. The calling thread blocks. False where the session does not stand as its owner knows it.
    pub(super) fn append(&self, held: Held, rows: Vec<Vec<u8>>, facts: Facts) -> Result<bool, Fault> {
        let lane = self.of(&held);
        let (tell, told) = mpsc::channel();
        if lane.add(Order::Append(Append { held, rows, facts, tell })) {
            lane.lead();
        }
        loop {
            match told.recv() {
                Ok(Said::Done(added)) => return added,
                Ok(Said::Lead) => lane.lead(),
                Err(_) => return Err(Fault::Cut("the request has ended without an answer".to_owned())),
            }
        }
    }

    /// Sends a request that another thread performs.
    pub(super) fn send(&self, order: Order) {
        let lane = self.of(order.held());
        if lane.add(order) {
            lane.lead_elsewhere();
        }
    }

    /// The lane of a session. Its requests stay in their order.
    fn of(&self, held: &Held) -> &Arc<Lane> {
        let mut hasher = DefaultHasher::new();
        held.id.as_str().hash(&mut hasher);
        &self.0[usize::try_from(hasher.finish() % LANES as u64).unwrap_or_default()]
    }
}

struct Lane {
    inner: Arc<Inner>,
    waiting: Mutex<Waiting>,
    driver: Mutex<Driver>,
}

/// The requests that wait.
#[derive(Default)]
struct Waiting {
    orders: VecDeque<Order>,
    /// Whether a thread performs requests, or was told to.
    is_led: bool,
}

/// The connection of a lane, and the state that goes with it.
struct Driver {
    /// Runs the connection while a thread drives it. Made with the first request.
    runtime: Option<Runtime>,
    connection: Connection,
    /// The time since which the lane uses the common connection, because it can have none of its own.
    borrows: Option<Instant>,
    prepared: Prepared,
    unrecorded: Vec<(Held, Vec<Unfinished>)>,
}

impl Lane {
    fn new(inner: Arc<Inner>) -> Self {
        let connection = Connection::new(inner.address.clone());
        let driver =
            Driver { runtime: None, connection, borrows: None, prepared: Prepared::default(), unrecorded: Vec::new() };
        Self { inner, waiting: Mutex::default(), driver: Mutex::new(driver) }
    }

    /// Adds a request to those that wait. Returns whether nobody performs them, and the caller has to see to it.
    fn add(&self, order: Order) -> bool {
        let mut waiting = lock(&self.waiting);
        waiting.orders.push_back(order);
        !std::mem::replace(&mut waiting.is_led, true)
    }

    /// Performs requests that wait, on this thread.
    fn lead(self: &Arc<Self>) {
        let _turn = Turn(self);
        let mut driver = lock(&self.driver);
        let batch = Batch::of(&mut lock(&self.waiting).orders, std::mem::take(&mut driver.unrecorded));
        driver.perform(&self.inner, batch);
    }

    /// Performs requests on a thread of its own. Those of the daemon may all wait for this.
    fn lead_elsewhere(self: &Arc<Self>) {
        let lane = self.clone();
        let led = thread::Builder::new().name("abridged-store".to_owned()).spawn(move || lane.lead());
        if let Err(error) = led {
            tracing::warn!(%error, "no thread can be made; the next request to the store performs those that wait");
            lock(&self.waiting).is_led = false;
        }
    }
}

impl Driver {
    fn perform(&mut self, inner: &Arc<Inner>, batch: Batch) {
        let Self { runtime, connection, borrows, prepared, unrecorded } = self;
        let runtime = match runtime {
            Some(runtime) => runtime,
            None => match Builder::new_current_thread().enable_all().build() {
                Ok(made) => runtime.insert(made),
                Err(error) => {
                    let why = format!("no connection can be made: {error}");
                    *unrecorded = batch.refuse(&Fault::Refused { why, retryable: true });
                    return;
                }
            },
        };
        *unrecorded = runtime.block_on(async {
            // The connection has not run since the last time. The first time the system tells of its end, the second time
            // the connection learns it.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
            match client(inner, connection, borrows).await {
                Ok((client, connection)) => batch.perform(inner, client, connection, prepared).await,
                Err(fault) => batch.refuse(&fault),
            }
        });
    }
}

/// A client of a lane's connection, or of the common one where the server lets the lane have none.
async fn client<'a>(
    inner: &'a Arc<Inner>,
    connection: &'a Connection,
    borrows: &mut Option<Instant>,
) -> Result<(Arc<Client>, &'a Connection), Fault> {
    // Others have waited for the server already.
    inner.health.gate()?;
    let tries = borrows.is_none_or(|since| since.elapsed() > BORROWED);
    if tries {
        match inner.connected(connection).await {
            Ok((client, _)) => {
                *borrows = None;
                return Ok((client, connection));
            }
            Err(fault) => tracing::debug!(?fault, "a lane has no connection of its own"),
        }
    }
    // It runs on the runtime of the daemon, also where nobody appends.
    let common = inner.clone();
    let common = inner.runtime.spawn(async move { common.ready().await }).await;
    let client = common.unwrap_or_else(|_| Err(Fault::Away("the daemon ends".to_owned())))?;
    if tries {
        *borrows = Some(Instant::now());
    }
    Ok((client, &inner.common))
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may be the thread of another runtime that drops it, which may not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The turn of a thread that performs requests. Its end gives the turn to a thread whose request waits.
struct Turn<'a>(&'a Arc<Lane>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0.waiting);
        waiting.is_led = !waiting.orders.is_empty();
        let Some(first) = waiting.orders.front() else { return };
        // A thread that panics cannot lead again.
        let leads = !thread::panicking()
            && matches!(first, Order::Append(Append { tell, .. }) if tell.send(Said::Lead).is_ok());
        drop(waiting);
        if !leads {
            self.0.lead_elsewhere();
        }
    }
}
