//! When the faults of a simulation come and go.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::fault::FaultPlan;

/// Sets and lifts faults at their moments.
pub(super) async fn go_by(cluster: &Cluster, plan: &FaultPlan) {
    let mut passed = Duration::ZERO;
    for (moment, fault, sets) in plan.later() {
        cluster.clock.pass(moment.saturating_sub(passed)).await;
        passed = moment;
        if sets {
            cluster.faults.set(fault);
        } else {
            cluster.faults.lift(&fault);
        }
    }
}
