//! Honest hosts in situations where a true report looks like a wrong one.

use super::{
    dialect::Dialect::{self, Anthropic, Chat, Plain},
    row::{
        Deserves::{Belief, BeliefAfter, Near},
        Middle, Row,
    },
    truth::{Exchange, History},
};
use serde_json::{Value, json};

fn whole(now: &Exchange, _: &History) -> Value {
    json!({"input": now.fresh(), "output": now.output, "cacheRead": now.cached, "cacheWrite": 0})
}

fn of_anthropic(now: &Exchange, _: &History) -> Value {
    json!({"input_tokens": 4, "output_tokens": now.output, "cache_read_input_tokens": now.cached,
        "cache_creation_input_tokens": now.fresh() - 4})
}

fn of_chat(now: &Exchange, _: &History) -> Value {
    json!({"prompt_tokens": now.prompt, "completion_tokens": now.output})
}

/// The same host with true reports.
pub fn twin(row: &Row) -> Row {
    Row { dialect: Plain, report: whole, ..*row }
}

fn row(name: &'static str, dialect: Dialect) -> Row {
    let report = match dialect {
        Anthropic => of_anthropic,
        Chat => of_chat,
        _ => whole,
    };
    Row::new(
        name,
        if dialect == Anthropic { "anthropic" } else { "maker" },
        "an honest host",
        "",
        dialect,
        report,
        Belief,
    )
}

/// Honest hosts, each with one difficulty.
pub fn rows() -> Vec<Row> {
    // Reports of contexts that grew by a few hundred tokens confirm nothing.
    let near = |row: Row| Row { deserves: Near, ..row };
    let later = |row: Row| Row { deserves: BeliefAfter(2), ..row };
    vec![
        row("Anthropic with its cache", Anthropic).factor(1.25),
        row("a tokenizer with few tokens", Chat).factor(0.8),
        row("a tokenizer with many tokens", Plain).factor(1.45),
        later(row("18,000 unannounced tokens", Anthropic).unannounced(18_000)),
        later(row("4,000 unannounced tokens", Chat).unannounced(4_000)),
        later(row("60,000 unannounced tokens", Plain).unannounced(60_000)),
        row("images", Anthropic).habits(|it| it.images = true),
        near(row("images that count little", Chat).habits(|it| it.images = true).counts(|it| it.image = 258)),
        row("thinking that is sent again", Plain).habits(|it| it.thinks = true),
        // After a compaction less of the context is thinking, and the factor of the reports before is too low for one turn.
        near(
            row("thinking that the provider leaves out", Anthropic)
                .habits(|it| it.thinks = true)
                .counts(|it| it.thinking = false),
        ),
        later(row("another model", Plain).middle(Middle::OtherModel { factor: 1.35 })),
        later(row("another model with fewer tokens", Chat).factor(1.25).middle(Middle::OtherModel { factor: 0.95 })),
        row("Chinese", Chat).habits(|it| it.chinese = true),
        row("Chinese with many tokens", Plain).factor(1.3).habits(|it| it.chinese = true),
        row("a new process", Plain).middle(Middle::NewProcess),
        later(
            row("a new process with 18,000 unannounced tokens", Anthropic)
                .unannounced(18_000)
                .middle(Middle::NewProcess),
        ),
        row("another reader", Plain).habits(|it| it.is_watched = true),
        row("another reader, and named contexts", Chat).habits(|it| {
            it.is_watched = true;
            it.names_contexts = true;
        }),
        row("named contexts", Anthropic).habits(|it| it.names_contexts = true),
        later(row("tools that are connected", Anthropic).middle(Middle::MoreTools)),
        later(row("a late announcement", Plain).unannounced(6_000).middle(Middle::Announces)),
        row("hidden reasoning", Chat).hidden(3_000),
    ]
}
