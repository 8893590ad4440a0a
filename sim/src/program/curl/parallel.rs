//! `--parallel`: transfers side by side, told of in the order in which they end.

use std::time::Duration;

use super::transfer::{Kept, Transfer};
use super::{Planned, Run, Streams};

/// How many run at once unless curl is told otherwise (`src/tool_main.h`, `PARALLEL_DEFAULT`).
const AT_ONCE: usize = 50;

/// A piece of a body that is written at once (`CURL_MAX_WRITE_SIZE`).
const PIECE: usize = 16 * 1024;

/// Runs all; the exit code is a matter of the version.
pub(super) fn operate(run: &Run<'_>, planned: &[Planned<'_>], streams: &mut Streams) -> u32 {
    let silenced = run.global.silent && run.build.silences_parallel();
    let meter = !silenced && !run.global.no_meter;
    if meter {
        streams.complain(HEADING);
        streams.complain(&line(planned.len(), planned.len().min(AT_ONCE), ""));
    }
    let mut code = 0;
    for batch in batches(run, planned) {
        if let Some((end, _)) = batch.last() {
            streams.until(*end);
        }
        // All that arrives together is written before any of it is reported
        interleave(planned, &batch, streams);
        let mut latest = 0;
        for (_, transfer) in &batch {
            let about = &planned[transfer.number];
            run.report(about, transfer, streams);
            if transfer.code != 0 {
                latest = transfer.code;
            }
        }
        if latest != 0 || run.build.forgets_failures() {
            code = latest;
        }
    }
    if meter {
        streams.complain(&line(planned.len(), 0, "\n"));
    }
    code
}

/// The transfers in groups that end at the same millisecond, with that moment, in order.
fn batches(run: &Run<'_>, planned: &[Planned<'_>]) -> Vec<Vec<(Duration, Transfer)>> {
    let mut ends: Vec<Duration> = Vec::new();
    let mut all: Vec<(Duration, Transfer)> = Vec::new();
    for (number, planned) in planned.iter().enumerate() {
        // The one that ends first makes room for the next
        let start = if ends.len() < AT_ONCE {
            Duration::ZERO
        } else {
            let (first, _) = ends
                .iter()
                .enumerate()
                .min_by_key(|(_, end)| **end)
                .expect("there are as many as run at once");
            ends.swap_remove(first)
        };
        // Side by side each has a connection of its own
        let transfer = run.perform(planned, number, &mut Kept::default());
        let end = start + transfer.total;
        ends.push(end);
        all.push((end, transfer));
    }
    all.sort_by_key(|(end, _)| *end);
    let mut groups: Vec<Vec<(Duration, Transfer)>> = Vec::new();
    for (end, transfer) in all {
        match groups.last_mut() {
            Some(group) if group[0].0 == end => group.push((end, transfer)),
            _ => groups.push(vec![(end, transfer)]),
        }
    }
    groups
}

/// Bodies in pieces, by turns.
fn interleave(planned: &[Planned<'_>], batch: &[(Duration, Transfer)], streams: &mut Streams) {
    let mut at = 0;
    loop {
        let mut wrote = false;
        for (_, transfer) in batch {
            let bytes = transfer.output.as_bytes();
            let piece = bytes.get(at..).unwrap_or_default();
            if !piece.is_empty() {
                wrote = true;
                let piece = &piece[..piece.len().min(PIECE)];
                Run::write(&planned[transfer.number], piece, streams);
            }
        }
        if !wrote {
            return;
        }
        at += PIECE;
    }
}

const HEADING: &str = "DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed\n";

/// A line of the meter (`src/tool_progress.c`, `progress_meter`).
fn line(transfers: usize, live: usize, end: &str) -> String {
    format!(
        "\r--  --      0     0 {transfers:5} {live:5}  --:--:-- --:--:-- --:--:--     0 {end:>5}"
    )
}
