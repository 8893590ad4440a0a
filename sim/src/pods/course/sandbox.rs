//! A pod's sandbox, and the address that comes with it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Api;

use super::run::PodRun;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::pods::container::start_time;
use crate::pods::reporting::events;
use crate::pods::spec::resources;
use crate::topology::{NodeSpec, Os};
use crate::world;

/// The pause between two attempts (kubelet, `backOffPeriod`).
const AGAIN: Duration = Duration::from_secs(10);

/// How long DNS in a new Windows pod lags behind its start on a healthy cluster. AKS issues 2161
/// and 2213 report 1 s to over a minute.
const LAG: Duration = Duration::from_secs(3);

/// Why a plugin gives a pod no network: `host-local`, and that of Azure (azure-container-networking issue 774).
const EXHAUSTED: &str = "failed to allocate for range 0: no IP addresses available in range set";
const LOCKED: &str =
    "Failed to initialize key-value store of network plugin, err:timed out locking store";

/// How many sandboxes a node sets up at once under the fault `crowd-fails`.
const CROWD: usize = 5;

/// How long it lags under the fault `dns-late`.
const LATE: Duration = Duration::from_mins(1);

/// Gives the pod a sandbox and an address; retries until it has both.
pub(crate) async fn make(cluster: &Arc<Cluster>, run: &Arc<PodRun>, boots: u32) {
    let makes = Arc::clone(&run.node.makes_sandbox);
    // The node holds it, too
    let is_crowd = Arc::strong_count(&makes) > CROWD + 1 && !run.host_network();
    let _makes = (!is_crowd).then_some(makes);
    loop {
        cluster.clock.pass(start_time(run.node.pool.os())).await;
        let exhausted = boots > 0 && run.suffers(FaultKind::BootBreaksSandboxes, cluster)
            || run.suffers(FaultKind::SandboxFails, cluster);
        let locked = is_crowd && run.suffers(FaultKind::CrowdFails, cluster);
        let fails = exhausted.then_some(EXHAUSTED).or(locked.then_some(LOCKED));
        let made = handler(cluster, run).await.and_then(|handler| {
            refusal(cluster, run, (boots, fails), &handler).map_or(Ok(()), Err)?;
            address(cluster, run, &handler)
        });
        let Err(why) = made else { return };
        let text = describe(&why);
        events::warning(cluster, run, "FailedCreatePodSandBox", text);
        cluster.clock.pass(AGAIN).await;
    }
}

/// Removes the sandbox: frees its address and closes its ports.
pub(crate) fn remove(cluster: &Cluster, run: &PodRun) {
    cluster.change(|world| {
        if world.pods.own_mut(&run.key, &run.uid).is_some() {
            world.pods.remove(&run.key);
        }
    });
    let address = run.book().address.take();
    if let Some(address) = address.filter(|_| !run.host_network()) {
        run.node.release_address(address);
    }
    run.node.disks.forget(&run.uid);
    run.book().sandbox = false;
}

/// The message of the event `FailedCreatePodSandBox`.
pub(crate) fn describe(why: &str) -> String {
    format!("Failed to create pod sandbox: {why}")
}

fn unknown(text: &str) -> String {
    format!("rpc error: code = Unknown desc = {text}")
}

/// The error for a handler that the runtime does not have (gpu-operator issue 730).
pub(crate) fn unconfigured(handler: &str) -> String {
    unknown(&format!(
        "failed to get sandbox runtime: no runtime for \"{handler}\" is configured"
    ))
}

/// The error for a Windows pod for which EKS's webhook requested no address (kubernetes issue
/// 78429): containerd's message, from Karpenter's page on troubleshooting.
pub(crate) fn unlabelled(id: &str) -> String {
    unknown(&format!(
        "failed to setup network for sandbox \"{id}\": plugin type=\"vpc-bridge\" name=\"vpc\" failed \
         (add): failed to parse Kubernetes args: pod does not have label \
         vpc.amazonaws.com/PrivateIPv4Address"
    ))
}

/// Whether the pod requests an address, if its node counts them: then nothing else gives it one.
fn has_address(run: &PodRun) -> bool {
    const ADDRESS: &str = "vpc.amazonaws.com/PrivateIPv4Address";
    let spec = run.pod.spec.as_ref();
    let requested = spec.map_or(0, |spec| resources::requested(spec, ADDRESS));
    requested > 0 || !run.node.spec.resources.contains_key(ADDRESS)
}

