//! The life of one run, from its first event to its last.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use ordered_watch as watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use winconform_core::config::Config;
use winconform_core::facts::{Facts, Pool, PoolName};
use winconform_core::method::ReadyFixtures;
use winconform_core::plan::{Plan, Selected, Selection, disrupt, exclude, plan, pulls, shortages};
use winconform_core::record::{Activity, Ended, Event, Exit, ObjectName, TornDown, exit};
use winconform_core::suite::Suites;

use super::cost::cost;
use super::image_platforms::note_unoffered;
use super::life::{Keep, Life, RunError, RunOptions};
use super::stop::{Stop, reason_to_stop, signalled};
use crate::cluster::{
    Cluster, LEASE_NAMESPACE, LeaseHeld, Watched, acquire, collect_with, watch_pods,
};
use crate::engine::executor::perform::Executor;
use crate::engine::fixtures::apply::Fixtures;
use crate::engine::fixtures::manifest;
use crate::engine::fixtures::runtime_class::chosen;
use crate::engine::fixtures::tear_down::{end, tear_down};
use crate::engine::record::diagnose::{Dependencies, diagnose};
use crate::engine::record::journal::Journal;
use crate::engine::record::record_plan::{noted, started};
use crate::engine::record::spans::{Spans, millis};
use crate::engine::scheduler::repeat::Leave;
use crate::transport::causes;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Finished {
    pub exit: Exit,
    /// Whether a second interrupt ended it before everything was removed.
    pub abandoned: bool,
}

/// Collects facts and plans what is selected; changes nothing in the cluster.
pub async fn plan_of(
    cluster: &Cluster,
    suites: &Suites,
    config: &Config,
    selection: &Selection,
) -> Result<(Facts, Selected), RunError> {
    let mut facts = collect_with(&cluster.api, &config.nodes).await;
    exclude(&mut facts, &config.nodes.exclude).map_err(RunError::Configuration)?;
    disrupt(&facts, config).map_err(|problem| RunError::Configuration(problem.into()))?;
    chosen(config, &facts).map_err(|problem| RunError::Configuration(problem.into()))?;
    let selected = selection.apply(plan(suites, &facts, config), &facts);
    Ok((facts, selected.map_err(RunError::Selection)?))
}

/// Runs everything planned and removes everything created, also after a panic. `signals` is 1 once the user
/// asks the run to end, which then begins nothing new, and 2 once the user abandons it at once.
pub async fn run(
    cluster: &Cluster,
    suites: &Suites,
    options: &RunOptions,
    journal: &Journal,
    signals: watch::Receiver<u32>,
) -> Result<Finished, RunError> {
    let mut abandon = signals.clone();
    let second = signalled(&mut abandon, 2);
    let tasks = (TaskTracker::new(), CancellationToken::new());
    let life = Life {
        cluster,
        options,
        journal,
    };
    let living = Box::pin(async {
        let started = Event::RunStarted(started(cluster, suites, options));
        journal.write(started).map_err(RunError::Journal)?;
        live(life, suites, signals, &tasks).await
    });
    let whole = async {
        let lived = AssertUnwindSafe(living).catch_unwind().await;
        match lived {
            Ok(lived) => lived,
            Err(panic) => Err(panicked(life, &tasks, said(&*panic)).await),
        }
    };
    tokio::select! {
        biased;
        lived = whole => lived,
        () = second => Ok(Finished { exit: Exit::Interrupted, abandoned: true }),
    }
}

/// The message of a panic.
pub(crate) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic").to_owned()
}

/// Tears down what a panicked run created, and puts that on record.
async fn panicked(
    life: Life<'_>,
    (tracker, cancel): &(TaskTracker, CancellationToken),
    why: String,
) -> RunError {
    let journal = life.journal;
    // A request under way must not create anything after tear-down lists the objects
    cancel.cancel();
    tracker.close();
    tracker.wait().await;
    let torn_down = tear_down(life, None).await;
    let by = format!("a fault of winconform itself: {why}");
    let _ = journal.write(Stop::By(by).event());
    let _ = journal.write(Event::TornDown(torn_down));
    let _ = journal.publish();
    let _ = ended(life);
    RunError::Panicked(why)
}

