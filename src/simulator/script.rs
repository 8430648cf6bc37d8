//! The script of the models: the answer of each to each request, as data. A script is written to a file with a failing run.

use crate::{
    ids::random::SplitMix64,
    provider::{Reach, Trouble, TroubleKind, overflow::Overflow},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// The answers of all models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The answers of a model, by its id, in the order of its requests. The last one repeats. A model without answers gives
    /// good ones.
    pub models: BTreeMap<String, Vec<Step>>,
}

/// One answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// Time before the first piece, in milliseconds.
    pub first_ms: u64,
    /// Number of pieces. Zero counts as one.
    pub pieces: usize,
    /// Time between two pieces, in milliseconds.
    pub between_ms: u64,
    /// The text.
    pub text: Text,
    /// The end.
    pub end: End,
    /// The reported usage.
    pub usage: Said,
}

impl Default for Step {
    fn default() -> Self {
        Self { first_ms: 500, pieces: 1, between_ms: 0, text: Text::Good(1), end: End::Whole, usage: Said::True }
    }
}

/// The text of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// The headings of the prompt, each with so many lines. For the short summary a sentence.
    Good(u64),
    /// No text.
    Empty,
    /// Reasoning without an answer.
    OnlyThinking,
    /// A refusal in words.
    Refusal,
    /// A refusal by the provider.
    RefusedByProvider,
    /// The same line again and again.
    Repeats,
    /// The beginning of the conversation.
    Transcript,
    /// A call of a tool.
    ToolCall,
    /// A call of a tool, written out.
    WrittenCall,
    /// Tags that frame data in prompts.
    Tags,
    /// A good text with a secret.
    Secret,
    /// A good text of about so many bytes.
    Long(u64),
    /// A good text whose end is cut off by the output limit.
    CutOff,
    /// Prose without a heading.
    NoHeadings,
    /// The prompt's own template.
    Template,
    /// The next step of the work.
    GoesOn,
    /// Another script than English.
    OtherScript,
    /// This text.
    Given(String),
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The whole text.
    Whole,
    /// A failure before the first piece.
    Fails(Fault),
    /// A failure after so many pieces.
    BreaksOff(usize, Fault),
    /// Silence after so many pieces. A provider notices it after the longest silence that the request allows.
    Silent(usize),
    /// Silence for ever, also where the request allows none.
    Deaf,
    /// A panic before the first piece.
    Panics,
}

/// A failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// Its kind.
    pub kind: TroubleKind,
    /// The wait that the provider asks for, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl Default for Fault {
    fn default() -> Self {
        Self { kind: TroubleKind::Broken, retry_after_ms: None }
    }
}

/// Every kind of failure that a model may give.
pub const KINDS: &[TroubleKind] = &[
    TroubleKind::Overflow(Overflow { limit: None, requested: None }),
    TroubleKind::Overflow(Overflow { limit: Some(8_192), requested: None }),
    TroubleKind::TooLarge,
    TroubleKind::Throttled,
    TroubleKind::OutOfQuota,
    TroubleKind::Denied,
    TroubleKind::NotFound,
    TroubleKind::Broken,
    TroubleKind::Unreachable,
    TroubleKind::Untrusted,
    TroubleKind::Stalled,
    TroubleKind::Late,
    TroubleKind::OutOfTime,
    TroubleKind::CutOff,
    TroubleKind::Endless,
    TroubleKind::Garbled,
    TroubleKind::TooMany,
    TroubleKind::Unwilling,
    TroubleKind::Refused,
];

impl Fault {
    /// A failure of this kind.
    #[must_use]
    pub fn new(kind: TroubleKind) -> Self {
        Self { kind, retry_after_ms: None }
    }

    /// The failure of a request that got so far.
    #[must_use]
    pub fn trouble(self, reach: Reach) -> Trouble {
        let retry_after = self.retry_after_ms.map(Duration::from_millis);
        Trouble { retry_after, ..Trouble::new(self.kind, "as scripted") }.reaching(reach)
    }

    /// Whether the failure says that no model read the request.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        use TroubleKind::{Denied, NotFound, OutOfQuota, Overflow, Throttled, TooLarge};
        matches!(self.kind, Denied | NotFound | OutOfQuota | Overflow(_) | Throttled | TooLarge)
    }

    /// The text of a client that passes on this failure of its provider.
    #[must_use]
    pub fn text(self) -> String {
        match self.kind {
            TroubleKind::Overflow(Overflow { limit: Some(window), .. }) => {
                format!("prompt is too long: 999999 tokens > {window} maximum")
            }
            TroubleKind::Overflow(_) => "prompt is too long".to_owned(),
            TroubleKind::TooLarge => "413 request entity too large".to_owned(),
            TroubleKind::Throttled => "429 too many requests".to_owned(),
            TroubleKind::Denied => "401 invalid api key".to_owned(),
            TroubleKind::NotFound => "404 model not found".to_owned(),
            TroubleKind::OutOfQuota => "402 payment required".to_owned(),
            TroubleKind::Broken | TroubleKind::CutOff | TroubleKind::Stalled => "500 internal server error".to_owned(),
            other => format!("as scripted: {other:?}"),
        }
    }
}

/// The usage that a model reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// As estimated.
    True,
    /// Nothing.
    Zero,
    /// The largest number.
    Absurd,
    /// Negative numbers from a client; nothing from a provider.
    Negative,
    /// Less for each further request of the model.
    Decreasing,
    /// An input of so many tokens at most, as of a server that cuts prompts.
    Truncated(u64),
    /// This input and output, in tokens.
    Fixed(u64, u64),
}

