//! Several attempts at one check become one conclusion.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::judge::{Reason, Verdict};

/// The verdict of a check with its reason, and whether attempts disagreed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conclusion {
    pub verdict: Verdict,
    pub reason: Reason,
    /// Whether attempts came to different conclusions about the cluster.
    pub flaky: bool,
    /// How many repetitions came to which verdict; empty for a check that was not repeated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub repeated: BTreeMap<Verdict, u32>,
}

/// Whether a verdict says something of the cluster that another attempt has to confirm.
pub fn is_news(verdict: Verdict) -> bool {
    verdict.is_conclusive() && !verdict.is_expected()
}

/// The conclusion of all attempts, in their order.
///
/// The last conclusive attempt decides if its verdict is expected. News (a failure, a warning, a lifted
/// limitation) decides once two attempts agree on it; until then the check is inconclusive, for the reason of
/// its last inconclusive attempt. Attempts that disagree make a check flaky, and so do rounds within one that
/// `came_apart` and held again; inconclusive attempts do not: they are errors of our own. Attempts before one
/// that found a change in what the check depends on count for nothing: the change may explain them.
pub fn conclude(attempts: &[(Verdict, Reason)], came_apart: bool) -> Option<Conclusion> {
    let changed = attempts
        .iter()
        .rposition(|(_, reason)| reason.is_of_a_change());
    let conclusive: Vec<_> = attempts[changed.unwrap_or_default()..]
        .iter()
        .filter(|(verdict, _)| verdict.is_conclusive())
        .collect();
    let agreed = |one: &&&(Verdict, Reason)| {
        let agree = conclusive.iter().filter(|other| other.0 == one.0);
        agree.count() > 1
    };
    let last = attempts.last()?;
    let (verdict, reason) = match conclusive.last() {
        None => (last.0, &last.1),
        Some((verdict, reason)) if !is_news(*verdict) => (*verdict, reason),
        Some((_, news)) => match conclusive.iter().rev().find(agreed) {
            Some((verdict, reason)) => (*verdict, reason),
            None => {
                let mut errors = attempts.iter().rev();
                let error = errors.find(|(verdict, _)| *verdict == Verdict::Inconclusive);
                (
                    Verdict::Inconclusive,
                    error.map_or(news, |(_, reason)| reason),
                )
            }
        },
    };
    let held = came_apart && verdict.is_expected();
    let disagreed = held || conclusive.iter().any(|(other, _)| *other != verdict);
    Some(Conclusion {
        verdict,
        reason: reason.clone(),
        flaky: verdict.is_conclusive() && disagreed,
        repeated: BTreeMap::new(),
    })
}

/// Whether an attempt gave news that no other has confirmed or refuted yet.
pub fn is_unconfirmed(attempts: &[(Verdict, Reason)]) -> bool {
    let news = attempts.iter().any(|(verdict, _)| is_news(*verdict));
    let concluded = conclude(attempts, false);
    news && concluded.is_some_and(|concluded| !concluded.verdict.is_conclusive())
}

/// A repeated check is conclusive only if at most one repetition in so many was not.
const UNTOLD_AT_MOST_ONE_IN: u32 = 20;

/// Verdicts on the cluster, the worst first.
const WORST_FIRST: [Verdict; 6] = [
    Verdict::Fail,
    Verdict::Warn,
    Verdict::LimitationLifted,
    Verdict::KnownLimitation,
    Verdict::Informational,
    Verdict::Pass,
];

/// The conclusions of repetitions, by verdict; as large after a thousand of them as after ten.
#[derive(Clone, Debug, Default)]
pub struct Repeated {
    /// For each verdict its latest conclusion, and how many repetitions came to it.
    latest: BTreeMap<Verdict, (Conclusion, u32)>,
    last: Option<Verdict>,
    any_flaky: bool,
}

impl Repeated {
    /// Adds the conclusion of the next repetition.
    pub fn add(&mut self, one: Conclusion) {
        self.last = Some(one.verdict);
        self.any_flaky |= one.flaky;
        let count = self.latest.get(&one.verdict).map_or(0, |(_, count)| *count);
        self.latest.insert(one.verdict, (one, count + 1));
    }

    pub fn last(&self) -> Option<&Conclusion> {
        self.found(self.last?)
    }

    fn found(&self, verdict: Verdict) -> Option<&Conclusion> {
        self.latest.get(&verdict).map(|(one, _)| one)
    }

