//! Hooks: requests to the client that take part in compactions and navigation, and their registration.

use crate::{ids::SessionId, text};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use std::{collections::BTreeSet, fmt, ops::RangeInclusive, str::FromStr, time::Duration};

/// A hook that a client can answer. The request of a hook has the prefix `hook/`, which is accepted here too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Asked before a compaction is drafted. It cancels the compaction or supplies the summary.
    SessionBeforeCompact,
    /// Asked before a summary is made. It adds context, changes the prompt, and stores data of its own.
    SessionCompacting,
    /// Asked before a compaction is written. It cancels the compaction or edits the summary.
    SessionCompactDraft,
    /// Asked before the leaf moves to another branch. It cancels the move or supplies the summary of the branch.
    SessionBeforeTree,
}

impl HookEvent {
    /// Every hook.
    pub const ALL: [Self; 4] =
        [Self::SessionBeforeCompact, Self::SessionCompacting, Self::SessionCompactDraft, Self::SessionBeforeTree];

    /// Name on the wire, without the prefix.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionBeforeCompact => "session_before_compact",
            Self::SessionCompacting => "session_compacting",
            Self::SessionCompactDraft => "session_compact_draft",
            Self::SessionBeforeTree => "session_before_tree",
        }
    }

    /// The hook whose name is closest to a text that names none. `None` where no name is close.
    fn closest(text: &str) -> Option<Self> {
        let wanted = words(text);
        let distance = |hook: &Self| {
            let name = words(hook.name());
            let missing = name.iter().filter(|word| !wanted.contains(word)).count();
            missing + wanted.iter().filter(|word| !name.contains(word)).count()
        };
        let closest = Self::ALL.into_iter().min_by_key(distance)?;
        (distance(&closest) < words(closest.name()).len()).then_some(closest)
    }
}

/// The words of a name in any spelling, by their first three letters: the ends of words have most of the mistakes.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for letter in name.chars().take(100) {
        if letter.is_uppercase() {
            spaced.push(' ');
        }
        spaced.extend(letter.to_lowercase());
    }
    let all = spaced.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty() && *word != "hook");
    all.map(|word| text::head(word, 3).to_owned()).collect()
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoHook(String);

impl FromStr for HookEvent {
    type Err = NoHook;

    fn from_str(text: &str) -> Result<Self, NoHook> {
        let name = text.strip_prefix("hook/").unwrap_or(text);
        if let Some(hook) = Self::ALL.into_iter().find(|hook| hook.name() == name) {
            return Ok(hook);
        }
        let shown: String = text.chars().take(60).collect();
        let names = Self::ALL.map(|hook| format!("`{hook}`")).join(", ");
        let meant = Self::closest(name).map(|hook| format!("did you mean `{hook}`? ")).unwrap_or_default();
        Err(NoHook(format!("there is no hook {shown:?}; {meant}The hooks are {names}")))
    }
}

impl<'de> Deserialize<'de> for HookEvent {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        String::deserialize(reader)?.parse().map_err(de::Error::custom)
    }
}

/// The way in which an operation goes on after a hook that failed: no answer in time, an error, a wrong answer, or a
/// client that is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// As if the hook was not registered.
    #[default]
    Continue,
    /// The operation ends with the outcome `cancelled`.
    Abort,
}

/// The time that a client has for the answer to a hook, in milliseconds: 100 to 600,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct HookTimeout(#[schemars(range(min = 100, max = 600_000))] u64);

/// The times that a client may state, in milliseconds.
const TIMES: RangeInclusive<u64> = 100..=600_000;

impl HookTimeout {
    /// The time without a statement.
    pub const DEFAULT: Self = Self(30_000);

    /// The time.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// The nearest time that a client may state.
    #[must_use]
    pub fn nearest(milliseconds: u64) -> Self {
        Self(milliseconds.clamp(*TIMES.start(), *TIMES.end()))
    }
}

impl<'de> Deserialize<'de> for HookTimeout {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let milliseconds = u64::deserialize(reader)?;
        if TIMES.contains(&milliseconds) {
            return Ok(Self(milliseconds));
        }
        let (least, most) = (TIMES.start(), TIMES.end());
        let what = format!("{milliseconds} ms is out of range; a hook has {least} to {most} ms");
        Err(de::Error::custom(what))
    }
}

