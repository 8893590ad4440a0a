//! Runs a script as far as it comes without waiting for what goes on; the rest is a machine that
//! goes on from there, with the world as it is then.

mod frame;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::{
    Command, Element, Joint, List, Redirect, What, pipe, redirected_input, redirected_output,
};
use crate::program::input::Input;
use crate::program::ran::MOST_OUTPUT;
use crate::program::{NOT_SIMULATED, Place, Ran, Refusal, Rest, Sight, Started};
use frame::{Frame, Phase};

/// A shell's own language.
pub(in crate::program) trait Tongue: Send + Sync {
    /// Runs a simple command.
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step;
    /// The words that a loop goes over.
    fn words(
        &self,
        machine: &mut Machine,
        text: &str,
        view: &Sight<'_>,
    ) -> Result<Vec<String>, Ran>;
    /// Gives the variable of a loop its value.
    fn set(&self, machine: &mut Machine, name: &str, value: String) -> Result<(), Ran>;
    /// The exit code of a script that comes to its end, by that of its last command.
    fn last(&self, code: u32) -> u32 {
        code
    }
}

/// How much the variables hold that a script sets, in bytes: far more than Linux passes on to a program
/// (execve(2), `MAX_ARG_STRLEN`: 128 KiB each).
const MOST_HELD: usize = 1 << 20;

/// How many jobs of a script may run behind it.
const MOST_JOBS: usize = 1000;

/// What running one command of a script gave.
pub(in crate::program) enum Step {
    Next(Started),
    /// `exit`: nothing of the script runs after it.
    Last(Ran),
    /// `break`, out of so many loops.
    Leave(u32),
    /// `continue`, in the last of so many loops.
    Again(u32),
}

/// A script and where it is.
#[derive(Clone)]
pub(in crate::program) struct Machine {
    tongue: &'static dyn Tongue,
    pub(in crate::program) place: Place,
    /// The exit code of the command before.
    pub(in crate::program) code: u32,
    /// `ERRORLEVEL`, which some commands of Windows leave as it is.
    pub(in crate::program) level: u32,
    /// Variables of the shell itself, which programs do not see.
    pub(in crate::program) own: BTreeMap<String, String>,
    /// How much of the variables the script has set.
    held: usize,
    /// What runs behind the script, and since when.
    pub(in crate::program) jobs: Vec<(Timestamp, Started)>,
    /// What expanding a command gave, which goes where the script's own output goes.
    pub(in crate::program) aside: Ran,
    pub(super) input: Input,
    depth: u32,
    frames: Vec<Frame>,
}

enum Turn {
    Step(Step),
    /// There is more to do first.
    Pushed,
    /// The same, and something is shown before.
    Shows(Ran),
    /// A turn of a loop is over: others may do something, and the world may change.
    Pauses,
}

impl From<Started> for Turn {
    fn from(started: Started) -> Self {
        Self::Step(Step::Next(started))
    }
}

impl Machine {
    /// A script before its first command.
    pub(in crate::program) fn new(
        tongue: &'static dyn Tongue,
        place: &Place,
        list: List,
        input: Input,
        view: &Sight<'_>,
    ) -> Self {
        Self {
            tongue,
            place: place.clone(),
            code: 0,
            level: 0,
            own: BTreeMap::new(),
            held: 0,
            jobs: Vec::new(),
            aside: Ran::default(),
            input,
            depth: view.depth,
            frames: vec![Frame::List { list, at: 0 }],
        }
    }

