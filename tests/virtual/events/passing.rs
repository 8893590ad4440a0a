//! Pulls, sandboxes and starts that fail for a while and then succeed: a run waits for them.

use std::time::Duration;

use hybrid_sim::ProductFault;
use libtest_mimic::Trial;
use winconform::cluster::{Condition, poll};
use winconform::engine::RunOptions;
use winconform::transport::Pace;
use winconform_core::record::Exit;

use crate::world::{Outcome, World, selection, trial, undisturbed, within};

/// A fault, the kubelet's event for it, and the count of that event at which the trial lifts the fault: two
/// failed pulls, forty seconds without a sandbox, two restarts, of which the first has no event.
const PASSING: [(&str, &str, u64); 3] = [
    ("pull-fails=windows-2022", "Error: ErrImagePull", 2),
    (
        "sandbox-fails=windows-2022",
        "Failed to create pod sandbox",
        4,
    ),
    (
        "servercore-crashes=windows-2022",
        "Back-off restarting failed container",
        1,
    ),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trials = PASSING.map(|(fault, words, times)| {
        let name = format!("what_passes_is_waited_for::{fault}");
        trial(name, move || passes(fault, words, times))
    });
    trials.into()
}

fn passes(fault: &str, words: &str, times: u64) -> Outcome {
    within(async |world: &World| {
        let before = world.objects();
        let fault: ProductFault = fault.parse().expect("a fault");
        world.joined.faults().set(fault.clone());
        world.joined.shown().await;
        let mends = async {
            let (pause, limit) = (Duration::from_secs(1), Duration::from_mins(30));
            let mended = poll(
                Pace::steady(pause),
                limit,
                words,
                async || match count_told(world, words) {
                    often if often >= times => Condition::Done(()),
                    often => Condition::NotYet(format!("told {often} times")),
                },
            );
            let mended = mended.await;
            world.joined.faults().lift(&fault);
            mended
        };
        let options = RunOptions {
            selection: selection(&["sample.win-webserver", "net.service-ip-from-pod"]),
            ..world.settings("r0")
        };
        let cluster = world.cluster();
        let (ran, mended) = tokio::join!(undisturbed(&cluster, &options), mends);
        ran.came_to(Exit::Conformant)?;
        mended.map_err(|error| error.to_string())?;
        world.unchanged(&before)
    })
}

/// The highest count of an event with these words.
fn count_told(world: &World, words: &str) -> u64 {
    let objects = world.server.objects();
    let events = objects.values().filter(|it| {
        it["message"]
            .as_str()
            .is_some_and(|it| it.starts_with(words))
    });
    let counts = events.filter_map(|event| event["count"].as_u64());
    counts.max().unwrap_or(0)
}