impl Script {
    /// A random script for these models: many answers are good, and the last one of a model may fail for ever.
    #[must_use]
    pub fn random(random: &mut SplitMix64, models: &[&str]) -> Self {
        let steps = |random: &mut SplitMix64| (0..=random.below(5)).map(|_| Step::random(random)).collect();
        Self { models: models.iter().map(|model| ((*model).to_owned(), steps(random))).collect() }
    }

    /// The answer of a model to its request of this number, from 0.
    #[must_use]
    pub fn step(&self, model: &str, request: usize) -> Step {
        let steps = self.models.get(model);
        steps.and_then(|steps| steps.get(request).or(steps.last())).cloned().unwrap_or_default()
    }
}

impl Step {
    /// This text, after half a second.
    #[must_use]
    pub fn says(text: Text) -> Self {
        Self { text, ..Self::default() }
    }

    /// An answer that ends like this.
    #[must_use]
    pub fn ends(end: End) -> Self {
        Self { end, ..Self::default() }
    }

    /// A random answer. Half of all are good, quick and true.
    #[must_use]
    pub fn random(random: &mut SplitMix64) -> Self {
        let mut step = Self::says(Text::Good(1 + random.below(4)));
        step.first_ms = random.below(3_000);
        step.pieces = 1 + usize::try_from(random.below(6)).unwrap_or(0);
        match random.below(10) {
            0..5 => {}
            5 => (step.first_ms, step.between_ms) = (random.below(100_000), random.below(30_000)),
            6 => step.text = random_text(random),
            7 => step.usage = random_usage(random),
            _ => step.end = random_end(random),
        }
        step
    }
}

fn random_text(random: &mut SplitMix64) -> Text {
    let long = Text::Long(1 << random.below(18));
    let texts = [
        Text::Empty,
        Text::OnlyThinking,
        Text::Refusal,
        Text::RefusedByProvider,
        Text::Repeats,
        Text::Transcript,
        Text::ToolCall,
        Text::WrittenCall,
        Text::Tags,
        Text::Secret,
        long,
        Text::CutOff,
        Text::NoHeadings,
        Text::Template,
        Text::GoesOn,
        Text::OtherScript,
    ];
    random.one_of(&texts).cloned().unwrap_or(Text::Empty)
}

fn random_usage(random: &mut SplitMix64) -> Said {
    let number = |random: &mut SplitMix64| 1 << random.below(64);
    match random.below(6) {
        0 => Said::Zero,
        1 => Said::Absurd,
        2 => Said::Negative,
        3 => Said::Decreasing,
        4 => Said::Truncated(number(random)),
        _ => Said::Fixed(number(random), number(random)),
    }
}

fn random_end(random: &mut SplitMix64) -> End {
    let kind = random.one_of(KINDS).copied().unwrap_or(TroubleKind::Broken);
    let retry_after_ms = (random.below(3) == 0).then(|| random.below(60_000));
    let (fault, pieces) = (Fault { kind, retry_after_ms }, usize::try_from(random.below(5)).unwrap_or(0));
    match random.below(8) {
        0..4 => End::Fails(fault),
        4 => End::BreaksOff(pieces, fault),
        5 => End::Silent(pieces),
        6 => End::Deaf,
        _ => End::Panics,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_goes_through_a_file_and_repeats_with_its_seed() {
        let script = |seed| Script::random(&mut SplitMix64::new(seed), &["a", "b"]);
        for seed in 0..200 {
            let text = serde_json::to_string(&script(seed)).expect("a text");
            assert_eq!(serde_json::from_str::<Script>(&text).expect("a script"), script(seed));
        }
        assert_ne!(script(1), script(2));
        let short = r#"{"models": {"a": [{"text": "refusal"}, {"end": {"fails": {"kind": "throttled"}}}]}}"#;
        let short: Script = serde_json::from_str(short).expect("a script");
        assert_eq!(short.step("a", 0), Step::says(Text::Refusal));
        assert_eq!(short.step("a", 9), Step::ends(End::Fails(Fault::new(TroubleKind::Throttled))));
        assert_eq!(short.step("b", 0), Step::default());
    }

    #[test]
    fn a_failure_has_one_form_in_a_file() {
        let row = |kind: TroubleKind, text: &str| {
            assert_eq!(serde_json::to_string(&kind).expect("a text"), text);
            assert_eq!(serde_json::from_str::<TroubleKind>(text).expect("a kind"), kind);
        };
        row(TroubleKind::OutOfQuota, r#""out_of_quota""#);
        row(TroubleKind::Overflow(Overflow::default()), r#"{"overflow":{}}"#);
        row(TroubleKind::Overflow(Overflow { limit: Some(8), requested: None }), r#"{"overflow":{"limit":8}}"#);
        serde_json::from_str::<TroubleKind>(r#"{"overflow":{"limits":8}}"#).expect_err("no such field");
        serde_json::from_str::<TroubleKind>(r#""out-of-quota""#).expect_err("no such kind");
    }

    #[test]
    fn random_scripts_reach_every_text_and_end() {
        let mut random = SplitMix64::new(1);
        let steps: Vec<Step> = (0..20_000).map(|_| Step::random(&mut random)).collect();
        let name = |debug: String| debug.split('(').next().unwrap_or_default().to_owned();
        let names = |of: &dyn Fn(&Step) -> String| {
            steps.iter().map(|step| name(of(step))).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(names(&|step| format!("{:?}", step.text)), 17, "all but `Given`");
        assert_eq!(names(&|step| format!("{:?}", step.end)), 6);
        assert_eq!(names(&|step| format!("{:?}", step.usage)), 7);
    }
}
