//! Reports as programs really make them. Each row names a place where the report is documented or was seen.

use super::{
    dialect::Dialect::{Chat, Google, Plain, Responses},
    row::{Deserves::*, Row},
    truth::sum,
};
use serde_json::{Value, json};

/// pi's usage: the part of the prompt that no cache had, the answer, reads and writes of the cache.
fn plain(input: u64, output: u64, read: u64, write: u64) -> Value {
    let total = input + output + read + write;
    json!({"input": input, "output": output, "cacheRead": read, "cacheWrite": write, "totalTokens": total})
}

/// Reports that lack the part of the prompt that a cache had.
pub fn without_the_cache() -> Vec<Row> {
    vec![
        Row::new(
            "input_tokens alone",
            "anthropic",
            "Anthropic Messages with cache breakpoints, read without cache_read_input_tokens",
            "github.com/future-agi/future-agi/pull/1122",
            Plain,
            |now, _| plain(4, now.output, 0, 0),
            Notice,
        ),
        Row::new(
            "input behind a cached system prompt",
            "anthropic",
            "Anthropic Messages with one breakpoint behind the tools, read without the cache",
            "github.com/Arize-ai/openinference/pull/1429",
            Plain,
            |now, _| plain(now.prompt - now.fixed, now.output, 0, 0),
            Caution,
        ),
        Row::new(
            "promptTokens without the cache",
            "anthropic",
            "AI SDK 4.0 with @ai-sdk/anthropic: the cache is in the provider's metadata alone",
            "github.com/vercel/ai/issues/4335",
            Plain,
            |now, _| plain(now.fresh().min(787), now.output, 0, 0),
            Caution,
        ),
        Row::new(
            "cache reads without writes",
            "anthropic",
            "browser-use: input_tokens + cache_read_input_tokens",
            "github.com/browser-use/browser-use/pull/4294",
            Plain,
            |now, _| plain(4, now.output, now.cached, 0),
            Near,
        ),
        Row::new(
            "inputTokens of Converse alone",
            "amazon-bedrock",
            "Bedrock Converse, read without cacheReadInputTokens and cacheWriteInputTokens",
            "github.com/librefang/librefang/issues/5878",
            Plain,
            |now, _| plain(12, now.output, 0, 0),
            Notice,
        ),
        Row::new(
            "prompt_tokens for anthropic_messages",
            "litellm",
            "LiteLLM's payload for logs of Anthropic calls; Vercel AI Gateway's /generation (Kilo-Org/cloud, pull 3690)",
            "github.com/BerriAI/litellm/pull/23342",
            Plain,
            |now, _| plain(now.fresh(), now.output, 0, 0),
            Caution,
        ),
        Row::new(
            "input without cachedContentTokenCount",
            "google",
            "Gemini: promptTokenCount − cachedContentTokenCount",
            "github.com/google-gemini/gemini-cli/issues/14524",
            Plain,
            |now, _| plain(now.prompt - now.cached / 128 * 128, now.output, 0, 0),
            Caution,
        ),
        Row::new(
            "prompt_cache_miss_tokens alone",
            "deepseek",
            "DeepSeek: the misses taken for the input",
            "github.com/Yeachan-Heo/gajae-code/pull/1330",
            Plain,
            |now, _| plain(now.prompt - now.cached / 64 * 64, now.output, 0, 0),
            Caution,
        ),
        Row::new(
            "prompt_n",
            "llamacpp",
            "llama.cpp's server: timings.prompt_n without timings.cache_n",
            "github.com/ggml-org/llama.cpp/pull/15827",
            Plain,
            |now, _| plain(now.fresh(), now.output, 0, 0),
            Caution,
        ),
        Row::new(
            "prompt_eval_count without cached tokens",
            "ollama",
            "Ollama 0.30 before cache_n was added",
            "github.com/ollama/ollama/pull/16428",
            Chat,
            |now, _| json!({"prompt_tokens": now.fresh(), "completion_tokens": now.output}),
            Caution,
        ),
        Row::new(
            "only the first message",
            "dify",
            "Dify's plugin for compatible servers counts the first message of a stream",
            "github.com/langgenius/dify-official-plugins/pull/3650",
            Plain,
            |now, _| plain(64, now.output, 0, 0),
            Notice,
        ),
    ]
}

