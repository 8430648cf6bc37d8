//! No request ends in a defect of the daemon, and nothing panics.

use super::{super::record::Asked, Line, Rule};

#[derive(Default)]
pub struct Defects;

impl Rule for Defects {
    fn name(&self) -> &'static str {
        "there are no defects"
    }

    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String> {
        match line {
            Line::Got(frame) if frame["error"]["code"] == -32603 => {
                Err(format!("{:?} was answered {}", of.map(|of| &of.method), frame["error"]))
            }
            Line::Logged(text) => match text.lines().position(|line| line.contains("panicked at")) {
                Some(at) => Err(text.lines().skip(at).take(4).collect::<Vec<_>>().join("\n")),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
