//! Writes the record: one line per event, which has left the process before anything else happens.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use ordered_watch as watch;
use tokio::time::Instant;
use winconform_core::record::{Event, Fold, Line, RecordError, RunView, redact, redacted, to_line};
use winconform_core::report::Doing;

use crate::transport::{Env, locked};

/// Receives each line as it is written, besides the file: the terminal's progress.
pub type Listener = Box<dyn Fn(&Line) + Send>;

/// Receives what the run is doing, which is on no record.
pub type Watcher = Box<dyn Fn(Timestamp, Doing) + Send>;

/// The record of the run under way. Clones write to the same one.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    env: Env,
    /// The path for the file while an earlier run's record is there, and that record, which stays locked.
    earlier: Option<(PathBuf, File)>,
    superseded: Vec<PathBuf>,
    /// Verdicts that may not be on the disk yet.
    unsynced: usize,
    /// The run so far, from which reports are built even when the file fails; or why it is no record.
    fold: Result<Fold, RecordError>,
    seq: u64,
    /// When the first event was written, by a monotonic clock.
    began: Option<Instant>,
    file: Option<(File, PathBuf)>,
    failure: watch::Sender<Option<JournalError>>,
    listener: Listener,
    watcher: Option<Watcher>,
}

/// Why an event is not in the record's file.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Another run writes it.
    #[error("the record `{}` is being written by another run: give each its own folder", path.display())]
    InUse { path: PathBuf },
    /// The file cannot be created.
    #[error("the record `{}` cannot be created", path.display())]
    Create {
        path: PathBuf,
        source: Arc<std::io::Error>,
    },
    /// The file could not be written.
    #[error("the record `{}` cannot be written", path.display())]
    Write {
        path: PathBuf,
        source: Arc<std::io::Error>,
    },
    /// An event cannot be expressed as JSON.
    #[error("an event cannot be expressed as JSON")]
    Express(#[source] Arc<serde_json::Error>),
}

