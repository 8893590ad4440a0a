//! The record being written: one line per event, out of the process before anything follows.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use winconform_core::record::{Event, Line, to_line};

use crate::transport::now;

/// What takes each line as it happens, besides the file: the terminal's progress.
pub type Listener = Box<dyn Fn(&Line) + Send>;

/// The record of the run under way. Clones write to the same one.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    failed: watch::Sender<bool>,
    /// Whether the file still holds an earlier run's record.
    pending: bool,
    superseded: Vec<PathBuf>,
    /// The whole record, from which the reports are made even when its file fails.
    text: String,
    seq: u64,
    /// When the first event was written, by a clock that nobody sets.
    began: Option<Instant>,
    file: Option<(File, PathBuf)>,
    failure: Option<JournalError>,
    listener: Listener,
}

/// Why an event is not in the record's file.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Another run writes it.
    #[error("the record `{}` is being written by another run: give each its own folder", path.display())]
    InUse {
        /// Its path.
        path: PathBuf,
    },
    /// The file cannot be created.
    #[error("the record `{}` cannot be created", path.display())]
    Create {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// The file took no more.
    #[error("the record `{}` cannot be written", path.display())]
    Write {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: Arc<std::io::Error>,
    },
    /// An event is not expressible.
    #[error("an event cannot be expressed as JSON")]
    Express(#[source] Arc<serde_json::Error>),
}

impl Journal {
    /// A record in memory and, when a path is given, in a file there. The record of an earlier
    /// run and what was made of it, `superseded`, stay until [`Journal::publish`].
    pub fn create(
        path: Option<&Path>,
        superseded: Vec<PathBuf>,
        listener: Listener,
    ) -> Result<Self, JournalError> {
        let mut pending = false;
        let file = match path {
            None => None,
            Some(path) => {
                let failed = |source| JournalError::Create {
                    path: path.to_owned(),
                    source: Arc::new(source),
                };
                let mut options = File::options();
                let file = options.create(true).write(true).truncate(false).open(path);
                let file = file.map_err(failed)?;
                // Not every file can be locked; one that is locked is another run's
                if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
                    let path = path.to_owned();
                    return Err(JournalError::InUse { path });
                }
                let metadata = file.metadata().map_err(failed)?;
                pending = metadata.is_file() && metadata.len() > 0;
                Some((file, path.to_owned()))
            }
        };
        let (failed, _) = watch::channel(false);
        let inner = Inner {
            failed,
            pending,
            superseded,
            text: String::new(),
            seq: 0,
            began: None,
            file,
            failure: None,
            listener,
        };
        Ok(Self {
            inner: Arc::new(Mutex::new(inner)),
        })
    }

    /// Writes an event. An error means it is not in the file: nothing that must be on record
    /// before it happens may happen. The record in memory goes on.
    pub fn write(&self, event: Event) -> Result<(), JournalError> {
        let mut inner = self.lock();
        let line = Line {
            seq: inner.seq,
            at: now(),
            event,
        };
        inner.began.get_or_insert_with(Instant::now);
        let text = to_line(&line).map_err(|error| JournalError::Express(Arc::new(error)))?;
        inner.seq += 1;
        inner.text.push_str(&text);
        (inner.listener)(&line);
        if let Some(failure) = &inner.failure {
            return Err(failure.clone());
        }
        let pending = inner.pending;
        if let Some((file, path)) = &mut inner.file
            && !pending
            && let Err(source) = file.write_all(text.as_bytes())
        {
            let failure = JournalError::Write {
                path: path.clone(),
                source: Arc::new(source),
            };
            inner.failed.send_replace(true);
            inner.failure = Some(failure.clone());
            return Err(failure);
        }
        Ok(())
    }

    /// How long ago the first event was written.
    pub(super) fn elapsed(&self) -> Duration {
        self.lock()
            .began
            .map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Takes the place of an earlier run's record and reports: this run has been let in.
    pub fn publish(&self) -> Result<(), JournalError> {
        let mut inner = self.lock();
        let superseded = std::mem::take(&mut inner.superseded);
        let pending = std::mem::take(&mut inner.pending);
        let inner = &mut *inner;
        let Some((file, path)) = &mut inner.file else {
            return Ok(());
        };
        let published = superseded
            .iter()
            .map(std::fs::remove_file)
            .filter(
                |removed| !matches!(removed, Err(e) if e.kind() == std::io::ErrorKind::NotFound),
            )
            .collect::<std::io::Result<()>>()
            .and_then(|()| match pending {
                true => file
                    .set_len(0)
                    .and_then(|()| file.write_all(inner.text.as_bytes())),
                false => Ok(()),
            });
        published.map_err(|source| {
            let failure = JournalError::Write {
                path: path.clone(),
                source: Arc::new(source),
            };
            inner.failure = Some(failure.clone());
            inner.failed.send_replace(true);
            failure
        })
    }

    /// The record so far.
    pub fn text(&self) -> String {
        self.lock().text.clone()
    }

    /// Why the file is not whole, if it is not.
    pub fn failure(&self) -> Option<JournalError> {
        self.lock().failure.clone()
    }

    /// Waits until the file takes no more.
    pub async fn failed(&self) {
        let mut failed = self.lock().failed.subscribe();
        // The sender lives as long as `self`
        let _ = failed.wait_for(|failed| *failed).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // A panic while writing leaves at worst one line too few: the rest is still worth having
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use winconform_core::record::{SCHEMA, Started, read};

    fn started() -> Event {
        Event::RunStarted(Started {
            schema: SCHEMA,
            version: "0".to_owned(),
            run: "r".to_owned(),
            context: "c".to_owned(),
            profile: winconform_core::config::Profile::default(),
            config: None,
            selection: Vec::new(),
            unchecked: Vec::new(),
            waivers: Vec::new(),
            suites: "d".to_owned(),
        })
    }

    #[test]
    fn an_earlier_record_stays_until_the_run_is_let_in() {
        let folder = tempfile::tempdir().expect("a folder");
        let (record, report) = (folder.path().join("record"), folder.path().join("report"));
        std::fs::write(&record, "earlier").expect("written");
        std::fs::write(&report, "earlier").expect("written");
        let create = || Journal::create(Some(&record), vec![report.clone()], Box::new(|_| {}));
        let journal = create().expect("nobody else writes it");
        journal.write(started()).expect("kept");
        assert_eq!(std::fs::read_to_string(&record).expect("there"), "earlier");
        assert!(matches!(create(), Err(JournalError::InUse { .. })));
        journal.publish().expect("published");
        assert!(!report.exists());
        assert_eq!(
            std::fs::read_to_string(&record).expect("there"),
            journal.text()
        );
    }

    #[test]
    fn a_full_disk_is_told_and_the_record_in_memory_goes_on() {
        let journal = Journal::create(Some(Path::new("/dev/full")), Vec::new(), Box::new(|_| {}))
            .expect("the device is there");
        assert!(matches!(
            journal.write(started()),
            Err(JournalError::Write { .. })
        ));
        let by = "test".to_owned();
        assert!(journal.write(Event::Interrupted { by }).is_err());
        let view = read(&journal.text()).expect("whole in memory");
        assert_eq!(view.interrupted.as_deref(), Some("test"));
    }
}
