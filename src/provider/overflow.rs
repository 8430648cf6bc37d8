//! The meaning of a provider's error: too long, too fast, not paid for, too many bytes.
//!
//! Every provider, and every proxy before one, has words of its own, and few have codes. So the texts are data: a row for
//! each way of saying it, with who says it. What merely sounds like an overflow is looked at first, because a compaction
//! throws detail away and waiting does not: "too many tokens" is also what one says who counts them by the minute.
//!
//! `tests/corpora/overflow.jsonl` has a text for every row, and says where it was seen or what it was made from.

use crate::text;
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// An overflow: a request that a provider refused as too long, with the numbers in its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overflow {
    /// The model's window in tokens. None if the text states none, or one that no model has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The size of the request, in tokens: all that had to fit, so with the room kept for the answer where the text adds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
}

/// The meaning of a provider's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// More tokens than the model's window: a shorter context helps.
    Overflow(Overflow),
    /// Too much in too little time, or too many others: the same request goes through later.
    Throttled,
    /// Nothing left to spend, or nothing left of the day: neither waiting nor a shorter context helps.
    OutOfQuota,
    /// Bytes, media, or a 413 without a reason. An overflow only for a context that is nearly full.
    PayloadTooLarge,
    /// Anything else.
    Other,
}

/// The meaning of an error, from its HTTP status and its text: a message, a body of any form, or a library's text.
#[must_use]
pub fn meaning(status: Option<u16>, text: &str) -> Meaning {
    let text = plain(text);
    if let Some(row) = decided(&NEGATIVE, &text) {
        return NEGATIVES[row].1;
    }
    let status = status.or_else(|| stated_status(&text));
    // A status that says it all: who may not ask, or asks too often, has not been measured.
    match status {
        Some(401 | 403) => return Meaning::Other,
        Some(402) => return Meaning::OutOfQuota,
        Some(429 | 529) => return Meaning::Throttled,
        _ => {}
    }
    if let Some(numbers) = POSITIVE.iter().find_map(|pattern| pattern.captures(&text)) {
        return Meaning::Overflow(Overflow { limit: limit(&numbers), requested: requested(&numbers) });
    }
    if decided(&PAYLOAD, &text).is_some() || status == Some(413) {
        return Meaning::PayloadTooLarge;
    }
    if status == Some(503) { Meaning::Throttled } else { Meaning::Other }
}

/// Whether an answer without an error is an overflow: the reported input, cache included, is over the window, or all but
/// fills it and left no room for a single token of the answer.
#[must_use]
pub fn silent(reported_input: u64, output: u64, stopped_for_length: bool, window: u64) -> bool {
    let full = reported_input.saturating_mul(100) >= window.saturating_mul(99);
    window > 0 && (reported_input > window || stopped_for_length && output == 0 && full)
}

/// The window of a provider that cut the prompt without saying so: what it says it read, if that is far less than the
/// plain estimate of what was sent. None where all is well, for prompts too small to be estimated, and for a report that
/// can only leave out what was cached.
#[must_use]
pub fn truncated(reported_input: u64, estimated_input: u64) -> Option<u64> {
    let cut = reported_input.saturating_mul(100) < estimated_input.saturating_mul(60);
    Some(reported_input).filter(|tokens| estimated_input >= SMALLEST_ESTIMATE && cut && *tokens >= SMALLEST_WINDOW)
}

/// Below this, headers of messages and schemas of tools weigh more than any estimate knows.
const SMALLEST_ESTIMATE: u64 = 2_000;
/// No model that agents use has a smaller window, and error codes and counts of messages are often smaller.
const SMALLEST_WINDOW: u64 = 512;
/// No model has a larger one, and limits in bytes often are.
const LARGEST_WINDOW: u64 = 20_000_000;

