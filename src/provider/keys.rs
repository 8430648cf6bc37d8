//! Keys where they are kept: in the environment, or with a program that keeps them.

use super::{KeySource, Trouble, TroubleKind};
use crate::secret::Secret;
use std::{process::Stdio, time::Duration};
use tokio::process::Command;

/// A program that keeps keys may ask a person; not for ever.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether an environment variable holds something.
#[must_use]
pub fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.trim().is_empty())
}

/// The key of a source.
///
/// # Errors
/// When it is not there.
pub async fn key(source: &KeySource) -> Result<Option<Secret>, Trouble> {
    let missing = |what: String| Trouble::new(TroubleKind::Denied, what);
    match source {
        KeySource::None => Ok(None),
        KeySource::Variable(name) => match std::env::var(name) {
            Ok(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned().into())),
            _ => Err(missing(format!("the variable {name} is not set"))),
        },
        KeySource::Command(command) => {
            let [program, arguments @ ..] = command.as_slice() else {
                return Err(missing("apiKeyCommand is empty".to_owned()));
            };
            let run = Command::new(program)
                .args(arguments)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .output();
            let output = match tokio::time::timeout(LONGEST, run).await {
                Err(_) => return Err(missing(format!("`{program}` gave no key within {} s", LONGEST.as_secs()))),
                Ok(Err(error)) => return Err(missing(format!("`{program}` cannot be run ({error})"))),
                Ok(Ok(output)) => output,
            };
            if !output.status.success() {
                return Err(missing(format!("`{program}` ended with {}", output.status)));
            }
            let said = String::from_utf8_lossy(&output.stdout);
            match said.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
                Some(key) => Ok(Some(key.to_owned().into())),
                None => Err(missing(format!("`{program}` printed nothing"))),
            }
        }
    }
}
