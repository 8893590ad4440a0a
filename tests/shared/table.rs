//! The table of faults from `faults/*.yaml`: the verdicts that each fault changes, on which nodes, and its
//! true cause.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use winconform_core::claims::Pattern;
use winconform_core::record::Exit;
use winconform_core::report::causes::Component;
use winconform_core::verdict::Verdict;

/// The number of seeds, if `WINCONFORM_TEST_SEEDS` sets it; with more than one, runs observe all checks.
pub(crate) fn asked() -> Option<u64> {
    let set = std::env::var("WINCONFORM_TEST_SEEDS").ok();
    set.and_then(|seeds| seeds.parse().ok())
}

/// Whether all is tried, as each night, and runs observe all checks.
pub(crate) fn tries_all() -> bool {
    asked().is_some_and(|seeds| seeds > 1)
}

/// Every row of every file.
pub(crate) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(read);

/// The `fault` of a row whose cluster is healthy.
pub(crate) const NONE: &str = "none";

/// One fault on one topology, and the expected result of a run there.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Row {
    /// The fault, as `demo --fault` takes it, or an admission policy.
    pub(crate) fault: String,
    /// The nodes: a named topology, with a suffix for each difference from it, such as `-dual-stack`.
    pub(crate) topology: String,
    /// The areas whose checks the run observes.
    pub(crate) areas: Vec<String>,
    /// The true cause; `None` if nothing is wrong.
    pub(crate) cause: Option<Cause>,
    /// What the report takes for the cause, if that is another.
    pub(crate) mistaken: Option<Mistaken>,
    /// Whether the report calls the run only consistent with its first cause.
    #[serde(default)]
    pub(crate) guessed: bool,
    /// How many causes the report tells of the one fault.
    #[serde(default = "one")]
    pub(crate) causes: usize,
    /// The class of faults that no observation can tell apart from this one.
    pub(crate) class: Option<String>,
    /// The objects of the cluster that differ, by path.
    #[serde(default)]
    pub(crate) objects: BTreeMap<String, Value>,
    /// Makes the row a template: one row for each field whose rejection expects this, named by `FIELD`.
    pub(crate) for_each: Option<Expects>,
    /// The expected exit of the run.
    pub(crate) exit: Exit,
    /// The expected verdicts; the first pattern that matches a check counts.
    #[serde(default)]
    pub(crate) turns: Ordered<Verdict>,
    /// Other verdicts that checks may get by chance.
    #[serde(default)]
    pub(crate) by_chance: Ordered<Vec<Verdict>>,
    /// Informational checks that observe something else than in a healthy cluster.
    #[serde(default)]
    pub(crate) tells: Vec<String>,
    /// Words in the reason of each check that fails or is inconclusive because of the fault.
    #[serde(default)]
    pub(crate) says: Option<String>,
    /// Why each push tries the row on a real control plane; the nightly job tries the others.
    #[serde(default)]
    pub(crate) real: Option<String>,
}

fn one() -> usize {
    1
}

/// What a rejection expects of a server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expects {
    /// The server refuses the field.
    Refused,
    /// The server accepts the field unchanged.
    Accepted,
    /// The server drops the field without an error.
    Dropped,
}

/// The true cause of the verdicts that a fault changes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cause {
    /// The part of the cluster at fault.
    pub(crate) component: Component,
    /// How much of the cluster is affected.
    pub(crate) scope: Scope,
}

/// What a report takes for the cause of a fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mistaken {
    /// Why it cannot tell better, or what would have to be observed.
    pub(crate) because: String,
}

/// How much of a cluster a fault affects.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    Cluster,
    Namespace,
    Node,
    Os,
    Path,
    Pool,
}

impl Row {
    /// Whether some check gets another verdict, or observes something else.
    pub(crate) fn shows_anything(&self) -> bool {
        self.turns.patterns().next().is_some() || !self.tells.is_empty()
    }

