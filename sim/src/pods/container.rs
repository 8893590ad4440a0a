//! The life of one container: it is started, probed, ended and restarted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

use crate::base::log::{Log, Stream};
use crate::fault::FaultKind;
use crate::nodes::cluster::Cluster;
use crate::nodes::image::Image;
use crate::pods::course::hook::DLL_INIT_FAILED;
use crate::pods::course::run::PodRun;
use crate::pods::course::stop::Stop;
use crate::pods::course::{broken, probe, pull, start};
use crate::pods::reporting::book::{ContainerBook, Role, State};
use crate::pods::reporting::events;
use crate::pods::spec::{command, env, volumes};
use crate::program::{self, Place, Started};
use crate::topology::Os;
use crate::world;

/// How long a crashing program runs before it ends.
const A_MOMENT: Duration = Duration::from_millis(500);

/// The exit code that containerd reports for a container that a restart of its node ended.
const UNKNOWN: u32 = 255;

/// The exit code of a process that SIGKILL ended.
const KILLED: u32 = 137;

/// A run longer than this resets the back-off: twice the longest pause (client-go, `backoff.go`).
const LONG: Duration = Duration::from_mins(10);

/// The longest time between two kubelet syncs of a pod that backs off: `SyncFrequency` without its
/// random part.
const RESYNC: Duration = Duration::from_mins(1);

/// One container of a pod, on its node.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) cluster: &'a Arc<Cluster>,
    pub(crate) run: &'a Arc<PodRun>,
    pub(crate) spec: &'a Container,
    pub(crate) index: usize,
    pub(crate) role: Role,
}

/// How one run of a container ended.
enum End {
    Itself,
    Stopped,
    /// The `postStart` hook failed with this message.
    Hook(String),
    NodeDown,
    /// It used more memory than it may.
    OutOfMemory,
}

