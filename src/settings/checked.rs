//! Reads one layer of settings against the types and their ranges. An invalid value falls back to its old value or its
//! default, and the rest of the layer holds.

use super::{
    CompactionSettings, Settings, known,
    problem::{Flaw, Problem},
    ranges::{Effect, Outside, Place, Step, make_whole, outside},
    trust::{Trust, allowed, encloses_settings, needs_trust},
    typed::{self, Read},
};
use serde_json::{Map, Value};

/// The largest text of settings that is read, in bytes. The usual ones have a few kilobytes; the bound is for links to
/// endless devices.
pub const LARGEST: u64 = 1 << 20;

/// A layer with more invalid values than this is not used, and the rest of them is not reported: each costs another
/// read of the whole layer.
const MOST_INVALID: usize = 64;

/// The most problems of a layer that are reported one by one; one more row counts the rest. Each is a notice for every
/// client and costs a scan of the text for its line, and a file of 1 MiB has room for 60,000 of them.
const MOST_REPORTED: usize = 16;

/// The most enclosing places in which the line of a problem is looked for: each costs a scan of the text. The deepest
/// setting stands five steps below the root.
const MOST_SCANS: usize = 5;

/// Settings of a model that say where its requests go, and with which key.
const WIRING: [&str; 7] = ["provider", "id", "api", "baseUrl", "apiKeyEnv", "apiKeyCommand", "headers"];

/// A text of settings as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Its values without the invalid ones; none where it is no JSON object.
    pub value: Option<Value>,
    /// Its problems.
    pub problems: Vec<Problem>,
}

/// Reads a text of settings. An invalid value falls back to the one at its place in `before`, else to its default.
///
/// At most `MOST_REPORTED` problems are reported, the worst first where there are more, and one that counts the rest.
#[must_use]
pub fn check(text: &str, before: Option<&Value>) -> Checked {
    check_layer(text, before, Trust::Trusted).0
}

/// Reads a text of settings as [`check`] does, after the keys that `trust` forbids are taken out of it. The forbidden
/// settings are not checked; their dotted keys are the second part of the result.
#[must_use]
pub fn check_layer(text: &str, before: Option<&Value>, trust: Trust) -> (Checked, Vec<String>) {
    let (checked, refused) = examine(text, before, trust);
    (Checked { problems: reported(text, checked.problems), ..checked }, refused)
}

/// Reads a text of settings as [`check`] does. Every problem is in the result, without its line.
#[must_use]
pub fn check_all(text: &str) -> Checked {
    examine(text, None, Trust::Trusted).0
}

/// The problems that are reported, with their lines.
fn reported(text: &str, mut problems: Vec<Problem>) -> Vec<Problem> {
    let rest = problems.len().saturating_sub(MOST_REPORTED);
    if rest > 0 {
        problems.sort_by_key(|problem| match problem.flaw {
            Flaw::Broken => 0,
            Flaw::Invalid => 1,
            Flaw::Unknown | Flaw::Untrusted => 2,
            Flaw::Clamped => 3,
        });
        let flaw = problems[MOST_REPORTED].flaw;
        problems.truncate(MOST_REPORTED);
        problems.push(Problem { flaw, ..Problem::broken(format!("and {rest} more problems, which are not listed")) });
    }
    for problem in &mut problems {
        if problem.flaw == Flaw::Unknown
            && let Some(advice) = known::advice(&problem.key)
        {
            problem.what.push_str(&format!("; {advice}"));
        }
        problem.line = problem.line.or_else(|| match problem.flaw {
            Flaw::Unknown => line_of(text, &problem.key),
            // An item of a list has no key of its own.
            _ => enclosing(&problem.key).take(MOST_SCANS).find_map(|key| line_of(text, key)),
        });
    }
    problems
}

/// A dotted key, then those of the places that enclose it, from the inside out.
fn enclosing(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| key.rfind(['.', '[']).map(|end| &key[..end])).filter(|key| !key.is_empty())
}

