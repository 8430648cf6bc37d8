//! Notices behind the end of a compaction: quality that may be lost, and settings that act in another way than they say.

use crate::{
    protocol::{
        notices::{NoticeCode, Warning},
        types::SummaryMethod,
    },
    session::{
        core::{Core, costs::Lack},
        kind::{OperationKind, Product},
        operations::End,
    },
    settings::Strategy,
};

/// The number of compactions of a path from which on each one is followed by a notice.
const MANY: u64 = 3;

/// The way out of a conversation that lost details.
const HANDOFF: &str = "A handoff keeps more: session/handoff with the next goal begins a new session with a document about \
                       this one.";

impl Core {
    /// The notices behind the end of an operation.
    pub(in crate::session::core) fn notices_behind(
        &mut self,
        kind: &OperationKind,
        end: &End<Product>,
    ) -> Vec<Warning> {
        if let OperationKind::Transfer(transfer) = kind {
            return transfer.notices(end);
        }
        let mut notices = Vec::new();
        let lack = self.lack_of_tokens();
        let completed = match end {
            End::Completed(product) => product.compaction(),
            _ => None,
        };
        if let Some(result) = completed
            && matches!(lack, Lack::None)
            && result.method == SummaryMethod::Extractive
            && let Some(last) = result.rejected.last()
        {
            let detail = format!(
                "The summary was extracted, because no model wrote a usable one; details may be lost. The last reason: {}. \
                 {HANDOFF}",
                last.why
            );
            notices.push(Warning::new(NoticeCode::QualityMayDegrade, "No model could write the summary", detail));
        }
        if let Lack::New(notice) = lack {
            notices.push(notice);
        }
        if kind.is_automatic() && self.summarizes_for_handoff() {
            self.upkeep.told_of_handoff = true;
            let detail = "compaction.strategy is \"handoff\". The host runs the turns of this session, so automatic \
                          compaction summarizes in place, as with context_full, until the host asks for a handoff with \
                          session/handoff.";
            let title = "Automatic compaction hands nothing off";
            notices.push(Warning::new(NoticeCode::HandoffNotAutomatic, title, detail));
        }
        if let (OperationKind::Relay(_), End::Completed(Product::Compaction(_))) = (kind, end) {
            let detail = "compaction.strategy is \"handoff\", and no model wrote a document. The conversation was summarized in \
                          place, as with context_full.";
            notices.push(Warning::new(NoticeCode::HandoffCompacted, "The conversation was not handed off", detail));
        }
        let compactions = self.state.path().compactions();
        // A new session begins to count anew.
        if matches!(end, End::Completed(Product::Compaction(_))) && compactions >= MANY {
            let detail = format!(
                "This conversation was compacted {compactions} times. Each summary covers the one before and loses details. \
                 {HANDOFF}"
            );
            let title = "Quality may degrade after repeated compactions";
            notices.push(Warning::new(NoticeCode::QualityMayDegrade, title, detail));
        }
        notices
    }

    /// Whether automatic compaction acts in place of a handoff, and the client was not told.
    fn summarizes_for_handoff(&self) -> bool {
        !self.upkeep.told_of_handoff
            && self.state.measure().compaction.strategy == Strategy::Handoff
            && !self.asks_for_handoffs()
    }
}
