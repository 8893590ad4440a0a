//! `winconform explain`.

use std::path::Path;

use winconform_core::report::alone;
use winconform_core::report::explain::explain;
use winconform_core::text::{counted, printable};

use super::report::load;
use crate::cli::args::ExplainArgs;
use crate::cli::error::CliError;
use crate::cli::out;
use crate::cli::screen::Screen;
use crate::cli::suites;

/// Checks that are listed where several begin alike.
const LISTED: usize = 20;

pub(crate) fn run(args: &ExplainArgs, screen: &Screen) -> Result<u8, CliError> {
    if let Some(record) = &args.record {
        return seen(record, &args.claim, screen);
    }
    let suites = suites::load(args.suites.suites.as_deref())?;
    let text = explain(&suites, &args.claim).map_err(|unknown| {
        let area = &args.claim;
        let next = match &unknown.nearest {
            _ if suites.has_area(area) => format!("see `winconform list --select area={area}`"),
            Some(near) => format!("did you mean `{near}`?"),
            None => "see `winconform list`".to_owned(),
        };
        CliError::Usage(format!("{unknown}\n({next})"))
    })?;
    screen.say(&text);
    Ok(0)
}

/// Prints what a run saw of a check.
fn seen(record: &Path, id: &str, screen: &Screen) -> Result<u8, CliError> {
    let view = load(&out::record_at(record))?;
    let like = alone::like(&view, id);
    let exact = like.iter().any(|known| known.as_str() == id);
    let found = match like.as_slice() {
        [only] => Some(only.as_str()),
        _ => exact.then_some(id),
    };
    if let Some(text) = found.and_then(|id| screen.alone(&view, id)) {
        screen.say(&text);
        return Ok(0);
    }
    let id = printable(id);
    let listed = like
        .iter()
        .take(LISTED)
        .map(|known| format!("  {}", printable(known.as_str())));
    let listed: Vec<_> = listed.collect();
    Err(CliError::Usage(match listed.is_empty() {
        true if !view.planned => {
            format!(
                "the record ends before the run had planned its checks, so it does not say whether `{id}` is one"
            )
        }
        true => format!("the record has no check `{id}`, and none like it"),
        false => format!(
            "the record has {} like `{id}`, such as\n{}",
            counted(like.len(), "check"),
            listed.join("\n")
        ),
    }))
}