/// Reports that count a part of the prompt more than once.
pub fn counted_twice() -> Vec<Row> {
    vec![
        Row::new(
            "promptTokenCount + cachedContentTokenCount",
            "google",
            "Gemini in Zed's agent; Anthropic behind a LiteLLM proxy (larsderidder/context-lens, issue 51)",
            "github.com/zed-industries/zed/pull/31885",
            Plain,
            |now, _| plain(now.prompt, now.output, now.cached, 0),
            Caution,
        ),
        Row::new(
            "inputTokens + cachedInputTokens",
            "openai",
            "AI SDK 6: inputTokens includes the cached part, and Sentry's integration adds it again",
            "github.com/getsentry/sentry-javascript/pull/21488",
            Plain,
            |now, _| plain(now.prompt, now.output, now.cached / 128 * 128, 0),
            Caution,
        ),
        Row::new(
            "input_tokens + cache_read of usage_metadata",
            "anthropic",
            "LangChain with langchain-anthropic; DeepSeek's prompt, hits and misses (laravel/ai, pull 705)",
            "github.com/braintrustdata/braintrust-sdk-python/pull/510",
            Plain,
            |now, _| plain(now.prompt, now.output, now.cached, now.fresh()),
            Notice,
        ),
        Row::new(
            "message_start + message_delta",
            "anthropic",
            "Envoy AI Gateway: both events of a stream have cumulative counts",
            "github.com/envoyproxy/ai-gateway/pull/2239",
            Plain,
            |now, _| plain(8, now.output, 2 * now.cached, 2 * now.fresh()),
            Notice,
        )
        .factor(1.25),
        Row::new(
            "input with the written part",
            "amazon-bedrock",
            "Bedrock ConverseStream for OpenAI's models: inputTokens includes cacheWriteInputTokens",
            "github.com/maximhq/bifrost/pull/6942",
            Plain,
            |now, _| plain(2 + now.fresh(), now.output, now.cached, now.fresh()),
            Caution,
        ),
        Row::new(
            "sum over 14 chunks",
            "google",
            "LangChain.js with @langchain/google: each chunk has cumulative counts",
            "github.com/langchain-ai/langchainjs/issues/10159",
            Plain,
            |now, _| plain(14 * now.prompt, 14 * now.output, 0, 0),
            Notice,
        ),
        Row::new(
            "sum over 3 chunks",
            "google",
            "Gemini's endpoint for OpenAI's clients: each chunk has the whole usage",
            "github.com/ogx-ai/ogx/issues/5122",
            Chat,
            |now, _| json!({"prompt_tokens": 3 * now.prompt, "completion_tokens": 3 * now.output}),
            Notice,
        ),
        Row::new(
            "usage of every chunk",
            "vllm",
            "vLLM with continuous usage: a client adds each chunk",
            "github.com/vllm-project/vllm/issues/7262",
            Chat,
            |now, _| json!({"prompt_tokens": now.output * now.prompt, "completion_tokens": now.output}),
            Notice,
        ),
        Row::new(
            "the prefix once for each search",
            "anthropic",
            "Anthropic's web search: cache_read_input_tokens sums the passes of the server",
            "github.com/turnstonelabs/turnstone/issues/1191",
            Plain,
            |now, all| match all.exchanges.len() % 5 {
                3 => plain(now.fresh(), now.output, 3 * now.cached, 0),
                _ => plain(4, now.output, now.cached, now.fresh() - 4),
            },
            Caution,
        ),
    ]
}