impl Journal {
    /// A record in memory and, with a path, in a file there that only its owner may read. The record of an
    /// earlier run and its reports, `superseded`, stay until [`Journal::publish`]; until then the new record
    /// is beside it. A symbolic link is not followed.
    pub fn create(
        env: Env,
        path: Option<&Path>,
        superseded: Vec<PathBuf>,
        listener: Listener,
    ) -> Result<Self, JournalError> {
        let mut earlier = None;
        let file = match path {
            None => None,
            Some(path) => {
                let failed = |source| JournalError::Create {
                    path: path.to_owned(),
                    source: Arc::new(source),
                };
                let there = there(path).map_err(failed)?;
                if let Some(file) = &there {
                    lock(file, path)?;
                }
                let file = match there {
                    None => (create_new(path, path)?, path.to_owned()),
                    Some(file) if file.metadata().map_err(failed)?.is_file() => {
                        earlier = Some((path.to_owned(), file));
                        let beside = beside(path);
                        // A killed run may have left a file there
                        let _ = std::fs::remove_file(&beside);
                        (create_new(&beside, path)?, beside)
                    }
                    // Such as a device, which keeps nothing
                    Some(file) => (file, path.to_owned()),
                };
                lock(&file.0, path)?;
                Some(file)
            }
        };
        let inner = Inner {
            env,
            earlier,
            superseded,
            unsynced: 0,
            fold: Ok(Fold::default()),
            seq: 0,
            began: None,
            file,
            failure: watch::Sender::new(None),
            listener,
            watcher: None,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
        })
    }

    /// Writes an event, without what looks like a secret. An error means that it is not in the file: then
    /// nothing may happen that must be on record before it happens. The record in memory goes on.
    pub fn write(&self, event: Event) -> Result<(), JournalError> {
        let inexpressible = |error| JournalError::Express(Arc::new(error));
        let event = redacted(event).map_err(inexpressible)?;
        let mut inner = locked(&self.inner);
        let line = Line {
            seq: inner.seq,
            at: inner.env.now(),
            event,
        };
        inner.began.get_or_insert_with(Instant::now);
        let text = to_line(&line).map_err(inexpressible)?;
        inner.seq += 1;
        let inner = &mut *inner;
        let sync = is_to_be_synced(&line.event, &mut inner.unsynced);
        let mut written = inner.failure.borrow().clone().map_or(Ok(()), Err);
        if let (Ok(()), Some((file, _))) = (&written, &mut inner.file) {
            let result = file.write_all(text.as_bytes()).and_then(|()| match sync {
                true => synced(file.sync_data()),
                false => Ok(()),
            });
            written = result.map_err(|source| inner.fail(source));
        }
        if let Ok(fold) = &mut inner.fold
            && let Err(error) = fold.add(line.clone())
        {
            inner.fold = Err(error);
        }
        // Last, so that its panic leaves the record whole
        (inner.listener)(&line);
        written
    }

    /// Shows from now on what the run is doing.
    pub fn watched_by(&self, watcher: Watcher) {
        locked(&self.inner).watcher = Some(watcher);
    }

    /// Shows what the run is doing, without what looks like a secret.
    /// Nothing is made where nothing watches.
    pub(crate) fn show(&self, doing: impl FnOnce() -> Doing) {
        let inner = locked(&self.inner);
        if let Some(watcher) = &inner.watcher {
            let doing = match doing() {
                Doing::Waits(key, why) => Doing::Waits(key, redact(&why)),
                other => other,
            };
            watcher(inner.env.now(), doing);
        }
    }

    /// How long ago the first event was written.
    pub(crate) fn elapsed(&self) -> Duration {
        let began = locked(&self.inner).began;
        began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Replaces an earlier run's record, and removes its reports.
    pub fn publish(&self) -> Result<(), JournalError> {
        let mut inner = locked(&self.inner);
        let inner = &mut *inner;
        let superseded = std::mem::take(&mut inner.superseded);
        if inner.file.is_none() {
            return Ok(());
        }
        let mut published = superseded
            .iter()
            .map(std::fs::remove_file)
            .filter(
                |removed| !matches!(removed, Err(e) if e.kind() == std::io::ErrorKind::NotFound),
            )
            .collect::<std::io::Result<()>>();
        if let (Some((path, _)), Some((file, beside))) = (&inner.earlier, &mut inner.file)
            && published.is_ok()
        {
            let renamed = file
                .sync_data()
                .and_then(|()| std::fs::rename(&*beside, path));
            if renamed.is_ok() {
                beside.clone_from(path);
                inner.earlier = None;
            }
            published = renamed;
        }
        // The folder holds the name of a new file
        if let (Some((_, path)), Ok(())) = (&inner.file, &published) {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            published = File::open(folder.unwrap_or(Path::new(".")))
                .and_then(|folder| synced(folder.sync_all()));
        }
        published.map_err(|source| inner.fail(source))
    }

    /// The run so far, as a reader of the file has it.
    pub fn view(&self) -> Result<RunView, RecordError> {
        let inner = locked(&self.inner);
        inner.fold.as_ref().map_err(Clone::clone)?.view().cloned()
    }

    /// Why the file is incomplete, if it is.
    pub fn failure(&self) -> Option<JournalError> {
        locked(&self.inner).failure.borrow().clone()
    }

    /// Waits until the file cannot be written any more.
    pub async fn failed(&self) {
        let mut failure = locked(&self.inner).failure.subscribe();
        // The sender lives as long as `self`
        let _ = failure.wait_for(Option::is_some).await;
    }
}

impl Inner {
    fn fail(&mut self, source: std::io::Error) -> JournalError {
        let path = self.file.as_ref().map(|(_, path)| path.clone());
        let failure = JournalError::Write {
            path: path.unwrap_or_default(),
            source: Arc::new(source),
        };
        self.failure.send_replace(Some(failure.clone()));
        failure
    }
}

