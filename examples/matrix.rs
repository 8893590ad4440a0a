//! Has every pod of a namespace query every pod of it over HTTP, through exec, in two ways in turn: one exec
//! session for each vantage point, as runs do, and one exec for each cell of the matrix, with 15 workers.
//! Prints the time of each way and the ratio.
//!
//! `matrix KUBECONFIG NAMESPACE ROUNDS BOUND`: the pods run agnhost's `netexec` on port 8080 on Windows, and
//! have the system's curl. Exits with 1 if the median of the rounds' ratios is below BOUND, or an answer is
//! not from the pod that was queried.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use std::error::Error;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::Api as Objects;
use winconform::cluster::{Cluster, ConnectOptions, connect};
use winconform::transport::PodRef;
use winconform_core::command::{Command, HttpSession, Token};
use winconform_core::config::{Durations, Limits};
use winconform_core::method::curl::{candidates, split};
use winconform_core::method::{Host, HttpGet, HttpReply, SourceKind};

type ObservationError = Box<dyn Error>;

/// The number of concurrent execs if each is one cell.
const WORKERS: usize = 15;

/// A pod that observes and is observed.
struct Place {
    pod: PodRef,
    address: IpAddr,
}

#[tokio::main]
async fn main() -> Result<ExitCode, ObservationError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kubeconfig, namespace, rounds, bound] = arguments.as_slice() else {
        return Err("usage: matrix KUBECONFIG NAMESPACE ROUNDS BOUND".into());
    };
    let (rounds, bound): (usize, f64) = (rounds.parse()?, bound.parse()?);
    let options = ConnectOptions {
        context: None,
        kubeconfig: Some(kubeconfig.into()),
    };
    let cluster = connect(&options, Durations::default(), Limits::default()).await?;
    let places = places(&cluster, namespace).await?;
    let cells = places.len() * places.len();
    // Not counted: opens the connections to the API server that both ways use
    swept(&cluster, &places).await?;
    let mut ratios = Vec::new();
    for round in 1..=rounds {
        let sessions = timed(swept(&cluster, &places)).await?;
        let each = timed(one_by_one(&cluster, &places)).await?;
        let ratio = each.as_secs_f64() / sessions.as_secs_f64();
        println!(
            "round {round}: {cells} cells in {sessions:.3?} by {} execs, in {each:.3?} by {cells}: \
             {ratio:.1} times faster",
            places.len()
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).ok_or("no rounds")?;
    println!(
        "{median:.1} times faster than one exec per cell with {WORKERS} workers (bound: at least {bound})"
    );
    Ok(match *median < bound {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

async fn timed(
    way: impl Future<Output = Result<(), ObservationError>>,
) -> Result<Duration, ObservationError> {
    let began = Instant::now();
    way.await?;
    Ok(began.elapsed())
}

/// The pods of a namespace.
async fn places(cluster: &Cluster, namespace: &str) -> Result<Vec<Place>, ObservationError> {
    let pods: Objects<Pod> = Objects::namespaced(cluster.api.client().clone(), namespace);
    let mut places = Vec::new();
    for pod in pods.list(&kube::api::ListParams::default()).await? {
        let name = pod.metadata.name.ok_or("a pod without a name")?;
        let address = pod.status.and_then(|status| status.pod_ip);
        let address = address.ok_or_else(|| format!("{name} has no address"))?;
        let container = pod.spec.and_then(|spec| spec.containers.into_iter().next());
        let pod = PodRef {
            namespace: namespace.to_owned(),
            container: container.ok_or("a pod without containers")?.name,
            name,
        };
        let address = address.parse()?;
        places.push(Place { pod, address });
    }
    Ok(places)
}

/// Observes all targets of a place in one session, from all places at once.
async fn swept(cluster: &Cluster, places: &[Place]) -> Result<(), ObservationError> {
    let targets: Vec<_> = places.iter().collect();
    try_join_all(places.iter().map(|from| look(cluster, from, &targets))).await?;
    Ok(())
}

/// Observes one target in each session.
async fn one_by_one(cluster: &Cluster, places: &[Place]) -> Result<(), ObservationError> {
    let cells = places
        .iter()
        .flat_map(|from| places.iter().map(move |to| (from, to)));
    let assertions = cells.map(|(from, to)| async move { look(cluster, from, &[to]).await });
    let mut assertions = futures::stream::iter(assertions).buffer_unordered(WORKERS);
    while let Some(observed) = assertions.next().await {
        observed?;
    }
    Ok(())
}

/// Queries the targets for their names; any other answer is an error.
async fn look(cluster: &Cluster, from: &Place, targets: &[&Place]) -> Result<(), ObservationError> {
    let get = |to: &&Place| HttpGet {
        host: Host::Address(to.address),
        port: 8080,
        path: "/hostname".to_owned(),
    };
    let gets: Vec<_> = targets.iter().map(get).collect();
    let token = Token::random(rand::random());
    let durations = cluster.api.durations();
    let curl = candidates(SourceKind::WindowsPod)[0];
    let session = HttpSession {
        curl,
        gets: gets.clone(),
        token: token.clone(),
        connect: durations.http_connect,
        total: durations.http_total,
    };
    let request = Command::HttpSession(session).on(curl.os())?;
    let reply = cluster.api.exec(&from.pod, &request).await?;
    for (to, reply) in targets.iter().zip(split(&gets, &token, &reply)?) {
        match reply {
            HttpReply::Answered { status: 200, body } if body.trim() == to.pod.name => {}
            other => return Err(format!("{} of {}: {other:?}", from.pod.name, to.pod.name).into()),
        }
    }
    Ok(())
}
