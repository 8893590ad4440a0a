//! Manifests: plain YAML built into the binary, and the three things done to it.
//!
//! [`own`] makes an object the run's, [`place`] puts its pods on a pool's nodes, [`image`] gives
//! its containers the image of the pool's build. Nothing else is ever changed; Services in a second
//! family of addresses are made of these by `second_family`.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use winconform_core::config::{Durations, Image, Images};
use winconform_core::facts::{Os, Pool, PoolName};
use winconform_core::method::{FixtureKey, FixtureName, SourceKind, VantageKey};
use winconform_core::text::printable;

use super::prepull::Pull;
use crate::cluster::kinds::{DEPLOYMENTS, Kind, NETWORK_POLICIES, PODS, RUNTIME_CLASSES};
use crate::cluster::labels;
use crate::transport::PodRef;

/// The namespace in manifests that stands for the run's own.
const NAMESPACE: &str = "winconform";
/// The same for `HostProcess` probers.
const HOST_NAMESPACE: &str = "winconform-host";
/// How many of a pool's nodes its pods may be placed on.
const NODES: usize = 64;

/// Why a fixture's objects cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum ManifestError {
    /// The YAML built into the binary does not parse.
    #[error("manifest of {fixture} is not valid YAML")]
    Malformed {
        fixture: &'static str,
        /// The parser's words.
        source: Box<serde_saphyr::Error>,
    },
    /// Where its pods are to go, or what they are to ask for, is not known.
    #[error("{what} of {fixture} is not known")]
    NotAimed { what: String, fixture: FixtureKey },
    /// The image table has none for the pool's build.
    #[error("the image table has no image for {0}")]
    NoImage(FixtureKey),
    /// Nobody knows the handlers of the pool's container runtime.
    #[error(
        "no RuntimeClass handler is known for {fixture}, whose nodes run {}",
        printable(runtimes)
    )]
    NoHandler {
        fixture: FixtureKey,
        /// What its nodes say they run.
        runtimes: String,
    },
}

/// The run's namespace of samples and pod probers.
pub(super) fn namespace(run: &str) -> String {
    format!("{NAMESPACE}-{run}")
}

/// The run's namespace of `HostProcess` probers and dry runs.
pub(super) fn host_namespace(run: &str) -> String {
    format!("{HOST_NAMESPACE}-{run}")
}

/// The pod and container of a vantage point's prober; outside there is none.
pub(super) fn prober(run: &str, from: &VantageKey) -> Option<PodRef> {
    let namespace = match from.kind {
        SourceKind::LinuxPod | SourceKind::WindowsPod => namespace(run),
        SourceKind::LinuxNode | SourceKind::WindowsNode => host_namespace(run),
        SourceKind::Outside => return None,
    };
    Some(PodRef {
        namespace,
        name: name("prober", &from.prober()?),
        container: "prober".to_owned(),
    })
}

/// The objects of a fixture, ready to be applied; with the cluster's DNS suffix for those that name
/// others.
pub(super) fn objects(
    key: &FixtureKey,
    run: &str,
    pool: Option<&Pool>,
    images: &Images,
    durations: &Durations,
    domain: Option<&str>,
) -> Result<Vec<Json>, ManifestError> {
    let mut objects = match (key.name, pool) {
        (FixtureName::WindowsPodProber | FixtureName::Ring, Some(pool))
            if !images.has_agnhost(pool.build) =>
        {
            parsed(key.name, WITHOUT_AGNHOST)?
        }
        _ => as_written(key.name)?,
    };
    for object in &mut objects {
        own(object, key, run);
        if let (Some(pool), true) = (pool, object["kind"] == RUNTIME_CLASSES.kind) {
            class(object, key, pool)?;
        }
        if key.name == FixtureName::Alias {
            let of = name("win-webserver", key);
            let suffix = domain.ok_or_else(|| ManifestError::NotAimed {
                what: "the cluster's DNS suffix".to_owned(),
                fixture: key.clone(),
            })?;
            object["spec"]["externalName"] = json!(format!("{of}.{}.svc.{suffix}", namespace(run)));
        }
        if key.name.is_on_each_node() && object["kind"] == DEPLOYMENTS.kind {
            object["spec"]["replicas"] = json!(pool.map(|pool| pool.nodes.len()));
        }
        let Some(spec) = pod_spec(object) else {
            continue;
        };
        spec["priorityClassName"] = json!(namespace(run));
        if let Some(plain) = spec["runtimeClassName"].as_str() {
            spec["runtimeClassName"] = json!(cluster_name(plain, key, run));
        }
        if let Some(pool) = pool {
            let alone = key.node.map(|node| among(pool, pool.node(node)));
            place(spec, alone.as_ref().unwrap_or(pool));
            beside(spec, key, run);
            let role = key.name.image();
            let own = role.and_then(|role| images.of(role, pool.build));
            let own = own.ok_or_else(|| ManifestError::NoImage(key.clone()))?;
            image(spec, &own);
        }
        if key.name.image().is_some() {
            pull(spec, images);
        }
        if object["kind"] == "Pod" {
            // The end of what a run that was killed and never cleaned up costs
            object["spec"]["activeDeadlineSeconds"] = json!(durations.pod_deadline.as_secs());
        }
    }
    Ok(objects)
}

