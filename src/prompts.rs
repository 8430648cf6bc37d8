//! The texts under `prompts/`, embedded and overridable, and the tags that frame data in what is sent to a model.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{borrow::Cow, fmt, path::Path, sync::Arc};

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

            /// Its name: its file is this with `.md` after it.
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

            /// Placeholder without which the text is useless.
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
    /// System prompt of a summarizer.
    SummarizationSystem = "summarization-system";
    /// Request for the summary of a conversation.
    CompactionSummary = "compaction-summary";
    /// Request for the summary of a conversation that continues an earlier summary.
    CompactionUpdateSummary = "compaction-update-summary";
    /// Request for the summary of the beginning of a turn whose end is kept.
    CompactionTurnPrefix = "compaction-turn-prefix";
    /// Request for two sentences for a person.
    CompactionShortSummary = "compaction-short-summary";
    /// Request for the summary of an abandoned branch.
    BranchSummary = "branch-summary";
    /// Preamble of a branch's summary.
    BranchSummaryPreamble = "branch-summary-preamble";
    /// Request for the document with which another session continues.
    HandoffDocument = "handoff-document";
    /// Message to an agent after a compaction, so that it continues.
    AutoContinue = "auto-continue";
    /// Frame of a compaction's summary in a context.
    CompactionSummaryContext = "compaction-summary-context" needs "{{summary}}";
    /// Frame of a branch's summary in a context.
    BranchSummaryContext = "branch-summary-context" needs "{{summary}}";
    /// Frame of a handoff's document in a context.
    HandoffContext = "handoff-context" needs "{{document}}";
    /// Request for an extract from another session.
    Reference = "reference";
    /// Frame of an extract from another session in a context.
    ReferenceContext = "reference-context" needs "{{extract}}";
    /// Frame of the newest user message after a summary, where the cut separated it from its turn.
    CarriedMessageContext = "carried-message-context" needs "{{message}}";
    /// Frame of pinned text after a summary.
    PinnedContext = "pinned-context" needs "{{pins}}";
    /// Frame of the open tasks of the agent after a summary.
    TodosContext = "todos-context" needs "{{todos}}";
    /// Facts beside a summary of the provider.
    FactsContext = "facts-context" needs "{{facts}}";
    /// Frame of skills and instructions that the agent loaded, after a summary.
    LoadedContext = "loaded-context" needs "{{loaded}}";
    /// Line at the end of a summary's frame: the file with the whole conversation.
    TranscriptHint = "transcript-hint";
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
    /// The file of the session, where the frame of a summary names it.
    transcript: Option<Arc<str>>,
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

    /// The same for a session with this file, which the frame of a summary names.
    #[must_use]
    pub fn with_transcript(self, file: &Path) -> Self {
        let shown: String =
            file.to_string_lossy().chars().map(|char| if char.is_control() { '?' } else { char }).collect();
        Self { transcript: Some(escape_tags(&shown).into()), ..self }
    }

    /// The line that says where the whole conversation is, for a session with a file.
    #[must_use]
    pub fn transcript_hint(&self) -> Option<String> {
        let path = self.transcript.as_deref()?;
        let line = self.render(Prompt::TranscriptHint, &[("path", path)]);
        Some(line.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|_| !path.is_empty())
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
        self.stand_in(prompt, text);
        Ok(())
    }

    /// Lets a text stand in for a prompt that nothing is replaced in.
    pub fn stand_in(&mut self, prompt: Prompt, text: &str) {
        self.overridden.retain(|(it, _)| *it != prompt);
        self.overridden.push((prompt, text.to_owned()));
    }
}

/// The texts that stand in for embedded ones, each with the name of its prompt.
impl Serialize for Prompts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.overridden.iter().map(|(prompt, text)| (prompt.name(), text)))
    }
}

impl<'de> Deserialize<'de> for Prompts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut prompts = Self::default();
        for (name, text) in Vec::<(String, String)>::deserialize(deserializer)? {
            prompts.set(&name, &text).map_err(D::Error::custom)?;
        }
        Ok(prompts)
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
const TAGS: [&str; 12] = [
    "summary",
    "conversation",
    "previous-summary",
    "additional-context",
    "read-files",
    "modified-files",
    "pinned",
    "todos",
    "loaded",
    "user-message",
    "handoff-context",
    "session-extract",
];

