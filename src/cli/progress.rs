//! Writes progress to standard error in a thread of its own: a terminal that takes no more (a pager, a
//! stopped one) must block neither the run nor its signals.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use winconform_core::record::Line;
use winconform_core::report::ci::harmless;
use winconform_core::report::terminal::Detail;
use winconform_core::report::{self, Live};

use super::screen::Screen;
use crate::engine::{Journal, JournalError, Listener};
use crate::transport::locked;

/// The number of lines kept for a slow terminal; further lines are dropped, as the record has them all.
const KEPT: usize = 1000;
/// How long the end of a run waits for the terminal to take the last of them.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the lines of a terminal are drawn anew.
const DRAWN: Duration = Duration::from_millis(200);

pub(crate) struct Progress {
    lines: SyncSender<String>,
    written: Receiver<()>,
    /// How far the run is, where a terminal shows it.
    live: Option<Arc<Mutex<Shown>>>,
}

/// What the terminal shows, as of the last event: between events the machine's clock goes on.
struct Shown {
    live: Live,
    at: Timestamp,
    since: Instant,
    /// Whether nothing more may be drawn.
    over: bool,
}

impl Shown {
    fn note(&mut self, at: Timestamp) {
        (self.at, self.since) = (at, Instant::now());
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let now = self.at.checked_add(self.since.elapsed());
        self.live.lines(now.unwrap_or(self.at), width)
    }
}

impl Progress {
    /// Starts the thread that writes.
    pub(crate) fn start(screen: Screen) -> Self {
        let (lines, to_write) = sync_channel::<String>(KEPT);
        let (done, written) = sync_channel(1);
        let live = screen.draws().then(|| {
            Arc::new(Mutex::new(Shown {
                live: Live::default(),
                at: Timestamp::UNIX_EPOCH,
                since: Instant::now(),
                over: false,
            }))
        });
        let shown = live.clone();
        std::thread::spawn(move || {
            match shown {
                Some(shown) => draw(&to_write, &shown, screen),
                None => {
                    let lines = to_write.iter().take_while(|line| !line.is_empty());
                    lines.for_each(|line| screen.complain(&line));
                }
            }
            let _ = done.send(());
        });
        Self {
            lines,
            written,
            live,
        }
    }

    /// A record that shows each of its lines.
    pub(crate) fn of(
        &self,
        detail: Detail,
        create: impl FnOnce(Listener) -> Result<Journal, JournalError>,
    ) -> Result<Journal, JournalError> {
        let (lines, live) = (self.lines.clone(), self.live.clone());
        let progress = RefCell::new(report::Progress::new(detail, live.is_some()));
        let journal = create(Box::new(move |line: &Line| {
            if let Some(live) = &live {
                let mut shown = locked(live);
                shown.note(line.at);
                shown.live.line(line);
            }
            for text in progress.borrow_mut().tell(line) {
                let _ = lines.try_send(format!("{text}\n"));
            }
        }))?;
        if let Some(live) = self.live.clone() {
            journal.watched_by(Box::new(move |at, doing| {
                let mut shown = locked(&live);
                shown.note(at);
                shown.live.doing(at, doing);
            }));
        }
        Ok(journal)
    }
}

impl Drop for Progress {
    /// However the run ends, what is drawn goes. Waits until the terminal has taken the last lines, at most for
    /// `PATIENCE`.
    fn drop(&mut self) {
        // The record may hold its listener for longer; where no more lines are taken, the flag is seen later
        if let Some(live) = &self.live {
            locked(live).over = true;
        }
        let _ = self.lines.try_send(String::new());
        let _ = self.written.recv_timeout(PATIENCE);
    }
}

/// Writes the lines above those that are drawn again and again, until an empty one comes.
fn draw(to_write: &Receiver<String>, shown: &Mutex<Shown>, screen: Screen) {
    let drawn = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{msg}").expect("a template");
    drawn.set_style(style);
    // A panic writes its message above them
    let (told, bar) = (std::panic::take_hook(), drawn.clone());
    std::panic::set_hook(Box::new(move |info| bar.suspend(|| told(info))));
    let mut last = None::<Instant>;
    loop {
        match to_write.recv_timeout(DRAWN) {
            Ok(line) if line.is_empty() => break,
            Ok(line) => drawn.suspend(|| screen.complain(&line)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if locked(shown).over {
            break;
        }
        if last.is_none_or(|last| last.elapsed() >= DRAWN) {
            let lines = locked(shown).lines(Screen::drawn_width());
            drawn.set_message(harmless(&lines.join("\n")));
            drawn.tick();
            last = Some(Instant::now());
        }
    }
    drawn.finish_and_clear();
    for line in to_write.try_iter() {
        screen.complain(&line);
    }
}
