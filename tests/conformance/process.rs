//! The tool as a process, and what its record says of the checks while it runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use winconform_core::record::{exit, read};

use super::outcome::{Outcome, THE_RUN};
use super::say;

/// The exit code of a process that ends by a signal or does not start.
pub(crate) const INTERNAL_ERROR: u8 = 1;

pub(crate) struct Cluster {
    pub(crate) context: String,
    pub(crate) config: Option<String>,
}

/// A check that a run would have, of `winconform plan --format json`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Planned {
    pub(crate) id: String,
    disposition: String,
    not_tested: bool,
}

#[derive(Deserialize)]
struct Plan {
    checks: Vec<Planned>,
}

impl Planned {
    /// Whether the question does not arise on this cluster. A check that should be tested and cannot be is a failure.
    pub(crate) fn is_ignored(&self) -> bool {
        self.disposition == "skip" && !self.not_tested
    }
}

impl Cluster {
    fn tool(&self, command: &str) -> Command {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_winconform"));
        tool.args([command, "--context", &self.context]);
        tool.args(self.config.iter().flat_map(|file| ["--config", file]));
        tool.stdin(Stdio::null());
        tool
    }

    /// The checks of a run on the cluster; or, when it has said why there is no plan, the tool's exit code.
    pub(crate) fn plan(&self) -> Result<Vec<Planned>, u8> {
        let mut tool = self.tool("plan");
        let tool = tool.args(["--format", "json"]).stderr(Stdio::inherit());
        let failed = |error: &dyn std::fmt::Display| {
            say(&format!("error: failed to plan: {error}\n"));
            INTERNAL_ERROR
        };
        let done = tool.output().map_err(|error| failed(&error))?;
        match done.status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(0) => {}
            code => return Err(code.unwrap_or(INTERNAL_ERROR)),
        }
        let plan: Plan = serde_json::from_slice(&done.stdout).map_err(|error| failed(&error))?;
        Ok(plan.checks)
    }
}

/// What is known of a run.
#[derive(Clone, Default, Deserialize, Serialize)]
pub(crate) struct Known {
    checks: BTreeMap<String, Outcome>,
    /// The exit code, when it is over.
    pub(crate) code: Option<u8>,
    /// Why it did not begin or ended early, in its own words.
    error: String,
}

impl Known {
    pub(crate) fn outcome(&self, check: &str) -> Outcome {
        let code = self.code.unwrap_or(INTERNAL_ERROR);
        let untold = || {
            Outcome::untold(&format!(
                "the run (exit {code}) has no verdict\n{}",
                self.error
            ))
        };
        self.checks.get(check).cloned().unwrap_or_else(untold)
    }
}

/// One run of the tool, which others wait for.
#[derive(Default)]
pub(crate) struct Run {
    known: Mutex<Known>,
    changed: Condvar,
}

impl Run {
    /// Runs these checks, or all without any, to the end.
    pub(crate) fn go(&self, cluster: &Cluster, checks: &[String], folder: &Path) -> Known {
        let mut tool = cluster.tool("run");
        tool.args(checks.iter().flat_map(|check| ["--select", check]));
        // Standard output is for the results of tests
        tool.arg("--out")
            .arg(folder)
            .stdout(io::stderr())
            .stderr(Stdio::piped());
        // In a group of its own: a kill of this process's group does not end the tear-down
        tool.process_group(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build();
        let ended = runtime.and_then(|it| it.block_on(self.follow(tool, folder)));
        let code = ended.unwrap_or_else(|error| {
            self.tell(&format!("error: failed to run the tool: {error}"));
            INTERNAL_ERROR
        });
        self.note(folder, Some(code));
        say(&format!("reports: {}\n", folder.display()));
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Passes on what the tool says to people, and to the tool the signals that this process gets.
    async fn follow(&self, tool: Command, folder: &Path) -> io::Result<u8> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut tool = tokio::process::Command::from(tool).spawn()?;
        let stderr = tool.stderr.take().expect("it is piped");
        // What cannot be read ends nothing: the tool is waited for
        let mut lines = BufReader::new(stderr).split(b'\n');
        loop {
            let signal = tokio::select! {
                biased;
                _ = interrupt.recv() => "INT",
                _ = terminate.recv() => "TERM",
                _ = hangup.recv() => "HUP",
                line = lines.next_segment() => match line.ok().flatten() {
                    None => break,
                    Some(line) => {
                        self.tell(&String::from_utf8_lossy(&line));
                        self.note(folder, None);
                        continue;
                    }
                },
            };
            if let Some(id) = tool.id() {
                let kill = ["-c", "kill -s $0 $1", signal, &id.to_string()];
                Command::new("sh").args(kill).status()?;
            }
        }
        let code = tool.wait().await?.code();
        Ok(code
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(INTERNAL_ERROR))
    }

    /// Waits until the run has concluded the check, or is over.
    pub(crate) fn outcome(&self, check: &str) -> Outcome {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |known: &mut Known| known.code.is_none() && !known.checks.contains_key(check);
        let known = self.changed.wait_while(known, is_open);
        known.unwrap_or_else(PoisonError::into_inner).outcome(check)
    }

    /// A line that the tool says to people.
    fn tell(&self, line: &str) {
        say(&format!("{line}\n"));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if line.starts_with("error: ") || !known.error.is_empty() {
            known.error += &format!("{line}\n");
        }
    }

    /// Takes in what the record has of the run, which is over if there is an exit code.
    fn note(&self, folder: &Path, code: Option<u8>) {
        let record = File::open(folder.join("record.jsonl")).ok();
        let view = record.and_then(|file| read(io::BufReader::new(file)).ok());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = &view {
            let checks = view.checks.values();
            for check in checks.filter(|check| code.is_some() || check.conclusion.is_some()) {
                let id = check.planned.id.to_string();
                known
                    .checks
                    .entry(id)
                    .or_insert_with(|| Outcome::of(view, check));
            }
        }
        if let Some(code) = code {
            let meaning = view.map_or("it did not begin", |view| exit(&view).as_str());
            let outcome = match code {
                0 => Outcome::Passes,
                _ => Outcome::Fails(format!("{meaning} (exit {code})")),
            };
            known.checks.insert(THE_RUN.to_owned(), outcome);
            known.code = Some(code);
        }
        self.changed.notify_all();
    }
}
