//! The one control plane of all worlds: the nodes that are joined to it, and how a run goes there.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use winconform::transport::Env;

use hybrid_sim::interference::Fault;
use hybrid_sim::{
    Build, FaultPlan, JoinOptions, Joined, NodeSpec, Pool, ProductFault, Topology, join,
};
use serde_json::json;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, mpsc};
use winconform::cluster::{Cluster, Condition, connect, remove_run};
use winconform::engine::{Journal, run};
use winconform_core::config::{Durations, Limits};
use winconform_core::record::{Event, FixtureOutcome, RunView, read};
use winconform_core::suite::Suites;
use winconform_core::way::{ApiRequest, Verb};

use crate::admission::{House, Rule};
use crate::asking::{self, send};
use crate::interfered::interfered;
use crate::list::{Bad, Nodes, World};
use crate::others::Others;
use crate::portal::{self, Portal};
use crate::runs;
use crate::told;
use crate::world::{self, Outcome, options};

/// Simulated durations go by so much faster.
const SPEED: f64 = 40.0;

/// What is checked: a little of everything.
const CLAIMS: [&str; 9] = [
    "env.all-nodes-healthy",
    "env.hybrid-nodes",
    "net.node-to-service-ip",
    "net.nodeport-external",
    "net.pod-to-pod-cross-os",
    "net.service-ip-from-pod",
    "reject.hostPID",
    "sample.win-webserver",
    "sched.node-selector",
];

/// The control plane and what is joined to it.
pub(crate) struct Earth {
    kubeconfig: PathBuf,
    admin: Cluster,
    others: Others,
    /// Whether Services can have addresses of IPv6.
    dual: bool,
    /// Held for writing by who changes the nodes.
    ground: RwLock<Option<(Nodes, Joined)>>,
}

type Ground = Option<(Nodes, Joined)>;

