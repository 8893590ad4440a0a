//! A program as it runs in time: what it prints comes when it prints it, and it reads what comes.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::cluster::Cluster;
use crate::keyboard::{Keyboard, News};
use crate::log::Stream;
use crate::program::{self, Ear, Heard, Piece, Ran, Rest, Started, Wants};

/// The least that a turn of a loop takes, be it for starting a process.
const TURN: Duration = Duration::from_millis(10);

/// A program that runs, and what comes in for it.
pub(crate) struct Player<'a> {
    running: Running<'a>,
    keyboard: Option<Keyboard>,
}

/// What came next.
pub(crate) enum Told {
    Printed(Stream, Vec<u8>),
    /// It has ended, with this code.
    Ended(u32),
    /// It serves, stays or does not start: nothing comes of it any more.
    Other(Started),
    /// More was sent to it than is taken.
    TooMuch,
}

impl<'a> Player<'a> {
    pub(crate) fn new(cluster: &'a Cluster, started: Started, keyboard: Option<Keyboard>) -> Self {
        let running = Running {
            cluster,
            pieces: VecDeque::new(),
            left: Default::default(),
            until: None,
            next: Next::Started(started),
            ear: None,
        };
        Self { running, keyboard }
    }

    /// Waits for the next thing it does.
    pub(crate) async fn next(&mut self) -> Told {
        let Self { running, keyboard } = self;
        loop {
            let Some(keyboard) = keyboard else {
                return match running.step().await {
                    Step::Told(told) => told,
                    // It was given its input when it began
                    Step::Asks(_) => std::future::pending().await,
                };
            };
            match keyboard.news() {
                Some(News::Echo(bytes)) => return Told::Printed(Stream::Out, bytes),
                Some(News::TooMuch) => return Told::TooMuch,
                Some(News::Interrupt) if running.interrupt() => continue,
                Some(News::Interrupt) => {
                    return Told::Ended(program::interrupted(keyboard.os()));
                }
                None => {}
            }
            let step = tokio::select! {
                biased;
                () = keyboard.receive() => continue,
                step = running.step() => step,
            };
            match step {
                Step::Told(told) => return told,
                Step::Asks(wants) => match keyboard.next(wants) {
                    Some(heard) => running.hear(&heard),
                    None => keyboard.receive().await,
                },
            }
        }
    }

    /// Lets what serves or stays do so until it is interrupted at its terminal.
    pub(crate) async fn stays(&mut self) {
        let Some(keyboard) = &mut self.keyboard else {
            return std::future::pending().await;
        };
        while !keyboard.is_interrupted() {
            keyboard.receive().await;
        }
    }
}

/// A program, and how far it has come.
struct Running<'a> {
    cluster: &'a Cluster,
    pieces: VecDeque<Piece>,
    /// What is left of its time after its last piece: simulated, and slept.
    left: (Duration, Duration),
    /// When the time has passed that is waited for.
    until: Option<Instant>,
    next: Next,
    /// What has read last, and gets to know of an interrupt.
    ear: Option<Ear>,
}

enum Next {
    Started(Started),
    Rest(Rest),
    Ear(Wants),
}

enum Step {
    Told(Told),
    /// It waits for what it reads.
    Asks(Wants),
}

impl Running<'_> {
    /// Waits for the next thing it does. Nothing is lost where the wait is given up.
    async fn step(&mut self) -> Step {
        loop {
            if let Some(piece) = self.pieces.front() {
                let (took, slept) = (piece.took, piece.slept);
                self.pass(took, slept).await;
                if let Some(piece) = self.pieces.pop_front() {
                    return Step::Told(Told::Printed(piece.stream, piece.bytes));
                }
            }
            let (took, slept) = self.left;
            self.pass(took, slept).await;
            self.left = Default::default();
            let started = match &self.next {
                Next::Started(started) => started.clone(),
                Next::Rest(rest) => {
                    let world = self.cluster.world();
                    rest.start(&self.cluster.view(&world))
                }
                Next::Ear(wants) => return Step::Asks(*wants),
            };
            match started {
                Started::GoesOn { ran, rest } => {
                    self.take(&ran);
                    if ran.lasted().is_zero() {
                        self.left.1 = TURN;
                    }
                    self.next = Next::Rest(rest);
                }
                Started::Reads { ran, wants, ear } => {
                    self.take(&ran);
                    self.next = Next::Ear(wants);
                    self.ear = Some(ear);
                }
                Started::Ended(ran) if ran == Ran::default().ending(ran.code) => {
                    return Step::Told(Told::Ended(ran.code));
                }
                Started::Ended(ran) => {
                    self.take(&ran);
                    self.next = Next::Started(Started::Ended(Ran::default().ending(ran.code)));
                }
                other => {
                    self.next = Next::Started(other.clone());
                    return Step::Told(Told::Other(other));
                }
            }
        }
    }

    fn take(&mut self, ran: &Ran) {
        let (pieces, took, slept) = ran.pieces();
        self.pieces = pieces.into();
        self.left = (took, slept);
    }

    async fn pass(&mut self, took: Duration, slept: Duration) {
        if took.is_zero() && slept.is_zero() {
            return;
        }
        let whole = self.cluster.clock.real(took).saturating_add(slept);
        let until = *self.until.get_or_insert_with(|| clock::after(whole));
        clock::until(until).await;
        self.until = None;
    }

    fn hear(&mut self, heard: &Heard) {
        if let Some(ear) = &self.ear {
            let world = self.cluster.world();
            self.next = Next::Started(ear.hear(heard, &self.cluster.view(&world)));
        }
    }

    /// Leaves what it is at; whether something is there that goes on then.
    fn interrupt(&mut self) -> bool {
        self.pieces.clear();
        self.left = Default::default();
        self.until = None;
        self.hear(&Heard::Interrupt);
        self.ear.is_some()
    }
}
