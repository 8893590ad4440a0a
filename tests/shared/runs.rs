//! Options of the whole runs that trials start.

use winconform::engine::{Keep, Repeat, RunOptions};
use winconform_core::config::{Config, Outside, Target};
use winconform_core::plan::Selection;

/// Options of one repetition of all checks, with a Lease that no other run uses.
pub(crate) fn apart(run: &str, outside: Outside) -> RunOptions {
    RunOptions {
        run: run.to_owned(),
        lease: format!("winconform-{run}"),
        holder: run.to_owned(),
        config: Config {
            outside,
            ..Config::default()
        },
        selection: Selection::default(),
        deadline: None,
        repeat: Repeat::Times(1),
        resume: None,
        keep: Keep::Never,
    }
}

/// Settings to observe from outside, through a proxy that reaches the nodes.
pub(crate) fn through(proxy: &str) -> Outside {
    Outside {
        reaches_nodes: true,
        proxy: Target::parse(proxy),
        ..Outside::default()
    }
}
