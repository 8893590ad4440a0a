//! The page of a run; `ci/page/run` opens it in a browser.

use std::collections::BTreeSet;

use winconform_core::claims::ClaimId;
use winconform_core::method::ErrorKind;
use winconform_core::record::{CheckView, RunView};
use winconform_core::report::html;
use winconform_core::text::is_hostile;
use winconform_core::verdict::{Reason, SkipReason, Verdict};

use crate::runs;

fn page(record: &str) -> String {
    let view = runs::recorded(record).view();
    let page = html::render(&view);
    assert_eq!(page, html::render(&view), "the same bytes each time");
    page
}

/// The text between two marks, each of them once in the page.
fn between<'p>(page: &'p str, begins: &str, ends: &str) -> &'p str {
    let (_, rest) = page
        .split_once(begins)
        .unwrap_or_else(|| panic!("{begins}"));
    rest.split_once(ends).unwrap_or_else(|| panic!("{ends}")).0
}

#[test]
fn a_page_tells_every_verdict() {
    let page = page("every-verdict");
    insta::assert_snapshot!(between(&page, "<body>", "<script>"));
}

#[test]
fn what_a_cluster_says_is_text() {
    for record in [
        "hostile",
        "fixture-failed",
        "killed",
        "setup-died",
        "from-each-node",
    ] {
        let page = page(record);
        let hostile = page.chars().find(|one| *one != '\n' && is_hostile(*one));
        assert_eq!(hostile, None, "{record}");
        for (tag, times) in [
            ("<script", 1),
            ("<style", 1),
            ("<iframe", 0),
            ("<img", 0),
            (" style=", 0),
        ] {
            assert_eq!(page.matches(tag).count(), times, "{record}: {tag}");
        }
        // Links lead into the page, or where the catalogue of causes says
        let links = page
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next());
        for link in links.flatten() {
            assert!(
                link.starts_with('#') || link.starts_with("https://"),
                "{link}"
            );
        }
        assert!(page.contains("default-src 'none'"), "{record}");
    }
}

#[test]
fn what_a_cell_leads_to_is_there() {
    for record in ["every-verdict", "failed-by-case", "from-each-node"] {
        leads_somewhere(&page(record), record);
    }
}

fn leads_somewhere(page: &str, of: &str) {
    let texts = |mark: &'static str| {
        let parts = page.split(mark).skip(1);
        parts.filter_map(|part| part.split('"').next())
    };
    let ids: BTreeSet<_> = texts("id=\"").collect();
    for target in texts("href=\"#") {
        assert!(ids.contains(target), "{of}: {target}");
    }
}

#[test]
fn a_page_tells_why_checks_were_skipped() {
    let view = runs::recorded("every-verdict").view();
    let mut view = runs::many(view, "net.b-fail[pool=windows-2022]", 3);
    for (place, check) in &mut view.checks {
        let why = ["no \u{1b}[2J<b>", "too old"][place % 2].to_owned();
        let reason = Reason::Skipped(SkipReason::Version { reason: why });
        check.conclusion = Some(runs::conclusion(Verdict::Skip, reason));
    }
    let page = html::render(&view);
    let skips = between(&page, "<section id=\"skips\">", "</section>");
    let item = |place: usize| {
        let id = view.checks[&place].planned.id.as_str();
        format!("<li><code>{id}</code></li>")
    };
    let [reason, other] = ["no \u{1b}[2J<b>", "too old"].map(|why| {
        let skipped = SkipReason::Version {
            reason: why.to_owned(),
        };
        let said = winconform_core::text::printable(&skipped.to_string());
        said.replace('<', "&lt;").replace('>', "&gt;")
    });
    assert!(reason.contains("\\u{1b}[2J&lt;b&gt;"), "{reason}");
    assert_eq!(
        skips,
        format!(
            "<h2>Not observed</h2>\
             <details><summary>2 checks: {reason}</summary><ul class=\"ids\">{}{}</ul></details>\
             <details><summary>1 check: {other}</summary><ul class=\"ids\">{}</ul></details>",
            item(0),
            item(2),
            item(1)
        )
    );
    assert!(page.contains("<p>No check was observed.</p>"), "{page}");
    assert!(!page.contains("what a healthy cluster gives"), "{page}");
}

