//! A record read line by line: what is held of it grows with its checks, not with its events.

use std::io::{BufRead, Read as _};

use serde_json::Value;

use super::event::SCHEMA;
use super::fold::{Fold, RecordError, RunView};

/// The most bytes of a line with its newline. The longest line is the plan, with half a kilobyte for each check.
pub const LONGEST: usize = 128 << 20;
/// The bytes that are held for the next line.
const HELD: usize = 1 << 16;

/// Reads a whole record. A kill leaves a last line without its newline, and a power cut leaves NULs in place
/// of lines that were not yet on the disk: the text from there on is dropped.
pub fn read(input: impl BufRead) -> Result<RunView, RecordError> {
    let mut fold = Fold::default();
    let cut = each_line(input, |line, text| {
        let event = serde_json::from_str(text).map_err(|error| match schema_of(text) {
            Some(found) if line == 1 && found != SCHEMA => RecordError::OtherSchema { found },
            _ => malformed(line, problem(&error)),
        })?;
        fold.add(event)
    })?;
    fold.end(cut)
}

/// Hands over each whole line with its number, from 1; returns whether something follows them.
pub(super) fn each_line(
    mut input: impl BufRead,
    mut take: impl FnMut(usize, &str) -> Result<(), RecordError>,
) -> Result<bool, RecordError> {
    let (mut bytes, mut line) = (Vec::new(), 0);
    loop {
        line += 1;
        bytes.clear();
        bytes.shrink_to(HELD);
        let mut bounded = input.by_ref().take(LONGEST as u64);
        let read = bounded.read_until(b'\n', &mut bytes);
        read.map_err(|error| malformed(line, error.to_string()))?;
        match bytes.split_last() {
            _ if bytes.contains(&0) => return Ok(true),
            Some((b'\n', text)) => {
                let text = str::from_utf8(text);
                take(
                    line,
                    text.map_err(|_| malformed(line, "it is not UTF-8".to_owned()))?,
                )?;
            }
            _ if bytes.len() < LONGEST => return Ok(!bytes.is_empty()),
            _ => return Err(malformed(line, format!("it has more than {LONGEST} bytes"))),
        }
    }
}

pub(super) fn malformed(line: usize, problem: String) -> RecordError {
    RecordError::Malformed { line, problem }
}

/// The schema that a line names, where this version has it or another one may.
fn schema_of(line: &str) -> Option<u32> {
    let line: Value = serde_json::from_str(line).ok()?;
    let mut places = ["/schema", "/event/run-started/schema"].into_iter();
    let found = places.find_map(|place| line.pointer(place)?.as_u64())?;
    u32::try_from(found).ok()
}

/// The text of a JSON error without its line number, which is always 1: each line is parsed alone.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("{what}, at column {}", error.column()),
        None => text,
    }
}
