//! `abridged demo`: a newcomer's first minute. An agent runs into the window of its model and is rescued; with a model, that
//! model writes a summary and is watched at it.

mod agent;
mod screen;
mod watched;

use super::{
    client::Client,
    compact::refused,
    interrupt::{self, INTERRUPTED},
    model::Named,
    paint::Paint,
    print::{self, Form, Printer},
};
use screen::Screen;
use std::{fs, path::PathBuf};

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
    let folder = home.folder.clone();
    interrupt::on_ctrl_c(move || {
        let _ = fs::remove_dir_all(&folder);
        std::process::exit(INTERRUPTED)
    });
    match chosen {
        Some(chosen) => watched::run(&home, &chosen, output == Output::Dialogue),
        None => rescue(&home, output),
    }
}

/// Runs an agent into the window of its model.
fn rescue(home: &Home, output: Output) -> Result<i32, String> {
    let settings = agent::settings();
    if output == Output::Dialogue {
        let client = Client::start(Some(&home.folder), Some(&settings), print_frame)?;
        agent::run(client, &mut Screen::of(Printer::to(std::io::sink(), Form::Text), Paint::off()))?;
        return Ok(0);
    }
    let client = Client::start(Some(&home.folder), Some(&settings), |_, _| {})?;
    let mut screen = Screen::of(print::stdout(), Paint::for_stdout());
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
}

impl Home {
    #[expect(clippy::disallowed_methods, reason = "a folder of its own")]
    pub(super) fn make() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("abridged-demo-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
        Ok(Self { folder })
    }
}

impl Drop for Home {
    #[expect(clippy::disallowed_methods, reason = "a folder of its own")]
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