/// A pod that has an image pulled on a node and ends; of the run's and the pool's as the fixture's
/// own pods are.
pub(super) fn pulling(
    name: &str,
    key: &FixtureKey,
    run: &str,
    pool: &Pool,
    wanted: &Pull,
    images: &Images,
    durations: &Durations,
) -> Result<Json, ManifestError> {
    let text = match (key.name.image(), pool.os) {
        (Some(Image::HostProcess), _) => include_str!("../../manifests/prepull/host-process.yaml"),
        (_, Os::Windows) => include_str!("../../manifests/prepull/windows.yaml"),
        (_, Os::Linux) => include_str!("../../manifests/prepull/linux.yaml"),
    };
    let read = serde_saphyr::from_str(text);
    let mut pod: Json = read.map_err(|source| ManifestError::Malformed {
        fixture: "prepull",
        source: Box::new(source),
    })?;
    own(&mut pod, key, run);
    pod["metadata"]["name"] = json!(name);
    let spec = &mut pod["spec"];
    spec["priorityClassName"] = json!(namespace(run));
    spec["activeDeadlineSeconds"] = json!(durations.pod_deadline.as_secs());
    place(spec, &among(pool, [&wanted.node]));
    image(spec, &wanted.image);
    pull(spec, images);
    Ok(pod)
}

/// Of a pool these nodes alone.
fn among<'n>(pool: &Pool, nodes: impl IntoIterator<Item = &'n String>) -> Pool {
    Pool {
        nodes: nodes.into_iter().cloned().collect(),
        ..pool.clone()
    }
}

/// A pool's nodes that are each observed from, `most` at the most.
pub(super) fn observed_from(pool: &Pool, most: usize) -> Pool {
    let ring = pool.ring(most);
    among(pool, ring.into_iter().filter_map(|at| pool.node(at)))
}

/// The kinds of a fixture's objects, each once.
pub(super) fn kinds(name: FixtureName) -> Result<BTreeSet<&'static Kind>, ManifestError> {
    Ok(as_written(name)?.iter().filter_map(Kind::of).collect())
}

