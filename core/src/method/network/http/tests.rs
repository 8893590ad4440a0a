use serde::Deserialize;
use serde_json::Value as Json;

use super::*;
use crate::facts::{PoolName, WindowsBuild};
use crate::method::AnyAssertion as _;
use crate::method::{
    Assertion, Balancer, Difference, Evaluated, PoolNode, ReadyFixture, ReadyFixtures, ReadyPod,
    Reply, SourceKind, VantageKey,
};

/// What `tests.yaml` holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    texts: Vec<(u16, String, Option<FailureClass>)>,
    compared: Vec<Row>,
    words: Vec<Words>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    expectation: Json,
    each: Vec<String>,
    /// Whether the answers come from other servers.
    #[serde(default)]
    foreign: bool,
    /// Whether all requests are to one target.
    #[serde(default)]
    one: bool,
    #[serde(default)]
    unmet: Vec<String>,
    absent: Option<String>,
    /// The comparison begins with `came`, and the words of the observation end with `ends`.
    came: String,
    #[serde(default)]
    ends: String,
    /// The words of the expectation.
    expected: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    expectation: Json,
    words: String,
}

fn tables() -> Tables {
    serde_saphyr::from_str(include_str!("tests.yaml")).expect("tables")
}

/// An expectation as the tables have it: a word, or classes of failure.
fn read_expectation(written: &Json) -> HttpExpectation {
    let (status, page) = (200, "ok".to_owned());
    match written.as_str() {
        Some("reached") => HttpExpectation::Reached,
        Some("resolved") => HttpExpectation::Resolved,
        Some("unresolved") => HttpExpectation::Unresolved,
        Some("answers") => HttpExpectation::Answers { status, body: page },
        Some(other) => panic!("{other} is not expected"),
        None => HttpExpectation::Fails {
            classes: serde_json::from_value(written.clone()).expect("classes"),
            status,
            instead_of: page,
        },
    }
}

/// The answer of a target, as the tables have it.
fn answer(written: &str) -> HttpAnswer {
    let written = if written == "page" { "200 ok" } else { written };
    match written.split_once(' ') {
        Some((status, body)) => HttpAnswer::Answered {
            status: status.parse().expect("a status"),
            body: body.to_owned(),
        },
        None => HttpAnswer::Failed {
            class: serde_json::from_value(written.into()).expect("a class"),
            text: String::new(),
        },
    }
}

#[test]
fn published_texts_are_classed() {
    for (code, text, class) in tables().texts {
        assert_eq!(curl::classify(code, &text), class, "{code} {text}");
    }
}

#[test]
fn what_came_of_targets_compares_as_its_row_says() {
    for row in tables().compared {
        let target = |(at, written): (usize, &String)| ObservedTarget {
            target: format!("target {}", if row.one { 0 } else { at }),
            foreign: row.foreign,
            by: written.contains("page").then(|| "pod".to_owned()),
            answer: answer(written),
        };
        let seen = HttpObservation {
            one: false,
            targets: row.each.iter().enumerate().map(target).collect(),
            unmet: row.unmet,
            absent: row.absent,
        };
        let (word, difference) = match Http::compare(&read_expectation(&row.expectation), &seen) {
            Ok(Comparison::Met(difference)) => ("met", difference),
            Ok(Comparison::NotMet(difference)) => ("not-met", difference),
            Ok(Comparison::Unexpected(difference)) => ("unexpected", difference),
            Ok(Comparison::NotApplicable(seen)) => {
                let expected = String::new();
                ("not-applicable", Difference { expected, seen })
            }
            Err(error) => panic!("{error}"),
        };
        let told = format!("{word}: {}", difference.seen);
        let (of, expected) = (format!("{} {:?}", row.expectation, row.each), row.expected);
        assert!(
            told.starts_with(&row.came) && told.ends_with(&row.ends),
            "{of}: {told}"
        );
        assert_eq!(
            *expected.as_ref().unwrap_or(&difference.expected),
            difference.expected,
            "{of}"
        );
    }
}

#[test]
fn what_is_expected_has_words() {
    for Words { expectation, words } in tables().words {
        assert_eq!(read_expectation(&expectation).to_string(), words);
    }
    let (status, body) = (200, String::new());
    let any = HttpExpectation::Answers { status, body };
    assert_eq!(any.to_string(), "200 with a body that names the pod");
}

/// Evaluates an assertion from a Linux pod by the replies to its requests.
fn from_linux(ready: &ReadyFixtures, query: HttpQuery, replies: &[HttpReply]) -> Result<Evaluated> {
    let from = VantageKey {
        kind: SourceKind::LinuxPod,
        pool: Some(PoolName::linux()),
        node: None,
    };
    let at = Bound {
        from: Some(&from),
        ..Bound::to_ready(ready)
    };
    let expectation = HttpExpectation::Reached;
    let assertion = Assertion::<Http> { query, expectation };
    assertion.prepare(&at)?.read(&Reply::Get(replies.to_vec()))
}

fn said(body: &str) -> HttpReply {
    HttpReply::Answered {
        status: 200,
        body: body.to_owned(),
    }
}

