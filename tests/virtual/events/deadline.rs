//! Deadlines at the instant of every event of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use libtest_mimic::Trial;
use ordered_watch as watch;
use tokio::time::Instant;
use winconform::engine::{Keep, RunOptions};
use winconform_core::config::Durations;
use winconform_core::record::{Event, Exit, Line};
use winconform_core::verdict::{Reason, SkipReason, Verdict};

use crate::world::{Outcome, Ran, World, lines, trial, unbroken, undisturbed, verdicts, within};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_deadline_at_every_event", at_every_instant),
        trial("a_lease_that_nobody_heard_of_is_not_kept", no_lease_is_kept),
    ]
}

fn at_every_instant() -> Outcome {
    let whole = unbroken();
    let lines = lines(&whole)?;
    let began = lines.first().expect("it began").at;
    let instants: BTreeSet<_> = lines.iter().map(|line| since(began, line)).collect();
    for after in instants {
        let ended = within(async |world| overdue(world, world.settings("r1"), &whole, after).await);
        ended.map_err(|error| format!("deadline after {after:?}: {error}"))?;
    }
    Ok(())
}

pub(crate) async fn overdue(
    world: &World,
    options: RunOptions,
    whole: &Ran,
    after: Duration,
) -> Outcome {
    let before = world.objects();
    let began = Instant::now();
    let options = RunOptions {
        deadline: Some(after),
        ..options
    };
    let ran = undisturbed(&world.cluster(), &options).await;
    let took = began.elapsed();
    world.unchanged(&before)?;
    if took > after + Durations::default().tear_down {
        return Err(format!("it took {took:?}\n{}", ran.report()));
    }
    let lines = lines(&ran)?;
    let late = lines.iter().filter(|line| since(lines[0].at, line) > after);
    for line in late {
        if let Event::Intent(_) | Event::Attempt(_) = line.event {
            return Err(format!("after it there was {line:?}"));
        }
    }
    let (view, expected) = (ran.view()?, verdicts(&whole.view()?));
    let mut missed = 0;
    for check in view.checks.values() {
        let Some(conclusion) = &check.conclusion else {
            return Err(format!("{} came to nothing", check.planned.id));
        };
        let expected = expected[check.planned.id.as_str()];
        if Some(conclusion.verdict) != expected {
            let overdue = conclusion.verdict == Verdict::Skip
                && conclusion.reason == Reason::Skipped(SkipReason::Deadline);
            if !overdue {
                return Err(format!(
                    "{}: {conclusion:?}, not {expected:?}",
                    check.planned.id
                ));
            }
            missed += 1;
        }
    }
    match (missed, view.planned) {
        (0, true) => ran.came_to(Exit::Conformant),
        _ => ran.came_to(Exit::CouldNotTell),
    }?;
    let limit = view.deadline.map(Duration::from_millis);
    match (limit, missed) {
        (None, 0) if view.planned => Ok(()),
        (Some(limit), _)
            if limit == Duration::from_millis(u64::try_from(after.as_millis()).unwrap_or(0)) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?} is on record")),
    }
}

/// The deadline passes after the server created the Lease and before the run gets the answer: even a run that
/// keeps everything deletes the Lease, which would keep out the next run.
fn no_lease_is_kept() -> Outcome {
    within(async |world| {
        let before = world.objects();
        let (tell, created) = watch::channel(false);
        let options = RunOptions {
            deadline: Some(Duration::from_secs(10)),
            keep: Keep::Always,
            ..world.settings("r1")
        };
        let cluster = world.behind(unheard(world.server.client(), tell));
        let ran = undisturbed(&cluster, &options).await;
        ran.came_to(Exit::CouldNotTell)?;
        if !*created.borrow() {
            return Err("it has taken no Lease".to_owned());
        }
        if !ran.view()?.kept {
            return Err("nothing was to be kept".to_owned());
        }
        world.unchanged(&before)
    })
}

/// A client that creates Leases and never gets the answer.
fn unheard(client: Client, created: watch::Sender<bool>) -> Client {
    let created = Arc::new(created);
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_it = request.method() == Method::POST && request.uri().path().ends_with("/leases");
        let (client, created) = (client.clone(), Arc::clone(&created));
        async move {
            let answer = client.send(request).await;
            if is_it {
                created.send_replace(true);
                std::future::pending::<()>().await;
            }
            answer
        }
    });
    Client::new(service, "default")
}

/// The time from the beginning of a run to a line.
pub(crate) fn since(began: Timestamp, line: &Line) -> Duration {
    Duration::try_from(line.at.duration_since(began)).expect("time goes on")
}
