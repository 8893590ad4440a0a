//! Whether the report names the true cause of a fault first, and tells it on one page. The table of faults, which was
//! there before the catalogue of causes, has the truth.

use std::fmt::Write as _;
use std::sync::LazyLock;

use libtest_mimic::Trial;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use winconform_core::claims::Pattern;
use winconform_core::plan::{CheckId, Point};
use winconform_core::record::{Exit, RunView};
use winconform_core::report::causes::{Cause as Told, causes};
use winconform_core::report::terminal::{Colour, Detail, render};
use winconform_core::verdict::Verdict;

use crate::rows::EACH;
use crate::rows::page::{compare, word};
use crate::rows::pairs::{BOTH, PAIRS};
use crate::rows::topologies::run;
use crate::table::{Cause, Mistaken, Row, tries_all};
use crate::world::{ALL, Outcome, trial};

/// The most lines of a report in short on one fault.
const LINES: usize = 60;

/// The columns at which it has no more.
const WIDTHS: [usize; 5] = [60, 80, 100, 120, 200];

const PAGE: &str = "docs/causes.md";

/// Each push tries one of so many faults that a stranger read about, each night all.
const SOME: usize = 5;

/// How many of the faults that a stranger read about have their true cause told first.
const TRUE: usize = 20;

/// What a demo prints of a fault, and how a stranger judged it: see `read.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    fault: String,
    topology: String,
    truth: Cause,
    before: Before,
    lines: usize,
    /// The component and what the first cause says, if one is printed.
    cause: Option<String>,
    told: Judged,
    #[serde(default)]
    why: String,
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    lines: usize,
    told: Judged,
    #[serde(default)]
    next: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Judged {
    Both,
    Component,
    No,
}

static READ: LazyLock<Vec<Read>> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("read.yaml")).expect("what a stranger read")
});

pub(crate) fn trials() -> Vec<Trial> {
    let read = READ.iter().enumerate().map(|(at, read)| {
        let name = format!("read::{}::{}", read.topology, read.fault);
        let is_rare = at % SOME != SOME / 2 && !tries_all();
        trial(name, || is_printed(read)).with_ignored_flag(is_rare)
    });
    let page = trial("the_page_of_causes_counts_what_is_told", page);
    let patterns = trial("every_pattern_of_a_cause_is_of_some_case", patterns);
    read.chain([page, patterns]).collect()
}

/// A demo prints what was read, and nothing is called true that is not.
fn is_printed(read: &Read) -> Outcome {
    let fault = read.fault.parse().map_err(|error| format!("{error}"))?;
    let view = run(&read.topology, Some(fault), &[])?;
    let text = render(&view, 100, Colour::Never, Detail::Short);
    let (causes, _) = causes(&view);
    let first = causes.first();
    let said = first.map(|it| format!("{}: {}", <&str>::from(it.component), it.says));
    let lines = text.lines().count();
    let is_true = first.is_some_and(|first| is_same(&view, first, &read.truth));
    if said != read.cause || lines > read.lines.min(LINES) || read.told == Judged::Both && !is_true
    {
        return Err(format!("{said:?} in {lines} lines:\n{text}"));
    }
    Ok(())
}

/// The first cause is the true one, or the row says why not.
pub(crate) fn first(view: &RunView, row: &Row) -> Outcome {
    for width in WIDTHS {
        let text = render(view, width, Colour::Never, Detail::Short);
        let lines = text.lines().count();
        if lines > LINES {
            return Err(format!("{lines} lines at {width}, not {LINES}:\n{text}"));
        }
    }
    let text = render(view, 100, Colour::Never, Detail::Short);
    let (causes, _) = causes(view);
    if row.exit == Exit::Conformant && !causes.is_empty() {
        return Err(format!("nothing failed, and has causes:\n{text}"));
    }
    let Some(truth) = row.cause.as_ref().filter(|_| breaks(row)) else {
        return Ok(());
    };
    let of_class = EACH.iter().filter(|other| {
        other.class.is_some() && other.class == row.class && other.topology == row.topology
    });
    let mut truths = of_class.filter_map(|row| row.cause.as_ref()).chain([truth]);
    let is_right = causes.first().is_some_and(|first| {
        truths.any(|truth| is_same(view, first, truth)) && names(&first.says, row)
    });
    let guessed = causes.first().is_some_and(|first| !first.is_likely);
    // With fewer checks there may be fewer causes
    if tries_all() && (guessed, causes.len()) != (row.guessed, row.causes) {
        let count = causes.len();
        return Err(format!("guessed: {guessed}, causes: {count}\n{text}"));
    }
    match (is_right, &row.mistaken) {
        (true, None) | (false, Some(_)) => Ok(()),
        (true, Some(mistaken)) => Err(format!("is not mistaken: {}", mistaken.because)),
        (false, None) => Err(format!("{truth:?} is not the first cause:\n{text}")),
    }
}

