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
    /// What changes by it, and nothing else: patterns of what can be observed, a subject and the
    /// values it must have. `PLACE`, `FROM` and `TO` stand for the fault's own.
    pub facets: &'static [&'static str],
}

/// Makes the kinds and their catalogue of one list.
macro_rules! kinds {
    ($($kind:ident $name:literal $parameter:ident $what:literal [$($facet:literal),+ $(,)?])+) => {
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
                        facets: &[$($facet),+],
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
        "Service IPs time out from there, and NodePorts of its nodes are dead" [
        "connection via=cluster-ip from=PLACE",
        "connection via=node-port to=PLACE",
        "connection via=load-balancer from=PLACE",
        "connection via=load-balancer from=outside to=PLACE",
        "balance via=cluster-ip from=PLACE",
        "hairpin via=cluster-ip from=PLACE",
        "stale via=cluster-ip from=PLACE",
        "lookup from=PLACE",
    ]
    Ipv6ProxyDead "ipv6-proxy-dead" Nodes
        "Service IPs of IPv6 time out from there, and NodePorts of its nodes are dead over IPv6" [
        "connection via=cluster-ip family=ipv6 from=PLACE",
        "connection via=node-port family=ipv6 to=PLACE",
    ]
    Ipv6Dropped "ipv6-dropped" Nodes
        "nothing over IPv6 passes between its nodes and others" [
        "connection family=ipv6 from=PLACE crosses=nodes",
        "connection family=ipv6 to=PLACE crosses=nodes",
    ]
    NodePortClosed "node-port-closed" Nodes
        "nothing comes in by NodePorts of its nodes" [
        "connection via=node-port to=PLACE",
    ]
    TrafficCut "traffic-cut" Way
        "no packet passes between the two, either way" [
        "connection from=FROM to=TO",
        "connection from=TO to=FROM",
        "source from=FROM to=TO",
        "source from=TO to=FROM",
        "lookup from=FROM dns=TO",
        "lookup from=TO dns=FROM",
    ]
    TrafficCutOneWay "traffic-cut-one-way" Way
        "no connection can be opened from the first to the second" [
        "connection from=FROM to=TO",
        "source from=FROM to=TO",
        "lookup from=FROM dns=TO",
    ]
    DnsDown "dns-down" Nodes
        "the cluster's DNS answers nobody there" [
        "lookup from=PLACE",
    ]
    DnsSuffixWrong "dns-suffix-wrong" WindowsNodes
        "pods there get a DNS suffix that is not the cluster's" [
        "lookup from=PLACE name=short",
    ]
    DnsWrongAddress "dns-wrong-address" Nodes
        "names of Services resolve to an address that is not theirs" [
        "lookup from=PLACE name=short|partial|full",
    ]
    PartialNamesResolve "partial-names-resolve" WindowsNodes
        "its Windows pods complete names with dots, too, which is documented not to work" [
        "lookup from=PLACE name=partial",
    ]
    DnsSlow "dns-slow" Nodes
        "each answer of the cluster's DNS takes four seconds" [
        "lookup from=PLACE",
    ]
    VipSticks "vip-sticks" Nodes
        "a Service IP always leads to the same backend from there" [
        "balance via=cluster-ip from=PLACE",
    ]
    EndpointStale "endpoint-stale" Nodes
        "Service IPs go on leading to backends that were deleted" [
        "stale via=cluster-ip from=PLACE",
    ]
    MtuBlackHole "mtu-black-hole" Nodes
        "packets above 1400 bytes from and to a node there are lost without a word" [
        "connection from=PLACE size=large crosses=nodes",
        "connection to=PLACE size=large crosses=nodes",
    ]
    SourceRewritten "source-rewritten" Nodes
        "connections from pods there arrive with their node's address" [
        "source from=PLACE",
        "policy rule=allow at=PLACE",
    ]
    HairpinBroken "hairpin-broken" Nodes
        "a pod there cannot reach itself through its Service" [
        "hairpin via=cluster-ip from=PLACE",
    ]
    OwnAddressDead "own-address-dead" Nodes
        "a pod there cannot reach itself by its own address" [
        "hairpin via=pod-ip from=PLACE",
    ]
    PolicyIgnored "policy-ignored" Nodes
        "NetworkPolicies do not keep anybody from the pods there" [
        "policy rule=deny at=PLACE",
    ]
    PolicyClosed "policy-closed" Nodes
        "pods there that a NetworkPolicy selects are reached by nobody, whomever it admits" [
        "policy rule=allow at=PLACE",
    ]
    UdpDropped "udp-dropped" Nodes
        "no UDP but DNS passes from there" [
        "connection from=PLACE protocol=udp",
    ]
    PingDropped "ping-dropped" Nodes
        "no ping passes from there" [
        "connection from=PLACE protocol=icmp",
    ]
    OutboundPingAnswers "outbound-ping-answers" WindowsNodes
        "pings from its Windows pods come back from outside, which is documented not to work" [
        "connection from=PLACE source=pod to=outside protocol=icmp",
    ]
    OutboundCut "outbound-cut" Nodes
        "nothing gets from there to what is outside the cluster" [
        "connection from=PLACE to=outside",
    ]
    CaptiveProxy "captive-proxy" Nodes
        "something captive answers for every outside address with 200 and a foreign page" [
        "connection from=PLACE to=outside protocol=tcp",
    ]
    ServiceAnswersWrong "service-answers-wrong" None
        "something captive answers every Service IP with 200 and a foreign page" [
        "connection via=cluster-ip protocol=tcp",
        "balance via=cluster-ip",
        "hairpin via=cluster-ip",
        "stale via=cluster-ip",
    ]
    LoadBalancerDead "load-balancer-dead" None
        "its load balancer lets nothing through: clients outside get no answer at its addresses" [
        "connection via=load-balancer from=outside",
    ]
    LoadBalancerExhausted "load-balancer-exhausted" None
        "its load balancer has no address left: Services that wait for one stay pending" [
        "service type=load-balancer aspect=address",
    ]
    NodeServiceIpAnswers "node-service-ip-answers" WindowsNodes
        "its Windows nodes reach Service IPs, which is documented not to work" [
        "connection via=cluster-ip from=PLACE source=node",
    ]
    NodeServiceIpResets "node-service-ip-resets" WindowsNodes
        "a Windows node's connection to a Service IP is reset instead of timing out" [
        "connection via=cluster-ip from=PLACE source=node",
    ]
    LocalNodePortAnswers "local-node-port-answers" WindowsNodes
        "its Windows nodes reach NodePorts on themselves, which is documented not to work" [
        "connection via=node-port from=PLACE source=node crosses=nothing",
    ]
    NodeLabelWrong "node-label-wrong" WindowsNodes
        "its nodes carry the windows-build label of another build" [
        "node at=PLACE aspect=labels",
    ]
    NodeLabelsMissing "node-labels-missing" Nodes
        "its nodes lack kubernetes.io/os and kubernetes.io/arch" [
        "node at=PLACE aspect=labels",
    ]
    Untainted "untainted" WindowsNodes
        "its Windows nodes lack the taint os=windows:NoSchedule" [
        "node at=PLACE aspect=taints",
    ]
    TaintIgnored "taint-ignored" Nodes
        "pods that do not tolerate its nodes' taints are bound to them all the same, but for those that keep away from others" [
        "pod at=PLACE aspect=binding",
    ]
    RequestsIgnored "requests-ignored" Nodes
        "pods that ask for more than its nodes have left are bound to them all the same, but for those that keep away from others" [
        "pod at=PLACE aspect=binding",
    ]
    KubeletSkewed "kubelet-skewed" Nodes
        "its kubelets are four minor versions behind the API server" [
        "node at=PLACE aspect=status",
    ]
    RuntimeDocker "runtime-docker" Nodes
        "its nodes report a Docker of dockershim's time as their container runtime" [
        "node at=PLACE aspect=status",
    ]
    NothingReserved "nothing-reserved" Nodes
        "its nodes leave all they have to pods: allocatable is capacity" [
        "node at=PLACE aspect=status",
    ]
    NodeNotReady "node-not-ready" Nodes
        "its nodes are not Ready: their network plugin is not initialised" [
        "node at=PLACE aspect=ready",
    ]
    NodeVanishes "node-vanishes" Nodes
        "its nodes fall silent: no lease, no status, no kubelet, no pod" [
        "node at=PLACE aspect=lease",
        "kubelet at=PLACE",
        "connection to=PLACE",
        "connection from=PLACE",
    ]
    NodeReboots "node-reboots" Nodes
        "its nodes boot once: all containers end and start again, exec is refused meanwhile" [
        "node at=PLACE aspect=boot",
        "pod at=PLACE aspect=restarts",
    ]
    ClockWrong "clock-wrong" Nodes
        "its nodes' clocks are an hour ahead" [
        "node at=PLACE aspect=time",
        "pod at=PLACE aspect=time",
    ]
    MemoryPressure "memory-pressure" Nodes
        "its nodes are out of memory and evict" [
        "node at=PLACE aspect=pressure",
        "pod at=PLACE aspect=eviction",
    ]
    ImageMissing "image-missing" WindowsNodes
        "servercore images are not on its nodes, and have no variant that they can pull" [
        "pod at=PLACE aspect=pull image=servercore",
    ]
    PullFails "pull-fails" Pods
        "no image can be pulled: the registry does not answer" [
        "pod at=PLACE aspect=pull",
    ]
    PullSlow "pull-slow" Pods
        "each pull takes a hundred times as long" [
        "pod at=PLACE aspect=pull-time",
    ]
    ImageBuildWrong "image-build-wrong" WindowsNodes
        "images are pulled whose build its nodes cannot run" [
        "pod at=PLACE aspect=start isolation=process",
    ]
    AnyBuildRuns "any-build-runs" WindowsNodes
        "its hosts pull and run images of any Windows build, as under Hyper-V isolation" [
        "pod at=PLACE aspect=pull",
        "pod at=PLACE aspect=start",
    ]
    PlatformUnasked "platform-unasked" Nodes
        "images are pulled there whatever platform they are of" [
        "pod at=PLACE aspect=pull",
        "pod at=PLACE aspect=start",
    ]
    PauseImageWrong "pause-image-wrong" WindowsNodes
        "the pause image is of another build: no sandbox starts" [
        "pod at=PLACE aspect=sandbox",
    ]
    SandboxFails "sandbox-fails" Pods
        "no sandbox gets a network" [
        "pod at=PLACE aspect=sandbox",
    ]
    NetworkNeedsSelector "network-needs-selector" WindowsNodes
        "Windows pods there get no network unless they select their node by kubernetes.io/os" [
        "pod at=PLACE aspect=sandbox selects=nothing isolation=process",
    ]
    HandlerUnknown "handler-unknown" Nodes
        "its runtime knows no RuntimeClass handler but its default" [
        "pod at=PLACE aspect=sandbox handler=named",
    ]
    ServercoreCrashes "servercore-crashes" WindowsNodes
        "servercore containers die at start with 0xC0000142 (STATUS_DLL_INIT_FAILED)" [
        "pod at=PLACE aspect=start image=servercore",
    ]
    CrashLoop "crash-loop" Pods
        "containers end with exit code 1: what runs, and what is started, after a moment" [
        "pod at=PLACE aspect=start",
        "pod at=PLACE aspect=exit-code",
    ]
    ProbeIgnored "probe-ignored" Pods
        "probes count as passed whatever they find" [
        "pod at=PLACE aspect=probe",
    ]
    PreStopSkipped "pre-stop-skipped" Pods
        "preStop hooks are not run" [
        "pod at=PLACE aspect=pre-stop",
    ]
    GraceIgnored "grace-ignored" Pods
        "containers are killed at once when their pod is deleted" [
        "pod at=PLACE aspect=grace",
        "pod at=PLACE aspect=exit-code end=told",
    ]
    ExitCodeLost "exit-code-lost" Pods
        "the runtime reports exit code 0 for whatever ended" [
        "pod at=PLACE aspect=exit-code",
    ]
    HostProcessRefused "host-process-refused" WindowsNodes
        "the runtime cannot run HostProcess containers" [
        "pod at=PLACE aspect=host-process",
    ]
    ExecRefused "exec-refused" Pods
        "the kubelet refuses every exec" [
        "exec at=PLACE",
    ]
    ExecOutputLost "exec-output-lost" Pods
        "an exec's output is lost, its exit code is not" [
        "exec at=PLACE",
    ]
    ExecRpcUnavailable "exec-rpc-unavailable" WindowsPods
        "containerd cannot start a program in a running Windows container, except a HostProcess one" [
        "exec at=PLACE os=windows isolation=process",
        "pod at=PLACE os=windows isolation=process aspect=probe by=exec",
    ]
    ToolsLocalised "tools-localised" WindowsNodes
        "ping speaks Japanese, in its code page" [
        "exec at=PLACE aspect=language",
    ]
    LogsEmpty "logs-empty" Pods
        "logs are empty whatever was printed" [
        "logs at=PLACE",
    ]
    LogsCut "logs-cut" Pods
        "logs lack their last line" [
        "logs at=PLACE",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facets_name_only_what_the_parameter_gives() {
        for info in KINDS.iter().map(|kind| kind.info()) {
            for facet in info.facets {
                let mut words = facet.split(' ');
                let subject = words.next().unwrap_or_default();
                assert!(!subject.is_empty() && !subject.contains('='), "{facet}");
                for word in words {
                    let (_, value) = word.split_once('=').expect(facet);
                    let known = match info.parameter {
                        Parameter::None => &[][..],
                        Parameter::Way => &["FROM", "TO"][..],
                        _ => &["PLACE"][..],
                    };
                    let stands_in = value.chars().all(|letter| letter.is_ascii_uppercase());
                    assert!(
                        !stands_in || known.contains(&value),
                        "{}: {facet}",
                        info.name
                    );
                }
            }
        }
    }
}