    /// The conclusion of all repetitions: the worst conclusive one.
    ///
    /// Unless that is a failure, the check is inconclusive if its last repetition was, or if one was and more
    /// than one in 20 were inconclusive or skipped. If more than one in 20 were skipped and none gave news,
    /// it is skipped. What was not observed does not count as good, while a passing outage of the API server
    /// does not undo a long run. The check is flaky if repetitions disagree, or attempts within one.
    pub fn conclude(&self) -> Option<Conclusion> {
        let last = self.last()?;
        let latest = |verdict| self.found(verdict);
        let worst = WORST_FIRST.into_iter().find_map(latest);
        let counts = self
            .latest
            .iter()
            .map(|(verdict, (_, count))| (*verdict, *count));
        let mut repeated: BTreeMap<_, _> = counts.collect();
        let total: u32 = repeated.values().sum();
        let unclear = repeated
            .iter()
            .filter(|(verdict, _)| !verdict.is_conclusive());
        let unclear: u32 = unclear.map(|(_, count)| count).sum();
        let many = unclear * UNTOLD_AT_MOST_ONE_IN > total;
        let broken =
            latest(Verdict::Inconclusive).filter(|_| many || last.verdict == Verdict::Inconclusive);
        // News counts, whatever was skipped beside it
        let decides = latest(Verdict::Fail)
            .or(broken)
            .or(latest(Verdict::Warn))
            .or(latest(Verdict::LimitationLifted))
            .or(latest(Verdict::Skip).filter(|_| many))
            .or(worst)
            .unwrap_or(last);
        let differs = |verdict: &Verdict| {
            let counted = verdict.is_conclusive() || decides.verdict == Verdict::Skip;
            counted && worst.is_some_and(|worst| worst.verdict != *verdict)
        };
        let flaky = self.any_flaky || repeated.keys().any(differs);
        if total == 1 {
            repeated.clear();
        }
        Some(Conclusion {
            flaky,
            repeated,
            ..decides.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::ErrorKind;
    use std::collections::BTreeSet;

    fn folded(all: impl IntoIterator<Item = Conclusion>) -> Repeated {
        let mut folded = Repeated::default();
        all.into_iter().for_each(|one| folded.add(one));
        folded
    }

    fn attempts(verdicts: &[Verdict]) -> Vec<(Verdict, Reason)> {
        let reason = Reason::ObservationError(ErrorKind::ExecTransport.error("cut"));
        verdicts.iter().map(|v| (*v, reason.clone())).collect()
    }

    fn concluded(verdicts: &[Verdict]) -> Option<(Verdict, bool)> {
        conclude(&attempts(verdicts), false).map(|c| (c.verdict, c.flaky))
    }

    fn unconfirmed(verdicts: &[Verdict]) -> bool {
        is_unconfirmed(&attempts(verdicts))
    }

    #[test]
    fn the_last_that_tells_counts() {
        use Verdict::{Fail, Inconclusive, Pass};
        assert_eq!(concluded(&[]), None);
        assert_eq!(concluded(&[Fail, Fail]), Some((Fail, false)));
        assert_eq!(concluded(&[Fail, Pass]), Some((Pass, true)));
        assert_eq!(concluded(&[Inconclusive, Pass]), Some((Pass, false)));
        assert_eq!(
            concluded(&[Inconclusive, Inconclusive]),
            Some((Inconclusive, false))
        );
        assert!(!unconfirmed(&[Inconclusive, Inconclusive]) && !unconfirmed(&[Pass]));
    }

    #[test]
    fn news_counts_only_when_a_second_attempt_confirms_it() {
        use Verdict::{Fail, Inconclusive, KnownLimitation, LimitationLifted, Pass, Skip, Warn};
        for news in [Fail, Warn, LimitationLifted] {
            for (attempts, verdict) in [
                (&[news][..], Inconclusive),
                (&[news, Inconclusive], Inconclusive),
                (&[Inconclusive, news], Inconclusive),
                (&[news, Skip], Inconclusive),
                (
                    &[news, Inconclusive, Inconclusive, Inconclusive],
                    Inconclusive,
                ),
                (&[news, news], news),
                (&[news, Inconclusive, news], news),
                (&[Inconclusive, news, Inconclusive, news], news),
            ] {
                assert_eq!(concluded(attempts), Some((verdict, false)), "{attempts:?}");
                assert_eq!(
                    unconfirmed(attempts),
                    verdict == Inconclusive,
                    "{attempts:?}"
                );
            }
            assert_eq!(concluded(&[news, Inconclusive, Pass]), Some((Pass, true)));
        }
        let apart = |verdicts: &[Verdict]| {
            conclude(&attempts(verdicts), true).map(|c| (c.verdict, c.flaky))
        };
        assert_eq!(apart(&[Pass]), Some((Pass, true)));
        assert_eq!(apart(&[Fail, Fail]), Some((Fail, false)));
        assert_eq!(
            apart(&[Inconclusive, Inconclusive]),
            Some((Inconclusive, false))
        );
        let lifted = [LimitationLifted, KnownLimitation];
        assert_eq!(concluded(&lifted), Some((KnownLimitation, true)));
        let other = [LimitationLifted, Fail, LimitationLifted];
        assert_eq!(concluded(&other), Some((LimitationLifted, true)));
        assert_eq!(concluded(&other[..2]), Some((Inconclusive, false)));
    }

    #[test]
    fn what_was_seen_before_its_ground_changed_counts_for_nothing() {
        use Verdict::{Fail, Inconclusive, Pass};
        let reason = |kind: ErrorKind| Reason::ObservationError(kind.error("a node was booted"));
        let (changed, cut) = (ErrorKind::FixtureChanged, ErrorKind::ExecTransport);
        for (attempts, verdict) in [
            ([(Fail, cut), (Inconclusive, changed)], Inconclusive),
            ([(Inconclusive, changed), (Fail, cut)], Inconclusive),
            ([(Inconclusive, changed), (Pass, cut)], Pass),
        ] {
            let attempts = attempts.map(|(verdict, kind)| (verdict, reason(kind)));
            let concluded = conclude(&attempts, false).expect("there are attempts");
            assert_eq!((concluded.verdict, concluded.flaky), (verdict, false));
            let why = if verdict == Inconclusive {
                changed
            } else {
                cut
            };
            assert_eq!(concluded.reason, reason(why));
        }
    }

    #[test]
    fn of_repetitions_the_worst_that_tells_counts() {
        use Verdict::{Fail, Inconclusive, Informational, KnownLimitation, LimitationLifted, Pass};
        let of = |repetitions: &[&[Verdict]]| {
            let each = |verdicts: &&[Verdict]| conclude(&attempts(verdicts), false);
            let concluded = folded(repetitions.iter().filter_map(each)).conclude();
            concluded.map(|c| (c.verdict, c.flaky, c.repeated))
        };
        let counts = |counts: &[(Verdict, u32)]| counts.iter().copied().collect();
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&[Pass]]), Some((Pass, false, counts(&[]))));
        let told = Some((Fail, true, counts(&[(Pass, 2), (Fail, 1)])));
        assert_eq!(of(&[&[Pass], &[Fail, Fail], &[Pass]]), told);
        let told = Some((Pass, true, counts(&[(Pass, 2)])));
        assert_eq!(of(&[&[Fail, Pass], &[Pass]]), told);
        let told = Some((
            LimitationLifted,
            true,
            counts(&[(KnownLimitation, 1), (LimitationLifted, 1)]),
        ));
        assert_eq!(of(&[&[LimitationLifted; 2], &[KnownLimitation]]), told);
        assert_eq!(
            of(&[&[Inconclusive], &[Inconclusive]]),
            Some((Inconclusive, false, counts(&[(Inconclusive, 2)])))
        );
        let told = Some((Informational, false, counts(&[(Informational, 2)])));
        assert_eq!(of(&[&[Informational], &[Informational]]), told);
        // Each verdict on the cluster has its place
        for &verdict in Verdict::ALL {
            assert_eq!(
                WORST_FIRST.contains(&verdict),
                verdict.is_conclusive(),
                "{verdict:?}"
            );
        }
    }

