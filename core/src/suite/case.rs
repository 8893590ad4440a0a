//! How a claim is checked.

use std::collections::BTreeSet;

use super::admission::{Exception, read_exceptions};
use super::assertion::read_test;
use super::control::{Control, check_role, read_control, report_idle};
use super::over::{Across, Over, read_over};
use super::read::{Known, Listed};
use super::when::{When, read_when};
use crate::claims::{Claim, ClaimId, ClaimType};
use crate::document::{Decoder, Node, Placed};
use crate::fixture::FixtureName;
use crate::method::{Signature, SourceKind, Test};

/// How a claim is checked: what it is repeated over, what is observed, and its controls.
#[derive(Clone, Debug)]
pub struct Case {
    pub claim: ClaimId,
    /// The type it is judged by: limitation if the ledger has an entry for it, else its claim's type.
    pub claim_type: ClaimType,
    /// Distinguishes the cases of one claim; a claim's only case needs none.
    pub name: Option<String>,
    /// What is observed, in words.
    pub title: String,
    pub over: Over,
    pub test: Test,
    /// Where another outcome is expected; the first that applies counts.
    pub exceptions: Vec<Exception>,
    /// Assertions that must hold beside the test.
    pub controls: Vec<Control>,
    /// What to look at when it fails; empty where all of it is in `when`.
    pub hint: String,
    /// What to look at besides, each under a condition.
    pub when: Vec<Placed<When>>,
}

impl Case {
    /// Its claim, with its name if it has one: the ids of its checks begin so.
    pub fn id(&self) -> String {
        match &self.name {
            None => self.claim.to_string(),
            Some(name) => format!("{}/{name}", self.claim),
        }
    }
}

/// Reads one case; problems are reported to the decoder.
pub(super) fn read_case(decoder: &mut Decoder<'_>, node: &Node, known: &Known<'_>) -> Option<Case> {
    let mut fields = decoder.fields(node, "a case")?;
    let claim_node = fields.required(decoder, "claim");
    let name = fields.maybe(decoder, "name", read_name);
    let title = fields.text(decoder, "title");
    let over_node = fields.optional("over");
    let exceptions = fields.or(decoder, "except", Vec::new(), read_exceptions);
    let test = fields.read(decoder, "test", read_test);
    let controls_node = fields.optional("controls");
    let when = fields.or(decoder, "when", Vec::new(), read_when);
    let hint = match &when {
        Some(when) if when.is_empty() => fields.text(decoder, "hint"),
        Some(_) | None => fields.or(decoder, "hint", String::new(), |decoder, node| {
            decoder.text(node, "`hint`").map(str::to_owned)
        }),
    };
    fields.finish(decoder);

    let claim = claim_node.and_then(|node| known.claims.read_named(decoder, node, |_| true));
    let over = match over_node {
        None => Some(Over::default()),
        Some(node) => read_over(decoder, node),
    };
    let written = match controls_node {
        None => Some([].as_slice()),
        Some(node) => decoder.list(node, "`controls`"),
    };
    let controls: Vec<_> = written
        .into_iter()
        .flatten()
        .map(|node| (node, read_control(decoder, node)))
        .collect();

    // Each of these runs if its inputs could be read, so that one problem hides no other
    if let (Some(over), Some(test)) = (&over, &test) {
        check_axes(decoder, over_node.unwrap_or(node), over, test, &controls);
        check_controls(decoder, over, test, &controls);
    }
    let listed = claim.map(|claim| {
        let name = name.as_ref().and_then(Option::as_deref);
        (claim, known.listed(&claim.id, name))
    });
    let kind = listed.as_ref().map(|(claim, listed)| match listed {
        Listed::Entry(_) => ClaimType::Limitation,
        Listed::Unread | Listed::Not => claim.claim_type,
    });
    if let (Some(kind), Some([])) = (kind, written) {
        check_controlled(decoder, controls_node.unwrap_or(node), kind);
    }
    if let (Some((claim, listed)), Some(test)) = (&listed, &test) {
        check_ledger(decoder, claim_node.unwrap_or(node), claim, test, listed);
    }
    Some(Case {
        claim: claim?.id.clone(),
        claim_type: kind?,
        name: name?,
        title: title?,
        over: over?,
        test: test?,
        exceptions: exceptions?,
        controls: controls
            .into_iter()
            .map(|(_, control)| control)
            .collect::<Option<_>>()?,
        hint: hint?,
        when: when?,
    })
}

