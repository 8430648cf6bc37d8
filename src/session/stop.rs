//! Stopping work from outside.

use std::{future, pin::pin, task::Poll};
use tokio_util::sync::CancellationToken;

/// Stops work from any task.
#[derive(Debug, Clone, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// A stop that is requested with this one, or by itself.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Requests the stop.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the stop is requested.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }

    /// The result of `work`. None where the stop is requested first: then `work` is not polled again.
    pub async fn unless_requested<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut stopped, mut work) = (pin!(self.wait()), pin!(work));
        future::poll_fn(|context| match stopped.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => work.as_mut().poll(context).map(Some),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    #[test]
    fn work_is_not_polled_after_the_stop() {
        let (stop, mut polls) = (Stop::default(), 0);
        let work = future::poll_fn(|_| {
            polls += 1;
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        });
        {
            let mut running = pin!(stop.unless_requested(work));
            let mut poll = || running.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(poll(), Poll::Pending);
            stop.request();
            assert_eq!(poll(), Poll::Ready(None));
        }
        assert_eq!(polls, 1);
    }

    #[test]
    fn work_that_ends_before_a_stop_has_its_result() {
        let stop = Stop::default();
        let mut running = pin!(stop.unless_requested(future::ready(7)));
        assert_eq!(running.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Some(7)));
    }
}
