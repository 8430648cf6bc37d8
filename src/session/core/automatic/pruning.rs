//! Prunings that no client asks for: whether one suffices and pays.

use crate::{
    compaction::{
        decide::Why,
        prune::{Pruned, pays::Considered},
    },
    session::core::{
        Core,
        commands::prune::{self, Share},
        edit::Staged,
    },
};

impl Core {
    /// The edits of a pruning that brings the context below the threshold. Superseded reads leave alone where the context is
    /// then as small as behind a compaction. A pruning that costs more than it saves is left to the compaction, unless the
    /// last one did not complete.
    pub(in crate::session::core) fn pruning_that_suffices(&mut self) -> Option<Staged> {
        if self.decision().why == Why::Images {
            return prune::without_old_images(&self.state, &mut self.stamps);
        }
        let settings = &self.state.settings().settings.prune;
        let fullness = self.state.measure();
        let budget = fullness.budget.attainable().unwrap_or(fullness.budget);
        let left = |pruned: &Pruned| fullness.context_tokens.saturating_sub(fullness.scale.size(pruned.tokens_saved));
        let mut considered = Considered::Nothing { minimum: settings.minimum_savings };
        let mut chosen = None;
        for (share, most) in [(Share::Superseded, budget.target()), (Share::All, budget.threshold)] {
            let pruned = prune::pruned(&self.state, settings, share);
            if pruned.edits.is_empty() {
                continue;
            }
            let left = left(&pruned);
            if left > most {
                let saved = fullness.scale.size(pruned.tokens_saved);
                considered = Considered::TooLittle { saved, left, threshold: budget.threshold };
                continue;
            }
            let judged = prune::judged(&self.state, &pruned, self.stamps.now());
            considered = Considered::Judged(judged);
            if judged.pays() || self.upkeep.rest.is_some() {
                chosen = Some((pruned, judged));
                break;
            }
        }
        self.upkeep.pruning = Some(considered);
        let (pruned, judged) = chosen?;
        let why = format!("the context was over the threshold; {}", prune::described(&pruned, &judged));
        prune::staged(&self.state, pruned, &mut self.stamps).ok().map(|staged| Staged { why, ..staged })
    }
}
