use super::*;
use crate::facts::{PoolName, WindowsBuild};
use crate::way::{
    Balancer, Difference, Look, SourceKind, Standing, StandingFixture, StandingNode, StandingPod,
    Taken, VantageKey,
};

const MARKER: &str = "Windows Container Web Server";

fn answers() -> HttpExpect {
    HttpExpect::Answers {
        status: 200,
        body: MARKER.to_owned(),
    }
}

fn times_out() -> HttpExpect {
    let classes = [FailureClass::Timeout].into();
    HttpExpect::Fails {
        classes,
        status: 200,
        instead_of: MARKER.to_owned(),
    }
}

fn seen(each: Vec<HttpAnswer>) -> HttpSeen {
    let targets = each.into_iter().enumerate().map(|(at, answer)| TargetSeen {
        target: format!("target {at}"),
        foreign: false,
        by: matches!(answer, HttpAnswer::Answered { .. }).then(|| "pod".to_owned()),
        answer,
    });
    HttpSeen {
        targets: targets.collect(),
        unmet: Vec::new(),
        absent: None,
    }
}

fn good() -> HttpAnswer {
    HttpAnswer::Answered {
        status: 200,
        body: MARKER.to_owned(),
    }
}

fn bad(class: FailureClass) -> HttpAnswer {
    HttpAnswer::Failed {
        class,
        text: String::new(),
    }
}

fn answered(status: u16, body: &str) -> HttpSeen {
    let body = body.to_owned();
    seen(vec![HttpAnswer::Answered { status, body }])
}

fn failed(class: FailureClass) -> HttpSeen {
    seen(vec![bad(class)])
}

#[test]
fn published_texts_are_classed() {
    for (code, text, class) in [
        (
            7,
            "Failed to connect to 10.107.10.132 port 80: Timed out",
            FailureClass::Timeout,
        ),
        (
            7,
            "Failed to connect to 172.20.101.110 port 8081: Network unreachable",
            FailureClass::NoRoute,
        ),
        (
            6,
            "Could not resolve host: aggregator-service",
            FailureClass::Dns,
        ),
        (
            28,
            "Resolving timed out after 4001 milliseconds",
            FailureClass::Dns,
        ),
        (
            7,
            "Failed to connect to 10.0.0.1 port 80 after 2041 ms: Connection refused",
            FailureClass::Refused,
        ),
        (
            28,
            "Connection timed out after 4001 milliseconds",
            FailureClass::Timeout,
        ),
        (
            28,
            "Failed to connect to 10.0.0.1 port 80 after 4002 ms: Timeout was reached",
            FailureClass::Timeout,
        ),
        (
            56,
            "Recv failure: Connection was reset",
            FailureClass::Reset,
        ),
        (
            28,
            "Operation timed out after 8001 milliseconds with 0 bytes received",
            FailureClass::NoAnswer,
        ),
        (
            7,
            "Failed to connect to 10.0.0.1 port 80 after 2045 ms: Could not connect to server",
            FailureClass::NotConnected,
        ),
    ] {
        assert_eq!(classify(code, text), Some(class), "{text}");
    }
    // lib/strerror.c of curl: a Windows that forbids connects, and others (windows-containers#516)
    for why in [
        "Bad access",
        "Address not available",
        "No buffer space",
        "reasons unheard of",
    ] {
        let text = format!("Failed to connect to 10.0.0.9 port 80: {why}");
        assert_eq!(
            classify(7, &text),
            Some(FailureClass::NotConnected),
            "{why}"
        );
    }
    assert_eq!(classify(3, "URL using bad/illegal format"), None);
}

#[test]
fn an_answer_without_the_marker_is_not_an_answer() {
    let captive = answered(200, "<html>welcome</html>");
    assert!(matches!(
        Http::compare(&answers(), &captive),
        Ok(Comparison::Otherwise(_))
    ));
    // Nor does it lift a limitation
    assert!(matches!(
        Http::compare(&times_out(), &captive),
        Ok(Comparison::Otherwise(_))
    ));
}

