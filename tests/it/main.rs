//! Tests that need no simulated time, one file for each subject: the binary with bad input and as a demo,
//! rules of the sources, manifests and roles, recorded answers. `cluster` and one test of `manifests` need a
//! control plane, one of `real_node` a real node; without one they print that they did not run.

mod bad_input;
mod cluster;
mod demo;
mod links;
mod manifests;
mod pinned;
mod rbac;
mod real_node;
mod recordings;
mod sources;
#[path = "../shared/suites.rs"]
mod suites;
mod told;

/// The kubeconfig of a control plane; without one, prints that a test did not run.
fn control_plane(test: &str) -> Option<std::path::PathBuf> {
    let given = std::env::var_os("WINCONFORM_TEST_KUBECONFIG");
    if given.is_none() {
        not_run(test, "WINCONFORM_TEST_KUBECONFIG is not set");
    }
    given.map(Into::into)
}

fn not_run(test: &str, why: &str) {
    // Bypasses the test harness, which hides the output of a passing test
    let line = format!("not run: {test}: {why}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
}
