//! How gently a whole run treats Windows nodes: how many of its pods start at once on each, how many are
//! alive with an address of their own, and that this does not make it longer than these bounds do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hybrid_sim::{Pool, Topology};
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use libtest_mimic::Trial;
use serde_json::json;
use tokio::time::Instant;
use winconform::engine::{RunError, RunOptions};
use winconform_core::fixture::{FixtureName, Until};
use winconform_core::record::{Activity, Exit, RunView, critical_path};

use crate::rows::clusters::of_row;
use crate::table::tries_all;
use crate::world::{Outcome, SUITES, World, took, trial, undisturbed, watched, within_of};

/// The most pods of a run that start at once on a Windows node, and the most that are alive there with an
/// address of their own.
const START: usize = 4;
const ALIVE: usize = 8;

/// The most time of a run, in hundredths of the shortest that these bounds allow.
pub(crate) const HUNDREDTHS: u128 = 110;
/// The same where each pool has one node, so that pods that are observed longest leave little room to the others.
const OF_ONE_NODE: u128 = 115;

pub(crate) fn trials() -> Vec<Trial> {
    // Here everything is allowed; with every push the runs of `topologies` keep the bounds, too
    let names =
        "three-builds aks capz eks gke hybrid kubeadm-calico kubeadm-flannel openshift rke2";
    let each = names.split(' ').enumerate().map(|(at, name)| {
        let of = format!("few_pods_at_once_on_a_windows_node::{name}");
        trial(of, move || all_allowed(name)).with_ignored_flag(at > 0 && !tries_all())
    });
    let places = [
        (
            "windows-2022-a",
            106,
            "windows-2022: the run needs 11 of pods at once; left: 4",
        ),
        (
            "linux-a",
            108,
            "linux: the run needs 5 of pods at once; left: 2",
        ),
    ];
    let full = places.map(|(node, taken, said)| {
        let name = format!("a_run_that_does_not_fit_begins_nothing::{node}");
        trial(name, move || full(node, taken, said))
    });
    let small = trial("a_run_fits_on_one_windows_node_of_4_gib", small);
    each.chain(full).chain([small]).collect()
}

/// The pods of a run on Windows nodes, whatever they select, as they come and go.
#[derive(Default)]
pub(crate) struct Pods {
    /// The nodes of Windows.
    windows: BTreeSet<String>,
    /// By name and UID: its node, whether it has an address of its own, and since when it starts unless it is
    /// Ready.
    alive: BTreeMap<String, (String, bool, Option<Instant>)>,
    /// The most that started at once on a node.
    starting: Vec<String>,
    most_alive: Vec<String>,
    /// By node: how long pods started there, together.
    started: BTreeMap<String, Duration>,
}

