//! Makes a failing list of actions shorter and its actions simpler. The result repeats: the same list and the same predicate
//! give the same result.

/// A search with a limited number of runs.
pub struct Search {
    /// Runs so far.
    runs: u32,
    /// The most runs.
    most: u32,
}

impl Search {
    /// A search of at most this number of runs.
    #[must_use]
    pub fn of(most: u32) -> Self {
        Self { runs: 0, most }
    }

    /// Runs so far.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Whether no run is left. The result may then be larger than necessary.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.runs >= self.most
    }

    /// The smallest failing list that the search finds from a failing one. `simpler` gives simpler forms of an action, the
    /// simplest first; each has to be simpler by a measure that ends.
    pub fn smallest<A: Clone>(
        &mut self,
        mut actions: Vec<A>,
        simpler: &dyn Fn(&A) -> Vec<A>,
        fails: &mut dyn FnMut(&[A]) -> bool,
    ) -> Vec<A> {
        // A simpler action may make others unnecessary.
        while self.drop_actions(&mut actions, fails) | self.simplify(&mut actions, simpler, fails) {}
        actions
    }

    /// The simplest failing form of a value that fails, as [`Self::smallest`] for one action.
    pub fn simplest<T>(
        &mut self,
        mut value: T,
        simpler: &dyn Fn(&T) -> Vec<T>,
        fails: &mut dyn FnMut(&T) -> bool,
    ) -> T {
        while let Some(next) = simpler(&value).into_iter().find(|candidate| self.run(|| fails(candidate))) {
            value = next;
        }
        value
    }

    /// Drops every chunk of actions that the failure does not need, from halves down to single actions and from the last
    /// chunk to the first: most actions after the failure are unnecessary. Returns whether an action was dropped.
    fn drop_actions<A: Clone>(&mut self, actions: &mut Vec<A>, fails: &mut dyn FnMut(&[A]) -> bool) -> bool {
        let before = actions.len();
        let mut size = before.div_ceil(2);
        while size > 0 {
            let count = actions.len();
            let mut end = count;
            while end > 0 {
                let start = end.saturating_sub(size);
                let rest = [&actions[..start], &actions[end..]].concat();
                if self.run(|| fails(&rest)) {
                    *actions = rest;
                }
                end = start;
            }
            // The last pass is repeated until each of the actions is needed.
            if size > 1 || actions.len() == count {
                size /= 2;
            }
        }
        actions.len() < before
    }

    /// Replaces each action by its simplest form with which the list fails. Returns whether one was replaced.
    fn simplify<A: Clone>(
        &mut self,
        actions: &mut [A],
        simpler: &dyn Fn(&A) -> Vec<A>,
        fails: &mut dyn FnMut(&[A]) -> bool,
    ) -> bool {
        let mut replaced = false;
        for at in (0..actions.len()).rev() {
            let mut list = actions.to_vec();
            actions[at] = self.simplest(actions[at].clone(), simpler, &mut |candidate| {
                list[at] = candidate.clone();
                let fails = fails(&list);
                replaced |= fails;
                fails
            });
        }
        replaced
    }

    /// Runs once if a run is left.
    fn run(&mut self, fails: impl FnOnce() -> bool) -> bool {
        if self.is_spent() {
            return false;
        }
        self.runs += 1;
        fails()
    }
}

/// Smaller numbers for a search: 0, then closer and closer to the number.
#[must_use]
pub fn smaller(number: u64) -> Vec<u64> {
    std::iter::successors(Some(number), |step| Some(step / 2))
        .take_while(|step| *step > 0)
        .map(|step| number - step)
        .collect()
}

