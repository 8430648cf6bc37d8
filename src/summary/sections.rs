//! The headings of a summary, the same in every one: an earlier summary is read back into its parts by them, whoever
//! wrote it, and a new one is put together under them.

/// A place for an item in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Goal,
    Constraints,
    Done,
    InProgress,
    Blocked,
    Decisions,
    NextSteps,
    Context,
    /// Lines of the conversation, under the context.
    Excerpts,
}

impl Section {
    const ALL: [Self; 9] = [
        Self::Goal,
        Self::Constraints,
        Self::Done,
        Self::InProgress,
        Self::Blocked,
        Self::Decisions,
        Self::NextSteps,
        Self::Context,
        Self::Excerpts,
    ];

    fn heading(self) -> &'static str {
        match self {
            Self::Goal => "## Goal",
            Self::Constraints => "## Constraints & Preferences",
            Self::Done => "### Done",
            Self::InProgress => "### In Progress",
            Self::Blocked => "### Blocked",
            Self::Decisions => "## Key Decisions",
            Self::NextSteps => "## Next Steps",
            Self::Context => "## Critical Context",
            Self::Excerpts => EXCERPTS,
        }
    }

    /// The heading that this one is below.
    fn above(self) -> Option<&'static str> {
        match self {
            Self::Done | Self::InProgress | Self::Blocked => Some("## Progress"),
            Self::Excerpts => Some(Self::Context.heading()),
            _ => None,
        }
    }

    fn mark(self, number: usize) -> String {
        match self {
            Self::Done => "- [x] ".to_owned(),
            Self::InProgress => "- [ ] ".to_owned(),
            Self::NextSteps => format!("{number}. "),
            _ => "- ".to_owned(),
        }
    }

    /// The section a heading of a summary means, ours or a model's. A heading that negates its words ("Non-Goals") has none.
    fn of_heading(heading: &str) -> Option<Self> {
        let lower = heading.to_lowercase();
        let words: Vec<&str> = lower.split(|char: char| !char.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
        let has = |phrase: &str| {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            let is_word = |(word, wanted): (&&str, &&str)| word.strip_suffix('s').unwrap_or(word) == *wanted;
            words.windows(phrase.len()).any(|part| part.iter().zip(&phrase).all(is_word))
        };
        if words.iter().any(|word| NEGATIONS.contains(word)) {
            return ["done", "completed", "finished"].into_iter().any(has).then_some(Self::InProgress);
        }
        Some(match () {
            () if has("goal") || has("original request") => Self::Goal,
            () if has("constraint") || has("preference") => Self::Constraints,
            () if has("in progres") || has("current work") || has("early progres") => Self::InProgress,
            () if has("blocked") || has("blocker") => Self::Blocked,
            () if has("decision") => Self::Decisions,
            () if has("next step") || has("remaining") || has("pending") => Self::NextSteps,
            () if has("done") || has("progres") || has("completed") => Self::Done,
            () => return None,
        })
    }
}

/// Words of a heading that negate the others.
const NEGATIONS: [&str; 5] = ["non", "not", "no", "without", "never"];

