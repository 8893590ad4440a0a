//! Killed runs: they do nothing more, `cleanup` removes what they left, and another run resumes their record.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use libtest_mimic::Trial;
use ordered_watch as watch;
use winconform::cluster::Cluster;
use winconform::engine::{Listener, RunError, RunOptions};
use winconform_core::record::{Exit, read};
use winconform_core::verdict::Verdict;

use crate::world::{
    Outcome, Ran, World, mortal, of_all_or, ran, trial, unbroken, unbroken_of, undisturbed,
    verdicts, within, written,
};

/// The number of trials that share the events of a run.
const PARTS: u64 = 2;

/// Checks that conclude one after the other, and pull no Windows image.
const SHORT: [&str; 3] = [
    "env.windows-build-label",
    "reject.hostPID[workload=pod]",
    "net.pod-to-node/from-linux",
];

pub(crate) fn trials() -> Vec<Trial> {
    let of_parts = |what: &str, each: fn(u64) -> Outcome| {
        let name = what.to_owned();
        (0..PARTS).map(move |part| trial(format!("{name}::{part}"), move || each(part)))
    };
    of_parts("killed_at_every_event", at_events)
        .chain(of_parts("killed_at_every_change", at_changes))
        .chain([trial("a_run_goes_on_from_every_event", resumed)])
        .chain([trial(
            "a_line_that_is_cut_off_counts_for_nothing",
            cut_lines,
        )])
        .collect()
}

/// Kills a run at every event, and cleans up.
fn at_events(part: u64) -> Outcome {
    at_every(part, &async |world: &World, at| {
        let before = world.objects();
        let settings = world.settings("r1");
        let killed = at_event(world, &settings, at).await;
        world.cleaned_up().await?;
        world.unchanged(&before)?;
        Ok(killed.is_some())
    })
}

/// Calls `each` for every event of this part of a run, until there is none.
fn at_every(part: u64, each: &impl AsyncFn(&World, u64) -> Result<bool, String>) -> Outcome {
    for at in (part..).step_by(usize::try_from(PARTS).expect("a few")) {
        let more = within(async |world| each(world, at).await);
        if !more.map_err(|error| format!("killed at {at}: {error}"))? {
            return match at {
                0..20 => Err(format!("only {at} times")),
                _ => Ok(()),
            };
        }
    }
    Ok(())
}

/// The record of a run that is killed at an event, as if the event had never returned: the run does nothing
/// after it. `None` if the run ended before.
pub(crate) async fn at_event(world: &World, options: &RunOptions, at: u64) -> Option<String> {
    let (kill, killed) = watch::channel(false);
    let listener: Listener = Box::new(move |line| {
        if line.seq >= at {
            kill.send_replace(true);
            resume_unwind(Box::new("killed"));
        }
    });
    let cluster = world.behind(mortal(world.server.client(), killed.clone()));
    let text = until(&cluster, options, killed, listener).await?;
    Some(lines(&text, at + 1).to_owned())
}

/// Resumes the record of a run that was killed, at every event in turn.
fn resumed() -> Outcome {
    let selection = of_all_or(&SHORT);
    let whole = unbroken_of(&selection);
    let expected = verdicts(&whole.view()?);
    let mut settled = BTreeSet::new();
    for at in 0.. {
        let of_short = |world: &World, run: &str| RunOptions {
            selection: selection.clone(),
            ..world.settings(run)
        };
        let done = within(async |world| {
            let before = world.objects();
            let Some(record) = at_event(world, &of_short(world, "r1"), at).await else {
                return Ok(None);
            };
            world.cleaned_up().await?;
            let again = of_short(world, "r2");
            let settled = goes_on(&world.cluster(), again, &record, &expected).await?;
            world.unchanged(&before)?;
            Ok(Some(settled))
        });
        let done = done.map_err(|error: String| format!("resumed from event {at}: {error}"))?;
        let Some(done) = done else { break };
        settled.extend(done);
    }
    // Records with no, some and all checks settled
    match settled.len() {
        0..3 => Err(format!("only ever {settled:?} were settled")),
        _ => Ok(()),
    }
}

