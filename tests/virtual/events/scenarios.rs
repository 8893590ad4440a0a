//! Scenarios that are cut off in the middle: the run is killed, somebody deletes the pod, the node falls silent.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use libtest_mimic::Trial;
use ordered_watch as watch;
use tokio::time::timeout;
use winconform::cluster::{Condition, poll};
use winconform::engine::RunOptions;
use winconform::transport::Pace;
use winconform_core::facts::Os;
use winconform_core::method::{Act, Scenario};
use winconform_core::verdict::Verdict;

use crate::events::killed::{goes_on, same, until};
use crate::scenarios::of;
use crate::world::{
    Outcome, Ran, World, mortal, selection, trial, unbroken_of, undisturbed, verdicts, within,
};

/// How long after its pod runs every scenario is under way, and none has deleted its pod.
const MIDDLE: Duration = Duration::from_secs(1);

/// How long after its pod runs the program that takes 15 s to end is ending.
const ENDING: Duration = Duration::from_secs(8);

/// How often a trial asks for the pod.
const OFTEN: Duration = Duration::from_millis(250);

/// A time in which the pod runs.
const PATIENCE: Duration = Duration::from_hours(1);

pub(crate) fn trials() -> Vec<Trial> {
    let each = Scenario::ALL.iter().flat_map(|scenario| {
        let (scenario, name) = (*scenario, scenario.as_str());
        [
            trial(format!("a_scenario_is_killed::{name}"), move || {
                killed(scenario)
            }),
            trial(
                format!("the_pod_of_a_scenario_is_deleted::{name}"),
                move || deleted(scenario, MIDDLE, "somebody else deleted the pod"),
            ),
            trial(
                format!("the_node_of_a_scenario_vanishes::{name}"),
                move || vanished(scenario, MIDDLE),
            ),
        ]
    });
    let ending = Scenario::TerminationGrace;
    let late = [
        trial("the_pod_of_a_scenario_is_deleted::as_it_ends", move || {
            deleted(
                ending,
                ENDING,
                "the watch did not show how its container ended",
            )
        }),
        trial(
            "the_node_of_a_scenario_vanishes::as_its_pod_ends",
            move || vanished(ending, ENDING),
        ),
    ];
    each.chain(late).collect()
}

/// Options of a run of the checks of a claim.
fn of_claim(world: &World, claim: &str, run: &str) -> RunOptions {
    RunOptions {
        selection: selection(&[claim]),
        ..world.settings(run)
    }
}

/// Kills a run once the server has done the first act of its scenario: cleanup removes what it left, and a run that
/// resumes the record, after that or without it, takes all steps again with a new pod and comes to the same verdicts.
fn killed(scenario: Scenario) -> Outcome {
    let (claim, _) = of(scenario);
    let expected = verdicts(&unbroken_of(&selection(&[claim])).view()?);
    for cleaned_first in [true, false] {
        within(async |world: &World| {
            let before = world.objects();
            let (kill, killed) = watch::channel(false);
            let (client, first) = noting(world, scenario, move || {
                kill.send_replace(true);
            });
            let cluster = world.behind(mortal(client, killed.clone()));
            let options = of_claim(world, claim, "r1");
            let record = until(&cluster, &options, killed, Box::new(|_| {})).await;
            let record = record.ok_or("it ended before")?;
            if cleaned_first {
                world.cleaned_up().await?;
                world.unchanged(&before)?;
            }
            let (client, again) = noting(world, scenario, || {});
            let options = of_claim(world, claim, "r2");
            let settled = goes_on(&world.behind(client), options, &record, &expected).await?;
            same(&settled, &Some(0))?;
            begins_anew(scenario, &first, &again)?;
            if !cleaned_first {
                world.cleaned_up().await?;
            }
            world.unchanged(&before)
        })
        .map_err(|error: String| format!("cleaned up first: {cleaned_first}: {error}"))?;
    }
    Ok(())
}

/// The UIDs of the pods of a scenario, one for each of its acts.
type Uids = Arc<Mutex<Vec<String>>>;

/// A client that notes the acts of a scenario on its pod, and calls `done` once the server has done one.
fn noting(
    world: &World,
    scenario: Scenario,
    done: impl Fn() + Send + Sync + 'static,
) -> (Client, Uids) {
    let (client, uids, done) = (world.server.client(), Uids::default(), Arc::new(done));
    let noted = Arc::clone(&uids);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = acted_on(&request, scenario);
        let (client, noted, done) = (client.clone(), Arc::clone(&noted), Arc::clone(&done));
        async move {
            let uid = match path {
                Some(path) => uid(&client, &path).await,
                None => None,
            };
            let answer = client.send(request).await;
            if let Some(uid) = uid {
                noted.lock().expect("not poisoned").push(uid);
                done();
            }
            answer
        }
    });
    (Client::new(service, "default"), uids)
}

/// The path of the pod of a scenario, if a request is one of its acts: an exec, or the deletion of the pod where it
/// runs nothing there.
fn acted_on(request: &Request<Body>, scenario: Scenario) -> Option<String> {
    let (_, pod) = of(scenario);
    let path = request.uri().path();
    let path = match scenario.execs() {
        true => path.strip_suffix("/exec")?,
        false => Some(path).filter(|_| request.method() == Method::DELETE)?,
    };
    path.ends_with(&format!("/pods/{pod}"))
        .then(|| path.to_owned())
}

