//! The costs in the end of a session file: back to the last compaction that carries those before it.

use crate::{
    conversation::{
        entry::{Entry, Head},
        path::Path,
        spending::{Cost, Spending},
    },
    log::{
        error::StoreError,
        lines::Line,
        pieces::{self, Form},
        source::Source,
    },
};

/// The costs in lines that are read backwards, on any branch.
#[derive(Default)]
pub struct Spent {
    /// The newest first.
    costs: Vec<Cost>,
    reach: Reach,
}

/// Entries before which costs may be missing.
#[derive(Default)]
enum Reach {
    /// The first line that was read.
    #[default]
    Line,
    /// No entry: the file was read to its beginning.
    Beginning,
    /// No entry: a compaction or a reset carries the costs before it.
    Carried(Box<Spending>),
}

/// Most costs after a compaction that are summed without an index.
const MOST_COSTS: usize = 4_096;

impl Spent {
    /// Notes an entry that stands before those that were noted.
    pub fn see(&mut self, entry: &Entry) {
        if matches!(self.reach, Reach::Carried(_)) {
            return;
        }
        match entry.preserved().and_then(|preserved| preserved.spent.as_ref()) {
            Some(carried) => self.reach = Reach::Carried(Box::new(carried.clone())),
            None if self.costs.len() < MOST_COSTS => self.costs.extend(entry.cost()),
            None => {}
        }
    }

    /// The same for a line of which only the head was read.
    pub fn pass(&mut self, head: &Head<'_>, line: &Line<'_>) {
        if matches!(head.kind.as_ref(), "usage" | "model_usage" | "compaction" | "reset_boundary")
            && let Ok(entry) = pieces::entry(line.bytes)
        {
            self.see(&entry);
        }
    }

    /// Notes that no line stands before those that were read.
    pub fn begins(&mut self) {
        if matches!(self.reach, Reach::Line) {
            self.reach = Reach::Beginning;
        }
    }

    fn is_whole(&self) -> bool {
        !matches!(self.reach, Reach::Line)
    }

    /// The costs of the file, as far as they were read.
    pub fn sum(self) -> Spending {
        let is_partial = !self.is_whole() || self.costs.len() >= MOST_COSTS;
        let mut spending = match self.reach {
            Reach::Carried(carried) => *carried,
            Reach::Beginning | Reach::Line => Spending::default(),
        };
        spending.is_partial |= is_partial;
        self.costs.iter().rev().for_each(|cost| spending.add(cost));
        spending
    }
}

/// The costs in the entries of a path that is all of its file.
#[must_use]
pub fn costs_of(path: &Path) -> Spending {
    let mut spent = Spent::default();
    path.iter().rev().for_each(|entry| spent.see(entry));
    if !path.is_cut() {
        spent.begins();
    }
    spent.sum()
}

impl Source {
    /// The costs that the last `most` bytes of the file tell, whole lines only.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn costs_of_end(&self, most: u64) -> Result<Spending, StoreError> {
        let end = self.length().map_err(self.failed())?;
        let mut spent = Spent::default();
        let near = self.not_before(end.saturating_sub(most));
        let mut lines = near.backwards(end);
        if end <= self.floor() {
            spent.begins();
        }
        while !spent.is_whole() {
            let Some(line) = lines.before().map_err(self.failed())? else {
                if near.floor() == self.floor() {
                    spent.begins();
                }
                break;
            };
            if let Ok(head) = pieces::whole(&line, Form::Today) {
                spent.pass(&head, &line);
            }
            if line.offset <= self.floor() {
                spent.begins();
            }
        }
        Ok(spent.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::spending::Sum,
        log::{bytes::Bytes, header},
    };
    use serde_json::{Value, json};
    use std::path::PathBuf;

    fn usage(id: &str, parent: &str, input: u64) -> Value {
        json!({"type": "usage", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
            "purpose": "compaction", "trigger": "idle", "usage": {"input": input}})
    }

