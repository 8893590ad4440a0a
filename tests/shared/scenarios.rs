//! Which claim each scenario is about.

use winconform_core::method::Scenario;

/// The claim that a scenario is about, and its pod.
pub(crate) fn of(scenario: Scenario) -> (&'static str, &'static str) {
    match scenario {
        Scenario::LivenessProbe => ("pod.liveness-probe", "liveness-windows-2022"),
        Scenario::MemoryOverUse => ("limit.no-oom-kill", "limited-windows-2022"),
        Scenario::NetworkAfterRestart => ("pod.network-survives-restart", "restarted-windows-2022"),
        Scenario::PreStop => ("pod.pre-stop", "hooked-windows-2022"),
        Scenario::ReadinessProbe => ("pod.readiness-probe", "readiness-windows-2022"),
        Scenario::StartupProbe => ("pod.startup-probe", "startup-windows-2022"),
        Scenario::SubPathRelease => ("storage.subpath[*", "released-windows-2022"),
        Scenario::TerminationGrace => ("pod.termination-grace", "slow-windows-2022"),
        Scenario::WorkloadSignals => ("pod.workload-signals", "polite-windows-2022"),
    }
}
