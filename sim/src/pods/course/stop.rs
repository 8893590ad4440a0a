//! How a container is ended: the `preStop` hook, the signal, and the rest of its grace (kubernetes
//! 1.37.0, `pkg/kubelet/kuberuntime/kuberuntime_container.go`, `killContainer`).

use std::time::Duration;

use tokio::time::Instant;

use crate::base::clock;
use crate::base::log::Stream;
use crate::fault::FaultKind;
use crate::nodes::image::Family;
use crate::nodes::node::runtime;
use crate::pods::container::Slot;
use crate::pods::reporting::book::Role;
use crate::program;
use crate::program::windows::powershell;
use crate::topology::Os;

/// The shortest grace (kubelet, `minimumGracePeriodInSeconds`).
const LEAST: Duration = Duration::from_secs(2);

/// How long Windows waits for what shuts down in a container, `WaitToKillServiceTimeout`.
const OWN_LIMIT: Duration = Duration::from_secs(5);

/// Why a container must end, and within what time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The message of the event `Killing`.
    pub(crate) message: String,
    /// The container's grace; `None` for the grace of the pod.
    pub(crate) grace: Option<Duration>,
}

/// How a program reacts to the signal to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reaction {
    code: u32,
    after: Duration,
    prints: &'static str,
}

/// Returns how a program reacts to the signal to end; `None` for one that ignores it.
///
/// On Linux the first process of a container gets no signal for which it has no handler
/// (`pid_namespaces(7)`), so shells and `sleep` are killed in the end; Go programs have a handler
/// and exit with 2. On Windows the runtime sends Ctrl-Shutdown (hcsshim, `internal/signals`), which ends console
/// programs; a Go program gets it as SIGTERM (`os/signal`, "Windows"), so agnhost's server ends as on Linux
/// (kubernetes, `test/e2e/windows/node_shutdown.go`, which relies on its `--delay-shutdown`).
pub(crate) fn reaction(os: Os, argv: &[String], first: bool) -> Option<Reaction> {
    let file = argv.first().map(String::as_str).unwrap_or_default();
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let second = Duration::from_secs(1);
    let (code, after, prints) = match (os, name, argv.get(1).map(String::as_str)) {
        // netexec.go: it sleeps for --delay-shutdown, then exits
        (_, "agnhost", Some("netexec")) if os == Os::Windows || first => {
            let mut delays = argv
                .iter()
                .filter_map(|arg| arg.strip_prefix("--delay-shutdown="));
            let delay = delays.next().and_then(|seconds| seconds.parse().ok());
            let delay = Duration::from_secs(delay.unwrap_or(0));
            (0, Duration::from_millis(100) + delay, "")
        }
        // leaving-core.yaml: its handler sleeps, then exits
        (Os::Windows, "powershell", _) if argv.iter().any(|arg| arg.contains(powershell::LATE)) => {
            (0, Duration::from_secs(15), "")
        }
        (Os::Windows, ..) => (program::CONTROL_C, second, ""),
        // 128 + SIGTERM
        _ if !first => (143, second, ""),
        // test/images/agnhost/pause/pause.go
        (_, "agnhost", None | Some("pause")) => {
            let prints = "exiting because of signal \"terminated\"\n";
            (2, Duration::from_millis(100), prints)
        }
        (_, "agnhost", _) => (2, second, ""),
        (_, "pause", _) => (0, second, ""),
        _ => return None,
    };
    Some(Reaction {
        code,
        after,
        prints,
    })
}

/// The exit code of a killed container: 128 + SIGKILL; on Windows `ERROR_PROCESS_ABORTED`
/// (Microsoft, "System Error Codes (1000-1299)"), as Docker on Windows Server 2016 showed it for a
/// container that an orchestrator had ended ("Docker - Multiplatform Swarm and Bugs", which links
/// to moby issue 27612: `Exited (1067)`). No record exists for containerd.
fn killed(os: Os) -> u32 {
    match os {
        Os::Linux => 137,
        Os::Windows => 1067,
    }
}

/// Whether a runtime is a containerd before 1.6.19.
fn is_before_1_6_19(runtime: &str) -> bool {
    let version = runtime.strip_prefix("containerd://").unwrap_or_default();
    let numbers = version
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    let numbers: Vec<_> = numbers.collect();
    !numbers.is_empty() && numbers.as_slice() < [1, 6, 19].as_slice()
}