impl Slot<'_> {
    /// Changes the container's book.
    pub(crate) fn book(self, change: impl FnOnce(&mut ContainerBook)) {
        let mut book = self.run.book();
        if let Some(container) = book.containers_of(self.role).get_mut(self.index) {
            change(container);
        }
    }

    /// Reads the container's book.
    pub(crate) fn read<T>(self, read: impl FnOnce(&ContainerBook) -> T) -> Option<T> {
        let mut book = self.run.book();
        book.containers_of(self.role).get(self.index).map(read)
    }

    /// Changes the container's book and wakes the reporter.
    pub(crate) fn note(self, change: impl FnOnce(&mut ContainerBook)) {
        self.book(change);
        self.run.told_of_change();
    }

    /// Sends a `Normal` event about the container.
    pub(crate) fn tell(self, reason: &str, message: String) {
        self.event("Normal", reason, message);
    }

    /// Sends a `Warning` event about the container.
    pub(crate) fn warn(self, reason: &str, message: String) {
        self.event("Warning", reason, message);
    }

    fn event(self, kind: &'static str, reason: &str, message: String) {
        let of = Some((self.role, self.spec.name.as_str()));
        events::tell(self.cluster, self.run, of, kind, reason, message);
    }

    pub(crate) fn waits(self, reason: &str, message: Option<String>) {
        self.note(|container| container.state = State::waiting(reason, message));
    }

    /// The log of the current run.
    pub(crate) fn log(self) -> Arc<Log> {
        let log = self.read(|container| Arc::clone(&container.log));
        log.unwrap_or_else(|| Log::new(self.run.node.wall))
    }

    pub(crate) fn os(self) -> Os {
        self.run.node.pool.os()
    }

    /// Runs the container until it ends for good. Returns its last exit code, or `None` if it never
    /// started or ended with its node.
    pub(crate) async fn lead(self) -> Option<i32> {
        let mut pause = Duration::ZERO;
        loop {
            let prepared = tokio::select! {
                biased;
                () = self.run.ends() => None,
                () = self.run.node.down() => None,
                prepared = self.prepare() => Some(prepared),
            };
            let (image, place) = prepared?;
            let begun = Instant::now();
            let (finished, end) = self.once(&image, place).await;
            let code = finished.exit_code;
            let again = self.run.book().restarts(self.spec, self.role, code);
            let suffers = |kind| self.run.suffers(kind, self.cluster);
            let given_up = self.role == Role::Init && suffers(FaultKind::InitNotRestarted);
            let again = again && !given_up && self.run.ending.borrow().is_none();
            self.note(|container| {
                container.log.end();
                container.ready = code == 0 && self.role == Role::Init;
                container.past_startup = false;
                container.place = None;
                container.over = !again;
                container.state = State::Finished(finished.clone());
            });
            if matches!(end, End::NodeDown) {
                return None;
            }
            if !again {
                return Some(code);
            }
            let failed = match end {
                End::Hook(message) => Some(("PostStartHookError", message)),
                _ if finished.reason.as_deref() == Some("StartError") => {
                    let message = finished.message.clone().unwrap_or_default();
                    Some(("RunContainerError", message))
                }
                _ => None,
            };
            if let Some((reason, message)) = failed {
                self.note(|container| {
                    container.last = Some(finished.clone());
                    container.state = State::waiting(reason, Some(message));
                });
            }
            if begun.elapsed() > self.cluster.clock.real(LONG) {
                pause = Duration::ZERO;
            }
            tokio::select! {
                biased;
                () = self.run.ends() => {
                    self.note(|container| container.over = true);
                    return Some(code);
                }
                () = self.run.node.down() => return None,
                () = self.back_off(finished, pause) => {}
            }
            // The kubelet restarts at once the first time, then after 10 s, doubled up to 5 minutes
            pause = (pause * 2).clamp(Duration::from_secs(10), Duration::from_mins(5));
        }
    }

    async fn back_off(self, finished: ContainerStateTerminated, pause: Duration) {
        if !pause.is_zero() {
            let (name, pod) = (&self.spec.name, self.run.written());
            let message = format!(
                "back-off {} restarting failed container={name} pod={pod}",
                pull::written(pause),
            );
            let text = format!("Back-off restarting failed container {name} in pod {pod}");
            self.warn("BackOff", text);
            // Like kubelets since 1.35, whatever version the node reports: they sync the pod again only when
            // the back-off ends (`pkg/kubelet/pod_workers.go`, `completeWork`), and only then report it
            let unseen = pause.min(RESYNC);
            self.cluster.clock.pass(unseen).await;
            self.note(|container| {
                container.state = State::waiting("CrashLoopBackOff", Some(message));
                container.last = Some(finished.clone());
            });
            self.cluster.clock.pass(pause.saturating_sub(unseen)).await;
        }
        self.book(|container| {
            container.last = Some(finished);
            container.restarts = container.restarts.saturating_add(1);
        });
    }

    /// Prepares the image, the variables and the files; retries until it has them all.
    async fn prepare(self) -> (Image, Place) {
        loop {
            let image = self.pull().await;
            let (reason, trouble) = match (self.place(&image).await, start::unprofiled(self)) {
                (Err(trouble), _) => ("CreateContainerConfigError", trouble),
                (Ok(_), Some(trouble)) => ("CreateContainerError", trouble),
                (Ok(place), None) => return (image, place),
            };
            self.warn("Failed", format!("Error: {trouble}"));
            self.waits(reason, Some(trouble));
            self.cluster.clock.pass(Duration::from_secs(10)).await;
        }
    }

    /// Returns the place of the container's program, or why the container cannot be created.
    async fn place(self, image: &Image) -> Result<Place, String> {
        let (run, spec) = (self.run, self.spec);
        let env = env::variables(self.cluster, run, spec).await?;
        let files = volumes::files(self.cluster, run, spec, &env)?;
        let checked = !run.suffers(FaultKind::NonRootIgnored, self.cluster);
        if let Some(text) = start::forbidden(self, image).filter(|_| checked) {
            return Err(text);
        }
        let mut place = Place {
            env,
            files,
            ..run.place(spec, image)
        };
        // The containers of a Windows pod have no process namespace in common (kubernetes/website, Windows
        // containers in Kubernetes, field compatibility: `shareProcessNamespace`)
        place.lines = match run.suffers(FaultKind::ProcessesShared, self.cluster) {
            true => shared_lines(run, spec),
            false => world::line_of(spec).into_iter().collect(),
        };
        broken::break_place(self, &mut place);
        Ok(place)
    }

    /// Runs the container once, from its start to its end.
    async fn once(self, image: &Image, place: Place) -> (ContainerStateTerminated, End) {
        let Self {
            cluster, run, spec, ..
        } = self;
        let name = &spec.name;
        let restarts = self.read(|container| container.restarts).unwrap_or(0);
        let boots = run.node.power.borrow().boots;
        let hex = cluster.chance.hex(
            &format!("container {} {name} {restarts} {boots}", run.uid),
            64,
        );
        let id = format!("containerd://{hex}");
        self.tell("Created", "Container created".to_owned());
        cluster.clock.pass(start_time(self.os())).await;

        let argv = command::command_line(spec, image.family, place.os, &place.env);
        let started = match start::refused(self, image, &place, &argv, &hex) {
            Some(text) => Err(text),
            None => {
                let world = cluster.world();
                match program::start(&place, &argv, b"", &cluster.view(&world)) {
                    Started::Refused(refusal) => Err(start::text(&refusal, self.os(), &hex)),
                    started => Ok(started),
                }
            }
        };
        let over = |code: u32, reason: &str, message, since| ContainerStateTerminated {
            exit_code: signed(code),
            reason: Some(reason.to_owned()),
            message,
            started_at: Some(Time(since)),
            finished_at: Some(Time(run.now(cluster))),
            container_id: Some(id.clone()),
            signal: None,
        };
        let started = match started {
            Ok(started) => started,
            Err(message) => {
                // As in `recordContainerEvent`: the name replaces the ID, so that repeated events are equal
                self.warn("Failed", format!("Error: {}", message.replace(&hex, name)));
                // containerd has no start time for a container that did not start: the kubelet reads 0
                let never = Timestamp::UNIX_EPOCH;
                let finished = over(128, "StartError", Some(message), never);
                self.book(|container| self.created(container, image, id.clone()));
                return (finished, End::Itself);
            }
        };
        let since = run.now(cluster);
        let has = |probe: &Option<_>| Option::is_some(probe);
        let probed = matches!(self.role, Role::Main | Role::Sidecar);
        self.note(|container| {
            self.created(container, image, id.clone());
            container.state = State::Running(since);
            container.place = Some(place.clone());
            container.past_startup = !(probed && has(&spec.startup_probe));
            container.ready = probed && !has(&spec.readiness_probe) && !has(&spec.startup_probe);
        });
        self.tell("Started", "Container started".to_owned());
        let (code, end) = self.runs(image, started, &argv).await;
        let zero_lost = || self.role == Role::Main && run.suffers(FaultKind::ZeroLost, cluster);
        let code = match end {
            End::NodeDown => code,
            _ if run.suffers(FaultKind::ExitCodeLost, cluster) => 0,
            End::Itself if code == 0 && zero_lost() => 1,
            _ => code,
        };
        let reason = match (&end, code) {
            (End::NodeDown, _) => "Unknown",
            (End::OutOfMemory, _) => "OOMKilled",
            (_, 0) => "Completed",
            _ => "Error",
        };
        let message = start::last_words(self, &place, code);
        (over(code, reason, message, since), end)
    }

    /// Records a new run: only now does the status show the full image reference.
    fn created(self, container: &mut ContainerBook, image: &Image, id: String) {
        container.begin_log();
        container.id = Some(id);
        container.image.clone_from(&image.reference);
        if !self.run.suffers(FaultKind::IdsUnreported, self.cluster) {
            container.image_id = image.id(self.cluster.chance);
        }
    }

    /// Runs the program until it ends or is stopped. Returns the exit code and how the run ended.
    async fn runs(self, image: &Image, started: Started, argv: &[String]) -> (u32, End) {
        let Self {
            cluster, run, spec, ..
        } = self;
        let name = &spec.name;
        if run.dies_at_start(image.family, cluster) {
            cluster.clock.pass(A_MOMENT).await;
            return (DLL_INIT_FAILED, End::Itself);
        }
        if run.suffers(FaultKind::CrashLoop, cluster) {
            // The program still prints its first output
            if let Started::Serves { prints, .. } | Started::Stays { prints } = &started {
                self.log().print(Stream::Out, prints.as_bytes());
            }
            cluster.clock.pass(A_MOMENT).await;
            return (1, End::Itself);
        }
        let program = self.run_program(started);
        tokio::pin!(program);
        let hooked = async {
            match Box::pin(self.post_start()).await {
                Ok(()) => std::future::pending().await,
                Err(message) => message,
            }
        };
        let (stop, end) = tokio::select! {
            biased;
            code = &mut program => return (code, End::Itself),
            () = self.crashes() => return (1, End::Itself),
            () = self.is_killed() => return (KILLED, End::OutOfMemory),
            () = run.node.down() => return (UNKNOWN, End::NodeDown),
            () = run.ends() => {
                let message = format!("Stopping container {name}");
                (Stop { message, grace: None }, End::Stopped)
            }
            stop = probe::watch(self) => (stop, End::Stopped),
            message = hooked => {
                // The event omits the message, which may contain secrets
                self.warn("FailedPostStartHook", "PostStartHook failed".to_owned());
                let stop = Stop {
                    message: "FailedPostStartHook".to_owned(),
                    grace: Some(run.grace()),
                };
                (stop, End::Hook(message))
            }
        };
        tokio::select! {
            biased;
            code = &mut program => (code, end),
            () = run.node.down() => (UNKNOWN, End::NodeDown),
            code = self.stop(stop, argv) => (code, end),
        }
    }

    /// Waits until it is killed for the memory that it uses.
    async fn is_killed(self) {
        let place = self.read(|container| container.place.clone()).flatten();
        match place.and_then(|place| place.limits.kills) {
            Some(kills) => kills.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until a moment after the fault `crash-loop` begins, which ends running containers, too.
    async fn crashes(self) {
        let Self { cluster, run, .. } = self;
        let mut faults = cluster.faults.changes();
        let held = faults.wait_for(|faults| {
            let (namespace, node) = (&run.key.namespace, &run.node);
            faults.on_pod(FaultKind::CrashLoop, namespace, &node.name, node.pool)
        });
        // This cannot fail: the sender lives in the cluster
        drop(held.await);
        cluster.clock.pass(A_MOMENT).await;
    }
}

/// Converts an exit code: containerd has 32 unsigned bits, the API a signed integer.
pub(crate) fn signed(code: u32) -> i32 {
    code.cast_signed()
}

/// How long a sandbox or a container takes to start.
pub(crate) fn start_time(os: Os) -> Duration {
    match os {
        Os::Linux => Duration::from_millis(300),
        Os::Windows => Duration::from_secs(2),
    }
}

/// The command lines that a container sees where processes are shared.
fn shared_lines(run: &PodRun, spec: &Container) -> Vec<String> {
    let of_pod = run.pod.spec.as_ref();
    let of_pod = of_pod.filter(|pod| pod.share_process_namespace == Some(true));
    let all = of_pod.map_or(std::slice::from_ref(spec), |pod| &pod.containers);
    all.iter().filter_map(world::line_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_have_a_sign_in_the_api() {
        assert_eq!(signed(DLL_INIT_FAILED), -1_073_741_502);
        assert_eq!(signed(program::CONTROL_C), -1_073_741_510);
    }
}
