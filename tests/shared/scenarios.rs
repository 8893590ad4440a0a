//! Which checks play each scenario, by the suites.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use winconform_core::method::{Scenario, Test};
use winconform_core::suite::Case;

use super::suites::whole;

/// For each scenario the pattern of the checks of the first case that asks for it, and its pod.
static PLAYED: LazyLock<BTreeMap<&'static str, (String, String)>> = LazyLock::new(|| {
    let asks = |case: &Case| match &case.test {
        Test::Scenario(asked) => {
            let (query, pattern) = (&asked.query, format!("{}[*", case.id()));
            let pod = format!("{}-windows-2022", query.within.pod.name);
            Some((query.scenario.as_str(), (pattern, pod)))
        }
        _ => None,
    };
    let suites = whole();
    let asked = suites.cases.iter().rev();
    asked.filter_map(asks).collect()
});

/// The pattern of the checks that play a scenario, and its pod.
pub(crate) fn of(scenario: Scenario) -> (&'static str, &'static str) {
    let (pattern, pod) = &PLAYED[scenario.as_str()];
    (pattern, pod)
}