impl Earth {
    /// Makes what others have in the cluster.
    pub(crate) async fn begin(kubeconfig: PathBuf) -> Result<Self, String> {
        let admin = connect(
            &options(&kubeconfig),
            durations(&Bad::Nothing),
            Limits::default(),
        )
        .await;
        let admin = admin.map_err(|error| error.to_string())?;
        let others = Others::make(&admin.api).await?;
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "asks"},
            "spec": {"ipFamilies": ["IPv6"], "ports": [{"port": 80}]}});
        let path = "/api/v1/namespaces/default/services?dryRun=All";
        let dual = send(&admin.api, Verb::Create, path, Some(service)).await;
        Ok(Self {
            dual: dual.is_ok(),
            kubeconfig,
            admin,
            others,
            ground: RwLock::new(None),
        })
    }

    /// What a world needs of the control plane that this one does not have.
    pub(crate) fn lacks(&self, world: &World) -> Option<&'static str> {
        let needs = matches!(world.bad, Bad::Admission(House::IPv6Services));
        (needs && !self.dual).then_some("the control plane has no range of Services in IPv6")
    }

    /// Removes it again, and the nodes.
    pub(crate) async fn end(self) -> Result<(), String> {
        if let Some((_, joined)) = self.ground.into_inner() {
            joined.leave().await.map_err(|error| error.to_string())?;
        }
        self.others.remove(&self.admin.api).await
    }

    /// A run in a world, and whether all came as it says.
    pub(crate) async fn live(&self, world: &World) -> Outcome {
        let run = format!("w{:08x}", rand::random::<u32>());
        let alone = matches!(
            world.bad,
            Bad::Nodes(_) | Bad::Hostile(_) | Bad::Cordoned(_) | Bad::Vanishing(_)
        );
        let began;
        let (view, before, after);
        if alone {
            let mut ground = self.changed(world.nodes).await?;
            began = Instant::now();
            before = self.others.settled(&self.admin.api).await?;
            let (_, joined) = ground.as_mut().ok_or("no nodes")?;
            self.turn(joined, &world.bad, true).await?;
            view = self.run(world, &run, joined).await;
            self.turn(joined, &world.bad, false).await?;
            after = self.others.seen(&self.admin.api).await?;
        } else {
            let ground = self.joined(world.nodes).await?;
            began = Instant::now();
            before = self.others.settled(&self.admin.api).await?;
            let (_, joined) = ground.as_ref().ok_or("no nodes")?;
            view = self.run(world, &run, joined).await;
            after = self.others.seen(&self.admin.api).await?;
        }
        let view = view?;
        println!("{}: {:.1} s", world.is, began.elapsed().as_secs_f32());
        told::as_expected(world, &view)?;
        self.clean(&run, &view).await?;
        if before != after {
            return Err(format!("others have {after:#?}\nand had {before:#?}"));
        }
        Ok(())
    }

    /// These nodes, for who leaves them as they are.
    async fn joined(&self, nodes: Nodes) -> Result<RwLockReadGuard<'_, Ground>, String> {
        let there = |ground: &Ground| ground.as_ref().is_some_and(|(known, _)| *known == nodes);
        let ground = self.ground.read().await;
        if there(&ground) {
            return Ok(ground);
        }
        drop(ground);
        Ok(self.changed(nodes).await?.downgrade())
    }

    /// These nodes, for who breaks them.
    async fn changed(&self, nodes: Nodes) -> Result<RwLockWriteGuard<'_, Ground>, String> {
        let mut ground = self.ground.write().await;
        if ground.as_ref().is_none_or(|(known, _)| *known != nodes) {
            if let Some((_, joined)) = ground.take() {
                joined.leave().await.map_err(|error| error.to_string())?;
            }
            let options = JoinOptions {
                topology: topology(nodes),
                faults: FaultPlan::default(),
                seed: 1,
                speed: SPEED,
                prefix: "worlds-".to_owned(),
            };
            let joined = join(self.admin.api.client().clone(), options).await;
            *ground = Some((nodes, joined.map_err(|error| error.to_string())?));
        }
        Ok(ground)
    }

    /// Breaks nodes, or mends them.
    async fn turn(&self, joined: &Joined, bad: &Bad, on: bool) -> Outcome {
        match bad {
            Bad::Nodes(faults) | Bad::Hostile(faults) => {
                for fault in *faults {
                    let fault: ProductFault = fault.parse().expect("a fault of nodes");
                    match on {
                        true => joined.faults().set(fault),
                        false => joined.faults().lift(&fault),
                    }
                }
                joined.shown().await;
            }
            // It sets in when the run tells how far it is
            Bad::Vanishing(fault) if !on => {
                joined
                    .faults()
                    .lift(&fault.parse().expect("a fault of nodes"));
                joined.shown().await;
            }
            Bad::Cordoned(node) => {
                let request = ApiRequest {
                    verb: Verb::Patch,
                    path: format!("/api/v1/nodes/worlds-{node}"),
                    body: Some(json!({"spec": {"unschedulable": on.then_some(true)}})),
                };
                let reply = self.admin.api.send(&request).await;
                let reply = reply.map_err(|trouble| trouble.to_string())?;
                if reply.status != 200 {
                    return Err(reply.body.to_string());
                }
            }
            _ => {}
        }
        match on {
            true => Ok(()),
            false => self.mended().await,
        }
    }

    /// Every node is Ready again, and the controllers know.
    async fn mended(&self) -> Outcome {
        until("all nodes to be Ready", async || {
            let found = send(&self.admin.api, Verb::Get, "/api/v1/nodes", None).await?;
            let mut nodes = found["items"].as_array().into_iter().flatten();
            Ok(nodes.all(|node| {
                let conditions = node["status"]["conditions"].as_array();
                let ready = conditions
                    .into_iter()
                    .flatten()
                    .any(|one| one["type"] == "Ready" && one["status"] == "True");
                let taints = node["spec"]["taints"].as_array();
                let mut taints = taints.into_iter().flatten();
                let tainted = taints.any(|taint| {
                    let key = taint["key"].as_str().unwrap_or_default();
                    key.starts_with("node.kubernetes.io/")
                });
                ready && !tainted
            }))
        })
        .await
    }

    async fn run(&self, world: &World, run_id: &str, joined: &Joined) -> Result<RunView, String> {
        let (durations, limits) = (durations(&world.bad), limits(&world.bad));
        let (interference, cluster) = interfered(&self.kubeconfig, 1, durations, limits).await?;
        interference.set(of_the_way(&world.bad));

        let portal = match &world.bad {
            Bad::CaptiveProxy => Some(Portal::open().await),
            Bad::Hostile(_) => Some(Portal::with(portal::hostile()).await),
            _ => None,
        };
        let portal = portal.transpose().map_err(|error| error.to_string())?;
        let rule = match &world.bad {
            Bad::Admission(house) => Some(Rule::set(&self.admin.api, *house, run_id).await?),
            _ => None,
        };
        let proxy = portal.as_ref().map_or(joined.proxy_url(), Portal::url);
        let settings = runs::apart(run_id, runs::through(&proxy));
        let (tells, mut told) = mpsc::unbounded_channel();
        let tell = Box::new(move |line: &winconform_core::record::Line| {
            if let Event::Fixture {
                key,
                outcome: FixtureOutcome::Stands(_),
                ..
            } = &line.event
            {
                let _ = tells.send(key.to_string());
            }
        });
        let journal = Journal::create(Env::system(), None, Vec::new(), tell)
            .map_err(|error| error.to_string())?;
        let (_alive, signals) = tokio::sync::watch::channel(0);
        let suites = suites();
        let meanwhile = async {
            if let Some(rule) = &rule {
                rule.keep(&self.admin.api).await;
            }
            if let Bad::Vanishing(fault) = &world.bad {
                // All its pods of ours that the network is looked at with
                let mut stand = 0;
                while stand < 3 {
                    match told.recv().await {
                        Some(key) if key.contains("win") && key.ends_with("windows-2025") => {
                            stand += 1;
                        }
                        Some(_) => {}
                        None => std::future::pending().await,
                    }
                }
                joined
                    .faults()
                    .set(fault.parse().expect("a fault of nodes"));
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            _ = run(&cluster, &suites, &settings, &journal, signals) => {}
            () = meanwhile => {}
        }
        if let Some(rule) = rule {
            rule.remove(&self.admin.api).await?;
        }
        read(&journal.text()).map_err(|error| error.to_string())
    }

    /// Nothing of the run is there, by its label or by its name.
    async fn clean(&self, run: &str, view: &RunView) -> Outcome {
        let torn_down = view.torn_down.as_ref().ok_or("nothing was torn down")?;
        let left = remove_run(&self.admin.api, Some(run), Duration::from_mins(1)).await;
        let left = left.map_err(|error| error.to_string())?;
        if !torn_down.left.is_empty() || !torn_down.troubles.is_empty() || !left.removed.is_empty()
        {
            return Err(format!("{torn_down:?}, and then {:?}", left.removed));
        }
        let named = self.others.named(&self.kubeconfig, run).await?;
        match named.as_slice() {
            [] => Ok(()),
            named => Err(format!("left behind: {named:?}")),
        }
    }
}

