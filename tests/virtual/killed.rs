//! Runs that are killed: nothing of theirs does anything more, `cleanup` removes what they left, and
//! another run goes on with their record.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use libtest_mimic::Trial;
use tokio::sync::watch;
use winconform::cluster::Cluster;
use winconform::engine::{Listener, RunError, RunOptions};
use winconform_core::record::{Exit, read};

use crate::world::{
    Outcome, Ran, World, behind, mortal, ran, trial, unbroken, undisturbed, verdicts, within,
};

/// Trials that share the events of a run.
const PARTS: u64 = 2;

pub(crate) fn trials() -> Vec<Trial> {
    let of_parts = |what: &str, each: fn(u64) -> Outcome| {
        let name = what.to_owned();
        (0..PARTS).map(move |part| trial(format!("{name}::{part}"), move || each(part)))
    };
    of_parts("killed_at_every_event", at_events)
        .chain(of_parts("killed_at_every_change", at_changes))
        .chain([trial(
            "a_line_that_is_cut_off_counts_for_nothing",
            cut_lines,
        )])
        .collect()
}

/// Kills a run at every event, cleans up, and goes on with its record.
fn at_events(part: u64) -> Outcome {
    let whole = unbroken();
    for at in (part..).step_by(usize::try_from(PARTS).expect("a few")) {
        let more = within(async |world| at_event(world, &whole, at).await);
        if !more.map_err(|error| format!("killed at event {at}: {error}"))? {
            return Ok(());
        }
    }
    Ok(())
}

/// `false` where the run ended before.
async fn at_event(world: &World, whole: &Ran, at: u64) -> Result<bool, String> {
    let before = world.objects();
    let (kill, killed) = watch::channel(false);
    // As if it had never returned: nothing that follows the event is done
    let listener: Listener = Box::new(move |line| {
        if line.seq >= at {
            kill.send_replace(true);
            resume_unwind(Box::new("killed"));
        }
    });
    let cluster = behind(mortal(world.server.client(), killed.clone()));
    let Some(text) = until(&cluster, &world.settings("r1"), killed, listener).await else {
        return Ok(false);
    };
    let record = lines(&text, at + 1);
    world.cleaned_up().await?;
    world.unchanged(&before)?;

    let earlier = read(record).map_err(|error| error.to_string())?;
    let settled = earlier.settled().count();
    let resumes = RunOptions {
        resume: Some(Arc::new(earlier)),
        ..world.settings("r2")
    };
    let again = undisturbed(&world.cluster(), &resumes).await;
    world.unchanged(&before)?;
    let knows = record.lines().count() > 1;
    match &again.finished {
        Err(RunError::Resume(_)) if !knows => return Ok(true),
        _ => again.came_to(Exit::Conformant)?,
    }
    let (again, whole) = (again.view()?, whole.view()?);
    if again.resumed != Some(("r1".to_owned(), settled)) {
        return Err(format!("{:?}, not {settled} of r1", again.resumed));
    }
    same(&verdicts(&again), &verdicts(&whole))?;
    Ok(true)
}

/// Kills a run with every request under way that changes something: it is done, and nobody hears of it.
fn at_changes(part: u64) -> Outcome {
    for at in (part..).step_by(usize::try_from(PARTS).expect("a few")) {
        let more = within(async |world| at_change(world, at).await);
        if !more.map_err(|error| format!("killed at change {at}: {error}"))? {
            return match at {
                0..20 => Err(format!("only {at} changes")),
                _ => Ok(()),
            };
        }
    }
    Ok(())
}

/// `false` where the run ended before.
async fn at_change(world: &World, at: u64) -> Result<bool, String> {
    let before = world.objects();
    let (kill, killed) = watch::channel(false);
    let client = telling(world.server.client(), at, kill);
    let cluster = behind(mortal(client, killed.clone()));
    let options = world.settings("r1");
    if until(&cluster, &options, killed, Box::new(|_| {}))
        .await
        .is_none()
    {
        return Ok(false);
    }
    world.cleaned_up().await?;
    world.unchanged(&before)?;
    Ok(true)
}

/// A client that tells of the change of a number as soon as it is done.
fn telling(client: Client, at: u64, kill: watch::Sender<bool>) -> Client {
    let (kill, changes) = (Arc::new(kill), Arc::new(AtomicU64::new(0)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let is_change = request.method() != Method::GET && !query.contains("dryRun");
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

/// Runs until it is killed: the record then, or nothing where the run ended before.
async fn until(
    cluster: &Cluster,
    options: &RunOptions,
    mut killed: watch::Receiver<bool>,
    listener: Listener,
) -> Option<String> {
    let text = Arc::new(std::sync::Mutex::new(String::new()));
    let (_alive, signals) = watch::channel(0);
    let kept = Arc::clone(&text);
    let listener: Listener = Box::new(move |line| {
        let line_text = winconform_core::record::to_line(line).expect("it is on record");
        kept.lock()
            .expect("nobody panics here")
            .push_str(&line_text);
        listener(line);
    });
    let running = AssertUnwindSafe(ran(cluster, options, signals, listener)).catch_unwind();
    tokio::select! {
        biased;
        Ok(_) = killed.wait_for(|killed| *killed) => {}
        ended = running => if let Ok(Ran { .. }) = ended { return None },
    }
    let text = std::mem::take(&mut *text.lock().expect("nobody panics here"));
    Some(text)
}

/// The first lines of a record.
fn lines(text: &str, count: u64) -> &str {
    let ends = text.match_indices('\n').map(|(end, _)| end + 1);
    let count = usize::try_from(count).expect("a few");
    let end = ends.take(count).last().unwrap_or_default();
    &text[..end]
}

fn same<T: PartialEq + std::fmt::Debug>(seen: &T, expected: &T) -> Outcome {
    match seen == expected {
        true => Ok(()),
        false => Err(format!("{seen:#?}, not {expected:#?}")),
    }
}

/// A record that is cut off anywhere within a line is the one up to that line; and one of those is gone
/// on with.
fn cut_lines() -> Outcome {
    let whole = unbroken();
    let mut begin = 0;
    for (number, line) in whole.text.split_inclusive('\n').enumerate() {
        let before = read(&whole.text[..begin]);
        for cut in [1, line.len() / 2, line.len() - 1] {
            let Some(text) = whole.text.get(..begin + cut) else {
                continue;
            };
            let mut seen = read(text);
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
    let earlier = read(&whole.text[..middle]).map_err(|error| error.to_string())?;
    within(async |world| {
        let resumes = RunOptions {
            resume: Some(Arc::new(earlier)),
            ..world.settings("r2")
        };
        let again = undisturbed(&world.cluster(), &resumes).await;
        again.came_to(Exit::Conformant)?;
        same(&verdicts(&again.view()?), &verdicts(&whole.view()?))
    })
}
