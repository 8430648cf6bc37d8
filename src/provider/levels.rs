//! Levels of thinking as wire formats name them.

use super::{Effort, Reasoning};
use serde::Deserialize;

/// A level of thinking as wire formats name it, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No thinking.
    None,
    /// The least thinking.
    Minimal,
    /// Some thinking.
    Low,
    /// A medium amount of thinking.
    Medium,
    /// A lot of thinking.
    High,
    /// More than `High`.
    Xhigh,
    /// The most thinking.
    Max,
}

/// The levels of thinking that a model takes by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Efforts {
    /// The model is known to think: a request without thinking names the least level. The levels of other models are
    /// named only in a request that asks for an effort.
    pub thinks: bool,
    /// The levels, least first. Empty for a model that takes none.
    pub levels: Vec<Level>,
}

impl Level {
    /// Its name on the wire, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The tokens that thinking at this level may take, where a limit counts them with the answer.
    #[must_use]
    pub fn room(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Minimal => Effort::Minimal.room(),
            Self::Low => Effort::Low.room(),
            Self::Medium => Effort::Medium.room(),
            Self::High => Effort::High.room(),
            Self::Xhigh | Self::Max => Effort::Highest.room(),
        }
    }

    /// The level of `levels` for a request: the least that is not below the one that is asked for, else the highest.
    /// `None` where the request says nothing about thinking.
    #[must_use]
    pub fn among(levels: &[Self], reasoning: Reasoning) -> Option<Self> {
        let wanted = match reasoning {
            Reasoning::Unsaid => return None,
            Reasoning::Off => Self::None,
            Reasoning::Effort(Effort::Minimal) => Self::Minimal,
            Reasoning::Effort(Effort::Low) => Self::Low,
            Reasoning::Effort(Effort::Medium) => Self::Medium,
            Reasoning::Effort(Effort::High) => Self::High,
            Reasoning::Effort(Effort::Highest) => Self::Max,
        };
        levels.iter().find(|level| **level >= wanted).or(levels.last()).copied()
    }
}

impl Efforts {
    /// The level that a request names; `None` where it names none.
    #[must_use]
    pub fn level(&self, reasoning: Reasoning) -> Option<Level> {
        let named = self.thinks || matches!(reasoning, Reasoning::Effort(_));
        Level::among(&self.levels, reasoning).filter(|_| named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_the_nearest_level_that_the_model_takes() {
        use Level::{High, Low, Medium, Minimal, None as Off, Xhigh};
        let row = |levels: &[Level], reasoning: Reasoning, expected: Option<Level>| {
            let thinks = Efforts { thinks: true, levels: levels.to_vec() };
            assert_eq!(thinks.level(reasoning), expected, "{levels:?} {reasoning:?}");
            let other = Efforts { thinks: false, ..thinks };
            let asked = matches!(reasoning, Reasoning::Effort(_));
            assert_eq!(other.level(reasoning), expected.filter(|_| asked), "{levels:?} {reasoning:?}");
        };
        row(&[Low, Medium, High], Reasoning::Unsaid, None);
        row(&[Low, Medium, High], Reasoning::Off, Some(Low));
        row(&[Low, Medium, High], Reasoning::Effort(Effort::Minimal), Some(Low));
        row(&[Low, Medium, High], Reasoning::Effort(Effort::Highest), Some(High));
        row(&[Off, Low, Xhigh], Reasoning::Off, Some(Off));
        row(&[Off, Low, Xhigh], Reasoning::Effort(Effort::High), Some(Xhigh));
        row(&[Minimal, High], Reasoning::Effort(Effort::Medium), Some(High));
        row(&[], Reasoning::Effort(Effort::Medium), None);
    }
}
