//! The picture as it changes: file notifications, and a slow tick for ages and for processes that end without a word.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use super::{
    look::{Looks, lives},
    row::{Picture, Row},
    table,
    terminal::{self, Terminal},
};
use crate::{
    cli::{paint::Paint, print},
    clock::now,
    watch::{Depth, Watcher},
};
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{self, IsTerminal, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::{Duration, Instant},
};
use tokio::signal::unix::{SignalKind, signal};

/// The least time between two looks at the folder.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// The time between two looks without a notification. A folder that is made and filled at once may report nothing.
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// The same where the operating system offers no notifications.
const LOOK_UNNOTIFIED: Duration = Duration::from_secs(2);

/// The time between two pictures while an age is shown in seconds.
const SECOND: Duration = Duration::from_secs(1);

/// A reason to do something.
enum Wake {
    /// A file changed.
    Changed,
    /// A key was pressed.
    Key(u8),
    /// A signal came.
    Signal(Signal),
}

/// Follows the changes of a folder.
struct Following {
    looks: Looks,
    picture: Picture,
    wakes: Receiver<Wake>,
    looked: Instant,
    longest: Duration,
    changed: bool,
    _watcher: Watcher,
    /// Keeps the channel open where the watcher has no thread.
    _sender: Sender<Wake>,
}

impl Following {
    /// Looks at the folder for the first time. `sender` gets the notifications.
    fn start(mut looks: Looks, sender: Sender<Wake>, wakes: Receiver<Wake>) -> Self {
        let kept = sender.clone();
        // Watched before the first look: a change between the two is looked at twice.
        let watcher = Watcher::new(move |_| drop(sender.send(Wake::Changed)));
        let longest = match watcher.watch_folder(looks.folder(), Depth::Tree) {
            Ok(()) => LONGEST_LOOK,
            Err(error) => {
                tracing::warn!(%error, "the folder is looked at every two seconds");
                LOOK_UNNOTIFIED
            }
        };
        let picture = looks.look();
        Self {
            looks,
            picture,
            wakes,
            looked: Instant::now(),
            longest,
            changed: false,
            _watcher: watcher,
            _sender: kept,
        }
    }

    /// Waits for the next reason to do something but a change, for the next look, or for `tick`. Returns the reason, and
    /// looks where it is time to.
    fn next(&mut self, tick: Option<Duration>) -> Option<Wake> {
        let start = Instant::now();
        loop {
            let look = if self.changed { BETWEEN_LOOKS } else { self.longest };
            let until_look = look.saturating_sub(self.looked.elapsed());
            let until_tick = tick.map(|tick| tick.saturating_sub(start.elapsed()));
            match self.wakes.recv_timeout(until_tick.map_or(until_look, |tick| tick.min(until_look))) {
                Ok(Wake::Changed) => self.changed = true,
                Ok(other) => return Some(other),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let owner_gone = self.picture.rows.iter().filter_map(|row| row.open_in).any(|pid| !lives(pid));
                    if owner_gone || self.looked.elapsed() >= look {
                        self.look();
                        return None;
                    }
                    if tick.is_some_and(|tick| start.elapsed() >= tick) {
                        return None;
                    }
                }
            }
        }
    }

    fn look(&mut self) {
        if self.looked.elapsed() >= self.longest {
            self.looks.reread();
        }
        self.changed = false;
        self.picture = self.looks.look();
        self.looked = Instant::now();
    }
}

/// Draws the sessions until a key or a signal ends it. Returns the exit code.
///
/// # Errors
/// When the terminal cannot be written.
pub(super) fn on_terminal(looks: Looks, paint: &Paint) -> Result<i32, String> {
    let (sender, wakes) = channel();
    signals(&sender)?;
    let mut following = Following::start(looks, sender.clone(), wakes);
    let hint = if io::stdin().is_terminal() { "q quits" } else { "" };
    let mut terminal = Terminal::enter().map_err(|error| error.to_string())?;
    if !hint.is_empty() {
        keys(sender);
    }
    loop {
        let size = terminal::size();
        let shown = table::shown(following.picture.rows.len(), size);
        following.looks.measure(&mut following.picture.rows[..shown]);
        let lines = table::lines(&following.picture, now(), size, hint, paint);
        if terminal.draw(&lines).is_err() {
            // The terminal is gone.
            return Ok(0);
        }
        let tick = ticks(&following.picture.rows[..shown]).then_some(SECOND);
        match following.next(tick) {
            // Ctrl-C and Ctrl-D, where a terminal gives them as keys.
            Some(Wake::Key(b'q' | b'Q' | 3 | 4)) | Some(Wake::Signal(Signal::INT)) => return Ok(0),
            Some(Wake::Signal(Signal::TSTP)) => {
                terminal.leave();
                let _ = kill_process(getpid(), Signal::STOP);
                terminal.come_back().map_err(|error| error.to_string())?;
            }
            Some(Wake::Signal(signal @ (Signal::TERM | Signal::HUP))) => return Ok(128 + signal.as_raw()),
            // A new size, a key that means nothing, or a new look.
            _ => {}
        }
    }
}

