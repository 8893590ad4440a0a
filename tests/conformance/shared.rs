//! One run for all processes of a `cargo nextest run`: the first makes it, and the others wait for its verdicts.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;

use libtest_mimic::{Completion, Failed};

use super::outcome::Outcome;
use super::process::{Cluster, Known, Run};

/// The result of the check in the one run whose reports are in the folder.
pub(crate) fn outcome(cluster: &Cluster, folder: &Path, check: &str) -> Result<Completion, Failed> {
    let outcome = outcome_of(cluster, folder, check).map_err(Failed::from);
    outcome.and_then(Outcome::into_result).map_err(|failed| {
        let finding = failed.message().unwrap_or_default();
        format!("{finding}\nreports: {}", folder.display()).into()
    })
}

fn outcome_of(cluster: &Cluster, folder: &Path, check: &str) -> std::io::Result<Outcome> {
    fs::create_dir_all(folder)?;
    let (path, mut text) = (folder.join("verdicts.json"), String::new());
    let mut file = File::options()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    // The system takes the lock from a process that is killed
    file.lock()?;
    if file.read_to_string(&mut text)? > 0 {
        let known = serde_json::from_str::<Known>(&text);
        let killed = |_| Outcome::untold("the test that made the run was killed");
        return Ok(known.map_or_else(killed, |known| known.outcome(check)));
    }
    // Another process never begins a second run, whatever becomes of this one
    file.write_all(b"\n")?;
    let known = Run::default().go(cluster, &[], folder);
    file.write_all(&serde_json::to_vec(&known)?)?;
    Ok(known.outcome(check))
}
