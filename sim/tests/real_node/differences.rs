//! What differs between two records, and what is known to.

use serde::{Deserialize, Serialize};

use crate::record::Record;

/// One thing that differs.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(crate) struct Difference {
    /// The case; `*` in the list of known ones for any.
    pub(crate) case: String,
    /// What is seen.
    pub(crate) at: String,
    /// What it is on the real node, if it is there.
    pub(crate) real: Option<String>,
    /// What it is on the simulated node, if it is there.
    pub(crate) simulated: Option<String>,
}

impl Difference {
    fn is_of(&self, other: &Self) -> bool {
        (self.case == "*" || self.case == other.case)
            && self.at == other.at
            && self.real == other.real
            && self.simulated == other.simulated
    }
}

/// All that differs.
pub(crate) fn between(case: &str, real: &Record, simulated: &Record) -> Vec<Difference> {
    let mut all: Vec<&String> = real.keys().chain(simulated.keys()).collect();
    all.sort();
    all.dedup();
    all.into_iter()
        .filter(|at| real.get(*at) != simulated.get(*at))
        .map(|at| Difference {
            case: case.to_owned(),
            at: at.clone(),
            real: real.get(at).cloned(),
            simulated: simulated.get(at).cloned(),
        })
        .collect()
}

/// Differences with one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    because: String,
    differences: Vec<Difference>,
}

/// The list of known differences.
pub(crate) struct Known(Vec<Difference>);

impl Known {
    pub(crate) fn all() -> Self {
        let text = include_str!("differences.yaml");
        let groups: Vec<Group> =
            serde_saphyr::from_str(text).expect("differences.yaml is as documented");
        for group in &groups {
            assert!(
                !group.because.trim().is_empty(),
                "a known difference has its reason"
            );
        }
        let all: Vec<_> = groups.into_iter().flat_map(|g| g.differences).collect();
        for known in &all {
            assert!(known.real != known.simulated, "not a difference: {known:?}");
        }
        Self(all)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Those that may be seen in one case.
    pub(crate) fn of(&self, case: &str) -> Self {
        let own = |known: &&Difference| known.case == "*" || known.case == case;
        Self(self.0.iter().filter(own).cloned().collect())
    }

    /// Whether these are just the ones of this one case.
    pub(crate) fn explain(&self, seen: &[Difference]) -> bool {
        let expected = self.0.iter().filter(|known| known.case != "*");
        seen.iter()
            .all(|difference| self.0.iter().any(|known| known.is_of(difference)))
            && expected
                .clone()
                .all(|known| seen.iter().any(|difference| known.is_of(difference)))
    }

    /// What is wrong with the list: as text, with the entries to add; one for what several cases
    /// have in common.
    pub(crate) fn check(&self, seen: &[Difference]) -> String {
        let mut new: Vec<Difference> = Vec::new();
        for difference in seen {
            if self.0.iter().any(|known| known.is_of(difference)) {
                continue;
            }
            let mut any = difference.clone();
            "*".clone_into(&mut any.case);
            match new.iter_mut().find(|new| any.is_of(new)) {
                Some(same) => *same = any,
                None => new.push(difference.clone()),
            }
        }
        let new: Vec<&Difference> = new.iter().collect();
        let gone: Vec<_> = self
            .0
            .iter()
            .filter(|known| !seen.iter().any(|difference| known.is_of(difference)))
            .collect();
        let list = |title: &str, of: &[&Difference]| {
            if of.is_empty() {
                return String::new();
            }
            let entries = serde_saphyr::to_string(&of).expect("YAML");
            format!("{} {title}:\n{entries}\n", of.len())
        };
        list("differences are not in differences.yaml", &new)
            + &list(
                "differences of differences.yaml are gone; delete them",
                &gone,
            )
    }
}
