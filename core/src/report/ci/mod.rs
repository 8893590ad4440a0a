//! What systems of continuous integration read: lines on the log, a summary, metrics.

mod lines;
mod metrics;

pub use lines::{azure, azure_error, github, github_error, harmless};
pub use metrics::metrics;

use serde_json::json;

use super::json::pretty;
use super::text::terminal::{Colour, Detail, render};
use crate::record::{RunView, exit};
use crate::text::bound;

/// The most bytes of a summary: GitHub drops one above 1 MiB.
const SUMMARY: usize = 900 << 10;
/// The end of a report that was cut.
const REST: &str = "\n… the reports have the rest\n";
/// How a summary ends.
const ENDS: &str = "\n</details>\n";
/// Columns of the reports in a summary.
const WIDTH: usize = 110;

/// A summary in Markdown: the short report, and behind it the full one as far as there is room.
pub fn summary(view: &RunView) -> String {
    let report = |detail| render(view, WIDTH, Colour::Never, detail);
    let short = fenced(&report(Detail::Short));
    let begins = format!(
        "### winconform: {}\n\n{short}\n<details><summary>every check</summary>\n\n",
        exit(view).as_str()
    );
    let mut full = report(Detail::Full);
    // The fences of less text are no longer
    let fences = fenced(&full).len() - full.len();
    let room = SUMMARY.saturating_sub(begins.len() + fences + ENDS.len());
    if full.len() > room {
        bound(&mut full, room.saturating_sub(REST.len()));
        full.push_str(REST);
    }
    format!("{begins}{}{ENDS}", fenced(&full))
}

/// A block of code, whose fence is longer than any run of backticks in it: nothing of it is Markdown.
pub(super) fn fenced(text: &str) -> String {
    let runs = text.split(|character| character != '`');
    let longest = runs.map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}{fence}\n")
}

/// What Prow and `TestGrid` show of a run as columns: flat texts in JSON.
pub fn metadata(view: &RunView) -> String {
    let server = super::text::summary::server(view.facts.as_ref());
    let pools = view.facts.as_ref().map(super::text::summary::pools);
    pretty(&json!({
        "winconform": view.started.version,
        "server": server,
        "pools": pools.unwrap_or_default().join(", "),
        "exit": exit(view).as_str(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_fence_ends_it() {
        assert_eq!(fenced("a\n"), "```text\na\n```\n");
        assert_eq!(fenced("a ```` b\n"), "`````text\na ```` b\n`````\n");
    }
}