/// A fixture's objects as they are written, nobody's yet.
fn as_written(name: FixtureName) -> Result<Vec<Json>, ManifestError> {
    let text = match name {
        FixtureName::Namespaces => include_str!("../../manifests/namespaces.yaml"),
        FixtureName::WinWebserver => include_str!("../../manifests/win-webserver.yaml"),
        FixtureName::Iis => include_str!("../../manifests/iis.yaml"),
        FixtureName::SlowStarter => include_str!("../../manifests/slow-starter.yaml"),
        FixtureName::NanoServer => include_str!("../../manifests/nano-server.yaml"),
        FixtureName::NodeSample => include_str!("../../manifests/node-sample.yaml"),
        FixtureName::LinuxServer => include_str!("../../manifests/linux-server.yaml"),
        FixtureName::UnboundPods => include_str!("../../manifests/unbound-pods.yaml"),
        FixtureName::LinuxPodProber | FixtureName::EachLinuxPod => {
            include_str!("../../manifests/probers/linux-pod.yaml")
        }
        FixtureName::WindowsPodProber => include_str!("../../manifests/probers/windows-pod.yaml"),
        FixtureName::LinuxNodeProber | FixtureName::EachLinuxNode => {
            include_str!("../../manifests/probers/linux-node.yaml")
        }
        FixtureName::WindowsNodeProber | FixtureName::EachWindowsNode => {
            include_str!("../../manifests/probers/windows-node.yaml")
        }
        FixtureName::Ring => include_str!("../../manifests/probers/ring.yaml"),
        FixtureName::Alias => include_str!("../../manifests/alias.yaml"),
        FixtureName::LoadBalancer => include_str!("../../manifests/load-balancer.yaml"),
        FixtureName::Churn => include_str!("../../manifests/churn.yaml"),
        FixtureName::PolicyDenied => include_str!("../../manifests/policy/denied.yaml"),
        FixtureName::PolicyAllowed => include_str!("../../manifests/policy/allowed.yaml"),
        FixtureName::Sched(fixture) => super::pod_template::as_written(fixture),
    };
    let mut objects = parsed(name, text)?;
    // No Service leads to those that observe from a node each
    if name == FixtureName::EachLinuxPod {
        objects.retain(|object| object["kind"] == PODS.kind);
    }
    Ok(objects)
}

/// The prober of a build that agnhost has no image of.
const WITHOUT_AGNHOST: &str =
    include_str!("../../manifests/probers/windows-pod-without-agnhost.yaml");

fn parsed(name: FixtureName, text: &str) -> Result<Vec<Json>, ManifestError> {
    serde_saphyr::from_multiple(text).map_err(|source| ManifestError::Malformed {
        fixture: name.as_str(),
        source: Box::new(source),
    })
}

/// Makes an object the run's: its labels, its namespace, and a name per pool.
fn own(object: &mut Json, key: &FixtureKey, run: &str) {
    let labels = labels_of(key, run);
    add_to(&mut object["metadata"]["labels"], &labels);
    if !object["spec"]["template"].is_null() {
        let spec = &mut object["spec"];
        add_to(&mut spec["template"]["metadata"]["labels"], &labels);
        add_to(&mut spec["selector"]["matchLabels"], &labels);
    } else if object["kind"] == "Service" && !object["spec"]["selector"].is_null() {
        let behind = match key.name {
            // It is another's pods that it stands before
            FixtureName::LoadBalancer => labels_of(&FixtureName::Iis.at(key.pool.as_ref()), run),
            _ => labels,
        };
        add_to(&mut object["spec"]["selector"], &behind);
    } else if object["kind"] == NETWORK_POLICIES.kind {
        add_to(&mut object["spec"]["podSelector"]["matchLabels"], &labels);
    }
    let metadata = &mut object["metadata"];
    let plain = metadata["name"].as_str().unwrap_or_default().to_owned();
    if let Some(namespace) = metadata["namespace"].as_str() {
        metadata["namespace"] = json!(format!("{namespace}-{run}"));
        metadata["name"] = json!(name(&plain, key));
    } else {
        metadata["name"] = json!(cluster_name(&plain, key, run));
    }
}

/// The name of an object of the cluster as a whole: several runs have theirs side by side.
fn cluster_name(plain: &str, key: &FixtureKey, run: &str) -> String {
    format!("{}-{run}", name(plain, key))
}

fn labels_of(key: &FixtureKey, run: &str) -> Vec<(&'static str, String)> {
    let mut all = vec![
        (labels::MANAGED_BY, labels::WINCONFORM.to_owned()),
        (labels::RUN, run.to_owned()),
        (labels::FIXTURE, key.name.as_str().to_owned()),
    ];
    let pool = key.pool.as_ref();
    all.extend(pool.map(|pool| (labels::POOL, pool.to_string())));
    all.extend(key.node.map(|node| (labels::NODE, node.to_string())));
    all
}

