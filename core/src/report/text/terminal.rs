//! The report a person reads when a run has ended.

use super::ending::{Reservation, asked_for, object, objects, reservations};
use super::folded::{Row, kind_of, rows, shared_reason};
use super::layout::{NARROWEST, columns, fit, pad, wrap};
use super::style::Style;
use super::summary::{path, pools, seconds, server, tally};
use crate::claims::ClaimId;
use crate::config::Profile;
use crate::fixture::FixtureKey;
use crate::plan::CheckId;
use crate::record::{CheckView, Exit, RunView, exit};
use crate::report::findings::blame::{Blame, Broke};
use crate::report::findings::excerpt::{self, Excerpt};
use crate::report::findings::finding::{Finding, apart as apart_of, in_words, times, word};
use crate::report::findings::places::{observed_from, pools as places};
use crate::report::findings::suspects::{suspects, unoffered};
use crate::report::findings::waivers::{idle, raised};
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// Columns of the longest verdict, `limitation-lifted`, and of the gap after it.
pub(crate) const VERDICT: usize = 19;
/// Columns of the words before a finding's values.
const LABEL: usize = 12;
/// Columns a reason needs to say anything beside a check.
const REASON: usize = 24;
/// Lines of objects or checks that are listed; more are counted.
const LISTED: usize = 20;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Colour {
    Always,
    /// Without any escape sequence.
    Never,
}

/// Renders a whole run for a terminal of `width` columns. Foreign text comes out without control characters;
/// the last line is the tally.
pub fn render(view: &RunView, width: usize, colour: Colour) -> String {
    let mut page = Page {
        text: String::new(),
        width: width.max(NARROWEST),
        colour,
        unpointed: false,
    };
    let blame = Blame::from_view(view);
    page.header(view);
    page.matrix(view);
    page.findings(view, &blame);
    page.fixtures(view, &blame);
    page.ending(view);
    let style = match exit(view) {
        Exit::Conformant => Style::Good,
        Exit::NotConformant => Style::Bad,
        Exit::CouldNotTell | Exit::NothingSelected | Exit::Interrupted => Style::Doubt,
    };
    page.blank();
    let tally = page.paint(&tally(view), style);
    page.line(&tally);
    page.text
}

/// The report as far as it is written.
struct Page {
    text: String,
    width: usize,
    colour: Colour,
    /// Whether a finding has no record to point to.
    unpointed: bool,
}

