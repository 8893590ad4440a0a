//! Whole runs of the table of faults on simulated nodes joined to a real control plane. Each push tries a few
//! rows, to show that faults change the same verdicts on both servers; tests with more than one seed try all
//! rows, and all interference.

use std::time::Duration;

use hybrid_sim::interference::{ExecTrouble, Interference};
use kube::Client;
use winconform::cluster::{Cluster, connect, remove_run};
use winconform::engine::{Journal, run};
use winconform::transport::Env;
use winconform_core::config::{Allowed, Limits, Outside};
use winconform_core::record::RunView;

use super::byte_proxy::ByteProxy;
use super::products::{self, of_the_way};
use super::table::{self, Row};
use super::troubles::{TROUBLES, tally};
use super::world::{Outcome, Trials, World, durations, options};
use super::{policy, runs, suites};

/// What ci/end-to-end runs by the tool itself, and compares with the same run in memory.
const END_TO_END: [&str; 2] = [table::NONE, "kube-proxy-dead=windows-2022"];

/// The most seeds that a trial tries until trouble hits something.
const SEEDS: u64 = 5;

pub(crate) fn add(trials: &mut Trials) {
    let all = table::tries_all();
    let rows = table::ROWS.iter().filter(|row| row.topology == "hybrid");
    let rows = rows.filter(|row| all || !END_TO_END.contains(&row.fault.as_str()));
    for row in rows.filter(|row| row.is_of_real_servers(all)) {
        let name = format!("faults::{}", row.fault);
        trials.add(name, async move |world: &World| world.product(row).await);
    }
    for trouble in TROUBLES.iter().filter(|_| all) {
        let name = format!("faults::trouble::{trouble}");
        trials.add(name, async move |world: &World| {
            world.set(&[]).await;
            // With few requests, chance may hit none
            let (mut view, mut hits) = world.run(trouble, 1).await;
            for seed in 2..=SEEDS {
                if hits == 0 {
                    (view, hits) = world.run(trouble, seed).await;
                }
            }
            showed(trouble, hits, &view)
        });
    }
    let on_the_wire: [(_, &[_]); 2] = [
        (
            "cut-exec",
            &[ExecTrouble::CutBeforeOutput, ExecTrouble::CutAfterOutput],
        ),
        ("lose-exit-frame", &[ExecTrouble::LoseExit]),
    ];
    for (trouble, kinds) in on_the_wire.into_iter().filter(|_| all) {
        let name = format!("faults::bytes::{trouble}");
        trials.add(name, async move |world: &World| {
            world.set(&[]).await;
            let proxy = ByteProxy::start(world, kinds).await;
            let view = world.run_with(proxy.client()).await;
            showed(trouble, proxy.hits(), &view)
        });
    }
}

/// Whether a run met trouble, and has no wrong verdict.
fn showed(trouble: &str, hits: u64, view: &RunView) -> Outcome {
    let (right, untold) = tally(view, &[table::healthy("hybrid")])?;
    println!("{trouble}: {hits} hit, {right} verdicts right, {untold} untold, none wrong");
    let shown = (hits > 0 && right > 0).then_some(());
    shown.ok_or_else(|| "it hit nothing, or all is untold".to_owned())
}

impl World {
    /// Sets these faults and lifts all others, whatever the trial before has left.
    async fn set(&self, wrong: &[&str]) {
        for fault in self.joined.faults().current().iter() {
            self.joined.faults().lift(fault);
        }
        policy::set(&self.kubeconfig, wrong).await;
        for fault in wrong.iter().filter_map(|fault| fault.parse().ok()) {
            self.joined.faults().set(fault);
        }
        self.joined.shown().await;
    }

    async fn product(&self, row: &'static Row) -> Outcome {
        self.set(&[&row.fault]).await;
        let (view, _) = self.run(&row.fault, 1).await;
        self.set(&[]).await;
        products::shows(&view, row)
    }

    async fn run(&self, fault: &str, seed: u64) -> (RunView, u64) {
        let interference = Interference::new(of_the_way(&[fault]), seed);
        let client = interference.before(self.direct().await.api.client());
        (self.run_with(client).await, interference.hits())
    }

    async fn direct(&self) -> Cluster {
        let options = options(&self.kubeconfig);
        let direct = connect(&options, durations(), Limits::default()).await;
        direct.expect("the control plane answers")
    }

    /// A whole run that reaches the server through a client.
    async fn run_with(&self, client: Client) -> RunView {
        let direct = self.direct().await;
        let (durations, limits) = (durations(), Limits::default());
        let cluster = Cluster::behind(Env::system(), client, &direct.context, durations, limits);
        let run_id = format!("r{:08x}", rand::random::<u32>());
        let outside = Outside {
            load_balancers: true,
            metadata: true,
            ..runs::through(&self.joined.proxy_url())
        };
        let mut settings = runs::apart(&run_id, outside);
        settings
            .config
            .allow
            .extend([Allowed::Load, Allowed::Disruption]);
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}))
            .expect("a record in memory");
        let (_alive, signals) = ordered_watch::channel(0);
        let suites = suites::of_whole_runs();
        let _ = run(&cluster, &suites, &settings, &journal, signals).await;
        let view = journal.view().expect("a readable record");
        // The report of tear-down must be true; this removes what tear-down could not
        let torn_down = view.torn_down.as_ref().expect("tear-down is on record");
        let left = remove_run(&direct.api, Some(&run_id), Duration::from_mins(1)).await;
        let left = left.expect("the control plane answers").removed;
        let is_told = !torn_down.left.is_empty() || !torn_down.errors.is_empty();
        assert!(
            is_told || left.is_empty(),
            "{run_id} said it left nothing: {left:?}"
        );
        view
    }
}
