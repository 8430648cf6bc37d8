//! A terminal that is drawn on, and left as it was.

use super::table::Size;
use crate::cli::print;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The other screen, without cursor and without new lines at its right edge, and cleared.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[H\u{1b}[2J";

/// The way back.
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// The size of a terminal that does not know its own.
const USUAL: Size = Size { columns: 80, rows: Some(24) };

/// A terminal on its other screen. It is left when this is dropped, and before a panic is reported.
pub(super) struct Terminal<W: Write> {
    out: W,
    left: Arc<Left>,
}

/// The way back to the state of the terminal before.
struct Left {
    /// The keys before, where stdin is a terminal.
    keys: Option<Termios>,
    /// Whether the terminal is on its other screen.
    entered: AtomicBool,
}

impl Left {
    fn leave(&self, out: &mut impl Write) {
        if self.entered.swap(false, Ordering::SeqCst) {
            let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
            if let Some(keys) = &self.keys {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, keys);
            }
        }
    }
}

impl Terminal<io::Stdout> {
    /// Enters the other screen of stdout. Keys of stdin are read one by one where it is a terminal.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(super) fn enter() -> io::Result<Self> {
        let keys = io::stdin().is_terminal().then(|| tcgetattr(io::stdin()).ok()).flatten();
        let terminal = Self::over(io::stdout(), keys)?;
        let (left, report) = (terminal.left.clone(), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            left.leave(&mut io::stdout());
            report(panic);
        }));
        Ok(terminal)
    }
}

impl<W: Write> Terminal<W> {
    fn over(out: W, keys: Option<Termios>) -> io::Result<Self> {
        let left = Left { keys, entered: AtomicBool::new(false) };
        let mut terminal = Self { out, left: Arc::new(left) };
        terminal.come_back()?;
        Ok(terminal)
    }

    /// Enters the other screen again.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn come_back(&mut self) -> io::Result<()> {
        if let Some(keys) = &self.left.keys {
            let mut single = keys.clone();
            single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &single);
        }
        self.left.entered.store(true, Ordering::SeqCst);
        self.out.write_all(ENTER.as_bytes())?;
        self.out.flush()
    }

    /// Leaves the other screen.
    pub(super) fn leave(&mut self) {
        self.left.leave(&mut self.out);
    }

    /// Draws these lines in the place of those before.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let text = lines.iter().map(|line| print::shown(line)).collect::<Vec<_>>().join("\u{1b}[K\r\n");
        self.out.write_all(format!("\u{1b}[H{text}\u{1b}[K\u{1b}[J").as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Terminal<W> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The size of the terminal of stdout.
pub(super) fn size() -> Size {
    let Ok(size) = tcgetwinsize(io::stdout()) else { return USUAL };
    match (usize::from(size.ws_col), usize::from(size.ws_row)) {
        (0, _) | (_, 0) => USUAL,
        (columns, rows) => Size { columns, rows: Some(rows) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn text(&self) -> String {
            let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8(bytes.clone()).expect("text")
        }
    }

    #[test]
    fn a_picture_takes_the_place_of_the_one_before() {
        let written = Written::default();
        let mut terminal = Terminal::over(written.clone(), None).expect("it is entered");
        terminal.draw(&["one".to_owned(), "two".to_owned()]).expect("drawn");
        let drawn = "\u{1b}[Hone\u{1b}[K\r\ntwo\u{1b}[K\u{1b}[J";
        assert_eq!(written.text(), format!("{ENTER}{drawn}"), "no new line behind the last one: it would scroll");
        terminal.leave();
        terminal.come_back().expect("it is entered again");
        drop(terminal);
        assert_eq!(written.text(), format!("{ENTER}{drawn}{LEAVE}{ENTER}{LEAVE}"));
    }

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        let written = Written::default();
        let to = written.clone();
        let panicked = std::thread::spawn(move || {
            let _terminal = Terminal::over(to, None).expect("it is entered");
            panic!("a fault");
        });
        assert!(panicked.join().is_err());
        assert_eq!(written.text(), format!("{ENTER}{LEAVE}"));
    }
}
