//! A front like libtest's: each check of the cluster whose context `WINCONFORM_CONTEXT` names is a test, and one run of
//! the tool observes all of them. It judges nothing: verdicts and exit code are the run's.

mod outcome;
mod process;
mod shared;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use jiff::Timestamp;
use libtest_mimic::{Arguments, Trial, run};

use outcome::THE_RUN;
use process::{Cluster, INTERNAL_ERROR, Run};

/// The exit code where nothing is selected, as the tool has it.
const NOTHING_SELECTED: u8 = 12;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(context) = given("WINCONFORM_CONTEXT") else {
        say("not run: WINCONFORM_CONTEXT names no context of the kubeconfig\n");
        return ExitCode::SUCCESS;
    };
    let config = given("WINCONFORM_CONFIG");
    let cluster = Cluster { context, config };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    match (given("NEXTEST_RUN_ID"), &arguments.filter) {
        // A process of nextest's for one of the tests listed before
        (Some(run_id), Some(name)) if arguments.exact && !arguments.list => {
            let (check, is_ignored) = (name.clone(), arguments.ignored);
            let outcome = move || shared::outcome(&cluster, &folder.join(run_id), &check);
            let trial = Trial::ignorable_test(name, outcome).with_ignored_flag(is_ignored);
            run(&arguments, vec![trial]).exit_code()
        }
        _ => all(&arguments, cluster, &folder),
    }
}

/// Runs or lists all tests that the arguments select.
fn all(arguments: &Arguments, cluster: Cluster, folder: &Path) -> ExitCode {
    let plan = match cluster.plan() {
        Ok(plan) => plan,
        Err(code) => return ExitCode::from(code),
    };
    let known = Arc::new(Run::default());
    let trial = |name: &str, is_ignored| {
        let (known, check) = (known.clone(), name.to_owned());
        let outcome = move || known.outcome(&check).into_result();
        Trial::ignorable_test(name, outcome).with_ignored_flag(is_ignored)
    };
    let checks = plan
        .iter()
        .map(|check| trial(&check.id, check.is_ignored()));
    let trials: Vec<_> = checks.chain([trial(THE_RUN, false)]).collect();
    if arguments.list {
        return run(arguments, trials).exit_code();
    }
    let is_run = |it: &&Trial| !arguments.is_filtered_out(it) && !arguments.is_ignored(it);
    let selected: Vec<_> = trials.iter().filter(is_run).map(Trial::name).collect();
    if selected.is_empty() {
        let _ignored = run(arguments, trials);
        say("nothing is selected that is to be observed on this cluster\n");
        return ExitCode::from(NOTHING_SELECTED);
    }
    let is_part = arguments.filter.is_some() || !arguments.skip.is_empty() || arguments.ignored;
    let checks = selected.iter().filter(|name| is_part && **name != THE_RUN);
    let checks: Vec<_> = checks.map(|name| (*name).to_owned()).collect();
    // A folder of its own: the record of another run would give another run's verdicts
    let now = Timestamp::now().strftime("%Y%m%d-%H%M%S");
    let folder = folder.join(format!("{now}-{}", std::process::id()));
    let running = thread::spawn(move || known.go(&cluster, &checks, &folder));
    let conclusion = run(arguments, trials);
    match running.join().ok().and_then(|known| known.code) {
        Some(0) => conclusion.exit_code(),
        code => ExitCode::from(code.unwrap_or(INTERNAL_ERROR)),
    }
}

/// Tells people what is no result of a test.
fn say(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}
