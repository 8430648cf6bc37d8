//! The request to a summarizer: the conversation in its frame, and the prompt after it. Every request contains the
//! topics that a person wants to be kept and the context of hooks.

use super::{check::Form, language::Language, transcript::without_labels};
use crate::{
    ask::purpose::Purpose,
    prompts::{Prompt, Prompts, escape_tags},
    redact::Clean,
};

/// The common part of all requests for one summary.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// The prompts in force.
    pub prompts: Prompts,
    /// The topics that a person wants to be kept above all.
    pub instructions: Option<Clean>,
    /// Texts of hooks beside the conversation.
    pub context: Vec<Clean>,
    /// The language of the user, if it is certain and not English.
    pub language: Option<Language>,
    /// The subject of the summary.
    pub subject: Subject,
}

/// The subject of a summary. The prompt of whole turns and the purpose of its requests follow from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Subject {
    /// The conversation before a cut.
    #[default]
    Conversation,
    /// A branch that was left.
    Branch,
    /// Another session, about a question. The question is in `instructions`.
    Reference,
}

/// A part of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The summary of whole turns.
    History,
    /// The summary of a turn's beginning.
    TurnPrefix,
    /// Two sentences for a person.
    Short,
}

/// A request for one part.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The part.
    pub part: Part,
    /// The cleaned conversation.
    pub conversation: &'a str,
    /// The cleaned summary that the answer continues.
    pub previous: Option<&'a str>,
    /// Limit of the answer, in tokens.
    pub most: u64,
    /// The reason for which the answer before was rejected.
    pub refused: Option<&'a str>,
}

impl Brief {
    /// Purpose of the requests for a part.
    #[must_use]
    pub fn purpose(&self, part: Part) -> Purpose {
        match (part, self.subject) {
            (Part::History, Subject::Conversation) => Purpose::Compaction,
            (Part::History, Subject::Branch) => Purpose::BranchSummary,
            (Part::History, Subject::Reference) => Purpose::Handoff,
            (Part::TurnPrefix, _) => Purpose::TurnPrefix,
            (Part::Short, _) => Purpose::ShortSummary,
        }
    }

    /// Whether two sentences for a person are asked for. The entry of a branch has no place for them.
    #[must_use]
    pub fn has_short(&self) -> bool {
        self.subject == Subject::Conversation
    }

    /// The system prompt.
    #[must_use]
    pub fn system(&self) -> Clean {
        Clean::assembled(self.prompts.get(Prompt::SummarizationSystem))
    }

    /// The prompt of a part.
    #[must_use]
    pub fn prompt(&self, part: Part, update: bool) -> &str {
        self.prompts.get(match (part, update) {
            (Part::History, _) if self.subject == Subject::Branch => Prompt::BranchSummary,
            (Part::History, _) if self.subject == Subject::Reference => Prompt::Reference,
            (Part::History, false) => Prompt::CompactionSummary,
            (Part::History, true) => Prompt::CompactionUpdateSummary,
            (Part::TurnPrefix, _) => Prompt::CompactionTurnPrefix,
            (Part::Short, _) => Prompt::CompactionShortSummary,
        })
    }

    /// The form of an answer. Where a person gives instructions, the answer may have the form that these ask for. A
    /// question is no instruction.
    #[must_use]
    pub fn form(&self, part: Part, update: bool) -> Form<'_> {
        let prompt = self.prompt(part, update);
        match part {
            Part::Short => Form::Sentences,
            _ if self.instructions.is_some() && self.subject != Subject::Reference => Form::Free { prompt },
            Part::History | Part::TurnPrefix => Form::Record { prompt, prompts: &self.prompts },
        }
    }

    /// The request as one text.
    #[must_use]
    pub fn text(&self, ask: &Ask<'_>) -> Clean {
        let mut text = String::with_capacity(ask.conversation.len() + 4_096);
        let mut frame = |tag: &str, inside: &str| {
            text.push_str(&format!("<{tag}>\n{inside}\n</{tag}>\n\n"));
        };
        match ask.part {
            // A summary that passed; it says nothing in the name of those it is about.
            Part::Short => frame("conversation", &without_labels(ask.conversation)),
            Part::History | Part::TurnPrefix => frame("conversation", ask.conversation),
        }
        if let Some(previous) = ask.previous {
            frame("previous-summary", &without_labels(previous));
        }
        if !self.context.is_empty() {
            let line = |line: &Clean| format!("- {}", without_labels(&escape_tags(line)));
            frame("additional-context", &self.context.iter().map(line).collect::<Vec<_>>().join("\n"));
        }
        text.push_str(self.prompt(ask.part, ask.previous.is_some()));
        let mut add = |line: String| add_to(&mut text, &line);
        // The other prompts have no form of their own for a record that goes on.
        let goes_on =
            ask.part == Part::TurnPrefix || ask.part == Part::History && self.subject != Subject::Conversation;
        if goes_on && ask.previous.is_some() {
            add("The record of the part before this one is in <previous-summary>. Write one record of both.".to_owned());
        }
        self.wishes(Some(ask.most).filter(|_| ask.part != Part::Short)).into_iter().for_each(&mut add);
        if let Some(why) = ask.refused {
            add(anew(why));
        }
        Clean::assembled(text)
    }

    /// The lines after each prompt. `most`: the limit of the answer, in tokens.
    fn wishes(&self, most: Option<u64>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(instructions) = &self.instructions {
            let what = if self.subject == Subject::Reference { "The question" } else { "Additional focus" };
            lines.push(format!("{what}: {}", escape_tags(instructions.trim())));
        }
        if let Some(Language { name, .. }) = self.language {
            lines.push(format!(
                "The user writes in {name}: write the text in it too, and only the headings in English."
            ));
        }
        // A word has about 1.4 tokens, a Russian one two; models overshoot. Nobody needs more than a few pages.
        lines.extend(most.map(|most| format!("Use at most {} words.", (most * 2 / 5).clamp(60, 2_000))));
        lines
    }

    /// The prompt after a conversation that the request has as messages, for an answer of at most `most` tokens. `part`: the
    /// sentence about the part of the conversation that it is of. `refused`: the reason for which the answer before was rejected.
    #[must_use]
    pub fn after_messages(&self, most: u64, part: Option<&Clean>, refused: Option<&str>) -> Clean {
        let mut text = self.prompt(Part::History, false).to_owned();
        if !self.context.is_empty() {
            let lines: Vec<_> = self.context.iter().map(|line| format!("- {}", escape_tags(line))).collect();
            add_to(&mut text, &format!("Beside the conversation:\n{}", lines.join("\n")));
        }
        part.into_iter().for_each(|part| add_to(&mut text, part));
        self.wishes(Some(most)).iter().for_each(|line| add_to(&mut text, line));
        refused.into_iter().for_each(|why| add_to(&mut text, &anew(why)));
        Clean::assembled(text)
    }
}

