//! A cluster whose pods show whatever a fault of theirs can change, and its day.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::stub::{Stub, path};
use crate::clock::{self, Clock};
use crate::cluster::{Cluster, NodeState};
use crate::fault::{FaultSet, FaultSwitch, ProductFault};
use crate::node;
use crate::topology::{Build, NodeSpec, Os, Pool};
use crate::world;

pub(super) const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost:2.66.1";

const WS2019: Pool = Pool::Windows(Build::Ws2019);
const WS2022: Pool = Pool::Windows(Build::Ws2022);

/// A pool has two nodes, that the one can be told from the other.
pub(in crate::pods) const NODES: [(&str, Pool); 4] = [
    ("linux", Pool::Linux),
    ("ws2019", WS2019),
    ("ws2022-a", WS2022),
    ("ws2022-b", WS2022),
];

/// One node has pods of both, the others of the first.
pub(in crate::pods) const NAMESPACES: [&str; 2] = ["test", "other"];

/// A place of each kind, of which none has anything of another: a pool, a node, a namespace.
pub(in crate::pods) const PLACES: [&str; 3] = ["windows-2019", "node/ws2022-b", "namespace/other"];

pub(in crate::pods) fn pool(node: &str) -> Pool {
    let found = NODES.iter().find(|(name, _)| *name == node);
    found.expect("a node of the scene").1
}

/// A kind of pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pods) struct Sort {
    pub(in crate::pods) name: &'static str,
    pub(in crate::pods) image: &'static str,
    pub(in crate::pods) handler: &'static str,
    pub(in crate::pods) isolation: &'static str,
    /// What its node selector names.
    pub(in crate::pods) selects: &'static str,
    /// How its readiness is looked at.
    pub(in crate::pods) by: &'static str,
    /// Whether it is deleted in the course of the day.
    pub(in crate::pods) told: bool,
    windows_only: bool,
}

const fn sort(name: &'static str) -> Sort {
    Sort {
        name,
        image: "agnhost",
        handler: "default",
        isolation: "process",
        selects: "nothing",
        by: "nothing",
        told: false,
        windows_only: false,
    }
}

pub(in crate::pods) const SORTS: [Sort; 10] = [
    Sort {
        by: "http",
        ..sort("serves")
    },
    Sort {
        by: "tcp",
        ..sort("unready")
    },
    sort("fails"),
    Sort {
        selects: "os",
        ..sort("pulls")
    },
    Sort {
        told: true,
        ..sort("hooked")
    },
    Sort {
        told: true,
        ..sort("ends")
    },
    Sort {
        handler: "named",
        by: "exec",
        ..sort("handled")
    },
    Sort {
        image: "servercore",
        windows_only: true,
        ..sort("core")
    },
    Sort {
        isolation: "host-process",
        windows_only: true,
        ..sort("host")
    },
    // The scheduler has passed it over
    Sort {
        windows_only: true,
        ..sort("waits")
    },
];

impl Sort {
    pub(in crate::pods) fn is_on(&self, pool: Pool) -> bool {
        !self.windows_only || pool.os() == Os::Windows
    }

    pub(in crate::pods) fn pod(&self, generation: u8, node: &str) -> String {
        format!("{}-{node}-{generation}", self.name)
    }

