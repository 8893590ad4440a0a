//! Runs for reports: each is written as a record and read back, never made by hand.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use winconform_core::claims::{ClaimId, Kind, Pattern};
use winconform_core::config::{Profile, Waiver};
use winconform_core::facts::{Facts, Known, NodeDetails, NodeFact, Os, PoolName, WindowsBuild};
use winconform_core::plan::{CheckId, Fate, Point, Unoffered};
use winconform_core::record::{
    Activity, After, Attempted, Ended, Event, Exit, FixtureOutcome, Line, LookRecord, ObjectName,
    PlannedCheck, RunView, SCHEMA, Span, Started, TornDown, read, to_line,
};
use winconform_core::verdict::{Because, Conclusion, Role, SkipReason, Verdict};
use winconform_core::way::{
    Comparison, Difference, FixtureKey, FixtureName, HttpReply, Reply, SourceKind, Trouble,
    TroubleKind,
};

/// A record as it is written.
pub(crate) struct Recorder {
    text: String,
    seq: u64,
    at: Timestamp,
}

impl Recorder {
    /// A record without any line.
    pub(crate) fn empty() -> Self {
        let at = "2026-03-01T02:00:00Z".parse().expect("a timestamp");
        Self {
            text: String::new(),
            seq: 0,
            at,
        }
    }

    /// A record of a run that has started.
    pub(crate) fn started() -> Self {
        let mut recorder = Self::empty();
        recorder.push(Event::RunStarted(started()));
        recorder
    }

    /// The line an event becomes, half a second after the one before.
    pub(crate) fn line(&mut self, event: Event) -> Line {
        let line = Line {
            seq: self.seq,
            at: self.at,
            event,
        };
        self.seq += 1;
        self.at += SignedDuration::from_millis(500);
        line
    }

    /// Writes an event.
    pub(crate) fn push(&mut self, event: Event) -> &mut Self {
        let line = self.line(event);
        self.text
            .push_str(&to_line(&line).expect("an event is JSON"));
        self
    }

    /// A check with one attempt per verdict, then its conclusion.
    pub(crate) fn judged(
        &mut self,
        check: &PlannedCheck,
        attempts: &[(Verdict, LookRecord)],
        conclusion: Conclusion,
    ) -> &mut Self {
        for (number, (verdict, look)) in (1..).zip(attempts) {
            let (check, looks) = (check.id.clone(), vec![look.clone()]);
            let verdict = *verdict;
            self.push(Event::Attempt(Attempted {
                check,
                number,
                rounds: 1,
                verdict,
                looks,
                came_apart: Vec::new(),
            }));
        }
        self.push(Event::Verdict {
            check: check.id.clone(),
            conclusion,
        })
    }

    /// The record's text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The record read back.
    pub(crate) fn view(&self) -> RunView {
        read(&self.text).expect("a record")
    }
}

/// How a run starts.
pub(crate) fn started() -> Started {
    Started {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        run: "k3x9".to_owned(),
        context: "kind-hybrid".to_owned(),
        unverified: false,
        suites: "5f".repeat(32),
        profile: Profile::default(),
        config: None,
        selection: Vec::new(),
        unchecked: Vec::new(),
        waivers: Vec::new(),
    }
}

/// A waiver whose reason and owner are this text.
pub(crate) fn waiver(check: &str, text: &str, expires: &str) -> Waiver {
    Waiver {
        check: Pattern::parse(check).expect("a pattern"),
        reason: text.to_owned(),
        owner: text.to_owned(),
        expires: expires.parse().expect("a date"),
    }
}

/// A cluster of two Linux and three Windows nodes, one of them not usable.
pub(crate) fn facts() -> Facts {
    let node = |name: &str, os, build, usable| NodeFact {
        name: name.to_owned(),
        os,
        build,
        usable,
        taints: vec![json!({"key": "os", "value": "windows", "effect": "NoSchedule"})],
        details: NodeDetails::default(),
    };
    let source = "/api/v1/nodes".to_owned();
    let windows = Some(WindowsBuild::SERVER_2022);
    Facts {
        server: Known::Fact {
            value: "v1.37.0".to_owned(),
            source: "/version".to_owned(),
        },
        cluster: Known::Fact {
            value: "f2b1".to_owned(),
            source: "/api/v1/namespaces".to_owned(),
        },
        nodes: Known::Fact {
            value: vec![
                node("cp-0", Os::Linux, None, true),
                node("linux-0", Os::Linux, None, true),
                node("win-0", Os::Windows, windows, true),
                node("win-1", Os::Windows, windows, true),
                node("win-2", Os::Windows, windows, false),
            ],
            source,
        },
        ..Facts::default()
    }
}

