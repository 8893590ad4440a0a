//! The ledger of known limitations: where each holds, how it fails, and why.

use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::disposition::Disposition;
use super::holds::{Holds, read_scope};
use super::judge::{Scope, SkipReason};
use crate::claims::{Catalogue, ClaimId, ClaimType};
use crate::config::Allowed;
use crate::document::{Decoder, Diagnostic, Node, Placed, Unread, read_list};
use crate::facts::{Facts, Pool};
use crate::method::{Ending, FailureClass, Hindrance, Signature, StartFailure};

/// How a claim is treated on a cluster that its ledger entry does not cover.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Outside {
    /// It is judged as a capability.
    Capability,
    Skip,
}

/// One known limitation.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerEntry {
    pub claim: ClaimId,
    /// The limited case of a claim that otherwise holds; `None` for a limitation as a whole.
    pub case: Option<Placed<String>>,
    pub holds: Holds,
    /// How the claim is treated elsewhere.
    pub outside: Outside,
    /// Where it holds, the claim is observed only if the configuration allows this.
    pub opt_in: Option<OptIn>,
    /// How it fails.
    pub signature: Signature,
    pub reason: String,
    pub source: String,
}

/// What an observation needs to be allowed, since it leaves or does something that not everybody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct OptIn {
    pub allow: Allowed,
    pub because: String,
}

impl fmt::Display for OptIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allow, because } = self;
        let allow = allow.as_str();
        write!(
            f,
            "{because} (allowed by `allow: [{allow}]` in the configuration)"
        )
    }
}

/// The known limitations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    entries: Vec<LedgerEntry>,
}

impl Ledger {
    /// Every entry, in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = &LedgerEntry> {
        self.entries.iter()
    }

    /// The entries of a claim: one for a limitation, or one for each limited case of another claim.
    pub fn of_claim(&self, claim: &ClaimId) -> impl Iterator<Item = &LedgerEntry> {
        self.entries().filter(move |entry| entry.claim == *claim)
    }

    /// The entry of a case: its claim's, or its own.
    pub fn of_case(&self, claim: &ClaimId, name: Option<&str>) -> Option<&LedgerEntry> {
        self.of_claim(claim).find(|entry| match &entry.case {
            None => true,
            Some(case) => Some(case.value.as_str()) == name,
        })
    }
}

/// What is documented of a known limitation.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Documented {
    /// Where it holds: builds of Windows, network plugins, programs of nodes, versions of Kubernetes.
    pub holds: String,
    pub reason: String,
    /// The document that says so.
    pub source: String,
}

impl LedgerEntry {
    /// What is documented of it.
    pub fn documented(&self) -> Documented {
        let holds = &self.holds;
        let builds: Vec<_> = holds.builds.iter().map(ToString::to_string).collect();
        let mut parts = vec![match builds.is_empty() {
            true => "every build of Windows".to_owned(),
            false => builds.join(", "),
        }];
        parts.extend(holds.network.as_ref().map(ToString::to_string));
        parts.extend((!holds.nodes.is_empty()).then(|| holds.programs()));
        parts.push(format!("Kubernetes {}", holds.kubernetes));
        Documented {
            holds: parts.join("; "),
            reason: self.reason.clone(),
            source: self.source.clone(),
        }
    }

    /// Whether the entry covers a pool on this cluster, or why the claim is not observed. Unknown facts make it
    /// inconclusive.
    pub fn scope(&self, pool: Option<&Pool>, facts: &Facts) -> Result<Scope, Disposition> {
        match (self.holds.missed(pool, facts)?, self.outside) {
            (None, _) => Ok(Scope::Within),
            (Some(_), Outside::Capability) => Ok(Scope::AsCapability),
            (Some(reason), Outside::Skip) => {
                Err(Disposition::Skip(SkipReason::OutOfScope { reason }))
            }
        }
    }
}

/// Reads a ledger: keeps valid entries, reports the problems of others to `found` and notes their names.
pub fn read_ledger(
    file: &str,
    text: &str,
    claims: &Catalogue,
    found: &mut Vec<Diagnostic>,
) -> (Ledger, Unread) {
    let mut ledger = Ledger::default();
    let words = ["the ledger", "limitations", "claim"];
    let unread = read_list((file, text), words, found, |decoder, item| {
        let entry = read_entry(decoder, item, claims)?;
        let name = entry.case.as_ref().map(|case| case.value.as_str());
        if ledger.of_case(&entry.claim, name).is_none() {
            ledger.entries.push(entry);
            return Some(());
        }
        let (of, what) = match name {
            None => (entry.claim.to_string(), "claim"),
            Some(name) => (format!("{}/{name}", entry.claim), "case"),
        };
        let message = format!("limitation `{of}` appears twice");
        let hint = format!("a {what} has one entry: merge the two entries");
        decoder.report(item, message, Some(hint));
        Some(())
    });
    (ledger, unread)
}