/// Reads a text of settings. Every problem is in the result; one that has a key is without its line.
fn examine(text: &str, before: Option<&Value>, trust: Trust) -> (Checked, Vec<String>) {
    let broken = |line: usize, what: String| {
        let problem = Problem { line: Some(line), ..Problem::broken(what) };
        (Checked { value: None, problems: vec![problem] }, Vec::new())
    };
    // No file of more is read. Settings of a session or the environment come from no file.
    if text.len() as u64 > LARGEST {
        return broken(1, format!("they have {} bytes, and the most is {LARGEST}; shorten them", text.len()));
    }
    let (mut value, refused, foreign) = match serde_json::from_str(text) {
        Ok(Value::Object(map)) => match trust {
            Trust::Trusted => (Value::Object(map), Vec::new(), Vec::new()),
            Trust::Untrusted => cut(map),
        },
        Ok(_) => return broken(1, "expected an object of settings".to_owned()),
        Err(error) => {
            let what = format!("not JSON: {}", crate::text::faults::without_position(&error.to_string()));
            return broken(error.line(), what);
        }
    };
    make_whole(&mut value);
    let mut layer =
        Layer { text, before, trust, value, left_out: Vec::new(), unknown: Vec::new(), problems: Vec::new() };
    if layer.clamp_and_refuse() == Kept::Nothing || layer.let_invalid_fall_back() == Kept::Nothing {
        let what = format!("more than {MOST_INVALID} values are invalid; the whole file is not used");
        layer.problems.push(Problem::broken(what));
        return (Checked { value: None, problems: layer.problems }, refused);
    }
    if layer.problems.is_empty() {
        layer.look_for_doubles();
    }
    let unknown = foreign.into_iter().chain(std::mem::take(&mut layer.unknown)).map(|key| {
        let what = "unknown key, ignored".to_owned();
        Problem { key, flaw: Flaw::Unknown, ..Problem::broken(what) }
    });
    layer.problems.extend(unknown);
    (Checked { value: Some(layer.value), problems: layer.problems }, refused)
}

/// The values of a client's settings, where every one is valid; numbers may have been clamped.
///
/// # Errors
/// The first problem that makes one of them unusable.
pub fn all_valid(settings: &Value) -> Result<Value, Problem> {
    let Checked { value, problems } = check_all(&settings.to_string());
    match problems.into_iter().find(Problem::is_fatal) {
        Some(problem) => Err(Problem { line: None, ..problem }),
        None => Ok(value.unwrap_or_else(|| Value::Object(Map::new()))),
    }
}

/// A key that is no setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The dotted key.
    pub key: String,
    /// The advice, where it looks like a setting.
    pub advice: Option<String>,
}

/// The keys of a client's settings that are no settings.
#[must_use]
pub fn unknown(settings: &Map<String, Value>) -> Vec<Unknown> {
    let problems = check_all(&Value::Object(settings.clone()).to_string()).problems;
    let keys = problems.into_iter().filter(|problem| problem.flaw == Flaw::Unknown).map(|problem| problem.key);
    keys.map(|key| Unknown { advice: known::advice(&key), key }).collect()
}

/// Removes the numbers that only trusted layers may have from `value`, and returns them.
pub fn tighten(value: &mut Value, trust: Trust) -> Vec<Outside> {
    let found = outside(value, trust);
    for Outside { place, .. } in &found {
        remove(value, place);
    }
    found
}

/// The use of a layer after a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Its valid values are used.
    All,
    /// Nothing of it is used: more than [`MOST_INVALID`] of its values are invalid.
    Nothing,
}

/// The result of a read of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fell {
    /// A value was invalid and fell back.
    Back,
    /// Every value is valid.
    Nothing,
}

/// A layer while it is checked.
struct Layer<'a> {
    text: &'a str,
    before: Option<&'a Value>,
    trust: Trust,
    value: Value,
    /// Items of lists that were taken out, by their place in the text.
    left_out: Vec<Place>,
    /// Keys that are no settings. They are taken out of the value when they are found.
    unknown: Vec<String>,
    problems: Vec<Problem>,
}

