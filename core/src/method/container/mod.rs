//! Test methods that observe one pod of a fixture: a program in its container, its log, its status, and what it
//! does over time.

mod begun;
pub(super) mod ending;
pub(super) mod log;
pub(super) mod program;
pub(super) mod scenario;
pub(super) mod status;
mod told;

use std::fmt;

use super::Traits;
use super::exchange::PodRef;
use super::place::Bound;
use crate::fixture::{FixtureKey, FixtureName, Need, Until};

/// A pod of a fixture, by the name that its manifest gives it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodOf {
    pub of: FixtureName,
    pub name: String,
}

impl PodOf {
    /// The fixture in the check's pool.
    fn key(&self, at: &Bound<'_>) -> FixtureKey {
        self.of.in_pool(at.to.or(at.pool)).on(at.node)
    }

    /// Its namespace and its name in the check's pool.
    fn place<'a>(&self, at: &Bound<'a>) -> (&'a str, String) {
        let key = self.key(at);
        let name = key.name_of(&self.name);
        // The pods of a Deployment have its name and more
        let mut pods = at
            .ready
            .fixtures
            .get(&key)
            .into_iter()
            .flat_map(|ready| &ready.pods);
        let pod = pods.find(|pod| pod.name.starts_with(&name));
        let name = pod.map_or(name, |pod| pod.name.clone());
        (at.ready.namespace_of(self.of), name)
    }
}

/// A container of a fixture's pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ContainerOf {
    pub pod: PodOf,
    pub container: String,
}

impl ContainerOf {
    fn place(&self, at: &Bound<'_>) -> PodRef {
        let (namespace, name) = self.pod.place(at);
        PodRef {
            namespace: namespace.to_owned(),
            name,
            container: self.container.clone(),
        }
    }
}

/// What they need ready: a fixture, and the prober that tells the cluster's DNS suffix where its objects have it.
fn needs(of: FixtureName) -> Vec<(FixtureName, Need)> {
    let need = match of.until() {
        // Scenarios change it meanwhile
        Until::Running => Need::Played,
        // A command that is not found is what their check is about
        _ if of == FixtureName::HOST_COMMANDS => Need::Settled,
        _ => Need::Ready,
    };
    let prober = (FixtureName::LINUX_POD_PROBER, Need::Ready);
    let prober = of.names_the_cluster().then_some(prober);
    std::iter::once((of, need)).chain(prober).collect()
}

/// What all of them have in common: the first round may come too early, and what holds stays.
fn traits() -> Traits {
    Traits {
        converges: true,
        stays: true,
        ..Traits::default()
    }
}

impl fmt::Display for PodOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name == self.of.as_str() {
            true => f.write_str(&self.name),
            false => write!(f, "{} of {}", self.name, self.of.as_str()),
        }
    }
}

impl fmt::Display for ContainerOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {} of pod {}", self.container, self.pod)
    }
}
