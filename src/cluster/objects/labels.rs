//! Every label of ours, in one place.

/// Marks an object as ours; we never change an object without it.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub const WINCONFORM: &str = "winconform";
/// The run that created an object.
pub const RUN: &str = "winconform/run";
/// The fixture an object belongs to.
pub const FIXTURE: &str = "winconform/fixture";
/// The pool an object belongs to.
pub const POOL: &str = "winconform/pool";
/// The ordinal of the node, in its pool, that an object belongs to.
pub const NODE: &str = "winconform/node";

/// The address family of a Service, if it is the cluster's second.
pub const FAMILY: &str = "winconform/family";

/// Marks an object that something other than the run is to remove.
pub const MAY_GO: &str = "winconform/may-go";

/// The annotation with which the cluster autoscaler removes a node although a pod is on it that has no controller
/// (kubernetes/autoscaler, cluster-autoscaler/FAQ.md, "What types of pods can prevent CA from removing a node?").
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";

/// The annotation of the namespace kube-system that forbids runs on a cluster; its value says why. The only one
/// that we never set.
pub const PROTECTED: &str = "winconform/protected";

/// A label selector for everything of ours, or of one run; not yet encoded for a query.
pub fn selector(run: Option<&str>) -> String {
    match run {
        None => format!("{MANAGED_BY}={WINCONFORM}"),
        Some(run) => format!("{MANAGED_BY}={WINCONFORM},{RUN}={run}"),
    }
}
