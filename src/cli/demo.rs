//! `winconform demo`: a whole run in memory, in a time that passes by itself.

use std::io;
use std::rc::Rc;
use std::time::Instant as WallInstant;

use hybrid_sim::server::{Server, ServerOptions};
use hybrid_sim::{InMemory, JoinOptions, Joined};
use jiff::Timestamp;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::Instant;
use winconform_core::config::{Config, Outside, Target};
use winconform_core::plan::Selection;

use super::args::DemoArgs;
use super::error::CliError;
use super::progress::Progress;
use super::run::{created, reported};
use super::screen::Screen;
use super::{out, simulate, suites, topology};
use crate::cluster::Cluster;
use crate::engine::{Keep, Repeat, RunOptions, run as run_checks};
use crate::transport::{Dial, MadeUp, Stream};

/// When it always is.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// What every report names as the context.
const CONTEXT: &str = "a simulation, no cluster";

/// Has all tasks on one thread, whose clock goes on when none of them has anything to do.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
}

pub(super) async fn run(args: DemoArgs, screen: &Screen) -> Result<u8, CliError> {
    if args.list_faults {
        screen.say(&simulate::catalogue_of_nodes());
        return Ok(0);
    }
    let (begun, from) = (WallInstant::now(), Instant::now());
    let topology = topology::load(&args.topology)?;
    let _memory = InMemory::begin(EPOCH);
    let _made_up = MadeUp::begin(EPOCH, args.seed, dial());
    let options = ServerOptions {
        seed: args.seed,
        ..ServerOptions::default()
    };
    let options = match &args.kubernetes_version {
        Some(version) => ServerOptions {
            version: version.clone(),
            ..options
        },
        None => options,
    };
    let server = Server::start(&options).map_err(|error| CliError::Usage(error.to_string()))?;
    let nodes = JoinOptions {
        topology,
        faults: args.faults.iter().cloned().collect(),
        seed: args.seed,
        speed: 1.0,
        prefix: String::new(),
    };
    let joined = hybrid_sim::join(server.client(), nodes).await;
    let joined = joined.map_err(CliError::Join)?;
    let code = Box::pin(checked(&args, screen, &server, &joined)).await?;
    screen.complain(&format!(
        "Simulated: a control plane of Kubernetes {}, {} nodes and {} minutes, in {:.1} s. Nothing \
         of it was real.\n",
        options.version,
        joined.nodes().len(),
        from.elapsed().as_secs().div_ceil(60),
        begun.elapsed().as_secs_f64()
    ));
    Ok(code)
}

async fn checked(
    args: &DemoArgs,
    screen: &Screen,
    server: &Server,
    joined: &Joined,
) -> Result<u8, CliError> {
    let config = Config {
        outside: Outside {
            reaches_nodes: true,
            proxy: Target::parse(&joined.proxy_url()),
            ..Outside::default()
        },
        ..Config::default()
    };
    let (durations, limits) = (config.durations.clone(), config.limits.clone());
    let cluster = Cluster::behind(server.client(), CONTEXT, durations, limits);
    let options = RunOptions {
        run: "rdemo".to_owned(),
        lease: "winconform".to_owned(),
        holder: "demo".to_owned(),
        config,
        selection: Selection::default(),
        deadline: None,
        repeat: Repeat::Times(1),
        resume: None,
        keep: Keep::Never,
    };
    let suites = suites::load(None)?;
    let record = args.out.as_deref().map(out::prepare).transpose()?;
    let progress = Progress::start(*screen);
    let journal = created(args.out.as_deref(), record.as_deref(), &progress)?;
    // Whoever ends it ends the process, and with it all there is
    let (_alive, signals) = watch::channel(0);
    let finished = Box::pin(run_checks(&cluster, &suites, &options, &journal, signals)).await;
    progress.end();
    reported(&journal, finished, args.out.as_deref(), args.format, screen)
        .map(|end| end.exit.code())
}

/// Connections of looks from outside, which lead into the simulation.
fn dial() -> Rc<Dial> {
    Rc::new(|host, port| {
        let address = format!("{host}:{port}").parse();
        Box::pin(async move {
            let stream = hybrid_sim::connect(address.map_err(io::Error::other)?).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    })
}
