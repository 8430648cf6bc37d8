//! The session of a scenario and its surroundings at first: its file, its settings and the access to its models.

use super::{
    action::{Ahead, Counts, Indexed, Prices, Setup, Tuning, Way},
    lies::Beyond,
    words::text,
};
use crate::{
    conversation::entry::{Header, HeaderKind, VERSION},
    ids::{EntryId, random::SplitMix64},
    log::memory::Disk,
    settings::{Layers, layers::Source},
};
use serde_json::{Map, Value, json};

/// The least tokens for which results are pruned.
pub const MINIMUM_SAVINGS: u64 = 50;

/// Provider of the models.
const PROVIDER: &str = "local";

/// The id of the larger model.
const LARGER: &str = "model-larger";

/// The id of the model of this number.
#[must_use]
pub fn model(number: u32) -> String {
    format!("model-{number}")
}

/// The header of the session.
#[must_use]
pub fn header() -> Header {
    Header {
        kind: HeaderKind::Session,
        version: VERSION,
        id: "simulated".into(),
        timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
        cwd: "/simulated".to_owned(),
        parent_session: None,
        title: None,
        rest: Map::new(),
    }
}

/// The disk with the session's file, and the ids of its entries.
#[must_use]
pub fn disk(setup: &Setup) -> (Disk, Vec<EntryId>) {
    let Lines { lines, ids, .. } = history(setup);
    let disk = Disk::new(header(), &lines).unwrap_or_else(|error| unreachable!("the lines are entries: {error}"));
    if setup.indexed == Indexed::AtOnce {
        disk.index_at_once(u64::MAX);
    }
    (disk, ids.into_iter().map(EntryId::from).collect())
}

/// The settings below the session's own.
#[must_use]
pub fn layers(setup: &Setup, tuning: Tuning) -> Layers {
    let mut models: Vec<Value> = (0..setup.models).map(|number| listed(setup, number)).collect();
    if setup.promotes
        && let Some(first) = models.first_mut()
    {
        let mut larger = first.clone();
        first["promoteTo"] = format!("{PROVIDER}/{LARGER}").into();
        (larger["id"], larger["contextWindow"]) = (LARGER.into(), (setup.window * 4).into());
        models.push(larger);
    }
    let mut others = json!({});
    let mut compaction = json!({"keepRecentTokens": setup.keep_recent, "idleThresholdTokens": setup.idle.threshold});
    if setup.idle.seconds > 0 {
        compaction["idleEnabled"] = true.into();
        compaction["idleTimeoutSeconds"] = setup.idle.seconds.into();
    }
    if let Some(ceiling) = setup.ceiling {
        compaction["maxTokensPerHour"] = ceiling.into();
    }
    compaction["speculative"] = speculative(setup.ahead);
    // No draws of their own, so that every seed stays the session that it was.
    compaction["rehydrate"] = setup.keep_recent.is_multiple_of(2).into();
    if setup.keep_recent.is_multiple_of(3) {
        (compaction["coldResume"], compaction["coldResumeTokens"]) = ("compact".into(), setup.keep_recent.into());
    }
    match tuning {
        Tuning::None | Tuning::Invalid => {}
        Tuning::StrategyOff => compaction["strategy"] = "off".into(),
        Tuning::NoMidTurn => compaction["midTurn"] = false.into(),
        Tuning::NoPromotion => others = json!({"contextPromotion": {"enabled": false}}),
        Tuning::NoLearning => others = json!({"tokens": {"learnWindow": false}}),
        Tuning::KeepRecent(tokens) => compaction["keepRecentTokens"] = tokens.into(),
        Tuning::ThresholdPercent(percent) => compaction["thresholdPercent"] = percent.into(),
        Tuning::NoCompaction => compaction["enabled"] = false.into(),
        Tuning::Window(window) => {
            if let Some(model) = models.first_mut() {
                model["contextWindow"] = window.into();
            }
        }
        Tuning::NoModels => models.clear(),
        Tuning::Ahead(ahead) => compaction["speculative"] = speculative(ahead),
    }
    let estimator = match setup.counts {
        Counts::Chars => "chars",
        Counts::Tokenizer => "auto",
    };
    let mut settings = json!({
        "defaultModel": format!("{PROVIDER}/{}", model(0)),
        "models": models,
        "compaction": compaction,
        "prune": {"protectTokens": 200, "minimumSavings": MINIMUM_SAVINGS},
        "tokens": {"estimator": estimator},
    });
    if let Some(learns) = others["tokens"]["learnWindow"].as_bool() {
        settings["tokens"]["learnWindow"] = learns.into();
    }
    if others["contextPromotion"].is_object() {
        settings["contextPromotion"] = others["contextPromotion"].take();
    }
    Layers::of(vec![(Source::Global, settings)])
}

