//! What reports show beside a cause of the evidence that was collected after failures.

use winconform_core::claims::ClaimType;
use winconform_core::fixture::FixtureName;
use winconform_core::method::{ErrorKind, SourceKind};
use winconform_core::plan::CheckId;
use winconform_core::record::{Diagnosis, Event, Evidence, EvidenceKind, Exit, RunView};
use winconform_core::report::causes::{Scope, causes};
use winconform_core::report::ci::github;
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::report::{html, json};
use winconform_core::text::is_hostile;
use winconform_core::verdict::{Conclusion, Reason, Verdict};

use crate::runs;

/// Of kubernetes issue 139519, as kube-proxy writes it.
const LOG: &str = "E0605 10:21:07.484910    5948 proxier.go:1202] \"Policy creation failed\" \
    err=\"hcnCreateLoadBalancer failed in Win32: Cannot create a file when that file already \
    exists. (0xb7)\"";

/// What is shown of it.
const SHOWN: &str = "hcnCreateLoadBalancer failed in Win32: Cannot create a file when that file \
    already exists. (0xb7)\"";

/// A line of the same log that tells nothing.
const HARMLESS: &str =
    "I0605 10:21:08.484910    5948 proxier.go:1008] \"Syncing proxy rules complete\"";

/// The claims of a check that fails as it does where kube-proxy is dead, and of one that passes.
const CLAIMS: [&str; 2] = ["net.service-ip-from-pod", "net.pod-to-pod-cross-os"];

/// A run with these conclusions of both checks, and this evidence about the one at a place, if it is about any.
fn run(conclusions: [Conclusion; 2], about: Option<usize>, evidence: Vec<Evidence>) -> RunView {
    run_of(CLAIMS, conclusions, about, evidence)
}

/// The same with checks of these claims.
fn run_of(
    claims: [&str; 2],
    conclusions: [Conclusion; 2],
    about: Option<usize>,
    evidence: Vec<Evidence>,
) -> RunView {
    let planned = |claim| {
        let point = runs::point_at(Some(SourceKind::WindowsPod));
        runs::planned(claim, ClaimType::Capability, point, "it answers")
    };
    let plan = claims.map(planned);
    let ids = plan.clone().map(|check| check.id);
    let mut recorder = runs::Recorder::started();
    recorder
        .push(Event::Facts(Box::new(runs::facts())))
        .push(Event::Plan(plan.to_vec()));
    for (check, conclusion) in ids.iter().cloned().zip(conclusions) {
        recorder.push(Event::Verdict { check, conclusion });
    }
    let checks: Vec<CheckId> = about.map(|place| ids[place].clone()).into_iter().collect();
    recorder.push(Event::Diagnosis(Diagnosis {
        fixture: runs::fixture(FixtureName::WIN_WEBSERVER),
        checks,
        evidence,
    }));
    recorder.push(runs::ended(Exit::NotConformant)).view()
}

/// That run where the first check fails, and the second passes.
fn failed(about: usize, evidence: Evidence) -> RunView {
    let fails = runs::saw(Verdict::Fail, "an answer", "timeout: curl: (28) timed out");
    let passes = runs::saw(Verdict::Pass, "an answer", "an answer");
    run([fails, passes], Some(about), vec![evidence])
}

fn log(of: &str, text: &str) -> Evidence {
    Evidence::from_text(EvidenceKind::KubeProxy, of.to_owned(), text)
}

/// Component, sentence and evidence of the only cause.
fn told(view: &RunView) -> (&'static str, String, String) {
    let (causes, _) = causes(view);
    assert_eq!(causes.len(), 1);
    let cause = &causes[0];
    let component = <&str>::from(cause.component);
    (component, cause.says.clone(), cause.evidence.clone())
}

/// The cause where the first check fails, with this evidence.
fn of_kube_proxy(evidence: &str) -> (&'static str, String, String) {
    let says = "no Service IP answers in windows-2022".to_owned();
    ("kube-proxy", says, evidence.to_owned())
}

