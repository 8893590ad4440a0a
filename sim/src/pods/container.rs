//! One container: pulled, started, probed, ended, started again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::book::{ContainerBook, Finished, State};
use super::run::PodRun;
use super::{command, events, probe};
use crate::clock;
use crate::cluster::Cluster;
use crate::fault::FaultKind;
use crate::image::{self, Family, Image, PullFailure};
use crate::log::{Log, Stream};
use crate::program::serve::Page;
use crate::program::{self, Refusal, Started};
use crate::topology::Os;

/// Exit code of a process whose DLLs cannot be initialised: 0xC0000142, `STATUS_DLL_INIT_FAILED`.
const DLL_INIT_FAILED: u32 = 0xC000_0142;

/// One container of a pod in the hands of its node.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) cluster: &'a Arc<Cluster>,
    pub(crate) run: &'a Arc<PodRun>,
    pub(crate) spec: &'a Container,
    pub(crate) index: usize,
    pub(crate) init: bool,
}

impl Slot<'_> {
    /// Changes the container's book and has it reported.
    pub(crate) fn note(self, change: impl FnOnce(&mut ContainerBook)) {
        self.run.note(|book| {
            let containers = if self.init {
                &mut book.init
            } else {
                &mut book.containers
            };
            if let Some(container) = containers.get_mut(self.index) {
                change(container);
            }
        });
    }

    /// The log of this run.
    fn log(self) -> Arc<Log> {
        let book = self.run.book();
        let containers = if self.init {
            &book.init
        } else {
            &book.containers
        };
        containers
            .get(self.index)
            .map_or_else(Log::new, |container| Arc::clone(&container.log))
    }

    fn os(self) -> Os {
        self.run.node.pool.os()
    }

    /// Leads the container until it ends for good; gives its last exit code.
    pub(crate) async fn lead(self) -> i32 {
        let mut pause = Duration::ZERO;
        loop {
            let image = self.pull().await;
            let finished = self.once(&image).await;
            let code = finished.code;
            let again = self.run.book().restarts(code, self.init);
            self.note(|container| {
                container.state = State::Finished(finished.clone());
                container.log.end();
                container.ready = false;
                container.past_startup = false;
                container.place = None;
                container.over = !again;
                if code == 0 && self.init {
                    container.ready = true;
                }
            });
            if !again {
                return code;
            }
            self.back_off(finished, pause).await;
            // kubelet: at once the first time, then 10 s, doubled up to 5 minutes
            pause = (pause * 2).clamp(Duration::from_secs(10), Duration::from_mins(5));
        }
    }

    async fn back_off(self, finished: Finished, pause: Duration) {
        let Self {
            cluster, run, spec, ..
        } = self;
        if !pause.is_zero() {
            let pod = format!("{}_{}({})", run.key.name, run.key.namespace, run.uid);
            let message = format!(
                "back-off {} restarting failed container={} pod={pod}",
                go_duration(pause),
                spec.name
            );
            self.note(|container| {
                container.state = State::Waiting {
                    reason: "CrashLoopBackOff",
                    message: Some(message),
                };
                container.last = Some(finished.clone());
            });
            let text = format!(
                "Back-off restarting failed container {} in pod {pod}",
                spec.name
            );
            events::warning(cluster, run, "BackOff", text);
            cluster.clock.pass(pause).await;
        }
        self.note(|container| {
            container.last = Some(finished);
            container.restarts = container.restarts.saturating_add(1);
        });
    }

    /// Pulls the image, again and again until it can be had.
    async fn pull(self) -> Image {
        let Self {
            cluster, run, spec, ..
        } = self;
        let reference = spec.image.clone().unwrap_or_default();
        let mut pause = Duration::from_secs(10);
        loop {
            let faults = cluster.faults.current();
            let missing = run.node.suffers(FaultKind::ImageMissing, &faults);
            match image::resolve(&reference, run.node.pool, missing) {
                Ok(image) => {
                    self.fetch(&reference, &image).await;
                    let digest = cluster.chance.hex(&image.reference, 64);
                    let path = image
                        .reference
                        .rsplit_once(':')
                        .map_or("", |(path, _)| path);
                    self.note(|container| {
                        container.image.clone_from(&image.reference);
                        container.image_id = format!("{path}@sha256:{digest}");
                    });
                    return image;
                }
                Err(PullFailure(text)) => {
                    events::normal(
                        cluster,
                        run,
                        "Pulling",
                        format!("Pulling image \"{reference}\""),
                    );
                    cluster.clock.pass(Duration::from_secs(1)).await;
                    let failed = format!("Failed to pull image \"{reference}\": {text}");
                    events::warning(cluster, run, "Failed", failed);
                    events::warning(cluster, run, "Failed", "Error: ErrImagePull".to_owned());
                    self.waits("ErrImagePull", text.clone());
                    cluster.clock.pass(Duration::from_secs(2)).await;
                    let back_off = format!("Back-off pulling image \"{reference}\"");
                    events::normal(cluster, run, "BackOff", back_off.clone());
                    events::warning(cluster, run, "Failed", "Error: ImagePullBackOff".to_owned());
                    self.waits(
                        "ImagePullBackOff",
                        format!("{back_off}: ErrImagePull: {text}"),
                    );
                    cluster.clock.pass(pause).await;
                    pause = (pause * 2).min(Duration::from_mins(5));
                }
            }
        }
    }

    fn waits(self, reason: &'static str, message: String) {
        self.note(|container| {
            container.state = State::Waiting {
                reason,
                message: Some(message),
            };
        });
    }

    /// The first pod of a node that needs an image pulls it, the others wait for that.
    async fn fetch(self, reference: &str, image: &Image) {
        let Self { cluster, run, .. } = self;
        let stored = run.node.image(&image.reference);
        if stored.initialized() {
            let text = format!("Container image \"{reference}\" already present on machine");
            events::normal(cluster, run, "Pulled", text);
            return;
        }
        events::normal(
            cluster,
            run,
            "Pulling",
            format!("Pulling image \"{reference}\""),
        );
        let time = cluster.chance.about(
            &format!("pull {} {}", run.node.name, image.reference),
            image.pull,
        );
        stored.get_or_init(|| cluster.clock.pass(time)).await;
        let time = format!("{:.3}s", time.as_secs_f64());
        let bytes = image.bytes;
        events::normal(
            cluster,
            run,
            "Pulled",
            format!(
                "Successfully pulled image \"{reference}\" in {time} ({time} including waiting). \
                 Image size: {bytes} bytes."
            ),
        );
    }

    /// Runs the container once, from its start to its end.
    async fn once(self, image: &Image) -> Finished {
        let Self {
            cluster, run, spec, ..
        } = self;
        let name = &spec.name;
        let restarts = self
            .run
            .book()
            .containers
            .get(self.index)
            .map_or(0, |c| c.restarts);
        let hex = cluster
            .chance
            .hex(&format!("container {} {name} {restarts}", run.uid), 64);
        let id = format!("containerd://{hex}");
        events::normal(
            cluster,
            run,
            "Created",
            format!("Container created: {name}"),
        );
        cluster.clock.pass(start_time(self.os())).await;

        let place = run.place(spec, image);
        let world = cluster.world();
        let argv = command::of(spec, image.family, place.os);
        let started = program::start(&place, &argv, b"", &cluster.view(&world));
        if let Started::Refused(refusal) = started {
            return self.cannot_start(&refusal, &hex, id);
        }
        let since = clock::now();
        let has = |probe: &Option<_>| Option::is_some(probe);
        self.note(|container| {
            container.begin_log();
            container.id = Some(id.clone());
            container.state = State::Running { since };
            container.place = Some(place.clone());
            container.past_startup = !has(&spec.startup_probe);
            container.ready =
                !self.init && !has(&spec.readiness_probe) && !has(&spec.startup_probe);
        });
        events::normal(
            cluster,
            run,
            "Started",
            format!("Container started: {name}"),
        );

        let crashes = image.family == Family::Servercore
            && run
                .node
                .suffers(FaultKind::ServercoreCrashes, &cluster.faults.current());
        let code = if crashes {
            cluster.clock.pass(Duration::from_millis(500)).await;
            DLL_INIT_FAILED
        } else {
            tokio::select! {
                code = self.run_program(started) => code,
                why = probe::watch(self) => {
                    let text = format!("Container {name} failed {why} probe, will be restarted");
                    events::normal(cluster, run, "Killing", text);
                    cluster.clock.pass(Duration::from_secs(1)).await;
                    killed(self.os())
                }
            }
        };
        Finished {
            code: signed(code),
            reason: if code == 0 { "Completed" } else { "Error" },
            message: None,
            from: Some(since),
            to: clock::now(),
            id: Some(id),
        }
    }

    /// What containerd says when the program is not there.
    fn cannot_start(self, refusal: &Refusal, hex: &str, id: String) -> Finished {
        let os = self.os();
        let text = refusal.text(os, hex);
        let message = match (refusal, os) {
            (Refusal::Missing(_), Os::Linux) => format!(
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: \
                 runc create failed: unable to start container process: error during container init: {text}"
            ),
            _ => format!("failed to start containerd task \"{hex}\": {text}"),
        };
        let event = format!("Error: {message}");
        events::warning(self.cluster, self.run, "Failed", event);
        Finished {
            code: 128,
            reason: "StartError",
            message: Some(message),
            from: None,
            to: clock::now(),
            id: Some(id),
        }
    }

    /// Lets the program run to its end, if it has one.
    async fn run_program(self, started: Started) -> u32 {
        let clock = self.cluster.clock;
        let log = self.log();
        let print = |stream, bytes: &[u8]| log.print(stream, bytes);
        match started {
            Started::Serves {
                listening,
                listening_udp,
                warm_up,
                prints,
            } => {
                clock.pass(warm_up).await;
                print(Stream::Out, prints.as_bytes());
                let _listening = Listening::begin(self, listening, listening_udp);
                std::future::pending().await
            }
            Started::Stays { prints } => {
                print(Stream::Out, prints.as_bytes());
                std::future::pending().await
            }
            Started::Ended(ran) => {
                clock.pass(ran.took).await;
                clock::elapse(ran.slept).await;
                print(Stream::Out, &ran.stdout);
                print(Stream::Error, &ran.stderr);
                ran.code
            }
            Started::Refused(_) => unreachable!("a refused program was not started"),
        }
    }
}