/// An object's name in a fixture.
pub(super) fn name(plain: &str, key: &FixtureKey) -> String {
    let kind = if key.name.is_on_node() { "-node" } else { "" };
    let name = match &key.pool {
        Some(pool) => format!("{plain}{kind}-{pool}"),
        None => plain.to_owned(),
    };
    // In front: of a name, Windows keeps the beginning (its NetBIOS name)
    match key.node {
        Some(node) => format!("n{node}-{name}"),
        None => name,
    }
}

fn add_to(map: &mut Json, labels: &[(&'static str, String)]) {
    for (key, value) in labels {
        map[*key] = json!(value);
    }
}

pub(super) fn pod_spec(object: &mut Json) -> Option<&mut Json> {
    match object["kind"].as_str() {
        Some("Pod") => Some(&mut object["spec"]),
        Some("Deployment") => Some(&mut object["spec"]["template"]["spec"]),
        _ => None,
    }
}

/// Puts pods on a pool's usable nodes, by name: labels are what is checked, not relied on. They
/// tolerate whatever taints those nodes have (GKE's differ from the guide's).
fn place(spec: &mut Json, pool: &Pool) {
    let nodes = pool.nodes.iter().take(NODES);
    let terms: Vec<_> = nodes.map(|node| named(node)).collect();
    let first = pool.nodes.iter().take(Pool::TOGETHER);
    let preferred: Vec<_> = first
        .map(|node| json!({"weight": 100, "preference": named(node)}))
        .collect();
    spec["affinity"]["nodeAffinity"] = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    });
    let tolerations = tolerations(pool);
    // A RuntimeClass brings its own
    if !tolerations.is_empty() && spec["runtimeClassName"].is_null() {
        spec["tolerations"] = json!(tolerations);
    }
}

/// The term of a node; the API takes one value for a field.
pub(super) fn named(node: &str) -> Json {
    json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]})
}

pub(super) fn tolerations(pool: &Pool) -> Vec<Json> {
    let tolerate = |taint: &Json| {
        json!({
            "key": taint["key"],
            "operator": "Equal",
            "value": taint["value"].as_str().unwrap_or_default(),
            "effect": taint["effect"],
        })
    };
    pool.taints.iter().map(tolerate).collect()
}

/// The handler of isolation by process, as a pool's runtime has it.
pub(super) fn handler(key: &FixtureKey, pool: &Pool) -> Result<&'static str, ManifestError> {
    pool.handler().ok_or_else(|| ManifestError::NoHandler {
        fixture: key.clone(),
        runtimes: pool.runtimes.iter().cloned().collect::<Vec<_>>().join(", "),
    })
}

/// Makes a RuntimeClass that of a pool: the handler of its nodes' runtime, their build, their
/// taints. Unlike elsewhere the nodes' labels are relied on: selecting by them is what it is for.
fn class(object: &mut Json, key: &FixtureKey, pool: &Pool) -> Result<(), ManifestError> {
    object["handler"] = json!(handler(key, pool)?);
    let build = pool.build.map(|build| build.to_string());
    object["scheduling"]["nodeSelector"]["node.kubernetes.io/windows-build"] = json!(build);
    object["scheduling"]["tolerations"] = json!(tolerations(pool));
    Ok(())
}

/// Puts the prober that is a node onto the node of the prober in a pod: what holds for the one
/// must be able to stand beside the other, so that a dead node confirms no limitation.
fn beside(spec: &mut Json, key: &FixtureKey, run: &str) {
    let (FixtureName::WindowsNodeProber, Some(pool)) = (key.name, &key.pool) else {
        return;
    };
    spec["affinity"]["podAffinity"] = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "namespaces": [namespace(run)],
            "labelSelector": {"matchLabels": {
                labels::FIXTURE: FixtureName::WindowsPodProber.as_str(),
                labels::POOL: pool.as_str(),
            }},
        }]
    });
}

/// Gives every container the image.
fn image(spec: &mut Json, image: &str) {
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        container["image"] = json!(image);
    }
}

