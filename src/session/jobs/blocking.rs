//! Work of a job that blocks.

use super::defect;
use crate::{ask::Pending, protocol::errors::Failure};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

/// Work that blocks: it counts tokens and reads long texts.
pub type Blocking = Box<dyn FnOnce() + Send>;

/// Runs work that blocks, apart from the tasks that wait.
pub trait Pool: Send + Sync {
    /// Runs `work` and waits for its end. A pool that shuts down may drop it. It does not panic.
    fn run(&self, work: Blocking) -> Pending<'_, ()>;
}

/// The result of work in the pool. A panic is an error of the work.
pub async fn blocking<T: Send + 'static>(
    pool: &dyn Pool,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = Arc::new(Mutex::new(None));
    let result = done.clone();
    let work = move || {
        let worked = catch_unwind(AssertUnwindSafe(work)).ok();
        *result.lock().unwrap_or_else(PoisonError::into_inner) = worked;
    };
    pool.run(Box::new(work)).await;
    let done = done.lock().unwrap_or_else(PoisonError::into_inner).take();
    done.unwrap_or_else(|| Err(defect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    /// Runs work where it is started, or drops it.
    #[derive(Clone, Copy)]
    enum TestPool {
        Inline,
        ShutDown,
    }

    impl Pool for TestPool {
        fn run(&self, work: Blocking) -> Pending<'_, ()> {
            if matches!(self, Self::Inline) {
                work();
            }
            Box::pin(future::ready(()))
        }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn work_in_a_pool_has_its_result_or_a_defect() {
        assert!(matches!(run(blocking(&TestPool::Inline, || Ok(7))), Ok(7)));
        let panicked = run(blocking(&TestPool::Inline, || -> Result<(), _> { panic!("a planted panic") }));
        assert!(matches!(panicked, Err(Failure::Internal(_))));
        assert!(matches!(run(blocking(&TestPool::ShutDown, || Ok(7))), Err(Failure::Internal(_))));
    }
}
