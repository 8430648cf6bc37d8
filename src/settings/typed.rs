//! Reads JSON as a type of the settings. A read says which value is invalid and which keys the type does not know, each by
//! its place.

use super::ranges::{Place, Step};
use crate::text::faults::{in_plain_words, without_position};
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_path_to_error::Segment;
use std::{
    collections::{HashMap, HashSet},
    fmt,
};

/// The result of a read.
pub(super) struct Read {
    /// The keys that the type does not know, up to the invalid value.
    pub unknown: Vec<Place>,
    /// The first invalid value, and what was expected.
    pub invalid: Option<(Place, String)>,
}

/// Reads a value as a `T`.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Read {
    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let tracked = serde_path_to_error::Deserializer::new(value, &mut track);
    let read: Result<T, _> = serde_ignored::deserialize(tracked, |path| unknown.push(place_of(&path)));
    let invalid = read.err().map(|error| {
        let path = track.path();
        let steps = path.iter().map_while(|segment| match segment {
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Seq { index } => Some(Step::Item(*index)),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        (Place(steps.collect()), in_plain_words(without_position(&error.to_string())))
    });
    Read { unknown, invalid }
}

fn place_of(path: &serde_ignored::Path<'_>) -> Place {
    use serde_ignored::Path::{Map, NewtypeStruct, NewtypeVariant, Root, Seq, Some};
    let (parent, step) = match path {
        Root => return Place::default(),
        Seq { parent, index } => (parent, Step::Item(*index)),
        Map { parent, key } => (parent, Step::Key(key.clone())),
        Some { parent } | NewtypeStruct { parent } | NewtypeVariant { parent } => return place_of(parent),
    };
    let mut place = place_of(parent);
    place.0.push(step);
    place
}

/// Removes the members of objects that stand at these places. The work grows with the value and the places, not with
/// their product.
pub(super) fn remove_members(value: &mut Value, places: &[Place]) {
    let mut of_objects: HashMap<&[Step], HashSet<&str>> = HashMap::new();
    for place in places {
        if let Some((Step::Key(key), object)) = place.0.split_last() {
            of_objects.entry(object).or_default().insert(key);
        }
    }
    for (object, keys) in of_objects {
        if let Some(Value::Object(map)) = Place(object.to_vec()).of_mut(value) {
            map.retain(|key, _| !keys.contains(key.as_str()));
        }
    }
}

/// The first key of a text that stands twice in its object: its line, the dotted key of the object, and what is wrong.
pub(super) fn repeated_key(text: &str) -> Option<(usize, String, String)> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let error = serde_path_to_error::deserialize::<_, Unrepeated>(&mut reader).err()?;
    let what = without_position(&error.inner().to_string());
    let object = if error.path().iter().next().is_some() { error.path().to_string() } else { String::new() };
    what.starts_with(DUPLICATE).then(|| (error.inner().line(), object, what))
}

const DUPLICATE: &str = "duplicate field";

/// Any JSON in which no object has a key twice.
struct Unrepeated;

impl<'de> de::Deserialize<'de> for Unrepeated {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unrepeated {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(de::Error::custom(format!("{DUPLICATE} `{key}`")));
            }
            map.next_value::<Self>()?;
            keys.insert(key);
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}
