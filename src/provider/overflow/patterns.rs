//! The tables of texts: a row for each way of refusing a request, with who says it.

use super::Meaning;
use regex::Regex;
use std::sync::LazyLock;

/// Errors that are no overflow, whatever else they say: who says so, what it means, how it is said in the words of `plain`. Upper
/// and lower case are the same. In this order: a daily limit is also called a rate limit, a limit by the minute also a
/// quota, and who throttles likes to point at the page where more can be bought.
pub(super) const NEGATIVES: &[(&str, Meaning, &str)] = &[
    (
        "OpenAI, Groq, Kimi, Cerebras, Bedrock, Gemini: by the day",
        Meaning::OutOfQuota,
        r"per[_ -]?day|(?-i:\b[TR]PD\b)",
    ),
    (
        "OpenAI, Anthropic, Groq, Cerebras, Azure, Vertex, Gemini: by the minute",
        Meaning::Throttled,
        r"per[_ -]?(?:minute|min\b|second)|/ ?minute|(?-i:\b[IO]?[TR]PM\b)",
    ),
    (
        "OpenAI, Gemini, Kimi, Copilot",
        Meaning::OutOfQuota,
        r"insufficient_quota|quota[ _]exceeded|exceeded[ _].{0,30}quota",
    ),
    (
        "Anthropic, DeepSeek, MiniMax, xAI",
        Meaning::OutOfQuota,
        r"balance is too low|insufficient[ _](?:account )?(?:balance|credits?|funds)|used all available credits",
    ),
    (
        "OpenAI, Cohere",
        Meaning::OutOfQuota,
        r"billing[ _](?:hard[ _]limit|not[ _]active|reached)|payment (?:method|required)",
    ),
    ("z.ai, in Chinese: balance, package", Meaning::OutOfQuota, "余额不足"),
    ("OpenRouter", Meaning::OutOfQuota, r"requires more credits|openrouter\.ai/settings/(?:credits|keys)"),
    ("Codex, Claude subscriptions", Meaning::OutOfQuota, r"usage[ _]limit|extra usage"),
    ("everyone's rate limits, but not the headers that count them", Meaning::Throttled, r"(?:^|[^\w-])rate[ _-]?limit"),
    ("Bedrock, Azure", Meaning::Throttled, r"throttl|please wait before trying again"),
    ("HTTP 429 in words", Meaning::Throttled, r"too many requests"),
    ("Anthropic, Kimi, Gemini, OpenAI", Meaning::Throttled, r"overloaded"),
    ("Azure, API gateways", Meaning::Throttled, r"(?:try again|retry) (?:in|after) [0-9]"),
    ("Mistral", Meaning::Throttled, r"capacity exceeded"),
    ("Vertex", Meaning::Throttled, r"resource (?:has been )?exhausted"),
    // The next rows are about the length of an answer: its limit is no window, and a shorter context changes nothing.
    ("OpenAI, Cloudflare", Meaning::Other, r"too large: [0-9]+\W+this model supports at most"),
    ("Anthropic", Meaning::Other, r"maximum allowed number of output tokens"),
    ("Bedrock", Meaning::Other, r"maximum tokens you requested exceeds? the model limit"),
    ("Databricks", Meaning::Other, r"max_tokens \([0-9]+\) cannot exceed"),
    ("Groq, which names the window too", Meaning::Other, r"max_(?:completion_)?tokens\W+must be less than or equal"),
    ("Cohere, after its 'too many tokens:'", Meaning::Other, r"max tokens must be less than or equal"),
    ("DashScope, DeepSeek", Meaning::Other, r"range of max_(?:completion_)?tokens"),
    ("Volcano Ark", Meaning::Other, r"max_(?:completion_)?tokens\W.{0,80}expected a value <="),
    ("Hugging Face TGI", Meaning::Other, r"error: \W?max_new_tokens\W? must be"),
    ("Vertex", Meaning::Other, r"maxoutputtokens value of"),
    // And this about tools, which nothing makes fewer.
    ("OpenAI", Meaning::Other, r"invalid 'tools"),
];

