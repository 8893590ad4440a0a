//! Compares `docs/permissions.md` with the suites, of whose commands it lists those that run on Windows nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use libtest_mimic::Trial;
use winconform_core::facts::Os;
use winconform_core::method::Test;

use super::page::compare;
use crate::world::{ALL, Outcome, trial};

const PAGE: &str = "docs/permissions.md";

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial("the_page_of_permissions_lists_commands", page)]
}

fn page() -> Outcome {
    let mut text = include_str!("permissions.md").to_owned();
    text.push_str("\n| command | for |\n|---|---|\n");
    for (command, claims) in commands() {
        let claims: Vec<_> = claims.iter().map(|claim| format!("`{claim}`")).collect();
        let command = command.replace('|', "\\|");
        writeln!(text, "| `{command}` | {} |", claims.join(", "))
            .map_err(|error| error.to_string())?;
    }
    compare(PAGE, &text)
}

/// The commands that checks send to Windows nodes, each with the claims that it is for.
fn commands() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut commands = BTreeMap::<_, BTreeSet<_>>::new();
    for case in &ALL.cases {
        let controls = case.controls.iter();
        let controls = controls.filter_map(|control| control.test.as_ref());
        for test in std::iter::once(&case.test).chain(controls) {
            let Test::Program(program) = test else {
                continue;
            };
            let of = program.query.within.pod.of;
            if of.os() == Os::Windows && of.is_on_node() {
                let claims = commands.entry(program.query.line()).or_default();
                claims.insert(case.claim.as_str());
            }
        }
    }
    commands
}
