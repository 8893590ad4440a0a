//! Whole runs in memory, in a time that passes by itself: no process, no socket and no control plane.
//!
//! Each trial has its own cluster, or one after another: an API server and two nodes, simulated. What
//! is to hold whenever something happens is tried at every event of a run: a few checks that have
//! every kind of stage. `WINCONFORM_TEST_SEEDS`, when more than 1, has all checks instead.

#[path = "../world/products.rs"]
mod products;
#[path = "../world/runs.rs"]
mod runs;
#[path = "../world/scheduling.rs"]
mod scheduling;
#[path = "../world/suites.rs"]
mod suites;

mod deadline;
mod faults;
mod killed;
mod signals;
mod together;
mod world;

use libtest_mimic::{Arguments, run};

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trials = [
        faults::trials(),
        killed::trials(),
        signals::trials(),
        deadline::trials(),
        together::trials(),
    ];
    if std::env::var_os("MEASURE").is_some() {
        let now = std::time::Instant::now;
        let t = now();
        let _ = world::SUITES.cases.len();
        eprintln!("suites {:?}", t.elapsed());
        for _ in 0..3 {
            let t = now();
            world::within(async |_| ());
            eprintln!("world {:?}", t.elapsed());
        }
        for _ in 0..3 {
            let t = now();
            let ran = world::unbroken();
            eprintln!("run {:?} {} events", t.elapsed(), ran.text.lines().count());
            let t = now();
            let _ = ran.view();
            eprintln!("read {:?}", t.elapsed());
        }
        let cpu = || {
            let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap() / 1000
        };
        for names in [
            &["*"][..],
            &["!sample.dotnet-probes"],
            &["!sample.dotnet-probes", "!net.after-churn"],
            &["!sample.dotnet-probes", "!area=sched"],
            &[
                "!sample.dotnet-probes",
                "!area=sched",
                "!sample.iis*",
                "!net.service-types*",
            ],
        ] {
            world::within(async |world| {
                let t = cpu();
                let o = winconform::engine::RunOptions {
                    selection: world::selection(names),
                    ..world.whole("r9")
                };
                let ran = world::undisturbed(&world.cluster(), &o).await;
                eprintln!(
                    "whole {names:?} {} {} events",
                    cpu() - t,
                    ran.text.lines().count()
                );
            });
        }
        world::within(async |world| {
            let t = cpu();
            let _ = world.cluster();
            eprintln!("cluster {}", cpu() - t);
            let t = cpu();
            for _ in 0..10 {
                let _ = world.settings("r1");
            }
            eprintln!("settings {}", (cpu() - t) / 10);
            let t = cpu();
            for _ in 0..10 {
                let _ = world.objects();
            }
            eprintln!("objects {}", (cpu() - t) / 10);
            let t = cpu();
            world.cleaned_up().await.unwrap();
            eprintln!("cleaned up {}", cpu() - t);
            let (_alive, signals) = tokio::sync::watch::channel(0);
            let began = cpu();
            let listener = Box::new(move |line: &winconform_core::record::Line| {
                let text = winconform_core::record::to_line(line).unwrap();
                eprintln!(
                    "{} us {}",
                    cpu() - began,
                    &text[..text.len().min(130)].trim()
                );
            });
            world::ran(&world.cluster(), &world.settings("r1"), signals, listener).await;
            eprintln!("end {}", cpu() - began);
        });
        return;
    }
    let trials = trials.into_iter().flatten().collect();
    run(&Arguments::from_args(), trials).exit()
}
