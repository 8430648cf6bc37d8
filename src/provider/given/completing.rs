//! Completes a message of a client or of another agent to the form that pi and oh-my-pi read without checks. Fields are
//! added where they are missing; every other byte stays as it was given.

use crate::{
    conversation::message::{Message, NO_MODEL},
    ids::{CallId, ModelRef},
    provider::Api,
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, json, value::RawValue};
use std::{borrow::Cow, fmt};

/// Values for fields that a message lacks.
pub struct Missing<'a> {
    /// The session's model.
    pub model: Option<ModelRef>,
    /// Finds the wire format in which a model answers.
    pub api_of: &'a dyn Fn(&ModelRef) -> Option<Api>,
    /// Finds the tool of a call.
    pub tool_of: &'a dyn Fn(&CallId) -> Option<String>,
    /// Unix time in milliseconds.
    pub now: i64,
}

/// The fields of a JSON object in their order, each value as the JSON text that was sent.
#[derive(Default)]
struct Fields<'a> {
    fields: Vec<(String, Cow<'a, RawValue>)>,
    /// Whether a field that was sent has another value now.
    changed: bool,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = object.next_entry::<String, &'de RawValue>()? {
                    fields.push((name, Cow::Borrowed(value)));
                }
                Ok(Fields { fields, changed: false })
            }
        }
        reader.deserialize_map(Object)
    }
}

impl<'a> Fields<'a> {
    fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.get())
    }

    /// Whether a field is missing or null.
    fn lacks(&self, name: &str) -> bool {
        self.get(name).is_none_or(|value| value == "null")
    }

    fn set(&mut self, name: &str, value: String) {
        let Ok(value) = RawValue::from_string(value) else { return };
        match self.fields.iter_mut().rev().find(|(own, _)| own == name) {
            Some((_, own)) if own.get() == value.get() => {}
            Some((_, own)) => {
                *own = Cow::Owned(value);
                self.changed = true;
            }
            None => self.fields.push((name.to_owned(), Cow::Owned(value))),
        }
    }

    fn add(&mut self, name: &str, value: &Value) {
        if self.lacks(name) {
            self.set(name, value.to_string());
        }
    }

    fn into_json(self) -> String {
        object(&self.fields)
    }
}

