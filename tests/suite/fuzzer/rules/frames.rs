//! Every frame is as the schema says, and no frame that nobody asked for is large.

use super::{super::record::Asked, Line, Rule};
use crate::held_to_schema::Dialogue;

/// Bytes that an unsolicited frame stays under.
const LARGEST: usize = 60 << 10;

#[derive(Default)]
pub struct Frames {
    dialogue: Dialogue,
}

impl Rule for Frames {
    fn name(&self) -> &'static str {
        "a frame is as the schema says"
    }

    fn take(&mut self, line: &Line, _: Option<&Asked>) -> Result<(), String> {
        match line {
            Line::Started => self.dialogue = Dialogue::default(),
            Line::Sent(frame) => {
                if let (Some(id), Some(method)) = (frame.get("id"), frame["method"].as_str()) {
                    self.dialogue.sent(id, method);
                }
            }
            Line::Got(frame) => {
                if frame["jsonrpc"] != "2.0" {
                    return Err("there is no version of JSON-RPC in it".to_owned());
                }
                if let Some(problem) = self.dialogue.problem(frame) {
                    return Err(format!("{problem}: {:.2000}", frame.to_string()));
                }
                let unsolicited = frame.get("method").is_some() && frame.get("id").is_none();
                let size = frame.to_string().len();
                if unsolicited && size >= LARGEST {
                    return Err(format!("{} has {size} bytes", frame["method"]));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
