//! Misspelt members of a JSON text whose form is known. Other unknown members are allowed: a form may be extended.

use crate::text::spelling;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The members of an object, or of each object of an array.
#[derive(Debug)]
pub struct Form {
    /// The members that are read, and other ones that are known.
    pub members: &'static [&'static str],
    /// The members with a form of their own.
    pub below: &'static [(&'static str, &'static Form)],
    /// The members of an object by its `type`, where that decides. Members of an object of another type are not compared.
    pub kinds: &'static [(&'static str, &'static [&'static str])],
    /// Names that other formats have for members, each with the name here.
    pub foreign: &'static [(&'static str, &'static str)],
}

impl Form {
    /// The form of an object without objects in it.
    #[must_use]
    pub const fn flat(members: &'static [&'static str]) -> Self {
        Self { members, below: &[], kinds: &[], foreign: &[] }
    }

    /// The form of an object with objects in it.
    #[must_use]
    pub const fn with(members: &'static [&'static str], below: &'static [(&'static str, &'static Self)]) -> Self {
        Self { members, below, kinds: &[], foreign: &[] }
    }

    /// The known member of an object of this type that a name looks like, which the object lacks.
    fn meant(&self, name: &str, kind: Option<&str>, has: &[&str]) -> Option<&'static str> {
        let members = match kind.filter(|_| !self.kinds.is_empty()) {
            Some(kind) => self.kinds.iter().find(|(known, _)| *known == kind)?.1,
            None => self.members,
        };
        let lacks = || members.iter().copied().filter(|member| !has.contains(member));
        let foreign = self.foreign.iter().find(|(other, own)| *other == name && lacks().any(|member| member == *own));
        foreign.map(|(_, own)| *own).or_else(|| spelling::meant_member(name, lacks()))
    }
}

/// A misspelt member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misspelt {
    /// Its path, such as `content[0].tool_use_Id`.
    pub path: String,
    /// Its name.
    pub name: String,
    /// The known member that it looks like, which the object lacks.
    pub meant: &'static str,
}

impl fmt::Display for Misspelt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no {:?}; did you mean {:?}?", self.name, self.meant)
    }
}

/// The unknown members of one object that are compared with the known ones. A host has a few of its own.
const MOST_COMPARED: usize = 32;

/// The first misspelt member of a JSON text: one that looks like a known member that its object does not have, with another
/// value than null. A text that is no JSON has none.
#[must_use]
pub fn misspelt(json: &str, form: &Form) -> Option<Misspelt> {
    let mut found = None;
    let seed = Look { form, path: &Path::Root, found: &mut found };
    seed.deserialize(&mut serde_json::Deserializer::from_str(json)).ok()?;
    found
}

/// The way to a value.
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => f.write_str(name),
            Self::Member(around, name) => write!(f, "{around}.{name}"),
            Self::Item(around, at) => write!(f, "{around}[{at}]"),
        }
    }
}

/// Looks at a value of a form.
struct Look<'a> {
    form: &'a Form,
    path: &'a Path<'a>,
    found: &'a mut Option<Misspelt>,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { form, path, found } = self;
        let (mut has, mut unknown, mut kind) = (Vec::new(), Vec::new(), None);
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let member = form.members.iter().find(|member| **member == name);
            has.extend(member);
            if let Some((member, form)) = form.below.iter().find(|(member, _)| *member == name) {
                map.next_value_seed(Look { form, path: &Path::Member(path, member), found: &mut *found })?;
            } else if name == "type" {
                kind = serde_json::from_str::<String>(map.next_value::<&RawValue>()?.get()).ok();
            } else {
                let is_null = map.next_value::<Option<IgnoredAny>>()?.is_none();
                if member.is_none() && !is_null && unknown.len() < MOST_COMPARED {
                    unknown.push(name);
                }
            }
        }
        let meant = |name: &Cow<'de, str>| form.meant(name, kind.as_deref(), &has);
        let first = unknown.iter().find_map(|name| Some((meant(name)?, name)));
        if let (None, Some((meant, name))) = (&found, first) {
            *found = Some(Misspelt { path: Path::Member(path, name).to_string(), name: name.to_string(), meant });
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { form, path, found } = self;
        let mut at = 0;
        while items.next_element_seed(Look { form, path: &Path::Item(path, at), found: &mut *found })?.is_some() {
            at += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BLOCK: Form = Form {
        members: &["type", "text", "content", "isError", "arguments"],
        below: &[("content", &BLOCK)],
        kinds: &[("result", &["type", "content", "isError"]), ("call", &["type", "arguments"])],
        foreign: &[("args", "arguments"), ("text", "content")],
    };
    static MESSAGE: Form = Form::with(&["role", "stopReason", "content", "model"], &[("content", &BLOCK)]);

    #[test]
    fn the_first_member_that_looks_like_a_missing_one_is_found() {
        for (json, expected) in [
            (r#"{"role":"a","stopReson":"x"}"#, Some(("stopReson", "stopReason"))),
            (r#"{"role":"a","stop_reason":"x"}"#, Some(("stop_reason", "stopReason"))),
            (r#"{"content":[7,"x",{"type":"text"},{"isEror":true}]}"#, Some(("content[3].isEror", "isError"))),
            (
                r#"{"content":{"content":[{"content":[{"tpye":1}]}]}}"#,
                Some(("content.content[0].content[0].tpye", "type")),
            ),
            (r#"{"content":[{"type":"call","args":{}}]}"#, Some(("content[0].args", "arguments"))),
            (r#"{"content":[{"type":"result","isEror":true}]}"#, Some(("content[0].isEror", "isError"))),
            // Of another type, of no known type, and in an object that has the member.
            (
                r#"{"content":[{"type":"call","isEror":true},{"type":"new","argument":1},{"type":"call","args":1,"arguments":2}]}"#,
                None,
            ),
            // Null says nothing.
            (r#"{"role":"a","stop_reason":null}"#, None),
            // Members of a host's own.
            (r#"{"role":"a","mine":{"stopReson":1},"stopReason":"x","stopReasons":[],"mode":1}"#, None),
            (r#"{"stopReson":"#, None),
            ("null", None),
            ("1e400", None),
        ] {
            let found = misspelt(json, &MESSAGE);
            let found = found.as_ref().map(|it| (it.path.as_str(), it.meant));
            assert_eq!(found, expected, "{json}");
        }
    }

    #[test]
    fn a_million_unknown_members_are_not_all_compared() {
        let many: String = (0..1_000_000).map(|at| format!(r#""key{at}":1,"#)).collect();
        let json = format!(r#"{{{many}"stopReson":"x"}}"#);
        assert_eq!(misspelt(&json, &MESSAGE), None);
    }
}
