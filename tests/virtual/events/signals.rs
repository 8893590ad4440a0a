//! Signals at every event: the first ends a run in order, the second ends it at once.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;
use libtest_mimic::Trial;
use ordered_watch as watch;
use serde_json::Value;
use tokio::time::Instant;
use winconform::engine::RunOptions;
use winconform_core::record::{Event, Exit, Line, RunView};
use winconform_core::report::{json, junit};
use winconform_core::verdict::{Reason, SkipReason, Verdict};

use crate::world::{Outcome, Ran, World, lines, mortal, ran, trial, unbroken, verdicts, within};

/// The least number of runs that get a signal, and of runs that abandon their work.
const LEAST: u64 = 20;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_signal_at_every_event", || at_every_event(&once)),
        trial("a_second_signal_at_every_event", second),
        trial("a_panic_at_every_event", || at_every_event(&panicked)),
    ]
}

fn at_every_event(
    each: &impl AsyncFn(&World, &RunOptions, &Ran, u64) -> Result<bool, String>,
) -> Outcome {
    let whole = unbroken();
    for at in 0.. {
        let more = within(async |world| each(world, &world.settings("r1"), &whole, at).await);
        if !more.map_err(|error| format!("signal at event {at}: {error}"))? {
            return match at {
                0..LEAST => Err(format!("only {at} times")),
                _ => Ok(()),
            };
        }
    }
    Ok(())
}

/// Sends a second signal at every event; most of these runs abandon their work.
fn second() -> Outcome {
    let abandoned = Cell::new(0);
    at_every_event(&async |world: &World, options: &RunOptions, _: &Ran, at| {
        let ended = twice(world, options, at).await?;
        abandoned.set(abandoned.get() + u64::from(ended == Some(Ended::Abandoned)));
        Ok(ended.is_some())
    })?;
    match abandoned.get() {
        few @ 0..LEAST => Err(format!("only {few} were abandoned")),
        _ => Ok(()),
    }
}

/// One signal: the run leaves nothing, can be reported, and skips what it did not observe as interrupted.
pub(crate) async fn once(
    world: &World,
    options: &RunOptions,
    whole: &Ran,
    at: u64,
) -> Result<bool, String> {
    let before = world.objects();
    let (signal, signals) = watch::channel(0);
    let listener = Box::new(move |line: &Line| {
        if line.seq == at {
            signal.send_replace(1);
        }
    });
    let ran = ran(&world.cluster(), options, signals, listener).await;
    if at_the_end(&ran, at)? {
        return Ok(false);
    }
    world.unchanged(&before)?;
    let (view, whole) = (ran.view()?, whole.view()?);
    reported(&view)?;
    match view.interrupted {
        Some(_) => ran.came_to(Exit::Interrupted)?,
        // Nothing was left to observe
        None => {
            ran.came_to(Exit::Conformant)?;
            concluded_at(&ran, at)?;
        }
    }
    let expected = verdicts(&whole);
    for check in view.checks.values() {
        let id = check.planned.id.as_str();
        let conclusion = check.conclusion.as_ref();
        let missed = conclusion.is_some_and(|it| {
            let why = Reason::Skipped(SkipReason::Interrupted);
            it.verdict == Verdict::Skip && it.reason == why && view.interrupted.is_some()
        });
        if !missed && conclusion.map(|it| it.verdict) != expected[id] {
            return Err(format!("{id}: {conclusion:?}, not {:?}", expected[id]));
        }
    }
    Ok(true)
}