/// Whether an age of these sessions is shown in seconds.
fn ticks(rows: &[Row]) -> bool {
    let recent = |row: &Row| row.last_event().is_some_and(|at| now().as_second().saturating_sub(at.as_second()) < 100);
    rows.iter().any(|row| !row.running.is_empty() || recent(row))
}

/// Prints each session that changed as a JSON object on a line, until nobody reads.
pub(super) fn as_json(looks: Looks) -> i32 {
    let (sender, wakes) = channel();
    let mut following = Following::start(looks, sender, wakes);
    let mut told: HashMap<String, Value> = HashMap::new();
    loop {
        following.looks.measure(&mut following.picture.rows);
        for line in news(&mut told, &following.picture.rows) {
            if writeln!(print::json(), "{line}").is_err() {
                return 0;
            }
        }
        let at_work = following.picture.at_work() > 0;
        following.next(at_work.then_some(SECOND));
    }
}

/// The sessions that are not as they were told, and those that are gone.
fn news(told: &mut HashMap<String, Value>, rows: &[Row]) -> Vec<Value> {
    let mut before = std::mem::take(told);
    let mut news = Vec::new();
    for row in rows {
        let Ok(now) = serde_json::to_value(row) else { continue };
        if before.remove(&row.path).as_ref() != Some(&now) {
            news.push(now.clone());
        }
        told.insert(row.path.clone(), now);
    }
    let gone =
        before.into_iter().map(|(path, row)| json!({ "sessionId": row["sessionId"], "path": path, "removed": true }));
    news.extend(gone);
    news
}

/// Sends each key of stdin.
fn keys(sender: Sender<Wake>) {
    thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut key = [0];
        while matches!(stdin.read(&mut key), Ok(1)) && sender.send(Wake::Key(key[0])).is_ok() {}
    });
}

/// Sends the signals that end, stop or resize the picture.
fn signals(sender: &Sender<Wake>) -> Result<(), String> {
    let failed = |error: io::Error| format!("signals cannot be received: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let entered = runtime.enter();
    let mut streams = Vec::new();
    for number in [Signal::INT, Signal::TERM, Signal::HUP, Signal::WINCH, Signal::TSTP, Signal::CONT] {
        streams.push((number, signal(SignalKind::from_raw(number.as_raw())).map_err(failed)?));
    }
    drop(entered);
    let sender = sender.clone();
    thread::spawn(move || {
        let tasks = streams.into_iter().map(|(number, mut stream)| {
            let sender = sender.clone();
            runtime.spawn(
                async move { while stream.recv().await.is_some() && sender.send(Wake::Signal(number)).is_ok() {} },
            )
        });
        let tasks: Vec<_> = tasks.collect();
        runtime.block_on(async {
            for task in tasks {
                let _ = task.await;
            }
        });
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::watch::row::tests::row;

    #[test]
    fn a_session_is_told_again_when_it_changed_or_went() {
        let mut told = HashMap::new();
        let ids = |news: Vec<Value>| -> Vec<(String, bool)> {
            news.iter().map(|it| (it["sessionId"].to_string(), it["removed"] == true)).collect()
        };
        let of = |id: &str, removed| (format!("\"{id}\""), removed);
        assert_eq!(ids(news(&mut told, &[row("a", 1), row("b", 2)])), [of("a", false), of("b", false)]);
        assert_eq!(ids(news(&mut told, &[row("b", 2), row("a", 1)])), []);
        assert_eq!(ids(news(&mut told, &[row("a", 1), row("b", 3)])), [of("b", false)]);
        assert_eq!(ids(news(&mut told, &[row("b", 3)])), [of("a", true)]);
        assert_eq!(ids(news(&mut told, &[row("b", 3)])), []);
    }

    #[test]
    fn ages_tick_while_they_are_young() {
        let at = |seconds: i64| {
            let mut row = row("a", 1);
            row.updated_at = (now() - jiff::SignedDuration::from_secs(seconds)).to_string();
            row
        };
        assert!(ticks(&[at(200), at(3)]));
        assert!(!ticks(&[at(200)]) && !ticks(&[]));
        let mut working = at(200);
        working.running = vec![crate::cli::watch::row::tests::operation("compaction", "", "2020-01-01T00:00:00Z")];
        assert!(ticks(&[working]));
    }
}
