//! How the page begins: what the run came to, what leaves it in doubt, and the likely causes.

use maud::{Markup, html};

use super::super::causes::{Cause, causes as causes_of};
use super::super::diff::{Diff, changes, counts};
use super::super::findings::places::observed_from;
use super::super::findings::waivers::idle;
use super::super::json::ending;
use super::super::text::ending::{NOT_TESTED, SAME_CLUSTER, notices, object, reservations};
use super::super::text::summary::{context, pools, seconds, selection, server, tally, took_ms};
use super::room::{CAUSES, Room, list};
use crate::record::{Exit, RunView, Tally, exit};
use crate::text::{counted, printable};

/// The most checks that are listed behind a cause.
const LISTED: usize = 200;
/// Columns of what changed.
const WIDTH: usize = 110;

pub(super) fn head(view: &RunView) -> Markup {
    let started = &view.started;
    let class = match exit(view) {
        Exit::Conformant => "pass",
        Exit::NotConformant => "fail",
        Exit::CouldNotTell | Exit::NothingSelected | Exit::Interrupted => "doubt",
    };
    let pools = view.facts.as_ref().map(pools).unwrap_or_default();
    let facts = [
        ("cluster", context(started)),
        ("server", server(view.facts.as_ref())),
        ("pools", pools.join(", ")),
        ("observed from", observed_from(view).join(", ")),
        ("selected", selection(view)),
        (
            "may boot",
            printable(started.boots.as_deref().unwrap_or_default()),
        ),
        ("profile", started.profile.as_str().to_owned()),
        ("run", printable(&started.run)),
        ("began", format!("{:.0}", view.began)),
        ("took", seconds(took_ms(view))),
    ];
    html! {
        a.skip href="#findings" { "to the findings" }
        header class=(class) {
            h1 { (exit(view).as_str()) " " small { "exit " (ending(view).0) } }
            p { (tally(view)) }
            dl {
                @for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
                    div { dt { (name) } dd { (value) } }
                }
            }
        }
    }
}

/// What leaves the outcome in doubt, what was unusual, and what was not tested.
pub(super) fn doubts(view: &RunView) -> Markup {
    let reservations = reservations(view).into_iter();
    // Below with their claims
    let reservations = reservations.filter(|one| one.word != NOT_TESTED);
    let tally = Tally::from_view(view);
    let idle = idle(view).into_iter().map(|waiver| waiver.sentence);
    let sentences = reservations
        .map(|one| one.sentence)
        .chain(idle)
        .chain(notices(view));
    let sentences: Vec<_> = sentences.collect();
    let left = view.left();
    html! {
        @if !sentences.is_empty() || !tally.untested.is_empty() {
            section #doubts {
                h2 { "To keep in mind" }
                ul { @for one in &sentences { li { (one) } } }
                @if !left.is_empty() {
                    details {
                        summary { (counted(left.len(), "object")) " left" }
                        ul.ids { @for one in left { li { (object(one)) } } }
                        @if !view.started.is_simulated() {
                            p {
                                code { "winconform cleanup --run " (printable(&view.started.run)) }
                                " " (SAME_CLUSTER)
                            }
                        }
                    }
                }
                @for ((reason, place), claims) in &tally.untested_where {
                    details {
                        summary {
                            (counted(claims.len(), "claim")) " not tested"
                            @if let Some(place) = place { " in " (printable(place)) }
                            ": " (printable(reason))
                        }
                        ul.ids { @for claim in claims { li { code { (claim.as_str()) } } } }
                    }
                }
            }
        }
    }
}

pub(super) fn causes(view: &RunView) -> Markup {
    let (causes, unexplained) = causes_of(view);
    let mut room = Room::of(CAUSES);
    html! {
        @if !causes.is_empty() || !unexplained.is_empty() {
            section #causes {
                h2 { "Likely causes" }
                ol { @for cause in &causes { li { (one(cause, &mut room)) } } }
                @if !unexplained.is_empty() {
                    p { (counted(unexplained.len(), "check")) " without a known cause." }
                }
            }
        }
    }
}

/// What changed since the run that this one is compared with.
pub(super) fn since(view: &RunView) -> Markup {
    html! {
        @if let Some(diff) = Diff::since_baseline(view) {
            section #since {
                h2 { "What changed" }
                p { (diff.since()) ": " (counts(&diff)) }
                @for (word, checks) in changes(&diff, LISTED, WIDTH) {
                    details { summary { (word) } pre tabindex="0" { (checks.join("\n")) } }
                }
            }
        }
    }
}

fn one(cause: &Cause<'_>, room: &mut Room) -> Markup {
    let component: &str = cause.component.into();
    let ids = cause.checks.iter().take(LISTED).map(|check| {
        let id = printable(check.planned.id.as_str());
        html! { li { code { (id) } } }
    });
    let ids = room.fill(ids);
    html! {
        h3 { span.component { (component) } " " (cause.says) }
        dl {
            @if !cause.beside.is_empty() { div { dt { "works" } dd { (cause.beside) } } }
            div { dt { (cause.certainty()) } dd { (cause.likely) } }
            @if !cause.evidence.is_empty() { div { dt { "evidence" } dd { (cause.evidence) } } }
            div { dt { "look" } dd { code { (cause.look) } } }
            // Of the catalogue, which is built in
            @if let Some(link) = cause.link { div { dt { "see" } dd { a href=(link) { (link) } } } }
        }
        details {
            summary { (counted(cause.checks.len(), "check")) }
            (list(&ids, cause.checks.len()))
        }
    }
}
