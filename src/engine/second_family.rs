//! Services in the second IP family of a cluster that has two, and what stands of them.
//!
//! Each has its own address family alone, beside the Service of the first: before January 2026
//! kube-proxy on Windows mixed up the load balancers of a Service with two (kubernetes issue 136240,
//! mended by 136241), and single-family Services are what was documented for Windows until then
//! (Kubernetes, IPv4/IPv6 dual-stack). So the name of such a Service resolves in that family alone.

use serde_json::{Value as Json, json};
use winconform_core::facts::IpFamily;
use winconform_core::method::{ObservationError, ReadyFixture};

use super::readiness::{is_of_second, served, services};
use crate::cluster::{ApplyError, labels};

/// Adds the Services of a fixture once more, in this family.
pub(super) fn add(objects: &mut Vec<Json>, family: IpFamily) {
    let mut more: Vec<_> = services(objects).cloned().collect();
    for service in &mut more {
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        service["metadata"]["name"] = json!(format!("{name}-{}", family.as_str()));
        service["metadata"]["labels"][labels::FAMILY] = json!(family.as_str());
        service["spec"]["ipFamilyPolicy"] = json!("SingleStack");
        service["spec"]["ipFamilies"] = json!([family.to_string()]);
    }
    objects.extend(more);
}

/// Adds to what stands of a fixture what of these was applied, which is none where the server has no
/// addresses of the family for Services; or why one of them could not be.
pub(super) fn complete(
    ready: &mut ReadyFixture,
    applied: &[Json],
    broken: Option<ObservationError>,
) {
    let own: Vec<_> = applied
        .iter()
        .filter(|object| is_of_second(object))
        .collect();
    ready.second = broken.is_none().then(|| served(&own));
    ready.second_broken = broken;
}

/// Whether the server has no addresses of that family for Services: it refuses the object in these
/// words (kubernetes, `pkg/registry/core/service/storage/alloc.go`).
pub(super) fn is_unknown_to(error: &ApplyError, object: &Json) -> bool {
    let of_family = |message: &str| message.contains("not configured on this cluster");
    is_of_second(object)
        && matches!(error, ApplyError::Refused { status: 422, message, .. } if of_family(message))
}
