//! What reports show beside a cause of the evidence that was collected after failures.

use winconform_core::claims::ClaimType;
use winconform_core::fixture::FixtureName;
use winconform_core::method::{ErrorKind, SourceKind};
use winconform_core::plan::CheckId;
use winconform_core::record::{Diagnosis, Event, Evidence, EvidenceKind, Exit, RunView};
use winconform_core::report::causes::causes;
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
    let planned = |claim| {
        let point = runs::point_at(Some(SourceKind::WindowsPod));
        runs::planned(claim, ClaimType::Capability, point, "it answers")
    };
    let plan = CLAIMS.map(planned);
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
