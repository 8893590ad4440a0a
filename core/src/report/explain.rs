//! Everything known about one claim, for `winconform explain`.

use std::fmt::Write as _;

use super::claims::{is_implemented, words};
use crate::document::nearest;
use crate::fixture::FixtureName;
use crate::method::{AdmissionExpectation, Change, StateQuery, Target, Test};
use crate::report::text::layout::pad;
use crate::suite::{Across, Case, Suites, Then};
use crate::text::printable;
use crate::verdict::{LedgerEntry, Outside, Role};

/// No claim has this id.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no claim is called `{}`", printable(.id))]
pub struct Unknown {
    pub id: String,
    /// The claim most like it.
    pub nearest: Option<String>,
}

/// Everything known about one claim; for the id of a case or a check, as reports print it, about that case.
pub fn explain(suites: &Suites, id: &str) -> Result<String, Unknown> {
    let (of_case, of_check) = match id.split_once('[') {
        Some((of_case, _)) => (of_case, true),
        None => (id, false),
    };
    let (name, case) = match of_case.split_once('/') {
        None => (of_case, None),
        Some((name, case)) => (name, Some(case)),
    };
    let is_meant = |one: &Case| match (case, of_check) {
        (None, false) => true,
        (Some(_), _) | (None, true) => one.name.as_deref() == case,
    };
    let claim = suites.claims.find(name);
    let claim = claim.filter(|claim| case.is_none() || suites.cases_of(&claim.id).any(is_meant));
    let Some(claim) = claim else {
        let claims = suites.claims.iter().map(|claim| claim.id.to_string());
        let cases = suites.cases.iter().filter(|one| one.name.is_some());
        let cases = cases.map(Case::id);
        let known: Vec<_> = claims.chain(cases).collect();
        let nearest = nearest(of_case, known.iter().map(String::as_str)).map(str::to_owned);
        return Err(Unknown {
            id: id.to_owned(),
            nearest,
        });
    };
    let mut text = format!(
        "{} ({})\n  {}\n",
        claim.id,
        claim.claim_type,
        printable(&claim.statement)
    );
    if let Some(why) = &claim.reworded {
        field(&mut text, "reworded", why);
    }
    text.push_str("\nfrom\n");
    for document in &claim.from {
        let link = document
            .link()
            .map_or_else(String::new, |link| format!(": {link}"));
        let _ = writeln!(text, "  {}{link}", document.title());
    }
    if let Some(source) = &claim.source {
        let _ = writeln!(text, "  {}", printable(source));
    }
    for case in suites.cases_of(&claim.id).filter(|one| is_meant(one)) {
        let known = suites.ledger.of_case(&case.claim, case.name.as_deref());
        explain_case(&mut text, case, known);
    }
    if !is_implemented(suites, claim) {
        text.push_str("\nnot implemented: no case checks it yet\n");
    }
    for entry in suites.ledger.of_claim(&claim.id) {
        explain_entry(&mut text, entry);
    }
    Ok(text)
}

fn field(text: &mut String, word: &str, value: &str) {
    let _ = writeln!(text, "  {} {}", pad(word, 10), printable(value));
}

fn explain_case(text: &mut String, case: &Case, known: Option<&LedgerEntry>) {
    let name = case
        .name
        .as_deref()
        .map(|name| format!(" {}", printable(name)));
    let _ = writeln!(text, "\ncase{}", name.unwrap_or_default());
    field(text, "title", &case.title);
    if case.over.windows_pools {
        let pools = case.over.only_pool.as_ref();
        let pools = pools.map_or("every Windows pool".to_owned(), ToString::to_string);
        let each = match case.over.across {
            Across::Pool => "",
            Across::Pools => ", to every one",
            Across::Nodes => ", from each node",
        };
        field(text, "over", &format!("{pools}{each}"));
    }
    for source in &case.over.sources {
        field(text, "from", source.as_str());
    }
    let over = &case.over;
    let axes = [
        (
            "objects",
            words(over.workloads.iter().map(|kind| kind.kind())),
        ),
        (
            "containers",
            words(over.containers.iter().map(|kind| kind.as_str())),
        ),
        ("values", words(over.values.keys().map(String::as_str))),
    ];
    for (word, values) in axes.into_iter().filter(|(_, values)| !values.is_empty()) {
        field(text, word, &values);
    }
    explain_assertion(text, &case.test, known);
    for exception in &case.exceptions {
        let gate = exception.without_gate.as_ref();
        let mut gate = gate.map(|gate| format!(", feature gate {} off", gate.name));
        for (word, part) in [("with", exception.with), ("without", exception.without)] {
            if let Some(part) = part {
                gate = Some(format!(", {word} {}", part.words()));
            }
        }
        let then = match &exception.then {
            Then::Skip(reason) => format!("skipped: {reason}"),
            Then::Expect(expectation) => expectation.to_string(),
        };
        let gate = gate.unwrap_or_default();
        let of = exception
            .workload
            .map_or_else(String::new, |kind| format!(", {}", kind.kind()));
        field(
            text,
            "except",
            &format!("Kubernetes {}{of}{gate}: {then}", exception.kubernetes),
        );
    }
    for control in &case.controls {
        let source = control
            .source
            .map(|source| format!(" from {}", source.as_str()));
        field(
            text,
            "control",
            &format!("{}{}", control.name, source.unwrap_or_default()),
        );
        if control.role == Role::OtherOs {
            field(
                text,
                "role",
                "other-os: winconform skips the check when this control fails, too, since the cause is then not Windows",
            );
        }
        if control.without.is_some() {
            field(
                text,
                "expects",
                "the API server accepts the object without what this control leaves out",
            );
        }
        if let Some(test) = &control.test {
            explain_assertion(text, test, None);
        }
    }
    let always = Some(case.hint.clone()).filter(|hint| !hint.is_empty());
    let under = case.when.iter().map(|one| one.value.to_string());
    for hint in always.into_iter().chain(under) {
        field(text, "hint", &hint);
    }
}

