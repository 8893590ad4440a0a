//! Healthy clusters of each product, as `winconform demo --topology` has them: they are conformant, nearly all
//! checks are answered, and what is not applicable is on the list in `topologies.yaml`, with its reason and
//! its source. `docs/products.md` prints what came of it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use hybrid_sim::ProductFault;
use libtest_mimic::Trial;
use ordered_watch as watch;
use serde::Deserialize;
use winconform::cli::named_topology;
use winconform::engine::RunOptions;
use winconform_core::claims::Pattern;
use winconform_core::record::{CheckView, Exit, RunView, exit};
use winconform_core::verdict::{Reason, Verdict};

use crate::nodes::gentle::{HUNDREDTHS, Pods, few_at_once};
use crate::products::described;
use crate::rows::Once;
use crate::world::{ALL, Outcome, World, ran_of, selection_of, trial, watched, within_of};

/// The product that the others are compared with.
const BASE: &str = "kubeadm-flannel";

/// How many of a hundred checks that are answered there are answered everywhere, in each area.
const ANSWERED: usize = 85;

const PAGE: &str = "docs/products.md";
/// The environment variable that makes a trial write the page instead of comparing it.
const WRITE: &str = "WINCONFORM_TEST_WRITE";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// By a name that the products name.
    reasons: BTreeMap<String, NotApplicable>,
    products: Vec<Product>,
}

/// The verdicts of a healthy cluster of a product.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Product {
    name: String,
    exit: Exit,
    not_applicable: Vec<String>,
    /// Checks that do not come to what they have to; each goes when the tool is mended.
    #[serde(default)]
    open: Vec<String>,
}

impl Product {
    fn not_applicable(&self) -> impl Iterator<Item = &'static NotApplicable> {
        self.not_applicable
            .iter()
            .map(|name| &EXPECTED.reasons[name])
    }
}

/// Checks that are not applicable, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotApplicable {
    checks: Vec<String>,
    why: String,
    source: String,
}

static EXPECTED: LazyLock<Expected> = LazyLock::new(|| {
    let path = root().join("tests/virtual/rows/topologies.yaml");
    let text = std::fs::read_to_string(path).expect("text");
    serde_saphyr::from_str(&text).expect("products")
});

/// The one run of the healthy cluster of each product, and how many pods it had on Windows nodes.
static HEALTHY: LazyLock<Once<Result<(RunView, Pods), String>>> = LazyLock::new(Once::default);

pub(crate) fn healthy_run(name: &str) -> Result<&'static (RunView, Pods), String> {
    let run = || {
        let (_, topology) = named_topology(name).ok_or("no topology has this name")?;
        let mut pods = Pods::on(&topology);
        within_of(topology, 1, async move |world: &World| {
            let before = world.objects();
            let ran = watched(world, &ALL, &as_demo(world), |event| pods.record(event)).await?;
            let view = ran.view()?;
            world.left(&view, &before).await?;
            Ok((view, pods))
        })
    };
    HEALTHY.of(name, run).as_ref().map_err(Clone::clone)
}

/// The options of a demo, which runs all checks and allows nothing.
pub(crate) fn as_demo(world: &World) -> RunOptions {
    let mut options = world.whole("r0");
    options.config.outside.load_balancers = false;
    options.config.outside.metadata = false;
    options.config.outside.share = None;
    options.config.allow.clear();
    options
}