/// Reports of more than one request.
pub fn sums() -> Vec<Row> {
    vec![
        Row::new(
            "usage of all steps, AI SDK 4",
            "openai",
            "AI SDK 4: usage of generateText with several steps; AI SDK 7: usage (pull 15121)",
            "github.com/vercel/ai/pull/6263",
            Plain,
            |_, all| plain(sum(all.steps(), |it| it.prompt), sum(all.steps(), |it| it.output), 0, 0),
            Caution,
        ),
        Row::new(
            "totalUsage, AI SDK 5",
            "anthropic",
            "AI SDK 5: totalUsage of streamText",
            "github.com/vercel/ai/pull/6263",
            Plain,
            |_, all| {
                let of = |of| sum(all.steps(), of);
                plain(of(|it| it.fresh()), of(|it| it.output), of(|it| it.cached), 0)
            },
            Caution,
        ),
        Row::new(
            "usage of the result",
            "anthropic",
            "Claude Agent SDK: usage of the result message, over the whole session",
            "github.com/anthropics/claude-agent-sdk-typescript/issues/66",
            Plain,
            |_, all| {
                let of = |of| sum(&all.exchanges, of);
                plain(67, of(|it| it.output), of(|it| it.cached), of(|it| it.fresh()))
            },
            Caution,
        ),
        Row::new(
            "total_token_usage",
            "openai",
            "Codex: total_token_usage instead of last_token_usage",
            "github.com/preset-io/agor/pull/1264",
            Plain,
            |_, all| plain(sum(&all.exchanges, |it| it.prompt), sum(&all.exchanges, |it| it.output), 0, 0),
            Caution,
        ),
        Row::new(
            "the turn of a Codex run",
            "openai",
            "Codex in Tidebreak: totals of the turn with the cached part twice",
            "github.com/brightwave-inc/tidebreak/pull/2405",
            Plain,
            |_, all| {
                let of = |of| sum(all.steps(), of);
                plain(of(|it| it.prompt), of(|it| it.output), of(|it| it.cached), 0)
            },
            Caution,
        ),
        Row::new(
            "a subagent's usage",
            "anthropic",
            "Claude Code: the messages of a subagent overwrite the usage of the parent",
            "github.com/Mng-dev-ai/agentrove/pull/231",
            Plain,
            |now, all| match all.exchanges.len() % 4 {
                3 => plain(9, 900, 14_000 + now.output * 9, 2_000),
                _ => plain(4, now.output, now.cached, now.fresh() - 4),
            },
            Caution,
        ),
        Row::new(
            "the summarizer's usage",
            "anthropic",
            "Claude Code in Synara: after a rewrite the usage of the summarizer's request, which had the context before",
            "github.com/Emanuele-web04/synara/pull/830",
            Plain,
            |now, all| {
                let before = all.previous().prompt;
                let is_rewritten = now.prompt < before;
                plain(if is_rewritten { before } else { now.prompt }, now.output, 0, 0)
            },
            Caution,
        ),
        Row::new(
            "the model that writes titles",
            "anthropic",
            "Claude Agent SDK: modelUsage of the small model beside the large one",
            "github.com/anthropics/claude-agent-sdk-typescript/issues/66",
            Plain,
            |now, all| match all.exchanges.len() % 3 {
                2 => plain(401, 12, 0, 0),
                _ => plain(4, now.output, now.cached, now.fresh() - 4),
            },
            Caution,
        ),
    ]
}