/// Whether a sentence names the pool or the node that the fault is at.
fn names(says: &str, row: &Row) -> bool {
    let place = row.fault.split_once('=').map_or("", |(_, place)| place);
    let place = place.strip_prefix("node/").unwrap_or(place);
    let is_one = place.starts_with("windows-2") || place.starts_with("linux-");
    !is_one || place.contains(':') || says.contains(place)
}

/// Whether a row has checks fail or be untold, so that there is something to explain.
pub(super) fn breaks(row: &Row) -> bool {
    row.turns
        .iter()
        .any(|(_, verdict)| matches!(verdict, Verdict::Fail | Verdict::Inconclusive))
}

/// Whether a cause is that of a row.
pub(super) fn is_cause_of(view: &RunView, cause: &Told<'_>, row: &Row) -> bool {
    let truth = row.cause.as_ref();
    truth.is_some_and(|truth| is_same(view, cause, truth)) && names(&cause.says, row)
}

/// Whether a cause is the true one. A pool is all of an operating system where it is its only one, and a node is a
/// pool where each has one.
fn is_same(view: &RunView, first: &Told<'_>, truth: &Cause) -> bool {
    let scope: &str = first.scope.into();
    let pools = view
        .facts
        .as_ref()
        .map(winconform_core::facts::Facts::pools);
    let pools = pools.unwrap_or_default();
    let one_build = pools.keys().filter(|pool| pool.as_str() != "linux").count() == 1;
    let one_node = pools.values().all(|pool| pool.total() <= 1);
    let of_truth = json!(truth.scope);
    let same = |a: &str, b: &str| {
        let scopes = [json!(scope), of_truth.clone()];
        scopes == [json!(a), json!(b)] || scopes == [json!(b), json!(a)]
    };
    let is_there = json!(scope) == of_truth
        || one_build && same("pool", "os")
        || one_node && same("pool", "node");
    is_there && first.component == truth.component
}

/// Whether a fault was put aside while the catalogue was written: a third of their names.
fn is_held_out(row: &Row) -> bool {
    let name = row.fault.split('=').next().unwrap_or_default();
    let rest = |rest: u32, byte: &u8| (rest * 256 + u32::from(*byte)) % 3;
    Sha256::digest(name.as_bytes()).iter().fold(0, rest) == 0
}

fn page() -> Outcome {
    let text = printed().map_err(|error| error.to_string())?;
    compare(PAGE, &text)
}

fn printed() -> Result<String, Box<dyn std::error::Error>> {
    let (mut counts, mut mistaken) = ([[0, 0], [0, 0]], String::new());
    let (mut guessed, mut told) = (0, 0);
    for row in EACH.iter() {
        let Some(truth) = row.cause.as_ref().filter(|_| breaks(row)) else {
            continue;
        };
        let [right, all] = &mut counts[usize::from(is_held_out(row))];
        *all += 1;
        guessed += usize::from(row.guessed);
        told += row.causes;
        match &row.mistaken {
            None => *right += 1,
            Some(Mistaken { because }) => {
                let (component, scope) = (<&str>::from(truth.component), json!(truth.scope));
                let truth = format!("{component}, {}", scope.as_str().unwrap_or_default());
                let (fault, topology) = (&row.fault, &row.topology);
                writeln!(
                    mistaken,
                    "| `{fault}` on {topology} | {truth} | {because} |"
                )?;
            }
        }
    }
    let [[right, all], [right_apart, all_apart]] = counts;
    let rows = all + all_apart;
    if right * 100 < all * 95 || right_apart * 100 < all_apart * 85 || told * 10 > rows * 13 {
        return Err(
            format!("{right} of {all}, {right_apart} of {all_apart}, {told} causes").into(),
        );
    }
    let mut text = format!(
        "# Causes\n\n\
         A report says first what failed checks have in common. It goes through the catalogue below in its order: the\n\
         first entry that fits a check takes it, finds how much of the cluster it covers (a node, a pool, an operating\n\
         system, a way between two, the cluster), as small as passed checks from other nodes and pools make it, and takes\n\
         there what else it explains. *Likely* is what the entry says, and *consistent with* stands there instead where one of\n\
         the checks that show it passes in the same place, or where nothing but the claims is known; *works* is what passes in\n\
         the same place, and where the same checks pass.\n\n\
         *Evidence* decides nothing. It is one line of what the run collected about these checks after they failed: events,\n\
         statuses of pods, conditions of nodes, ends of logs, also of kube-proxy. The last column has its words, the most\n\
         telling first.\n\n\
         [The table of faults](faults.md) has the truth, written before. Of the faults by which checks fail or are\n\
         inconclusive, the first cause names component and scope of {right} of {all}; of a third of the names, by their\n\
         hash, which were put aside while the catalogue was written, {right_apart} of {all_apart}. That third was first\n\
         counted with 61 of 66, before anybody looked at it; since then it is as known as the rest. These {rows} faults have\n\
         {told} causes in all; of {guessed} the first is none of the entries with a name of its own: the report says that the\n\
         run is *consistent with* it, and which claims do not hold. Each report on one fault has at most {LINES} lines at 100 columns. Of {PAIRS} pairs of faults on one topology, drawn from the table, both causes\n\
         are named in at least {BOTH}: where both are in one pool, the first often takes what would show the second.\n\
         Shown in memory alone: no real cluster with these faults was at hand.\n\n\
         ## Mistaken\n\n| fault | true cause | why |\n|---|---|---|\n{mistaken}\n\
         {}\n## The catalogue\n\n| what | likely | shown by | with words | evidence |\n|---|---|---|---|---|\n",
        judged()?
    );
    for rule in catalogue()? {
        let list = |key: &str| {
            let items = rule[key].as_array().into_iter().flatten();
            let items = items.map(|item| match item.as_str().unwrap_or_default() {
                quoting if quoting.contains('`') => format!("``` {quoting} ```"),
                plain => format!("`{plain}`"),
            });
            items.collect::<Vec<_>>().join(", ")
        };
        let [what, likely, component] =
            ["says", "likely", "component"].map(|key| rule[key].as_str().unwrap_or_default());
        let what = match rule["link"].as_str() {
            Some(link) => format!("[{what}]({link})"),
            None => what.to_owned(),
        };
        let [shown_by, words, evidence] = ["shown_by", "words", "evidence"].map(list);
        writeln!(
            text,
            "| {what} | {component}: {likely} | {shown_by} | {words} | {evidence} |"
        )?;
    }
    Ok(text)
}

