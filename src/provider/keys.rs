//! Keys where they are kept: in the environment, or with a program that keeps them.

#![expect(clippy::disallowed_methods, reason = "keys stand in the environment")]

use super::{KeySource, Trouble, TroubleKind};
use crate::redact::secret::Secret;
use std::{process::Stdio, time::Duration};
use tokio::{io::AsyncReadExt as _, process::Command};

/// A program that keeps keys may ask a person; not for ever.
const LONGEST: Duration = Duration::from_secs(30);

/// More than this is no key and its notes, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Whether an environment variable holds something.
#[must_use]
pub fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.trim().is_empty())
}

/// The key of a source. A program that keeps it ends, or is ended, within `longest`.
///
/// # Errors
/// When it is not there.
pub async fn key(source: &KeySource, longest: Duration) -> Result<Option<Secret>, Trouble> {
    match source {
        KeySource::None => Ok(None),
        KeySource::Variable(name) => match std::env::var(name) {
            Ok(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned().into())),
            _ => Err(missing(format!("the variable {name} is not set"))),
        },
        KeySource::Command(command) => {
            let longest = longest.min(LONGEST);
            let program = command.first().map_or("", String::as_str);
            match tokio::time::timeout(longest, printed(command)).await {
                Err(_) => Err(missing(format!("`{program}` gave no key within {} s", longest.as_secs()))),
                Ok(key) => key.map(Some),
            }
        }
    }
}

/// The first line that a command prints.
async fn printed(command: &[String]) -> Result<Secret, Trouble> {
    let [program, arguments @ ..] = command else {
        return Err(missing("apiKeyCommand is empty".to_owned()));
    };
    let fails = |error: std::io::Error| missing(format!("`{program}` cannot be run ({error})"));
    let mut run = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It may say there what nobody is to read.
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(fails)?;
    let mut said = Vec::new();
    if let Some(stdout) = run.stdout.take() {
        stdout.take(LARGEST).read_to_end(&mut said).await.map_err(fails)?;
    }
    if said.len() as u64 == LARGEST {
        return Err(missing(format!("`{program}` prints and prints")));
    }
    let status = run.wait().await.map_err(fails)?;
    if !status.success() {
        return Err(missing(format!("`{program}` ended with {status}")));
    }
    let said = String::from_utf8_lossy(&said);
    match said.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(key) => Ok(key.to_owned().into()),
        None => Err(missing(format!("`{program}` printed nothing"))),
    }
}

fn missing(what: String) -> Trouble {
    Trouble::new(TroubleKind::Denied, what)
}
