//! Everything looked at more than once in one run.

use libtest_mimic::Trial;
use tokio::sync::watch;
use winconform::engine::{Repeat, RunOptions};
use winconform_core::record::{Event, Exit, FixtureOutcome, Line};
use winconform_core::verdict::Verdict;
use winconform_core::way::FixtureName;

use crate::world::{Outcome, lines, ran, selection, trial, undisturbed, within};

/// Looked at after its backends came and went.
const CHURN: &str = "net.after-churn[pool=windows-2022,source=windows-pod]";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("backends_come_and_go_in_each_repetition", each),
        trial("what_goes_stale_only_later_has_failed_and_is_flaky", later),
    ]
}

fn thrice(settings: RunOptions) -> RunOptions {
    RunOptions {
        repeat: Repeat::Times(3),
        selection: selection(&["net.after-churn", "net.service-ip-from-pod"]),
        ..settings
    }
}

fn each() -> Outcome {
    within(async |world| {
        let before = world.objects();
        let ran = undisturbed(&world.cluster(), &thrice(world.settings("r0"))).await;
        ran.came_to(Exit::Conformant)?;
        let stood = |line: &&Line| {
            matches!(&line.event, Event::Fixture { key, outcome: FixtureOutcome::Stands(_), .. }
                if key.name == FixtureName::Churn)
        };
        let times = lines(&ran)?.iter().filter(stood).count();
        if times != 3 {
            return Err(format!("its backends came and went {times} times, not 3"));
        }
        world.unchanged(&before)
    })
}

/// A node that keeps what it had from the second repetition on.
fn later() -> Outcome {
    within(async |world| {
        let faults = world.joined.faults().clone();
        let (_alive, signals) = watch::channel(0);
        let listener = Box::new(move |line: &Line| {
            if matches!(line.event, Event::Repetition { number: 2 }) {
                faults.set("endpoint-stale=windows-2022".parse().expect("a fault"));
            }
        });
        let options = thrice(world.settings("r0"));
        let ran = ran(&world.cluster(), &options, signals, listener).await;
        ran.came_to(Exit::NotConformant)?;
        let view = ran.view()?;
        let check = view
            .checks
            .values()
            .find(|check| check.planned.id.as_str() == CHURN);
        let conclusion = check.and_then(|check| check.conclusion.as_ref());
        let conclusion = conclusion.ok_or("it came to nothing")?;
        let times = [Verdict::Pass, Verdict::Fail].map(|verdict| conclusion.repeated.get(&verdict));
        match (conclusion.verdict, conclusion.flaky, times) {
            (Verdict::Fail, true, [Some(1), Some(2)]) => Ok(()),
            _ => Err(format!("{conclusion:?}")),
        }
    })
}
