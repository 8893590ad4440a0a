//! Whole runs, each with something broken, on simulated nodes joined to a real control plane.
//!
//! *Product faults* break the cluster: each turns exactly the checks it names, to the verdict it
//! names. *Harness faults* break what lies between harness and API server: none may make a
//! verdict of either sign. Both kinds need a control plane, found by `WINCONFORM_TEST_KUBECONFIG`;
//! without it every trial is listed as ignored and named as not run.

#![expect(
    clippy::print_stdout,
    reason = "trials tell what they found and what is not run"
)]

use std::sync::{Arc, Weak};
use std::time::Duration;
use winconform::transport::Env;

use hybrid_sim::interference::Fault;
use tokio::sync::{Mutex, Notify, Semaphore};
use winconform::cluster::{connect, remove_run};
use winconform::engine::{Journal, run};
use winconform_core::config::{Limits, Outside};
use winconform_core::record::{RunView, read};

use harness::{Told, seeds, seeds_of_a_broken_world};
use products::{BROKEN_WORLD, HARNESS, described, of_the_way};
use table::Row;
use world::{Outcome, Trials, World, durations, options};

#[path = "world/execs.rs"]
mod execs;
#[path = "world/harness.rs"]
mod harness;
#[path = "world/interfered.rs"]
mod interfered;
#[path = "world/policy.rs"]
mod policy;
#[path = "world/products.rs"]
mod products;
#[path = "world/runs.rs"]
mod runs;
#[path = "world/scheduling.rs"]
mod scheduling;
#[path = "world/suites.rs"]
mod suites;
#[path = "world/table.rs"]
mod table;
mod world;

/// Places to look from in this cluster: pods and nodes of Linux and of its one pool of Windows.
const PLACES: usize = 4;

/// Runs at once while harness faults are tried.
const AT_ONCE: usize = 4;
static RUNS: Semaphore = Semaphore::const_new(AT_ONCE);
/// What is broken at the nodes, as long as any trial looks at it.
static SCENE: Mutex<Weak<Scene>> = Mutex::const_new(Weak::new());
static SCENE_LEFT: Notify = Notify::const_new();