    /// Runs until the script ends or has to wait.
    pub(in crate::program) fn run(mut self, view: &Sight<'_>) -> Started {
        let view = Sight {
            depth: self.depth,
            ..*view
        };
        let mut so_far = Ran::default();
        while let Some(frame) = self.frames.pop() {
            if view.steps().is_none() {
                let refused = Refusal::instead_of("a script of so many commands at once");
                return Started::Ended(so_far.then(refused));
            }
            let view = view.later(so_far.lasted());
            let turn = match self.turn(frame, &view) {
                Turn::Step(Step::Next(started)) => self.through(started).into(),
                turn => turn,
            };
            match turn {
                Turn::Pushed => {}
                Turn::Shows(ran) => {
                    let Started::Ended(ran) = self.through(Started::Ended(ran)) else {
                        continue;
                    };
                    so_far = so_far.then(ran);
                }
                Turn::Pauses => {
                    return Started::GoesOn {
                        ran: so_far,
                        rest: Rest::new(move |view| self.clone().run(view)),
                    };
                }
                Turn::Step(Step::Next(Started::Ended(ran))) => {
                    self.code = ran.code;
                    so_far = so_far.then(ran);
                    if self.code == NOT_SIMULATED {
                        // What comes of the rest nobody knows
                        return Started::Ended(so_far);
                    }
                    if so_far.stdout.len() + so_far.stderr.len() > MOST_OUTPUT {
                        return Started::GoesOn {
                            ran: so_far,
                            rest: Rest::new(move |view| self.clone().run(view)),
                        };
                    }
                }
                Turn::Step(Step::Next(other)) => {
                    let goes_on = other.followed_by(&view, move |ran, view| {
                        let mut machine = self.clone();
                        (machine.code, machine.level) = (ran.code, ran.code);
                        match ran.code {
                            NOT_SIMULATED => Started::Ended(ran),
                            _ => machine.run(view).after(ran),
                        }
                    });
                    return goes_on.after(so_far);
                }
                Turn::Step(Step::Last(ran)) => {
                    return self.through(Started::Ended(ran)).after(so_far);
                }
                Turn::Step(Step::Leave(loops)) => self.leave_loops(loops),
                Turn::Step(Step::Again(loops)) => {
                    self.leave_loops(loops.saturating_sub(1));
                    self.leave();
                }
            }
        }
        so_far.code = self.tongue.last(self.code);
        Started::Ended(so_far)
    }

    fn push(&mut self, list: List) {
        self.frames.push(Frame::List { list, at: 0 });
    }

    fn element(&mut self, element: &Element, view: &Sight<'_>) -> Turn {
        if element.negated {
            self.frames.push(Frame::Negated);
        }
        let turn = match element.commands.as_slice() {
            [one] => self.one(one, view),
            several => pipe::line(self, several, view).into(),
        };
        match turn {
            Turn::Step(Step::Next(_)) if element.behind && self.jobs.len() >= MOST_JOBS => {
                Started::Ended(Refusal::instead_of("so many jobs in the background")).into()
            }
            Turn::Step(Step::Next(started)) if element.behind => {
                self.jobs.push((view.now, started));
                Turn::Step(Step::Next(Started::Ended(Ran::code(0))))
            }
            turn => turn,
        }
    }

    fn one(&mut self, command: &Command, view: &Sight<'_>) -> Turn {
        let (What::Simple(text), redirects) = (&command.what, &command.redirects) else {
            if command.redirects.is_empty() {
                return self.enter(&command.what, view);
            }
            let input = match redirected_input(&self.place, &command.redirects, &self.input) {
                Ok(input) => input,
                Err(ran) => return Started::Ended(ran).into(),
            };
            self.frames.push(Frame::Streams {
                redirects: command
                    .redirects
                    .iter()
                    .map(|redirect| redirect.located(&self.place))
                    .collect(),
                outer: std::mem::replace(&mut self.input, input),
            });
            return self.enter(&command.what, view);
        };
        let input = match redirected_input(&self.place, redirects, &self.input) {
            Ok(input) => input,
            Err(ran) => return Started::Ended(ran).into(),
        };
        let step = self.tongue.step(self, text, &input, view);
        let aside = std::mem::take(&mut self.aside);
        Turn::Step(match step {
            Step::Next(started) => Step::Next(self.redirected(started, redirects).after(aside)),
            Step::Last(ran) => Step::Last(aside.then(match redirects.as_slice() {
                [] => ran,
                redirects => redirected_output(&self.place, redirects, ran),
            })),
            other => other,
        })
    }

    /// Through the redirections of the commands that this one stands in.
    fn through(&self, started: Started) -> Started {
        let streams = self.frames.iter().rev().filter_map(|frame| match frame {
            Frame::Streams { redirects, .. } => Some(redirects),
            _ => None,
        });
        streams.fold(started, |started, redirects| {
            self.redirected(started, redirects)
        })
    }

