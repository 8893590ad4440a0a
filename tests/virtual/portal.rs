//! Runs that observe from outside through a proxy that answers everything itself, as a hotel's does; and runs
//! whose every text from the cluster and from outside is hostile.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hybrid_sim::Loopback;
use hybrid_sim::interference::Interference;
use libtest_mimic::Trial;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_util::either::Either;
use winconform::engine::RunOptions;
use winconform::transport::{Dial, dial};
use winconform_core::config::Target;
use winconform_core::record::Exit;
use winconform_core::report::junit;
use winconform_core::text::is_hostile;
use winconform_core::verdict::Verdict;

use crate::rows::clusters::of_row;
use crate::table;
use crate::troubles::tally;
use crate::world::{Outcome, Ran, World, selection, trial, undisturbed, within, within_of};

/// The address of the proxy.
const PORTAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9)), 80);

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
const PAGE: &[u8] = b"<p>Please log in</p>";

const FROM_OUTSIDE: &str = "net.nodeport-external";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial(
            "who_looks_from_behind_a_captive_proxy_is_told_nothing",
            captive,
        ),
        trial("whatever_is_said_is_shown_harmless", hostile),
    ]
}

/// Connections of a network that includes the portal.
fn with_portal(loopback: &Loopback, page: Vec<u8>) -> Arc<Dial> {
    let (loopback, page) = (loopback.clone(), Arc::new(page));
    dial(move |address| {
        let (loopback, page) = (loopback.clone(), Arc::clone(&page));
        async move {
            if address != PORTAL {
                return loopback.connect(address).await.map(Either::Right);
            }
            let (near, far) = duplex(64 << 10);
            tokio::spawn(answer(far, page));
            Ok(Either::Left(near))
        }
    })
}

async fn answer(mut stream: DuplexStream, page: Arc<Vec<u8>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream.write_all(HEAD).await?;
    stream.write_all(&page).await?;
    stream.shutdown().await
}

/// A run through the portal.
async fn through(world: &World, page: Vec<u8>, client: kube::Client, checks: &[&str]) -> Ran {
    let mut options = RunOptions {
        selection: selection(checks),
        ..world.whole("r1")
    };
    options.config.outside.proxy = Target::parse(&format!("http://{PORTAL}"));
    undisturbed(
        &world.dialled(with_portal(&world.loopback, page), client),
        &options,
    )
    .await
}

fn captive() -> Outcome {
    within(async |world: &World| {
        let checks = [FROM_OUTSIDE, "net.service-ip-from-pod[*"];
        let ran = through(world, PAGE.to_vec(), world.server.client(), &checks).await;
        ran.came_to(Exit::CouldNotTell)?;
        for check in ran.view()?.checks.values() {
            let conclusion = check.conclusion.as_ref().ok_or("no verdict")?;
            let reason = format!("{:?}", conclusion.reason);
            let is_it = match check.planned.id.as_str().starts_with(FROM_OUTSIDE) {
                true => {
                    conclusion.verdict == Verdict::Inconclusive
                        && reason.contains("answers by itself")
                }
                false => conclusion.verdict == Verdict::Pass,
            };
            if !is_it {
                return Err(format!("{}: {conclusion:?}", check.planned.id));
            }
        }
        Ok(())
    })
}

/// Bytes that are no text, escape sequences, the end of CDATA and what XML cannot hold, in a very long
/// line.
fn hostile_page() -> Vec<u8> {
    let line = b"\xff\xfe\x1b[31m\x1b]0;owned\x07]]>\x00\x08<script>\xe2\x80\xae";
    line.repeat(10_000)
}

fn hostile() -> Outcome {
    const BROKEN: [&str; 2] = ["crash-loop=windows-2019", "service-answers-wrong"];
    const SHOWN: [&str; 3] = [
        r"<html>welcome</html>\u{1b}[31m\u{1b}]0;owned\u{7}\u{1b}[2J]]>\u{202e}",
        "container windowswebserver",
        r"\u{1b}[31;1m\u{1b}[2J",
    ];
    let checks = [
        FROM_OUTSIDE,
        "net.node-to-service-ip",
        "net.service-ip-from-pod",
        "sample.win-webserver",
    ];
    within_of(of_row("three-builds"), 1, async |world: &World| {
        for fault in BROKEN {
            world.joined.faults().set(fault.parse().expect("a fault"));
        }
        world.joined.shown().await;
        let texts = "hostile-texts".parse().expect("a fault of the way");
        let interference = Interference::new(vec![texts], 1);
        let client = interference.before(&world.server.client());
        let ran = through(world, hostile_page(), client, &checks).await;
        ran.came_to(Exit::NotConformant)?;
        let view = ran.view()?;
        let rows = BROKEN.map(|fault| table::row("three-builds", fault));
        tally(&view, &rows)?;
        let report = ran.report();
        let unwrapped = report.split_whitespace().collect::<Vec<_>>().join(" ");
        for shown in SHOWN {
            if !unwrapped.contains(shown) {
                return Err(format!("`{shown}` is not shown:\n{report}"));
            }
        }
        let junit = junit::render(&view).map_err(|error| error.to_string())?;
        let raw = |character: char| is_hostile(character) && character != '\n';
        match report.contains(raw) || junit.contains(raw) {
            true => Err(format!("raw text in a report:\n{report}")),
            false => Ok(()),
        }
    })
}