#[test]
fn a_limitation_holds_only_by_its_signature() {
    let compare = |seen| Http::compare(&times_out(), &seen).expect("told");
    assert!(compare(failed(FailureClass::Timeout)).holds());
    assert!(matches!(
        compare(failed(FailureClass::Refused)),
        Comparison::Otherwise(_)
    ));
    assert!(matches!(
        compare(answered(200, MARKER)),
        Comparison::Refuted(_)
    ));
}

#[test]
fn a_capability_is_refuted_by_failing() {
    let compare = |seen| Http::compare(&answers(), &seen).expect("told");
    assert!(compare(answered(200, MARKER)).holds());
    assert!(matches!(
        compare(failed(FailureClass::Timeout)),
        Comparison::Refuted(_)
    ));
    assert!(matches!(
        compare(answered(500, MARKER)),
        Comparison::Otherwise(_)
    ));
}

#[test]
fn the_page_of_another_pod_is_not_an_answer() {
    let mut others = answered(200, MARKER);
    others.targets[0].foreign = true;
    for expect in [answers(), times_out()] {
        let compared = Http::compare(&expect, &others);
        assert!(matches!(compared, Ok(Comparison::Otherwise(_))));
    }
}

#[test]
fn of_several_targets_all_must_answer_and_those_that_do_not_are_named() {
    let compare = |each| Http::compare(&answers(), &seen(each)).expect("told");
    assert!(compare(vec![good(), good()]).holds());
    let Comparison::Refuted(Difference { expected, seen }) =
        compare(vec![good(), bad(FailureClass::Timeout)])
    else {
        panic!("one does not answer");
    };
    assert_eq!(expected, format!("200 with `{MARKER}` from each of 2"));
    assert_eq!(seen, "1 of 2 otherwise; target 1: timeout: ");
    let many = (0..9).map(|_| bad(FailureClass::Timeout)).collect();
    let Comparison::Refuted(Difference { seen, .. }) = compare(many) else {
        panic!("none answers");
    };
    assert!(seen.ends_with("; and 5 more"), "{seen}");
}

#[test]
fn a_limitation_of_several_targets_is_lifted_by_all_alone() {
    let compare = |each| Http::compare(&times_out(), &seen(each)).expect("told");
    let timeout = || bad(FailureClass::Timeout);
    assert!(compare(vec![timeout(), timeout()]).holds());
    assert!(matches!(
        compare(vec![good(), good()]),
        Comparison::Refuted(_)
    ));
    assert!(matches!(
        compare(vec![good(), timeout()]),
        Comparison::Otherwise(_)
    ));
}

#[test]
fn a_pod_that_nobody_met_is_named() {
    let mut one_of_two = seen(vec![good(), good()]);
    one_of_two.unmet = vec!["web-b".to_owned()];
    let compared = Http::compare(&answers(), &one_of_two).expect("told");
    let Comparison::Otherwise(Difference { seen, .. }) = compared else {
        panic!("{compared:?}");
    };
    assert_eq!(seen, "so it was, 2 of 2; none was answered by web-b");
}

#[test]
fn how_it_fails_as_it_should_is_told_of_many_as_of_one() {
    let told = |targets| {
        let compared = Http::compare(&times_out(), &seen(targets)).expect("told");
        let Comparison::Holds(Difference { seen, .. }) = compared else {
            panic!("{compared:?}");
        };
        seen
    };
    let timeout = || bad(FailureClass::Timeout);
    let one = told(vec![timeout()]);
    assert!(one.starts_with("timeout: "), "{one}");
    let many = told(vec![timeout(), timeout()]);
    assert_eq!(many, format!("{one}; so it was, 2 of 2"));
    let expect = HttpExpect::Fails {
        classes: [FailureClass::Timeout, FailureClass::NoRoute].into(),
        status: 200,
        instead_of: MARKER.to_owned(),
    };
    let both = seen(vec![timeout(), bad(FailureClass::NoRoute), timeout()]);
    let Ok(Comparison::Holds(Difference { seen, .. })) = Http::compare(&expect, &both) else {
        panic!("both are expected");
    };
    assert_eq!(seen, "no-route: ; timeout: ; so it was, 3 of 3");
}