async fn live(
    life: Life<'_>,
    suites: &Suites,
    signals: watch::Receiver<u32>,
    (tracker, cancel): &(TaskTracker, CancellationToken),
) -> Result<Finished, RunError> {
    let Life {
        cluster,
        options,
        journal,
    } = life;
    let began = Instant::now();
    let deadline = options.deadline.map(|after| (after, began + after));
    let mut spans = Spans::new(journal.clone(), began, &cluster.api);
    let planning = spans.stage(Activity::Plan);
    let stops = |lease| reason_to_stop(journal, signals.clone(), lease, deadline);
    // This takes long on a large or slow cluster
    let (facts, selected) = tokio::select! {
        biased;
        stop = stops(None) => return stopped(life, stop),
        planned = plan_of(cluster, suites, &options.config, &options.selection) => {
            planned?
        }
    };
    let pools = facts.pools();
    let removal = when_pods_go(options, &selected.plan, &facts)?;
    let plan = noted(life, suites, &facts, selected)?;
    spans.passed(planning);

    // A run that creates nothing cannot disturb another run
    let creates = !plan.fixtures().is_empty();
    let taking = creates.then(|| spans.stage(Activity::Lease));
    let lease = match creates {
        false => None,
        true => tokio::select! {
            biased;
            // The run begins nothing then, and removes the Lease if that exists
            _ = stops(None) => None,
            taken = take_lease(life) => match taken {
                Ok(lease) => Some(lease),
                Err(error) => {
                    not_let_in(life, &error).await;
                    return Err(error);
                }
            },
        },
    };
    if let Some(taking) = taking {
        spans.passed(taking);
    }
    if let Err(failure) = journal.publish() {
        let torn_down = tear_down(life, lease).await;
        let _ = journal.write(Event::TornDown(torn_down));
        return Err(RunError::Journal(failure));
    }
    // An abandoned run begins nothing more either
    let _ends_with_this = cancel.clone().drop_guard();
    // It runs beside all that follows, which does not wait for it and cancels it in the end
    let asking = asks_registries(life, &plan, &facts);
    tracker.spawn(cancel.clone().run_until_cancelled_owned(asking));
    let pods = watch_pods(&cluster.api, &options.run, tracker, cancel.clone());
    let namespaces = [manifest::namespace, manifest::host_namespace].map(|of| of(&options.run));
    let ready = ReadyFixtures::new(&options.run, namespaces, &facts, &options.config.outside);
    let mut fixtures = fixtures(life, pools, Arc::new(facts), pods);
    fixtures.second = plan.second_family();
    let depends = Dependencies::from_plan(&plan);
    let executor = Executor::new(
        plan,
        removal,
        fixtures,
        ready,
        spans,
        (tracker.clone(), cancel.clone()),
    );
    let stop = stops(lease.as_ref().map(LeaseHeld::lost));
    let mut spans = executor.run(stop).await;
    if creates {
        let (api, run) = (&cluster.api, &options.run);
        Box::pin(diagnose(api, run, journal, &depends, signals)).await;
        let ending = spans.stage(Activity::TearDown);
        end(life, lease).await;
        spans.passed(ending);
    }
    ended(life)
}

/// When pods go, if the run fits on the nodes. What an earlier run has settled needs no room.
fn when_pods_go(options: &RunOptions, plan: &Plan, facts: &Facts) -> Result<Leave, RunError> {
    let short = |stay| shortages(&cost(plan, facts, &options.config, stay), facts);
    let all = short(true);
    let (leave, short) = match options.keep {
        Keep::Never if all.is_empty() => (Leave::InTheLastRepetition, all),
        Keep::Never => (Leave::InEach, short(false)),
        Keep::OnFailure | Keep::Always => (Leave::Never, all),
    };
    match short.is_empty() || options.resume.is_some() {
        true => Ok(leave),
        false => Err(RunError::DoesNotFit(short)),
    }
}