/// What a stranger read, as a section of the page.
fn judged() -> Result<String, Box<dyn std::error::Error>> {
    let of = |is: &dyn Fn(&Read) -> bool| READ.iter().filter(|read| is(read)).count();
    let right = of(&|read| read.told == Judged::Both);
    if right < TRUE {
        return Err(format!("{right} are true, not {TRUE}").into());
    }
    let mut text = format!(
        "## Read by a stranger\n\n\
         Somebody who had read neither the code nor the catalogue chose {} faults, ran `winconform demo` with each, and judged\n\
         what it printed at 100 columns. The first cause was true in component and scope of {} and is of {right} since; the\n\
         command beside it was of no use for {} and is for {}. The judgement is one person's, of a simulated cluster.\n\n\
         | fault | lines | first cause | true | command |\n|---|---|---|---|---|\n",
        READ.len(),
        of(&|read| read.before.told == Judged::Both),
        of(&|read| !read.before.next.is_empty()),
        of(&|read| !read.next.is_empty()),
    );
    for read in READ.iter() {
        let changed = |before: String, now: String| match before == now {
            true => now,
            false => format!("{before}, now {now}"),
        };
        let lines = changed(read.before.lines.to_string(), read.lines.to_string());
        let mut told = changed(word(&read.before.told)?, word(&read.told)?);
        if !read.why.is_empty() {
            write!(told, ": {}", read.why)?;
        }
        let usable = |why: &str| if why.is_empty() { "usable" } else { why }.to_owned();
        let next = changed(usable(&read.before.next), usable(&read.next));
        let (fault, topology) = (&read.fault, &read.topology);
        let cause = read.cause.as_deref().unwrap_or("none");
        writeln!(
            text,
            "| `{fault}` on {topology} | {lines} | {cause} | {told} | {next} |"
        )?;
    }
    Ok(text)
}

/// No entry of the catalogue waits for checks that there are not.
fn patterns() -> Outcome {
    let ids = ALL
        .cases
        .iter()
        .map(|case| CheckId::new(&case.claim, case.name.as_deref(), &Point::default()));
    let ids: Vec<_> = ids.map(|id| format!("{id}[]")).collect();
    let mut idle = Vec::new();
    for rule in catalogue().map_err(|error| error.to_string())? {
        let beside = rule["beside"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| &one["checks"]);
        let lists = ["shown_by", "explains", "unless"].map(|key| rule[key].as_array());
        for pattern in lists.into_iter().flatten().flatten().chain(beside) {
            let pattern = pattern.as_str().unwrap_or_default();
            let read = Pattern::parse(pattern).map_err(|error| format!("{pattern}: {error}"))?;
            if !ids.iter().any(|id| read.covers(id)) {
                idle.push(format!("{}: nothing is {pattern}", rule["says"]));
            }
        }
    }
    match idle.as_slice() {
        [] => Ok(()),
        idle => Err(idle.join("\n")),
    }
}

fn catalogue() -> Result<Vec<Value>, serde_saphyr::Error> {
    serde_saphyr::from_str(include_str!("../../../core/src/report/causes/causes.yaml"))
}