#[test]
fn without_a_target_the_question_does_not_arise() {
    let mut none = seen(Vec::new());
    none.absent = Some("one node".to_owned());
    let compared = Http::compare(&answers(), &none).expect("told");
    assert_eq!(compared, Comparison::Inapplicable("one node".to_owned()));
}

/// What a look from a Linux pod at that target came to, by what its requests had for an answer.
fn from_linux(standing: &Standing, ask: HttpAsk, replies: &[HttpReply]) -> Result<Taken, Trouble> {
    let from = VantageKey {
        kind: SourceKind::LinuxPod,
        pool: Some(PoolName::linux()),
        node: None,
    };
    let at = Bound {
        from: Some(&from),
        ..Bound::of(standing)
    };
    let expect = HttpExpect::Reached;
    Look::<Http> { ask, expect }.take(&at, &Reply::Get(replies.to_vec()))
}

fn said(body: &str) -> HttpReply {
    HttpReply::Answered {
        status: 200,
        body: body.to_owned(),
    }
}

/// The pod that looks, and another on a node of its own.
fn two_linux_pods() -> Standing {
    let mut standing = Standing::default();
    let names = [FixtureName::LinuxPodProber, FixtureName::LinuxServer];
    for (last, name) in (1_u8..).zip(names) {
        let pod = StandingPod {
            name: format!("linux-{last}"),
            uid: String::new(),
            node: format!("node-{last}"),
            addresses: vec![[10, 0, 0, last].into()],
            restarts: 0,
        };
        let stands = StandingFixture {
            service: Some(([10, 96, 0, last].into(), 80)),
            name: Some("prober".to_owned()),
            port: Some(8080),
            domain: Some("cluster.local".to_owned()),
            pods: vec![pod],
            ..StandingFixture::default()
        };
        standing.fixtures.insert(name.at(None), stands);
    }
    standing
}

#[test]
fn it_is_about_port_80_only_where_another_port_of_the_same_pods_answers() {
    let standing = two_linux_pods();
    let ask = HttpAsk {
        of: Some(FixtureName::LinuxServer),
        target: Target::Port80OnOtherNodes,
    };
    let (open, closed) = (said("linux-2"), refused(28, "Connection timed out"));
    let came = |by_8080: &HttpReply, by_80: &HttpReply| {
        let replies = [by_8080.clone(), by_80.clone()];
        from_linux(&standing, ask.clone(), &replies)
            .expect("read")
            .comparison
    };
    assert!(came(&open, &open).holds());
    assert!(matches!(came(&open, &closed), Comparison::Refuted(_)));
    assert!(matches!(
        came(&closed, &closed),
        Comparison::Inapplicable(_)
    ));
}

#[test]
fn names_outside_say_nothing_of_linux_where_the_cluster_s_own_are_not_resolved() {
    let standing = two_linux_pods();
    let ask = HttpAsk {
        of: None,
        target: Target::OutsideNames,
    };
    let dead = refused(6, "Could not resolve host: a");
    let came = |outside: &HttpReply, own: &HttpReply| {
        let replies = [outside.clone(), own.clone()];
        from_linux(&standing, ask.clone(), &replies).map(|taken| taken.comparison)
    };
    let says = &standing.outside.names[0].says;
    assert!(came(&said(says), &said("")).is_ok_and(|came| came.holds()));
    assert!(matches!(came(&dead, &said("")), Ok(Comparison::Refuted(_))));
    // Its Service is another matter
    let silent = refused(28, "Connection timed out");
    assert!(matches!(came(&dead, &silent), Ok(Comparison::Refuted(_))));
    let trouble = came(&dead, &dead).expect_err("the cluster's DNS is dead");
    assert!(trouble.detail.contains("prober."), "{trouble}");
}