impl Page {
    fn paint(&self, text: &str, style: Style) -> String {
        match self.colour {
            Colour::Always => format!("\u{1b}[{}m{text}\u{1b}[0m", style.sgr()),
            Colour::Never => text.to_owned(),
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn title(&mut self, text: &str) {
        let text = self.paint(text, Style::Title);
        self.line(&text);
    }

    /// A sentence on as many lines as it takes.
    fn sentence(&mut self, text: &str, style: Style) {
        for line in wrap(text, self.width) {
            let line = self.paint(&line, style);
            self.line(&line);
        }
    }

    /// A word, then a value on as many lines as it takes, all of it indented.
    fn field(&mut self, indent: usize, word: &str, value: &str) {
        let margin = " ".repeat(indent);
        let lines = wrap(value, self.width.saturating_sub(indent + LABEL));
        for (index, line) in lines.iter().enumerate() {
            let word = if index == 0 { word } else { "" };
            self.line(&format!("{margin}{}{line}", pad(word, LABEL)));
        }
    }

    fn header(&mut self, view: &RunView) {
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
        let unverified = match started.unverified {
            true => ", whose certificate was not verified: another server may have answered",
            false => "",
        };
        let context = printable(&started.context) + unverified;
        self.field(0, "context", &context);
        if started.profile != Profile::default() {
            self.field(0, "profile", started.profile.as_str());
        }
        if !started.selection.is_empty() {
            let left_out = view.left_out.values().sum::<usize>();
            let total = counted(view.checks.len() + left_out, "check");
            let selection = printable(&started.selection.join(", "));
            let value = format!("{selection} ({} of {total})", view.checks.len());
            self.field(0, "selected", &value);
        }
        self.field(0, "server", &server(view.facts.as_ref()));
        let pools = view.facts.as_ref().map(pools).unwrap_or_default();
        self.field(0, "pools", &pools.join(", "));
        let observed_from = observed_from(view);
        if !observed_from.is_empty() {
            self.field(0, "observed", &format!("from {}", observed_from.join(", ")));
        }
    }

    /// Every check by area, with many that say the same on one line.
    fn matrix(&mut self, view: &RunView) {
        let rows: Vec<_> = rows(view)
            .into_iter()
            .map(|row| (label(&row), row))
            .collect();
        let widest = rows.iter().map(|(label, _)| columns(label)).max();
        let mut area = None;
        for (label, row) in &rows {
            let next = row.claim().map(ClaimId::area);
            if area != next {
                area = next;
                self.blank();
                self.title(next.unwrap_or_default());
            }
            self.row(label, row, widest.unwrap_or_default());
        }
    }

    fn row(&mut self, label: &str, row: &Row<'_>, widest: usize) {
        let (word, style) = (word(row.verdict), Style::for_verdict(row.verdict));
        let margin = 2 + VERDICT;
        let aside = self.width.saturating_sub(margin + widest + 2);
        if row.reason.is_empty() {
            self.entry(word, style, label);
        } else if aside >= REASON {
            let text = format!("{}  {}", pad(label, widest), fit(&row.reason, aside));
            let word = self.paint(&pad(word, VERDICT), style);
            self.line(&format!("  {word}{text}"));
        } else {
            self.entry(word, style, label);
            let reason = fit(&row.reason, self.width.saturating_sub(margin));
            self.line(&format!("{}{reason}", " ".repeat(margin)));
        }
    }

    /// A verdict or another word, then its subject in full: a cut id names nothing.
    fn entry(&mut self, word: &str, style: Style, text: &str) {
        let margin = 2 + VERDICT;
        let lines = wrap(text, self.width.saturating_sub(margin));
        for (index, line) in lines.iter().enumerate() {
            match index {
                0 => {
                    let word = self.paint(&pad(word, VERDICT), style);
                    self.line(&format!("  {word}{line}"));
                }
                _ => self.line(&format!("{}{line}", " ".repeat(margin))),
            }
        }
    }

    /// Every check that differs from a healthy cluster and that no failed fixture broke.
    fn findings(&mut self, view: &RunView, blame: &Blame<'_>) {
        let news = view.checks.values().filter(|check| is_news(check));
        let news: Vec<_> = news
            .filter(|check| !blame.covers(&check.planned.id))
            .collect();
        if news.is_empty() {
            return;
        }
        self.blank();
        self.title("findings");
        let (mut together, mut alike) = (Vec::new(), Vec::new());
        for check in news {
            match shared_reason(check) {
                Some(reason) => add(&mut together, reason, shown(&check.planned.id)),
                None => add(&mut alike, (kind_of(check), view.waiver(check)), check),
            }
        }
        for (_, checks) in &alike {
            if let [first, others @ ..] = checks.as_slice() {
                self.finding(view, first, others);
            }
        }
        for ((verdict, reason), checks) in together {
            self.blank();
            self.entry(
                word(verdict),
                Style::for_verdict(verdict),
                &counted(checks.len(), "check"),
            );
            self.field(4, "because", &reason);
            self.list(4, "checks", &checks);
        }
    }

    /// A finding, with the others of its kind.
    fn finding(&mut self, view: &RunView, check: &CheckView, others: &[&CheckView]) {
        let finding = Finding::from_check(&check.planned, check.conclusion.as_ref());
        let id = shown(&finding.check);
        self.blank();
        self.entry(
            word(finding.verdict),
            Style::for_verdict(finding.verdict),
            &id,
        );
        let title = printable(&check.planned.title);
        self.field(
            4,
            "claim",
            &format!("{} ({}): {title}", finding.claim, check.planned.claim_type),
        );
        if let Some(node) = check.planned.point.node_name(&places(view)) {
            self.field(4, "from node", &printable(&node));
        }
        let sides = [
            ("cause", finding.cause),
            ("expected", finding.expected),
            ("seen", finding.seen),
        ];
        for (word, value) in sides {
            if let Some(value) = value {
                self.field(4, word, &printable(&value));
            }
        }
        if let Some(waiver) = view.waiver(check) {
            self.field(4, "waived", &printable(&waiver.to_string()));
        } else if raised(view, check) {
            let counts = format!("against the cluster (profile {})", view.started.profile);
            self.field(4, "counts", &counts);
        }
        if let Some(suspects) = suspects(view, check) {
            self.field(4, "suspect", &printable(&suspects));
        }
        if check.attempts.len() > 1 {
            let verdicts: Vec<_> = check.attempts.iter().map(|a| a.verdict.as_str()).collect();
            self.field(4, "attempts", &verdicts.join(", "));
        }
        let mut apart = check.attempts.iter();
        if let Some(round) = apart.find_map(|one| apart_of(&check.planned, one)) {
            let seen = Finding::of_attempt(&check.planned, &round).reason;
            let words = format!("a round held, a later one did not: {seen}");
            self.field(4, "unsteady", &words);
        }
        let repeated = check
            .conclusion
            .as_ref()
            .map(|conclusion| times(&conclusion.repeated));
        if let Some(repeated) = repeated.filter(|repeated| !repeated.is_empty()) {
            self.field(4, "repetitions", &repeated);
        }
        self.excerpt(excerpt::of_check(view, &check.planned.id));
        self.evidence(view, &format!("check {id}"));
        self.field(4, "next", &printable(&finding.hint));
        let others: Vec<_> = others
            .iter()
            .map(|other| shown(&other.planned.id))
            .collect();
        self.list(4, "also", &others);
    }

    fn fixtures(&mut self, view: &RunView, blame: &Blame<'_>) {
        if blame.roots.is_empty() {
            return;
        }
        self.blank();
        self.title("fixtures that failed");
        for (key, broke) in &blame.roots {
            self.fixture(view, key, broke);
        }
    }

    fn fixture(&mut self, view: &RunView, key: &FixtureKey, broke: &Broke<'_>) {
        let excerpt = excerpt::of_fixture(view, key);
        let suspect = unoffered(view, key, broke.error);
        self.blank();
        let (key, took) = (printable(&key.to_string()), seconds(broke.took_ms));
        self.entry("failed", Style::Doubt, &format!("{key} after {took}"));
        self.field(4, "cause", &in_words(broke.error));
        if let Some(suspect) = suspect {
            self.field(4, "suspect", &printable(&suspect));
        }
        self.excerpt(excerpt);
        self.field(4, "broke", &counted(broke.checks.len(), "check"));
        self.list(
            4,
            "",
            &broke.checks.iter().map(|id| shown(id)).collect::<Vec<_>>(),
        );
        self.evidence(view, &format!("fixture {key}"));
    }

    fn evidence(&mut self, view: &RunView, of: &str) {
        match view.unwritten {
            true => self.unpointed = true,
            false => self.field(4, "evidence", &format!("record.jsonl, {of}")),
        }
    }

    fn excerpt(&mut self, excerpt: Excerpt) {
        for (word, line) in excerpt {
            self.field(4, word, &line);
        }
    }

    /// A word, then one value per line as far as they are listed.
    fn list(&mut self, indent: usize, word: &str, values: &[String]) {
        for (index, value) in values.iter().take(LISTED).enumerate() {
            self.field(indent, if index == 0 { word } else { "" }, value);
        }
        if values.len() > LISTED {
            self.field(indent, "", &format!("and {} more", values.len() - LISTED));
        }
    }

    fn ending(&mut self, view: &RunView) {
        self.blank();
        for idle in idle(view) {
            self.sentence(&idle.sentence, Style::News);
        }
        for sentence in asked_for(view) {
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
            }
        }
        if let Some(torn) = &view.torn_down {
            if left.is_empty() && !torn.unlisted {
                let removed = objects(torn.removed.len());
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

fn shown(id: &CheckId) -> String {
    printable(id.as_str())
}

fn label(row: &Row<'_>) -> String {
    match row.checks.as_slice() {
        [only] => shown(&only.planned.id),
        many => {
            let claim = row.claim().map(ToString::to_string).unwrap_or_default();
            format!("{} ({})", printable(&claim), counted(many.len(), "check"))
        }
    }
}

/// Adds an item to its kind; kinds keep the order of their first items, as the checks are planned.
fn add<K: PartialEq, T>(kinds: &mut Vec<(K, Vec<T>)>, kind: K, one: T) {
    match kinds.iter_mut().find(|(known, _)| *known == kind) {
        Some((_, ones)) => ones.push(one),
        None => kinds.push((kind, vec![one])),
    }
}

/// Whether a check is worth a finding: every verdict that a healthy cluster does not give, and skips.
fn is_news(check: &CheckView) -> bool {
    match check.conclusion.as_ref() {
        None => true,
        Some(c) => !c.verdict.is_expected() || c.verdict == Verdict::Skip || c.flaky,
    }
}
