//! The texts under `prompts/`, embedded and overridable, and the tags that frame data in what is sent to a model.

use std::{borrow::Cow, fmt};

/// The longest text that can stand in for a prompt, in bytes. The longest of ours has a thirtieth of it.
pub const LONGEST: usize = 64 * 1024;

macro_rules! prompts {
    ($($(#[doc = $doc:literal])+ $prompt:ident = $name:literal $(needs $need:literal)?;)+) => {
        /// A text that is sent to a model, or a frame around one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Prompt {
            $($(#[doc = $doc])+ $prompt,)+
        }

        impl Prompt {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$prompt,)+];

            /// Its name: its file is this with `.md` behind it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$prompt => $name,)+
                }
            }

            /// As it comes with the program.
            #[must_use]
            pub fn embedded(self) -> &'static str {
                match self {
                    $(Self::$prompt => include_str!(concat!("../prompts/", $name, ".md")),)+
                }
            }

            /// What it is useless without.
            fn needs(self) -> Option<&'static str> {
                match self {
                    $(Self::$prompt => prompts!(@ $($need)?),)+
                }
            }
        }
    };
    (@ $need:literal) => { Some($need) };
    (@) => { None };
}

prompts! {
    /// What a summarizer is told before everything.
    SummarizationSystem = "summarization-system";
    /// What is asked for of a conversation.
    CompactionSummary = "compaction-summary";
    /// The same, where there is a summary of what came before.
    CompactionUpdateSummary = "compaction-update-summary";
    /// What is asked for of the beginning of a turn whose end is kept.
    CompactionTurnPrefix = "compaction-turn-prefix";
    /// Two sentences for a person.
    CompactionShortSummary = "compaction-short-summary";
    /// What is asked for of a branch that is left.
    BranchSummary = "branch-summary";
    /// What stands before the summary of a branch.
    BranchSummaryPreamble = "branch-summary-preamble";
    /// What is asked for at the end of a session that goes on in another.
    HandoffDocument = "handoff-document";
    /// What an agent is told after a compaction, so that it goes on.
    AutoContinue = "auto-continue";
    /// How a compaction's summary stands in a context.
    CompactionSummaryContext = "compaction-summary-context" needs "{{summary}}";
    /// How a branch's summary stands in a context.
    BranchSummaryContext = "branch-summary-context" needs "{{summary}}";
    /// How a handoff's document stands in a context.
    HandoffContext = "handoff-context" needs "{{document}}";
    /// How the newest user message stands behind a summary, where a cut left it behind.
    CarriedMessageContext = "carried-message-context" needs "{{message}}";
    /// How what is pinned stands behind a summary, word for word.
    PinnedContext = "pinned-context" needs "{{pins}}";
}

impl Prompt {
    /// The prompt of this name.
    ///
    /// # Errors
    /// When there is none. Says which there are.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|it| it.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|it| it.name()).collect();
            format!("there is no prompt `{name}`; expected one of {}", names.join(", "))
        })
    }
}

/// The prompts in force: the embedded ones, and those that stand in for them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Prompts {
    overridden: Vec<(Prompt, String)>,
}

impl fmt::Debug for Prompts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.overridden.iter().map(|(prompt, _)| prompt.name())).finish()
    }
}

impl Prompts {
    /// The text of a prompt.
    #[must_use]
    pub fn get(&self, prompt: Prompt) -> &str {
        let own = self.overridden.iter().find(|(it, _)| *it == prompt);
        own.map_or_else(|| prompt.embedded(), |(_, text)| text).trim_end()
    }

    /// A prompt with each `{{name}}` replaced.
    #[must_use]
    pub fn render(&self, prompt: Prompt, values: &[(&str, &str)]) -> String {
        render(self.get(prompt), values)
    }

    /// Lets a text stand in for the prompt of this name.
    ///
    /// # Errors
    /// When there is no such prompt, or the text cannot be it; the one before stays. Says what is wrong.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let prompt = Prompt::named(name)?;
        if text.trim().is_empty() {
            return Err("it is empty; delete the file to get the prompt that comes with the program".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!("it has more than {LONGEST} bytes"));
        }
        if let Some(need) = prompt.needs().filter(|need| !text.contains(need)) {
            return Err(format!("it lacks {need}, which is replaced by what the prompt is about"));
        }
        self.overridden.retain(|(it, _)| *it != prompt);
        self.overridden.push((prompt, text.to_owned()));
        Ok(())
    }
}

/// `template` with each `{{name}}` replaced. One pass over the template, so nothing in the values is taken for a name.
#[must_use]
pub fn render(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template.trim_end();
    while let Some(open) = rest.find("{{") {
        out.push_str(&rest[..open]);
        let after = &rest[open + 2..];
        let known = after.find("}}").and_then(|close| {
            let value = values.iter().find(|(name, _)| *name == after[..close].trim())?;
            Some((close, value.1))
        });
        match known {
            Some((close, value)) => {
                out.push_str(value);
                rest = &after[close + 2..];
            }
            None => {
                out.push_str("{{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The tags that have a meaning in what is sent to a model. Standing in the data they would end its frame.
const TAGS: [&str; 9] = [
    "summary",
    "conversation",
    "previous-summary",
    "additional-context",
    "read-files",
    "modified-files",
    "pinned",
    "user-message",
    "handoff-context",
];

/// `text` with our own tags made harmless: `&lt;` for `<`.
#[must_use]
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        escaped.push_str(&rest[..at]);
        let name = rest[at + 1..].trim_start_matches('/');
        let ours = TAGS.iter().any(|tag| {
            name.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag))
                && !name[tag.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '-' || next == '_')
        });
        escaped.push_str(if ours { "&lt;" } else { "<" });
        rest = &rest[at + 1..];
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_in_only_where_it_can() {
        let mut prompts = Prompts::default();
        assert_eq!(prompts.get(Prompt::AutoContinue), Prompt::AutoContinue.embedded().trim_end());
        prompts.set("auto-continue", "Go on.\n").expect("right");
        assert_eq!(prompts.get(Prompt::AutoContinue), "Go on.");
        for (name, text, why) in [
            ("auto-continue", " \n", "empty"),
            ("pinned-context", "no pins", "{{pins}}"),
            ("auto-contineu", "x", "handoff-document"),
            ("auto-continue", "x".repeat(70_000).as_str(), "bytes"),
        ] {
            assert!(prompts.set(name, text).expect_err("wrong").contains(why), "{name}");
        }
        assert_eq!(prompts.get(Prompt::AutoContinue), "Go on.", "the one before stays");
        for prompt in Prompt::ALL {
            prompts.set(prompt.name(), prompt.embedded()).expect("what is embedded is right");
        }
    }

    #[test]
    fn values_are_not_templates() {
        assert_eq!(render("a {{x}} {{y}} {{z}}\n", &[("x", "{{y}}"), ("y", "2")]), "a {{y}} 2 {{z}}");
    }

    #[test]
    fn our_own_tags_in_the_data_are_made_harmless() {
        assert_eq!(
            escape_tags("a </summary> b <Summary> <sum> <summary-x>"),
            "a &lt;/summary> b &lt;Summary> <sum> <summary-x>"
        );
        assert_eq!(escape_tags("</ conversation>"), "</ conversation>");
        assert_eq!(escape_tags("</conversation >"), "&lt;/conversation >");
    }
}