impl Drop for Inner {
    /// Removes an unpublished record that is beside an earlier one.
    fn drop(&mut self) {
        if let (Some(_), Some((_, beside))) = (&self.earlier, &self.file) {
            // The next run replaces what cannot be removed
            let _ = std::fs::remove_file(beside);
        }
    }
}

/// The result of a sync; a device has nothing to sync.
fn synced(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    })
}

/// How many verdicts are synced at once: after a power cut a few checks are observed again.
const VERDICTS: usize = 32;

/// Whether the file is synced after an event: nothing is created before its intent is on the disk.
fn is_to_be_synced(event: &Event, unsynced: &mut usize) -> bool {
    let sync = match event {
        Event::Intent(_) | Event::TornDown(_) | Event::RunEnded(_) => true,
        Event::Verdict { .. } => {
            *unsynced += 1;
            *unsynced >= VERDICTS
        }
        _ => false,
    };
    if sync {
        *unsynced = 0;
    }
    sync
}

/// Where a record is written while an earlier one is in its place.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("jsonl.part")
}

/// The file at a path, opened for writing, if there is one; an error for a symbolic link.
fn there(path: &Path) -> std::io::Result<Option<File>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            Err(std::io::Error::other("a symbolic link is there"))
        }
        Ok(_) => File::options().write(true).open(path).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A new file that only its owner may read, for the record at `path`. A file that is there already belongs to
/// another run, which created it meanwhile. `create_new` follows no symbolic link.
fn create_new(file: &Path, path: &Path) -> Result<File, JournalError> {
    let mut options = File::options();
    let created = options.write(true).create_new(true).mode(0o600).open(file);
    let path = path.to_owned();
    created.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => JournalError::InUse { path },
        _ => JournalError::Create {
            path,
            source: Arc::new(error),
        },
    })
}

