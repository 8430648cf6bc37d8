//! Work that blocks, apart from the tasks that wait.

use super::Pending;
use std::sync::{Arc, Mutex, PoisonError};

/// Work that blocks: it counts tokens and reads long texts.
pub type Blocking = Box<dyn FnOnce() + Send>;

/// Runs work that blocks, apart from the tasks that wait.
pub trait Pool: Send + Sync {
    /// Runs `work` and waits for its end. A pool that shuts down may drop it. It does not panic.
    fn run(&self, work: Blocking) -> Pending<'_, ()>;
}

/// The result of work in the pool. None where the pool shuts down.
pub async fn in_pool<T: Send + 'static>(pool: &dyn Pool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let done = Arc::new(Mutex::new(None));
    let result = done.clone();
    let work = move || {
        let worked = work();
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(worked);
    };
    pool.run(Box::new(work)).await;
    done.lock().unwrap_or_else(PoisonError::into_inner).take()
}