/// The prober's pod, and another on its own node.
fn two_linux_pods() -> ReadyFixtures {
    let mut ready = ReadyFixtures::default();
    let names = [FixtureName::LINUX_POD_PROBER, FixtureName::LINUX_SERVER];
    for (last, name) in (1_u8..).zip(names) {
        let pod = ReadyPod {
            name: format!("linux-{last}"),
            uid: String::new(),
            node: format!("node-{last}"),
            addresses: vec![[10, 0, 0, last].into()],
            restarts: 0,
        };
        let stands = ReadyFixture {
            service: Some(([10, 96, 0, last].into(), 80)),
            name: Some("prober".to_owned()),
            port: Some(8080),
            domain: Some("cluster.local".to_owned()),
            pods: vec![pod],
            ..ReadyFixture::default()
        };
        ready.fixtures.insert(name.in_pool(None), stands);
    }
    ready
}

#[test]
fn it_is_about_port_80_only_where_another_port_of_the_same_pods_answers() {
    let ready = two_linux_pods();
    let query = HttpQuery {
        of: Some(FixtureName::LINUX_SERVER),
        through: None,
        target: Target::Port80OnOtherNodes,
    };
    let (open, closed) = (said("linux-2"), refused(28, "Connection timed out"));
    let came = |by_8080: &HttpReply, by_80: &HttpReply| {
        let replies = [by_8080.clone(), by_80.clone()];
        from_linux(&ready, query.clone(), &replies)
            .expect("read")
            .comparison
    };
    assert!(came(&open, &open).holds());
    assert!(matches!(came(&open, &closed), Comparison::NotMet(_)));
    assert!(matches!(
        came(&closed, &closed),
        Comparison::NotApplicable(_)
    ));
}

#[test]
fn names_outside_say_nothing_of_linux_where_the_cluster_s_own_are_not_resolved() {
    let ready = two_linux_pods();
    let query = HttpQuery {
        of: None,
        through: None,
        target: Target::OutsideNames,
    };
    let dead = refused(6, "Could not resolve host: a");
    let came = |outside: &HttpReply, own: &HttpReply| {
        let replies = [outside.clone(), own.clone()];
        from_linux(&ready, query.clone(), &replies).map(|taken| taken.comparison)
    };
    let says = &ready.outside.names[0].says;
    assert!(came(&said(says), &said("")).is_ok_and(|came| came.holds()));
    assert!(matches!(came(&dead, &said("")), Ok(Comparison::NotMet(_))));
    // A failure of its Service does not show that the DNS is dead
    let silent = refused(28, "Connection timed out");
    assert!(matches!(came(&dead, &silent), Ok(Comparison::NotMet(_))));
    let error = came(&dead, &dead).expect_err("the cluster's DNS is dead");
    assert!(error.detail.contains("prober."), "{error}");
}

fn refused(code: u16, text: &str) -> HttpReply {
    HttpReply::Failed {
        code,
        text: text.to_owned(),
    }
}

const KUBELET: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// This many nodes, with their kubelets.
fn nodes(count: u8) -> ReadyFixtures {
    let node = |n: u8| PoolNode {
        name: format!("win-{n}"),
        pool: PoolName::windows(WindowsBuild::SERVER_2022),
        kubelet: Some(10250),
        addresses: vec![[10, 0, 0, n].into()],
    };
    ReadyFixtures {
        nodes: (0..count).map(node).collect(),
        ..ReadyFixtures::default()
    }
}

#[test]
fn what_so_many_said_is_compared_whole_and_kept_in_bounds() {
    // The most nodes that are observed one by one
    let ready = nodes(64);
    let at = Bound::to_ready(&ready);
    let assertion = Assertion::<Http> {
        query: HttpQuery {
            of: None,
            through: None,
            target: Target::Nodes,
        },
        expectation: HttpExpectation::Answers {
            status: 400,
            body: KUBELET.trim_end().to_owned(),
        },
    };
    let said = |body: &str| HttpReply::Answered {
        status: 400,
        body: body.to_owned(),
    };
    let mut replies = vec![said(KUBELET); 64];
    let told = |replies: &[HttpReply]| {
        let prepared = assertion.prepare(&at).expect("nodes are known of");
        prepared.read(&Reply::Get(replies.to_vec())).expect("read")
    };
    let taken = told(&replies);
    assert!(taken.comparison.holds(), "{:?}", taken.comparison);
    let kept: HttpObservation = serde_json::from_value(taken.observation).expect("an observation");
    let bytes = |seen: &ObservedTarget| match &seen.answer {
        HttpAnswer::Answered { body, .. } => body.len(),
        HttpAnswer::Failed { text, .. } => text.len(),
    };
    assert_eq!(kept.targets.len(), 64);
    assert!(kept.targets.iter().map(bytes).sum::<usize>() <= BODIES_KEPT);
    // A different answer still counts, and the words for it are bounded
    replies[63] = said(&"x".repeat(1 << 20));
    let taken = told(&replies);
    let Comparison::Unexpected(difference) = taken.comparison else {
        panic!("{:?}", taken.comparison)
    };
    assert!(
        difference
            .seen
            .starts_with("1 of 64 otherwise; kubelet of node win-63: 400")
    );
    assert!(difference.seen.len() < 1_000, "{}", difference.seen.len());
}

