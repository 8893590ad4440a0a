//! What stands of a fixture, read from the objects as the server has them; pure.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::Value as Json;
use winconform_core::config::Durations;
use winconform_core::method::{
    Balancer, ErrorKind, FixtureName, ObservationError, ReadyFixture, ReadyPod, Served,
    lacks_namespace,
};
use winconform_core::record::ObjectName;

use crate::cluster::{ApplyError, labels};

/// Why nothing stands of what the run has no more use for.
pub(super) fn ended() -> ObservationError {
    ErrorKind::NotApplied.error("the run ended before it stood")
}

pub(super) fn as_trouble(error: ApplyError) -> ObservationError {
    match error {
        ApplyError::ObservationError { object, source } => source.kind.error(format!(
            "`{object}` could not be applied: {}",
            source.detail
        )),
        // The namespace was there when it was applied
        ApplyError::Refused {
            status, message, ..
        } if lacks_namespace(status, &message) => {
            let detail = format!("{message}: somebody else deleted the namespace during the run");
            ErrorKind::FixtureChanged.error(detail)
        }
        // What the cluster's policies refuse is not for us to judge
        refused => ErrorKind::Forbidden.error(refused.to_string()),
    }
}

/// An object's kind, namespace and name.
pub(super) fn object_name(object: &Json) -> ObjectName {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    ObjectName {
        kind: text(&object["kind"]).unwrap_or_default(),
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]).unwrap_or_default(),
    }
}

/// How long a fixture's pods have to stay Ready: without a readiness probe a pod is so while it is about to crash,
/// too.
pub(super) fn settles_in(fixture: FixtureName, durations: &Durations) -> Duration {
    match fixture {
        FixtureName::WinWebserver | FixtureName::NanoServer | FixtureName::NodeSample => {
            durations.settle
        }
        FixtureName::SlowStarter => durations.outlasts_liveness,
        // The others have one, or have no pods
        _ => Duration::ZERO,
    }
}

/// Why a fixture is not ready of whose workload nothing was seen, such as of an image that is long in
/// coming.
pub(super) fn never_begun(error: ObservationError) -> ObservationError {
    match error.kind {
        ErrorKind::FixtureFailed => ObservationError {
            kind: ErrorKind::NotApplied,
            ..error
        },
        _ => error,
    }
}

/// What stands of a fixture: what was applied, and its pods.
pub(super) fn ready_fixture(applied: &[Json], pods: Vec<ReadyPod>) -> ReadyFixture {
    let of_first = |object: &&Json| !is_of_second(object);
    let services: Vec<_> = services(applied).filter(of_first).collect();
    let Served {
        service,
        name,
        node_port,
        headless,
    } = served(&services);
    let of_pods = |protocol: &str| {
        let ports = applied.iter().find_map(|object| {
            let spec = match object["kind"].as_str()? {
                "Pod" => &object["spec"],
                "Deployment" => &object["spec"]["template"]["spec"],
                _ => return None,
            };
            spec["containers"][0]["ports"].as_array()
        });
        let mut ports = ports.into_iter().flatten();
        let of = ports.find(|port| port["protocol"].as_str().unwrap_or("TCP") == protocol);
        port(&of?["containerPort"])
    };
    let mut services = services.into_iter();
    ReadyFixture {
        service,
        name,
        node_port,
        headless,
        port: of_pods("TCP"),
        udp: of_pods("UDP"),
        pods,
        domain: None,
        balancer: services.find_map(Balancer::of),
        second: None,
        second_broken: None,
    }
}

/// Whether an object is a Service in the second family of the cluster's addresses.
pub(super) fn is_of_second(object: &Json) -> bool {
    !object["metadata"]["labels"][labels::FAMILY].is_null()
}

/// The Services among objects.
pub(super) fn services(objects: &[Json]) -> impl Iterator<Item = &Json> {
    objects.iter().filter(|object| object["kind"] == "Service")
}

/// How some Services serve: the first that has an address, and the first that has none.
pub(super) fn served(services: &[&Json]) -> Served {
    let is_headless = |service: &&&Json| service["spec"]["clusterIP"] == "None";
    let named = |service: &&Json| Some(service["metadata"]["name"].as_str()?.to_owned());
    let service = services.iter().find(|service| !is_headless(service));
    Served {
        service: service.and_then(|service| service_address(service)),
        name: service.and_then(named),
        node_port: service.and_then(|service| port(&service["spec"]["ports"][0]["nodePort"])),
        headless: services.iter().find(is_headless).and_then(named),
    }
}

fn port(port: &Json) -> Option<u16> {
    port.as_u64().and_then(|port| u16::try_from(port).ok())
}

/// A pod that runs; `None` while the API does not tell where.
pub(super) fn ready_pod(pod: &Json) -> Option<ReadyPod> {
    let text = |value: &Json| value.as_str().map(str::to_owned);
    Some(ReadyPod {
        name: text(&pod["metadata"]["name"])?,
        uid: text(&pod["metadata"]["uid"])?,
        node: text(&pod["spec"]["nodeName"])?,
        addresses: addresses(pod)?,
        restarts: restarts(pod),
    })
}

/// A pod's addresses; `None` while the API tells none, or one that is none.
pub(super) fn addresses(pod: &Json) -> Option<Vec<IpAddr>> {
    let addresses = pod["status"]["podIPs"].as_array()?.iter();
    let addresses = addresses.map(|each| each["ip"].as_str()?.parse().ok());
    addresses.collect()
}

/// How often a pod's containers were started again.
pub(super) fn restarts(pod: &Json) -> u64 {
    let statuses = pod["status"]["containerStatuses"].as_array();
    let statuses = statuses.into_iter().flatten();
    let counts = statuses.filter_map(|status| status["restartCount"].as_u64());
    counts.sum()
}

fn service_address(service: &Json) -> Option<(IpAddr, u16)> {
    let address = service["spec"]["clusterIP"].as_str()?.parse().ok()?;
    let port = service["spec"]["ports"][0]["port"].as_u64()?;
    Some((address, u16::try_from(port).ok()?))
}
