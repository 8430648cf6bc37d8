//! `abridged demo`: a newcomer's first minute. An agent runs into the window of its model and is rescued; with a model, that
//! model writes a summary and is watched at it.

mod agent;
mod screen;
mod watched;

use super::{
    client::{Client, Start},
    compact::refused,
    interrupt::{self, INTERRUPTED},
    model::Named,
    paint::Paint,
    print::{self, Form, Printer},
    watch::columns,
};
use rustix::process::{Pid, Signal, kill_process};
use screen::Screen;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// The bundled session: retries for a program that sends webhooks.
const SESSION: &str = include_str!("../../demo/session.jsonl");

/// The output of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The picture.
    Picture,
    /// The picture, and the summary that is in the context at the end.
    Summary,
    /// The raw dialogue.
    Dialogue,
}

/// Runs the demo, with a model where one is named.
///
/// # Errors
/// When something does not work: what.
#[expect(clippy::disallowed_methods, reason = "a command of a person")]
pub fn run(model: Option<&Named>, output: Output) -> Result<i32, String> {
    let chosen = match model.map(|model| model.choose(&std::env::current_dir().unwrap_or_default())) {
        None => None,
        Some(Ok(chosen)) => Some(chosen),
        Some(Err(why)) => return Ok(refused(&why)),
    };
    let home = Home::make()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let (told, folder, daemon) = (interrupted.clone(), home.folder.clone(), home.daemon.clone());
    interrupt::on_ctrl_c(move || {
        told.store(true, Ordering::SeqCst);
        clear(&folder, &daemon);
        std::process::exit(INTERRUPTED)
    });
    let done = match chosen {
        Some(chosen) => watched::run(&home, &chosen, output == Output::Dialogue),
        None => rescue(&home, output),
    };
    // The other thread ends the program.
    while interrupted.load(Ordering::SeqCst) {
        thread::park();
    }
    done
}

/// Runs an agent into the window of its model.
fn rescue(home: &Home, output: Output) -> Result<i32, String> {
    let settings = agent::settings();
    if output == Output::Dialogue {
        let client = home.start(&settings, print_frame)?;
        agent::run(client, &mut Screen::of(Printer::to(std::io::sink(), Form::Text), Paint::off(), screen::COLUMNS))?;
        return Ok(0);
    }
    let client = home.start(&settings, |_, _| {})?;
    let mut screen = Screen::of(print::stdout(), Paint::for_stdout(), columns(screen::COLUMNS));
    let ended = agent::run(client, &mut screen)?;
    if output == Output::Summary {
        screen.summary();
    }
    Ok(i32::from(!ended.rescued()))
}

fn say(line: &str) {
    print::line(line);
}

/// Prints a frame of the dialogue after its direction.
fn print_frame(direction: char, line: &str) {
    say(&format!("{direction} {line}"));
}

/// A folder for a demo alone, gone when it ends.
pub(super) struct Home {
    pub(super) folder: PathBuf,
    /// The process that writes into it.
    daemon: Arc<OnceLock<u32>>,
}

/// The number of tries to remove the folder, and the pause between two: the daemon may be writing when it is ended.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

impl Home {
    #[expect(clippy::disallowed_methods, reason = "a folder of its own")]
    pub(super) fn make() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("abridged-demo-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
        Ok(Self { folder, daemon: Arc::default() })
    }

    /// Starts the daemon that writes into the folder.
    fn start(&self, settings: &Value, watch: impl FnMut(char, &str) + 'static) -> Result<Client, String> {
        let (home, over, capabilities) = (Some(self.folder.as_path()), Some(settings), json!({}));
        // Ctrl-C in the terminal ends the demo, which ends the daemon.
        let client =
            Client::start_as(Start { home, over, data: None, capabilities, is_apart: true, trace: None }, watch)?;
        let _ = self.daemon.set(client.pid());
        Ok(client)
    }
}

/// Ends the daemon and removes the folder.
#[expect(clippy::disallowed_methods, reason = "a folder of its own")]
fn clear(folder: &Path, daemon: &OnceLock<u32>) {
    let mut gone = 0;
    for tries in 0..TRIES {
        // A daemon that is being started is known a little later.
        let pid = daemon.get().and_then(|pid| i32::try_from(*pid).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = fs::remove_dir_all(folder);
        gone = if folder.exists() { 0 } else { gone + 1 };
        // Gone twice: nothing makes it again.
        if gone > 1 && (pid.is_some() || tries > TRIES / 2) {
            return;
        }
        thread::sleep(PAUSE);
    }
}

impl Drop for Home {
    #[expect(clippy::disallowed_methods, reason = "a folder of its own")]
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
