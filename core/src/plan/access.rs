//! The permissions that a check needs: derived from its assertions' requests, its fixtures' manifests and the
//! facts it reads, all of which exist anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use strum::{EnumString, IntoStaticStr, VariantArray};

use super::check::{Check, Plan};
use crate::facts::PoolName;
use crate::fixture::FixtureName;
use crate::method::{
    ApiPath, ApiRequest, Balancer, Bound, PoolNode, ReadyFixture, ReadyFixtures, ReadyPod, Request,
    Test, Verb, slices_of,
};

/// A verb as authorisers know it.
#[derive(
    Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, Ord, PartialEq, PartialOrd, VariantArray,
)]
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

/// One permission.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Access {
    /// A verb on objects.
    Objects {
        /// API group; empty for the core.
        group: String,
        /// The resource, with its subresource: `pods/exec`.
        resource: String,
        place: Place,
        /// The only object it is for.
        name: Option<String>,
        verb: AccessVerb,
    },
    /// A verb on a path that is not of an object.
    Url { path: String, verb: AccessVerb },
}

impl Access {
    /// The permission that a request needs in a run with these namespaces.
    pub fn for_request(request: &ApiRequest, run: &ReadyFixtures) -> Self {
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
                namespace,
                name,
            } => {
                let is_own = |name: &String| *name == run.namespace || *name == run.host_namespace;
                let (place, name) = match namespace {
                    None => (Place::Cluster, name),
                    // Names there carry the run's id, so no permission can name one beforehand
                    Some(namespace) if is_own(&namespace) => (Place::Own, None),
                    Some(namespace) => (Place::Namespace(namespace), name),
                };
                Self::Objects {
                    group,
                    resource,
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
                    // The server reviews access to a namespace in that namespace
                    Place::Namespace(namespace) if name.as_ref() == Some(namespace) => Ok(()),
                    Place::Cluster => Ok(()),
                    Place::Own => f.write_str(" in the run's namespaces"),
                    Place::Namespace(namespace) => write!(f, " in namespace {namespace}"),
                }
            }
        }
    }
}

/// The server's answer on whether an access is allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    Allowed,
    /// It is not allowed; the authoriser's words, if any.
    Denied(String),
    /// The server did not say, for this reason.
    Unknown(String),
}

/// What a permission is for, and so what its lack means.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Purpose {
    /// To read a fact, by its name in the JSON of [`Facts`](crate::facts::Facts): without it the checks that
    /// read it are inconclusive.
    Fact(&'static str),
    /// To observe: without it the check is inconclusive.
    Observe,
    /// To bring up a fixture: without it the checks that need it are inconclusive.
    Fixture(FixtureName),
    /// To keep two runs apart: without it a run that creates anything does not begin, or ends early.
    Lease,
    /// To remove what the run created: without it something is left.
    Removal,
    /// To diagnose what failed: without it the record says less.
    Diagnosis,
    /// To read the liveness of nodes on which something failed: without it a node that falls silent during
    /// the run may count against the cluster.
    Silence,
}

/// One permission, and what it is for.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Need {
    pub access: Access,
    pub purpose: Purpose,
}

/// The permissions for everything beside the assertions themselves.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// By fact, under its name in JSON.
    pub facts: BTreeMap<&'static str, BTreeSet<Access>>,
    /// By fixture: to create it, to wait for it and to remove it.
    pub fixtures: BTreeMap<FixtureName, BTreeSet<Need>>,
    pub exec: BTreeSet<Access>,
    /// Of a run that creates anything.
    pub run: BTreeSet<Need>,
}

impl Uses {
    /// What one check needs, with what a run needs that creates anything for it.
    pub fn of_check(&self, check: &Check) -> BTreeSet<Need> {
        let mut needs = BTreeSet::new();
        for fact in &check.reads {
            needs.extend(self.of_fact(fact));
        }
        let ready = everything(check);
        for assertion in &check.assertions {
            let at = Bound {
                ready: &ready,
                from: assertion.from.as_ref(),
                pool: check.point.pool.as_ref(),
                to: check.point.to.as_ref(),
                node: assertion.at_node(),
                build: check.build,
                image: check.image.as_deref(),
                family: check.point.family,
                once: false,
            };
            let accesses = self.of_assertion(&assertion.test, &at).into_iter();
            needs.extend(accesses.map(|access| Need {
                access,
                purpose: Purpose::Observe,
            }));
            for (fixture, _) in assertion.depends_on() {
                // The namespaces hold every other fixture
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
            Ok(Request::Text(path)) => {
                [Access::for_request(&ApiRequest::get(path), at.ready)].into()
            }
            // The fixture's permissions are for its pods, too
            Ok(Request::Exec(..)) => self.exec.clone(),
            Ok(Request::Play(play)) => {
                let exec = play.scenario.execs().then(|| self.exec.clone());
                let slices = play.scenario.asks_for_endpoints().then(|| {
                    let slices = slices_of(&play.container.namespace, &play.of.object_name());
                    Access::for_request(&ApiRequest::get(slices), at.ready)
                });
                exec.into_iter().flatten().chain(slices).collect()
            }
            Ok(Request::Facts) => BTreeSet::new(),
            // Placeholder fixtures may have nothing to aim at. A prober observes by exec; from outside no
            // permission is needed
            Ok(Request::Get(_) | Request::Ping(_)) | Err(_) => {
                match at.from.is_some_and(|from| from.prober().is_some()) {
                    true => self.exec.clone(),
                    false => BTreeSet::new(),
                }
            }
        }
    }
}

/// The namespaces of a placeholder run: no real name can hold a `*`.
fn own() -> ReadyFixtures {
    ReadyFixtures {
        run: "*".to_owned(),
        namespace: "winconform-*".to_owned(),
        host_namespace: "winconform-host-*".to_owned(),
        ..ReadyFixtures::default()
    }
}

/// A placeholder run in which everything that a check needs is ready.
fn everything(check: &Check) -> ReadyFixtures {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let fixture = ReadyFixture {
        service: Some((address, 80)),
        name: Some("*".to_owned()),
        node_port: Some(80),
        more_ports: Vec::new(),
        headless: Some("*".to_owned()),
        other_service: Some((address, 80)),
        port: Some(80),
        target_port: Some(80),
        udp: Some(80),
        pods: vec![ReadyPod {
            name: "*".to_owned(),
            uid: String::new(),
            node: "*".to_owned(),
            addresses: vec![address],
            restarts: 0,
        }],
        changes: Vec::new(),
        domain: Some("*".to_owned()),
        balancer: Some(Balancer {
            at: address.to_string(),
            short_cut: true,
        }),
        second: None,
        second_broken: None,
    };
    let fixtures = check.depends_on().map(|(key, _)| (key, fixture.clone()));
    ReadyFixtures {
        nodes: vec![PoolNode {
            name: "*".to_owned(),
            pool: PoolName::linux(),
            kubelet: Some(80),
            addresses: vec![address],
        }],
        fixtures: fixtures.collect(),
        ..own()
    }
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