/// `text` with our own tags made harmless: `&lt;` for `<`.
#[must_use]
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    escape(text, &TAGS)
}

/// A summary, whoever wrote it, so that it cannot end its frame in a context. The lists of files in it stay lists.
#[must_use]
pub fn escape_frame(summary: &str) -> Cow<'_, str> {
    escape(summary, &["summary"])
}

/// A text that stands within a tag, so that it cannot end it.
#[must_use]
pub fn escape_within<'a>(text: &'a str, tag: &str) -> Cow<'a, str> {
    escape(text, &[tag])
}

fn escape<'a>(text: &'a str, tags: &[&str]) -> Cow<'a, str> {
    /// The first byte of the wide `＜`.
    const WIDE: u8 = 0xEF;
    // Nearly every text has neither.
    if memchr::memchr2(b'<', WIDE, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let opens = |char: char| matches!(char, '<' | '\u{ff1c}');
    let mut escaped = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(opens) {
        let (before, from) = rest.split_at(at);
        let sign = from.chars().next().map_or(0, char::len_utf8);
        let (sign, after) = from.split_at(sign);
        if escaped.is_empty() {
            escaped.reserve(text.len() + 16);
        }
        escaped.push_str(before);
        escaped.push_str(if is_tag(after, tags) { "&lt;" } else { sign });
        rest = after;
    }
    if escaped.is_empty() {
        return Cow::Borrowed(text);
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// Whether what follows a `<` reads as one of these tags, to a model rather than to a parser: blanks, what cannot be
/// seen, wide letters and other hyphens make no difference to it.
fn is_tag(after: &str, tags: &[&str]) -> bool {
    /// Enough for a name and what stands after it.
    const LONGEST: usize = 48;
    let (mut blank, mut slash) = (false, false);
    let mut seen = after.chars().filter(|char| !is_invisible(*char)).map(plain).skip_while(|char| {
        blank |= char.is_whitespace();
        slash |= *char == '/';
        char.is_whitespace() || *char == '/'
    });
    let name: String = seen.by_ref().take(LONGEST).collect();
    tags.iter().any(|tag| {
        let Some(behind) = name.get(..tag.len()).filter(|it| it.eq_ignore_ascii_case(tag)).map(|_| &name[tag.len()..])
        else {
            return false;
        };
        let ends = !behind.starts_with(|next: char| next.is_alphanumeric() || next == '-' || next == '_');
        // `a < summary` compares; only what goes on as a tag is one.
        ends && (!blank || slash || behind.trim_start().starts_with('>'))
    })
}

/// Characters that are not drawn.
#[must_use]
pub fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
        || char.is_control() && !char.is_whitespace()
}

/// A sign as a model reads it: wide forms are the narrow ones, every hyphen is one, and so is every slash.
#[must_use]
pub fn plain(char: char) -> char {
    match char {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2044}' | '\u{2215}' | '\\' => '/',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(char) - 0xfee0).unwrap_or(char),
        _ => char,
    }
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
        for tag in [
            "</conversation >",
            "</ conversation>",
            "< /conversation>",
            "<\n/conversation\n>",
            "<//conversation>",
            "<\\/conversation>",
            "</con\u{200b}versation>",
            "<\u{2060}/CONVERSATION>",
            "</conversation",
            "< conversation >",
            "</previous\u{2011}summary>",
            "</\u{ff43}onversation>",
        ] {
            assert_eq!(escape_tags(tag), tag.replacen('<', "&lt;", 1));
        }
        assert_eq!(escape_tags("\u{ff1c}/conversation\u{ff1e}"), "&lt;/conversation\u{ff1e}");
        for code in
            ["if a < summary { b }", "x <summary_of> y", "Vec<Conversation2>", "a << summary;", "i<conversations", "<"]
        {
            assert_eq!(escape_tags(code), code);
        }
    }

    #[test]
    fn a_summary_cannot_end_its_frame_and_keeps_its_lists() {
        let lists = "<read-files>\n/a\n</read-files>";
        assert_eq!(escape_frame(lists), lists);
        assert_eq!(escape_frame("x </ Summary> y"), "x &lt;/ Summary> y");
    }
}
