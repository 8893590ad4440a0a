//! A simulated cluster in memory, and runs in it.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use hybrid_sim::server::{Server, ServerOptions};
use hybrid_sim::{FaultPlan, JoinOptions, Joined, Loopback, Topology};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher::{Config, Event, watcher};
use libtest_mimic::Trial;
use ordered_watch as watch;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use winconform::cluster::{Cluster, cleanup};
use winconform::engine::{Finished, Journal, Listener, RunError, RunOptions, run};
use winconform::transport::{Dial, Env, dial, simulated_runtime};
use winconform_core::config::{Allowed, Durations, Limits, Outside, Share};
use winconform_core::document::{Place, Placed};
use winconform_core::plan::Selection;
use winconform_core::record::{Exit, Line, RunView, SIMULATED, read, to_line};
use winconform_core::suite::Suites;
use winconform_core::verdict::Verdict;

use crate::rows::clusters::of_row;
use crate::table::asked;
use crate::{products, runs, suites};

/// The result of a trial.
pub(crate) type Outcome = Result<(), String>;

/// The time at which every world starts.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// How long the initial objects may take until they run, as in `demo`.
const SETTLING: Duration = Duration::from_mins(1);

/// A time that no run reaches.
const LONGEST: Duration = Duration::from_hours(2);

/// Checks with every kind of stage: judged by facts, and observed from a pod, of workloads that stay the same
/// and of one that changes.
const FEW: [&str; 2] = [
    "env.windows-build-label",
    "net.after-churn[*source=linux-pod]",
];

/// The suites of whole runs, without claims about the moment.
pub(crate) static SUITES: LazyLock<Suites> = LazyLock::new(suites::of_whole_runs);

/// The objects of `hybrid`, which show the network of its nodes.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| of_row("hybrid").api.objects);

/// All suites.
pub(crate) static ALL: LazyLock<Suites> = LazyLock::new(suites::whole);

/// The checks of the runs that trials disturb at every event.
static SELECTED: LazyLock<Selection> = LazyLock::new(|| of_all_or(&FEW));

/// All checks if the tests use more than one seed, else the checks with these names.
pub(crate) fn of_all_or(names: &[&str]) -> Selection {
    match asked() {
        None | Some(..=1) => selection(names),
        Some(_) => Selection::default(),
    }
}

/// Selects the checks with these names.
pub(crate) fn selection(names: &[&str]) -> Selection {
    selection_of(&SUITES, names)
}

/// Selects checks of other suites.
pub(crate) fn selection_of(suites: &Suites, names: &[&str]) -> Selection {
    let at = Place::argument("--select");
    let written = names.iter().map(|name| Placed {
        value: (*name).to_owned(),
        at: at.clone(),
    });
    let mut problems = Vec::new();
    let selection = Selection::read(&written.collect::<Vec<_>>(), suites, &mut problems);
    assert_eq!(problems, [], "there are checks of these names");
    selection
}

/// A simulated cluster without objects of winconform.
pub(crate) struct World {
    /// Its API server.
    pub(crate) server: Server,
    /// Its nodes.
    pub(crate) joined: Joined,
    /// The environment of its runs.
    env: Env,
    began: Instant,
    /// The network that server, nodes and runs share.
    pub(crate) loopback: Loopback,
}

/// Runs `act` in a new world.
pub(crate) fn within<T>(act: impl AsyncFnOnce(&World) -> T) -> T {
    within_seeded(1, act)
}

/// Like `within`, with a seed that determines all chance.
pub(crate) fn within_seeded<T>(seed: u64, act: impl AsyncFnOnce(&World) -> T) -> T {
    within_of(Topology::hybrid(), seed, act)
}

/// Like `within_seeded`, with other nodes.
pub(crate) fn within_of<T>(topology: Topology, seed: u64, act: impl AsyncFnOnce(&World) -> T) -> T {
    let runtime = simulated_runtime().build();
    runtime.expect("a runtime starts").block_on(async {
        let world = World::begin(seed, topology).await;
        let came_to = Box::pin(act(&world)).await;
        let unserved = world.server.unserved();
        assert!(
            unserved.is_empty(),
            "the embedded server has nothing at {unserved:?}"
        );
        came_to
    })
}

