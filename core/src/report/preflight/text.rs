//! The findings in words.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{EXPECTED, Lack, Preflight, Prospect};
use crate::claims::ClaimId;
use crate::facts::{Known, Os};
use crate::plan::{Answer, Check};
use crate::report::text::layout::{behind, columns, pad, wrap};
use crate::text::{counted, printable};

/// Nodes named in one line.
const NAMED: usize = 3;

impl Preflight {
    /// For people, in lines of at most `width` columns where words allow it.
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        self.server_text(&mut text, width);
        self.pools_text(&mut text, width);
        self.permissions_text(&mut text, width);
        self.checks_text(&mut text, width);
        text
    }

    fn server_text(&self, text: &mut String, width: usize) {
        let version = match &self.facts.server {
            Known::Fact { value, .. } => format!("Kubernetes {}", printable(value)),
            Known::Unknown { reason } => format!("a version unknown: {}", printable(reason)),
        };
        let known = match self.version_is_expected() {
            Some(true) => String::new(),
            Some(false) => format!(
                ", which is not among those the expectations were written for (1.{} to 1.{})",
                EXPECTED.start(),
                EXPECTED.end()
            ),
            None => ", which cannot be held against what the expectations were written for".into(),
        };
        let context = printable(&self.context);
        paragraph(
            text,
            "server  ",
            &format!("{version}{known}, of context `{context}`"),
            width,
        );
    }

    fn pools_text(&self, text: &mut String, width: usize) {
        text.push_str("\nnodes\n");
        if let Known::Unknown { reason } = &self.facts.nodes {
            paragraph(text, "  unknown: ", &printable(reason), width);
            return;
        }
        let pools = self.facts.pools();
        if !pools.values().any(|pool| pool.os == Os::Windows) {
            text.push_str("  no Windows node\n");
        }
        let widest = pools.keys().map(|name| columns(name.as_str())).max();
        for (name, pool) in &pools {
            let mut words = format!("{} usable", pool.nodes.len());
            for (unused, how) in [
                (&pool.unusable, "not"),
                (&pool.excluded, "excluded"),
                (&pool.spared, "spared"),
            ] {
                if unused.is_empty() {
                    continue;
                }
                let named = unused.iter().take(NAMED);
                let named: Vec<_> = named.map(|name| printable(name)).collect();
                let _ = write!(words, ", {} {how}: {}", unused.len(), named.join(", "));
                if unused.len() > NAMED {
                    words.push_str(", …");
                }
            }
            let name = pad(&printable(name.as_str()), widest.unwrap_or_default());
            paragraph(text, &format!("  {name}  "), &words, width);
        }
        let virtual_nodes = self.facts.virtual_nodes.value().map_or(0, Vec::len);
        if virtual_nodes > 0 {
            let words = counted(virtual_nodes, "virtual node");
            paragraph(text, "  not used: ", &words, width);
        }
        for shortage in &self.shortages {
            paragraph(text, "  too little: ", &shortage.to_string(), width);
        }
    }

    fn permissions_text(&self, text: &mut String, width: usize) {
        let lacks = self.lacks();
        let total = self.answers.len();
        let answers = self.answers.values();
        let allowed = answers.filter(|a| **a == Answer::Allowed).count();
        let _ = writeln!(text, "\npermissions\n  {allowed} of {total} are granted");
        if self.facts.provider.value().and_then(Option::as_deref) == Some("openshift") {
            let words = "OpenShift admits pods on the network of their node and HostProcess pods only from who may use \
                         the security context constraint `privileged`: manifests/rbac/openshift.yaml lets the \
                         account of a run do so";
            paragraph(text, "  not asked: ", words, width);
        }
        for lack in &lacks {
            let (word, reason) = match lack.answer {
                Answer::Allowed => continue,
                Answer::Denied(reason) => ("missing", reason),
                Answer::Unknown(reason) => ("unknown", reason),
            };
            let reason = match reason.as_str() {
                "" => String::new(),
                reason => format!(" ({})", printable(reason)),
            };
            let access = printable(&lack.access.to_string());
            paragraph(
                text,
                &format!("  {word}: "),
                &format!("{access}{reason}"),
                width,
            );
            for line in consequences(lack) {
                paragraph(text, "    ", &line, width);
            }
        }
    }

    fn checks_text(&self, text: &mut String, width: usize) {
        let lacks = self.lacks();
        let mut run = 0;
        let mut forbidden = 0;
        let mut others: BTreeMap<(&str, String), Vec<&Check>> = BTreeMap::new();
        for check in &self.plan.checks {
            match self.prospect(check, &lacks) {
                Prospect::Run => run += 1,
                Prospect::Forbidden => forbidden += 1,
                Prospect::Inconclusive(why) => {
                    others.entry(("inconclusive", why)).or_default().push(check);
                }
                Prospect::Skipped(why) => others.entry(("skipped", why)).or_default().push(check),
            }
        }
        let _ = writeln!(
            text,
            "\nchecks\n  {run} of {} can be run",
            self.plan.checks.len()
        );
        if forbidden > 0 {
            let _ = writeln!(
                text,
                "  {forbidden} would be inconclusive for lack of permission"
            );
        }
        for ((word, why), checks) in others {
            let (count, why) = (checks.len(), printable(&why));
            paragraph(
                text,
                "  ",
                &format!("{count} would be {word}: {why}"),
                width,
            );
            paragraph(text, "    ", &compact(&checks), width);
        }
    }
}

fn consequences(lack: &Lack<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if !lack.costs.is_empty() {
        let count = counted(lack.costs.len(), "check");
        lines.push(format!("costs {count}: {}", compact(&lack.costs)));
    }
    if lack.lease {
        lines.push("a run that has to create objects does not start, or ends early".to_owned());
    }
    if lack.leaves {
        lines.push("a run could leave its objects in the cluster".to_owned());
    }
    if lack.silence {
        lines.push(
            "a run could not notice that a node stops reporting, and could give checks on that node the verdict fail".to_owned(),
        );
    }
    if !lack.facts.is_empty() {
        let facts: Vec<_> = lack.facts.iter().copied().collect();
        let words = if lack.costs.is_empty() {
            "costs no check; facts that would be unknown"
        } else {
            "facts that would be unknown"
        };
        lines.push(format!("{words}: {}", facts.join(", ")));
    }
    lines
}

/// Checks by claim: one by its id, several with their number.
fn compact(checks: &[&Check]) -> String {
    let mut claims: BTreeMap<&ClaimId, Vec<&Check>> = BTreeMap::new();
    for check in checks {
        claims.entry(&check.claim).or_default().push(check);
    }
    let shown = claims
        .iter()
        .map(|(claim, checks)| match checks.as_slice() {
            [check] => printable(check.id.as_str()),
            checks => format!("{} ({})", printable(claim.as_str()), checks.len()),
        });
    shown.collect::<Vec<_>>().join(", ")
}

/// Words after a beginning; further lines are below the first word.
fn paragraph(text: &mut String, begin: &str, words: &str, width: usize) {
    let indent = columns(begin);
    let lines = wrap(words, width.saturating_sub(indent).max(20));
    for line in behind(begin, indent, lines) {
        let _ = writeln!(text, "{line}");
    }
}
