//! The settings that switch off something that is on by default, with the source of each value.

use super::{
    Speculative, Strategy,
    layers::{Source, Sourced},
};
use crate::ids::ModelRef;

impl Sourced {
    /// Each setting that switches something off for this model, with its source, in the order of their sections.
    #[must_use]
    pub fn switched_off(&self, model: Option<&ModelRef>) -> Vec<String> {
        let settings = &self.settings;
        let general = &settings.compaction;
        let own = settings.compaction_for(model);
        // A value that differs from the general one stands with the model.
        let at_model = |differs: bool| differs.then_some(model).flatten();
        let rows = [
            ("compaction.enabled", !own.enabled, at_model(own.enabled != general.enabled)),
            ("compaction.strategy", own.strategy == Strategy::Off, at_model(own.strategy != general.strategy)),
            ("compaction.midTurn", !own.mid_turn, at_model(own.mid_turn != general.mid_turn)),
            ("compaction.autoContinue", !own.auto_continue, at_model(own.auto_continue != general.auto_continue)),
            (
                "compaction.speculative",
                own.speculative == Speculative::Fixed(false),
                at_model(own.speculative != general.speculative),
            ),
            ("contextPromotion.enabled", !settings.context_promotion.enabled, None),
            ("retry.enabled", !settings.retry.enabled, None),
            ("tokens.learnWindow", !settings.tokens.learn_window, None),
        ];
        let off = rows.into_iter().filter(|(_, off, _)| *off);
        off.map(|(key, _, model)| match model {
            Some(ModelRef { provider, id }) => format!("{key} (of the model {provider}/{id})"),
            None => format!("{key} ({})", self.source_in_words(key)),
        })
        .collect()
    }

    fn source_in_words(&self, key: &str) -> &'static str {
        match self.sources.get(key) {
            None | Some(Source::Default) => "by default",
            Some(Source::Global) => "global settings",
            Some(Source::Project) => "settings of the project",
            Some(Source::Environment) if key == "compaction.enabled" => {
                "environment: ABRIDGED_DISABLE_AUTOCOMPACT or ABRIDGED_SETTINGS"
            }
            Some(Source::Environment) => "environment: ABRIDGED_SETTINGS",
            Some(Source::Session) => "settings of the session",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Layers;
    use serde_json::{Value, json};

    fn off(layers: &[(Source, Value)]) -> Vec<String> {
        let model = ModelRef { provider: "p".into(), id: "m".into() };
        Layers::of(layers.to_vec()).sourced().switched_off(Some(&model))
    }

    #[test]
    fn each_switch_is_named_with_its_source() {
        assert_eq!(off(&[]), Vec::<String>::new());
        let all = json!({
            "compaction": {"enabled": false, "strategy": "off", "midTurn": false, "autoContinue": false, "speculative": false},
            "contextPromotion": {"enabled": false}, "retry": {"enabled": false}, "tokens": {"learnWindow": false},
        });
        let keys = [
            "compaction.enabled",
            "compaction.strategy",
            "compaction.midTurn",
            "compaction.autoContinue",
            "compaction.speculative",
            "contextPromotion.enabled",
            "retry.enabled",
            "tokens.learnWindow",
        ];
        for (source, words) in [
            (Source::Global, "global settings"),
            (Source::Project, "settings of the project"),
            (Source::Session, "settings of the session"),
        ] {
            assert_eq!(off(&[(source, all.clone())]), keys.map(|key| format!("{key} ({words})")));
        }
        let variable = &off(&[(Source::Environment, json!({"compaction": {"enabled": false}}))])[0];
        assert!(variable.contains("ABRIDGED_DISABLE_AUTOCOMPACT"), "{variable}");
    }

    #[test]
    fn a_switch_of_the_model_is_named_with_it() {
        let own = |compaction: Value| json!({"models": [{"provider": "p", "id": "m", "compaction": compaction}]});
        let enabled = (Source::Global, own(json!({"enabled": false})));
        assert_eq!(off(std::slice::from_ref(&enabled)), ["compaction.enabled (of the model p/m)"]);
        let general = (Source::Project, json!({"compaction": {"midTurn": false}}));
        let both = off(&[enabled, general]);
        assert_eq!(both, ["compaction.enabled (of the model p/m)", "compaction.midTurn (settings of the project)"]);
    }

    #[test]
    fn the_switch_of_the_environment_holds_for_models_of_a_file() {
        let on = json!({"models": [{"provider": "p", "id": "m", "compaction": {"enabled": true, "midTurn": false}}]});
        let switch = (Source::Environment, json!({"compaction": {"enabled": false}}));
        let held = off(&[(Source::Global, on.clone()), switch.clone()]);
        assert_eq!(held.len(), 2, "{held:?}");
        assert!(held[0].starts_with("compaction.enabled (environment"), "{held:?}");
        // The session's own settings are over the environment.
        assert_eq!(off(&[switch, (Source::Session, on)]), ["compaction.midTurn (of the model p/m)"]);
    }
}
