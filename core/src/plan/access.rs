//! What a check has to be allowed to do: derived from its assertions' requests, its fixtures' manifests
//! and the facts it reads, all of which exist anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::check::{Check, Plan};
use crate::facts::PoolName;
use crate::fixture::FixtureName;
use crate::method::{
    ApiPath, ApiRequest, Balancer, Bound, PoolNode, ReadyFixture, ReadyFixtures, ReadyPod, Request,
    Test, Verb,
};

/// A verb as authorisers know it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum AccessVerb {
    /// One object, or a path.
    Get,
    /// All objects of a kind.
    List,
    /// All objects of a kind, as they change.
    Watch,
    /// POST, and the first server-side apply.
    Create,
    /// PUT.
    Update,
    Patch,
    Delete,
}

crate::text::words!(AccessVerb);

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Place {
    /// In the cluster as a whole, or in all its namespaces.
    Cluster,
    /// In the run's own namespaces, which do not exist before it.
    Own,
    Namespace(String),
}

/// One thing to be allowed.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Access {
    /// Something done with objects.
    Objects {
        /// API group; empty for the core.
        group: String,
        /// The resource, with its subresource: `pods/exec`.
        resource: String,
        place: Place,
        /// With this one alone.
        name: Option<String>,
        verb: AccessVerb,
    },
    /// Something done with a path that is no object's.
    Url { path: String, verb: AccessVerb },
}

impl Access {
    /// What a request has to be allowed, for a run with these namespaces.
    pub fn for_request(request: &ApiRequest, own: &ReadyFixtures) -> Self {
        let path = ApiPath::parse(&request.path);
        let one = matches!(
            &path,
            ApiPath::Resource { name: Some(_), .. } | ApiPath::Url(_)
        );
        let query = request.path.split_once('?').map_or("", |(_, query)| query);
        let watches = query
            .split('&')
            .any(|part| matches!(part, "watch=1" | "watch=true"));
        let verb = match request.verb {
            Verb::Get if watches => AccessVerb::Watch,
            Verb::Get if one => AccessVerb::Get,
            Verb::Get => AccessVerb::List,
            Verb::Create => AccessVerb::Create,
            Verb::Apply | Verb::Patch => AccessVerb::Patch,
            Verb::Replace => AccessVerb::Update,
            Verb::Delete => AccessVerb::Delete,
        };
        match path {
            ApiPath::Url(path) => Self::Url { path, verb },
            ApiPath::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
            } => {
                let is_own = |name: &String| *name == own.namespace || *name == own.host_namespace;
                let (place, name) = match namespace {
                    None => (Place::Cluster, name),
                    // Its names carry the run's id, which nobody can be granted beforehand
                    Some(namespace) if is_own(&namespace) => (Place::Own, None),
                    Some(namespace) => (Place::Namespace(namespace), name),
                };
                Self::Objects {
                    group,
                    resource: match subresource {
                        Some(below) => format!("{resource}/{below}"),
                        None => resource,
                    },
                    place,
                    name,
                    verb,
                }
            }
        }
    }
}

impl fmt::Display for Access {
    /// `create jobs.batch in the run's namespaces`, `get configmaps/a in kube-system`, `get /metrics`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { path, verb } => write!(f, "{} {path}", verb.as_str()),
            Self::Objects {
                group,
                resource,
                place,
                name,
                verb,
            } => {
                write!(f, "{} ", verb.as_str())?;
                let (plural, below) = resource.split_once('/').unwrap_or((resource, ""));
                f.write_str(plural)?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                if !below.is_empty() {
                    write!(f, "/{below}")?;
                }
                if let Some(name) = name {
                    write!(f, " {name}")?;
                }
                match place {
                    // A namespace is reviewed in itself
                    Place::Namespace(namespace) if name.as_ref() == Some(namespace) => Ok(()),
                    Place::Cluster => Ok(()),
                    Place::Own => f.write_str(" in the run's namespaces"),
                    Place::Namespace(namespace) => write!(f, " in namespace {namespace}"),
                }
            }
        }
    }
}

impl Serialize for Access {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the server says of an access.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    Allowed,
    /// It is not; the authoriser's words, if any.
    Denied(String),
    /// It could not be told, because.
    Unknown(String),
}

/// What something has to be allowed for, and so what its lack comes to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Purpose {
    /// To know a fact, as it is spelled in the JSON of [`Facts`](crate::facts::Facts): the checks
    /// that read it cannot be told.
    Fact(&'static str),
    /// To observe: the check cannot be told.
    Observe,
    /// To bring up a fixture: the checks that need it cannot be told.
    Fixture(FixtureName),
    /// To keep two runs apart: a run that creates anything is not begun, or ends early.
    Lease,
    /// To remove again what was made: something is left.
    Removal,
    /// To tell more of what failed: its record says less.
    Diagnosis,
    /// To hear of nodes on which something failed: what fell silent in mid-run may be held against the
    /// cluster.
    Silence,
}

