//! `winconform run`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ordered_watch as watch;
use tokio::signal::unix::{SignalKind, signal};
use winconform_core::config::Config;
use winconform_core::plan::Selection;
use winconform_core::record::{CheckView, Exit, RunView};
use winconform_core::report::terminal::Detail;
use winconform_core::text::{counted, printable};
use winconform_core::verdict::{Reason, Verdict};

use crate::cli::args::{Ci, ClusterArgs, KeepWhen, ReportFormArgs, ReportFormat, RunArgs};
use crate::cli::commands::diff::baseline;
use crate::cli::commands::report;
use crate::cli::connect::connected_to_change;
use crate::cli::error::CliError;
use crate::cli::progress::Progress;
use crate::cli::screen::Screen;
use crate::cli::shell::cleanup;
use crate::cli::{out, settings};
use crate::cluster::{Cluster, LEASE_NAME, remains};
use crate::engine::{Finished, Journal, Keep, Repeat, RunError, RunOptions, run as run_checks};

pub(crate) async fn run(mut args: RunArgs, screen: &Screen) -> Result<u8, CliError> {
    let ci = args.shown.ci.system();
    args.shown.ci = ci;
    args.out = args.out.or_else(|| ci.folder());
    if ci == Ci::Prow && args.out.is_none() {
        screen.complain(
            "warning: neither --out nor $ARTIFACTS names a folder: no report is written\n",
        );
    }
    let done = Box::pin(begin(args, screen)).await;
    if let Err(error) = &done {
        ci.fail(error, screen);
    }
    done
}

async fn begin(args: RunArgs, screen: &Screen) -> Result<u8, CliError> {
    let (suites, mut settings) = settings::read(&args.on.checks)?;
    if let Some(record) = &args.rerun_failed {
        settings.selection = failed(record, args.out.as_deref(), &settings.config)?;
    }
    let baseline = baseline(&args.shown)?;
    let resume = args.resume.as_deref().map(out::record_at);
    let earlier = resume.as_deref().map(report::load).transpose()?;
    let earlier = earlier.map(Arc::new);
    let record = args.out.as_deref().map(out::prepare).transpose()?;
    let whose = (&args.on.cluster, &args.protected);
    let cluster = connected_to_change(whose, &settings.config, screen).await;
    let cluster = cluster.map_err(|error| unbegun(error, args.out.as_deref(), screen))?;
    let run = new_id();
    let options = RunOptions {
        lease: match &args.id {
            Some(id) => format!("winconform-{id}"),
            None => LEASE_NAME.to_owned(),
        },
        holder: holder(&run),
        run,
        config: settings.config,
        selection: settings.selection,
        deadline: args.deadline,
        repeat: args.soak.map_or(Repeat::Times(args.repeat), Repeat::For),
        resume: earlier.clone(),
        keep: match args.keep {
            KeepWhen::Never => Keep::Never,
            KeepWhen::OnFailure => Keep::OnFailure,
            KeepWhen::Always => Keep::Always,
        },
    };
    for (run, objects) in remains(&cluster.api).await {
        let (run, objects) = (printable(&run), counted(objects, "object"));
        let command = cleanup(&args.on.cluster, &run);
        screen.complain(&format!(
            "warning: run {run} left {objects} here, or is under way; to remove them: {command}\n"
        ));
    }
    let out = args.out.as_deref();
    let (progress, journal) = begun(
        &cluster,
        out,
        record.as_deref(),
        args.shown.detail(),
        *screen,
    )?;
    let signals = count_signals().map_err(CliError::Signals)?;
    let finished = run_checks(&cluster, &suites, &options, &journal, signals).await;
    drop(progress);
    let refused = matches!(finished, Err(RunError::Resume(_)));
    let record = resume.as_deref().filter(|_| refused);
    // Keep the reports beside the very record that the run refused to resume
    let spared = |folder: &&Path| record.is_some_and(|record| out::holds(folder, record));
    let folder = args.out.as_deref().filter(|folder| !spared(folder));
    let finished = reported(&journal, finished, folder, (&args.shown, baseline), screen);
    let view = journal.view();
    let left = view.as_ref().is_ok_and(|view| !view.left().is_empty());
    if left || finished.as_ref().is_ok_and(|finished| finished.abandoned) {
        let what = match view.is_ok_and(|view| view.kept) {
            true => "What the run created is left, as was asked for.",
            false => "Something may be left.",
        };
        let command = cleanup(&args.on.cluster, &options.run);
        let context = printable(&cluster.context);
        screen.complain(&format!(
            "{what} To remove it:\n  {command}\n(of context `{context}`)\n"
        ));
    }
    if let Some(earlier) = &earlier {
        tell_of_remains(earlier, &args.on.cluster, screen);
    }
    Ok(finished?.exit.code())
}

