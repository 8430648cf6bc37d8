//! Models that may write a summary, in order: the models that are named for it, then the session's own, then the one before
//! it, then the default one, then the one with the largest window. Pure: what is set in the environment, and whether the client runs models, is told.

use super::{DEFAULT_WINDOW, ModelRef, known, learned::Learned, output_limit, reasoning, window};
use crate::{
    provider::{Api, Endpoint, KeySource},
    settings::{CompactionPatch, ModelSettings, Settings},
};

/// A model that can be asked.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which.
    pub model: ModelRef,
    /// Its window, in tokens.
    pub window: u64,
    /// Largest answer, in tokens, where it is known.
    pub output: Option<u64>,
    /// Whether it thinks first.
    pub thinks: bool,
    /// The way to ask it.
    pub way: Way,
}

/// The way to ask a model.
#[derive(Debug, Clone)]
pub enum Way {
    /// At its provider.
    Provider(Endpoint),
    /// By the client.
    Client,
    /// At a service that makes summaries, of which no model is known. The address is the whole URL.
    Summarizer(Endpoint),
    /// At its provider, by OpenAI's address for compactions. It makes no text.
    Compaction(Endpoint),
    /// At its provider, by a request for a compaction in the place of an answer. That of OpenAI makes no text.
    OnDemand(Endpoint),
}

impl Way {
    /// The address that is asked; none where the client asks.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Provider(endpoint)
            | Self::Summarizer(endpoint)
            | Self::Compaction(endpoint)
            | Self::OnDemand(endpoint) => Some(endpoint),
            Self::Client => None,
        }
    }
}

/// A model that was named and cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Which; as it was written, where it is no model at all.
    pub model: String,
    /// The reason, and the next step for a person.
    pub why: String,
}

/// The facts that the choice of candidates depends on.
pub struct Situation<'a> {
    /// The settings in force.
    pub settings: &'a Settings,
    /// The session's model.
    pub session: Option<&'a ModelRef>,
    /// The model before the session's, after a change of the model.
    pub former: Option<&'a ModelRef>,
    /// Whether the client runs models.
    pub client_runs_models: bool,
    /// Whether an environment variable is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
    /// The windows that providers taught.
    pub learned: &'a Learned,
}

/// The source of a model's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// The settings: that it cannot be asked is worth a word.
    InSettings,
    /// Not for summaries: by the session, or as a default. A host asks it by itself, and maybe nobody else can.
    InPassing,
}

/// The candidates, each at most once.
#[must_use]
pub fn candidates(situation: &Situation<'_>) -> Vec<Result<Candidate, Unfit>> {
    let settings = situation.settings;
    let mut found: Vec<Result<Candidate, Unfit>> = Vec::new();
    let mut seen: Vec<ModelRef> = Vec::new();
    let compaction = settings.compaction_for(situation.session);
    let endpoint = compaction.remote_endpoint.as_ref().filter(|_| compaction.remote_enabled);
    found.extend(endpoint.map(|url| Ok(Candidate::summarizer(url))));
    for name in &compaction.models {
        match ModelRef::parse(name) {
            Some(model) if seen.contains(&model) => {}
            Some(model) => {
                found.extend(situation.resolve(&model, Named::InSettings));
                seen.push(model);
            }
            None => found.push(Err(Unfit {
                model: name.clone(),
                why: format!("`{name}` in compaction.models is no model; write \"provider/id\""),
            })),
        }
    }
    if let Some(model) = situation.session.filter(|model| !seen.contains(model)) {
        found.extend(situation.resolve(model, Named::InPassing));
        seen.push(model.clone());
    }
    if let Some(former) = situation.former.filter(|former| !seen.contains(former))
        && let Some(Ok(candidate)) = situation.resolve(former, Named::InPassing)
    {
        found.push(Ok(candidate));
        seen.push(former.clone());
    }
    // A host may ask its model by itself, and maybe nobody else can.
    if let Some(default) = settings.model_by_default().filter(|default| !seen.contains(default)) {
        found.extend(situation.resolve(&default, Named::InPassing));
        seen.push(default);
    }
    let configured = settings.models.iter().map(|it| ModelRef { provider: it.provider.clone(), id: it.id.clone() });
    let others = configured.filter(|model| !seen.contains(model));
    let able = others.filter_map(|model| situation.resolve(&model, Named::InPassing)?.ok());
    // Of two that are equal the first one named.
    let largest = able.reduce(|one, other| if other.window > one.window { other } else { one });
    found.extend(largest.map(Ok));
    found
}

