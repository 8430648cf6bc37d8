//! Providers and hosts that tell the daemon something else than the truth, as data.

pub mod exchanges;

use super::shrink::smaller;
use serde::{Deserialize, Serialize};

/// The provider of the session's model as it is, and the requests of its host. The daemon knows what both tell, and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Truth {
    /// The window, in tokens.
    pub window: u64,
    /// Tokens of 400 characters. Estimators say about 100.
    pub density: u64,
    /// Tokens that the host sends beside each context: its system prompt and its tools, which it does not tell.
    pub untold: u64,
    /// Tokens that the host reserves for an answer, unless the context allows less.
    pub reserved: u64,
    /// The end of a request that does not fit.
    pub beyond: Beyond,
}

/// The end of a request that is larger than the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// The provider refuses it, with this text.
    Refuses(Stated),
    /// The server drops the beginning of the prompt and answers.
    Cuts,
}

/// The numbers of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stated {
    /// None.
    Nothing,
    /// The window and the size of the request.
    Window,
    /// The window, and input and output apart.
    Parts,
    /// The size of the request and a window that is not its own, in tokens.
    Wrong(u64),
}

/// The end of the newest request of the host, as the daemon is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Told {
    /// The answer, unless the provider refuses the request.
    pub gives: Gives,
    /// The usage that the host reports.
    pub reports: Report,
    /// The context that the host names.
    pub names: Named,
}

/// An answer of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gives {
    /// A text of so many characters.
    Text(u32),
    /// So many calls.
    Calls(u32),
    /// A refusal by a limit of so many tokens a minute.
    Throttled(u64),
}

/// The report of a host about the usage of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// As the provider counts.
    True,
    /// None.
    Nothing,
    /// Zeros.
    Zero,
    /// Without the part that was read from the cache.
    Uncached,
    /// The sum of the requests since the newest message of the user.
    Steps,
    /// This input, in tokens.
    Constant(u64),
    /// The part that was read from the cache counts twice.
    Doubled,
    /// The usage of the request that was sent so many requests before.
    Late(u32),
    /// The usage of the last request before the newest rewrite of the context.
    BeforeRewrite,
    /// So many percent of the input: the count of another model.
    OfAnother(u32),
}

/// The context that an append names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// None.
    Omitted,
    /// That of the request.
    Right,
    /// A context that no client was given.
    Wrong,
    /// The one before.
    Stale,
}

impl Told {
    /// Simpler forms: a text, a true report, no context.
    #[must_use]
    pub fn simpler(self) -> Vec<Self> {
        let mut simpler = Vec::new();
        if self.names != Named::Omitted {
            simpler.push(Self { names: Named::Omitted, ..self });
        }
        let less =
            |number: u32| smaller(number.into()).into_iter().map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let reports: Vec<Report> = match self.reports {
            Report::True => Vec::new(),
            Report::Late(requests) => less(requests).map(Report::Late).collect(),
            Report::OfAnother(percent) => less(percent).map(Report::OfAnother).collect(),
            Report::Constant(tokens) => smaller(tokens).into_iter().map(Report::Constant).collect(),
            _ => Vec::new(),
        };
        let honest = (self.reports != Report::True).then_some(Report::True);
        simpler.extend(honest.into_iter().chain(reports).map(|reports| Self { reports, ..self }));
        let gives: Vec<Gives> = match self.gives {
            Gives::Text(chars) => less(chars).map(Gives::Text).collect(),
            Gives::Calls(calls) => {
                let fewer = less(calls).filter(|calls| *calls > 0).map(Gives::Calls);
                std::iter::once(Gives::Text(40)).chain(fewer).collect()
            }
            Gives::Throttled(tokens) => {
                let lower = smaller(tokens).into_iter().map(Gives::Throttled);
                std::iter::once(Gives::Text(40)).chain(lower).collect()
            }
        };
        simpler.extend(gives.into_iter().map(|gives| Self { gives, ..self }));
        simpler
    }
}

impl Truth {
    /// Simpler forms: nothing is sent beside the context, and refusals say the window.
    #[must_use]
    pub fn simpler(self) -> Vec<Self> {
        let usual = [
            Self { untold: 0, ..self },
            Self { reserved: 0, ..self },
            Self { density: 100, ..self },
            Self { beyond: Beyond::Refuses(Stated::Window), ..self },
        ];
        usual.into_iter().filter(|simpler| *simpler != self).collect()
    }
}
