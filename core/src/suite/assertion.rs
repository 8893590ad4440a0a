//! The assertions of cases, from YAML.

use strum::VariantNames;

use super::admission::{read_expectation, read_query};
use super::container::{
    read_container, read_log, read_program, read_program_end, read_scenario, read_status,
    read_status_query,
};
use super::fact::read_fact;
use super::placement::{
    read_placement, read_placement_query, read_preemption, read_preemption_query,
};
use crate::document::{Decoder, Fields, Node};
use crate::fixture::FixtureName;
use crate::method::{
    Assertion, FailureClass, HttpExpectation, HttpQuery, Method, PingQuery, ReachExpectation,
    StateExpectation, StateQuery, Target, Test,
};

/// Reads one test: `method: {ask: …, expect: …}`.
pub(super) fn read_test(decoder: &mut Decoder<'_>, node: &Node) -> Option<Test> {
    let entry = decoder.tagged(node, "test", Test::VARIANTS)?;
    let mut fields = decoder.fields(&entry.node, "an assertion")?;
    let query = fields.required(decoder, "ask");
    let expectation = fields.required(decoder, "expect");
    fields.finish(decoder);
    let at = (query, expectation);
    match entry.key.as_str() {
        "admission" => assertion(decoder, at, read_query, read_expectation).map(Test::Admission),
        "http" => assertion(decoder, at, read_http_query, read_http_expectation).map(Test::Http),
        "ping" => assertion(decoder, at, read_ping_query, read_reach).map(Test::Ping),
        "udp" => assertion(decoder, at, read_udp_query, read_reach).map(Test::Udp),
        "log" => assertion(decoder, at, read_container, read_log).map(Test::Log),
        "program" => assertion(decoder, at, read_program, read_program_end).map(Test::Program),
        "status" => assertion(decoder, at, read_status_query, read_status).map(Test::Status),
        "scenario" => read_scenario(decoder, query, expectation).map(Test::Scenario),
        "placement" => {
            assertion(decoder, at, read_placement_query, read_placement).map(Test::Placement)
        }
        "preemption" => {
            assertion(decoder, at, read_preemption_query, read_preemption).map(Test::Preemption)
        }
        "fact" => read_fact(decoder, query, expectation).map(Test::Fact),
        _ => read_state(decoder, query?, expectation?).map(Test::State),
    }
}

