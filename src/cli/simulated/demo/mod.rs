//! `winconform demo`: a whole run in memory, in simulated time.

mod given;
mod kubeconfig;
mod serve;

use std::io;
use std::time::{Duration, Instant as WallInstant};

use hybrid_sim::server::{Server, ServerOptions};
use hybrid_sim::{JoinOptions, Loopback, TimedFault};
use jiff::Timestamp;
use ordered_watch as watch;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use winconform_core::config::Target;
use winconform_core::record::{Exit, SIMULATED};
use winconform_core::suite::Suites;
use winconform_core::text::{counted, printable};

use crate::cli::args::{DemoArgs, Pace};
use crate::cli::commands::diff::baseline;
use crate::cli::commands::run::{begun, count_signals, reported};
use crate::cli::error::CliError;
use crate::cli::out;
use crate::cli::screen::Screen;
use crate::cli::settings::Settings;
use crate::cli::simulated::{simulate, topology};
use crate::cluster::{Cluster, LEASE_NAME};
use crate::engine::{Keep, Repeat, RunOptions, run as run_checks};
use crate::transport::{Env, dial, simulated_runtime};
use given::Given;

/// The time of day at which every demo begins.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// How long the cluster's own pods may take to run, since a fault may prevent it.
const SETTLING: Duration = Duration::from_mins(1);

/// Builds the runtime of a run in memory. All tasks run on one thread, whose clock advances when all of them
/// wait, unless the pace is that of real time.
pub(crate) fn runtime(pace: Pace) -> io::Result<Runtime> {
    match pace {
        Pace::Real => Builder::new_current_thread().enable_all().build(),
        Pace::Fast => simulated_runtime().enable_io().build(),
    }
}

pub(crate) async fn run(mut args: DemoArgs, screen: &Screen) -> Result<u8, CliError> {
    if args.list_faults {
        screen.say(&simulate::catalogue(screen.width()));
        return Ok(0);
    }
    if args.list_topologies {
        screen.say(&topology::catalogue(screen.width()));
        return Ok(0);
    }
    let given = given::read(&args)?;
    if let Some(port) = args.serve {
        return Box::pin(serve::run(port, args.kubeconfig, given, screen)).await;
    }
    let ci = args.shown.ci.system();
    args.shown.ci = ci;
    args.out = args.out.or_else(|| ci.folder());
    Box::pin(in_memory(&args, given, screen)).await
}

/// The context that every report names, with the faults.
fn context(args: &DemoArgs) -> String {
    match args.faults.as_slice() {
        [] => SIMULATED.to_owned(),
        faults => format!("{SIMULATED}; broken in it: {}", faults.join(", ")),
    }
}

async fn in_memory(args: &DemoArgs, given: Given, screen: &Screen) -> Result<u8, CliError> {
    let (begun, from) = (WallInstant::now(), Instant::now());
    let Given {
        topology,
        faults,
        server: kind,
        suites,
        settings,
    } = given;
    let loopback = Loopback::in_memory(EPOCH);
    let kind = ServerOptions {
        loopback: loopback.clone(),
        ..kind
    };
    let net = loopback.clone();
    let env = Env::simulated(EPOCH, kind.seed, dial(move |address| net.connect(address)));
    let server = Server::start(&kind).map_err(|error| CliError::Usage(error.to_string()))?;
    let load_balancers = topology.load_balancer;
    let planned = faults.clone();
    let nodes = JoinOptions {
        topology,
        faults,
        seed: kind.seed,
        speed: 1.0,
        prefix: String::new(),
        loopback,
    };
    let mut signals = count_signals().map_err(CliError::Signals)?;
    let join = async {
        let joined = hybrid_sim::join(server.client(), nodes).await;
        server.settled(SETTLING).await;
        joined
    };
    let joined = tokio::select! {
        biased;
        _ = signals.changed() => {
            screen.complain("Interrupted before the simulated cluster was there: nothing was checked.\n");
            return Ok(Exit::Interrupted.code());
        }
        joined = join => joined.map_err(CliError::Join)?,
    };
    server.suffer(joined.faults());
    let Settings {
        mut config,
        selection,
    } = settings;
    // What is around the simulated nodes, whatever a file says of real ones
    config.outside.reaches_nodes = true;
    config.outside.proxy = Target::parse(&joined.proxy_url());
    config.outside.load_balancers |= load_balancers;
    let (durations, limits) = (config.durations.clone(), config.limits.clone());
    let cluster = Cluster::behind(env, server.client(), &context(args), durations, limits);
    let options = RunOptions {
        run: "rdemo".to_owned(),
        lease: LEASE_NAME.to_owned(),
        holder: "demo".to_owned(),
        config,
        selection,
        deadline: None,
        repeat: Repeat::Times(args.repeat),
        resume: None,
        keep: Keep::Never,
    };
    let run = checked(args, &suites, &cluster, &options, (screen, signals));
    let code = Box::pin(run).await?;
    let took = from.elapsed();
    // What is broken from the start is broken in a run of no time, too
    let is_late = |fault: &&TimedFault| !fault.from.is_zero() && fault.from >= took;
    let (late, met): (Vec<_>, Vec<_>) = planned.iter().partition(is_late);
    for late in late {
        screen.complain(&format!(
            "Nothing was broken by {late}: the run had ended by then.\n"
        ));
    }
    if code == 0 && !met.is_empty() {
        let faults: Vec<_> = met.iter().map(ToString::to_string).collect();
        screen.complain(&format!(
            "Nothing counts against the cluster for what was broken ({}).\n",
            printable(&faults.join(", "))
        ));
    }
    let time = match took.as_secs() {
        seconds @ 0..60 => (seconds.max(1), "second"),
        seconds => (seconds.div_ceil(60), "minute"),
    };
    screen.complain(&format!(
        "Simulated: a control plane of Kubernetes {}, {} and {}, in {:.1} s. Nothing of it was real.\n",
        kind.version,
        counted(joined.nodes().len(), "node"),
        counted(usize::try_from(time.0).unwrap_or(usize::MAX), time.1),
        begun.elapsed().as_secs_f64()
    ));
    Ok(code)
}

async fn checked(
    args: &DemoArgs,
    suites: &Suites,
    cluster: &Cluster,
    options: &RunOptions,
    (screen, signals): (&Screen, watch::Receiver<u32>),
) -> Result<u8, CliError> {
    let (shown, out) = (&args.shown, args.out.as_deref());
    let baseline = baseline(shown)?;
    let record = out.map(out::prepare).transpose()?;
    let (progress, journal) = begun(cluster, out, record.as_deref(), shown.detail(), *screen)?;
    let finished = Box::pin(run_checks(cluster, suites, options, &journal, signals)).await;
    drop(progress);
    reported(&journal, finished, out, (shown, baseline), screen).map(|end| end.exit.code())
}