/// A trial that creates its worlds itself.
pub(crate) fn trial(
    name: impl Into<String>,
    act: impl FnOnce() -> Outcome + Send + 'static,
) -> Trial {
    Trial::test(name, move || Ok(act()?))
}

impl World {
    /// Nodes alone get the objects of `hybrid`.
    async fn begin(seed: u64, mut topology: Topology) -> Self {
        if topology.api.objects.is_empty() {
            topology.api.objects.clone_from(&OBJECTS);
        }
        let (loopback, began) = (Loopback::in_memory(EPOCH), Instant::now());
        let network = loopback.clone();
        let env = Env::simulated(EPOCH, seed, dial(move |address| network.connect(address)));
        let options = ServerOptions {
            seed,
            loopback: loopback.clone(),
            ..ServerOptions::of(&topology)
        };
        let server = Server::start(&options).expect("a known version");
        let options = JoinOptions {
            topology: Topology {
                load_balancer: true,
                ..topology
            },
            faults: FaultPlan::default(),
            seed,
            speed: 1.0,
            prefix: String::new(),
            loopback: loopback.clone(),
        };
        let joined = hybrid_sim::join(server.client(), options).await;
        server.settled(SETTLING).await;
        let joined = joined.expect("the nodes join");
        server.suffer(joined.faults());
        Self {
            server,
            joined,
            env,
            began,
            loopback,
        }
    }

    /// The cluster, as a process that starts now connects to it.
    pub(crate) fn cluster(&self) -> Cluster {
        self.behind(self.server.client())
    }

    /// The cluster that a client reaches.
    pub(crate) fn behind(&self, client: kube::Client) -> Cluster {
        self.with(client, Durations::default(), Limits::default())
    }

    /// The cluster behind a client, with `dial` for all other connections.
    pub(crate) fn dialled(&self, dial: Arc<Dial>, client: kube::Client) -> Cluster {
        let env = Env::simulated(EPOCH + self.began.elapsed(), 1, dial);
        let (durations, limits) = (Durations::default(), Limits::default());
        Cluster::behind(env, client, SIMULATED, durations, limits)
    }

    /// Like `behind`, with these durations and limits.
    pub(crate) fn with(
        &self,
        client: kube::Client,
        durations: Durations,
        limits: Limits,
    ) -> Cluster {
        Cluster::behind(self.env.clone(), client, SIMULATED, durations, limits)
    }

    /// Like `cluster`, with 3 s for network checks to converge.
    pub(crate) fn impatient(&self) -> Cluster {
        let durations = Durations {
            converge: Duration::from_secs(3),
            ..Durations::default()
        };
        self.with(self.server.client(), durations, Limits::default())
    }

    /// Options of a run of all checks, which asks for load balancers and may make volumes.
    pub(crate) fn whole(&self, run: &str) -> RunOptions {
        let outside = Outside {
            load_balancers: true,
            metadata: true,
            share: Some(Share {
                path: r"\\files.corp.example\builds".to_owned(),
                credential_spec: "webapp".to_owned(),
            }),
            ..runs::through(&self.joined.proxy_url())
        };
        let mut options = runs::apart(run, outside);
        options.config.allow.extend(Allowed::ALL);
        options
    }

    /// Options of a run of `SELECTED`, which holds the usual Lease.
    pub(crate) fn settings(&self, run: &str) -> RunOptions {
        RunOptions {
            lease: "winconform".to_owned(),
            selection: SELECTED.clone(),
            ..self.whole(run)
        }
    }

    /// How often each node has booted, with which the identifiers of boots end here.
    pub(crate) fn boots(&self) -> BTreeMap<String, u32> {
        let objects = self.server.objects().into_iter();
        let nodes = objects.filter(|((kind, ..), _)| kind == "nodes");
        let boots = nodes.filter_map(|((_, _, name), node)| {
            let id = node["status"]["nodeInfo"]["bootID"].as_str()?;
            Some((name, id.rsplit_once('-')?.1.parse().ok()?))
        });
        boots.collect()
    }