/// A planned check.
pub(crate) fn planned(claim: &str, kind: Kind, point: Point, title: &str) -> PlannedCheck {
    let claim = ClaimId::parse(claim).expect("a claim id");
    PlannedCheck {
        id: CheckId::new(&claim, None, &point),
        claim,
        kind,
        title: title.to_owned(),
        hint: format!("Look at what `{title}` rests on."),
        point,
        fate: Fate::Look,
    }
}

/// A point at the Windows Server 2022 pool.
pub(crate) fn at(source: Option<SourceKind>) -> Point {
    Point {
        pool: Some(PoolName::windows(WindowsBuild::SERVER_2022)),
        source,
        ..Point::default()
    }
}

/// The six checks of the five first claims on one pool.
pub(crate) fn plan() -> Vec<PlannedCheck> {
    let service = "the Service's virtual IP answers from a pod";
    let from = |source| at(Some(source));
    vec![
        planned(
            "env.windows-build-label",
            Kind::Requirement,
            at(None),
            "the build label of each Windows node agrees with its kernel version",
        ),
        planned(
            "net.node-to-service-ip",
            Kind::Limitation,
            from(SourceKind::WindowsNode),
            "a Windows node does not reach the Service's virtual IP",
        ),
        planned(
            "net.service-ip-from-pod",
            Kind::Capability,
            from(SourceKind::LinuxPod),
            service,
        ),
        planned(
            "net.service-ip-from-pod",
            Kind::Capability,
            from(SourceKind::WindowsPod),
            service,
        ),
        planned(
            "reject.hostPID",
            Kind::Rejection,
            Point::default(),
            "hostPID is refused when spec.os.name is windows",
        ),
        planned(
            "sample.win-webserver",
            Kind::Capability,
            at(None),
            "both replicas of the win-webserver become Ready with the image of their build",
        ),
    ]
}

/// What should be seen beside what was.
pub(crate) fn difference(expected: &str, seen: &str) -> Difference {
    Difference {
        expected: expected.to_owned(),
        seen: seen.to_owned(),
    }
}

/// A conclusion without disagreement.
pub(crate) fn conclusion(verdict: Verdict, because: Because) -> Conclusion {
    Conclusion {
        verdict,
        because,
        flaky: false,
        repeated: BTreeMap::new(),
    }
}

/// A conclusion that rests on what was seen.
pub(crate) fn saw(verdict: Verdict, expected: &str, seen: &str) -> Conclusion {
    conclusion(verdict, Because::Seen(difference(expected, seen)))
}

/// A look that compared.
pub(crate) fn looked(comparison: Comparison) -> LookRecord {
    LookRecord {
        name: "look".to_owned(),
        role: Role::SamePath,
        reply: Some(Reply::Get(vec![HttpReply::Failed {
            code: 28,
            text: "Timeout".to_owned(),
        }])),
        observation: Some(json!({"failed": {"class": "timeout", "text": "Timeout"}})),
        comparison: Some(comparison),
        trouble: None,
    }
}

/// A fixture at the Windows Server 2022 pool, or of all.
pub(crate) fn fixture(name: FixtureName) -> FixtureKey {
    let pool = name
        .per_pool()
        .then(|| PoolName::windows(WindowsBuild::SERVER_2022));
    FixtureKey {
        name,
        pool,
        node: None,
    }
}

/// A fixture that stands.
pub(crate) fn stands(name: FixtureName, took_ms: u64) -> Event {
    let outcome = FixtureOutcome::Stands(Box::default());
    Event::Fixture {
        key: fixture(name),
        outcome,
        took_ms,
    }
}

/// A fixture that failed.
pub(crate) fn failed(name: FixtureName, trouble: Trouble, took_ms: u64) -> Event {
    Event::Fixture {
        key: fixture(name),
        outcome: FixtureOutcome::Failed(trouble),
        took_ms,
    }
}

