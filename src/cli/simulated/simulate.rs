//! `winconform simulate`.

use std::path::Path;

use hybrid_sim::{JoinError, JoinOptions, Joined, Loopback, ProductFault, Traces};
use kube::Client;
use tokio_util::sync::CancellationToken;
use winconform_core::config::Config;
use winconform_core::report::wrap;
use winconform_core::text::{counted, printable};

use super::{described, topology, warnings};
use crate::cli::args::{ClusterArgs, SimulateArgs};
use crate::cli::commands::run::count_signals;
use crate::cli::connect::connected;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cluster::{ConnectError, KubeconfigError, named};

pub(crate) async fn run(args: SimulateArgs, screen: &Screen) -> Result<u8, CliError> {
    if args.list_topologies {
        screen.say(&topology::catalogue(screen.width()));
        return Ok(0);
    }
    let Some(join_to) = args.join.filter(|_| !args.list_faults) else {
        screen.say(&catalogue(screen.width()));
        return Ok(0);
    };
    let topology = topology::load(&args.topology)?;
    let whose = ClusterArgs {
        context: None,
        kubeconfig: Some(join_to.clone()),
    };
    let cluster = connected(&whose, &Config::default(), screen).await;
    let cluster = cluster.map_err(|error| in_terms_of_join(error, &join_to))?;
    warnings::show(*screen);
    let [halt, cut] = on_signals()?;
    let join_options = JoinOptions {
        topology,
        faults: args.faults.into_iter().collect(),
        seed: args.seed,
        speed: args.speed,
        prefix: args.prefix,
        loopback: Loopback::default(),
    };
    let traces = Traces::default();
    let client = named(cluster.api.client().clone(), "hybrid-sim");
    let session = async {
        let joined = Box::pin(stay(client, join_options, &traces, &halt, screen)).await?;
        if let Some(joined) = joined {
            screen.complain("The simulated nodes leave; another Ctrl-C does not wait for that.\n");
            Box::pin(joined.leave()).await.map_err(CliError::Leave)?;
        }
        Ok::<_, CliError>(())
    };
    tokio::select! {
        biased;
        left = Box::pin(session) => left?,
        () = cut.cancelled() => {
            return Err(CliError::Cut(what_is_left(&traces, &join_to)));
        }
    }
    screen.complain("The simulated nodes have left.\n");
    Ok(0)
}

/// Replaces errors whose hints name options that this command does not have.
fn in_terms_of_join(error: CliError, given: &Path) -> CliError {
    let given = printable(&given.display().to_string());
    match error {
        CliError::Connect(ConnectError::Kubeconfig(KubeconfigError::NotFound { .. })) => {
            CliError::Usage(format!(
                "there is no kubeconfig `{given}`\n\
             (give `--join` the one of the control plane that the nodes are to join)"
            ))
        }
        CliError::Connect(ConnectError::Kubeconfig(KubeconfigError::ContextNotNamed {
            known,
            ..
        })) => {
            let known: Vec<_> = known.iter().map(|name| printable(name)).collect();
            CliError::WhichContext(format!(
                "the kubeconfig `{given}` has several contexts: {}\n\
                 (give `--join` one that has no other: kubectl config view --kubeconfig {given} \
                 --context NAME --minify --flatten)",
                known.join(", ")
            ))
        }
        other => other,
    }
}

/// The error about nodes that this command did not wait for.
fn what_is_left(traces: &Traces, kubeconfig: &Path) -> String {
    let objects = traces.objects();
    if objects.is_empty() {
        return "stopped before all had ended; the nodes had left, and the control plane removes what \
                pods they had"
            .to_owned();
    }
    // Our objects and nodes have plain names; a kubeconfig's path may need quotes
    let kubeconfig = kubeconfig.display().to_string().replace('\'', r"'\''");
    format!(
        "stopped before the simulated nodes had left; there may be left: {}\n\
         this removes them, and the control plane then their pods and leases:\n\
         kubectl --kubeconfig '{kubeconfig}' --namespace kube-system delete --ignore-not-found {}",
        objects.join(", "),
        objects.join(" ")
    )
}

/// Listens for signals from now on. The first cancels one token; the second cancels the other, after which the
/// process waits for nothing.
pub(crate) fn on_signals() -> Result<[CancellationToken; 2], CliError> {
    let mut signals = count_signals().map_err(CliError::Signals)?;
    let tokens = [CancellationToken::new(), CancellationToken::new()];
    let inner = tokens.clone();
    tokio::spawn(async move {
        for token in inner {
            // Signals that come together count as one
            if signals.changed().await.is_err() {
                return;
            }
            token.cancel();
        }
    });
    Ok(tokens)
}

/// Joins the nodes and waits for the signal. Returns the nodes, or `None` if the signal came before all had
/// joined, and they have left again.
async fn stay(
    client: Client,
    options: JoinOptions,
    traces: &Traces,
    halt: &CancellationToken,
    screen: &Screen,
) -> Result<Option<Joined>, CliError> {
    let joined = match Joined::unless(halt, traces, client, options).await {
        Ok(joined) => joined,
        Err(error @ JoinError::Interrupted) => {
            screen.complain(&format!("{error}\n"));
            return Ok(None);
        }
        Err(error) => return Err(CliError::Join(error)),
    };
    screen.say(&format!(
        "joined {}: {}\n\
         an outside client reaches nodes and load balancers by http_proxy={}\n",
        counted(joined.nodes().len(), "simulated node"),
        joined.nodes().join(", "),
        joined.proxy_url()
    ));
    // `reached` queries a pod, which disappears with its node
    if let Some(Err(unreached)) = halt.run_until_cancelled(Box::pin(joined.reached())).await {
        screen.complain(&format!("warning: {}\n", printable(&unreached.to_string())));
    }
    screen.complain("Ctrl-C removes them.\n");
    halt.cancelled().await;
    Ok(Some(joined))
}

/// Every fault with its parameter and what it does, for a terminal of `width` columns.
pub(crate) fn catalogue(width: usize) -> String {
    let mut lines = wrap(
        "faults (`there` and `its` mean PLACE; without PLACE a fault applies wherever it can):",
        width,
    );
    for fault in ProductFault::catalogue() {
        let full = format!("  {}{}", fault.name, fault.parameter.written());
        lines.extend(described(&full, 45, &fault.what, width));
    }
    for note in [
        "PLACE is all, windows, linux, windows-2019, windows-2022, windows-2025 or node/NAME.",
        "A fault begins and ends at moments of simulated time after the nodes have joined: FAULT@30s, \
         FAULT@30s..2m, FAULT@..2m; with `simulate --speed 20`, 2m is six seconds.",
    ] {
        let note = wrap(note, width - 2);
        lines.extend(note.iter().map(|line| format!("  {line}")));
    }
    lines.join("\n") + "\n"
}
