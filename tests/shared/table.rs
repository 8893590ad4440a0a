//! The table of faults, as `faults/*.yaml` writes it: what each turns, on which nodes, and what the true
//! cause is.

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
use winconform_core::verdict::Verdict;

/// How many seeds are tried, where it is said how many; of more than one, everything is.
pub(crate) fn asked() -> Option<u64> {
    let set = std::env::var("WINCONFORM_TEST_SEEDS").ok();
    set.and_then(|seeds| seeds.parse().ok())
}

/// Every row of every file.
pub(crate) static ROWS: LazyLock<Vec<Row>> = LazyLock::new(read);

/// What is wrong where nothing is.
pub(crate) const NONE: &str = "none";

/// Something broken on some nodes, and what a run comes to there.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Row {
    /// What is broken, as `demo --fault` takes it, or a policy of admission.
    pub(crate) fault: String,
    /// The nodes: a named topology, and behind it what is otherwise, such as `-dual-stack`.
    pub(crate) topology: String,
    /// The areas whose checks are observed.
    pub(crate) areas: Vec<String>,
    /// Whose fault it is; nobody's where nothing is wrong.
    pub(crate) cause: Option<Cause>,
    /// What it shares with faults that no observation can tell from it.
    pub(crate) class: Option<String>,
    /// What of the cluster's objects is otherwise.
    #[serde(default)]
    pub(crate) objects: BTreeMap<String, Value>,
    /// Of which of the rejections it stands for as many rows as there are fields, `FIELD` in its fault.
    pub(crate) for_each: Option<Expects>,
    /// What the run comes to.
    pub(crate) exit: Exit,
    /// What checks come to, the first pattern that matches one.
    #[serde(default)]
    pub(crate) turns: Ordered<Verdict>,
    /// What they may come to besides.
    #[serde(default)]
    pub(crate) by_chance: Ordered<Vec<Verdict>>,
    /// Informational checks that observe something else.
    #[serde(default)]
    pub(crate) tells: Vec<String>,
    /// Words that each check quotes which fails or cannot be told for it.
    #[serde(default)]
    pub(crate) says: Option<String>,
    /// Why it is tried on a real control plane with every push; the others are each night.
    #[serde(default)]
    pub(crate) real: Option<String>,
}

/// What a rejection expects of a server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Expects {
    /// That it refuses the field.
    Refused,
    /// That it accepts the field as it is.
    Accepted,
    /// That it takes the field away without a word.
    Dropped,
}

/// The true cause of what a fault turns.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cause {
    /// The part of the cluster.
    pub(crate) component: Component,
    /// How much of the cluster has it.
    pub(crate) scope: Scope,
}

/// A part of a cluster that can be at fault.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Component {
    Admission,
    ApiServer,
    Application,
    Authorization,
    Cni,
    ContainerRuntime,
    Dns,
    Egress,
    HostFirewall,
    ImageRegistry,
    KubeProxy,
    Kubelet,
    LoadBalancer,
    NodeLabels,
    NodeOs,
    Scheduler,
    ServiceNetwork,
}

/// How much of a cluster a fault has.
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
    /// Whether some check comes to something else, or observes it.
    pub(crate) fn shows_anything(&self) -> bool {
        self.turns.patterns().next().is_some() || !self.tells.is_empty()
    }

    /// Whether it is tried on a real control plane, where not all are.
    pub(crate) fn is_of_real_servers(&self, all: bool) -> bool {
        let is_of_these = self.for_each.is_none() && self.objects.is_empty();
        // Nodes joined there pull in no time
        let of_memory = ["validation-", "policy-", "pull-slow"];
        let is_of_memory = of_memory.map(|begin| self.fault.starts_with(begin));
        // Of the rejections, whole runs there have one
        let is_had = self.areas != ["reject"] || self.fault.ends_with("=spec.hostPID");
        let is_of_these = is_of_these && is_had && !is_of_memory.contains(&true);
        is_of_these && (all || self.real.is_some())
    }
}

/// Patterns of check ids in the order in which they are written.
#[derive(Clone, Debug)]
pub(crate) struct Ordered<T>(Vec<(Pattern, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<(Pattern, T)> for Ordered<T> {
    fn from_iter<I: IntoIterator<Item = (Pattern, T)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl<T> Ordered<T> {
    /// What the first pattern says that covers a check.
    pub(crate) fn first_match(&self, id: &str) -> Option<&T> {
        let mut covering = self.0.iter().filter(|(pattern, _)| pattern.covers(id));
        covering.next().map(|(_, what)| what)
    }

    /// The patterns that are the first for no check.
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

    /// The patterns and what they say.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Pattern, &T)> {
        self.0.iter().map(|(pattern, what)| (pattern, what))
    }

    /// Whether a pattern may be about checks whose names begin so.
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
                let mut all = Vec::new();
                while let Some((pattern, what)) = map.next_entry::<String, T>()? {
                    let pattern = Pattern::parse(&pattern).map_err(A::Error::custom)?;
                    all.push((pattern, what));
                }
                Ok(Ordered(all))
            }
        }
        deserializer.deserialize_map(Read(PhantomData))
    }
}

/// The row of a fault.
pub(crate) fn row(topology: &str, fault: &str) -> &'static Row {
    let mut rows = ROWS.iter();
    let found = rows.find(|row| row.topology == topology && row.fault == fault);
    found.unwrap_or_else(|| panic!("`{fault}` has no row on `{topology}`"))
}

/// The row of a cluster in which nothing is wrong.
pub(crate) fn healthy(topology: &str) -> &'static Row {
    row(topology, NONE)
}

/// Where the table is.
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
