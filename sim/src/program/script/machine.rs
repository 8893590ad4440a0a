//! Runs a script as far as it comes without waiting for what goes on; the rest is a machine that
//! goes on from there, with the world as it is then.

mod frame;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Command, Element, Joint, List, Redirect, What, pipe, redirected_input, redirected_output,
};
use crate::program::input::{Ear, Input, Wants};
use crate::program::{NOT_SIMULATED, Place, Ran, Rest, Sight, Started};
use frame::{Frame, Phase};

/// A shell's own language.
pub(in crate::program) trait Tongue: Send + Sync {
    /// Runs a simple command.
    fn step(&self, machine: &mut Machine, text: &str, input: &Input, view: &Sight<'_>) -> Step;
    /// The words that a loop goes over.
    fn words(&self, machine: &Machine, text: &str, view: &Sight<'_>) -> Result<Vec<String>, Ran>;
    /// Gives the variable of a loop its value.
    fn set(&self, machine: &mut Machine, name: &str, value: String);
    /// What it shows before it reads a line, the first of a command or one `more`.
    fn prompt(&self, machine: &Machine, more: bool) -> String;
    /// What it shows of a line that it has read from a pipe.
    fn shown(&self, line: &str) -> String;
    /// Takes lines that it has read apart.
    fn phrase(&self, machine: &mut Machine, lines: &str) -> Phrase;
    /// How it ends where nothing more comes to read; not at all, at some terminals.
    fn end(&self, machine: &Machine, terminal: bool) -> Option<Ran>;
}

/// What some lines of a shell are.
pub(in crate::program) enum Phrase {
    Commands(List),
    /// The command goes on in the next line.
    Unfinished,
    NotUnderstood(Ran),
}

impl Phrase {
    /// Why a script is not understood that is over before its last command is.
    pub(in crate::program) const UNFINISHED: &'static str = "a command without its end";
}

/// What running one command of a script gave.
pub(in crate::program) enum Step {
    Next(Started),
    /// `exit`: nothing of the script runs after it.
    Last(Ran),
    /// `break`
    Leave,
    /// `continue`
    Again,
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
    /// What runs behind the script.
    pub(in crate::program) jobs: Vec<Started>,
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
    /// It waits for more of its commands.
    Reads,
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
            jobs: Vec::new(),
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
            let view = view.later(so_far.lasted());
            match self.turn(frame, &view) {
                Turn::Pushed => {}
                Turn::Shows(ran) => so_far = so_far.then(ran),
                Turn::Pauses => {
                    return Started::GoesOn {
                        ran: so_far,
                        rest: Rest::new(move |view| self.clone().run(view)),
                    };
                }
                Turn::Reads => {
                    return Started::Reads {
                        ran: so_far,
                        wants: Wants::Some,
                        ear: Ear::new(move |heard, view| {
                            let mut machine = self.clone();
                            let shown = machine.hear(heard);
                            machine.run(view).after(shown)
                        }),
                    };
                }
                Turn::Step(Step::Next(Started::Ended(ran))) => {
                    self.code = ran.code;
                    so_far = so_far.then(ran);
                    if self.code == NOT_SIMULATED {
                        // What comes of the rest nobody knows
                        return Started::Ended(so_far);
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
                Turn::Step(Step::Last(ran)) => return Started::Ended(so_far.then(ran)),
                Turn::Step(Step::Leave) => {
                    self.leave();
                    if self.frames.last().is_some_and(Frame::is_loop) {
                        self.frames.pop();
                    }
                }
                Turn::Step(Step::Again) => self.leave(),
            }
        }
        so_far.code = self.code;
        Started::Ended(so_far)
    }

    fn push(&mut self, list: List) {
        self.frames.push(Frame::List { list, at: 0 });
    }

    fn element(&mut self, element: &Element, view: &Sight<'_>) -> Turn {
        let turn = match element.commands.as_slice() {
            [one] if !element.negated || matches!(one.what, What::Simple(_)) => self.one(one, view),
            [one] => self.with(one, self.input.clone()).run(view).into(),
            several => pipe::line(self, several, view).into(),
        };
        match turn {
            Turn::Step(Step::Next(started)) if element.behind => {
                self.jobs.push(started);
                Turn::Step(Step::Next(Started::Ended(Ran::code(0))))
            }
            Turn::Step(Step::Next(started)) if element.negated => {
                let negated = |ran: Ran| Ran {
                    code: u32::from(ran.code == 0),
                    ..ran
                };
                started.each(Arc::new(negated)).into()
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
            let plain = Command {
                redirects: Vec::new(),
                ..command.clone()
            };
            let started = self.with(&plain, input).run(view);
            return self.redirected(started, &command.redirects).into();
        };
        let input = match redirected_input(&self.place, redirects, &self.input) {
            Ok(input) => input,
            Err(ran) => return Started::Ended(ran).into(),
        };
        match self.tongue.step(self, text, &input, view) {
            Step::Next(started) => self.redirected(started, redirects).into(),
            other => Turn::Step(other),
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
            What::Over { name, words, body } => match self.tongue.words(self, &words, view) {
                Ok(words) => self.frames.push(Frame::Over {
                    name,
                    values: words.into(),
                    body,
                    begun: false,
                }),
                Err(ran) => return Started::Ended(ran).into(),
            },
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

    /// Whether the command that runs is all of the script.
    pub(in crate::program) fn is_alone(&self) -> bool {
        let alone = |frame: &Frame| matches!(frame, Frame::List { list, .. } if list.len() == 1);
        match self.frames.as_slice() {
            [only] | [Frame::Source(_), only] => alone(only),
            _ => false,
        }
    }

    /// The same in so many others.
    pub(in crate::program) fn at_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
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