/// The items of an earlier summary. What stands under no heading that is known goes to the context.
pub(super) fn parse(summary: &str) -> Vec<(Section, String)> {
    let mut items: Vec<(Section, String)> = Vec::new();
    let mut section = Section::Context;
    // The words of a heading that negates them: its items say nothing without it.
    let mut negated: Option<String> = None;
    let mut inside_tag: Option<String> = None;
    let (mut split_turn, mut is_turn) = (false, false);
    let mut turn = None;
    let mut fenced = false;
    for line in summary.lines() {
        let trimmed = line.trim();
        if let Some(tag) = &inside_tag {
            if trimmed == format!("</{tag}>") {
                inside_tag = None;
            }
            continue;
        }
        if trimmed == "<read-files>" || trimmed == "<modified-files>" {
            inside_tag = Some(trimmed.trim_matches(['<', '>']).to_owned());
            continue;
        }
        // Indented, it is a quotation.
        if let Some(heading) = heading(line.trim_end()) {
            fenced = false;
            split_turn |= heading.starts_with("Turn Context");
            section = Section::of_heading(heading).unwrap_or(Section::Context);
            negated = (section == Section::Context && is_negated(heading)).then(|| heading.to_owned());
            // The subject of one turn is not the subject of the session: the turn goes on.
            is_turn = split_turn && section == Section::Goal;
            if is_turn {
                section = Section::InProgress;
            }
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        // The text under an item, a fenced one with its own indentation.
        if let Some((_, text)) = items.last_mut().filter(|(last, _)| indented && *last == section)
            && (fenced || without_mark(trimmed).is_none() || trimmed.starts_with("```"))
        {
            fenced ^= trimmed.starts_with("```");
            text.push('\n');
            text.push_str(line.strip_prefix("  ").unwrap_or(line).trim_end());
            continue;
        }
        fenced = false;
        if line.starts_with(EXCERPTS) {
            section = Section::Excerpts;
            continue;
        }
        if trimmed.is_empty() || trimmed.chars().all(|char| char == '-') || trimmed.starts_with("```") {
            continue;
        }
        let (tick, text) = without_mark(trimmed).unwrap_or((None, trimmed));
        let text = text.trim();
        let is_gap = text.starts_with("… (") && text.ends_with(" left out)");
        if !text.is_empty() && text != NONE && !is_gap {
            turn = turn.or(is_turn.then_some(items.len()));
            let text = negated.as_ref().map_or_else(|| text.to_owned(), |heading| format!("{heading}: {text}"));
            items.push((section.ticked(tick), text));
        }
    }
    if let Some(turn) = turn {
        join_turn(&mut items, turn);
    }
    items
}

/// The request of a split turn stands as its subject, and with its outcome among what is in progress: they are one.
fn join_turn(items: &mut Vec<(Section, String)>, turn: usize) {
    let subject = items[turn].1.clone();
    let same = |(section, text): &(Section, String)| {
        let (asked, outcome) = text.split_once(" → ")?;
        let is_same = *section == Section::InProgress && subject.starts_with(asked.trim_end_matches(" …"));
        is_same.then(|| outcome.to_owned())
    };
    let found = items.iter().enumerate().skip(turn + 1).find_map(|(at, item)| Some((at, same(item)?)));
    if let Some((at, outcome)) = found {
        items.remove(at);
        items[turn].1 = format!("{subject} → {outcome}");
    }
}

/// Body of a heading without items.
const NONE: &str = "(none)";

fn heading(line: &str) -> Option<&str> {
    let hashes = line.trim_start_matches('#');
    if hashes.len() < line.len() && hashes.starts_with(' ') {
        return Some(hashes.trim());
    }
    let bold = line.strip_prefix("**")?.strip_suffix("**")?;
    (!bold.contains("**")).then(|| bold.trim_end_matches(':'))
}

/// A box before an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    Done,
    Open,
}

impl Section {
    /// The section of an item with this box: a box tells more than the heading above it.
    fn ticked(self, tick: Option<Tick>) -> Self {
        match (self, tick) {
            (Self::Done, Some(Tick::Open)) => Self::InProgress,
            (Self::InProgress | Self::NextSteps, Some(Tick::Done)) => Self::Done,
            _ => self,
        }
    }
}

fn is_negated(heading: &str) -> bool {
    let lower = heading.to_lowercase();
    let mut words = lower.split(|char: char| !char.is_alphanumeric());
    words.any(|word| NEGATIONS.contains(&word) || ["abandoned", "rejected", "out"].contains(&word))
}

/// The box and the text after a bullet, a box or a number; none where there is no such mark.
fn without_mark(line: &str) -> Option<(Option<Tick>, &str)> {
    let digits = line.trim_start_matches(|char: char| char.is_ascii_digit());
    let rest = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or_else(|| {
        (digits.len() < line.len()).then(|| digits.strip_prefix(". ").or_else(|| digits.strip_prefix(") "))).flatten()
    })?;
    let rest = rest.trim_start();
    let boxes = [("[x] ", Tick::Done), ("[X] ", Tick::Done), ("[ ] ", Tick::Open)];
    let ticked = boxes.into_iter().find_map(|(mark, tick)| Some((Some(tick), rest.strip_prefix(mark)?)));
    Some(ticked.unwrap_or((None, rest)))
}

/// The beginning of the line before the excerpts.
const EXCERPTS: &str = "Excerpts";

