//! What is seen of a cluster: everything that pods, nodes and kubelets tell, in the order in which
//! one thing needs another, without what differs from one day to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use regex::Regex;
use serde_json::{Value, json};

use super::ask::{exec, get};
use super::scene::{NAMESPACES, NODES, Scene, Sort, pool};
use super::stub::path;
use crate::network::{Origin, Outcome, connect};
use crate::world::Key;

/// What stands where something did not come to be.
pub(super) const NOTHING: &str = "-";

/// What is observed, as a subject and facets of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Observation {
    pub(super) subject: &'static str,
    pub(super) facets: BTreeMap<&'static str, String>,
}

impl Observation {
    pub(super) fn facet(&self, name: &str) -> &str {
        self.facets.get(name).map_or("", String::as_str)
    }
}

/// What was seen of each, by the generation of its pods; 0 for what is no pod's.
pub(super) type Observed = BTreeMap<(Observation, u8), String>;

fn observation(subject: &'static str, facets: &[(&'static str, &str)]) -> Observation {
    let facets = facets
        .iter()
        .map(|(key, value)| (*key, (*value).to_owned()));
    Observation {
        subject,
        facets: facets.collect(),
    }
}

/// Everything, of the pods of these generations.
pub(super) async fn observe(scene: &Scene, generations: &[u8]) -> Observed {
    let mut seen = Observed::new();
    nodes(scene, &mut seen).await;
    for generation in generations {
        let mut sorts = Vec::new();
        Scene::each(|sort, node, namespace| sorts.push((sort, node, namespace)));
        for (sort, node, namespace) in sorts {
            pod(scene, *generation, sort, node, namespace, &mut seen);
            let of = |subject, facets: &[(&'static str, &str)]| {
                let own = [
                    ("at", node),
                    ("os", pool(node).os().name()),
                    ("namespace", namespace),
                    ("pod", sort.name),
                    ("isolation", sort.isolation),
                ];
                observation(subject, &[&own, facets].concat())
            };
            let name = format!("{namespace}/{}/main", sort.pod(*generation, node));
            if sort.name == "serves" {
                let told = exec(
                    scene,
                    node,
                    &name,
                    &["sh", "-c", "echo out; exit 3"],
                    &["cmd", "/c", "echo out& exit 3"],
                );
                seen.insert(
                    (of("exec", &[("aspect", "result")]), *generation),
                    told.await,
                );
            }
            if sort.name == "host" {
                let told = exec(scene, node, &name, &[], &["cmd", "/c", "echo", "out"]).await;
                seen.insert((of("exec", &[("aspect", "result")]), *generation), told);
            }
            if sort.name == "core" {
                let ping = ["ping", "-n", "1", "127.0.0.1"];
                let told = exec(scene, node, &name, &[], &ping).await;
                seen.insert((of("exec", &[("aspect", "language")]), *generation), told);
            }
            if sort.name == "fails" {
                let told = get(scene, node, &format!("containerLogs/{name}")).await;
                let told = match told.strip_prefix("200 ") {
                    Some(log) if !log.is_empty() => log.to_owned(),
                    _ => NOTHING.to_owned(),
                };
                seen.insert((of("logs", &[]), *generation), told);
            }
        }
        connections(scene, *generation, &mut seen);
    }
    seen
}

fn ahead(time: &Value) -> bool {
    let time: Option<Timestamp> = time.as_str().and_then(|time| time.parse().ok());
    time.is_some_and(|time| time > Timestamp::now() + SignedDuration::from_mins(30))
}

async fn nodes(scene: &Scene, seen: &mut Observed) {
    for (name, _) in NODES {
        let health = get(scene, name, "healthz").await;
        let object = scene.stub.state().objects[&format!("/api/v1/nodes/{name}")].clone();
        let lease =
            format!("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}");
        let lease = scene.stub.state().objects[&lease].clone();
        let renewed = scene.stub.state().renewed.get(name).copied();
        let alive = renewed.is_some_and(|at| at.elapsed() <= Duration::from_secs(30));
        let booted =
            scene.stub.state().objects.values().any(|event| {
                event["reason"] == "Rebooted" && event["involvedObject"]["name"] == name
            });
        let mut status = object["status"].clone();
        let boot = status["nodeInfo"]["bootID"].take();
        let mut times = vec![lease["spec"]["renewTime"].clone()];
        let mut of: BTreeMap<String, Value> = BTreeMap::new();
        for condition in status["conditions"].as_array_mut().expect("conditions") {
            times.push(condition["lastHeartbeatTime"].take());
            condition["lastTransitionTime"].take();
            of.insert(
                condition["type"].as_str().expect("a type").to_owned(),
                condition.take(),
            );
        }
        let [ready, memory] =
            ["Ready", "MemoryPressure"].map(|kind| of.remove(kind).unwrap_or_default());
        status["conditions"] = json!(of);
        for (aspect, value) in [
            ("labels", object["metadata"]["labels"].to_string()),
            ("taints", object["spec"]["taints"].to_string()),
            ("ready", ready.to_string()),
            ("pressure", memory.to_string()),
            ("boot", format!("{boot}, told: {booted}")),
            (
                "time",
                if times.iter().any(ahead) {
                    "ahead"
                } else {
                    "now"
                }
                .to_owned(),
            ),
            ("lease", if alive { "renewed" } else { "silent" }.to_owned()),
            ("status", status.to_string()),
        ] {
            let of = observation("node", &[("at", name), ("aspect", aspect)]);
            seen.insert((of, 0), value);
        }
        seen.insert((observation("kubelet", &[("at", name)]), 0), health);
    }
}

/// What events say, without what names this pod or this day.
fn plain(text: &str) -> String {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[0-9a-f]{64}|\d+\.\d+\.\d+\.\d+|in [0-9a-z.]+ \([0-9a-z.]+ including|\S+_(test|other)\(\S+\)")
            .expect("a pattern")
    });
    NAMES.replace_all(text, "…").into_owned()
}