impl Pods {
    pub(crate) fn on(topology: &Topology) -> Self {
        let nodes = topology.nodes.iter();
        let windows = nodes.filter(|node| node.pool != Pool::Linux);
        Self {
            windows: windows.map(|node| node.name.clone()).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn record(&mut self, event: Event<Pod>) {
        match event {
            Event::InitApply(pod) | Event::Apply(pod) => self.changes(&pod),
            Event::Delete(pod) => self.ends(&pod),
            Event::Init | Event::InitDone => {}
        }
        let nodes = self.alive.values().map(|(node, ..)| node);
        for node in nodes {
            let here = self.alive.iter().filter(|(_, (at, ..))| at == node);
            let (starting, others): (Vec<_>, Vec<_>) =
                here.partition(|(_, (.., since))| since.is_some());
            let alive = starting.iter().chain(&others);
            let alive = alive.filter(|(_, (_, addressed, _))| *addressed);
            let alive: Vec<_> = alive.map(|(name, _)| (*name).clone()).collect();
            if starting.len() > self.starting.len() {
                self.starting = starting.iter().map(|(name, _)| (*name).clone()).collect();
            }
            if alive.len() > self.most_alive.len() {
                self.most_alive = alive;
            }
        }
    }

    fn changes(&mut self, pod: &Pod) {
        let spec = pod.spec.as_ref();
        let node = spec.and_then(|spec| spec.node_name.clone());
        let Some(node) = node.filter(|node| self.windows.contains(node)) else {
            return;
        };
        if !pod.labels().contains_key("winconform/run") {
            return;
        }
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return self.ends(pod);
        }
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let ready = ready || is_left_to_a_scenario(pod) && runs(pod);
        let options =
            spec.and_then(|spec| spec.security_context.as_ref()?.windows_options.as_ref());
        let addressed = options.and_then(|options| options.host_process) != Some(true);
        // Six at once are what one check is about, where the run may load nodes
        let is_dense = pod
            .labels()
            .get("winconform/fixture")
            .is_some_and(|name| name == "dense");
        let since = (!ready && !is_dense).then(Instant::now);
        let known = self.alive.entry(key(pod));
        let known = known.or_insert_with(|| (node.clone(), addressed, since));
        if let (Some(begun), true) = (known.2, ready) {
            known.2 = None;
            *self.started.entry(node).or_default() += begun.elapsed();
        }
    }

    fn ends(&mut self, pod: &Pod) {
        if let Some((node, _, Some(begun))) = self.alive.remove(&key(pod)) {
            *self.started.entry(node).or_default() += begun.elapsed();
        }
    }
}

/// Whether a scenario has the pod become ready, once it runs.
fn is_left_to_a_scenario(pod: &Pod) -> bool {
    let fixture = pod.labels().get("winconform/fixture");
    let fixture = fixture.and_then(|name| FixtureName::parse(name));
    fixture.is_some_and(|fixture| fixture.until() == Until::Running)
}

fn runs(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref();
    let statuses = statuses.and_then(|status| status.container_statuses.as_ref());
    statuses.is_some_and(|statuses| {
        let mut states = statuses.iter().map(|status| status.state.as_ref());
        states.all(|state| state.is_some_and(|state| state.running.is_some()))
    })
}

fn key(pod: &Pod) -> String {
    format!("{} {}", pod.name_any(), pod.uid().unwrap_or_default())
}

fn all_allowed(name: &str) -> Outcome {
    let topology = of_row(name);
    let mut pods = Pods::on(&topology);
    within_of(topology, 1, async move |world| {
        let mut options: RunOptions = world.whole("r0");
        options.config.outside.load_balancers = false;
        let ran = watched(world, &SUITES, &options, |event| pods.record(event)).await?;
        ran.came_to(Exit::Conformant)?;
        let hundredths = [HUNDREDTHS, OF_ONE_NODE][usize::from(name == "hybrid")];
        few_at_once(&ran.view()?, &pods, hundredths)
    })
}

/// How many milliseconds a run goes on after it has the last pods start that start together, when the others are gone.
pub(crate) fn alone(view: &RunView) -> u64 {
    let begins = view.spans.iter().filter(|span| match &span.what {
        Activity::Fixture(key) => key.name.starts_together(),
        _ => false,
    });
    let observed = view.spans.iter();
    let observed = observed.filter(|span| span.what != Activity::TearDown);
    let end = observed.map(|span| span.began_ms + span.took_ms).max();
    let begin = begins.map(|span| span.began_ms).max();
    end.zip(begin).map_or(0, |(end, begin)| end - begin)
}

/// A run keeps the bounds, and takes no longer than they make it.
pub(crate) fn few_at_once(view: &RunView, pods: &Pods, hundredths: u128) -> Outcome {
    let path = critical_path(view).ok_or("there is no critical path")?;
    let busiest = pods.started.values().max().copied().unwrap_or_default();
    let shortest = u128::from(path.took_ms).max(busiest.as_millis() / START as u128);
    let shortest = shortest + u128::from(alone(view));
    let (took, starting, alive) = (took(view), pods.starting.len(), pods.most_alive.len());
    let in_time = took.as_millis() * 100 <= shortest * hundredths;
    if starting <= START && alive <= ALIVE && in_time {
        return Ok(());
    }
    Err(format!(
        "{starting} pods start at once (at most {START}), {alive} are alive with an address (at most \
         {ALIVE}); the run took {took:?}, at best {shortest} ms, the critical path {} ms, pods start for {busiest:?} on one node; \
         at once start {:?}; alive {:?}",
        path.took_ms, pods.starting, pods.most_alive
    ))
}

/// A node with the least memory that a topology can have.
fn small() -> Outcome {
    let mut topology = Topology::hybrid();
    for node in &mut topology.nodes {
        node.memory = 4 * 1024;
    }
    within_of(topology, 1, async |world| {
        let ran = undisturbed(&world.cluster(), &world.whole("r0")).await;
        ran.came_to(Exit::Conformant)
    })
}

/// Takes places for pods on a node.
pub(crate) async fn take(world: &World, node: &str, places: u32) -> Outcome {
    let client = world.server.client();
    let pods = Api::<Pod>::namespaced(client, "default");
    for nth in 0..places {
        let pod = json!({
            "metadata": {"name": format!("taken-{nth}")},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "example.com/of-somebody"}]},
        });
        let pod = serde_json::from_value(pod).map_err(|error| error.to_string())?;
        let created = pods.create(&PostParams::default(), &pod).await;
        created.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// A node that has few places left for pods, after somebody has put so many there.
fn full(node: &'static str, taken: u32, expected: &'static str) -> Outcome {
    within_of(Topology::hybrid(), 1, async move |world| {
        take(world, node, taken).await?;
        let before = world.objects().into_keys().collect::<Vec<_>>();
        let ran = undisturbed(&world.cluster(), &world.whole("r0")).await;
        let said = match ran.finished {
            Err(RunError::DoesNotFit(short)) => {
                short.iter().map(ToString::to_string).collect::<Vec<_>>()
            }
            other => return Err(format!("{other:?}")),
        };
        let after = world.objects().into_keys().collect::<Vec<_>>();
        match (before == after, said) {
            (true, said) if said == [expected] => Ok(()),
            (unchanged, said) => Err(format!("unchanged: {unchanged}; {said:?}")),
        }
    })
}