/// The names of what is broken at the nodes.
struct Scene(Vec<&'static str>);

impl Drop for Scene {
    fn drop(&mut self) {
        SCENE_LEFT.notify_waiters();
    }
}

fn main() {
    // Those that need the nodes as they are now take turns by themselves
    let mut trials = Trials::new("faults-").at_once(HARNESS.len());
    // A few of them: that faults turn the same on both servers, all of them is for the nightly
    let all = harness::asked().is_some_and(|seeds| seeds > 1);
    let rows = table::ROWS.iter().filter(|row| row.topology == "hybrid");
    for row in rows.filter(|row| row.is_of_real_servers(all)) {
        let name = format!("product::{}", row.fault);
        trials.add(name, async move |world: &World| world.product(row).await);
    }
    trials.add(
        "cost::a_place_takes_three_execs".to_owned(),
        async |world: &World| world.execs().await,
    );
    for fault in HARNESS {
        let name = format!("harness::{fault}");
        trials.add(name, async move |world: &World| {
            world.harness(fault, seeds(), &[]).await
        });
    }
    for fault in HARNESS {
        let name = format!("harness_in_a_broken_world::{fault}");
        trials.add(name, async move |world: &World| {
            let seeds = seeds_of_a_broken_world();
            world.harness(fault, seeds, &BROKEN_WORLD).await
        });
    }
    trials.run()
}

impl World {
    /// Runs the tool with these faults on its way.
    async fn run(&self, faults: Vec<Fault>, seed: u64) -> RunView {
        self.counted_run(faults, seed).await.0
    }

    /// The same, with how many execs it sent to each place.
    async fn counted_run(&self, faults: Vec<Fault>, seed: u64) -> (RunView, Vec<(String, u64)>) {
        let way = (durations(), Limits::default());
        let way = interfered::interfered(&self.kubeconfig, seed, way.0, way.1).await;
        let (interference, cluster) = way.expect("the control plane answers");
        interference.set(faults);
        let run_id = format!("r{:08x}", rand::random::<u32>());
        let outside = Outside {
            load_balancers: true,
            ..runs::through(&self.joined.proxy_url())
        };
        let settings = runs::apart(&run_id, outside);
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}))
            .expect("a record in memory");
        let (_alive, signals) = tokio::sync::watch::channel(0);
        let suites = suites::of_whole_runs();
        let _ = run(&cluster, &suites, &settings, &journal, signals).await;
        let sent = cluster.api.execs();
        let view = read(&journal.text()).expect("a readable record");
        // What tear-down said must be true; what it could not remove is removed here
        let torn_down = view.torn_down.as_ref().expect("tear-down is on record");
        let direct = connect(&options(&self.kubeconfig), durations(), Limits::default()).await;
        let direct = direct.expect("the control plane answers");
        let left = remove_run(&direct.api, Some(&run_id), Duration::from_mins(1)).await;
        let left = left.expect("the control plane answers");
        if torn_down.left.is_empty() && torn_down.troubles.is_empty() {
            assert!(
                left.removed.is_empty(),
                "{run_id} said it left nothing: {:?}",
                left.removed
            );
        }
        (view, sent)
    }

    /// A healthy run with a curl that takes many targets at once looks from no place too often. On a
    /// busy machine it has to look again at what was late: one run of a few is enough.
    async fn execs(&self) -> Outcome {
        let _scene = self.scene(&["none"]).await;
        let mut over = String::new();
        for _ in 0..3 {
            let (view, sent) = self.counted_run(Vec::new(), 1).await;
            let told = sent.iter().map(|(pod, count)| format!("{count} {pod}"));
            let told = told.collect::<Vec<_>>().join(", ");
            println!("execs: {told}");
            let what = described(&view);
            if sent.len() != PLACES {
                return Err(format!("{PLACES} places, not {told}\n{what}"));
            }
            if sent
                .iter()
                .all(|(place, count)| *count <= execs::most_execs(place))
            {
                return Ok(());
            }
            over = format!("more execs than it takes: {told}\n{what}");
        }
        Err(over)
    }

    /// Breaks this at the nodes, once nobody looks at anything else there.
    async fn scene(&self, broken: &[&'static str]) -> Arc<Scene> {
        loop {
            let left = SCENE_LEFT.notified();
            let mut now = SCENE.lock().await;
            match now.upgrade() {
                None => {
                    self.set(broken).await;
                    let scene = Arc::new(Scene(broken.to_vec()));
                    *now = Arc::downgrade(&scene);
                    return scene;
                }
                Some(scene) if scene.0 == broken => return scene,
                Some(_) => {}
            }
            drop(now);
            left.await;
        }
    }

    /// Sets the nodes' faults and waits until they show them.
    async fn set(&self, faults: &[&str]) {
        for fault in self.joined.faults().current().iter() {
            self.joined.faults().lift(fault);
        }
        policy::set(&self.kubeconfig, faults).await;
        for fault in faults.iter().filter_map(|fault| fault.parse().ok()) {
            self.joined.faults().set(fault);
        }
        self.joined.shown().await;
    }

    async fn product(&self, row: &'static Row) -> Outcome {
        let _scene = self.scene(&[&row.fault]).await;
        let view = self.run(of_the_way(&[&row.fault]), 1).await;
        products::shows(&view, row)
    }

    /// Under a harness fault no check of a healthy cluster fails, and none that is broken passes.
    async fn harness(&self, fault: &'static str, seeds: u64, broken: &[&'static str]) -> Outcome {
        let _scene = self.scene(broken).await;
        let mut before = of_the_way(broken);
        before.insert(0, fault.parse().expect("a fault of the way"));
        let rows = broken.iter().map(|fault| table::row("hybrid", fault));
        let rows: Vec<_> = rows.collect();
        let runs = (0..seeds).map(|seed| {
            let before = before.clone();
            async move {
                let _turn = RUNS.acquire().await;
                (seed, self.run(before, seed).await)
            }
        });
        let views = futures::future::join_all(runs).await;
        let mut told = Told::under(fault);
        for (seed, view) in &views {
            told.add(*seed, view, products::tally(view, &rows))?;
        }
        told.enough()
    }
}
