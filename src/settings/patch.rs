//! Patches: the changes of a client, where null removes a key. A patch is checked before it is written, so that every
//! file on disk can be read.

use super::{
    checked::check_all,
    known,
    layers::without_nulls,
    problem::{Flaw, Problem},
};
use serde::Serialize;
use serde_json::{Map, Value, ser::PrettyFormatter};

/// A session's own settings with a patch over them, for its next `abridged.session` entry.
///
/// # Errors
/// When the patch is invalid; the key is that of the patch.
pub fn patched(current: Option<&Value>, patch: &Value) -> Result<Value, Problem> {
    // An unknown key in a file is a warning; in a patch it is an error, because the client expects an effect.
    let problems = check_all(&without_nulls(patch).to_string()).problems;
    if let Some(problem) = problems.into_iter().find(|problem| problem.flaw != Flaw::Clamped) {
        let what = match problem.flaw {
            Flaw::Unknown => match known::advice(&problem.key) {
                Some(advice) => format!("there is no such setting; {advice}"),
                None => "there is no such setting; protocol/schema.json lists those there are".to_owned(),
            },
            Flaw::Broken | Flaw::Invalid | Flaw::Clamped | Flaw::Untrusted => problem.what,
        };
        return Err(Problem { line: None, what, ..problem });
    }
    let mut value = current.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    apply(&mut value, patch);
    // A value that was invalid before stays as it is: the file may be changed in another place.
    let before = current.map(|current| check_all(&current.to_string()).problems).unwrap_or_default();
    let new = |problem: &Problem| !before.iter().any(|old| (&old.key, &old.what) == (&problem.key, &problem.what));
    let problems = check_all(&value.to_string()).problems;
    match problems.into_iter().find(|problem| problem.is_fatal() && new(problem)) {
        Some(problem) => Err(Problem { line: None, ..problem }),
        None => Ok(value),
    }
}

/// The text of a settings file with a patch over it; `None` where the patch changes nothing. The other keys stay, in
/// their order.
///
/// # Errors
/// When the patch is invalid. The text was checked before.
pub fn patched_text(text: Option<&str>, patch: &Value) -> Result<Option<String>, Problem> {
    let current: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
    let value = patched(current.as_ref(), patch)?;
    if value == current.unwrap_or_else(|| Value::Object(Map::new())) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let indent = text.map_or("  ", indent);
    let mut writer =
        serde_json::Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(indent.as_bytes()));
    value.serialize(&mut writer).map_err(|error| Problem::broken(error.to_string()))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map(Some).map_err(|error| Problem::broken(error.to_string()))
}

/// The indentation of a text.
fn indent(text: &str) -> &str {
    let indented = text.lines().find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        (rest.starts_with('"') && rest.len() < line.len()).then(|| &line[..line.len() - rest.len()])
    });
    indented.unwrap_or("  ")
}

/// RFC 7396.
fn apply(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { return };
    for (key, patch) in patch {
        if patch.is_null() {
            // The other way to remove would put the last key in its place.
            map.shift_remove(key);
        } else {
            apply(map.entry(key.clone()).or_insert(Value::Null), patch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let text = "{\n    \"zebra\": 1,\n    \"compaction\": {\n        \"reserveTokens\": 5,\n        \"strategy\": \"off\"\n    },\n    \"defaultModel\": \"a/b\"\n}";
        let patch = json!({"compaction": {"reserveTokens": null, "midTurn": false}, "zebra": null});
        let after = patched_text(Some(text), &patch).expect("right");
        let expected = "{\n    \"compaction\": {\n        \"strategy\": \"off\",\n        \"midTurn\": false\n    },\n    \"defaultModel\": \"a/b\"\n}\n";
        assert_eq!(after.as_deref(), Some(expected));
        let new = patched_text(None, &json!({"prune": {"protectTokens": 1}})).expect("right");
        assert_eq!(new.as_deref(), Some("{\n  \"prune\": {\n    \"protectTokens\": 1\n  }\n}\n"));
        for (text, patch) in [(None, json!({})), (None, json!({"prune": null})), (Some(text), json!({"zebra": null}))] {
            let nothing = patched_text(text, &patch).expect("right").is_none();
            assert_eq!(nothing, text.is_none(), "{patch}");
        }
    }

    #[test]
    fn a_wrong_patch_names_its_key() {
        let wrong = |patch: Value| {
            let problem = patched(Some(&json!({"zebra": 1})), &patch).expect_err("wrong");
            (problem.key.clone(), problem.what)
        };
        assert_eq!(wrong(json!({"compaction": {"reserveTokens": "many"}})).0, "compaction.reserveTokens");
        assert_eq!(wrong(json!({"compaction": {"reserve": 1}})).0, "compaction.reserve");
        assert_eq!(wrong(json!({"compaction": 5})).0, "compaction");
        assert!(wrong(json!({"zebra": 2})).1.starts_with("there is no such setting"));
        assert_eq!(patched(Some(&json!({"zebra": 1})), &json!({"zebra": null})), Ok(json!({})));
    }
}