pub(crate) fn trials() -> Vec<Trial> {
    let each = EXPECTED.products.iter().map(|product| {
        let name = format!("topologies::{}", product.name);
        trial(name, || healthy(product))
    });
    let page = trial("topologies::the_page_names_every_product", page);
    each.chain([page]).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A run of these checks, or of all, as a demo's, in a cluster that may have a fault.
pub(super) fn run(
    name: &str,
    fault: Option<ProductFault>,
    select: &[&str],
) -> Result<RunView, String> {
    let (_, topology) = named_topology(name).ok_or("no topology has this name")?;
    within_of(topology, 1, async |world: &World| {
        if let Some(fault) = fault {
            world.joined.faults().set(fault);
        }
        world.joined.shown().await;
        let (_alive, signals) = watch::channel(0);
        let options = RunOptions {
            selection: selection_of(&ALL, select),
            ..as_demo(world)
        };
        let ran = ran_of(&ALL, &world.cluster(), &options, signals, Box::new(|_| {})).await;
        ran.view()
    })
}

fn healthy(product: &Product) -> Outcome {
    let (view, pods) = healthy_run(&product.name)?;
    let mut wrong: Vec<_> = few_at_once(view, pods, HUNDREDTHS)
        .err()
        .into_iter()
        .collect();
    let came = exit(view);
    if came != product.exit {
        wrong.push(format!("it came to {came:?}, not {:?}", product.exit));
    }
    let patterns = |of: &mut dyn Iterator<Item = &String>| -> Vec<Pattern> {
        of.map(|text| Pattern::parse(text).expect("a pattern"))
            .collect()
    };
    let listed = patterns(&mut product.not_applicable().flat_map(|entry| &entry.checks));
    let open = patterns(&mut product.open.iter());
    for check in view.checks.values() {
        let (id, verdict) = (&check.planned.id, verdict(check));
        let (skipped, is_listed) = (is_not_applicable(check), covered(&listed, check));
        if skipped && !is_listed {
            wrong.push(format!("{id} is not applicable, and no entry says so"));
        }
        if is_listed && !skipped {
            wrong.push(format!(
                "{id} is applicable, and an entry says that it is not"
            ));
        }
        if is_ill(check) && !covered(&open, check) {
            wrong.push(format!("{id} comes to {verdict:?}"));
        }
    }
    let idle = |patterns: &[Pattern], holds: fn(&CheckView) -> bool| -> Vec<String> {
        let is_of =
            |pattern: &Pattern, check: &CheckView| pattern.covers(check.planned.id.as_str());
        let idle = patterns.iter().filter(|pattern| {
            let mut checks = view.checks.values();
            !checks.any(|check| holds(check) && is_of(pattern, check))
        });
        idle.map(|pattern| format!("nothing is {pattern} any more"))
            .collect()
    };
    wrong.extend(idle(&listed, is_not_applicable));
    wrong.extend(idle(&open, is_ill));
    let (base, here) = (answered(&healthy_run(BASE)?.0), answered(view));
    for (area, there) in base {
        let here = here.get(area).copied().unwrap_or_default();
        if product.open.is_empty() && here * 100 < there * ANSWERED {
            wrong.push(format!(
                "{area}: {here} checks are answered, and {there} with {BASE}"
            ));
        }
    }
    let section = section(product, view);
    let printed = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    if std::env::var_os(WRITE).is_none() && !printed.contains(&section) {
        wrong.push(format!(
            "{PAGE} is not what came of it: set {WRITE}=1 to write it\n{section}"
        ));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(format!("{}\n{}", wrong.join("\n"), described(view))),
    }
}

fn covered(patterns: &[Pattern], check: &CheckView) -> bool {
    let id = check.planned.id.as_str();
    patterns.iter().any(|pattern| pattern.covers(id))
}

fn verdict(check: &CheckView) -> Option<Verdict> {
    check
        .conclusion
        .as_ref()
        .map(|conclusion| conclusion.verdict)
}

/// Whether a check is skipped for a reason that a conformant cluster may have.
fn is_not_applicable(check: &CheckView) -> bool {
    let reason = check
        .conclusion
        .as_ref()
        .map(|conclusion| &conclusion.reason);
    matches!(reason, Some(Reason::Skipped(reason)) if reason.is_legitimate())
}

/// Whether a check should have come to something else in a healthy cluster.
fn is_ill(check: &CheckView) -> bool {
    match verdict(check) {
        None | Some(Verdict::Fail | Verdict::Inconclusive) => true,
        Some(Verdict::Skip) => !is_not_applicable(check),
        Some(_) => false,
    }
}

/// How many checks of each area are answered.
fn answered(view: &RunView) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for check in view.checks.values() {
        let counts = counts.entry(check.planned.claim.area()).or_default();
        let counted = matches!(
            verdict(check),
            Some(
                Verdict::Pass
                    | Verdict::KnownLimitation
                    | Verdict::LimitationLifted
                    | Verdict::Warn
            )
        );
        *counts += usize::from(counted || is_not_applicable(check));
    }
    counts
}

/// What the page says of a product.
fn section(product: &Product, view: &RunView) -> String {
    let name = &product.name;
    let mut text = format!("## {name}\n\n");
    let (what, topology) = named_topology(name).expect("it has run");
    let nodes = topology.nodes.iter().map(|node| format!("`{}`", node.name));
    let nodes = nodes.collect::<Vec<_>>().join(", ");
    let exit = exit(view);
    let count = |wanted: Verdict| {
        let of = view
            .checks
            .values()
            .filter(|check| verdict(check) == Some(wanted));
        of.count()
    };
    let counts = [
        Verdict::Pass,
        Verdict::KnownLimitation,
        Verdict::LimitationLifted,
        Verdict::Warn,
        Verdict::Informational,
        Verdict::Skip,
        Verdict::Fail,
        Verdict::Inconclusive,
    ];
    let counts = counts.into_iter().filter(|one| count(*one) > 0);
    let counts: Vec<_> = counts.map(|one| format!("{} {one}", count(one))).collect();
    let _ = write!(
        text,
        "{what} ([sources](../sim/src/topology/{name}.yaml)): {nodes}.\n\n{}. The run is {} (exit code {}).\n\n",
        counts.join(", "),
        exit.as_str(),
        exit.code()
    );
    let table = "| not applicable | checks | why | source |\n|---|---|---|---|\n";
    text.push_str(table);
    for NotApplicable {
        checks,
        why,
        source,
    } in product.not_applicable()
    {
        let patterns = checks
            .iter()
            .map(|text| Pattern::parse(text).expect("a pattern"));
        let patterns: Vec<_> = patterns.collect();
        let of = view.checks.values();
        let of = of.filter(|check| is_not_applicable(check) && covered(&patterns, check));
        let (names, of) = (checks.join("`, `"), of.count());
        let _ = writeln!(text, "| `{names}` | {of} | {why} | {source} |");
    }
    text
}

/// Compares the page's products with the list, or writes the page.
fn page() -> Outcome {
    let mut reasons = EXPECTED.reasons.iter();
    if let Some((name, _)) = reasons.find(|(_, reason)| !reason.source.contains("](https://")) {
        return Err(format!("the source of {name} is not public"));
    }
    let path = root().join(PAGE);
    if std::env::var_os(WRITE).is_some() {
        let mut text = String::from(
            "# Products\n\n\
             What healthy clusters of each product come to in `winconform demo --topology NAME`, with all checks. The\n\
             simulated ones are as far as public manifests and documents tell; what is not known of a product is not in them.\n",
        );
        for product in &EXPECTED.products {
            let _ = write!(
                text,
                "\n{}",
                section(product, &healthy_run(&product.name)?.0)
            );
        }
        return std::fs::write(&path, text).map_err(|error| format!("{PAGE}: {error}"));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    let printed: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let listed: Vec<_> = EXPECTED
        .products
        .iter()
        .map(|product| product.name.as_str())
        .collect();
    match printed == listed {
        true => Ok(()),
        false => Err(format!("{PAGE} has {printed:?}, and the list {listed:?}")),
    }
}
