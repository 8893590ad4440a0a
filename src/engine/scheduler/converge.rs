//! How long a check may take until it holds.

use std::time::Duration;

use winconform_core::config::Durations;
use winconform_core::fixture::{FixtureName, Until};
use winconform_core::plan::Check;

/// How long a check may take until it holds: the longest of what its assertions may take.
pub(super) fn time_to_converge(check: &Check, durations: &Durations) -> Duration {
    let of_each = check.assertions.iter().map(|assertion| {
        let traits = assertion.test.traits();
        let mut names = assertion.needs.iter().map(|(key, _)| key.name);
        // Its volume has yet to be made, attached and formatted
        let awaits_volume =
            |name: FixtureName| name.claim().is_some() && name.until() == Until::Placed;
        if names.clone().any(FixtureName::is_autoscaled) {
            // A pod of the first five minutes counts once it has been measured for a window, which some adapters
            // have of minutes (`pkg/controller/podautoscaler/replica_calculator.go`, `groupPods`)
            durations.sandbox * 2
        } else if names.clone().any(awaits_volume) {
            durations.sandbox
        } else if traits.needs_source && names.any(|name| name == FixtureName::LOAD_BALANCER) {
            durations.balancer
        } else if traits.is_slow {
            durations.failing
        } else {
            durations.converge
        }
    });
    of_each.fold(durations.converge, Duration::max)
}