/// Errors that are no overflow, whatever else they say: who says so, what it means, how it is said in the words of `plain`. Upper
/// and lower case are the same. In this order: a daily limit is also called a rate limit, a limit by the minute also a
/// quota, and who throttles likes to point at the page where more can be bought.
const NEGATIVES: &[(&str, Meaning, &str)] = &[
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
    // What follows is about the answer's length: its limit is no window, and a shorter context changes nothing.
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

/// Errors that are an overflow: who says so, and how, with the numbers in their places. `<limit>` is the window, `<requested>` what
/// was sent, `<answer>` the room kept for the answer, which adds to it. The first that matches gives the numbers, so
/// whoever states numbers stands before who does not.
const POSITIVES: &[(&str, &str)] = &[
    ("Anthropic, also on Bedrock and Vertex", r"prompt is too long: <requested> tokens > <limit> maximum"),
    ("Anthropic", r"input length and \W?max_tokens\W? exceed context limit: <requested> \+ <answer> > <limit>"),
    (
        "OpenAI, Azure, DeepSeek, OpenRouter, vLLM",
        r"maximum context length is <limit> tokens\W+however,? (?:you requested|your messages resulted in)(?: about| over)? <requested> tokens",
    ),
    ("vLLM", r"maximum context length is <limit> tokens\W.{0,200}for a total of at least <requested> tokens"),
    ("vLLM", r"maximum context length is <limit> tokens\W+however,? your request has <requested> input tokens"),
    (
        "vLLM",
        r"is too large: <answer>\W+this model's maximum context length is <limit> tokens and your request has <requested> input tokens",
    ),
    (
        "vLLM, NVIDIA NIM",
        r"passed <requested> input tokens and requested <answer> output tokens\W.{0,40}context length is only <limit> tokens",
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
        r"exceeds (?:the )?model's maximum context length of <limit>(?: tokens\W+you requested a total of <requested> tokens)?",
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
    ("Hugging Face TGI, Together", r"must be <= <limit>\. given: <requested> \W?inputs\W? tokens and <answer> "),
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
    ("AI21", r"too many tokens: <requested> \+ <answer> > <limit>"),
    ("SambaNova", r"prompt is <requested> tokens long.{0,120}maximum supported sequence length is just <limit>"),
    ("SiliconFlow", r"length of prompt_tokens \(<requested>\) must be less than max_seq_len \(<limit>\)"),
    ("SiliconFlow", r"input tokens \(<requested>\) has exceeded max_prompt_tokens \(<limit>\)"),
    ("DashScope", r"range of input length should be \[[0-9]+, ?<limit>\]"),
    ("Cloudflare", r"output tokens \(<requested>\) exceeded this model context window limit \(<limit>\)"),
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
const PAYLOADS: &[(&str, &str)] = &[
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

static NEGATIVE: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(NEGATIVES.iter().map(|(_, _, pattern)| *pattern)));
static POSITIVE: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(POSITIVES.iter().map(|(_, pattern)| *pattern)));
static PAYLOAD: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(PAYLOADS.iter().map(|(_, pattern)| *pattern)));

/// The status a library wrote into its message: first, or behind a word for it.
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r"(?i)(?:^\W{0,3}|\b(?:error|status|code|statuscode|status_code|http|api|failed)\W{1,4})([45][0-9]{2})\b";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// `1048576`, `1,048,576`, `131k`, `1.5M`; not `5MB`.
const NUMBER: &str = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:\.[0-9]+)?[km]?)\b";

fn compiled<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Vec<Regex> {
    let number = |pattern: String, name: &str| pattern.replace(&format!("<{name}>"), &format!("(?<{name}>{NUMBER})"));
    let compile = |pattern: &str| {
        let pattern = ["limit", "requested", "answer"].into_iter().fold(format!("(?i){pattern}"), number);
        Regex::new(&pattern).expect("the patterns are fixed and tested")
    };
    patterns.into_iter().map(compile).collect()
}

fn decided(patterns: &[Regex], text: &str) -> Option<usize> {
    patterns.iter().position(|pattern| pattern.is_match(text))
}