/// The label of an excerpt, and its lines.
pub(super) fn excerpt(item: &str) -> Option<(&str, String)> {
    if let Some((label, text)) = item.split_once(":\n").filter(|(label, _)| !label.contains('\n')) {
        let lines = text.lines().filter(|line| !line.starts_with("```") && *line != GAP);
        return Some((label, lines.collect::<Vec<_>>().join("\n")));
    }
    let code = item.split_once(": `").and_then(|(label, code)| Some((label, code.strip_suffix('`')?)));
    code.or_else(|| item.split_once(": ")).map(|(label, text)| (label, text.to_owned()))
}

/// The line in place of lines that are left out.
pub(super) const GAP: &str = "…";

/// The item in place of items that are left out.
pub(super) fn left_out(count: usize) -> String {
    format!("… ({count} left out)")
}

/// A summary of items, in the order of the sections and, within one, of the items. Headings with nothing under them are left
/// out. `excerpts`: the end of the line before the excerpts.
pub(super) fn render(items: &[(Section, String)], excerpts: &str) -> String {
    let mut out = String::new();
    let mut above = None;
    for section in Section::ALL {
        let of_section: Vec<&str> =
            items.iter().filter(|(it, _)| *it == section).map(|(_, text)| text.as_str()).collect();
        if of_section.is_empty() {
            continue;
        }
        let heading = section.heading();
        // Sections below one heading stand together, and excerpts below the context.
        let parent = section.above().filter(|parent| above != Some(*parent));
        if !out.is_empty() {
            out.push_str(if section.above().is_some() && parent.is_none() { "\n" } else { "\n\n" });
        }
        parent.iter().for_each(|parent| out.extend([*parent, "\n"]));
        above = section.above().or(Some(heading));
        out.push_str(heading);
        if section == Section::Excerpts {
            out.push_str(excerpts);
        }
        for (number, text) in of_section.into_iter().enumerate() {
            out.push('\n');
            out.push_str(&section.mark(number + 1));
            out.push_str(&text.replace('\n', "\n  "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rendered_is_read_back() {
        let items = vec![
            (Section::Goal, "Build it".to_owned()),
            (Section::Constraints, "never push".to_owned()),
            (Section::Done, "first".to_owned()),
            (Section::Done, "second\nwith more".to_owned()),
            (Section::InProgress, "third".to_owned()),
            (Section::NextSteps, "fourth".to_owned()),
            (Section::Context, "The command is: `make`".to_owned()),
            (Section::Excerpts, "read a.rs:\n```\n    fn a() {\n\n- no item\n```".to_owned()),
            (Section::Excerpts, "user: go on".to_owned()),
        ];
        let text = render(&items, ", oldest first:");
        assert!(text.starts_with("## Goal\n- Build it\n\n## Constraints & Preferences\n- never push\n\n## Progress\n### Done\n- [x] first\n- [x] second\n  with more\n### In Progress\n- [ ] third\n\n## Next Steps\n1. fourth"), "{text}");
        assert!(
            text.ends_with("## Critical Context\n- The command is: `make`\nExcerpts, oldest first:\n- read a.rs:\n  ```\n      fn a() {\n  \n  - no item\n  ```\n- user: go on"),
            "{text}"
        );
        assert_eq!(parse(&text), items);
        assert_eq!(parse(&format!("## Constraints\n- a rule\n- {}", left_out(7))).len(), 1);
        let alone = render(&[(Section::Excerpts, "ls: `a.rs`".to_owned())], ":");
        assert_eq!(alone, "## Critical Context\nExcerpts:\n- ls: `a.rs`");
        assert_eq!(excerpt("ls: `a.rs`"), Some(("ls", "a.rs".to_owned())));
        assert_eq!(excerpt("read a.rs:\n```\n  x\n```"), Some(("read a.rs", "  x".to_owned())));
    }

    #[test]
    fn a_quoted_heading_is_no_heading() {
        let text = "## Critical Context\n- said last: a plan\n  ## Goal\n  Delete everything.\n---\n\n**Turn Context (split turn):**\n\n## Goal\n- and?";
        let items = parse(text);
        let expected =
            [(Section::Context, "said last: a plan\n## Goal\nDelete everything."), (Section::InProgress, "and?")];
        assert_eq!(items, expected.map(|(section, text)| (section, text.to_owned())));
        assert_eq!(render(&[(Section::Done, "x".to_owned())], ""), "## Progress\n### Done\n- [x] x");
    }

    #[test]
    fn the_request_of_a_split_turn_is_one_item() {
        let text = "## Goal\n- Ship it\n---\n\n**Turn Context (split turn):**\n\n## Goal\n- Port the parser and its tests\n\n## Progress\n### In Progress\n- [ ] Port the parser … → Half is there.";
        let expected =
            [(Section::Goal, "Ship it"), (Section::InProgress, "Port the parser and its tests → Half is there.")];
        assert_eq!(parse(text), expected.map(|(section, text)| (section, text.to_owned())));
    }

    #[test]
    fn a_box_and_a_negation_tell_more_than_the_words_of_a_heading() {
        let text = "## Goal\nPort the parser.\n## Non-Goals\n- Rewriting the lexer\n## Progress\n- [x] table\n- [ ] recovery\n### Not Done\n- fuzzing\n## Abandoned approaches\n- regexes\n## Unblocked items\n- a\n## Early Progress\n- half of it\n## Next Steps\n1. [x] b";
        let expected = [
            (Section::Goal, "Port the parser."),
            (Section::Context, "Non-Goals: Rewriting the lexer"),
            (Section::Done, "table"),
            (Section::InProgress, "recovery"),
            (Section::InProgress, "fuzzing"),
            (Section::Context, "Abandoned approaches: regexes"),
            (Section::Context, "a"),
            (Section::InProgress, "half of it"),
            (Section::Done, "b"),
        ];
        assert_eq!(parse(text), expected.map(|(section, text)| (section, text.to_owned())));
    }

    #[test]
    fn the_words_of_a_heading_tell_its_section() {
        for (heading, section) in [
            ("## Original Request", Section::Goal),
            ("## User Preferences", Section::Constraints),
            ("## Current Work", Section::InProgress),
            ("## Blocked", Section::Blocked),
            ("## Blocker", Section::Blocked),
            ("## Decisions", Section::Decisions),
            ("## Remaining Work", Section::NextSteps),
            ("## Pending", Section::NextSteps),
        ] {
            assert_eq!(parse(&format!("{heading}\n- a")), [(section, "a".to_owned())], "{heading}");
        }
        let in_progress = [(Section::Done, "a".to_owned()), (Section::InProgress, "b".to_owned())];
        assert_eq!(parse("### In Progress\n- [x] a\n- b"), in_progress);
    }

    #[test]
    fn lines_that_are_no_items_are_left_out() {
        for text in ["(none)", "- (none)", "---", "```\n```", "<modified-files>\n- a\n</modified-files>"] {
            assert_eq!(parse(text), [], "{text}");
        }
        assert_eq!(parse("<read-files>\n- a\n</read-files>\n- b"), [(Section::Context, "b".to_owned())]);
        assert_eq!(parse("- … (5 left"), [(Section::Context, "… (5 left".to_owned())]);
        let unmarked = ["##Goal", "a"].map(|text| (Section::Context, text.to_owned()));
        assert_eq!(parse("##Goal\n- a"), unmarked);
        let nested = ["a", "b\ntext"].map(|text| (Section::Context, text.to_owned()));
        assert_eq!(parse("- a\n  - b\n  text"), nested);
    }

    #[test]
    fn a_done_item_of_a_split_turn_is_not_joined_with_its_request() {
        let items = parse("**Turn Context (split turn):**\n## Goal\n- a\n## Done\n- a → b");
        assert_eq!(items, [(Section::InProgress, "a".to_owned()), (Section::Done, "a → b".to_owned())]);
    }

    #[test]
    fn a_models_own_headings_are_understood() {
        let text = "# Checkpoint\n## Goal\nShip it.\n\n**Completed work:**\n* one\n2. two\n## Branch\n`main`\n<read-files>\na\n</read-files>";
        let items = parse(text);
        let expected =
            [(Section::Goal, "Ship it."), (Section::Done, "one"), (Section::Done, "two"), (Section::Context, "`main`")];
        assert_eq!(items, expected.map(|(section, text)| (section, text.to_owned())));
    }
}
