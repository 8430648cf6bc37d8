//! The catalog: limits of current models, and addresses of providers.
//!
//! The numbers are those of `data/models.json`, which names its source; `data/update.py` makes it.

pub use crate::provider::Api;
use crate::settings::ModelCost;
use serde::Deserialize;
use std::{collections::HashMap, sync::LazyLock};

/// The catalog's entry of a model.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct KnownModel {
    /// Size of the window, in tokens.
    pub window: u64,
    /// The most it answers, in tokens, where its provider says.
    pub output: Option<u64>,
    /// Whether it thinks before it answers.
    pub reasoning: bool,
    /// Whether it looks at images.
    pub images: bool,
    /// Its prices at its provider.
    pub cost: Option<ModelCost>,
}

/// A provider whose address and key variable everybody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    /// Its name.
    pub name: &'static str,
    /// The wire format.
    pub api: Api,
    /// The base URL as the provider's own SDK takes it.
    pub base_url: &'static str,
    /// The environment variables with the key: the first that is set wins. None on this machine.
    pub key_env: &'static [&'static str],
}

/// The catalog's entry of a provider's model. Its own entry counts first: under its whole name, then without a date,
/// a variant (`:free`) or `-latest`. Then, where the name is `vendor/model`, the entry of the vendor.
///
/// Nothing is said of a model because its relatives are known, and nothing of those on this machine: their windows are
/// what somebody gave them. A price counts for the model itself at that provider, with or without a date. A variant has
/// another one, and so has the same model elsewhere.
#[must_use]
pub fn known(provider: &str, id: &str) -> Option<KnownModel> {
    if self::provider(provider).is_some_and(|it| it.key_env.is_empty()) {
        return None;
    }
    listed(provider, id).or_else(|| {
        let (vendor, id) = id.split_once('/')?;
        let of_vendor = match VENDORS.iter().find(|(name, _)| *name == vendor).map_or(vendor, |(_, provider)| provider)
        {
            // Anthropic's own names have no dots; others write its versions with one.
            "anthropic" => listed("anthropic", &id.replace('.', "-")),
            provider => listed(provider, id),
        };
        of_vendor.map(|model| KnownModel { cost: None, ..model })
    })
}

/// A provider that everybody knows.
#[must_use]
pub fn provider(name: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|it| it.name == name)
}

/// The known providers whose key stands in a variable for which `is_set` holds, each with that variable.
pub fn with_keys(is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    let key = |provider: &'static KnownProvider| provider.key_env.iter().copied().find(|name| is_set(name));
    PROVIDERS.iter().filter_map(|provider| Some((provider.name, key(provider)?))).collect()
}

/// Providers by the names that other agents write into sessions, so that these mean the same here: `zai` is the
/// address of its coding plans, `minimax` that for Anthropic's SDK.
#[rustfmt::skip]
const PROVIDERS: &[KnownProvider] = &[
    known_provider("anthropic", Api::Anthropic, "https://api.anthropic.com", &["ANTHROPIC_API_KEY"]),
    known_provider("openai", Api::OpenaiResponses, "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    known_provider("google", Api::Google, "https://generativelanguage.googleapis.com/v1beta", &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"]),
    known_provider("openrouter", Api::OpenaiChat, "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"]),
    known_provider("groq", Api::OpenaiChat, "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    known_provider("mistral", Api::OpenaiChat, "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"]),
    known_provider("xai", Api::OpenaiChat, "https://api.x.ai/v1", &["XAI_API_KEY"]),
    known_provider("deepseek", Api::OpenaiChat, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    known_provider("cerebras", Api::OpenaiChat, "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"]),
    known_provider("together", Api::OpenaiChat, "https://api.together.ai/v1", &["TOGETHER_API_KEY"]),
    known_provider("fireworks", Api::OpenaiChat, "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"]),
    known_provider("moonshotai", Api::OpenaiChat, "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"]),
    known_provider("moonshotai-cn", Api::OpenaiChat, "https://api.moonshot.cn/v1", &["MOONSHOT_API_KEY"]),
    known_provider("kimi-coding", Api::OpenaiChat, "https://api.kimi.com/coding/v1", &["KIMI_API_KEY"]),
    known_provider("zai", Api::OpenaiChat, "https://api.z.ai/api/coding/paas/v4", &["ZAI_API_KEY"]),
    known_provider("zai-coding-cn", Api::OpenaiChat, "https://open.bigmodel.cn/api/coding/paas/v4", &["ZAI_CODING_CN_API_KEY"]),
    known_provider("minimax", Api::Anthropic, "https://api.minimax.io/anthropic", &["MINIMAX_API_KEY"]),
    known_provider("minimax-cn", Api::Anthropic, "https://api.minimaxi.com/anthropic", &["MINIMAX_CN_API_KEY"]),
    known_provider("meta", Api::OpenaiResponses, "https://api.meta.ai/v1", &["META_API_KEY"]),
    known_provider("huggingface", Api::OpenaiChat, "https://router.huggingface.co/v1", &["HF_TOKEN"]),
    known_provider("nvidia", Api::OpenaiChat, "https://integrate.api.nvidia.com/v1", &["NVIDIA_API_KEY"]),
    known_provider("baseten", Api::OpenaiChat, "https://inference.baseten.co/v1", &["BASETEN_API_KEY"]),
    known_provider("xiaomi", Api::OpenaiChat, "https://api.xiaomimimo.com/v1", &["XIAOMI_API_KEY"]),
    known_provider("ant-ling", Api::OpenaiChat, "https://api.ant-ling.com/v1", &["ANT_LING_API_KEY"]),
    known_provider("ollama", Api::OpenaiChat, "http://127.0.0.1:11434/v1", &[]),
    known_provider("lmstudio", Api::OpenaiChat, "http://127.0.0.1:1234/v1", &[]),
    known_provider("llamacpp", Api::OpenaiChat, "http://127.0.0.1:8080/v1", &[]),
    known_provider("vllm", Api::OpenaiChat, "http://127.0.0.1:8000/v1", &[]),
];