fn read_entry(decoder: &mut Decoder<'_>, node: &Node, claims: &Catalogue) -> Option<LedgerEntry> {
    let mut fields = decoder.fields(node, "a limitation")?;
    let claim = fields.required(decoder, "claim");
    let case = fields.optional("case");
    let holds = fields.read(decoder, "scope", read_scope);
    let outside = fields.read(decoder, "outside", |decoder, node| {
        let known = [Outside::Capability, Outside::Skip];
        decoder.member(node, "word for `outside`", &known)
    });
    let opt_in = fields.maybe(decoder, "opt-in", read_opt_in);
    let signature = fields.read(decoder, "signature", read_signature);
    let reason = fields.text(decoder, "reason");
    let source = fields.text(decoder, "source");
    fields.finish(decoder);
    let claim = claim.and_then(|node| read_claim(decoder, node, case, claims));
    let case = match case {
        None => Some(None),
        Some(node) => decoder.text(node, "`case`").map(|name| {
            let (value, at) = (name.to_owned(), decoder.place(node));
            Some(Placed { value, at })
        }),
    };
    Some(LedgerEntry {
        claim: claim?,
        case: case?,
        holds: holds?,
        outside: outside?,
        opt_in: opt_in?,
        signature: signature?,
        reason: reason?,
        source: source?,
    })
}

/// The claim of an entry: a limitation, or a claim with a limited case.
fn read_claim(
    decoder: &mut Decoder<'_>,
    node: &Node,
    case: Option<&Node>,
    claims: &Catalogue,
) -> Option<ClaimId> {
    let may_have_entry = |kind: ClaimType| match case {
        None => kind == ClaimType::Limitation,
        Some(_) => is_limited_by_case(kind),
    };
    let claim = claims.read_named(decoder, node, |claim| may_have_entry(claim.claim_type))?;
    let (id, kind) = (&claim.id, claim.claim_type);
    if may_have_entry(kind) {
        return Some(id.clone());
    }
    let (at, message, hint) = match (case, kind) {
        (Some(case), ClaimType::Limitation) => (
            case,
            format!("claim `{id}` is a limitation, and so are all its cases"),
            "remove `case`",
        ),
        (None, _) if is_limited_by_case(kind) => (
            node,
            format!("claim `{id}` is of type {kind}, not limitation"),
            "name the one `case` that is limited, remove the entry, or change the claim's type",
        ),
        _ => (
            node,
            format!("claim `{id}` is of type {kind}, not limitation"),
            "remove the entry, or change the claim's type",
        ),
    };
    decoder.fail(at, message, Some(hint.to_owned()))
}

/// Whether claims of a type say that something works, which one of their cases may not.
fn is_limited_by_case(kind: ClaimType) -> bool {
    matches!(kind, ClaimType::Capability | ClaimType::Requirement)
}

fn read_opt_in(decoder: &mut Decoder<'_>, node: &Node) -> Option<OptIn> {
    let mut fields = decoder.fields(node, "`opt-in`")?;
    let allow = fields.read(decoder, "allow", |decoder, node| {
        decoder.member(node, "word of `allow`", Allowed::ALL)
    });
    let because = fields.text(decoder, "because");
    fields.finish(decoder);
    Some(OptIn {
        allow: allow?,
        because: because?,
    })
}

