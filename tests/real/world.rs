//! Simulated nodes that join the control plane of the tests, if there is one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hybrid_sim::{FaultPlan, JoinOptions, Joined, Loopback, Topology, join};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;
use winconform::cli::named_topology;
use winconform::cluster::{ConnectOptions, connect};
use winconform::transport::Api;
use winconform_core::config::{Durations, Limits};
use winconform_core::method::{ApiRequest, Verb};

/// The environment variable with the kubeconfig of the control plane.
pub(crate) const VARIABLE: &str = "WINCONFORM_TEST_KUBECONFIG";
/// How much faster simulated durations pass.
const SPEED: f64 = 40.0;

/// The result of a trial.
pub(crate) type Outcome = Result<(), String>;

/// Two simulated nodes on the control plane given.
pub(crate) struct World {
    /// Its kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The nodes.
    pub(crate) joined: Joined,
}

impl World {
    async fn join(kubeconfig: PathBuf) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let direct = connect(
            &options(&kubeconfig),
            Durations::default(),
            Limits::default(),
        )
        .await
        .expect("the control plane answers");
        let (_, hybrid) = named_topology("hybrid").expect("it is known");
        show_network(&direct.api, &hybrid).await;
        let options = JoinOptions {
            topology: Topology {
                load_balancer: true,
                ..hybrid
            },
            faults: FaultPlan::default(),
            seed: 1,
            speed: SPEED,
            prefix: "real-".to_owned(),
            loopback: Loopback::default(),
        };
        let joined = join(direct.api.client().clone(), options)
            .await
            .expect("the nodes join");
        Self { kubeconfig, joined }
    }
}

/// Creates the objects by which a run recognises the network of the nodes.
async fn show_network(api: &Api, topology: &Topology) {
    for object in &topology.api.objects {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().expect("a name");
        let within = metadata["namespace"]
            .as_str()
            .map(|it| format!("namespaces/{it}/"));
        let within = within.unwrap_or_default();
        let (group, plural) = match object["kind"].as_str() {
            Some("Namespace") => ("api/v1", "namespaces"),
            Some("ConfigMap") => ("api/v1", "configmaps"),
            Some("DaemonSet") => ("apis/apps/v1", "daemonsets"),
            other => panic!("no path is known for {other:?}"),
        };
        let request = ApiRequest {
            verb: Verb::Apply,
            path: format!("/{group}/{within}{plural}/{name}"),
            body: Some(object.clone()),
        };
        let reply = api.send(&request).await.expect("an answer");
        assert!(reply.status < 300, "{}", reply.body);
    }
}

/// The trials, and the world they share.
pub(crate) struct Trials {
    arguments: Arguments,
    runtime: Arc<Runtime>,
    world: Option<Arc<World>>,
    list: Vec<Trial>,
}

impl Trials {
    /// Joins the nodes if there is a control plane.
    pub(crate) fn new() -> Self {
        let mut arguments = Arguments::from_args();
        // The trials share the simulated nodes
        arguments.test_threads = Some(1);
        let runtime = Arc::new(Runtime::new().expect("a runtime starts"));
        let given = std::env::var_os(VARIABLE).filter(|_| !arguments.list);
        let world = given.map(|path| Arc::new(runtime.block_on(World::join(PathBuf::from(path)))));
        Self {
            arguments,
            runtime,
            world,
            list: Vec::new(),
        }
    }

    /// Adds a trial. Without a control plane, ignores it, and prints that it did not run.
    pub(crate) fn add<F>(&mut self, name: String, trial: F)
    where
        F: AsyncFnOnce(&World) -> Outcome + Send + 'static,
    {
        let trial = if let Some(world) = &self.world {
            let (world, runtime) = (Arc::clone(world), Arc::clone(&self.runtime));
            Trial::test(name, move || {
                runtime.block_on(trial(&world)).map_err(Failed::from)
            })
        } else {
            if !self.arguments.list {
                println!("not run: {name}: {VARIABLE} is not set");
            }
            Trial::test(name, || Ok(())).with_ignored_flag(true)
        };
        self.list.push(trial);
    }

    /// Runs the trials, lets the nodes leave, and exits.
    pub(crate) fn run(self) -> ! {
        let conclusion = libtest_mimic::run(&self.arguments, self.list);
        if let Some(world) = self.world.and_then(Arc::into_inner) {
            self.runtime
                .block_on(world.joined.leave())
                .expect("the simulated nodes leave");
        }
        conclusion.exit()
    }
}

/// Options to connect with a kubeconfig.
pub(crate) fn options(kubeconfig: &Path) -> ConnectOptions {
    ConnectOptions {
        context: None,
        kubeconfig: Some(kubeconfig.to_owned()),
    }
}

/// The time limits of a run, shorter than for a real cluster: the simulated one is faster, too.
pub(crate) fn durations() -> Durations {
    let seconds = Duration::from_secs;
    Durations {
        api_answer: seconds(3),
        api_body: seconds(3),
        api_in_all: seconds(40),
        transport_pause: Duration::from_millis(30),
        exec_connect: seconds(4),
        // More than the whole time of one request over HTTP
        exec_idle: seconds(12),
        watch: seconds(5),
        fixture: seconds(120),
        settle: seconds(1),
        unscheduled: seconds(6),
        failing: seconds(20),
        sandbox: seconds(6),
        outlasts_liveness: seconds(2),
        lease: seconds(40),
        stays_ready: seconds(2),
        converge: seconds(5),
        balancer: seconds(10),
        observe_again: Duration::from_millis(100),
        ..Durations::default()
    }
}
