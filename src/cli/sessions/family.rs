//! Sessions that were made from each other: their parents, and the order in which they stand below them.

use crate::cli::watch::row::Row;
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

/// The session that another one was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parent {
    /// The session of this number in the list.
    Listed(usize),
    /// A session that is not in the list, by the id in the name of its file.
    Elsewhere(String),
}

/// The parent of each session, by its number in the list. A chain of parents ends at a session without one.
pub(super) fn parents(rows: &[Row]) -> Vec<Option<Parent>> {
    let by_path: HashMap<&Path, usize> = rows.iter().enumerate().map(|(at, row)| (Path::new(&row.path), at)).collect();
    let by_id: HashMap<&str, usize> = rows.iter().enumerate().map(|(at, row)| (row.session_id.as_str(), at)).collect();
    let parent = |(at, row): (usize, &Row)| {
        let path = Path::new(row.parent_session.as_deref().filter(|path| !path.is_empty())?);
        let id = id_in_name(path);
        // The file of a session that was moved keeps its name.
        let listed = by_path.get(path).or_else(|| by_id.get(id.as_str())).copied();
        match listed {
            Some(listed) if listed == at => None,
            Some(listed) => Some(Parent::Listed(listed)),
            None => Some(Parent::Elsewhere(id)),
        }
    };
    let mut parents: Vec<Option<Parent>> = rows.iter().enumerate().map(parent).collect();
    // Headers may say anything. The link that closes a circle is cut.
    let mut ends_well: HashSet<usize> = HashSet::new();
    for start in 0..parents.len() {
        let (mut here, mut walked) = (start, HashSet::from([start]));
        while let Some(Parent::Listed(parent)) = parents[here] {
            if ends_well.contains(&parent) {
                break;
            }
            if !walked.insert(parent) {
                parents[here] = None;
                break;
            }
            here = parent;
        }
        ends_well.extend(walked);
    }
    parents
}

/// The id in the name of a session file: `<time>_<id>.jsonl`.
fn id_in_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('_').map_or(&*name, |(_, id)| id).to_owned()
}

/// A session in its place below its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its number in the list.
    pub number: usize,
    /// For each session above it, whether another child of that one follows below.
    pub bars: Vec<bool>,
}

/// The first `shown` sessions of the list, each below its parent where that is shown too. The family of the newest session is
/// the first one, and the newest child of a session stands first.
pub(super) fn families(parents: &[Option<Parent>], shown: usize) -> Vec<Member> {
    let parent = |number: usize| match parents[number] {
        Some(Parent::Listed(parent)) if parent < shown => Some(parent),
        _ => None,
    };
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for number in 0..shown {
        if let Some(parent) = parent(number) {
            children.entry(parent).or_default().push(number);
        }
    }
    let root = |number: usize| std::iter::successors(Some(number), |number| parent(*number)).last().unwrap_or(number);
    let mut members = Vec::new();
    let mut done: HashSet<usize> = HashSet::new();
    for number in 0..shown {
        let root = root(number);
        if !done.insert(root) {
            continue;
        }
        let mut rest = vec![Member { number: root, bars: Vec::new() }];
        while let Some(member) = rest.pop() {
            let below = children.get(&member.number).map_or(&[][..], Vec::as_slice);
            rest.extend(below.iter().enumerate().rev().map(|(at, child)| {
                let mut bars = member.bars.clone();
                bars.push(at + 1 < below.len());
                Member { number: *child, bars }
            }));
            members.push(member);
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::watch::row::tests::row;

    /// Sessions, the newest one first, with the paths of their parents.
    fn rows(sessions: &[(&str, Option<&str>)]) -> Vec<Row> {
        let row = |(name, parent): &(&str, Option<&str>)| Row {
            parent_session: parent.map(str::to_owned),
            path: format!("/data/2026_{name}.jsonl"),
            ..row(name, 0)
        };
        sessions.iter().map(row).collect()
    }

    fn order(parents: &[Option<Parent>], shown: usize) -> Vec<(usize, String)> {
        let bars = |member: &Member| member.bars.iter().map(|bar| if *bar { '|' } else { '.' }).collect();
        families(parents, shown).iter().map(|member| (member.number, bars(member))).collect()
    }

    #[test]
    fn a_parent_is_found_by_its_path_or_by_the_id_in_its_name() {
        let rows = rows(&[
            ("a", Some("/data/2026_b.jsonl")),
            ("b", Some("/moved/2025_c.jsonl")),
            ("c", Some("/gone/2024_d.jsonl")),
            ("e", Some("c")),
            ("f", Some("")),
            ("g", Some("/data/2026_g.jsonl")),
            ("h", None),
        ]);
        let listed = |number| Some(Parent::Listed(number));
        let expected = [listed(1), listed(2), Some(Parent::Elsewhere("d".to_owned())), listed(2), None, None, None];
        assert_eq!(parents(&rows), expected);
    }

    #[test]
    fn a_circle_of_parents_is_cut() {
        let rows = rows(&[("a", Some("b")), ("b", Some("c")), ("c", Some("b")), ("d", Some("a"))]);
        let parents = parents(&rows);
        assert_eq!(families(&parents, 4).len(), 4, "{parents:?}");
    }

    #[test]
    fn children_stand_below_their_parent_and_the_newest_family_first() {
        // A chain 3 → 2 → 0, a fork 4 of 3, and the session 1 alone.
        let parents = parents(&rows(&[
            ("end", Some("middle")),
            ("alone", None),
            ("middle", Some("root")),
            ("root", None),
            ("fork", Some("root")),
        ]));
        let text = |order: Vec<(usize, &str)>| -> Vec<(usize, String)> {
            order.into_iter().map(|(number, bars)| (number, bars.to_owned())).collect()
        };
        assert_eq!(order(&parents, 5), text(vec![(3, ""), (2, "|"), (0, "|."), (4, "."), (1, "")]));
        // The root is not shown: its children stand alone.
        assert_eq!(order(&parents, 3), text(vec![(2, ""), (0, "."), (1, "")]));
        assert_eq!(order(&parents, 0), []);
    }

    #[test]
    fn a_long_chain_is_walked_once() {
        let names: Vec<String> = (0..20_000).map(|number| format!("s{number}")).collect();
        let parents: Vec<Option<Parent>> =
            (0..names.len()).map(|number| (number + 1 < names.len()).then_some(Parent::Listed(number + 1))).collect();
        assert_eq!(families(&parents, 20).len(), 20);
    }
}
