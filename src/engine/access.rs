//! The permissions that runs need besides their assertions, derived from the table of facts, the manifests
//! and the removal of objects. There is no other list of permissions.

use std::collections::BTreeSet;

use winconform_core::config::Images;
use winconform_core::fixture::{Change, FixtureName, Until};
use winconform_core::method::{ApiRequest, ReadyFixtures};
use winconform_core::plan::{Access, AccessVerb, Need, Place, Purpose, Uses};

use crate::cluster::objects::kinds::{
    ALL, CLAIMS, Kind, LEASES, PODS, SECRETS, SERVICES, SNAPSHOTS, Scope,
};
use crate::cluster::{LEASE_NAMESPACE, READ};
use crate::engine::fixtures::manifest;
use crate::engine::integrity::node_liveness;
use crate::engine::record::diagnose::SYSTEM;

/// The accesses that runs with these images use.
pub fn uses(images: &Images) -> Uses {
    let mut uses = Uses {
        exec: EXEC
            .map(|verb| objects("", "pods/exec", Place::Own, verb))
            .into(),
        run: of_run(),
        ..Uses::default()
    };
    let get = |path: &&str| Access::for_request(&ApiRequest::get(*path), &ReadyFixtures::default());
    let facts = READ.iter();
    uses.facts = facts
        .map(|(fact, paths)| (*fact, paths.iter().map(get).collect()))
        .collect();
    for name in FixtureName::all() {
        let mut needs = of_fixture(name);
        if name.image().is_some() {
            let purpose = Purpose::Fixture(name);
            needs.extend(of_pull_secrets(images).map(|access| Need {
                access,
                purpose: purpose.clone(),
            }));
        }
        uses.fixtures.insert(name, needs);
    }
    uses
}

/// The accesses that pulling images beforehand needs.
pub(crate) fn of_prepull(images: &Images) -> BTreeSet<Access> {
    let accesses = of_fixture(FixtureName::NAMESPACES).into_iter();
    let accesses = accesses.chain(of_run()).map(|need| need.access);
    let changes = [AccessVerb::Create, AccessVerb::Patch, AccessVerb::Delete];
    let changes = changes.map(|verb| of_kind(&PODS, Place::Own, verb));
    let watched = [AccessVerb::List, AccessVerb::Watch];
    let watched = watched.map(|verb| of_kind(&PODS, Place::Cluster, verb));
    let accesses = accesses.chain(changes).chain(watched);
    accesses.chain(of_pull_secrets(images)).collect()
}

/// The verbs to open a session: the request is a GET, and from 1.35 on the server also requires `create`
/// (KEP-4006, `AuthorizePodWebsocketUpgradeCreatePermission`).
const EXEC: [AccessVerb; 2] = [AccessVerb::Get, AccessVerb::Create];

/// The needs of every run that creates objects: it takes its Lease, and lists every kind of object that it
/// may have created.
fn of_run() -> BTreeSet<Need> {
    let default = Place::Namespace(LEASE_NAMESPACE.to_owned());
    let lease = |verb, purpose| Need {
        access: of_kind(&LEASES, default.clone(), verb),
        purpose,
    };
    let verbs = [AccessVerb::Create, AccessVerb::Get, AccessVerb::Update];
    let mut needs: BTreeSet<_> = verbs
        .map(|verb| lease(verb, Purpose::Lease))
        .into_iter()
        .collect();
    needs.insert(lease(AccessVerb::Delete, Purpose::Removal));
    needs.extend(ALL.map(|kind| Need {
        access: of_kind(kind, Place::Cluster, AccessVerb::List),
        purpose: Purpose::Removal,
    }));
    needs
}

fn of_fixture(name: FixtureName) -> BTreeSet<Need> {
    let fixture = |access| Need {
        access,
        purpose: Purpose::Fixture(name),
    };
    let mut needs = BTreeSet::new();
    let mut has_pods = false;
    for kind in manifest::kinds(name) {
        let place = match kind.scope {
            Scope::Cluster => Place::Cluster,
            Scope::Namespaced => Place::Own,
        };
        // Server-side apply is a PATCH, and a creation where the object does not exist yet
        for verb in [AccessVerb::Create, AccessVerb::Patch] {
            needs.insert(fixture(of_kind(kind, place.clone(), verb)));
        }
        // What is deleted with its namespace is not read again
        if !kind.is_listed() {
            continue;
        }
        needs.insert(Need {
            access: of_kind(kind, place, AccessVerb::Delete),
            purpose: Purpose::Removal,
        });
        // To find out whether it is still as it was applied
        if kind.scope == Scope::Namespaced {
            needs.insert(fixture(of_kind(kind, Place::Own, AccessVerb::Get)));
        }
        // The run does not wait for pods that no scheduler binds
        has_pods |= kind.makes_pods() && name.until() != Until::Applied;
    }
    if has_pods {
        // One watch over all namespaces, by label
        for verb in [AccessVerb::List, AccessVerb::Watch] {
            needs.insert(fixture(of_kind(&PODS, Place::Cluster, verb)));
        }
        // Only events say why a pod has no sandbox, or a claim no volume
        needs.insert(fixture(objects("", "events", Place::Own, AccessVerb::List)));
        needs.extend(of_diagnosis(name));
    }
    if !name.changes().is_empty() {
        for kind in [&PODS, &SERVICES] {
            needs.insert(fixture(of_kind(kind, Place::Own, AccessVerb::Delete)));
        }
    }
    if name.changes().contains(&Change::Grow) {
        needs.insert(fixture(of_kind(&CLAIMS, Place::Own, AccessVerb::Get)));
    }
    if name.changes().contains(&Change::Snapshot) {
        for kind in [&CLAIMS, &SNAPSHOTS] {
            needs.insert(fixture(of_kind(kind, Place::Own, AccessVerb::Get)));
        }
        // Whether the node has let go of the volume
        for resource in ["nodes", "persistentvolumes"] {
            let get = objects("", resource, Place::Cluster, AccessVerb::Get);
            needs.insert(fixture(get));
        }
    }
    if name == FixtureName::NAMESPACES {
        needs.insert(fixture(objects(
            "",
            "serviceaccounts",
            Place::Own,
            AccessVerb::Get,
        )));
    }
    needs
}

