//! The state of an agent, as a compaction carries it: its tasks, and the skills and instructions that it loaded.

use super::CarriedTodos;
use crate::{
    ids::EntryId,
    prompts::{escape_tags, escape_within},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the agent in a compaction: what its tools told it.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CarriedAgent {
    /// Its open tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub todos: Option<CarriedTodos>,
    /// The skills and instructions that it loaded before the cut, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<CarriedLoad>,
}

/// A text that an agent loaded before the cut of a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedLoad {
    /// The entry of the result with the text.
    pub entry_id: EntryId,
    /// The kind of the text.
    pub kind: LoadKind,
    /// The name of the skill, or of the file with instructions.
    pub name: String,
    /// The file, if the agent named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The part of the file that was read, by the arguments of the call; missing for the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The text without secrets. A long text is clipped in the middle.
    pub text: String,
    /// Size of the whole text, in tokens.
    pub tokens: u64,
    /// Whether the text is clipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clipped: bool,
}

/// The kind of a text that an agent loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// A skill.
    Skill,
    /// The instructions of a file, such as `AGENTS.md`.
    Instructions,
}

impl CarriedLoad {
    /// The text in its tag, as the frame has it. Neither name nor text can end the tag.
    #[must_use]
    pub fn framed(&self) -> String {
        let kind = match self.kind {
            LoadKind::Skill => "skill",
            LoadKind::Instructions => "instructions",
        };
        let of = self.path.as_ref().filter(|path| **path != self.name);
        let inside = |text: &str| escape_within(&escape_tags(text), kind).into_owned();
        let attribute = |name: &str, text: &str| format!(" {name}=\"{}\"", inside(text).replace(['"', '\n'], "'"));
        let path = of.map(|path| attribute("path", path)).unwrap_or_default();
        format!("<{kind}{}{path}>\n{}\n</{kind}>", attribute("name", &self.name), inside(&self.text))
    }
}
