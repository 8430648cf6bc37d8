//! Ctrl-C while a command works.

use std::thread;

/// The exit code after Ctrl-C, as of a shell.
pub(super) const INTERRUPTED: i32 = 130;

/// Calls `act` at each Ctrl-C, on a thread of its own, as long as it returns true. The program does not end by itself any more.
pub(super) fn on_ctrl_c(act: impl Fn() -> bool + Send + 'static) {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() && act() {}
    });
}
