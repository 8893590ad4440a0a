//! `winconform simulate`.

use hybrid_sim::front::{Front, FrontFault, FrontOptions};
use hybrid_sim::{JoinOptions, ProductFault, TimedFault, join};
use tokio::signal::unix::{SignalKind, signal};
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
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(CliError::Signals)?;
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
            Some(front)
        }
    };
    let joined = join(
        cluster.api.client().clone(),
        JoinOptions {
            topology,
            faults: product.into_iter().collect(),
            seed: args.seed,
            speed: args.speed,
            prefix: args.prefix,
        },
    )
    .await
    .map_err(CliError::Join)?;
    screen.say(&format!(
        "joined {} simulated nodes: {}\n",
        joined.nodes().len(),
        joined.nodes().join(", ")
    ));
    if let Err(unreached) = joined.reached().await {
        screen.complain(&format!("warning: {}\n", printable(&unreached.to_string())));
    }
    screen.complain("Ctrl-C removes them.\n");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    if let Some(front) = front {
        front.stop().await;
    }
    if let Some(path) = &args.front {
        let _ = std::fs::remove_file(path);
    }
    joined.leave().await.map_err(CliError::Leave)?;
    screen.complain("The simulated nodes have left.\n");
    Ok(0)
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
         A fault begins and ends at moments after the start: FAULT@30s, FAULT@30s..2m, FAULT@..2m.\n",
    );
    text.push_str("of the front (--front FILE):\n");
    for fault in FrontFault::catalogue() {
        let full = format!("{}{}", fault.name, fault.parameter);
        text.push_str(&format!("  {full:<34} {}\n", fault.does));
    }
    text
}
