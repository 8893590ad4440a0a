//! What each fault of pods and nodes changes, and that nothing is left of it once it is lifted.
//!
//! Each fault has two nodes of its own, one of either system, and is set on one of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use futures::future::join_all;
use hybrid_sim::{Build, FaultPlan, JoinOptions, NodeSpec, Pool, ProductFault, Topology, join};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{events, status, told};
use crate::AGNHOST;
use crate::scene::{Scene, create};

/// What a running pod looks like.
const RUNS: &str = "Running, startable, ready: running";

/// What is seen of a pod.
#[derive(Clone, Copy)]
struct Seen {
    /// The pod, as [`look`] has it.
    look: &'static str,
    /// What an event says; nothing stands for no matter what.
    told: &'static str,
}

const fn seen(look: &'static str, told: &'static str) -> Seen {
    Seen { look, told }
}

/// One fault.
struct Case {
    fault: &'static str,
    on: System,
    /// What is put into the container.
    container: fn(System) -> Value,
    /// What is put into the pod.
    pod: fn(&Scene, System) -> Value,
    then: Then,
    broken: Seen,
    /// On Linux and on Windows.
    healthy: [Seen; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Linux,
    Windows,
}

use System::{Linux, Windows};

/// What is done with a pod before it is looked at, or afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It heals when the fault is lifted.
    Heals,
    /// It is over: another one has to show that the fault is gone.
    Again,
    /// The same, and it is looked at once it has been deleted.
    Deleted,
    /// The same, where an earlier pod has had the image pulled.
    Pulled,
}

impl System {
    fn other(self) -> Self {
        match self {
            Linux => Windows,
            Windows => Linux,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Linux => "linux",
            Windows => "windows",
        }
    }
}

/// A pod in a line: its phase, whether containers can start, whether it is ready, its container and
/// how that ended before.
fn look(pod: &Pod) -> String {
    let status = status(pod);
    let holds = |kind: &str| {
        let conditions = status["conditions"].as_array();
        let found = conditions.and_then(|all| all.iter().find(|c| c["type"] == kind));
        found.is_some_and(|condition| condition["status"] == "True")
    };
    let mut line = status["phase"].as_str().unwrap_or_default().to_owned();
    for (kind, word) in [
        ("PodReadyToStartContainers", ", startable"),
        ("Ready", ", ready"),
    ] {
        line += if holds(kind) { word } else { "" };
    }
    let container = &status["containerStatuses"][0];
    for (state, before) in [("state", ": "), ("lastState", ", after ")] {
        let state = container[state].as_object();
        let Some((kind, what)) = state.and_then(|state| state.iter().next()) else {
            continue;
        };
        line += before;
        line += kind;
        for field in ["reason", "exitCode"] {
            match &what[field] {
                Value::Null => {}
                Value::String(text) => line = line + " " + text,
                other => write!(line, " {other}").expect("a String takes all"),
            }
        }
        let started: Option<Timestamp> = what["startedAt"].as_str().and_then(|s| s.parse().ok());
        let soon = Timestamp::now() + SignedDuration::from_mins(30);
        if started.is_some_and(|started| started > soon) {
            line += " in the future";
        }
    }
    line
}

impl Case {
    fn node(&self, system: System) -> String {
        format!("{}-{}", self.fault, system.name())
    }

    fn pod(&self, name: &str) -> String {
        format!("{}-{name}", self.fault)
    }

    fn healthy(&self, system: System) -> Seen {
        self.healthy[usize::from(system == Windows)]
    }

    /// Makes a pod, has done with it what is to be done, and waits until it is seen as it should be.
    async fn meets(&self, scene: &Scene, name: &str, system: System, expected: Seen) {
        let mut container = json!({"image": AGNHOST, "args": ["pause"], "name": "main"});
        put(&mut container, (self.container)(system));
        let mut spec = scene.spec(&self.node(system), &container);
        put(&mut spec, (self.pod)(scene, system));
        let name = self.pod(name);
        let mut pod = json!({"metadata": {"name": name}, "spec": spec});
        if self.then == Then::Deleted {
            // So that its last status can be seen
            pod["metadata"]["finalizers"] = json!(["example.com/keep"]);
        }
        create(&scene.api::<Pod>(), pod).await;
        if self.then == Then::Deleted {
            self.becomes(scene, &name, seen(RUNS, "Started: ")).await;
            let pods = scene.api::<Pod>();
            let deleted = pods.delete(&name, &DeleteParams::default()).await;
            deleted.expect("it is deleted");
        }
        self.becomes(scene, &name, expected).await;
    }

    async fn becomes(&self, scene: &Scene, name: &str, expected: Seen) {
        let look = |pod: Option<&Pod>| pod.is_some_and(|pod| look(pod) == expected.look);
        scene.pod_until(name, look).await;
        told(scene, name, expected.told).await;
    }