/// An object of the run.
pub(crate) fn object(kind: &str, namespace: Option<&str>, name: &str) -> ObjectName {
    let namespace = namespace.map(str::to_owned);
    ObjectName {
        kind: kind.to_owned(),
        namespace,
        name: name.to_owned(),
    }
}

/// Objects every run creates.
fn objects() -> Vec<ObjectName> {
    vec![
        object("Namespace", None, "winconform-k3x9"),
        object(
            "Deployment",
            Some("winconform-k3x9"),
            "win-webserver-windows-2022",
        ),
    ]
}

/// A tear-down of everything.
fn torn_down() -> Event {
    Event::TornDown(TornDown {
        removed: objects(),
        ..TornDown::default()
    })
}

/// The last line of a record.
pub(crate) fn ended(exit: Exit) -> Event {
    Event::RunEnded(Ended {
        exit,
        requests: vec![("get nodes".to_owned(), 1)],
        took_ms: None,
    })
}

/// A record up to the point where checks are looked at.
fn begun(plan: &[PlannedCheck]) -> Recorder {
    let mut recorder = Recorder::started();
    recorder
        .push(Event::Facts(Box::new(facts())))
        .push(Event::Plan(plan.to_vec()));
    for object in objects() {
        recorder.push(Event::Intent(object));
    }
    recorder.push(stands(FixtureName::Namespaces, 120));
    recorder
}

/// The conclusions of a healthy cluster, in the order of [`plan`].
fn healthy_conclusions() -> Vec<Conclusion> {
    use Verdict::{KnownLimitation, Pass};
    let answers = "200 with `Windows Container Web Server`";
    vec![
        saw(
            Pass,
            "node.kubernetes.io/windows-build as the node's kernel version",
            "win-0: label 10.0.20348, kernel 10.0.20348.2700",
        ),
        saw(
            KnownLimitation,
            "failure by timeout or no-route",
            "timeout: curl: (28) Timeout",
        ),
        saw(Pass, answers, answers),
        saw(Pass, answers, answers),
        saw(
            Pass,
            "refused for spec.hostPID (FieldValueForbidden)",
            "refused with 422: spec.hostPID: Forbidden: may not be set for a windows pod",
        ),
        saw(Pass, "2 pods Ready", "2 of 2 Ready"),
    ]
}

/// A run of a healthy cluster.
pub(crate) fn healthy() -> Recorder {
    let plan = plan();
    let mut recorder = begun(&plan);
    recorder.push(stands(FixtureName::WinWebserver, 41_250));
    for (check, conclusion) in plan.iter().zip(healthy_conclusions()) {
        recorder.judged(check, &[], conclusion);
    }
    recorder.push(torn_down()).push(ended(Exit::Conformant));
    recorder
}

/// A run that looked from both usable nodes of a pool of three: from one it failed, from the other
/// nothing could be seen.
pub(crate) fn from_each_node() -> Recorder {
    let from = |node| {
        let point = Point {
            node: Some(node),
            ..at(Some(SourceKind::WindowsPod))
        };
        let title = "the Service's virtual IP answers from a pod on each node";
        planned("net.service-ip-from-pod", Kind::Capability, point, title)
    };
    let plan = [from(1), from(2)];
    let mut recorder = begun(&plan);
    let failed = saw(Verdict::Fail, "200 with `Windows`", "timeout: curl: (28)");
    let trouble = Trouble::new(TroubleKind::ExecTransport, "the stream was cut");
    let broken = conclusion(Verdict::Broken, Because::Trouble(trouble));
    recorder.judged(&plan[0], &[], failed);
    recorder.judged(&plan[1], &[], broken);
    recorder.push(torn_down()).push(ended(Exit::NotConformant));
    recorder
}

/// A run in which a case without a name, and then one with a name, fail.
pub(crate) fn failed_by_case() -> Recorder {
    let point = at(Some(SourceKind::WindowsPod));
    let title = "the Service's virtual IP answers from a pod";
    let first = planned("net.service-ip-from-pod", Kind::Capability, point, title);
    let second = PlannedCheck {
        id: CheckId::new(&first.claim, Some("each-node"), &first.point),
        ..first.clone()
    };
    let plan = [first, second];
    let mut recorder = begun(&plan);
    for check in &plan {
        recorder.judged(check, &[], saw(Verdict::Fail, "200", "timeout"));
    }
    recorder.push(torn_down()).push(ended(Exit::NotConformant));
    recorder
}