/// What a test asks and expects; for a known limitation, how it fails, and what would lift it.
fn explain_assertion(out: &mut String, test: &Test, known: Option<&LedgerEntry>) {
    field(out, "asks", &asks(test));
    let expects = match test {
        Test::Admission(assertion) => match &assertion.expectation {
            AdmissionExpectation::Refused {
                reason,
                field: None,
            } => format!("refused for {} ({reason})", assertion.query.field),
            other => other.to_string(),
        },
        other => other.expectation(),
    };
    match known {
        None => field(out, "expects", &expects),
        Some(known) => {
            let fails = format!("{}, the known limitation", known.signature);
            field(out, "expects", &fails);
            field(out, "lifted by", &expects);
        }
    }
}

/// What a test asks, in words.
fn asks(test: &Test) -> String {
    match test {
        Test::Admission(assertion) => {
            let os = match &assertion.query.os {
                None => "no spec.os".to_owned(),
                Some(name) => format!("spec.os.name `{name}`"),
            };
            let verb = match assertion.query.change {
                Change::Create => "creates",
                Change::Resize => "resizes",
            };
            let mut asks = format!("a dry run that {verb} a pod with {os}");
            if assertion
                .query
                .with
                .as_object()
                .is_some_and(|with| !with.is_empty())
            {
                asks.push_str(&format!(", {}", assertion.query.with));
            }
            match &assertion.query.value {
                Some(value) => asks.push_str(&format!(", {} = {value}", assertion.query.field)),
                // A value of the axis, or none
                None => asks.push_str(&format!(", {}", assertion.query.field)),
            }
            asks
        }
        Test::Fact(assertion) => assertion.query.to_string(),
        Test::Http(assertion) => {
            let mut asks = aimed("a GET", assertion.query.target, assertion.query.of);
            if let Some(through) = assertion.query.through {
                asks.push_str(&format!(", through the Service of {}", through.as_str()));
            }
            asks
        }
        Test::Log(assertion) => format!("the log of {}", assertion.query),
        Test::Program(assertion) => {
            format!("`{}` in {}", assertion.query.line(), assertion.query.within)
        }
        Test::Status(assertion) => assertion.query.to_string(),
        Test::Scenario(assertion) => assertion.query.to_string(),
        Test::Ping(assertion) => aimed("a ping", assertion.query.target, assertion.query.of),
        Test::Udp(assertion) => {
            format!("a datagram to the pods of {}", assertion.query.as_str())
        }
        Test::Placement(assertion) => {
            let pod = assertion.query;
            let fixture = pod.fixture().as_str();
            format!("where pod {} of {fixture} is put", pod.as_str())
        }
        Test::Preemption(_) => {
            "what the scheduler says of two pods of which one can only be in the other's place"
                .to_owned()
        }
        Test::State(assertion) => match assertion.query {
            StateQuery::Pods(fixture) => format!("the state of the pods of {}", fixture.as_str()),
            StateQuery::Endpoints(fixture) => {
                format!("the endpoints of the Service of {}", fixture.as_str())
            }
            StateQuery::Balancer(_) => "where a load balancer answers for the Service".to_owned(),
        },
    }
}

fn aimed(what: &str, target: Target, of: Option<FixtureName>) -> String {
    let of = of.map(|of| format!(" of {}", of.as_str()));
    format!("{what} of {}{}", target.as_str(), of.unwrap_or_default())
}

fn explain_entry(text: &mut String, entry: &LedgerEntry) {
    text.push_str("\nknown limitation\n");
    if let Some(case) = &entry.case {
        field(text, "case", &case.value);
    }
    let holds = &entry.holds;
    let builds: Vec<_> = holds.builds.iter().map(ToString::to_string).collect();
    let builds = if builds.is_empty() {
        "every build".to_owned()
    } else {
        builds.join(", ")
    };
    field(text, "builds", &builds);
    if let Some(network) = &holds.network {
        field(text, "network", &network.to_string());
    }
    if !holds.nodes.is_empty() {
        field(text, "nodes", &holds.programs());
    }
    field(text, "kubernetes", &holds.kubernetes.to_string());
    field(
        text,
        "elsewhere",
        match entry.outside {
            Outside::Capability => "judged as a capability",
            Outside::Skip => "skipped",
        },
    );
    if let Some(asked) = &entry.opt_in {
        field(text, "opt in", &asked.to_string());
    }
    field(text, "signature", &entry.signature.to_string());
    field(text, "reason", &entry.reason);
    field(text, "source", &entry.source);
}
