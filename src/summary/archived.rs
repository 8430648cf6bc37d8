//! The conversation in an archive of oh-my-pi, as it was said.

use super::heard::{Said, Speaker};
use crate::redact::Clean;

/// The labels of an archive, which stand at the beginning of a line, and their speakers. Thinking is for no summary.
const LABELS: [(&str, Option<Speaker>); 4] = [
    ("¶user:", Some(Speaker::User)),
    ("¶ai:", Some(Speaker::Assistant)),
    ("¶call:", Some(Speaker::Call)),
    ("¶think:", None),
];

/// The lines around the output of a tool.
const OUTPUT: [&str; 2] = ["<out>", "</out>"];

/// The pieces of an archive's text, oldest first, each cleaned.
pub(super) fn said(archive: &str, clean: &dyn Fn(&str) -> Clean) -> Vec<Said> {
    let mut pieces: Vec<Said> = Vec::new();
    let mut speaker = Some(Speaker::Aside);
    let mut call = String::new();
    let mut lines: Vec<&str> = Vec::new();
    let mut end = |speaker: Option<Speaker>, call: &str, lines: &mut Vec<&str>| {
        let text = clean(std::mem::take(lines).join("\n").trim());
        if let Some(speaker) = speaker.filter(|_| !text.is_empty()) {
            let label = if matches!(speaker, Speaker::Result { .. }) { clean(call) } else { Clean::default() };
            pieces.push(Said::new(speaker, label, text));
        }
    };
    for line in archive.lines() {
        // A tool may print such labels.
        let is_output = matches!(speaker, Some(Speaker::Result { .. }));
        let label = LABELS.iter().find_map(|(label, speaker)| Some((*speaker, line.strip_prefix(label)?)));
        let label = label.filter(|_| !is_output);
        if let Some((next, rest)) = label {
            end(speaker, &call, &mut lines);
            (speaker, lines) = (next, vec![rest]);
        } else if line == OUTPUT[0] && matches!(speaker, Some(Speaker::Call)) {
            call = lines.concat();
            end(speaker, &call, &mut lines);
            speaker = Some(Speaker::Result { failed: false });
        } else if line == OUTPUT[1] && is_output {
            end(speaker, &call, &mut lines);
            speaker = Some(Speaker::Call);
        } else {
            lines.push(line);
        }
    }
    end(speaker, &call, &mut lines);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_read_as_it_was_said() {
        let archive = "¶user:Look at it.\nAll of it.\n\n¶think:secret thoughts\n\n¶ai:I look.\n\n¶call:read(path=\"a.rs\")\n<out>\nline 1\n¶ai: quoted\n</out>\nread(path=\"b.rs\")\n<out>\nb\n</out>\n\n¶ai:Done.";
        let found: Vec<(Speaker, String, String)> = said(archive, &|text: &str| Clean::assembled(text))
            .into_iter()
            .map(|it| (it.speaker, it.label.into_string(), it.text.into_string()))
            .collect();
        let of = |speaker, label: &str, text: &str| (speaker, label.to_owned(), text.to_owned());
        let result = Speaker::Result { failed: false };
        assert_eq!(
            found,
            [
                of(Speaker::User, "", "Look at it.\nAll of it."),
                of(Speaker::Assistant, "", "I look."),
                of(Speaker::Call, "", "read(path=\"a.rs\")"),
                of(result, "read(path=\"a.rs\")", "line 1\n¶ai: quoted"),
                of(Speaker::Call, "", "read(path=\"b.rs\")"),
                of(result, "read(path=\"b.rs\")", "b"),
                of(Speaker::Assistant, "", "Done."),
            ]
        );
        assert_eq!(said("no labels", &|text: &str| Clean::assembled(text))[0].speaker, Speaker::Aside);
        assert!(said(" \n", &|text: &str| Clean::assembled(text)).is_empty());
    }
}
