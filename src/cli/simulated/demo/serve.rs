//! `winconform demo --serve`: the simulated cluster opened to kubectl, in real time.

use std::path::{Path, PathBuf};

use hybrid_sim::server::{Server, ServerError};
use hybrid_sim::{JoinError, JoinOptions, Joined, Loopback, Traces};
use winconform_core::text::counted;

use super::SETTLING;
use super::given::Given;
use super::kubeconfig::Kubeconfig;
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::shell::quoted;
use crate::cli::simulated::simulate::on_signals;
use crate::cli::simulated::warnings;

/// Serves until a signal comes; a second one ends it without waiting.
pub(crate) async fn run(
    port: u16,
    kubeconfig: Option<PathBuf>,
    given: Given,
    screen: &Screen,
) -> Result<u8, CliError> {
    warnings::show(*screen);
    let [halt, cut] = on_signals()?;
    let version = given.server.version.clone();
    let server =
        Server::start(&given.server).map_err(|error| CliError::Usage(error.to_string()))?;
    let address = server.listen(port).await.map_err(not_there)?;
    let file = Kubeconfig::reserve(kubeconfig)?;
    let nodes = JoinOptions {
        topology: given.topology,
        faults: given.faults,
        seed: given.server.seed,
        speed: 1.0,
        prefix: String::new(),
        loopback: Loopback::default(),
    };
    let traces = Traces::default();
    let joining = Box::pin(Joined::unless(&halt, &traces, server.client(), nodes));
    let joined = match joining.await {
        Ok(joined) => Some(joined),
        Err(JoinError::Interrupted | JoinError::Abandoned(_)) => None,
        Err(error) => return Err(CliError::Join(error)),
    };
    if let Some(joined) = &joined {
        server.suffer(joined.faults());
        halt.run_until_cancelled(server.settled(SETTLING)).await;
        let filled = file.fill(&server.kubeconfig(address))?;
        screen.say(&describe(&filled.path, &version, joined));
        screen.complain("Ctrl-C ends it.\n");
        halt.cancelled().await;
        // Remove the file first, so that no client connects to a cluster that ends
        drop(filled);
    }
    drop(joined);
    let stopped = cut.run_until_cancelled(server.stop()).await;
    if stopped.is_some() {
        screen.complain("The simulated cluster is gone.\n");
    }
    Ok(0)
}

fn not_there(error: ServerError) -> CliError {
    match error {
        ServerError::Listen(address, source) => CliError::Usage(format!(
            "cannot listen at {address}: {source}\n\
             (give `--serve` another port, or none: then it takes one that is free)"
        )),
        other => CliError::Usage(other.to_string()),
    }
}

fn describe(kubeconfig: &Path, version: &str, joined: &Joined) -> String {
    let path = quoted(&kubeconfig.display().to_string());
    format!(
        "a simulated cluster of Kubernetes {version} with {}; this leads to it:\n  \
         kubectl --kubeconfig {path} get nodes -o wide\n  \
         winconform run --kubeconfig {path}\n\
         an outside client reaches nodes and load balancers by http_proxy={}\n",
        counted(joined.nodes().len(), "node"),
        joined.proxy_url()
    )
}
