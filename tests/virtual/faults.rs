//! Every product fault of the catalogue, and everything that can lie between harness and server.

use hybrid_sim::front::{Front, FrontFault, FrontOptions};
use libtest_mimic::Trial;
use winconform::engine::RunOptions;
use winconform_core::plan::Selection;
use winconform_core::record::RunView;
use winconform_core::verdict::Verdict;

use crate::products::{self, BROKEN_WORLD, HARNESS, PRODUCT, Product, of_the_front};
use crate::scheduling::{self, POLICIES};
use crate::world::{Outcome, World, behind, seeds, selection, trial, undisturbed, within};

/// What takes long, and the term that leaves it out.
const LONG: [(&str, &str); 3] = [
    ("net.after-churn", "!net.after-churn"),
    ("sample.dotnet-probes", "!sample.dotnet-probes"),
    ("sched.", "!area=sched"),
];

pub(crate) fn trials() -> Vec<Trial> {
    // Policies take a server that evaluates them
    let product = PRODUCT
        .iter()
        .filter(|product| !POLICIES.contains(&product.fault))
        .map(|product| {
            let name = format!("product::{}", product.fault);
            trial(name, move || {
                let view = seen(&[product.fault], Vec::new(), 1, of(product))?;
                products::shows(&view, product)
            })
        });
    let harness = HARNESS
        .iter()
        .map(|fault| trial(format!("harness::{fault}"), move || harness(fault)));
    product.chain(harness).collect()
}

/// The checks that are looked at while something is broken: all, less the long ones that it does not turn.
fn of(product: &Product) -> Selection {
    let turns = |area: &str| {
        let scheduling = scheduling::turns(product.fault);
        let turned = product.turns.iter().chain(scheduling);
        let mut names = turned.map(|(name, _)| *name);
        names.any(|name| name.starts_with(area))
    };
    let left_out = LONG.into_iter().filter(|(name, _)| !turns(name));
    let left_out: Vec<_> = left_out.map(|(_, term)| term).collect();
    match seeds() {
        1 => selection(&left_out),
        _ => Selection::default(),
    }
}

/// The checks that are looked at through what lies between harness and server: some of every way.
fn of_harness() -> Selection {
    const SOME: [&str; 5] = [
        "area=env",
        "reject.hostPID",
        "sample.win-webserver",
        "net.service-ip-from-pod",
        "net.node-to-service-ip",
    ];
    match seeds() {
        1 => selection(&SOME),
        _ => Selection::default(),
    }
}

/// Under a harness fault no check of a healthy cluster fails, and none that is broken passes.
fn harness(fault: &str) -> Outcome {
    let (mut told, mut untold) = (0, 0);
    for seed in 0..=seeds() {
        // The first cluster is healthy, the last is not
        let is_broken = seed == seeds() || seed % 5 == 4;
        let broken: &[&str] = if is_broken { &BROKEN_WORLD } else { &[] };
        let products: Vec<&Product> = PRODUCT
            .iter()
            .filter(|product| broken.contains(&product.fault))
            .collect();
        let fault = fault.parse().expect("a fault of the front");
        let view = seen(broken, vec![fault], seed, of_harness())?;
        let tally = products::tally(&view, &products);
        let (right, silent) = tally.map_err(|wrong| format!("seed {seed}: {wrong}"))?;
        let fails = view.checks.values().filter_map(|it| it.conclusion.as_ref());
        let fails = fails.filter(|told| told.verdict == Verdict::Fail).count();
        if is_broken && fails == 0 {
            return Err(format!("seed {seed}: nothing broken is told"));
        }
        told += right;
        untold += silent;
    }
    match told {
        0 => Err(format!("all {untold} untold")),
        _ => Ok(()),
    }
}

/// A whole run with this broken, and these faults of the front besides.
fn seen(
    broken: &[&str],
    mut faults: Vec<FrontFault>,
    seed: u64,
    selection: Selection,
) -> Result<RunView, String> {
    faults.extend(of_the_front(broken));
    within(async |world: &World| {
        for fault in broken.iter().filter_map(|fault| fault.parse().ok()) {
            world.joined.faults().set(fault);
        }
        world.joined.shown().await;
        let before = world.objects();
        let front = FrontOptions { faults, seed };
        let front = Front::before(world.server.client(), front).await;
        let front = front.map_err(|error| error.to_string())?;
        let cluster = behind(front.client());
        let options = RunOptions {
            selection,
            ..world.whole("r1")
        };
        let ran = undisturbed(&cluster, &options).await;
        front.stop().await;
        let view = ran.view()?;
        // What it says of what it left is true, and what it left can be removed
        let torn_down = view.torn_down.as_ref();
        if torn_down.is_some_and(|done| done.left.is_empty() && done.troubles.is_empty()) {
            world.unchanged(&before)?;
        } else {
            world.cleaned_up().await?;
            world.unchanged(&before)?;
        }
        Ok(view)
    })
}
