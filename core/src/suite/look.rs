//! The looks of cases, from YAML.

use super::admission::{read_ask, read_expect};
use super::fact::read_fact;
use super::placement::{read_placement, read_placement_ask, read_preemption, read_preemption_ask};
use crate::document::{Decoder, Node};
use crate::way::{
    FailureClass, FixtureName, HttpAsk, HttpExpect, Look, PingAsk, ReachExpect, StateAsk,
    StateExpect, Target, Test, UdpAsk, Way,
};

/// Reads one test: `way: {ask: …, expect: …}`.
pub(super) fn read_test(decoder: &mut Decoder<'_>, node: &Node) -> Option<Test> {
    let entry = decoder.tagged(node, "test", &Test::NAMES)?;
    let mut fields = decoder.fields(&entry.node, "a look")?;
    let ask = fields.required(decoder, "ask");
    let expect = fields.required(decoder, "expect");
    fields.finish(decoder);
    let at = (ask, expect);
    match entry.key.as_str() {
        "admission" => look(decoder, at, read_ask, read_expect).map(Test::Admission),
        "http" => look(decoder, at, read_http_ask, read_http_expect).map(Test::Http),
        "ping" => look(decoder, at, read_ping_ask, read_reach).map(Test::Ping),
        "udp" => look(decoder, at, read_udp_ask, read_reach).map(Test::Udp),
        "placement" => look(decoder, at, read_placement_ask, read_placement).map(Test::Placement),
        "preemption" => {
            look(decoder, at, read_preemption_ask, read_preemption).map(Test::Preemption)
        }
        "fact" => read_fact(decoder, ask, expect).map(Test::Fact),
        _ => read_state(decoder, ask?, expect?).map(Test::State),
    }
}

