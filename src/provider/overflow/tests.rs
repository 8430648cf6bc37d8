//! Every text of the corpus means what its row says.

use super::{
    patterns::{PAYLOADS, POSITIVES},
    *,
};
use proptest::prelude::*;
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    text: String,
    status: Option<u16>,
    meaning: String,
    limit: Option<u64>,
    requested: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
    provider: String,
    seen: String,
}

impl Row {
    fn meaning(&self) -> Meaning {
        match self.meaning.as_str() {
            "overflow" => Meaning::Overflow(Overflow { limit: self.limit, requested: self.requested }),
            "output_reservation" => {
                let numbers = self.limit.zip(self.input).zip(self.output);
                let reservation = numbers.and_then(|((limit, input), output)| Reservation::of(limit, input, output));
                Meaning::Reserved(reservation.unwrap_or_else(|| panic!("{} needs its numbers", self.text)))
            }
            "throttled" => Meaning::Throttled,
            "out_of_quota" => Meaning::OutOfQuota,
            "payload_too_large" => Meaning::PayloadTooLarge,
            "other" => Meaning::Other,
            unknown => panic!("no such meaning: {unknown}"),
        }
    }
}

fn corpus() -> Vec<Row> {
    let lines = include_str!("../../../tests/corpora/overflow.jsonl").lines();
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
    let corpus = corpus();
    let of = |meanings: &[&str]| {
        let rows: Vec<&Row> = corpus.iter().filter(|row| meanings.contains(&row.meaning.as_str())).collect();
        let gateways: BTreeSet<&str> = rows.iter().map(|row| row.provider.as_str()).collect();
        (rows.len(), gateways.len())
    };
    let neither = ["throttled", "out_of_quota", "payload_too_large", "other"];
    for (meanings, rows, gateways) in [
        (&["overflow"][..], 80, 30),
        (&["output_reservation"], 20, 10),
        (&neither, 40, 20),
        (&["throttled"], 20, 10),
        (&["out_of_quota"], 15, 10),
    ] {
        let found = of(meanings);
        assert!(found.0 >= rows && found.1 >= gateways, "{meanings:?}: {found:?}");
    }
    let others = corpus.iter().filter(|row| neither.contains(&row.meaning.as_str()));
    assert!(others.into_iter().all(|row| row.limit.is_none() && row.requested.is_none() && row.input.is_none()));
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
        let found = matches!(meaning(None, &row.text), Meaning::Overflow(_) | Meaning::Reserved(_));
        let expected = ["overflow", "output_reservation"].contains(&row.meaning.as_str());
        assert_eq!(found, expected, "{}: {}", row.provider, row.text);
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
    for stated in ["Error code: 401 - ", "401 ", "HTTP 403: ", r#"{"status": 403, "message": "#, "API Error (403 "] {
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

#[test]
fn a_long_text_means_what_its_ends_say() {
    let refusal = "This model's maximum context length is 8192 tokens. However, you requested 8256 tokens (64 in the \
        messages, 8192 in the completion).";
    let reserved = Meaning::Reserved(Reservation::of(8_192, 64, 8_192).expect("a reservation"));
    for filling in ["x", "请求过长。", "429 rate limit exceeded, 8192 tokens. ", "\\u003e"] {
        let long = filling.repeat((1 << 20) / filling.len());
        let middle = format!("{}{long}{}", "-".repeat(END), "-".repeat(END));
        assert_eq!(meaning(Some(400), &format!("{refusal}{middle}")), reserved, "{filling}");
        assert_eq!(meaning(Some(400), &format!("{middle}{refusal}")), reserved, "{filling}");
        assert_eq!(meaning(Some(400), &middle), Meaning::Other, "{filling}");
    }
}

#[test]
fn a_size_is_far_off_beyond_three_times_the_estimate_and_below_a_third() {
    for (stated, estimate, far) in [
        (30_000, 10_000, false),
        (30_001, 10_000, true),
        (10_000, 30_000, false),
        (9_999, 30_000, true),
        (0, 0, false),
        (1, 0, true),
        (0, 1, true),
        (u64::MAX, u64::MAX, false),
    ] {
        assert_eq!(is_far_off(stated, estimate), far, "{stated} of {estimate}");
    }
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
        let overflow = matches!(meaning(status, &quoted), Meaning::Overflow(_) | Meaning::Reserved(_));
        prop_assert!(!overflow || decided(&POSITIVE, &plain(&text)).is_some());
    }
}
