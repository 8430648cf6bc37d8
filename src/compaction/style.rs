//! The style `recent_user_messages`, as Codex compacts: the newest messages of the user stand word for word in front of the
//! summary. They are carried by the compaction, and so are those that an earlier one carried, while they fit.

use crate::{
    conversation::{
        context::{self, Part},
        entry::CarriedMessage,
        message::outline::Role,
        path::Path,
        tokens::Scale,
    },
    ids::EntryId,
    models::Budget,
    prompts::Prompts,
    text,
};
use std::{collections::HashMap, sync::Arc};

/// The most tokens of these messages together; the number is Codex's.
const MOST: u64 = 20_000;

/// The least tokens that are worth a part of a message.
const LEAST: u64 = 40;

/// The messages of the user that a compaction may carry, in the order of the path, and the most tokens of them.
#[derive(Debug, Clone)]
pub struct Messages {
    said: Arc<[Said]>,
    /// The most tokens of all that are carried.
    pub most: u64,
}

/// A message of the user.
#[derive(Debug)]
struct Said {
    /// Its place on the path; the first one for a message that an earlier compaction carries.
    place: usize,
    message: CarriedMessage,
}

impl Messages {
    /// The messages of a path, within a budget.
    #[must_use]
    pub fn of(path: &Path, prompts: &Prompts, budget: &Budget) -> Self {
        let places: HashMap<_, _> = path.iter().enumerate().map(|(place, entry)| (&entry.id, place)).collect();
        let foundation = path.foundation().and_then(|place| path[place].preserved());
        let earlier = foundation.into_iter().flat_map(|it| it.user_messages.iter().chain(&it.newest_user_message));
        let carried = earlier.map(|message| Said { place: 0, message: message.clone() });
        let built = context::build(path, prompts);
        let since = built.messages().iter().filter(|message| message.part == Part::Message).filter_map(|message| {
            let id = message.entry.as_ref()?;
            let place = *places.get(id)?;
            let text = || context::text_over_cut(message.message());
            let by_user = path[place].is_from(Role::User);
            by_user.then(|| Said { place, message: CarriedMessage { entry_id: id.clone(), text: text() } })
        });
        let said: Vec<Said> = carried.chain(since).collect();
        let fits = budget.available().saturating_sub(budget.summary_cap());
        Self { said: said.into(), most: MOST.min(fits) }
    }

    /// The same messages within half of the tokens. None where that leaves nothing to clip.
    #[must_use]
    pub fn fewer(&self) -> Option<Self> {
        let most = self.most / 2;
        (most >= LEAST).then(|| Self { said: self.said.clone(), most })
    }

    /// The newest messages before a cut that are not pinned, within the budget. The oldest one loses its middle where it does not
    /// fit. The newest one always stays, at least in part.
    #[must_use]
    pub fn before(&self, cut: usize, scale: Scale, is_pinned: &dyn Fn(&EntryId) -> bool) -> Vec<CarriedMessage> {
        let mut left = self.most;
        let mut picked: Vec<CarriedMessage> = Vec::new();
        let may = |said: &&Said| said.place < cut && !is_pinned(&said.message.entry_id);
        for Said { message, .. } in self.said.iter().rev().filter(may) {
            let size = scale.text(&message.text);
            if size <= left {
                left -= size;
                picked.push(message.clone());
                continue;
            }
            if left >= LEAST || picked.is_empty() {
                let text = clipped(&message.text, left.max(LEAST), scale);
                picked.push(CarriedMessage { text, ..message.clone() });
            }
            break;
        }
        picked.reverse();
        picked
    }
}

