//! What a run could do on a cluster, before it starts: the server, its nodes, missing permissions
//! and the checks they cost, and what would be skipped.

mod json;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::facts::Facts;
use crate::method::{ErrorKind, SourceKind};
use crate::plan::{Access, Answer, Check, Disposition, Plan, Purpose, Shortage, Uses};

/// Minor versions of Kubernetes 1 that the expectations were written for.
pub const EXPECTED: RangeInclusive<u64> = 24..=38;

/// The first version whose API server ends the standard input of an exec over WebSocket: v5.channel.k8s.io
/// (KEP-4006, `TranslateStreamCloseWebsocketRequests`, which is on by default from then on).
const EXEC: semver::Version = semver::Version::new(1, 30, 0);

/// Why a check from a pod or a node cannot be observed on an older server.
const OLD_EXEC: &str = "before Kubernetes 1.30 the server cannot end the standard input of programs in pods, by \
                        which they get what to observe";

/// Everything that a preflight finds out.
#[derive(Clone, Debug)]
pub struct Preflight {
    pub context: String,
    /// What the cluster says of itself.
    pub facts: Facts,
    pub plan: Plan,
    pub uses: Uses,
    /// What the nodes lack for the run.
    pub shortages: Vec<Shortage>,
    /// The server's answer for each access.
    pub answers: BTreeMap<Access, Answer>,
}

/// An access that is not known to be allowed, and the consequences.
#[derive(Clone, Debug)]
struct Lack<'p> {
    access: Access,
    answer: &'p Answer,
    /// The checks that would be inconclusive.
    costs: Vec<&'p Check>,
    /// The facts that would be unknown.
    facts: BTreeSet<&'static str>,
    /// Whether something could be left behind.
    leaves: bool,
    /// Whether a run that creates anything could not begin.
    lease: bool,
    /// Whether a run could not notice that a node falls silent.
    silence: bool,
}

/// What would become of a check.
enum Prospect {
    Run,
    Forbidden,
    Inconclusive(String),
    Skipped(String),
}

impl Preflight {
    /// Whether the run fits on the nodes, every check that is not skipped can be observed, and nothing would be
    /// left behind.
    pub fn is_ready(&self) -> bool {
        let lacks = self.lacks();
        let mut prospects = self.plan.checks.iter().map(|it| self.prospect(it, &lacks));
        self.shortages.is_empty()
            && !lacks.iter().any(|lack| lack.leaves)
            && prospects.all(|one| matches!(one, Prospect::Run | Prospect::Skipped(_)))
    }

    /// What is not known to be allowed, sorted by access.
    fn lacks(&self) -> Vec<Lack<'_>> {
        let mut lacks: BTreeMap<Access, Lack<'_>> = BTreeMap::new();
        for need in self.uses.of_plan(&self.plan) {
            let answer = match self.answers.get(&need.access) {
                Some(Answer::Allowed) => continue,
                Some(answer) => answer,
                None => &NOT_ASKED,
            };
            let lack = lacks.entry(need.access.clone()).or_insert_with(|| Lack {
                access: need.access,
                answer,
                costs: Vec::new(),
                facts: BTreeSet::new(),
                leaves: false,
                lease: false,
                silence: false,
            });
            match need.purpose {
                Purpose::Fact(fact) => {
                    lack.facts.insert(fact);
                }
                Purpose::Removal => lack.leaves = true,
                Purpose::Lease => lack.lease = true,
                Purpose::Silence => lack.silence = true,
                Purpose::Observe | Purpose::Fixture(_) | Purpose::Diagnosis => {}
            }
        }
        for check in &self.plan.checks {
            if !can_be_costed(check) {
                continue;
            }
            let needs = self.uses.of_check(check);
            let breaking = needs.iter().filter(|need| {
                !matches!(
                    need.purpose,
                    Purpose::Removal | Purpose::Diagnosis | Purpose::Silence
                )
            });
            let accesses: BTreeSet<_> = breaking.map(|need| &need.access).collect();
            for (access, lack) in &mut lacks {
                // Without its Lease a run does not begin, whatever else the access is for
                if lack.lease || accesses.contains(access) {
                    lack.costs.push(check);
                }
            }
        }
        lacks.into_values().collect()
    }

    fn prospect(&self, check: &Check, lacks: &[Lack<'_>]) -> Prospect {
        let costed = lacks
            .iter()
            .any(|lack| lack.costs.iter().any(|costed| costed.id == check.id));
        match &check.disposition {
            Disposition::Skip(reason) => Prospect::Skipped(reason.to_string()),
            _ if costed => Prospect::Forbidden,
            Disposition::Inconclusive(error) => Prospect::Inconclusive(error.to_string()),
            Disposition::Observe if self.needs_newer_exec(check) => {
                Prospect::Inconclusive(OLD_EXEC.to_owned())
            }
            Disposition::Observe => Prospect::Run,
        }
    }

    /// Whether a check runs a program in a pod, and the server is too old for its input.
    fn needs_newer_exec(&self, check: &Check) -> bool {
        let from = check.assertions.iter().filter_map(|it| it.from.as_ref());
        let mut kinds = from.map(|from| from.kind);
        let is_old = |version: semver::Version| version < EXEC;
        self.facts.kubernetes().is_some_and(is_old) && kinds.any(|kind| kind != SourceKind::Outside)
    }

    fn version_is_expected(&self) -> Option<bool> {
        let version = self.facts.kubernetes()?;
        Some(version.major == 1 && EXPECTED.contains(&version.minor))
    }
}

/// The answer for an access that no review asked about: a defect of the caller, not a permission.
static NOT_ASKED: Answer = Answer::Unknown(String::new());

/// Whether a lack of permission can make a check inconclusive.
fn can_be_costed(check: &Check) -> bool {
    match &check.disposition {
        Disposition::Observe => true,
        Disposition::Skip(_) => false,
        Disposition::Inconclusive(error) => error.kind == ErrorKind::Forbidden,
    }
}
