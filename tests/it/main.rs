//! What needs no simulated time, a file for each thing that is asked: the binary with bad input and as a demo, rules
//! of the sources, manifests and roles, recorded answers. `cluster` and one test of `manifests` need a control
//! plane, and say that they were not run without it.

mod bad_input;
mod cluster;
mod demo;
mod direction;
mod manifests;
mod pinned;
mod rbac;
mod recordings;
#[path = "../shared/suites.rs"]
mod suites;

/// The kubeconfig of a control plane, or word that a test was not run.
fn control_plane(test: &str) -> Option<std::path::PathBuf> {
    let given = std::env::var_os("WINCONFORM_TEST_KUBECONFIG");
    if given.is_none() {
        not_run(test, "WINCONFORM_TEST_KUBECONFIG is not set");
    }
    given.map(Into::into)
}

fn not_run(test: &str, why: &str) {
    // Past the test harness, which shows nothing of a test that passes
    let told = format!("not run: {test}: {why}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes());
}