/// Returns containerd's error if it does not create the sandbox, whose network `fails`.
fn refusal(
    cluster: &Cluster,
    run: &PodRun,
    (boots, fails): (u32, Option<&str>),
    handler: &str,
) -> Option<String> {
    let unknown = |text: String| Some(unknown(&text));
    let forgotten = run.suffers(FaultKind::HandlerUnknown, cluster);
    if !handler.is_empty() && (forgotten || !is_configured(&run.node.spec, handler)) {
        return Some(unconfigured(handler));
    }
    let id = cluster
        .chance
        .hex(&format!("sandbox {} {boots}", run.uid), 64);
    let task = format!("failed to start sandbox \"{id}\": failed to create containerd task");
    if run.suffers(FaultKind::PauseImageWrong, cluster) {
        // containerd issue 7856, kubernetes issue 99157
        return unknown(format!(
            "{task}: failed to create shim task: hcs::CreateComputeSystem {id}: The container \
             operating system does not match the host operating system.: unknown"
        ));
    }
    if run.node.pool.os() == Os::Windows && !run.host_network() && !has_address(run) {
        return Some(unlabelled(&id));
    }
    if let Some(why) = fails {
        let plugin = match run.node.pool.os() {
            Os::Linux => "bridge",
            Os::Windows => "win-bridge",
        };
        return unknown(format!(
            "failed to setup network for sandbox \"{id}\": plugin type=\"{plugin}\" failed (add): {why}"
        ));
    }
    let spec = run.pod.spec.as_ref()?;
    let host_process = spec
        .containers
        .iter()
        .any(|container| run.host_process(Some(container)));
    if host_process && run.suffers(FaultKind::HostProcessRefused, cluster) {
        // The simulator's own message: those of old runtimes differ between releases
        return unknown(format!(
            "{task}: hybrid-sim: the runtime does not support HostProcess containers"
        ));
    }
    let context = spec.security_context.as_ref()?.windows_options.as_ref()?;
    let user = context.run_as_user_name.as_ref()?;
    if run.node.pool.os() == Os::Windows && !is_known(user) {
        return unknown(format!(
            "{task}: hcs::System::CreateProcess {id}: The user name or password is incorrect.: \
             unknown"
        ));
    }
    None
}

/// Whether Windows images have a user without configuration (`configure-runasusername`).
pub(crate) fn is_known(user: &str) -> bool {
    let name = user.rsplit('\\').next().unwrap_or_default();
    [
        "ContainerAdministrator",
        "ContainerUser",
        "System",
        "Local service",
        "LocalService",
        "NetworkService",
        "Network service",
    ]
    .iter()
    .any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether the runtime has a handler: its default, or one that the topology gives it. containerd
/// lists `runhcs-wcow-hypervisor` too (`config_windows.go`), but a node without Hyper-V cannot run
/// it.
fn is_configured(node: &NodeSpec, handler: &str) -> bool {
    let default = match node.pool.os() {
        Os::Linux => "runc",
        Os::Windows => "runhcs-wcow-process",
    };
    handler == default || node.handlers.iter().any(|added| added == handler)
}

/// Returns the handler of the pod's RuntimeClass; empty means the default handler.
async fn handler(cluster: &Cluster, run: &PodRun) -> Result<String, String> {
    let spec = run.pod.spec.as_ref();
    let name = spec.and_then(|spec| spec.runtime_class_name.as_deref());
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(String::new());
    };
    let classes: Api<RuntimeClass> = Api::all(cluster.client.clone());
    let lookup = cluster.insist("RuntimeClass", || classes.get_opt(name));
    match lookup.await {
        Ok(Some(class)) => Ok(class.handler),
        Ok(None) => Err(format!(
            "failed to lookup RuntimeClass {name}: runtimeclass.node.k8s.io \"{name}\" not found"
        )),
        Err(error) => Err(format!("failed to lookup RuntimeClass {name}: {error}")),
    }
}

/// The handler whose containers run in virtual machines (containerd, `config_windows.go`).
const HYPERVISOR: &str = "runhcs-wcow-hypervisor";

fn address(cluster: &Arc<Cluster>, run: &PodRun, handler: &str) -> Result<(), String> {
    let host_network = run.host_network();
    let address = match host_network {
        true => Some(run.node.view.address),
        false => run.node.lease_address(),
    };
    let Some(address) = address else {
        return Err(
            "rpc error: code = Unknown desc = failed to setup network for sandbox: plugin \
             type=\"host-local\" failed (add): no IP addresses available in range set"
                .to_owned(),
        );
    };
    let isolated = handler == HYPERVISOR || run.suffers(FaultKind::HyperVIsolation, cluster);
    let lags = !host_network && run.node.pool.os() == Os::Windows;
    cluster.change(|world| {
        let late = world.suffers(FaultKind::DnsLate, &run.node.name);
        let lag = if late { LATE } else { LAG };
        let simulated = cluster.chance.about(&format!("dns {}", run.uid), lag);
        let object = world::Told::by(&run.pod);
        let pod = world::Pod {
            uid: run.uid.clone(),
            host_network,
            isolated,
            dns_lag: lags.then(|| world::Lag::of(simulated, cluster.clock)),
            ..world::Pod::new(&run.node.name, address, object).on(&run.node.view)
        };
        world.pods.insert(run.key.clone(), pod);
    });
    run.note(|book| {
        book.address = Some(address);
        book.sandbox = true;
        book.sandboxes = book.sandboxes.saturating_add(1);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_the_runtimes_own_and_those_of_the_topology() {
        use crate::topology::{Build, Pool};
        let plain = NodeSpec::new("n", Pool::Windows(Build::Ws2022));
        let added = NodeSpec {
            handlers: vec![HYPERVISOR.to_owned()],
            ..plain.clone()
        };
        assert!(is_configured(&plain, "runhcs-wcow-process"));
        assert!(!is_configured(&plain, HYPERVISOR));
        assert!(is_configured(&added, HYPERVISOR));
        assert!(!is_configured(&added, "runc"));
    }

    #[test]
    fn users_that_every_windows_image_knows() {
        for user in [
            "ContainerUser",
            "containeradministrator",
            "NT AUTHORITY\\SYSTEM",
        ] {
            assert!(is_known(user), "{user}");
        }
        for user in ["FakeUser", "CONTOSO\\web", ""] {
            assert!(!is_known(user), "{user}");
        }
    }
}
