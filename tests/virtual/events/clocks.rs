//! Clocks that jump by an hour in the middle of a run: that of the machine which runs the tool, or those of the nodes.
//! No verdict depends on the time of day.

use std::sync::atomic::{AtomicUsize, Ordering};

use hybrid_sim::ProductFault;
use jiff::SignedDuration;
use libtest_mimic::Trial;
use ordered_watch as watch;
use winconform::engine::RunOptions;
use winconform_core::record::{Exit, Line, RunView};

use crate::events::killed::same;
use crate::events::outages::is_moment;
use crate::world::{Outcome, World, lines, of_all_or, ran, trial, unbroken_of, verdicts, within};

/// Checks with every kind of stage, of what nodes say of themselves, of jobs by the clock, and of what unfolds over
/// time.
const LOOKED_AT: [&str; 5] = [
    "area=env",
    "area=pod",
    "area=workload",
    "reject.hostPID[workload=pod]",
    "net.after-churn[*source=linux-pod]",
];

/// Which clock jumps. Those of nodes are right or an hour ahead.
#[derive(Clone, Copy)]
enum Jump {
    /// That of the tool, by hours.
    Tool(i64),
    NodesForth,
    NodesBack,
}

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [
        ("of_the_tool_forth", Jump::Tool(1)),
        ("of_the_tool_back", Jump::Tool(-1)),
        ("of_nodes_forth", Jump::NodesForth),
        ("of_nodes_back", Jump::NodesBack),
    ];
    let trials = trials.map(|(name, jump)| {
        trial(
            format!("no_verdict_depends_on_a_clock::{name}"),
            move || jumps(jump),
        )
    });
    trials.into()
}

/// A clock jumps when the run has applied its first fixture, in the midst of it, and before tear-down.
fn jumps(jump: Jump) -> Outcome {
    let selected = of_all_or(&LOOKED_AT);
    let whole = unbroken_of(&selected);
    let last = lines(&whole)?.iter().filter(|line| is_moment(line)).count();
    let whole = whole.view()?;
    for nth in [1, last / 3, last * 2 / 3, last] {
        let view = within(async |world: &World| {
            let before = world.objects();
            let options = RunOptions {
                selection: selected.clone(),
                ..world.settings("r0")
            };
            let (cluster, faults) = (world.cluster(), world.joined.faults().clone());
            let wrong: ProductFault = "clock-wrong".parse().expect("a fault");
            if matches!(jump, Jump::NodesBack) {
                faults.set(wrong.clone());
                world.joined.shown().await;
            }
            let (env, seen) = (cluster.api.env().clone(), AtomicUsize::new(0));
            let listener = Box::new(move |line: &Line| {
                if is_moment(line) && seen.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                    match jump {
                        Jump::Tool(by) => env.set_clock(SignedDuration::from_hours(by)),
                        Jump::NodesForth => faults.set(wrong.clone()),
                        Jump::NodesBack => faults.lift(&wrong),
                    }
                }
            });
            let (_alive, signals) = watch::channel(0);
            let ran = ran(&cluster, &options, signals, listener).await;
            ran.came_to(Exit::Conformant)?;
            world.unchanged(&before)?;
            ran.view()
        });
        let view = view.map_err(|error| format!("at event {nth} of {last}: {error}"))?;
        same(&verdicts(&view), &verdicts(&whole))?;
        let hours = match jump {
            Jump::Tool(by) => by,
            Jump::NodesForth | Jump::NodesBack => 0,
        };
        let longer = (lasted(&view) - lasted(&whole)).as_secs();
        same(&(longer + 1800).div_euclid(3600), &hours)?;
    }
    Ok(())
}

/// How long a run lasted by the clock of its machine, which shows whether that has jumped.
fn lasted(view: &RunView) -> SignedDuration {
    view.last.duration_since(view.began)
}