/// Reads what is asked and what is expected, each by itself.
fn look<W: Way>(
    decoder: &mut Decoder<'_>,
    (ask, expect): (Option<&Node>, Option<&Node>),
    read_ask: fn(&mut Decoder<'_>, &Node) -> Option<W::Ask>,
    read_expect: fn(&mut Decoder<'_>, &Node) -> Option<W::Expect>,
) -> Option<Look<W>> {
    let ask = ask.and_then(|node| read_ask(decoder, node));
    let expect = expect.and_then(|node| read_expect(decoder, node));
    Some(Look {
        ask: ask?,
        expect: expect?,
    })
}

fn read_fixture(
    decoder: &mut Decoder<'_>,
    node: &Node,
    looked_at: &[FixtureName],
) -> Option<FixtureName> {
    decoder.member(node, "fixture for this look", looked_at)
}

fn read_http_ask(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpAsk> {
    let (of, target) = read_target(decoder, node, "an http `ask`", Target::ALL)?;
    Some(HttpAsk { of, target })
}

fn read_ping_ask(decoder: &mut Decoder<'_>, node: &Node) -> Option<PingAsk> {
    let (of, target) = read_target(decoder, node, "a ping's `ask`", &PingAsk::TARGETS)?;
    Some(PingAsk { of, target })
}

fn read_udp_ask(decoder: &mut Decoder<'_>, node: &Node) -> Option<UdpAsk> {
    let mut fields = decoder.fields(node, "a datagram's `ask`")?;
    let of = fields.read(decoder, "of", |decoder, node| {
        read_fixture(decoder, node, &SERVING_UDP)
    });
    fields.finish(decoder);
    Some(UdpAsk { of: of? })
}

fn read_reach(decoder: &mut Decoder<'_>, node: &Node) -> Option<ReachExpect> {
    let entry = decoder.tagged(node, "expectation", &["answers"])?;
    decoder.fields(&entry.node, "`answers`")?.finish(decoder);
    Some(ReachExpect::Answers)
}

fn read_target(
    decoder: &mut Decoder<'_>,
    node: &Node,
    what: &'static str,
    targets: &[Target],
) -> Option<(Option<FixtureName>, Target)> {
    let mut fields = decoder.fields(node, what)?;
    let of_node = fields.optional("of");
    let target = fields.read(decoder, "target", |decoder, node| {
        decoder.member(node, "target", targets)
    });
    fields.finish(decoder);
    let of = of_node.map(|node| read_fixture(decoder, node, &SERVING));
    let target = target?;
    let (at, message, hint) = match (of_node, target.is_of_a_fixture()) {
        (None, true) => (
            node,
            "this target is a fixture's, and none is named",
            "add `of: win-webserver`",
        ),
        (Some(node), false) => (node, "this target is no fixture's", "remove `of`"),
        (None, false) => return Some((None, target)),
        (Some(_), true) => return of.flatten().map(|of| (Some(of), target)),
    };
    decoder.report(at, message, Some(hint.to_owned()));
    None
}

fn read_http_expect(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpExpect> {
    let entry = decoder.tagged(node, "expectation", &["answers", "reached", "unreached"])?;
    if entry.key == "unreached" {
        decoder.fields(&entry.node, "`unreached`")?.finish(decoder);
        return Some(HttpExpect::Fails {
            classes: UNREACHED.into(),
            status: 200,
            instead_of: String::new(),
        });
    }
    if entry.key == "reached" {
        decoder.fields(&entry.node, "`reached`")?.finish(decoder);
        return Some(HttpExpect::Reached);
    }
    let mut fields = decoder.fields(&entry.node, "`answers`")?;
    let status = fields.or(decoder, "status", 200, |decoder, node| {
        decoder.count(node, "`status`")
    });
    // Whatever answers names its pod
    let body = fields.or(decoder, "body", "", |decoder, node| {
        decoder.text(node, "`body`")
    });
    fields.finish(decoder);
    Some(HttpExpect::Answers {
        status: status?,
        body: body?.to_owned(),
    })
}

fn read_state(
    decoder: &mut Decoder<'_>,
    ask: &Node,
    expect: &Node,
) -> Option<Look<crate::way::State>> {
    let asked = decoder.tagged(ask, "state `ask`", &["pods", "endpoints", "balancer"])?;
    let (what, looked_at, known): (_, &[_], &[_]) = match asked.key.as_str() {
        "pods" => (
            "`pods`",
            &WITH_PODS,
            &["ready", "ready-on-each-node", "steady", "listed"],
        ),
        "balancer" => ("`balancer`", &[FixtureName::LoadBalancer], &["addressed"]),
        _ => ("`endpoints`", &WITH_SERVICE, &["endpoints"]),
    };
    let expected = decoder.tagged(expect, "expectation", known);
    let of = decoder.fields(&asked.node, what).and_then(|mut fields| {
        let of = fields.read(decoder, "of", |decoder, node| {
            read_fixture(decoder, node, looked_at)
        });
        fields.finish(decoder);
        of
    });
    let expect = expected.and_then(|expected| {
        let mut fields = decoder.fields(&expected.node, "what is expected of pods")?;
        let alone = match expected.key.as_str() {
            "addressed" => Some(StateExpect::Addressed),
            "ready-on-each-node" => Some(StateExpect::ReadyOnEachNode),
            _ => None,
        };
        if alone.is_some() {
            fields.finish(decoder);
            return alone;
        }
        let pods = fields.count(decoder, "pods");
        fields.finish(decoder);
        let pods = pods?;
        Some(match expected.key.as_str() {
            "ready" => StateExpect::Ready { pods },
            "steady" => StateExpect::Steady { pods },
            "listed" => StateExpect::Listed { pods },
            _ => StateExpect::Endpoints { pods },
        })
    });
    let of = of?;
    if (expect == Some(StateExpect::ReadyOnEachNode)) != of.is_on_each_node() {
        let message = "a fixture has a pod on each node, or is not expected to have one there";
        let hint = "`node-sample` and `ready-on-each-node` go together";
        decoder.report(ask, message, Some(hint.to_owned()));
    }
    Some(Look {
        ask: match asked.key.as_str() {
            "pods" => StateAsk::Pods(of),
            "balancer" => StateAsk::Balancer(of),
            _ => StateAsk::Endpoints(of),
        },
        expect: expect?,
    })
}

/// How a connection fails that is not let in: packets are dropped, or somebody on the way says no.
const UNREACHED: [FailureClass; 5] = [
    FailureClass::Timeout,
    FailureClass::Refused,
    FailureClass::NoRoute,
    FailureClass::NotConnected,
    FailureClass::Reset,
];

/// The fixtures that answer HTTP.
const SERVING: [FixtureName; 9] = [
    FixtureName::WinWebserver,
    FixtureName::Iis,
    FixtureName::Churn,
    FixtureName::PolicyDenied,
    FixtureName::PolicyAllowed,
    FixtureName::LinuxServer,
    FixtureName::LinuxPodProber,
    FixtureName::WindowsPodProber,
    FixtureName::Ring,
];

/// Those that answer datagrams.
const SERVING_UDP: [FixtureName; 4] = [
    FixtureName::LinuxServer,
    FixtureName::LinuxPodProber,
    FixtureName::WindowsPodProber,
    FixtureName::Ring,
];

const WITH_SERVICE: [FixtureName; 2] = [FixtureName::WinWebserver, FixtureName::Iis];

const WITH_PODS: [FixtureName; 8] = [
    FixtureName::WinWebserver,
    FixtureName::Iis,
    FixtureName::SlowStarter,
    FixtureName::NanoServer,
    FixtureName::NodeSample,
    FixtureName::LinuxPodProber,
    FixtureName::WindowsPodProber,
    FixtureName::WindowsNodeProber,
];
