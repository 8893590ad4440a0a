//! Measures what it costs to find the causes of a run with many checks that failed: `causes RECORD [FEW MANY]`, by
//! default 10000 and 100000 checks, made from those of a record by giving each to many nodes. Prints time and memory
//! beyond the record's own; exits with 1 if a check among many costs more than twice one among few, each by the
//! fastest of three. Linux only: it reads /proc.

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
    let each: Vec<_> = sizes
        .iter()
        .map(|size| measured(&record, *size))
        .collect::<Result<_>>()?;
    let ratio = each[each.len() - 1] / each[0];
    let kept = ratio <= LINEAR;
    let mark = if kept { "" } else { " NOT KEPT" };
    println!("causes of a check, many over few: {ratio:.2} (bound: at most {LINEAR}){mark}");
    Ok(if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Seconds for each check.
fn measured(record: &RunView, size: usize) -> Result<f64> {
    let view = many(record, size)?;
    let failed = view.checks.values().filter(|check| {
        let verdict = check.verdict();
        matches!(verdict, Some(Verdict::Fail | Verdict::Inconclusive))
    });
    let (failed, before) = (failed.count(), mib("VmRSS:")?);
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
    let (checks, memory) = (view.checks.len(), mib("VmHWM:")? - before);
    println!(
        "{checks} checks, {failed} failed or not told: {found} causes in {seconds:.3} s, {memory:.0} MiB"
    );
    Ok(seconds / f64::from(u32::try_from(checks)?))
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

/// A field of this process's status in MiB.
fn mib(field: &str) -> Result<f64> {
    let status = read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(field));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(number.ok_or("no such field")?.parse::<f64>()? / 1024.0)
}