/// Reads a name: a part of check ids, which people type and distinguish.
pub(super) fn read_name(decoder: &mut Decoder<'_>, node: &Node) -> Option<String> {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hint = format!("a-z, 0-9 and -, at most {LONGEST_NAME} of them");
    decoder.parsed(
        node,
        "`name`",
        ("is not a name", Some(hint.as_str())),
        |text| {
            let valid = text.len() <= LONGEST_NAME && text.chars().all(known);
            valid.then(|| text.to_owned())
        },
    )
}

/// The items of a list of controls, each with what was read of it.
type Controls<'n> = [(&'n Node, Option<Control>)];

fn check_axes(
    decoder: &mut Decoder<'_>,
    node: &Node,
    over: &Over,
    test: &Test,
    controls: &Controls<'_>,
) {
    if over.families {
        let controls = controls.iter().filter_map(|(_, control)| control.as_ref());
        check_families(decoder, node, over, test, controls);
    }
    let mut refuse = |message: &str, hint: &str| {
        decoder.report(node, message, Some(hint.to_owned()));
    };
    match (test.traits().needs_source, over.sources.is_empty()) {
        (true, true) => refuse(
            "this test needs a vantage point, but the case has no source",
            "add `source: [linux-pod, windows-pod]` to `over`",
        ),
        (false, false) => refuse(
            "this test asks the API server: sources mean nothing to it",
            "remove `source` from `over`",
        ),
        (true, false) | (false, true) => {}
    }
    if let Test::Ping(_) = test
        && over.sources.iter().any(|source| source.shell().is_none())
    {
        refuse(
            "pings are sent from pods and from Linux nodes alone",
            "take the other sources out of `over`",
        );
    }
    if let Test::Udp(_) = test
        && over.sources.iter().any(|source| !source.is_pod())
    {
        refuse(
            "datagrams are sent by pods alone",
            "take the other sources out of `over`",
        );
    }
    if let Test::Admission(assertion) = test {
        let of_container = assertion.query.field.starts_with("container.");
        if of_container == over.containers.is_empty() {
            refuse(
                "the field and the axis `container` do not go together",
                "a field that begins with `container.` needs the axis, no other takes it",
            );
        }
        if assertion.query.value.is_some() && !over.values.is_empty() {
            refuse(
                "the field has a `value`, and the case an axis `value`, too",
                "leave one out",
            );
        }
    } else if !(over.workloads.is_empty() && over.containers.is_empty() && over.values.is_empty()) {
        refuse(
            "workloads, containers and values are axes of admission tests only",
            "remove them from `over`",
        );
    }
    let of_controls = controls
        .iter()
        .filter_map(|(_, control)| control.as_ref()?.test.as_ref());
    let needs = of_controls.chain([test]).flat_map(Test::needs);
    let needs: Vec<_> = needs.map(|(name, _)| name).collect();
    check_nodes(over, needs.contains(&FixtureName::RING), &mut refuse);
    let probers = over.sources.iter().filter_map(|source| source.prober());
    let mut fixtures = needs.into_iter().chain(probers);
    if fixtures.any(FixtureName::per_pool) && !over.windows_pools {
        refuse(
            "the case needs a fixture that exists once per pool, but the case has no pool",
            "add `pool: windows` to `over`",
        );
    }
}

fn check_nodes(over: &Over, needs_ring: bool, refuse: &mut impl FnMut(&str, &str)) {
    if needs_ring && over.across != Across::Nodes {
        refuse(
            "the ring has a pod on each node, but the case is not repeated over nodes",
            "add `node: each` to `over`",
        );
    }
    let on_windows = [SourceKind::WindowsPod, SourceKind::WindowsNode];
    let in_ring = |source: &SourceKind| on_windows.contains(source);
    if needs_ring && !over.sources.iter().all(in_ring) {
        refuse(
            "the ring is of pods on Windows nodes: each observes the next, a node itself at its own",
            "observe from `windows-pod` or `windows-node`",
        );
    }
}

/// Reports assertions of a case, its controls' too, that cannot be made in each family.
fn check_families<'c>(
    decoder: &mut Decoder<'_>,
    node: &Node,
    over: &Over,
    test: &Test,
    controls: impl Iterator<Item = &'c Control>,
) {
    let of_case = over.sources.iter().map(|source| (*source, test));
    let of_controls = controls.flat_map(|control| {
        let sources = match control.source {
            Some(source) => vec![source],
            None => over.sources.clone(),
        };
        let test = control.test.as_ref().unwrap_or(test);
        sources.into_iter().map(move |source| (source, test))
    });
    let assertions: Vec<_> = of_case.chain(of_controls).collect();
    let of_one = |(source, test): &(SourceKind, &Test)| {
        *source == SourceKind::Outside || !test.traits().has_families
    };
    if assertions.iter().any(of_one) || !test.traits().has_families {
        let message = "`over` has `family`, but this case or one of its controls cannot observe each IP family";
        let hint = "remove `family` from `over`".to_owned();
        return decoder.report(node, message, Some(hint));
    }
    let services = assertions
        .iter()
        .filter_map(|(source, test)| test.service_of(*source));
    let unserved: BTreeSet<_> = services
        .filter(|fixture| !fixture.is_in_second_family())
        .collect();
    let served = FixtureName::all().filter(|fixture| fixture.is_in_second_family());
    let served: Vec<_> = served.map(FixtureName::as_str).collect();
    let served = served.join(", ");
    for fixture in unserved {
        let message = format!(
            "the Service of `{}` has no addresses of a second family",
            fixture.as_str()
        );
        let hint = format!("remove `family` from `over`, or observe a Service of these: {served}");
        decoder.report(node, message, Some(hint));
    }
}