    #[test]
    fn what_most_repetitions_told_counts_unless_too_many_or_the_last_told_nothing() {
        use Verdict::{Fail, Inconclusive, Pass, Skip, Warn};
        let one = |verdict| Conclusion {
            verdict,
            reason: Reason::ObservationError(ErrorKind::ExecTransport.error("cut")),
            flaky: false,
            repeated: BTreeMap::new(),
        };
        let of = |runs: &[(Verdict, usize)]| {
            let all = runs
                .iter()
                .flat_map(|(verdict, times)| vec![one(*verdict); *times]);
            let folded = folded(all);
            assert_eq!(
                folded.latest.len(),
                runs.iter()
                    .map(|(verdict, _)| verdict)
                    .collect::<BTreeSet<_>>()
                    .len()
            );
            folded.conclude().map(|c| (c.verdict, c.flaky))
        };
        for (runs, verdict, flaky) in [
            (&[(Pass, 2), (Inconclusive, 2)][..], Inconclusive, false),
            (&[(Pass, 1), (Inconclusive, 3)], Inconclusive, false),
            (
                &[(Pass, 1), (Inconclusive, 1), (Pass, 17)],
                Inconclusive,
                false,
            ),
            (&[(Pass, 1), (Inconclusive, 1), (Pass, 18)], Pass, false),
            (&[(Pass, 1), (Inconclusive, 5), (Pass, 94)], Pass, false),
            (
                &[(Pass, 1), (Inconclusive, 6), (Pass, 93)],
                Inconclusive,
                false,
            ),
            (&[(Pass, 999), (Inconclusive, 1)], Inconclusive, false),
            (&[(Pass, 1), (Fail, 1), (Inconclusive, 9)], Fail, true),
            (&[(Pass, 1), (Skip, 9)], Skip, true),
            (&[(Pass, 19), (Skip, 1)], Pass, false),
            (
                &[(Pass, 18), (Skip, 1), (Inconclusive, 1)],
                Inconclusive,
                false,
            ),
            (&[(Skip, 9)], Skip, false),
            (&[(Warn, 18), (Skip, 2)], Warn, false),
        ] {
            assert_eq!(of(runs), Some((verdict, flaky)), "{runs:?}");
        }
    }
}
