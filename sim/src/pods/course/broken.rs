//! What faults change of the place of a container's programs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Container;

use super::run::PodRun;
use crate::fault::FaultKind;
use crate::network::Origin;
use crate::nodes::image::Family;
use crate::pods::container::Slot;
use crate::program::windows::pipe::PIPES;
use crate::program::{ADMINISTRATOR, Place};

pub(crate) fn break_place(slot: Slot<'_>, place: &mut Place) {
    let Slot {
        cluster, run, spec, ..
    } = slot;
    let suffers = |kind| run.suffers(kind, cluster);
    if suffers(FaultKind::UserNameIgnored) {
        place.user = None;
    }
    if suffers(FaultKind::UserNameOfPodWins) {
        let nothing_own = Container {
            security_context: None,
            ..spec.clone()
        };
        place.user = run.user(&nothing_own).or(place.user.take());
    }
    if suffers(FaultKind::VolumesDenied) {
        let user = place.user.as_deref();
        place.files.denies_volumes = user.is_some_and(|user| user != ADMINISTRATOR);
    }
    if suffers(FaultKind::NanoWhole) && place.family == Family::Nanoserver {
        place.family = Family::Servercore;
    }
    if suffers(FaultKind::LinuxFieldsHonoured) {
        honour(run, spec, place);
    }
    if suffers(FaultKind::CredentialSpecLost) {
        place.domain = None;
    }
    if suffers(FaultKind::CpuLimitIgnored) {
        place.limits.cpu = None;
    }
    if suffers(FaultKind::MemoryLimitIgnored) {
        place.limits.memory = None;
    }
    if suffers(FaultKind::NamedPipeNotMapped) && !place.host_process
        || suffers(FaultKind::NamedPipeNotServed)
    {
        place.pipes.clear();
    }
    if suffers(FaultKind::NamedPipesShared) {
        place.pipes = vec![PIPES.to_owned()];
    }
    place.limits.kills = suffers(FaultKind::OverUseKills).then(Arc::default);
    place.lacks_curl = suffers(FaultKind::CurlMissing);
    let of_pod = run.pod.spec.as_ref();
    let first = of_pod.and_then(|pod| pod.containers.first());
    let is_first = first.is_some_and(|first| first.name == spec.name);
    let restarted = slot.read(|container| container.restarts) > Some(0);
    place.apart = (place.host_process || !is_first) && suffers(FaultKind::NetworkApart)
        || restarted && suffers(FaultKind::RestartLosesNetwork);
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
