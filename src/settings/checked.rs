//! Reads one layer of settings against the types and their ranges. An invalid value falls back to its old value or its
//! default, and the rest of the layer holds.

use super::{
    CompactionSettings, Settings,
    layers::{Flaw, Problem},
    ranges::{Effect, Outside, Place, Step, outside},
    trust::{Trust, allowed, encloses_settings, needs_trust},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

/// A layer with more invalid values than this is not used, and the rest of them is not reported: each costs another
/// look at the whole layer.
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
    /// Everything that is wrong with it.
    pub problems: Vec<Problem>,
}

/// Reads a text of settings. An invalid value falls back to the one at its place in `before`, else to its default.
///
/// At most [`MOST_REPORTED`] problems are reported, the worst first where there are more, and one that counts the rest.
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
    let (value, refused, foreign) = match serde_json::from_str(text) {
        Ok(Value::Object(map)) => match trust {
            Trust::Trusted => (Value::Object(map), Vec::new(), Vec::new()),
            Trust::Untrusted => cut(map),
        },
        Ok(_) => return broken(1, "expected an object of settings".to_owned()),
        Err(error) => {
            let what = format!("not JSON: {}", crate::conversation::message::without_position(&error.to_string()));
            return broken(error.line(), what);
        }
    };
    let mut layer = Layer { text, before, value, left_out: Vec::new(), problems: Vec::new() };
    let mut unknown = None;
    if layer.clamp_and_refuse(Trust::Trusted) == Kept::All {
        unknown = layer.let_invalid_fall_back();
    }
    let Some(unknown) = unknown else {
        let what = format!("more than {MOST_INVALID} values are invalid; the whole file is not used");
        layer.problems.push(Problem::broken(what));
        return (Checked { value: None, problems: layer.problems }, refused);
    };
    if layer.problems.is_empty() {
        layer.look_for_doubles();
    }
    let unknown = foreign.into_iter().chain(unknown).map(|key| {
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

/// Takes the numbers that only trusted layers may have out of `value`, and says which.
pub fn tighten(value: &mut Value, trust: Trust) -> Vec<Outside> {
    let found = outside(value, trust);
    for Outside { place, .. } in &found {
        remove(value, place);
    }
    found
}

/// Whether a layer is still used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Its valid values are.
    All,
    /// More than [`MOST_INVALID`] of its values are invalid.
    Nothing,
}

/// A layer while it is checked.
struct Layer<'a> {
    text: &'a str,
    before: Option<&'a Value>,
    value: Value,
    /// Items of lists that were taken out, by their place in the text.
    left_out: Vec<Place>,
    problems: Vec<Problem>,
}

