//! What the suites say before any run: the claims, how each is checked, and a plan.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use super::folded::MANY;
use super::layout::{columns, pad};
use crate::claims::{Claim, Kind};
use crate::document::nearest;
use crate::plan::{Check, Fate, Plan, PlannedLook, Selection};
use crate::suite::{Across, Case, Suites, Then};
use crate::text::{counted, printable};
use crate::verdict::{LedgerEntry, Outside, Scope, Verdict};
use crate::way::{AdmissionExpect, Change, StateAsk, Test};

/// No claim has this id.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no claim is called `{}`", printable(.id))]
pub struct Unknown {
    /// The id that was asked for.
    pub id: String,
    /// The claim most like it.
    pub nearest: Option<String>,
}

/// The claims that are wanted by area, with how many cases each has.
pub fn list_text(suites: &Suites, selection: &Selection) -> String {
    let claims = wanted(suites, selection);
    let mut text = String::new();
    let mut area = "";
    let widest = claims.iter().map(|claim| columns(claim.id.as_str())).max();
    let kinds = Kind::ALL
        .into_iter()
        .map(|kind| columns(kind.as_str()))
        .max();
    for claim in &claims {
        if area != claim.id.area() {
            let gap = if area.is_empty() { "" } else { "\n" };
            area = claim.id.area();
            let _ = writeln!(text, "{gap}{area}");
        }
        let cases = match suites.cases_of(&claim.id).count() {
            0 => "not implemented".to_owned(),
            _ => counted(cases(suites, selection, claim), "case"),
        };
        let id = pad(claim.id.as_str(), widest.unwrap_or_default());
        let kind = pad(claim.kind.as_str(), kinds.unwrap_or_default());
        let _ = writeln!(text, "  {id}  {kind}  {cases}");
    }
    let all = claims.len();
    let implemented = claims
        .iter()
        .filter(|claim| is_implemented(suites, claim))
        .count();
    let missing = all - implemented;
    let _ = writeln!(
        text,
        "\n{implemented} of {} implemented, {missing} not implemented",
        counted(all, "claim")
    );
    if selection.is_of_pools() {
        text.push_str(
            "what of it a cluster has, by its pools and nodes, `winconform plan` lists\n",
        );
    }
    text
}

/// How many cases of a claim may be wanted.
fn cases(suites: &Suites, selection: &Selection, claim: &Claim) -> usize {
    let cases = suites.cases_of(&claim.id);
    cases.filter(|case| selection.may_want_case(case)).count()
}

/// The claims that are wanted as a JSON array: id, kind, implemented, cases.
pub fn list_json(suites: &Suites, selection: &Selection) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    struct Listed<'s> {
        id: &'s str,
        kind: &'static str,
        implemented: bool,
        cases: usize,
    }
    let listed: Vec<_> = wanted(suites, selection)
        .into_iter()
        .map(|claim| Listed {
            id: claim.id.as_str(),
            kind: claim.kind.as_str(),
            implemented: is_implemented(suites, claim),
            cases: cases(suites, selection, claim),
        })
        .collect();
    super::json::pretty(&listed)
}