/// Puts on record which images of the plan registries do not have for the pools that pull them.
fn asks_registries(life: Life<'_>, plan: &Plan, facts: &Facts) -> impl Future<Output = ()> + use<> {
    let config = &life.options.config;
    let wanted = pulls(plan, facts, &config.images);
    let (env, journal) = (life.cluster.api.env().clone(), life.journal.clone());
    note_unoffered(env, journal, config.profile, wanted, facts.pools())
}

/// The context to bring up fixtures on a cluster with these pools.
pub(crate) fn fixtures(
    life: Life<'_>,
    pools: BTreeMap<PoolName, Pool>,
    facts: Arc<Facts>,
    pods: watch::Receiver<Watched>,
) -> Fixtures {
    let options = life.options;
    Fixtures {
        api: life.cluster.api.clone(),
        run: options.run.clone(),
        config: Arc::new(options.config.clone()),
        runtime_class: chosen(&options.config, &facts).unwrap_or_default(),
        facts,
        pools: Arc::new(pools),
        second: None,
        journal: life.journal.clone(),
        domain: Arc::default(),
        copied: Arc::default(),
        broken: Arc::default(),
        pods,
        repeat: options.repeat,
        pods_ready: Arc::new(|_| {}),
    }
}

/// Puts the outcome of the run on record.
fn ended(life: Life<'_>) -> Result<Finished, RunError> {
    let journal = life.journal;
    let view = journal.view().map_err(RunError::Record)?;
    let exit = exit(&view);
    let _ = journal.write(Event::RunEnded(Ended {
        exit,
        requests: life.cluster.api.counts(),
        took_ms: Some(millis(journal.elapsed())),
    }));
    match journal.failure() {
        Some(failure) => Err(RunError::Journal(failure)),
        None => Ok(Finished {
            exit,
            abandoned: false,
        }),
    }
}

/// Ends a run that could not take its Lease.
async fn not_let_in(life: Life<'_>, error: &RunError) {
    let torn_down = match error.may_leave_a_lease() {
        true => tear_down(life, None).await,
        false => TornDown::default(),
    };
    // The first line of each cause: further lines say what to do next, on the terminal
    let why = causes(error).skip(1).map(ToString::to_string);
    let why = why.filter_map(|why| Some(why.lines().next()?.to_owned()));
    let why: Vec<_> = why.collect();
    let by = format!("a failure to acquire its Lease: {}", why.join(": "));
    let _ = not_begun(life, Stop::By(by), torn_down);
}

/// Ends a run that had to stop before it had a plan; its record takes the place of an earlier one.
fn stopped(life: Life<'_>, by: Stop) -> Result<Finished, RunError> {
    let finished = not_begun(life, by, TornDown::default())?;
    life.journal.publish().map_err(RunError::Journal)?;
    Ok(finished)
}

/// Puts on record that a run ended before it observed anything.
fn not_begun(life: Life<'_>, by: Stop, torn_down: TornDown) -> Result<Finished, RunError> {
    // The journal keeps a failure to write
    let _ = life.journal.write(by.event());
    let _ = life.journal.write(Event::TornDown(torn_down));
    ended(life)
}

async fn take_lease(life: Life<'_>) -> Result<LeaseHeld, RunError> {
    let intent = ObjectName {
        kind: "Lease".to_owned(),
        namespace: Some(LEASE_NAMESPACE.to_owned()),
        name: life.options.lease.clone(),
    };
    let announced = life.journal.write(Event::Intent(intent));
    announced.map_err(RunError::Journal)?;
    let waits = |holder: String| {
        // The journal keeps a failure to write
        let _ = life.journal.write(Event::Waits { holder });
    };
    acquired(life.cluster, life.options, waits).await
}

pub(crate) async fn acquired(
    cluster: &Cluster,
    options: &RunOptions,
    waits: impl Fn(String),
) -> Result<LeaseHeld, RunError> {
    let (api, name) = (&cluster.api, &options.lease);
    let who = (&*options.run, &*options.holder);
    let taken = acquire(api, name, who, api.durations(), waits).await;
    taken.map_err(|source| RunError::Lease {
        name: name.clone(),
        source,
    })
}