/// Locks a record. Not every file can be locked; one that is locked already belongs to another run.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Err(std::fs::TryLockError::WouldBlock) => Err(JournalError::InUse {
            path: path.to_owned(),
        }),
        Ok(()) | Err(std::fs::TryLockError::Error(_)) => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use winconform_core::fixture::FixtureName;
    use winconform_core::method::ErrorKind;
    use winconform_core::record::{FixtureOutcome, SCHEMA, read};

    #[test]
    fn intents_are_synced_at_once_and_verdicts_many_at_a_time() {
        let intent = r#"{"intent": {"kind": "Pod", "namespace": "a", "name": "b"}}"#;
        let verdict = r#"{"verdict": {"check": "env.hybrid-nodes", "conclusion": {"verdict": "skip",
            "reason": {"skipped": {"not-applicable":{"reason": "a"}}}, "flaky": false}}}"#;
        let [intent, verdict] =
            [intent, verdict].map(|text| serde_json::from_str::<Event>(text).expect("an event"));
        let mut unsynced = 0;
        let mut synced = |event: &Event| is_to_be_synced(event, &mut unsynced);
        assert!(synced(&intent) && !synced(&started()) && synced(&intent));
        for _ in 1..VERDICTS {
            assert!(!synced(&verdict));
        }
        assert!(synced(&verdict) && !synced(&verdict));
    }

    fn started() -> Event {
        let started = serde_json::json!({"schema": SCHEMA, "version": "0", "run": "r1",
            "context": "c", "suites": "d"});
        Event::RunStarted(serde_json::from_value(started).expect("a start"))
    }

    /// A journal in memory, of a run that has started.
    pub(crate) fn of_run() -> Journal {
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(|_| {}));
        let journal = journal.expect("in memory");
        journal.write(started()).expect("written");
        journal
    }

    fn create_at(path: &Path, superseded: Vec<PathBuf>) -> Result<Journal, JournalError> {
        Journal::create(Env::system(), Some(path), superseded, Box::new(|_| {}))
    }

    #[test]
    fn an_earlier_record_stays_until_the_run_is_let_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let (record, report) = (folder.path().join("record"), folder.path().join("report"));
        std::fs::write(&record, "earlier").expect("written");
        std::fs::write(&report, "earlier").expect("written");
        let create = || create_at(&record, vec![report.clone()]);
        let journal = create().expect("nobody else writes it");
        journal.write(started()).expect("kept");
        assert_eq!(std::fs::read_to_string(&record).expect("there"), "earlier");
        assert!(matches!(create(), Err(JournalError::InUse { .. })));
        journal.publish().expect("published");
        assert!(!report.exists());
        let published = std::fs::read_to_string(&record).expect("there");
        assert_eq!(read(published.as_bytes()), journal.view());
    }

    #[test]
    fn a_record_is_its_owners_and_follows_no_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let [record, victim] = ["record.jsonl", "victim"].map(|name| folder.path().join(name));
        let create = || create_at(&record, Vec::new());
        std::fs::write(&victim, "precious").expect("written");
        std::os::unix::fs::symlink(&victim, &record).expect("linked");
        assert!(matches!(create(), Err(JournalError::Create { .. })));
        std::fs::remove_file(&record).expect("removed");
        std::os::unix::fs::symlink(&victim, beside(&record)).expect("linked");
        std::fs::write(&record, "earlier").expect("written");
        let journal = create().expect("it is created");
        journal.write(started()).expect("written");
        journal.publish().expect("published");
        assert_eq!(std::fs::read_to_string(&victim).expect("there"), "precious");
        let metadata = std::fs::metadata(&record).expect("there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert!(matches!(create(), Err(JournalError::InUse { .. })));
    }

    #[test]
    fn a_run_that_is_not_let_in_leaves_the_earlier_record_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = folder.path().join("record.jsonl");
        std::fs::write(&record, "earlier").expect("written");
        let journal = create_at(&record, Vec::new()).expect("it is created");
        journal.write(started()).expect("written");
        assert!(beside(&record).exists());
        drop(journal);
        assert!(!beside(&record).exists());
        assert_eq!(std::fs::read_to_string(&record).expect("there"), "earlier");
    }

    #[test]
    fn what_enters_the_record_has_no_secrets() {
        let (lines, received) = std::sync::mpsc::channel();
        let listener = move |line: &Line| lines.send(format!("{line:?}")).expect("received");
        let journal = Journal::create(Env::system(), None, Vec::new(), Box::new(listener))
            .expect("in memory");
        let error = "pulling https://bob:hunter2pw@a.example/b?sig=SECRET&token=SECRET failed";
        let key = FixtureName::NAMESPACES.in_pool(None);
        let error = ErrorKind::ImagePull.error(error);
        let event = Event::Fixture {
            key,
            outcome: FixtureOutcome::Failed(error),
            took_ms: 0,
        };
        journal.write(started()).expect("written");
        journal.write(event).expect("written");
        let view = format!("{:?}", journal.view());
        for text in [view, received.iter().nth(1).expect("a line")] {
            let shown = "https://***@a.example/b?sig=***&token=***";
            assert!(text.contains(shown), "{text}");
            let is_hidden = |secret: &&str| !text.contains(secret);
            assert!(["hunter2pw", "SECRET"].iter().all(is_hidden), "{text}");
        }
    }

    #[test]
    fn a_full_disk_is_told_and_the_record_in_memory_goes_on() {
        let journal = create_at(Path::new("/dev/full"), Vec::new()).expect("the device is there");
        let written = journal.write(started());
        assert!(matches!(written, Err(JournalError::Write { .. })));
        let by = "test".to_owned();
        assert!(journal.write(Event::Interrupted { by }).is_err());
        let view = journal.view().expect("whole in memory");
        assert_eq!(view.interrupted.as_deref(), Some("test"));
    }
}