impl Layer<'_> {
    /// Mends or refuses the numbers that are out of the range for trusted layers. The tighter range of a project is
    /// named, so that the next value is not refused again; [`tighten`] refuses the numbers between the two.
    fn clamp_and_refuse(&mut self) -> Kept {
        let mut invalid = 0;
        for outside in outside(&self.value, Trust::Trusted) {
            let Outside { place, found, effect, .. } = &outside;
            let expected = outside.expected(self.trust);
            match effect {
                Effect::Clamped => {
                    let nearest = outside.nearest();
                    if let Some(value) = place.of_mut(&mut self.value) {
                        *value = nearest.into();
                    }
                    self.problem(place, Flaw::Clamped, format!("{found}; expected {expected}; {nearest} is used"));
                }
                Effect::Refused => {
                    self.invalid(place, format!("{found}; expected {expected}"));
                    invalid += 1;
                    if invalid > MOST_INVALID {
                        return Kept::Nothing;
                    }
                }
            }
        }
        Kept::All
    }

    /// Lets every value of a wrong type fall back.
    fn let_invalid_fall_back(&mut self) -> Kept {
        let mut invalid = self.problems.iter().filter(|problem| problem.is_fatal()).count();
        // The type of a model reads the model's own `compaction` whole, and so does not say which of its values is
        // invalid.
        for compaction in self.compactions_of_models() {
            while let Some(own @ Value::Object(_)) = compaction.of(&self.value) {
                if self.has_fallen_back(typed::read::<CompactionSettings>(own), &compaction) == Fell::Nothing {
                    break;
                }
                invalid += 1;
                if invalid > MOST_INVALID {
                    return Kept::Nothing;
                }
            }
        }
        while self.has_fallen_back(typed::read::<Settings>(&self.value), &Place::default()) == Fell::Back {
            invalid += 1;
            if invalid > MOST_INVALID {
                return Kept::Nothing;
            }
        }
        Kept::All
    }

    /// Takes the unknown keys of a read out, and lets its invalid value fall back. The value that was read is at
    /// `base`.
    fn has_fallen_back(&mut self, Read { unknown, invalid }: Read, base: &Place) -> Fell {
        let at = |place: &Place| Place([&base.0[..], &place.0[..]].concat());
        let keys: Vec<String> = unknown.iter().map(|place| self.in_text(&at(place)).to_string()).collect();
        self.unknown.extend(keys);
        if let Some(value) = base.of_mut(&mut self.value) {
            typed::remove_members(value, &unknown);
        }
        match invalid {
            Some((place, what)) => {
                self.invalid(&at(&place), what);
                Fell::Back
            }
            None => Fell::Nothing,
        }
    }

    fn compactions_of_models(&self) -> Vec<Place> {
        let models = self.value.get("models").and_then(Value::as_array).map_or(0, Vec::len);
        let of = |model| vec![Step::Key("models".to_owned()), Step::Item(model), Step::Key("compaction".to_owned())];
        (0..models).map(|model| Place(of(model))).collect()
    }

    fn problem(&mut self, place: &Place, flaw: Flaw, what: String) {
        let key = self.in_text(place).to_string();
        self.problems.push(Problem { key, flaw, ..Problem::broken(what) });
    }

    /// Lets the value at `place` fall back.
    fn invalid(&mut self, place: &Place, what: String) {
        self.problem(place, Flaw::Invalid, what);
        let Some((unit, cut)) = unit_of(place) else {
            self.value = Value::Object(Map::new());
            return;
        };
        let old = old_value(self.before, &self.value, &cut).cloned();
        match (unit, old) {
            (_, Some(old)) => {
                if let Some(value) = cut.of_mut(&mut self.value) {
                    *value = old;
                }
            }
            (Unit::Value, None) => remove(&mut self.value, &cut),
            (Unit::Item, None) => {
                let there = self.in_text(&cut);
                remove(&mut self.value, &cut);
                self.left_out.push(there);
            }
            // With another address, or another key, the conversation would go elsewhere: it is not asked at all.
            (Unit::Wiring(key), None) => {
                if let Some(Value::Object(model)) = cut.of_mut(&mut self.value) {
                    model.shift_remove(&key);
                    model.insert("baseUrl".to_owned(), "".into());
                }
            }
        }
    }

    /// A place of the value as it stands in the text, where items before it may have been taken out.
    fn in_text(&self, place: &Place) -> Place {
        let mut there = Place::default();
        for step in &place.0 {
            there.0.push(step.clone());
            if let Step::Item(_) = step {
                let mut gone: Vec<usize> = self.left_out.iter().filter_map(|it| same_list(it, &there)).collect();
                gone.sort_unstable();
                for item in gone {
                    if let Some(Step::Item(at)) = there.0.last_mut()
                        && item <= *at
                    {
                        *at += 1;
                    }
                }
            }
        }
        there
    }

    /// A key that stands there twice is read by its last value.
    fn look_for_doubles(&mut self) {
        if let Some((line, key, what)) = typed::repeated_key(self.text) {
            let what = format!("{what}; its last value is used");
            self.problems.push(Problem { key, line: Some(line), flaw: Flaw::Invalid, ..Problem::broken(what) });
        }
    }
}

/// The settings that an untrusted project may have, the dotted keys of the settings it may not have, and the keys that
/// are no settings.
fn cut(map: Map<String, Value>) -> (Value, Vec<String>, Vec<String>) {
    let wrong: Vec<(String, Value)> = map
        .iter()
        .filter(|it| encloses_settings(it.0) && !it.1.is_object())
        .map(|it| (it.0.clone(), it.1.clone()))
        .collect();
    let (mut kept, refused) = allowed(&Value::Object(map), Trust::Untrusted);
    let (refused, mut foreign): (Vec<String>, Vec<String>) = refused.into_iter().partition(|key| needs_trust(key));
    foreign.retain(|key| !encloses_settings(key));
    // Its type is checked like that of every other value.
    if let Value::Object(kept) = &mut kept {
        kept.extend(wrong);
    }
    (kept, refused, foreign)
}

/// The index of `one`, where both are items of the same list.
fn same_list(one: &Place, other: &Place) -> Option<usize> {
    match (one.0.split_last(), other.0.split_last()) {
        (Some((Step::Item(item), list)), Some((Step::Item(_), same))) if list == same => Some(*item),
        _ => None,
    }
}