    fn user(id: &str, parent: Option<&str>) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "message": {"role": "user", "content": id}})
    }

    fn compaction(id: &str, parent: &str, carried: Option<&Spending>) -> Value {
        json!({"type": "compaction", "id": id, "parentId": parent, "summary": "s", "firstKeptEntryId": id,
            "preserveData": {"abridged": {"entryId": id, "spent": carried}}})
    }

    fn source(lines: &[Value]) -> Source {
        let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"});
        let text: String = std::iter::once(&header).chain(lines).map(|line| format!("{line}\n")).collect();
        let path = PathBuf::from("session");
        let found = header::find(&path, text.as_bytes()).expect("a header");
        Source::of(path, Bytes::Memory(text.into_bytes().into()), &found)
    }

    /// Requests, input and whether some is missing: by the walk, by the end of the file, and by an index.
    fn known(lines: &[Value]) -> [(u64, u64, bool); 3] {
        let source = source(lines);
        let end = source.length().expect("a length");
        let walked = source.path_and_costs(end, &|| false).expect("a path").1;
        let read = source.costs_of_end(u64::MAX).expect("costs");
        let indexed = source.index(end, &|| false).expect("a file").expect("an index").index.spending().clone();
        [walked, read, indexed].map(|it| (it.all().requests, it.all().input, it.is_partial))
    }

    fn carried(input: u64) -> Spending {
        let sum = Sum { requests: 1, input, total: input, ..Sum::default() };
        Spending { purposes: [("compaction".to_owned(), sum)].into(), automatic: sum, ..Spending::default() }
    }

    #[test]
    fn a_file_is_summed_from_its_beginning_or_from_a_compaction_that_carries_the_rest() {
        let mut lines = vec![user("a", None), usage("b", "a", 1), user("c", "b".into())];
        assert_eq!(known(&lines), [(1, 1, false); 3]);
        lines.push(compaction("d", "c", Some(&carried(1))));
        lines.extend([usage("e", "d", 10), user("f", "e".into())]);
        assert_eq!(known(&lines), [(2, 11, false); 3]);
        // The costs of another branch are of the same session.
        lines.extend([usage("g", "f", 100), user("h", "e".into())]);
        assert_eq!(known(&lines), [(3, 111, false); 3]);
        // An undone compaction carries what it carried.
        lines.push(json!({"type": "custom", "customType": "abridged.undo", "id": "i", "parentId": "c",
            "data": {"compactionEntryId": "d"}}));
        assert_eq!(known(&lines), [(3, 111, false); 3]);
    }

    #[test]
    fn behind_a_compaction_of_another_program_the_sum_is_a_lower_bound() {
        let lines = [user("a", None), usage("b", "a", 1), compaction("d", "b", None), usage("e", "d", 10)];
        let [walked, read, indexed] = known(&lines);
        assert_eq!(walked, (1, 10, true), "the walk ends at the compaction");
        assert_eq!((read, indexed), ((2, 11, false), (2, 11, false)));
    }

    #[test]
    fn a_compaction_whose_own_sum_is_a_lower_bound_makes_no_other_of_it() {
        let partial = Spending { is_partial: true, ..carried(5) };
        let lines = [user("a", None), usage("b", "a", 1), compaction("d", "b", Some(&partial))];
        assert_eq!(known(&lines), [(1, 5, true), (1, 5, true), (1, 1, false)]);
    }

    #[test]
    fn of_a_long_file_only_the_end_is_read() {
        let lines: Vec<Value> =
            std::iter::once(user("a", None)).chain((0..100).map(|at| usage(&format!("u{at}"), "a", 1))).collect();
        let source = source(&lines);
        let line = lines[50].to_string().len() as u64 + 1;
        let read = source.costs_of_end(10 * line).expect("costs");
        assert_eq!((read.all().requests, read.is_partial), (10, true));
        assert_eq!(source.costs_of_end(1_000 * line).expect("costs").all().requests, 100);
        assert_eq!(source.costs_of_end(0).expect("costs"), Spending { is_partial: true, ..Spending::default() });
    }
}