/// Reads query and expectation, each by itself.
fn assertion<W: Method>(
    decoder: &mut Decoder<'_>,
    (query, expectation): (Option<&Node>, Option<&Node>),
    read_query: fn(&mut Decoder<'_>, &Node) -> Option<W::Query>,
    read_expectation: fn(&mut Decoder<'_>, &Node) -> Option<W::Expectation>,
) -> Option<Assertion<W>> {
    let query = query.and_then(|node| read_query(decoder, node));
    let expectation = expectation.and_then(|node| read_expectation(decoder, node));
    Some(Assertion {
        query: query?,
        expectation: expectation?,
    })
}

fn read_fixture(
    decoder: &mut Decoder<'_>,
    node: &Node,
    observed: &[FixtureName],
) -> Option<FixtureName> {
    decoder.member(node, "fixture for this assertion", observed)
}

fn read_http_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpQuery> {
    let mut fields = decoder.fields(node, "an http `ask`")?;
    let through_node = fields.optional("through");
    let leading = those(|name| name.leads_to().is_some());
    let through =
        through_node.map(|node| decoder.member(node, "fixture to ask through:", &leading));
    let (of, target) = read_target(decoder, node, fields, Target::ALL)?;
    let through = through.map_or(Some(None), |through| through.map(Some))?;
    let asked = through.or(of).map_or("", FixtureName::as_str);
    let (message, hint) = match (through.and_then(FixtureName::leads_to), of) {
        (Some(_), _) if !target.is_of_a_service() => (
            format!(
                "the target `{}` is not asked through a Service",
                target.as_str()
            ),
            "remove `through`".to_owned(),
        ),
        (Some(leads_to), Some(of)) if leads_to != of => {
            let (leads_to, of) = (leads_to.as_str(), of.as_str());
            let message = format!("the Service of `{asked}` leads to `{leads_to}`, not to `{of}`");
            (
                message,
                format!("write `of: {leads_to}`, or remove `through`"),
            )
        }
        (_, Some(of)) if !target.is_served_by(through.unwrap_or(of)) => {
            let known = those(|name| target.is_served_by(name)).into_iter();
            let known = known.filter_map(|name| match (name.leads_to(), name.serves()) {
                (Some(of), _) => Some(format!("`of: {}, through: {}`", of.as_str(), name.as_str())),
                (None, serves) => serves.map(|_| format!("`of: {}`", name.as_str())),
            });
            let known: Vec<_> = known.collect();
            let target = target.as_str();
            let message = format!("`{asked}` has no Service for the target `{target}`");
            (
                message,
                format!("this target goes with {}", known.join(", ")),
            )
        }
        _ => {
            return Some(HttpQuery {
                of,
                through,
                target,
            });
        }
    };
    decoder.fail(through_node.unwrap_or(node), message, Some(hint))
}

fn read_ping_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<PingQuery> {
    let fields = decoder.fields(node, "a ping's `ask`")?;
    let (of, target) = read_target(decoder, node, fields, &PingQuery::TARGETS)?;
    Some(PingQuery { of, target })
}

fn read_udp_query(decoder: &mut Decoder<'_>, node: &Node) -> Option<FixtureName> {
    let mut fields = decoder.fields(node, "a datagram's `ask`")?;
    let of = fields.read(decoder, "of", |decoder, node| {
        read_fixture(decoder, node, &those(FixtureName::serves_udp))
    });
    fields.finish(decoder);
    of
}

fn read_reach(decoder: &mut Decoder<'_>, node: &Node) -> Option<ReachExpectation> {
    let entry = decoder.tagged(node, "expectation", &["answers"])?;
    decoder.fields(&entry.node, "`answers`")?.finish(decoder);
    Some(ReachExpectation::Answers)
}

fn read_target(
    decoder: &mut Decoder<'_>,
    node: &Node,
    mut fields: Fields<'_>,
    targets: &[Target],
) -> Option<(Option<FixtureName>, Target)> {
    let of_node = fields.optional("of");
    let target = fields.read(decoder, "target", |decoder, node| {
        decoder.member(node, "target", targets)
    });
    fields.finish(decoder);
    let serving = those(|name| name.serves().is_some());
    let of = of_node.map(|node| read_fixture(decoder, node, &serving));
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
    decoder.fail(at, message, Some(hint.to_owned()))
}

fn read_http_expectation(decoder: &mut Decoder<'_>, node: &Node) -> Option<HttpExpectation> {
    let entry = decoder.tagged(node, "expectation", &EXPECTATIONS)?;
    if entry.key != "answers" {
        decoder
            .fields(&entry.node, "this expectation")?
            .finish(decoder);
        return Some(match entry.key.as_str() {
            "reached" => HttpExpectation::Reached,
            "resolved" => HttpExpectation::Resolved,
            _ => HttpExpectation::Fails {
                classes: UNREACHED.into(),
                status: 200,
                instead_of: String::new(),
            },
        });
    }
    let mut fields = decoder.fields(&entry.node, "`answers`")?;
    let status = fields.or(decoder, "status", 200, |decoder, node| {
        decoder.count(node, "`status`")
    });
    // Without `body` the answer only has to name its pod
    let body = fields.or(decoder, "body", "", |decoder, node| {
        decoder.text(node, "`body`")
    });
    fields.finish(decoder);
    Some(HttpExpectation::Answers {
        status: status?,
        body: body?.to_owned(),
    })
}

fn read_state(
    decoder: &mut Decoder<'_>,
    query: &Node,
    expectation: &Node,
) -> Option<Assertion<crate::method::State>> {
    let entry = decoder.tagged(query, "state `ask`", &["pods", "endpoints", "balancer"])?;
    let (what, observed, known): (_, _, &[_]) = match entry.key.as_str() {
        "pods" => (
            "`pods`",
            those(FixtureName::has_own_pods),
            &["ready", "ready-on-each-node", "steady", "listed"],
        ),
        "balancer" => (
            "`balancer`",
            vec![FixtureName::LOAD_BALANCER],
            &["addressed"],
        ),
        _ => (
            "`endpoints`",
            those(FixtureName::has_own_service),
            &["endpoints"],
        ),
    };
    let expected = decoder.tagged(expectation, "expectation", known);
    let of = decoder.fields(&entry.node, what).and_then(|mut fields| {
        let of = fields.read(decoder, "of", |decoder, node| {
            read_fixture(decoder, node, &observed)
        });
        fields.finish(decoder);
        of
    });
    let expectation = expected.and_then(|expected| {
        let mut fields = decoder.fields(&expected.node, "what is expected of pods")?;
        let mut pods = || fields.count(decoder, "pods");
        let expectation = match expected.key.as_str() {
            "addressed" => Some(StateExpectation::Addressed),
            "ready-on-each-node" => Some(StateExpectation::ReadyOnEachNode),
            "ready" => pods().map(|pods| StateExpectation::Ready { pods }),
            "steady" => pods().map(|pods| StateExpectation::Steady { pods }),
            "listed" => pods().map(|pods| StateExpectation::Listed { pods }),
            _ => pods().map(|pods| StateExpectation::Endpoints { pods }),
        };
        fields.finish(decoder);
        expectation
    });
    let of = of?;
    if (expectation == Some(StateExpectation::ReadyOnEachNode)) != of.is_on_each_node() {
        let message = "a fixture has a pod on each node, or is not expected to have one there";
        let each = those(FixtureName::is_on_each_node).into_iter();
        let each: Vec<_> = each.map(FixtureName::as_str).collect();
        let hint = format!("`ready-on-each-node` goes with: {}", each.join(", "));
        decoder.report(query, message, Some(hint));
    }
    Some(Assertion {
        query: match entry.key.as_str() {
            "pods" => StateQuery::Pods(of),
            "balancer" => StateQuery::Balancer(of),
            _ => StateQuery::Endpoints(of),
        },
        expectation: expectation?,
    })
}

/// The expectations of a request.
const EXPECTATIONS: [&str; 4] = ["answers", "reached", "resolved", "unreached"];

/// How a connection fails that a policy denies: packets are dropped, or something on the way refuses it.
const UNREACHED: [FailureClass; 5] = [
    FailureClass::Timeout,
    FailureClass::Refused,
    FailureClass::NoRoute,
    FailureClass::NotConnected,
    FailureClass::Reset,
];

fn those(is_wanted: impl Fn(FixtureName) -> bool) -> Vec<FixtureName> {
    FixtureName::all().filter(|name| is_wanted(*name)).collect()
}