#[test]
fn what_one_said_is_kept_whole_within_bounds() {
    let one = |body: &str| HttpObservation {
        one: false,
        targets: vec![ObservedTarget {
            target: "target".to_owned(),
            foreign: false,
            by: Some("pod".to_owned()),
            answer: answer(&format!("200 {body}")),
        }],
        unmet: Vec::new(),
        absent: None,
    };
    let body = "x".repeat(2_048);
    assert_eq!(Http::kept(one(&body)), one(&body));
    let longer = one(&format!("{body}y"));
    assert_ne!(Http::kept(longer.clone()), longer);
}

#[test]
fn the_fixtures_a_target_needs_are_those_its_name_is_made_of() {
    for &target in Target::ALL {
        let expected: &[_] = match target {
            Target::FullName | Target::HeadlessName => &[FixtureName::LINUX_POD_PROBER],
            Target::Alias => &[FixtureName::LINUX_POD_PROBER, FixtureName::ALIAS],
            Target::LoadBalancer => &[FixtureName::LOAD_BALANCER],
            _ => &[],
        };
        assert_eq!(target.needs(), expected, "{target:?}");
    }
}

#[test]
fn from_within_only_what_is_passed_by_is_observed() {
    let pool = PoolName::windows(WindowsBuild::SERVER_2022);
    let mut ready = nodes(1);
    let prober = FixtureName::LINUX_POD_PROBER.in_pool(None);
    let mut query = |at: &str, short_cut: bool, kind: SourceKind| {
        let service = ReadyFixture {
            service: Some(([10, 96, 0, 7].into(), 80)),
            balancer: Some(Balancer {
                at: at.to_owned(),
                short_cut,
            }),
            ..ReadyFixture::default()
        };
        for name in [FixtureName::IIS, FixtureName::LOAD_BALANCER] {
            let stands = ready.fixtures.entry(name.in_pool(Some(&pool)));
            stands.insert_entry(service.clone());
        }
        ready
            .fixtures
            .insert(prober.clone(), ReadyFixture::default());
        let from = VantageKey {
            kind,
            pool: None,
            node: None,
        };
        let at = Bound {
            from: Some(&from),
            pool: Some(&pool),
            ..Bound::to_ready(&ready)
        };
        let aims = Target::LoadBalancer.aims(Some(FixtureName::IIS), None, &at)?;
        let urls: Vec<_> = aims.each.iter().map(|aim| aim.get.url()).collect();
        assert_eq!(urls.is_empty(), aims.absent.is_some());
        Ok::<_, crate::method::ObservationError>(urls.concat())
    };
    let (within, outside) = (SourceKind::LinuxPod, SourceKind::Outside);
    let address = "http://192.0.2.7:80/";
    assert_eq!(query("192.0.2.7", true, within).as_deref(), Ok(address));
    assert_eq!(query("192.0.2.7", false, within).as_deref(), Ok(""));
    assert_eq!(query("192.0.2.7", false, outside).as_deref(), Ok(address));
    let name = "a-1.elb.amazonaws.com";
    assert_eq!(query(name, false, within).as_deref(), Ok(""));
    let url = format!("http://{name}:80/");
    assert_eq!(query(name, false, outside), Ok(url));
    for no_name in ["a b", "a\"\nurl = \"http://b", "ö"] {
        assert!(query(no_name, false, outside).is_err(), "{no_name}");
    }
}

#[test]
fn answers_of_two_pods_are_wrong_only_where_one_should_give_them_all() {
    let of = |one: bool, pods: &[&str]| HttpObservation {
        one,
        targets: pods
            .iter()
            .map(|pod| ObservedTarget {
                target: "Service IP".to_owned(),
                foreign: false,
                by: Some((*pod).to_owned()),
                answer: answer(&format!("200 {pod}")),
            })
            .collect(),
        unmet: Vec::new(),
        absent: None,
    };
    let expectation = HttpExpectation::Answers {
        status: 200,
        body: String::new(),
    };
    let compare = |seen: &HttpObservation| Http::compare(&expectation, seen).expect("it compares");
    assert!(compare(&of(true, &["a", "a"])).holds());
    assert!(compare(&of(false, &["a", "b"])).holds());
    let Comparison::Unexpected(difference) = compare(&of(true, &["a", "b"])) else {
        panic!("two pods answered");
    };
    assert!(
        difference
            .expected
            .ends_with("to each of 2 requests, from one pod")
    );
    let limited = Http::failing(
        &expectation,
        &Signature::Failure([FailureClass::WrongAnswer].into()),
    );
    let limited = limited.expect("it has a signature");
    let came = |pods| Http::compare(&limited, &of(true, pods)).expect("it compares");
    assert!(came(&["a", "b"]).holds());
    assert!(matches!(came(&["a", "a"]), Comparison::NotMet(_)));
}
