//! Sessions of other agents: their files read as sessions in pi's form, and sessions written in their forms.
//!
//! A reader changes nothing where the session lies, and gives the same entries with the same ids for the same bytes.

pub mod claude_code;
pub mod codex;
pub mod gemini;
pub mod homes;
pub mod opencode;
pub mod reading;
mod records;
pub mod transcript;
pub mod writing;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A coding agent whose sessions are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// pi.
    Pi,
    /// oh-my-pi.
    OhMyPi,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// OpenCode.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Gemini CLI.
    GeminiCli,
}

impl Agent {
    /// Every agent.
    pub const ALL: [Self; 6] = [Self::Pi, Self::OhMyPi, Self::ClaudeCode, Self::Codex, Self::OpenCode, Self::GeminiCli];

    /// Name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::OhMyPi => "oh-my-pi",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::GeminiCli => "gemini-cli",
        }
    }

    /// Name for a person.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::OhMyPi => "oh-my-pi",
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::OpenCode => "OpenCode",
            Self::GeminiCli => "Gemini CLI",
        }
    }
}