/// Says when the images of a pod are pulled, and with which of the run's copies of Secrets.
fn pull(spec: &mut Json, images: &Images) {
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        container["imagePullPolicy"] = json!(images.policy.as_str());
    }
    if !images.secrets.is_empty() {
        let copies = (0..images.secrets.len()).map(|nth| json!({"name": pull_secret(nth)}));
        spec["imagePullSecrets"] = json!(copies.collect::<Vec<_>>());
    }
}

/// The name of the run's copy of the nth pull secret: nobody else's, so that an account can be
/// allowed to make those and no others.
pub(super) fn pull_secret(nth: usize) -> String {
    format!("winconform-pull-{}", nth + 1)
}

pub(super) fn pool_of<'p>(
    key: &FixtureKey,
    pools: &'p std::collections::BTreeMap<PoolName, Pool>,
) -> Option<&'p Pool> {
    pools.get(key.pool.as_ref()?)
}

#[cfg(test)]
mod tests {
    use super::super::pod_template::tests::names;
    use super::*;
    use winconform_core::facts::WindowsBuild;

    fn pool() -> Pool {
        Pool {
            os: Os::Windows,
            build: Some(WindowsBuild::SERVER_2019),
            nodes: vec!["win-a".to_owned(), "win-b".to_owned()],
            unusable: Vec::new(),
            taints: vec![json!({"key": "os", "value": "windows", "effect": "NoSchedule"})],
            runtimes: ["containerd://1.7.20".to_owned()].into(),
        }
    }

    fn key(name: FixtureName) -> FixtureKey {
        name.at(Some(&PoolName::windows(WindowsBuild::SERVER_2019)))
    }

    /// A fixture's objects, for this pool where it stands once per pool.
    fn made(name: FixtureName, pool: &Pool, images: &Images) -> Result<Vec<Json>, ManifestError> {
        let (key, durations) = (key(name), Durations::default());
        let pool = key.pool.is_some().then_some(pool);
        objects(&key, "r1", pool, images, &durations, Some("cluster.local"))
    }

    fn objects_of(name: FixtureName) -> Vec<Json> {
        let made = made(name, &pool(), &Images::default());
        made.expect("the manifests built in are valid")
    }

    /// A pod that pulls an image onto a node for a fixture.
    fn puller(name: FixtureName, images: &Images) -> Json {
        let pull = Pull {
            node: "win-b".to_owned(),
            image: "example.com/image:1".to_owned(),
        };
        let (key, durations) = (key(name), Durations::default());
        let pod = pulling("pull-7", &key, "r1", &pool(), &pull, images, &durations);
        pod.expect("the manifests built in are valid")
    }

    fn images(text: &str) -> Images {
        let mut found = Vec::new();
        let images = winconform_core::config::read("config.yaml", text, &mut found).images;
        assert!(found.is_empty(), "{found:?}");
        images
    }

    #[test]
    fn everything_created_bears_the_run() {
        for name in FixtureName::ALL {
            for object in objects_of(name) {
                let labels = &object["metadata"]["labels"];
                assert_eq!(labels[labels::RUN], "r1", "{object}");
                assert_eq!(labels[labels::MANAGED_BY], labels::WINCONFORM, "{object}");
                let metadata = &object["metadata"];
                let scope = metadata["namespace"].as_str().or(metadata["name"].as_str());
                let is_own = scope.is_some_and(|scope| scope.ends_with("-r1"));
                assert!(is_own, "{object}");
            }
        }
    }

    #[test]
    fn a_prober_without_agnhost_serves_nothing() {
        let images = images("images: {agnhost-builds: []}");
        let without = made(FixtureName::WindowsPodProber, &pool(), &images).expect("valid");
        let with = objects_of(FixtureName::WindowsPodProber);
        assert_eq!((without.len(), with.len()), (1, 2));
        assert_eq!(without[0]["metadata"], with[0]["metadata"]);
        let [own, agnhost] = [&without, &with].map(|made| &made[0]["spec"]["containers"][0]);
        let core = "mcr.microsoft.com/windows/servercore:ltsc2019";
        assert_eq!(own["image"], core);
        assert!(own["ports"].is_null() && !agnhost["ports"].is_null());
        assert_eq!(own["name"], agnhost["name"]);
    }

