//! Thoughts that a model wrote into its answer, in tags.

use crate::summary::prose::Fence;

/// Tags of thoughts, with their ends.
const TAGS: [(&str, &str); 2] = [("<thinking>", "</thinking>"), ("<think>", "</think>")];

/// An answer without the thoughts in it: a thought is no decision and no outcome. A tag begins its line, since an answer may
/// speak of tags. Thoughts without an end are all of an answer that begins with them.
pub(super) fn without_thoughts(answer: String) -> String {
    if !TAGS.iter().any(|(tag, _)| answer.contains(tag)) {
        return answer;
    }
    let mut kept = String::with_capacity(answer.len());
    let mut fence: Option<Fence> = None;
    // The end of the open tag, and the place of its line.
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let (end, inside) = match open {
            Some((end, _)) => (end, line),
            None => {
                let trimmed = line.trim();
                let is_code = fence.is_some();
                fence = fence
                    .map_or_else(|| Fence::opened_by(trimmed), |fence| (!fence.is_closed_by(trimmed)).then_some(fence));
                let tag = TAGS.iter().find_map(|(tag, end)| Some((*end, line.trim_start().strip_prefix(tag)?)));
                // After other text the tag stands alone on its line.
                let is_open = |(_, after): &(&str, &str)| {
                    let is_begin = kept.trim().is_empty();
                    is_begin || after.trim().is_empty() || TAGS.iter().any(|(_, end)| after.contains(end))
                };
                let Some(found) = tag.filter(|_| !is_code).filter(is_open) else {
                    kept.push_str(line);
                    continue;
                };
                open = Some((found.0, start));
                found
            }
        };
        if let Some((_, after)) = inside.split_once(end) {
            kept.push_str(after);
            open = None;
        }
    }
    if let Some((_, start)) = open.filter(|_| !kept.trim().is_empty()) {
        kept.push_str(&answer[start..]);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_in_tags_are_left_out() {
        for (answer, kept) in [
            ("<think>\nI decided to drop it.\n</think>\n\nDone.", "\n\nDone."),
            ("  <thinking>hm, <think> maybe</thinking> Done.\n<think>x</think>Bye", " Done.\nBye"),
            ("<think>\nI decided", ""),
            ("It has `<think>` in it.\n</think>", "It has `<think>` in it.\n</think>"),
            (
                "Ok.\n<think> is a tag.\nThe end is </think> there.",
                "Ok.\n<think> is a tag.\nThe end is </think> there.",
            ),
            ("Ok.\n<think>\nno end", "Ok.\n<think>\nno end"),
            ("```\n<think>\n</think>\n```\n<think>\n```\n</think>a", "```\n<think>\n</think>\n```\na"),
        ] {
            assert_eq!(without_thoughts(answer.to_owned()), kept);
        }
    }
}
