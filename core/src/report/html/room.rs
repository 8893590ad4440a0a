//! How much a page holds: thousands of findings are more than a person reads, and open late.

use maud::{Markup, html};

/// The most bytes of findings in full without their evidence, of checks in lists, of those behind causes, of a map,
/// and of claims, or of reasons of skips: with them the page of 10,000 failed checks stays below 2 MB. `report.json`
/// has all.
pub(super) const FULL: usize = 700_000;
pub(super) const LISTS: usize = 250_000;
pub(super) const CAUSES: usize = 120_000;
pub(super) const MAP: usize = 200_000;
pub(super) const CLAIMS: usize = 150_000;

/// Bytes that a part of a page may still take.
pub(super) struct Room(usize);

impl Room {
    pub(super) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Whether a piece of markup fits, which then takes its room; behind one that does not, none does.
    pub(super) fn try_fit(&mut self, piece: &Markup) -> bool {
        let left = self.0.checked_sub(piece.0.len());
        self.0 = left.unwrap_or_default();
        left.is_some()
    }

    /// The first of these pieces, as far as they fit.
    pub(super) fn fill(&mut self, pieces: impl Iterator<Item = Markup>) -> Vec<Markup> {
        pieces.take_while(|piece| self.try_fit(piece)).collect()
    }
}

/// A list of the first of so many; the others are counted.
pub(super) fn list(shown: &[Markup], all: usize) -> Markup {
    html! {
        ul.ids {
            @for one in shown { (one) }
            @if shown.len() < all { li { (more(all - shown.len())) } }
        }
    }
}

/// Says how many more there are that do not fit.
pub(super) fn more(count: usize) -> String {
    format!("and {count} more, which report.json has")
}
