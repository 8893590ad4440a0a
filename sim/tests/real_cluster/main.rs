//! Compares the simulator with real ones: its nodes join a real control plane, its API server runs beside a
//! real one, its Linux node beside a real node. Each test without a real one reports that it was not run.

mod differential;
mod joined;
mod real_node;
mod seen;

use std::io::Write;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::RwLock;

const VARIABLE: &str = "WINCONFORM_TEST_KUBECONFIG";

/// A test that shares the control plane takes this for reading; one that needs it alone, for writing.
static PLANE: RwLock<()> = RwLock::const_new(());

/// The kubeconfig and a client of the control plane; without one, reports that a test was not run.
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

/// Prints past the test harness, which captures what passing tests print.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("stderr is open");
}
