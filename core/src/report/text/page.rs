//! A report for people as far as it is written: its lines, how it begins, and how it ends.

use super::ending::{Reservation, SAME_CLUSTER, notices, object, reservations};
use super::layout::{NARROWEST, behind, fit, pad, wrap};
use super::style::Style;
use super::summary::{context, path, pools, selection, server};
use super::terminal::{Colour, Detail, VERDICT};
use crate::config::Profile;
use crate::record::RunView;
use crate::report::findings::places::observed_from;
use crate::report::findings::waivers::idle;
use crate::text::{counted, printable, shorten};

/// Columns of the words before a value, with a blank behind.
pub(super) const LABEL: usize = 12;
/// The most lines of a sentence in short.
const SENTENCE: usize = 4;
/// Lines of objects or checks that are listed, in short and in full; more are counted.
const LISTED: [usize; 2] = [5, 20];

/// The report as far as it is written.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) width: usize,
    colour: Colour,
    pub(super) detail: Detail,
    /// Whether a finding has no record to point to.
    pub(super) unpointed: bool,
}

impl Page {
    pub(super) fn new(width: usize, colour: Colour, detail: Detail) -> Self {
        Self {
            text: String::new(),
            width: width.max(NARROWEST),
            colour,
            detail,
            unpointed: false,
        }
    }

    pub(super) fn paint(&self, text: &str, style: Style) -> String {
        match self.colour {
            Colour::Always => format!("\u{1b}[{}m{text}\u{1b}[0m", style.sgr()),
            Colour::Never => text.to_owned(),
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn title(&mut self, text: &str) {
        let text = self.paint(text, Style::Title);
        self.line(&text);
    }

    /// A sentence on as many lines as it takes; in short, on a few.
    pub(super) fn sentence(&mut self, text: &str, style: Style) {
        let mut lines = wrap(text, self.width);
        if self.detail == Detail::Short && lines.len() > SENTENCE {
            lines.truncate(SENTENCE - 1);
            lines.push("… (--details tells the rest)".to_owned());
        }
        for line in lines {
            let line = self.paint(&line, style);
            self.line(&line);
        }
    }

    /// A word, then a value on as many lines as it takes, all of it indented.
    pub(super) fn field(&mut self, indent: usize, word: &str, value: &str) {
        let head = format!("{}{} ", " ".repeat(indent), pad(word, LABEL - 1));
        let lines = wrap(value, self.width.saturating_sub(indent + LABEL));
        for line in behind(&head, indent + LABEL, lines) {
            self.line(&line);
        }
    }

    /// A word, then a value: in short, as much of its beginning and its end as fits on one line.
    pub(super) fn shortened(&mut self, indent: usize, word: &str, value: &str) {
        match self.detail {
            Detail::Short => {
                let room = self.width.saturating_sub(indent + LABEL);
                let mut ends = value.to_owned();
                shorten(&mut ends, room);
                self.whole(indent, word, &ends);
            }
            Detail::Full => self.field(indent, word, value),
        }
    }

    /// A word, then a value on one line whatever its length.
    pub(super) fn whole(&mut self, indent: usize, word: &str, value: &str) {
        let margin = " ".repeat(indent);
        self.line(&format!("{margin}{} {value}", pad(word, LABEL - 1)));
    }

    pub(super) fn header(&mut self, view: &RunView) {
        let started = &view.started;
        self.title(&fit(
            &format!("winconform {}", printable(&started.version)),
            self.width,
        ));
        self.field(
            0,
            "run",
            &format!("{}, began {:.0}", printable(&started.run), view.began),
        );
        self.field(0, "context", &context(started));
        if started.profile != Profile::default() {
            self.field(0, "profile", started.profile.as_str());
        }
        let selection = selection(view);
        if !selection.is_empty() {
            self.field(0, "selected", &selection);
        }
        if let Some(node) = &view.started.boots {
            self.field(0, "may boot", &printable(node));
        }
        self.field(0, "server", &server(view.facts.as_ref()));
        let pools = view.facts.as_ref().map(pools).unwrap_or_default();
        self.field(0, "pools", &pools.join(", "));
        let observed_from = observed_from(view);
        if !observed_from.is_empty() {
            self.field(0, "observed", &format!("from {}", observed_from.join(", ")));
        }
    }

    /// A verdict or another word, then its subject in full: a cut id names nothing.
    pub(super) fn entry(&mut self, word: &str, style: Style, text: &str) {
        let margin = 2 + VERDICT;
        let head = format!("  {}", self.paint(&pad(word, VERDICT), style));
        let lines = wrap(text, self.width.saturating_sub(margin));
        for line in behind(&head, margin, lines) {
            self.line(&line);
        }
    }

    /// A word, then one value per line as far as they are listed.
    pub(super) fn list(&mut self, indent: usize, word: &str, values: &[String]) {
        let most = LISTED[usize::from(self.detail == Detail::Full)];
        for (index, value) in values.iter().take(most).enumerate() {
            self.field(indent, if index == 0 { word } else { "" }, value);
        }
        if values.len() > most {
            self.field(indent, "", &format!("and {} more", values.len() - most));
        }
    }

    pub(super) fn ending(&mut self, view: &RunView) {
        self.blank();
        for idle in idle(view) {
            self.sentence(&idle.sentence, Style::News);
        }
        for sentence in notices(view) {
            self.sentence(&sentence, Style::News);
        }
        for Reservation { word: _, sentence } in reservations(view) {
            self.sentence(&sentence, Style::Doubt);
        }
        let left: Vec<_> = view.left().into_iter().map(object).collect();
        if !left.is_empty() {
            self.list(2, "left", &left);
            // A simulation leaves nothing to clean up, and nothing elsewhere belongs to it
            if !view.started.is_simulated() {
                let cleanup = format!("winconform cleanup --run {}", view.started.run);
                self.field(2, "next", &printable(&cleanup));
                self.field(2, "", SAME_CLUSTER);
            }
        }
        if let Some(torn) = &view.torn_down {
            if left.is_empty() && !torn.unlisted {
                let removed = counted(torn.removed.len(), "object");
                self.line(&format!("tear-down: {removed} removed, nothing left"));
            }
            let errors: Vec<_> = torn.errors.iter().map(|error| printable(error)).collect();
            self.list(2, "errors", &errors);
        }
        if self.unpointed {
            self.line("no record was written: run again with --out DIR for one");
        }
        if let Some(path) = path(view) {
            self.line(&fit(&path, self.width));
        }
    }
}
