//! The instructions of a model beside the messages: the system prompt and the tools.

use super::{
    entry::Entry,
    message::{
        outline::Role,
        system::{SystemPrompt, Text},
    },
    tokens::{self, Estimator, Size},
    tools,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};

/// The system prompt and the tools that a client gave. An `abridged.session` entry stores them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Given {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The tools.
    pub tools: Option<Vec<Value>>,
}

/// The system prompt and the tools in force, with their sizes.
#[derive(Debug, Default)]
pub struct Instructions {
    system_prompt: Option<String>,
    tools: Option<Vec<Value>>,
    /// One system message in pi's form, if no client gave a system prompt or tools.
    message: Option<Value>,
    sizes: (Size, Size),
    /// The texts of the system prompt, where it comes from system messages: they are counted one by one.
    declared: Vec<Arc<Text>>,
}

/// The difference between two instructions, in estimated tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// The growth of the system prompt and the tools that both have. Negative where they shrank or were removed.
    pub growth: i64,
    /// The size of a system prompt or tools that the earlier instructions do not have. A provider may have received them
    /// before they were announced.
    pub added: u64,
}

impl Instructions {
    /// The instructions that a client gave, or else those that the system messages of the path declare.
    #[must_use]
    pub fn new(given: Given, declared: &SystemPrompt) -> Self {
        let message = declared.message().filter(|_| given == Given::default());
        let texts = if given.system_prompt.is_none() { declared.texts() } else { Vec::new() };
        let system_prompt = given.system_prompt.or_else(|| declared.text());
        let tools = given.tools.map(tools::of_file).or_else(|| declared.tools());
        let length = |text: &str| Size::of_chars(tokens::utf16_len(text));
        let system = system_prompt.as_deref().map_or_else(Size::nothing, length);
        let tools_size = tools.as_deref().map_or_else(Size::nothing, |tools| {
            Size::of_chars(tools.iter().map(|tool| tokens::utf16_len(&tool.to_string())).sum())
        });
        Self { system_prompt, tools, message, sizes: (system, tools_size), declared: texts }
    }

    /// The system prompt.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> Option<&[Value]> {
        self.tools.as_deref()
    }

    /// The leading system message in pi's form, if all of it comes from system messages.
    #[must_use]
    pub fn message(&self) -> Option<&Value> {
        self.message.as_ref()
    }

    /// The estimated tokens of the system prompt and of the tools. With `Tiktoken` the first call counts, which may take a
    /// while.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator) -> (u64, u64) {
        let (system, tools) = &self.sizes;
        let system = system.tokens(estimator, || match self.declared.as_slice() {
            [] => self.system_prompt().map_or(0, tokens::of_text),
            texts => texts.iter().map(|text| text.counted()).sum(),
        });
        let of_tool = |tool: &Value| tokens::of_text(&tool.to_string());
        let tools = tools.tokens(estimator, || self.tools().unwrap_or_default().iter().map(of_tool).sum());
        (u64::from(system), u64::from(tools))
    }

    /// A short text that is another one for other texts.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let texts = json!([self.system_prompt().unwrap_or_default(), self.tools().unwrap_or_default()]);
        let hash = Sha256::digest(texts.to_string());
        hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether both have the same texts.
    #[must_use]
    pub fn are_the_same_as(&self, other: &Self) -> bool {
        self.system_prompt().unwrap_or_default() == other.system_prompt().unwrap_or_default()
            && self.tools().unwrap_or_default() == other.tools().unwrap_or_default()
    }
}

/// The estimated tokens of instructions. None of a part that was never announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The system prompt.
    pub system: Option<u64>,
    /// The tools.
    pub tools: Option<u64>,
}

impl Sizes {
    /// All of them.
    #[must_use]
    pub fn all(self) -> u64 {
        self.system.unwrap_or(0) + self.tools.unwrap_or(0)
    }

    /// The difference to earlier instructions.
    #[must_use]
    pub fn difference(self, earlier: Self) -> Difference {
        let mut difference = Difference::default();
        for (before, now) in [(earlier.system, self.system), (earlier.tools, self.tools)] {
            let now = now.unwrap_or(0);
            match before {
                Some(before) => difference.growth += now as i64 - before as i64,
                None => difference.added += now,
            }
        }
        difference
    }
}

/// The instructions that the entries of a path announce, entry by entry. Instructions that a client gives for a load alone
/// are not on the path.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    given: Given,
    declared: SystemPrompt,
    /// The parts that were announced. One that was cleared since is known to be empty: later reports do not contain it.
    known: Known,
    /// Those of `given` alone.
    of_given: OnceLock<Arc<Instructions>>,
    /// All of them. They are read when they are first asked for.
    instructions: OnceLock<Arc<Instructions>>,
}

/// Parts of instructions.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    system: bool,
    tools: bool,
}

impl Announced {
    /// Whether an entry announces instructions.
    #[must_use]
    pub fn by(entry: &Entry) -> bool {
        entry.is_ours("session") || entry.is_from(Role::System)
    }

    /// Takes the next entry of the path.
    pub fn take(&mut self, entry: &Entry) {
        if let Some(data) = entry.ours("session") {
            self.given = Given::deserialize(data).unwrap_or_default();
            self.of_given = OnceLock::new();
        } else if entry.is_from(Role::System) {
            let Some(message) = entry.message_json().and_then(|json| serde_json::from_str(json).ok()) else { return };
            self.declared.apply(&message);
        } else {
            return;
        }
        self.renew();
    }