/// Errors that are an overflow: who says so, and how, with the numbers in their places. `<limit>` is the window, `<requested>` the
/// whole request, `<input>` the input alone, `<answer>` the room kept for the answer, `<parts>` a list of these. The first
/// that matches gives the numbers, so whoever states numbers stands before who does not.
pub(super) const POSITIVES: &[(&str, &str)] = &[
    ("Anthropic, also on Bedrock and Vertex", r"prompt is too long: <requested> tokens > <limit> maximum"),
    ("Anthropic", r"input length and \W?max_tokens\W? exceed context limit: <input> \+ <answer> > <limit>"),
    (
        "vLLM, and servers that add OpenAI's words",
        r"is too large: <answer>\W+this model's maximum context length is <limit> tokens\W+(?:however\W+|and |but )*your (?:request has|messages resulted in|prompt contains) (?:at least |about |over )?<input> (?:input )?tokens",
    ),
    (
        "the same in another order",
        r"maximum context length is <limit> tokens\W+(?:however\W+|and |but )*your messages resulted in <input> tokens[^.]{0,20}max_(?:completion_)?tokens\W{1,3}is too large: <answer>",
    ),
    (
        "gateways that add the answer to the input",
        r"max_(?:completion_|output_|new_)?tokens\W{1,3}<answer>\W{1,4}(?:and |plus )?(?:input|prompt)(?:[ _](?:tokens|length))?\W{1,3}<input>\W{1,2}exceeds? (?:the )?(?:model's )?(?:max(?:imum)? )?context (?:window|length|size|limit)(?: of)?\W{1,3}<limit>",
    ),
    (
        "clients of OpenRouter that add the input to the answer",
        r"(?:input|prompt)(?:[ _](?:tokens|length))?\W{1,3}<input>\W{1,4}(?:and |plus )?max_(?:completion_|output_|new_)?tokens\W{1,3}<answer>\W{1,2}exceeds? (?:the )?(?:model's )?(?:max(?:imum)? )?context (?:window|length|size|limit)(?: of)?\W{1,3}<limit>",
    ),
    (
        "OpenAI, Azure, DeepSeek, OpenRouter, vLLM",
        r"maximum context length is <limit> tokens\W+however,? (?:you requested|your messages resulted in)(?: about| over)? <requested> tokens(?: <parts>)?",
    ),
    (
        "vLLM",
        r"maximum context length is <limit> tokens\W+however,? you requested <answer> output tokens and your prompt contains (?:at least )?<input> input tokens",
    ),
    ("vLLM", r"maximum context length is <limit> tokens\W+however,? your request has <requested> input tokens"),
    (
        "vLLM, NVIDIA NIM",
        r"passed <input> input tokens and requested <answer> output tokens\W.{0,40}context length is only <limit> tokens",
    ),
    ("vLLM, Xinference", r"prompt \(?length (?:of )?<requested>\)? is longer than the maximum model length of <limit>"),
    ("OpenRouter, Bedrock, and everyone above in other words", r"maximum context length is <limit> tokens"),
    ("OpenAI", r"exceed the configured limit of <limit> tokens(?:\W+your messages resulted in <requested> tokens)?"),
    (
        "Gemini, Vertex",
        r"input token count (?:\(<requested>\) )?exceeds the maximum number of tokens allowed(?: \(?<limit>)?",
    ),
    ("Vertex", r"contains <requested> tokens, which exceeds the limit of <limit>"),
    ("xAI", r"maximum prompt length is <limit>(?: but the request contains <requested> tokens)?"),
    ("Copilot, LibreChat", r"prompt token count of <requested> exceeds (?:the limit|max token count) of <limit>"),
    ("GitHub Models", r"body too large for .{1,80} model\W+max size: <limit> tokens"),
    ("llama.cpp", r"request \(<requested> tokens\) exceeds the available context size \(<limit> tokens"),
    ("llama.cpp", r#"exceeds the available context size.{0,160}"n_prompt_tokens": ?<requested>, ?"n_ctx": ?<limit>"#),
    ("llama.cpp", r"exceeds the available context size"),
    ("llama-cpp-python", r"requested tokens \(<requested>\) exceed context window of <limit>"),
    (
        "LM Studio",
        r"keep from the initial prompt is greater than the context length(?: \(n_keep: ?<requested> ?>= ?n_ctx: ?<limit>)?",
    ),
    ("LM Studio", r"cannot truncate prompt with n_keep \(<requested>\) >= n_ctx \(<limit>\)"),
    ("LM Studio", r"trying to keep the first <requested> tokens.{0,80}context length of only <limit> tokens"),
    ("LM Studio", r"input length <requested> exceeds context length <limit>"),
    ("Kimi", r"exceeded model token limit(?:: ?<limit>(?: \(requested: ?<requested>)?)?"),
    ("Mistral", r"prompt contains <requested> tokens.{0,40}too large for model with <limit> maximum context length"),
    (
        "SGLang, Cloudflare, Mistral",
        r"exceeds (?:the )?model's maximum context length of <limit>(?: tokens\W+you requested a total of <requested> tokens(?:: <input> tokens from the input messages and <answer> tokens for the completion)?)?",
    ),
    (
        "SGLang, servers like OpenAI's",
        r"input length \(<requested>(?: tokens)?\) exceeds (?:the )?(?:model's )?maximum (?:allowed )?(?:context )?length \(<limit>",
    ),
    (
        "Poolside, DeepInfra, Volcano Ark",
        r"input length <requested> exceeds (?:the )?maximum (?:allowed )?(?:input )?length(?: of)? <limit>",
    ),
    (
        "Together, SGLang, Novita",
        r"input (?:\(<requested> tokens\) )?is longer than the model's context length(?: \(<limit> tokens)?",
    ),
    ("Hugging Face TGI, Together", r"must be <= <limit>\. given: <input> \W?inputs\W? tokens and <answer> "),
    ("Hugging Face TGI", r"\binputs\W? must have less than <limit> tokens\. given: <requested>"),
    ("Fireworks", r"prompt is too long: <requested>, model maximum context length: <limit>"),
    ("Cerebras", r"current length is <requested> while limit is <limit>"),
    ("Cohere", r"total number of tokens [^.]{0,40}cannot exceed <limit> - received <requested>"),
    (
        "Cohere",
        r"size limit exceeded by [0-9]+ tokens\W+(?:try using shorter or fewer inputs\W+)?the limit for this model is <limit> tokens",
    ),
    ("Cohere", r"total tokens exceeds the model's max of <limit>"),
    ("Bedrock: Titan", r"max input tokens: <limit>, request input token count: <requested>"),
    ("AI21", r"too many tokens: <input> \+ <answer> > <limit>"),
    ("SambaNova", r"prompt is <requested> tokens long.{0,120}maximum supported sequence length is just <limit>"),
    ("SiliconFlow", r"length of prompt_tokens \(<requested>\) must be less than max_seq_len \(<limit>\)"),
    ("SiliconFlow", r"input tokens \(<requested>\) has exceeded max_prompt_tokens \(<limit>\)"),
    ("DashScope", r"range of input length should be \[[0-9]+, ?<limit>\]"),
    ("Cloudflare", r"output tokens \(<requested>\) exceeded this model context window limit \(<limit>\)"),
    (
        "TensorRT-LLM",
        r"sum of prompt length \(<input>\),?(?: and)? query length \([0-9.]+\)(?: max_tokens \(<answer>\))? should not exceed max_(?:seq_len|num_tokens) \(<limit>\)",
    ),
    ("TensorRT-LLM on Triton", r"prompt length \(<requested>\) exceeds maximum sequence length \(<limit>\)"),
    ("watsonx", r"number of input tokens <requested> cannot exceed the total tokens limit <limit>"),
    ("vLLM, where the input alone leaves less than nothing", r"max_tokens must be at least 1, got -[0-9]"),
    ("Replicate", r"input is too long\W+max input length is <limit> tokens\W+but you supplied <requested> tokens"),
    (
        "MLC",
        r"prompt (?:length )?\(<requested>(?: tokens)?\) exceeds (?:the )?context (?:window|length|size) \(<limit>",
    ),
    ("local servers", r"exceeds (?:the )?context (?:window|length|size) \(<requested>(?: tokens)? >=? <limit>"),
    (
        "gateways in Chinese: the limit, then the size",
        r"模型[^。]{0,40}?最大(?:上下文|输入)[^0-9。]{0,12}<limit>[^0-9。]{1,30}<requested>[^。]{0,20}超[过出]",
    ),
    (
        "gateways in Chinese: the actual size, then the limit",
        r"<chinese>[^0-9。]{0,8}(?:实际|当前|本次)[^0-9。]{0,8}<requested>(?:[^0-9。]{1,16}(?:最大|上限|限制)[^0-9。]{0,8}<limit>)?",
    ),
    (
        "gateways in Chinese: the size exceeds the limit",
        r"<requested>(?: ?个)? ?(?:tokens?)? ?已?<chinese>(?:[ :(，]|为|是)*<limit>",
    ),
    // A limit in characters (字) is no window.
    (
        "gateways in Chinese",
        r"<chinese>(?:(?:[ :(，]|为|是|最大|最多|上限)*<limit> ?(?:个 ?)?(?:token|[^字个0-9a-z ]|$)(?:[^0-9。]{0,12}(?:实际|当前|本次|请求|输入)[^0-9。]{0,10}<requested>)?)?",
    ),
    (
        "gateways in Chinese: the context exceeds its limit",
        r"上下文(?:长度|窗口|大小)? ?已?超[过出][^。，,0-9]{0,8}(?:限制|上限)(?:[^0-9。]{0,12}(?:请求|实际|当前|本次|输入)[^0-9。]{0,8}<requested>[^0-9。]{1,16}(?:最大|上限|限制)[^0-9。]{0,8}<limit>)?",
    ),
    // Without its subject it may be the room for the answer.
    (
        "gateways in Chinese: the tokens of the request exceed the limit of the model",
        r"(?:请求|输入|提示词?)的? ?tokens? ?(?:总?数量?|长度)? ?已?超[过出]了?模型最大限制(?:[ :(，]|为|是)*<limit>",
    ),
    ("Anyscale", r"received <requested> tokens, but the maximum input length is <limit> tokens"),
    ("DS4", r"prompt tokens \(<requested>\) exceeds context size \(<limit>\)"),
    (
        "DS4, RKLLM",
        r"prompt (?:has|is) <requested> tokens?,? but the (?:configured context size|model context window) is <limit> tokens",
    ),
    ("gateways before other models", r"context window is <limit> tokens, you requested <requested> tokens"),
    ("OpenAI", r"exceeds the context window"),
    ("MiniMax, whose number behind it is the code of the error", r"context window exceeds limit"),
    ("Groq, and OpenAI where the rest was cut off", r"reduce the length of the (?:messages|input|prompt)"),
    ("z.ai, MLX", r"prompt exceeds max(?:imum)? (?:context )?length"),
    ("z.ai", r"tokens in request more than max tokens allowed"),
    ("Bedrock: Nova", r"number of input tokens exceeds maximum length"),
    ("Bedrock", r"exceeds the max(?:imum)? input token limit"),
    ("OpenCode's gateway", r"too large for the model's configured input limit"),
    ("one that a public benchmark met and does not name", r"total length of all messages is too long"),
    ("Codex", r"ran out of room in the model's context window"),
    (
        "Azure, OpenAI: messages are counted, and the count is no window",
        r"messages'? is too long\W+maximum length is [0-9]+, but got [0-9]+ items|invalid '(?:messages|input)': array too long|history exceeds the [0-9]+-message limit",
    ),
    ("Copilot, GitHub Models: codes", r"model_max_prompt_tokens_exceeded|tokens_limit_reached"),
    (
        "OpenAI, LiteLLM, z.ai, llama.cpp: codes, classes and plain words",
        r"context[_ ]?(?:length|window|size)[_ ]?(?:has been |was |is )?exceeded|exceed_context_size_error",
    ),
    ("Anthropic, Bedrock, z.ai, Ollama, ERNIE", r"\b(?:prompt|input)(?: tokens?)?(?: length)? (?:is )?too long"),
    (
        "Ollama, and whoever says it plainly",
        r"exceed(?:s|ed)? (?:the )?(?:model's )?(?:max(?:imum)? )?context (?:length|window|size)",
    ),
    ("Cohere, and whoever does not mean the minute", r"too many (?:input )?tokens"),
    ("Glean, and whoever does not mean the minute", r"token[_ ]limit[_ ](?:is |was )?exceeded"),
];

/// Errors of too many bytes or pictures: looked at last, because some say so and mean tokens.
pub(super) const PAYLOADS: &[(&str, &str)] = &[
    ("Anthropic", r"request_too_large|request exceeds the maximum size"),
    (
        "Anthropic, Bedrock: media",
        r"image exceeds .{1,12} maximum|image dimensions exceed|[0-9] pdf pages|too many total text bytes",
    ),
    ("proxies", r"(?:payload|entity|content|body) too large|request body size [0-9]+ exceeded"),
    ("Gemini", r"payload size exceeds the limit"),
    ("gRPC: xAI, Vertex", r"message larger than max"),
    ("Bedrock: Titan, in characters", r"expected maxlength: [0-9]+, actual: [0-9]+"),
    // Six digits and more: a shorter maximum is that of an identifier.
    ("OpenAI", r"string too long\. expected a string with maximum length [0-9]{6}"),
    ("DashScope", r"string value length \([0-9]+\) exceeds the maximum"),
    ("Cerebras and Mistral, who refuse without a word", r"\b4(?:00|13) ?(?:status code)? ?\(no body\)"),
];

pub(super) static NEGATIVE: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compiled(NEGATIVES.iter().map(|(_, _, pattern)| *pattern)));
pub(super) static POSITIVE: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compiled(POSITIVES.iter().map(|(_, pattern)| *pattern)));
pub(super) static PAYLOAD: LazyLock<Vec<Regex>> =
    LazyLock::new(|| compiled(PAYLOADS.iter().map(|(_, pattern)| *pattern)));

