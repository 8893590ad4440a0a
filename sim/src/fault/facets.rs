//! What each kind of fault changes, and nothing else: patterns of what can be observed, a subject and the
//! values it must have. `PLACE`, `FROM` and `TO` stand for the fault's own. The tests of the network and of
//! pods hold each fault to it.

use super::kind::{FaultKind, KINDS, Parameter};

impl FaultKind {
    /// What changes by it.
    #[expect(
        clippy::too_many_lines,
        clippy::match_same_arms,
        reason = "a table: an arm for each fault"
    )]
    pub(crate) fn facets(self) -> &'static [&'static str] {
        match self {
            Self::KubeProxyDead => &[
                "connection via=cluster-ip from=PLACE",
                "connection via=node-port to=PLACE",
                "connection via=load-balancer from=PLACE",
                "connection via=load-balancer from=outside to=PLACE",
                "balance via=cluster-ip from=PLACE",
                "hairpin via=cluster-ip from=PLACE",
                "stale via=cluster-ip from=PLACE",
                "lookup from=PLACE",
            ],
            Self::Ipv6ProxyDead => &[
                "connection via=cluster-ip family=ipv6 from=PLACE",
                "connection via=node-port family=ipv6 to=PLACE",
            ],
            Self::Ipv6Dropped => &[
                "connection family=ipv6 from=PLACE crosses=nodes",
                "connection family=ipv6 to=PLACE crosses=nodes",
            ],
            Self::NodePortClosed => &["connection via=node-port to=PLACE"],
            Self::TrafficCut => &[
                "connection from=FROM to=TO",
                "connection from=TO to=FROM",
                "source from=FROM to=TO",
                "source from=TO to=FROM",
                "lookup from=FROM dns=TO",
                "lookup from=TO dns=FROM",
            ],
            Self::TrafficCutOneWay => &[
                "connection from=FROM to=TO",
                "source from=FROM to=TO",
                "lookup from=FROM dns=TO",
            ],
            Self::DnsDown => &["lookup from=PLACE"],
            Self::DnsSuffixWrong => &["lookup from=PLACE name=short"],
            Self::DnsWrongAddress => &["lookup from=PLACE name=short|partial|full"],
            Self::PartialNamesResolve => &["lookup from=PLACE name=partial"],
            Self::DnsSlow => &["lookup from=PLACE"],
            Self::VipSticks => &["balance via=cluster-ip from=PLACE"],
            Self::EndpointStale => &["stale via=cluster-ip from=PLACE"],
            Self::MtuBlackHole => &[
                "connection from=PLACE size=large crosses=nodes",
                "connection to=PLACE size=large crosses=nodes",
            ],
            Self::SourceRewritten => &["source from=PLACE", "policy rule=allow at=PLACE"],
            Self::HairpinBroken => &["hairpin via=cluster-ip from=PLACE"],
            Self::OwnAddressDead => &["hairpin via=pod-ip from=PLACE"],
            Self::PolicyIgnored => &["policy rule=deny at=PLACE"],
            Self::PolicyClosed => &["policy rule=allow at=PLACE"],
            Self::UdpDropped => &["connection from=PLACE protocol=udp"],
            Self::PingDropped => &["connection from=PLACE protocol=icmp"],
            Self::OutboundPingAnswers => {
                &["connection from=PLACE source=pod to=outside protocol=icmp"]
            }
            Self::OutboundCut => &["connection from=PLACE to=outside"],
            Self::CaptiveProxy => &["connection from=PLACE to=outside protocol=tcp"],
            Self::ServiceAnswersWrong => &[
                "connection via=cluster-ip protocol=tcp",
                "balance via=cluster-ip",
                "hairpin via=cluster-ip",
                "stale via=cluster-ip",
            ],
            Self::LoadBalancerDead => &["connection via=load-balancer from=outside"],
            Self::LoadBalancerExhausted => &["service type=load-balancer aspect=address"],
            Self::NodeServiceIpAnswers => &["connection via=cluster-ip from=PLACE source=node"],
            Self::NodeServiceIpResets => &["connection via=cluster-ip from=PLACE source=node"],
            Self::LocalNodePortAnswers => {
                &["connection via=node-port from=PLACE source=node crosses=nothing"]
            }
            Self::NodeLabelWrong => &["node at=PLACE aspect=labels"],
            Self::NodeLabelsMissing => &["node at=PLACE aspect=labels"],
            Self::Untainted => &["node at=PLACE aspect=taints"],
            Self::TaintIgnored => &["pod at=PLACE aspect=binding"],
            Self::RequestsIgnored => &["pod at=PLACE aspect=binding"],
            Self::KubeletSkewed => &["node at=PLACE aspect=status"],
            Self::RuntimeDocker => &["node at=PLACE aspect=status"],
            Self::NothingReserved => &["node at=PLACE aspect=status"],
            Self::NodeNotReady => &["node at=PLACE aspect=ready"],
            Self::NodeVanishes => &[
                "node at=PLACE aspect=lease",
                "kubelet at=PLACE",
                "connection to=PLACE",
                "connection from=PLACE",
            ],
            Self::NodeReboots => &["node at=PLACE aspect=boot", "pod at=PLACE aspect=restarts"],
            Self::ClockWrong => &["node at=PLACE aspect=time", "pod at=PLACE aspect=time"],
            Self::MemoryPressure => &[
                "node at=PLACE aspect=pressure",
                "pod at=PLACE aspect=eviction",
            ],
            Self::ImageMissing => &["pod at=PLACE aspect=pull image=servercore"],
            Self::PullFails => &["pod at=PLACE aspect=pull"],
            Self::PullSlow => &["pod at=PLACE aspect=pull-time"],
            Self::ImageBuildWrong => &["pod at=PLACE aspect=start isolation=process"],
            Self::AnyBuildRuns => &["pod at=PLACE aspect=pull", "pod at=PLACE aspect=start"],
            Self::PlatformUnasked => &["pod at=PLACE aspect=pull", "pod at=PLACE aspect=start"],
            Self::PauseImageWrong => &["pod at=PLACE aspect=sandbox"],
            Self::SandboxFails => &["pod at=PLACE aspect=sandbox"],
            Self::NetworkNeedsSelector => {
                &["pod at=PLACE aspect=sandbox selects=nothing isolation=process"]
            }
            Self::HandlerUnknown => &["pod at=PLACE aspect=sandbox handler=named"],
            Self::ServercoreCrashes => &["pod at=PLACE aspect=start image=servercore"],
            Self::CrashLoop => &["pod at=PLACE aspect=start", "pod at=PLACE aspect=exit-code"],
            Self::ProbeIgnored => &["pod at=PLACE aspect=probe"],
            Self::PreStopSkipped => &["pod at=PLACE aspect=pre-stop"],
            Self::GraceIgnored => &[
                "pod at=PLACE aspect=grace",
                "pod at=PLACE aspect=exit-code end=told",
            ],
            Self::ExitCodeLost => &["pod at=PLACE aspect=exit-code"],
            Self::HostProcessRefused => &["pod at=PLACE aspect=host-process"],
            Self::ExecRefused => &["exec at=PLACE"],
            Self::ExecOutputLost => &["exec at=PLACE"],
            Self::ExecRpcUnavailable => &[
                "exec at=PLACE os=windows isolation=process",
                "pod at=PLACE os=windows isolation=process aspect=probe by=exec",
            ],
            Self::ToolsLocalised => &["exec at=PLACE aspect=language"],
            Self::LogsEmpty => &["logs at=PLACE"],
            Self::LogsCut => &["logs at=PLACE"],
        }
    }
}

#[test]
fn facets_name_only_what_the_parameter_gives() {
    for info in KINDS.iter().map(|kind| kind.info()) {
        for facet in info.kind.facets() {
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
