//! The reports a person reads when a run has ended: the short one, and the one in full.

use super::page::Page;
use super::style::Style;
use super::summary::tally;
use crate::record::{Exit, RunView, exit};
use crate::report::findings::blame::Blame;

/// Columns of the longest verdict, `limitation-lifted`, and of the gap after it.
pub(crate) const VERDICT: usize = 19;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Colour {
    Always,
    /// Without any escape sequence.
    Never,
}

/// How much a report tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Detail {
    /// What it came to, the likely causes, and the first checks that did not hold.
    Short,
    /// Every check, and every finding with its evidence.
    Full,
}

/// Renders a whole run for a terminal of `width` columns. Foreign text comes out without control characters;
/// it ends with the tally.
pub fn render(view: &RunView, width: usize, colour: Colour, detail: Detail) -> String {
    let mut page = Page::new(width, colour, detail);
    page.outcome(view);
    page.header(view);
    page.causes(view);
    page.since(view);
    match detail {
        Detail::Short => {
            page.areas(view);
            page.checks(view);
        }
        Detail::Full => {
            let blame = Blame::from_view(view);
            page.matrix(view);
            page.findings(view, &blame);
            page.fixtures(view, &blame);
        }
    }
    page.ending(view);
    page.blank();
    page.sentence(&tally(view), style(view));
    page.text
}

/// How the outcome of a run looks.
pub(super) fn style(view: &RunView) -> Style {
    match exit(view) {
        Exit::Conformant => Style::Good,
        Exit::NotConformant => Style::Bad,
        Exit::CouldNotTell | Exit::NothingSelected | Exit::Interrupted => Style::Doubt,
    }
}
