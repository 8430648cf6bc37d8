//! The answers that a client may expect, by the rules of JSON-RPC alone.

use abridged::wire::rpc::MOST_IN_BATCH;
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, fmt};

/// Expected responses: exact ids, and responses with one of several ids where the sender sent no valid request.
#[derive(Debug, Default)]
pub struct Owed {
    exactly: HashMap<String, usize>,
    pub count: usize,
    perhaps: Vec<String>,
}

impl Owed {
    /// The rules of JSON-RPC, asked of a frame's JSON alone.
    pub fn by_frame(&mut self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return self.owe("null") };
        let text = text.trim_start_matches('\u{feff}').trim();
        if !text.starts_with('[') {
            return self.by_request(text);
        }
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(requests) if requests.len() > MOST_IN_BATCH => self.owe("null"),
            Ok(requests) if !requests.is_empty() => requests.iter().for_each(|it| self.by_request(it.get())),
            _ => self.owe("null"),
        }
    }

    fn by_request(&mut self, text: &str) {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(text) else { return self.owe("null") };
        let of = |name: &str| fields.0.iter().filter(|(key, _)| key == name).map(|(_, raw)| *raw).collect::<Vec<_>>();
        let string = |raw: &str| serde_json::from_str::<String>(raw);
        let (ids, methods, versions) = (of("id"), of("method"), of("jsonrpc"));
        let once = ["id", "method", "jsonrpc", "params", "result", "error"].iter().all(|name| of(name).len() < 2);
        let version = versions.first().is_none_or(|raw| *raw == "null" || string(raw).is_ok_and(|it| it == "2.0"));
        let method = methods.first().is_some_and(|raw| string(raw).is_ok());
        let no_method = methods.first().is_none_or(|raw| *raw == "null");
        let answers = !of("result").is_empty() || of("error").first().is_some_and(|raw| *raw != "null");
        let is_text = versions.first().is_none_or(|raw| *raw == "null" || string(raw).is_ok());
        let is_answer = methods.is_empty() && of("result").len() + of("error").len() > 0;
        match ids.first() {
            // An answer that cannot be read has no answer.
            _ if is_answer && !(once && is_text) => {}
            _ if !once || !version && ids.is_empty() => self.owe_one_of(&ids),
            Some(id) if !is_id(id) => self.owe_one_of(&[]),
            Some(id) if version && method => self.owe(id),
            None if method => {}
            _ if version && no_method && answers => {}
            _ => self.owe_one_of(&ids),
        }
    }

    fn owe(&mut self, id: &str) {
        *self.exactly.entry(id.to_owned()).or_default() += 1;
        self.count += 1;
    }

    fn owe_one_of(&mut self, ids: &[&str]) {
        self.perhaps.extend(ids.iter().map(|id| (*id).to_owned()));
        self.count += 1;
    }

    /// Takes the answers against what is owed; what is wrong with them.
    pub fn settle(mut self, answers: &[String]) -> Result<(), String> {
        if answers.len() != self.count {
            return Err(format!("{} answers instead of {}", answers.len(), self.count));
        }
        for id in answers {
            match self.exactly.get_mut(id) {
                Some(left) if *left > 0 => *left -= 1,
                _ if id == "null" || self.perhaps.contains(id) => {}
                _ => return Err(format!("{id} was answered, which nobody or somebody else asked")),
            }
        }
        // A null id matches either.
        match self.exactly.into_iter().find(|(id, left)| *left > 0 && id != "null") {
            Some((id, left)) => Err(format!("{id} waits for {left} answers")),
            None => Ok(()),
        }
    }
}

fn is_id(raw: &str) -> bool {
    raw.starts_with('"')
        || raw.parse::<f64>().is_ok() && raw.trim_start_matches('-').bytes().all(|it| it.is_ascii_digit())
}

/// The fields of an object in their order, a repeated one as often as it stands there.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: de::MapAccess<'de>>(self, mut map: M) -> Result<Fields<'de>, M::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    fields.push((Cow::Owned(key), value.get()));
                }
                Ok(Fields(fields))
            }
        }
        reader.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    error: Option<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    code: i64,
    message: String,
}

/// The ids that a frame of the daemon answers. None of them may be a defect.
pub fn answered(frame: &[u8]) -> Vec<String> {
    let one = |answer: Answer<'_>| {
        if let Some(Problem { code: -32603, message }) = answer.error {
            panic!("a defect: {message}");
        }
        let id = answer.id.map_or_else(|| "null".to_owned(), |id| id.get().to_owned());
        answer.method.is_none().then_some(id)
    };
    if frame.starts_with(b"[") {
        let answers: Vec<Answer<'_>> = serde_json::from_slice(frame).expect("a batch of answers");
        return answers.into_iter().filter_map(one).collect();
    }
    one(serde_json::from_slice(frame).expect("a frame")).into_iter().collect()
}
