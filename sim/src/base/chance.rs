//! Seeded chance: the same seed and name give the same number, in whatever order numbers are drawn.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A source of random values that has no state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    seed: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// A duration within 20 % of `about`, fixed by the seed and `name`.
    pub(crate) fn about(self, name: &str, about: Duration) -> Duration {
        about.mul_f64(self.stream(name).random_range(0.8..1.2))
    }

    /// Hexadecimal digits, fixed by the seed and `name`.
    pub(crate) fn hex(self, name: &str, digits: usize) -> String {
        let mut rng = self.stream(name);
        (0..digits)
            .map(|_| char::from_digit(rng.random_range(0..16), 16).expect("below 16"))
            .collect()
    }

    fn stream(self, name: &str) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.seed ^ hash(name))
    }
}

/// FNV-1a: a hash that stays the same between toolchains, unlike std's.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_by_seed_and_name() {
        let minute = Duration::from_mins(1);
        assert_eq!(
            Chance::new(1).about("a", minute),
            Chance::new(1).about("a", minute)
        );
        assert_ne!(
            Chance::new(1).about("a", minute),
            Chance::new(1).about("b", minute)
        );
        assert_ne!(
            Chance::new(1).about("a", minute),
            Chance::new(2).about("a", minute)
        );
        assert_eq!(Chance::new(1).hex("id", 64).len(), 64);
    }
}