/// One thing to be allowed, and what for.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Need {
    pub access: Access,
    pub purpose: Purpose,
}

/// What takes permission beside the assertions themselves.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// By fact, as it is spelled in JSON.
    pub facts: BTreeMap<&'static str, BTreeSet<Access>>,
    /// By fixture: to make it, to wait for it and to remove it.
    pub fixtures: BTreeMap<FixtureName, BTreeSet<Need>>,
    pub exec: BTreeSet<Access>,
    /// Of a run that makes anything.
    pub run: BTreeSet<Need>,
}

impl Uses {
    /// What one check needs, with what a run that makes anything for it does.
    pub fn of_check(&self, check: &Check) -> BTreeSet<Need> {
        let mut needs = BTreeSet::new();
        for fact in &check.reads {
            needs.extend(self.of_fact(fact));
        }
        let own = own();
        for assertion in &check.assertions {
            let stands = everything(&own, check);
            let at = Bound {
                ready: &stands,
                from: assertion.from.as_ref(),
                pool: check.point.pool.as_ref(),
                to: check.point.to.as_ref(),
                node: assertion.at_node(),
                build: check.build,
                image: check.image.as_deref(),
                family: check.point.family,
                once: false,
            };
            needs.extend(
                self.of_assertion(&assertion.test, &at)
                    .into_iter()
                    .map(|access| Need {
                        access,
                        purpose: Purpose::Observe,
                    }),
            );
            for (fixture, _) in assertion.depends_on() {
                // Every other stands in those
                for name in [fixture.name, FixtureName::NAMESPACES] {
                    needs.extend(self.fixtures.get(&name).into_iter().flatten().cloned());
                }
                needs.extend(self.run.iter().cloned());
            }
        }
        needs
    }

    /// What a run of a plan needs, the facts that no check of it reads included.
    pub fn of_plan(&self, plan: &Plan) -> BTreeSet<Need> {
        let facts = self.facts.keys().flat_map(|fact| self.of_fact(fact));
        let checks = plan.checks.iter().flat_map(|check| self.of_check(check));
        facts.chain(checks).collect()
    }

    fn of_fact(&self, fact: &str) -> Vec<Need> {
        let Some((fact, accesses)) = self.facts.get_key_value(fact) else {
            return Vec::new();
        };
        let need = |access: &Access| Need {
            access: access.clone(),
            purpose: Purpose::Fact(fact),
        };
        accesses.iter().map(need).collect()
    }

    fn of_assertion(&self, test: &Test, at: &Bound<'_>) -> BTreeSet<Access> {
        match test.prepare(at).map(|prepared| prepared.request) {
            Ok(Request::Api(request)) => [Access::for_request(&request, at.ready)].into(),
            Ok(Request::Facts) => BTreeSet::new(),
            // Made-up surroundings may have nothing to aim at: who observes from a prober does so by exec, who observes
            // from outside asks nobody for leave
            Ok(Request::Get(_) | Request::Ping(_)) | Err(_) => {
                match at.from.is_some_and(|from| from.prober().is_some()) {
                    true => self.exec.clone(),
                    false => BTreeSet::new(),
                }
            }
        }
    }
}

/// The namespaces of a run that is not: no real one's name may hold a `*`.
fn own() -> ReadyFixtures {
    ReadyFixtures {
        run: "*".to_owned(),
        namespace: "winconform-*".to_owned(),
        host_namespace: "winconform-host-*".to_owned(),
        ..ReadyFixtures::default()
    }
}

/// A run in which everything a check needs stands.
fn everything(own: &ReadyFixtures, check: &Check) -> ReadyFixtures {
    let mut ready = own.clone();
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let stands = ReadyFixture {
        service: Some((address, 80)),
        name: Some("*".to_owned()),
        node_port: Some(80),
        headless: Some("*".to_owned()),
        port: Some(80),
        udp: Some(80),
        pods: vec![ReadyPod {
            name: "*".to_owned(),
            uid: String::new(),
            node: "*".to_owned(),
            addresses: vec![address],
            restarts: 0,
        }],
        domain: Some("*".to_owned()),
        balancer: Some(Balancer {
            at: address.to_string(),
            short_cut: true,
        }),
        second: None,
        second_broken: None,
    };
    ready.nodes = vec![PoolNode {
        name: "*".to_owned(),
        pool: PoolName::linux(),
        kubelet: Some(80),
        addresses: vec![address],
    }];
    for (key, _) in check.depends_on() {
        ready.fixtures.insert(key, stands.clone());
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::rows;

    const TABLES: &str = include_str!("access.yaml");

    fn access_to(verb: Verb, path: &str) -> String {
        let request = ApiRequest {
            verb,
            path: path.to_owned(),
            body: None,
        };
        Access::for_request(&request, &own()).to_string()
    }

    #[test]
    fn requests_are_what_authorisers_see() {
        for (verb, path, access) in rows::<(Verb, String, String)>(TABLES, "access") {
            assert_eq!(access_to(verb, &path), access, "{path}");
        }
    }
}