/// All that is known of one claim.
pub fn explain(suites: &Suites, id: &str) -> Result<String, Unknown> {
    let Some(claim) = suites.claims.find(id) else {
        let known = suites.claims.iter().map(|claim| claim.id.as_str());
        let nearest = nearest(id, known).map(str::to_owned);
        return Err(Unknown {
            id: id.to_owned(),
            nearest,
        });
    };
    let mut text = format!(
        "{} ({})\n  {}\n",
        claim.id,
        claim.kind,
        printable(&claim.statement)
    );
    text.push_str("\nfrom\n");
    for document in &claim.from {
        let _ = writeln!(text, "  {}", document.title());
    }
    for case in suites.cases_of(&claim.id) {
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

/// The checks of a plan in their order: where each looks from, what must stand, and every skip
/// with its reason.
pub fn plan_text(plan: &Plan) -> String {
    let mut text = String::new();
    let mut counts = [0; 3];
    let mut lines: Vec<Vec<(String, String, String)>> = Vec::new();
    for check in &plan.checks {
        let (word, below) = match &check.fate {
            Fate::Look => {
                counts[0] += 1;
                ("look    ", looks_of(check))
            }
            Fate::Skip(reason) => {
                counts[1] += 1;
                (
                    "skip    ",
                    format!("          because {}\n", printable(&reason.to_string())),
                )
            }
            Fate::Broken(trouble) => {
                counts[2] += 1;
                (
                    "broken  ",
                    format!("          because {}\n", printable(&trouble.to_string())),
                )
            }
        };
        let below = format!("{word}\n{below}");
        let id = printable(check.id.as_str());
        let case = id.split('[').next().unwrap_or_default().to_owned();
        let line = (id, case, below);
        match lines.last_mut() {
            Some(last) if last[0].1 == line.1 && last[0].2 == line.2 => last.push(line),
            _ => lines.push(vec![line]),
        }
    }
    for same in &lines {
        let ids: Vec<_> = match same.as_slice() {
            many @ [(_, case, _), ..] if many.len() >= MANY => {
                vec![format!("{case} ({})", counted(many.len(), "check"))]
            }
            few => few.iter().map(|(id, ..)| id.clone()).collect(),
        };
        for id in ids {
            let (word, below) = same[0].2.split_once('\n').unwrap_or_default();
            let _ = write!(text, "{word}{id}\n{below}");
        }
    }
    let fixtures = plan.fixtures();
    if !fixtures.is_empty() {
        text.push_str("\nfixtures\n");
    }
    for key in &fixtures {
        let _ = writeln!(text, "  {}", printable(&key.to_string()));
    }
    let [look, skip, broken] = counts;
    let all = counted(plan.checks.len(), "check");
    let _ = writeln!(
        text,
        "\n{all}: {look} to look at, {skip} skipped, {broken} cannot be told"
    );
    text
}

fn wanted<'s>(suites: &'s Suites, selection: &Selection) -> Vec<&'s Claim> {
    let claims = suites.claims.iter();
    claims
        .filter(|claim| selection.may_want(claim, suites))
        .collect()
}

fn words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

