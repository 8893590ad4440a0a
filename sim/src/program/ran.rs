//! The results of programs: what they print and when, and how they end.

use std::time::Duration;

use super::Started;
use crate::base::log::Stream;

/// The result of a program that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ran {
    /// Its output, in order of time.
    pub(crate) pieces: Vec<Piece>,
    /// Its exit code as the runtime reports it: 32 bits, unsigned.
    pub(crate) code: u32,
    /// Simulated time that passed since its last piece.
    pub(crate) took: Duration,
    /// Time that it slept since its last piece, which passes in real time.
    pub(crate) slept: Duration,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Simulated time since the previous piece.
    pub(crate) took: Duration,
    /// Time slept since the previous piece.
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
        let mut ran = Self::default();
        ran.say(text);
        ran
    }

    pub(crate) fn complains(text: impl Into<String>, code: u32) -> Self {
        let mut ran = Self::code(code);
        ran.print(Stream::Error, text.into().into_bytes());
        ran
    }

    /// The same result with another exit code.
    pub(crate) fn ending(self, code: u32) -> Self {
        Self { code, ..self }
    }

    /// A pause, which passes in real time.
    pub(crate) fn sleeps(slept: Duration) -> Self {
        Self {
            slept,
            ..Self::default()
        }
    }

    /// This result followed by `next`: outputs and times add up, and the exit code is that of `next`.
    pub(crate) fn then(mut self, mut next: Self) -> Self {
        let (took, slept) = match next.pieces.first_mut() {
            Some(first) => (&mut first.took, &mut first.slept),
            None => (&mut next.took, &mut next.slept),
        };
        *took = took.saturating_add(self.took);
        *slept = slept.saturating_add(self.slept);
        self.pieces.append(&mut next.pieces);
        Self {
            pieces: self.pieces,
            ..next
        }
    }

    /// Prints to standard output, before any time that passes afterwards.
    pub(crate) fn say(&mut self, text: impl Into<Vec<u8>>) {
        self.print(Stream::Out, text.into());
    }

    /// Prints to either stream, before any time that passes afterwards.
    pub(crate) fn print(&mut self, stream: Stream, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.pieces.push(Piece {
                took: std::mem::take(&mut self.took),
                slept: std::mem::take(&mut self.slept),
                stream,
                bytes,
            });
        }
    }

    /// Everything that it printed to a stream.
    #[cfg(test)]
    pub(crate) fn all(&self, stream: Stream) -> Vec<u8> {
        let pieces = self.pieces.iter().filter(|piece| piece.stream == stream);
        pieces.flat_map(|piece| piece.bytes.clone()).collect()
    }

    /// Its total simulated time, and the total time that it slept.
    pub(crate) fn lasted(&self) -> (Duration, Duration) {
        let last = (self.took, self.slept);
        self.pieces.iter().fold(last, |(took, slept), piece| {
            (
                took.saturating_add(piece.took),
                slept.saturating_add(piece.slept),
            )
        })
    }
}

impl Started {
    /// A program that prints nothing and runs until it is stopped.
    pub(crate) fn stays() -> Self {
        Self::Stays {
            prints: String::new(),
        }
    }

    /// This program, after the output of `before`; a program that stays loses the times, and prints both streams,
    /// as its log has them.
    pub(crate) fn after(self, before: Ran) -> Self {
        match self {
            Self::Ended(ran) => Self::Ended(before.then(ran)),
            Self::Stays { prints } => {
                let printed = before.pieces.into_iter().flat_map(|piece| piece.bytes);
                let printed: Vec<u8> = printed.collect();
                Self::Stays {
                    prints: String::from_utf8_lossy(&printed).into_owned() + &prints,
                }
            }
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
        let texts: Vec<_> = ran.pieces.iter().map(text).collect();
        assert_eq!(texts, [(0, "a"), (1, "b"), (2, "c")]);
        assert_eq!(ran.pieces[1].stream, Stream::Error);
        assert_eq!((ran.took, ran.slept), (Duration::ZERO, SECOND * 3));
        assert_eq!(ran.lasted(), (Duration::ZERO, SECOND * 6));
        // Removing pieces drops their times, and the others keep theirs
        let mut without = ran.pieces;
        without.retain(|piece| piece.stream == Stream::Error);
        assert_eq!(without.iter().map(text).collect::<Vec<_>>(), [(1, "b")]);
    }
}