    /// Whether a check fails or cannot be told by the row.
    pub(crate) fn troubles(&self, id: &str) -> bool {
        let turned = self.turns.first_match(id);
        matches!(turned, Some(Verdict::Fail | Verdict::Inconclusive))
    }

    /// Whether a real control plane tries the row: with `all`, every suitable row, else rows with `real`.
    pub(crate) fn is_of_real_servers(&self, all: bool) -> bool {
        let is_of_these = self.for_each.is_none() && self.objects.is_empty();
        // Nodes that join a real server pull images at once, and its controllers are its own
        let of_memory = [
            "validation-",
            "policy-",
            "pull-slow",
            "deployments-",
            "replica-sets-",
            "replication-controllers-",
            "stateful-sets-",
            "daemon-sets-",
            "jobs-",
            "cron-jobs-",
        ];
        let is_of_memory = of_memory.map(|begin| self.fault.starts_with(begin));
        // Whole runs on a real server have one rejection
        let is_had = self.areas != ["reject"] || self.fault.ends_with("=spec.hostPID");
        let is_of_these = is_of_these && is_had && !is_of_memory.contains(&true);
        is_of_these && (all || self.real.is_some())
    }
}

/// Patterns of check ids, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<T>(Vec<(Pattern, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<(Pattern, T)> for Ordered<T> {
    fn from_iter<I: IntoIterator<Item = (Pattern, T)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl<T> Ordered<T> {
    /// The value of the first pattern that covers a check.
    pub(crate) fn first_match(&self, id: &str) -> Option<&T> {
        let mut covering = self.0.iter().filter(|(pattern, _)| pattern.covers(id));
        covering.next().map(|(_, what)| what)
    }

    /// The patterns that are the first match of no check.
    pub(crate) fn idle<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Vec<&Pattern> {
        let mut busy = vec![false; self.0.len()];
        for id in ids {
            if let Some(at) = self.0.iter().position(|(pattern, _)| pattern.covers(id)) {
                busy[at] = true;
            }
        }
        let idle = self.0.iter().zip(busy).filter(|(_, busy)| !busy);
        idle.map(|((pattern, _), _)| pattern).collect()
    }

    /// The patterns.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter().map(|(pattern, _)| pattern)
    }

    /// The patterns and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Pattern, &T)> {
        self.0.iter().map(|(pattern, what)| (pattern, what))
    }

    /// Whether a pattern may cover checks whose ids start with `begin`.
    pub(crate) fn has(&self, begin: &str) -> bool {
        let mut names = self.0.iter().map(|(pattern, _)| pattern.to_string());
        names.any(|name| {
            let name = name.split(['[', '*']).next().unwrap_or_default();
            name.starts_with(begin) || !name.is_empty() && begin.starts_with(name)
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("patterns of check ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((pattern, what)) = map.next_entry::<String, T>()? {
                    let pattern = Pattern::parse(&pattern).map_err(A::Error::custom)?;
                    pairs.push((pattern, what));
                }
                Ok(Ordered(pairs))
            }
        }
        deserializer.deserialize_map(Read(PhantomData))
    }
}

/// The row of a fault on a topology.
pub(crate) fn row(topology: &str, fault: &str) -> &'static Row {
    let mut rows = ROWS.iter();
    let row = rows.find(|row| row.topology == topology && row.fault == fault);
    row.unwrap_or_else(|| panic!("`{fault}` has no row on `{topology}`"))
}

/// The row of a healthy cluster.
pub(crate) fn healthy(topology: &str) -> &'static Row {
    row(topology, NONE)
}

/// The folder of the table.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("faults")
}

fn read() -> Vec<Row> {
    let entries = std::fs::read_dir(folder()).expect("the table");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|it| it == "yaml");
    let mut paths: Vec<_> = paths.filter(is_yaml).collect();
    paths.sort();
    let mut rows = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("text");
        let read: Result<Vec<Row>, _> = serde_saphyr::from_str(&text);
        rows.extend(read.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    }
    rows
}