    /// All objects, without the objects and fields that change by themselves.
    pub(crate) fn objects(&self) -> BTreeMap<String, Value> {
        let mut objects = self.server.objects();
        objects.retain(|(kind, namespace, _), _| {
            kind != "events" && !(kind == "leases" && namespace == "kube-node-lease")
        });
        let objects = objects
            .into_iter()
            .map(|((kind, namespace, name), mut object)| {
                let _ = object["metadata"]["resourceVersion"].take();
                if kind == "nodes" {
                    let _ = object["metadata"]["managedFields"].take();
                    // Pulled images stay; the kubelet updates its heartbeat, its boot id and since when it is Ready
                    let _ = object["status"]["images"].take();
                    let _ = object["status"]["nodeInfo"]["bootID"].take();
                    let conditions = object["status"]["conditions"].as_array_mut();
                    for condition in conditions.into_iter().flatten() {
                        let _ = condition["lastHeartbeatTime"].take();
                        let _ = condition["lastTransitionTime"].take();
                    }
                }
                (format!("{kind} {namespace}/{name}"), object)
            });
        objects.collect()
    }

    /// Whether all objects are as before.
    pub(crate) fn unchanged(&self, before: &BTreeMap<String, Value>) -> Outcome {
        same(before, &self.objects())
    }

    /// Whether a run's report of what it left is true, and cleanup can remove that.
    pub(crate) async fn left(&self, view: &RunView, before: &BTreeMap<String, Value>) -> Outcome {
        self.cleared(view).await?;
        self.unchanged(before)
    }

    /// Cleans up if a run says that it left something, or did not tear down.
    pub(crate) async fn cleared(&self, view: &RunView) -> Outcome {
        let torn_down = view.torn_down.as_ref();
        match torn_down.is_none_or(|done| !done.left.is_empty() || !done.errors.is_empty()) {
            true => self.cleaned_up().await,
            false => Ok(()),
        }
    }

    /// Removes what runs left, as `winconform cleanup` does.
    pub(crate) async fn cleaned_up(&self) -> Outcome {
        let removed = cleanup(&self.cluster().api, None, "this test", |_| {}).await;
        let removed = removed.map_err(|error| error.to_string())?;
        match removed.is_clean() {
            true => Ok(()),
            false => Err(format!("not all could be removed: {removed:?}")),
        }
    }
}

/// Whether all objects are as they were before.
pub(crate) fn same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Outcome {
    let names = before.keys().chain(after.keys());
    let mut other: Vec<_> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| match (before.get(name), after.get(name)) {
            (None, _) => format!("{name} is left"),
            (_, None) => format!("{name} is gone"),
            (Some(before), Some(after)) => format!("{name} was\n{before}\nand is\n{after}"),
        })
        .collect();
    other.dedup();
    match other.as_slice() {
        [] => Ok(()),
        other => Err(other.join("\n")),
    }
}

/// How long a run took, in simulated time.
pub(crate) fn took(view: &RunView) -> Duration {
    view.last.duration_since(view.began).unsigned_abs()
}

/// A client of a process that `killed` kills: from then on it sends no request and gets no answer.
pub(crate) fn mortal(client: kube::Client, killed: watch::Receiver<bool>) -> kube::Client {
    let service = tower::service_fn(move |request| {
        let (client, mut killed) = (client.clone(), killed.clone());
        async move {
            let dies = async {
                let _ = killed.wait_for(|killed| *killed).await.is_ok();
            };
            tokio::select! {
                biased;
                () = dies => std::future::pending().await,
                answer = client.send(request) => answer,
            }
        }
    });
    kube::Client::new(service, "default")
}

/// The result of a run, and its record.
pub(crate) struct Ran {
    /// Its result.
    pub(crate) finished: Result<Finished, RunError>,
    /// Its record.
    pub(crate) text: String,
}

impl Ran {
    /// The run as its record shows it.
    pub(crate) fn view(&self) -> Result<RunView, String> {
        read(self.text.as_bytes()).map_err(|error| error.to_string())
    }

    /// Whether the run ended with this exit.
    pub(crate) fn came_to(&self, exit: Exit) -> Outcome {
        match &self.finished {
            Ok(finished) if finished.exit == exit => Ok(()),
            other => Err(format!("{other:?}, not {exit:?}:\n{}", self.report())),
        }
    }