/// Hooks that a client answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HookRegistration {
    /// The hooks. An empty list: none.
    pub events: Vec<HookEvent>,
    /// Time for an answer. Default: 30,000.
    pub timeout_ms: Option<HookTimeout>,
    /// After a hook that failed. Default: `continue`.
    pub on_failure: Option<OnFailure>,
}

/// Params of `hooks/set`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksSetParams {
    /// The hooks that the client answers, in place of those registered before. An empty list removes the registration.
    pub events: Vec<HookEvent>,
    /// Sessions, open or not. They use this registration instead of the default one. Default: the default registration,
    /// which is for every session without one of its own.
    pub session_ids: Option<SessionIds>,
    /// Time for an answer. Default: 30,000.
    pub timeout_ms: Option<HookTimeout>,
    /// After a hook that failed. Default: `continue`.
    pub on_failure: Option<OnFailure>,
}

/// The sessions of a registration.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct SessionIds(#[schemars(with = "Vec<SessionId>", length(min = 1))] BTreeSet<SessionId>);

/// The longest id of a session that a registration keeps, in bytes.
const LONGEST_ID: usize = 1_024;

impl SessionIds {
    /// The ids.
    pub fn iter(&self) -> impl Iterator<Item = &SessionId> {
        self.0.iter()
    }
}

impl<'de> Deserialize<'de> for SessionIds {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let ids = Vec::<RegisteredId>::deserialize(reader)?;
        if ids.is_empty() {
            let what = "the list is empty; name a session, or leave `sessionIds` out for all sessions";
            return Err(de::Error::custom(what));
        }
        Ok(Self(ids.into_iter().map(|RegisteredId(id)| id).collect()))
    }
}

/// The id of a session that may be kept.
struct RegisteredId(SessionId);

impl<'de> Deserialize<'de> for RegisteredId {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let id = SessionId::deserialize(reader)?;
        match id.as_str().len() {
            0 => Err(de::Error::custom("the id is empty; `session/list` lists the sessions")),
            1..=LONGEST_ID => Ok(Self(id)),
            length => Err(de::Error::custom(format!("the id has {length} bytes; {LONGEST_ID} are the most"))),
        }
    }
}

/// The hooks of `capabilities` as the client sent them. Any value is read, because `initialize` is exempt from strictness.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct ClaimedHooks(Value);

impl ClaimedHooks {
    /// The registration, with the parts of it that are wrong. A wrong part counts as missing.
    #[must_use]
    pub fn read(&self) -> (HookRegistration, Vec<String>) {
        let mut wrong = Vec::new();
        let Value::Object(claimed) = &self.0 else {
            let empty = self.0.is_null() || self.0.as_array().is_some_and(Vec::is_empty);
            if !empty {
                wrong.push("`hooks` is no object; no hook is registered".to_owned());
            }
            return (HookRegistration::default(), wrong);
        };
        let given = |name: &str| claimed.get(name).filter(|value| !value.is_null());
        let mut events = Vec::new();
        match given("events") {
            None => {}
            Some(Value::Array(names)) => {
                for (at, name) in names.iter().enumerate() {
                    match HookEvent::deserialize(name) {
                        Ok(event) => events.push(event),
                        Err(error) => wrong.push(format!("`events[{at}]` is left out: {error}")),
                    }
                }
            }
            Some(_) => wrong.push("`events` is no list of names; no hook is registered".to_owned()),
        }
        let timeout_ms = given("timeoutMs").and_then(|value| match (HookTimeout::deserialize(value), value.as_u64()) {
            (Ok(time), _) => Some(time),
            (Err(error), Some(stated)) => {
                let nearest = HookTimeout::nearest(stated);
                wrong.push(format!("`timeoutMs`: {error}; {} ms hold", nearest.0));
                Some(nearest)
            }
            (Err(_), None) => {
                wrong.push(format!("`timeoutMs` is no whole number; {} ms hold", HookTimeout::DEFAULT.0));
                None
            }
        });
        let on_failure = given("onFailure").and_then(|value| {
            OnFailure::deserialize(value)
                .inspect_err(|_| wrong.push("`onFailure` is `continue` or `abort`; `continue` holds".to_owned()))
                .ok()
        });
        (HookRegistration { events, timeout_ms, on_failure }, wrong)
    }
}

