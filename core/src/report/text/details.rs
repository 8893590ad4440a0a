//! The report in full: every check, and every finding with its evidence.

use super::folded::{Row, add, is_amiss, kind_of, rows, shared_reason};
use super::layout::{columns, fit, pad};
use super::page::Page;
use super::style::Style;
use super::summary::seconds;
use super::terminal::VERDICT;
use crate::claims::ClaimId;
use crate::fixture::FixtureKey;
use crate::plan::CheckId;
use crate::record::{CheckView, RunView};
use crate::report::findings::blame::{Blame, Broke};
use crate::report::findings::excerpt::{self, Excerpt};
use crate::report::findings::finding::{
    Finding, apart as apart_of, attempts, in_words, times, word,
};
use crate::report::findings::outcomes::Outcomes;
use crate::report::findings::places::pools as places;
use crate::report::findings::suspects::{suspects, unoffered};
use crate::report::findings::waivers::raised;
use crate::text::{counted, printable};
use crate::verdict::Verdict;

/// Columns a reason needs to say anything beside a check.
const REASON: usize = 24;

impl Page {
    /// Every check by area, with many that say the same on one line.
    pub(super) fn matrix(&mut self, view: &RunView) {
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

    /// Every check that differs from a healthy cluster and that no failed fixture broke.
    pub(super) fn findings(&mut self, view: &RunView, blame: &Blame<'_>) {
        let news = view.checks.values().filter(|check| is_news(check));
        let news: Vec<_> = news.filter(|check| !blame.covers(check)).collect();
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
        let run = Outcomes::from_view(view);
        for (_, checks) in &alike {
            if let [first, others @ ..] = checks.as_slice() {
                self.finding(view, &run, first, others);
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
    pub(super) fn finding(
        &mut self,
        view: &RunView,
        run: &Outcomes<'_>,
        check: &CheckView,
        others: &[&CheckView],
    ) {
        let finding = Finding::of_check(check, Some(run));
        let id = shown(&finding.check);
        self.blank();
        self.entry(
            word(finding.verdict),
            Style::for_verdict(finding.verdict),
            &id,
        );
        let (claim, title) = (&check.planned.claim, printable(&check.planned.title));
        self.field(
            4,
            "claim",
            &format!("{claim} ({}): {title}", check.planned.claim_type),
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
            self.field(4, "attempts", &attempts(check));
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
        // It says where to look if something is amiss
        if !matches!(check.verdict(), Some(Verdict::Pass | Verdict::Skip)) {
            self.field(4, "next", &printable(&finding.hint));
        }
        let others: Vec<_> = others
            .iter()
            .map(|other| shown(&other.planned.id))
            .collect();
        self.list(4, "also", &others);
    }

    pub(super) fn fixtures(&mut self, view: &RunView, blame: &Blame<'_>) {
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
        // A check that observes a fixture although that is not ready is judged by itself
        if !broke.checks.is_empty() {
            self.field(4, "broke", &counted(broke.checks.len(), "check"));
        }
        let checks = broke.checks.iter();
        let checks: Vec<_> = checks.map(|(_, check)| shown(&check.planned.id)).collect();
        self.list(4, "", &checks);
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

/// Whether a check is worth a finding: every verdict that a healthy cluster does not give, and skips.
fn is_news(check: &CheckView) -> bool {
    is_amiss(check) || check.verdict() == Some(Verdict::Skip)
}
