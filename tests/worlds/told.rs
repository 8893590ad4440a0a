//! What a run came to, held against what its world says.

use winconform_core::claims::{Kind, Pattern};
use winconform_core::record::{CheckView, FixtureOutcome, RunView, exit};
use winconform_core::report::junit;
use winconform_core::report::terminal::{Colour, render};
use winconform_core::text::is_hostile;
use winconform_core::verdict::Verdict;

use crate::list::World;
use crate::world::Outcome;

/// What a check comes to where nothing is wrong.
fn usual(kind: Kind) -> Verdict {
    match kind {
        Kind::Capability | Kind::Requirement | Kind::Rejection | Kind::Advice => Verdict::Pass,
        Kind::Limitation => Verdict::KnownLimitation,
        Kind::Evidence => Verdict::Recorded,
    }
}

/// Every verdict, the cause of each that is not the usual one, and the exit code.
pub(crate) fn as_expected(world: &World, view: &RunView) -> Outcome {
    let mut wrong = Vec::new();
    let mut met = vec![false; world.turns.len()];
    for check in view.checks.values() {
        if let Err(why) = one(world, check, &mut met) {
            wrong.push(format!("{}: {why}", check.planned.id));
        }
    }
    for (turn, met) in world.turns.iter().zip(met) {
        if !met {
            wrong.push(format!("{} is about no check", turn.checks));
        }
    }
    let report = render(view, 160, Colour::Never);
    // As one line each: a table's columns are not the question
    let unwrapped = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for shown in world.shows {
        if !unwrapped.contains(shown.trim_end()) {
            wrong.push(format!("`{shown}` is not shown"));
        }
    }
    if let Some(line) = report.lines().find(|line| line.contains(is_hostile)) {
        wrong.push(format!("raw text in the report: {line:?}"));
    }
    let junit = junit::render(view).map_err(|error| error.to_string())?;
    let raw = |character: &char| is_hostile(*character) && *character != '\n';
    if let Some(raw) = junit.chars().find(raw) {
        wrong.push(format!("raw text in JUnit: {raw:?}"));
    }
    let diagnosed = world.exit == 10
        || view
            .fixtures
            .values()
            .any(|(how, _)| matches!(how, FixtureOutcome::Failed(_)));
    if !diagnosed && !view.diagnoses.is_empty() {
        wrong.push(format!("nothing failed, and there is {:?}", view.diagnoses));
    }
    let code = exit(view).code();
    if code != world.exit {
        wrong.push(format!("exit {code}, not {}", world.exit));
    }
    if view.checks.is_empty() {
        wrong.push("nothing was checked".to_owned());
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(format!("{}\n{}", wrong.join("\n"), report)),
    }
}

fn one(world: &World, check: &CheckView, met: &mut [bool]) -> Outcome {
    let id = check.planned.id.as_str();
    let conclusion = check.conclusion.as_ref().ok_or("no verdict")?;
    let (seen, usual) = (conclusion.verdict, usual(check.planned.kind));
    let covers = |name: &str| Pattern::parse(name).expect("a pattern of ids").covers(id);
    // A pool's one usable node is looked from by its prober
    if covers("net.*/each-*node") || covers("sample.*/each-node") {
        return match seen {
            Verdict::Skip => Ok(()),
            _ => Err(format!("{seen}, not skip: {:?}", conclusion.because)),
        };
    }
    let Some(at) = world.turns.iter().position(|turn| covers(turn.checks)) else {
        return match seen == usual {
            true => Ok(()),
            false => Err(format!("{seen}, not {usual}: {:?}", conclusion.because)),
        };
    };
    met[at] = true;
    let turn = &world.turns[at];
    if !turn.to.contains(&seen) {
        return Err(format!(
            "{seen}, not {:?}: {:?}",
            turn.to, conclusion.because
        ));
    }
    let because = format!("{:?}", conclusion.because);
    match seen == usual || because.contains(turn.because) {
        true => Ok(()),
        false => Err(format!("not because of `{}`: {because}", turn.because)),
    }
}
