//! Measures what it costs to find the causes of a run with many checks that failed: `causes RECORD [FEW MANY]`, by
//! default 10000 and 100000 checks, made from those of a record by giving each to many nodes. Prints time and memory
//! beyond the record's own; exits with 1 if a check among many costs more than twice one among few, or if the many
//! take more than a second or 200 MB. The fastest of three counts. Linux only: it reads /proc.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "it reads a record, and prints its figures"
)]

use std::error::Error;
use std::fs::{File, read_to_string, write};
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{from_value, json, to_value};
use winconform_core::record::{RunView, read};
use winconform_core::report::causes::causes;
use winconform_core::verdict::Verdict;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The most that a check among many may cost, as a multiple of one among few.
const LINEAR: f64 = 2.0;
/// The most that many checks may take, in seconds and in MB.
const SECONDS: f64 = 1.0;
const MEMORY: f64 = 200.0;

/// What the causes of a run cost.
struct Cost {
    checks: u32,
    seconds: f64,
    /// In MB, beyond the record's own.
    memory: f64,
}

impl Cost {
    fn of_a_check(&self) -> f64 {
        self.seconds / f64::from(self.checks)
    }
}

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let record = arguments.next().ok_or("usage: causes RECORD [FEW MANY]")?;
    let record = read(BufReader::new(File::open(record)?))?;
    let mut sizes: Vec<usize> = arguments
        .map(|size| size.parse())
        .collect::<std::result::Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![10_000, 100_000];
    }
    let costs: Vec<_> = sizes
        .iter()
        .map(|size| measured(&record, *size))
        .collect::<Result<_>>()?;
    let (few, many) = (&costs[0], &costs[costs.len() - 1]);
    let ratio = many.of_a_check() / few.of_a_check();
    let bounds = [
        ("of a check, many over few", ratio, LINEAR, ""),
        ("of many", many.seconds, SECONDS, " s"),
        ("of many", many.memory, MEMORY, " MB"),
    ];
    let mut kept = true;
    for (what, cost, bound, unit) in bounds {
        let mark = if cost <= bound { "" } else { " NOT KEPT" };
        kept &= mark.is_empty();
        println!("causes {what}: {cost:.2}{unit} (bound: at most {bound}{unit}){mark}");
    }
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn measured(record: &RunView, size: usize) -> Result<Cost> {
    let view = many(record, size)?;
    let failed = view.checks.values().filter(|check| {
        let verdict = check.verdict();
        matches!(verdict, Some(Verdict::Fail | Verdict::Inconclusive))
    });
    let (failed, before) = (failed.count(), megabytes("VmRSS:")?);
    // The peak counts from here
    write("/proc/self/clear_refs", "5")?;
    let (mut seconds, mut found) = (f64::MAX, 0);
    for _ in 0..3 {
        let began = Instant::now();
        let (causes, open) = causes(&view);
        seconds = seconds.min(began.elapsed().as_secs_f64());
        found = causes.len();
        if causes.is_empty() || open.len() == failed {
            return Err("nothing is explained".into());
        }
    }
    let checks = u32::try_from(view.checks.len())?;
    let memory = megabytes("VmHWM:")? - before;
    println!(
        "{checks} checks, {failed} failed or not told: {found} causes in {seconds:.3} s, {memory:.0} MB"
    );
    Ok(Cost {
        checks,
        seconds,
        memory,
    })
}

/// The run with as many nodes in each pool as it takes to have so many checks, each of them from every node.
fn many(record: &RunView, size: usize) -> Result<RunView> {
    let mut view = record.clone();
    let copies = size.div_ceil(record.checks.len());
    let mut facts = to_value(&record.facts)?;
    let nodes = facts["nodes"]["fact"]["value"]
        .as_array_mut()
        .ok_or("no nodes")?;
    let known = nodes.clone();
    for copy in 1..copies {
        nodes.extend(known.iter().cloned().map(|mut node| {
            node["name"] = json!(format!(
                "{}-{copy}",
                node["name"].as_str().unwrap_or_default()
            ));
            node
        }));
    }
    view.facts = from_value(facts)?;
    view.checks.clear();
    for copy in 0..copies {
        for check in record.checks.values().take(size - view.checks.len()) {
            let mut check = check.clone();
            check.attempts.clear();
            let mut planned = to_value(&check.planned)?;
            let id = planned["id"].as_str().unwrap_or_default().to_owned();
            let id = match id.strip_suffix(']') {
                Some(id) => format!("{id},of={copy}]"),
                None => format!("{id}[of={copy}]"),
            };
            planned["id"] = json!(id);
            planned["point"]["node"] = json!(copy);
            check.planned = from_value::<_>(planned)?;
            view.checks.insert(view.checks.len(), check);
        }
    }
    Ok(view)
}

/// A field of this process's status, which has it in KiB.
fn megabytes(field: &str) -> Result<f64> {
    let status = read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.ok_or("no such field")?.parse::<f64>()? * 1024.0 / 1e6)
}