/// The models that may continue a conversation with its whole context, the session's own first. With `only` it is this one.
#[must_use]
pub fn continuing(situation: &Situation<'_>, only: Option<&ModelRef>) -> Vec<Result<Candidate, Unfit>> {
    if let Some(only) = only {
        return vec![situation.candidate(only)];
    }
    let mut found = candidates(situation);
    found.retain(|candidate| candidate.as_ref().map_or(true, Candidate::is_model));
    let own = |it: &Result<Candidate, Unfit>| it.as_ref().is_ok_and(|it| it.named() == situation.session);
    if let Some(place) = found.iter().position(own) {
        found[..=place].rotate_right(1);
    }
    found
}

/// A candidate for its provider's own compaction.
#[derive(Debug, Clone)]
pub struct NativeCandidate {
    /// The session's model, by [`Way::OnDemand`], or [`Way::Compaction`] where it knows no other way.
    pub candidate: Candidate,
    /// Whether the provider compacts this model, or has to be asked first.
    pub is_certain: bool,
}

/// The session's model as a candidate for its provider's own compaction, where the provider has one. OpenAI and Anthropic have
/// one by their names; of another provider the settings say so, by `nativeCompaction` of the model or, for OpenAI's Responses,
/// `compaction.remoteEnabled` of the model.
#[must_use]
pub fn native(situation: &Situation<'_>) -> Option<NativeCandidate> {
    let settings = situation.settings;
    let model = situation.session?;
    let own = settings.model(model);
    let said = own.and_then(|own| own.native_compaction);
    if !super::may_send_native(settings, model) {
        return None;
    }
    let candidate = situation.candidate(model).ok()?;
    let Way::Provider(endpoint) = candidate.way else { return None };
    let remote = own.and_then(|own| own.compaction.as_ref()).and_then(CompactionPatch::remote_enabled);
    let dialect = super::dialects::model(&model.id).dialect;
    let (has_one, is_certain) = match endpoint.api {
        Api::OpenaiResponses => (model.provider == "openai" || said.or(remote) == Some(true), true),
        Api::Anthropic => {
            (said == Some(true) || model.provider == "anthropic" && dialect.anthropic.compacts, said == Some(true))
        }
        Api::OpenaiChat | Api::Google | Api::Client => (false, false),
    };
    let on_demand = endpoint.api == Api::Anthropic || dialect.openai_responses.compacts;
    let way = if on_demand { Way::OnDemand(endpoint) } else { Way::Compaction(endpoint) };
    let candidate = Candidate { way, ..candidate };
    has_one.then_some(NativeCandidate { candidate, is_certain })
}

/// Puts the model before the session's in front of the session's, if it takes fewer requests. A smaller window may not hold
/// the messages that are summarized.
pub fn prefer_former(
    candidates: &mut [Result<Candidate, Unfit>],
    session: &ModelRef,
    former: &ModelRef,
    requests: impl Fn(&Candidate) -> usize,
) {
    let place =
        |model: &ModelRef| candidates.iter().position(|it| it.as_ref().is_ok_and(|it| it.named() == Some(model)));
    let (Some(present), Some(past)) = (place(session), place(former)) else { return };
    if present >= past {
        return;
    }
    if let (Ok(one), Ok(other)) = (&candidates[present], &candidates[past])
        && requests(other) < requests(one)
    {
        candidates[present..=past].rotate_right(1);
    }
}

