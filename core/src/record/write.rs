//! One event as one line.

use serde::ser::Error as _;

use super::event::Line;
use super::read::LONGEST;

/// The line with its newline. JSON does not escape DEL and C1, so this does: a terminal would act on them
/// when a person reads the file. A line that no reader takes is none.
pub fn to_line(line: &Line) -> serde_json::Result<String> {
    let json = serde_json::to_string(line)?;
    let mut text = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            other => text.push(other),
        }
    }
    text.push('\n');
    match text.len() {
        0..=LONGEST => Ok(text),
        more => Err(serde_json::Error::custom(format!(
            "an event of {more} bytes, where a line may have {LONGEST}"
        ))),
    }
}