#[test]
fn every_report_has_the_line_of_kube_proxy_that_tells_why() {
    let of = "kube-proxy on win-0, Pod kube-system/kube-proxy-x, container kube-proxy";
    let text = format!("{LOG}\n{HARMLESS}");
    let view = failed(0, log(of, &text));
    let evidence = format!("kube-proxy on win-0: {SHOWN}");
    assert_eq!(told(&view), of_kube_proxy(&evidence));
    let short = |width| render(&view, width, Colour::Never, Detail::Short);
    let whole = format!("    evidence    {evidence}\n");
    assert!(short(200).contains(&whole), "{}", short(200));
    let ends = "    evidence    kube-proxy on win-0 … ady exists. (0xb7)\"\n";
    assert!(short(60).contains(ends), "{}", short(60));
    let full = render(&view, 60, Colour::Never, Detail::Full);
    let words: Vec<_> = full.split_whitespace().collect();
    assert!(words.join(" ").contains(&evidence), "{full}");
    let report: serde_json::Value = serde_json::from_str(&json::render(&view)).expect("JSON");
    assert_eq!(report["causes"][0]["evidence"], evidence);
    let page = html::render(&view);
    let field = "<dt>evidence</dt><dd>kube-proxy on win-0: hcn";
    assert!(page.contains(field), "{page}");
    let lines = github(&view).join("\n");
    let field = "%0Aevidence: kube-proxy on win-0: hcn";
    assert!(lines.contains(field), "{lines}");
}

/// Neither does it choose a cause.
#[test]
fn evidence_about_other_checks_and_other_nodes_is_not_shown() {
    let here = "kube-proxy on win-0";
    for (about, of, text) in [
        (1, here, LOG),
        (0, "kube-proxy on linux-0", LOG),
        (0, here, HARMLESS),
    ] {
        let view = failed(about, log(of, text));
        assert_eq!(told(&view), of_kube_proxy(""), "{about} {of}");
    }
    let passes = || runs::saw(Verdict::Pass, "an answer", "an answer");
    let healthy = run([passes(), passes()], Some(0), vec![log(here, LOG)]);
    assert!(causes(&healthy).0.is_empty());
}

#[test]
fn the_event_of_a_failed_fixture_is_told_with_its_count() {
    let untold = || {
        let text = "failed to setup network for sandbox \"2c50\"";
        let reason = Reason::Fixture {
            fixture: runs::fixture(FixtureName::WIN_WEBSERVER),
            error: ErrorKind::FixtureFailed.error(text),
        };
        runs::conclusion(Verdict::Inconclusive, reason)
    };
    // Of sig-windows-tools issue 292
    let event = "Warning FailedCreatePodSandBox web-1 (12): Failed to create pod sandbox: rpc \
        error: code = Unknown desc = failed to setup network for sandbox \"2c50\": plugin \
        type=\"nat\" name=\"nat\" failed (add): hcnCreateNetwork failed in Win32: The object \
        already exists. (0x1392)";
    let of = || "Pod a/web-1".to_owned();
    let evidence = vec![
        Evidence::from_text(EvidenceKind::Status, of(), event),
        Evidence::from_text(EvidenceKind::Events, of(), event),
    ];
    let (component, says, evidence) = told(&run([untold(), untold()], None, evidence));
    assert_eq!(component, "cni");
    assert!(says.starts_with("no sandbox gets a network"), "{says}");
    assert_eq!(
        evidence,
        "event FailedCreatePodSandBox, 12 times: hcnCreateNetwork failed in Win32: The object \
         already exists. (0x1392)"
    );
}

/// Where the cause is in a whole pool, whose first node may be well.
#[test]
fn the_node_to_look_at_is_the_one_that_a_check_names() {
    let seen = |node: &str| {
        let seen = format!("0 of 1 Ready; slow-1 on {node}: ended with exit code -1073741510");
        runs::saw(Verdict::Fail, "1 pod Ready", &seen)
    };
    for (named, looked) in [("win-1", "win-1"), ("linux-0", "win-0")] {
        let claims = ["sample.dotnet-probes", CLAIMS[1]];
        let passes = runs::saw(Verdict::Pass, "an answer", "an answer");
        let view = run_of(claims, [seen(named), passes], None, Vec::new());
        let (causes, _) = causes(&view);
        let looks: Vec<_> = causes.iter().map(|cause| cause.look.as_str()).collect();
        assert_eq!(looks, [format!("kubectl describe node {looked}")]);
    }
}