impl Layer<'_> {
    fn clamp_and_refuse(&mut self, trust: Trust) -> Kept {
        let mut invalid = 0;
        for outside in outside(&self.value, trust) {
            let Outside { place, found, range, effect } = &outside;
            match effect {
                Effect::Clamped => {
                    let nearest = outside.nearest();
                    if let Some(value) = place.of_mut(&mut self.value) {
                        *value = nearest.into();
                    }
                    self.problem(place, Flaw::Clamped, format!("{found}; expected {range}; {nearest} is used"));
                }
                Effect::Refused => {
                    self.invalid(place, format!("{found}; expected {range}"));
                    invalid += 1;
                    if invalid > MOST_INVALID {
                        return Kept::Nothing;
                    }
                }
            }
        }
        Kept::All
    }

    /// Lets every value of a wrong type fall back, and returns the unknown keys; none where too many are invalid.
    fn let_invalid_fall_back(&mut self) -> Option<Vec<String>> {
        let mut invalid = self.problems.iter().filter(|problem| problem.is_fatal()).count();
        loop {
            match typed::<Settings>(&self.value) {
                Ok(unknown) => return Some(unknown),
                Err((place, what)) => {
                    let (place, what) = inside_of_model(&self.value, place, what);
                    self.invalid(&place, what);
                    invalid += 1;
                }
            }
            if invalid > MOST_INVALID {
                return None;
            }
        }
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
        let mut reader = serde_json::Deserializer::from_str(self.text);
        if let Err(error) = serde_path_to_error::deserialize::<_, Settings>(&mut reader) {
            let (line, key) = (Some(error.inner().line()), error.path().to_string());
            let what = crate::conversation::message::without_position(&error.inner().to_string());
            // The values that a project may not set are not checked.
            if !what.starts_with("duplicate field") {
                return;
            }
            let what = format!("{what}; its last value is used");
            self.problems.push(Problem { key, line, flaw: Flaw::Invalid, ..Problem::broken(what) });
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
    let key = |at: usize| matches!(steps.get(at), Some(Step::Key(_)));
    let named = |at: usize, name: &str| matches!(steps.get(at), Some(Step::Key(key)) if key == name);
    // A list of names or words falls back whole: half of a command is another command.
    // Of a model each value stands for itself.
    let from = if named(0, "models") && steps.len() > 2 { 2 } else { 0 };
    let list = (from..steps.len()).find(|at| key(*at) && matches!(steps.get(at + 1), Some(Step::Item(_))));
    match list {
        Some(0) if named(0, "models") => return Some((Unit::Item, place.clone())),
        // Half of a tool is none.
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

/// The keys that a type does not know.
///
/// # Errors
/// The first invalid value: its place, and what was expected.
fn typed<T: DeserializeOwned>(value: &Value) -> Result<Vec<String>, (Place, String)> {
    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    // serde_ignored marks an Option it went through with a "?".
    let read: Result<T, _> =
        serde_ignored::deserialize(tracked, |path| unknown.push(path.to_string().replace(".?", "")));
    read.map(|_| unknown).map_err(|error| {
        let path = track.path();
        let steps = path.iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Seq { index } => Some(Step::Item(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        (Place(steps.collect()), crate::conversation::message::without_position(&error.to_string()))
    })
}

/// A model's own `compaction` is read whole by its type; which of its values is invalid is found here.
fn inside_of_model(value: &Value, place: Place, what: String) -> (Place, String) {
    let of_model = matches!(place.0.as_slice(), [_, Step::Item(_), Step::Key(key)] if key == "compaction");
    match place.of(value) {
        Some(own @ Value::Object(_)) if of_model => match typed::<CompactionSettings>(own) {
            Err((inside, what)) => (Place([place.0, inside.0].concat()), what),
            Ok(_) => (place, what),
        },
        _ => (place, what),
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
mod tests {
    use super::*;
    use crate::settings::ranges::{Number, Range, numbers};
    use serde_json::json;

    fn problem(text: &str) -> String {
        let problems = check(text, None).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_wrong_value_names_its_key_its_line_and_what_was_expected() {
        let found = problem("{\n  \"compaction\": {\n    \"reserveTokens\": \"many\"\n  }\n}");
        assert_eq!(found, "line 3: compaction.reserveTokens: invalid type: string \"many\", expected u64");
        let found = problem("{\n  \"compaction\": { \"thresholdPercent\": 250 } }");
        assert_eq!(found, "line 2: compaction.thresholdPercent: 250; expected -1 to 99; 99 is used");
        let found = problem("{\n\"models\": [ { \"provider\": \"a\", \"id\": \"b\", \"contextWindow\": 0 } ] }");
        assert_eq!(found, "line 2: models[0].contextWindow: 0; expected 1 to 1000000000");
        assert!(problem("{ \"compaction\": ").starts_with("line 1: not JSON"));
        for (model, expected) in [
            (
                r#""api": "openai""#,
                "line 2: models[0].api: unknown variant `openai`, expected one of `anthropic`, `openai_chat`, \
                 `openai_responses`, `google`, `client`",
            ),
            (
                r#""apiKeyCommand": "pass show key""#,
                "line 2: models[0].apiKeyCommand: invalid type: string \"pass show key\", expected a sequence",
            ),
            (
                r#""apiKeyCommand": []"#,
                "line 2: models[0].apiKeyCommand: no program; expected its name, then its arguments",
            ),
            (
                r#""headers": {"X-Key": "***"}"#,
                "line 2: models[0].headers.X-Key: *** stands for a value that is not told; expected the value itself",
            ),
            (r#""headers": {"X Key": "a"}"#, "line 2: models[0].headers: \"X Key\" is no name of a header"),
            (
                r#""headers": {"X-Key": "hush\nhush"}"#,
                "line 2: models[0].headers: the value of X-Key has a line break or the like in it",
            ),
        ] {
            assert_eq!(problem(&format!("{{ \"models\":\n[ {{ {model} }} ] }}")), expected);
        }
    }

    #[test]
    fn an_unknown_key_is_worth_a_word_and_no_more() {
        let Checked { value, problems } = check("{\"compaction\":\n{\"reserve\":1,\"midTurn\":false}}", None);
        assert!(value.is_some());
        assert_eq!(problems[0].to_string(), "line 2: compaction.reserve: unknown key, ignored");
        assert_eq!(problems[0].flaw, Flaw::Unknown);
        let nested = problem("{\"models\":[\n{\"id\":\"a\"},\n{\"id\":\"\\\"size\\\": {\",\n\"size\":1}]}");
        assert_eq!(nested, "line 4: models.1.size: unknown key, ignored");
    }

    /// The values that hold of a text, after `before`.
    fn held(text: &str, before: Option<Value>) -> Value {
        check(text, before.as_ref()).value.expect("JSON")
    }

    #[test]
    fn an_invalid_value_falls_back_and_the_rest_holds() {
        let rows = [
            (
                json!({"compaction": {"reserveTokens": "many", "midTurn": false}}),
                json!({"compaction": {"midTurn": false}}),
            ),
            (json!({"compaction": 5, "prune": {"protectTokens": 1}}), json!({"prune": {"protectTokens": 1}})),
            (
                json!({"retry": {"maxRetries": 1_000_000, "baseDelayMs": 0, "maxDelayMs": 500}}),
                json!({"retry": {"maxDelayMs": 500}}),
            ),
            (json!({"retry": {"maxRetries": u64::MAX, "baseDelayMs": 1.5}}), json!({"retry": {}})),
            (
                json!({"models": [5, {"id": "a", "contextWindow": 0}, {"id": "b", "compaction": {"style": "x", "enabled": true}}]}),
                json!({"models": [{"id": "a"}, {"id": "b", "compaction": {"enabled": true}}]}),
            ),
            (
                json!({"tools": {"files": [{"tool": "x"}, {"tool": "a", "argument": "b", "operation": "read"}]}}),
                json!({"tools": {"files": [{"tool": "a", "argument": "b", "operation": "read"}]}}),
            ),
            // Half of a list of names is another list.
            (json!({"compaction": {"models": ["a/b", 5]}}), json!({"compaction": {}})),
            (
                json!({"models": [{"id": "a", "compaction": {"models": ["a/b", 5]}}]}),
                json!({"models": [{"id": "a", "compaction": {}}]}),
            ),
            (json!({"compaction": {"stallSeconds": null}}), json!({"compaction": {}})),
        ];
        for (text, expected) in rows {
            let checked = check(&text.to_string(), None);
            assert_eq!(checked.value, Some(expected), "{text}");
            assert!(checked.problems.iter().all(|it| it.flaw == Flaw::Invalid && it.line == Some(1)), "{checked:?}");
            assert!(!checked.problems.is_empty());
        }
    }

    #[test]
    fn an_old_value_holds_on() {
        let before = json!({"compaction": {"reserveTokens": 7}, "models": [
            {"provider": "p", "id": "m", "contextWindow": 9, "baseUrl": "http://old"}]});
        let text = json!({"compaction": {"reserveTokens": -1}, "prune": {"protectTokens": 2}, "models": [
            {"provider": "q", "id": "m", "contextWindow": 0},
            {"provider": "p", "id": "m", "contextWindow": 0, "baseUrl": "http://new"}]});
        let expected = json!({"compaction": {"reserveTokens": 7}, "prune": {"protectTokens": 2}, "models": [
            {"provider": "q", "id": "m"},
            {"provider": "p", "id": "m", "contextWindow": 9, "baseUrl": "http://new"}]});
        assert_eq!(held(&text.to_string(), Some(before)), expected);
    }

    /// Without its address a model of a known provider would be asked at the provider's own, with the key for it.
    #[test]
    fn a_model_with_an_invalid_address_is_asked_nowhere() {
        let model =
            |base_url: Value| json!({"provider": "anthropic", "id": "m", "baseUrl": base_url, "contextWindow": 9});
        let text = json!({"models": [model(json!(5))]}).to_string();
        assert_eq!(held(&text, None), json!({"models": [model(json!(""))]}).to_owned());
        let before = json!({"models": [model(json!("http://proxy"))]});
        assert_eq!(held(&text, Some(before.clone())), before);
        let command = json!({"models": [{"provider": "p", "id": "m", "apiKeyCommand": ["pass", 5]}]});
        assert_eq!(held(&command.to_string(), None), json!({"models": [{"provider": "p", "id": "m", "baseUrl": ""}]}));
    }

    #[test]
    fn problems_name_the_items_as_they_stand_in_the_text() {
        let found = problem("{\"models\": [5,\n7, {\"id\": \"a\",\n\"contextWindow\": 0}, 8,\n{\"reasoning\": 1}]}");
        let keys: Vec<&str> = found
            .split("; line ")
            .map(|it| it.split(": ").nth(usize::from(it.starts_with("line"))).unwrap_or(it))
            .collect();
        assert_eq!(keys.len(), 5, "{found}");
        for expected in [
            "models[0]: ",
            "models[1]: ",
            "models[3]: ",
            "line 3: models[2].contextWindow: 0;",
            "line 4: models[4].reasoning: ",
        ] {
            assert!(found.contains(expected), "{expected} in {found}");
        }
    }

    #[test]
    fn a_key_that_stands_there_twice_is_reported() {
        let checked = check("{\"prune\": {\"protectTokens\": 1,\n\"protectTokens\": 2}}", None);
        assert_eq!(checked.value, Some(json!({"prune": {"protectTokens": 2}})));
        assert_eq!(
            checked.problems[0].to_string(),
            "line 2: prune: duplicate field `protectTokens`; its last value is used"
        );
    }

    #[test]
    fn a_file_of_nothing_but_invalid_values_costs_little() {
        let text = json!({"models": vec![5; 100_000]}).to_string();
        let checked = check(&text, None);
        assert_eq!((checked.value, checked.problems.len()), (None, MOST_REPORTED + 1));
    }

    #[test]
    fn the_problems_of_a_text_are_counted_beyond_the_reported_ones() {
        let keys: Map<String, Value> = (0..60_000).map(|key| (format!("k{key}"), json!(1))).collect();
        let mut unknown = json!(keys);
        unknown["compaction"] = json!({"stallSeconds": 0, "reserveTokens": 5});
        let model = json!({"provider": "p", "id": "m", "compaction": {"thresholdPercent": 150}});
        let clamped = json!({"models": vec![model; 10_000], "defaultModel": 5});
        for (settings, count, rest) in [(unknown, 60_001, Flaw::Unknown), (clamped, 10_001, Flaw::Clamped)] {
            let Checked { value, problems } = check(&settings.to_string(), None);
            assert!(value.is_some());
            assert_eq!(problems.len(), MOST_REPORTED + 1);
            assert_eq!(problems[0].flaw, Flaw::Invalid, "the worst is first");
            let last = &problems[MOST_REPORTED];
            let what = format!("and {} more problems, which are not listed", count - MOST_REPORTED);
            assert_eq!((&last.what, last.flaw), (&what, rest));
            assert_eq!(check_all(&settings.to_string()).problems.len(), count);
        }
    }

    #[test]
    fn too_many_numbers_out_of_range_end_the_check_of_a_file() {
        let model = json!({"provider": "p", "id": "m", "contextWindow": 0});
        let checked = check_all(&json!({"models": vec![model; 10_000]}).to_string());
        assert_eq!((checked.value, checked.problems.len()), (None, MOST_INVALID + 2));
    }

    #[test]
    fn a_forbidden_setting_of_an_untrusted_project_is_not_checked() {
        let model = json!({"compaction": {"thresholdPercent": 150}, "contextWindow": 0});
        let settings = json!({"models": vec![model; 10_000], "defaultModel": 5, "prune": 5, "compaction":
            {"remoteEnabled": 7, "stallSeconds": 8, "midTurns": 9}, "x": 1});
        let (checked, refused) = check_layer(&settings.to_string(), None, Trust::Untrusted);
        assert_eq!(checked.value, Some(json!({"compaction": {"stallSeconds": 8}})));
        let keys: Vec<_> = checked.problems.iter().map(|it| (it.flaw, it.key.as_str())).collect();
        let expected = [(Flaw::Invalid, "prune"), (Flaw::Unknown, "compaction.midTurns"), (Flaw::Unknown, "x")];
        assert_eq!(keys, expected);
        assert_eq!(refused, ["models", "defaultModel", "compaction.remoteEnabled"]);
        let (checked, _) = check_layer(r#"{"compaction": 5}"#, None, Trust::Untrusted);
        assert_eq!(checked.problems[0].flaw, Flaw::Invalid);
    }

    /// The settings with one number in them.
    fn with(number: &Number, value: i64) -> Value {
        number.keys.iter().rev().fold(json!(value), |inner, key| match key.as_str() {
            "models" => json!({"models": [inner]}),
            key => json!({ key: inner }),
        })
    }

    fn place(number: &Number) -> Place {
        let item = |key: &String| if key == "models" { vec![Step::Item(0)] } else { vec![] };
        Place(number.keys.iter().flat_map(|key| [vec![Step::Key(key.clone())], item(key)].concat()).collect())
    }

    #[test]
    fn every_number_is_held_within_its_range_in_a_file() {
        for number in numbers() {
            let Range { least, most } = number.range(Trust::Trusted);
            for inside in [least, most] {
                let settings = with(number, inside);
                assert_eq!(check(&settings.to_string(), None), Checked { value: Some(settings), problems: vec![] });
            }
            for (outside, nearest) in [(least - 1, least), (i64::MIN, least), (most + 1, most), (i64::MAX, most)] {
                let checked = check(&with(number, outside).to_string(), None);
                let held = checked.value.as_ref().and_then(|it| place(number).of(it));
                let (flaw, expected) = match number.effect {
                    Effect::Refused => (Flaw::Invalid, None),
                    Effect::Clamped => (Flaw::Clamped, Some(json!(nearest))),
                };
                assert_eq!(held, expected.as_ref(), "{:?} {outside}", number.keys);
                assert_eq!(checked.problems.len(), 1, "{checked:?}");
                assert_eq!((checked.problems[0].flaw, &checked.problems[0].key), (flaw, &place(number).to_string()));
            }
        }
    }
}
