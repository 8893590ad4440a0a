//! What programs leave: what they print and when, and how they end.

use std::time::Duration;

use super::Started;
use crate::base::log::Stream;

/// What a program that has ended leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// As the runtime tells it: 32 bits without sign.
    pub(crate) code: u32,
    /// Simulated time.
    pub(crate) took: Duration,
    /// Time it was asked to sleep, which passes as it does on the wall.
    pub(crate) slept: Duration,
    /// How much was printed before the end, in the order of time.
    pub(crate) marks: Vec<Mark>,
}

/// How much a program had printed at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) stdout: usize,
    pub(crate) stderr: usize,
    pub(crate) took: Duration,
    pub(crate) slept: Duration,
}

/// What a program prints at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Simulated time since the piece before.
    pub(crate) took: Duration,
    /// Time slept since the piece before.
    pub(crate) slept: Duration,
    pub(crate) stream: Stream,
    pub(crate) bytes: Vec<u8>,
}

impl Ran {
    pub(crate) fn code(code: u32) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    pub(crate) fn prints(text: impl Into<Vec<u8>>) -> Self {
        Self {
            stdout: text.into(),
            ..Self::default()
        }
    }

    pub(crate) fn complains(text: impl Into<String>, code: u32) -> Self {
        Self {
            stderr: text.into().into_bytes(),
            code,
            ..Self::default()
        }
    }

    /// The same with another code.
    pub(crate) fn ending(self, code: u32) -> Self {
        Self { code, ..self }
    }

    /// A pause that passes as it does on the wall.
    pub(crate) fn sleeps(slept: Duration) -> Self {
        Self {
            slept,
            ..Self::default()
        }
    }

    /// This one, then that one: outputs and times add up, the last exit code counts.
    pub(crate) fn then(mut self, next: Self) -> Self {
        self.mark();
        for mark in &next.marks {
            self.marks.push(Mark {
                stdout: self.stdout.len() + mark.stdout,
                stderr: self.stderr.len() + mark.stderr,
                took: self.took.saturating_add(mark.took),
                slept: self.slept.saturating_add(mark.slept),
            });
        }
        self.stdout.extend(next.stdout);
        self.stderr.extend(next.stderr);
        self.code = next.code;
        self.took = self.took.saturating_add(next.took);
        self.slept = self.slept.saturating_add(next.slept);
        self
    }

    /// Prints, before the time that passes from now on.
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdout.extend_from_slice(bytes.as_ref());
        self.mark();
    }

    /// How much it has printed by now.
    pub(super) fn here(&self) -> Mark {
        Mark {
            stdout: self.stdout.len(),
            stderr: self.stderr.len(),
            took: self.took,
            slept: self.slept,
        }
    }

    fn mark(&mut self) {
        let now = self.here();
        let before = self.marks.last();
        let (out, error) = before.map_or((0, 0), |mark| (mark.stdout, mark.stderr));
        if (now.stdout, now.stderr) != (out, error) {
            self.marks.push(now);
        }
    }

    /// What is printed, piece by piece; then how much time is left to the end.
    pub(crate) fn pieces(&self) -> (Vec<Piece>, Duration, Duration) {
        let (mut pieces, mut before) = (Vec::new(), [0, 0]);
        let (mut took, mut slept) = (Duration::ZERO, Duration::ZERO);
        for mark in self.marks.iter().chain([&self.here()]) {
            let streams = [
                (Stream::Out, &self.stdout, mark.stdout),
                (Stream::Error, &self.stderr, mark.stderr),
            ];
            for (at, (stream, all, until)) in streams.into_iter().enumerate() {
                // What was redirected since is not there any more
                let Some(bytes) = all.get(before[at]..until.min(all.len())) else {
                    continue;
                };
                before[at] = until;
                if bytes.is_empty() {
                    continue;
                }
                pieces.push(Piece {
                    took: mark.took.saturating_sub(took),
                    slept: mark.slept.saturating_sub(slept),
                    stream,
                    bytes: bytes.to_vec(),
                });
                (took, slept) = (mark.took, mark.slept);
            }
        }
        (
            pieces,
            self.took.saturating_sub(took),
            self.slept.saturating_sub(slept),
        )
    }
}

impl Started {
    /// Runs until it is ended.
    pub(crate) fn stays() -> Self {
        Self::Stays {
            prints: String::new(),
        }
    }

    /// This, after something else was printed; what stays forgets when.
    pub(crate) fn after(self, before: Ran) -> Self {
        match self {
            Self::Ended(ran) => Self::Ended(before.then(ran)),
            Self::Stays { prints } => Self::Stays {
                prints: String::from_utf8_lossy(&before.stdout).into_owned() + &prints,
            },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn text(piece: &Piece) -> (u64, &str) {
        let text = std::str::from_utf8(&piece.bytes).expect("text");
        ((piece.took + piece.slept).as_secs(), text)
    }

    #[test]
    fn what_is_printed_keeps_its_time_and_its_order() {
        let ran = Ran::prints("a")
            .then(Ran::sleeps(SECOND))
            .then(Ran::complains("b", 1))
            .then(Ran::sleeps(SECOND * 2))
            .then(Ran::prints("c"))
            .then(Ran::sleeps(SECOND * 3));
        let (pieces, took, slept) = ran.pieces();
        let texts: Vec<_> = pieces.iter().map(text).collect();
        assert_eq!(texts, [(0, "a"), (1, "b"), (2, "c")]);
        assert_eq!(pieces[1].stream, Stream::Error);
        assert_eq!((took, slept), (Duration::ZERO, SECOND * 3));
        // What was taken out is told nowhere, and what is left keeps its place
        let mut without = ran;
        without.stdout = Vec::new();
        assert_eq!(
            without.pieces().0.iter().map(text).collect::<Vec<_>>(),
            [(1, "b")]
        );
    }
}
