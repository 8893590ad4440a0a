//! The kinds of product faults, what each does and what it changes.

use super::place::Place;

/// What stands behind a fault's `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Nothing.
    None,
    /// A place of nodes; everywhere if nothing is said.
    Nodes,
    /// A place of Windows nodes; all of them if nothing is said.
    WindowsNodes,
    /// A place of pods, which may be a namespace; everywhere if nothing is said.
    Pods,
    /// The same of pods on Windows nodes; all of them if nothing is said.
    WindowsPods,
    /// Two places.
    Way,
}

impl Parameter {
    /// How it is written.
    pub fn written(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Nodes | Self::WindowsNodes => "[=PLACE]",
            Self::Pods | Self::WindowsPods => "[=PLACE|namespace/NAME]",
            Self::Way => "=FROM:TO",
        }
    }

    /// The place that is meant when none is said.
    pub(super) fn unsaid(self) -> Place {
        match self {
            _ if self.is_of_windows() => Place::Windows,
            _ => Place::Everywhere,
        }
    }

    /// Whether only Windows nodes and what runs on them can be meant.
    pub(crate) fn is_of_windows(self) -> bool {
        matches!(self, Self::WindowsNodes | Self::WindowsPods)
    }

    /// Whether a namespace can be meant.
    pub(crate) fn takes_namespaces(self) -> bool {
        matches!(self, Self::Pods | Self::WindowsPods)
    }
}

/// A line of the catalogue of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultInfo {
    /// The kind.
    pub kind: FaultKind,
    /// The fault's name.
    pub name: &'static str,
    /// What stands behind `=`.
    pub parameter: Parameter,
    /// What is wrong in the cluster.
    pub what: &'static str,
}

/// Makes the kinds and their catalogue of one list.
macro_rules! kinds {
    ($($kind:ident $name:literal $parameter:ident $what:literal)+) => {
        /// A kind of fault.
        #[expect(
            clippy::doc_markdown,
            reason = "each is documented by what is printed of it, which is no markdown"
        )]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind {
            $(#[doc = $what] $kind,)+
        }

        impl FaultKind {
            /// Its line of the catalogue.
            pub fn info(self) -> &'static FaultInfo {
                match self {
                    $(Self::$kind => &FaultInfo {
                        kind: Self::$kind,
                        name: $name,
                        parameter: Parameter::$parameter,
                        what: $what,
                    },)+
                }
            }
        }

        /// All kinds.
        pub(super) const KINDS: &[FaultKind] = &[$(FaultKind::$kind),+];
    };
}