/// The same as the healthy one, with how long it took and what waited for what.
pub(crate) fn healthy_with_spans() -> Recorder {
    let plan = plan();
    let mut recorder = begun(&plan);
    let (sample, after) = (fixture(FixtureName::WinWebserver), |id| After {
        id,
        pause_ms: 0,
    });
    let mut span = |id, what, took_ms, after: &[After]| {
        let (began_ms, after) = (0, after.to_vec());
        recorder.push(Event::Span(Span {
            id,
            what,
            began_ms,
            took_ms,
            after,
        }));
    };
    span(0, Activity::Plan, 310, &[]);
    span(1, Activity::Fixture(sample), 1_250, &[after(0)]);
    span(2, Activity::Ask, 900, &[after(0)]);
    span(3, Activity::Ask, 20, &[after(1)]);
    span(4, Activity::TearDown, 2_000, &[]);
    for (check, conclusion) in plan.iter().zip(healthy_conclusions()) {
        recorder.judged(check, &[], conclusion);
    }
    recorder.push(torn_down()).push(ended(Exit::Conformant));
    recorder
}

/// A run in which every verdict occurs, with attempts that agree and that do not.
pub(crate) fn every_verdict() -> Recorder {
    use Kind::{Advice, Capability, Evidence, Limitation, Rejection};
    use Verdict::{Broken, Fail, KnownLimitation, LimitationLifted, Pass, Recorded, Skip, Warn};
    let (answers, late) = ("200 with `ok`", "timeout: curl: (28) late");
    let timeout = || looked(Comparison::Refuted(difference(answers, late)));
    let holds = || looked(Comparison::Holds(difference(answers, answers)));
    let cut = || Trouble::new(TroubleKind::ExecTransport, "the session was cut after 3 s");
    let cut_look = || LookRecord {
        reply: None,
        observation: None,
        comparison: None,
        trouble: Some(cut()),
        ..holds()
    };
    let flaky = Conclusion {
        flaky: true,
        ..saw(Pass, answers, answers)
    };
    let skipped = |reason| conclusion(Skip, Because::Skipped(reason));
    let inapplicable = SkipReason::Inapplicable {
        because: "no HNS".into(),
    };
    let no_image = || SkipReason::NoImage {
        pool: "windows-2022".into(),
    };
    let control = Because::Control {
        name: "from-pod".into(),
        difference: difference(answers, "refused: curl: (7) Connection refused"),
    };
    let control_trouble = Because::ControlTrouble {
        name: "without-os".into(),
        trouble: cut(),
    };
    let attempts_that_fail = vec![(Fail, timeout()), (Broken, cut_look()), (Fail, timeout())];
    let attempts_that_differ = vec![(Fail, timeout()), (Pass, holds())];
    let by_timeout = "failure by timeout";
    let checks = [
        ("net.a-pass", Capability, saw(Pass, answers, answers)),
        ("net.b-fail", Capability, saw(Fail, answers, late)),
        ("net.c-flaky-pass", Capability, flaky),
        (
            "net.d-known",
            Limitation,
            saw(KnownLimitation, by_timeout, late),
        ),
        (
            "net.e-lifted",
            Limitation,
            saw(LimitationLifted, by_timeout, answers),
        ),
        ("node.f-warn", Advice, saw(Warn, "2 GB kept", "0 GB kept")),
        ("node.g-recorded", Evidence, saw(Recorded, "a number", "17")),
        ("node.h-skip", Capability, skipped(inapplicable)),
        ("node.i-skip", Capability, skipped(no_image())),
        ("node.j-skip", Capability, skipped(no_image())),
        (
            "pod.k-broken",
            Capability,
            conclusion(Broken, Because::Trouble(cut())),
        ),
        ("pod.l-control", Limitation, conclusion(Broken, control)),
        (
            "pod.m-control-trouble",
            Rejection,
            conclusion(Broken, control_trouble),
        ),
    ];
    let checks = checks.map(|(claim, kind, conclusion)| {
        let check = planned(claim, kind, at(None), "what the claim says");
        (check, conclusion)
    });
    let plan: Vec<_> = checks.iter().map(|(check, _)| check.clone()).collect();
    let mut recorder = begun(&plan);
    for (check, conclusion) in checks {
        let attempts = match check.claim.as_str() {
            "net.a-pass" => vec![(Pass, holds())],
            "net.b-fail" => attempts_that_fail.clone(),
            "net.c-flaky-pass" => attempts_that_differ.clone(),
            "pod.k-broken" => vec![(Broken, cut_look())],
            _ => Vec::new(),
        };
        recorder.judged(&check, &attempts, conclusion);
    }
    recorder.push(torn_down()).push(ended(Exit::NotConformant));
    recorder
}

