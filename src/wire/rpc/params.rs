//! Params of a request. They are read by name. Keys that the method does not know are not lost: a misspelt one is an
//! error, and the others are named in the answer.

use super::listing::Listing;
use crate::{
    conversation::tools,
    protocol::errors::Failure,
    text::{faults, spelling, values},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, IntoDeserializer as _, MapAccess, Visitor},
    forward_to_deserialize_any,
};
use serde_json::Value;
use std::fmt;

/// Params, and the keys among them that the method does not know.
#[derive(Debug)]
pub struct Read<P> {
    /// The params.
    pub params: P,
    /// The first unknown keys, in their order. None of them looks like a known one.
    pub unknown: Vec<String>,
}

/// The keys that a method does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownKeys {
    /// A misspelt key is an error.
    Checked,
    /// The client may be newer, and says more.
    Exempt,
}

/// The member that is free on all params.
const META: &str = "_meta";

/// The most unknown keys that are noted. Each is compared with the known ones, and a frame may have a million of them.
const MOST_NOTED: usize = 256;

/// The member whose value stays JSON text: the messages of an append or of `context/fit`. Each of them is counted when it is read.
/// No other method has this member.
const RAW: [&str; 1] = ["messages"];

/// Reads params by name. An error names the path of the invalid value.
///
/// # Errors
/// When they do not fit the method, have too many values, or a key looks like a known one.
pub fn read_params<P: DeserializeOwned>(text: Option<&str>) -> Result<Read<P>, Failure> {
    read(text, UnknownKeys::Checked)
}

pub(super) fn read<P: DeserializeOwned>(text: Option<&str>, keys: UnknownKeys) -> Result<Read<P>, Failure> {
    values::check_without(text.unwrap_or_default(), &RAW).map_err(|values::TooMany { key }| {
        let what = format!(
            "the params have more than {} values and keys; send fewer, or large data as one text",
            values::MOST
        );
        Failure::params(key, what)
    })?;
    let text = match text.map(str::trim) {
        // No params, and Lua's empty table.
        None | Some("null") => "{}",
        Some(text) if text.starts_with('[') && text[1..].trim_start().starts_with(']') => "{}",
        Some(text) if text.starts_with('{') => text,
        Some(_) => return Err(Failure::params("", "params are an object with names")),
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let mut noted = Noted::default();
    let params = P::deserialize(Noting { reader: tracked, noted: &mut noted });
    let mut unknown = noted.unknown;
    if keys == UnknownKeys::Exempt {
        unknown.clear();
    }
    if noted.has_tools {
        unknown.extend(of_tools(text));
    }
    // A misspelt key is often the reason of a missing one, and says more.
    if let Some((key, meant)) = unknown.iter().find_map(|key| Some((key, key.meant?))) {
        let name = key.path.rsplit('.').next().filter(|_| key.is_below).unwrap_or(&key.path);
        return Err(Failure::params(key.path.clone(), format!("there is no {name:?}; did you mean {meant:?}?")));
    }
    match params {
        Ok(params) => Ok(Read { params, unknown: unknown.into_iter().map(|key| key.path).collect() }),
        Err(error) => {
            let error = serde_path_to_error::Error::new(track.path(), error);
            let (path, what) = faults::place_and_problem(&error);
            Err(Failure::InvalidParams { path, what })
        }
    }
}

/// An unknown key.
struct Unknown {
    /// Its path in the params.
    path: String,
    /// The known key that it looks like.
    meant: Option<&'static str>,
    /// Whether it is a key of a value of the params.
    is_below: bool,
}

impl Unknown {
    fn of(path: String, known: &'static [&'static str]) -> Self {
        let meant = spelling::meant(&path, known.iter().copied());
        Self { path, meant, is_below: false }
    }
}

/// The first members of the tools of params that reach no provider.
fn of_tools(params: &str) -> impl Iterator<Item = Unknown> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        tools: Value,
    }
    let tools = serde_json::from_str::<Params>(params).map(|params| params.tools).unwrap_or_default();
    let unknown = tools::unknown(&tools).into_iter().take(MOST_NOTED);
    unknown.map(|tools::Unknown { path, meant }| Unknown { path: format!("tools{path}"), meant, is_below: true })
}