/// A pod, by its aspects.
fn pod(
    scene: &Scene,
    generation: u8,
    sort: Sort,
    node: &'static str,
    namespace: &str,
    seen: &mut Observed,
) {
    let name = sort.pod(generation, node);
    let (object, ended, events) = {
        let state = scene.stub.state();
        let path = path(namespace, &name);
        let events: Vec<Value> = state
            .objects
            .values()
            .filter(|event| event["involvedObject"]["name"] == name)
            .filter(|event| event["involvedObject"]["namespace"] == namespace)
            .cloned()
            .collect();
        let ended = state.deleted.get(&path).and_then(|(_, took)| *took);
        (state.objects[&path].clone(), ended, events)
    };
    for (aspect, value) in aspects(sort, &object, ended, &events) {
        let mut facets = vec![
            ("at", node),
            ("os", pool(node).os().name()),
            ("namespace", namespace),
            ("pod", sort.name),
            ("image", sort.image),
            ("handler", sort.handler),
            ("isolation", sort.isolation),
            ("selects", sort.selects),
            ("by", sort.by),
            ("aspect", aspect),
        ];
        if aspect == "exit-code" {
            facets.push(("end", if sort.told { "told" } else { "own" }));
        }
        seen.insert((observation("pod", &facets), generation), value);
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn aspects(
    sort: Sort,
    pod: &Value,
    ended: Option<Duration>,
    events: &[Value],
) -> Vec<(&'static str, String)> {
    let status = &pod["status"];
    let container = &status["containerStatuses"][0];
    let texts: BTreeSet<String> = events
        .iter()
        .map(|event| {
            let word = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", word("reason"), word("message"))
        })
        .collect();
    let said = |words: &[&str]| {
        let found = texts
            .iter()
            .filter(|text| words.iter().any(|word| text.contains(word)));
        let found: BTreeSet<String> = found.map(|text| plain(text)).collect();
        (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join("; "))
    };
    let nothing = || NOTHING.to_owned();
    let reported = status["startTime"].is_string();
    let evicted = said(&["Evicted:"]).filter(|_| reported);
    let lives = reported && evicted.is_none();
    let created = lives && container["containerID"].is_string();
    let only = |is: bool, value: Option<String>| value.filter(|_| is).unwrap_or_else(nothing);
    let refused = said(&["FailedCreatePodSandBox"]);
    let refused_host = refused
        .as_ref()
        .is_some_and(|text| text.contains("HostProcess"));
    let sandbox = match (&refused, lives) {
        (_, false) => None,
        (Some(_), _) if refused_host => Some("made".to_owned()),
        (None, _) => Some("made".to_owned()),
        (Some(why), _) => Some(why.clone()),
    };
    let host = (sort.isolation == "host-process" && lives).then(|| match &refused {
        Some(why) if refused_host => why.clone(),
        Some(_) => nothing(),
        None => "taken".to_owned(),
    });
    let starting = [
        "Created:",
        "Started:",
        "Failed: Error: failed to",
        "restarting failed container",
    ];
    let restarts = container["restartCount"].as_i64().unwrap_or_default() > 0;
    let booted = said(&["SandboxChanged"]);
    let start = said(&starting).map(|text| match restarts && booted.is_none() {
        true => format!("{text}, again and again"),
        false => text,
    });
    let state = &container["state"];
    let runs = state["running"].is_object();
    let ended_as = &state["terminated"]["reason"];
    // The code of what never ran, or was lost, is the kubelet's own
    let ran = ended_as != "StartError" && ended_as != "ContainerStatusUnknown";
    let has_ended = ended_as.is_string() && ran;
    let conditions = status["conditions"].as_array();
    let is_ready = conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    });
    let ready = if is_ready { "ready" } else { "unready" };
    let unhealthy = said(&["Unhealthy"]).unwrap_or_default();
    let times = [&status["startTime"], &state["running"]["startedAt"]];
    let fields = ["image", "imageID"];
    let fields = fields.map(|field| container[field].clone());
    let took = said(&["Successfully pulled"]).map(|_| {
        let pulled = texts
            .iter()
            .find(|text| text.contains("Successfully pulled"));
        let (_, time) = pulled
            .and_then(|text| text.split_once(" in "))
            .unwrap_or_default();
        time.split(' ').next().unwrap_or_default().to_owned()
    });
    let images = [
        "Pulling:",
        "Pulled:",
        "Failed to pull",
        "ErrImagePull",
        "pulling image",
    ];
    let known = [
        images.as_slice(),
        &starting,
        &[
            "FailedCreatePodSandBox",
            "Evicted:",
            "SandboxChanged",
            "Unhealthy",
            "FailedPreStopHook",
            "Killing:",
        ],
    ]
    .concat();
    let others = texts
        .iter()
        .filter(|text| !known.iter().any(|word| text.contains(word)));
    let others: Vec<String> = others.map(|text| plain(text)).collect();
    let rest = format!(
        "{} {} {} {others:?}",
        status["qosClass"],
        status["hostIP"],
        json!(fields)
    );
    let bound = pod["spec"]["nodeName"].as_str().unwrap_or("nowhere");
    let mut all = vec![
        (
            "eviction",
            only(reported, Some(evicted.unwrap_or_else(|| "none".to_owned()))),
        ),
        ("sandbox", only(lives, sandbox)),
        ("pull", only(lives, said(&images))),
        ("pull-time", only(lives, took)),
        ("start", only(lives, start)),
        (
            "probe",
            only(lives && runs, Some(format!("{ready} {unhealthy}"))),
        ),
        (
            "pre-stop",
            only(lives && ended.is_some(), said(&["FailedPreStopHook"])),
        ),
        (
            "grace",
            only(
                lives,
                ended.map(|took| {
                    let told = said(&["Killing:"]).unwrap_or_default();
                    format!("{:.1}s {told}", took.as_secs_f32())
                }),
            ),
        ),
        (
            "exit-code",
            only(
                lives && has_ended,
                Some(state["terminated"]["exitCode"].to_string()),
            ),
        ),
        (
            "restarts",
            only(
                lives && runs,
                Some(booted.unwrap_or_else(|| "none".to_owned())),
            ),
        ),
        (
            "time",
            only(
                reported,
                Some(
                    if times.into_iter().any(ahead) {
                        "ahead"
                    } else {
                        "now"
                    }
                    .to_owned(),
                ),
            ),
        ),
        ("rest", only(created, Some(rest))),
    ];
    if sort.name == "waits" {
        all.push(("binding", bound.to_owned()));
    }
    if sort.isolation == "host-process" {
        all.push(("host-process", only(lives, host)));
    }
    all
}

/// Connections between the servers of one namespace.
fn connections(scene: &Scene, generation: u8, seen: &mut Observed) {
    let world = scene.cluster.world();
    let key = |node| {
        let name = format!("serves-{node}-{generation}");
        Key::new(NAMESPACES[0], &name)
    };
    for (from, _) in NODES {
        for (to, _) in NODES.into_iter().filter(|(to, _)| *to != from) {
            let listens = |node| {
                let pod = world.pods.get(&key(node))?;
                pod.listening
                    .contains_key(&80)
                    .then_some(IpAddr::from(pod.address))
            };
            let value = match (listens(from), listens(to)) {
                (Some(_), Some(address)) => {
                    let origin = Origin::Pod(key(from));
                    match connect(
                        &world,
                        &crate::network::Request::tcp(origin, address, 80, 0),
                    ) {
                        Outcome::Answered { .. } => "answered".to_owned(),
                        other => format!("{other:?}"),
                    }
                }
                _ => NOTHING.to_owned(),
            };
            let of = observation("connection", &[("from", from), ("to", to)]);
            seen.insert((of, generation), value);
        }
    }
}