    /// Ends what is run innermost, up to the next loop: `break` and `continue`.
    fn leave(&mut self) {
        while self.frames.last().is_some_and(|frame| !frame.is_loop()) {
            self.drop_frame();
        }
    }

    /// Leaves what is run innermost.
    fn drop_frame(&mut self) {
        if let Some(Frame::Streams { outer, .. }) = self.frames.pop() {
            self.input = outer;
        }
    }

    /// Leaves so many loops.
    fn leave_loops(&mut self, loops: u32) {
        for _ in 0..loops {
            self.leave();
            if self.frames.last().is_some_and(Frame::is_loop) {
                self.frames.pop();
            }
        }
    }

    fn redirected(&self, started: Started, redirects: &[Redirect]) -> Started {
        if redirects.is_empty() {
            return started;
        }
        let (place, redirects) = (self.place.clone(), redirects.to_vec());
        started.each(Arc::new(move |ran| {
            redirected_output(&place, &redirects, ran)
        }))
    }

    /// Goes into a command of several.
    fn enter(&mut self, what: &What, view: &Sight<'_>) -> Turn {
        match what.clone() {
            What::Simple(_) => {}
            What::Group(list) => self.push(list),
            What::Own(list) => {
                return self.inner(list, self.input.clone()).run(view).into();
            }
            What::Loop {
                until,
                condition,
                body,
            } => self.frames.push(Frame::Loop {
                until,
                condition,
                body,
                phase: Phase::Asks,
            }),
            What::Over { name, words, body } => {
                let tongue = self.tongue;
                match tongue.words(self, &words, view) {
                    Ok(words) => self.frames.push(Frame::Over {
                        name,
                        values: words.into(),
                        at: 0,
                        body,
                    }),
                    Err(ran) => return Started::Ended(ran).into(),
                }
                return Turn::Shows(std::mem::take(&mut self.aside));
            }
            What::Count {
                name,
                from,
                step,
                to,
                body,
            } => self.frames.push(Frame::Count {
                name,
                next: from,
                step,
                to,
                body,
                begun: false,
            }),
            What::If { arms, otherwise } => self.arms(arms.into(), otherwise),
        }
        Turn::Pushed
    }

    /// Gives a variable its value, for programs to see where it is `exported`.
    pub(in crate::program) fn assign(
        &mut self,
        name: &str,
        value: String,
        exported: bool,
    ) -> Result<(), Ran> {
        self.forget(name, exported);
        self.held += name.len() + value.len();
        if self.held > MOST_HELD {
            return Err(Refusal::instead_of("variables of so much text"));
        }
        if exported {
            let mut env = (*self.place.env).clone();
            env.insert(name.to_owned(), value);
            self.place.env = env.into();
        } else {
            self.own.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Takes a variable away.
    pub(in crate::program) fn forget(&mut self, name: &str, exported: bool) {
        let before = if exported {
            let known = self.place.env.contains_key(name);
            known.then(|| {
                let mut env = (*self.place.env).clone();
                let value = env.remove(name);
                self.place.env = env.into();
                value
            })
        } else {
            Some(self.own.remove(name))
        };
        if let Some(value) = before.flatten() {
            self.held = self.held.saturating_sub(name.len() + value.len());
        }
    }

    /// Whether the command that runs is all of the script.
    pub(in crate::program) fn is_alone(&self) -> bool {
        let alone = |frame: &Frame| matches!(frame, Frame::List { list, .. } if list.len() == 1);
        match self.frames.as_slice() {
            [only] => alone(only),
            _ => false,
        }
    }

    /// The same in so many others.
    pub(in crate::program) fn at_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// What its commands read.
    pub(in crate::program) fn input(&self) -> Input {
        self.input.clone()
    }

    /// A shell of its own for one command.
    pub(super) fn with(&self, command: &Command, input: Input) -> Self {
        let element = Element::new(Joint::Always, vec![command.clone()]);
        self.inner(Arc::new([element]), input)
    }

    /// A shell of its own for some commands.
    pub(in crate::program) fn inner(&self, list: List, input: Input) -> Self {
        Self {
            input,
            jobs: Vec::new(),
            frames: vec![Frame::List { list, at: 0 }],
            ..self.clone()
        }
    }
}
