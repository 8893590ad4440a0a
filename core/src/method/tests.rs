//! Test methods bound to the ready fixtures of one run: what each requests, and how it reads the replies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::config::{Outside, Target as OutsideTarget};
use crate::facts::{IpFamily, NodeDetails, NodeFact, Os, PoolName, WindowsBuild};

fn pool() -> PoolName {
    PoolName::windows(WindowsBuild::SERVER_2022)
}

fn pod(name: &str, node: &str, address: &str) -> ReadyPod {
    ReadyPod {
        name: name.to_owned(),
        uid: String::new(),
        node: node.to_owned(),
        addresses: vec![address.parse().expect("an address")],
        restarts: 0,
    }
}

/// What `tests.yaml` holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
struct Tables {
    ready: BTreeMap<FixtureName, ReadyFixture>,
    targets: Vec<TargetRow>,
    absent: Vec<AbsentRow>,
    tests: Vec<TestRow>,
    of_families: Vec<(String, bool, bool)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetRow {
    target: String,
    urls: Vec<String>,
    second: Option<Vec<String>>,
    count: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AbsentRow {
    target: String,
    without: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestRow {
    test: String,
    traits: BTreeSet<String>,
    #[serde(default)]
    needs: Vec<FixtureName>,
}

fn tables() -> Tables {
    serde_saphyr::from_str(include_str!("tests.yaml")).expect("tables")
}

fn target(word: &str) -> Target {
    let mut all = Target::ALL.iter().copied();
    all.find(|target| <&str>::from(*target) == word)
        .expect(word)
}

/// Two Windows nodes with a pod each, one with only its prober, and a Linux node.
fn standing() -> ReadyFixtures {
    let node = |name: &str, pool: PoolName, last: u8| PoolNode {
        name: name.to_owned(),
        pool,
        kubelet: Some(10250),
        addresses: vec![
            "fd00::9".parse().expect("an address"),
            [192, 168, 0, last].into(),
        ],
    };
    let other = PoolName::windows(WindowsBuild::SERVER_2019);
    let outside = |host: &str, says: &str| OutsideTarget {
        host: host.to_owned(),
        port: 80,
        path: "/a".to_owned(),
        says: says.to_owned(),
    };
    let fixtures = tables().ready.into_iter();
    ReadyFixtures {
        run: "r1".to_owned(),
        namespace: "ns".to_owned(),
        host_namespace: "ns-host".to_owned(),
        nodes: vec![
            node("win-a", pool(), 1),
            node("win-b", other, 2),
            node("win-idle", pool(), 3),
            node("lin", PoolName::linux(), 4),
        ],
        outside: Arc::new(Outside {
            names: vec![outside("example.com", "named")],
            addresses: vec![outside("192.0.2.1", "addressed")],
            ..Outside::default()
        }),
        fixtures: fixtures
            .map(|(name, stands)| (name.in_pool(Some(&pool())), stands))
            .collect(),
        ..ReadyFixtures::default()
    }
}

/// The result of `of` with a run, observed from the Windows pod in a family.
fn bound_in<T>(
    ready: &ReadyFixtures,
    family: Option<IpFamily>,
    of: impl FnOnce(&Bound<'_>) -> T,
) -> T {
    let pool = pool();
    let from = VantageKey {
        kind: SourceKind::WindowsPod,
        pool: Some(pool.clone()),
        node: None,
    };
    of(&Bound {
        from: Some(&from),
        pool: Some(&pool),
        family,
        ..Bound::to_ready(ready)
    })
}

/// The same for that run, in the first family.
fn bound<T>(of: impl FnOnce(&Bound<'_>) -> T) -> T {
    bound_in(&standing(), None, of)
}

/// The request of a method for a query.
fn request<'a, M: Method>(query: &'a M::Query, at: &Bound<'a>) -> Result<Request> {
    M::prepare(query, at).map(|prepared| prepared.request)
}

/// The observation of a method for a query and a reply.
fn read<'a, M: Method>(
    query: &'a M::Query,
    at: &Bound<'a>,
    reply: &Reply,
) -> Result<M::Observation> {
    M::prepare(query, at)?.read(reply)
}

fn http(of: FixtureName, target: Target) -> HttpQuery {
    HttpQuery {
        of: Some(of),
        through: None,
        target,
    }
}

/// The URLs that an assertion requests at a target, without repetition in a row, and their number.
fn asked(target: Target, family: Option<IpFamily>) -> (Vec<String>, usize) {
    let query = http(FixtureName::WIN_WEBSERVER, target);
    let of = |at: &Bound<'_>| request::<Http>(&query, at);
    let asked = match family {
        None => bound(of),
        Some(_) => bound_in_second(|_| {}, of),
    };
    let Ok(Request::Get(gets)) = asked else {
        panic!("{target:?}: {asked:?}")
    };
    let mut urls: Vec<_> = gets.iter().map(HttpGet::url).collect();
    urls.dedup();
    (urls, gets.len())
}

#[test]
fn every_target_is_asked_for_as_it_stands() {
    for row in tables().targets {
        let count = |urls: &[String]| row.count.unwrap_or(urls.len());
        let expected = (row.urls.clone(), count(&row.urls));
        assert_eq!(asked(target(&row.target), None), expected, "{}", row.target);
        if let Some(second) = row.second {
            let expected = (second.clone(), count(&second));
            let second = asked(target(&row.target), Some(IpFamily::Ipv6));
            assert_eq!(second, expected, "{}", row.target);
        }
    }
    let long = format!("/echo?msg={}", "r1-".repeat(4_000));
    let long = [1, 2].map(|n| format!("http://10.0.{n}.1:8080{long}"));
    assert_eq!(asked(Target::PodsWithLongPayload, None).0, long);
    // Pods of agnhost are asked for their names
    let query = http(FixtureName::CHURN, Target::ServiceIp);
    let Ok(Request::Get(gets)) = bound(|at| request::<Http>(&query, at)) else {
        panic!("a Service IP is asked for over HTTP")
    };
    assert_eq!(gets[0].url(), "http://10.96.0.1:80/hostname");
}

#[test]
fn the_pod_that_looks_asks_itself_nothing() {
    for target in [Target::PodsWithLongPayload, Target::SourceSeenByPods] {
        let query = http(FixtureName::WINDOWS_POD_PROBER, target);
        let asked = bound(|at| request::<Http>(&query, at));
        assert_eq!(asked, Ok(Request::Get(Vec::new())), "{target:?}");
        let seen = bound(|at| read::<Http>(&query, at, &Reply::Get(Vec::new())));
        assert_eq!(
            seen.expect("read").absent.as_deref(),
            Some(
                "it observes from the only pod of windows-pod-prober, which does not observe itself"
            )
        );
        // A prober with another pod beside it
        let mut ready = standing();
        let key = FixtureName::WINDOWS_POD_PROBER.in_pool(Some(&pool()));
        let prober = ready.fixtures.get_mut(&key).expect("it stands");
        prober.pods.push(pod("prober-2", "win-b", "10.0.2.9"));
        let asked = bound_in(&ready, None, |at| request::<Http>(&query, at));
        let Ok(Request::Get(gets)) = asked else {
            panic!("{target:?} is asked for over HTTP")
        };
        let hosts: Vec<_> = gets.iter().map(|get| get.host.to_string()).collect();
        assert_eq!(hosts, ["10.0.2.9"], "{target:?}");
    }
}

fn answered(body: &str) -> HttpReply {
    HttpReply::Answered {
        status: 200,
        body: body.to_owned(),
    }
}

#[test]
fn an_answer_is_of_whom_it_names_and_else_foreign() {
    for (target, body, by, foreign) in [
        (Target::ServiceIp, "IP 10.0.2.1", Some("web-2"), false),
        (Target::ServiceIp, "IP 10.0.3.1", None, true),
        (
            Target::SourceSeenByPods,
            "10.0.1.9:49152",
            Some("prober"),
            false,
        ),
        (Target::SourceSeenByPods, "192.168.0.1:49152", None, true),
        (Target::Itself, "prober", Some("prober"), false),
        (Target::Itself, "web-1", None, true),
        (Target::OutsideNames, "it is named so", None, false),
        (Target::OutsideNames, "welcome", None, true),
    ] {
        let query = http(FixtureName::WIN_WEBSERVER, target);
        let replies = match target {
            Target::SourceSeenByPods => vec![answered(body), answered(body)],
            _ => vec![answered(body)],
        };
        let seen = bound(|at| read::<Http>(&query, at, &Reply::Get(replies))).expect("read");
        let first = &seen.targets[0];
        assert_eq!(
            (first.by.as_deref(), first.foreign),
            (by, foreign),
            "{body}"
        );
    }
}

#[test]
fn objects_are_listed_of_one_run_one_fixture_and_one_pool() {
    let listed = |of: &str| {
        format!(
            "/api/v1/namespaces/ns/{of}?labelSelector=winconform%2Frun%3Dr1%2Cwinconform%2Ffixture%3D{}",
            "win-webserver%2Cwinconform%2Fpool%3Dwindows-2022"
        )
    };
    let of = FixtureName::WIN_WEBSERVER;
    for (query, path) in [
        (StateQuery::Pods(of), listed("pods")),
        (StateQuery::Balancer(of), listed("services")),
    ] {
        let Ok(Request::Api(asked)) = bound(|at| request::<State>(&query, at)) else {
            panic!("it is asked of the API server")
        };
        assert_eq!(asked.path, path);
    }
}

#[test]
fn a_page_that_tells_of_no_pod_is_nobodys() {
    let query = http(FixtureName::IIS, Target::ServiceIp);
    let replies = Reply::Get(vec![answered("it is of web-1, IP 10.0.1.1")]);
    let key = |name: FixtureName| name.in_pool(Some(&pool()));
    let mut ready = standing();
    let web = ready.fixtures[&key(FixtureName::WIN_WEBSERVER)].clone();
    ready.fixtures.insert(key(FixtureName::IIS), web);
    let seen = bound_in(&ready, None, |at| read::<Http>(&query, at, &replies));
    let first = &seen.expect("read").targets[0];
    assert_eq!((first.by.as_deref(), first.foreign), (None, false));
}

#[test]
fn each_pod_behind_a_service_must_be_met() {
    let query = http(FixtureName::WIN_WEBSERVER, Target::EveryPodBehindServiceIp);
    let unmet = |replies| {
        let seen = bound(|at| read::<Http>(&query, at, &Reply::Get(replies)));
        seen.expect("read").unmet
    };
    let mut replies = vec![answered("web-1"); 21];
    assert_eq!(unmet(replies.clone()), ["web-2"]);
    replies[20] = answered("web-2");
    assert_eq!(unmet(replies), Vec::<String>::new());
}

#[test]
fn who_looks_at_itself_alone_is_told_from_who_has_nobody_on_another_node() {
    let alone = |pod: ReadyPod| {
        let mut ready = standing();
        let web = FixtureName::WIN_WEBSERVER.in_pool(Some(&pool()));
        let web = ready.fixtures.get_mut(&web).expect("it stands");
        web.pods = vec![pod];
        let query = http(FixtureName::WIN_WEBSERVER, Target::PodsOnOtherNodes);
        let none = Reply::Get(Vec::new());
        let seen = bound_in(&ready, None, |at| read::<Http>(&query, at, &none));
        seen.expect("read").absent.expect("nobody is asked")
    };
    let neighbour = alone(pod("web-1", "win-a", "10.0.1.1"));
    assert_eq!(
        neighbour,
        "it observes from node win-a, and the pods of win-webserver are on win-a"
    );
    let itself = alone(pod("prober", "win-a", "10.0.1.9"));
    assert_ne!(itself, neighbour);
    assert!(!itself.contains("win-a"), "{itself}");
}

#[test]
fn a_service_is_asked_from_the_node_of_all_its_pods_where_that_is_the_question() {
    let mut ready = standing();
    let query = http(FixtureName::WIN_WEBSERVER, Target::ServiceIpOnSameNode);
    let none = Reply::Get(Vec::new());
    bound_in(&ready, None, |at| {
        assert_eq!(request::<Http>(&query, at), Ok(Request::Get(Vec::new())));
        let absent = read::<Http>(&query, at, &none).expect("read").absent;
        let told = "it observes from node win-a, and the Service also leads to pod web-2 on win-b";
        assert_eq!(absent.as_deref(), Some(told));
    });
    let web = FixtureName::WIN_WEBSERVER.in_pool(Some(&pool()));
    let web = ready.fixtures.get_mut(&web).expect("it stands");
    web.pods.truncate(1);
    let asked = bound_in(&ready, None, |at| request::<Http>(&query, at));
    let Ok(Request::Get(gets)) = asked else {
        panic!("it is asked for over HTTP")
    };
    assert_eq!(gets[0].url(), "http://10.96.0.1:80/");
}

#[test]
fn nodes_are_told_apart_by_where_it_is_observed_from() {
    let mut ready = standing();
    ready.nodes.retain(|node| node.name == "win-a");
    let query = |target| HttpQuery {
        of: None,
        through: None,
        target,
    };
    let other = query(Target::OtherNodes);
    let none = Reply::Get(Vec::new());
    let seen = bound_in(&ready, None, |at| read::<Http>(&other, at, &none));
    let told = "it observes from node win-a, and no other is usable";
    assert_eq!(seen.expect("read").absent.as_deref(), Some(told));
    ready.nodes[0].name = "win-b".to_owned();
    let own = query(Target::OwnNode);
    let asked = bound_in(&ready, None, |at| request::<Http>(&own, at));
    let unknown = ErrorKind::FactUnknown.error("the address of node win-a");
    assert_eq!(asked, Err(unknown));
}

#[test]
fn nodes_with_our_pods_and_without_a_backend_are_asked_by_themselves() {
    let mut ready = standing();
    let query = http(FixtureName::WIN_WEBSERVER, Target::NodePortsWithoutBackend);
    let none = Reply::Get(Vec::new());
    let seen = bound_in(&ready, None, |at| read::<Http>(&query, at, &none));
    let told = "no Windows node runs pods of ours and none of win-webserver";
    assert_eq!(seen.expect("read").absent.as_deref(), Some(told));
    let nano = ReadyFixture {
        pods: vec![pod("nano", "win-idle", "10.0.3.1")],
        ..ReadyFixture::default()
    };
    let key = FixtureName::NANO_SERVER.in_pool(Some(&pool()));
    ready.fixtures.insert(key, nano);
    let asked = bound_in(&ready, None, |at| request::<Http>(&query, at));
    let Ok(Request::Get(gets)) = asked else {
        panic!("it is asked for over HTTP")
    };
    let urls: Vec<_> = gets.iter().map(HttpGet::url).collect();
    assert_eq!(urls, ["http://192.168.0.3:30080/"]);
}

#[test]
fn where_no_other_node_forwards_a_node_port_none_is_asked() {
    let mut ready = standing();
    ready.nodes.retain(|node| node.name == "win-a");
    let query = http(FixtureName::WIN_WEBSERVER, Target::NodePortsOfOtherNodes);
    let none = Reply::Get(Vec::new());
    let seen = bound_in(&ready, None, |at| read::<Http>(&query, at, &none));
    let told = "it observes from node win-a, and no other forwards the NodePort";
    assert_eq!(seen.expect("read").absent.as_deref(), Some(told));
}

#[test]
fn behind_a_service_that_nobody_has_answered_at_one_request_is_enough() {
    let query = http(FixtureName::WIN_WEBSERVER, Target::EveryPodBehindServiceIp);
    bound(|at| {
        let at = Bound { once: true, ..*at };
        let Ok(Request::Get(gets)) = request::<Http>(&query, &at) else {
            panic!("it asks for nothing")
        };
        assert_eq!(gets.len(), 1);
        let seen = read::<Http>(&query, &at, &Reply::Get(vec![answered("web-1")])).expect("read");
        assert_eq!(seen.unmet, Vec::<String>::new());
        assert_eq!(seen.targets[0].by.as_deref(), Some("web-1"));
    });
}

#[test]
fn a_datagram_goes_to_every_pod_but_the_one_that_sends_it() {
    let asked = bound(|at| request::<Udp>(&FixtureName::WIN_WEBSERVER, at));
    let Ok(Request::Get(gets)) = asked else {
        panic!("datagrams are asked for over HTTP")
    };
    let dial = |address: &str| {
        format!(
            "http://127.0.0.1:8082/dial?host={address}&port=8081&protocol=udp&request=hostname\
             &tries=1"
        )
    };
    let asked: Vec<_> = gets.iter().map(HttpGet::url).collect();
    assert_eq!(asked, [dial("10.0.1.1"), dial("10.0.2.1")]);
    let read =
        |of, replies: &[HttpReply]| bound(|at| read::<Udp>(&of, at, &Reply::Get(replies.to_vec())));
    let name = |name: &str| answered(&json!({"responses": [name]}).to_string());
    let of_both = [name("web-1"), name("web-1")];
    let seen = read(FixtureName::WIN_WEBSERVER, &of_both).expect("read");
    let target = |n: u8, node: &str, answer| ReachedTarget {
        target: format!("UDP port 8081 of pod web-{n} on {node}"),
        answer,
    };
    let wrong = ReachAnswer::Failed {
        class: FailureClass::WrongAnswer,
        text: "web-1".to_owned(),
    };
    let right = ReachAnswer::Answered("web-1".to_owned());
    assert_eq!(
        seen,
        ReachObservation {
            targets: vec![target(1, "win-a", right), target(2, "win-b", wrong)],
            absent: None,
        }
    );
    assert!(read(FixtureName::WIN_WEBSERVER, &of_both[..1]).is_err());
    let alone = read(FixtureName::WINDOWS_POD_PROBER, &[]).expect("read");
    assert!(alone.targets.is_empty() && alone.absent.is_some());
}

#[test]
fn a_ping_is_of_addresses_and_read_for_each() {
    let query = |target| PingQuery {
        of: Some(FixtureName::WIN_WEBSERVER),
        target,
    };
    let pods = query(Target::Pods);
    let both = vec![[10, 0, 1, 1].into(), [10, 0, 2, 1].into()];
    assert_eq!(
        bound(|at| request::<Ping>(&pods, at)),
        Ok(Request::Ping(both))
    );
    let named = bound(|at| request::<Ping>(&query(Target::ShortName), at));
    assert_eq!(
        named.map_err(|error| error.kind),
        Err(ErrorKind::FactUnknown)
    );
    let reply = |address: &str, answered| {
        let answer = if answered { "TTL=128" } else { "timed out" };
        PingReply {
            answered,
            text: format!("Pinging {address}:\r\n{address}: {answer}\r\n"),
        }
    };
    let replies = vec![reply("10.0.1.1", true), reply("10.0.2.1", false)];
    let read = |replies| bound(|at| read::<Ping>(&pods, at, &Reply::Ping(replies)));
    let seen = read(replies.clone()).expect("read");
    assert_eq!(seen.targets[0].target, "pod web-1 on win-a");
    let one = ReachAnswer::Answered("10.0.1.1: TTL=128".to_owned());
    assert_eq!(seen.targets[0].answer, one);
    let class = match seen.targets[1].answer {
        ReachAnswer::Failed { class, .. } => Some(class),
        ReachAnswer::Answered(_) => None,
    };
    assert_eq!(class, Some(FailureClass::Timeout));
    assert!(read(replies[..1].to_vec()).is_err());
}

#[test]
fn fixtures_stand_in_one_of_two_namespaces_under_the_name_of_their_pool() {
    let ready = standing();
    let host = [
        FixtureName::UNBOUND_PODS,
        FixtureName::LINUX_NODE_PROBER,
        FixtureName::WINDOWS_NODE_PROBER,
        FixtureName::EACH_LINUX_NODE,
        FixtureName::EACH_WINDOWS_NODE,
        FixtureName::LINUX_FIELDS,
        FixtureName::HOST_PATH,
        FixtureName::HOST_NETWORK,
        FixtureName::POD_SIDE,
        FixtureName::LINKED,
        FixtureName::NODE_SIDE,
        FixtureName::HOST_COMMANDS,
        FixtureName::REBOOTER,
        FixtureName::SECCOMP,
        FixtureName::QUOTA,
    ];
    for name in FixtureName::all() {
        let expected = if host.contains(&name) {
            "ns-host"
        } else {
            "ns"
        };
        assert_eq!(ready.namespace_of(name), expected, "{name:?}");
    }
    let key = FixtureName::WIN_WEBSERVER.in_pool(Some(&pool()));
    assert_eq!(key.object_name(), "win-webserver-windows-2022");
    assert_eq!(
        FixtureName::NAMESPACES.in_pool(None).object_name(),
        "namespaces"
    );
}

/// One test of each method; network tests have one for each kind of expectation.
fn tests() -> [(&'static str, Test); 13] {
    let answers = HttpExpectation::Answers {
        status: 200,
        body: String::new(),
    };
    let fails = HttpExpectation::Fails {
        classes: [FailureClass::Timeout].into(),
        status: 200,
        instead_of: String::new(),
    };
    let http = |target, expectation| {
        let query = http(FixtureName::WIN_WEBSERVER, target);
        Test::Http(Assertion { query, expectation })
    };
    let ping = |target, expectation| {
        let query = PingQuery { of: None, target };
        Test::Ping(Assertion { query, expectation })
    };
    let udp = |expectation| {
        let of = FixtureName::WIN_WEBSERVER;
        Test::Udp(Assertion {
            query: of,
            expectation,
        })
    };
    let lost = || ReachExpectation::Fails([FailureClass::Timeout].into());
    let placement = |expectation| {
        let pod = PlacedPod::Plain;
        Test::Placement(Assertion {
            query: pod,
            expectation,
        })
    };
    [
        ("http answers", http(Target::ServiceIp, answers)),
        ("http fails", http(Target::ServiceIp, fails)),
        (
            "http to every pod",
            http(Target::EveryPodBehindServiceIp, HttpExpectation::Reached),
        ),
        (
            "http reached",
            http(Target::OutsideNames, HttpExpectation::Reached),
        ),
        (
            "ping answers",
            ping(Target::OutsideAddresses, ReachExpectation::Answers),
        ),
        ("ping fails", ping(Target::Nodes, lost())),
        ("udp answers", udp(ReachExpectation::Answers)),
        ("udp fails", udp(lost())),
        ("placement starts", placement(PlacementExpectation::Starts)),
        (
            "placement pending",
            placement(PlacementExpectation::Pending(Hindrance::UntoleratedTaint)),
        ),
        (
            "preemption",
            Test::Preemption(Assertion {
                query: (),
                expectation: PreemptionExpectation,
            }),
        ),
        (
            "state",
            Test::State(Assertion {
                query: StateQuery::Pods(FixtureName::WIN_WEBSERVER),
                expectation: StateExpectation::Ready { pods: 1 },
            }),
        ),
        (
            "fact",
            Test::Fact(Assertion {
                query: Topic::Labels,
                expectation: FactExpectation::Told,
            }),
        ),
    ]
}

#[test]
fn each_test_has_the_traits_that_its_row_has() {
    let failure = Signature::Failure([FailureClass::NoRoute].into());
    let not_started = Signature::NotStarted([StartFailure::WrongPlatform].into());
    let rows = tables().tests;
    assert_eq!(rows.len(), tests().len());
    for (row, (name, test)) in rows.into_iter().zip(tests()) {
        let traits = test.traits();
        let those = [
            ("converges", traits.converges),
            ("must-last", traits.must_last),
            ("no-answer", traits.expects_no_answer),
            ("families", traits.has_families),
            ("source", traits.needs_source),
            ("told-who", traits.tells_who_answers),
            ("outside", traits.outside.is_some()),
            ("many", traits.asks_many),
            ("stays", traits.stays),
            ("facts", !traits.facts.is_empty()),
            ("image", traits.image.is_some()),
            ("fails-by-failure", test.expecting(&failure).is_some()),
            ("fails-by-start", test.expecting(&not_started).is_some()),
        ];
        let those = those.into_iter().filter(|(_, has)| *has);
        let those: BTreeSet<_> = those.map(|(word, _)| word.to_owned()).collect();
        assert_eq!((name, those), (&*row.test, row.traits));
        let needs = test.needs().into_iter().map(|(fixture, _)| fixture);
        assert_eq!(needs.collect::<Vec<_>>(), row.needs, "{name}");
    }
    for (word, families, service) in tables().of_families {
        let target = target(&word);
        let told = (target.has_families(), target.is_of_a_service());
        assert_eq!(told, (families, service), "{word}");
    }
}

#[test]
fn a_look_is_at_the_service_of_what_it_asks_for_or_of_its_own_pod() {
    let of = FixtureName::WIN_WEBSERVER;
    let expectation = HttpExpectation::Reached;
    for (target, expected) in [
        (Target::ServiceIp, Some(of)),
        (Target::ItselfByService, Some(FixtureName::LINUX_POD_PROBER)),
        (Target::Pods, None),
    ] {
        let (query, expectation) = (http(of, target), expectation.clone());
        let test = Test::Http(Assertion { query, expectation });
        assert_eq!(
            test.service_of(SourceKind::LinuxPod),
            expected,
            "{target:?}"
        );
    }
    for (name, test) in tests() {
        let of_a_service = matches!(name, "http answers" | "http fails" | "http to every pod");
        let service = test.service_of(SourceKind::LinuxPod);
        assert_eq!(service, Some(of).filter(|_| of_a_service), "{name}");
    }
}

#[test]
fn what_a_server_says_is_fit_for_a_terminal_and_what_it_forbids_is_told_apart() {
    let reply = |status, body| ApiReply { status, body };
    let hostile = reply(403, json!({"message": "no\u{1b}[2J"}));
    assert_eq!(hostile.message(), crate::text::printable("no\u{1b}[2J"));
    assert_eq!(reply(500, json!({})).message(), "no message");
    let otherwise = ErrorKind::FixtureFailed;
    assert_eq!(hostile.refusal(otherwise), ErrorKind::Forbidden);
    assert_eq!(reply(409, json!({})).refusal(otherwise), otherwise);
}

#[test]
fn a_load_balancer_is_passed_by_where_it_has_an_address_and_is_no_proxy() {
    let of = |ingress| {
        Balancer::from_service(&json!({"status": {"loadBalancer": {"ingress": [ingress]}}}))
    };
    for (ingress, at, short_cut) in [
        (json!({"ip": "192.0.2.1"}), "192.0.2.1", true),
        (
            json!({"ip": "192.0.2.1", "ipMode": "VIP"}),
            "192.0.2.1",
            true,
        ),
        (
            json!({"ip": "192.0.2.1", "ipMode": "Proxy"}),
            "192.0.2.1",
            false,
        ),
        (json!({"hostname": "lb.example"}), "lb.example", false),
        (
            json!({"ip": "", "hostname": "lb.example"}),
            "lb.example",
            false,
        ),
    ] {
        let at = at.to_owned();
        assert_eq!(
            of(ingress.clone()),
            Some(Balancer { at, short_cut }),
            "{ingress}"
        );
    }
    assert_eq!(Balancer::from_service(&json!({"status": {}})), None);
}

#[test]
fn looking_again_soon_helps_with_what_passes_alone() {
    use ErrorKind as K;
    let passing = [
        K::ExecTransport,
        K::ExitStatusLost,
        K::OutputTruncated,
        K::UnrecognisedOutput,
        K::NoRoom,
        K::NoView,
        K::Interfered,
        K::Throttled,
        K::ApiUnavailable,
        K::FixtureChanged,
    ];
    assert!(!passing.into_iter().any(ErrorKind::is_lasting));
    let lasting = [
        K::ToolMissing,
        K::ImagePull,
        K::Forbidden,
        K::Unauthenticated,
        K::FactUnknown,
    ];
    assert!(lasting.into_iter().all(ErrorKind::is_lasting));
    let denied = lasting.into_iter().filter(|kind| kind.is_denied());
    assert!(denied.eq([K::Forbidden, K::Unauthenticated]));
    assert!(!passing.into_iter().any(ErrorKind::is_denied));
}

#[test]
fn a_recorded_reply_shares_its_limit_among_all_it_holds() {
    let long = "x".repeat(1_000);
    let replies = vec![answered(&long); 4];
    let text = |reply: &HttpReply| match reply {
        HttpReply::Answered { body, .. } => body.len(),
        HttpReply::Failed { text, .. } | HttpReply::Unreached { text, .. } => text.len(),
    };
    let Some(Reply::Get(kept)) = Reply::Get(replies.clone()).recorded(400) else {
        panic!("what came of GETs is recorded")
    };
    let kept: usize = kept.iter().map(text).sum();
    assert!((100..=400).contains(&kept), "{kept}");
    assert_eq!(
        Reply::Get(replies.clone()).recorded(10_000),
        Some(Reply::Get(replies))
    );
    let ping = PingReply {
        answered: true,
        text: long,
    };
    let Some(Reply::Ping(kept)) = Reply::Ping(vec![ping; 4]).recorded(400) else {
        panic!("what came of pings is recorded")
    };
    let kept: usize = kept.iter().map(|reply| reply.text.len()).sum();
    assert!((100..=400).contains(&kept), "{kept}");
}

#[test]
fn what_was_seen_of_trouble_is_kept_within_bounds() {
    let kept = |detail: &str| ErrorKind::NoView.error(detail).detail;
    let detail = "x".repeat(4_096);
    assert_eq!(kept(&detail), detail);
    assert!(kept(&"x".repeat(1 << 20)).len() < 5_000);
}

/// The result of `of` with that run in a second family, after `with` changed the run.
fn bound_in_second<T>(
    with: impl FnOnce(&mut ReadyFixtures),
    of: impl FnOnce(&Bound<'_>) -> T,
) -> T {
    let mut ready = standing();
    for (key, fixture) in &mut ready.fixtures {
        let host = key.name == FixtureName::WINDOWS_NODE_PROBER;
        for pod in fixture.pods.iter_mut().filter(|_| !host) {
            let std::net::IpAddr::V4(first) = pod.addresses[0] else {
                panic!("the first is IPv4")
            };
            let [_, _, node, last] = first.octets();
            let second = format!("fd00:{node}::{last}");
            pod.addresses.push(second.parse().expect("an address"));
        }
        fixture.second = fixture.service.map(|(_, port)| Served {
            service: Some(("fd00:96::1".parse().expect("an address"), port)),
            name: Some("web-ipv6".to_owned()),
            node_port: Some(30081),
            headless: Some("web-headless-ipv6".to_owned()),
            other_service: None,
        });
    }
    with(&mut ready);
    bound_in(&ready, Some(IpFamily::Ipv6), of)
}

#[test]
fn in_a_second_family_datagrams_go_to_its_addresses() {
    let of = FixtureName::WIN_WEBSERVER;
    let asked = bound_in_second(|_| {}, |at| request::<Udp>(&of, at));
    let Ok(Request::Get(gets)) = asked else {
        panic!("{asked:?}")
    };
    let path = "/dial?host=fd00:1::1&port=8081&protocol=udp&request=hostname&tries=1";
    assert_eq!((gets[0].path.as_str(), gets.len()), (path, 2));
}

/// Removes the second addresses of a fixture's pods on a node.
fn without_second(ready: &mut ReadyFixtures, name: FixtureName, node: &str) {
    let fixture = ready.fixtures.get_mut(&name.in_pool(Some(&pool())));
    let pods = &mut fixture.expect("it stands").pods;
    for pod in pods.iter_mut().filter(|pod| pod.node.starts_with(node)) {
        pod.addresses.truncate(1);
    }
}

#[test]
fn where_there_is_no_second_family_nothing_is_asked_and_it_is_said_why() {
    // HNS of Windows Server 2019 gives none, whatever ranges the node has
    let without_samples = |ready: &mut ReadyFixtures| {
        without_second(ready, FixtureName::WIN_WEBSERVER, "win");
        ready.node_facts = Arc::new(["win-a", "win-b"].map(old_node).to_vec());
    };
    for row in tables().absent {
        let without = |ready: &mut ReadyFixtures| match row.without.as_str() {
            "pods" => {
                for name in [
                    FixtureName::WINDOWS_POD_PROBER,
                    FixtureName::WIN_WEBSERVER,
                    FixtureName::CHURN,
                ] {
                    without_second(ready, name, "win");
                }
            }
            "samples" => without_samples(ready),
            "services" => {
                for fixture in ready.fixtures.values_mut() {
                    fixture.second = Some(Served::default());
                }
            }
            "nodes" => {
                for node in &mut ready.nodes {
                    node.addresses.remove(0);
                }
            }
            other => panic!("nothing is without {other}"),
        };
        let query = http(FixtureName::WIN_WEBSERVER, target(&row.target));
        let read = |at: &Bound<'_>| {
            assert_eq!(request::<Http>(&query, at), Ok(Request::Get(Vec::new())));
            read::<Http>(&query, at, &Reply::Get(Vec::new()))
        };
        let absent = bound_in_second(without, read).expect("read").absent;
        let absent = absent.expect("a reason");
        assert!(absent.contains(&row.reason), "{}: {absent}", row.target);
    }
    let query = FixtureName::WIN_WEBSERVER;
    let read = |at: &Bound<'_>| read::<Udp>(&query, at, &Reply::Get(Vec::new()));
    let absent = bound_in_second(without_samples, read).expect("read").absent;
    assert_eq!(
        absent.as_deref(),
        Some("the pods of win-webserver have no IPv6 address")
    );
}

/// A node of Windows Server 2019 with a range of each family for its pods.
fn old_node(name: &str) -> NodeFact {
    node_of(name, WindowsBuild::SERVER_2019)
}

fn node_of(name: &str, build: WindowsBuild) -> NodeFact {
    NodeFact {
        name: name.to_owned(),
        os: Os::Windows,
        build: Some(build),
        usable: true,
        excluded: None,
        spared: None,
        taints: Vec::new(),
        details: NodeDetails {
            pod_cidrs: ["10.0.1.0/24", "fd00:1::/64"].map(str::to_owned).to_vec(),
            ..NodeDetails::default()
        },
    }
}

#[test]
fn without_an_address_that_it_should_have_a_pod_is_trouble() {
    type With<'w> = &'w dyn Fn(&mut ReadyFixtures);
    let here =
        |ready: &mut ReadyFixtures| without_second(ready, FixtureName::WINDOWS_POD_PROBER, "win");
    let there =
        |ready: &mut ReadyFixtures| without_second(ready, FixtureName::WIN_WEBSERVER, "win");
    let nowhere = |ready: &mut ReadyFixtures| {
        for name in [
            FixtureName::WINDOWS_POD_PROBER,
            FixtureName::WIN_WEBSERVER,
            FixtureName::CHURN,
        ] {
            without_second(ready, name, "win");
        }
        let node = node_of("win-a", WindowsBuild::SERVER_2022);
        ready.node_facts = Arc::new(vec![node]);
    };
    let cases: [(With<'_>, &str); 3] = [
        (
            &here,
            "pod prober on win-a, which observes, has no IPv6 address, though pod web-1 on win-a has",
        ),
        (
            &there,
            "the pods of win-webserver have no IPv6 address, though pod prober on win-a has",
        ),
        (
            &nowhere,
            "pod prober on win-a, which observes, has no IPv6 address, though win-a has fd00:1::/64 for \
             its pods (unless its network is an overlay, which gives Windows pods one family)",
        ),
    ];
    let of = FixtureName::WIN_WEBSERVER;
    for (with, detail) in cases {
        let error = ErrorKind::FixtureFailed.error(detail);
        let asked = bound_in_second(with, |at| request::<Http>(&http(of, Target::ServiceIp), at));
        assert_eq!(asked, Err(error.clone()));
        let asked = bound_in_second(with, |at| request::<Udp>(&of, at));
        assert_eq!(asked, Err(error));
    }
}

#[test]
fn pods_on_the_network_of_their_node_are_owed_none_of_its_ranges() {
    let with = |ready: &mut ReadyFixtures| {
        let node = node_of("win-idle", WindowsBuild::SERVER_2022);
        ready.node_facts = Arc::new(vec![node]);
    };
    let node = VantageKey {
        kind: SourceKind::WindowsNode,
        pool: Some(pool()),
        node: None,
    };
    let from_node = |at: &Bound<'_>| {
        let from = Some(&node);
        Bound { from, ..*at }.without_family(None)
    };
    let lack = "pod node-prober on win-idle, which observes, has no IPv6 address";
    let lack = Ok(Some(lack.to_owned()));
    assert_eq!(bound_in_second(with, from_node), lack);
    let at_node = |at: &Bound<'_>| at.without_family(Some(FixtureName::WINDOWS_NODE_PROBER));
    let lack = "the pods of windows-node-prober have no IPv6 address";
    assert_eq!(bound_in_second(with, at_node), Ok(Some(lack.to_owned())));
}

#[test]
fn what_pods_of_another_pool_have_is_due_to_none_of_this_one() {
    let with = |ready: &mut ReadyFixtures| {
        for name in [
            FixtureName::WINDOWS_POD_PROBER,
            FixtureName::WIN_WEBSERVER,
            FixtureName::CHURN,
        ] {
            without_second(ready, name, "win-a");
        }
    };
    let query = http(FixtureName::WIN_WEBSERVER, Target::ServiceIp);
    let asked = bound_in_second(with, |at| request::<Http>(&query, at));
    assert_eq!(asked, Ok(Request::Get(Vec::new())));
}

#[test]
fn fixtures_are_told_apart_by_their_network_and_by_their_families() {
    let those = |so: fn(FixtureName) -> bool| -> Vec<FixtureName> {
        let all = FixtureName::all();
        all.filter(|name| so(*name)).collect()
    };
    let in_second = those(FixtureName::is_in_second_family);
    let of_both = [
        FixtureName::WINDOWS_POD_PROBER,
        FixtureName::CHURN,
        FixtureName::WIN_WEBSERVER,
        FixtureName::LOCAL_SERVICE,
    ];
    assert_eq!(in_second, of_both);
    let on_node = [
        FixtureName::LINUX_NODE_PROBER,
        FixtureName::WINDOWS_NODE_PROBER,
        FixtureName::EACH_LINUX_NODE,
        FixtureName::NODE_SIDE,
        FixtureName::EACH_WINDOWS_NODE,
        FixtureName::HOST_COMMANDS,
        FixtureName::REBOOTER,
    ];
    assert_eq!(those(FixtureName::is_on_node), on_node);
}

#[test]
fn one_pod_without_an_address_that_others_have_is_trouble() {
    let query = http(FixtureName::WIN_WEBSERVER, Target::ServiceIp);
    let with = |ready: &mut ReadyFixtures| {
        without_second(ready, FixtureName::WIN_WEBSERVER, "win-b");
    };
    let error = bound_in_second(with, |at| request::<Http>(&query, at)).expect_err("an error");
    assert_eq!(
        error.detail,
        "win-webserver has no IPv6 address for pod web-2 on win-b, as for others"
    );
}

#[test]
fn without_its_services_of_the_second_family_a_fixture_stands_in_the_first() {
    let broken = ErrorKind::Forbidden.error("denied by the house");
    let with = |ready: &mut ReadyFixtures| {
        for fixture in ready.fixtures.values_mut() {
            fixture.second = None;
            fixture.second_broken = Some(broken.clone());
        }
    };
    for target in [
        Target::ServiceIp,
        Target::FullName,
        Target::HeadlessName,
        Target::NodePorts,
        Target::OwnNodePort,
        Target::ItselfByService,
    ] {
        let query = http(FixtureName::WIN_WEBSERVER, target);
        let second = bound_in_second(with, |at| request::<Http>(&query, at));
        assert_eq!(second, Err(broken.clone()), "{target:?}");
        let first = bound_in_second(with, |at| {
            request::<Http>(
                &query,
                &Bound {
                    family: None,
                    ..*at
                },
            )
        });
        assert!(first.is_ok(), "{target:?}: {first:?}");
    }
    for (of, target) in [
        (FixtureName::WIN_WEBSERVER, Target::Pods),
        (FixtureName::WINDOWS_POD_PROBER, Target::Itself),
    ] {
        let of_pods = bound_in_second(with, |at| request::<Http>(&http(of, target), at));
        assert!(of_pods.is_ok(), "{target:?}: {of_pods:?}");
    }
}

#[test]
fn without_any_node_there_is_none_to_have_a_family() {
    let unknown = ErrorKind::FactUnknown.error("no node is known of");
    let query = http(FixtureName::WIN_WEBSERVER, Target::Nodes);
    let asked = bound_in_second(
        |ready| ready.nodes.clear(),
        |at| request::<Http>(&query, at),
    );
    assert_eq!(asked, Err(unknown));
}

#[test]
fn a_service_of_a_family_that_no_node_has_is_trouble() {
    let mut ready = standing();
    for node in &mut ready.nodes {
        node.addresses.remove(0);
    }
    let web = FixtureName::WIN_WEBSERVER.in_pool(Some(&pool()));
    let web = ready.fixtures.get_mut(&web).expect("it stands");
    web.service = Some(("fd00:96::1".parse().expect("an address"), 80));
    let query = http(FixtureName::WIN_WEBSERVER, Target::NodePorts);
    let asked = bound_in(&ready, None, |at| request::<Http>(&query, at));
    let detail = asked.expect_err("an error").detail;
    assert!(
        detail.contains("no node with an address of its family, IPv6"),
        "{detail}"
    );
}

#[test]
fn a_node_of_which_no_address_is_known_is_not_one_without_the_second_family() {
    let unknown = ErrorKind::FactUnknown.error("the address of node win-a");
    let of_no_node = |ready: &mut ReadyFixtures| ready.nodes[0].addresses.clear();
    let no_node = |ready: &mut ReadyFixtures| drop(ready.nodes.remove(0));
    for (target, with) in [
        (Target::Nodes, &of_no_node as &dyn Fn(&mut ReadyFixtures)),
        (Target::NodePorts, &of_no_node),
        (Target::OwnNodePort, &of_no_node),
        (Target::OwnNodePort, &no_node),
    ] {
        let query = http(FixtureName::WIN_WEBSERVER, target);
        for family in [None, Some(IpFamily::Ipv6)] {
            let asked =
                bound_in_second(with, |at| request::<Http>(&query, &Bound { family, ..*at }));
            assert_eq!(asked, Err(unknown.clone()), "{target:?} {family:?}");
        }
    }
}
