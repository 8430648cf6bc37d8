//! Work of a job that blocks.

use super::defect;
use crate::{
    ask::pool::{Pool, in_pool},
    protocol::errors::Failure,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of work in the pool. A panic is an error of the work.
pub async fn blocking<T: Send + 'static>(
    pool: &dyn Pool,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    // A pool is not expected to survive a panic.
    let work = move || catch_unwind(AssertUnwindSafe(work));
    match in_pool(pool, work).await {
        Some(Ok(done)) => done,
        Some(Err(_)) | None => Err(defect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Pending, pool::Blocking};
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
