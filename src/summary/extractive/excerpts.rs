//! Excerpts of a conversation: the lines that were taken, under the call, the file or the person that they come from.

use super::salient::Picked;
use crate::summary::{
    heard::{Said, Speaker},
    read_lines,
    sections::GAP,
};
use std::collections::HashMap;

/// The lines that were taken, those of one label together.
pub(super) fn excerpts(said: &[Said], picked: &[Picked<'_>], root: Option<&str>) -> Vec<String> {
    let key = |line: &Picked<'_>| (&said[line.piece].label, is_prose(&said[line.piece]));
    picked
        .chunk_by(|one, other| key(one) == key(other))
        .flat_map(|lines| match is_prose(&said[lines[0].piece]) {
            // Each thing that was said stands by itself.
            true => {
                lines.chunk_by(|one, other| one.piece == other.piece).map(|lines| excerpt(said, lines, root)).collect()
            }
            false => vec![excerpt(said, lines, root)],
        })
        .collect()
}

fn is_prose(piece: &Said) -> bool {
    matches!(piece.speaker, Speaker::User | Speaker::Assistant | Speaker::Instructions)
}

/// Lines under the label of their piece, with their numbers in a file that was read: prose as it was said, output and files
/// in a fence.
fn excerpt(said: &[Said], lines: &[Picked<'_>], root: Option<&str>) -> String {
    let piece = &said[lines[0].piece];
    let whole = whole_label(piece, &lines[0]);
    let is_alone = whole.is_some() && lines.len() == 1;
    let lines = if whole.is_some() && !is_alone { &lines[1..] } else { lines };
    let label = match whole {
        // The line has the command whole.
        Some(_) if is_alone => piece.label.split(' ').next().unwrap_or_default().to_owned(),
        Some(whole) => whole,
        None => piece.label.to_string(),
    };
    let label = root.map_or_else(|| label.clone(), |root| label.replace(root, ""));
    let numbers: Vec<usize> = lines.iter().filter_map(|line| line.number).collect();
    let label = match numbers.len() == lines.len() && !lines.is_empty() {
        true => format!("{label}:{}", read_lines::short(&numbers)),
        false => label,
    };
    let prose = is_prose(piece);
    match lines {
        [line] if prose && !line.code => format!("{label}: {line}"),
        [line] if !line.text.contains('`') => format!("{label}: `{line}`"),
        _ => {
            // A fence is longer than those inside.
            let ticks = if lines.iter().any(|line| line.text.starts_with("```")) { "````" } else { "```" };
            let fence = if prose { String::new() } else { format!("\n{ticks}") };
            let body = if prose { prose_body(lines) } else { code_body(said, lines) };
            format!("{label}:{fence}{body}{fence}")
        }
    }
}

/// The lines of prose, those of code in it between marks.
fn prose_body(lines: &[Picked<'_>]) -> String {
    let line = |line: &Picked<'_>| match line.code && !line.text.contains('`') {
        true => format!("\n`{line}`"),
        false => format!("\n{line}"),
    };
    lines.iter().map(line).collect()
}

/// The lines of code and output, with their indentation below the first one, and with a mark where lines of a file are left out.
fn code_body(said: &[Said], lines: &[Picked<'_>]) -> String {
    let width = |line: &Picked<'_>| line.indent.chars().count();
    let least = lines.iter().map(width).min().unwrap_or_default();
    let is_file = |line: &Picked<'_>| line.number.is_some() || said[line.piece].speaker == Speaker::Call;
    let mut body = String::new();
    for (at, line) in lines.iter().enumerate() {
        let goes_on = at
            .checked_sub(1)
            .map(|before| &lines[before])
            .is_none_or(|before| before.piece == line.piece && before.line + 1 >= line.line);
        if !goes_on && is_file(line) {
            body.push('\n');
            body.push_str(GAP);
        }
        body.push('\n');
        body.extend(line.indent.chars().skip(least));
        body.push_str(&line.to_string());
    }
    body
}

/// The label of a call with the whole of the command that it has clipped, if a line begins with that.
fn whole_label(piece: &Said, line: &Picked<'_>) -> Option<String> {
    let (tool, argument) = piece.label.split_once(' ')?;
    let clipped = argument.strip_suffix('…')?.trim_end();
    let said = line.text.strip_prefix("$ ").or_else(|| line.text.split_once(": ").map(|(_, argument)| argument))?;
    let is_whole = piece.speaker == Speaker::Call && line.more == (false, false) && said.contains(clipped);
    // A colon ends the label.
    (is_whole && !said.contains(": ")).then(|| format!("{tool} {said}"))
}

/// The folder that most paths in labels are below, with its last slash. Excerpts leave it out.
pub(super) fn root(said: &[Said]) -> Option<&str> {
    let paths: Vec<&str> = said
        .iter()
        .flat_map(|piece| piece.label.split_whitespace().filter(|word| word.starts_with('/') && word.len() > 8))
        .collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for path in &paths {
        for (at, _) in path.match_indices('/').skip(1) {
            *count.entry(&path[..=at]).or_default() += 1;
        }
    }
    let most = paths.len() * 3 / 5;
    let fits = |(root, count): &(&str, usize)| *count > most && *count > 2 && root.len() > 8;
    count.into_iter().filter(fits).map(|(root, _)| root).max_by_key(|root| (root.len(), *root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Clean;

    #[test]
    fn a_clipped_label_is_whole_where_a_line_has_the_rest() {
        let said = |label: &str| Said::new(Speaker::Call, Clean::assembled(label), Clean::assembled("x"));
        let line = "$ cd /x && git log --format=%H src/main.rs";
        let line = &Picked::whole(0, line);
        let whole = whole_label(&said("bash git log …"), line);
        assert_eq!(whole.as_deref(), Some("bash cd /x && git log --format=%H src/main.rs"));
        assert_eq!(whole_label(&said("bash git log …"), &Picked::whole(0, "description: the newest commits")), None);
        assert_eq!(whole_label(&said("bash git log --format=%H src/main.rs"), line), None, "nothing is clipped");
    }

    #[test]
    fn a_command_that_is_shown_whole_is_not_in_its_label() {
        let said = [Said::new(Speaker::Call, Clean::assembled("bash grep -n text …"), Clean::assembled(""))];
        let lines = [Picked::whole(0, "$ grep -n text registry/a.json | head")];
        assert_eq!(excerpt(&said, &lines, None), "bash: `$ grep -n text registry/a.json | head`");
    }

    #[test]
    fn code_keeps_its_indentation_and_marks_what_is_left_out() {
        let said = [Said::new(Speaker::Call, Clean::assembled("write a.rs"), Clean::assembled(""))];
        let line =
            |line: usize, indent: &'static str, text: &'static str| Picked { line, indent, ..Picked::whole(0, text) };
        let lines = [line(0, "  ", "fn a() {"), line(1, "    ", "b();"), line(7, "  ", "}")];
        assert_eq!(excerpt(&said, &lines, None), "write a.rs:\n```\nfn a() {\n  b();\n…\n}\n```");
        let prose = [Said::new(Speaker::Assistant, Clean::assembled("assistant"), Clean::assembled(""))];
        let lines = [line(0, "", "Run this:"), Picked { code: true, ..line(2, "", "cargo test") }];
        assert_eq!(excerpt(&prose, &lines, None), "assistant:\nRun this:\n`cargo test`");
    }

    #[test]
    fn the_folder_of_most_paths_is_left_out() {
        let said = |label: &str| Said::new(Speaker::Call, Clean::assembled(label), Clean::assembled("x"));
        let below = ["read /home/ana/shop/a.rs", "edit /home/ana/shop/src/b.rs", "read /home/ana/shop/c.rs", "ls"];
        let below = below.map(said);
        assert_eq!(root(&below), Some("/home/ana/shop/"));
        assert_eq!(root(&below[..2]), None, "of two paths there is no most");
        let apart = ["read /home/ana/a.rs", "read /etc/hosts.conf", "read /opt/tools/b.rs"].map(said);
        assert_eq!(root(&apart), None);
    }
}