/// The status that an error's words begin with, or name.
pub(super) fn stated_status(text: &str) -> Option<u16> {
    STATUS.captures(text)?.get(1)?.as_str().parse().ok()
}

fn limit(numbers: &Captures<'_>) -> Option<u64> {
    number(numbers, "limit").filter(|tokens| (SMALLEST_WINDOW..=LARGEST_WINDOW).contains(tokens))
}

fn requested(numbers: &Captures<'_>) -> Option<u64> {
    number(numbers, "requested").map(|tokens| tokens.saturating_add(number(numbers, "answer").unwrap_or(0)))
}

fn number(numbers: &Captures<'_>, name: &str) -> Option<u64> {
    let text = numbers.name(name)?.as_str().replace(',', "").to_ascii_lowercase();
    let (digits, unit) = match text.split_at(text.len() - 1) {
        (digits, "k") => (digits, 1_000.0),
        (digits, "m") => (digits, 1_000_000.0),
        _ => (text.as_str(), 1.0),
    };
    let value: f64 = digits.parse().ok()?;
    Some((value * unit).round() as u64)
}

/// An error's text as the patterns expect it: one line, without the escapes of JSON in JSON and of HTML, with straight
/// apostrophes.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for mut rest in said(text) {
        while let Some(next) = rest.chars().next() {
            let escape = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape));
            let (length, char) = escape.map_or((next.len_utf8(), next), |(escape, char)| (escape.len(), *char));
            rest = &rest[length..];
            match char {
                '\\' => {}
                char if char.is_whitespace() && plain.ends_with(' ') => {}
                char if char.is_whitespace() => plain.push(' '),
                char => plain.push(char),
            }
        }
        plain.push(' ');
    }
    plain.trim().to_owned()
}

/// A backslash that begins none of these is dropped, so escapes of escapes come out the same.
const ESCAPES: &[(&str, char)] = &[
    (r"\n", ' '),
    (r"\r", ' '),
    (r"\t", ' '),
    (r"\u003e", '>'),
    (r"\u003c", '<'),
    (r"\u0026", '&'),
    (r"\u0027", '\''),
    (r"\u0022", '"'),
    (r"\u2019", '\''),
    ("&gt;", '>'),
    ("&lt;", '<'),
    ("&#39;", '\''),
    ("&#x27;", '\''),
    ("&apos;", '\''),
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("’", '\''),
];

/// The part of each end of a text that is searched, in characters. The middle is the text that an error quotes.
const END: usize = 16 * 1024;

