//! What programs leave: what they print and when, how they end, and what goes on after it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{MOST_STEPS, Refusal, Sight, Spent, Started, View};
use crate::log::Stream;

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
    pub(super) marks: Vec<Mark>,
}

/// How much a program had printed at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) stdout: usize,
    pub(super) stderr: usize,
    pub(super) took: Duration,
    pub(super) slept: Duration,
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
    pub(super) fn code(code: u32) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    pub(super) fn prints(text: impl Into<Vec<u8>>) -> Self {
        Self {
            stdout: text.into(),
            ..Self::default()
        }
    }

    pub(super) fn complains(text: impl Into<String>, code: u32) -> Self {
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
    pub(super) fn sleeps(slept: Duration) -> Self {
        Self {
            slept,
            ..Self::default()
        }
    }

    /// This one, then that one: outputs and times add up, the last exit code counts.
    pub(super) fn then(mut self, next: Self) -> Self {
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
    pub(super) fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdout.extend_from_slice(bytes.as_ref());
        self.mark();
    }

    /// How much it has printed by now.
    fn here(&self) -> Mark {
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

    /// How long it went on.
    pub(crate) fn lasted(&self) -> Duration {
        self.took.saturating_add(self.slept)
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

    /// The same at the same times, with other pieces in place of each.
    pub(super) fn retold(self, mut tell: impl FnMut(Stream, Vec<u8>) -> (Stream, Vec<u8>)) -> Self {
        let (pieces, took, slept) = self.pieces();
        let mut all = Self::default();
        for piece in pieces {
            all.took += piece.took;
            all.slept += piece.slept;
            let (stream, bytes) = tell(piece.stream, piece.bytes);
            match stream {
                Stream::Out => all.stdout.extend(bytes),
                Stream::Error => all.stderr.extend(bytes),
            }
            all.mark();
        }
        all.took += took;
        all.slept += slept;
        all.code = self.code;
        all
    }
}

type Work = dyn Fn(&Sight<'_>) -> Started + Send + Sync;
type Next = dyn Fn(Ran, &Sight<'_>) -> Started + Send + Sync;

/// What a program does after what it has done so far. It sees the world as it is then.
#[derive(Clone)]
pub(crate) struct Rest(Arc<Work>);

impl Rest {
    pub(super) fn new(work: impl Fn(&Sight<'_>) -> Started + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    pub(crate) fn start(&self, view: &View<'_>) -> Started {
        let spent = Spent::default();
        self.at(&Sight::new(view, &spent))
    }

    pub(super) fn at(&self, view: &Sight<'_>) -> Started {
        (self.0)(view)
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rest")
    }
}

impl PartialEq for Rest {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Rest {}

/// How far a program that may never end is followed where nobody waits for it: far beyond what a
/// suite's own limits allow.
const MOST_TURNS: u32 = 10_000;
const LONGEST: Duration = Duration::from_hours(1);
/// As much as a container's log holds.
pub(super) const MOST_OUTPUT: usize = 10 << 20;

/// A program followed until it ends, serves or waits for ever, without any waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Followed {
    /// What it has printed; with the exit code, if it has ended.
    pub(crate) ran: Ran,
    pub(crate) end: End,
}

/// How a program was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Ended,
    /// It serves or waits; or it was still at work when it had run for long enough.
    GoesOn(Option<Started>),
    Refused(Refusal),
}

impl Started {
    /// Runs until it is ended.
    pub(super) fn stays() -> Self {
        Self::Stays {
            prints: String::new(),
        }
    }

    /// This, after something else was printed.
    pub(super) fn after(self, before: Ran) -> Self {
        match self {
            Self::Ended(ran) => Self::Ended(before.then(ran)),
            Self::GoesOn { ran, rest } => Self::GoesOn {
                ran: before.then(ran),
                rest,
            },
            other if before == Ran::code(before.code) => other,
            other => Self::GoesOn {
                ran: before,
                rest: Rest::new(move |_| other.clone()),
            },
        }
    }

    /// This, and what comes of its end; `next` gets what was printed last.
    pub(super) fn followed_by(
        self,
        view: &Sight<'_>,
        next: impl Fn(Ran, &Sight<'_>) -> Self + Send + Sync + 'static,
    ) -> Self {
        self.with_next(view, Arc::new(next))
    }

    fn with_next(self, view: &Sight<'_>, next: Arc<Next>) -> Self {
        match self {
            Self::Ended(ran) => next(ran, view),
            Self::GoesOn { ran, rest } => Self::GoesOn {
                ran,
                rest: Rest::new(move |view| rest.at(view).with_next(view, Arc::clone(&next))),
            },
            other => other,
        }
    }

    /// This with all that it prints changed.
    pub(super) fn each(self, change: Arc<dyn Fn(Ran) -> Ran + Send + Sync>) -> Self {
        match self {
            Self::Ended(ran) => Self::Ended(change(ran)),
            Self::GoesOn { ran, rest } => Self::GoesOn {
                ran: change(ran),
                rest: Rest::new(move |view| rest.at(view).each(Arc::clone(&change))),
            },
            Self::Stays { prints } if !prints.is_empty() => {
                Self::stays().after(change(Ran::prints(prints)))
            }
            other => other,
        }
    }

    /// Follows it to its end, in no time.
    pub(crate) fn follow(self, view: &View<'_>) -> Followed {
        let spent = Spent::default();
        self.follow_for(MOST_TURNS, &Sight::new(view, &spent), true)
    }

    /// Follows it until it serves, if it soon does.
    pub(crate) fn begin(self, view: &View<'_>) -> Followed {
        const FEW: u32 = 100;
        let spent = Spent::default();
        self.follow_for(FEW, &Sight::new(view, &spent), true)
    }

    /// Follows it as a part of another, which has spent what it spends.
    pub(super) fn follow_at(self, view: &Sight<'_>) -> Followed {
        self.follow_for(MOST_TURNS, view, false)
    }

    /// `afresh`: each turn may do as much at once as it may where somebody waits for it.
    fn follow_for(mut self, turns: u32, view: &Sight<'_>, afresh: bool) -> Followed {
        let (mut so_far, mut steps) = (Ran::default(), 0_u32);
        for _ in 0..turns {
            let (ran, rest) = match self {
                Self::GoesOn { ran, rest } => (ran, rest),
                Self::Ended(ran) => {
                    return Followed {
                        ran: so_far.then(ran),
                        end: End::Ended,
                    };
                }
                Self::Refused(refusal) => {
                    return Followed {
                        ran: so_far,
                        end: End::Refused(refusal),
                    };
                }
                stays @ (Self::Serves { .. } | Self::Stays { .. }) => {
                    return Followed {
                        ran: so_far,
                        end: End::GoesOn(Some(stays)),
                    };
                }
            };
            so_far = so_far.then(ran);
            if so_far.lasted() > LONGEST || so_far.stdout.len() + so_far.stderr.len() > MOST_OUTPUT
            {
                break;
            }
            let own = Spent::default();
            let later = view.later(so_far.lasted());
            let spent = if afresh { &own } else { later.spent };
            if steps > MOST_STEPS * 10 || later.steps().is_none() {
                break;
            }
            self = rest.at(&Sight { spent, ..later });
            steps = steps.saturating_add(own.steps.get());
        }
        Followed {
            ran: so_far,
            end: End::GoesOn(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Empty;
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
        let merged = ran.clone().retold(|_, bytes| (Stream::Out, bytes));
        assert_eq!(
            (merged.stdout.as_slice(), merged.slept),
            (&b"abc"[..], ran.slept)
        );
        // What was taken out is told nowhere, and what is left keeps its place
        let mut without = ran;
        without.stdout = Vec::new();
        assert_eq!(
            without.pieces().0.iter().map(text).collect::<Vec<_>>(),
            [(1, "b")]
        );
    }

    #[test]
    fn what_never_ends_is_followed_for_a_while() {
        fn again() -> Started {
            Started::GoesOn {
                ran: Ran::prints("x").then(Ran::sleeps(SECOND)),
                rest: Rest::new(|_| again()),
            }
        }
        let nothing = Empty::default();
        let followed = again().follow(&nothing.view());
        assert_eq!(followed.end, End::GoesOn(None));
        assert_eq!(followed.ran.slept, LONGEST + SECOND);
        let waits = Started::stays().after(Ran::prints("before"));
        let followed = waits.follow(&nothing.view());
        assert_eq!(followed.ran.stdout, b"before");
        assert_eq!(followed.end, End::GoesOn(Some(Started::stays())));
    }
}