/// A registry that has the sample's image for other nodes alone, with a name that is hostile.
pub(crate) fn unoffered() -> Event {
    let fixture = fixture(FixtureName::WinWebserver);
    Event::Unoffered(Unoffered {
        image: "mcr.microsoft.com/windows/servercore:ltsc2022".to_owned(),
        pool: fixture.pool.expect("it stands in one"),
        build: Some(WindowsBuild::SERVER_2022),
        fixtures: [fixture.name].into(),
        has: vec!["linux\u{1b}[2J".to_owned(), "windows 10.0.17763".to_owned()],
    })
}

/// A run whose sample did not come to stand, broke what needs it and left an object behind.
pub(crate) fn fixture_failed() -> Recorder {
    use Verdict::{Broken, Fail};
    let plan = plan();
    let mut recorder = begun(&plan);
    let trouble = || {
        let detail = "win-0: manifest unknown: mcr.microsoft.com/windows/servercore:ltsc2022";
        Trouble::new(TroubleKind::ImagePull, detail)
    };
    recorder.push(unoffered());
    recorder.push(failed(FixtureName::WinWebserver, trouble(), 12_340));
    for (place, (check, healthy)) in plan.iter().zip(healthy_conclusions()).enumerate() {
        let webserver = || Because::Fixture {
            fixture: fixture(FixtureName::WinWebserver),
            trouble: trouble(),
        };
        let conclusion = match place {
            1..=3 => conclusion(Broken, webserver()),
            5 => saw(
                Fail,
                "2 pods Ready",
                "0 of 2 Ready; win-webserver-1: ImagePullBackOff",
            ),
            _ => healthy,
        };
        recorder.judged(check, &[], conclusion);
    }
    let [namespace, deployment] = objects().try_into().expect("two objects");
    recorder.push(Event::TornDown(TornDown {
        removed: vec![deployment],
        left: vec![namespace],
        troubles: vec!["namespace winconform-k3x9 has finalizers of `kubernetes`".to_owned()],
        ..TornDown::default()
    }));
    recorder.push(ended(Exit::NotConformant));
    recorder
}

/// A healthy run that looked three times, in which one check came apart, and that was to leave what
/// it created.
pub(crate) fn repeated_and_kept() -> Recorder {
    use Verdict::{Fail, Pass};
    let plan = plan();
    let mut recorder = begun(&plan);
    for number in [2, 3] {
        recorder.push(Event::Repetition { number });
    }
    let answers = "200 with `ok`";
    let timeout = || looked(Comparison::Refuted(difference(answers, "timeout: late")));
    let holds = || looked(Comparison::Holds(difference(answers, answers)));
    for (place, (check, healthy)) in plan.iter().zip(healthy_conclusions()).enumerate() {
        let (attempts, conclusion, repeated) = match place {
            1 => (
                vec![
                    (Pass, holds()),
                    (Fail, timeout()),
                    (Fail, timeout()),
                    (Pass, holds()),
                ],
                saw(Fail, answers, "timeout: late"),
                vec![(Pass, 2), (Fail, 1)],
            ),
            _ => {
                let verdict = healthy.verdict;
                (Vec::new(), healthy, vec![(verdict, 3)])
            }
        };
        let conclusion = Conclusion {
            flaky: place == 1,
            repeated: repeated.into_iter().collect(),
            ..conclusion
        };
        recorder.judged(check, &attempts, conclusion);
    }
    recorder.push(Event::Kept);
    recorder.push(Event::TornDown(TornDown {
        left: objects(),
        ..TornDown::default()
    }));
    recorder.push(ended(Exit::NotConformant));
    recorder
}

