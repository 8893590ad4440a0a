//! How many execs one place may take.

/// One for each look that has to hold, and one for what comes to stand long after the rest.
const EXECS: u64 = 3;
/// The place that is asked for the cluster's DNS suffix, too, and once more for the controls of what is
/// observed from each node.
const TOLD: &str = "prober-linux";
const MORE: u64 = 2;

/// How many execs a place may take, by its pod, with a curl that takes many targets.
pub(crate) fn most_execs(place: &str) -> u64 {
    EXECS + MORE * u64::from(place.ends_with(TOLD))
}
