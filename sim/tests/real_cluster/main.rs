//! The simulator beside a real control plane: its nodes joined to one, its API server beside one, its Linux node
//! beside a real one. Each says that it was not run where it is given none.

mod differential;
mod joined;
mod real_node;
mod seen;

use std::io::Write;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::RwLock;

const VARIABLE: &str = "WINCONFORM_TEST_KUBECONFIG";

/// The control plane is read where nodes of several tests may be there, and written where no others may.
static PLANE: RwLock<()> = RwLock::const_new(());

/// The kubeconfig of a control plane and a client of it, or word that a test was not run.
async fn control_plane(test: &str) -> Option<(String, Client)> {
    let Ok(kubeconfig) = std::env::var(VARIABLE) else {
        say(&format!("not run: {test}: {VARIABLE} is not set"));
        return None;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read = Kubeconfig::read_from(&kubeconfig).expect("the kubeconfig can be read");
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("the kubeconfig is whole")).expect("a client");
    Some((kubeconfig, client))
}

/// Past the test runner, which keeps to itself what a test that passes prints.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("stderr is open");
}
