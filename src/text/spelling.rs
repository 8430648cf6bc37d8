//! The name that a misspelt one was meant to be.

/// The most edits between a misspelt name and the known one.
const MOST_EDITS: usize = 2;

/// The known name that `name` looks like: the same in another style of writing names, or at most two edits away.
pub fn meant<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let distance = |known: &&str| strsim::levenshtein(name, known);
    let same = known.clone().find(|known| folded(known) == folded(name));
    same.or_else(|| known.filter(|known| distance(known) <= MOST_EDITS).min_by_key(distance))
}

/// The known value that `value` looks like: as for a name, where not all of its letters differ, or the one that begins with it.
pub fn meant_value<'k>(value: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let length = value.chars().count();
    let is_close = |known: &&str| folded(known) == folded(value) || strsim::levenshtein(value, known) < length;
    let close = meant(value, known.clone()).filter(is_close);
    close.or_else(|| {
        known.filter(|known| length > MOST_EDITS && known.starts_with(value)).min_by_key(|known| known.len())
    })
}

/// The known member of an object that `name` looks like, without the differences between styles: the same, or with one edit in a
/// name of at least five letters. An object may have members of its writer, so short names are compared with more care, and a
/// plural is another name.
pub fn meant_member<'k>(name: &str, known: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
    let name = folded(name);
    let length = name.chars().count();
    let is_close = |known: &str| {
        // A name of a megabyte is not compared letter by letter.
        if length.abs_diff(known.chars().count()) > 1 {
            return false;
        }
        let most = match length.min(known.chars().count()) {
            0..=3 => 0,
            // Two letters that changed places are one edit.
            4 => usize::from(sorted(&name) == sorted(known)),
            _ => 1,
        };
        name.strip_suffix('s') != Some(known) && strsim::osa_distance(&name, known) <= most
    };
    let same = known.clone().find(|known| folded(known) == name);
    same.or_else(|| known.clone().find(|known| is_close(&folded(known))))
}

/// Whether two names differ in the style of writing names at most.
pub fn is_same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

fn sorted(name: &str) -> Vec<char> {
    let mut letters: Vec<char> = name.chars().collect();
    letters.sort_unstable();
    letters
}

/// A name without the differences between the styles of writing names.
fn folded(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_by_its_letters_or_by_two_edits() {
        let known = || ["dryRun", "wait", "when"].into_iter();
        for (name, expected) in [
            ("dry_run", Some("dryRun")),
            ("dryrun", Some("dryRun")),
            ("dryRum", Some("dryRun")),
            ("wiat", Some("wait")),
            ("whenever", None),
            ("dryRun", Some("dryRun")),
        ] {
            assert_eq!(meant(name, known()), expected, "{name}");
        }
    }

    #[test]
    fn a_member_is_meant_by_its_letters_or_by_few_edits_for_its_length() {
        let known = || ["id", "type", "model", "output", "stopReason"].into_iter();
        for (name, expected) in [
            ("stopReson", Some("stopReason")),
            ("stop_reson", Some("stopReason")),
            ("stpReson", None),
            ("stopReasons", None),
            ("ouput", Some("output")),
            ("otuput", Some("output")),
            ("tpye", Some("type")),
            ("tape", None),
            ("mode", None),
            ("modle", Some("model")),
            ("is", None),
            ("contextual", None),
            ("ID", Some("id")),
        ] {
            assert_eq!(meant_member(name, known()), expected, "{name}");
        }
    }

    #[test]
    fn a_value_is_meant_by_its_letters_or_by_its_beginning() {
        let known = || ["off", "low", "openai_chat", "openai_responses", "at"].into_iter();
        for (value, expected) in [
            ("lwo", Some("low")),
            ("openai", Some("openai_chat")),
            ("openaiResponses", Some("openai_responses")),
            ("OPENAI-CHAT", Some("openai_chat")),
            ("on", None),
            ("op", None),
            ("", None),
        ] {
            assert_eq!(meant_value(value, known()), expected, "{value}");
        }
    }
}
