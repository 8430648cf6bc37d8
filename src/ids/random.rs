//! Numbers that repeat with their seed.

/// The generator of Steele, Lea and Flood (2014), with the constants of its reference implementation. A number repeats only
/// after all 2^64. The sequence never changes: the ids of a recorded session depend on it. It is no source of secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw().checked_rem(end).unwrap_or(0)
    }

    /// One of the choices. None where there is none.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let at = self.below(choices.len() as u64);
        choices.get(usize::try_from(at).ok()?)
    }

    /// A generator with a sequence of its own.
    pub fn fork(&mut self) -> Self {
        Self(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_one_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!([random.draw(), random.draw()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_choice_stays_in_its_range_and_reaches_all_of_it() {
        let mut random = SplitMix64::new(7);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| random.below(5)).collect();
        assert_eq!(drawn, (0..5).collect());
        assert_eq!((random.below(0), random.one_of::<u8>(&[]), random.one_of(&[3])), (0, None, Some(&3)));
    }
}