/// The hooks in force of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HooksInForce {
    /// The hooks.
    pub events: Vec<HookEvent>,
    /// Time for an answer, in milliseconds.
    pub timeout_ms: u64,
    /// After a hook that failed.
    pub on_failure: OnFailure,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hook_has_one_name_and_its_request_has_a_prefix() {
        for hook in HookEvent::ALL {
            assert_eq!(serde_json::to_value(hook).expect("JSON"), json!(hook.name()));
            assert_eq!(hook.name().parse(), Ok(hook));
            assert_eq!(format!("hook/{hook}").parse(), Ok(hook));
        }
    }

    #[test]
    fn an_unknown_hook_is_refused_with_the_closest_one() {
        use HookEvent::{SessionBeforeCompact, SessionBeforeTree, SessionCompacting};
        for (text, meant) in [
            ("session_before_compaction", Some(SessionBeforeCompact)),
            ("sessionBeforeCompact", Some(SessionBeforeCompact)),
            ("session.before-compact", Some(SessionBeforeCompact)),
            ("before_compact", Some(SessionBeforeCompact)),
            ("session_befor_compact", Some(SessionBeforeCompact)),
            ("sesion_before_compct", Some(SessionBeforeCompact)),
            ("experimental.session.compacting", Some(SessionCompacting)),
            ("hook/hook/session_compacting", Some(SessionCompacting)),
            ("session_before_navigate_tree", Some(SessionBeforeTree)),
            ("", None),
            ("tool_call", None),
            ("\u{1F600}", None),
        ] {
            assert_eq!(HookEvent::closest(text), meant, "{text}");
            let what = text.parse::<HookEvent>().expect_err("no hook").to_string();
            assert_eq!(what.contains("did you mean"), meant.is_some(), "{what}");
            assert!(HookEvent::ALL.iter().all(|hook| what.contains(hook.name())), "{what}");
        }
        let long = "x".repeat(1_000_000).parse::<HookEvent>().expect_err("no hook").to_string();
        assert!(long.len() < 300, "{}", long.len());
    }

    #[test]
    fn hooks_of_initialize_are_read_as_far_as_they_are_right() {
        use HookEvent::SessionCompacting;
        let read = |value: Value| ClaimedHooks(value).read();
        for none in [json!(null), json!({}), json!([]), json!({"events": null}), json!({"events": [], "more": 1})] {
            assert_eq!(read(none.clone()), (HookRegistration::default(), Vec::new()), "{none}");
        }
        for (value, events, timeout, on_failure, faults) in [
            (json!({"events": ["hook/session_compacting"]}), vec![SessionCompacting], None, None, 0),
            (json!({"events": ["session_compacting", "compact", 7]}), vec![SessionCompacting], None, None, 2),
            (json!({"events": "session_compacting"}), vec![], None, None, 1),
            (json!({"timeoutMs": 100}), vec![], Some(100), None, 0),
            (json!({"timeoutMs": 99}), vec![], Some(100), None, 1),
            (json!({"timeoutMs": 600_001}), vec![], Some(600_000), None, 1),
            (json!({"timeoutMs": -5}), vec![], None, None, 1),
            (json!({"timeoutMs": "soon"}), vec![], None, None, 1),
            (json!({"onFailure": "abort"}), vec![], None, Some(OnFailure::Abort), 0),
            (json!({"onFailure": "panic"}), vec![], None, None, 1),
            (json!(true), vec![], None, None, 1),
            (json!(["session_compacting"]), vec![], None, None, 1),
        ] {
            let (read, wrong) = read(value.clone());
            let timeout_ms = timeout.map(HookTimeout);
            assert_eq!(read, HookRegistration { events, timeout_ms, on_failure }, "{value}");
            assert_eq!(wrong.len(), faults, "{value}: {wrong:?}");
        }
    }
}
