//! What nodes cost: joins 100, 300 and 1,000 of them, with their pods, to a stub of an API server,
//! and prints processor time and memory per node, the memory also without what a simulator takes for
//! itself: by how much it grows from one size to the next.
//!
//! `fleet real KUBECONFIG` joins 50 nodes to a real control plane instead, with 150 pods, and prints
//! the times.
//!
//! `fleet [--pods PODS] [COUNT]...`, from few to many, three pods each if no other number is given;
//! says of both whether they are flat, and ends with 1 if a node
//! costs over a tenth more among the most than among the fewest. The stub and each simulator are processes of their own (`fleet stub PODS`, `fleet
//! join ADDRESS COUNT PODS`), so that nothing but the simulator is measured. Linux alone: it reads /proc.

mod real;
mod stub;

use std::error::Error;
use std::fs::read_to_string;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use hybrid_sim::{Build, FaultPlan, JoinOptions, NodeSpec, Pool, Topology, join};
use kube::{Client, Config};

type Trouble = Box<dyn Error + Send + Sync>;

/// How often each lease is renewed while it is measured.
const ROUNDS: usize = 2;

fn main() -> Result<(), Trouble> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["real", kubeconfig] => runtime.block_on(real::measure(kubeconfig)),
        ["stub", pods] => runtime.block_on(stub::serve(pods.parse()?)),
        ["join", address, count, pods] => {
            runtime.block_on(joined(address, count.parse()?, pods.parse()?))
        }
        ["--pods", pods, ref counts @ ..] => compare(pods, counts),
        ref counts => compare("3", counts),
    }
}

/// Runs each size and compares the first with the last.
fn compare(pods: &str, counts: &[&str]) -> Result<(), Trouble> {
    let mut counts = counts
        .iter()
        .map(|text| text.parse())
        .collect::<Result<Vec<usize>, _>>()?;
    if counts.is_empty() {
        counts = vec![100, 300, 1000];
    }
    let mut out = std::io::stdout();
    let mut seen = Vec::new();
    for count in counts {
        let mut stub = begin(&["stub", pods])?;
        let address = line(&mut stub)?;
        let mut simulator = begin(&["join", address.trim(), &count.to_string(), pods])?;
        let told = line(&mut simulator)?;
        let ended = simulator.wait()?;
        stub.kill()?;
        stub.wait()?;
        let numbers: Vec<f64> = told
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [ready, processor, memory] = numbers[..] else {
            return Err(format!("{count} nodes: {ended}, {told}").into());
        };
        writeln!(
            out,
            "{count:>5} nodes: all pods Ready after {ready:.1} s; \
             per node {processor:.2} ms of processor time, {memory:.1} KiB"
        )?;
        seen.push(Size {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            nodes: count as f64,
            processor,
            memory,
        });
    }
    judge(&seen, &mut out)
}

/// What was seen of one size; times and memory per node.
struct Size {
    nodes: f64,
    processor: f64,
    memory: f64,
}

/// How much more a node may cost among many.
const FLAT: f64 = 1.1;

fn judge(seen: &[Size], out: &mut impl Write) -> Result<(), Trouble> {
    let mut steps = Vec::new();
    for pair in seen.windows(2) {
        let [few, many] = pair else { continue };
        let all = |size: &Size| size.memory * size.nodes;
        let each = (all(many) - all(few)) / (many.nodes - few.nodes);
        let (from, to) = (few.nodes, many.nodes);
        writeln!(
            out,
            "from {from} to {to} nodes: {each:.1} KiB for each that is added"
        )?;
        steps.push(each);
    }
    let (Some(few), Some(many)) = (seen.first(), seen.last()) else {
        return Ok(());
    };
    let mut steep = false;
    let mut say = |what: &str, ratio: f64| {
        steep |= ratio > FLAT;
        let word = if ratio > FLAT { "not flat" } else { "flat" };
        writeln!(out, "many over few: {what} {ratio:.2}, {word}")
    };
    say("processor time per node", many.processor / few.processor)?;
    say("memory per node", many.memory / few.memory)?;
    if let [first, .., last] = steps[..] {
        say("memory per node added", last / first)?;
    }
    match steep {
        true => Err("a node costs more among many".into()),
        false => Ok(()),
    }
}

fn begin(arguments: &[&str]) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
}

fn line(child: &mut Child) -> Result<String, Trouble> {
    let mut text = String::new();
    let stdout = child.stdout.as_mut().ok_or("no output")?;
    BufReader::new(stdout).read_line(&mut text)?;
    Ok(text)
}

/// Joins, waits until all pods are Ready and each lease has been renewed, and prints seconds,
/// milliseconds per node and KiB per node.
async fn joined(address: &str, count: usize, pods: usize) -> Result<(), Trouble> {
    let config = Config::new(address.parse()?);
    let client = Client::try_from(config)?;
    // What the process costs without nodes
    client.apiserver_version().await?;
    let (processor, memory) = (processor_ms()?, memory_kib()?);
    let pools = [Pool::Linux, Pool::Windows(Build::Ws2022)];
    let nodes = (0..count).zip(pools.into_iter().cycle());
    let options = JoinOptions {
        topology: Topology {
            nodes: nodes
                .map(|(number, pool)| NodeSpec::new(format!("node-{number}"), pool))
                .collect(),
            outside: true,
            ..Topology::hybrid()
        },
        faults: FaultPlan::default(),
        seed: 1,
        speed: 50.0,
        prefix: String::new(),
    };
    let began = Instant::now();
    let joined = join(client.clone(), options).await?;
    wait_for(&client, "ready", count * pods).await?;
    let ready = began.elapsed().as_secs_f64();
    wait_for(&client, "renewals", count * ROUNDS).await?;
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let many = count as f64;
    let processor = (processor_ms()? - processor) / many;
    let memory = (memory_kib()? - memory) / many;
    writeln!(std::io::stdout(), "{ready} {processor} {memory}")?;
    joined.leave().await?;
    Ok(())
}

/// The stub answers when it has counted that far.
async fn wait_for(client: &Client, what: &str, count: usize) -> Result<(), Trouble> {
    let request = http::Request::get(format!("/stub/{what}/{count}")).body(Vec::new())?;
    client.request_text(request).await?;
    Ok(())
}

/// proc(5): fields 14 and 15 of stat, in hundredths of a second.
fn processor_ms() -> Result<f64, Trouble> {
    let stat = read_to_string("/proc/self/stat")?;
    let behind = stat.rsplit_once(')').ok_or("no name in stat")?.1;
    let ticks: f64 = behind
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Ok(ticks * 10.0)
}

fn memory_kib() -> Result<f64, Trouble> {
    let status = read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let field = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(field.ok_or("no VmRSS")?.parse()?)
}
