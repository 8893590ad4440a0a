//! `winconform simulate`.

use hybrid_sim::front::{Front, FrontFault, FrontOptions};
use hybrid_sim::{JoinError, JoinOptions, Joined, ProductFault, TimedFault};
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use winconform_core::config::Config;
use winconform_core::text::printable;

use super::args::{Fault, SimulateArgs};
use super::connect::connected;
use super::error::CliError;
use super::screen::Screen;
use super::topology;
use crate::cluster::{ConnectOptions, kube_config};

pub(super) async fn run(args: SimulateArgs, screen: &Screen) -> Result<u8, CliError> {
    if args.list_topologies {
        screen.say(&topology::catalogue());
        return Ok(0);
    }
    let Some(join_to) = args.join.filter(|_| !args.list_faults) else {
        screen.say(&catalogue());
        return Ok(0);
    };
    let topology = topology::load(&args.topology)?;
    let mut product: Vec<TimedFault> = Vec::new();
    let mut before: Vec<FrontFault> = Vec::new();
    for fault in args.faults {
        match fault {
            Fault::Product(fault) => product.push(fault),
            Fault::Front(fault) => before.push(fault),
        }
    }
    if let (Some(fault), None) = (before.first(), &args.front) {
        return Err(CliError::Usage(format!(
            "fault `{fault}` lies between harness and API server: give `--front FILE`, and run \
             the harness with the kubeconfig written there"
        )));
    }
    let options = ConnectOptions {
        context: None,
        kubeconfig: Some(join_to),
    };
    let cluster = connected(&options, &Config::default()).await?;
    let halt = on_signal()?;
    let front = match &args.front {
        None => None,
        Some(path) => {
            let config = kube_config(&options).await.map_err(CliError::Connect)?;
            let front_options = FrontOptions {
                faults: before,
                seed: args.seed,
            };
            let front = Front::start(config, front_options)
                .await
                .map_err(CliError::Front)?;
            std::fs::write(path, front.kubeconfig()).map_err(|source| CliError::Write {
                path: path.clone(),
                source,
            })?;
            Some((front, path))
        }
    };
    let join_options = JoinOptions {
        topology,
        faults: product.into_iter().collect(),
        seed: args.seed,
        speed: args.speed,
        prefix: args.prefix,
    };
    let joined = Box::pin(stay(
        cluster.api.client().clone(),
        join_options,
        &halt,
        screen,
    ))
    .await;
    if let Some((front, path)) = front {
        // Before the nodes leave: nobody is to be led to a cluster without them
        let _ = std::fs::remove_file(path);
        front.stop().await;
    }
    if let Some(joined) = joined? {
        Box::pin(joined.leave()).await.map_err(CliError::Leave)?;
    }
    screen.complain("The simulated nodes have left.\n");
    Ok(0)
}

/// Cancelled by the first signal that asks to end.
fn on_signal() -> Result<CancellationToken, CliError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(CliError::Signals)?;
    let halt = CancellationToken::new();
    let halted = halt.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        halted.cancel();
    });
    Ok(halt)
}

/// Joins the nodes and stays until the signal; gives the nodes, unless they have left again since it
/// came before all had joined.
async fn stay(
    client: Client,
    options: JoinOptions,
    halt: &CancellationToken,
    screen: &Screen,
) -> Result<Option<Joined>, CliError> {
    let joined = match Joined::unless(halt, client, options).await {
        Ok(joined) => joined,
        Err(error @ JoinError::Interrupted) => {
            screen.complain(&format!("{error}\n"));
            return Ok(None);
        }
        Err(error) => return Err(CliError::Join(error)),
    };
    screen.say(&format!(
        "joined {} simulated nodes: {}\n\
         an outside client reaches nodes and load balancers by http_proxy={}\n",
        joined.nodes().len(),
        joined.nodes().join(", "),
        joined.proxy_url()
    ));
    // The pod that is asked goes with its node
    if let Some(Err(unreached)) = halt.run_until_cancelled(Box::pin(joined.reached())).await {
        screen.complain(&format!("warning: {}\n", printable(&unreached.to_string())));
    }
    screen.complain("Ctrl-C removes them.\n");
    halt.cancelled().await;
    Ok(Some(joined))
}

/// Every fault with its parameter and what it does.
fn catalogue() -> String {
    let mut text = String::from("of the nodes:\n");
    for fault in ProductFault::catalogue() {
        let full = format!("{}{}", fault.name, fault.parameter.written());
        text.push_str(&format!("  {full:<42} {}\n", fault.what));
    }
    text.push_str(
        "  PLACE is all, windows, linux, windows-2019, windows-2022, windows-2025 or node/NAME.\n  \
         A fault begins and ends at moments of simulated time after the nodes have joined: FAULT@30s,\n  \
         FAULT@30s..2m, FAULT@..2m; with --speed 20, 2m is six seconds.\n",
    );
    text.push_str("of the front (--front FILE):\n");
    for fault in FrontFault::catalogue() {
        let full = format!("{}{}", fault.name, fault.parameter);
        text.push_str(&format!("  {full:<34} {}\n", fault.does));
    }
    text
}
