//! What faults change of the place of a container's programs.

use k8s_openapi::api::core::v1::Container;

use super::run::PodRun;
use crate::fault::FaultKind;
use crate::network::Origin;
use crate::nodes::cluster::Cluster;
use crate::nodes::image::Family;
use crate::program::Place;

/// The user of Windows who may do everything in a container.
const ADMINISTRATOR: &str = "ContainerAdministrator";

/// A container, and whether it was restarted.
type Of<'a> = (&'a Container, bool);

pub(crate) fn break_place(
    cluster: &Cluster,
    run: &PodRun,
    (spec, restarted): Of<'_>,
    place: &mut Place,
) {
    if run.suffers(FaultKind::UserNameIgnored, cluster) {
        place.user = None;
    }
    if run.suffers(FaultKind::VolumesDenied, cluster) {
        let user = place.user.as_deref();
        place.files.denies_volumes = user.is_some_and(|user| user != ADMINISTRATOR);
    }
    if run.suffers(FaultKind::NanoWhole, cluster) && place.family == Family::Nanoserver {
        place.family = Family::Servercore;
    }
    if run.suffers(FaultKind::LinuxFieldsHonoured, cluster) {
        honour(run, spec, place);
    }
    if run.suffers(FaultKind::CredentialSpecLost, cluster) {
        place.domain = None;
    }
    place.lacks_curl = run.suffers(FaultKind::CurlMissing, cluster);
    place.apart = is_apart(cluster, run, (spec, restarted), place);
}

/// Whether a fault leaves the container without the adapter that is its.
fn is_apart(cluster: &Cluster, run: &PodRun, (spec, restarted): Of<'_>, place: &Place) -> bool {
    let of_pod = run.pod.spec.as_ref();
    let first = of_pod.and_then(|pod| pod.containers.first());
    let is_first = first.is_some_and(|first| first.name == spec.name);
    let suffers = |kind| run.suffers(kind, cluster);
    (place.host_process || !is_first) && suffers(FaultKind::NetworkApart)
        || restarted && suffers(FaultKind::RestartLosesNetwork)
}

/// Has the fields of Linux in a container's and its pod's security context take effect.
fn honour(run: &PodRun, spec: &Container, place: &mut Place) {
    let of_pod = run.pod.spec.as_ref();
    let own = spec.security_context.as_ref();
    let user = own.and_then(|context| context.run_as_user);
    let user = user.or_else(|| of_pod?.security_context.as_ref()?.run_as_user);
    // A user by number is not the administrator
    let other = user.map(|_| "ContainerUser".to_owned());
    place.user = other.or(place.user.take());
    let is_set = |field: Option<bool>| field == Some(true);
    let privileged = own.is_some_and(|context| is_set(context.privileged));
    place.sees_host = privileged || of_pod.is_some_and(|pod| is_set(pod.host_pid));
    let read_only = own.is_some_and(|context| is_set(context.read_only_root_filesystem));
    place.files.read_only_root = read_only;
    if of_pod.is_some_and(|pod| is_set(pod.host_network)) {
        place.origin = Origin::Node(run.node.name.clone());
    }
}