/// It needs a pod that a check before it made anew.
#[test]
fn a_pod_that_was_refused_explains_the_check_that_misses_it() {
    let refused = "`Pod a/hooked` was refused with 422: Pod \"hooked\" is invalid: spec: Forbidden";
    let missing = "exec: status 404: pods \"readiness\" not found";
    let untold = |kind: ErrorKind, why: &str| {
        runs::conclusion(
            Verdict::Inconclusive,
            Reason::ObservationError(kind.error(why)),
        )
    };
    let conclusions = [
        untold(ErrorKind::NotApplied, refused),
        untold(ErrorKind::ExecTransport, missing),
    ];
    let claims = ["pod.readiness-probe", "pod.post-start"];
    let view = run_of(claims, conclusions, None, Vec::new());
    let (causes, unexplained) = causes(&view);
    let told: Vec<_> = causes
        .iter()
        .map(|cause| (cause.says.as_str(), cause.checks.len()))
        .collect();
    let says = "the API server refuses the run's pods as invalid in the whole cluster";
    assert_eq!((told, unexplained.len()), (vec![(says, 2)], 0));
}

/// A cause in the whole cluster leaves no other place where the same passes.
#[test]
fn what_works_beside_a_cause_in_the_whole_cluster_is_told() {
    let unnamed = || {
        runs::saw(
            Verdict::Fail,
            "an answer",
            "dns: curl: (28) Resolving timed out",
        )
    };
    for (verdict, works) in [
        (Verdict::Pass, "Service IPs answer"),
        (Verdict::KnownLimitation, ""),
    ] {
        let service_ip = runs::saw(verdict, "an answer", "an answer");
        let plan = [
            ("net.dns-service", SourceKind::LinuxPod, unnamed()),
            ("net.dns-service", SourceKind::WindowsPod, unnamed()),
            (
                "net.service-ip-from-pod",
                SourceKind::WindowsPod,
                service_ip,
            ),
        ];
        let planned = |claim, source| {
            let point = runs::point_at(Some(source));
            runs::planned(claim, ClaimType::Capability, point, "it answers")
        };
        let checks: Vec<_> = plan
            .iter()
            .map(|&(claim, source, _)| planned(claim, source))
            .collect();
        let mut recorder = runs::Recorder::started();
        recorder
            .push(Event::Facts(Box::new(runs::facts())))
            .push(Event::Plan(checks.clone()));
        for (check, (_, _, conclusion)) in checks.into_iter().zip(plan) {
            let check = check.id;
            recorder.push(Event::Verdict { check, conclusion });
        }
        let view = recorder.push(runs::ended(Exit::NotConformant)).view();
        let (causes, _) = causes(&view);
        let mut dns = causes
            .iter()
            .filter(|cause| <&str>::from(cause.component) == "dns");
        let dns = dns.next().expect("names do not resolve");
        assert_eq!((dns.scope, dns.beside.as_str()), (Scope::Cluster, works));
    }
}

#[test]
fn hostile_evidence_is_text() {
    let text = format!(
        "hcnCreateLoadBalancer failed {}",
        runs::HOSTILE.replace('\n', " ")
    );
    let view = failed(0, log("kube-proxy on \u{1b}[2J", &text));
    let (_, _, evidence) = told(&view);
    let begins = "kube-proxy on \\u{1b}[2J: hcnCreateLoadBalancer failed \\u{1b}[31mred";
    assert!(evidence.starts_with(begins), "{evidence}");
    assert!(!evidence.contains(is_hostile), "{evidence}");
    let short = render(&view, 60, Colour::Never, Detail::Short);
    let hostile = short.chars().find(|one| *one != '\n' && is_hostile(*one));
    assert_eq!(hostile, None, "{short}");
    let page = html::render(&view);
    assert!(page.contains("&lt;script&gt;alert"), "{page}");
    assert!(!page.contains("<script>alert"), "{page}");
}
