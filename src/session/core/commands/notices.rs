//! Notices after the end of a compaction: quality that may be lost, and settings that act in another way than they say.

use crate::{
    compaction::draft::Shortened,
    protocol::{
        notices::{NoticeCode, Warning},
        types::{CompactionResult, SummaryMethod},
    },
    session::{
        core::{costs::Lack, parts::facts::Facts},
        kind::{OperationKind, Product},
        operations::End,
    },
    settings::Strategy,
    summary::made::{PartOrigins, SummaryPart},
};
use std::time::{Duration, Instant};

/// The number of compactions of a path from which on quality may degrade.
const MANY: u64 = 3;

/// The least time between two notices that quality may degrade.
const QUALITY_EVERY: Duration = Duration::from_secs(3_600);

/// The way out of a conversation that lost details.
const HANDOFF: &str = "A handoff keeps more: session/handoff with the next goal begins a new session with a document about \
                       this one.";

/// Entries that a notice names, at most. The result of the compaction names all of them.
const MOST_NAMED: usize = 20;

/// The notice that a compaction cut or summarized entries before any model has read them.
pub(in crate::session::core) fn of_shortened(entries: &[Shortened]) -> Option<Warning> {
    let named = |it: &Shortened| match it.after {
        0 => format!("{} (its {} tokens are summarized)", it.entry, it.before),
        after => format!("{} ({after} of {} tokens are left)", it.entry, it.before),
    };
    let listed: Vec<String> = entries.iter().take(MOST_NAMED).map(named).collect();
    let more = match entries.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more, which the result of the compaction names in `shortened`"),
    };
    let of = if entries.iter().any(|it| it.after == 0) {
        "the beginnings and ends of the others"
    } else {
        "their beginnings and ends"
    };
    let detail = format!(
        "The window has no room for all of these entries, and no model has read them yet: {}{more}. The context has {of}. The \
         session keeps them whole: session/entry returns an entry by its id.",
        listed.join(", ")
    );
    let title = "Messages that no model has read were shortened";
    (!entries.is_empty()).then(|| Warning::new(NoticeCode::MessagesShortened, title, detail))
}

/// The notices that are sent once, or once in a while.
#[derive(Default)]
pub(in crate::session::core) struct SentNotices {
    /// Whether the client was told that the strategy `handoff` summarizes in place.
    handoff: bool,
    /// Whether the client was told of reports that are not believed.
    doubt: bool,
    /// The time at which the client was told last that quality may degrade.
    quality: Option<Instant>,
}

impl SentNotices {
    /// The notices after the end of a compaction, or of a transfer. `lack`: that of the models which were asked for a summary.
    /// `follows_handoffs`: whether the client goes on with the session that a handoff makes.
    pub fn notices_after(
        &mut self,
        facts: &Facts<'_>,
        kind: &OperationKind,
        end: &End<Product>,
        lack: Lack,
        follows_handoffs: bool,
    ) -> Vec<Warning> {
        let mut notices = Vec::new();
        // A new session begins to count anew.
        let is_here = matches!(end, End::Completed(Product::Compaction(_)));
        let compactions = if is_here { facts.state.path().compactions() } else { 0 };
        let completed = match end {
            End::Completed(product) => product.compaction(),
            _ => None,
        };
        if let Some(result) = completed
            && matches!(lack, Lack::None)
            && let Some(degraded) = degraded(result, compactions)
            && self.quality_is_due(facts.now)
        {
            notices.push(degraded);
        }
        if let Lack::New(notice) = lack {
            notices.push(notice);
        }
        let hands_off = facts.state.measure().compaction.strategy == Strategy::Handoff;
        if kind.is_automatic() && hands_off && !follows_handoffs && !std::mem::replace(&mut self.handoff, true) {
            let detail = "compaction.strategy is \"handoff\". Automatic compaction summarizes in place, as with \
                          context_full, until the host declares sessionReplaced at initialize or asks for a handoff \
                          with session/handoff.";
            let title = "Automatic compaction hands nothing off";
            notices.push(Warning::new(NoticeCode::HandoffNotAutomatic, title, detail));
        }
        if let (OperationKind::Relay(_), End::Completed(Product::Compaction(_))) = (kind, end) {
            let detail = "compaction.strategy is \"handoff\", and no model wrote a document. The conversation was summarized in \
                          place, as with context_full.";
            notices.push(Warning::new(NoticeCode::HandoffCompacted, "The conversation was not handed off", detail));
        }
        notices
    }

    /// Whether the client was not told within the hour that quality may degrade. It is told now.
    fn quality_is_due(&mut self, now: Instant) -> bool {
        let due = self.quality.is_none_or(|told| now.saturating_duration_since(told) >= QUALITY_EVERY);
        if due {
            self.quality = Some(now);
        }
        due
    }

    /// Whether the client was not told of reports that are not believed. It is told now.
    pub fn doubt_is_due(&mut self) -> bool {
        !std::mem::replace(&mut self.doubt, true)
    }
}

/// The notice that a summary may have lost details. A summary that was extracted because no model is to write one is as
/// good as it was meant to be. `compactions`: those of the path with this one.
fn degraded(result: &CompactionResult, compactions: u64) -> Option<Warning> {
    let extracted = result.parts.as_ref().and_then(PartOrigins::extracted);
    let (title, detail) = match (result.method, extracted, result.rejected.last()) {
        (SummaryMethod::Extractive, _, None) => return None,
        // A refused summary of a hook is in the end of its hook.
        (SummaryMethod::Extractive, _, Some(last)) if last.method == SummaryMethod::Hook => return None,
        (SummaryMethod::Extractive, _, Some(last)) => (
            "No model could write the summary",
            format!(
                "The summary was extracted, because no model wrote a usable one; details may be lost. The last reason: \
                 {}. {HANDOFF}",
                last.why
            ),
        ),
        (_, Some(part), Some(last)) => {
            let (part, other) = match part {
                SummaryPart::History => ("the whole turns", "the beginning of the last turn"),
                SummaryPart::TurnPrefix => ("the beginning of the last turn", "the whole turns"),
            };
            (
                "No model could write a part of the summary",
                format!(
                    "The summary of {part} was extracted, because no model wrote a usable one; details may be lost; \
                     a model wrote the summary of {other}. The last reason: {}. {HANDOFF}",
                    last.why
                ),
            )
        }
        _ if compactions < MANY => return None,
        _ => (
            "Quality may degrade after repeated compactions",
            format!(
                "This conversation was compacted {compactions} times. Each summary covers the one before and loses \
                 details. {HANDOFF}"
            ),
        ),
    };
    Some(Warning::new(NoticeCode::QualityMayDegrade, title, detail))
}
