//! The API server: version, platform, feature gates, groups and the metrics API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use winconform_core::text::printable;

use super::read::{Unread, find, get, text};
use crate::cluster::objects::status::{items, word};
use crate::transport::Api;

pub(super) const VERSION: &str = "/version";
pub(super) const METRICS: &str = "/metrics";
pub(super) const GROUPS: &str = "/apis";
pub(super) const IDENTITY: &str = "/api/v1/namespaces/kube-system";
pub(super) const METRICS_API: &str =
    "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";
pub(super) const GMSA: &str = "/apis/windows.k8s.io/v1";

/// The text at a JSON pointer (RFC 6901) in the answer at a path.
pub(super) fn text_at(read: &Result<Json, Unread>, path: &str, at: &str) -> Result<String, Unread> {
    let object = read.as_ref().map_err(Clone::clone)?;
    match object.pointer(at).and_then(Json::as_str) {
        Some(text) if !text.is_empty() => Ok(printable(text)),
        _ => Err(Unread::reason(path, &format!("the answer has no `{at}`"))),
    }
}

/// The feature gates: `kubernetes_feature_enabled{name="X",stage="…"} 1` (component-base
/// `metrics/prometheus/feature`).
pub(super) async fn gates(api: &Api) -> Result<BTreeMap<String, bool>, Unread> {
    let text = text(api, METRICS).await?;
    let gates: BTreeMap<_, _> = text.lines().filter_map(gate).collect();
    if gates.is_empty() {
        let why = "it has no kubernetes_feature_enabled";
        return Err(Unread::reason(METRICS, why));
    }
    Ok(gates)
}

fn gate(line: &str) -> Option<(String, bool)> {
    let rest = line.strip_prefix("kubernetes_feature_enabled{")?;
    let (labels, value) = rest.split_once("} ")?;
    let (_, name) = labels.split_once("name=\"")?;
    let (name, _) = name.split_once('"')?;
    let enabled = match value.trim() {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some((printable(name), enabled))
}

/// The names of the API groups, also of groups whose server is down.
pub(super) async fn groups(api: &Api) -> Result<BTreeSet<String>, Unread> {
    let body = get(api, GROUPS).await?;
    if !body["groups"].is_array() {
        return Err(Unread::reason(GROUPS, "the answer has no `groups`"));
    }
    Ok(items(&body["groups"]).map(|g| word(&g["name"])).collect())
}

/// Whether `metrics.k8s.io` is registered; unknown where it is not available, as while its server restarts.
pub(super) async fn metrics_api(api: &Api) -> Result<bool, Unread> {
    let Some(service) = find(api, METRICS_API).await? else {
        return Ok(false);
    };
    let mut conditions = items(&service["status"]["conditions"]);
    match conditions.any(|c| c["type"] == "Available" && c["status"] == "True") {
        true => Ok(true),
        false => Err(Unread::reason(METRICS_API, "its server is not available")),
    }
}

pub(super) async fn gmsa_served(api: &Api) -> Result<bool, Unread> {
    let body = find(api, GMSA).await?.unwrap_or_default();
    Ok(items(&body["resources"]).any(|resource| resource["kind"] == "GMSACredentialSpec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_from_metrics() {
        let on = r#"kubernetes_feature_enabled{name="WinDSR",stage=""} 1"#;
        let off = r#"kubernetes_feature_enabled{name="InPlace",stage="ALPHA"} 0"#;
        assert_eq!(gate(on), Some(("WinDSR".to_owned(), true)));
        assert_eq!(gate(off), Some(("InPlace".to_owned(), false)));
        for none in [
            "# HELP kubernetes_feature_enabled [BETA] This metric",
            "kubernetes_feature_enabled{stage=\"\"} 1",
            "kubernetes_feature_enabled{name=\"X\",stage=\"\"} NaN",
            "apiserver_request_total{name=\"X\"} 1",
        ] {
            assert_eq!(gate(none), None, "{none}");
        }
    }
}