impl Slot<'_> {
    /// Ends the container, which keeps running meanwhile. Returns the exit code.
    pub(crate) async fn stop(self, stop: Stop, argv: &[String]) -> u32 {
        let Self { cluster, run, .. } = self;
        let os = self.os();
        let begun = Instant::now();
        self.tell("Killing", stop.message.clone());
        let deleted = run.ending.borrow().is_some();
        if deleted && run.suffers(FaultKind::GraceIgnored, cluster) {
            return killed(os);
        }
        let out_of_time = self.out_of_time(begun, &stop);
        tokio::pin!(out_of_time);
        let hook = async {
            if !run.suffers(FaultKind::PreStopSkipped, cluster)
                && self.grace(&stop) > Duration::ZERO
            {
                self.pre_stop().await;
            }
        };
        let hooked = tokio::select! {
            biased;
            () = hook => true,
            () = &mut out_of_time => false,
        };
        let turn = async {
            if self.role == Role::Sidecar && stop.grace.is_none() {
                self.turn().await;
            }
        };
        let in_time = hooked
            && tokio::select! {
                biased;
                () = turn => true,
                () = &mut out_of_time => false,
            };
        let shared = run.pod.spec.as_ref().is_some_and(|spec| {
            spec.share_process_namespace == Some(true) || spec.host_pid == Some(true)
        });
        let signalled = Instant::now();
        let over = async {
            if in_time {
                tokio::select! {
                    biased;
                    () = &mut out_of_time => {}
                    () = self.own_limit() => {}
                }
            }
            let least = cluster.clock.real(LEAST);
            clock::elapse(least.saturating_sub(signalled.elapsed())).await;
        };
        let ends = async {
            let Some(reaction) = reaction(os, argv, !shared) else {
                return std::future::pending().await;
            };
            cluster.clock.pass(reaction.after).await;
            reaction
        };
        let code = tokio::select! {
            biased;
            reaction = ends => {
                self.last_prints(reaction.prints);
                reaction.code
            }
            () = over => killed(os),
        };
        if !hooked {
            // It ends with its container
            self.pre_stop_failed();
        }
        code
    }

    /// Prints what agnhost's pause prints on the signal: to its log and to its termination message.
    fn last_prints(self, text: &str) {
        self.log().print(Stream::Out, text.as_bytes());
        let place = self.read(|container| container.place.clone()).flatten();
        if let Some(place) = place.filter(|_| !text.is_empty()) {
            let variable = place.env.get("TERMINATION_MESSAGE_PATH");
            let path = variable.map_or("/dev/termination-log", String::as_str);
            // agnhost ignores this error as well
            let _ = place.files.write(path, text.as_bytes());
        }
    }

    /// How long the container has to end.
    fn grace(self, stop: &Stop) -> Duration {
        let pods = *self.run.ending.borrow();
        match (stop.grace, pods) {
            (Some(grace), Some(pods)) => grace.min(pods),
            (Some(grace), None) => grace,
            (None, pods) => pods.unwrap_or_default(),
        }
    }

    /// Waits as long as Windows gives a container to shut down, where the runtime leaves that as it is: Docker
    /// (kubernetes issue 73434), and containerd before 1.6.19 with Windows Server Core (hcsshim, PR 1416).
    async fn own_limit(self) {
        let faults = self.cluster.faults.current();
        let runtime = runtime(&self.run.node, &faults);
        let place = self.read(|container| container.place.clone()).flatten();
        let family = place.map(|place| place.family);
        let is_core = matches!(family, Some(Family::Servercore | Family::Iis));
        let is_left = runtime.starts_with("docker://") || is_core && is_before_1_6_19(runtime);
        match self.os() == Os::Windows && is_left {
            true => self.cluster.clock.pass(OWN_LIMIT).await,
            false => std::future::pending().await,
        }
    }

    /// Waits until the grace is over; a second deletion may shorten it.
    async fn out_of_time(self, begun: Instant, stop: &Stop) {
        let mut ending = self.run.ending.subscribe();
        loop {
            ending.mark_unchanged();
            let grace = self.cluster.clock.real(self.grace(stop));
            let left = grace.saturating_sub(begun.elapsed());
            tokio::select! {
                biased;
                () = clock::elapse(left) => return,
                Ok(()) = ending.changed() => {}
            }
        }
    }

    /// Waits for this sidecar's turn: sidecars end after the main containers, the last sidecar
    /// first (`kuberuntime_termination_order.go`).
    async fn turn(self) {
        for over in self.run.over.iter().skip(self.index + 1) {
            over.cancelled().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(os: Os, line: &str, first: bool) -> Option<u32> {
        let argv: Vec<String> = line.split('|').map(str::to_owned).collect();
        reaction(os, &argv, first).map(|reaction| reaction.code)
    }

    #[test]
    fn programs_end_as_they_listen() {
        assert_eq!(code(Os::Linux, "/agnhost|pause", true), Some(2));
        assert_eq!(code(Os::Linux, "/agnhost|netexec", true), Some(0));
        assert_eq!(code(Os::Linux, "/pause", true), Some(0));
        assert_eq!(code(Os::Linux, "sh|-c|sleep 3600", true), None);
        assert_eq!(code(Os::Linux, "sleep|3600", false), Some(143));
        assert_eq!(
            code(Os::Windows, "ping|-t|localhost", true),
            Some(program::CONTROL_C)
        );
        assert_eq!(code(Os::Windows, r"C:\agnhost.exe|netexec", true), Some(0));
        let handles = r"C:\powershell.exe|-Command|SetConsoleCtrlHandler(Ends, true)";
        assert_eq!(code(Os::Windows, handles, true), Some(0));
        assert_eq!(
            code(Os::Windows, "powershell|-Command|Start-Sleep", true),
            Some(program::CONTROL_C)
        );
    }

    #[test]
    fn runtimes_before_1_6_19_leave_the_limit_of_windows() {
        for (runtime, is_before) in [
            ("containerd://1.6.18", true),
            ("containerd://1.5.4", true),
            ("containerd://1.6.19", false),
            ("containerd://1.7.0", false),
            ("containerd://2.1.0", false),
            ("cri-o://1.36.0", false),
        ] {
            assert_eq!(is_before_1_6_19(runtime), is_before, "{runtime}");
        }
    }

    #[test]
    fn a_shutdown_can_be_delayed() {
        let argv = ["/agnhost", "netexec", "--delay-shutdown=7"].map(str::to_owned);
        let reaction = reaction(Os::Linux, &argv, true).expect("it listens");
        assert!(reaction.after >= Duration::from_secs(7));
    }
}
