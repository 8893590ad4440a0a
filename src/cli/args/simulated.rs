//! The arguments of `demo` and `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hybrid_sim::{TimedFault, UnknownFault};

use super::{ChecksArgs, ReportFormArgs};

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Break something on the nodes: NAME or NAME=PARAM, with @FROM..UNTIL after it to break it only
    /// during that time; may be repeated (see --list-faults)
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<String>,
    /// List what can be broken
    #[arg(long)]
    pub(crate) list_faults: bool,
    /// List the topologies that have a name
    #[arg(long)]
    pub(crate) list_topologies: bool,
    /// Which nodes and what is around them, as a name (see --list-topologies) or a YAML file
    #[arg(long, value_name = "NAME|FILE", default_value = "kubeadm-flannel")]
    pub(crate) topology: String,
    /// Simulate N nodes instead of those of the topology, spread evenly over its pools and named after
    /// their pool, such as windows-2022-a
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Option<usize>,
    /// The Kubernetes version whose recorded answers the simulated API server gives to dry runs
    /// [default: the newest recorded one]
    #[arg(long, value_name = "VERSION")]
    pub(crate) kubernetes_version: Option<String>,
    /// The seed of everything left to chance [default: 1; with --serve another one each time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// How simulated time passes
    #[arg(long, value_enum, default_value = "fast")]
    pub(crate) pace: Pace,
    /// Start no run, but serve the simulated cluster to kubectl and `winconform run` until
    /// interrupted: over TLS, on this port of 127.0.0.1, or on a free one if PORT is missing
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        default_missing_value = "0",
        conflicts_with_all = ["pace", "format", "details", "ci", "baseline", "out", "suites", "config", "select", "repeat", "yes_disrupt"]
    )]
    pub(crate) serve: Option<u16>,
    /// Where --serve writes the kubeconfig, which it removes when it ends [default: in a folder of
    /// its own among temporary files]
    #[arg(long, value_name = "FILE", requires = "serve")]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) checks: ChecksArgs,
    /// Run every check N times, as `run --repeat` does
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "yes_disrupt", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    #[command(flatten)]
    pub(crate) shown: ReportFormArgs,
    /// Write record.jsonl, junit.xml, report.json, report.html and metrics.prom into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// How simulated time passes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Pace {
    /// Skips the time in which the run only waits
    Fast,
    /// Passes as fast as real time, so that you can watch the run
    Real,
}

#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// The kubeconfig of the control plane to join, of Kubernetes 1.36 or newer
    #[arg(
        long,
        value_name = "KUBECONFIG",
        required_unless_present_any = ["list_faults", "list_topologies"]
    )]
    pub(crate) join: Option<PathBuf>,
    /// List what can be broken
    #[arg(long)]
    pub(crate) list_faults: bool,
    /// Which nodes, as a name (see --list-topologies) or a YAML file
    #[arg(long, value_name = "NAME|FILE", default_value = "hybrid")]
    pub(crate) topology: String,
    /// List the topologies that have a name
    #[arg(long)]
    pub(crate) list_topologies: bool,
    /// Begin each node's name with TEXT, so that several simulators can join one cluster
    #[arg(long, value_name = "TEXT", default_value = "", value_parser = parse_prefix)]
    pub(crate) prefix: String,
    /// Break something: NAME or NAME=PARAM, with @FROM..UNTIL after it to break it only during that
    /// time; may be repeated (see --list-faults)
    #[arg(long = "fault", value_name = "FAULT", value_parser = parse_fault)]
    pub(crate) faults: Vec<TimedFault>,
    /// The factor by which simulated pulls, starts and time-outs are faster than real ones
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    pub(crate) speed: f64,
    /// The seed of everything left to chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

fn parse_fault(text: &str) -> Result<TimedFault, String> {
    text.parse().map_err(|error| match error {
        UnknownFault::Name(..) => {
            format!("{error}\n  (`winconform simulate --list-faults` has all)")
        }
        // With a right name, only the error in the rest is of use
        named => named.to_string(),
    })
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.01..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("a number from 0.01 to 1000".to_owned()),
    }
}

/// The beginning of a DNS label that leaves room for a node's name.
fn parse_prefix(text: &str) -> Result<String, String> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = text.is_empty()
        || text.len() <= 16
            && text.starts_with(letter)
            && text.chars().all(|c| letter(c) || c == '-');
    valid
        .then(|| text.to_owned())
        .ok_or_else(|| "at most 16 of a-z, 0-9 and -, the first no -".to_owned())
}
