//! The kinds of product faults, and the catalogue line of each.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};

use super::place::Place;

/// What follows a fault's `=`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// Nothing.
    None,
    /// A place of nodes; by default everywhere.
    Nodes,
    /// A place of Windows nodes; by default all of them.
    WindowsNodes,
    /// A place of pods, which may be a namespace; by default everywhere.
    Pods,
    /// A place of pods on Windows nodes, which may be a namespace; by default all of them.
    WindowsPods,
    /// Two places.
    Way,
}

impl Parameter {
    /// How a user writes it.
    pub fn written(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Nodes | Self::WindowsNodes => "[=PLACE]",
            Self::Pods | Self::WindowsPods => "[=PLACE|namespace/NAME]",
            Self::Way => "=FROM:TO",
        }
    }

    /// The default place.
    pub(super) fn unsaid(self) -> Place {
        match self {
            _ if self.is_of_windows() => Place::Windows,
            _ => Place::Everywhere,
        }
    }

    /// Whether it covers only Windows nodes and what runs on them.
    pub(crate) fn is_of_windows(self) -> bool {
        matches!(self, Self::WindowsNodes | Self::WindowsPods)
    }

    /// Whether it may be a namespace.
    pub(crate) fn takes_namespaces(self) -> bool {
        matches!(self, Self::Pods | Self::WindowsPods)
    }
}

/// A line of the catalogue of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultInfo {
    /// The kind.
    pub kind: FaultKind,
    /// The fault's name.
    pub name: &'static str,
    /// What follows `=`.
    pub parameter: Parameter,
    /// What is wrong in the cluster.
    pub what: String,
}

/// A kind of fault; `kinds.yaml` says what is wrong in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FaultKind {
    KubeProxyDead,
    Ipv6ProxyDead,
    Ipv6Dropped,
    NodePortClosed,
    NodePortNotForwarded,
    LocalPolicyDrops,
    TrafficCut,
    TrafficCutOneWay,
    DnsDown,
    DnsSuffixWrong,
    DnsWrongAddress,
    PartialNamesResolve,
    HostDnsAnswers,
    DnsConfigIgnored,
    DnsLate,
    DnsSlow,
    VipSticks,
    EndpointStale,
    EmptiedServiceDead,
    ReusedAddressDead,
    SharedBackendLost,
    AffinityIgnored,
    MetadataAnswers,
    MtuBlackHole,
    AnswersBrokenOff,
    SourceRewritten,
    HairpinBroken,
    OwnAddressDead,
    AdapterMissing,
    ConnectForbidden,
    NetworkApart,
    RestartLosesNetwork,
    OwnNodeUnreached,
    PolicyIgnored,
    PolicyClosed,
    PolicyNamespacesIgnored,
    UdpDropped,
    PingDropped,
    SecurityGroup,
    OutboundPingAnswers,
    OutboundCut,
    CaptiveProxy,
    ServiceAnswersWrong,
    LoadBalancerDead,
    LoadBalancerExhausted,
    NodeServiceIpAnswers,
    NodeServiceIpResets,
    RemoteServiceIpAnswers,
    LocalNodePortAnswers,
    NodeLabelWrong,
    NodeLabelsMissing,
    Untainted,
    TaintIgnored,
    RequestsIgnored,
    DeploymentsHalfRolled,
    ReplicaSetsStuck,
    ReplicationControllersStuck,
    StatefulSetsStuck,
    StatefulSetsRename,
    DaemonSetsShort,
    JobsNeverOver,
    CronJobsIdle,
    KubeletSkewed,
    RuntimeDocker,
    ContainerdOld,
    NothingReserved,
    NodeNotReady,
    PlegUnhealthy,
    NodeVanishes,
    NodeReboots,
    ClockWrong,
    MemoryPressure,
    ImageMissing,
    PullFails,
    PullSlow,
    ImageBuildWrong,
    AnyBuildRuns,
    PlatformUnasked,
    PauseImageWrong,
    SandboxFails,
    CrowdFails,
    HandlerUnknown,
    ServercoreCrashes,
    CrashLoop,
    ListensLate,
    ProbeIgnored,
    ProbeKillsHealthy,
    StartupProbeIgnored,
    ReadyStays,
    PostStartSkipped,
    PreStopSkipped,
    InitOutOfOrder,
    InitNotRestarted,
    SidecarsAwaited,
    GraceIgnored,
    EndsSlow,
    ExitCodeLost,
    ZeroLost,
    HostProcessRefused,
    RelativeCommandsLost,
    ExecRefused,
    ExecSlow,
    ExecOutputLost,
    ExecRpcUnavailable,
    ToolsLocalised,
    CurlMissing,
    CurlPrintsAnew,
    LogsEmpty,
    LogsCut,
    FilesMissing,
    VariablesLost,
    HostAliasesLost,
    VolumesApart,
    EmptyDirLostOnRestart,
    SubPathHeld,
    SubPathsHeld,
    VolumesDenied,
    ReadOnlyIgnored,
    IdsUnreported,
    RootsShared,
    ModesHonoured,
    MemoryMediumHonoured,
    NfsMounts,
    CsiMountsNothing,
    VolumesForgotten,
    SnapshotsEmpty,
    VolumesGrow,
    BlockDevicesMapped,
    HostPathEmpty,
    ProcessesShared,
    HyperVIsolation,
    LinuxFieldsHonoured,
    UserNameIgnored,
    UserNameOfPodWins,
    CredentialSpecLost,
    SharesRefused,
    SharesOpen,
    SharesOffered,
    NanoWhole,
    NonRootIgnored,
    ImageUsersChecked,
    CpuLimitIgnored,
    MemoryLimitIgnored,
    OverUseKills,
    LinksProjected,
    MountsPropagated,
    NamedPipeNotMapped,
    NamedPipeNotServed,
    NamedPipesShared,
    StatsMissing,
    CpuUnmeasured,
    HugePagesHonoured,
    OtherOsAdmitted,
    LastWordsLost,
    ServicesByHand,
    CsiProxyMissing,
    DiskLow,
    PortsExcluded,
    PageFileMissing,
    DiskEncrypted,
    BootLosesNetwork,
    BootBreaksSandboxes,
    ShutdownEndsPods,
}

/// The lines of the catalogue, in the order of the kinds.
pub(super) static CATALOGUE: LazyLock<Vec<FaultInfo>> = LazyLock::new(|| {
    let mut lines: BTreeMap<String, (Parameter, String)> =
        serde_saphyr::from_str(include_str!("kinds.yaml")).expect("kinds.yaml is whole");
    assert_eq!(lines.len(), FaultKind::iter().len(), "a line for each kind");
    let info = |kind: FaultKind| {
        let name = <&str>::from(kind);
        let (parameter, what) = lines.remove(name).expect("kinds.yaml has every kind");
        FaultInfo {
            kind,
            name,
            parameter,
            what,
        }
    };
    FaultKind::iter().map(info).collect()
});

impl FaultKind {
    /// Its line of the catalogue.
    pub fn info(self) -> &'static FaultInfo {
        &CATALOGUE[self as usize]
    }
}