/// A text without its middle, of at most `most` tokens.
fn clipped(text: &str, most: u64, scale: Scale) -> String {
    /// A token of prose has at most so many characters.
    const CHARS: u64 = 8;
    let mut chars = (most * CHARS) as usize;
    loop {
        let clipped = text::clip_middle(text, chars, "\n[… the middle of this message was left out …]\n");
        if scale.text(&clipped) <= most || chars < 160 {
            return clipped;
        }
        chars = chars * 4 / 5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compaction::{
            draft::Draft,
            lines::path,
            plan::{self, Demand, Plan},
        },
        conversation::{entry::Stamp, spending::Spending, tokens::Estimator},
        redact::Clean,
        settings::CompactionSettings,
        summary::extractive::Summary,
    };
    use serde_json::{Value, json};

    fn user(text: &str) -> Value {
        json!({"type": "message", "message": {"role": "user", "content": text}})
    }

    fn said(text: &str) -> Value {
        json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"}})
    }

    fn words(word: &str, tokens: usize) -> String {
        format!("{word} ").repeat(tokens)
    }

    fn planned(path: Path, most: Option<u64>) -> Plan {
        let demand = Demand {
            keep: 0,
            explicit: false,
            scale: Scale::new(Estimator::Chars, 1.0),
            budget: Budget::of(200_000, &CompactionSettings::default(), 0, 0),
            tokens_before: 0,
            may_stay: u64::MAX,
            insists: false,
        };
        let messages = Messages::of(&path, &Prompts::default(), &demand.budget);
        let messages = Messages { most: most.unwrap_or(messages.most), ..messages };
        plan::plan(path, demand, Arc::default()).expect("a plan").carrying_messages(Some(messages))
    }

    fn texts(plan: &Plan) -> Vec<(String, u64)> {
        let scale = plan.demand.scale;
        plan.user_messages().into_iter().map(|it| (it.entry_id.to_string(), scale.text(&it.text))).collect()
    }

    /// The path after a compaction by a plan.
    fn compacted(plan: &Plan, id: &str) -> Path {
        let summary =
            Summary { text: Clean::assembled("A summary."), short: Clean::default(), files: Default::default() };
        let draft = Draft::extracted(plan.clone(), summary, Vec::new());
        let stamp = Stamp { id: id.into(), timestamp: String::new() };
        let path = plan.path();
        let line = draft.line(&stamp, path.last().map(|leaf| &leaf.id), path, None, 1, Spending::default());
        path.with(Arc::new(crate::conversation::entry::Entry::parse(line.into()).expect("an entry")))
    }

    #[test]
    fn the_newest_messages_fill_the_budget_and_the_oldest_one_loses_its_middle() {
        let lines = [
            user(&words("abc", 9_000)),
            said("Yes."),
            user(&words("def", 9_000)),
            said("Yes."),
            user(&words("ghi", 9_000)),
            said("No."),
        ];
        let plan = planned(path(&lines), None);
        let picked = texts(&plan);
        assert_eq!(picked.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["e0", "e2", "e4"]);
        assert_eq!((picked[1].1, picked[2].1), (9_000, 9_000));
        assert!((1_000..=2_000).contains(&picked[0].1), "{picked:?}");
        assert_eq!(texts(&planned(path(&lines), Some(18_020))).len(), 2, "20 tokens are no part of a message");
        let newest = texts(&planned(path(&lines), Some(0)));
        assert!(matches!(newest.as_slice(), [(id, 1..60)] if id == "e4"), "{newest:?}");
    }

    #[test]
    fn a_context_has_these_messages_before_the_summary_and_none_twice() {
        let pin = json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": "e0"}});
        let lines = [user("Pinned words."), said("Yes."), user("Second."), said("No."), pin];
        let path = compacted(&planned(path(&lines), None), "c");
        let built = context::build(&path, &Prompts::default());
        let texts: Vec<String> = built.messages().iter().map(|it| it.message().text()).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert_eq!(texts[0], "Second.");
        assert_eq!(texts.concat().matches("Pinned words.").count(), 1, "{texts:?}");
        assert!(!texts[1].contains("user-message"), "{texts:?}");
        assert!(built.messages().iter().all(|it| it.entry_shown().is_none()));
    }

    #[test]
    fn messages_of_an_earlier_compaction_stay_while_they_fit() {
        let lines = [user(&words("abc", 500)), said("Yes."), user("Second."), said("No.")];
        let mut path = compacted(&planned(path(&lines), None), "c");
        for (id, line) in [("f1", user("Third.")), ("f2", said("Done."))] {
            let mut line = line;
            (line["id"], line["parentId"]) = (id.into(), path.last().map(|it| it.id.to_string()).into());
            path.push(Arc::new(crate::conversation::entry::Entry::parse(line.to_string().into()).expect("an entry")));
        }
        let ids = |most| texts(&planned(path.clone(), most)).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(ids(None), ["e0", "e2", "f1"]);
        assert_eq!(ids(Some(5)), ["e2", "f1"]);
        // Another style carries the newest one alone.
        let structured = planned(path.clone(), None).carrying_messages(None);
        assert_eq!(structured.carried().map(|it| it.text), Some("Third.".to_owned()));
    }
}
