//! The shape of a session's tree, and the order in which a person reads it.
//!
//! A conversation that does not branch goes straight down. At an entry with several children one child goes on below it, and
//! the others are drawn between as branches, each one level further to the right. The child that goes on is on the path to
//! the leaf, else it leads to the newest entry. Below the leaf every child is a branch: the next message would go on there.

/// An entry of the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    /// Number of the parent, which is smaller than its own; `None` for a root.
    pub parent: Option<u32>,
    /// Whether it may be folded.
    pub weight: Weight,
}

/// The importance of an entry to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It may be folded.
    Plain,
    /// It may be folded, and is counted apart.
    User,
    /// It is always drawn.
    Landmark,
}

/// Whether long runs of entries are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// Every entry is drawn.
    Nothing,
    /// The middle of a long run is one row.
    LongRuns,
}

/// A row of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row<'a> {
    /// For each level to its left, whether a line goes on there.
    pub bars: &'a [bool],
    /// Whether it is the first row of a branch, which joins the line of the innermost level.
    pub joins: bool,
    /// Its content.
    pub item: Item,
}

/// The content of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// The entry of this number.
    Entry(u32),
    /// A number of entries, and how many of them are messages of the user.
    Folded { entries: usize, users: usize },
    /// A blank row between two roots.
    Blank,
}

/// Entries that stay at each end of a run that is folded.
const EDGE: usize = 3;

/// The least entries that one row stands for. Fewer are drawn.
const LEAST_FOLDED: usize = 4;

/// No entry.
const NONE: u32 = u32::MAX;

/// All entries of a session, in file order.
#[derive(Debug)]
pub(super) struct Forest {
    nodes: Vec<Node>,
    leaf: Option<u32>,
    /// By entry, and the roots at the end.
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    /// The newest entry that follows each entry.
    newest: Vec<u32>,
    on_path: Vec<bool>,
}

/// A part that is still to be drawn, at a level.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: u32,
    level: usize,
    role: Role,
}

/// The reason for which a part is drawn where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Continuation,
    /// A branch; whether the line that it joins goes on below it.
    Branch {
        goes_on: bool,
    },
}

impl Forest {
    /// The tree of these entries, of which `leaf` is the last one of the active path.
    pub(super) fn new(nodes: Vec<Node>, leaf: Option<u32>) -> Self {
        let count = nodes.len();
        let mut forest = Self {
            first_child: vec![NONE; count + 1],
            next_sibling: vec![NONE; count],
            newest: (0..count as u32).collect(),
            on_path: vec![false; count],
            nodes,
            leaf,
        };
        for number in (0..count as u32).rev() {
            let parent = forest.parent(number);
            let slot = parent.map_or(count, |parent| parent as usize);
            forest.next_sibling[number as usize] = forest.first_child[slot];
            forest.first_child[slot] = number;
            if let Some(parent) = parent {
                let newest = forest.newest[number as usize].max(forest.newest[parent as usize]);
                forest.newest[parent as usize] = newest;
            }
        }
        let mut next = leaf;
        while let Some(number) = next {
            forest.on_path[number as usize] = true;
            next = forest.parent(number);
        }
        forest
    }

