//! Finds out what a run may do on a cluster, without doing any of it.

use std::collections::BTreeSet;

use winconform_core::config::Config;
use winconform_core::plan::{Selection, shortages};
use winconform_core::report::preflight::Preflight;
use winconform_core::suite::Suites;

use super::access::uses;
use super::cost::cost;
use super::life::RunError;
use super::run::plan_of;
use crate::cluster::{Cluster, review};

/// Collects facts, plans, and has the server review every access that a run would need. It sends only
/// reads and reviews.
pub async fn survey(
    cluster: &Cluster,
    suites: &Suites,
    config: &Config,
    selection: &Selection,
) -> Result<Preflight, RunError> {
    let uses = uses(&config.images);
    let (facts, selected) = plan_of(cluster, suites, config, selection).await?;
    let plan = selected.plan;
    let shortages = shortages(&cost(&plan, &facts, config, false), &facts);
    let needs = uses.of_plan(&plan);
    let accesses: BTreeSet<_> = needs.into_iter().map(|need| need.access).collect();
    let answers = review(&cluster.api, &accesses).await;
    Ok(Preflight {
        context: cluster.context.clone(),
        facts,
        plan,
        uses,
        shortages,
        answers,
    })
}