impl Candidate {
    /// The service at `compaction.remoteEndpoint`. It gets no key: the settings have no place for one, and those of
    /// providers are for them.
    #[must_use]
    pub fn summarizer(url: &str) -> Self {
        // Costs have the name of a model.
        let model = ModelRef { provider: "remote".to_owned(), id: "endpoint".to_owned() };
        let endpoint =
            Endpoint { api: Api::OpenaiChat, base_url: url.to_owned(), key: KeySource::None, headers: Vec::new() };
        // Its window is unknown.
        Self { model, window: DEFAULT_WINDOW, output: None, thinks: false, way: Way::Summarizer(endpoint) }
    }

    /// Its model; none for a service of which no model is known.
    #[must_use]
    pub fn named(&self) -> Option<&ModelRef> {
        match self.way {
            Way::Provider(_) | Way::Client | Way::Compaction(_) | Way::OnDemand(_) => Some(&self.model),
            Way::Summarizer(_) => None,
        }
    }

    /// Whether its provider refuses requests that show what a model thought. Anthropic does for the models that bind their
    /// thinking, at any address.
    #[must_use]
    pub fn refuses_reasoning(&self) -> bool {
        super::dialects::model(&self.model.id).dialect.anthropic.binds_thinking
    }

    /// Whether it is a model.
    #[must_use]
    pub fn is_model(&self) -> bool {
        self.named().is_some()
    }

    /// Whether it runs on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.way.endpoint().is_some_and(Endpoint::is_local)
    }
}

impl Situation<'_> {
    /// The way to ask a model by name.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn candidate(&self, model: &ModelRef) -> Result<Candidate, Unfit> {
        let unfit = |why: String| Unfit { model: model.to_string(), why };
        let way = match self.way(model, self.settings.model(model)).map_err(unfit)? {
            Some(way) => way,
            None if self.client_runs_models => Way::Client,
            None => return Err(unfit(nowhere(model))),
        };
        let window = window(self.settings, self.learned.taught(self.settings, model), Some(model));
        Ok(Candidate {
            model: model.clone(),
            window: window.tokens,
            output: output_limit(self.settings, Some(model)).map(|limit| limit.tokens),
            thinks: reasoning(self.settings, model).unwrap_or(false),
            way,
        })
    }

    /// The way to ask a model; `None` where only its host can ask it.
    fn resolve(&self, model: &ModelRef, named: Named) -> Option<Result<Candidate, Unfit>> {
        // Its host asks it; the settings only say how large it is.
        let by_its_host = named == Named::InPassing
            && !self.client_runs_models
            && matches!(self.way(model, self.settings.model(model)), Ok(None));
        (!by_its_host).then(|| self.candidate(model))
    }

    /// The way to ask a model by the settings and the catalog of providers.
    fn way(&self, model: &ModelRef, set: Option<&ModelSettings>) -> Result<Option<Way>, String> {
        let known = known::provider(&model.provider);
        let base_url = set.and_then(|set| set.base_url.as_deref());
        let api = set.and_then(|set| set.api).or_else(|| known.map(|known| known.api));
        let api = match (api, base_url) {
            (Some(Api::Client), _) if self.client_runs_models => return Ok(Some(Way::Client)),
            (Some(Api::Client), _) => {
                return Err("its api is `client`, but the client did not say at `initialize` that it runs models \
                            (capabilities.llm)"
                    .to_owned());
            }
            (Some(api), _) => api,
            // Nearly everybody speaks it.
            (None, Some(_)) => Api::OpenaiChat,
            (None, None) => return Ok(None),
        };
        let known_url = known.filter(|known| known.api == api).map(|known| known.base_url);
        let Some(url) = base_url.or(known_url) else {
            return Err(format!("it has an api ({}) and no baseUrl; give it one in models", api.name()));
        };
        let key = match set.map(|set| (set.api_key_command.as_ref(), set.api_key_env.as_ref())) {
            Some((Some(command), _)) => KeySource::Command(command.clone()),
            Some((None, Some(variable))) if (self.is_set)(variable) => KeySource::Variable(variable.clone()),
            Some((None, Some(variable))) => return Err(format!("the variable {variable} with its key is not set")),
            _ => {
                let variables = known.map_or(&[][..], |known| known.key_env);
                match variables.iter().find(|variable| (self.is_set)(variable)) {
                    Some(variable) => KeySource::Variable((*variable).to_owned()),
                    // A proxy, or a server of one's own, may need none.
                    None if base_url.is_some() || variables.is_empty() => KeySource::None,
                    None if self.client_runs_models || set.is_none_or(|set| set.api.is_none()) => return Ok(None),
                    None => return Err(format!("its key is not set: {}", variables.join(" or "))),
                }
            }
        };
        let headers = set.into_iter().flat_map(|set| &set.headers).map(|(name, value)| (name.clone(), value.clone()));
        Ok(Some(Way::Provider(Endpoint { api, base_url: url.to_owned(), key, headers: headers.collect() })))
    }
}