/// Ports that a program holds open, until it is dropped.
struct Listening<'a> {
    slot: Slot<'a>,
    ports: Vec<u16>,
    udp: Vec<u16>,
}

impl<'a> Listening<'a> {
    fn begin(slot: Slot<'a>, listening: BTreeMap<u16, Page>, udp: BTreeMap<u16, Page>) -> Self {
        let begun = Self {
            slot,
            ports: listening.keys().copied().collect(),
            udp: udp.keys().copied().collect(),
        };
        slot.cluster.change(|world| {
            if let Some(pod) = world
                .pods
                .get_mut(&slot.run.key)
                .filter(|pod| pod.uid == slot.run.uid)
            {
                pod.listening.extend(listening);
                pod.listening_udp.extend(udp);
            }
        });
        begun
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let Slot { cluster, run, .. } = self.slot;
        cluster.change(|world| {
            if let Some(pod) = world
                .pods
                .get_mut(&run.key)
                .filter(|pod| pod.uid == run.uid)
            {
                pod.listening.retain(|port, _| !self.ports.contains(port));
                pod.listening_udp.retain(|port, _| !self.udp.contains(port));
            }
        });
    }
}

/// The exit code of a program that was told to end.
pub(crate) fn killed(os: Os) -> u32 {
    match os {
        // 128 and SIGTERM
        Os::Linux => 143,
        Os::Windows => program::CONTROL_C,
    }
}

/// containerd hands 32 bits to an API whose exit codes have a sign.
pub(crate) fn signed(code: u32) -> i32 {
    code.cast_signed()
}

fn start_time(os: Os) -> Duration {
    match os {
        Os::Linux => Duration::from_millis(300),
        Os::Windows => Duration::from_secs(2),
    }
}

fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_have_a_sign_in_the_api() {
        assert_eq!(signed(DLL_INIT_FAILED), -1_073_741_502);
        assert_eq!(signed(program::CONTROL_C), -1_073_741_510);
    }

    #[test]
    fn durations_read_as_in_go() {
        assert_eq!(go_duration(Duration::from_secs(20)), "20s");
        assert_eq!(go_duration(Duration::from_mins(5)), "5m0s");
    }
}