    fn parent(&self, number: u32) -> Option<u32> {
        self.nodes[number as usize].parent
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Number of entries that nothing follows.
    pub(super) fn tips(&self) -> usize {
        self.first_child[..self.nodes.len()].iter().filter(|child| **child == NONE).count()
    }

    /// The last entry of the active path.
    pub(super) fn leaf(&self) -> Option<u32> {
        self.leaf
    }

    /// Whether an entry is on the active path.
    pub(super) fn is_on_path(&self, number: u32) -> bool {
        self.on_path[number as usize]
    }

    /// The children of an entry in file order, or the roots.
    fn children(&self, of: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        let slot = of.map_or(self.nodes.len(), |number| number as usize);
        let some = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(some(self.first_child[slot]), move |number| some(self.next_sibling[*number as usize]))
    }

    /// The child that goes on straight below an entry.
    fn continuation(&self, of: u32) -> Option<u32> {
        let key = |child: &u32| (self.on_path[*child as usize], self.newest[*child as usize]);
        self.children(Some(of)).max_by_key(key).filter(|_| self.leaf != Some(of))
    }

    /// Gives each row of the picture, from the top.
    ///
    /// # Errors
    /// The first error of `each`, which ends the picture.
    pub(super) fn draw<E>(&self, fold: Fold, mut each: impl FnMut(Row<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut roots: Vec<u32> = self.children(None).collect();
        roots.sort_by_key(|root| self.on_path[*root as usize]);
        let mut parts: Vec<Part> =
            roots.iter().rev().map(|root| Part { start: *root, level: 0, role: Role::Root }).collect();
        let mut bars: Vec<bool> = Vec::new();
        let mut is_first = true;
        while let Some(Part { start, level, role }) = parts.pop() {
            match role {
                Role::Root => {
                    bars.clear();
                    if !std::mem::take(&mut is_first) {
                        each(Row { bars: &bars, joins: false, item: Item::Blank })?;
                    }
                }
                Role::Continuation => bars.truncate(level),
                Role::Branch { goes_on } => {
                    bars.truncate(level - 1);
                    bars.push(goes_on);
                }
            }
            let end = self.draw_run(start, fold, &mut |item| {
                let joins = matches!(role, Role::Branch { .. }) && item == Item::Entry(start);
                each(Row { bars: &bars, joins, item })
            })?;
            let next = self.continuation(end);
            parts.extend(next.map(|next| Part { start: next, level, role: Role::Continuation }));
            let behind = parts.len();
            let branches = self.children(Some(end)).filter(|child| Some(*child) != next);
            parts.extend(branches.map(|branch| Part {
                start: branch,
                level: level + 1,
                role: Role::Branch { goes_on: true },
            }));
            if let (Some(last), None) = (parts[behind..].last_mut(), next) {
                last.role = Role::Branch { goes_on: false };
            }
            parts[behind..].reverse();
        }
        Ok(())
    }

    /// Gives the rows from an entry down to the next one at which something branches off, or to a tip. Returns that entry.
    fn draw_run<E>(&self, start: u32, fold: Fold, each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<u32, E> {
        let mut stretch: Vec<u32> = Vec::new();
        let mut here = start;
        loop {
            let next = self.continuation(here).filter(|_| self.children(Some(here)).nth(1).is_none());
            if self.nodes[here as usize].weight == Weight::Landmark || self.leaf == Some(here) || fold == Fold::Nothing
            {
                self.draw_stretch(&std::mem::take(&mut stretch), each)?;
                each(Item::Entry(here))?;
            } else {
                stretch.push(here);
            }
            match next {
                Some(next) => here = next,
                None => break,
            }
        }
        self.draw_stretch(&stretch, each)?;
        Ok(here)
    }

    fn draw_stretch<E>(&self, stretch: &[u32], each: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        let mut entries = |numbers: &[u32]| numbers.iter().try_for_each(|number| each(Item::Entry(*number)));
        if stretch.len() < 2 * EDGE + LEAST_FOLDED {
            return entries(stretch);
        }
        let (first, rest) = stretch.split_at(EDGE);
        let (middle, last) = rest.split_at(rest.len() - EDGE);
        entries(first)?;
        let users = middle.iter().filter(|number| self.nodes[**number as usize].weight == Weight::User).count();
        each(Item::Folded { entries: middle.len(), users })?;
        last.iter().try_for_each(|number| each(Item::Entry(*number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn forest(parents: &[Option<u32>], leaf: Option<u32>) -> Forest {
        let node = |parent: &Option<u32>| Node { parent: *parent, weight: Weight::Plain };
        Forest::new(parents.iter().map(node).collect(), leaf)
    }

    /// A picture with the number of each entry, and `*` after those of the active path.
    fn picture(forest: &Forest, fold: Fold) -> Vec<String> {
        let mut rows = Vec::new();
        let drawn: Result<(), Infallible> = forest.draw(fold, |row| {
            let bars = row.bars.iter().enumerate().map(|(at, goes_on)| {
                match (row.joins && at + 1 == row.bars.len(), goes_on) {
                    (true, true) => "├─",
                    (true, false) => "╰─",
                    (false, true) => "│ ",
                    (false, false) => "  ",
                }
            });
            let text = match row.item {
                Item::Entry(number) if forest.is_on_path(number) => format!("{number}*"),
                Item::Entry(number) => number.to_string(),
                Item::Folded { entries, users } => format!("{entries} ({users})"),
                Item::Blank => String::new(),
            };
            rows.push(bars.collect::<String>() + &text);
            Ok(())
        });
        match drawn {
            Ok(()) => rows,
            Err(never) => match never {},
        }
    }

    #[test]
    fn a_conversation_goes_straight_down() {
        let straight = forest(&[None, Some(0), Some(1)], Some(2));
        assert_eq!(picture(&straight, Fold::LongRuns), ["0*", "1*", "2*"]);
        assert_eq!(straight.tips(), 1);
        assert!(picture(&forest(&[], None), Fold::LongRuns).is_empty());
    }

    #[test]
    fn branches_stand_between_an_entry_and_its_continuation() {
        let parents = [None, Some(0), Some(1), Some(1), Some(3), Some(3), Some(0), Some(6)];
        let expected = ["0*", "├─6", "│ 7", "1*", "├─2", "3*", "├─5", "4*"];
        assert_eq!(picture(&forest(&parents, Some(4)), Fold::LongRuns), expected);
        // The newest entry goes on where nothing is active.
        let expected = ["0", "├─1", "│ ├─2", "│ 3", "│ ├─4", "│ 5", "6", "7"];
        assert_eq!(picture(&forest(&parents, None), Fold::LongRuns), expected);
    }

    #[test]
    fn nothing_goes_on_below_the_leaf() {
        let parents = [None, Some(0), Some(1), Some(2), Some(1), Some(4), Some(4)];
        let expected = ["0*", "1*", "├─2", "│ 3", "╰─4", "  ├─5", "  6"];
        assert_eq!(picture(&forest(&parents, Some(1)), Fold::LongRuns), expected);
    }

    #[test]
    fn the_root_of_the_active_path_is_the_last_one() {
        let parents = [None, None, Some(0), None, Some(1)];
        assert_eq!(picture(&forest(&parents, Some(2)), Fold::LongRuns), ["1", "4", "", "3", "", "0*", "2*"]);
        assert_eq!(picture(&forest(&parents, None), Fold::LongRuns), ["0", "2", "", "1", "4", "", "3"]);
    }

    #[test]
    fn the_middle_of_a_long_run_is_one_row() {
        let run = |length: u32| {
            let mut nodes: Vec<Node> =
                (0..length).map(|number| Node { parent: number.checked_sub(1), weight: Weight::Plain }).collect();
            nodes[4].weight = Weight::User;
            Forest::new(nodes, Some(length - 1))
        };
        let expected = ["0*", "1*", "2*", "4 (1)", "7*", "8*", "9*", "10*"];
        assert_eq!(picture(&run(11), Fold::LongRuns), expected);
        assert_eq!(picture(&run(11), Fold::Nothing).len(), 11);
        assert_eq!(picture(&run(10), Fold::LongRuns).len(), 10);
        let mut nodes = run(30).nodes;
        nodes[15].weight = Weight::Landmark;
        let rows = picture(&Forest::new(nodes, Some(29)), Fold::LongRuns);
        assert_eq!(rows.len(), 16, "{rows:?}");
        assert_eq!((&rows[3], &rows[7], &rows[11]), (&"9 (1)".to_owned(), &"15*".to_owned(), &"7 (0)".to_owned()));
    }

    /// The continuation of each entry is a tip, and everything else is a branch of it.
    #[test]
    fn a_deep_tree_needs_no_deep_stack() {
        const LEVELS: u32 = 100_000;
        let tips = (0..LEVELS).rev().map(Some);
        let parents: Vec<Option<u32>> = (0..LEVELS).map(|number| number.checked_sub(1)).chain(tips).collect();
        let (mut rows, mut deepest) = (0, 0);
        let drawn: Result<(), Infallible> = forest(&parents, None).draw(Fold::Nothing, |row| {
            (rows, deepest) = (rows + 1, deepest.max(row.bars.len()));
            Ok(())
        });
        assert_eq!((drawn, rows, deepest), (Ok(()), 2 * LEVELS, LEVELS as usize - 1));
    }

    proptest! {
        /// Each entry is drawn once, below its parent, and the column of the active path is the leftmost.
        #[test]
        fn every_entry_is_drawn_once_below_its_parent(
            seeds in proptest::collection::vec(any::<u32>(), 1..60),
            leaf in any::<prop::sample::Index>(),
        ) {
            let parent = |(number, seed): (usize, &u32)| match number {
                0 => None,
                _ if seed % 17 == 0 => None,
                _ => Some(number as u32 - 1 - (seed / 17) % (number as u32).min(6)),
            };
            let parents: Vec<Option<u32>> = seeds.iter().enumerate().map(parent).collect();
            let forest = forest(&parents, Some(leaf.index(parents.len()) as u32));
            let mut seen: Vec<u32> = Vec::new();
            let drawn: Result<(), Infallible> = forest.draw(Fold::Nothing, |row| {
                if let Item::Entry(number) = row.item {
                    if let Some(parent) = parents[number as usize] {
                        assert!(seen.contains(&parent));
                    }
                    assert!(!forest.is_on_path(number) || row.bars.is_empty());
                    assert!(!row.joins || !row.bars.is_empty());
                    seen.push(number);
                }
                Ok(())
            });
            prop_assert_eq!(drawn, Ok(()));
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..parents.len() as u32).collect::<Vec<_>>());
        }
    }
}