fn read_signature(decoder: &mut Decoder<'_>, node: &Node) -> Option<Signature> {
    let entry = decoder.tagged(
        node,
        "signature",
        &[
            "failure",
            "not-started",
            "pending",
            "ends",
            "has",
            "lacks-step",
        ],
    )?;
    match entry.key.as_str() {
        "lacks-step" => {
            let step = decoder.text(&entry.node, "`lacks-step`");
            return step.map(|step| Signature::LacksStep(step.to_owned()));
        }
        "ends" => return Ending::read(decoder, &entry.node).map(Signature::Ends),
        "has" => {
            decoder.entries(&entry.node, "`has`")?;
            return Some(Signature::Has(entry.node.to_json()));
        }
        "pending" => {
            let by = decoder.member(&entry.node, "hindrance", &Hindrance::EXPECTED);
            return by.map(Signature::Pending);
        }
        _ => {}
    }
    let items = decoder.list(&entry.node, &format!("`{}`", entry.key))?;
    if items.is_empty() {
        let message = format!("`{}` names no class: nothing would match it", entry.key);
        return decoder.fail(&entry.node, message, None);
    }
    Some(if entry.key == "failure" {
        let parse = |item| decoder.member(item, "failure class", FailureClass::ALL);
        Signature::Failure(items.iter().filter_map(parse).collect())
    } else {
        let parse = |item| decoder.member(item, "start failure", StartFailure::ALL);
        Signature::NotStarted(items.iter().filter_map(parse).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIMS: &str = "claims:
      - {id: net.no-ping, type: limitation, from: [docs], claim: a}
      - {id: net.no-pinh, type: capability, from: [docs], claim: b}
      - {id: net.advice, type: advice, from: [docs], claim: d}
      - {id: net.lost, kind: nonsense, from: [docs], claim: c}
";

    /// The ledger with an entry for each claim, or case of it, and the hints of what is reported.
    fn read(claims: &[&str]) -> (Ledger, Vec<Option<String>>) {
        let known = Catalogue::read("claims.yaml", CLAIMS, &mut Vec::new());
        let entry = |claim: &&str| {
            let named = claim.replace('/', "\n    case: ");
            format!(
                "  - claim: {named}
    scope: {{kubernetes: '*'}}
    outside: skip
    signature: {{failure: [timeout]}}
    reason: {claim}
    source: b
"
            )
        };
        let entries: String = claims.iter().map(entry).collect();
        let text = format!("limitations:\n{entries}");
        let mut found = Vec::new();
        let (ledger, _) = read_ledger("limitations.yaml", &text, &known, &mut found);
        (ledger, found.into_iter().map(|one| one.hint).collect())
    }

    /// The hints about a ledger whose only entry is for this claim and is not kept.
    fn hints(claim: &str) -> Vec<Option<String>> {
        let (ledger, hints) = read(&[claim]);
        assert!(ledger.entries().next().is_none(), "{claim}");
        hints
    }

    #[test]
    fn an_entry_is_for_a_limitation_that_is_claimed() {
        assert_eq!(read(&["net.no-ping"]).1, []);
        // Nearer to the capability, which cannot be limited as a whole
        let near = Some("did you mean `net.no-ping`?".to_owned());
        assert_eq!(hints("net.no-pinhh"), [near]);
        let other = "name the one `case` that is limited, remove the entry, or change the claim's \
                     type";
        assert_eq!(hints("net.no-pinh"), [Some(other.to_owned())]);
        let advice = "remove the entry, or change the claim's type";
        assert_eq!(hints("net.advice"), [Some(advice.to_owned())]);
        let none = Some("add the claim to claims.yaml first".to_owned());
        assert_eq!(hints("storage.unheard-of"), [none]);
        // A problem of the claim itself is reported for the claims file
        assert_eq!(hints("net.lost"), []);
    }

    #[test]
    fn an_entry_may_be_for_a_case_of_what_is_to_work() {
        let near = Some("did you mean `net.no-pinh`?".to_owned());
        assert_eq!(hints("net.no-pingh/a"), [near]);
        assert_eq!(hints("net.no-ping/a"), [Some("remove `case`".to_owned())]);
        let other = Some("remove the entry, or change the claim's type".to_owned());
        assert_eq!(hints("net.advice/a"), [other]);
        let (ledger, hints) = read(&["net.no-ping", "net.no-pinh/a", "net.no-pinh/b"]);
        assert_eq!(hints, []);
        let reason = |claim: &str, case: Option<&str>| {
            let claim = ClaimId::parse(claim).expect("an id");
            let entry = ledger.of_case(&claim, case);
            entry.map_or("none", |entry| entry.reason.as_str())
        };
        for case in [None, Some("a"), Some("b"), Some("c")] {
            let own = match case {
                Some("a") => "net.no-pinh/a",
                Some("b") => "net.no-pinh/b",
                _ => "none",
            };
            assert_eq!(reason("net.no-pinh", case), own);
            assert_eq!(reason("net.no-ping", case), "net.no-ping");
        }
        let twice = Some("a case has one entry: merge the two entries".to_owned());
        assert_eq!(read(&["net.no-pinh/a", "net.no-pinh/a"]).1, [twice]);
    }
}