/// Shorter lists for a search: empty, halves, without one element, and with one simpler element. Keeps at least `least`
/// elements.
#[must_use]
pub fn shorter<T: Clone>(list: &[T], least: usize, simpler: &dyn Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let count = list.len();
    let mut candidates = Vec::new();
    if count > least {
        candidates.push(list[count - least..].to_vec());
        candidates.extend([list[..count / 2].to_vec(), list[count / 2..].to_vec()]);
        candidates.extend((0..count).map(|at| [&list[..at], &list[at + 1..]].concat()));
        candidates.retain(|candidate| (least..count).contains(&candidate.len()));
    }
    for (at, element) in list.iter().enumerate() {
        candidates.extend(simpler(element).into_iter().map(|simpler| {
            let mut candidate = list.to_vec();
            candidate[at] = simpler;
            candidate
        }));
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs that suffice for every test.
    const MANY: u32 = 10_000;

    fn shrunk(actions: Vec<u64>, fails: impl Fn(&[u64]) -> bool) -> Vec<u64> {
        let mut search = Search::of(MANY);
        let shrunk = search.smallest(actions, &|action| smaller(*action), &mut |actions| fails(actions));
        assert!(!search.is_spent());
        shrunk
    }

    #[test]
    fn the_one_necessary_action_remains() {
        for at in [0, 1, 49, 98, 99] {
            let mut actions = vec![0; 100];
            actions[at] = 7;
            assert_eq!(shrunk(actions, |actions| actions.contains(&7)), [7]);
        }
    }

    #[test]
    fn two_actions_far_apart_remain_in_their_order() {
        let actions: Vec<u64> = (0..100).collect();
        let fails = |actions: &[u64]| {
            let place = |wanted| actions.iter().position(|action| *action == wanted);
            matches!((place(3), place(96)), (Some(first), Some(second)) if first < second)
        };
        assert_eq!(shrunk(actions, fails), [3, 96]);
    }

    #[test]
    fn numbers_become_the_smallest_that_fail() {
        let actions = vec![5, 900_000, 12, 77_777, 0];
        assert_eq!(shrunk(actions, |actions| actions.iter().filter(|it| **it >= 1_234).count() > 1), [1_234, 1_234]);
        assert_eq!(shrunk(vec![40; 5], |actions| actions.iter().sum::<u64>() >= 60), [40, 20]);
    }

    #[test]
    fn a_list_that_always_fails_becomes_empty() {
        assert_eq!(shrunk((0..50).collect(), |_| true), [0; 0]);
        assert_eq!(shrunk(Vec::new(), |_| true), [0; 0]);
    }

    #[test]
    fn actions_that_were_needed_by_others_go_after_them() {
        // Each number needs the next one; only the first is necessary when it is below 10.
        let fails = |actions: &[u64]| match actions {
            [first, rest @ ..] => *first < 10 || rest.first() == Some(&(first + 1)),
            [] => false,
        };
        assert_eq!(shrunk(vec![20, 21, 22, 23], fails), [0]);
    }

    #[test]
    fn a_search_without_runs_gives_a_list_that_fails() {
        for most in 0..200 {
            let (mut search, mut runs) = (Search::of(most), 0);
            let fails = |actions: &[u64]| actions.contains(&90) && actions.iter().any(|it| *it > 30 && it % 7 == 2);
            let list = search.smallest((0..100).collect(), &|action| smaller(*action), &mut |actions| {
                runs += 1;
                fails(actions)
            });
            assert!(fails(&list) && runs <= most && runs == search.runs(), "{most}: {runs} runs, {list:?}");
        }
    }

    #[test]
    fn the_same_search_gives_the_same_list() {
        // Fails for many lists, so that the order of attempts decides.
        let once = || shrunk((0..60).map(|it| it * 37 % 61).collect(), |it| it.iter().sum::<u64>() % 13 > 6);
        assert_eq!(once(), once());
    }

    #[test]
    fn candidates_are_simpler_than_their_origin() {
        assert_eq!(smaller(0), [0; 0]);
        assert_eq!(smaller(1), [0]);
        assert_eq!(smaller(100), [0, 50, 75, 88, 94, 97, 99]);
        let size = |list: &[u64]| list.len() as u64 * 1_000 + list.iter().sum::<u64>();
        for least in 0..3 {
            for list in [vec![], vec![4], vec![4, 0], vec![1, 2, 3]] {
                for candidate in shorter(&list, least, &|number| smaller(*number)) {
                    assert!(
                        size(&candidate) < size(&list) && candidate.len() >= least.min(list.len()),
                        "{candidate:?}"
                    );
                }
            }
        }
    }
}