/// Facts about the keys of params.
#[derive(Default)]
struct Noted {
    /// The first keys that the type does not know.
    unknown: Vec<Unknown>,
    /// Whether the type has tools.
    has_tools: bool,
}

/// Reads a value, and notes the keys of the outermost object that its type does not know. A value of the object that is none of a
/// closed set is refused with the values of the set.
struct Noting<'a, D> {
    reader: D,
    noted: &'a mut Noted,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Noting<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.noted.has_tools = fields.contains(&"tools");
        let unknown = &mut self.noted.unknown;
        self.reader.deserialize_struct(name, fields, NotingVisitor { visitor, fields, unknown })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.reader.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct NotingVisitor<'a, V> {
    visitor: V,
    fields: &'static [&'static str],
    unknown: &'a mut Vec<Unknown>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for NotingVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let Self { visitor, fields, unknown } = self;
        visitor.visit_map(NotingMap { map, fields, unknown })
    }
}

struct NotingMap<'a, A> {
    map: A,
    fields: &'static [&'static str],
    unknown: &'a mut Vec<Unknown>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for NotingMap<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<String>()? else { return Ok(None) };
        if self.unknown.len() < MOST_NOTED && !self.fields.contains(&key.as_str()) && key != META {
            self.unknown.push(Unknown::of(key.clone(), self.fields));
        }
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(Listing(seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::types::{
        AppendParams, CompactParams, ConfigureParams, InitializeParams, LoadParams, Nothing, SettingsSetParams,
    };

    fn path_of<P: DeserializeOwned>(json: &str) -> (String, String) {
        match read_params::<P>(Some(json)) {
            Err(Failure::InvalidParams { path, what }) => (path, what),
            Err(other) => panic!("{other}"),
            Ok(_) => ("fine".to_owned(), String::new()),
        }
    }

    #[test]
    fn wrong_params_are_told_with_their_path() {
        assert_eq!(path_of::<CompactParams>("{}").0, "sessionId");
        assert_eq!(path_of::<CompactParams>(r#"{"sessionId":"a","keepRecentTokens":-1}"#).0, "keepRecentTokens");
        assert_eq!(path_of::<CompactParams>(r#"{"sessionId":"a","when":"later"}"#).0, "when");
        assert_eq!(path_of::<AppendParams>(r#"{"sessionId":"a","messages":7}"#).0, "messages");
        assert_eq!(path_of::<CompactParams>(r#"["a"]"#).1, "params are an object with names");
        assert_eq!(path_of::<Nothing>("[ ]").0, "fine");
        assert_eq!(path_of::<LoadParams>("[]").0, "fine");
    }

    #[test]
    fn a_value_that_is_none_of_a_closed_set_is_refused_with_the_set() {
        for (json, expected) in [
            (
                r#""hgh""#,
                "unknown value `hgh`, expected one of `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`; did you mean `high`?",
            ),
            (
                "5",
                "invalid type: integer `5`, expected one of `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`",
            ),
            ("{}", "invalid type: object, expected one of `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`"),
            (
                "[\"low\"]",
                "invalid type: list, expected one of `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`",
            ),
        ] {
            let (path, what) = path_of::<ConfigureParams>(&format!(r#"{{"sessionId":"a","thinkingLevel":{json}}}"#));
            assert_eq!((path.as_str(), what.as_str()), ("thinkingLevel", expected));
        }
        assert_eq!(path_of::<ConfigureParams>(r#"{"sessionId":"a","thinkingLevel":null}"#).0, "fine");
        let scope = path_of::<SettingsSetParams>(r#"{"scope":null,"patch":{}}"#);
        assert_eq!(
            scope,
            ("scope".to_owned(), "invalid type: null, expected one of `global`, `project`, `session`".to_owned())
        );
        let (path, what) = path_of::<AppendParams>(r#"{"sessionId":"a","messages":[],"format":"anthropc"}"#);
        assert!(path == "format" && what.ends_with("did you mean `anthropic`?"), "{path}: {what}");
    }

    #[test]
    fn members_of_tools_that_reach_no_provider_are_noted_and_misspelt_ones_are_errors() {
        let tools =
            r#"{"sessionId":"a","tools":[{"name":"x","strict":true},{"function":{"name":"y","parametrs":{}}}]}"#;
        let (path, what) = path_of::<ConfigureParams>(tools);
        assert_eq!(
            (path.as_str(), what.as_str()),
            ("tools[1].function.parametrs", "there is no \"parametrs\"; did you mean \"parameters\"?")
        );
        let tools = tools.replace("parametrs", "parameters");
        let read = read_params::<ConfigureParams>(Some(&tools)).expect("right");
        assert_eq!(read.unknown, ["tools[0].strict"]);
        let (path, _) = path_of::<CompactParams>(r#"{"sessionId":"a","tools":[{"nme":"x"}],"wait":7}"#);
        assert_eq!(path, "wait", "a method without tools");
    }

    #[test]
    fn so_many_unknown_keys_are_noted() {
        let keys: Vec<String> = (0..100_000).map(|at| format!(r#""zqzq{at}":1,"#)).collect();
        let text = format!(r#"{{{}"sessionId":"a"}}"#, keys.concat());
        let read = read::<CompactParams>(Some(&text), UnknownKeys::Checked).expect("they are no error");
        assert_eq!((read.params.session_id.as_str(), read.unknown.len()), ("a", MOST_NOTED));
    }

    #[test]
    fn a_misspelt_key_is_an_error_that_names_the_known_one() {
        for (key, meant) in
            [("dryrun", "dryRun"), ("dry_run", "dryRun"), ("wiat", "wait"), ("KEEP_RECENT-tokens", "keepRecentTokens")]
        {
            let (path, what) = path_of::<CompactParams>(&format!(r#"{{"sessionId":"a","{key}":true}}"#));
            assert_eq!((path.as_str(), what), (key, format!("there is no {key:?}; did you mean {meant:?}?")));
        }
        assert_eq!(path_of::<CompactParams>(r#"{"sesionId":"a"}"#).0, "sesionId", "rather than a missing sessionId");
        assert_eq!(path_of::<CompactParams>(r#"{"dryrun":true,"dryRun":true,"sessionId":"a"}"#).0, "dryrun");
    }

    #[test]
    fn other_unknown_keys_are_returned_and_values_below_are_free() {
        let found: Read<CompactParams> = read(
            Some(r#"{"sessionId":"a","zebra":1,"_meta":{"dryrun":1},"giraffe":[2],"dryRun":true}"#),
            UnknownKeys::Checked,
        )
        .expect("right");
        assert_eq!((found.unknown, found.params.dry_run), (vec!["zebra".to_owned(), "giraffe".to_owned()], Some(true)));
        let text = r#"{"sessionId":"a","messages":[{"role":"user","content":"x","rol":1}]}"#;
        assert!(read_params::<AppendParams>(Some(text)).expect("right").unknown.is_empty());
        let text = Some(r#"{"protocolVersin":1,"zebra":2}"#);
        assert!(read::<InitializeParams>(text, UnknownKeys::Exempt).expect("right").unknown.is_empty());
        assert!(read::<InitializeParams>(text, UnknownKeys::Checked).is_err());
    }

    #[test]
    fn params_with_more_values_than_the_limit_are_refused_before_a_tree_is_made_of_them() {
        let many = format!("[{}0]", r#"{"":1},"#.repeat(values::MOST / 3));
        let path = |read: Result<(), Failure>| match read {
            Err(Failure::InvalidParams { path, what }) if what.contains("300000") => path,
            other => format!("{other:?}"),
        };
        let patch = format!(r#"{{"scope":"session","sessionId":"a","patch":{{"x":{many}}}}}"#);
        assert_eq!(path(read_params::<SettingsSetParams>(Some(&patch)).map(drop)), "patch");
        let tools = format!(r#"{{"sessionId":"a","tools":[{{"inputSchema":{many}}}]}}"#);
        assert_eq!(path(read_params::<ConfigureParams>(Some(&tools)).map(drop)), "tools");
        let messages = format!(r#"{{"sessionId":"a","messages":[{many},{many}]}}"#);
        assert_eq!(read_params::<AppendParams>(Some(&messages)).expect("texts").params.messages.len(), 2);
        let beside = format!(r#"{{"sessionId":"a","messages":[],"usage":{many}}}"#);
        assert_eq!(path(read_params::<AppendParams>(Some(&beside)).map(drop)), "usage");
    }
}