    /// Takes the instructions that the entry carries which the context begins with.
    pub fn restore(&mut self, foundation: &Entry) {
        if let Some(data) = foundation.preserved().and_then(|preserved| preserved.session.as_ref()) {
            self.given = Given::deserialize(data).unwrap_or_default();
            self.of_given = OnceLock::new();
        }
        self.declared = SystemPrompt::default();
        if let Some(message) = foundation.carried_system_message() {
            self.declared.apply(message);
        }
        // The entries before it are not always in memory.
        self.known = Known::default();
        self.renew();
    }

    /// Notes that the instructions are others.
    fn renew(&mut self) {
        let Sizes { system, tools } = self.sizes_now(Estimator::Chars);
        self.known =
            Known { system: self.known.system || system.is_some(), tools: self.known.tools || tools.is_some() };
        self.instructions = OnceLock::new();
    }

    /// The sizes of the instructions up to the last entry. With `Tiktoken` the first call counts, which may take a while.
    pub fn sizes(&mut self, estimator: Estimator) -> Sizes {
        let Sizes { system, tools } = self.sizes_now(estimator);
        Sizes { system: system.or(self.known.system.then_some(0)), tools: tools.or(self.known.tools.then_some(0)) }
    }

    fn sizes_now(&mut self, estimator: Estimator) -> Sizes {
        let given = || Arc::new(Instructions::new(self.given.clone(), &SystemPrompt::default()));
        let given = self.of_given.get_or_init(given);
        let (system, tools) = given.tokens(estimator);
        let (declared, declared_tools) = self.declared.tokens(estimator);
        Sizes {
            system: given.system_prompt().map(|_| system).or(declared),
            tools: given.tools().map(|_| tools).or(declared_tools),
        }
    }

    /// The instructions up to the last entry.
    #[must_use]
    pub fn instructions(&self) -> &Instructions {
        self.instructions.get_or_init(|| {
            let mut now = Instructions::new(self.given.clone(), &self.declared);
            if self.known.system {
                now.system_prompt.get_or_insert_default();
            }
            if self.known.tools {
                now.tools.get_or_insert_default();
            }
            Arc::new(now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(system_prompt: Option<&str>, tools: Option<&[Value]>) -> Instructions {
        let given = Given { system_prompt: system_prompt.map(str::to_owned), tools: tools.map(<[Value]>::to_vec) };
        Instructions::new(given, &SystemPrompt::default())
    }

    #[test]
    fn a_part_that_was_never_announced_is_added_and_another_one_grows() {
        let size = |instructions: &Instructions| {
            let (system, tools) = instructions.tokens(Estimator::Chars);
            Sizes { system: instructions.system_prompt().map(|_| system), tools: instructions.tools().map(|_| tools) }
        };
        let (short, long) = ("x".repeat(400), "x".repeat(1_000));
        let tools = [json!({"name": "y".repeat(389)})];
        let between = |before: &Instructions, now: &Instructions| size(now).difference(size(before));
        let (nothing, prompt) = (Instructions::default(), given(Some(&short), None));
        assert_eq!(between(&nothing, &prompt), Difference { growth: 0, added: 100 });
        assert_eq!(between(&prompt, &prompt), Difference::default());
        assert_eq!(between(&prompt, &nothing), Difference { growth: -100, added: 0 });
        let all = given(Some(&long), Some(&tools));
        assert_eq!(between(&prompt, &all), Difference { growth: 150, added: 100 });
        assert_eq!(between(&all, &given(Some(&short), Some(&[]))), Difference { growth: -250, added: 0 });
    }

    /// The sizes that grow with each message are those of the instructions that the messages make together.
    #[test]
    fn sizes_are_those_of_the_instructions() {
        let system = |message: Value| json!({"type": "message", "id": "a", "message": message});
        let session =
            |data: Value| json!({"type": "custom", "id": "a", "customType": "abridged.session", "data": data});
        let lines = [
            system(json!({"role": "system", "content": "Base.", "sections": {"a": "one ä", "b": ""}})),
            system(
                json!({"role": "system", "content": [{"type": "text", "text": "More."}], "toolsAdded": [{"name": "r"}, {"name": "w", "v": 1}]}),
            ),
            system(
                json!({"role": "system", "sections": {"a": "another text", "c": "new"}, "toolsRemoved": [{"name": "r"}, {"name": "x"}]}),
            ),
            system(
                json!({"role": "system", "sections": {"a": null}, "toolsAdded": [{"name": "w", "v": "longer"}, {"name": "r"}]}),
            ),
            session(json!({"systemPrompt": "Given by the client."})),
            session(json!({"tools": [{"name": "t"}]})),
            session(json!({})),
            system(json!({"role": "system", "toolsRemoved": [{"name": "w"}, {"name": "r"}]})),
        ];
        for estimator in [Estimator::Chars, Estimator::Tiktoken] {
            let mut announced = Announced::default();
            for line in &lines {
                announced.take(&Entry::parse(line.to_string().into()).expect("an entry"));
                let sizes = announced.sizes(estimator);
                let instructions = announced.instructions();
                let (system, tools) = instructions.tokens(estimator);
                let parts = (instructions.system_prompt().map(|_| system), instructions.tools().map(|_| tools));
                assert_eq!((sizes.system, sizes.tools), parts, "{estimator:?} behind {line}");
            }
        }
    }
}