fn check_controls(decoder: &mut Decoder<'_>, over: &Over, test: &Test, controls: &Controls<'_>) {
    let mut names = BTreeSet::new();
    for (node, control) in controls {
        let Some(control) = control else { continue };
        let name = &control.name;
        if name == OWN_ASSERTION {
            let message = format!("`{name}` is the name of the case's own assertion");
            decoder.report(node, message, None);
        } else if !names.insert(name) {
            let message = format!("control `{name}` appears twice");
            decoder.report(node, message, Some("rename one".to_owned()));
        }
        check_role(decoder, node, (test, &over.sources), control);
        if control.without.is_some() && !matches!(test, Test::Admission(_)) {
            let message = "only what is sent to admission can be left out";
            let hint = "give the control a `test` or a `source`".to_owned();
            decoder.report(node, message, Some(hint));
        }
        match (
            control.test.as_ref().unwrap_or(test).traits().needs_source,
            control.source,
        ) {
            (false, Some(_)) => {
                let hint = "remove `source`, and give it a `test` of its own".to_owned();
                let message = "this control asks the API server: a source means nothing to it";
                decoder.report(node, message, Some(hint));
            }
            (true, None) if over.sources.is_empty() => {
                let hint = "give it a `source`".to_owned();
                let message = "this control needs a vantage point, but has no source";
                decoder.report(node, message, Some(hint));
            }
            (true, Some(source)) if control.test.is_none() && over.sources.contains(&source) => {
                report_idle(decoder, node);
            }
            (true, _) | (false, None) => {}
        }
    }
}

/// Reports missing controls: an expected failure or a refusal proves something only beside what works.
fn check_controlled(decoder: &mut Decoder<'_>, node: &Node, kind: ClaimType) {
    let hint = match kind {
        ClaimType::Limitation => "the same assertion from where it should work",
        ClaimType::Rejection => "the same object without the field, and the field without `os`",
        ClaimType::Capability
        | ClaimType::Requirement
        | ClaimType::Advice
        | ClaimType::Informational => return,
    };
    decoder.report(
        node,
        format!("the case of a {kind} needs controls"),
        Some(hint.to_owned()),
    );
}

fn check_ledger(
    decoder: &mut Decoder<'_>,
    node: &Node,
    claim: &Claim,
    test: &Test,
    listed: &Listed<'_>,
) {
    let (message, hint) = match listed {
        Listed::Entry(entry) if test.expecting(&entry.signature).is_none() => (
            format!(
                "this test cannot show the signature the ledger has for `{}`",
                claim.id
            ),
            match entry.signature {
                Signature::Failure(_) => {
                    "only the test methods `http`, `ping` and `udp` observe how a connection fails"
                }
                Signature::NotStarted(_) => {
                    "only a test of the method `placement` that expects `starts` observes that a pod does \
                     not start"
                }
                Signature::Pending(_) => {
                    "only a test of the method `placement` that expects `placed` observes that a pod stays \
                     Pending"
                }
                Signature::Has(_) => {
                    "only the test method `status` observes the fields of an object"
                }
                Signature::Ends(_) => "only the test method `program` observes how a program ends",
                Signature::LacksStep(_) => {
                    "only a `scenario` whose last step has these words observes that it does not come"
                }
            },
        ),
        Listed::Not if claim.claim_type == ClaimType::Limitation => (
            format!("limitation `{}` has no entry in the ledger", claim.id),
            "add it to limitations.yaml with scope, outside, signature, reason and source",
        ),
        Listed::Entry(_) | Listed::Unread | Listed::Not => return,
    };
    decoder.report(node, message, Some(hint.to_owned()));
}

/// The name of a case's own assertion in the record.
const OWN_ASSERTION: &str = "test";

/// The most bytes of a name, which is part of ids that people type.
const LONGEST_NAME: usize = 60;