/// The checks of an earlier run that failed, could not be told or were not tested though they should. Another configuration might skip
/// what failed, and pass for a mend.
fn failed(record: &Path, out: Option<&Path>, config: &Config) -> Result<Selection, CliError> {
    let record = out::record_at(record);
    let shown = printable(&record.display().to_string());
    let refuse = |why: &str| Err(CliError::Usage(format!("`--rerun-failed {shown}`: {why}")));
    if out.is_some_and(|folder| out::holds(folder, &record)) {
        return refuse("the new run would replace this record: name another folder with --out");
    }
    let view = report::load(&record)?;
    if view.started.config != config.digest {
        return refuse("that run had another configuration: give the same file with --config");
    }
    let again = |check: &&CheckView| match (check.verdict(), check.reason()) {
        (None | Some(Verdict::Fail | Verdict::Inconclusive), _) => true,
        (_, Some(Reason::Skipped(reason))) => !reason.is_legitimate(),
        _ => false,
    };
    let checks = view.checks.values().filter(again);
    let checks: BTreeSet<_> = checks.map(|check| check.planned.id.clone()).collect();
    if checks.is_empty() {
        return refuse("no check of that run failed, could not be told or was not tested");
    }
    Ok(Selection::again(&view.started.run, checks))
}

/// Creates the record of a run, and its display of progress. The run's reports will replace those in
/// `folder`.
pub(crate) fn begun(
    cluster: &Cluster,
    folder: Option<&Path>,
    record: Option<&Path>,
    detail: Detail,
    screen: Screen,
) -> Result<(Progress, Journal), CliError> {
    let progress = Progress::start(screen);
    let superseded = folder.map(out::reports).unwrap_or_default();
    let env = cluster.api.env().clone();
    let create = |listener| Journal::create(env, record, superseded, listener);
    let journal = progress.of(detail, create);
    let journal = journal.map_err(|error| CliError::Run(RunError::Journal(error)))?;
    Ok((progress, journal))
}

pub(crate) fn reported(
    journal: &Journal,
    finished: Result<Finished, RunError>,
    folder: Option<&Path>,
    (shown, baseline): (&ReportFormArgs, Option<String>),
    screen: &Screen,
) -> Result<Finished, CliError> {
    // A refused run has nothing to report, least of all another run's results
    if let Err(
        refused @ (RunError::Lease { .. }
        | RunError::Configuration(_)
        | RunError::Selection(_)
        | RunError::Resume(_)),
    ) = finished
    {
        return Err(unbegun(CliError::Run(refused), folder, screen));
    }

    // The report covers what is on record, however the run ended
    let mut view = journal.view();
    let in_no_file = folder.is_none();
    let nothing = finished
        .as_ref()
        .is_ok_and(|finished| finished.exit == Exit::NothingSelected);
    let folder = match folder {
        Some(folder) if nothing => {
            withdraw(folder, screen);
            None
        }
        folder => folder,
    };
    let finished = finished.map_err(CliError::Run);
    let mut unwritten = None;
    if let Ok(view) = &mut view {
        view.process = finished.as_ref().err().map(CliError::exit_code);
        view.unwritten = in_no_file;
        view.baseline = baseline;
        if let Some(folder) = folder {
            unwritten = shown.ci.write(folder, view).err();
            view.process = view.process.or(unwritten.as_ref().map(CliError::exit_code));
        }
        let has_report = !view.checks.is_empty() || view.planned || finished.is_ok();
        if has_report || shown.format != ReportFormat::Text {
            unwritten = screen.report(view, shown).err().or(unwritten);
            shown.ci.tell(view, folder, screen);
        }
    }
    let finished = finished?;
    unwritten.map_or(Ok(finished), Err)
}