/// Reports with nothing, with a constant, or with the count of another place.
pub fn empty_and_strange() -> Vec<Row> {
    vec![
        Row::new(
            "nothing",
            "openai",
            "OpenAI's stream without stream_options.include_usage, and vLLM's",
            "github.com/vllm-project/vllm/issues/7299",
            Chat,
            |_, _| Value::Null,
            Disbelief,
        ),
        Row::new(
            "NaN",
            "openai",
            "AI SDK 3 and 4 with a compatible server: NaN, which is null in JSON",
            "github.com/vercel/ai/issues/3268",
            Plain,
            |_, _| json!({"input": null, "output": null, "totalTokens": null}),
            Disbelief,
        ),
        Row::new(
            "zero",
            "lmstudio",
            "LM Studio's stream in an editor",
            "github.com/RooCodeInc/Roo-Code/issues/1138",
            Chat,
            |_, _| json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
            Disbelief,
        ),
        Row::new(
            "the output alone",
            "anthropic",
            "LangChain with ChatAnthropic: a stream has zero input_tokens",
            "github.com/langchain-ai/langchain/issues/35509",
            Plain,
            |now, _| plain(0, now.output, 0, 0),
            Disbelief,
        ),
        Row::new(
            "zero for a cached prompt",
            "ollama",
            "Ollama 0.1: no prompt_eval_count for a cached prompt",
            "github.com/ollama/ollama/issues/5370",
            Chat,
            |now, _| json!({"prompt_tokens": 0, "completion_tokens": now.output, "total_tokens": now.output}),
            Disbelief,
        ),
        Row::new(
            "the limit of the output as the total",
            "ollama-cloud",
            "Ollama Cloud for minimax-m3: prompt_tokens 0, total_tokens = max_tokens",
            "github.com/anomalyco/opencode/issues/28758",
            Chat,
            |_, _| json!({"prompt_tokens": 0, "completion_tokens": 400, "total_tokens": 400}),
            Disbelief,
        ),
        Row::new(
            "two tokens",
            "deepsparse",
            "DeepSparse's server: the length of a dictionary",
            "github.com/neuralmagic/deepsparse/pull/1496",
            Chat,
            |_, _| json!({"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}),
            Notice,
        ),
        Row::new(
            "three million",
            "openai",
            "Codex: the cumulative counter of a thread of 30 requests that is resumed",
            "github.com/firstintent/ccteam/issues/204",
            Plain,
            |_, _| plain(2_838_308, 26_140, 0, 0),
            Notice,
        ),
        Row::new(
            "the usage of the request before",
            "zed",
            "llama.cpp's trailing chunk behind the finish reason, read with the next answer",
            "github.com/felinics/twilight/pull/12",
            Plain,
            |_, all| plain(all.previous().prompt, all.previous().output, 0, 0),
            Caution,
        ),
        Row::new(
            "characters over four",
            "vscode-lm",
            "Cline with VS Code's language models",
            "github.com/cline/cline/pull/5280",
            Plain,
            |now, _| plain(now.characters / 4, now.output, 0, 0),
            Near,
        ),
        Row::new(
            "a total alone, with hidden reasoning",
            "google",
            "Gemini: totalTokenCount has the thoughts that candidatesTokenCount lacks",
            "github.com/langchain-ai/langchainjs/issues/8266",
            Plain,
            |now, _| json!({"input": 0, "output": 0, "totalTokens": now.prompt + now.output + now.hidden}),
            Caution,
        )
        .hidden(500),
        Row::new(
            "tokens_prompt of a generation",
            "openrouter",
            "OpenRouter /generation: counts by GPT's tokenizer for a model with its own",
            "openrouter.ai/docs/use-cases/usage-accounting",
            Plain,
            |now, _| plain(now.prompt * 10 / 13, now.output, 0, 0),
            Near,
        )
        .factor(1.3),
        Row::new(
            "LiteLLM's own count",
            "litellm",
            "LiteLLM: token_counter by tiktoken where the server counts nothing",
            "docs.litellm.ai/docs/completion/token_usage",
            Chat,
            |now, _| json!({"prompt_tokens": now.prompt * 10 / 12, "completion_tokens": now.output}),
            Near,
        )
        .factor(1.2),
        Row::new(
            "half of num_ctx",
            "ollama",
            "Ollama 0.32: a prompt over num_ctx is cut to a half of it",
            "github.com/ollama/ollama/issues/17427",
            Chat,
            |now, _| json!({"prompt_tokens": now.read, "completion_tokens": now.output}),
            Window,
        )
        .cut_to(8_192, 4_098),
        Row::new(
            "the limit of num_ctx",
            "ollama",
            "Ollama 0.1: the part that fits num_ctx",
            "github.com/ollama/ollama/issues/3427",
            Chat,
            |now, _| json!({"prompt_tokens": now.read, "completion_tokens": now.output}),
            Window,
        )
        .cut_to(4_096, 4_096),
        Row::new(
            "a prompt without its middle",
            "openrouter",
            "OpenRouter's middle-out: messages are dropped until the prompt fits",
            "openrouter.ai/docs/guides/features/message-transforms",
            Chat,
            |now, _| json!({"prompt_tokens": now.read, "completion_tokens": now.output}),
            Caution,
        )
        .cut_to(8_192, 8_000),
    ]
}

/// Reports of one sort that only look strange.
pub fn right_ones() -> Vec<Row> {
    vec![
        Row::new(
            "cached tokens in prompt_tokens",
            "openai",
            "OpenAI Chat Completions",
            "platform.openai.com/docs/guides/prompt-caching",
            Chat,
            |now, _| {
                json!({"prompt_tokens": now.prompt, "completion_tokens": now.output,
                "total_tokens": now.prompt + now.output, "prompt_tokens_details": {"cached_tokens": now.cached / 128 * 128}})
            },
            Belief,
        ),
        Row::new(
            "hidden reasoning in output_tokens",
            "openai",
            "OpenAI Responses",
            "platform.openai.com/docs/guides/reasoning",
            Responses,
            |now, _| {
                json!({"input_tokens": now.prompt, "output_tokens": now.output + now.hidden,
                "input_tokens_details": {"cached_tokens": now.cached}})
            },
            Belief,
        )
        .hidden(2_000),
        Row::new(
            "thoughts beside the answer",
            "google",
            "Gemini generateContent",
            "ai.google.dev/api/generate-content#UsageMetadata",
            Google,
            |now, _| {
                json!({"promptTokenCount": now.prompt, "candidatesTokenCount": now.output, "thoughtsTokenCount": now.hidden,
                "cachedContentTokenCount": now.cached, "totalTokenCount": now.prompt + now.output + now.hidden})
            },
            Belief,
        )
        .hidden(1_500),
        Row::new(
            "reasoning in the total alone",
            "xai",
            "xAI Chat Completions",
            "github.com/vercel/ai/pull/12425",
            Chat,
            |now, _| {
                json!({"prompt_tokens": now.prompt, "completion_tokens": now.output,
                "total_tokens": now.prompt + now.output + now.hidden,
                "completion_tokens_details": {"reasoning_tokens": now.hidden}})
            },
            Belief,
        )
        .hidden(900),
        Row::new(
            "hits and misses",
            "deepseek",
            "oh-my-pi with DeepSeek: reads and writes are the whole prompt",
            "github.com/can1357/oh-my-pi/pull/1517",
            Plain,
            |now, _| plain(0, now.output, now.cached, now.fresh()),
            Belief,
        ),
        Row::new(
            "input that went to zero",
            "amazon-bedrock",
            "Bedrock Converse in RubyLLM: the cache is subtracted twice, and counted beside",
            "github.com/crmne/ruby_llm/pull/832",
            Plain,
            |now, _| plain(0, now.output, now.cached, now.fresh()),
            Belief,
        )
        .factor(1.2),
        Row::new(
            "cache_n + prompt_n",
            "llamacpp",
            "llama.cpp's server: timings",
            "github.com/ggml-org/llama.cpp/pull/15827",
            Plain,
            |now, _| plain(now.fresh(), now.output, now.cached, 0),
            Belief,
        ),
        Row::new(
            "the native count",
            "openrouter",
            "OpenRouter: usage by the tokenizer of the model",
            "openrouter.ai/docs/use-cases/usage-accounting",
            Chat,
            |now, _| json!({"prompt_tokens": now.prompt, "completion_tokens": now.output}),
            Belief,
        )
        .factor(1.3),
    ]
}
