//! Work on several threads at once, as long as the system has some.

use std::{iter, num::NonZero, panic::resume_unwind, thread};

/// The most threads of one piece of work. Four of them read faster than a disk.
const MOST: usize = 4;

/// The number of threads that work may be divided for.
#[must_use]
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(MOST)
}

/// The results of `work` on each part, in their order. The calling thread does the first part, and each part for which no
/// thread can be made.
pub fn each<P: Sync, R: Send>(parts: &[P], work: impl Fn(&P) -> R + Sync) -> Vec<R> {
    let Some((first, others)) = parts.split_first() else { return Vec::new() };
    let work = &work;
    thread::scope(|scope| {
        let spawn = |part| (part, thread::Builder::new().spawn_scoped(scope, move || work(part)));
        let others: Vec<_> = others.iter().map(spawn).collect();
        let first = work(first);
        let others = others.into_iter().map(|(part, thread)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => work(part),
        });
        iter::once(first).chain(others).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_their_parts() {
        assert_eq!(each(&[3, 1, 2], |part| part * 10), [30, 10, 20]);
        assert_eq!(each(&[] as &[u32], |part| *part), [0; 0]);
    }
}
