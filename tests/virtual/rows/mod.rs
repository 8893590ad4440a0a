//! Tries each row of the table of faults on its topology with the checks of its areas; with all checks if the
//! tests use more than one seed.

pub(crate) mod claims;
pub(crate) mod clusters;
mod objects;
pub(crate) mod page;
pub(crate) mod pairs;
pub(crate) mod permissions;
pub(crate) mod policy;
pub(crate) mod real;
mod rejections;
pub(crate) mod reported;
pub(crate) mod shown;
pub(crate) mod told;
pub(crate) mod topologies;
pub(crate) mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use hybrid_sim::interference::Interference;
use hybrid_sim::{FaultPlan, ProductFault, Topology};
use libtest_mimic::Trial;
use ordered_watch as watch;
use serde_json::{Value, json};
use winconform::engine::RunOptions;
use winconform_core::claims::Pattern;
use winconform_core::document::Placed;
use winconform_core::plan::Selection;
use winconform_core::record::{CheckView, RunView};
use winconform_core::verdict::Verdict;

use crate::products;
use crate::rows::clusters::{disrupted, of_row};
use crate::rows::policy::{mutating, refusing};
use crate::rows::validation::Validation;
use crate::table::{self, NONE, ROWS, Row, asked, tries_all};
use crate::world::{ALL, Outcome, World, ran_of, same, selection_of, trial, within_of};

/// Starts of ids of long checks, each with the term that leaves them out if the row does not change them.
const LONG: [(&str, &str); 3] = [
    ("net.after-churn", "!net.after-churn"),
    ("sample.dotnet-probes", "!sample.dotnet-probes"),
    ("sched.", "!area=sched"),
];

/// The rejections that a run observes beside those of the cases whose verdicts a row changes.
const OF_PODS: &str = "reject.*[workload=pod*";

/// The start of the ids of the checks that use only facts.
const OF_FACTS: &str = "env.";

/// One run of a healthy cluster for each topology.
static HEALTHY: LazyLock<Once<Result<RunView, String>>> = LazyLock::new(Once::default);

/// What trials share, by its name: the first that needs it makes it.
pub(crate) struct Once<T: 'static>(Mutex<BTreeMap<String, &'static OnceLock<T>>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Once<T> {
    pub(crate) fn of(&self, name: &str, make: impl FnOnce() -> T) -> &'static T {
        let cell = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = || -> &'static OnceLock<T> { Box::leak(Box::default()) };
            *known.entry(name.to_owned()).or_insert_with(fresh)
        };
        cell.get_or_init(make)
    }
}

/// Every row, with each template expanded.
pub(crate) static EACH: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let each = |row: &Row| match row.for_each {
        Some(expects) => rejections::rows(row, expects),
        None => vec![row.clone()],
    };
    ROWS.iter().flat_map(each).collect()
});

pub(crate) fn trials() -> Vec<Trial> {
    // A push tries a fault of the cluster once, on `hybrid` if it is there, and a third of a template's rows; a night all
    let (mut tried, mut of_templates) = (BTreeSet::new(), (0..3).cycle());
    let mut is_rare = |row: &Row| match row.fault.parse::<ProductFault>() {
        Ok(fault) => !tried.insert(fault.kind) && !tries_all(),
        Err(_) if ROWS.iter().any(|one| one.fault == row.fault) => false,
        Err(_) => of_templates.next() != Some(0) && !tries_all(),
    };
    let mut rows: Vec<_> = EACH.iter().collect();
    rows.sort_by_key(|row| row.topology != "hybrid");
    let trials = rows.into_iter().map(|row| {
        let name = format!("table::{}::{}", row.topology, row.fault);
        trial(name, move || shows(row)).with_ignored_flag(is_rare(row))
    });
    trials.collect()
}

fn shows(row: &Row) -> Outcome {
    let ran;
    let healthy = healthy(&row.topology)?;
    let view = match row.fault.as_str() {
        NONE => healthy,
        _ => {
            ran = seen(row, selection_for(row))?;
            &ran
        }
    };
    products::shows(view, row)?;
    products::is_about(view, row, healthy)?;
    told::first(view, row)?;
    says(view, row)?;
    tells(view, row, healthy)
}

/// Whether each check that fails or is inconclusive by a row has the row's words in its reason.
fn says(view: &RunView, row: &Row) -> Outcome {
    let Some(words) = &row.says else {
        return Ok(());
    };
    for check in view.checks.values() {
        let id = check.planned.id.as_str();
        let why = format!("{:?}", check.conclusion.as_ref().map(|it| &it.reason));
        if row.troubles(id) && !why.contains(words) {
            return Err(format!("{id} does not say `{words}`: {why}"));
        }
    }
    Ok(())
}