/// What a kill leaves: two verdicts, nothing torn down, half a line.
pub(crate) fn killed() -> RunView {
    let plan = plan();
    let mut recorder = begun(&plan);
    for (check, conclusion) in plan.iter().zip(healthy_conclusions()).take(2) {
        recorder.judged(check, &[], conclusion);
    }
    let text = format!("{}{}", recorder.text(), r#"{"seq":9,"at":"2026-03-01T02:0"#);
    read(&text).expect("a cut record is read")
}

/// A run that died before it had a plan.
pub(crate) fn setup_died() -> Recorder {
    let mut recorder = Recorder::started();
    let unknown = || "403: nodes is forbidden".to_owned();
    recorder.push(Event::Facts(Box::new(Facts {
        server: Known::Unknown { because: unknown() },
        cluster: Known::Unknown { because: unknown() },
        nodes: Known::Unknown { because: unknown() },
        ..Facts::default()
    })));
    recorder.push(ended(Exit::CouldNotTell));
    recorder
}

/// Text of which none may reach a terminal or a file of reports as it is.
pub(crate) const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;title\u{7} nul \0 tab\t c1 \u{9b}31m del \
    \u{7f} bidi \u{202e}evil\u{2066} zero\u{200b}width ]]> <script>alert('&amp;\")</script> \r\n\
    10 checks: 10 pass \u{ffff} end \u{1b}[";

/// A run in which everything that comes from outside is hostile.
pub(crate) fn hostile() -> RunView {
    use Verdict::{Broken, Fail, KnownLimitation, Pass, Skip};
    let megabyte = "y\u{1b}".repeat(1 << 19);
    let marked = |claim| planned(claim, Kind::Capability, at(None), "MARK");
    let checks = [
        (marked("net.a"), saw(Fail, "MARK", &megabyte)),
        (marked("net.b"), saw(Pass, "MARK", "MARK")),
        (marked("net.c"), saw(KnownLimitation, "MARK", "MARK")),
        (
            marked("net.d"),
            conclusion(
                Broken,
                Because::ControlTrouble {
                    name: "MARK".into(),
                    trouble: Trouble {
                        kind: TroubleKind::ImagePull,
                        detail: megabyte.clone(),
                    },
                },
            ),
        ),
        (
            marked("net.e"),
            conclusion(
                Skip,
                Because::Skipped(SkipReason::Inapplicable {
                    because: "MARK".into(),
                }),
            ),
        ),
    ];
    let plan: Vec<_> = checks.iter().map(|(check, _)| check.clone()).collect();
    let mut recorder = Recorder::empty();
    recorder.push(Event::RunStarted(Started {
        version: "MARK".into(),
        run: "MARK".into(),
        context: "MARK".into(),
        config: Some("MARK".into()),
        selection: vec!["MARK".into()],
        waivers: ["net.a", "net.b"]
            .map(|check| waiver(check, "MARK", "2099-12-31"))
            .into(),
        ..started()
    }));
    let mut facts = facts();
    facts.server = Known::Fact {
        value: "MARK".into(),
        source: "MARK".into(),
    };
    recorder
        .push(Event::Facts(Box::new(facts)))
        .push(Event::Plan(plan));
    let trouble = Trouble {
        kind: TroubleKind::ImagePull,
        detail: "MARK".into(),
    };
    recorder.push(failed(FixtureName::WinWebserver, trouble, 1));
    for (check, conclusion) in checks {
        let again = (
            conclusion.verdict,
            looked(Comparison::Refuted(difference("MARK", "MARK"))),
        );
        recorder.judged(&check, &[(Fail, again.1.clone()), again], conclusion);
    }
    recorder.push(Event::Interrupted { by: "MARK".into() });
    recorder.push(Event::TornDown(TornDown {
        left: vec![object("MARK", Some("MARK"), "MARK")],
        troubles: vec!["MARK".into(), megabyte],
        ..TornDown::default()
    }));
    recorder.push(ended(Exit::Interrupted));
    // Pools and check ids are made of builds and claims; a record may say otherwise
    let json = serde_json::to_string(HOSTILE).expect("text is JSON");
    let inner = json.trim_matches('"');
    let text = recorder
        .text()
        .replace("MARK", inner)
        .replace("windows-2022", &format!("windows-2022{inner}"));
    read(&text).expect("a record")
}