/// The accesses to copy pull secrets: a run reads only the configured Secrets, and writes only the names of
/// their copies in its namespaces.
fn of_pull_secrets(images: &Images) -> impl Iterator<Item = Access> {
    let secret = |place, name: String, verb| Access::Objects {
        group: SECRETS.group.to_owned(),
        resource: SECRETS.plural.to_owned(),
        place,
        name: Some(name),
        verb,
    };
    images
        .secrets
        .iter()
        .enumerate()
        .flat_map(move |(nth, source)| {
            let from = Place::Namespace(source.namespace.clone());
            let copy = manifest::pull_secret(nth);
            [
                secret(from, source.name.clone(), AccessVerb::Get),
                secret(Place::Own, copy.clone(), AccessVerb::Create),
                secret(Place::Own, copy, AccessVerb::Patch),
            ]
        })
}

/// The needs of diagnosing a fixture, once it or a check that depends on it has failed.
fn of_diagnosis(name: FixtureName) -> Vec<Need> {
    let log = |place| objects("", "pods/log", place, AccessVerb::Get);
    let mut accesses = vec![
        log(Place::Own),
        of_kind(&PODS, Place::Own, AccessVerb::List),
        objects("", "nodes", Place::Cluster, AccessVerb::Get),
    ];
    if matches!(
        name,
        FixtureName::WINDOWS_NODE_PROBER | FixtureName::EACH_WINDOWS_NODE
    ) {
        // The logs of kube-proxy
        let system = || Place::Namespace(SYSTEM.to_owned());
        accesses.push(of_kind(&PODS, system(), AccessVerb::List));
        accesses.push(log(system()));
    }
    let lease = of_kind(
        &LEASES,
        Place::Namespace(node_liveness::NAMESPACE.to_owned()),
        AccessVerb::Get,
    );
    let node = objects("", "nodes", Place::Cluster, AccessVerb::Get);
    let liveness = [lease, node].map(|access| (access, Purpose::Silence));
    let diagnosis = accesses
        .into_iter()
        .map(|access| (access, Purpose::Diagnosis));
    let need = |(access, purpose)| Need { access, purpose };
    diagnosis.chain(liveness).map(need).collect()
}

fn of_kind(kind: &Kind, place: Place, verb: AccessVerb) -> Access {
    objects(kind.group, kind.plural, place, verb)
}

fn objects(group: &str, resource: &str, place: Place, verb: AccessVerb) -> Access {
    Access::Objects {
        group: group.to_owned(),
        resource: resource.to_owned(),
        place,
        name: None,
        verb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<'n>(needs: impl IntoIterator<Item = &'n Need>) -> BTreeSet<String> {
        let all = needs.into_iter().map(|need| need.access.to_string());
        all.collect()
    }

    #[test]
    fn whatever_is_made_is_removed_again() {
        let uses = uses(&Images::default());
        let all = shown(uses.fixtures.values().flatten().chain(&uses.run));
        for kind in ALL {
            let named = of_kind(kind, Place::Cluster, AccessVerb::Create).to_string();
            let what = named.trim_start_matches("create ");
            for verb in ["create", "delete"] {
                let begin = format!("{verb} {what}");
                assert!(
                    all.iter().any(|access| access.starts_with(&begin)),
                    "{begin}"
                );
            }
            assert!(all.contains(&format!("list {what}")), "list {what}");
        }
    }

    #[test]
    fn no_secret_is_asked_for_but_those_that_are_named() {
        let of = |text: &str| {
            let mut found = Vec::new();
            let images = winconform_core::config::read("config.yaml", text, &mut found).images;
            assert!(found.is_empty(), "{found:?}");
            let uses = uses(&images);
            let is_of_secrets = |access: &String| access.contains("secrets");
            let of = |name| -> Vec<_> {
                let all = shown(&uses.fixtures[&name]).into_iter();
                all.filter(is_of_secrets).collect()
            };
            assert!(!shown(&uses.run).iter().any(is_of_secrets));
            assert_eq!(of(FixtureName::UNBOUND_PODS), Vec::<String>::new());
            of(FixtureName::WIN_WEBSERVER)
        };
        assert_eq!(of("profile: default"), Vec::<String>::new());
        assert_eq!(
            of("images: {pull-secrets: [registry/regcred]}"),
            [
                "create secrets winconform-pull-1 in the run's namespaces",
                "get secrets regcred in namespace registry",
                "patch secrets winconform-pull-1 in the run's namespaces",
            ]
        );
    }

    #[test]
    fn every_fact_of_the_table_is_asked_for() {
        let uses = uses(&Images::default());
        let asked: usize = uses.facts.values().map(BTreeSet::len).sum();
        assert_eq!(asked, READ.iter().flat_map(|(_, paths)| *paths).count());
        let identity: BTreeSet<_> = uses.facts["cluster"]
            .iter()
            .map(Access::to_string)
            .collect();
        assert_eq!(identity, ["get namespaces kube-system".to_owned()].into());
    }
}