/// Names of vendors in `vendor/model` that are not their providers' names.
const VENDORS: &[(&str, &str)] = &[("mistralai", "mistral"), ("spacexai", "xai"), ("x-ai", "xai"), ("z-ai", "zai")];

const fn known_provider(
    name: &'static str,
    api: Api,
    base_url: &'static str,
    key_env: &'static [&'static str],
) -> KnownProvider {
    KnownProvider { name, api, base_url, key_env }
}

/// The file as it is.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    models: Vec<Row<'a>>,
}

#[derive(Deserialize)]
struct Row<'a> {
    provider: &'a str,
    id: &'a str,
    #[serde(flatten)]
    model: KnownModel,
}

const JSON: &str = include_str!("../../data/models.json");

/// By provider and id.
static MODELS: LazyLock<HashMap<(&str, &str), KnownModel>> = LazyLock::new(|| {
    // A test reads the same text: it is never wrong here.
    let rows = serde_json::from_str::<File<'_>>(JSON).map_or_else(|_| Vec::new(), |file| file.models);
    rows.into_iter().map(|row| ((row.provider, row.id), row.model)).collect()
});

/// A provider's own entry.
fn listed(provider: &str, id: &str) -> Option<KnownModel> {
    let plain = without_variant(id);
    let names = [id, without_date(id), plain, without_date(plain), plain.strip_suffix("-latest").unwrap_or(plain)];
    let model = names.into_iter().find_map(|id| MODELS.get(&(provider, id)).copied())?;
    let is_variant = plain != id && !MODELS.contains_key(&(provider, id));
    Some(if is_variant { KnownModel { cost: None, ..model } } else { model })
}

/// `model:free` is `model`; `model:14b` is another one.
fn without_variant(id: &str) -> &str {
    match id.rsplit_once(':') {
        Some((plain, variant)) if variant.bytes().all(|byte| byte.is_ascii_lowercase()) => plain,
        _ => id,
    }
}

