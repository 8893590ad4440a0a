//! Lifecycle hooks (kubernetes 1.37.0, `pkg/kubelet/lifecycle/handlers.go`).

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use super::run::PodRun;
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::image::Family;
use crate::nodes::play::{Player, Told};
use crate::pods::container::Slot;
use crate::pods::reach;
use crate::program::kubernetes::kubelet::Lost;
use crate::program::{self, Place, Refusal, Started};
use crate::topology::Os;

/// Exit code of a process whose DLLs cannot be initialised: 0xC0000142, `STATUS_DLL_INIT_FAILED`.
pub(crate) const DLL_INIT_FAILED: u32 = 0xC000_0142;

/// How many bytes of an exec's output the kubelet keeps (`pkg/probe/exec/exec.go`, `maxReadLength`).
const MOST_OUTPUT: usize = 10 << 10;

impl Slot<'_> {
    /// Runs the `postStart` hook, if there is one. The error says why it failed.
    pub(crate) async fn post_start(self) -> Result<(), String> {
        let hooks = self.spec.lifecycle.as_ref();
        match hooks.and_then(|hooks| hooks.post_start.as_ref()) {
            Some(_) if self.run.suffers(FaultKind::PostStartSkipped, self.cluster) => Ok(()),
            Some(hook) => self.handle(hook).await,
            None => Ok(()),
        }
    }

    /// Runs the `preStop` hook, if there is one.
    pub(crate) async fn pre_stop(self) {
        let hooks = self.spec.lifecycle.as_ref();
        if let Some(hook) = hooks.and_then(|hooks| hooks.pre_stop.as_ref())
            && self.handle(hook).await.is_err()
        {
            self.pre_stop_failed();
        }
    }

    /// The event omits the message, which may contain secrets.
    pub(super) fn pre_stop_failed(self) {
        self.warn("FailedPreStopHook", "PreStopHook failed".to_owned());
    }

    async fn handle(self, hook: &LifecycleHandler) -> Result<(), String> {
        let (name, pod) = (&self.spec.name, self.run.written());
        let of = format!("for Container \"{name}\" in Pod \"{pod}\" failed - error:");
        if let Some(exec) = &hook.exec {
            let command = exec.command.clone().unwrap_or_default();
            let failed = |why: &str, output: &[u8]| {
                let output = String::from_utf8_lossy(output);
                let line = command.join(" ");
                Err(format!(
                    "Exec lifecycle hook ([{line}]) {of} {why}, message: {output:?}"
                ))
            };
            return match self.exec(&command).await {
                Execed::Ended(0, _) => Ok(()),
                Execed::Ended(code, output) => failed(
                    &format!("command '{}' exited with {code}: ", command.join(" ")),
                    &output,
                ),
                Execed::Stays => std::future::pending().await,
                Execed::Refused(why) => failed(&why, b""),
            };
        }
        if let Some(get) = &hook.http_get {
            let path = get.path.clone().unwrap_or_default();
            // handlers.go: the HTTP client has no timeout, so only the operating system's applies
            return match reach::get(self, get, Duration::from_mins(2)) {
                // Any answer counts as success, whatever its status
                Ok(_) => Ok(()),
                Err(Lost::Nothing { why, took }) => {
                    self.cluster.clock.pass(took).await;
                    Err(format!("HTTP lifecycle hook ({path}) {of} {why}"))
                }
                Err(Lost::Unknown(why)) => Err(format!("HTTP lifecycle hook ({path}) {of} {why}")),
            };
        }
        if let Some(sleep) = &hook.sleep {
            let seconds = u64::try_from(sleep.seconds).unwrap_or(0);
            self.cluster.clock.pass(Duration::from_secs(seconds)).await;
            return Ok(());
        }
        Err("Cannot run handler: invalid handler".to_owned())
    }

    /// Runs a program in the container.
    pub(crate) async fn exec(self, command: &[String]) -> Execed {
        let place = self.read(|container| container.place.clone()).flatten();
        let refused = |refusal: &Refusal| {
            let words = self
                .run
                .not_executed(self.cluster, &self.spec.name, refusal);
            Execed::Refused(format!("rpc error: code = Unknown desc = {words}"))
        };
        let Some(place) = place else {
            return Execed::Refused("container is not running".to_owned());
        };
        if self.run.exec_fails(self.cluster, &place) {
            return refused(&Refusal::RpcUnavailable);
        }
        self.run.exec_begins(self.cluster).await;
        if self.run.dies_at_start(place.family, self.cluster) {
            return Execed::Ended(DLL_INIT_FAILED, Vec::new());
        }
        let world = self.cluster.world();
        let started = program::start(&place, command, b"", &self.cluster.view(&world));
        drop(world);
        let mut player = Player::new(self.cluster, started);
        let mut output = Vec::new();
        loop {
            match player.next().await {
                Told::Printed(_, bytes) => {
                    let room = MOST_OUTPUT.saturating_sub(output.len());
                    output.extend(bytes.into_iter().take(room));
                }
                Told::Ended(code) => return Execed::Ended(code, output),
                Told::Other(Started::Refused(refusal)) => return refused(&refusal),
                Told::Other(_) => return Execed::Stays,
            }
        }
    }
}

impl PodRun {
    /// Whether no program can be started in the container. The fault breaks calls to the host
    /// compute service, but a `HostProcess` container is a job object of its node (hcsshim,
    /// `internal/jobcontainers`).
    pub(crate) fn exec_fails(&self, cluster: &Cluster, place: &Place) -> bool {
        place.os == Os::Windows
            && !place.host_process
            && self.suffers(FaultKind::ExecRpcUnavailable, cluster)
    }

    /// Whether a program from an image of a family dies at its start: the container's own, and one that an exec starts.
    pub(crate) fn dies_at_start(&self, family: Family, cluster: &Cluster) -> bool {
        let faults = cluster.faults.current();
        family == Family::Servercore && self.node.suffers(FaultKind::ServercoreCrashes, &faults)
    }

    /// Waits until a program begins that is started in a running container.
    pub(crate) async fn exec_begins(&self, cluster: &Cluster) {
        if self.suffers(FaultKind::ExecSlow, cluster) {
            cluster.clock.pass(Duration::from_secs(8)).await;
        }
    }

    /// containerd's error for a program that it could not start in a running container.
    pub(crate) fn not_executed(
        &self,
        cluster: &Cluster,
        container: &str,
        refusal: &Refusal,
    ) -> String {
        let exec = cluster.chance.hex(&format!("exec {}", self.uid), 64);
        let id = {
            let book = self.book();
            let known = book.container(container);
            known.and_then(|container| container.id.clone())
        };
        let id = id.unwrap_or_default();
        let id = id.strip_prefix("containerd://").unwrap_or(&id);
        not_executed(self.node.pool.os(), &exec, id, refusal)
    }
}

/// containerd's error for a program that it could not start in a running container
/// (`internal/cri/server/container_execsync.go`, `execInternal`), with the IDs of the exec and the container.
pub(crate) fn not_executed(os: Os, exec: &str, container: &str, refusal: &Refusal) -> String {
    let runtime = match os {
        Os::Linux => "OCI runtime exec failed: exec failed: unable to start container process: ",
        Os::Windows => "",
    };
    let why = refusal.text(os, container);
    format!("failed to exec in container: failed to start exec \"{exec}\": {runtime}{why}")
}

/// The outcome of a program that was run in a container.
pub(crate) enum Execed {
    /// The exit code and the output, up to `MOST_OUTPUT`.
    Ended(u32, Vec<u8>),
    Stays,
    /// The container runtime's error.
    Refused(String),
}
