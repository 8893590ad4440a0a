//! The findings as JSON.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::json::pretty;
use super::{Lack, Preflight, Prospect};
use crate::plan::{Access, Answer, Check};

impl Preflight {
    /// The same as JSON, with every check named.
    pub fn json(&self) -> String {
        let lacks = self.lacks();
        let lacking: BTreeMap<&Access, &Lack<'_>> =
            lacks.iter().map(|lack| (&lack.access, lack)).collect();
        let permission = |(access, answer): (&Access, &Answer)| {
            let (allowed, reason) = match answer {
                Answer::Allowed => (Some(true), ""),
                Answer::Denied(reason) => (Some(false), reason.as_str()),
                Answer::Unknown(reason) => (None, reason.as_str()),
            };
            let lack = lacking.get(access);
            json!({
                "access": access.to_string(),
                "allowed": allowed,
                "reason": reason,
                "costs": lack.map(|lack| ids(&lack.costs)).unwrap_or_default(),
                "facts": lack.map(|lack| &lack.facts).into_iter().flatten().collect::<Vec<_>>(),
                "leaves": lack.is_some_and(|lack| lack.leaves),
            })
        };
        let check = |check: &Check| {
            let (prospect, reason) = match self.prospect(check, &lacks) {
                Prospect::Run => ("run", None),
                Prospect::Forbidden => ("forbidden", None),
                Prospect::Inconclusive(why) => ("inconclusive", Some(why)),
                Prospect::Skipped(why) => ("skipped", Some(why)),
            };
            json!({"id": check.id, "prospect": prospect, "reason": reason})
        };
        let pools = self.facts.pools().into_iter().map(|(name, pool)| {
            json!({"name": name, "usable": pool.nodes, "unusable": pool.unusable,
                "excluded": pool.excluded, "spared": pool.spared})
        });
        pretty(&json!({
            "ready": self.is_ready(),
            "context": self.context,
            "server": self.facts.server,
            "version-expected": self.version_is_expected(),
            "pools": pools.collect::<Vec<_>>(),
            "shortages": self.shortages.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "permissions": self.answers.iter().map(permission).collect::<Vec<_>>(),
            "checks": self.plan.checks.iter().map(check).collect::<Vec<_>>(),
        }))
    }
}

fn ids(checks: &[&Check]) -> Vec<String> {
    checks.iter().map(|check| check.id.to_string()).collect()
}