    /// Whether a pod of this case has not been told of what another one is.
    async fn quiet(&self, scene: &Scene, name: &str, words: &str) {
        let events = events(scene, &self.pod(name)).await;
        let said = events.iter().any(|event| event.contains(words));
        assert!(
            words.is_empty() || !said,
            "{} {name}: {events:#?}",
            self.fault
        );
    }

    async fn shows(&self, scene: &Scene, joined: &hybrid_sim::Joined) {
        let (on, other) = (self.on, self.on.other());
        let (broken, healthy) = (self.broken, self.healthy(on));
        if self.then == Then::Pulled {
            let first = seen(RUNS, "Successfully pulled image");
            join_all([on, other].map(|system| {
                let name = ["first", "first-twin"][usize::from(system == other)];
                self.meets(scene, name, system, first)
            }))
            .await;
        }
        let fault = format!("{}=node/{}", self.fault, scene.node(&self.node(on)));
        let fault: ProductFault = fault.parse().expect("a fault");
        joined.faults().set(fault.clone());
        join_all(
            [("broken", on, broken), ("twin", other, self.healthy(other))]
                .map(|(name, system, expected)| self.meets(scene, name, system, expected)),
        )
        .await;
        if broken.look.starts_with("Pending") {
            // It still is, where the other one has come to run
            let pod = scene.api::<Pod>().get(&self.pod("broken")).await;
            let now = look(&pod.expect("it is there"));
            assert_eq!(now, broken.look, "{}", self.fault);
        }
        self.quiet(scene, "broken", healthy.told).await;
        self.quiet(scene, "twin", broken.told).await;
        let twin = scene.api::<Pod>().get(&self.pod("twin")).await;
        let twin = look(&twin.expect("it is there"));
        assert_eq!(twin, self.healthy(other).look, "{}", self.fault);

        joined.faults().lift(&fault);
        if self.then == Then::Heals {
            let same = self.pod("broken");
            let healed = |pod: Option<&Pod>| {
                // What has ended before stays told
                pod.is_some_and(|pod| look(pod).starts_with(healthy.look))
            };
            scene.pod_until(&same, healed).await;
        }
        self.meets(scene, "healed", on, healthy).await;
        self.quiet(scene, "healed", broken.told).await;
        if self.then != Then::Heals {
            // By now what it had to tell has been told
            self.quiet(scene, "broken", healthy.told).await;
        }
    }
}

/// Puts fields into an object, in place of those of the same name.
fn put(object: &mut Value, fields: Value) {
    let fields: BTreeMap<String, Value> = serde_json::from_value(fields).expect("an object");
    for (name, value) in fields {
        object[name] = value;
    }
}

fn nothing(_: System) -> Value {
    json!({})
}

fn no_more(_: &Scene, _: System) -> Value {
    json!({})
}

fn once(_: &Scene, _: System) -> Value {
    json!({"restartPolicy": "Never"})
}

/// A program in either system's shell.
fn shell(system: System, linux: &str, windows: &str) -> Value {
    match system {
        Linux => json!(["sh", "-c", linux]),
        Windows => json!(["cmd", "/c", windows]),
    }
}