/// The part of a text that is the error: the AI SDK's errors carry the whole request.
fn said(text: &str) -> impl Iterator<Item = &str> {
    let (before, after) = match (text.find("requestBodyValues"), text.rfind("statusCode")) {
        (Some(request), Some(answer)) if request < answer => (&text[..request], &text[answer..]),
        _ => (text, ""),
    };
    let ends = |text| match str::len(text) <= 2 * END {
        true => [text, ""],
        false => [text::head(text, END), text::tail(text, END)],
    };
    [before, after].into_iter().flat_map(ends).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        text: String,
        status: Option<u16>,
        meaning: String,
        limit: Option<u64>,
        requested: Option<u64>,
        provider: String,
        seen: String,
    }

    impl Row {
        fn meaning(&self) -> Meaning {
            match self.meaning.as_str() {
                "overflow" => Meaning::Overflow(Overflow { limit: self.limit, requested: self.requested }),
                "throttled" => Meaning::Throttled,
                "out_of_quota" => Meaning::OutOfQuota,
                "payload_too_large" => Meaning::PayloadTooLarge,
                "other" => Meaning::Other,
                unknown => panic!("no such meaning: {unknown}"),
            }
        }
    }

    fn corpus() -> Vec<Row> {
        let lines = include_str!("../../tests/corpora/overflow.jsonl").lines();
        lines.map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    #[test]
    fn every_text_of_the_corpus_means_what_it_means() {
        for row in corpus() {
            assert_eq!(meaning(row.status, &row.text), row.meaning(), "{}: {} ({})", row.provider, row.text, row.seen);
            assert!(!row.seen.is_empty() && !row.provider.is_empty(), "nobody says {}", row.text);
        }
    }

    #[test]
    fn the_corpus_is_large_enough_to_mean_something() {
        let (overflows, others): (Vec<_>, Vec<_>) = corpus().into_iter().partition(|row| row.meaning == "overflow");
        assert!(overflows.len() >= 80, "{} overflows", overflows.len());
        assert!(others.len() >= 40, "{} others", others.len());
        assert!(others.iter().all(|row| row.limit.is_none() && row.requested.is_none()));
    }

    /// A row that decides nothing is a row that was never right, or one that another made superfluous.
    #[test]
    fn every_row_of_the_tables_decides_a_text_of_the_corpus() {
        let texts: Vec<String> = corpus().iter().map(|row| plain(&row.text)).collect();
        let (mut refused, mut positive) = (vec![false; NEGATIVES.len()], vec![false; POSITIVES.len()]);
        let mut payload = vec![false; PAYLOADS.len()];
        for text in &texts {
            match (decided(&NEGATIVE, text), decided(&POSITIVE, text), decided(&PAYLOAD, text)) {
                (Some(row), ..) => refused[row] = true,
                (_, Some(row), _) => positive[row] = true,
                (.., Some(row)) => payload[row] = true,
                _ => {}
            }
        }
        let dead = |rows: Vec<bool>| rows.iter().position(|decides| !decides);
        assert_eq!(dead(refused).map(|row| NEGATIVES[row]), None);
        assert_eq!(dead(positive).map(|row| POSITIVES[row]), None);
        assert_eq!(dead(payload).map(|row| PAYLOADS[row]), None);
    }

    /// Without the status, too, nothing that is no overflow becomes one, and no overflow is lost.
    #[test]
    fn the_text_alone_is_enough_to_tell_an_overflow() {
        for row in corpus() {
            let found = matches!(meaning(None, &row.text), Meaning::Overflow(_));
            assert_eq!(found, row.meaning == "overflow", "{}: {}", row.provider, row.text);
        }
    }

    #[test]
    fn who_may_not_ask_or_asks_too_often_has_not_overflowed() {
        let text = "prompt is too long: 208310 tokens > 200000 maximum";
        for status in [None, Some(400), Some(413), Some(422), Some(500), Some(200)] {
            assert!(matches!(meaning(status, text), Meaning::Overflow(_)), "{status:?}");
        }
        assert_eq!(meaning(Some(401), text), Meaning::Other);
        assert_eq!(meaning(Some(403), text), Meaning::Other);
        assert_eq!(meaning(Some(402), text), Meaning::OutOfQuota);
        assert_eq!(meaning(Some(429), text), Meaning::Throttled);
        assert_eq!(meaning(Some(529), text), Meaning::Throttled);
        for stated in ["Error code: 401 - ", "401 ", "HTTP 403: ", r#"{"status": 403, "message": "#, "API Error (403 "]
        {
            assert_eq!(meaning(None, &format!("{stated}{text}")), Meaning::Other, "{stated}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let numbers = |limit: &str, requested: &str| match meaning(
            None,
            &format!("prompt is too long: {requested} tokens > {limit} maximum"),
        ) {
            Meaning::Overflow(Overflow { limit, requested }) => (limit, requested),
            other => panic!("{other:?}"),
        };
        assert_eq!(numbers("1,048,576", "1,200,293"), (Some(1_048_576), Some(1_200_293)));
        assert_eq!(numbers("131k", "1.5M"), (Some(131_000), Some(1_500_000)));
        assert_eq!(numbers("512", "513"), (Some(512), Some(513)));
        assert_eq!(numbers("511", "512"), (None, Some(512)));
        assert_eq!(numbers("20000000", "20000001"), (Some(20_000_000), Some(20_000_001)));
        assert_eq!(numbers("20000001", "99999999999999999999999999"), (None, Some(u64::MAX)));
        assert_eq!(numbers("5MB", "6"), (None, None));
    }

    #[test]
    fn what_an_error_quotes_is_not_what_it_says() {
        let conversation = "rate limit exceeded, prompt is too long: 9000 tokens > 8000 maximum\n".repeat(2_000);
        let quoting = |message: &str| {
            let body = serde_json::json!({ "messages": [{ "role": "user", "content": conversation }] });
            format!("AI_APICallError: {message} {{ requestBodyValues: {body}, statusCode: 400, isRetryable: false }}")
        };
        assert_eq!(meaning(None, &quoting("temperature must be at most 1")), Meaning::Other);
        let overflow = Overflow { limit: Some(200_000), requested: Some(208_310) };
        let said = quoting("prompt is too long: 208310 tokens > 200000 maximum");
        assert_eq!(meaning(None, &said), Meaning::Overflow(overflow));

        let middle = "x".repeat(2 * END);
        let text = format!("400 Bad Request: {middle} rate limit exceeded {middle} prompt is too long");
        assert_eq!(meaning(None, &text), Meaning::Overflow(Overflow::default()));
    }

    /// JSON in a string of JSON, as OpenRouter hands on what a provider said.
    #[test]
    fn an_error_within_an_error_means_the_same() {
        for row in corpus() {
            let inner = serde_json::json!({ "error": { "message": row.text } }).to_string();
            let outer = serde_json::json!([{ "error": { "metadata": { "raw": inner } } }]).to_string();
            assert_eq!(meaning(row.status, &outer), row.meaning(), "{}: {outer}", row.provider);
            let page = row.text.replace('\'', "&#39;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
            assert_eq!(meaning(row.status, &page), row.meaning(), "{}: {page}", row.provider);
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".*", status in proptest::option::of(100_u16..600)) {
            let quoted = format!("{text}requestBodyValues{text}statusCode{text}");
            let overflow = matches!(meaning(status, &quoted), Meaning::Overflow(_));
            prop_assert!(!overflow || decided(&POSITIVE, &plain(&text)).is_some());
        }
    }

    #[test]
    fn an_answer_without_an_error_overflows_by_its_numbers() {
        // Reported input, output, stopped for length, window.
        assert!(silent(200_001, 500, false, 200_000));
        assert!(silent(200_001, 0, true, 200_000));
        assert!(!silent(200_000, 500, false, 200_000));
        assert!(silent(200_000, 0, true, 200_000));
        assert!(silent(198_000, 0, true, 200_000));
        assert!(!silent(197_999, 0, true, 200_000));
        assert!(!silent(199_000, 1, true, 200_000));
        assert!(!silent(199_000, 0, false, 200_000));
        assert!(!silent(0, 0, true, 0));
        assert!(!silent(u64::MAX, 0, true, 0));
        assert!(silent(u64::MAX, 0, false, 1_000_000));
        assert!(!silent(0, 0, true, u64::MAX));
    }

    #[test]
    fn a_prompt_that_was_cut_shows_in_what_was_read() {
        // Reported input, plain estimate.
        assert_eq!(truncated(4_095, 30_000), Some(4_095));
        assert_eq!(truncated(2_050, 4_000), Some(2_050));
        assert_eq!(truncated(5_999, 10_000), Some(5_999));
        assert_eq!(truncated(6_000, 10_000), None);
        assert_eq!(truncated(12_000, 10_000), None);
        assert_eq!(truncated(1_000, 1_999), None);
        assert_eq!(truncated(1_000, 2_000), Some(1_000));
        assert_eq!(truncated(0, 30_000), None);
        assert_eq!(truncated(511, 30_000), None);
        assert_eq!(truncated(512, u64::MAX), Some(512));
    }
}