fn refused(code: u16, text: &str) -> HttpReply {
    HttpReply::Failed {
        code,
        text: text.to_owned(),
    }
}

const KUBELET: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// As many nodes, with their kubelets.
fn nodes(count: u8) -> Standing {
    let node = |n: u8| StandingNode {
        name: format!("win-{n}"),
        pool: PoolName::windows(WindowsBuild::SERVER_2022),
        kubelet: Some(10250),
        addresses: vec![[10, 0, 0, n].into()],
    };
    Standing {
        nodes: (0..count).map(node).collect(),
        ..Standing::default()
    }
}

#[test]
fn what_so_many_said_is_compared_whole_and_kept_in_bounds() {
    // As many as are looked at one by one
    let standing = nodes(64);
    let at = Bound::of(&standing);
    let look = Look::<Http> {
        ask: HttpAsk {
            of: None,
            target: Target::Nodes,
        },
        expect: HttpExpect::Answers {
            status: 400,
            body: KUBELET.trim_end().to_owned(),
        },
    };
    let said = |body: &str| HttpReply::Answered {
        status: 400,
        body: body.to_owned(),
    };
    let mut replies = vec![said(KUBELET); 64];
    let taken = look.take(&at, &Reply::Get(replies.clone())).expect("read");
    assert!(taken.comparison.holds(), "{:?}", taken.comparison);
    let kept: HttpSeen = serde_json::from_value(taken.observation).expect("an observation");
    let bytes = |seen: &TargetSeen| match &seen.answer {
        HttpAnswer::Answered { body, .. } => body.len(),
        HttpAnswer::Failed { text, .. } => text.len(),
    };
    assert_eq!(kept.targets.len(), 64);
    assert!(kept.targets.iter().map(bytes).sum::<usize>() <= BODIES_KEPT);
    // One that says something else still counts, and is not told of at any length
    replies[63] = said(&"x".repeat(1 << 20));
    let taken = look.take(&at, &Reply::Get(replies)).expect("read");
    let Comparison::Otherwise(difference) = taken.comparison else {
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
fn what_curl_says_of_tls_and_of_cut_connections() {
    for code in [35, 51, 53, 54, 58, 59, 60, 77] {
        assert_eq!(classify(code, "x"), Some(FailureClass::Tls), "{code}");
    }
    let empty = "Empty reply from server";
    assert_eq!(classify(52, empty), Some(FailureClass::Reset));
    assert_eq!(classify(56, "Recv failure: something new"), None);
}

#[test]
fn whoever_is_meant_is_reached_by_an_answer_of_its_own() {
    let word = |seen: &HttpSeen| match Http::compare(&HttpExpect::Reached, seen) {
        Ok(Comparison::Holds(_)) => "holds",
        Ok(Comparison::Refuted(_)) => "refuted",
        Ok(Comparison::Otherwise(_)) => "otherwise",
        other => panic!("{other:?}"),
    };
    let mut one = answered(200, "welcome");
    assert_eq!(word(&one), "holds");
    one.targets[0].foreign = true;
    assert_eq!(word(&one), "otherwise");
    assert_eq!(word(&failed(FailureClass::Timeout)), "refuted");
}

#[test]
fn many_requests_to_one_target_are_told_from_many_targets() {
    let expected = |seen: &HttpSeen| match Http::compare(&answers(), seen) {
        Ok(Comparison::Holds(difference)) => difference.expected,
        other => panic!("{other:?}"),
    };
    let mut two = seen(vec![good(), good()]);
    assert_eq!(
        expected(&two),
        format!("200 with `{MARKER}` from each of 2")
    );
    two.targets[1].target = two.targets[0].target.clone();
    assert_eq!(
        expected(&two),
        format!("200 with `{MARKER}` to each of 2 requests, and every pod met")
    );
}

#[test]
fn as_many_as_are_named_leave_none_out() {
    let four = (0..4).map(|_| bad(FailureClass::Timeout)).collect();
    let Ok(Comparison::Refuted(difference)) = Http::compare(&answers(), &seen(four)) else {
        panic!("none answers")
    };
    assert!(!difference.seen.contains("more"), "{}", difference.seen);
}

#[test]
fn what_one_said_is_kept_whole_within_bounds() {
    let body = "x".repeat(2_048);
    let one = answered(200, &body);
    assert_eq!(Http::kept(one.clone()), one);
    let long = Http::kept(answered(200, &format!("{body}y")));
    assert_ne!(long, answered(200, &format!("{body}y")));
}

#[test]
fn what_is_expected_has_words() {
    let answers = |body: &str| HttpExpect::Answers {
        status: 200,
        body: body.to_owned(),
    };
    for (expect, words) in [
        (answers(""), "200 with what tells the pod"),
        (answers("x"), "200 with `x`"),
        (HttpExpect::Reached, "an answer of whoever is meant"),
        (times_out(), "failure by timeout"),
    ] {
        assert_eq!(expect.to_string(), words);
    }
}

#[test]
fn the_fixtures_a_target_needs_are_those_its_name_is_made_of() {
    for &target in Target::ALL {
        let expected: &[_] = match target {
            Target::FullName | Target::HeadlessName => &[FixtureName::LinuxPodProber],
            Target::Alias => &[FixtureName::LinuxPodProber, FixtureName::Alias],
            Target::LoadBalancer => &[FixtureName::LoadBalancer],
            _ => &[],
        };
        assert_eq!(target.needs(), expected, "{target:?}");
    }
}

#[test]
fn from_within_only_what_is_passed_by_is_looked_at() {
    let pool = PoolName::windows(WindowsBuild::SERVER_2022);
    let mut standing = nodes(1);
    let prober = FixtureName::LinuxPodProber.at(None);
    let mut ask = |at: &str, short_cut: bool, kind: SourceKind| {
        let service = StandingFixture {
            service: Some(([10, 96, 0, 7].into(), 80)),
            balancer: Some(Balancer {
                at: at.to_owned(),
                short_cut,
            }),
            ..StandingFixture::default()
        };
        for name in [FixtureName::Iis, FixtureName::LoadBalancer] {
            let stands = standing.fixtures.entry(name.at(Some(&pool)));
            stands.insert_entry(service.clone());
        }
        standing
            .fixtures
            .insert(prober.clone(), StandingFixture::default());
        let from = VantageKey {
            kind,
            pool: None,
            node: None,
        };
        let at = Bound {
            from: Some(&from),
            pool: Some(&pool),
            ..Bound::of(&standing)
        };
        let aims = Target::LoadBalancer.aims(Some(FixtureName::Iis), &at)?;
        let urls: Vec<_> = aims.each.iter().map(|aim| aim.get.url()).collect();
        assert_eq!(urls.is_empty(), aims.absent.is_some());
        Ok::<_, Trouble>(urls.concat())
    };
    let (within, outside) = (SourceKind::LinuxPod, SourceKind::Outside);
    let address = "http://192.0.2.7:80/";
    assert_eq!(ask("192.0.2.7", true, within).as_deref(), Ok(address));
    assert_eq!(ask("192.0.2.7", false, within).as_deref(), Ok(""));
    assert_eq!(ask("192.0.2.7", false, outside).as_deref(), Ok(address));
    let name = "a-1.elb.amazonaws.com";
    assert_eq!(ask(name, false, within).as_deref(), Ok(""));
    let url = format!("http://{name}:80/");
    assert_eq!(ask(name, false, outside), Ok(url));
    for no_name in ["a b", "a\"\nurl = \"http://b", "ö"] {
        assert!(ask(no_name, false, outside).is_err(), "{no_name}");
    }
}
