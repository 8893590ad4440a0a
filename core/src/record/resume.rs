//! What a run keeps of an earlier run whose record it resumes.

use std::collections::BTreeSet;

use super::event::Started;
use super::fold::{CheckView, RunView};
use crate::facts::{Facts, Known, SecondFamily};
use crate::plan::Selected;
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// Why a run cannot resume a record: what the earlier run observed may not hold now.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResumeError {
    /// The earlier run had another version, suites, config file or cluster.
    #[error("{what} was {then} in run {run} and is {now}: begin a new run")]
    Differs {
        /// What differs, such as `the suites' digest`.
        what: &'static str,
        /// The earlier run.
        run: String,
        /// Its value then.
        then: String,
        /// Its value now.
        now: String,
    },
    /// The selection leaves out checks whose verdicts would be lost.
    #[error(
        "run {run} has verdicts of {checks} that this run does not select, such as {such}: extend the \
         selection, or begin a new run"
    )]
    Narrower {
        /// The earlier run.
        run: String,
        /// How many checks.
        checks: String,
        /// One of them.
        such: String,
    },
    /// The cluster has changed: checks of the earlier run are no longer the same, or no longer exist.
    #[error(
        "run {run} has verdicts of {checks} that this cluster no longer has, such as {such}; the cluster had \
         {then} and now has {now}: begin a new run"
    )]
    Changed {
        /// The earlier run.
        run: String,
        /// How many checks.
        checks: String,
        /// One of them.
        such: String,
        /// What the cluster had for checks to observe then.
        then: String,
        /// What it has now.
        now: String,
    },
    /// The earlier record or the cluster itself does not say which cluster it is.
    #[error("whether it is the cluster of run {run} cannot be told: {reason}")]
    UnknownCluster {
        /// The earlier run.
        run: String,
        /// Why that is not known.
        reason: String,
    },
}

/// What a cluster has for checks to observe, in words: its pools with their nodes, and the second family of
/// its pods' addresses.
fn places(facts: &Facts) -> String {
    if let Known::Unknown { reason } = &facts.nodes {
        return format!("nodes that are unknown ({})", printable(reason));
    }
    let pools = facts.pools().into_iter().map(|(name, pool)| {
        let nodes = counted(pool.total(), "node");
        match pool.unused().join(" and ") {
            unused if unused.is_empty() => format!("{name} of {nodes}"),
            unused => format!("{name} of {nodes}, {unused}"),
        }
    });
    let pools: Vec<_> = pools.collect();
    let pools = match pools.as_slice() {
        [] => "no pools".to_owned(),
        pools => format!("the pools {}", pools.join(", ")),
    };
    match facts.second_family() {
        SecondFamily::Is(second) => format!("{pools} and {second} besides"),
        // No check observes an unknown family
        SecondFamily::None | SecondFamily::Unknown { .. } => pools,
    }
}

impl RunView {
    /// Whether a run with this start and these facts can resume this one.
    pub fn can_be_resumed(&self, started: &Started, facts: &Facts) -> Result<(), ResumeError> {
        let then = &self.started;
        let run = || then.run.clone();
        let config = |started: &Started| started.config.clone().unwrap_or("none".to_owned());
        let (then_config, config) = (config(then), config(started));
        let unknown = |reason: &str| ResumeError::UnknownCluster {
            run: run(),
            reason: reason.to_owned(),
        };
        let then_cluster = match self.facts.as_ref().map(|facts| &facts.cluster) {
            None => return Err(unknown("it ended before it had asked")),
            Some(known) => known.known().map_err(unknown)?,
        };
        let cluster = facts.cluster.known().map_err(unknown)?;
        let same = [
            ("winconform's version", &then.version, &started.version),
            ("the suites' digest", &then.suites, &started.suites),
            ("the config file's digest", &then_config, &config),
            (
                "the cluster (the UID of kube-system)",
                then_cluster,
                cluster,
            ),
        ];
        match same.into_iter().find(|(_, then, now)| then != now) {
            None => Ok(()),
            Some((what, then, now)) => Err(ResumeError::Differs {
                what,
                run: run(),
                then: then.clone(),
                now: now.clone(),
            }),
        }
    }

    /// Whether a run with this selection and these facts keeps every conclusive verdict of this one.
    pub fn is_kept_by(&self, selected: &Selected, facts: &Facts) -> Result<(), ResumeError> {
        let wanted: BTreeSet<_> = selected.plan.checks.iter().map(|it| &it.id).collect();
        let settled = self.settled().map(|check| &check.planned.id);
        let lost = settled.filter(|id| !wanted.contains(id));
        let (unwanted, gone): (Vec<_>, Vec<_>) =
            lost.partition(|id| selected.unwanted.contains(id));
        let run = self.started.run.clone();
        if let Some(moved) = self.moved(facts) {
            return Err(moved);
        }
        match (gone.first(), unwanted.first()) {
            // No selection brings these checks back
            (Some(id), _) => Err(ResumeError::Changed {
                run,
                checks: counted(gone.len(), "check"),
                such: id.to_string(),
                then: self.facts.as_ref().map_or_else(String::new, places),
                now: places(facts),
            }),
            (None, Some(id)) => Err(ResumeError::Narrower {
                run,
                checks: counted(unwanted.len(), "check"),
                such: id.to_string(),
            }),
            (None, None) => Ok(()),
        }
    }

    /// The error, if a settled check would now be observed on another node.
    fn moved(&self, facts: &Facts) -> Option<ResumeError> {
        let (before, after) = (self.facts.as_ref()?.pools(), facts.pools());
        let moved = self.settled().filter(|check| {
            let point = &check.planned.point;
            point.node_name(&before) != point.node_name(&after)
        });
        let moved: Vec<_> = moved.map(|check| &check.planned).collect();
        let first = moved.first()?;
        let named = |pools| match first.point.node_name(pools) {
            Some(node) => format!("node {}", printable(&node)),
            None => "no node".to_owned(),
        };
        Some(ResumeError::Changed {
            run: self.started.run.clone(),
            checks: counted(moved.len(), "check"),
            such: first.id.to_string(),
            then: format!("{} there", named(&before)),
            now: named(&after),
        })
    }

    /// Its checks with a conclusive verdict, which need not be observed again.
    pub fn settled(&self) -> impl Iterator<Item = &CheckView> {
        let settled = |check: &&CheckView| check.verdict().is_some_and(Verdict::is_conclusive);
        self.checks.values().filter(settled)
    }
}
