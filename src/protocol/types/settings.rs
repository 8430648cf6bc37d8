//! Params and results of `settings/set`, `models/list` and `models/forget`.

use super::Object;
use crate::{
    ids::{ModelRef, SessionId},
    models::{catalog::ListedModel, learned::LearnedWindow},
    settings::Settings,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Params of `settings/set`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsSetParams {
    /// Scope of the change.
    pub scope: Scope,
    /// Session that the scope refers to. With scope `global`: the session whose effective settings are returned.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// JSON merge patch. Null removes a value, so that the value of the next layer applies.
    #[schemars(with = "SettingsPatch")]
    pub patch: Object,
}

/// A change of settings, as a schema: every value may be missing, and null removes it.
struct SettingsPatch;

impl JsonSchema for SettingsPatch {
    fn schema_name() -> Cow<'static, str> {
        "SettingsPatch".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let settings = generator.subschema_for::<Settings>().to_value();
        let mut patch = patch_of(&settings, generator);
        patch["description"] = "A JSON merge patch of settings. Null removes a value.".into();
        patch.try_into().expect("a schema is an object")
    }
}

/// The schema of a patch of an object; any other schema as it is.
fn patch_of(schema: &Value, generator: &SchemaGenerator) -> Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let target = name.and_then(|name| generator.definitions().get(name)).unwrap_or(schema);
    let Some(properties) = target["properties"].as_object() else { return schema.clone() };
    let one = |(name, property): (&String, &Value)| {
        let value = patch_of(property, generator);
        let mut either = json!({ "anyOf": [value, { "type": "null" }] });
        if let Some(description) = property.get("description") {
            either["description"] = description.clone();
        }
        (name.clone(), either)
    };
    let properties: Map<String, Value> = properties.iter().map(one).collect();
    json!({ "type": "object", "properties": properties })
}

/// Scope of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The global settings file.
    Global,
    /// The settings file of the session's working folder.
    Project,
    /// The session.
    Session,
}

/// Params of `models/list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelsListParams {
    /// Session whose own model is listed too.
    pub session_id: Option<SessionId>,
}

/// Result of `models/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelsListAnswer {
    /// Models of the settings in their order, then other models in use.
    pub models: Vec<ListedModel>,
}

/// Params of `models/forget`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ModelsForgetParams {
    /// The model.
    pub model: ModelRef,
}

/// Result of `models/forget`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelsForgetAnswer {
    /// The windows that were forgotten, one for each server of the model. Empty where none was learned. A bound that a
    /// session keeps for itself, from a refusal without a limit, is forgotten, too, and is not listed.
    pub forgotten: Vec<LearnedWindow>,
}