/// The view of a run under the fault of a row.
pub(crate) fn seen(row: &Row, selection: Selection) -> Result<RunView, String> {
    let fault = row.fault.parse::<ProductFault>().ok();
    let topology = with_place_for(fault.as_slice(), &row.topology)?;
    within_of(topology, 1, async |world: &World| {
        if let Some(fault) = fault {
            world.joined.faults().set(fault);
        }
        world.joined.shown().await;
        objects::change(&world.cluster().api, &row.objects).await?;
        let before = kept(world.objects(), row);
        let of_the_way: Vec<_> = row.fault.parse().into_iter().collect();
        let is_of_the_way = !of_the_way.is_empty();
        let interference = Interference::new(of_the_way, 1);
        let client = interference.before(&world.server.client());
        let client = refusing(mutating(client, &[&row.fault]), &row.fault);
        let client = match Validation::by_name(&row.fault) {
            Some(validation) => validation.before(client),
            None => client,
        };
        let mut options = RunOptions {
            selection,
            ..world.whole("r1")
        };
        let node = disrupted(&row.topology);
        options.config.disrupt = node.map(|node| Placed::by_argument(node, "--yes-disrupt"));
        let (_alive, signals) = watch::channel(0);
        let cluster = world.behind(client);
        let ran = ran_of(&ALL, &cluster, &options, signals, Box::new(|_| {})).await;
        let view = ran.view()?;
        // If a row changes no verdict, only hits show that its fault was active
        if !row.shows_anything() && is_of_the_way && interference.hits() == 0 {
            return Err(format!("{} meets no request", row.fault));
        }
        // Controllers change the objects that a row has changed
        if row.objects.is_empty() {
            world.cleared(&view).await?;
            same(&before, &kept(world.objects(), row))?;
        }
        Ok(view)
    })
}

/// The topology of a row, where each of these faults has its place.
fn with_place_for(faults: &[ProductFault], topology: &str) -> Result<Topology, String> {
    let mut topology = of_row(topology);
    // Every world in memory has a load balancer
    topology.load_balancer = true;
    let plan: FaultPlan = faults.iter().cloned().collect();
    let misfits = plan.misfits(&topology, "");
    match misfits.is_empty() {
        true => Ok(topology),
        false => Err(format!("a fault is nowhere: {misfits:?}")),
    }
}

/// The objects that a run of a row has to leave as they are. Under a fault these exclude the objects that
/// controllers create for the cluster's own workloads, and the status of those.
fn kept(mut objects: BTreeMap<String, Value>, row: &Row) -> BTreeMap<String, Value> {
    let is_own = |name: &str| row.fault != NONE && name.contains(" kube-");
    objects.retain(|name, object| !is_own(name) || object["metadata"]["ownerReferences"].is_null());
    // A boot restarts what runs on its node
    let boots = disrupted(&row.topology).is_some();
    for (name, object) in &mut objects {
        if is_own(name) || boots && name.starts_with("pods ") {
            object["status"].take();
        }
    }
    objects
}

