//! What a conclusion weighs: whether it speaks for or against the cluster under a profile.

use strum::IntoStaticStr;

use super::attempts::Conclusion;
use super::judge::Verdict;
use crate::config::Profile;

/// Whether a conclusion speaks for or against the cluster.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Weight {
    For,
    Against,
    /// It says nothing about the cluster.
    Nothing,
}

/// What a conclusion weighs under a profile. An error of our own weighs nothing, whatever the profile:
/// reports count it apart.
pub fn weigh(conclusion: &Conclusion, profile: Profile) -> Weight {
    let counts = match conclusion.verdict {
        Verdict::Skip | Verdict::Inconclusive => return Weight::Nothing,
        Verdict::Fail => true,
        Verdict::Warn => profile.is_strict(),
        // What works though documented not to is no fault of the cluster
        Verdict::Pass
        | Verdict::KnownLimitation
        | Verdict::LimitationLifted
        | Verdict::Informational => false,
    };
    match counts || (conclusion.flaky && profile.is_strict()) {
        true => Weight::Against,
        false => Weight::For,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::method::ErrorKind;
    use crate::verdict::Reason;

    fn row(profile: Profile, flaky: bool) -> Vec<Weight> {
        let weight = |&verdict: &Verdict| {
            let reason = Reason::ObservationError(ErrorKind::ExecTransport.error("cut"));
            let conclusion = Conclusion {
                verdict,
                reason,
                flaky,
                repeated: BTreeMap::new(),
            };
            weigh(&conclusion, profile)
        };
        Verdict::ALL.iter().map(weight).collect()
    }

    #[test]
    fn every_cell_of_the_table() {
        use Verdict::{
            Fail, Inconclusive, Informational, KnownLimitation, LimitationLifted, Pass, Skip, Warn,
        };
        use Weight::{Against as A, For as F, Nothing as N};
        let columns = [
            Pass,
            Fail,
            KnownLimitation,
            LimitationLifted,
            Warn,
            Informational,
            Skip,
            Inconclusive,
        ];
        assert_eq!(Verdict::ALL, columns);
        for (profile, flaky, expected) in [
            (Profile::Default, false, [F, A, F, F, F, F, N, N]),
            (Profile::Default, true, [F, A, F, F, F, F, N, N]),
            (Profile::AirGapped, false, [F, A, F, F, F, F, N, N]),
            (Profile::AirGapped, true, [F, A, F, F, F, F, N, N]),
            (Profile::Strict, false, [F, A, F, F, A, F, N, N]),
            (Profile::Strict, true, [A, A, A, A, A, A, N, N]),
        ] {
            assert_eq!(row(profile, flaky), expected, "{profile}, flaky: {flaky}");
        }
        assert_eq!(Profile::ALL.len(), 3, "a new profile has rows here, too");
    }
}