/// A JSON object of these fields.
fn object(fields: &[(String, Cow<'_, RawValue>)]) -> String {
    let field = |(name, value): &(String, Cow<'_, RawValue>)| format!("{}:{}", Value::from(name.as_str()), value.get());
    format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
}

/// The JSON of a message with everything that pi and oh-my-pi read of its role.
#[must_use]
pub fn complete(json: &str, message: &Message, missing: &Missing<'_>) -> String {
    let Some(mut fields) = Fields::read(json) else { return json.to_owned() };
    let before = fields.fields.len();
    content(&mut fields, message);
    match message {
        Message::Assistant(answer) => {
            let named = || Some(ModelRef { provider: answer.provider.clone()?, id: answer.model.clone()? });
            let unnamed = fields.lacks("provider") && fields.lacks("model");
            let model = if unnamed { missing.model.clone() } else { named() };
            if fields.lacks("api") {
                let api = model.as_ref().and_then(missing.api_of).and_then(Api::pi_name);
                fields.add("api", &json!(api.unwrap_or(NO_MODEL)));
            }
            let model = model.as_ref();
            fields.add("provider", &json!(model.map_or(NO_MODEL, |model| &model.provider)));
            fields.add("model", &json!(model.map_or(NO_MODEL, |model| &model.id)));
            let usage = usage(fields.get("usage"));
            fields.set("usage", usage);
            let stop = if answer.calls().next().is_some() { "toolUse" } else { "stop" };
            fields.add("stopReason", &json!(stop));
        }
        Message::ToolResult(result) => {
            if fields.lacks("toolName") {
                let tool = (missing.tool_of)(&result.call);
                fields.set("toolName", json!(tool.as_deref().unwrap_or("unknown")).to_string());
            }
            fields.add("isError", &json!(false));
        }
        Message::Execution(_) => {
            fields.add("output", &json!(""));
            fields.add("cancelled", &json!(false));
            fields.add("truncated", &json!(false));
        }
        Message::Custom(_) if fields.lacks("files") => {
            fields.add("customType", &json!("message"));
            fields.add("display", &json!(true));
        }
        _ => {}
    }
    fields.add("timestamp", &json!(missing.now));
    match json.rfind('}') {
        // Only new fields: everything before them keeps its bytes, blanks too.
        Some(end) if !fields.changed => {
            let added = object(&fields.fields[before..]);
            let comma = if before == 0 || added == "{}" { "" } else { "," };
            format!("{}{comma}{}", &json[..end], &added[1..])
        }
        _ => fields.into_json(),
    }
}

/// Blocks where blocks are read, and in each block what its reader needs.
fn content(fields: &mut Fields<'_>, message: &Message) {
    let blocks_only = matches!(message, Message::Assistant(_) | Message::ToolResult(_));
    match fields.get("content") {
        Some(text) if blocks_only && text.starts_with('"') => {
            let block = format!(r#"[{{"type":"text","text":{text}}}]"#);
            fields.set("content", block);
        }
        Some(array) if array.starts_with('[') => {
            let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(array) else { return };
            let completed: Vec<Option<String>> = blocks.iter().map(|block| completed_block(block.get())).collect();
            if completed.iter().all(Option::is_none) {
                return;
            }
            let both = blocks.iter().zip(completed);
            let blocks: Vec<String> =
                both.map(|(block, completed)| completed.unwrap_or_else(|| block.get().to_owned())).collect();
            fields.set("content", format!("[{}]", blocks.join(",")));
        }
        _ => {}
    }
}

/// A block with the fields that it lacks; none where it lacks nothing.
fn completed_block(json: &str) -> Option<String> {
    let mut fields = Fields::read(json)?;
    let (name, value) = match fields.get("type")? {
        r#""toolCall""# => ("arguments", json!({})),
        r#""image""# => ("mimeType", json!(image_type(fields.get("data")?))),
        r#""thinking""# => ("thinking", json!("")),
        _ => return None,
    };
    fields.lacks(name).then(|| {
        fields.add(name, &value);
        fields.into_json()
    })
}

/// The type of an image, by the first bytes of its base64 data.
fn image_type(data: &str) -> &'static str {
    match data.trim_start_matches('"') {
        data if data.starts_with("/9j/") => "image/jpeg",
        data if data.starts_with("R0lG") => "image/gif",
        data if data.starts_with("UklG") => "image/webp",
        _ => "image/png",
    }
}

/// A usage with all counts and costs. Counts that are missing are zero, and a usage of zeros is no measure of a context.
fn usage(json: Option<&str>) -> String {
    let mut usage = json.and_then(Fields::read).unwrap_or_default();
    let number = |fields: &Fields<'_>, name: &str| fields.get(name).and_then(|value| value.parse::<f64>().ok());
    let sum = |fields: &Fields<'_>| -> f64 {
        ["input", "output", "cacheRead", "cacheWrite"].iter().filter_map(|name| number(fields, name)).sum()
    };
    for name in ["input", "output", "cacheRead", "cacheWrite"] {
        usage.add(name, &json!(0));
    }
    let tokens = sum(&usage) as u64;
    usage.add("totalTokens", &json!(tokens));
    let mut cost = usage.get("cost").and_then(Fields::read).unwrap_or_default();
    for name in ["input", "output", "cacheRead", "cacheWrite"] {
        cost.add(name, &json!(0));
    }
    let total = sum(&cost);
    // A whole number is written as one.
    cost.add("total", &if total == 0.0 { json!(0) } else { json!(total) });
    let cost = cost.into_json();
    usage.set("cost", cost);
    let completed = usage.into_json();
    match json {
        Some(json) if same_fields(json, &completed) => json.to_owned(),
        _ => completed,
    }
}

/// Whether two objects have the same fields, so that the one that was sent can stay as it is.
fn same_fields(sent: &str, completed: &str) -> bool {
    let value = |json: &str| serde_json::from_str::<Value>(json).ok();
    value(sent) == value(completed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(json: &str) -> Value {
        serde_json::from_str(&text(json, None)).expect("JSON")
    }

    fn text(json: &str, model: Option<ModelRef>) -> String {
        let message = Message::parse(json).expect("a message");
        let api_of = |model: &ModelRef| (model.provider == "anthropic").then_some(Api::Anthropic);
        let tool_of = |call: &CallId| (call.as_str() == "c1").then(|| "read".to_owned());
        complete(json, &message, &Missing { model, api_of: &api_of, tool_of: &tool_of, now: 7 })
    }

    #[test]
    fn an_answer_gets_every_field_that_pi_reads() {
        let zero = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
        assert_eq!(
            completed(r#"{"role":"assistant","content":"hi"}"#),
            json!({
                "role": "assistant", "content": [{"type": "text", "text": "hi"}],
                "api": "unknown", "provider": "unknown", "model": "unknown",
                "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": zero},
                "stopReason": "stop", "timestamp": 7
            })
        );
        let own = ModelRef { provider: "anthropic".into(), id: "claude".into() };
        let answer = text(r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n"}]}"#, Some(own));
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(
            (&answer["api"], &answer["provider"], &answer["model"], &answer["stopReason"]),
            (&json!("anthropic-messages"), &json!("anthropic"), &json!("claude"), &json!("toolUse"))
        );
        assert_eq!(answer["content"][0]["arguments"], json!({}));
    }

    #[test]
    fn the_model_of_the_session_is_added_only_where_provider_and_model_are_missing() {
        for (named, provider, model) in [
            (r#""provider":"other""#, "other", "unknown"),
            (r#""model":"gpt""#, "unknown", "gpt"),
            (r#""provider":null,"model":null"#, "anthropic", "claude"),
        ] {
            let own = ModelRef { provider: "anthropic".into(), id: "claude".into() };
            let answer = text(&format!(r#"{{"role":"assistant","content":[],{named}}}"#), Some(own));
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!((&answer["provider"], &answer["model"]), (&json!(provider), &json!(model)), "{named}");
        }
    }

    #[test]
    fn a_partial_usage_keeps_its_counts() {
        let answer = completed(
            r#"{"role":"assistant","content":[],"usage":{"input":10,"output":5,"cost":{"input":0.5,"output":0.25}}}"#,
        );
        assert_eq!(
            answer["usage"],
            json!({
                "input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
                "cost": {"input": 0.5, "output": 0.25, "cacheRead": 0, "cacheWrite": 0, "total": 0.75}
            })
        );
        let null = completed(r#"{"role":"assistant","content":[],"usage":null,"stopReason":null}"#);
        assert_eq!((&null["usage"]["cost"]["total"], &null["stopReason"]), (&json!(0), &json!("stop")));
    }

    #[test]
    fn results_commands_and_images_are_completed() {
        let result = completed(r#"{"role":"toolResult","toolCallId":"c1","content":"out"}"#);
        assert_eq!((&result["toolName"], &result["isError"]), (&json!("read"), &json!(false)));
        assert_eq!(result["content"], json!([{"type": "text", "text": "out"}]));
        let other = completed(r#"{"role":"toolResult","toolCallId":"c2","content":[],"isError":true}"#);
        assert_eq!((&other["toolName"], &other["isError"]), (&json!("unknown"), &json!(true)));
        let run = completed(r#"{"role":"bashExecution","command":"ls"}"#);
        assert_eq!((&run["output"], &run["cancelled"]), (&json!(""), &json!(false)));
        let image = completed(r#"{"role":"user","content":[{"type":"image","data":"/9j/4AAQ"}]}"#);
        assert_eq!(image["content"][0]["mimeType"], "image/jpeg");
    }

    #[test]
    fn bytes_of_a_client_stay_where_nothing_is_missing_in_them() {
        let sent = r#"{"role":"user", "content":"é 1"}"#;
        assert_eq!(text(sent, None), r#"{"role":"user", "content":"é 1","timestamp":7}"#);
        let number = r#"{"type":"toolCall","id":"c","name":"n","arguments":{"n":12345678901234567890123}}"#;
        let answer =
            format!(r#"{{"role":"assistant","content":[{number}, {{"type":"toolCall","id":"d","name":"n"}}]}}"#);
        assert!(text(&answer, None).contains(number));
    }
}
