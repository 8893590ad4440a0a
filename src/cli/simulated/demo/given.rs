//! Reads the arguments of a demo, and reports all their problems together before anything begins.

use hybrid_sim::server::{Server, ServerOptions};
use hybrid_sim::{FaultPlan, TimedFault, Topology, UnknownFault};
use winconform_core::document::{Diagnostic, Place, did_you_mean};
use winconform_core::suite::Suites;

use crate::cli::args::DemoArgs;
use crate::cli::error::CliError;
use crate::cli::settings::{self, Settings};
use crate::cli::simulated::topology;

/// The valid arguments of a demo.
pub(crate) struct Given {
    pub(crate) topology: Topology,
    pub(crate) faults: FaultPlan,
    pub(crate) server: ServerOptions,
    pub(crate) suites: Suites,
    pub(crate) settings: Settings,
}

pub(crate) fn read(args: &DemoArgs) -> Result<Given, CliError> {
    let mut problems = Vec::new();
    let (suites, settings) = settings::collect(&args.checks, &mut problems)?;
    let before = problems.len();
    let mut topology = topology::look(&args.topology, &mut problems)?;
    let valid = problems.len() == before;
    let server = server(args, &topology, &mut problems);
    if let Some(count) = args.nodes
        && valid
    {
        topology = sized(&topology, count, args, &mut problems);
    }
    let on = valid.then_some(&topology);
    let faults = faults(&args.faults, on, &mut problems);
    settings::check(problems)?;
    Ok(Given {
        topology,
        faults,
        server,
        suites,
        settings,
    })
}

/// The seed. Served clusters get different ones, so that a resumed run can recognise its own cluster.
fn seed(args: &DemoArgs) -> u64 {
    match (args.seed, args.serve) {
        (Some(seed), _) => seed,
        (None, Some(_)) => rand::random(),
        (None, None) => 1,
    }
}

fn server(args: &DemoArgs, topology: &Topology, problems: &mut Vec<Diagnostic>) -> ServerOptions {
    let mut options = ServerOptions {
        seed: seed(args),
        ..ServerOptions::of(topology)
    };
    let by = match &args.kubernetes_version {
        Some(version) => {
            options.version.clone_from(version);
            "--kubernetes-version"
        }
        None => "--topology",
    };
    let version = &options.version;
    let known: Vec<_> = Server::versions().collect();
    if !known.contains(&version.as_str()) {
        let message = format!("no answers are recorded of Kubernetes `{version}`");
        let is_begun = known.iter().any(|known| known.starts_with(version));
        let hint = match is_begun {
            true => did_you_mean(version, &known),
            false => format!("known are: {}", known.join(", ")),
        };
        problems.push(Place::argument(by).problem(message, Some(hint)));
    }
    options
}

/// The topology with `count` nodes.
fn sized(
    topology: &Topology,
    count: usize,
    args: &DemoArgs,
    problems: &mut Vec<Diagnostic>,
) -> Topology {
    let pools = topology.pools();
    let most = match args.serve {
        Some(_) => Topology::MOST_NODES,
        None => Topology::MOST_IN_MEMORY,
    };
    let mut problem = |message: String, hint: String| {
        problems.push(Place::argument("--nodes").problem(message, Some(hint)));
    };
    if count < pools.len() {
        let names: Vec<_> = pools.iter().map(ToString::to_string).collect();
        let (given, least) = (&args.topology, pools.len());
        problem(
            format!(
                "{count} cannot be spread over the pools of `{given}`: {}",
                names.join(", ")
            ),
            format!(
                "give at least {least}, or a --topology of fewer pools, such as single-windows"
            ),
        );
    } else if count > most {
        let hint = match args.serve {
            Some(_) => "each takes a socket; without --serve there can be more",
            None => "each takes 256 of the addresses that there are for pods",
        };
        problem(
            format!("{count} are more than the {most} that there can be"),
            hint.to_owned(),
        );
    } else {
        return topology.of_nodes(count);
    }
    topology.clone()
}

/// The faults; `on` is the topology to check them against, if it is valid.
fn faults(given: &[String], on: Option<&Topology>, problems: &mut Vec<Diagnostic>) -> FaultPlan {
    let at = Place::argument("--fault");
    let mut faults = Vec::new();
    for text in given {
        match text.parse::<TimedFault>() {
            Ok(fault) => faults.push(fault),
            Err(error) => {
                let (message, hint) = unknown(text, &error);
                problems.push(at.problem(message, hint));
            }
        }
    }
    let plan: FaultPlan = faults.into_iter().collect();
    if let Some(topology) = on {
        let misfits = plan.misfits(topology, "").into_iter();
        problems.extend(misfits.map(|misfit| at.problem(misfit.to_string(), None)));
    }
    plan
}

/// What is wrong with the text of a fault, and a hint.
fn unknown(text: &str, error: &UnknownFault) -> (String, Option<String>) {
    match error {
        UnknownFault::Name(..) => {
            let hint = "`winconform demo --list-faults` has all, and how each is written";
            (error.to_string(), Some(hint.to_owned()))
        }
        UnknownFault::Part(_) => (format!("in `{text}`, {error}"), None),
        UnknownFault::Parameter(_) => (error.to_string(), None),
    }
}