fn host_process(_: &Scene, _: System) -> Value {
    json!({"hostNetwork": true, "securityContext": {"windowsOptions":
        {"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}})
}

/// The handler that a node's runtime has besides its default.
fn handler(system: System) -> (&'static str, &'static str) {
    match system {
        Linux => ("runc", "runc"),
        Windows => ("wcow", "runhcs-wcow-process"),
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let case = |fault, on, broken| Case {
        fault,
        on,
        container: nothing,
        pod: no_more,
        then: Then::Heals,
        broken,
        healthy: [seen(RUNS, "Started: "); 2],
    };
    let no_sandbox = "Pending: waiting ContainerCreating";
    let unready = seen(
        "Running, startable: running",
        "Unhealthy: Readiness probe failed: ",
    );
    vec![
        case(
            "image-build-wrong",
            Windows,
            seen(
                "Running, startable: waiting RunContainerError, after terminated StartError 128",
                "The container operating system does not match the host operating system.: unknown",
            ),
        ),
        case(
            "sandbox-fails",
            Linux,
            seen(
                no_sandbox,
                "FailedCreatePodSandBox: Failed to create pod sandbox: rpc error: code = Unknown \
                 desc = failed to setup network for sandbox",
            ),
        ),
        Case {
            pod: |scene, system| json!({"runtimeClassName": scene.node(handler(system).0)}),
            ..case(
                "handler-unknown",
                Windows,
                seen(
                    no_sandbox,
                    "no runtime for \"runhcs-wcow-process\" is configured",
                ),
            )
        },
        Case {
            healthy: [seen(RUNS, ""); 2],
            ..case(
                "crash-loop",
                Linux,
                seen(
                    "Running, startable: terminated Error 1, after terminated Error 1",
                    "BackOff: Back-off restarting failed container main in pod ",
                ),
            )
        },
        Case {
            container: |_| {
                json!({"readinessProbe": {"tcpSocket": {"port": 81}, "periodSeconds": 1,
                    "failureThreshold": 1}})
            },
            healthy: [unready; 2],
            ..case("probe-ignored", Windows, seen(RUNS, ""))
        },
        Case {
            container: |_| {
                let fails = json!({"exec": {"command": ["nonesuch"]}});
                json!({"lifecycle": {"preStop": fails}})
            },
            then: Then::Deleted,
            healthy: [
                seen(
                    "Failed: terminated Error 2",
                    "FailedPreStopHook: PreStopHook failed",
                ),
                seen(
                    "Failed: terminated Error -1073741510",
                    "FailedPreStopHook: PreStopHook failed",
                ),
            ],
            ..case(
                "pre-stop-skipped",
                Linux,
                seen("Failed: terminated Error 2", ""),
            )
        },
        Case {
            then: Then::Deleted,
            healthy: [
                seen("Failed: terminated Error 2", ""),
                seen("Failed: terminated Error -1073741510", ""),
            ],
            ..case(
                "grace-ignored",
                Linux,
                seen("Failed: terminated Error 137", ""),
            )
        },
        Case {
            container: |system| json!({"args": null, "command": shell(system, "exit 3", "exit 3")}),
            pod: once,
            then: Then::Again,
            healthy: [seen("Failed: terminated Error 3", ""); 2],
            ..case(
                "exit-code-lost",
                Windows,
                seen("Succeeded: terminated Completed 0", ""),
            )
        },
        Case {
            container: |system| {
                let windows = "ping -t localhost";
                json!({"args": null, "command": shell(system, "sleep 3600", windows)})
            },
            pod: host_process,
            ..case(
                "host-process-refused",
                Windows,
                seen(
                    no_sandbox,
                    "the runtime does not support HostProcess containers",
                ),
            )
        },
        Case {
            container: |_| json!({"imagePullPolicy": "Always"}),
            then: Then::Pulled,
            healthy: [seen(RUNS, " in 400ms (400ms including waiting)"); 2],
            ..case(
                "pull-slow",
                Linux,
                seen(RUNS, " in 40s (40s including waiting)"),
            )
        },
        // Its pods are bound, and nothing more is heard of them
        case("node-vanishes", Linux, seen("Pending", "")),
        Case {
            then: Then::Again,
            healthy: [seen(RUNS, ""); 2],
            ..case(
                "clock-wrong",
                Windows,
                seen("Running, startable, ready: running in the future", ""),
            )
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_changes_what_it_says_and_lifting_it_heals() {
    let test = "each_fault_changes_what_it_says_and_lifting_it_heals";
    let Some(scene) = Scene::begin(test, "each", &[]).await else {
        return;
    };
    let cases = cases();
    let nodes = cases.iter().flat_map(|case| {
        [
            NodeSpec::new(case.node(Linux), Pool::Linux),
            NodeSpec::new(case.node(Windows), Pool::Windows(Build::Ws2022)),
        ]
    });
    let options = JoinOptions {
        topology: Topology {
            nodes: nodes.collect(),
            outside: true,
            ..Topology::hybrid()
        },
        faults: FaultPlan::default(),
        seed: 7,
        speed: 20.0,
        prefix: scene.node(""),
    };
    let joined = join(scene.client.clone(), options).await;
    let joined = joined.expect("the nodes join");
    let classes: Api<RuntimeClass> = Api::all(scene.client.clone());
    for (name, handler) in [Linux, Windows].map(handler) {
        let metadata = json!({"name": scene.node(name)});
        create(&classes, json!({"metadata": metadata, "handler": handler})).await;
    }

    join_all(cases.iter().map(|case| case.shows(&scene, &joined))).await;

    let pods = scene.api::<Pod>();
    let all = pods.list(&ListParams::default()).await.expect("a list");
    for pod in all.iter().filter(|pod| pod.metadata.finalizers.is_some()) {
        let name = pod.metadata.name.as_ref().expect("a name");
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let freed = pods.patch(name, &PatchParams::default(), &free).await;
        freed.expect("it is let go");
    }
    for (name, _) in [Linux, Windows].map(handler) {
        let (class, params) = (scene.node(name), DeleteParams::default());
        let gone = classes.delete(&class, &params).await;
        gone.expect("the class goes");
    }
    joined.leave().await.expect("the nodes leave");
    scene.end().await;
}