/// The reason for which a model without settings cannot be asked.
fn nowhere(model: &ModelRef) -> String {
    match known::provider(&model.provider) {
        Some(known) => format!("its key is not set; put it into the environment as {}", known.key_env.join(" or ")),
        None => "nothing says where it is asked; give it an `api` and a `baseUrl` in models, or a provider that is \
                 known, with its key in the environment"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Each candidate as `model by how`, or `model: why not`.
    fn found(settings: Value, session: Option<&str>, client: bool, variables: &[&str]) -> Vec<String> {
        let settings: Settings = serde_json::from_value(settings).expect("settings");
        let session = session.and_then(ModelRef::parse);
        let situation = Situation {
            settings: &settings,
            session: session.as_ref(),
            former: None,
            client_runs_models: client,
            is_set: &|name| variables.contains(&name),
            learned: &Learned::default(),
        };
        let told = candidates(&situation).into_iter().map(|it| match it {
            Ok(Candidate { model, way: Way::Client, .. }) => format!("{model} by the client"),
            Ok(Candidate { way: Way::Summarizer(it), .. }) => {
                format!("the service at {} with {:?}", it.base_url, it.key)
            }
            Ok(Candidate { model, way: Way::Provider(it) | Way::Compaction(it) | Way::OnDemand(it), .. }) => {
                format!("{model} by {} at {} with {:?}", it.api.name(), it.base_url, it.key)
            }
            Err(Unfit { model, why }) => format!("{model}: {why}"),
        });
        told.collect()
    }

    fn local(id: &str, window: u64) -> Value {
        json!({"provider": "local", "id": id, "api": "openai_chat", "baseUrl": "http://127.0.0.1:1/v1", "contextWindow": window})
    }

    #[test]
    fn those_named_come_first_then_the_sessions_own_then_the_largest() {
        let settings = json!({
            "compaction": {"models": ["local/b", "local/b", "nonsense"]},
            "models": [local("a", 1_000), local("b", 1_000), local("c", 9_000), local("d", 9_000)],
        });
        let names: Vec<String> = found(settings, Some("local/a"), false, &[])
            .iter()
            .map(|it| it.split([' ', ':']).next().expect("a word").to_owned())
            .collect();
        assert_eq!(names, ["local/b", "nonsense", "local/a", "local/c"]);
    }

    #[test]
    fn the_default_stands_in_for_a_session_s_model_that_only_its_host_can_ask() {
        let settings = json!({"defaultModel": "local/b", "models": [local("a", 9_000), local("b", 1_000)]});
        let names = |settings: &Value, session| {
            let found = found(settings.clone(), Some(session), false, &[]);
            found.iter().map(|it| it.split([' ', ':']).next().expect("a word").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&settings, "host/own"), ["local/b", "local/a"]);
        assert_eq!(names(&settings, "local/b"), ["local/b", "local/a"]);
        assert_eq!(names(&settings, "local/a"), ["local/a", "local/b"]);
        let mut unknown = settings;
        unknown["defaultModel"] = json!("far/unknown");
        assert_eq!(names(&unknown, "host/own"), ["local/a"], "only a host can ask the default");
    }

    #[test]
    fn a_conversation_is_continued_by_the_sessions_model_then_by_the_others_and_by_no_service() {
        let settings = json!({
            "compaction": {"models": ["local/b", "nonsense"], "remoteEndpoint": "https://h/sum"},
            "models": [local("a", 1_000), local("b", 1_000), local("c", 9_000)],
        });
        let settings: Settings = serde_json::from_value(settings).expect("settings");
        let [own, other] = ["local/a", "local/c"].map(|name| ModelRef::parse(name).expect("a model"));
        let names = |only: Option<&ModelRef>| {
            let situation = Situation {
                settings: &settings,
                session: Some(&own),
                former: None,
                client_runs_models: false,
                is_set: &|_| false,
                learned: &Learned::default(),
            };
            let found = continuing(&situation, only).into_iter();
            found.map(|it| it.map_or_else(|unfit| unfit.model, |it| it.model.id)).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["a", "b", "nonsense", "c"]);
        assert_eq!(names(Some(&other)), ["c"]);
    }

    #[test]
    fn a_service_for_summaries_comes_before_the_models_and_gets_no_key() {
        let settings = |more: Value| {
            let mut compaction = json!({"models": ["openai/gpt-5"], "remoteEndpoint": "https://h/sum"});
            compaction.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            found(json!({"compaction": compaction}), None, false, &["OPENAI_API_KEY"])
        };
        let both = settings(json!({}));
        assert_eq!((both[0].as_str(), both.len()), ("the service at https://h/sum with None", 2), "{both:?}");
        assert!(both[1].starts_with("openai/gpt-5 by"), "{both:?}");
        assert_eq!(settings(json!({"remoteEnabled": false})), [both[1].clone()]);
        assert_eq!(settings(json!({"remoteEndpoint": null})), [both[1].clone()]);
    }

    #[test]
    fn a_provider_compacts_itself_where_it_is_known_to_or_the_settings_say_so() {
        let native = |settings: Value, model: &str| {
            let settings: Settings = serde_json::from_value(settings).expect("settings");
            let session = ModelRef::parse(model);
            let candidate = native(&Situation {
                settings: &settings,
                session: session.as_ref(),
                former: None,
                client_runs_models: false,
                is_set: &|name| name == "OPENAI_API_KEY",
                learned: &Learned::default(),
            });
            candidate.is_some_and(|it| {
                matches!(it.candidate.way, Way::Compaction(_) | Way::OnDemand(_))
                    && it.candidate.named() == session.as_ref()
            })
        };
        let model = |provider: &str, api: &str, more: Value| {
            let mut model = json!({"provider": provider, "id": "m", "api": api, "baseUrl": "http://h/v1"});
            model.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!({"models": [model]})
        };
        let said = |enabled: bool| json!({"compaction": {"remoteEnabled": enabled}});
        assert!(native(json!({}), "openai/gpt-5"));
        assert!(!native(said(false), "openai/gpt-5"));
        assert!(!native(json!({}), "anthropic/claude-opus-4-5"));
        assert!(native(model("openai", "openai_responses", json!({})), "openai/m"));
        assert!(!native(model("openai", "openai_chat", json!({})), "openai/m"));
        assert!(!native(model("openai", "openai_responses", said(false)), "openai/m"));
        assert!(!native(model("work", "openai_responses", json!({})), "work/m"));
        assert!(native(model("work", "openai_responses", said(true)), "work/m"));
        assert!(!native(model("work", "openai_chat", said(true)), "work/m"));
    }

    #[test]
    fn the_model_before_the_sessions_goes_first_where_it_takes_fewer_requests() {
        let settings = json!({
            "compaction": {"models": ["local/named"]},
            "models": [local("named", 1_000), local("small", 4_000), local("former", 9_000), local("huge", 90_000)],
        });
        let settings: Settings = serde_json::from_value(settings).expect("settings");
        let [small, former] = ["local/small", "local/former"].map(|name| ModelRef::parse(name).expect("a model"));
        let order = |requests: &dyn Fn(&Candidate) -> usize| {
            let situation = Situation {
                settings: &settings,
                session: Some(&small),
                former: Some(&former),
                client_runs_models: false,
                is_set: &|_| false,
                learned: &Learned::default(),
            };
            let mut found = candidates(&situation);
            prefer_former(&mut found, &small, &former, requests);
            found.into_iter().filter_map(|it| it.ok().map(|it| it.model.id)).collect::<Vec<_>>()
        };
        assert_eq!(order(&|it| if it.window < 9_000 { 3 } else { 2 }), ["named", "former", "small", "huge"]);
        assert_eq!(order(&|_| 2), ["named", "small", "former", "huge"]);
    }

    #[test]
    fn without_settings_a_key_in_the_environment_is_enough() {
        let anthropic = "anthropic/claude-sonnet-4-5";
        assert_eq!(found(json!({}), Some(anthropic), false, &[]), [""; 0], "its host asks it by itself");
        assert_eq!(
            found(json!({}), Some(anthropic), false, &["ANTHROPIC_API_KEY"]),
            [format!("{anthropic} by anthropic at https://api.anthropic.com with Variable(\"ANTHROPIC_API_KEY\")")]
        );
        assert_eq!(found(json!({}), None, true, &["ANTHROPIC_API_KEY"]), [""; 0], "no model at all");
    }

    #[test]
    fn a_client_that_runs_models_runs_those_nobody_else_can() {
        assert_eq!(found(json!({}), Some("x/y"), true, &[]), ["x/y by the client"]);
        assert_eq!(found(json!({}), Some("anthropic/claude-sonnet-4-5"), true, &[]).len(), 1);
        let own = json!({"models": [{"provider": "p", "id": "m", "api": "client"}]});
        assert_eq!(found(own.clone(), Some("p/m"), true, &[]), ["p/m by the client"]);
        let refused = found(own, Some("p/m"), false, &[]);
        assert!(refused[0].contains("capabilities.llm"), "{refused:?}");
    }

    #[test]
    fn what_is_set_and_cannot_be_asked_says_why() {
        let model = |rest: Value| {
            let mut model = json!({"provider": "p", "id": "m"});
            model.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
            found(json!({"models": [model]}), Some("p/m"), false, &["SET"]).join("")
        };
        assert_eq!(model(json!({})), "", "its host asks it");
        let named = json!({"compaction": {"models": ["p/m"]}});
        assert!(found(named, None, false, &[]).join("").contains("nothing says where"));
        let known = json!({"compaction": {"models": ["anthropic/m"]}});
        assert!(found(known, None, false, &[]).join("").contains("as ANTHROPIC_API_KEY"));
        assert!(model(json!({"api": "google"})).contains("no baseUrl"));
        assert!(model(json!({"baseUrl": "http://h", "apiKeyEnv": "UNSET"})).contains("UNSET"));
        assert!(
            model(json!({"baseUrl": "http://h", "apiKeyEnv": "SET"})).contains("openai_chat at http://h with Variable")
        );
        assert!(model(json!({"baseUrl": "http://h", "apiKeyCommand": ["pass", "x"]})).contains("Command"));
    }
}