/// A run that did not begin has no reports, and an earlier run's must not pass for them.
fn unbegun(error: CliError, folder: Option<&Path>, screen: &Screen) -> CliError {
    if let Some(folder) = folder {
        withdraw(folder, screen);
    }
    error
}

/// Removes an earlier run's reports, and says so.
fn withdraw(folder: &Path, screen: &Screen) {
    let withdrawn = out::withdraw(folder);
    if withdrawn.iter().any(|(_, removed)| removed.is_ok()) {
        let folder = printable(&folder.display().to_string());
        screen.complain(&format!(
            "The reports of an earlier run are removed from `{folder}`; its record stays, from which \
             `winconform report` makes them again.\n"
        ));
    }
    for (report, removed) in withdrawn {
        if let Err(why) = removed {
            let report = printable(&report.display().to_string());
            screen.complain(&format!(
                "`{report}` is of an earlier run, and could not be removed: {why}\n"
            ));
        }
    }
}

/// Says what the earlier run may have left in the cluster, which this one does not touch.
fn tell_of_remains(earlier: &RunView, cluster: &ClusterArgs, screen: &Screen) {
    let left = earlier.left();
    if !left.is_empty() {
        let run = printable(&earlier.started.run);
        let left = counted(left.len(), "object");
        let command = cleanup(cluster, &earlier.started.run);
        screen.complain(&format!(
            "Run {run}, which this run resumed, may have left the {left} that it created, and their pods. To remove \
             them:\n  {command}\n"
        ));
    }
}

/// A run's id: a DNS label that begins with a letter.
pub(crate) fn new_id() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let random = rand::random::<u64>();
    let letters = (0..7).map(|n| char::from(LETTERS[(random.to_le_bytes()[n] & 31) as usize]));
    std::iter::once('r').chain(letters).collect()
}

/// The holder of the Lease: this machine, this process, this run.
pub(crate) fn holder(run: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "unknown-host",
        host => host,
    };
    format!("{host}/{}/{run}", std::process::id())
}

/// What a signal requests after so many interrupts: 1 to end the run, 2 to abandon it, which takes a second
/// Ctrl-C. Runners and service managers send several signals for one end.
fn asked_by(signal: SignalKind, interrupts: &mut u32) -> u32 {
    *interrupts += u32::from(signal == SignalKind::interrupt());
    (*interrupts).clamp(1, 2)
}

/// Listens for SIGINT, SIGTERM and SIGHUP. The receiver holds 0 for nothing yet, else as [`asked_by`].
pub(crate) fn count_signals() -> std::io::Result<watch::Receiver<u32>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // The terminal is closed, or its connection is lost
    let mut hangup = signal(SignalKind::hangup())?;
    let (asks, requested) = watch::channel(0);
    tokio::spawn(async move {
        let mut interrupts = 0;
        loop {
            let signal = tokio::select! {
                biased;
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hangup.recv() => SignalKind::hangup(),
                () = asks.closed() => return,
            };
            asks.send_replace(asked_by(signal, &mut interrupts));
        }
    });
    Ok(requested)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_after_an_interrupt_alone_abandons() {
        let [int, term, hup] = [2, 15, 1].map(SignalKind::from_raw);
        for (signals, asked) in [
            (vec![hup, hup, term, term], 1),
            // GitHub's runner ends a job this way
            (vec![int, term], 1),
            (vec![term, int], 1),
            (vec![hup, int, term, int], 2),
        ] {
            let mut interrupts = 0;
            let last = signals
                .iter()
                .map(|signal| asked_by(*signal, &mut interrupts));
            assert_eq!(last.max(), Some(asked), "{signals:?}");
        }
    }
}
