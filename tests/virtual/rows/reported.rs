//! What users report most, by `reported.yaml`: a run shows each fault that imitates it on each topology where
//! somebody saw it. Each push tries the first of each, the nightly job all. `docs/reported.md` prints it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use hybrid_sim::ProductFault;
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use winconform::cli::named_topology;
use winconform_core::claims::Pattern;
use winconform_core::record::CheckView;
use winconform_core::report::causes::{Component, causes};
use winconform_core::verdict::Verdict;

use super::clusters::{BOOTS, disrupted};
use super::page::compare;
use super::{EACH, case, observed, seen};
use crate::table::{NONE, Row, tries_all};
use crate::world::{ALL, Outcome, selection_of, trial};

const PAGE: &str = "docs/reported.md";

/// Something that users report.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reported {
    what: String,
    /// Issues, as `OWNER/REPOSITORY#NUMBER`.
    threads: Vec<String>,
    /// The true cause, and where to look.
    cause: Option<String>,
    /// The component of the first cause in the report, where a check fails or is inconclusive.
    component: Option<Component>,
    /// A part of it that is in the hint of each check that shows it, or in the reason that a run gives for it.
    names: Option<String>,
    #[serde(default)]
    faults: Vec<Shown>,
    /// Why no run shows it.
    missing: Option<String>,
}

/// A fault that imitates it, and what shows the fault.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    fault: String,
    topology: String,
    /// Objects that are otherwise, as rows have them; those of the row of this name, if it names none.
    #[serde(default)]
    objects: BTreeMap<String, Value>,
    /// Checks of which at least one fails or warns, or is inconclusive with the words that `says` has.
    fails: Option<String>,
    says: Option<String>,
    /// What of the cause this one names, if that differs; `says` names it by itself.
    names: Option<String>,
    /// Its component, if that differs.
    component: Option<Component>,
    /// What a configuration must set for `demo` to show it.
    set: Option<String>,
    /// Checks of which at least one observes something else than in a healthy cluster.
    tells: Option<String>,
}

impl Shown {
    /// Where it is shown: by `demo`, if that has its fault and its topology, else by this test alone.
    fn described(&self) -> String {
        let Self {
            fault, topology, ..
        } = self;
        let plain = topology.strip_suffix(BOOTS).unwrap_or(topology);
        let is_of_demo = fault.parse::<ProductFault>().is_ok() && named_topology(plain).is_some();
        let boots = disrupted(topology).map(|node| format!(" --yes-disrupt {node}"));
        let boots = boots.unwrap_or_default();
        let set = self.set.as_ref();
        let set = set.map(|set| format!(" with `{set}` in a file of `--config`"));
        match is_of_demo {
            true => format!(
                "by `winconform demo --topology {plain} --fault {fault}{boots}`{}",
                set.unwrap_or_default()
            ),
            false => format!("in the tests alone, with `{fault}` on `{topology}`"),
        }
    }
}

static REPORTED: LazyLock<Vec<Reported>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/virtual/rows/reported.yaml");
    let text = std::fs::read_to_string(path).expect("text");
    serde_saphyr::from_str(&text).expect("what users report")
});

pub(crate) fn trials() -> Vec<Trial> {
    let most = if tries_all() { usize::MAX } else { 1 };
    let each = REPORTED.iter().flat_map(|reported| {
        let faults = reported.faults.iter().take(most);
        faults.map(move |shown| (reported, shown))
    });
    let each = each.map(|(reported, shown)| {
        let name = format!("reported::{}::{}", shown.topology, shown.fault);
        trial(name, || shows(reported, shown))
    });
    let page = trial("reported::the_page_is_what_the_table_says", || {
        compare(PAGE, &printed()?)
    });
    each.chain([page]).collect()
}