/// Whether the informational checks that a row names observe something else, and all others the same as in
/// the healthy run: their observations do not depend on the run.
fn tells(view: &RunView, row: &Row, healthy: &RunView) -> Outcome {
    let parsed = row.tells.iter().map(|pattern| Pattern::parse(pattern));
    let patterns: Result<Vec<_>, _> = parsed.collect();
    let patterns = patterns.map_err(ToString::to_string)?;
    let checks = healthy.checks.values();
    let before = checks.map(|check| (check.planned.id.as_str(), check));
    let before: BTreeMap<_, _> = before.collect();
    let mut wrong = Vec::new();
    let mut idle: BTreeSet<_> = (0..patterns.len()).collect();
    for check in view.checks.values() {
        let id = check.planned.id.as_str();
        let named = patterns.iter().position(|pattern| pattern.covers(id));
        let Some(before) = before.get(id) else {
            continue;
        };
        let came_to = [before, check].map(|it| it.conclusion.as_ref().map(|it| it.verdict));
        // A skipped or inconclusive check observes nothing
        let observes = came_to[0] == came_to[1] && came_to[0].is_some_and(Verdict::is_conclusive);
        let is_by_chance = row.by_chance.first_match(id).is_some();
        if !observes || named.is_none() && (is_by_chance || !is_recorded(check)) {
            continue;
        }
        if let Some(at) = named {
            idle.remove(&at);
        }
        let (now, before) = (observed(check), observed(before));
        if (now == before) == named.is_some() {
            wrong.push(format!(
                "{id} observes\n{now}\nand where nothing is wrong\n{before}"
            ));
        }
    }
    let idle = idle.into_iter().map(|at| &patterns[at]);
    for pattern in idle.filter(|pattern| products::is_observed(view, row, pattern)) {
        wrong.push(format!("{pattern} is no check"));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}

fn is_recorded(check: &CheckView) -> bool {
    let conclusion = check.conclusion.as_ref();
    conclusion.is_some_and(|it| it.verdict == Verdict::Informational)
}

/// The observation of a check: of facts as it is; of the network without digits, which belong to addresses
/// and times, without the letter of a node, since other pods decide on which node of its pool a prober runs,
/// without what our pods answer, which names them, and with the targets in the order of their remaining text.
fn observed(check: &CheckView) -> String {
    let assertions = check.attempts.last().map(|attempt| &attempt.assertions);
    let assertion = assertions.and_then(|assertions| assertions.first());
    let mut observation = json!(assertion.and_then(|assertion| assertion.observation.clone()));
    if check.planned.id.as_str().starts_with(OF_FACTS) {
        return format!("{observation:#}");
    }
    if let Some(told) = observation["told"].as_str() {
        // The Services of the run decide how many
        let is_count = told.contains(" load balancers, ");
        return told
            .trim_start_matches(|c: char| is_count && c.is_ascii_digit())
            .to_owned();
    }
    // A scenario's is a list of its steps
    if let Some(steps) = observation.as_array_mut() {
        for step in steps {
            step["after-ms"].take();
        }
        return format!("{observation:#}");
    }
    let targets = observation["targets"].take();
    let of = |target: &Value| {
        let mut target = target.clone();
        if target["by"].is_string() {
            target["by"] = json!("one of ours");
            target["answer"]["answered"]["body"] = json!("its own");
        }
        let name = target["target"].as_str().and_then(|it| it.rsplit_once('-'));
        if let Some((pool, letter)) = name
            && letter.len() == 1
        {
            target["target"] = json!(pool);
        }
        let mut text = target.to_string();
        text.retain(|c| !c.is_ascii_digit());
        text
    };
    let mut targets: Vec<_> = targets.as_array().into_iter().flatten().map(of).collect();
    targets.sort_unstable();
    format!("{observation:#}\n{}", targets.join("\n"))
}

/// The one run of a healthy topology, with the checks of all areas of its row.
pub(crate) fn healthy(name: &str) -> Result<&'static RunView, String> {
    let run = || {
        let row = table::healthy(name);
        seen(row, of_areas(row, &[]))
    };
    HEALTHY.of(name, run).as_ref().map_err(Clone::clone)
}

/// The checks of a row's areas, without the long ones whose verdicts it does not change.
fn selection_for(row: &Row) -> Selection {
    let left_out = LONG.iter().filter(|(name, _)| !row.turns.has(name));
    let left_out: Vec<_> = left_out.map(|(_, term)| *term).collect();
    match asked() {
        // A node that is only an object runs no pods, and what pulls for hours ends too late
        Some(2..) if !makes_a_node(row) && !row.fault.starts_with("pull-slow") => {
            of_areas(table::healthy(&row.topology), &[])
        }
        _ if row.areas == ["reject"] => {
            let turned = row.turns.patterns().map(case);
            let terms: BTreeSet<_> = turned.chain([OF_PODS.to_owned()]).collect();
            let terms: Vec<_> = terms.iter().map(String::as_str).collect();
            selection_of(&ALL, &terms)
        }
        _ => of_areas(row, &left_out),
    }
}

fn makes_a_node(row: &Row) -> bool {
    let is_node = |(path, object): (&String, &Value)| {
        path.starts_with("/api/v1/nodes/") && !path.contains('#') && !object.is_null()
    };
    row.objects.iter().any(is_node)
}

/// The pattern of the cases whose checks a pattern covers.
fn case(pattern: &Pattern) -> String {
    let pattern = pattern.to_string();
    pattern.split('[').next().unwrap_or(&pattern).to_owned()
}

pub(crate) fn of_areas(row: &Row, left_out: &[&str]) -> Selection {
    let areas = row.areas.iter().map(|area| format!("area={area}"));
    let terms = areas.chain(left_out.iter().map(|term| (*term).to_owned()));
    let terms: Vec<_> = terms.collect();
    let terms: Vec<_> = terms.iter().map(String::as_str).collect();
    selection_of(&ALL, &terms)
}
