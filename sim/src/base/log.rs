//! The output of one run of a container: lines, each with its time and stream, as containerd writes them
//! (containerd 2.1, `internal/cri/io/logger.go`).
//!
//! Readers get a line once it is complete; they get a last line without an end when the run is over. The log
//! is bounded and drops the oldest lines first. A reader keeps its position and waits for more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use jiff::Timestamp;
use ordered_watch as watch;

use crate::base::clock::Wall;
use crate::base::lock::locked;

/// kubelet, `containerLogMaxSize`: how many bytes one log file holds before it is rotated.
const MOST_BYTES: usize = 10 << 20;

/// containerd, `max_container_log_line_size`: containerd writes longer lines in parts.
const LONGEST_LINE: usize = 16 << 10;

/// The stream that a program prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Error,
}

/// A line with its end, or a part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: Timestamp,
    pub(crate) stream: Stream,
    /// The text, which ends with `\n` if it is the last part of a line.
    pub(crate) bytes: Bytes,
}

/// The log of one run of a container, shared between its writer and its readers.
#[derive(Debug)]
pub(crate) struct Log {
    kept: Mutex<Kept>,
    grown: watch::Sender<()>,
    pub(crate) wall: Wall,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<Line>,
    /// How many lines the log dropped before the first one it keeps.
    gone: u64,
    bytes: usize,
    /// What each stream has printed since its last complete line.
    begun: [Vec<u8>; 2],
    ended: bool,
}

impl Kept {
    fn push(&mut self, stream: Stream, bytes: Bytes, at: Timestamp, most: usize) {
        self.bytes += bytes.len();
        self.lines.push_back(Line { at, stream, bytes });
        while self.bytes > most
            && let Some(line) = self.lines.pop_front()
        {
            self.bytes -= line.bytes.len();
            self.gone += 1;
        }
    }
}

impl Log {
    pub(crate) fn new(wall: Wall) -> Arc<Self> {
        Arc::new(Self {
            wall,
            kept: Mutex::default(),
            grown: watch::Sender::new(()),
        })
    }

    /// Writes what a program prints now; ignores it once the run is over.
    pub(crate) fn print(&self, stream: Stream, bytes: &[u8]) {
        self.print_at(stream, bytes, self.wall.time(), MOST_BYTES);
    }

    fn print_at(&self, stream: Stream, bytes: &[u8], at: Timestamp, most: usize) {
        let mut kept = locked(&self.kept);
        if bytes.is_empty() || kept.ended {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut line = std::mem::take(&mut kept.begun[stream as usize]);
            line.extend_from_slice(piece);
            let whole = line.ends_with(b"\n");
            let mut line = Bytes::from(line);
            while line.len() > LONGEST_LINE {
                let part = line.split_to(LONGEST_LINE);
                kept.push(stream, part, at, most);
            }
            match whole {
                true => kept.push(stream, line, at, most),
                false => kept.begun[stream as usize] = line.to_vec(),
            }
        }
        drop(kept);
        self.grown.send_replace(());
    }

    /// Ends the run: writes incomplete lines, and lets readers reach the end.
    pub(crate) fn end(&self) {
        let now = self.wall.time();
        let mut kept = locked(&self.kept);
        for stream in [Stream::Out, Stream::Error] {
            let rest = std::mem::take(&mut kept.begun[stream as usize]);
            if !rest.is_empty() {
                kept.push(stream, rest.into(), now, MOST_BYTES);
            }
        }
        kept.ended = true;
        drop(kept);
        self.grown.send_replace(());
    }

    /// A reader that starts at the first kept line.
    pub(crate) fn from_start(self: &Arc<Self>) -> Reader {
        self.from_last(usize::MAX)
    }

    /// A reader that starts before the last `lines` lines.
    pub(crate) fn from_last(self: &Arc<Self>, lines: usize) -> Reader {
        let kept = locked(&self.kept);
        Reader {
            grown: self.grown.subscribe(),
            next: kept.gone + kept.lines.len().saturating_sub(lines) as u64,
            log: Arc::clone(self),
        }
    }
}

/// A position in a log.
pub(crate) struct Reader {
    log: Arc<Log>,
    next: u64,
    grown: watch::Receiver<()>,
}

impl Reader {
    /// The next line, if there is one; skips lines that the log dropped unread.
    pub(crate) fn next(&mut self) -> Option<Line> {
        self.step().0
    }

    /// Waits for the next line; `None` when the run is over.
    pub(crate) async fn wait(&mut self) -> Option<Line> {
        loop {
            self.grown.mark_unchanged();
            match self.step() {
                (None, false) => {}
                (line, _) => return line,
            }
            // The sender lives in the log
            if self.grown.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The next line, if there is one, and whether the run is over.
    fn step(&mut self) -> (Option<Line>, bool) {
        let kept = locked(&self.log.kept);
        let index = self.next.saturating_sub(kept.gone);
        let at = |index: u64| kept.lines.get(usize::try_from(index).ok()?).cloned();
        let line = at(index);
        if line.is_some() {
            self.next = kept.gone + index + 1;
        }
        (line, kept.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(mut reader: Reader) -> Vec<String> {
        std::iter::from_fn(|| reader.next())
            .map(|line| String::from_utf8_lossy(&line.bytes).into_owned())
            .collect()
    }

    #[test]
    fn a_line_is_told_when_it_is_whole_or_the_run_is_over() {
        let log = Log::new(Wall::default());
        log.print(Stream::Out, b"a\nb");
        log.print(Stream::Error, b"oh\r\n");
        assert_eq!(texts(log.from_start()), ["a\n", "oh\r\n"]);
        log.print(Stream::Out, b"c\nlast");
        assert_eq!(texts(log.from_last(1)), ["bc\n"]);
        log.end();
        log.print(Stream::Out, b"too late\n");
        assert_eq!(texts(log.from_last(2)), ["bc\n", "last"]);
        assert_eq!(texts(log.from_last(0)), [""; 0]);
    }

    #[test]
    fn long_lines_come_in_parts_and_old_ones_go() {
        let log = Log::new(Wall::default());
        log.print(Stream::Out, &vec![b'x'; LONGEST_LINE + 1]);
        log.print(Stream::Out, b"\n");
        let lengths: Vec<_> = texts(log.from_start()).iter().map(String::len).collect();
        assert_eq!(lengths, [LONGEST_LINE, 2]);

        let log = Log::new(Wall::default());
        let mut early = log.from_start();
        for text in [b"one\n", b"two\n", b"six\n"] {
            log.print_at(Stream::Out, text, Timestamp::UNIX_EPOCH, 8);
        }
        let next = early.next().expect("a line");
        assert_eq!(next.bytes, "two\n", "what has gone is passed over");
        assert_eq!(texts(log.from_start()), ["two\n", "six\n"]);
    }

    #[tokio::test]
    async fn readers_wait_for_more_until_the_end() {
        let log = Log::new(Wall::default());
        log.print(Stream::Out, b"a\n");
        let mut reader = log.from_start();
        assert_eq!(reader.wait().await.expect("a line").bytes, "a\n");
        let (waited, ()) = tokio::join!(reader.wait(), async {
            log.print(Stream::Error, b"b");
            log.end();
        });
        assert_eq!(waited.expect("a line").bytes, "b");
        assert_eq!(reader.wait().await, None);
    }
}