    #[test]
    fn a_deployment_selects_its_own_pods_only() {
        let objects = objects_of(FixtureName::WinWebserver);
        let (deployment, service) = (&objects[0], &objects[1]);
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
        assert_eq!(&service["spec"]["selector"], labels);
        assert_eq!(labels[labels::POOL], "windows-2019");
    }

    #[test]
    fn pods_go_to_the_pool_with_its_image_and_tolerations() {
        let objects = objects_of(FixtureName::WinWebserver);
        let spec = &objects[0]["spec"]["template"]["spec"];
        assert_eq!(
            spec["containers"][0]["image"],
            "mcr.microsoft.com/windows/servercore:ltsc2019"
        );
        assert_eq!(spec["tolerations"][0]["key"], "os");
        assert_eq!(names(&objects[0]["spec"]["template"]), ["win-a", "win-b"]);
    }

    #[test]
    fn samples_go_to_each_node_that_is_observed_from() {
        let mut pool = pool();
        pool.nodes = (1..=5).map(|number| format!("win-{number}")).collect();
        let few = observed_from(&pool, 3);
        let objects = made(FixtureName::NodeSample, &few, &Images::default()).expect("valid");
        let (class, deployment) = (&objects[0], &objects[1]);
        assert_eq!(deployment["spec"]["replicas"], few.nodes.len());
        let spec = &deployment["spec"]["template"]["spec"];
        assert_eq!(spec["runtimeClassName"], class["metadata"]["name"]);
        // IIS has another
        let of_iis = objects_of(FixtureName::Iis);
        assert_ne!(class["metadata"]["name"], of_iis[0]["metadata"]["name"]);
        assert_eq!(names(&deployment["spec"]["template"]), few.nodes);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let apart = &spec["affinity"]["podAntiAffinity"][required][0];
        assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
        let app = &apart["labelSelector"]["matchLabels"]["app"];
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        assert_eq!(*app, labels["app"]);
    }

    #[test]
    fn a_runtime_class_is_made_of_the_facts_of_its_pool() {
        let objects = objects_of(FixtureName::Iis);
        let (class, deployment) = (&objects[0], &objects[1]);
        assert_eq!(class["metadata"]["name"], "winconform-windows-2019-r1");
        assert_eq!(class["handler"], "runhcs-wcow-process");
        let scheduling = &class["scheduling"];
        let build = &scheduling["nodeSelector"]["node.kubernetes.io/windows-build"];
        assert_eq!(build, "10.0.17763");
        assert_eq!(scheduling["tolerations"].as_array().map(Vec::len), Some(1));
        assert_eq!(scheduling["tolerations"][0]["effect"], "NoSchedule");
        // The pods have nothing but its name
        let spec = &deployment["spec"]["template"]["spec"];
        assert_eq!(spec["runtimeClassName"], class["metadata"]["name"]);
        assert!(spec["tolerations"].is_null() && spec["nodeSelector"].is_null());
    }

    #[test]
    fn a_runtime_whose_handlers_nobody_knows_has_no_class() {
        for runtimes in [
            vec!["docker://20.10.9"],
            vec!["containerd://2", "x"],
            vec![],
        ] {
            let pool = Pool {
                runtimes: runtimes.into_iter().map(str::to_owned).collect(),
                ..pool()
            };
            let made = made(FixtureName::Iis, &pool, &Images::default());
            let refused = matches!(made, Err(ManifestError::NoHandler { .. }));
            assert!(refused, "{made:?}");
        }
    }

    #[test]
    fn samples_are_found_under_the_name_they_are_applied_with() {
        for name in [
            FixtureName::WinWebserver,
            FixtureName::Iis,
            FixtureName::SlowStarter,
            FixtureName::NanoServer,
        ] {
            for object in objects_of(name) {
                // Nor is a headless Service looked for by the sample's name
                let beside =
                    object["kind"] == "RuntimeClass" || object["spec"]["clusterIP"] == "None";
                if !beside {
                    let name = key(name).object_name();
                    assert_eq!(object["metadata"]["name"], name, "{object}");
                }
            }
        }
    }