/// The part of a layer that falls back together.
enum Unit {
    /// A member of an object.
    Value,
    /// An item of a list of objects.
    Item,
    /// A model, for one of the keys that say where it is asked.
    Wiring(String),
}

/// The part that falls back when the value at `place` is invalid, and where it stands; none for all of it.
fn unit_of(place: &Place) -> Option<(Unit, Place)> {
    let steps = &place.0;
    if let [Step::Key(models), Step::Item(_), Step::Key(key), ..] = steps.as_slice()
        && models == "models"
        && WIRING.contains(&key.as_str())
    {
        let unit = if ["provider", "id"].contains(&key.as_str()) { Unit::Item } else { Unit::Wiring(key.clone()) };
        return Some((unit, Place(steps[..2].to_vec())));
    }
    // Some of the prices of a model would give wrong costs.
    if let [Step::Key(models), Step::Item(_), Step::Key(cost), _] = steps.as_slice()
        && models == "models"
        && cost == "cost"
    {
        return Some((Unit::Value, Place(steps[..3].to_vec())));
    }
    let key = |at: usize| matches!(steps.get(at), Some(Step::Key(_)));
    let named = |at: usize, name: &str| matches!(steps.get(at), Some(Step::Key(key)) if key == name);
    // A list of names or words falls back whole: half of a command is another command.
    // The values of a model fall back one by one.
    let from = if named(0, "models") && steps.len() > 2 { 2 } else { 0 };
    let list = (from..steps.len()).find(|at| key(*at) && matches!(steps.get(at + 1), Some(Step::Item(_))));
    match list {
        Some(0) if named(0, "models") => return Some((Unit::Item, place.clone())),
        // A tool without one of its members is invalid.
        Some(1) if named(0, "tools") && named(1, "files") => {
            return Some((Unit::Item, Place(steps[..3].to_vec())));
        }
        Some(at) => return Some((Unit::Value, Place(steps[..=at].to_vec()))),
        None => {}
    }
    (!steps.is_empty()).then(|| (Unit::Value, place.clone()))
}

/// The value at the place of `place` in `before`; a model is found by its name.
fn old_value<'a>(before: Option<&'a Value>, now: &Value, place: &Place) -> Option<&'a Value> {
    let (mut old, mut now) = (before?, now);
    for step in &place.0 {
        (old, now) = match step {
            Step::Key(key) => (old.get(key)?, now.get(key)?),
            Step::Item(item) => {
                let model = now.get(*item)?;
                let same = |it: &&Value| {
                    ["provider", "id"].iter().all(|key| it[*key].is_string() && it.get(key) == model.get(key))
                };
                (old.as_array()?.iter().find(same)?, model)
            }
        };
    }
    Some(old)
}

fn remove(value: &mut Value, place: &Place) {
    let Some((last, parent)) = place.0.split_last() else { return };
    match (Place(parent.to_vec()).of_mut(value), last) {
        (Some(Value::Object(map)), Step::Key(key)) => drop(map.shift_remove(key)),
        (Some(Value::Array(items)), Step::Item(item)) if *item < items.len() => drop(items.remove(*item)),
        _ => {}
    }
}

/// The line of a dotted key in a text that is JSON.
#[must_use]
pub fn line_of(text: &str, key: &str) -> Option<usize> {
    enum At<'a> {
        Key(&'a str),
        Item(usize),
    }
    let wanted: Vec<&str> = key.split(['.', '[', ']']).filter(|part| !part.is_empty()).collect();
    let is_wanted = |path: &[At<'_>]| {
        let same = |(at, part): (&At<'_>, &&str)| match at {
            At::Key(key) => key == part,
            At::Item(number) => number.to_string() == **part,
        };
        path.len() == wanted.len() && path.iter().zip(&wanted).all(same)
    };
    let mut path: Vec<At<'_>> = Vec::new();
    let mut line = 1;
    let mut key_follows = false;
    let mut chars = text.char_indices();
    while let Some((start, char)) = chars.next() {
        match char {
            '\n' => line += 1,
            '{' => {
                path.push(At::Key(""));
                key_follows = true;
            }
            '[' => path.push(At::Item(0)),
            '}' | ']' => drop(path.pop()),
            ':' => key_follows = false,
            ',' => match path.last_mut() {
                Some(At::Item(number)) => *number += 1,
                _ => key_follows = true,
            },
            '"' => {
                let mut escaped = false;
                let closes = |&(_, char): &(usize, char)| {
                    let closes = char == '"' && !escaped;
                    escaped = char == '\\' && !escaped;
                    closes
                };
                let (end, _) = chars.find(closes)?;
                if let (true, Some(At::Key(key))) = (key_follows, path.last_mut()) {
                    *key = &text[start + 1..end];
                    if is_wanted(&path) {
                        return Some(line);
                    }
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
