//! The page of a run for a browser: one file that loads nothing, readable without scripts.
//!
//! Text of a cluster gets here through `printable`, which spells out control and bidirectional characters, and
//! through `maud`, which escapes markup.

mod findings;
mod head;
mod maps;
mod rest;
mod room;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use self::room::{LISTS, Room};
use super::findings::finding::word;
use super::findings::signs::sign;
use super::text::summary::tally;
use crate::record::{RunView, exit};
use crate::text::printable;
use crate::verdict::Verdict;

const STYLE: &str = include_str!("page.css");
/// Filters findings, with the filter in the page's address; without it the page is whole.
const SCRIPT: &str = include_str!("page.js");

/// Renders a run as HTML, the same bytes each time.
pub fn render(view: &RunView) -> String {
    let title = format!(
        "{}: {}",
        exit(view).as_str(),
        printable(&view.started.context)
    );
    let mut lists = Room::of(LISTS);
    let (findings, shown) = findings::findings(view, &mut lists);
    let body = html! {
        (head::head(view))
        main {
            (head::doubts(view))
            (head::causes(view))
            (head::since(view))
            (maps::claims(view, &shown))
            (maps::ways(view, &shown))
            (findings)
            (rest::skips(view, &mut lists))
            (rest::limitations(view, &mut lists))
            (rest::claims(view))
            (rest::times(view))
        }
        footer { p { (tally(view)) } p { "winconform " (printable(&view.started.version)) } }
    };
    document(&title, Some(SCRIPT), &body)
}

/// A whole page. Nothing but the style and the script is taken, wherever it is opened.
pub(super) fn document(title: &str, script: Option<&str>, body: &Markup) -> String {
    let scripts = script.map_or("'none'".to_owned(), hash);
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {scripts}; base-uri 'none'; form-action 'none'",
        hash(STYLE),
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                @if let Some(script) = script { script { (PreEscaped(script)) } }
            }
        }
    };
    page.into_string() + "\n"
}

/// What a Content Security Policy calls an inline text (W3C, Content Security Policy Level 3, section 2.3.1).
fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)))
}

/// A verdict's word as a mark with its colour.
fn mark(verdict: Option<Verdict>) -> Markup {
    let (_, class) = sign(verdict);
    let word = word(verdict);
    html! { span class={ "mark " (class) } { (word) } }
}
