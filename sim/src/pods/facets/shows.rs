//! Where each kind of fault is seen in full.

use crate::fault::FaultKind;

/// Where a kind of fault is seen in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    /// In connections and names: `network/tests/facets.rs`.
    InTheNetwork,
    /// Beside this, at once: in nodes, kubelets and pods that run.
    AtOnce,
    /// Beside this, in pods that are started from now on.
    AtStart,
    /// In what this scene has none of, pods that are refused and Services: the project's whole runs.
    InWholeRuns,
}

pub(crate) fn shows(kind: FaultKind) -> Shows {
    use FaultKind as Kind;
    match kind {
        Kind::KubeProxyDead
        | Kind::Ipv6ProxyDead
        | Kind::Ipv6Dropped
        | Kind::NodePortClosed
        | Kind::TrafficCut
        | Kind::TrafficCutOneWay
        | Kind::DnsDown
        | Kind::DnsSuffixWrong
        | Kind::DnsWrongAddress
        | Kind::PartialNamesResolve
        | Kind::DnsSlow
        | Kind::VipSticks
        | Kind::EndpointStale
        | Kind::MtuBlackHole
        | Kind::SourceRewritten
        | Kind::HairpinBroken
        | Kind::OwnAddressDead
        | Kind::PolicyIgnored
        | Kind::PolicyClosed
        | Kind::UdpDropped
        | Kind::PingDropped
        | Kind::OutboundPingAnswers
        | Kind::CaptiveProxy
        | Kind::OutboundCut
        | Kind::ServiceAnswersWrong
        | Kind::LoadBalancerDead
        | Kind::NodeServiceIpAnswers
        | Kind::NodeServiceIpResets
        | Kind::LocalNodePortAnswers => Shows::InTheNetwork,
        Kind::NodeLabelWrong
        | Kind::NodeLabelsMissing
        | Kind::Untainted
        | Kind::TaintIgnored
        | Kind::KubeletSkewed
        | Kind::RuntimeDocker
        | Kind::NothingReserved
        | Kind::NodeNotReady
        | Kind::NodeVanishes
        | Kind::NodeReboots
        | Kind::ClockWrong
        | Kind::MemoryPressure
        | Kind::CrashLoop
        | Kind::ProbeIgnored
        | Kind::PreStopSkipped
        | Kind::GraceIgnored
        | Kind::ExitCodeLost
        | Kind::ExecRefused
        | Kind::ExecOutputLost
        | Kind::ExecRpcUnavailable
        | Kind::ToolsLocalised
        | Kind::LogsEmpty
        | Kind::LogsCut => Shows::AtOnce,
        Kind::RequestsIgnored
        | Kind::AnyBuildRuns
        | Kind::PlatformUnasked
        | Kind::LoadBalancerExhausted => Shows::InWholeRuns,
        Kind::ImageMissing
        | Kind::PullFails
        | Kind::PullSlow
        | Kind::ImageBuildWrong
        | Kind::PauseImageWrong
        | Kind::SandboxFails
        | Kind::NetworkNeedsSelector
        | Kind::HandlerUnknown
        | Kind::ServercoreCrashes
        | Kind::HostProcessRefused => Shows::AtStart,
    }
}