/// The UID of the pod at a path, if it is there.
async fn uid(client: &Client, path: &str) -> Option<String> {
    let request = Request::get(path).body(Vec::new()).expect("a request");
    let pod: Pod = client.request(request).await.ok()?;
    pod.uid()
}

/// Whether a resumed run takes all acts of a scenario, and all of them with another pod than the killed one.
fn begins_anew(scenario: Scenario, first: &Uids, again: &Uids) -> Outcome {
    let first = first.lock().expect("not poisoned");
    let again = again.lock().expect("not poisoned");
    let steps = scenario.steps(Os::Windows).into_iter();
    let acts = steps.filter(|step| match step.act {
        Act::Run(_) | Act::Ask(_) => true,
        Act::Delete => !scenario.execs(),
        Act::Await(..) | Act::Keep(..) | Act::AwaitEndpoint(..) | Act::AwaitService(..) => false,
    });
    let is_new = |uid: &String| !first.contains(uid);
    match first.len() == 1 && again.len() >= acts.count() && again.iter().all(is_new) {
        true => Ok(()),
        false => Err(format!("acts on {first:?}, then on {again:?}")),
    }
}

/// Somebody deletes the pod of a scenario by force, `after` it runs, and again the pod that takes its place: the check
/// is inconclusive with these words.
fn deleted(scenario: Scenario, after: Duration, words: &str) -> Outcome {
    let (claim, pod) = of(scenario);
    within(async |world: &World| {
        let before = world.objects();
        let mut gone = BTreeSet::new();
        let ran = disturbed(world, claim, deletes(world, pod, after, &mut gone)).await?;
        untold(&ran, words)?;
        same(&gone.len(), &2)?;
        world.left(&ran.view()?, &before).await
    })
}

/// The node of a scenario falls silent for good `after` the pod runs there: the check is inconclusive.
fn vanished(scenario: Scenario, after: Duration) -> Outcome {
    let (claim, pod) = of(scenario);
    within(async |world: &World| {
        let ran = disturbed(world, claim, vanishes(world, pod, after)).await?;
        // The first attempt has a reason of its own, for which a second one begins with a new pod
        untold(&ran, "an earlier one is being deleted, and stays")?;
        world.cleared(&ran.view()?).await
    })
}

/// A run of the checks of a claim, and what goes on meanwhile.
async fn disturbed(
    world: &World,
    claim: &str,
    meanwhile: impl Future<Output = Result<Infallible, String>>,
) -> Result<Ran, String> {
    let (cluster, options) = (world.cluster(), of_claim(world, claim, "r1"));
    tokio::select! {
        biased;
        ran = undisturbed(&cluster, &options) => Ok(ran),
        failed = meanwhile => failed.map(|never| match never {}),
    }
}

async fn deletes(
    world: &World,
    pod: &str,
    after: Duration,
    gone: &mut BTreeSet<String>,
) -> Result<Infallible, String> {
    loop {
        let uid = under_way(world, pod, after, gone).await?;
        let by_force = DeleteParams::default().grace_period(0);
        let deleted = pods(world).delete(pod, &by_force).await;
        deleted.map_err(|error| error.to_string())?;
        gone.insert(uid);
    }
}

async fn vanishes(world: &World, pod: &str, after: Duration) -> Result<Infallible, String> {
    under_way(world, pod, after, &BTreeSet::new()).await?;
    let fault = "node-vanishes=windows-2022".parse().expect("a fault");
    world.joined.faults().set(fault);
    pending().await
}

fn pods(world: &World) -> Api<Pod> {
    Api::namespaced(world.server.client(), "winconform-r1")
}

/// Waits until all pods of the run run, a new one of this name among them, and then for `after`. Returns its UID.
async fn under_way(
    world: &World,
    pod: &str,
    after: Duration,
    known: &BTreeSet<String>,
) -> Result<String, String> {
    let pods = pods(world);
    let query = async || {
        let listed = pods.list(&ListParams::default()).await;
        let listed = listed.map(|list| list.items).unwrap_or_default();
        let own = listed.iter().find(|it| it.name_any() == pod);
        let new = own.and_then(Pod::uid).filter(|uid| !known.contains(uid));
        match new.filter(|_| listed.iter().all(runs)) {
            Some(uid) => Condition::Done(uid),
            None => Condition::NotYet("it does not run".to_owned()),
        }
    };
    let running = poll(Pace::steady(OFTEN), PATIENCE, "a new pod", query).await;
    let uid = running.map_err(|error| error.to_string())?;
    let _ = timeout(after, pending::<()>()).await;
    Ok(uid)
}

/// Whether all containers of a pod run.
fn runs(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref();
    let statuses = statuses.and_then(|status| status.container_statuses.as_deref());
    let is_running = |status: &ContainerStatus| {
        let state = status.state.as_ref();
        state.is_some_and(|state| state.running.is_some())
    };
    statuses.is_some_and(|all| !all.is_empty() && all.iter().all(is_running))
}

/// Whether the only check of a run is inconclusive, with these words as the reason.
fn untold(ran: &Ran, words: &str) -> Outcome {
    let view = ran.view()?;
    let mut checks = view.checks.values();
    let concluded = checks.next().and_then(|check| check.conclusion.as_ref());
    let came = concluded.and_then(|it| Some((it.verdict, &it.reason.error()?.detail)));
    match (came, checks.next()) {
        (Some((Verdict::Inconclusive, why)), None) if why.contains(words) => Ok(()),
        (came, _) => Err(format!("{came:?}\n{}", ran.report())),
    }
}
