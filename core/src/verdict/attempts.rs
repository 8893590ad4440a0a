//! Several attempts at one check become one conclusion.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::judge::{Because, Verdict};

/// What a check came to, on what it rests, and whether attempts disagreed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conclusion {
    /// The verdict.
    pub verdict: Verdict,
    /// What it rests on.
    pub because: Because,
    /// Whether attempts came to different conclusions about the cluster.
    pub flaky: bool,
    /// How many repetitions came to which verdict; empty where it was not repeated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repeated: BTreeMap<Verdict, u32>,
}

/// The conclusion of all attempts, in their order: the last that says something about the
/// cluster, else the last. Attempts that broke do not make a check flaky: they are our trouble. What
/// was seen before an attempt found that what it rests on had changed may have come of that: it counts
/// for nothing.
pub fn conclude(attempts: &[(Verdict, Because)]) -> Option<Conclusion> {
    let changed = attempts
        .iter()
        .rposition(|(_, because)| because.is_of_a_change());
    let told = || {
        attempts[changed.unwrap_or_default()..]
            .iter()
            .filter(|(verdict, _)| verdict.is_conclusive())
    };
    let (verdict, because) = told().next_back().or(attempts.last())?;
    let flaky = told().any(|(other, _)| other != verdict);
    Some(Conclusion {
        verdict: *verdict,
        because: because.clone(),
        flaky,
        repeated: BTreeMap::new(),
    })
}

/// Verdicts on the cluster, the worst first.
const WORST_FIRST: [Verdict; 6] = [
    Verdict::Fail,
    Verdict::Warn,
    Verdict::LimitationLifted,
    Verdict::KnownLimitation,
    Verdict::Recorded,
    Verdict::Pass,
];

/// The conclusion of all repetitions, each by its own: the worst that says something about the
/// cluster, else the last. It is flaky where repetitions disagree, or attempts within one.
pub fn conclude_repeated(repetitions: &[Conclusion]) -> Option<Conclusion> {
    let found = |verdict| repetitions.iter().rfind(|one| one.verdict == verdict);
    let worst = WORST_FIRST.into_iter().find_map(found);
    let decides = worst.or(repetitions.last())?;
    let mut repeated = BTreeMap::new();
    if repetitions.len() > 1 {
        for one in repetitions {
            *repeated.entry(one.verdict).or_default() += 1;
        }
    }
    let flaky = repetitions
        .iter()
        .any(|one| one.flaky || one.verdict.is_conclusive() && one.verdict != decides.verdict);
    Some(Conclusion {
        flaky,
        repeated,
        ..decides.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::way::{Trouble, TroubleKind};

    fn concluded(attempts: &[Verdict]) -> Option<(Verdict, bool)> {
        let because = Because::Trouble(Trouble::new(TroubleKind::ExecTransport, "cut"));
        let attempts: Vec<_> = attempts.iter().map(|v| (*v, because.clone())).collect();
        conclude(&attempts).map(|c| (c.verdict, c.flaky))
    }

    #[test]
    fn the_last_that_tells_counts() {
        use Verdict::{Broken, Fail, Pass};
        assert_eq!(concluded(&[]), None);
        assert_eq!(concluded(&[Fail, Fail]), Some((Fail, false)));
        assert_eq!(concluded(&[Fail, Pass]), Some((Pass, true)));
        assert_eq!(concluded(&[Broken, Pass]), Some((Pass, false)));
        assert_eq!(concluded(&[Fail, Broken]), Some((Fail, false)));
        assert_eq!(concluded(&[Broken, Broken]), Some((Broken, false)));
    }

    #[test]
    fn what_was_seen_before_its_ground_changed_counts_for_nothing() {
        use Verdict::{Broken, Fail, Pass};
        let because = |kind| Because::Trouble(Trouble::new(kind, "a node was booted"));
        let (changed, cut) = (TroubleKind::FixtureChanged, TroubleKind::ExecTransport);
        for (attempts, verdict) in [
            ([(Fail, cut), (Broken, changed)], Broken),
            ([(Fail, cut), (Broken, cut)], Fail),
            ([(Broken, changed), (Fail, cut)], Fail),
            ([(Broken, changed), (Pass, cut)], Pass),
        ] {
            let attempts = attempts.map(|(verdict, kind)| (verdict, because(kind)));
            let concluded = conclude(&attempts).expect("there are attempts");
            assert_eq!((concluded.verdict, concluded.flaky), (verdict, false));
        }
    }

    #[test]
    fn of_repetitions_the_worst_that_tells_counts() {
        use Verdict::{Broken, Fail, KnownLimitation, LimitationLifted, Pass, Recorded};
        let because = Because::Trouble(Trouble::new(TroubleKind::ExecTransport, "cut"));
        let of = |repetitions: &[&[Verdict]]| {
            let each = |attempts: &&[Verdict]| {
                let attempts: Vec<_> = attempts.iter().map(|v| (*v, because.clone())).collect();
                conclude(&attempts)
            };
            let all: Vec<_> = repetitions.iter().filter_map(each).collect();
            conclude_repeated(&all).map(|c| (c.verdict, c.flaky, c.repeated))
        };
        let counts = |counts: &[(Verdict, u32)]| counts.iter().copied().collect();
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&[Pass]]), Some((Pass, false, counts(&[]))));
        let told = Some((Pass, false, counts(&[(Pass, 2), (Broken, 1)])));
        assert_eq!(of(&[&[Pass], &[Broken], &[Pass]]), told);
        let told = Some((Fail, true, counts(&[(Pass, 2), (Fail, 1)])));
        assert_eq!(of(&[&[Pass], &[Fail, Fail], &[Pass]]), told);
        let told = Some((Pass, true, counts(&[(Pass, 2)])));
        assert_eq!(of(&[&[Fail, Pass], &[Pass]]), told);
        let told = Some((
            LimitationLifted,
            true,
            counts(&[(KnownLimitation, 1), (LimitationLifted, 1)]),
        ));
        assert_eq!(of(&[&[LimitationLifted], &[KnownLimitation]]), told);
        assert_eq!(
            of(&[&[Broken], &[Broken]]),
            Some((Broken, false, counts(&[(Broken, 2)])))
        );
        let told = Some((Recorded, false, counts(&[(Recorded, 2)])));
        assert_eq!(of(&[&[Recorded], &[Recorded]]), told);
        // Each verdict on the cluster has its place
        for verdict in Verdict::ALL {
            assert_eq!(
                WORST_FIRST.contains(&verdict),
                verdict.is_conclusive(),
                "{verdict:?}"
            );
        }
    }
}