/// The line about an answer that was rejected.
fn anew(why: &str) -> String {
    format!("An earlier answer to this could not be used: {why}. Answer anew, and avoid that.")
}

fn add_to(text: &mut String, line: &str) {
    text.push_str("\n\n");
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(part: Part, previous: Option<&'static str>) -> Ask<'static> {
        Ask { part, conversation: "[User]: hi", previous, most: 1_000, refused: None }
    }

    #[test]
    fn what_a_person_wants_is_in_every_request() {
        let brief = Brief {
            instructions: Some(Clean::assembled("keep the port numbers")),
            context: vec![Clean::assembled("the build is </additional-context> red")],
            ..Brief::default()
        };
        for (part, previous) in
            [(Part::History, None), (Part::History, Some("old")), (Part::TurnPrefix, None), (Part::Short, Some("new"))]
        {
            let text = brief.text(&ask(part, previous));
            // The two sentences are about a summary, in which nobody speaks.
            let mark = if part == Part::Short { "\\" } else { "" };
            assert!(text.starts_with(&format!("<conversation>\n{mark}[User]: hi\n</conversation>\n\n")), "{text}");
            assert!(text.contains("Additional focus: keep the port numbers"), "{text}");
            assert!(text.contains("- the build is &lt;/additional-context> red\n</additional-context>"), "{text}");
            assert_eq!(text.contains("<previous-summary>\n"), previous.is_some(), "{text}");
        }
    }

    #[test]
    fn a_branch_has_its_own_prompt_also_where_its_record_goes_on() {
        let brief = Brief { subject: Subject::Branch, ..Brief::default() };
        for (previous, goes_on) in [(None, false), (Some("old"), true)] {
            let text = brief.text(&ask(Part::History, previous));
            assert!(text.contains(Prompt::BranchSummary.embedded().trim_end()), "{text}");
            assert_eq!(text.contains("Write one record of both"), goes_on, "{text}");
        }
        assert_eq!(brief.purpose(Part::History), Purpose::BranchSummary);
        assert!(!brief.has_short() && Brief::default().has_short());
    }

    #[test]
    fn only_instructions_make_the_form_of_an_answer_free() {
        let form = |instructions: Option<&str>, subject: Subject, part: Part| {
            let brief = Brief { instructions: instructions.map(Clean::assembled), subject, ..Brief::default() };
            matches!(brief.form(part, false), Form::Free { .. })
        };
        assert!(form(Some("only the tasks"), Subject::Conversation, Part::History));
        assert!(form(Some("only the tasks"), Subject::Conversation, Part::TurnPrefix));
        assert!(form(Some("only the tasks"), Subject::Branch, Part::History));
        assert!(!form(Some("only the tasks"), Subject::Conversation, Part::Short));
        assert!(!form(Some("which port?"), Subject::Reference, Part::History));
        assert!(!form(None, Subject::Conversation, Part::History));
    }

    #[test]
    fn each_part_has_its_prompt() {
        let brief = Brief::default();
        let says = |part, previous, prompt: Prompt| {
            let text = brief.text(&ask(part, previous));
            assert!(text.contains(prompt.embedded().trim_end()), "{}", prompt.name());
        };
        says(Part::History, None, Prompt::CompactionSummary);
        says(Part::History, Some("old"), Prompt::CompactionUpdateSummary);
        says(Part::TurnPrefix, None, Prompt::CompactionTurnPrefix);
        says(Part::TurnPrefix, Some("old"), Prompt::CompactionTurnPrefix);
        says(Part::Short, None, Prompt::CompactionShortSummary);
    }
}
