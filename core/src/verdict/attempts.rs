//! Several attempts at one check become one conclusion.

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
}

/// The conclusion of all attempts, in their order: the last that says something about the
/// cluster, else the last. Attempts that broke do not make a check flaky: they are our trouble.
pub fn conclude(attempts: &[(Verdict, Because)]) -> Option<Conclusion> {
    let told = || {
        attempts
            .iter()
            .filter(|(verdict, _)| verdict.is_conclusive())
    };
    let (verdict, because) = told().next_back().or(attempts.last())?;
    let flaky = told().any(|(other, _)| other != verdict);
    Some(Conclusion {
        verdict: *verdict,
        because: because.clone(),
        flaky,
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
}
