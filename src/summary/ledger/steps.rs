//! The next steps that an answer of the agent tells.

use super::outcomes::{LONGEST_OUTCOME, narrates};
use crate::summary::prose::{clip, item, sentences};

/// The mark of a step that an answer announced. It was the next one at that time, and a later summary drops it.
const ANNOUNCED: &str = "said next: ";

/// The step that the end of an answer announces: "Let me run the tests:".
pub(super) fn announced(answer: &str) -> Option<String> {
    let last = sentences(answer).last()?;
    let lower = last.to_lowercase();
    let looks_back =
        ["i can see", "i see", "here", "that's a", "based on", "ich sehe"].iter().any(|start| lower.starts_with(start));
    let step = clip(last.trim_end_matches([':', '：']), LONGEST_OUTCOME);
    (narrates(&lower) && !looks_back).then(|| format!("{ANNOUNCED}{step}"))
}

/// Whether a step of an earlier summary was announced and not listed.
pub(super) fn is_announced(step: &str) -> bool {
    step.starts_with(ANNOUNCED)
}

/// The steps under a heading such as "Next steps" in an answer.
pub(super) fn listed_steps(answer: &str) -> Vec<String> {
    const HEADINGS: [&str; 10] = [
        "next step",
        "remaining",
        "what's left",
        "still open",
        "to do",
        "todo",
        "follow-up",
        "nächste schritte",
        "offen",
        "prochaines étapes",
    ];
    const MOST: usize = 6;
    let mut steps = Vec::new();
    let mut inside = false;
    for line in answer.lines().map(str::trim) {
        match item(line) {
            Some(item) if inside && steps.len() < MOST => steps.push(clip(item, LONGEST_OUTCOME)),
            Some(_) => {}
            None if line.is_empty() => {}
            None => {
                let heading = line.trim_matches(['#', '*', ':', ' ']).to_lowercase();
                inside = heading.chars().count() < 40 && HEADINGS.iter().any(|it| heading.starts_with(it));
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_an_answer_announces_or_lists_are_read() {
        assert_eq!(
            announced("It is stale. Let me reinstall it from source:").as_deref(),
            Some("said next: Let me reinstall it from source")
        );
        assert_eq!(announced("It is done."), None);
        assert_eq!(announced("I see, let me run it"), None, "it looks back");
        let answer = "Done.\n\n**Next steps:**\n1. Add a test\n- Update the docs\n\nThat is all.\n- no step";
        assert_eq!(listed_steps(answer), ["Add a test", "Update the docs"]);
        let many = format!("Next steps:\n\n- one\n\n{}", "- more\n".repeat(9));
        assert_eq!(listed_steps(&many).len(), 6);
        let prose = "Next steps in the long story of the parser and its files:\n- no step";
        assert_eq!(listed_steps(prose), [""; 0]);
    }
}