fn listed(setup: &Setup, number: u32) -> Value {
    let window = setup.window >> number;
    let mut listed = json!({
        "provider": PROVIDER, "id": model(number), "contextWindow": window.max(1_000), "maxOutputTokens": 2_000,
    });
    match setup.way {
        Way::Provider => {
            listed["api"] = "openai_chat".into();
            // Servers that cut prompts stand on the user's own machine.
            let cuts = setup.truth.is_some_and(|truth| truth.beyond == Beyond::Cuts);
            listed["baseUrl"] = if cuts { "http://127.0.0.1:11434/v1" } else { "http://models.test/v1" }.into();
        }
        Way::Client => listed["api"] = "client".into(),
    }
    match setup.prices {
        Prices::Unknown => {}
        Prices::Listed => listed["cost"] = json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}),
        Prices::WithoutCache => listed["cost"] = json!({"input": 3, "output": 15}),
        Prices::Free => listed["cost"] = json!({"input": 0, "output": 0}),
    }
    listed
}

/// The value of `compaction.speculative`.
fn speculative(ahead: Ahead) -> Value {
    match ahead {
        Ahead::Auto => "auto".into(),
        Ahead::On => true.into(),
        Ahead::Off => false.into(),
    }
}

/// The patch of a session's own settings.
#[must_use]
pub fn patch(tuning: Tuning) -> Value {
    match tuning {
        Tuning::None => json!({"compaction": null}),
        Tuning::KeepRecent(tokens) => json!({"compaction": {"keepRecentTokens": tokens}}),
        Tuning::ThresholdPercent(percent) => json!({"compaction": {"thresholdPercent": percent}}),
        Tuning::NoCompaction => json!({"compaction": {"enabled": false}}),
        Tuning::StrategyOff => json!({"compaction": {"strategy": "off"}}),
        Tuning::NoMidTurn => json!({"compaction": {"midTurn": false}}),
        Tuning::NoPromotion => json!({"contextPromotion": {"enabled": false}}),
        Tuning::NoLearning => json!({"tokens": {"learnWindow": false}}),
        Tuning::Window(window) => {
            json!({"models": [{"provider": PROVIDER, "id": model(0), "contextWindow": window}]})
        }
        Tuning::NoModels => json!({"models": []}),
        Tuning::Ahead(ahead) => json!({"compaction": {"speculative": speculative(ahead)}}),
        Tuning::Invalid => json!({"compaction": {"keepRecentTokens": "many"}}),
    }
}

/// The lines after the header.
fn history(setup: &Setup) -> Lines {
    let mut random = SplitMix64::new(setup.history_seed);
    let mut lines = Lines { lines: Vec::new(), ids: Vec::new(), leaf: None };
    while lines.ids.len() < setup.history as usize {
        let number = lines.ids.len() as u64 + 1_000_000;
        let chars = u32::try_from(5 + random.below(300)).unwrap_or(20);
        match random.below(40) {
            0 => lines.compacts(number, &mut random),
            1 => lines.branches(&mut random),
            2 => lines.adds("label", json!({"targetId": lines.any(&mut random), "label": "old"})),
            3 => lines.adds("custom", json!({"customType": "some.program", "data": {"number": number}})),
            4 => lines
                .adds("custom_message", json!({"customType": "note", "content": text(number, chars), "display": true})),
            5 => lines.adds("model_change", json!({"provider": PROVIDER, "modelId": model(0)})),
            6 => lines.adds("session_info", json!({"name": format!("Old title {number}")})),
            7 => lines.adds("some_later_type", json!({"number": number})),
            8..14 => lines.calls(number, chars),
            14..26 => lines.says(json!({"role": "user", "content": text(number, chars), "timestamp": 1})),
            _ => lines.says(json!({
                "role": "assistant", "content": [{"type": "text", "text": text(number, chars)}], "stopReason": "stop",
                "api": "openai_chat", "provider": PROVIDER, "model": model(0), "timestamp": 1,
            })),
        }
    }
    lines
}

struct Lines {
    lines: Vec<String>,
    ids: Vec<String>,
    leaf: Option<String>,
}

impl Lines {
    fn adds(&mut self, kind: &str, fields: Value) {
        let id = format!("old{:013x}", self.ids.len());
        let mut line = json!({"type": kind, "id": id, "parentId": self.leaf, "timestamp": "2026-01-01T00:00:00.000Z"});
        if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
            line.extend(fields);
        }
        self.lines.push(line.to_string());
        self.ids.push(id.clone());
        self.leaf = Some(id);
    }

    fn says(&mut self, message: Value) {
        self.adds("message", json!({"message": message}));
    }

    fn calls(&mut self, number: u64, chars: u32) {
        let id = format!("call-{number}");
        let call = json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "src/old.rs"}});
        self.says(json!({
            "role": "assistant", "content": [call], "stopReason": "toolUse", "api": "openai_chat", "provider": PROVIDER,
            "model": model(0), "timestamp": 1,
        }));
        self.says(json!({
            "role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": text(number, chars)}], "timestamp": 1,
        }));
    }

    fn compacts(&mut self, number: u64, random: &mut SplitMix64) {
        let kept = self.any(random);
        self.adds("compaction", json!({"summary": text(number, 300), "firstKeptEntryId": kept, "tokensBefore": 9_000}));
    }

    fn branches(&mut self, random: &mut SplitMix64) {
        self.leaf = self.any(random);
    }

    fn any(&self, random: &mut SplitMix64) -> Option<String> {
        random.one_of(&self.ids).cloned()
    }
}
