//! An API server that is unavailable for a while, or refuses the credential for a while or for good.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Request;
use hybrid_sim::interference::Interference;
use kube::client::Body;
use libtest_mimic::Trial;
use ordered_watch as watch;
use tokio::time::timeout;
use winconform::engine::RunOptions;
use winconform_core::record::{Event, Exit, Line};
use winconform_core::verdict::Verdict;

use crate::world::{
    Outcome, Ran, World, lines, ran, selection, trial, unbroken_of, undisturbed, verdicts, within,
};

/// Checks with every kind of request, and one of a workload that changes.
const LOOKED_AT: [&str; 5] = [
    "env.windows-build-label",
    "reject.hostPID",
    "sample.win-webserver",
    "net.node-to-service-ip",
    "net.after-churn[*source=linux-pod]",
];

/// Faults that hit all requests one after the other, each with its seconds.
type Outage = &'static [(&'static str, u64)];

const OUTAGES: [Outage; 5] = [
    &[("hang=1", 20)],
    &[("hang=1", 90)],
    &[("reset=1", 60)],
    &[("token-expires=0", 4)],
    // As when servers behind a balancer restart in turn
    &[
        ("reset=1", 15),
        ("html-502=1", 10),
        ("too-many-requests=1", 10),
        ("reset=1", 15),
    ],
];

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/winconform";

pub(crate) fn trials() -> Vec<Trial> {
    let survived = OUTAGES.into_iter().map(|outage| {
        let of = |(fault, lasts): &(_, _)| format!("::{fault}::{lasts}s");
        let each: String = outage.iter().map(of).collect();
        trial(format!("an_outage_is_survived{each}"), move || {
            survived(outage)
        })
    });
    let taken = trial("a_lease_taken_in_an_outage_ends_the_run", taken);
    let refused = trial("a_token_refused_in_mid_run_breaks_checks", refused);
    survived.chain([taken, refused]).collect()
}

/// Whether an outage may begin at an event, or a clock jump.
pub(crate) fn is_moment(line: &Line) -> bool {
    matches!(line.event, Event::Fixture { .. } | Event::Attempt(_))
}

/// Outages while the run applies fixtures, while it observes them, and when tear-down begins.
fn survived(outage: Outage) -> Outcome {
    let whole = unbroken_of(&selection(&LOOKED_AT));
    let last = lines(&whole)?.iter().filter(|line| is_moment(line)).count();
    for nth in [1, last / 3, last * 2 / 3, last] {
        let (ran, left) = met(outage, nth, None)?;
        let came_to = ran.came_to(Exit::Conformant).and(left);
        came_to.map_err(|why| format!("at event {nth} of {last}: {why}"))?;
    }
    Ok(())
}

/// Another run takes the Lease while the server is unavailable to this one.
fn taken() -> Outcome {
    let thief = r#"{"spec":{"holderIdentity":"thief"}}"#;
    let (ran, _) = met(&[("hang=1", 60)], 3, Some(thief))?;
    ran.came_to(Exit::CouldNotTell)?;
    match ran.view()?.interrupted.as_deref() {
        Some("the loss of its Lease: it is held by `thief`") => Ok(()),
        by => Err(format!("interrupted by {by:?}:\n{}", ran.report())),
    }
}

/// A token that the server refuses for good from some request on.
fn refused() -> Outcome {
    const MOMENTS: usize = 24;
    let whole = unbroken_of(&selection(&LOOKED_AT)).view()?;
    let sent = whole.ended.as_ref().ok_or("it has no end")?;
    let sent: u64 = sent.requests.iter().map(|(_, count)| count).sum();
    let sent = usize::try_from(sent).map_err(|error| error.to_string())?;
    let mut lost = 0;
    for after in (0..sent).step_by((sent / MOMENTS).max(1)) {
        let fault = format!("token-expires={after}");
        lost +=
            without_token(&fault, &verdicts(&whole)).map_err(|why| format!("{fault}: {why}"))?;
    }
    match lost {
        0 => Err("a token refused from the start cost nothing".to_owned()),
        _ => Ok(()),
    }
}

/// Counts the checks that lose their verdict; no check gets a wrong one, and the report says why.
fn without_token(fault: &str, whole: &BTreeMap<String, Option<Verdict>>) -> Result<usize, String> {
    within(async |world: &World| {
        let before = world.objects();
        let fault = fault.parse().expect("a fault of the way");
        let interference = Interference::new(vec![fault], 0);
        let cluster = world.behind(interference.before(&world.server.client()));
        let options = RunOptions {
            selection: selection(&LOOKED_AT),
            ..world.settings("r1")
        };
        let ran = undisturbed(&cluster, &options).await;
        let view = ran.view()?;
        let mut now = verdicts(&view);
        let now = whole
            .iter()
            .map(|(id, was)| (id, was, now.remove(id).flatten()));
        let lost: Vec<_> = now.filter(|(_, was, is)| *was != is).collect();
        for (id, _, is) in &lost {
            if !matches!(is, None | Some(Verdict::Inconclusive | Verdict::Skip)) {
                return Err(format!("{id} came to {is:?}:\n{}", ran.report()));
            }
        }
        if !lost.is_empty() && !ran.report().contains("refused the credential") {
            return Err(format!("it does not say why:\n{}", ran.report()));
        }
        world.left(&view, &before).await?;
        Ok(lost.len())
    })
}

/// A run whose server is unavailable from its nth event on, and whether it leaves all objects as before.
fn met(faults: Outage, nth: usize, thief: Option<&'static str>) -> Result<(Ran, Outcome), String> {
    within(async |world: &World| {
        let before = world.objects();
        let interference = Interference::new(Vec::new(), 0);
        let options = RunOptions {
            selection: selection(&LOOKED_AT),
            ..world.settings("r1")
        };
        let (tell, mut comes) = watch::channel(false);
        let seen = AtomicUsize::new(0);
        let listener = Box::new(move |line: &Line| {
            if is_moment(line) && seen.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                tell.send_replace(true);
            }
        });
        let outage = async {
            let begins = comes.wait_for(|comes| *comes).await.is_ok();
            assert!(begins, "the event comes");
            for (fault, lasts) in faults {
                interference.set(vec![fault.parse().expect("a fault of the way")]);
                let _ = timeout(Duration::from_secs(*lasts), pending::<()>()).await;
            }
            if let Some(thief) = thief {
                let taking = Request::patch(LEASE);
                let taking = taking.header("Content-Type", "application/merge-patch+json");
                let taking = taking.body(Body::from(thief.as_bytes().to_vec()));
                let taken = world.server.client().send(taking.expect("a request")).await;
                assert!(taken.is_ok_and(|taken| taken.status().is_success()));
            }
            interference.set(Vec::new());
            pending::<Infallible>().await
        };
        let (_alive, signals) = watch::channel(0);
        let cluster = world.behind(interference.before(&world.server.client()));
        let ran = tokio::select! {
            biased;
            ran = ran(&cluster, &options, signals, listener) => ran,
            never = outage => match never {},
        };
        match interference.hits() {
            0 => Err("nothing met it".to_owned()),
            _ => Ok((ran, world.unchanged(&before))),
        }
    })
}
