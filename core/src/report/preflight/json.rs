//! The findings as JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::json::pretty;
use super::{Lack, Preflight, Prospect};
use crate::facts::Known;
use crate::plan::{Access, Answer, Check};

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    ready: bool,
    context: String,
    server: Known<String>,
    version_expected: Option<bool>,
    server_ahead_seconds: Option<f64>,
    pools: Vec<PoolDocument>,
    permissions: Vec<Permission>,
    checks: Vec<CheckDocument>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct PoolDocument {
    name: String,
    usable: Vec<String>,
    unusable: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Permission {
    access: Access,
    /// `null` when it could not be told.
    allowed: Option<bool>,
    reason: String,
    costs: Vec<String>,
    facts: BTreeSet<&'static str>,
    leaves: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct CheckDocument {
    id: String,
    prospect: &'static str,
    reason: Option<String>,
}

impl Preflight {
    /// The same as JSON, with every check named.
    pub fn json(&self) -> String {
        pretty(&self.document())
    }

    fn document(&self) -> Document {
        let lacks = self.lacks();
        let lacking: BTreeMap<&Access, &Lack<'_>> =
            lacks.iter().map(|lack| (&lack.access, lack)).collect();
        let permission = |(access, answer): (&Access, &Answer)| {
            let (allowed, reason) = match answer {
                Answer::Allowed => (Some(true), String::new()),
                Answer::Denied(reason) => (Some(false), reason.clone()),
                Answer::Unknown(reason) => (None, reason.clone()),
            };
            let lack = lacking.get(access);
            Permission {
                access: access.clone(),
                allowed,
                reason,
                costs: lack.map(|lack| ids(&lack.costs)).unwrap_or_default(),
                facts: lack.map(|lack| lack.facts.clone()).unwrap_or_default(),
                leaves: lack.is_some_and(|lack| lack.leaves),
            }
        };
        let check = |check: &Check| {
            let (prospect, reason) = match Self::prospect(check, &lacks) {
                Prospect::Run => ("run", None),
                Prospect::Forbidden => ("forbidden", None),
                Prospect::Inconclusive(why) => ("inconclusive", Some(why)),
                Prospect::Skipped(why) => ("skipped", Some(why)),
            };
            CheckDocument {
                id: check.id.to_string(),
                prospect,
                reason,
            }
        };
        let pools = self
            .facts
            .pools()
            .into_iter()
            .map(|(name, pool)| PoolDocument {
                name: name.to_string(),
                usable: pool.nodes,
                unusable: pool.unusable,
            });
        Document {
            ready: self.is_ready(),
            context: self.context.clone(),
            server: self.facts.server.clone(),
            version_expected: self.version_is_expected(),
            server_ahead_seconds: self.ahead.map(|ahead| ahead.as_secs_f64()),
            pools: pools.collect(),
            permissions: self.answers.iter().map(permission).collect(),
            checks: self.plan.checks.iter().map(check).collect(),
        }
    }
}

fn ids(checks: &[&Check]) -> Vec<String> {
    checks.iter().map(|check| check.id.to_string()).collect()
}