/// `model-20250929` and `model-2025-09-29` are `model`.
fn without_date(id: &str) -> &str {
    let ends_like = |shape: &str| {
        let start = id.len().checked_sub(shape.len())?;
        let is_like = |(byte, shape): (u8, u8)| if shape == b'd' { byte.is_ascii_digit() } else { byte == shape };
        id.bytes().skip(start).zip(shape.bytes()).all(is_like).then_some(start)
    };
    let start = ends_like("-20dddddd").or_else(|| ends_like("-20dd-dd-dd"));
    start.and_then(|start| id.get(..start)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(provider: &str, id: &str) -> Option<u64> {
        known(provider, id).map(|model| model.window)
    }

    #[test]
    fn the_file_is_sorted_and_plausible() {
        let file: File<'_> = serde_json::from_str(JSON).expect("the file is right");
        let names: Vec<_> = file.models.iter().map(|row| (row.provider, row.id)).collect();
        assert!(names.len() > 500 && names.is_sorted_by(|one, next| one < next), "each once, in order");
        for Row { provider, id, model } in &file.models {
            assert!((1_000..=20_000_000).contains(&model.window), "{provider}/{id}: a window of {}", model.window);
            let output = model.output.unwrap_or(1);
            assert!((1..=model.window).contains(&output), "{provider}/{id}: answers of {output}");
            assert!(self::provider(provider).is_some_and(|it| !it.key_env.is_empty()), "{provider}: where is it?");
            let Some(ModelCost { input, output, cache_read, cache_write }) = model.cost else { continue };
            for price in [Some(input), Some(output), cache_read, cache_write].into_iter().flatten() {
                assert!(price > 0.0 && price < 1_000.0, "{provider}/{id}: a price of {price}");
            }
            assert!(cache_read.is_none_or(|read| read <= input), "{provider}/{id}: the cache costs more");
        }
        assert!(file.models.iter().filter(|row| row.model.cost.is_some()).count() > 500, "most have a price");
        assert!(JSON.len() < 120_000 && JSON.lines().count() == names.len() + 2, "a line each");
    }

    #[test]
    fn a_model_is_known_by_its_names_and_not_by_its_relatives() {
        for (provider, id, expected) in [
            ("anthropic", "claude-sonnet-4-5", Some(200_000)),
            ("anthropic", "claude-sonnet-4-5-20250929", Some(200_000)),
            ("anthropic", "claude-opus-4-6-20260205", Some(1_000_000)),
            ("anthropic", "claude-opus-4-6-latest", Some(1_000_000)),
            ("openai", "gpt-5-2025-08-07", Some(400_000)),
            ("openai", "gpt-5-chat-latest", Some(128_000)),
            ("openai", "gpt-5-2025-08", None),
            ("openai", "gpt-5-19990101", None),
            ("openai", "gpt-5-turbo", None),
            ("openai", "gpt", None),
            ("openai", "", None),
            ("google", "gemini-2.5-pro", Some(1_048_576)),
            ("openrouter", "anthropic/claude-opus-4.5", Some(200_000)),
            ("openrouter", "anthropic/claude-opus-4.5:nitro", Some(200_000)),
            ("openrouter", "openai/gpt-4o-2024-11-20:batch", Some(128_000)),
            ("openrouter", "openai/gpt-5-2025-08-07:free", Some(400_000)),
            ("openrouter", "liquid/lfm-2.5-2.6b", Some(128_000)),
            ("openrouter", "liquid/lfm-2.5-2.6b:free", Some(65_536)),
            ("openrouter", "openai/gpt-5:14b", None),
            ("openrouter", "nobody/knows", None),
            ("groq", "openai/gpt-oss-120b", Some(131_072)),
            ("together", "moonshotai/Kimi-K3", Some(1_048_576)),
            ("elsewhere", "anthropic/claude-opus-4.5", Some(200_000)),
            ("elsewhere", "anthropic/claude-opus-4-5-20251101", Some(200_000)),
            ("elsewhere", "x-ai/grok-4.5", Some(500_000)),
            ("elsewhere", "z-ai/glm-5.3", Some(1_000_000)),
            ("elsewhere", "openrouter/openai/gpt-5", Some(400_000)),
            ("elsewhere", "a/openai/gpt-5", None),
            ("elsewhere", "gpt-5", None),
            ("ollama", "openai/gpt-5", None),
            ("vllm", "google/gemma-4-31b-it", None),
        ] {
            assert_eq!(window(provider, id), expected, "{provider}/{id}");
        }
    }

    #[test]
    fn an_entry_says_more_than_the_window() {
        let model = known("anthropic", "claude-haiku-4-5");
        let cost = ModelCost { input: 1.0, output: 5.0, cache_read: Some(0.1), cache_write: Some(1.25) };
        let expected =
            KnownModel { window: 200_000, output: Some(64_000), reasoning: true, images: true, cost: Some(cost) };
        assert_eq!(model, Some(expected));
        let model = known("deepseek", "deepseek-v4-pro").map(|it| (it.output, it.reasoning, it.images));
        assert_eq!(model, Some((Some(384_000), true, false)));
        let unlimited = known("openrouter", "x-ai/grok-4.20");
        assert_eq!(unlimited.map(|it| (it.window, it.output)), Some((2_000_000, None)), "nobody names a limit");
    }

    #[test]
    fn a_price_is_that_of_the_model_itself_at_its_provider() {
        for (provider, id, input) in [
            ("anthropic", "claude-haiku-4-5", Some(1.0)),
            ("anthropic", "claude-haiku-4-5-20251001", Some(1.0)),
            ("openrouter", "anthropic/claude-haiku-4.5", Some(1.0)),
            ("openrouter", "anthropic/claude-haiku-4.5:batch", None),
            ("elsewhere", "anthropic/claude-haiku-4-5", None),
            ("ollama", "qwen3", None),
        ] {
            assert_eq!(known(provider, id).and_then(|it| it.cost).map(|it| it.input), input, "{provider}/{id}");
        }
    }

    #[test]
    fn a_date_is_one_only_at_the_end() {
        for (id, plain) in [
            ("m-20250929", "m"),
            ("m-2025-09-29", "m"),
            ("m-2025-0-929", "m-2025-0-929"),
            ("m-20250929-fast", "m-20250929-fast"),
            ("m-2509", "m-2509"),
            ("m20250929", "m20250929"),
            ("20250929", "20250929"),
            ("é-20250929", "é"),
            ("-ééé", "-ééé"),
        ] {
            assert_eq!(without_date(id), plain);
        }
    }

    #[test]
    fn each_provider_has_a_row() {
        use Api::{Anthropic, Google, OpenaiChat, OpenaiResponses};
        let expected: &[(&str, Api, &str, &str)] = &[
            ("anthropic", Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
            ("openai", OpenaiResponses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
            (
                "google",
                Google,
                "https://generativelanguage.googleapis.com/v1beta",
                "GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GENERATIVE_AI_API_KEY",
            ),
            ("openrouter", OpenaiChat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
            ("groq", OpenaiChat, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
            ("mistral", OpenaiChat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
            ("xai", OpenaiChat, "https://api.x.ai/v1", "XAI_API_KEY"),
            ("deepseek", OpenaiChat, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
            ("cerebras", OpenaiChat, "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
            ("together", OpenaiChat, "https://api.together.ai/v1", "TOGETHER_API_KEY"),
            ("fireworks", OpenaiChat, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
            ("moonshotai", OpenaiChat, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
            ("moonshotai-cn", OpenaiChat, "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
            ("kimi-coding", OpenaiChat, "https://api.kimi.com/coding/v1", "KIMI_API_KEY"),
            ("zai", OpenaiChat, "https://api.z.ai/api/coding/paas/v4", "ZAI_API_KEY"),
            ("zai-coding-cn", OpenaiChat, "https://open.bigmodel.cn/api/coding/paas/v4", "ZAI_CODING_CN_API_KEY"),
            ("minimax", Anthropic, "https://api.minimax.io/anthropic", "MINIMAX_API_KEY"),
            ("minimax-cn", Anthropic, "https://api.minimaxi.com/anthropic", "MINIMAX_CN_API_KEY"),
            ("meta", OpenaiResponses, "https://api.meta.ai/v1", "META_API_KEY"),
            ("huggingface", OpenaiChat, "https://router.huggingface.co/v1", "HF_TOKEN"),
            ("nvidia", OpenaiChat, "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
            ("baseten", OpenaiChat, "https://inference.baseten.co/v1", "BASETEN_API_KEY"),
            ("xiaomi", OpenaiChat, "https://api.xiaomimimo.com/v1", "XIAOMI_API_KEY"),
            ("ant-ling", OpenaiChat, "https://api.ant-ling.com/v1", "ANT_LING_API_KEY"),
            ("ollama", OpenaiChat, "http://127.0.0.1:11434/v1", ""),
            ("lmstudio", OpenaiChat, "http://127.0.0.1:1234/v1", ""),
            ("llamacpp", OpenaiChat, "http://127.0.0.1:8080/v1", ""),
            ("vllm", OpenaiChat, "http://127.0.0.1:8000/v1", ""),
        ];
        assert_eq!(expected.len(), PROVIDERS.len());
        for &(name, api, base_url, keys) in expected {
            let row = provider(name).unwrap_or_else(|| panic!("{name} is not known"));
            assert_eq!((row.name, row.api, row.base_url, row.key_env.join(" ").as_str()), (name, api, base_url, keys));
            let address = base_url.split_once("://").map_or("", |(_, rest)| rest);
            assert_eq!(
                row.base_url.starts_with("http://"),
                address.starts_with("127.0.0.1:"),
                "only here in the clear"
            );
        }
        assert_eq!(provider("nobody"), None);
    }

    #[test]
    fn a_wire_format_has_one_name() {
        for name in ["anthropic", "openai_chat", "openai_responses", "google", "client"] {
            let api = Api::parse(name).expect("known");
            assert_eq!(api.name(), name);
            assert_eq!(serde_json::to_value(api).expect("JSON"), name);
        }
        assert_eq!(Api::parse("OpenAI"), None);
    }
}
