//! Work that takes a core for seconds while answers are made.

#[cfg(target_os = "linux")]
use rustix::process::{getpriority_process, setpriority_process};
use tokio::sync::oneshot;

/// The nice value of the threads of such work above that of the process. Threads that make answers go first, and beside
/// other programs the work gets about a third of a fair share.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Runs work in a thread of its own, below the priority of answers. False where the work did not end, or no thread could be
/// made.
pub(super) async fn run(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let (ended, end) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Of this thread alone, and for good: a thread may not raise its own priority again.
        #[cfg(target_os = "linux")]
        let _ = getpriority_process(None).and_then(|nice| setpriority_process(None, nice + NICE));
        work();
        let _ = ended.send(());
    });
    thread.is_ok() && end.await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_ends_is_told_from_work_that_does_not() {
        assert!(run("ends", || {}).await);
        assert!(!run("panics", || panic!("a defect")).await);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_has_a_lower_priority_than_the_threads_of_the_runtime() {
        let nice = || getpriority_process(None).expect("a nice value");
        let (before, (tell, told)) = (nice(), oneshot::channel());
        assert!(run("low", move || tell.send(nice()).expect("somebody waits")).await);
        assert_eq!(told.await.expect("a nice value"), (before + NICE).min(19));
        assert_eq!(nice(), before);
    }
}