/// `1048576`, `1,048,576`, `131k`, `1.5M`, `12.8万` (ten thousand); not `5MB`. A sign of another script may follow.
pub(super) const NUMBER: &str = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?-u:\b)|[0-9]+(?:\.[0-9]+)?(?:万|[km]?(?-u:\b)))";

/// "exceeds the model's maximum length" in Chinese: of its context, its input, or of all tokens. Not of its output.
const CHINESE: &str = "超[过出][^。，,]{0,8}模型(?:[^。，,]{0,40}?最大(?:上下文|输入|长度|token)|的?上下文)(?:上下文|输入|长度|窗口|数量|数|tokens?| )*(?:限制|上限)?";

fn compiled<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Vec<Regex> {
    let number = |pattern: String, name: &str| pattern.replace(&format!("<{name}>"), &format!("(?<{name}>{NUMBER})"));
    let compile = |pattern: &str| {
        let pattern = format!("(?i){}", pattern.replace("<chinese>", CHINESE));
        let pattern = ["limit", "requested", "input", "answer"].into_iter().fold(pattern, number);
        let pattern = pattern.replace("<parts>", r"\((?<parts>[^()]{1,200})\)");
        Regex::new(&pattern).expect("the patterns are fixed and tested")
    };
    patterns.into_iter().map(compile).collect()
}

/// The first row that a text matches.
pub(super) fn decided(patterns: &[Regex], text: &str) -> Option<usize> {
    patterns.iter().position(|pattern| pattern.is_match(text))
}
