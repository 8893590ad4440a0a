//! Writes progress to standard error in a thread of its own: a terminal that takes no more (a pager, a
//! stopped one) must block neither the run nor its signals.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use winconform_core::record::Line;
use winconform_core::report;
use winconform_core::report::terminal::Detail;

use super::screen::Screen;
use crate::engine::Listener;

/// The number of lines kept for a slow terminal; further lines are dropped, as the record has them all.
const KEPT: usize = 1000;
/// How long the end of a run waits for the terminal to take the last of them.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Progress {
    lines: SyncSender<String>,
    written: Receiver<()>,
}

impl Progress {
    /// Starts the thread that writes.
    pub(crate) fn start(screen: Screen) -> Self {
        let (lines, to_write) = sync_channel::<String>(KEPT);
        let (done, written) = sync_channel(1);
        std::thread::spawn(move || {
            for line in to_write {
                screen.complain(&line);
                if line.is_empty() {
                    break;
                }
            }
            let _ = done.send(());
        });
        Self { lines, written }
    }

    /// A listener that shows each line of the record.
    pub(crate) fn listener(&self, detail: Detail) -> Listener {
        let lines = self.lines.clone();
        let progress = RefCell::new(report::Progress::new(detail));
        Box::new(move |line: &Line| {
            for text in progress.borrow_mut().tell(line) {
                let _ = lines.try_send(format!("{text}\n"));
            }
        })
    }

    /// Waits until the terminal has taken the last lines, at most for `PATIENCE`.
    pub(crate) fn end(self) {
        // The empty line ends the thread: the record may hold its listener for longer
        let _ = self.lines.try_send(String::new());
        let _ = self.written.recv_timeout(PATIENCE);
    }
}
