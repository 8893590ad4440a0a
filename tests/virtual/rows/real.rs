//! What `docs/real-clusters.md` quotes of demos, by `real.yaml`. Each push tries some, the nightly job all.

use std::sync::LazyLock;

use hybrid_sim::ProductFault;
use libtest_mimic::Trial;
use serde::Deserialize;
use winconform_core::report::terminal::{Colour, Detail, render};

use super::topologies::run;
use crate::table::tries_all;
use crate::world::{Outcome, trial};

const PAGE: &str = include_str!("../../../docs/real-clusters.md");

/// Each push tries one of so many.
const SOME: usize = 5;

/// A demo, and what it prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quoted {
    topology: String,
    fault: Option<String>,
    select: String,
    prints: Vec<String>,
}

static QUOTED: LazyLock<Vec<Quoted>> =
    LazyLock::new(|| serde_saphyr::from_str(include_str!("real.yaml")).expect("what is quoted"));

pub(crate) fn trials() -> Vec<Trial> {
    let each = QUOTED.iter().enumerate().map(|(at, quoted)| {
        let name = format!("real::{}::{}", quoted.topology, quoted.select);
        let is_rare = at % SOME != SOME / 2 && !tries_all();
        trial(name, || is_printed(quoted)).with_ignored_flag(is_rare)
    });
    let page = trial("real::the_page_has_what_is_quoted", page);
    each.chain([page]).collect()
}

fn is_printed(quoted: &Quoted) -> Outcome {
    let fault = quoted.fault.as_ref();
    let fault = fault.map(|fault| fault.parse::<ProductFault>());
    let fault = fault.transpose().map_err(|error| error.to_string())?;
    let view = run(&quoted.topology, fault, &[&quoted.select])?;
    let text = render(&view, 200, Colour::Never, Detail::Full);
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    let missing = quoted.prints.iter().find(|it| !line.contains(*it));
    missing.map_or(Ok(()), |missing| {
        Err(format!("`{missing}` is not in\n{text}"))
    })
}

/// One row of the page has all that is quoted of a demo, with its topology or its fault.
fn page() -> Outcome {
    let missing = QUOTED.iter().find(|quoted| {
        let of = quoted.fault.as_ref().unwrap_or(&quoted.topology);
        let mut rows = PAGE.lines().filter(|row| row.contains(of));
        !rows.any(|row| quoted.prints.iter().all(|it| row.contains(it)))
    });
    missing.map_or(Ok(()), |missing| {
        Err(format!("no row of the page has {missing:?}"))
    })
}