kinds! {
    KubeProxyDead "kube-proxy-dead" Nodes
        "Service IPs time out from there, and NodePorts of its nodes are dead"
    Ipv6ProxyDead "ipv6-proxy-dead" Nodes
        "Service IPs of IPv6 time out from there, and NodePorts of its nodes are dead over IPv6"
    Ipv6Dropped "ipv6-dropped" Nodes
        "nothing over IPv6 passes between its nodes and others"
    NodePortClosed "node-port-closed" Nodes
        "nothing comes in by NodePorts of its nodes"
    TrafficCut "traffic-cut" Way
        "no packet passes between the two, either way"
    TrafficCutOneWay "traffic-cut-one-way" Way
        "no connection can be opened from the first to the second"
    DnsDown "dns-down" Nodes
        "the cluster's DNS answers nobody there"
    DnsSuffixWrong "dns-suffix-wrong" WindowsNodes
        "pods there get a DNS suffix that is not the cluster's"
    DnsWrongAddress "dns-wrong-address" Nodes
        "names of Services resolve to an address that is not theirs"
    PartialNamesResolve "partial-names-resolve" WindowsNodes
        "its Windows pods complete names with dots, too, which is documented not to work"
    DnsSlow "dns-slow" Nodes
        "each answer of the cluster's DNS takes four seconds"
    VipSticks "vip-sticks" Nodes
        "a Service IP always leads to the same backend from there"
    EndpointStale "endpoint-stale" Nodes
        "Service IPs go on leading to backends that were deleted"
    MtuBlackHole "mtu-black-hole" Nodes
        "packets above 1400 bytes from and to a node there are lost without a word"
    SourceRewritten "source-rewritten" Nodes
        "connections from pods there arrive with their node's address"
    HairpinBroken "hairpin-broken" Nodes
        "a pod there cannot reach itself through its Service"
    OwnAddressDead "own-address-dead" Nodes
        "a pod there cannot reach itself by its own address"
    PolicyIgnored "policy-ignored" Nodes
        "NetworkPolicies do not keep anybody from the pods there"
    PolicyClosed "policy-closed" Nodes
        "pods there that a NetworkPolicy selects are reached by nobody, whomever it admits"
    UdpDropped "udp-dropped" Nodes
        "no UDP but DNS passes from there"
    PingDropped "ping-dropped" Nodes
        "no ping passes from there"
    OutboundPingAnswers "outbound-ping-answers" WindowsNodes
        "pings from its Windows pods come back from outside, which is documented not to work"
    OutboundCut "outbound-cut" Nodes
        "nothing gets from there to what is outside the cluster"
    CaptiveProxy "captive-proxy" Nodes
        "something captive answers for every outside address with 200 and a foreign page"
    ServiceAnswersWrong "service-answers-wrong" None
        "something captive answers every Service IP with 200 and a foreign page"
    LoadBalancerDead "load-balancer-dead" None
        "its load balancer lets nothing through: clients outside get no answer at its addresses"
    LoadBalancerExhausted "load-balancer-exhausted" None
        "its load balancer has no address left: Services that wait for one stay pending"
    NodeServiceIpAnswers "node-service-ip-answers" WindowsNodes
        "its Windows nodes reach Service IPs, which is documented not to work"
    NodeServiceIpResets "node-service-ip-resets" WindowsNodes
        "a Windows node's connection to a Service IP is reset instead of timing out"
    LocalNodePortAnswers "local-node-port-answers" WindowsNodes
        "its Windows nodes reach NodePorts on themselves, which is documented not to work"
    NodeLabelWrong "node-label-wrong" WindowsNodes
        "its nodes carry the windows-build label of another build"
    NodeLabelsMissing "node-labels-missing" Nodes
        "its nodes lack kubernetes.io/os and kubernetes.io/arch"
    Untainted "untainted" WindowsNodes
        "its Windows nodes lack the taint os=windows:NoSchedule"
    TaintIgnored "taint-ignored" Nodes
        "pods that do not tolerate its nodes' taints are bound to them all the same, but for those that keep away from others"
    RequestsIgnored "requests-ignored" Nodes
        "pods that ask for more than its nodes have left are bound to them all the same, but for those that keep away from others"
    KubeletSkewed "kubelet-skewed" Nodes
        "its kubelets are four minor versions behind the API server"
    RuntimeDocker "runtime-docker" Nodes
        "its nodes report a Docker of dockershim's time as their container runtime"
    NothingReserved "nothing-reserved" Nodes
        "its nodes leave all they have to pods: allocatable is capacity"
    NodeNotReady "node-not-ready" Nodes
        "its nodes are not Ready: their network plugin is not initialised"
    NodeVanishes "node-vanishes" Nodes
        "its nodes fall silent: no lease, no status, no kubelet, no pod"
    NodeReboots "node-reboots" Nodes
        "its nodes boot once: all containers end and start again, exec is refused meanwhile"
    ClockWrong "clock-wrong" Nodes
        "its nodes' clocks are an hour ahead"
    MemoryPressure "memory-pressure" Nodes
        "its nodes are out of memory and evict"
    ImageMissing "image-missing" WindowsNodes
        "servercore images are not on its nodes, and have no variant that they can pull"
    PullFails "pull-fails" Pods
        "no image can be pulled: the registry does not answer"
    PullSlow "pull-slow" Pods
        "each pull takes a hundred times as long"
    ImageBuildWrong "image-build-wrong" WindowsNodes
        "images are pulled whose build its nodes cannot run"
    AnyBuildRuns "any-build-runs" WindowsNodes
        "its hosts pull and run images of any Windows build, as under Hyper-V isolation"
    PlatformUnasked "platform-unasked" Nodes
        "images are pulled there whatever platform they are of"
    PauseImageWrong "pause-image-wrong" WindowsNodes
        "the pause image is of another build: no sandbox starts"
    SandboxFails "sandbox-fails" Pods
        "no sandbox gets a network"
    NetworkNeedsSelector "network-needs-selector" WindowsNodes
        "Windows pods there get no network unless they select their node by kubernetes.io/os"
    HandlerUnknown "handler-unknown" Nodes
        "its runtime knows no RuntimeClass handler but its default"
    ServercoreCrashes "servercore-crashes" WindowsNodes
        "servercore containers die at start with 0xC0000142 (STATUS_DLL_INIT_FAILED)"
    CrashLoop "crash-loop" Pods
        "containers end with exit code 1: what runs, and what is started, after a moment"
    ProbeIgnored "probe-ignored" Pods
        "probes count as passed whatever they find"
    PreStopSkipped "pre-stop-skipped" Pods
        "preStop hooks are not run"
    GraceIgnored "grace-ignored" Pods
        "containers are killed at once when their pod is deleted"
    ExitCodeLost "exit-code-lost" Pods
        "the runtime reports exit code 0 for whatever ended"
    HostProcessRefused "host-process-refused" WindowsNodes
        "the runtime cannot run HostProcess containers"
    ExecRefused "exec-refused" Pods
        "the kubelet refuses every exec"
    ExecOutputLost "exec-output-lost" Pods
        "an exec's output is lost, its exit code is not"
    ExecRpcUnavailable "exec-rpc-unavailable" WindowsPods
        "containerd cannot start a program in a running Windows container, except a HostProcess one"
    ToolsLocalised "tools-localised" WindowsNodes
        "ping speaks Japanese, in its code page"
    LogsEmpty "logs-empty" Pods
        "logs are empty whatever was printed"
    LogsCut "logs-cut" Pods
        "logs lack their last line"
}
