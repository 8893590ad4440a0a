//! Pulling a container's image (kubernetes 1.37.0, `pkg/kubelet/images/image_manager.go`).

use std::time::Duration;

use crate::fault::FaultKind;
use crate::nodes::image::{self, Demand, Image, Unpulled, with_tag};
use crate::pods::container::Slot;

/// The longest pause between two pulls (kubelet, `MaxImageBackOff`).
const LONGEST: Duration = Duration::from_mins(5);

/// The time between two kubelet syncs of a waiting pod.
const SYNC: Duration = Duration::from_secs(10);

impl Slot<'_> {
    /// Pulls the image; retries until the node has it.
    pub(crate) async fn pull(self) -> Image {
        let reference = self.spec.image.clone().unwrap_or_default();
        let mut pause = Duration::from_secs(10);
        loop {
            let text = match self.obtain(&reference).await {
                Ok(image) => return image,
                Err(Trouble::Pull(text)) => text,
                Err(Trouble::Own(event, reason, text)) => {
                    self.warn(event, text.clone());
                    self.warn("Failed", format!("Error: {reason}"));
                    self.waits(reason, Some(text));
                    self.cluster.clock.pass(SYNC).await;
                    continue;
                }
            };
            let named = with_tag(&reference);
            self.warn(
                "Failed",
                format!("Failed to pull image \"{named}\": {text}"),
            );
            self.warn("Failed", "Error: ErrImagePull".to_owned());
            self.waits("ErrImagePull", Some(text.clone()));
            self.cluster.clock.pass(Duration::from_secs(2)).await;
            let back_off = format!("Back-off pulling image \"{named}\"");
            self.tell("BackOff", back_off.clone());
            self.warn("Failed", "Error: ImagePullBackOff".to_owned());
            let message = format!("{back_off}: ErrImagePull: {text}");
            self.waits("ImagePullBackOff", Some(message));
            self.cluster.clock.pass(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Returns the image from the node's store or from its registry, as the pull policy demands.
    async fn obtain(self, reference: &str) -> Result<Image, Trouble> {
        let Self { cluster, run, .. } = self;
        if let Some(why) = image::malformed(reference) {
            let text = format!("Failed to apply default image tag \"{reference}\": {why}");
            return Err(Trouble::Own("InspectFailed", "InvalidImageName", text));
        }
        let policy = self.spec.image_pull_policy.as_deref();
        let always = match policy {
            Some(policy) => policy == "Always",
            // The API server's default
            None => !reference.contains('@') && with_tag(reference).ends_with(":latest"),
        };
        let faults = cluster.faults.current();
        let missing = run.node.suffers(FaultKind::ImageMissing, &faults);
        let demand = if run.node.suffers(FaultKind::PlatformUnasked, &faults) {
            Demand::Nothing
        } else if run.node.suffers(FaultKind::AnyBuildRuns, &faults) {
            Demand::AnyBuild
        } else {
            Demand::Fits
        };
        let resolved = match image::demanded(reference, run.node.pool, demand) {
            Ok(image) if missing && image.is_servercore() => {
                Err(Unpulled::NoPlatform(image.reference))
            }
            resolved => resolved,
        };
        let resolved = resolved.map_err(|why| why.words(&run.node.spec));
        let is_stored = |image: &&Image| run.node.image(&image.reference).initialized();
        let stored = resolved.as_ref().ok().filter(is_stored);
        if let Some(image) = stored.filter(|_| !always) {
            // The message since 1.35, where the kubelet also checks whether the pod may use the image
            self.tell(
                "Pulled",
                format!(
                    "Container image \"{reference}\" already present on machine and can be \
                     accessed by the pod"
                ),
            );
            return Ok(image.clone());
        }
        if policy == Some("Never") {
            let reason = "ErrImageNeverPull";
            let text =
                format!("Container image \"{reference}\" is not present with pull policy of Never");
            return Err(Trouble::Own(reason, reason, text));
        }
        let named = with_tag(reference);
        self.tell("Pulling", format!("Pulling image \"{named}\""));
        if run.suffers(FaultKind::PullFails, cluster) {
            cluster.clock.pass(Duration::from_secs(1)).await;
            return Err(Trouble::Pull(image::unreachable(reference)));
        }
        let image = match resolved {
            Ok(image) => image,
            Err(failure) => {
                cluster.clock.pass(Duration::from_secs(1)).await;
                return Err(Trouble::Pull(failure));
            }
        };
        self.fetch(&named, &image).await;
        Ok(image)
    }

    /// Pulls an image: the first pod of a node that needs it pulls it, the others wait for that.
    /// For a stored image, the node only requests its digest from the registry.
    async fn fetch(self, named: &str, image: &Image) {
        let Self { cluster, run, .. } = self;
        let stored = run.node.image(&image.reference);
        let name = format!("pull {} {}", run.node.name, image.reference);
        let is_slow = run.suffers(FaultKind::PullSlow, cluster);
        let slow = if is_slow { 100 } else { 1 };
        let time = if stored.initialized() {
            let time = Duration::from_millis(400) * slow;
            cluster.clock.pass(time).await;
            time
        } else {
            let time = cluster.chance.about(&name, image.pull) * slow;
            stored.get_or_init(|| cluster.clock.pass(time)).await;
            time
        };
        let (time, bytes) = (written(time), image.bytes);
        self.tell(
            "Pulled",
            format!(
                "Successfully pulled image \"{named}\" in {time} ({time} including waiting). \
                 Image size: {bytes} bytes."
            ),
        );
    }
}

/// Why a container has no image.
enum Trouble {
    /// The kubelet did not pull: the reason of an event, the waiting reason, and the message of both.
    Own(&'static str, &'static str, String),
    Pull(String),
}

/// Formats a duration as Go does, cut to milliseconds.
pub(crate) fn written(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let fraction = format!("{}.{:03}", rest / 1000, rest % 1000);
    let seconds = fraction.trim_end_matches('0').trim_end_matches('.');
    match minutes {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_get_the_default_tag() {
        assert_eq!(with_tag("busybox"), "busybox:latest");
        assert_eq!(with_tag("a:5000/b"), "a:5000/b:latest");
        assert_eq!(with_tag("b@sha256:0"), "b@sha256:0");
    }

    #[test]
    fn durations_read_as_in_go() {
        for (millis, text) in [
            (9, "9ms"),
            (5020, "5.02s"),
            (20_000, "20s"),
            (60_000, "1m0s"),
            (300_000, "5m0s"),
            (61_500, "1m1.5s"),
        ] {
            assert_eq!(written(Duration::from_millis(millis)), text);
        }
    }
}