    fn object(&self, generation: u8, node: &str, namespace: &str) -> Value {
        let os = pool(node).os();
        let shell = |linux: &str, windows: &str| match os {
            Os::Linux => json!(["sh", "-c", linux]),
            Os::Windows => json!(["cmd", "/c", windows]),
        };
        let mut container = json!({"name": "main", "image": AGNHOST, "args": ["pause"]});
        let mut spec = json!({"nodeName": node, "restartPolicy": "Always"});
        match self.name {
            "serves" => {
                container["args"] = json!(["netexec", "--http-port=80"]);
                container["readinessProbe"] = json!({"httpGet": {"path": "/healthz", "port": 80},
                    "initialDelaySeconds": 20, "periodSeconds": 300, "failureThreshold": 1});
            }
            "unready" => {
                container["readinessProbe"] = json!({"tcpSocket": {"port": 81},
                    "initialDelaySeconds": 20, "periodSeconds": 300, "failureThreshold": 1});
            }
            "fails" => {
                let script = "echo one; echo two; exit 3";
                container["command"] = shell(script, "echo one& echo two& exit 3");
                container["args"] = Value::Null;
                spec["restartPolicy"] = json!("Never");
            }
            "pulls" => {
                container["imagePullPolicy"] = json!("Always");
                spec["nodeSelector"] = json!({"kubernetes.io/os": os.name()});
            }
            "hooked" => {
                let fails = json!({"exec": {"command": ["nonesuch"]}});
                container["lifecycle"] = json!({"preStop": fails});
            }
            "ends" => {}
            "handled" => {
                spec["runtimeClassName"] = json!(match os {
                    Os::Linux => "runc",
                    Os::Windows => "runhcs-wcow-process",
                });
                container["readinessProbe"] = json!({"exec": {"command": shell("exit 1", "exit 1")},
                    "initialDelaySeconds": 20, "periodSeconds": 300, "failureThreshold": 1});
            }
            "core" => {
                let tag = if pool(node) == WS2019 { "2019" } else { "2022" };
                let image = format!("mcr.microsoft.com/windows/servercore:ltsc{tag}");
                container["image"] = json!(image);
                container["imagePullPolicy"] = json!("Always");
                container["command"] = json!(["cmd", "/c", "ping -t localhost > NUL"]);
                container["args"] = Value::Null;
            }
            "host" => {
                container["command"] = json!(["cmd", "/c", "ping -t localhost > NUL"]);
                container["args"] = Value::Null;
                spec["hostNetwork"] = json!(true);
                spec["securityContext"] = json!({"windowsOptions":
                    {"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"}});
            }
            _ => {
                spec["nodeName"] = Value::Null;
                spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
            }
        }
        spec["containers"] = json!([container]);
        let name = self.pod(generation, node);
        let uid = format!("{namespace}-{name}");
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": namespace, "uid": uid}});
        if self.name == "waits" {
            pod["spec"]
                .as_object_mut()
                .expect("an object")
                .remove("nodeName");
            pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
                "status": "False", "reason": "Unschedulable",
                "message": "0/4 nodes are available: 4 Insufficient cpu, 4 node(s) had untolerated taint(s)."}]});
        }
        pod
    }
}

/// A running cluster.
pub(in crate::pods) struct Scene {
    pub(in crate::pods) stub: Stub,
    pub(in crate::pods) cluster: Arc<Cluster>,
}

impl Scene {
    /// Nodes that have registered, with all images but none that is asked for anew.
    pub(in crate::pods) async fn begin() -> Self {
        let stub = Stub::default();
        let nodes = (1_u8..).zip(NODES).map(|(number, (name, pool))| {
            let view = world::Node::new(pool, [127, 77, 0, number], 1, [10, 244, number]);
            let spec = NodeSpec::new(name, pool);
            let labels = node::labels(name, &spec);
            let node = NodeState::new(name.to_owned(), view, labels).with(spec);
            for image in [
                AGNHOST,
                "mcr.microsoft.com/windows/servercore:ltsc2019",
                "mcr.microsoft.com/windows/servercore:ltsc2022",
            ] {
                node.image(image).set(()).expect("it is new");
            }
            (name.to_owned(), Arc::new(node))
        });
        let faults = FaultSwitch::new(FaultSet::default());
        let (client, clock) = (stub.client(), Clock::new(1.0));
        let cluster = Cluster::new(client, clock, 7, faults, nodes.collect());
        let cluster = Arc::new(cluster);
        super::super::watch::begin(&cluster);
        for node in cluster.nodes.values() {
            let registered = node::register(&cluster, node, "v1.37.0").await;
            registered.expect("it is taken");
        }
        node::keep(&cluster, "v1.37.0");
        Self { stub, cluster }
    }

    /// Every kind of pod on every node, in both namespaces.
    pub(in crate::pods) fn create(&self, generation: u8) {
        Self::each(|sort, node, namespace| {
            let pod = sort.object(generation, node, namespace);
            self.stub.state().create(pod);
        });
    }

    /// Deletes those that are to be told to end.
    pub(in crate::pods) fn tell(&self, generation: u8) {
        Self::each(|sort, node, namespace| {
            if sort.told {
                let path = path(namespace, &sort.pod(generation, node));
                self.stub.state().delete(&path);
            }
        });
    }

    pub(in crate::pods) fn each(mut what: impl FnMut(Sort, &'static str, &'static str)) {
        for sort in SORTS {
            for (node, pool) in NODES {
                for namespace in NAMESPACES {
                    let both = node == "ws2022-a" || namespace == NAMESPACES[0];
                    if sort.is_on(pool) && both {
                        what(sort, node, namespace);
                    }
                }
            }
        }
    }

    pub(in crate::pods) fn set(&self, faults: &[ProductFault]) {
        for fault in faults {
            self.cluster.faults.set(fault.clone());
        }
    }

    pub(in crate::pods) fn lift(&self, faults: &[ProductFault]) {
        for fault in faults {
            self.cluster.faults.lift(fault);
        }
    }

    /// Time is paused: it passes where nothing else is to be done.
    pub(in crate::pods) async fn pass(&self, seconds: u64) {
        clock::elapse(Duration::from_secs(seconds)).await;
    }

    pub(in crate::pods) async fn end(self) {
        self.cluster.stop.cancel();
        self.cluster.tasks.close();
        self.cluster.tasks.wait().await;
    }
}
