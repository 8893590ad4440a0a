//! The looks of cases, from YAML.

use super::admission::{read_ask, read_expect};
use super::fact::read_fact;
use super::placement::{read_placement, read_preemption};
use crate::document::{Decoder, Node};
use crate::way::{
    FailureClass, FixtureName, HttpAsk, HttpExpect, Look, PingAsk, ReachExpect, StateAsk,
    StateExpect, Target, Test, UdpAsk,
};

/// Reads one test: `way: {ask: …, expect: …}`.
pub(super) fn read_test(decoder: &mut Decoder<'_>, node: &Node) -> Option<Test> {
    let entry = decoder.tagged(node, "test", &Test::NAMES)?;
    let mut fields = decoder.fields(&entry.node, "a look")?;
    let ask = fields.required(decoder, "ask");
    let expect = fields.required(decoder, "expect");
    fields.finish(decoder);
    match entry.key.as_str() {
        "admission" => {
            let ask = ask.and_then(|node| read_ask(decoder, node));
            let expect = expect.and_then(|node| read_expect(decoder, node));
            Some(Test::Admission(Look {
                ask: ask?,
                expect: expect?,
            }))
        }
        "http" => {
            let ask = ask.and_then(|node| read_http_ask(decoder, node));
            let expect = expect.and_then(|node| read_http_expect(decoder, node));
            Some(Test::Http(Look {
                ask: ask?,
                expect: expect?,
            }))
        }
        "ping" => {
            let ask = ask.and_then(|node| read_ping_ask(decoder, node));
            let expect = expect.and_then(|node| read_reach(decoder, node));
            Some(Test::Ping(Look {
                ask: ask?,
                expect: expect?,
            }))
        }
        "udp" => {
            let ask = ask.and_then(|node| read_udp_ask(decoder, node));
            let expect = expect.and_then(|node| read_reach(decoder, node));
            Some(Test::Udp(Look {
                ask: ask?,
                expect: expect?,
            }))
        }
        "fact" => read_fact(decoder, ask, expect).map(Test::Fact),
        "preemption" => read_preemption(decoder, ask?, expect?).map(Test::Preemption),
        "placement" => read_placement(decoder, ask?, expect?).map(Test::Placement),
        _ => read_state(decoder, ask?, expect?).map(Test::State),
    }
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
    let of = fields.required(decoder, "of");
    fields.finish(decoder);
    let of = read_fixture(decoder, of?, &SERVING_UDP)?;
    Some(UdpAsk { of })
}

fn read_reach(decoder: &mut Decoder<'_>, node: &Node) -> Option<ReachExpect> {
    let entry = decoder.tagged(node, "expectation", &["answers"])?;
    let fields = decoder.fields(&entry.node, "`answers`")?;
    fields.finish(decoder);
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
    let target = fields.required(decoder, "target");
    fields.finish(decoder);
    let of = match of_node {
        None => Some(None),
        Some(node) => read_fixture(decoder, node, &SERVING).map(Some),
    };
    let target = target.and_then(|node| decoder.member(node, "target", targets))?;
    match (of_node, target.is_of_a_fixture()) {
        (None, true) => {
            let hint = "add `of: win-webserver`".to_owned();
            decoder.report(
                node,
                "this target is a fixture's, and none is named",
                Some(hint),
            );
            return None;
        }
        (Some(node), false) => {
            let hint = "remove `of`".to_owned();
            decoder.report(node, "this target is no fixture's", Some(hint));
            return None;
        }
        (None, false) | (Some(_), true) => {}
    }
    Some((of?, target))
}

fn read_http_expect(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpExpect> {
    let entry = decoder.tagged(node, "expectation", &["answers", "reached", "unreached"])?;
    if entry.key == "unreached" {
        let fields = decoder.fields(&entry.node, "`unreached`")?;
        fields.finish(decoder);
        return Some(HttpExpect::Fails {
            classes: UNREACHED.into(),
            status: 200,
            instead_of: String::new(),
        });
    }
    if entry.key == "reached" {
        let fields = decoder.fields(&entry.node, "`reached`")?;
        fields.finish(decoder);
        return Some(HttpExpect::Reached);
    }
    let mut fields = decoder.fields(&entry.node, "`answers`")?;
    let status = fields.optional("status");
    let body = fields.optional("body");
    fields.finish(decoder);
    let status = match status {
        None => 200,
        Some(node) => decoder.count(node, "`status`")?,
    };
    let body = match body {
        // Whatever answers names its pod
        None => "",
        Some(node) => decoder.text(node, "`body`")?,
    };
    Some(HttpExpect::Answers {
        status,
        body: body.to_owned(),
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
        let of = fields.required(decoder, "of");
        fields.finish(decoder);
        read_fixture(decoder, of?, looked_at)
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
        let pods = fields.required(decoder, "pods");
        fields.finish(decoder);
        let pods = pods.and_then(|node| decoder.count(node, "`pods`"))?;
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