    /// Its terminal report.
    pub(crate) fn report(&self) -> String {
        self.view()
            .map_or_else(|error| error, |view| products::described(&view))
    }
}

/// Runs to the end. `signals` carries the user's signals; `listener` gets each event.
pub(crate) async fn ran(
    cluster: &Cluster,
    options: &RunOptions,
    signals: watch::Receiver<u32>,
    listener: Listener,
) -> Ran {
    ran_of(&SUITES, cluster, options, signals, listener).await
}

/// Like `ran`, with other suites.
pub(crate) async fn ran_of(
    suites: &Suites,
    cluster: &Cluster,
    options: &RunOptions,
    signals: watch::Receiver<u32>,
    listener: Listener,
) -> Ran {
    let (text, listener) = written(listener);
    let journal = Journal::create(cluster.api.env().clone(), None, Vec::new(), listener)
        .expect("a record in memory");
    let running = Box::pin(run(cluster, suites, options, &journal, signals));
    let finished = timeout(LONGEST, running).await;
    let text = text.lock().expect("not poisoned").clone();
    assert_eq!(
        read(text.as_bytes()),
        journal.view(),
        "what is reported is what is on record"
    );
    Ran {
        finished: finished.expect("it ends"),
        text,
    }
}

/// The text of a record as its journal writes it, ahead of a listener.
pub(crate) fn written(listener: Listener) -> (Arc<Mutex<String>>, Listener) {
    let text = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&text);
    let listener = move |line: &Line| {
        let line_text = to_line(line).expect("a line is JSON");
        kept.lock().expect("not poisoned").push_str(&line_text);
        listener(line);
    };
    (text, Box::new(listener))
}

/// Like `ran`, without signals.
pub(crate) async fn undisturbed(cluster: &Cluster, options: &RunOptions) -> Ran {
    let (_alive, signals) = watch::channel(0);
    ran(cluster, options, signals, Box::new(|_| {})).await
}

/// Like `ran_of`, without signals, and with all pods of the cluster as they come and go meanwhile.
pub(crate) async fn watched(
    world: &World,
    suites: &Suites,
    options: &RunOptions,
    mut record: impl FnMut(Event<Pod>),
) -> Result<Ran, String> {
    let (cluster, api) = (world.cluster(), Api::<Pod>::all(world.server.client()));
    let mut events = pin!(watcher(api, Config::default()));
    let (_alive, signals) = watch::channel(0);
    let running = ran_of(suites, &cluster, options, signals, Box::new(|_| {}));
    let mut run = pin!(running);
    loop {
        tokio::select! {
            biased;
            event = events.try_next() => match event {
                Ok(Some(event)) => record(event),
                other => return Err(format!("the watch of pods: {other:?}")),
            },
            ran = &mut run => return Ok(ran),
        }
    }
}

/// An undisturbed run of `SELECTED`, which is conformant and leaves nothing.
pub(crate) fn unbroken() -> Ran {
    unbroken_of(&SELECTED)
}

/// Like `unbroken`, with other checks.
pub(crate) fn unbroken_of(selection: &Selection) -> Ran {
    unbroken_in(Topology::hybrid(), selection)
}

/// Like `unbroken_of`, on other nodes.
pub(crate) fn unbroken_in(topology: Topology, selection: &Selection) -> Ran {
    let done = within_of(topology, 1, async |world: &World| {
        let before = world.objects();
        let options = RunOptions {
            selection: selection.clone(),
            ..world.settings("r0")
        };
        let ran = undisturbed(&world.cluster(), &options).await;
        world.unchanged(&before).map(|()| ran)
    });
    let ran = done.expect("it leaves nothing");
    ran.came_to(Exit::Conformant).expect("nothing is wrong");
    ran
}

/// The lines of a run's record.
pub(crate) fn lines(ran: &Ran) -> Result<Vec<Line>, String> {
    let lines = ran.text.lines().map(serde_json::from_str);
    lines
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

/// The verdict of every check, if it has one.
pub(crate) fn verdicts(view: &RunView) -> BTreeMap<String, Option<Verdict>> {
    let verdicts = products::verdicts(view).into_iter();
    verdicts
        .map(|(id, verdict)| (id.to_owned(), verdict))
        .collect()
}