/// A run with so many checks that failed, each with more to show than a page takes of one, of this character.
fn telling(checks: usize, character: &str) -> RunView {
    let (view, id) = (
        runs::recorded("every-verdict").view(),
        "net.b-fail[pool=windows-2022]",
    );
    let mut its = view.checks.values();
    let of_it = its.find(|check| check.planned.id.as_str() == id);
    let mut attempt = of_it.expect("it has this check").attempts[0].clone();
    let mut assertion = attempt.assertions[0].clone();
    assertion.reply = None;
    assertion.error = Some(ErrorKind::ExecTransport.error(character.repeat(400)));
    attempt.assertions = vec![assertion; 200];
    let mut many = runs::many(view, id, checks);
    for check in many.checks.values_mut() {
        check.attempts = vec![attempt.clone()];
    }
    many
}

/// The evidence of each finding of a page, as markup.
fn evidence(page: &str) -> Vec<&str> {
    let parts = page.split("<pre tabindex=\"0\">").skip(1);
    parts
        .filter_map(|part| part.split("</pre>").next())
        .collect()
}

/// The end of evidence that was cut.
const REST: &str = "\n… the record has the rest\n";

#[test]
fn a_page_has_its_share_of_evidence() {
    let page = html::render(&telling(100, "x"));
    let evidence = evidence(&page);
    for one in &evidence {
        let kept = one.strip_suffix(REST).expect("it is cut");
        assert!(kept.len() <= 64 << 10, "{} bytes", kept.len());
    }
    let all: usize = evidence.iter().map(|one| one.len()).sum();
    assert!(all <= 5 << 20 && all > 5 << 19, "{all} bytes");
    let without = page.matches("What was seen is in the record alone").count();
    assert_eq!(evidence.len() + without, 100);
    assert!(without > 0);
}

/// A page of 10,000 checks, of which one in `every` failed.
fn of_many(every: usize) -> String {
    let view = runs::recorded("every-verdict").view();
    let mut view = runs::many(view, "net.b-fail[pool=windows-2022]", 10_000);
    let well = |(place, _): &(&usize, &mut CheckView)| !place.is_multiple_of(every);
    for (_, check) in view.checks.iter_mut().filter(well) {
        let conclusion = check.conclusion.as_mut().expect("it has a verdict");
        conclusion.verdict = Verdict::Pass;
    }
    html::render(&view)
}

#[test]
fn a_page_of_many_checks_is_small() {
    let page = of_many(10);
    assert_eq!(page.matches("<article class=\"finding\"").count(), 1_000);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

/// Markup takes more bytes in a page than in a reply.
#[test]
fn evidence_counts_as_markup() {
    let page = html::render(&telling(1, "<"));
    let size: usize = evidence(&page).iter().map(|one| one.len()).sum();
    assert!(size <= (64 << 10) + REST.len(), "{size} bytes");
}

#[test]
fn a_page_of_many_checks_that_all_failed_is_small() {
    let page = of_many(1);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let full = page.matches("<article class=\"finding\"").count();
    assert!(full >= 1_000, "{full} in full");
    let short = format!("<summary>in short {} checks</summary>", 10_000 - full);
    assert!(page.contains(&short), "{short}");
    assert!(page.contains(" more, which report.json has"));
    leads_somewhere(&page, "10,000 checks");
}

#[test]
fn a_page_of_many_claims_that_all_failed_is_small() {
    let view = runs::recorded("every-verdict").view();
    let mut view = runs::many(view, "net.b-fail[pool=windows-2022]", 10_000);
    for (place, check) in &mut view.checks {
        let claim = ClaimId::parse(&format!("net.c{place}")).expect("an id");
        check.planned.claim = claim;
    }
    let page = html::render(&view);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    leads_somewhere(&page, "10,000 claims");
}
