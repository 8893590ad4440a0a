//! What of an earlier run counts in one that goes on with its record.

use std::collections::BTreeSet;

use super::event::Started;
use super::fold::{CheckView, RunView};
use crate::facts::{Facts, Known};
use crate::plan::CheckId;
use crate::text::counted;
use crate::verdict::Verdict;

/// Why a run cannot go on with a record: what was seen then may not hold now.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResumeError {
    /// It was looked at with something else.
    #[error("{what} was {then} in run {run} and is {now}: begin a new run")]
    Differs {
        /// Such as `the config file`.
        what: &'static str,
        /// The earlier run.
        run: String,
        /// As it was.
        then: String,
        /// As it is.
        now: String,
    },
    /// What it told would be lost.
    #[error(
        "run {run} told of what this run would drop, {checks} such as {such}: select it as well, or begin a \
         new run"
    )]
    Narrower {
        /// The earlier run.
        run: String,
        /// How many checks.
        checks: String,
        /// One of them.
        such: String,
    },
    /// One of the two does not say which cluster it is.
    #[error("whether it is the cluster of run {run} cannot be told: {because}")]
    UnknownCluster {
        /// The earlier run.
        run: String,
        /// Why.
        because: String,
    },
}

impl RunView {
    /// Whether a run that begins so, on a cluster that says this of itself, can go on with it.
    pub fn can_be_resumed(&self, started: &Started, facts: &Facts) -> Result<(), ResumeError> {
        let then = &self.started;
        let run = || then.run.clone();
        let none = || "none".to_owned();
        let config = |started: &Started| started.config.clone().unwrap_or_else(none);
        let same = [
            (
                "winconform's version",
                then.version.clone(),
                started.version.clone(),
            ),
            (
                "the suites' digest",
                then.suites.clone(),
                started.suites.clone(),
            ),
            ("the config file's digest", config(then), config(started)),
        ];
        let identity = |facts: Option<&Facts>| match facts.map(|facts| &facts.cluster) {
            Some(Known::Fact { value, .. }) => Ok(value.clone()),
            Some(Known::Unknown { because }) => Err(ResumeError::UnknownCluster {
                run: run(),
                because: because.clone(),
            }),
            None => Err(ResumeError::UnknownCluster {
                run: run(),
                because: "it ended before it had asked".to_owned(),
            }),
        };
        let cluster = (
            "the cluster (the UID of kube-system)",
            identity(self.facts.as_ref())?,
            identity(Some(facts))?,
        );
        match same
            .into_iter()
            .chain([cluster])
            .find(|(_, then, now)| then != now)
        {
            None => Ok(()),
            Some((what, then, now)) => Err(ResumeError::Differs {
                what,
                run: run(),
                then,
                now,
            }),
        }
    }

    /// Whether a run with these checks keeps all that was told in this one.
    pub fn is_kept_by<'c>(
        &self,
        checks: impl IntoIterator<Item = &'c CheckId>,
    ) -> Result<(), ResumeError> {
        let checks: BTreeSet<_> = checks.into_iter().collect();
        let mut lost = self.settled().map(|check| &check.planned.id);
        let mut lost = lost.by_ref().filter(|id| !checks.contains(id));
        match lost.next() {
            None => Ok(()),
            Some(one) => Err(ResumeError::Narrower {
                run: self.started.run.clone(),
                such: one.to_string(),
                checks: counted(1 + lost.count(), "check"),
            }),
        }
    }

    /// Its checks that need not be looked at again: those that tell something of the cluster.
    pub fn settled(&self) -> impl Iterator<Item = &CheckView> {
        let settled = |check: &&CheckView| {
            let verdict = check
                .conclusion
                .as_ref()
                .map(|conclusion| conclusion.verdict);
            verdict.is_some_and(Verdict::is_conclusive)
        };
        self.checks.values().filter(settled)
    }
}
