//! What a script is in the middle of: its lists, loops and conditions, and what each does next.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Machine, Turn};
use crate::program::input::Input;
use crate::program::script::{Joint, List, Redirect};
use crate::program::{Sight, Started};

#[derive(Clone)]
pub(super) enum Frame {
    List {
        list: List,
        at: usize,
    },
    Loop {
        until: bool,
        condition: List,
        body: List,
        phase: Phase,
    },
    Over {
        name: String,
        values: Arc<[String]>,
        at: usize,
        body: List,
    },
    Count {
        name: String,
        next: i64,
        step: i64,
        to: i64,
        body: List,
        begun: bool,
    },
    /// `!`: the success of what has run is a failure.
    Negated,
    /// Streams go elsewhere while what is above runs; then the input is the `outer` again.
    Streams {
        redirects: Arc<[Redirect]>,
        outer: Input,
    },
    /// The condition of the first arm has been looked at.
    Arms {
        arms: VecDeque<(List, List)>,
        otherwise: List,
    },
}

#[derive(Clone, Copy)]
pub(super) enum Phase {
    Asks,
    Decides,
    HasRun,
}

impl Frame {
    pub(super) fn is_loop(&self) -> bool {
        matches!(
            self,
            Self::Loop { .. } | Self::Over { .. } | Self::Count { .. }
        )
    }
}

impl Machine {
    /// Goes on in what is run innermost.
    pub(super) fn turn(&mut self, frame: Frame, view: &Sight<'_>) -> Turn {
        match frame {
            Frame::List { list, at } => self.follow(&list, at, view),
            Frame::Negated => {
                self.code = u32::from(self.code == 0);
                Turn::Pushed
            }
            Frame::Streams { outer, .. } => {
                self.input = outer;
                Turn::Pushed
            }
            Frame::Loop {
                until,
                condition,
                body,
                phase,
            } => self.again(until, condition, body, phase),
            Frame::Over {
                name,
                values,
                at,
                body,
            } => {
                let Some(value) = values.get(at).cloned() else {
                    return Turn::Pushed;
                };
                if let Err(ran) = self.tongue.set(self, &name, value) {
                    return Started::Ended(ran).into();
                }
                let own = Arc::clone(&body);
                self.frames.push(Frame::Over {
                    name,
                    values,
                    at: at + 1,
                    body,
                });
                self.push(own);
                if at > 0 { Turn::Pauses } else { Turn::Pushed }
            }
            Frame::Count {
                name,
                next,
                step,
                to,
                body,
                begun,
            } => {
                if step >= 0 && next > to || step < 0 && next < to {
                    return Turn::Pushed;
                }
                if let Err(ran) = self.tongue.set(self, &name, next.to_string()) {
                    return Started::Ended(ran).into();
                }
                let own = Arc::clone(&body);
                let next = next.saturating_add(step);
                self.frames.push(Frame::Count {
                    name,
                    next,
                    step,
                    to,
                    body,
                    begun: true,
                });
                self.push(own);
                if begun { Turn::Pauses } else { Turn::Pushed }
            }
            Frame::Arms {
                mut arms,
                otherwise,
            } => {
                let holds = self.code == 0;
                let arm = arms.pop_front();
                self.code = 0;
                match (arm, holds) {
                    (Some((_, body)), true) => self.push(body),
                    _ => self.arms(arms, otherwise),
                }
                Turn::Pushed
            }
        }
    }

    /// The next command of a list.
    fn follow(&mut self, list: &List, at: usize, view: &Sight<'_>) -> Turn {
        let Some(element) = list.get(at) else {
            return Turn::Pushed;
        };
        self.frames.push(Frame::List {
            list: Arc::clone(list),
            at: at + 1,
        });
        let runs = match element.joint {
            Joint::Always => true,
            Joint::AfterSuccess => self.code == 0,
            Joint::AfterFailure => self.code != 0,
        };
        match runs {
            true => self.element(element, view),
            false => Turn::Pushed,
        }
    }

    /// The next part of a loop with a condition.
    fn again(&mut self, until: bool, condition: List, body: List, phase: Phase) -> Turn {
        let lists = (Arc::clone(&condition), Arc::clone(&body));
        let mut again = |phase| {
            self.frames.push(Frame::Loop {
                until,
                condition: Arc::clone(&lists.0),
                body: Arc::clone(&lists.1),
                phase,
            });
        };
        match phase {
            Phase::Asks => {
                again(Phase::Decides);
                self.code = 0;
                self.push(condition);
            }
            Phase::Decides if (self.code == 0) != until => {
                again(Phase::HasRun);
                self.push(body);
            }
            Phase::Decides => self.code = 0,
            Phase::HasRun => {
                again(Phase::Asks);
                return Turn::Pauses;
            }
        }
        Turn::Pushed
    }

    /// Looks at the first condition that is left.
    pub(super) fn arms(&mut self, arms: VecDeque<(List, List)>, otherwise: List) {
        match arms.front() {
            None => self.push(otherwise),
            Some((condition, _)) => {
                let condition = Arc::clone(condition);
                self.frames.push(Frame::Arms { arms, otherwise });
                self.push(condition);
            }
        }
    }
}