/// A panic in the run's task or in one of its assertions: the run leaves nothing, and can be reported.
async fn panicked(world: &World, options: &RunOptions, _: &Ran, at: u64) -> Result<bool, String> {
    let before = world.objects();
    let (_alive, signals) = watch::channel(0);
    let listener = Box::new(move |line: &Line| {
        if line.seq == at {
            resume_unwind(Box::new("it is at odds with itself"));
        }
    });
    let cluster = world.cluster();
    let running = ran(&cluster, options, signals, listener);
    let ran = AssertUnwindSafe(running).catch_unwind().await;
    let ran = ran.map_err(|_| "the panic ended it".to_owned())?;
    world.unchanged(&before)?;
    reported(&ran.view()?)?;
    match &ran.finished {
        Err(error) if !error.to_string().ends_with("it is at odds with itself") => {
            Err(error.to_string())
        }
        _ => Ok(!at_the_end(&ran, at)?),
    }
}

/// Whether a run ended before the event, or with it.
fn at_the_end(ran: &Ran, at: u64) -> Result<bool, String> {
    let lines = u64::try_from(ran.text.lines().count()).map_err(|error| error.to_string())?;
    Ok(lines <= at + 1)
}

/// Whether every check got its verdict before the event `at`, or at the same instant.
fn concluded_at(ran: &Ran, at: u64) -> Outcome {
    let lines = lines(ran)?;
    let (before, after): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.seq <= at);
    let now = before.last().map(|line| line.at);
    let late = |line: &&&Line| matches!(line.event, Event::Verdict { .. }) && Some(line.at) > now;
    match after.iter().find(late) {
        None => Ok(()),
        Some(late) => Err(format!("it went on after the signal: {late:?}")),
    }
}

/// Renders both reports of a run.
fn reported(view: &RunView) -> Outcome {
    junit::render(view).map_err(|error| error.to_string())?;
    json::render(view);
    Ok(())
}

/// How a run ended after two signals.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ended {
    /// Its work was done by the second signal.
    Done,
    /// It abandoned the rest of its work.
    Abandoned,
}

/// A second signal at the next event: the run ends at once, and names what it may leave. `None` if the run
/// ended before.
pub(crate) async fn twice(
    world: &World,
    options: &RunOptions,
    at: u64,
) -> Result<Option<Ended>, String> {
    let before = world.objects();
    let (signal, signals) = watch::channel(0);
    let (tell, second_at) = watch::channel(None);
    let listener = Box::new(move |line: &Line| {
        if line.seq == at {
            signal.send_replace(1);
        } else if line.seq == at + 1 {
            signal.send_replace(2);
            tell.send_replace(Some(Instant::now()));
        }
    });
    let (kill, killed) = watch::channel(false);
    let cluster = world.behind(mortal(world.server.client(), killed));
    let ran = ran(&cluster, options, signals, listener).await;
    let Some(second_at) = *second_at.borrow() else {
        return Ok(None);
    };
    let at_once = second_at == Instant::now();
    // The process ends with the run
    kill.send_replace(true);
    let view = ran.view()?;
    match &ran.finished {
        Ok(finished) if finished.abandoned && at_once => ran.came_to(Exit::Interrupted)?,
        Ok(finished) if !finished.abandoned && at_once => {
            world.unchanged(&before)?;
            return Ok(Some(Ended::Done));
        }
        other => return Err(format!("{other:?} after {:?}", second_at.elapsed())),
    }
    reported(&view)?;
    let named: BTreeSet<_> = view
        .left()
        .into_iter()
        .map(|left| (left.kind.clone(), left.namespace.clone(), left.name.clone()))
        .collect();
    for (name, object) in world.objects() {
        let metadata = &object["metadata"];
        let made_by_us = metadata["labels"]["app.kubernetes.io/managed-by"] == "winconform"
            && metadata["ownerReferences"].is_null();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let object = (
            text(&object["kind"]).unwrap_or_default(),
            text(&metadata["namespace"]),
            text(&metadata["name"]).unwrap_or_default(),
        );
        if made_by_us && !before.contains_key(&name) && !named.contains(&object) {
            return Err(format!("{name} is left and not named"));
        }
    }
    world.cleaned_up().await?;
    world.unchanged(&before)?;
    Ok(Some(Ended::Abandoned))
}