/// What is broken between the run and the API server.
fn of_the_way(bad: &Bad) -> Vec<Fault> {
    let faults = match bad {
        Bad::Way(faults) => faults,
        Bad::Hostile(_) => &["hostile-texts"][..],
        _ => &[],
    };
    let parsed = faults.iter().map(|fault| fault.parse());
    parsed.collect::<Result<_, _>>().expect("faults of the way")
}

fn topology(nodes: Nodes) -> Topology {
    let pools: &[(&str, Pool)] = match nodes {
        Nodes::LinuxOnly => &[("linux-a", Pool::Linux), ("linux-b", Pool::Linux)],
        Nodes::OneWindows => &[("windows-2022-a", Pool::Windows(Build::Ws2022))],
        Nodes::Hybrid => &[
            ("linux-a", Pool::Linux),
            ("windows-2022-a", Pool::Windows(Build::Ws2022)),
            ("windows-2025-a", Pool::Windows(Build::Ws2025)),
        ],
    };
    let nodes = pools
        .iter()
        .map(|(name, pool)| NodeSpec::new((*name).to_owned(), *pool));
    Topology {
        nodes: nodes.collect(),
        ..Topology::hybrid()
    }
}

fn suites() -> Suites {
    let mut suites = crate::suites::of_areas(&["env", "net", "reject", "sample", "sched"]);
    suites.cases.retain(|case| {
        let claim = case.claim.as_str();
        CLAIMS.contains(&claim) && (claim != "reject.hostPID" || case.name.is_none())
    });
    suites
}

fn limits(bad: &Bad) -> Limits {
    let usual = Limits::default();
    Limits {
        // What waits for a node to be called silent does so once
        attempts: match bad {
            Bad::Vanishing(_) => 1,
            _ => usual.attempts,
        },
        ..usual
    }
}

/// Nearer than for a healthy world.
fn durations(bad: &Bad) -> Durations {
    let seconds = Duration::from_secs;
    Durations {
        fixture: seconds(60),
        unscheduled: seconds(4),
        // The controllers call a node silent after 50 s (`--node-monitor-grace-period`, kubernetes
        // cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go), and so 60 s is usual
        converge: match bad {
            Bad::Vanishing(_) => seconds(60),
            _ => seconds(4),
        },
        ..world::durations()
    }
}

/// Asks until it is so.
pub(crate) async fn until(what: &str, so: impl AsyncFn() -> Result<bool, String>) -> Outcome {
    let so = async || {
        Ok(match so().await? {
            true => Condition::Done(()),
            false => Condition::NotYet("not so".to_owned()),
        })
    };
    asking::until(what, Duration::from_mins(2), so).await
}