/// Checks that a run that resumes a record has the verdicts of an undisturbed run. Returns how many checks
/// the record settled, or `None` if it cannot be resumed.
pub(crate) async fn goes_on(
    cluster: &Cluster,
    options: RunOptions,
    record: &str,
    expected: &BTreeMap<String, Option<Verdict>>,
) -> Result<Option<usize>, String> {
    let earlier = read(record.as_bytes()).map_err(|error| error.to_string())?;
    let (settled, knows) = (earlier.settled().count(), earlier.facts.is_some());
    let resumes = RunOptions {
        resume: Some(Arc::new(earlier)),
        ..options
    };
    let again = undisturbed(cluster, &resumes).await;
    match &again.finished {
        // The record does not name the cluster
        Err(RunError::Resume(_)) if !knows => return Ok(None),
        _ => again.came_to(Exit::Conformant)?,
    }
    let again = again.view()?;
    same(&again.resumed, &Some(("r1".to_owned(), settled)))?;
    same(&verdicts(&again), expected)?;
    Ok(Some(settled))
}

/// Kills a run during every changing request, except renewals of its Lease: the server completes the request,
/// and the run gets no answer.
fn at_changes(part: u64) -> Outcome {
    at_every(part, &async |world: &World, at| {
        let before = world.objects();
        let (kill, killed) = watch::channel(false);
        let client = telling(world.server.client(), at, kill);
        let cluster = world.behind(mortal(client, killed.clone()));
        let options = world.settings("r1");
        let left = until(&cluster, &options, killed, Box::new(|_| {})).await;
        world.cleaned_up().await?;
        world.unchanged(&before)?;
        Ok(left.is_some())
    })
}

/// A client that triggers `kill` as soon as the change with this number is done.
fn telling(client: Client, at: u64, kill: watch::Sender<bool>) -> Client {
    let (kill, changes) = (Arc::new(kill), Arc::new(AtomicU64::new(0)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (path, query) = (request.uri().path(), request.uri().query());
        let is_change = request.method() != Method::GET
            && !query.is_some_and(|query| query.contains("dryRun"))
            && !(request.method() == Method::PUT && path.contains("/leases/"));
        let is_it = is_change && changes.fetch_add(1, Ordering::Relaxed) == at;
        let (client, kill) = (client.clone(), Arc::clone(&kill));
        async move {
            let answer = client.send(request).await;
            if is_it {
                kill.send_replace(true);
            }
            answer
        }
    });
    Client::new(service, "default")
}

/// Runs until the kill: the record then, or `None` if the run ended before.
pub(crate) async fn until(
    cluster: &Cluster,
    options: &RunOptions,
    mut killed: watch::Receiver<bool>,
    listener: Listener,
) -> Option<String> {
    let (_alive, signals) = watch::channel(0);
    let (text, listener) = written(listener);
    let running = AssertUnwindSafe(ran(cluster, options, signals, listener)).catch_unwind();
    tokio::select! {
        biased;
        Ok(_) = killed.wait_for(|killed| *killed) => {}
        ended = running => if let Ok(Ran { .. }) = ended { return None },
    }
    let text = std::mem::take(&mut *text.lock().expect("not poisoned"));
    Some(text)
}

/// The first lines of a record.
fn lines(text: &str, count: u64) -> &str {
    let ends = text.match_indices('\n').map(|(end, _)| end + 1);
    let count = usize::try_from(count).expect("a few");
    let end = ends.take(count).last().unwrap_or_default();
    &text[..end]
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(seen: &T, expected: &T) -> Outcome {
    match seen == expected {
        true => Ok(()),
        false => Err(format!("{seen:#?}, not {expected:#?}")),
    }
}

/// A record that is cut off within a line reads like the record up to that line; and a run resumes one of
/// these.
fn cut_lines() -> Outcome {
    let whole = unbroken();
    let mut begin = 0;
    for (number, line) in whole.text.split_inclusive('\n').enumerate() {
        let before = read(&whole.text.as_bytes()[..begin]);
        for cut in [1, line.len() / 2, line.len() - 1] {
            let Some(text) = whole.text.get(..begin + cut) else {
                continue;
            };
            let mut seen = read(text.as_bytes());
            if let Ok(view) = &mut seen {
                assert!(view.cut, "line {number} is cut");
                view.cut = false;
            }
            same(&seen, &before)?;
        }
        begin += line.len();
    }
    let middle = whole.text.match_indices("\"attempt\"").nth(1);
    let middle = middle.expect("checks are attempted").0;
    // The record is of run `r0`; `goes_on` expects `r1`
    let expected = verdicts(&whole.view()?);
    let record = whole.text[..middle].replacen("\"r0\"", "\"r1\"", 1);
    within(async |world| {
        let options = world.settings("r2");
        match goes_on(&world.cluster(), options, &record, &expected).await? {
            None | Some(0) => Err("nothing was settled".to_owned()),
            Some(_) => Ok(()),
        }
    })
}