fn shows(reported: &Reported, shown: &Shown) -> Outcome {
    let (checks, fails) = match (&shown.fails, &shown.tells) {
        (Some(checks), None) => (checks, true),
        (None, Some(checks)) => (checks, false),
        _ => return Err("it has either `fails` or `tells`".to_owned()),
    };
    let pattern = Pattern::parse(checks).map_err(ToString::to_string)?;
    let view = |fault: &str| {
        let is_so = |row: &&Row| row.fault == fault && row.topology == shown.topology;
        let known = EACH.iter().find(is_so);
        let own = (fault != NONE && !shown.objects.is_empty()).then_some(&shown.objects);
        let objects = own
            .or(known.map(|row| &row.objects))
            .cloned()
            .unwrap_or_default();
        let row = json!({"fault": fault, "topology": shown.topology, "objects": objects,
            "areas": [], "exit": "conformant"});
        let row: Row = serde_json::from_value(row).map_err(|error| error.to_string())?;
        seen(&row, selection_of(&ALL, &[&case(&pattern)]))
    };
    let found = view(&shown.fault)?;
    let told = causes(&found).0.first().map(|cause| cause.component);
    let component = shown.component.or(reported.component);
    let component = component.filter(|_| fails);
    if told != component {
        return Err(format!("the report names {told:?}, not {component:?}"));
    }
    let named = || {
        found
            .checks
            .values()
            .filter(|check| pattern.covers(check.planned.id.as_str()))
    };
    let cause = shown.names.as_ref().or(shown.says.as_ref());
    let cause = cause.or(reported.names.as_ref());
    let cause = cause.ok_or("it has `names`")?.to_lowercase();
    let names_it = |check: &CheckView| {
        let reason = check.conclusion.as_ref().map(|it| &it.reason);
        let (hint, when) = (&check.planned.hint, &check.planned.when);
        let said = format!("{hint} {when:?} {reason:?}");
        said.to_lowercase().contains(&cause)
    };
    let is_shown = match fails {
        true => named().filter(|check| names_it(check)).any(|check| {
            let Some(conclusion) = &check.conclusion else {
                return false;
            };
            match (conclusion.verdict, &shown.says) {
                (Verdict::Fail | Verdict::Warn, None) => true,
                (Verdict::Inconclusive, Some(words)) => {
                    format!("{:?}", conclusion.reason).contains(words)
                }
                _ => false,
            }
        }),
        false => {
            let healthy = view(NONE)?;
            let mut named = named().filter(|check| names_it(check));
            named.any(|check| {
                let mut before = healthy.checks.values();
                let before = before.find(|before| before.planned.id == check.planned.id);
                before.is_some_and(|before| observed(before) != observed(check))
            })
        }
    };
    let ids: Vec<_> = named().map(|check| check.planned.id.as_str()).collect();
    is_shown
        .then_some(())
        .ok_or_else(|| format!("nothing shows it, and names `{cause}`, of {ids:?}"))
}

fn printed() -> Result<String, String> {
    let mut text = String::from(
        "# What users report\n\n\
         What breaks most often on clusters with Windows nodes by the issues of the projects, and the checks that show\n\
         it. The tests try each in memory with a fault that imitates it. `winconform demo` shows those with a command; the\n\
         others take objects or a network that only the tests have, and [the table of faults](faults.md) names them.\n\n\
         | report | threads | cause | shown by |\n|---|---|---|---|\n",
    );
    for reported in REPORTED.iter() {
        let threads: Vec<_> = reported.threads.iter().map(|thread| link(thread)).collect();
        let shown = reported.faults.iter().map(|shown| {
            let named = shown.fails.as_ref().or(shown.tells.as_ref());
            let named = named.map_or("", String::as_str);
            let how = match (&shown.tells, &shown.says) {
                (Some(_), _) => ", which records it and judges nothing,",
                (None, Some(_)) => ", which cannot be told and says why,",
                (None, None) => "",
            };
            format!("`{named}`{how} {}", shown.described())
        });
        let shown: Vec<_> = shown.collect();
        let missing = reported.missing.as_ref();
        let missing = missing.map(|why| format!("Nothing: {why}"));
        let shown = missing.unwrap_or_else(|| shown.join("<br>"));
        let cause = reported.cause.as_deref().unwrap_or_default();
        let (what, threads) = (&reported.what, threads.join(", "));
        writeln!(text, "| {what} | {threads} | {cause} | {shown} |")
            .map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// A link to an issue.
fn link(thread: &str) -> String {
    let (repository, number) = thread.split_once('#').unwrap_or((thread, ""));
    format!("[{thread}](https://github.com/{repository}/issues/{number})")
}
