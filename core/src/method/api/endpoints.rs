//! The endpoints of a Service, as its `EndpointSlices` have them.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::state::text;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ObservedEndpoint {
    pub pod: Option<String>,
    pub address: Option<String>,
    /// Its port; the first of its slice.
    pub port: Option<u16>,
    /// Whether its condition `ready` is true.
    pub ready: bool,
}

/// The path of a Service's `EndpointSlices`.
pub fn slices_of(namespace: &str, service: &str) -> String {
    format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices\
         ?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
    )
}

/// Whether a list of `EndpointSlices` has a pod as a ready endpoint.
pub fn has_ready_endpoint(slices: &Json, pod: &str) -> bool {
    let slices = slices["items"].as_array().into_iter().flatten();
    let mut endpoints = slices.flat_map(read_slice);
    endpoints.any(|endpoint| endpoint.ready && endpoint.pod.as_deref() == Some(pod))
}

/// The endpoints of an `EndpointSlice`. A missing `ready` means ready (discovery.k8s.io/v1).
pub(super) fn read_slice(slice: &Json) -> Vec<ObservedEndpoint> {
    let port = slice["ports"][0]["port"].as_u64();
    let port = port.and_then(|port| u16::try_from(port).ok());
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let read = |endpoint: &Json| ObservedEndpoint {
        pod: text(&endpoint["targetRef"]["name"]),
        address: text(&endpoint["addresses"][0]),
        port,
        ready: endpoint["conditions"]["ready"].as_bool().unwrap_or(true),
    };
    endpoints.map(read).collect()
}