fn is_implemented(suites: &Suites, claim: &Claim) -> bool {
    suites.cases_of(&claim.id).next().is_some()
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
    explain_look(text, &case.test, known);
    for exception in &case.exceptions {
        let gate = exception.without_gate.as_ref();
        let mut gate = gate.map(|gate| format!(", feature gate {} off", gate.name));
        if exception.with_gmsa_webhook {
            gate = Some(", with a webhook of gMSA".to_owned());
        }
        let then = match &exception.then {
            Then::Skip(because) => format!("skipped: {because}"),
            Then::Expect(expect) => expect.to_string(),
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
        if control.without.is_some() {
            field(text, "expects", "the rest of it accepted");
        }
        if let Some(test) = &control.test {
            explain_look(text, test, None);
        }
    }
    field(text, "hint", &case.hint);
}

/// What a test asks and what should be seen; where a limitation is known, how that fails, and what would
/// lift it.
fn explain_look(out: &mut String, test: &Test, known: Option<&LedgerEntry>) {
    let (asks, expects) = match test {
        Test::Admission(look) => {
            let os = match &look.ask.os {
                None => "no spec.os".to_owned(),
                Some(name) => format!("spec.os.name `{name}`"),
            };
            let verb = match look.ask.change {
                Change::Create => "creates",
                Change::Resize => "resizes",
            };
            let mut asks = format!("a dry run that {verb} a pod with {os}");
            if look
                .ask
                .with
                .as_object()
                .is_some_and(|with| !with.is_empty())
            {
                asks.push_str(&format!(", {}", look.ask.with));
            }
            match &look.ask.value {
                Some(value) => asks.push_str(&format!(", {} = {value}", look.ask.field)),
                // A value of the axis, or none
                None => asks.push_str(&format!(", {}", look.ask.field)),
            }
            let expects = match &look.expect {
                AdmissionExpect::Refused { reason, field } => {
                    let field = field.as_ref().unwrap_or(&look.ask.field);
                    format!("refused for {field} ({reason})")
                }
                accepted => accepted.to_string(),
            };
            (asks, expects)
        }
        Test::Fact(look) => (look.ask.to_string(), look.expect.to_string()),
        Test::Http(look) => {
            let of = look.ask.of.map(|of| format!(" of {}", of.as_str()));
            let target = look.ask.target.as_str();
            let asks = format!("a GET of {target}{}", of.unwrap_or_default());
            (asks, look.expect.to_string())
        }
        Test::Ping(look) => {
            let of = look.ask.of.map(|of| format!(" of {}", of.as_str()));
            let target = look.ask.target.as_str();
            let asks = format!("a ping of {target}{}", of.unwrap_or_default());
            (asks, look.expect.to_string())
        }
        Test::Udp(look) => {
            let asks = format!("a datagram to the pods of {}", look.ask.of.as_str());
            (asks, look.expect.to_string())
        }
        Test::Placement(look) => {
            let pod = look.ask.pod;
            let fixture = pod.fixture().as_str();
            let asks = format!("where pod {} of {fixture} is put", pod.as_str());
            (asks, look.expect.to_string())
        }
        Test::Preemption(look) => {
            let asks =
                "what the scheduler says of two pods of which one can only be in the other's place";
            (asks.to_owned(), look.expect.to_string())
        }
        Test::State(look) => {
            let asks = match look.ask {
                StateAsk::Pods(fixture) => format!("the state of the pods of {}", fixture.as_str()),
                StateAsk::Endpoints(fixture) => {
                    format!("the endpoints of the Service of {}", fixture.as_str())
                }
                StateAsk::Balancer(_) => "where a load balancer answers for the Service".to_owned(),
            };
            (asks, look.expect.to_string())
        }
    };
    field(out, "asks", &asks);
    match known {
        None => field(out, "expects", &expects),
        Some(known) => {
            let fails = format!("{}, the known limitation", known.signature);
            field(out, "expects", &fails);
            field(out, "lifted by", &expects);
        }
    }
}

fn explain_entry(text: &mut String, entry: &LedgerEntry) {
    text.push_str("\nknown limitation\n");
    if let Some(case) = &entry.case {
        field(text, "case", &case.value);
    }
    let builds: Vec<_> = entry.builds.iter().map(ToString::to_string).collect();
    let builds = if builds.is_empty() {
        "every build".to_owned()
    } else {
        builds.join(", ")
    };
    field(text, "builds", &builds);
    if let Some(network) = &entry.network {
        let mode = network.mode.as_str();
        field(
            text,
            "network",
            &format!("{} in mode {mode}", network.product),
        );
    }
    field(text, "kubernetes", &entry.kubernetes.to_string());
    field(
        text,
        "outside",
        match entry.outside {
            Outside::Capability => "judged as a capability",
            Outside::Skip => "skipped",
        },
    );
    field(text, "signature", &entry.signature.to_string());
    field(text, "reason", &entry.reason);
    field(text, "source", &entry.source);
}

fn looks_of(check: &Check) -> String {
    let mut text = String::new();
    for (index, look) in check.looks.iter().enumerate() {
        let role = match index {
            0 => String::new(),
            _ => format!("control {} ", printable(&look.name)),
        };
        let _ = writeln!(text, "          {role}{}", printable(&place(look)));
    }
    let needs = check.looks.iter().flat_map(|look| &look.needs);
    let needs: BTreeSet<_> = needs.map(|(key, _)| key).collect();
    if !needs.is_empty() {
        let needs: Vec<_> = needs
            .iter()
            .map(|key| printable(&key.to_string()))
            .collect();
        let _ = writeln!(text, "          needs {}", needs.join(", "));
    }
    if check.scope == Scope::AsCapability {
        let verdict = Verdict::KnownLimitation;
        let _ = writeln!(
            text,
            "          out of scope as {verdict}: judged as a capability"
        );
    }
    text
}

/// Where a look looks from.
fn place(look: &PlannedLook) -> String {
    match (&look.from, &look.test) {
        (Some(vantage), _) => format!("from {vantage}"),
        (None, Test::Fact(_)) => "asks the facts".to_owned(),
        (None, _) => "asks the API server".to_owned(),
    }
}