    #[test]
    fn what_pulls_an_image_stands_on_its_node_and_ends() {
        for (name, namespace) in [
            (FixtureName::NanoServer, "winconform-r1"),
            (FixtureName::WindowsNodeProber, "winconform-host-r1"),
        ] {
            let pod = puller(name, &Images::default());
            let metadata = &pod["metadata"];
            assert_eq!(metadata["name"], "pull-7");
            assert_eq!(metadata["namespace"], namespace);
            assert_eq!(metadata["labels"][labels::RUN], "r1");
            let spec = &pod["spec"];
            assert_eq!(spec["containers"][0]["image"], "example.com/image:1");
            assert_eq!(spec["containers"][0]["imagePullPolicy"], "IfNotPresent");
            assert_eq!(spec["restartPolicy"], "Never");
            assert_eq!(spec["tolerations"][0]["key"], "os");
            assert_eq!(spec["priorityClassName"], "winconform-r1");
            assert_eq!(names(&pod), ["win-b"]);
        }
    }

    #[test]
    fn every_pod_that_pulls_says_when_and_with_what() {
        let images = images("images: {pull-policy: Always, pull-secrets: [a/one, b/two]}");
        let check = |spec: &Json| {
            let pulls = json!([{"name": "winconform-pull-1"}, {"name": "winconform-pull-2"}]);
            assert_eq!(spec["imagePullSecrets"], pulls, "{spec}");
            for container in spec["containers"].as_array().expect("containers") {
                assert_eq!(container["imagePullPolicy"], "Always", "{container}");
            }
        };
        let mut pulling_pods = 0;
        for name in FixtureName::ALL {
            for mut object in made(name, &pool(), &images).expect("valid") {
                match pod_spec(&mut object) {
                    // Nothing binds them to a node that would pull
                    Some(spec) if name == FixtureName::UnboundPods => {
                        assert!(spec["imagePullSecrets"].is_null(), "{spec}");
                    }
                    Some(spec) => {
                        check(spec);
                        pulling_pods += 1;
                    }
                    None => {}
                }
            }
        }
        assert!(pulling_pods > 20, "{pulling_pods}");
        check(&puller(FixtureName::NanoServer, &images)["spec"]);
    }

    #[test]
    fn no_pod_of_ours_preempts_anyone() {
        let namespaces = objects_of(FixtureName::Namespaces);
        let mut classes = namespaces.iter();
        let class = classes.find(|object| object["kind"] == "PriorityClass");
        let class = class.expect("a class of our own");
        let is_low = class["value"].as_i64().is_some_and(|value| value < -10);
        assert!(is_low, "{class}");
        assert_eq!(class["preemptionPolicy"], "Never");
        for name in FixtureName::ALL {
            for mut object in objects_of(name) {
                if let Some(spec) = pod_spec(&mut object) {
                    assert_eq!(spec["priorityClassName"], class["metadata"]["name"]);
                }
            }
        }
    }

    #[test]
    fn dollars_stay_doubled_for_the_kubelet() {
        for name in [FixtureName::WinWebserver, FixtureName::SlowStarter] {
            let objects = objects_of(name);
            let script = &objects[0]["spec"]["template"]["spec"]["containers"][0]["args"][0];
            let script = script.as_str().expect("a script");
            assert!(script.contains("$$"), "{script}");
            assert!(!script.replace("$$", "").contains('$'), "{script}");
        }
    }

    #[test]
    fn probers_are_found_under_the_name_they_are_applied_with() {
        for &kind in SourceKind::ALL {
            let Some(fixture) = kind.prober() else {
                continue;
            };
            let from = VantageKey {
                kind,
                node: None,
                pool: key(fixture).pool,
            };
            let applied = &objects_of(fixture)[0]["metadata"];
            let pod = prober("r1", &from).expect("a pod");
            assert_eq!(
                (applied["namespace"].as_str(), applied["name"].as_str()),
                (Some(pod.namespace.as_str()), Some(pod.name.as_str()))
            );
        }
    }
}
